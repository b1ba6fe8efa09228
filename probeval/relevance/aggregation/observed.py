r"""What votes on pairs of unknown relevance say of a worker: less than votes on pairs of known relevance.

.. math:: I = E[-H] - \sum_d \text{Var}_{\theta_d}[\nabla \log P(y_{jd})], \qquad
          \log p(y_j) = \sum_d \log \sum_g P(\theta_d = g \mid \text{other votes})\, P(y_{jd} \mid g)

The information on the parameters is that of Louis (1982). The evidence for a kind of worker uses the relevance that the
other workers' votes leave possible, so that nobody confirms himself.
"""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats
from probeval.relevance.aggregation.curves import answer_curves, information_of
from probeval.relevance.aggregation.votes import VoteArrays
from probeval.relevance.aggregation.workers import KINDS, Population, Workers, log_prior, probable_kinds

__all__ = ["observe_workers"]

BLOCK = 20_000  # votes at a time: each takes a few numbers per node


def observe_workers(
    votes: VoteArrays, posterior: Floats, workers: Workers, population: Population, shape: Floats, nodes: Floats
) -> Workers:
    """Return the workers with the covariances and the kinds that the votes support, and the same parameters.

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
        evidence[k] += log_prior(workers.parameters[k], covariance[k], population)
    return Workers(workers.parameters, covariance, probable_kinds(evidence, population))


def _outer_sums(means: Floats, votes: VoteArrays) -> Floats:
    """Sums over each worker's votes of the outer products of mean scores, shape (worker, parameter, parameter)."""
    n = means.shape[1]
    found = np.empty((votes.n_workers, n, n))
    for p in range(n):
        for r in range(n):
            found[:, p, r] = np.bincount(votes.worker, means[:, p] * means[:, r], minlength=votes.n_workers)
    return found
