r"""The kind of each assessor, from the answers of all others.

The evidence for a kind is the probability of the assessor's answers given what all others (and judgments) say of
relevance, so that no assessor confirms itself. Within a query it is Laplace's approximation of

.. math:: \int N(u;\, m_{-j}, V_{-j}) \prod_i p(y_i \mid u_i, k)\, du,

exact for numbers; of the parameters, the prior mass around their estimates counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import softmax

from probeval.arrays import Floats, Ints
from probeval.relevance.aggregation.workers import KINDS
from probeval.relevance.answers.assessors import SIGNS, Assessors, parameter_scores
from probeval.relevance.answers.field import Field, FieldPosterior, JudgedSites, Sites
from probeval.relevance.answers.observations import Observations
from probeval.relevance.answers.questions import LOG_SLOPE
from probeval.relevance.answers.sites import LIKELY, spread_around

__all__ = ["OwnAnswers", "others_say", "with_kinds"]

STEPS = 50  # of Newton's method
SETTLED = 1e-4
SLOPES = (-1.5, -0.75, 0.0, 0.75)  # tried for an unlikely kind, in sds of the prior


class OwnAnswers(NamedTuple):
    """One assessor's answers to one query, and what others say of the relevance in question."""

    at: Ints
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Fitted:
    """An assessor's answers at some parameters: the log evidence, and the posterior of the relevance in question."""

    log_evidence: float
    at: Ints
    u: Floats
    variance: Floats


def others_say(
    field: Field,
    sites: Sites,
    judged: JudgedSites | None,
    found: FieldPosterior,
    observations: Observations,
    assessor: int,
) -> list[OwnAnswers]:
    """Return an assessor's answers by query, with relevance as all others see it."""
    without = sites._replace(
        precision=np.where(observations.assessor == assessor, 0.0, sites.precision),
        linear=np.where(observations.assessor == assessor, 0.0, sites.linear),
    )
    numbers = [i for i, one in enumerate(field.queries) if (observations.assessor[one.at] == assessor).any()]
    information = found.root @ found.root.T
    right = information @ found.mean
    queries = {}
    for i in numbers:
        queries[i] = field.query_posterior(i, *field.sums(i, without, judged))
        information = information + queries[i].information - found.queries[i].information
        right = right + queries[i].right - found.queries[i].right
    root = np.linalg.cholesky(information)
    mean = cho_solve((root, True), right)
    out = []
    for i, query in queries.items():
        one = field.queries[i]
        mine = observations.assessor[one.at] == assessor
        rows = one.rows[mine]
        moved = np.linalg.solve(root, (rows @ query.followed).T)
        covariance = rows @ query.covariance @ rows.T + moved.T @ moved
        out.append(OwnAnswers(one.at[mine], rows @ (query.centre + query.followed @ mean), covariance))
    return out


def fitted(observations: Observations, own: list[OwnAnswers], parameters: Floats, sign: float) -> Fitted:
    """Return the evidence of an assessor's answers at some parameters, shape (question, parameter)."""
    at = np.concatenate([one.at for one in own])
    u, variance = np.empty(len(at)), np.empty(len(at))
    value, first = 0.0, 0
    for one in own:
        here = slice(first, first + len(one.at))
        value += _of_query(observations, one, parameters, sign, u[here], variance[here])
        first += len(one.at)
    return Fitted(value, at, u, variance)


