"""Weights, segments and clusters of queries, from a table with one row per query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ints
from probeval.data.tables import cell_text, column, ids, numbers, read_table
from probeval.errors import DataError

__all__ = ["as_clusters", "as_query_weights", "as_segments"]

NAMED = 3  # ids in an error


def as_query_weights(given: Any, queries: Sequence[str]) -> Floats:
    """Return the weight of each query, such as its number of requests, shape (query,).

    Parameters
    ----------
    given
        A path or a data frame with the columns query and weight, or a mapping from queries to weights. Weights are
        numbers from 0; a query of weight 0 does not count.
    queries
        The queries, each of which must have a weight. Weights of others are left out.

    Examples
    --------
    >>> as_query_weights({"q1": 120, "q2": 30, "q9": 5}, ["q1", "q2"])
    array([120.,  30.])
    """
    table, path = _table(given, "weight")
    named, weights = _queries(table, path), numbers(_column(table, "weight", path), "weight", path=path, finite=True)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise DataError(f"the weight in row {row + 1} must be a number from 0, got {weights[row]:g}.", path=path)
    by_query = dict(zip(named, weights.tolist(), strict=True))
    if len(by_query) < len(named):
        twice = next(query for query in named if named.count(query) > 1)
        raise DataError(f"the query {twice!r} has several weights: give one row per query.", path=path)
    missing = [query for query in queries if query not in by_query]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(queries)} queries have no weight: {_some(missing)}. Give each one a weight; 0 "
            "leaves a query out.",
            path=path,
        )
    found = np.array([by_query[query] for query in queries])
    if not found.any():
        raise DataError("all queries have the weight 0. Give some query a weight above 0.", path=path)
    return found


def as_segments(given: Any, queries: Sequence[str]) -> dict[str, Bools]:
    """Return the queries of each segment, in the order of the table: masks of shape (query,).

    Parameters
    ----------
    given
        A path or a data frame with the columns query and segment, or a mapping from queries to segments. A query with
        several rows is in several segments.
    queries
        The queries; rows of others are left out.

    Examples
    --------
    >>> as_segments({"q1": "head", "q2": "tail", "q3": "head"}, ["q1", "q2", "q3"])
    {'head': array([ True, False,  True]), 'tail': array([False,  True, False])}
    """
    table, path = _table(given, "segment")
    named, segments = _queries(table, path), [cell_text(value) for value in _column(table, "segment", path)]
    position = {query: i for i, query in enumerate(queries)}
    if not position.keys() & set(named):
        raise DataError(
            f"no query in common: the runs answer {_some(queries)}, the table has {_some(named)}.", path=path
        )
    found: dict[str, Bools] = {}
    for query, segment in zip(named, segments, strict=True):
        if query in position:
            found.setdefault(segment, np.zeros(len(queries), dtype=bool))[position[query]] = True
    return found


def as_clusters(given: Any, queries: Sequence[str]) -> Ints:
    """Return the cluster of each query, such as its user or its template, as a number from 0, shape (query,).

    Parameters
    ----------
    given
        A path or a data frame with the columns query and cluster, or a mapping from queries to clusters.
    queries
        The queries; rows of others are left out. A query without a row is a cluster of its own.

    Examples
    --------
    >>> as_clusters({"q1": "ann", "q2": "bob", "q3": "ann"}, ["q1", "q2", "q3", "q4"])
    array([0, 1, 0, 2])
    """
    table, path = _table(given, "cluster")
    named, clusters = _queries(table, path), [cell_text(value) for value in _column(table, "cluster", path)]
    cluster = dict(zip(named, clusters, strict=True))
    twice = next((q for q, c in zip(named, clusters, strict=True) if cluster[q] != c), None)
    if twice is not None:
        raise DataError(f"the query {twice!r} has several clusters: give one row per query.", path=path)
    if cluster.keys().isdisjoint(queries):
        raise DataError(
            f"no query in common: the runs answer {_some(queries)}, the table has {_some(named)}.", path=path
        )
    found = [(True, cluster[query]) if cluster.get(query) else (False, query) for query in queries]
    number = {one: i for i, one in enumerate(dict.fromkeys(found))}
    return np.array([number[one] for one in found])


def _table(given: Any, name: str) -> tuple[pd.DataFrame, Path | None]:
    if isinstance(given, pd.DataFrame):
        return given, None
    if isinstance(given, Mapping):
        return pd.DataFrame({"query": list(given), name: list(given.values())}), None
    if isinstance(given, (str, PathLike)):
        return read_table(Path(given)), Path(given)
    raise DataError(f"expected a path, a data frame, or a mapping from queries to {name}s; got {type(given).__name__}.")


def _queries(table: pd.DataFrame, path: Path | None) -> list[str]:
    found = column(table, "query", path=path)
    assert found is not None
    return ids(found, "query", path=path)


def _column(table: pd.DataFrame, name: str, path: Path | None) -> pd.Series:
    by_name = {str(c).strip().lower(): c for c in table.columns}
    if name not in by_name:
        got = ", ".join(repr(str(c)) for c in table.columns)
        raise DataError(f"no column {name!r}: the columns query and {name} are expected, got {got}.", path=path)
    return table[by_name[name]]


def _some(queries: Sequence[str]) -> str:
    """Name a few queries."""
    more = " and others" if len(queries) > NAMED else ""
    return ", ".join(repr(query) for query in queries[:NAMED]) + more
