r"""Workers: the parameters of each one's answers, and the population that they come from.

A worker is of one of three :data:`KINDS`. Given the kind, its parameters have a normal prior, that of the population,
whose means, standard deviations and shares of kinds are estimated too (empirical Bayes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from probeval.arrays import Floats
from probeval.relevance.aggregation.curves import LOG_SLOPE, SHIFT, answer_curves, information_of
from probeval.relevance.aggregation.votes import VoteArrays

__all__ = ["KINDS", "Population", "WorkerKind", "Workers", "observe_workers", "update_population", "update_workers"]


class WorkerKind(NamedTuple):
    """A kind of worker: the sign of its slope, and the prior share of such workers."""

    name: str
    sign: float
    share: float


KINDS = (
    WorkerKind("attentive", 1.0, 0.90),
    WorkerKind("careless", 0.0, 0.08),
    WorkerKind("reversed", -1.0, 0.02),
)
SIGNS = np.array([kind.sign for kind in KINDS])
SHARES = np.array([kind.share for kind in KINDS])

# What a population is worth before any worker is seen: as much as this many workers, with these values.
PRIOR_WORKERS = 4.0
TYPICAL_SD = np.array([1.0, 0.4, 0.5])  # of shift, log spread and log slope: crowds on web pages
TYPICAL_MEAN = np.array([0.0, 0.15, 0.2])  # of the same, for a latent relevance with sd 1 within a query
LONGEST_STEP = 1.0  # of a Newton step in any parameter
STEEPEST = 6.0  # slope: a steeper one is between two nodes of the latent relevance, and holds only for copied votes
BLOCK = 20_000  # votes at a time: each takes a few numbers per node
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)  # to average over a worker's shift and slope


@dataclass(frozen=True, eq=False)
class Population:
    """The workers that these ones come from.

    Parameters
    ----------
    mean, sd
        Of shift, log spread and log slope, shape (parameter,).
    shares
        The share of each kind, shape (kind,).
    """

    mean: Floats
    sd: Floats
    shares: Floats

    @classmethod
    def typical(cls) -> Population:
        """Return the population before any worker is seen."""
        return cls(TYPICAL_MEAN.copy(), TYPICAL_SD.copy(), SHARES.copy())


@dataclass(frozen=True, eq=False)
class Workers:
    """Estimates of the workers: given each kind, the parameters; and the probability of the kind.

    Parameters
    ----------
    parameters
        Shift, log spread and log slope, shape (kind, worker, parameter).
    covariance
        Of these, shape (kind, worker, parameter, parameter).
    kinds
        The probability of each kind, shape (kind, worker).
    """

    parameters: Floats
    covariance: Floats
    kinds: Floats

    @classmethod
    def typical(cls, population: Population, n: int) -> Workers:
        """Return ``n`` workers of which nothing is known."""
        k = len(KINDS)
        return cls(
            np.broadcast_to(population.mean, (k, n, 3)).copy(),
            np.broadcast_to(np.diag(population.sd**2), (k, n, 3, 3)).copy(),
            np.broadcast_to(population.shares[:, None], (k, n)).copy(),
        )

    def answers(self, shape: Floats, nodes: Floats, *, integrate: bool = False) -> Floats:
        """Return the probability of each answer, averaged over kinds, shape (worker, level, node).

        With ``integrate``, it is averaged over the uncertain shift and slope as well.
        """
        total = 0.0
        for k, kind in enumerate(KINDS):
            for parameters, weight in self._points(k) if integrate else [(self.parameters[k], 1.0)]:
                curves = answer_curves(parameters, shape, nodes, sign=kind.sign)
                total = total + weight * self.kinds[k][:, None, None] * curves.probability
        return np.asarray(total)

    def _points(self, k: int) -> list[tuple[Floats, float]]:
        """Nodes of a quadrature over shift and slope, and their weights."""
        both = [SHIFT, LOG_SLOPE]
        root = np.linalg.cholesky(self.covariance[k][:, both][:, :, both])
        found = []
        for a, weight_a in zip(POINTS, WEIGHTS / WEIGHTS.sum(), strict=True):
            for b, weight_b in zip(POINTS, WEIGHTS / WEIGHTS.sum(), strict=True):
                moved = self.parameters[k].copy()
                moved[:, both] += root @ np.array([a, b])
                found.append((moved, float(weight_a * weight_b)))
        return found


def update_workers(workers: Workers, population: Population, counts: Floats, shape: Floats, nodes: Floats) -> Workers:
    """Return the workers after one Newton step for each kind, given the expected votes at each node.

    Parameters
    ----------
    counts
        The expected number of votes of each worker, by level and node, shape (worker, level, node).
    """
    precision = np.diag(population.sd**-2.0)
    parameters, covariance = np.empty_like(workers.parameters), np.empty_like(workers.covariance)
    evidence = np.empty_like(workers.kinds)
    votes = counts.sum(axis=1)
    for k, kind in enumerate(KINDS):
        curves = answer_curves(workers.parameters[k], shape, nodes, sign=kind.sign)
        apart = workers.parameters[k] - population.mean
        gradient = np.einsum("jkg,jkgp->jp", counts, curves.score) - apart @ precision
        covariance[k] = np.linalg.inv(information_of(curves, votes) + precision)
        step = np.einsum("jpr,jr->jp", covariance[k], gradient)
        parameters[k] = workers.parameters[k] + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        parameters[k, :, LOG_SLOPE] = np.minimum(parameters[k, :, LOG_SLOPE], np.log(STEEPEST))
        evidence[k] = np.einsum("jkg,jkg->j", counts, np.log(curves.probability))
        evidence[k] += _log_prior(workers.parameters[k], covariance[k], population)
    return Workers(parameters, covariance, _probable_kinds(evidence, population))


def _log_prior(parameters: Floats, covariance: Floats, population: Population) -> Floats:
    """Return the log of the prior mass around each worker's parameters (Laplace), shape (worker,)."""
    apart = (parameters - population.mean) / population.sd
    return np.asarray((np.linalg.slogdet(covariance)[1] - (apart**2).sum(axis=1)) / 2 - np.log(population.sd).sum())


