r"""Relevance by multiplicity: how often documents are relevant, by the number of systems that retrieved them.

See docs/theory/relevance-models.md#multiplicity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.display import Table
from probeval.errors import FeatureError
from probeval.results import Result
from probeval.schema import records

__all__ = ["Multiplicity", "MultiplicityBand", "MultiplicityDocument", "fit_multiplicity", "multiplicity"]

STEPS = 50  # of Newton's method, which needs fewer than ten
CLOSE = 1e-10


class MultiplicityBand(TypedDict):
    """Judged documents that a similar number of systems retrieved.

    Parameters
    ----------
    least, most
        The least and the highest number of systems.
    pairs, relevant
        The number of judged pairs, and the share of them that is relevant.
    fitted
        The share by the logistic regression.
    """

    least: int
    most: int
    pairs: int
    relevant: float
    fitted: float


class MultiplicityDocument(TypedDict):
    """Relevance by the number of systems that retrieved a document.

    Parameters
    ----------
    depth, systems
        How many ranks of each system count, and the number of systems.
    intercept, slope
        Of the logistic regression of relevance on log2 of the number of systems.
    """

    depth: int
    systems: int
    pairs: int
    relevant: float
    intercept: float
    slope: float
    bands: list[MultiplicityBand]


@dataclass(frozen=True, eq=False, repr=False)
class Multiplicity(Result):
    r"""Relevance by the number of systems that retrieved a document: bands, and a logistic regression.

    With m systems, :math:`\text{logit} P = a + b \log_2 m`.

    Parameters
    ----------
    depth, systems
        How many ranks of each system count, and the number of systems.
    least, most
        The least and the highest number of systems of each band: 1, 2, 3-4, 5-8, .., shape (band,).
    pairs, relevant
        The number of judged pairs, and of these the relevant ones, shape (band,).
    intercept, slope
        Of the logistic regression; NaN with too few documents for one.
    """

    depth: int
    systems: int
    least: Ints
    most: Ints
    pairs: Floats
    relevant: Floats
    intercept: float
    slope: float

    def to_frame(self) -> pd.DataFrame:
        """One row per band: least, most, pairs, relevant (the share), fitted."""
        return pd.DataFrame(
            {
                "least": self.least,
                "most": self.most,
                "pairs": self.pairs.astype(np.int64),
                "relevant": np.divide(
                    self.relevant, self.pairs, out=np.full(len(self.pairs), np.nan), where=self.pairs > 0
                ),
                "fitted": expit(self.intercept + self.slope * np.log2(middle(self.least, self.most))),
            }
        )

    def to_dict(self) -> MultiplicityDocument:
        """The table as plain data for JSON."""
        return {
            "depth": self.depth,
            "systems": self.systems,
            "pairs": int(self.pairs.sum()),
            "relevant": float(self.relevant.sum() / self.pairs.sum()),
            "intercept": self.intercept,
            "slope": self.slope,
            "bands": records(self.to_frame(), MultiplicityBand),
        }

    def _headline(self) -> str:
        return f"{int(self.pairs.sum()):,} pairs in the top {self.depth} of {self.systems} systems"

    def tables(self) -> tuple[Table, ...]:
        """One row per band."""
        return (Table(self.to_frame(), "Relevance by the number of systems"),)

    def sentences(self) -> tuple[str, ...]:
        """The number of pairs, the share of relevant ones, and the regression."""
        total = self.pairs.sum()
        fit = f"logit P(relevant) = {self.intercept:.3f} + {self.slope:.3f} log2(number of systems)."
        return (
            f"{int(total):,} judged pairs in the top {self.depth} of {self.systems} systems, "
            f"{self.relevant.sum() / total:.1%} relevant.",
            *(() if np.isnan(self.slope) else (fit,)),
        )


def middle(least: Ints, most: Ints) -> Floats:
    """Return the geometric middle of bands, shape (band,)."""
    return np.sqrt(np.asarray(least, dtype=float) * most)


def fit_multiplicity(number: ArrayLike, pairs: ArrayLike, relevant: ArrayLike) -> tuple[float, float]:
    r"""Return intercept and slope of the logistic regression of relevance on log2 of the number of systems.

    By Newton's method on grouped counts.

    Parameters
    ----------
    number
        The number of systems of each group, shape (group,).
    pairs, relevant
        The number of pairs, and of these the relevant ones, shape (group,).

    Examples
    --------
    >>> a, b = fit_multiplicity([1, 2, 4], [100, 100, 100], [10, 20, 40])
    >>> round(a, 3), round(b, 3)
    (-2.245, 0.911)
    """
    x, n, k = (np.asarray(v, dtype=float) for v in (np.log2(np.asarray(number, dtype=float)), pairs, relevant))
    design = np.stack([np.ones_like(x), x], axis=1)
    beta = np.zeros(2)
    for _ in range(STEPS):
        p = expit(design @ beta)
        information = design.T @ (design * (n * p * (1 - p))[:, None])
        try:
            step = np.linalg.solve(information, design.T @ (k - n * p))
        except np.linalg.LinAlgError:
            break
        beta += step
        if np.abs(step).max() < CLOSE:
            return float(beta[0]), float(beta[1])
    raise FeatureError(
        "Relevance by multiplicity cannot be fitted: judged documents of at least two multiplicities, some relevant "
        "and some not, are needed."
    )


def multiplicity(collection: Collection, *, depth: int) -> Multiplicity:
    """Return how often documents are relevant, by the number of systems that have them in their top ranks.

    Parameters
    ----------
    collection
        Runs and judgments; every grade above the lowest is relevant. Unjudged pairs do not count.
    depth
        How many ranks of each system count.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> found = multiplicity(synthetic_campaign(seed=1), depth=10)
    >>> found.slope > 0, found.to_frame().columns.tolist()
    (True, ['least', 'most', 'pairs', 'relevant', 'fitted'])
    """
    if collection.judgments is None or not len(collection.judgments):
        raise FeatureError("Relevance by multiplicity needs judgments: give --qrels FILE.")
    if depth < 1:
        raise FeatureError(f"The depth is a number of ranks from 1, got {depth}.")
    runs = collection.runs.top(depth)
    codes = collection.judgments.codes_on(runs.pool, collection.judgments.scale())
    number = np.bincount(runs.pairs[runs.retrieved], minlength=len(runs.pool))
    known = (codes >= 0) & (number > 0)
    number, relevant = number[known], codes[known] > 0
    if not len(number):
        raise FeatureError(f"No judged document is in the top {depth} of any system.")
    values, at = np.unique(number, return_inverse=True)
    pairs, hits = np.bincount(at).astype(float), np.bincount(at, weights=relevant)
    try:
        intercept, slope = fit_multiplicity(values, pairs, hits)
    except FeatureError:
        intercept = slope = float("nan")  # too few documents for a regression; the table stands
    most = [1]
    while most[-1] < len(runs.systems):
        most.append(2 * most[-1])
    least = [1, *(m + 1 for m in most[:-1])]
    band = np.searchsorted(most, values)
    return Multiplicity(
        depth,
        len(runs.systems),
        np.array(least),
        np.minimum(most, len(runs.systems)),
        frozen(np.bincount(band, weights=pairs, minlength=len(most)).astype(float)),
        frozen(np.bincount(band, weights=hits, minlength=len(most)).astype(float)),
        intercept,
        slope,
    )
