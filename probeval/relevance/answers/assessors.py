r"""Assessors: the parameters of each one's answers, and the kind of assessor that each is.

As workers of a crowd are (:mod:`probeval.relevance.aggregation.workers`), an assessor is attentive, careless (answers
do not depend on relevance) or reversed, with the same prior shares. Given the kind, the slope, the shift and the width
of each question have normal priors.

The evidence for a kind is the probability of the assessor's answers given relevance as all others, and judgments, leave
it, so that no assessor confirms itself. Within a query it is Laplace's approximation of

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
from probeval.relevance.answers.field import Field, FieldPosterior, JudgedSites, Sites
from probeval.relevance.answers.observations import AnswerRows
from probeval.relevance.answers.questions import LOG_SLOPE, LOG_WIDTH, NormalQuestion

__all__ = [
    "LIKELY",
    "SIGNS",
    "Assessors",
    "Nodes",
    "OwnAnswers",
    "fitted",
    "others_say",
    "parameter_scores",
    "spread_around",
    "with_kinds",
]

SIGNS = tuple(kind.sign for kind in KINDS)
ENOUGH = 5  # numbers from which their sd is the first estimate of their noise
MIN_FIRST_ESTIMATE = 0.05  # the least first estimate, if an assessor gave equal numbers
LIKELY = 0.5  # the least probability of a kind whose parameters the fit to all answers finds
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)  # over the relevance in question
WEIGHTS = WEIGHTS / WEIGHTS.sum()
STEPS = 50  # of Newton's method, at most
SETTLED = 1e-3  # gain of a step at the end, in log-likelihood
SHORTEST = 1e-3  # a step that is always accepted, so that the search goes on
SLOPES = (-1.5, -0.75, 0.0, 0.75)  # tried for an unlikely kind, in sds of the prior


class Nodes(NamedTuple):
    """The distribution of the relevance in question of some answers: values and weights, shapes (node, answer)."""

    values: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Assessors:
    """Estimates of the assessors: given each kind, the parameters; and the probability of the kind."""

    parameters: Floats  # log slope, shift and log width, shape (kind, assessor, question, parameter)
    kinds: Floats  # the probability of each kind, shape (kind, assessor)

    @classmethod
    def typical(cls, observations: AnswerRows) -> Assessors:
        """Return assessors of whom nothing is known; numbers are as noisy as they differ."""
        means = np.array([question.prior[0] for question in observations.questions])
        n = len(observations.assessors)
        shares = np.array([kind.share for kind in KINDS])
        parameters = np.broadcast_to(means, (len(KINDS), n, *means.shape)).copy()
        # Noise that starts at its prior let one noisy assessor draw all relevance to itself, and honest ones look
        # reversed: it starts at the spread of the numbers (docs/theory/preferences.md#answers).
        for number, question in enumerate(observations.questions):
            for j in range(n):
                mine = (observations.question == number) & (observations.assessor == j)
                if isinstance(question, NormalQuestion) and mine.sum() >= ENOUGH:
                    parameters[:, j, number, LOG_WIDTH] = np.log(
                        max(observations.answer[mine].std(), MIN_FIRST_ESTIMATE)
                    )
        return cls(parameters, np.broadcast_to(shares[:, None], (len(KINDS), n)).copy())

    def joined(self, before: Assessors, names: tuple[str, ...], earlier: tuple[str, ...]) -> Assessors:
        """Return these assessors with the estimates of an earlier fit where it has the same ones."""
        parameters, kinds = self.parameters.copy(), self.kinds.copy()
        place = {name: i for i, name in enumerate(earlier)}
        for i, name in enumerate(names):
            if name in place:
                parameters[:, i], kinds[:, i] = before.parameters[:, place[name]], before.kinds[:, place[name]]
        return Assessors(parameters, kinds)


def parameter_scores(
    observations: AnswerRows, number: int, mine: Ints, parameters: Floats, sign: float, relevance: Nodes
) -> tuple[Floats, Floats]:
    r"""Return the slope of each assessor's log evidence in its parameters of one question, and the information.

    The slope of an answer's log evidence is its mean score over the relevance in question.

    Parameters
    ----------
    mine
        The observations of the question.
    parameters
        Shape (assessor, parameter).
    relevance
        The relevance in question of these observations.
    """
    who = observations.assessor[mine]
    question = observations.questions[number]
    curve = question.curve(observations.answer[mine], relevance.values, parameters[who], sign)
    mean = np.einsum("xn,xnp->np", relevance.weights, curve.score)
    gradient, information = np.zeros(parameters.shape), np.zeros((*parameters.shape, parameters.shape[1]))
    np.add.at(gradient, who, mean)
    np.add.at(information, who, question.information(mean, *relevance, parameters[who]))
    return gradient, information


def spread_around(mean: Floats, variance: Floats) -> Nodes:
    """Return normals as nodes and weights."""
    weights = np.broadcast_to(WEIGHTS[:, None], (len(NODES), len(mean)))
    return Nodes(mean + np.sqrt(variance) * NODES[:, None], weights)


class OwnAnswers(NamedTuple):
    """One assessor's answers, and the relevance in question given the answers of all others."""

    at: Ints  # the positions of the observations, shape (n,)
    query: Ints  # the position of each one's query among the assessor's, shape (n,)
    place: Ints  # its place within the query, shape (n,)
    mean: Floats  # of the relevance in question, 0 beyond a query's answers, shape (query, place)
    covariance: Floats  # likewise, shape (query, place, place)


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
    observations: AnswerRows,
    assessor: int,
) -> OwnAnswers:
    """Return an assessor's answers, with relevance as all others see it."""
    # Only the queries that the assessor answered change: their information on g is replaced by that without its sites.
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
    # u = P theta of its own answers: mean P (centre + Y g), covariance P (C + Y Cov[g] Y') P'. Queries are padded with
    # zeros to the same width, which add nothing to the evidence.
    own = {i: field.queries[i].at[observations.assessor[field.queries[i].at] == assessor] for i in numbers}
    counts = np.array([len(at) for at in own.values()], dtype=np.int64)
    width = int(counts.max(initial=0))
    means, covariances = np.zeros((len(counts), width)), np.zeros((len(counts), width, width))
    for n, (i, query) in enumerate(queries.items()):
        one = field.queries[i]
        rows = one.rows[np.isin(one.at, own[i])]
        moved = np.linalg.solve(root, (rows @ query.followed).T)
        means[n, : len(rows)] = rows @ (query.centre + query.followed @ mean)
        covariances[n, : len(rows), : len(rows)] = rows @ query.covariance @ rows.T + moved.T @ moved
    return OwnAnswers(
        np.concatenate([np.empty(0, dtype=np.int64), *own.values()]),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(count) for count in counts)]),
        means,
        covariances,
    )