def _of_query(
    observations: Observations, own: OwnAnswers, parameters: Floats, sign: float, u: Floats, variance: Floats
) -> float:
    """Return the log evidence of one query's answers; ``u`` and ``variance`` receive the posterior of relevance."""
    number, answer = observations.question[own.at], observations.answer[own.at]

    def curves(at: Floats) -> tuple[float, Floats, Floats]:
        value, slope, bend = 0.0, np.zeros(len(at)), np.zeros(len(at))
        for q in np.unique(number).tolist():
            mine = number == q
            many = np.broadcast_to(parameters[q], (int(mine.sum()), 3))
            curve = observations.questions[q].curve(answer[mine], at[mine], many, sign)
            value += float(curve.value.sum())
            slope[mine], bend[mine] = curve.slope, curve.curve
        return value, slope, np.maximum(bend, 0.0)

    weight = np.zeros(len(own.at))  # V^-1 (u - m)
    at = own.mean
    value, slope, bend = curves(at)
    objective = value
    size = 1.0
    for _ in range(STEPS if sign else 0):
        root = np.sqrt(bend)
        inner = np.eye(len(at)) + root[:, None] * own.covariance * root
        target = bend * (at - own.mean) + slope
        full = target - root * np.linalg.solve(inner, root * (own.covariance @ target))
        while True:
            ahead = weight + size * (full - weight)
            there = own.mean + own.covariance @ ahead
            value, slope, bend = curves(there)
            reached = value - ahead @ (there - own.mean) / 2
            if reached >= objective - SETTLED or size < SETTLED:
                break
            size /= 2
        gain, objective, weight, at = reached - objective, reached, ahead, there
        size = min(1.0, 2 * size)
        if abs(gain) < SETTLED:
            break
    root = np.sqrt(bend)
    inner = np.eye(len(at)) + root[:, None] * own.covariance * root
    u[:] = at
    variance[:] = np.diag(own.covariance - (own.covariance * root) @ np.linalg.solve(inner, root[:, None] * own.covariance))
    return float(objective - np.linalg.slogdet(inner)[1] / 2)


def with_kinds(
    field: Field,
    sites: Sites,
    judged: JudgedSites | None,
    found: FieldPosterior,
    observations: Observations,
    assessors: Assessors,
) -> Assessors:
    """Return the assessors with the probability of each kind.

    Parameters of a kind that an assessor is hardly of, whose answers had little weight, are found from what the others
    say alone.
    """
    parameters, kinds = assessors.parameters.copy(), assessors.kinds.copy()
    shares, careless = np.log([kind.share for kind in KINDS]), SIGNS.index(0.0)
    for j in range(len(observations.assessors)):
        own = others_say(field, sites, judged, found, observations, j)
        if not own:
            continue
        log = shares.copy()
        for k, sign in enumerate(SIGNS):
            if sign and assessors.kinds[k, j] < LIKELY:
                parameters[k, j] = _best_slope(observations, own, parameters[careless, j], sign)
            fit = fitted(observations, own, parameters[k, j], sign)
            log[k] += fit.log_evidence + _prior_mass(observations, fit, parameters[k, j], sign)
        kinds[:, j] = softmax(log)
    return Assessors(parameters, kinds)


def _best_slope(observations: Observations, own: list[OwnAnswers], parameters: Floats, sign: float) -> Floats:
    """Return the parameters with the slope of the highest evidence and prior among a few, the same for all questions.

    Slopes are in standard deviations of their priors; shifts and widths are those without a slope.
    """
    priors = np.array([question.prior[:, LOG_SLOPE] for question in observations.questions])
    best, found = -np.inf, parameters
    for z in SLOPES:
        there = parameters.copy()
        there[:, LOG_SLOPE] = priors[:, 0] + z * priors[:, 1]
        value = fitted(observations, own, there, sign).log_evidence - z**2 / 2
        if value > best:
            best, found = value, there
    return found


def _prior_mass(observations: Observations, fit: Fitted, parameters: Floats, sign: float) -> float:
    """Return the log of the prior mass around one assessor's parameters of the questions that it answered."""
    out = 0.0
    for q in np.unique(observations.question[fit.at]).tolist():
        question = observations.questions[q]
        here = observations.question[fit.at] == q
        mine, relevance = fit.at[here], spread_around(fit.u[here], fit.variance[here])
        every = np.broadcast_to(parameters[q], (len(observations.assessors), 3))
        information = parameter_scores(observations, q, mine, every, sign, relevance)[1]
        mean, sd = question.prior
        free = question.free & (np.arange(3) != LOG_SLOPE if sign == 0 else True)
        total = (information[observations.assessor[mine[0]]] + np.diag(sd**-2.0))[np.ix_(free, free)]
        out -= float((((parameters[q] - mean) / sd)[free] ** 2).sum() / 2 + np.log(sd[free]).sum())
        out -= float(np.linalg.slogdet(total)[1] / 2)
    return out
