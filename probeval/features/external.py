"""Features from metadata and labels: groups of documents, machine labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.data.evidence import PairGroups
from probeval.data.problem import Problem
from probeval.errors import FeatureError, did_you_mean

__all__ = ["EXTERNAL", "groups_in_queries", "label", "same_group", "share_of_group"]


def _groups(problem: Problem, column: str) -> PairGroups:
    """Return the groups of each pair's document and query."""
    if not problem.groups:
        raise FeatureError(f"Features of groups need metadata with a column {column!r}.")
    if column not in problem.groups:
        raise FeatureError(f"No column {column!r} in the metadata.{did_you_mean(column, problem.groups)}")
    return problem.groups[column]


def same_group(problem: Problem, column: str) -> Floats:
    """s[column]: whether document and query are in the same group; missing if either's group is unknown."""
    groups = _groups(problem, column)
    return np.where((groups.doc < 0) | (groups.query < 0), np.nan, groups.doc == groups.query)


def groups_in_queries(problem: Problem, column: str) -> Ints:
    """Return a number for each group within each query, -1 if a document's group is unknown, shape (pair,)."""
    doc = _groups(problem, column).doc
    key = problem.pool.query * (int(doc.max(initial=0)) + 1) + doc
    known = doc >= 0
    numbers = np.full(len(doc), -1)
    numbers[known] = np.unique(key[known], return_inverse=True)[1]
    return numbers


def share_of_group(problem: Problem, column: str) -> Floats:
    """f[column]: share of the query's distinct documents that are in the group; missing if it is unknown."""
    number, pool = groups_in_queries(problem, column), problem.pool
    count = np.bincount(number[number >= 0], minlength=1)
    return np.where(number < 0, np.nan, count[number] / pool.sizes[pool.query])


def label(problem: Problem, column: str) -> Floats:
    """label[column]: the label as given; missing if there is none."""
    labels = problem.labels
    if labels is None:
        raise FeatureError(f"label[{column}] needs a table of labels.")
    if column not in labels.sources:
        raise FeatureError(f"No column {column!r} in the labels.{did_you_mean(column, labels.sources)}")
    return labels.values[:, labels.sources.index(column)]


EXTERNAL: dict[str, Callable[[Problem, str], Floats]] = {"s": same_group, "f": share_of_group, "label": label}
