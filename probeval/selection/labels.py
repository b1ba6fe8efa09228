r"""The pairs whose judgments tell how labels agree with people: the goal trust.

Kappa of a labeller is a function of the grades of all pairs that it labelled. With labels :math:`y_d` and grades
:math:`r_d` as shares of their highest one, its slope in the grade of a pair is

.. math:: c_d = \frac{2}{nS} \big[(y_d - \bar y) - \kappa\,(r_d - \bar y)\big], \qquad
   S = \text{Var}(r) + \text{Var}(y) + (\bar r - \bar y)^2 .

So to first order it is a weighted sum of gains, as a score of a system is, and pairs are chosen for it in the same
way. See docs/theory/judging.md#trust-goal.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from probeval.arrays import Floats
from probeval.scores.trust import agreements, labels_given
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.ties import TIE

__all__ = ["agreement_confidence", "agreement_covariance", "agreement_slopes", "agreement_value", "agreement_weight"]

SURE = 1 - 1e-6  # the highest probability to take a normal quantile of


def agreement_slopes(context: SelectionContext) -> Floats:
    """Return the slope of each labeller's agreement in each pair's gain, 0 without a label, shape (pair, source)."""
    labels = labels_given(context.estimate.problem)
    mean, variance, top = *context.gain_moments, float(context.gains.max()) or 1.0
    expected, variance = mean / top, context.gain_variance / top**2
    slopes = np.zeros(labels.values.shape)
    for j, (observer, given) in enumerate(zip(labels.observers, labels.values.T, strict=True)):
        known = np.flatnonzero(~np.isnan(given))
        r, y = expected[known], given[known]
        if not len(known) or not np.ptp(y):
            continue
        spread = r.var() + variance[known].mean()
        if observer.levels is None:  # numbers, on the scale of the grades: kappa is then the correlation
            y = r.mean() + (y - y.mean()) * np.sqrt(spread) / y.std()
        else:
            y = y / (observer.levels - 1)
        total = spread + y.var() + (r.mean() - y.mean()) ** 2
        kappa = 2 * np.mean((r - r.mean()) * (y - y.mean())) / total
        slopes[known, j] = 2 * ((y - y.mean()) - kappa * (r - y.mean())) / (len(known) * total * top)
    return slopes


def agreement_covariance(context: SelectionContext) -> Floats:
    """Return the covariance of each pair's gain with the agreement of each labeller, shape (pair, source)."""

    def covariance() -> Floats:
        slopes = agreement_slopes(context)
        return np.asarray(slopes * context.gain_moments[1][:, None] + context.dependence.times(slopes))

    return context.kept("agreement", covariance)


def agreement_value(context: SelectionContext, goal: Goal) -> Floats:
    r"""Return the matrix of the value of pairs in their covariances with agreements, shape (source, source).

    The weight of a labeller is :math:`\phi(z)/\text{Var}`, as that of a comparison: one whose agreement is surely high
    enough, or surely not, needs no judgment.
    """

    def matrix() -> Floats:
        variance = (agreement_slopes(context) * agreement_covariance(context)).sum(axis=0)
        density = np.exp(-(ndtri(np.minimum(_confidence(context, goal), SURE)) ** 2) / 2)
        return np.diag(np.divide(density, variance, out=np.zeros(len(variance)), where=variance > 0))

    return context.kept((goal, "agreement"), matrix)


def agreement_weight(context: SelectionContext) -> Floats:
    """Return how much each pair's gain may change agreements, the mean over labellers, shape (pair,).

    A sample of pairs estimates a sum best if they are drawn by the standard deviation of their terms (Neyman 1934).
    """
    slopes = np.abs(agreement_slopes(context)) * np.sqrt(np.maximum(context.gain_variance, 0.0))[:, None]
    return np.asarray((slopes / np.maximum(slopes.sum(axis=0), TIE)).mean(axis=1))


def agreement_confidence(context: SelectionContext, goal: Goal) -> float:
    """Return the probability of the likelier answer to whether a labeller may be used: the least of all labellers."""
    return float(_confidence(context, goal).min())


def _confidence(context: SelectionContext, goal: Goal) -> Floats:
    """Return the same for each labeller, .5 where too little is judged, shape (source,)."""
    labels = labels_given(context.estimate.problem)
    least = 0.0 if goal.least is None else goal.least

    def confidence() -> Floats:
        found = {one.source: one.probability_of(least) for one in agreements(context.estimate)}
        p = np.array([found.get(source, 0.5) for source in labels.sources])
        return np.asarray(np.maximum(p, 1 - p))

    return context.kept((goal, "confidence"), confidence)
