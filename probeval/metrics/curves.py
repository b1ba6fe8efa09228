"""Precision against recall, true against false positives, and the counts behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.metrics.lists import Lists
from probeval.metrics.weights import divide

__all__ = ["Confusion", "confusion", "interpolated_precision", "precision_recall", "roc"]


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion counts of lists, each with shape (.., system, query)."""

    true_positives: Ints
    false_positives: Ints
    false_negatives: Ints
    true_negatives: Ints
    unjudged: Ints


def confusion(lists: Lists, *, depth: int | None = None, rel: float = 1) -> Confusion:
    """Count judged documents inside and outside the first ``depth`` ranks; unjudged ones are counted separately.

    >>> from probeval.data import Scale
    >>> c = confusion(Lists.of_grades([[1, 0, 1, 0]], Scale.binary()), depth=2)
    >>> [int(n[0, 0]) for n in (c.true_positives, c.false_positives, c.false_negatives, c.true_negatives)]
    [1, 1, 1, 1]
    """
    cut = lists.top(depth)
    relevant, total = lists.n_relevant(rel), lists.n_relevant(-np.inf)
    hit = cut.relevant(rel).sum(axis=-1)
    other = (cut.judged_docs & ~cut.relevant(rel)).sum(axis=-1)
    return Confusion(hit, other, relevant - hit, total - relevant - other, cut.unjudged.sum(axis=-1))


def precision_recall(lists: Lists, *, rel: float = 1) -> tuple[Floats, Floats]:
    """Return precision and recall after each rank, each with shape (.., system, query, rank)."""
    found = np.cumsum(lists.relevant(rel), axis=-1)
    return found / np.arange(1, lists.depth + 1), divide(found, lists.n_relevant(rel)[..., None])


def interpolated_precision(lists: Lists, recall: Floats | None = None, *, rel: float = 1) -> Floats:
    """Return the highest precision at or after each recall level (default eleven), shape (.., system, query, level)."""
    levels = np.arange(11) / 10 if recall is None else np.asarray(recall)  # linspace's .3 is not .3
    precision, reached = precision_recall(lists, rel=rel)
    retrieved = np.arange(1, lists.depth + 1) <= lists.retrieved.sum(axis=-1)[..., None]
    best = np.maximum.accumulate(np.where(retrieved, precision, 0.0)[..., ::-1], axis=-1)[..., ::-1]
    # A level of recall needs this many relevant documents; trec_eval rounds as the integer of level * R + .9.
    needed = np.floor(levels * lists.n_relevant(rel)[..., None] + 0.9)
    found = reached * lists.n_relevant(rel)[..., None]
    at = (found[..., None, :] < needed[..., :, None] - 1e-9).sum(axis=-1)
    padded = np.concatenate([best, np.zeros_like(best[..., :1])], axis=-1)
    return np.take_along_axis(padded, at, axis=-1)


def roc(lists: Lists, *, rel: float = 1) -> tuple[Floats, Floats]:
    """Return false and true positive rates among judged documents, from (0, 0), shape (.., system, query, rank + 1)."""
    hit, other = lists.relevant(rel), lists.judged_docs & ~lists.relevant(rel)
    relevant = lists.n_relevant(rel)
    totals = (lists.n_relevant(-np.inf) - relevant, relevant)
    false, true = (
        np.concatenate([np.zeros((*mark.shape[:-1], 1)), divide(np.cumsum(mark, axis=-1), total[..., None])], axis=-1)
        for mark, total in zip((other, hit), totals, strict=True)
    )
    return false, true
