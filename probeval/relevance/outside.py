r"""Relevant documents outside the pool: how many more a query has than its runs found.

See docs/theory/scores.md#outside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from probeval.arrays import Floats, Ints, frozen
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.errors import ModelError

__all__ = ["Outside", "OutsideModel", "exact_counts", "load_outside", "outside_terms"]

TERMS = ("one", "inside", "runs", "depth", "overlap", "grade")
HALF = 0.5  # added to a number of documents before its logarithm
MOST_GRADES = 6  # finer scales have too few documents per grade, and none was learned from
LARGEST = 8.0  # log of the largest expected number: 3,000 documents
EFFECTS = 1000  # draws of how rich this campaign is


def exact_counts(at_least: Ints) -> Ints:
    """Return the number of documents of each grade from those of at least each grade, shape (.., grade).

    >>> exact_counts(np.array([6, 5, 4, 2]))
    array([1, 1, 2, 2])
    """
    return np.asarray(at_least - np.append(at_least[..., 1:], np.zeros_like(at_least[..., :1]), axis=-1))


def outside_terms(runs: Runs, scale: Scale) -> Floats:
    """Return all terms but that of documents inside, for each query and each grade above 0, shape (query, grade, term).

    The lists must be on the pool of only their pairs, as those of :meth:`Runs.top` are.
    """
    n_queries, top = len(runs.queries), len(scale) - 1
    places = runs.retrieved.sum(axis=(0, 2))
    overlap = np.log(np.maximum(runs.pool.sizes, 1) / np.maximum(places, 1))
    grade = np.arange(1, top + 1) / top - (top + 1) / (2 * top)
    out = np.ones((n_queries, top, len(TERMS)))
    out[..., TERMS.index("inside")] = 0.0
    out[..., TERMS.index("runs")] = np.log(len(runs.systems))
    out[..., TERMS.index("depth")] = np.log(max(runs.depth, 1))
    out[..., TERMS.index("overlap")] = overlap[:, None]
    out[..., TERMS.index("grade")] = grade
    return out


@dataclass(frozen=True)
class OutsideModel:
    r"""A regression of the number of relevant documents outside the pool, learned from past campaigns.

    The number with grade :math:`\ell` is Poisson-gamma with mean :math:`\mu` and variance :math:`\phi\mu`, and

    .. math:: \log \mu_{q\ell} = b_0 + b_1 \log(n_{q\ell} + \tfrac12) + b_2 \log r + b_3 \log k + b_4 \log o_q
        + b_5 z_\ell + u.

    Parameters
    ----------
    coefficients
        Of one, of the logarithms of the number of documents inside with this grade, of the number of runs, of the depth
        of the pool and of the share of distinct documents in the lists, and of the grade, from -1/2 to 1/2.
    sd
        The standard deviation of :math:`u`: campaigns differ in how much there is, and in how much of it was judged.
    dispersion
        :math:`\phi`, the variance of a number over its mean.
    campaigns
        The names of the campaigns that it was learned from.
    """

    coefficients: tuple[float, ...]
    sd: float
    dispersion: float
    campaigns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(TERMS) or self.sd < 0 or self.dispersion <= 1:
            raise ModelError(
                f"An outside model has {len(TERMS)} coefficients, an sd of at least 0 and a dispersion above 1; got "
                f"{len(self.coefficients)}, {self.sd:g} and {self.dispersion:g}."
            )

    def on(self, runs: Runs, scale: Scale, rng: np.random.Generator) -> Outside:
        """Return the distribution of the documents outside the pool of these runs.

        Parameters
        ----------
        runs
            All lists of the pool, cut at its depth.
        scale
            The grades; of at most 6, as the model was learned on scales with few grades.
        rng
            The generator of the effect of the campaign.
        """
        if len(scale) > MOST_GRADES:
            raise ModelError(
                f"Documents outside the pool are estimated on scales of at most {MOST_GRADES} grades, not on {scale}. "
                "Give more runs with --pool (pool=) instead."
            )
        base = outside_terms(runs, scale) @ np.array(self.coefficients)
        return Outside(self, base, self.sd * rng.standard_normal(EFFECTS))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {**asdict(self), "coefficients": dict(zip(TERMS, self.coefficients, strict=True))}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OutsideModel:
        """Return the model from plain data."""
        coefficients = tuple(float(data["coefficients"][term]) for term in TERMS)
        return cls(coefficients, float(data["sd"]), float(data["dispersion"]), tuple(data["campaigns"]))


@dataclass(frozen=True, eq=False)
class Outside:
    """The documents outside the pool of one campaign.

    Parameters
    ----------
    model
        The regression.
    base
        The log of the expected number without the term of documents inside, shape (query, grade above 0).
    effects
        Draws of the effect of the campaign, shape (draw,), taken in turn.
    """

    model: OutsideModel
    base: Floats
    effects: Floats

    def __post_init__(self) -> None:
        for name in ("base", "effects"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def part(self, queries: slice) -> Outside:
        """Return the part of some queries."""
        return replace(self, base=self.base[queries])

    def typical(self, inside: Floats) -> Floats:
        """Return the expected number at the median effect, given the number inside, shapes (.., query, grade > 0)."""
        slope = self.model.coefficients[TERMS.index("inside")]
        return np.asarray(np.exp(np.minimum(self.base + slope * np.log(inside + HALF), LARGEST)))

    def sample(self, inside: Ints, streams: Sequence[np.random.Generator], *, start: int = 0) -> Ints:
        """Return draws of the number of documents outside with at least each grade, shape (draw, query, grade).

        Parameters
        ----------
        inside
            The number inside with at least each grade under each draw, same shape.
        streams
            One random stream per query.
        start
            The number of draws made before.
        """
        exactly = exact_counts(inside)[..., 1:]
        effect = self.effects[(start + np.arange(len(inside))) % len(self.effects)]
        mean = np.minimum(self.typical(exactly) * np.exp(effect)[:, None, None], np.exp(LARGEST))
        extra = self.model.dispersion - 1
        out = np.zeros(inside.shape, dtype=np.int64)
        for query, stream in enumerate(streams):
            out[:, query, 1:] = stream.poisson(stream.gamma(mean[:, query] / extra) * extra)
        out[..., 0] = out[..., 1:].sum(axis=-1)
        out[..., 1:] = np.cumsum(out[..., :0:-1], axis=-1)[..., ::-1]
        return out


@cache
def load_outside() -> OutsideModel:
    """Return the model that the package comes with.

    >>> len(load_outside().campaigns)
    12
    """
    return OutsideModel.from_dict(json.loads(files(__package__).joinpath("outside.json").read_text("utf-8")))
