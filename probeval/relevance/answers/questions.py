r"""The questions that assessors answer, and the probability of an answer given relevance.

With :math:`u` the relevance in question (of a document, or the difference of two) an answer is *ordinal*,

.. math:: P(\text{left}) = F(\lambda u + b - t),\quad P(\text{right}) = F(-\lambda u - b - t),\quad
          P(\text{equal}) = 1 - P(\text{left}) - P(\text{right}),

with :math:`F` the logistic function, or *normal*, :math:`y \sim N(\lambda u + b, \sigma^2)`. An assessor has a slope
:math:`\lambda`, a shift :math:`b` and a width (:math:`t` or :math:`\sigma`) for each question. See
docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from probeval.arrays import Bools, Floats
from probeval.relevance.normal import Normal

__all__ = [
    "LOG_SLOPE",
    "LOG_WIDTH",
    "QUESTIONS",
    "SHIFT",
    "Curve",
    "ModelledQuestion",
    "NormalQuestion",
    "OrdinalQuestion",
]

LOG_SLOPE, SHIFT, LOG_WIDTH = range(3)  # the places of an assessor's parameters of one question
# The log slope of choices, per logit of relevance, of which a grade of the usual scales is about five. A mean of -.35
# was tried: too steep for answers drawn from true grades, whose slopes are .12 to .47, so that noisy assessors would
# have been taken for careless ones (docs/theory/preferences.md#answers).
SLOPE = Normal(-1.2, 0.5)
BIAS = Normal(0.0, 0.5)  # of a side, in logits; stated
THRESHOLD = Normal(0.0, 4.0)  # of relevance, in logits: its level is unknown
TIES = Normal(-0.7, 0.8)  # log half-width of "equal", in logits; stated
STEEP = Normal(-1.7, 0.6)  # log slope of numbers per logit: most of their sd of about 1, relevance having one of 5
NOISE = Normal(-0.5, 0.7)  # log sd of the noise of numbers, whose sd is about 1; stated
LEVEL = Normal(0.0, 1.0)  # of numbers from 0 to 100, in their sds
NARROW = -30.0  # the log width of "equal" where it is no answer: P(equal) is then below MIN_P_EQUAL
MIN_P_EQUAL = 1e-12  # the least probability of "equal", whose logarithm stays finite


class Curve(NamedTuple):
    """The log-likelihood of answers and its derivatives, at some relevance."""

    value: Floats  # the log-likelihood, shape (.., n)
    slope: Floats  # its derivative in relevance
    curve: Floats  # the information on relevance: minus the second derivative
    score: Floats  # the derivatives in the log slope, the shift and the log width, shape (.., n, parameter)


@dataclass(frozen=True)
class ModelledQuestion(ABC):
    """A question: how answers depend on relevance, and the priors of an assessor's parameters."""

    name: str  # as results name it
    log_slope: Normal  # the prior of log |lambda|
    shift: Normal  # of b
    log_width: Normal  # of log t, or of log sigma
    fixed: tuple[int, ...] = ()  # parameters that are not estimated: a shift of 0, or a width of 0

    @property
    def prior(self) -> Floats:
        """The means and standard deviations of the parameters, shape (2, parameter)."""
        every = (self.log_slope, self.shift, self.log_width)
        return np.array([[p.mean for p in every], [p.sd for p in every]])

    @property
    def free(self) -> Bools:
        """Which parameters are estimated, shape (parameter,)."""
        return np.array([i not in self.fixed for i in range(3)])

    @abstractmethod
    def curve(self, answer: Floats, relevance: Floats, parameters: Floats, sign: float) -> Curve:
        """Return the log-likelihood of answers, shape (n,), at some relevance, shape (.., n).

        ``parameters`` has shape (n, parameter); ``sign`` is that of the slope, 0 if answers do not depend on relevance.
        """

    @abstractmethod
    def information(self, mean_score: Floats, relevance: Floats, weights: Floats, parameters: Floats) -> Floats:
        """Return the information of answers on their assessors' parameters, shape (n, parameter, parameter).

        Parameters
        ----------
        mean_score
            The mean derivatives, shape (n, parameter).
        relevance, weights
            The nodes of the relevance in question and their weights, shapes (node, n).
        parameters
            Shape (n, parameter).
        """


