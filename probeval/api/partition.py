"""Campaigns in partitions, from files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from probeval.api.inputs import Progress, as_collection
from probeval.data import Partitions, open_partitions, split, write_partitions
from probeval.data.partitions import PathName

__all__ = ["partition"]

ROWS = 500_000  # retrieved documents of a partition by default: seconds of work and some hundred megabytes


def partition(
    runs: Any,
    folder: PathName,
    n: int | None = None,
    *,
    qrels: Any = None,
    labels: Any = None,
    observers: Any = None,
    teams: Any = None,
    order: str = "trec_eval",
    depth: int | None = None,
    progress: Progress = iter,
) -> Partitions:
    """Write runs, judgments and labels as a campaign in partitions.

    Each partition holds whole queries, so that a campaign of any size is evaluated one partition at a time, on one
    machine or on many. See docs/how-to/dask.md.

    Parameters
    ----------
    runs, qrels, labels, observers, teams, order
        As in :func:`as_collection`.
    folder
        A new or empty folder.
    n
        The number of partitions; by default one per 500,000 retrieved documents.
    depth
        Keep only this many ranks.
    progress
        Wraps the run files while they are read.
    """
    collection = as_collection(
        runs, qrels=qrels, labels=labels, observers=observers, teams=teams, order=order, progress=progress
    )
    if depth is not None:
        collection = replace(collection, runs=collection.runs.top(depth))
    if n is None:
        n = min(-(-int(collection.runs.retrieved.sum()) // ROWS), len(collection.runs.queries))
    write_partitions(split(collection, n), folder)
    return open_partitions(folder)
