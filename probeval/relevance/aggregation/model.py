r"""The model of votes: one latent relevance per pair, and many observers of it.

.. math:: \theta_d = u_q + e_d, \qquad u_q \sim N(0, \tau^2), \quad e_d \sim N(0, 1)

Given the queries and the workers, pairs are independent and :math:`\theta_d` is integrated on a grid. Everything else
is estimated by expectation-maximisation with Newton steps, each under its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Floats
from probeval.relevance.aggregation.curves import cutpoint_shape
from probeval.relevance.aggregation.reference import Expert, GoldGrades, consensus_probabilities, fit_expert
from probeval.relevance.aggregation.votes import VoteArrays
from probeval.relevance.aggregation.workers import (
    Population,
    Workers,
    observe_workers,
    update_population,
    update_workers,
)

__all__ = ["NODES", "FittedVotes", "QueryEffects", "fit_votes"]

NODES = np.linspace(-5.0, 5.0, 41)  # of the latent relevance
MOST_ROUNDS = 100
TOLERANCE = 1e-3  # of the pairs' mean relevance, at which the rounds end
TYPICAL_QUERY_SD = 0.5
REFINEMENTS = 3  # rounds at the end
PRIOR_QUERIES = 4.0  # the sd of queries counts as much as this many before any is seen


@dataclass(frozen=True, eq=False)
class QueryEffects:
    """The mean relevance of each query, its variance, and the standard deviation between queries."""

    mean: Floats
    variance: Floats
    sd: float


@dataclass(frozen=True, eq=False)
class FittedVotes:
    """The fitted model of votes.

    Parameters
    ----------
    votes, pattern
        The votes, and the common pattern of cutpoints.
    workers, population, queries, expert
        The estimates; the expert is None without gold grades.
    posterior
        P(node) of each pair's latent relevance, shape (pair, node).
    rounds
        The number of rounds that the fit took.
    """

    votes: VoteArrays
    pattern: Floats
    workers: Workers
    population: Population
    queries: QueryEffects
    expert: Expert | None
    posterior: Floats
    rounds: int

    def probabilities(self) -> Floats:
        """Return P(level) of each pair for the expert, or for the consensus without one, shape (pair, level)."""
        if self.expert is None:
            return consensus_probabilities(self.population, self.queries.sd, self.posterior, self.pattern, NODES)
        return self.expert.probabilities(self.posterior, self.votes.query, self.pattern, NODES)


def fit_votes(votes: VoteArrays) -> FittedVotes:
    """Fit the model of votes; gold grades, where there are any, make the expert the reference.

    Workers and pairs are estimated from the votes alone, then the expert from the gold grades: these are few beside
    the votes, and tell of the expert, not of the workers.
    """
    fitted = _start(votes)
    for done in range(MOST_ROUNDS):
        before = fitted.posterior @ NODES
        fitted = replace(_round(fitted), rounds=done + 1)
        if np.max(np.abs(fitted.posterior @ NODES - before), initial=0.0) < TOLERANCE:
            break
    for _ in range(REFINEMENTS):
        fitted = _refine(fitted)
    fitted = replace(fitted, posterior=_posterior(fitted, integrate=True))
    known = np.flatnonzero(votes.gold >= 0)
    if not known.size:
        return fitted
    gold = GoldGrades(fitted.posterior[known], votes.gold[known], votes.query[known], votes.n_queries)
    return replace(fitted, expert=fit_expert(gold, fitted.population, fitted.pattern, NODES))


def _refine(fitted: FittedVotes) -> FittedVotes:
    """The population and then the workers with the whole uncertainty of the workers, which rounds understate."""
    votes, at, shape = fitted.votes, fitted.posterior, fitted.pattern
    observed = observe_workers(votes, at, fitted.workers, fitted.population, shape, NODES)
    population = update_population(observed, fitted.population)
    workers = update_workers(observed, population, _counts(fitted), shape, NODES)
    observed = observe_workers(votes, at, replace(workers, kinds=observed.kinds), population, shape, NODES)
    moved = replace(fitted, workers=observed, population=population)
    return replace(moved, posterior=_posterior(moved))


def _counts(fitted: FittedVotes) -> Floats:
    """The expected number of votes of each worker, by level and node, shape (worker, level, node)."""
    votes = fitted.votes
    return np.asarray((votes.by_worker @ fitted.posterior).reshape(votes.n_workers, votes.n_levels, -1))


def _start(votes: VoteArrays) -> FittedVotes:
    """The state before any vote is seen: only the shares of the grades are used."""
    shape = cutpoint_shape(votes.shares)
    population = Population.typical()
    start = FittedVotes(
        votes,
        shape,
        Workers.typical(population, votes.n_workers),
        population,
        QueryEffects(np.zeros(votes.n_queries), np.zeros(votes.n_queries), TYPICAL_QUERY_SD),
        None,
        np.empty((len(votes.query), 0)),
        rounds=0,
    )
    return replace(start, posterior=_posterior(start))


def _round(fitted: FittedVotes) -> FittedVotes:
    """One round: every block of parameters given the pairs, then the pairs given these."""
    votes, at = fitted.votes, fitted.posterior
    workers = update_workers(fitted.workers, fitted.population, _counts(fitted), fitted.pattern, NODES)
    population = update_population(workers, fitted.population)
    queries = _update_queries(fitted.queries, at @ NODES, votes)
    moved = replace(fitted, workers=workers, population=population, queries=queries)
    return replace(moved, posterior=_posterior(moved))


def _update_queries(queries: QueryEffects, relevance: Floats, votes: VoteArrays) -> QueryEffects:
    """The query means given the mean relevance of each pair; their overall mean is 0, as shifts have one too."""
    total = np.bincount(votes.query, relevance, minlength=votes.n_queries)
    variance = 1 / (np.bincount(votes.query, minlength=votes.n_queries) + queries.sd**-2.0)
    mean = total * variance
    mean = mean - mean.mean()
    square = (mean**2 + variance).sum() + PRIOR_QUERIES * TYPICAL_QUERY_SD**2
    return QueryEffects(mean, variance, float(np.sqrt(square / (votes.n_queries + PRIOR_QUERIES))))


def _posterior(fitted: FittedVotes, *, integrate: bool = False) -> Floats:
    """P(node) of each pair given the votes and all parameters; with ``integrate``, averaged over the workers'."""
    votes, queries = fitted.votes, fitted.queries
    answers = fitted.workers.answers(fitted.pattern, NODES, integrate=integrate)
    log = votes.by_pair @ np.log(answers).reshape(-1, len(NODES))
    prior = -((NODES - queries.mean[:, None]) ** 2) / (2 * (1 + queries.variance[:, None]))
    log += prior[votes.query]
    log -= log.max(axis=1, keepdims=True)
    np.exp(log, out=log)
    log /= log.sum(axis=1, keepdims=True)
    return np.asarray(log)