def fitted(observations: AnswerRows, own: OwnAnswers, parameters: Floats, sign: float) -> Fitted:
    """Return the evidence of an assessor's answers at some parameters, shape (question, parameter).

    Newton's method as for a Gaussian process (Rasmussen and Williams 2006, algorithm 3.1), all queries at once.
    """
    number, answer = observations.question[own.at], observations.answer[own.at]
    mean, covariance, where = own.mean, own.covariance, (own.query, own.place)
    asked = [(q, np.flatnonzero(number == q)) for q in np.unique(number).tolist()]

    def curves(at: Floats) -> tuple[float, Floats, Floats]:
        value, slope, bend = 0.0, np.zeros(mean.shape), np.zeros(mean.shape)
        for q, mine in asked:
            here = (own.query[mine], own.place[mine])
            many = np.broadcast_to(parameters[q], (len(mine), 3))
            curve = observations.questions[q].curve(answer[mine], at[here], many, sign)
            value += float(curve.value.sum())
            slope[here], bend[here] = curve.slope, np.maximum(curve.curve, 0.0)
        return value, slope, bend

    def opened(root: Floats) -> Floats:  # I + W^1/2 V W^1/2, whose eigenvalues are at least 1
        return np.asarray(np.eye(mean.shape[1]) + root[:, :, None] * covariance * root[:, None, :])

    at, weight, size = mean, np.zeros(mean.shape), 1.0  # the weight is V^-1 (u - m)
    value, slope, bend = curves(at)
    objective = value
    # The maximum of log p(y | u) - (u - m)'V^-1 (u - m)/2, in a = V^-1 (u - m), as V may be singular. Without a slope
    # answers do not depend on u, and it is m.
    for _ in range(STEPS if sign else 0):
        root = np.sqrt(bend)
        target = bend * (at - mean) + slope
        right = root * _times(covariance, target)
        # a = t - W^1/2 (I + W^1/2 V W^1/2)^-1 W^1/2 V t, with t = W (u - m) + slope: the full Newton step.
        full = target - root * np.linalg.solve(opened(root), right[..., None])[..., 0]
        # Halved until the objective does not fall; the next step may be twice as long again.
        while True:
            ahead = weight + size * (full - weight)
            there = mean + _times(covariance, ahead)
            value, slope, bend = curves(there)
            reached = value - float((ahead * (there - mean)).sum()) / 2
            if reached >= objective - SETTLED or size < SHORTEST:
                break
            size /= 2
        gain, objective, weight, at = reached - objective, reached, ahead, there
        size = min(1.0, 2 * size)
        if abs(gain) < SETTLED:
            break
    # Laplace's method: log Z = objective - log|I + W^1/2 V W^1/2|/2, and Var[u] = diag(V - V W^1/2 (..)^-1 W^1/2 V).
    root = np.sqrt(bend)
    inner = opened(root)
    taken = covariance * root[:, None, :]
    variance = np.einsum("qii->qi", covariance) - np.einsum(
        "qij,qji->qi", taken, np.linalg.solve(inner, taken.transpose(0, 2, 1))
    )
    evidence = float(objective - np.linalg.slogdet(inner)[1].sum() / 2)
    return Fitted(evidence, own.at, at[where], np.maximum(variance[where], 0.0))


