"""From votes to grades by one of several methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.arrays import Ints
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.data.votes import Votes
from probeval.errors import DataError, ModelError, did_you_mean
from probeval.relevance.aggregation.baselines import dawid_skene, median_levels, vote_shares
from probeval.relevance.aggregation.model import fit_votes
from probeval.relevance.aggregation.result import Aggregation
from probeval.relevance.aggregation.votes import VoteArrays

__all__ = ["CONSENSUS", "GOLD", "METHODS", "aggregate_votes"]

METHODS = {
    "model": "one latent relevance per pair, seen by workers who differ (the default)",
    "majority": "the most frequent vote; the lower on a tie",
    "median": "the lower median of the votes",
    "dawid-skene": "one table of answers per worker, votes independent given the grade",
}
CONSENSUS, GOLD = "consensus", "gold"
COPIED = 100  # equal votes of two workers that are no coincidence: workers who agree on .95 of the pairs reach .006


def aggregate_votes(
    votes: Votes,
    *,
    scale: Scale | None = None,
    reference: str | None = None,
    method: str = "model",
    level: float = 0.9,
) -> Aggregation:
    """Return the distribution of every pair's grade given votes, by one of :data:`METHODS`.

    Parameters
    ----------
    votes
        The votes, and gold grades if there are any.
    scale
        The scale of votes and gold grades; inferred by default.
    reference
        Whose grade is wanted: ``"gold"``, the expert with known grades (the default where there are any);
        ``"consensus"``, the workers' own, in which case gold grades are not used; or the name of an assessor, whose
        votes are then the gold grades.
    method
        One of :data:`METHODS`.
    level
        The level of the workers' intervals.
    """
    if method not in METHODS:
        raise ModelError(f"No method {method!r}: {', '.join(METHODS)}.{did_you_mean(method, METHODS)}")
    if not 0 < level < 1:
        raise ModelError(f"The level of intervals is between 0 and 1, got {level:g}.")
    used, reference = _with_reference(votes, reference)
    if not len(used.judgments):
        raise DataError("there are no votes: every label is below 0, or the reference's.")
    grades = [used.judgments.grade, *([] if used.gold is None else [used.gold.grade])]
    scale = Scale.infer(np.concatenate(grades)) if scale is None else scale
    same_as = copied_workers(used.judgments)
    arrays = vote_arrays(used, scale, same_as)
    fitted = None
    if method == "model":
        fitted = fit_votes(arrays)
        probability = fitted.probabilities()
    else:
        probability = dawid_skene(arrays) if method == "dawid-skene" else vote_shares(arrays)
    known = np.flatnonzero(arrays.gold >= 0)
    probability[known] = np.eye(arrays.n_levels)[arrays.gold[known]]
    best = median_levels(probability) if method == "median" else probability.argmax(axis=1)
    grade = scale.levels[best]
    if used.gold is not None:
        codes = used.gold.codes(scale)
        grade = np.where(codes >= 0, codes, grade)
    return Aggregation(
        used, scale, method, reference, probability, grade, same_as, fitted, level, _notes(votes, used, same_as)
    )


def _with_reference(votes: Votes, reference: str | None) -> tuple[Votes, str]:
    """The votes with the reference's grades as gold, and the reference's name."""
    if reference is None:
        reference = CONSENSUS if votes.gold is None else GOLD
    if reference == CONSENSUS:
        return replace(votes, gold=None), reference
    if reference == GOLD:
        if votes.gold is None:
            raise DataError("no pair has a gold grade: give them, or use the reference 'consensus'.")
        return votes, reference
    given = votes.judgments
    if reference not in given.assessors:
        known = [CONSENSUS, GOLD, *given.assessors]
        raise DataError(f"No assessor {reference!r} among the votes.{did_you_mean(reference, known)}")
    own = given.assessor == given.assessors.index(reference)
    gold = given.take(own)
    alone = Judgments.coded(gold.pool, gold.pair, gold.grade)
    return replace(votes, judgments=given.take(~own), gold=alone), reference


def copied_workers(given: Judgments) -> Ints:
    """Return the first worker with the same votes as each one, itself for most, shape (worker,).

    Two workers with the same votes on the same pairs, :data:`COPIED` or more and not all one grade, are one observer
    under two names: counted twice, they would look infallible.
    """
    order = np.lexsort((given.pair, given.assessor))
    ends = np.cumsum(np.bincount(given.assessor, minlength=len(given.assessors)))
    first: dict[bytes, int] = {}
    same_as = np.arange(len(given.assessors))
    for worker, mine in enumerate(np.split(order, ends[:-1])):
        if len(mine) >= COPIED and np.ptp(given.grade[mine]) > 0:
            key = given.pair[mine].tobytes() + given.grade[mine].tobytes()
            same_as[worker] = first.setdefault(key, worker)
    return same_as


def vote_arrays(votes: Votes, scale: Scale, same_as: Ints) -> VoteArrays:
    """Return votes as integers, with grades as levels of the scale and without those of copied workers.

    Workers are numbered anew: only those with votes count, as they are the population.
    """
    pool = votes.judgments.pool
    given = votes.judgments.take(same_as[votes.judgments.assessor] == votes.judgments.assessor)
    workers, worker = np.unique(given.assessor, return_inverse=True)
    gold: Ints = np.full(len(pool), -1, dtype=np.int64)
    if votes.gold is not None:
        gold = scale.level_of(votes.gold.codes(scale)).astype(np.int64)
    return VoteArrays(
        given.pair,
        worker,
        scale.level_of(scale.codes(given.grade)).astype(np.int64),
        pool.query.astype(np.int64),
        gold,
        n_levels=len(scale.levels),
        n_workers=len(workers),
        n_queries=len(pool.queries),
    )


def _notes(votes: Votes, used: Votes, same_as: Ints) -> tuple[str, ...]:
    pairs = len(used.judgments.pool)
    empty = pairs - np.unique(used.judgments.pair).size
    notes = []
    if votes.no_grade:
        notes.append(f"{votes.no_grade:,} labels below 0 are no grades; they are not votes.")
    if votes.repeated:
        notes.append(f"{votes.repeated:,} labels were replaced by a later one of the same worker for the same pair.")
    if empty:
        notes.append(f"{empty:,} of {pairs:,} pairs have no vote.")
    copies = int((same_as != np.arange(len(same_as))).sum())
    if copies:
        notes.append(f"{copies:,} workers have the same votes as another one on every pair, and count once with it.")
    if used.gold is not None:
        notes.append(f"{np.unique(used.gold.pair).size:,} pairs have a grade of the reference, which is certain.")
    return tuple(notes)
