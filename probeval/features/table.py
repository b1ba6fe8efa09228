"""Compute named features of a campaign."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from probeval.arrays import Floats
from probeval.data.problem import Problem
from probeval.errors import FeatureError, ProbevalWarning
from probeval.features.external import EXTERNAL, groups_in_queries
from probeval.features.judged import JudgedFeatures, Neighbours
from probeval.features.outputs import OUTPUTS, Retrievals, SystemAgreement
from probeval.features.spec import FeatureName, FeatureTable

__all__ = ["compute_features", "judged_features", "mean_columns", "relevance_of"]


def compute_features(
    problem: Problem,
    names: Iterable[str],
    *,
    judged: JudgedFeatures | None = None,
    common: Mapping[int, SystemAgreement] | None = None,
) -> FeatureTable:
    """Compute the named features of every pair of a pool.

    Parameters
    ----------
    problem
        Runs, and the judgments, metadata, labels and vectors that the features need.
    names
        Features of :mod:`probeval.features.spec`.
    judged
        Running totals for judgment features, if the caller maintains them; computed here by default.
    common
        What features take from all queries, by the depth of the lists, if the problem is part of a larger one.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> compute_features(campaign.problem(depth=5), ["fSYS", "aDOC", "f[source]"])
    <FeatureTable: 35 pairs, fSYS, aDOC, f[source]>
    """
    parsed = [FeatureName.parse(name) for name in names]
    if not parsed:
        raise FeatureError("No feature was named.")
    pool = problem.pool
    if judged is None and any("judgments" in name.definition.needs for name in parsed):
        judged = judged_features(problem, mean_columns(parsed))
    deep: dict[int, Retrievals] = {}

    def column(name: FeatureName) -> Floats:
        if name.stem in OUTPUTS:
            far = name.depth or problem.depth
            if far not in deep:
                deep[far] = Retrievals(problem, far, None if common is None else common[far])
            return OUTPUTS[name.stem](deep[far])
        if name.stem in EXTERNAL:
            return EXTERNAL[name.stem](problem, str(name.column))
        assert judged is not None
        return _from_judgments(judged, name)

    numbers = {} if judged is None else {str(n): _number(judged, n) for n in parsed if n.definition.shrinkage}
    table = FeatureTable(pool, tuple(map(str, parsed)), np.stack([column(n) for n in parsed], axis=1), numbers)
    lost = {str(name): n for name in parsed if (n := _unknown(table, name, judged))}
    if lost:
        counts = ", ".join(f"{name} for {n:,}" for name, n in lost.items())
        warnings.warn(
            f"Missing for some of {len(pool):,} pairs (missing is not zero): {counts}.", ProbevalWarning, stacklevel=2
        )
    return table


def mean_columns(names: Iterable[FeatureName]) -> list[str]:
    """Return the columns within which relevance is averaged."""
    return [name.column for name in names if name.stem == "a" and name.column]


def judged_features(problem: Problem, columns: Iterable[str] = ()) -> JudgedFeatures:
    """Return running totals over the judgments, including those within the named groupings."""
    groups = {column: groups_in_queries(problem, column) for column in columns}
    return JudgedFeatures.of(Neighbours.of(problem.runs, groups=groups, vectors=problem.vectors), relevance_of(problem))


def relevance_of(problem: Problem) -> Floats:
    """Return the judged relevance of each pair: grade over top grade, NaN where unjudged, shape (pair,)."""
    values = problem.scale.values
    return np.append(values / values[-1], [np.nan] * 3)[problem.grades.median]


def _unknown(table: FeatureTable, name: FeatureName, judged: JudgedFeatures | None) -> int:
    """Count the pairs without the user's input to a feature; pairs that are only unjudged do not count."""
    needs = name.definition.needs
    if "judgments" not in needs:
        return table.missing.get(str(name), 0) if {"metadata", "labels"} & set(needs) else 0
    assert judged is not None
    if name.stem == "a":
        return int((judged.neighbours.groups[str(name.column)] < 0).sum())
    vectors = judged.neighbours.vectors
    return int((~vectors.known).sum()) if name.stem == "aSIM" and vectors is not None else 0


def _number(judged: JudgedFeatures, name: FeatureName) -> Floats:
    """Return the number of judged documents in a mean over judgments, shape (pair,)."""
    if name.stem == "a":
        return judged.group_number(str(name.column))
    return judged.query_number() if name.stem == "aDOC" else judged.system_number()


def _from_judgments(judged: JudgedFeatures, name: FeatureName) -> Floats:
    if name.stem == "a":
        return judged.group_mean(str(name.column))
    read = {
        "aSYS": judged.system_mean,
        "dSYS": judged.system_difference,
        "aDOC": judged.query_mean,
        "nDOC": judged.query_count,
        "aSIM": judged.most_similar,
    }
    return read[name.stem]()
