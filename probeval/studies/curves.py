"""Precision against recall, true against false positives, and the counts behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probeval.arrays import Floats, Ids, Ints
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record, Table
from probeval.metrics.lists import Lists
from probeval.metrics.weights import divide
from probeval.results import Result, frame, key, rows

__all__ = [
    "CURVES",
    "Confusion",
    "Curves",
    "SystemCurves",
    "confusion",
    "interpolated_precision",
    "measure_curves",
    "precision_recall",
    "roc",
]

CURVES = ("precision-recall", "roc", "counts")
LEVELS = np.arange(11) / 10  # linspace's .3 is not .3
COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives", "unjudged")
RATES = ("precision", "recall", "specificity", "accuracy")


@dataclass(frozen=True, eq=False, repr=False)
class Confusion(Record):
    """Confusion counts of lists and the rates that follow, each with shape (.., system, query).

    Judged documents alone count, retrieved or not. A rate is NaN where it is 0 of 0.
    """

    true_positives: Ints
    false_positives: Ints
    false_negatives: Ints
    true_negatives: Ints
    unjudged: Ints

    @property
    def precision(self) -> Floats:
        """The share of the retrieved documents that are relevant."""
        return _share(self.true_positives, self.false_positives)

    @property
    def recall(self) -> Floats:
        """The share of the relevant documents that are retrieved: the true positive rate, or sensitivity."""
        return _share(self.true_positives, self.false_negatives)

    @property
    def specificity(self) -> Floats:
        """The share of the documents that are not relevant that are not retrieved: 1 - the false positive rate."""
        return _share(self.true_negatives, self.false_positives)

    @property
    def accuracy(self) -> Floats:
        """The share of the documents that are relevant and retrieved, or neither."""
        return _share(self.true_positives + self.true_negatives, self.false_positives + self.false_negatives)


def _share(part: Ints, rest: Ints) -> Floats:
    total = part + rest
    return np.where(total == 0, np.nan, part / np.maximum(total, 1))


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
    levels = LEVELS if recall is None else np.asarray(recall)
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


@dataclass(frozen=True, repr=False)
class SystemCurves(Record):
    """A system's curves and counts."""

    system: str
    true_positives: Annotated[int, "Relevant documents in the first ranks, over all queries."]
    false_positives: Annotated[int, "Documents there that are judged not relevant."]
    false_negatives: Annotated[int, "Relevant documents elsewhere."]
    true_negatives: Annotated[int, "Documents elsewhere that are judged not relevant."]
    unjudged: Annotated[int, "Unjudged documents in the first ranks."]
    precision: Annotated[float, "The mean over queries, as are the next four."]
    recall: float
    specificity: float
    accuracy: float
    area: Annotated[float, "The area under the ROC curve."]
    interpolated_precision: Annotated[
        tuple[float, ...], "The highest precision at or after each level of recall, as a mean over queries."
    ]
    false_positive_rate: Annotated[tuple[float, ...], "Of the ROC curve, from rank 0 on, as a mean over queries."]
    true_positive_rate: Annotated[tuple[float, ...], "Of the ROC curve, likewise."]


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Result):
    """Precision-recall and ROC curves of systems, and the counts behind them.

    Parameters
    ----------
    systems, queries, scale
        The labels of the axes, and the scale of the grades.
    interpolated
        The highest precision at or after the eleven levels of recall, shape (system, query, level).
    false_rate, true_rate
        The ROC curve, from (0, 0), shape (system, query, rank + 1); NaN for queries whose judged documents are all
        relevant, or none.
    counts
        The counts in the first ranks, shape (system, query).
    show
        The table to show, one of :data:`CURVES`; None for precision and counts, of which CSV has the counts.
    """

    systems: tuple[str, ...]
    queries: Ids
    scale: Scale
    rel: Annotated[float, "The lowest grade that counts as relevant."]
    depth: Annotated[int, "The number of ranks."]
    interpolated: Floats
    false_rate: Floats
    true_rate: Floats
    counts: Confusion
    show: str | None = None

    @key.named("scale")
    def scale_text(self) -> str:
        """The scale of the grades."""
        return str(self.scale)

    @key.named("queries")
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.queries)

    @key
    def recall_levels(self) -> tuple[float, ...]:
        """The levels of recall."""
        return tuple(LEVELS.tolist())

    @key.named("systems")
    def by_system(self) -> tuple[SystemCurves, ...]:
        """One entry per system."""
        return rows(
            SystemCurves,
            system=self.systems,
            **{name: getattr(self.counts, name).sum(axis=-1) for name in COUNTS},
            **{name: _mean(getattr(self.counts, name)) for name in RATES},
            area=_mean(self.area),
            interpolated_precision=self.interpolated.mean(axis=1),
            false_positive_rate=_mean(self.false_rate),
            true_positive_rate=_mean(self.true_rate),
        )

    @property
    def area(self) -> Floats:
        """The area under each ROC curve, continued by a straight line to (1, 1), shape (system, query).

        It is the probability that a relevant document is ranked above one that is not; those that are not retrieved
        are tied.
        """
        false = np.concatenate([self.false_rate, np.ones_like(self.false_rate[..., :1])], axis=-1)
        true = np.concatenate([self.true_rate, np.ones_like(self.true_rate[..., :1])], axis=-1)
        return np.asarray((np.diff(false) * (true[..., 1:] + true[..., :-1]) / 2).sum(axis=-1))

    def to_frame(self) -> pd.DataFrame:
        """The rows of the table to show: those of the curve in question, or of the counts."""
        if self.show == "precision-recall":
            return self.precision_frame()
        return self.roc_frame() if self.show == "roc" else self.counts_frame()

    def counts_frame(self) -> pd.DataFrame:
        """One row per system: counts over all queries; precision, recall, specificity, accuracy and area as means."""
        return frame(self.by_system, SystemCurves)[["system", *COUNTS, *RATES, "area"]]

    def precision_frame(self) -> pd.DataFrame:
        """One row per system and level of recall: system, recall, precision."""
        return _long(self.systems, recall=LEVELS, precision=self.interpolated.mean(axis=1))

    def roc_frame(self) -> pd.DataFrame:
        """One row per system and rank, from 0 on: system, rank, false_positive_rate, true_positive_rate."""
        rates = {"false_positive_rate": _mean(self.false_rate), "true_positive_rate": _mean(self.true_rate)}
        return _long(self.systems, rank=np.arange(self.depth + 1), **rates)

    def _headline(self) -> str:
        n, queries = len(self.systems), len(self.queries)
        counted = f"{n} system{'s' * (n != 1)} on {queries} {'query' if queries == 1 else 'queries'}"
        return f"{counted}, relevant from grade {self.rel:g} on"

    def tables(self) -> tuple[Table, ...]:
        """Precision at levels of recall, and the counts; or the one to show."""
        if self.show == "roc":
            return (Table(self.roc_frame()),)
        precision = pd.DataFrame({"system": self.systems})
        for level, column in zip(LEVELS, self.interpolated.mean(axis=1).T, strict=True):
            precision[f"{level:.1f}"] = column
        found = {
            "precision-recall": Table(precision, "Precision at levels of recall"),
            "counts": Table(self.counts_frame(), f"Judged documents in the first {self.depth} ranks"),
        }
        return tuple(found.values()) if self.show is None else (found[self.show],)

    def sentences(self) -> tuple[str, ...]:
        """The systems, queries and grades that the curves are of."""
        return (f"Curves: {self._headline()}, scale {self.scale}.",)


