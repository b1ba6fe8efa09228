"""Features from metadata and labels: groups of documents, machine labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable, Metadata
from probeval.data.pool import Pool
from probeval.errors import FeatureError, did_you_mean

__all__ = ["EXTERNAL", "groups_in_queries", "label", "same_group", "share_of_group"]


def _groups(metadata: Metadata | None, column: str, pool: Pool) -> tuple[Ints, Ints]:
    """Return the groups of each pair's document and query, -1 where unknown."""
    if metadata is None:
        raise FeatureError(f"Features of groups need metadata with a column {column!r}.")
    if column not in metadata.groups:
        raise FeatureError(f"No column {column!r} in the metadata.{did_you_mean(column, metadata.groups)}")
    doc, query = metadata.codes(column, pool.docs), metadata.codes(column, pool.queries)
    return doc[pool.doc], query[pool.query]


def same_group(metadata: Metadata | None, column: str, pool: Pool) -> Floats:
    """s[column]: whether document and query are in the same group; missing if either's group is unknown."""
    doc, query = _groups(metadata, column, pool)
    return np.where((doc < 0) | (query < 0), np.nan, doc == query)


def groups_in_queries(metadata: Metadata | None, column: str, pool: Pool) -> Ints:
    """Return a number for each group within each query, -1 if a document's group is unknown, shape (pair,)."""
    doc, _ = _groups(metadata, column, pool)
    key = pool.query * (int(doc.max(initial=0)) + 1) + doc
    known = doc >= 0
    numbers = np.full(len(pool), -1)
    numbers[known] = np.unique(key[known], return_inverse=True)[1]
    return numbers


def share_of_group(metadata: Metadata | None, column: str, pool: Pool) -> Floats:
    """f[column]: share of the query's distinct documents that are in the group; missing if it is unknown."""
    number = groups_in_queries(metadata, column, pool)
    count = np.bincount(number[number >= 0], minlength=1)
    return np.where(number < 0, np.nan, count[number] / pool.sizes[pool.query])


def label(labels: LabelTable | None, column: str, pool: Pool) -> Floats:
    """label[column]: the label as given; missing if there is none."""
    if labels is None:
        raise FeatureError(f"label[{column}] needs a table of labels.")
    if column not in labels.sources:
        raise FeatureError(f"No column {column!r} in the labels.{did_you_mean(column, labels.sources)}")
    return labels.on(pool)[:, labels.sources.index(column)]


EXTERNAL: dict[str, Callable[[Collection, str, Pool], Floats]] = {
    "s": lambda collection, column, pool: same_group(collection.metadata, column, pool),
    "f": lambda collection, column, pool: share_of_group(collection.metadata, column, pool),
    "label": lambda collection, column, pool: label(collection.labels, column, pool),
}
