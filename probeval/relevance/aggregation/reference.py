r"""The reference: whose grade is wanted, an expert with known ("gold") grades or the consensus of the workers.

.. math:: \text{logit}\, P(r_d \ge \ell) = \kappa_0 + e^{s_0} c_\ell + e^{t_0} \theta_d + w_q

An expert answers like any observer, with parameters of its own and a view :math:`w_q` of each query. What workers see
alike in a pair and the expert does not makes the expert's slope smaller, so that probabilities stay calibrated however
many votes there are. The consensus is the grade of the average worker without noise: :math:`\theta_d` between the mean
cutpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from probeval.arrays import Floats, Ints
from probeval.relevance.aggregation.curves import (
    LOG_SLOPE,
    LOG_SPREAD,
    SHIFT,
    answer_curves,
)
from probeval.relevance.aggregation.workers import Population

__all__ = ["Expert", "consensus_probabilities", "expert_probabilities", "update_expert"]

PRIOR_QUERIES = 4.0  # the sd of views counts as much as this many queries before any is seen
TYPICAL_VIEW_SD = 0.5


@dataclass(frozen=True, eq=False)
class Expert:
    """Estimates of the expert's parameters and of its view of each query.

    Parameters
    ----------
    parameters, covariance
        Shift, log spread and log slope, shapes (parameter,) and (parameter, parameter).
    view, view_variance
        The expert's own shift on each query, and its variance, shape (query,).
    cross
        The covariance of parameters and views, shape (parameter, query).
    view_sd
        The standard deviation of the views.
    """

    parameters: Floats
    covariance: Floats
    view: Floats
    view_variance: Floats
    cross: Floats
    view_sd: float

    @classmethod
    def typical(cls, population: Population, n_queries: int) -> Expert:
        """Return an expert of whom nothing is known: a draw from the workers' population."""
        return cls(
            population.mean.copy(),
            np.diag(population.sd**2),
            np.zeros(n_queries),
            np.full(n_queries, TYPICAL_VIEW_SD**2),
            np.zeros((3, n_queries)),
            TYPICAL_VIEW_SD,
        )

    def answers(self, shape: Floats, nodes: Floats) -> Floats:
        """Return the probability of each grade on each query, shape (query, level, node)."""
        return answer_curves(self._by_query(), shape, nodes).probability

    def _by_query(self) -> Floats:
        own = np.tile(self.parameters, (len(self.view), 1))
        own[:, SHIFT] += self.view
        return own


def update_expert(expert: Expert, population: Population, counts: Floats, shape: Floats, nodes: Floats) -> Expert:
    """Return the expert after one Newton step, jointly in its parameters and its views of queries.

    Parameters
    ----------
    counts
        The expected number of gold grades of each query, by level and node, shape (query, level, node).
    """
    prior = np.diag(population.sd**-2.0)
    curves = answer_curves(expert._by_query(), shape, nodes)
    weight = counts.sum(axis=1)[:, None, :] * curves.probability
    by_query = np.einsum("qkg,qkgp->qp", counts, curves.score)
    information = np.einsum("qkg,qkgp,qkgr->qpr", weight, curves.score, curves.score, optimize=True)
    gradient = by_query.sum(axis=0) - prior @ (expert.parameters - population.mean)
    view_gradient = by_query[:, SHIFT] - expert.view / expert.view_sd**2
    view_precision = information[:, SHIFT, SHIFT] + expert.view_sd**-2.0
    between = information[:, :, SHIFT].T  # (parameter, query)
    # The views are eliminated: a small system is left for the parameters (Schur complement).
    small = information.sum(axis=0) + prior - (between / view_precision) @ between.T
    covariance = np.linalg.inv(small)
    step = covariance @ (gradient - (between / view_precision) @ view_gradient)
    step = np.clip(step, -1.0, 1.0)
    view_step = (view_gradient - between.T @ step) / view_precision
    cross = -covariance @ between / view_precision
    view_variance = 1 / view_precision + np.einsum("pq,pr,rq->q", between, covariance, between) / view_precision**2
    view = expert.view + np.clip(view_step, -1.0, 1.0)
    seen = counts.sum(axis=(1, 2)) > 0
    square = (view**2 + view_variance)[seen].sum() + PRIOR_QUERIES * TYPICAL_VIEW_SD**2
    view_sd = float(np.sqrt(square / (seen.sum() + PRIOR_QUERIES)))
    return replace(
        expert, parameters=expert.parameters + step, covariance=covariance, view=view, view_variance=view_variance,
        cross=cross, view_sd=view_sd,
    )  # fmt: skip


def expert_probabilities(expert: Expert, posterior: Floats, query: Ints, shape: Floats, nodes: Floats) -> Floats:
    r"""Return the probability of each of the expert's grades, shape (pair, level).

    The uncertainty of the expert's own parameters is averaged out: a logit with mean :math:`\eta` and variance
    :math:`v` has about the probability of :math:`\eta / \sqrt{1 + \pi v / 8}` (MacKay 1992).

    Parameters
    ----------
    posterior
        P(node) of each pair, shape (pair, node).
    query
        The query of each pair, shape (pair,).
    """
    slope = np.exp(expert.parameters[LOG_SLOPE]) * nodes
    at_least = np.ones((len(query), len(shape) + 2))
    at_least[:, -1] = 0.0
    for cut, place in enumerate(np.exp(expert.parameters[LOG_SPREAD]) * shape, start=1):
        along = np.stack([np.ones_like(nodes), np.full_like(nodes, place), slope])  # d logit / d parameter
        own = np.einsum("pg,pr,rg->g", along, expert.covariance, along)
        variance = own + expert.view_variance[:, None] + 2 * expert.cross.T @ along
        logit = expert.parameters[SHIFT] + place + slope + expert.view[:, None]  # (query, node)
        probability = expit(logit / np.sqrt(1 + np.pi * np.maximum(variance, 0.0) / 8))
        at_least[:, cut] = np.einsum("dg,dg->d", posterior, probability[query])
    return _levels(at_least)


def consensus_probabilities(population: Population, posterior: Floats, shape: Floats, nodes: Floats) -> Floats:
    """Return the probability that the latent relevance of each pair lies between the mean cutpoints."""
    shift, log_spread, log_slope = population.mean
    cuts = -(shift + np.exp(log_spread) * shape) / np.exp(log_slope)
    edges = np.append(nodes, 2 * nodes[-1] - nodes[-2]) - (nodes[1] - nodes[0]) / 2
    at_least = np.ones((len(posterior), len(shape) + 2))
    at_least[:, -1] = 0.0
    above = np.concatenate([np.cumsum(posterior[:, ::-1], axis=1)[:, ::-1], np.zeros((len(posterior), 1))], axis=1)
    place = np.clip((cuts - edges[0]) / (edges[1] - edges[0]), 0, len(nodes))
    left = np.minimum(place.astype(np.int64), len(nodes) - 1)
    at_least[:, 1:-1] = above[:, left] * (1 - (place - left)) + above[:, left + 1] * (place - left)
    return _levels(at_least)


def _levels(at_least: Floats) -> Floats:
    """P(level) from P(at least each level)."""
    found = np.maximum(-np.diff(at_least, axis=1), 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
