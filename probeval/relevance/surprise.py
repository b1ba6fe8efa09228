r"""Judged pairs with their own judgment left out: what the model expects of them, and which grades are surprising.

The posterior of a judged pair's logit, normal with mean :math:`m` and variance :math:`v`, is that without its own
judgment times the likelihood of the judgment, which has the slope :math:`g` and the curvature :math:`h` there. Divided
by it,

.. math:: \frac{1}{v_{-d}} = \frac{1}{v} - h, \qquad \frac{m_{-d}}{v_{-d}} = \frac{m}{v} - (h m + g),

which is the cavity of expectation propagation: no refit is needed. See docs/theory/observers.md#surprise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit, logit

from probeval.arrays import Bools, Floats, Ints
from probeval.relevance.distribution import RelevanceDistribution
from probeval.results import Result, rows

__all__ = ["LeftOut", "SurprisingGrade", "SurprisingGrades", "surprising_grades"]

TINY = 1e-9  # least probability of a level or more, and at most one less
LEAST_LEFT = 0.05  # least share of a pair's precision that is left without its own judgment: draws are few
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)  # of the integral over a normal logit
SURPRISING = 0.05  # tail probability up to which grades are counted
SHOWN = 20


def level_logits(probability: Floats) -> Floats:
    """Return the logit of P(level or more) for all levels but the lowest, shape (.., level - 1)."""
    at_least = np.cumsum(probability[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return np.asarray(logit(np.clip(at_least, TINY, 1 - TINY)))


def from_logits(logits: Floats) -> Floats:
    """Return the probabilities of levels from the logits of each level or more, shape (.., level)."""
    at_least = expit(logits)
    ends = (*at_least.shape[:-1], 1)
    full = np.concatenate([np.ones(ends), at_least, np.zeros(ends)], axis=-1)
    return np.asarray(np.maximum(full[..., :-1] - full[..., 1:], 0.0))


def slope_and_curvature(logits: Floats, level: Ints) -> tuple[Floats, Floats]:
    r"""Return the first derivative, and minus the second, of the log probability of a level in a shift of all logits.

    With :math:`F_\ell` the probability of level :math:`\ell` or more, :math:`1 - F_r - F_{r+1}` and
    :math:`F_r(1 - F_r) + F_{r+1}(1 - F_{r+1})`. ``logits`` have shape (.., pair, level - 1), ``level`` (pair,).
    """
    at_least = expit(logits)
    ends = (*at_least.shape[:-1], 1)
    full = np.concatenate([np.ones(ends), at_least, np.zeros(ends)], axis=-1)
    pair = np.arange(len(level))
    here, above = full[..., pair, level], full[..., pair, level + 1]
    return 1 - here - above, here * (1 - here) + above * (1 - above)


def left_out(probability: Floats, level: Ints) -> Floats:
    """Return P(level) of judged pairs without their own judgments, shape (pair, level).

    Parameters
    ----------
    probability
        P(level) under each draw of a posterior given all judgments, shape (draw, pair, level); or shape (pair, level)
        without a posterior, where no judgment has a part in it.
    level
        The level that each pair was judged to have, shape (pair,).
    """
    if probability.ndim == 2 or not len(level):
        return probability.reshape(len(level), probability.shape[-1])
    logits = level_logits(probability)
    # All logits of a pair move together: their mean is normal over draws, what they differ by hardly varies.
    centre = logits.mean(axis=-1)
    apart = (logits - centre[..., None]).mean(axis=0)
    mean, precision = centre.mean(axis=0), 1 / np.maximum(centre.var(axis=0), TINY)
    slope, curvature = (part.mean(axis=0) for part in slope_and_curvature(logits, level))
    left = np.maximum(precision - curvature, LEAST_LEFT * precision)
    without = (mean * precision - (curvature * mean + slope)) / left
    nodes = without[:, None] + NODES / np.sqrt(left)[:, None]  # (pair, node)
    at_least = expit(nodes[..., None] + apart[:, None, :])
    weight = WEIGHTS / WEIGHTS.sum()
    return from_logits(logit(np.clip(np.einsum("n,dnl->dl", weight, at_least), TINY, 1 - TINY)))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The judged pairs of a pool, and what is expected of each without its own judgment.

    Parameters
    ----------
    pairs
        Their positions in the pool, shape (n,).
    level
        The level that each was judged to have, shape (n,).
    probability
        P(level) of each without its own judgment, shape (n, level).
    """

    pairs: Ints
    level: Ints
    probability: Floats

    @classmethod
    def of(cls, relevance: RelevanceDistribution) -> LeftOut:
        """Return the judged pairs of a distribution, block by block of its queries."""
        pairs = np.flatnonzero(relevance.certain)
        grades = relevance.judged[pairs].astype(np.int64)
        level = np.abs(grades[:, None] - relevance.levels.astype(np.int64)).argmin(axis=1)  # the bin of a fine grade
        parts = []
        for block in relevance.blocks(relevance.n_draws * len(relevance.levels)):
            inside = slice(*np.searchsorted(pairs, [block.pairs.start, block.pairs.stop]))
            if inside.start < inside.stop:
                given = relevance.source.probabilities(block)[..., pairs[inside] - block.pairs.start, :]
                parts.append(left_out(given, level[inside]))
        found = np.concatenate(parts) if parts else np.empty((0, len(relevance.levels)))
        return cls(pairs, level, found)

    @property
    def tails(self) -> tuple[Floats, Floats]:
        """P(this grade or a lower one) and P(this grade or a higher one) of each, shapes (n,)."""
        up_to = np.cumsum(self.probability, axis=1)
        at, level = np.arange(len(self.level)), self.level
        return up_to[at, level], 1 - up_to[at, level] + self.probability[at, level]

    def expected_below(self, tail: float) -> float:
        """Return how many of the grades would have a tail probability up to this one, were the model right.

        Under the model each grade has its probability, so the number is the sum of those of the grades in the tails.
        """
        up_to = np.cumsum(self.probability, axis=1)
        smaller = np.minimum(up_to, 1 - up_to + self.probability)
        return float(np.where(smaller <= tail, self.probability, 0.0).sum())


