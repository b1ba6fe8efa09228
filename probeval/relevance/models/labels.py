r"""Baselines that use machine labels without a model of relevance: taken as grades, or calibrated on the judged pairs.

See docs/theory/relevance-models.md#label-baselines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.pool import Pool
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.errors import ModelError, did_you_mean
from probeval.relevance.models.base import FallbackModel, Finding
from probeval.relevance.models.baseline import Empirical

__all__ = [
    "LABEL_MODELS",
    "CalibratedLabels",
    "LabelsAsGrades",
    "describe_labels",
    "is_label_model",
    "label_model",
    "label_scale",
]

AGREEING = 1.0  # judgments of each label's own grade that are added to those made


@dataclass(frozen=True)
class LabelsAsGrades:
    """Machine labels taken as judgments, with certainty: what labels give without a model.

    A column whose labels range from the lowest to the highest grade is read as grades. Any other is rescaled linearly
    from its own range to that of the grades. A label between two grades is shared between them, so that its expected
    grade is the label. The confidence of a ranking by this model is no evidence: it takes every label for the truth.

    Parameters
    ----------
    column
        The column of labels; None for the mean over all columns, each read as above.

    Examples
    --------
    >>> from probeval.data import LabelTable, Pool, Runs
    >>> runs = Runs.rows(["a"] * 3, ["q"] * 3, ["d1", "d2", "d3"])
    >>> labels = LabelTable(runs.pool, ("llm",), np.array([[0.0], [5.0], [np.nan]]))
    >>> problem = Collection("", runs, labels=labels).problem(depth=3, scale=Scale.binary())
    >>> LabelsAsGrades("llm").probabilities(problem).tolist()
    [[1.0, 0.0], [0.0, 1.0], [nan, nan]]
    """

    column: str | None = None
    kind = "labels"

    def levels(self, scale: Scale) -> Codes:
        """Return every grade of the scale."""
        return np.arange(len(scale), dtype=np.int16)

    def probabilities(self, problem: Problem) -> Floats:
        """Return the grade of each label, NaN rows for pairs without a label, shape (pair, grade)."""
        return _shares(problem.collection.labels, self.column, problem.pool, problem.scale)

    def check(self) -> list[Finding]:
        """Return the problem of every such model: it has no measure of the labels' errors."""
        return [Finding("Labels are taken as certain.", "Do not use the confidence of the ranking.")]

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"kind": self.kind, "column": self.column}


@dataclass(frozen=True)
class CalibratedLabels:
    r"""Machine labels calibrated on the pairs judged so far; pairs are independent given their labels.

    With :math:`n_{\ell g}` the number of judged pairs with label :math:`\ell` and grade :math:`g`,

    .. math:: P(g \mid \ell) = \frac{n_{\ell g} + \lambda\, 1(g = \ell)}{\sum_h n_{\ell h} + \lambda},\ \lambda = 1.

    With nothing judged, labels are taken as they are, by the rules of :class:`LabelsAsGrades`. A label between two
    grades counts for both, in proportion. Fine grades are calibrated in the bins of their scale.

    Parameters
    ----------
    column
        The column of labels; None for the mean over all columns.

    Examples
    --------
    >>> from probeval.data import Judgments, LabelTable, Runs
    >>> runs = Runs.rows(["a"] * 3, ["q"] * 3, ["d1", "d2", "d3"])
    >>> labels = LabelTable(runs.pool, ("llm",), np.array([[0.0], [1.0], [1.0]]))
    >>> judged = Judgments.rows(["q"], ["d2"], [0])
    >>> campaign = Collection("", runs, judged, labels=labels)
    >>> CalibratedLabels("llm").probabilities(campaign.problem(depth=3, scale=Scale.binary())).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    """

    column: str | None = None
    kind = "calibrated"

    def levels(self, scale: Scale) -> Codes:
        """Return the levels of the scale."""
        return scale.levels

    def probabilities(self, problem: Problem) -> Floats:
        """Return P(level) given the label, NaN rows for pairs without a label, shape (pair, level)."""
        labelled = self._by_level(problem.collection, problem.pool, problem.scale)
        return labelled @ self.table(problem.collection, problem.scale)

    def table(self, collection: Collection, scale: Scale) -> Floats:
        """Return P(level of the grade) of each level of the label, by the judgments so far, shape (level, level)."""
        count = AGREEING * np.eye(len(scale.levels))
        if collection.judgments is not None:
            level = scale.level_of(collection.judgments.codes(scale))
            labelled = self._by_level(collection, collection.judgments.pool, scale)
            used = (level >= 0) & ~np.isnan(labelled).any(axis=1)
            count = count + labelled[used].T @ np.eye(len(count))[level[used]]
        return np.asarray(count / count.sum(axis=1, keepdims=True))

    def _by_level(self, collection: Collection, pool: Pool, scale: Scale) -> Floats:
        """Return the share of each level in each label, shape (pair, level)."""
        grades = np.arange(len(scale), dtype=np.int16)
        return _shares(collection.labels, self.column, pool, scale) @ np.eye(len(scale.levels))[scale.level_of(grades)]

    def check(self) -> list[Finding]:
        """Return the problem of every such model: pairs are taken as independent."""
        return [
            Finding("Errors of labels are taken as independent.", "Where they are not, the confidence is too high.")
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"kind": self.kind, "column": self.column}