def _times(matrices: Floats, values: Floats) -> Floats:
    return np.asarray((matrices @ values[..., None])[..., 0])


def with_kinds(
    field: Field,
    sites: Sites,
    judged: JudgedSites | None,
    found: FieldPosterior,
    observations: AnswerRows,
    assessors: Assessors,
) -> tuple[Assessors, bool]:
    """Return the assessors with the probability of each kind, and whether all of them have it.

    Of those who no longer seem attentive only the clearest tenth, or one, loses its weight at a time: without it the
    others may look better. Parameters of a kind that an assessor is hardly of, whose answers had little weight, are
    found given the answers of the others alone.
    """
    parameters, kinds = assessors.parameters.copy(), assessors.kinds.copy()
    shares, careless = np.log([kind.share for kind in KINDS]), SIGNS.index(0.0)
    doubts: dict[int, float] = {}
    for j in range(len(observations.assessors)):
        own = others_say(field, sites, judged, found, observations, j)
        if not len(own.at):
            continue
        # P(kind) is in proportion to its prior share, the evidence of the answers, and the parameters' prior mass.
        log = shares.copy()
        for k, sign in enumerate(SIGNS):
            if sign and assessors.kinds[k, j] < LIKELY:
                parameters[k, j] = _best_slope(observations, own, parameters[careless, j], sign)
            fit = fitted(observations, own, parameters[k, j], sign)
            log[k] += fit.log_evidence + _prior_mass(observations, fit, parameters[k, j], sign)
        kinds[:, j] = softmax(log)
        if kinds[0, j] < LIKELY <= assessors.kinds[0, j]:
            doubts[j] = float(log[1:].max() - log[0])
    waiting = sorted(doubts, key=doubts.__getitem__)[: -max(len(kinds[0]) // 10, 1)]
    kinds[:, waiting], parameters[:, waiting] = assessors.kinds[:, waiting], assessors.parameters[:, waiting]
    return Assessors(parameters, kinds), not waiting


def _best_slope(observations: AnswerRows, own: OwnAnswers, parameters: Floats, sign: float) -> Floats:
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


def _prior_mass(observations: AnswerRows, fit: Fitted, parameters: Floats, sign: float) -> float:
    # Laplace's method over the parameters: log N(parameters; mean, sd) - log|information + prior precision|/2, without
    # the powers of 2 pi, which cancel. So a kind with more free parameters pays for them.
    out = 0.0
    for q in np.unique(observations.question[fit.at]).tolist():
        question = observations.questions[q]
        here = observations.question[fit.at] == q
        mine, relevance = fit.at[here], spread_around(fit.u[here], fit.variance[here])
        every = np.broadcast_to(parameters[q], (len(observations.assessors), 3))
        information = parameter_scores(observations, q, mine, every, sign, relevance)[1]
        mean, sd = question.prior
        # A careless assessor has no slope to integrate over.
        free = question.free & (np.arange(3) != LOG_SLOPE if sign == 0 else True)
        total = (information[observations.assessor[mine[0]]] + np.diag(sd**-2.0))[np.ix_(free, free)]
        out -= float((((parameters[q] - mean) / sd)[free] ** 2).sum() / 2 + np.log(sd[free]).sum())
        out -= float(np.linalg.slogdet(total)[1] / 2)
    return out
