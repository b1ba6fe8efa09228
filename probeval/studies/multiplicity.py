r"""Relevance by multiplicity: how often documents are relevant, by the number of systems that retrieved them.

See docs/theory/relevance-models.md#multiplicity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from probeval.arrays import Floats, Ints
from probeval.data.collection import Collection
from probeval.display import Table
from probeval.errors import FeatureError
from probeval.results import Result, rows

__all__ = ["Multiplicity", "MultiplicityBand", "fit_multiplicity", "multiplicity"]

STEPS = 50  # of Newton's method, which needs fewer than ten
CLOSE = 1e-10


@dataclass(frozen=True)
class MultiplicityBand:
    """Judged documents that a similar number of systems retrieved: 1, 2, 3-4, 5-8, .."""

    least: Annotated[int, "The least number of systems."]
    most: Annotated[int, "The highest number of systems."]
    pairs: Annotated[int, "The number of judged pairs."]
    relevant: Annotated[float, "The share of them that is relevant; null if there are none."]
    fitted: Annotated[float, "The share by the logistic regression."]


@dataclass(frozen=True, eq=False, repr=False)
class Multiplicity(Result):
    r"""Relevance by the number of systems that retrieved a document: bands, and a logistic regression.

    With m systems, :math:`\text{logit} P = a + b \log_2 m`.
    """

    depth: Annotated[int, "How many ranks of each system count."]
    systems: Annotated[int, "The number of systems."]
    pairs: Annotated[int, "The number of judged pairs."]
    relevant: Annotated[float, "The share of them that is relevant."]
    intercept: Annotated[
        float, "Of the logistic regression of relevance on log2 of the number of systems; null with too few documents."
    ]
    slope: Annotated[float, "Of the same regression."]
    bands: Annotated[tuple[MultiplicityBand, ...], "One entry per band of the number of systems."]

    def _headline(self) -> str:
        return f"{self.pairs:,} pairs in the top {self.depth} of {self.systems} systems"

    def tables(self) -> tuple[Table, ...]:
        """One row per band."""
        return (Table(self.to_frame(), "Relevance by the number of systems"),)

    def sentences(self) -> tuple[str, ...]:
        """The number of pairs, the share of relevant ones, and the regression."""
        fit = f"logit P(relevant) = {self.intercept:.3f} + {self.slope:.3f} log2(number of systems)."
        return (
            f"{self.pairs:,} judged pairs in the top {self.depth} of {self.systems} systems, "
            f"{self.relevant:.1%} relevant.",
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
    highest = [1]
    while highest[-1] < len(runs.systems):
        highest.append(2 * highest[-1])
    band = np.searchsorted(highest, values)
    judged, good = (np.bincount(band, weights=counts, minlength=len(highest)) for counts in (pairs, hits))
    least, most = np.array([1, *(m + 1 for m in highest[:-1])]), np.minimum(highest, len(runs.systems))
    return Multiplicity(
        depth,
        len(runs.systems),
        len(number),
        float(relevant.mean()),
        intercept,
        slope,
        rows(
            MultiplicityBand,
            least=least,
            most=most,
            pairs=judged.astype(np.int64),
            relevant=np.divide(good, judged, out=np.full(len(judged), np.nan), where=judged > 0),
            fitted=expit(intercept + slope * np.log2(middle(least, most))),
        ),
    )