def _mean(values: Floats) -> Floats:
    """The mean over queries (the second axis) of values that are defined, NaN where none is."""
    known = ~np.isnan(values)
    total, n = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    return np.where(n == 0, np.nan, total / np.maximum(n, 1))


def _long(systems: tuple[str, ...], **columns: NDArray[np.generic]) -> pd.DataFrame:
    """One row per system and point, of columns with shape (point,) or (system, point)."""
    points = next(iter(columns.values())).shape[-1]
    values = {name: np.broadcast_to(column, (len(systems), points)).ravel() for name, column in columns.items()}
    return pd.DataFrame({"system": np.repeat(np.array(systems, dtype=object), points), **values})


def measure_curves(
    runs: Runs,
    judgments: Judgments,
    *,
    scale: Scale | None = None,
    rel: float = 1,
    depth: int | None = None,
    rule: str = "median",
) -> Curves:
    """Compute the precision-recall and ROC curves of every system, and its counts, by the judgments alone.

    Parameters
    ----------
    runs, judgments
        The runs and the judgments; queries in both count.
    scale
        The scale of the grades; inferred by default.
    rel
        The lowest grade that counts as relevant.
    depth
        The number of ranks; the whole run by default.
    rule
        The rule that combines grades of several assessors (:data:`probeval.data.judgments.RULES`).

    Examples
    --------
    >>> from probeval.data import as_judgments, as_runs
    >>> runs = as_runs({"a": {"q": {"d1": 4, "d2": 3, "d3": 2, "d4": 1}}})
    >>> found = measure_curves(runs, as_judgments({"q": {"d1": 1, "d2": 0, "d3": 1, "d4": 0}}), depth=3)
    >>> found.to_frame()[["true_positives", "specificity", "accuracy", "area"]]
       true_positives  specificity  accuracy  area
    0               2          0.5      0.75  0.75
    """
    scale = judgments.scale(scale, rule=rule)
    runs = runs.top(depth or runs.depth)
    lists, queries = Lists.judged(runs, judgments, scale, rule=rule)
    false, true = roc(lists, rel=rel)
    relevant, total = lists.n_relevant(rel), lists.n_relevant(-np.inf)
    defined = ((relevant > 0) & (relevant < total))[..., None]
    return Curves(
        systems=runs.systems,
        queries=queries,
        scale=scale,
        rel=rel,
        depth=runs.depth,
        interpolated=interpolated_precision(lists, rel=rel),
        false_rate=np.where(defined, false, np.nan),
        true_rate=np.where(defined, true, np.nan),
        counts=confusion(lists, rel=rel),
    )
