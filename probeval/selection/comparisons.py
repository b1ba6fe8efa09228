r"""How much an answer about two documents tells of the difference of their relevance.

Before the answer the difference :math:`\Delta = \theta_l - \theta_r` is normal with mean :math:`\mu` and variance
:math:`V`. With :math:`P_y(\mu) = E[p_y(\Delta)]` the probability of answer :math:`y`, Stein's identity gives
:math:`E[\Delta \mid y] - \mu = V P_y'/P_y`. So the answer is expected to lower the variance of anything :math:`x` that
is jointly normal with the difference by

.. math:: \text{Cov}(x, \Delta)^2\, J, \qquad J = \sum_y \frac{P_y'(\mu)^2}{P_y(\mu)},

the Fisher information of the answer in the mean, which is at most :math:`1/V`: that of the difference itself. See
docs/theory/judging.md#question-gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import SelectionError
from probeval.relevance.answers.fit import AnswerEvidence
from probeval.relevance.answers.questions import LOG_SLOPE, LOG_WIDTH

__all__ = ["PairQuestion", "Preference", "Ratio", "typical_answers"]

# The logistic function as a mixture of normal distribution functions, right to .0001 (Monahan and Stefanski 1992).
MIXED = np.array([0.25220, 0.58522, 0.16257]) / 0.99999
STEEP = np.array([0.90793, 0.57778, 0.36403])
MIN_PROBABILITY = 1e-12  # the least probability of an answer: rarer ones add no information


class PairQuestion(Protocol):
    """A kind of question about two documents: how much its answer tells."""

    @property
    def kind(self) -> str:
        """The kind of question, as in :attr:`Questions.kind`."""

    def information(self, mean: Floats, variance: Floats) -> Floats:
        """Return :math:`J` for differences with these means and variances, shape (question,)."""


@dataclass(frozen=True, repr=False)
class Preference(Record):
    r"""Which of two documents is better, or whether they are equal.

    .. math:: P(l) = F(\lambda \Delta - \tau), \quad P(r) = F(-\lambda \Delta - \tau), \quad P(=) = 1 - P(l) - P(r),

    with :math:`F` the logistic function. Sides are random, so a liking for one of them has no part in the choice.

    Parameters
    ----------
    slope
        :math:`\lambda`: how sharply assessors distinguish documents; by default that of a typical assessor.
    tie
        :math:`\tau`, from 0: how readily they call them equal.
    attention
        The probability that an answer depends on relevance at all: the information is this share of :math:`J`.

    Examples
    --------
    >>> Preference(slope=1.0, tie=0.0).information(np.zeros(2), np.array([0.0, 100.0])).round(4)
    array([0.2497, 0.0062])
    """

    slope: float = 0.7
    tie: float = 0.5
    attention: float = 1.0
    kind = "preference"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.slope) and np.isfinite(self.tie) and self.tie >= 0):
            raise SelectionError(
                f"A preference needs a finite slope, and a tie from 0; got slope {self.slope:g}, tie {self.tie:g}."
            )

    def information(self, mean: Floats, variance: Floats) -> Floats:
        """Return :math:`J`, shape (question,)."""
        spread = np.sqrt(1 / STEEP[:, None] ** 2 + self.slope**2 * variance)

        def wins(side: float) -> tuple[Floats, Floats]:
            z = (side * self.slope * mean - self.tie) / spread
            density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            return MIXED @ ndtr(z), side * self.slope * (MIXED @ (density / spread))

        (left, left_slope), (right, right_slope) = wins(1.0), wins(-1.0)
        equal, equal_slope = 1 - left - right, -left_slope - right_slope
        total = np.zeros(len(mean))
        for p, slope in ((left, left_slope), (right, right_slope), (equal, equal_slope)):
            total += np.divide(slope**2, p, out=np.zeros(len(p)), where=p > MIN_PROBABILITY)
        return self.attention * total


@dataclass(frozen=True, repr=False)
class Ratio(Record):
    r"""How many times as relevant one of two documents is: a log ratio, normal around :math:`c\,\Delta`.

    Parameters
    ----------
    slope
        :math:`c`: the log ratio per unit of the difference.
    sd
        The standard deviation of its noise.
    attention
        The probability that an answer depends on relevance at all: the information is this share of :math:`J`.

    Examples
    --------
    >>> Ratio(slope=2.0, sd=1.0).information(np.zeros(1), np.array([0.75])).round(4)
    array([1.])
    """

    slope: float = 0.18
    sd: float = 0.6
    attention: float = 1.0
    kind = "magnitude"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.slope) and np.isfinite(self.sd) and self.sd > 0):
            raise SelectionError(
                f"A ratio needs a finite slope, and an sd above 0; got slope {self.slope:g}, sd {self.sd:g}."
            )

    def information(self, mean: Floats, variance: Floats) -> Floats:
        """Return :math:`J`, shape (question,)."""
        precision = self.slope**2 / (self.slope**2 * variance + self.sd**2)
        return np.asarray(self.attention * precision * np.ones(len(mean)))


COMPARED: Mapping[str, type[Preference | Ratio]] = {"choice": Preference, "ratio": Ratio}  # by question


def typical_answers(evidence: AnswerEvidence | None) -> dict[str, PairQuestion]:
    """Return how the assessors of a campaign answer, by kind of question: as so far, or at first as is typical.

    The estimates of assessors are averaged, weighted by the number of their answers and the probability that they are
    attentive. The mean of that probability is the attention.
    """
    out: dict[str, PairQuestion] = {"preference": Preference(), "magnitude": Ratio()}
    if evidence is None:
        return out
    seen, assessors = evidence.observations, evidence.assessors
    for number, question in enumerate(seen.questions):
        given = np.bincount(seen.assessor[seen.question == number], minlength=len(seen.assessors))
        weight = given * np.maximum(assessors.kinds[0], MIN_PROBABILITY)
        if question.name in COMPARED and given.any():
            mean = weight @ assessors.parameters[0, :, number] / weight.sum()
            made = COMPARED[question.name](
                float(np.exp(mean[LOG_SLOPE])), float(np.exp(mean[LOG_WIDTH])), float(weight.sum() / given.sum())
            )
            out[made.kind] = made
    return out
