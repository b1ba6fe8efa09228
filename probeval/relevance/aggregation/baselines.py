"""Simpler ways to aggregate votes: the majority, the median, and the model of Dawid and Skene (1979)."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.aggregation.votes import VoteArrays

__all__ = ["dawid_skene", "median_levels", "vote_shares"]

MOST_ROUNDS = 100
TOLERANCE = 1e-6  # of any probability, at which the rounds end
PSEUDO_COUNT = 0.01  # of each answer of a worker to each true grade


def vote_shares(votes: VoteArrays) -> Floats:
    """Return the share of each level among a pair's votes, shape (pair, level); without votes, that among all."""
    counts = np.bincount(votes.pair * votes.n_levels + votes.level, minlength=len(votes.query) * votes.n_levels)
    counts = counts.reshape(-1, votes.n_levels)
    total = counts.sum(axis=1, keepdims=True)
    overall = np.bincount(votes.level, minlength=votes.n_levels) / max(len(votes.level), 1)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1), overall))


def median_levels(shares: Floats) -> Ints:
    """Return the lower median level of each pair, from the shares of its votes.

    >>> median_levels(np.array([[0.5, 0.0, 0.5], [0.2, 0.3, 0.5], [0.0, 0.2, 0.8]])).tolist()
    [0, 1, 2]
    """
    return np.asarray((np.cumsum(shares, axis=1) >= 0.5 - 1e-12).argmax(axis=1))


def dawid_skene(votes: VoteArrays) -> Floats:
    r"""Return P(level) of each pair by the model of Dawid and Skene, shape (pair, level).

    .. math:: P(z_d = k \mid y) \propto p_k \prod_{j} \pi^{(j)}_{k y_{jd}}

    Each worker :math:`j` has a table :math:`\pi^{(j)}` of answers to each true grade, and votes are independent given
    the true grade. Tables and shares :math:`p` are estimated by expectation-maximisation, which starts at the shares of
    votes. Gold grades are known true grades.
    """
    known = np.flatnonzero(votes.gold >= 0)
    found = _with_gold(vote_shares(votes), votes, known)
    for _ in range(MOST_ROUNDS):
        tables = (votes.by_worker @ found).reshape(votes.n_workers, votes.n_levels, votes.n_levels) + PSEUDO_COUNT
        tables /= tables.sum(axis=1, keepdims=True)  # (worker, answer, true level)
        shares = found.mean(axis=0) + 1e-12
        log = votes.by_pair @ np.log(tables).reshape(-1, votes.n_levels) + np.log(shares)
        new = np.exp(log - log.max(axis=1, keepdims=True))
        new = _with_gold(new / new.sum(axis=1, keepdims=True), votes, known)
        change = np.max(np.abs(new - found), initial=0.0)
        found = new
        if change < TOLERANCE:
            break
    return found


def _with_gold(probability: Floats, votes: VoteArrays, known: Ints) -> Floats:
    probability[known] = np.eye(votes.n_levels)[votes.gold[known]]
    return probability