class OrdinalQuestion(ModelledQuestion):
    """A question with the answers 1, 0 and -1, in order of relevance; 0 only if it has a width."""

    def curve(self, answer: Floats, relevance: Floats, parameters: Floats, sign: float) -> Curve:
        """Return the log-likelihood and its derivatives."""
        slope, width = sign * np.exp(parameters[:, LOG_SLOPE]), np.exp(parameters[:, LOG_WIDTH])
        # With c = lambda u + b: P(left) = F(c - t), P(right) = F(-c - t), P(equal) = 1 minus both. Derivatives in c
        # follow from F' = F (1 - F); those in u are lambda and lambda^2 times as large.
        centre = slope * relevance + parameters[:, SHIFT]
        up, down = centre - width, -centre - width
        left, right = expit(up), expit(down)
        equal = np.maximum(1 - left - right, MIN_P_EQUAL)
        left_steep, right_steep = left * (1 - left), right * (1 - right)
        is_left, is_right = answer > 0, answer < 0
        value = np.where(is_left, log_expit(up), np.where(is_right, log_expit(down), np.log(equal)))
        by_centre = np.where(is_left, 1 - left, np.where(is_right, right - 1, (right_steep - left_steep) / equal))
        by_width = np.where(is_left, left - 1, np.where(is_right, right - 1, (left_steep + right_steep) / equal))
        # Minus the second derivative of log E, E = P(equal), is -E''/E + (E'/E)^2.
        between = (left_steep * (1 - 2 * left) + right_steep * (1 - 2 * right)) / equal + by_centre**2
        bend = np.where(is_left, left_steep, np.where(is_right, right_steep, between))
        # By the logs of slope and width: d/d log lambda = lambda u d/dc, d/d log t = t d/dt.
        score = np.stack([by_centre * (centre - parameters[:, SHIFT]), by_centre, by_width * width], axis=-1)
        return Curve(value, slope * by_centre, slope**2 * bend, score)

    def information(self, mean_score: Floats, relevance: Floats, weights: Floats, parameters: Floats) -> Floats:
        """Return the squares of the mean derivatives (Berndt, Hall, Hall and Hausman 1974)."""
        return np.asarray(mean_score[:, :, None] * mean_score[:, None, :])


class NormalQuestion(ModelledQuestion):
    """A question with a number as the answer."""

    def curve(self, answer: Floats, relevance: Floats, parameters: Floats, sign: float) -> Curve:
        """Return the log-likelihood and its derivatives."""
        slope, sd = sign * np.exp(parameters[:, LOG_SLOPE]), np.exp(parameters[:, LOG_WIDTH])
        part = slope * relevance
        z = (answer - part - parameters[:, SHIFT]) / sd
        value = -(z**2) / 2 - np.log(sd) - np.log(2 * np.pi) / 2
        # With z = (y - lambda u - b)/sigma the log density is -z^2/2 - log sigma, up to a constant.
        score = np.stack([z * part / sd, z / sd, z**2 - 1], axis=-1)
        return Curve(value, slope * z / sd, np.broadcast_to((slope / sd) ** 2, z.shape), score)

    def information(self, mean_score: Floats, relevance: Floats, weights: Floats, parameters: Floats) -> Floats:
        """Return the information if relevance were known: squares of residuals say nothing of it while they are off."""
        # E[(lambda u)^2]/sigma^2, E[lambda u]/sigma^2 and 1/sigma^2 of slope and shift; 2 of log sigma, which is
        # orthogonal to both. The sign of lambda is left out: of a reversed assessor the second would have the other
        # sign, which changes the steps to the maximum and not the maximum.
        part = np.exp(parameters[:, LOG_SLOPE]) * relevance
        precision = np.exp(-2 * parameters[:, LOG_WIDTH])
        out = np.zeros((len(mean_score), 3, 3))
        out[:, LOG_SLOPE, LOG_SLOPE] = precision * (weights * part**2).sum(axis=0)
        out[:, LOG_SLOPE, SHIFT] = out[:, SHIFT, LOG_SLOPE] = precision * (weights * part).sum(axis=0)
        out[:, SHIFT, SHIFT] = precision
        out[:, LOG_WIDTH, LOG_WIDTH] = 2.0
        return out


CHOICE = OrdinalQuestion("choice", SLOPE, BIAS, TIES)
RELEVANT = OrdinalQuestion("relevant", SLOPE, THRESHOLD, Normal(NARROW, 1.0), (LOG_WIDTH,))
RATIO = NormalQuestion("ratio", STEEP, Normal(0.0, 0.3), NOISE)
# Contrasts within a unit are free of its level, so magnitudes have no shift.
MAGNITUDE = NormalQuestion("magnitude", STEEP, Normal(0.0, 1.0), NOISE, (SHIFT,))
S100 = NormalQuestion("s100", STEEP, LEVEL, NOISE)
QUESTIONS: tuple[ModelledQuestion, ...] = (CHOICE, RELEVANT, RATIO, MAGNITUDE, S100)
