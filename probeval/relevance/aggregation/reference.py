r"""The reference: whose grade is wanted, an expert with known ("gold") grades or the consensus of the workers.

.. math:: \text{logit}\, P(r_d \ge \ell) = \kappa_0 + e^{s_0} c_\ell + e^{t_0} \theta_d + w_q,
          \qquad w_q \sim N(0, \sigma^2)

An expert answers like any observer, with parameters of its own and a view :math:`w_q` of each query. What workers see
alike in a pair and the expert does not makes the expert's slope smaller, so that probabilities stay calibrated however
many votes there are. The consensus is :math:`\theta_d` between fixed cutpoints, without noise, so that certainty grows
with votes; each of its grades is as frequent as in the answers of the average worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from probeval.arrays import Floats, Ints
from probeval.relevance.aggregation.curves import SHIFT, answer_curves
from probeval.relevance.aggregation.workers import Population

__all__ = ["Expert", "GoldGrades", "consensus_probabilities", "fit_expert"]

LOG_VIEW_SD = 3  # the expert's fourth parameter, after those of any observer
TYPICAL_LOG_VIEW_SD, VIEW_PRIOR_SD = 0.0, 0.5  # of the views' log sd: one logit, give or take half as much again
VIEWS = np.linspace(-3.5, 3.5, 15)  # standardised views
LOG_WEIGHTS = -(VIEWS**2) / 2 - logsumexp(-(VIEWS**2) / 2)
STEP = 1e-3  # of finite differences
LOGISTIC_VARIANCE = np.pi**2 / 3
BLOCK = 20_000  # pairs at a time


@dataclass(frozen=True, eq=False)
class GoldGrades:
    """Pairs with a gold grade: P(node) of their latent relevance given the votes, their levels and queries."""

    posterior: Floats  # shape (gold, node)
    level: Ints
    query: Ints
    n_queries: int


@dataclass(frozen=True, eq=False)
class Expert:
    """The expert's parameters and views, averaged over their uncertainty by a few equally weighted points.

    Parameters
    ----------
    parameters, covariance
        Shift, log spread, log slope and the log standard deviation of the views, shapes (4,) and (4, 4).
    points
        Parameters with the same mean and covariance as the posterior's, shape (point, 4).
    views
        P(view) of each query at each point, shape (point, query, view).
    """

    parameters: Floats
    covariance: Floats
    points: Floats
    views: Floats

    def probabilities(self, posterior: Floats, query: Ints, shape: Floats, nodes: Floats) -> Floats:
        """Return P(level) of each pair for the expert, shape (pair, level).

        Parameters
        ----------
        posterior
            P(node) of each pair given the votes, shape (pair, node).
        query
            The query of each pair, shape (pair,).
        """
        found = np.zeros((len(query), len(shape) + 1))
        for point, views in zip(self.points, self.views, strict=True):
            answers = _answers(point, shape, nodes)  # (view, level, node)
            for begin in range(0, len(query), BLOCK):
                part = slice(begin, begin + BLOCK)
                by_view = np.tensordot(posterior[part], answers, axes=(1, 2))  # (pair, view, level)
                found[part] += np.einsum("dv,dvk->dk", views[query[part]], by_view)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def _answers(parameters: Floats, shape: Floats, nodes: Floats) -> Floats:
    """The probability of each of the expert's grades under each view, shape (view, level, node)."""
    own = np.tile(parameters[:LOG_VIEW_SD], (len(VIEWS), 1))
    own[:, SHIFT] += np.exp(parameters[LOG_VIEW_SD]) * VIEWS
    return answer_curves(own, shape, nodes).probability


