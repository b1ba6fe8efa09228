"""Queries of several partitions as one collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from probeval.arrays import Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool

__all__ = ["joined", "some_queries"]


def some_queries(collection: Collection, at: Ints) -> Collection:
    """Return the lists and the labels of the queries at these positions, without judgments."""
    runs = collection.runs.at(at)
    labels = collection.labels
    if labels is not None:
        labels = labels.rearranged(runs.pool, runs.pool.within(labels.pool))
    return replace(collection, runs=runs, labels=labels, judgments=None)


def joined(parts: Sequence[Collection], judgments: Judgments | None) -> Collection:
    """Return the queries of several parts, which are in rising order, as one collection with these judgments.

    The pairs of each part must be those of its labels, as :func:`some_queries` leaves them.

    Examples
    --------
    >>> from probeval.data.runs import Runs
    >>> one, two = (Collection("", Runs.rows(["a"], [q], [d])) for q, d in (("q1", "d2"), ("q2", "d1")))
    >>> joined([one, two], None).runs.pool.to_frame().values.tolist()
    [['q1', 'd2'], ['q2', 'd1']]
    """
    parts = [part for part in parts if len(part.runs.queries)]
    pools = [part.runs.pool for part in parts]
    docs = objects(sorted(set().union(*(pool.docs.tolist() for pool in pools))))
    index = pd.Index(docs, dtype=object)
    queries = np.cumsum([0, *(len(pool.queries) for pool in pools)])
    pairs = np.cumsum([0, *(len(pool) for pool in pools)])
    pool = Pool(
        np.concatenate([p.queries for p in pools]),
        docs,
        np.concatenate([p.query + start for p, start in zip(pools, queries, strict=False)]),
        np.concatenate([index.get_indexer(pd.Index(p.docs, dtype=object))[p.doc] for p in pools]).astype(np.int64),
    )
    lists = [np.where(p.runs.pairs < 0, -1, p.runs.pairs + start) for p, start in zip(parts, pairs, strict=False)]
    runs = replace(
        parts[0].runs,
        pool=pool,
        pairs=np.concatenate(lists, axis=1),
        scores=np.concatenate([p.runs.scores for p in parts], axis=1),
    )
    return replace(parts[0], runs=runs, labels=_labels(parts, pool), judgments=judgments)


def _labels(parts: Sequence[Collection], pool: Pool) -> LabelTable | None:
    """Return the labels of all parts."""
    tables = [part.labels for part in parts if part.labels is not None]
    if not tables:
        return None
    return replace(
        tables[0],
        pool=pool,
        values=np.concatenate([table.values for table in tables]),
        probabilities={
            source: np.concatenate([table.probabilities[source] for table in tables])
            for source in tables[0].probabilities
        },
    )