LABEL_MODELS: Mapping[str, type[LabelsAsGrades] | type[CalibratedLabels]] = {
    "labels": LabelsAsGrades,
    "calibrated": CalibratedLabels,
}


def is_label_model(name: str) -> bool:
    """Whether a name is ``labels`` or ``calibrated``, with or without a column after a colon."""
    return name.partition(":")[0] in LABEL_MODELS


def label_model(name: str, labels: LabelTable | None, rest: Empirical) -> FallbackModel:
    """Return the model of a name such as ``labels`` or ``calibrated:COLUMN``.

    Parameters
    ----------
    name
        A name of :data:`LABEL_MODELS`, and after a colon the column; without one, the mean over all columns.
    labels
        The labels of the campaign.
    rest
        The model of pairs without a label.

    Raises
    ------
    ModelError
        If there are no labels, or no such column.
    """
    kind, _, column = name.partition(":")
    if labels is None:
        raise ModelError(f"The model {kind} needs labels by machines, and there are none: give --labels FILE.")
    if column and column not in labels.sources:
        raise ModelError(
            f"No column {column!r} in the labels: {', '.join(labels.sources)}.{did_you_mean(column, labels.sources)}"
        )
    if not np.any(~np.isnan(_columns(labels, column or None))):
        raise ModelError(f"The labels{f' of {column}' if column else ''} are all empty.")
    return FallbackModel([LABEL_MODELS[kind](column or None), rest])


def label_scale(name: str, labels: LabelTable) -> Scale:
    """Return the scale that the labels of a model suggest; binary if they are no whole numbers from 0 to 100."""
    values = _columns(labels, name.partition(":")[2] or None)
    values = values[~np.isnan(values)]
    whole = np.all(values == np.round(values)) and np.all((values >= 0) & (values <= 100))
    return Scale.infer(values) if whole else Scale.binary()


def describe_labels(name: str, labels: LabelTable, scale: Scale) -> str:
    """Return a sentence on how the labels of a model are read."""
    column = name.partition(":")[2] or (labels.sources[0] if len(labels.sources) == 1 else None)
    grades = f"{scale.grades[0]:g} to {scale.grades[-1]:g}"
    if column is None:
        return (
            f"the mean of {len(labels.sources)} columns of labels, each rescaled from its own range to grades {grades}."
        )
    values = _columns(labels, column)
    low, high = np.nanmin(values), np.nanmax(values)
    if (low, high) == (scale.grades[0], scale.grades[-1]):
        return f"labels of {column} are read as grades {grades}."
    return f"labels of {column}, {low:g} to {high:g}, are rescaled to grades {grades}."


def _columns(labels: LabelTable, column: str | None) -> Floats:
    """Return the labels of one column or of all, shape (pair, column)."""
    return labels.values if column is None else labels.values[:, [labels.sources.index(column)]]


def _shares(labels: LabelTable | None, column: str | None, pool: Pool, scale: Scale) -> Floats:
    """Return the share of each grade in each pair's label, NaN rows without a label, shape (pair, grade)."""
    out = np.full((len(pool), len(scale)), np.nan)
    if labels is None:
        return out
    at = pool.within(labels.pool)
    grade = np.append(_expected_grades(_columns(labels, column), scale), np.nan)[at]
    known = np.flatnonzero(~np.isnan(grade))
    upper = np.searchsorted(scale.values, grade[known]).clip(1, len(scale) - 1)
    below, above = scale.values[upper - 1], scale.values[upper]
    share = (grade[known] - below) / (above - below)
    out[known] = 0.0
    out[known, upper - 1] = 1 - share
    out[known, upper] = share
    return out


def _expected_grades(values: Floats, scale: Scale) -> Floats:
    """Return the mean over columns of labels rescaled to the range of the grades, NaN without any, shape (pair,).

    A column with one value alone has no range: it is cut to that of the grades.
    """
    low, high = scale.values[0], scale.values[-1]
    total, n = np.zeros(len(values)), np.zeros(len(values))
    for column in values.T:
        known = ~np.isnan(column)
        if not known.any():
            continue
        least, most = column[known].min(), column[known].max()
        if least == most:
            total[known] += np.clip(column[known], low, high)
        else:
            total[known] += low + (column[known] - least) / (most - least) * (high - low)
        n += known
    return np.asarray(np.divide(total, n, out=np.full(len(values), np.nan), where=n > 0))