def _probable_kinds(evidence: Floats, population: Population) -> Floats:
    """Return the probability of each kind, from the log evidence for it, shape (kind, worker)."""
    return np.asarray(softmax(evidence + np.log(population.shares)[:, None], axis=0))


def observe_workers(
    votes: VoteArrays, posterior: Floats, workers: Workers, population: Population, shape: Floats, nodes: Floats
) -> Workers:
    r"""Return the workers with the covariances and the kinds that the votes support, and the same parameters.

    Votes on pairs of unknown relevance say less of a worker than votes on pairs of known relevance:

    .. math:: I = E[-H] - \sum_d \text{Var}_{\theta_d}[\nabla \log P(y_{jd})], \qquad
              \log p(y_j) = \sum_d \log \sum_g P(\theta_d = g \mid \text{other votes})\, P(y_{jd} \mid g)

    The information on the parameters is that of Louis (1982). The evidence for a kind uses the relevance that the votes
    of the others leave possible, so that no worker confirms itself.

    Parameters
    ----------
    posterior
        P(node) of each pair given all votes, shape (pair, node).
    """
    curves = [answer_curves(workers.parameters[k], shape, nodes, sign=kind.sign) for k, kind in enumerate(KINDS)]
    mixed = sum(workers.kinds[k][:, None, None] * curve.probability for k, curve in enumerate(curves))
    counts = (votes.by_worker @ posterior).reshape(votes.n_workers, votes.n_levels, -1)
    evidence = np.zeros_like(workers.kinds)
    means = np.empty((len(KINDS), len(votes.pair), 3))  # of the scores of each vote
    for begin in range(0, len(votes.pair), BLOCK):
        part = slice(begin, begin + BLOCK)
        worker, level = votes.worker[part], votes.level[part]
        at = posterior[votes.pair[part]]
        others = at / mixed[worker, level]  # without this vote
        others /= others.sum(axis=1, keepdims=True)
        for k, curve in enumerate(curves):
            means[k, part] = (at[:, None, :] @ curve.score[worker, level])[:, 0]
            log = np.log(np.einsum("vg,vg->v", others, curve.probability[worker, level]))
            evidence[k] += np.bincount(worker, log, minlength=votes.n_workers)
    precision = np.diag(population.sd**-2.0)
    covariance = np.empty_like(workers.covariance)
    for k, curve in enumerate(curves):
        square = np.einsum("jkg,jkgp,jkgr->jpr", counts, curve.score, curve.score, optimize=True)
        missing = square - _outer_sums(means[k], votes)
        values, vectors = np.linalg.eigh(information_of(curve, counts.sum(axis=1)) - missing)
        known = np.einsum("jpr,jr,jsr->jps", vectors, np.maximum(values, 0.0), vectors)
        covariance[k] = np.linalg.inv(known + precision)
        evidence[k] += _log_prior(workers.parameters[k], covariance[k], population)
    return Workers(workers.parameters, covariance, _probable_kinds(evidence, population))


def _outer_sums(means: Floats, votes: VoteArrays) -> Floats:
    """Sums over each worker's votes of the outer products of mean scores, shape (worker, parameter, parameter)."""
    n = means.shape[1]
    found = np.empty((votes.n_workers, n, n))
    for p in range(n):
        for r in range(n):
            found[:, p, r] = np.bincount(votes.worker, means[:, p] * means[:, r], minlength=votes.n_workers)
    return found


def update_population(workers: Workers, population: Population) -> Population:
    """Return the population given its workers: the maximum of its posterior.

    Careless workers have no slope, so their share counts in the slopes as nothing known.
    """
    weight = np.broadcast_to(workers.kinds[..., None], workers.parameters.shape)
    n = workers.kinds.shape[1]
    pull = np.array([0.0, 0.0, PRIOR_WORKERS])  # votes alone hardly tell the slope of a few workers from noise
    mean = ((weight * workers.parameters).sum(axis=(0, 1)) + pull * TYPICAL_MEAN) / (n + pull)
    square = (workers.parameters - mean) ** 2 + np.einsum("kjpp->kjp", workers.covariance)
    variance = ((weight * square).sum(axis=(0, 1)) + PRIOR_WORKERS * TYPICAL_SD**2) / (n + PRIOR_WORKERS)
    shares = (workers.kinds.sum(axis=1) + PRIOR_WORKERS * SHARES) / (n + PRIOR_WORKERS)
    return replace(population, mean=mean, sd=np.sqrt(variance), shares=shares)
