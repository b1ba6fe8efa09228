r"""Sites of answers by expectation propagation.

Of each ordinal answer the *cavity*, the relevance in question without its own site, is multiplied by the answer's
probability; the site becomes the ratio of the normal with the same moments to the cavity (Minka 2001). All answers are
updated at once, half way. An answer counts to the power of the probability that its assessor is of a kind,
:math:`\prod_k p(y \mid u, k)^{P(k)}`, which is log-concave. Answers in numbers are normal as they are: their sites are
exact. The derivative of the evidence in an assessor's parameters is the mean of the answer's derivative over cavity
times probability, by which they are updated. See docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.answers.assessors import (
    LIKELY,
    NODES,
    SIGNS,
    WEIGHTS,
    Assessors,
    Nodes,
    parameter_scores,
    spread_around,
)
from probeval.relevance.answers.field import FieldPosterior, Sites
from probeval.relevance.answers.observations import AnswerRows
from probeval.relevance.answers.questions import LOG_SLOPE, LOG_WIDTH, SHIFT, NormalQuestion

__all__ = ["no_sites", "updated_assessors", "updated_sites"]

LOG_WEIGHTS = np.log(WEIGHTS)
LONGEST = 0.5  # the longest step of a parameter of an assessor, against overshooting
MIN_PRECISION = 1e-6  # the least precision of a site, and of a cavity relative to the posterior: both stay proper


def no_sites(n: int) -> Sites:
    """Return sites that say nothing."""
    return Sites(np.full(n, MIN_PRECISION), np.zeros(n), np.zeros(n))


def updated_sites(
    observations: AnswerRows, assessors: Assessors, sites: Sites, found: FieldPosterior, *, share: float
) -> tuple[Sites, float]:
    """Return the sites after one update, a ``share`` of the way, and the largest change of a posterior mean by it.

    The change is in standard deviations of the relevance in question.
    """
    # Sites of numbers are exact, so they take the whole step. Those of choices change all at once, each against a
    # posterior with the old sites of the others: whole steps would overshoot.
    precision, linear, size = (values.copy() for values in sites)
    for number, question in enumerate(observations.questions):
        mine = np.flatnonzero(observations.question == number)
        if not mine.size:
            continue
        if isinstance(question, NormalQuestion):
            new = _exact(observations, assessors, number, mine)
            step = 1.0
        else:
            new = _matched(tilted(observations, assessors, number, mine, sites, found), found.variance[mine])
            step = share
        precision[mine] += step * (new.precision - precision[mine])
        linear[mine] += step * (new.linear - linear[mine])
        size[mine] = new.log_size
    # To first order a site moves its own mean by v (dh - u dw): in sds, sqrt(v) (dh - u dw).
    moved = linear - sites.linear - (precision - sites.precision) * found.u
    return Sites(precision, linear, size), float(np.abs(moved * np.sqrt(found.variance)).max(initial=0.0))


def _exact(observations: AnswerRows, assessors: Assessors, number: int, mine: Ints) -> Sites:
    # -(y - b - lambda u)^2 / (2 sigma^2) - log sigma: w = lambda^2/sigma^2, h = lambda (y - b)/sigma^2, and the rest is
    # the size. Each kind counts with its probability. Careless answers do not depend on u, so they are no part of it.
    who, answer = observations.assessor[mine], observations.answer[mine]
    out = np.zeros((3, len(mine)))
    for k, sign in enumerate(SIGNS):
        if sign:
            p, parameters = assessors.kinds[k, who], assessors.parameters[k, who, number]
            slope, sd = sign * np.exp(parameters[:, LOG_SLOPE]), np.exp(parameters[:, LOG_WIDTH])
            z = (answer - parameters[:, SHIFT]) / sd
            out += p * np.stack([(slope / sd) ** 2, slope / sd * z, -(z**2) / 2 - np.log(sd) - np.log(2 * np.pi) / 2])
    return Sites(np.maximum(out[0], MIN_PRECISION), out[1], out[2])


class Tilted(NamedTuple):
    """Cavity times probability of some ordinal answers."""

    nodes: Nodes  # its values and weights, which sum to 1
    precision: Floats  # of the cavity
    mean: Floats  # of the cavity
    log_total: Floats  # the log of the integral of cavity times probability


def tilted(
    observations: AnswerRows, assessors: Assessors, number: int, mine: Ints, sites: Sites, found: FieldPosterior
) -> Tilted:
    """Return cavity times probability of a question's answers, by quadrature around the present posterior."""
    # The cavity is the posterior without the site: precisions and linear terms are subtracted.
    mean, variance = found.u[mine], found.variance[mine]
    left = np.maximum(1 / variance - sites.precision[mine], MIN_PRECISION / variance)
    centre = (mean / variance - sites.linear[mine]) / left
    # Gauss and Hermite's nodes around the posterior, where the product has its mass. Their weights contain a normal
    # density, which is divided out (z^2/2 + log sd) before the cavity and the answer are multiplied in.
    nodes = mean + np.sqrt(variance) * NODES[:, None]
    log = LOG_WEIGHTS[:, None] + NODES[:, None] ** 2 / 2 + np.log(variance) / 2
    log = log + (np.log(left) - left * (nodes - centre) ** 2) / 2
    log = log + expected_log(observations, assessors, number, mine, nodes)
    top = log.max(axis=0)
    weight = np.exp(log - top)
    total = weight.sum(axis=0)
    return Tilted(Nodes(nodes, weight / total), left, centre, top + np.log(total))


