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

__all__ = [
    "MOST_GRADES",
    "Outside",
    "OutsideModel",
    "OutsideStreams",
    "exact_counts",
    "inside_terms",
    "load_outside",
    "outside_streams",
    "outside_terms",
]

OutsideStreams = Sequence[tuple[np.random.Generator, np.random.Generator]]
TERMS = ("one", "inside", "runs", "depth", "overlap", "grade")
HALF = 0.5  # added to the number of documents of a query before its logarithm
RARE = 0.05  # added to the mean of these numbers over queries
MOST_GRADES = 6  # finer scales have too few documents per grade, and none was learned from
LARGEST = 8.0  # log of the largest expected number: 3,000 documents
EFFECTS = 1000  # draws of how rich this campaign is


def exact_counts(at_least: Ints) -> Ints:
    """Return the number of documents of each grade from those of at least each grade, shape (.., grade).

    >>> exact_counts(np.array([6, 5, 4, 2]))
    array([1, 1, 2, 2])
    """
    return np.asarray(at_least - np.append(at_least[..., 1:], np.zeros_like(at_least[..., :1]), axis=-1))


def inside_terms(inside: Floats | Ints, mean: Floats) -> tuple[Floats, Floats]:
    """Return the logarithm of the mean number inside, and that of each query's number over it.

    Parameters
    ----------
    inside
        The number of documents inside with each grade above 0, shape (.., query, grade).
    mean
        Its mean over all queries of the campaign, shape (.., 1, grade).
    """
    return np.log(mean + RARE), np.log((inside + HALF) / (mean + HALF))


def outside_terms(runs: Runs, scale: Scale) -> Floats:
    """Return the terms of each query and grade above 0, shape (query, grade, term); that of documents inside is 0.

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

    .. math:: \log \mu_{q\ell} = \log \bar n_\ell + b_0 + b_1 \log\frac{n_{q\ell}}{\bar n_\ell} + b_2 \log r
        + b_3 \log k + b_4 \log o_q + b_5 z_\ell + u.

    Parameters
    ----------
    coefficients
        Of one; of the logarithms of the number of documents inside with this grade, relative to its mean over queries,
        of the number of runs, of the depth of the pool and of the share of distinct documents in the lists; and of the
        grade, from -1/2 to 1/2.
    sd
        The standard deviation of :math:`u`: campaigns differ in how much there is, and in how much of it was judged.
    dispersion
        :math:`\phi`, the variance of a number over its mean.
    campaigns
        The names of the campaigns that it was learned from.
    only_bases
        Whether only measures that count all relevant documents use it, and only while pairs of the pool are open.
    """

    coefficients: tuple[float, ...]
    sd: float
    dispersion: float
    campaigns: tuple[str, ...] = ()
    only_bases: bool = False

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
        return Outside(self, base, self.sd * rng.standard_normal(EFFECTS), np.ones((1, len(scale) - 1)))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        learned = {name: value for name, value in asdict(self).items() if name != "only_bases"}
        return {**learned, "coefficients": dict(zip(TERMS, self.coefficients, strict=True))}

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
    mean
        The mean number per query of documents inside under each draw of the relevance model's parameters, taken in
        turn, shape (draw, grade above 0).
    """

    model: OutsideModel
    base: Floats
    effects: Floats
    mean: Floats

    def __post_init__(self) -> None:
        for name in ("base", "effects", "mean"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def part(self, queries: slice) -> Outside:
        """Return the part of some queries."""
        return replace(self, base=self.base[queries])

    def typical(self, inside: Floats | Ints, mean: Floats) -> Floats:
        """Return the expected number at the median effect, given the number inside; shapes as in inside_terms."""
        general, own = inside_terms(inside, mean)
        slope = self.model.coefficients[TERMS.index("inside")]
        return np.asarray(np.exp(np.minimum(self.base + general + slope * own, LARGEST)))

    def sample(self, inside: Ints, streams: OutsideStreams, *, start: int = 0) -> Ints:
        """Return draws of the number of documents outside with at least each grade, shape (draw, query, grade).

        Parameters
        ----------
        inside
            The number inside with at least each grade under each draw, same shape.
        streams
            The streams of each query, of :func:`outside_streams`.
        start
            The number of draws made before.
        """
        exactly = exact_counts(inside)[..., 1:]
        turn = start + np.arange(len(inside))
        effect, usual = self.effects[turn % len(self.effects)], self.mean[turn % len(self.mean)][:, None]
        mean = np.minimum(self.typical(exactly, usual) * np.exp(effect)[:, None, None], np.exp(LARGEST))
        extra = self.model.dispersion - 1
        out = np.zeros(inside.shape, dtype=np.int64)
        for query, (rates, numbers) in enumerate(streams):
            out[:, query, 1:] = numbers.poisson(rates.gamma(mean[:, query] / extra) * extra)
        out[..., 0] = out[..., 1:].sum(axis=-1)
        out[..., 1:] = np.cumsum(out[..., :0:-1], axis=-1)[..., ::-1]
        return out


def outside_streams(streams: Sequence[np.random.Generator]) -> OutsideStreams:
    """Return two streams per query, derived from its own: one of rates, one of numbers.

    Each is used in the order of the draws, so that draws in several batches are the same as in one.
    """
    pairs = [stream.spawn(2) for stream in streams]
    return [(rates, numbers) for rates, numbers in pairs]


@cache
def load_outside() -> OutsideModel:
    """Return the model that the package comes with.

    >>> len(load_outside().campaigns)
    12
    """
    return OutsideModel.from_dict(json.loads(files(__package__).joinpath("outside.json").read_text("utf-8")))