def fit_expert(gold: GoldGrades, population: Population, shape: Floats, nodes: Floats) -> Expert:
    r"""Return the expert at the maximum of the posterior, with the latent relevance and the views integrated out.

    .. math:: \log p(\text{gold}) = \sum_q \log \int N(w; 0, \sigma^2)
              \prod_{d \in q} \sum_g P(\theta_d = g \mid \text{votes})\, P(r_d \mid g, w) \, dw

    The prior of the expert is the population of the workers.
    """
    mean = np.append(population.mean, TYPICAL_LOG_VIEW_SD)
    sd = np.append(population.sd, VIEW_PRIOR_SD)

    def loss(standardised: Floats) -> float:
        by_view = _log_likelihoods(mean + sd * standardised, gold, shape, nodes)
        return float((standardised**2).sum() / 2 - logsumexp(by_view + LOG_WEIGHTS, axis=1).sum())

    best = np.asarray(minimize(loss, np.zeros(len(mean)), method="BFGS", options={"gtol": 1e-3}).x)
    root = np.linalg.cholesky(np.linalg.inv(_hessian(loss, best)))
    n = len(mean)
    points = mean + sd * (best + np.sqrt(n) * np.concatenate([root.T, -root.T]))
    views = [softmax(_log_likelihoods(point, gold, shape, nodes) + LOG_WEIGHTS, axis=1) for point in points]
    return Expert(mean + sd * best, sd[:, None] * (root @ root.T) * sd, points, np.stack(views))


def _log_likelihoods(parameters: Floats, gold: GoldGrades, shape: Floats, nodes: Floats) -> Floats:
    """The log-likelihood of each query's gold grades under each view, shape (query, view)."""
    answers = _answers(parameters, shape, nodes)
    log = np.empty((len(gold.level), len(VIEWS)))
    for level in range(answers.shape[1]):
        these = gold.level == level
        log[these] = np.log(gold.posterior[these] @ answers[:, level].T)
    found = np.zeros((gold.n_queries, len(VIEWS)))
    np.add.at(found, gold.query, log)
    return found


def _hessian(function: Callable[[Floats], float], x: Floats) -> Floats:
    steps = STEP * np.eye(len(x))
    found = np.empty((len(x), len(x)))
    for i, a in enumerate(steps):
        for j, b in enumerate(steps[: i + 1]):
            ends = function(x + a + b) - function(x + a - b) - function(x - a + b) + function(x - a - b)
            found[i, j] = found[j, i] = ends / (4 * STEP**2)
    values, vectors = np.linalg.eigh(found)
    return np.asarray((vectors * np.maximum(values, 1.0)) @ vectors.T)  # at least as much as the prior


def consensus_probabilities(
    population: Population, query_sd: float, posterior: Floats, shape: Floats, nodes: Floats
) -> Floats:
    r"""Return the probability of each grade of the consensus, shape (pair, level).

    The average worker with slope :math:`\lambda` gives at least :math:`\ell` to a share of the pairs. The cutpoint of
    the consensus leaves the same share above it: :math:`-\kappa_\ell\, \sigma_\theta / \sqrt{\lambda^2 \sigma_\theta^2
    + \pi^2/3}`, with :math:`\sigma_\theta^2 = 1 + \tau^2`.

    Parameters
    ----------
    population, query_sd
        The population of the workers, and the standard deviation of relevance between queries.
    posterior
        P(node) of each pair, shape (pair, node).
    """
    shift, log_spread, log_slope = population.mean
    variance = 1 + query_sd**2
    noisy = np.sqrt(np.exp(2 * log_slope) * variance + LOGISTIC_VARIANCE)
    cuts = -(shift + np.exp(log_spread) * shape) * np.sqrt(variance) / noisy
    # A node stands for the interval around it, so that probabilities change smoothly with the cutpoints.
    width = nodes[1] - nodes[0]
    place = np.clip((cuts - nodes[0]) / width + 0.5, 0, len(nodes))
    left = np.minimum(place.astype(np.int64), len(nodes) - 1)
    above = np.concatenate([np.cumsum(posterior[:, ::-1], axis=1)[:, ::-1], np.zeros((len(posterior), 1))], axis=1)
    at_least = np.ones((len(posterior), len(shape) + 2))
    at_least[:, -1] = 0.0
    at_least[:, 1:-1] = above[:, left] * (1 - (place - left)) + above[:, left + 1] * (place - left)
    found = np.maximum(-np.diff(at_least, axis=1), 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