def _matched(part: Tilted, variance: Floats) -> Sites:
    # The site that gives the cavity the mean m and variance v of cavity times probability: w = 1/v - w_cavity and
    # h = m (w + w_cavity) - h_cavity. An answer never lowers precision, as its likelihood is log-concave.
    values, weights = part.nodes
    left, centre = part.precision, part.mean
    m = (weights * values).sum(axis=0)
    v = np.maximum((weights * (values - m) ** 2).sum(axis=0), MIN_PRECISION * variance)
    precision = np.maximum(1 / v - left, MIN_PRECISION)
    both = precision + left
    linear = m * both - left * centre
    # The site's size makes its integral over the cavity equal to that of the answer, so that the evidence is right.
    plain = (np.log(left) - np.log(both) + (left * centre + linear) ** 2 / both - left * centre**2) / 2
    return Sites(precision, linear, part.log_total - plain)


def updated_assessors(
    observations: AnswerRows, assessors: Assessors, sites: Sites, found: FieldPosterior
) -> tuple[Assessors, float]:
    """Return the assessors after one Newton step for each kind and question, and the largest step.

    The slopes of a kind that an assessor is hardly of are not updated: its answers had little weight.
    """
    parameters = assessors.parameters.copy()
    largest = 0.0
    for number, question in enumerate(observations.questions):
        mine = np.flatnonzero(observations.question == number)
        if not mine.size:
            continue
        # Fisher's identity: the slope of the log evidence is the mean score over the posterior of u, which for choices
        # is cavity times probability. With normal posteriors in its place, slopes came out as .4 for 1.
        if isinstance(question, NormalQuestion):
            relevance = spread_around(found.u[mine], found.variance[mine])
        else:
            relevance = tilted(observations, assessors, number, mine, sites, found).nodes
        answered = np.unique(observations.assessor[mine])
        mean, sd = question.prior
        for k, sign in enumerate(SIGNS):
            likely = answered[assessors.kinds[k, answered] >= LIKELY] if sign else answered
            if not likely.size:
                continue
            here = parameters[k, :, number]
            gradient, information = parameter_scores(observations, number, mine, here, sign, relevance)
            # A Newton step with the prior. Fixed parameters stay.
            gradient -= (here - mean) / sd**2
            step = np.linalg.solve(information + np.diag(sd**-2.0), gradient[..., None])[..., 0]
            step = np.clip(step, -LONGEST, LONGEST) * question.free
            parameters[k, likely, number] += step[likely]
            largest = max(largest, float(np.abs(step[likely]).max(initial=0.0)))
    return Assessors(parameters, assessors.kinds), largest


def expected_log(observations: AnswerRows, assessors: Assessors, number: int, mine: Ints, relevance: Floats) -> Floats:
    """Return the mean log-likelihood over the kinds that see relevance, shape as ``relevance``."""
    who, question = observations.assessor[mine], observations.questions[number]
    out = np.zeros(relevance.shape)
    for k, sign in enumerate(SIGNS):
        if sign:
            curve = question.curve(observations.answer[mine], relevance, assessors.parameters[k, who, number], sign)
            out += assessors.kinds[k, who] * curve.value
    return out