@dataclass(frozen=True)
class SurprisingGrade:
    """A judgment that the model did not expect."""

    query: str
    doc: str
    grade: Annotated[float, "The grade that it was given."]
    expected: Annotated[float, "The grade that is expected without this judgment."]
    tail: Annotated[
        float, "The probability, without this judgment, of a grade at least as high, or of one at least as low."
    ]
    direction: Annotated[str, "``higher`` or ``lower`` than expected."]
    by_chance: Annotated[float, "The number of judgments with so small a tail that chance alone gives."]


@dataclass(frozen=True, repr=False)
class SurprisingGrades(Result):
    """The judgments that are the least expected given all others, for review."""

    grades: Annotated[tuple[SurprisingGrade, ...], "One entry per judgment, the most surprising first."]
    judged: Annotated[int, "The number of judged pairs."]
    below: Annotated[int, "The number of judgments with a tail probability of at most .05."]
    below_by_chance: Annotated[float, "The number of them that chance alone gives."]

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SurprisingGrades:
        """From plain data."""
        return cls(**{**stored, "grades": tuple(SurprisingGrade(**each) for each in stored["grades"])})

    def _headline(self) -> str:
        return f"The most surprising of {self.judged:,} judgments"

    def sentences(self) -> tuple[str, ...]:
        """How many are surprising, and how many by chance."""
        if not self.judged:
            return ("Nothing is judged, so no judgment is surprising.",)
        return (
            f"{self.below:,} of {self.judged:,} judgments have a tail probability of at most {SURPRISING:g}; chance "
            f"alone "
            f"gives about {self.below_by_chance:.1f}. A surprising grade may be right: look at the document again.",
        )


def surprising_grades(
    relevance: RelevanceDistribution, *, n: int = SHOWN, out: LeftOut | None = None
) -> SurprisingGrades:
    r"""Return the judgments that are the least expected given all other evidence.

    The tail probability of a grade :math:`r_d` is the smaller of :math:`P(R_d \le r_d)` and :math:`P(R_d \ge r_d)`,
    given everything but this judgment.

    Parameters
    ----------
    relevance
        The posterior of the pairs' grades given the judgments, which it has too.
    n
        The number of judgments to return.
    out
        What is expected of each without its own judgment, if it is known already.

    Examples
    --------
    >>> from probeval.data import Judgments, Pool, Scale
    >>> pool = Pool.of(["q", "q"], ["d1", "d2"])
    >>> expected = np.array([[0.90, 0.09, 0.01], [0.2, 0.3, 0.5]])
    >>> judged = Judgments.rows(["q", "q"], ["d1", "d2"], [2, 2])
    >>> found = surprising_grades(RelevanceDistribution.of(pool, Scale.graded(2), expected, judgments=judged))
    >>> found.grades[0].doc, round(found.grades[0].tail, 2), found.grades[0].direction
    ('d1', 0.01, 'higher')
    """
    out = LeftOut.of(relevance) if out is None else out
    low, high = out.tails
    tail = np.minimum(low, high)
    first = np.lexsort((out.pairs, tail))[:n]
    values = relevance.scale.values
    labels = [relevance.pool.label(int(pair)) for pair in out.pairs[first]]
    surprised: Bools = high < low
    return SurprisingGrades(
        rows(
            SurprisingGrade,
            query=[query for query, _ in labels],
            doc=[doc for _, doc in labels],
            grade=values[relevance.judged[out.pairs[first]]],
            expected=out.probability[first] @ values[relevance.levels],
            tail=tail[first],
            direction=np.where(surprised[first], "higher", "lower"),
            by_chance=[out.expected_below(t) for t in tail[first].tolist()],
        ),
        judged=len(out.pairs),
        below=int((tail <= SURPRISING).sum()),
        below_by_chance=out.expected_below(SURPRISING),
    )
