r"""Answer curves: the probability of each grade that an observer gives, as a function of the latent relevance.

.. math:: \text{logit}\, P(y_{jd} \ge \ell) = \kappa_j + e^{s_j} c_\ell + \epsilon_j e^{t_j} \theta_d

:math:`\kappa_j` is the shift of observer :math:`j` (how easily it gives high grades), :math:`e^{s_j}` the spread of its
cutpoints around the shift, :math:`e^{t_j}` its slope (how much its grades follow relevance). The shape :math:`c` of the
cutpoints is common to all. The sign :math:`\epsilon_j` is 1, 0 for careless and -1 for reversed observers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from probeval.arrays import Floats

__all__ = ["LOG_SLOPE", "LOG_SPREAD", "SHIFT", "AnswerCurves", "answer_curves", "cutpoint_shape", "information_of"]

SHIFT, LOG_SPREAD, LOG_SLOPE = range(3)  # the parameters of an observer, in this order
MIN_PROBABILITY = 1e-9  # probability of any answer, so that its logarithm is finite


class AnswerCurves(NamedTuple):
    """The probability of each grade at each node of the latent relevance, and its scores in the parameters."""

    probability: Floats  # shape (observer, level, node)
    score: Floats  # d log P / d parameter, shape (observer, level, node, parameter)


def cutpoint_shape(shares: Floats) -> Floats:
    """Return the common shape of the cutpoints: centred, decreasing, with mean distance 1 from the centre.

    It is that of the logits of the cumulative shares of the grades; one cutpoint has the shape 0.

    >>> cutpoint_shape(np.array([0.3, 0.4, 0.3])).round(6).tolist()
    [1.0, -1.0]
    """
    at_least = np.cumsum(shares[::-1])[::-1][1:]
    logits = np.log(at_least) - np.log1p(-at_least)
    apart = logits - logits.mean()
    distance = np.abs(apart).mean()
    return np.asarray(apart / distance if distance else apart)


def answer_curves(parameters: Floats, shape: Floats, nodes: Floats, *, sign: float = 1.0) -> AnswerCurves:
    """Return the answer curves of observers with these parameters, shape (observer, 3)."""
    spread = np.exp(parameters[:, LOG_SPREAD])[:, None, None] * shape[:, None]
    lean = sign * np.exp(parameters[:, LOG_SLOPE])[:, None, None] * nodes
    at_least = expit(parameters[:, SHIFT][:, None, None] + spread + lean)  # (observer, cut, node)
    density = at_least * (1 - at_least)
    probability = np.maximum(-np.diff(at_least, axis=1, prepend=1.0, append=0.0), MIN_PROBABILITY)
    score = np.stack([_level_changes(density * x, probability) for x in (1.0, spread, lean)], axis=-1)
    return AnswerCurves(probability, score)


def _level_changes(changes: Floats, probability: Floats) -> Floats:
    """The relative change of P(level), from the changes of P(at least each level but the lowest)."""
    return np.asarray(-np.diff(changes, axis=1, prepend=0.0, append=0.0) / probability)


def information_of(curves: AnswerCurves, votes: Floats) -> Floats:
    """Return the expected information on each observer's parameters, shape (observer, parameter, parameter).

    ``votes`` are the expected numbers of votes at each node, shape (observer, node).
    """
    weight = votes[:, None, :] * curves.probability
    return np.asarray(np.einsum("jkg,jkgp,jkgr->jpr", weight, curves.score, curves.score, optimize=True))
