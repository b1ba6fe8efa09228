"""Experiments of PyTerrier with expected scores, intervals and probabilities beside its own columns.

Only data-frame transformers are needed: no Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import pandas as pd

from probeval.api import Evaluation, NextPairs, evaluate
from probeval.display import Table
from probeval.errors import DataError, MetricError, ProbevalError
from probeval.results import Result, key

if TYPE_CHECKING:
    import ir_measures

__all__ = ["Experiment", "experiment"]

EXPECTED, LOWER, UPPER, BETTER = "expected", "lower", "upper", "P(better)"
COUNTS = {"+": 0, "-": 0}  # PyTerrier's columns of queries, without decimals
RUNTIME = "mrt"  # PyTerrier's name of the mean response time


@dataclass(frozen=True, eq=False, repr=False)
class Experiment(Result):
    """Systems evaluated by PyTerrier, and with the model for the documents that are not judged.

    Parameters
    ----------
    table
        One row per system in the order given: the columns of ``pt.Experiment``, then for each measure M its expected
        score (``M expected``), the interval (``M lower``, ``M upper``) and the probability of a higher score than the
        baseline's (``M P(better)``).
    evaluations
        The evaluation by each measure; systems have their names in the table, with ``_`` for white space.
    """

    table: pd.DataFrame
    evaluations: Mapping[str, Evaluation]
    baseline: Annotated[str | None, "The system that the others are compared with, or null."]

    def _headline(self) -> str:
        judged = next(iter(self.evaluations.values())).scores
        return (
            f"{', '.join(self.evaluations)} of {len(self.table)} systems on {len(judged.queries)} queries, "
            f"{judged.judged:,} of {judged.pool:,} pairs judged"
        )

    def next(self, n: int = 20, *, metric: str | None = None, **options: Any) -> NextPairs:
        """The next pairs to judge for the order of the systems by a measure, by default the first.

        The options are those of :meth:`probeval.Evaluation.next`.
        """
        if metric is not None and metric not in self.evaluations:
            raise MetricError(f"The experiment has no expected scores by {metric!r}: {', '.join(self.evaluations)}.")
        return self.evaluations[metric or next(iter(self.evaluations))].next(n, **options)

    def to_frame(self) -> pd.DataFrame:
        """One row per system: PyTerrier's columns, then those of the expected scores."""
        return self.table

    @key
    def level(self) -> float:
        """The probability of the intervals."""
        return next(iter(self.evaluations.values())).level

    @key
    def systems(self) -> list[dict[str, str | float | None]]:
        """The rows of the table; null for an empty cell."""
        filled = self.table.astype(object).where(self.table.notna(), None)
        return cast("list[dict[str, str | float | None]]", filled.to_dict("records"))

    def tables(self) -> tuple[Table, ...]:
        """One table per measure, its expected scores with their intervals; then PyTerrier's columns without any."""
        ours = []
        for name in self.evaluations:
            own = {c: c.removeprefix(f"{name} ") for c in self.table.columns if _measure_of(c, [name]) is not None}
            frame = self.table[["name", *own]].rename(columns=own)
            ours.append(Table(frame, name, COUNTS, (EXPECTED, LOWER, UPPER)))
        others = [c for c in self.table.columns if _measure_of(c, self.evaluations) is None]
        counts = {column: 0 for column in others if column.endswith(tuple(COUNTS))}
        return (*ours, *([Table(self.table[others], "by the judgments alone", counts)] if len(others) > 1 else []))

    def sentences(self) -> list[str]:
        """The number of judged pairs, the ideal list, and notes on the data and the model."""
        return next(iter(self.evaluations.values())).sentences()


def experiment(
    systems: Sequence[Any] | Mapping[str, Any],
    topics: pd.DataFrame,
    qrels: pd.DataFrame | None,
    metrics: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    baseline: int | str | None = None,
    test: Any = "t",
    correction: str | None = None,
    level: float = 0.95,
    **options: Any,
) -> Experiment:
    """Run ``pt.Experiment`` and evaluate the same results with a model for the documents that are not judged.

    Every system is run once. PyTerrier's columns are by the judgments alone: unjudged documents count as not relevant.

    Parameters
    ----------
    systems
        Transformers of PyTerrier or frames of results (qid, docno, score), in a list, or in a mapping by name.
    topics
        A frame with the columns qid and query.
    qrels
        A frame with the columns qid, docno and label. None if nothing is judged: PyTerrier's columns are then left out.
    metrics
        Measures as ``pt.Experiment`` takes them: of ir_measures, or names of trec_eval such as ``"map"``. Measures
        without an expected value, such as ``Judged@10``, are computed by PyTerrier alone.
    names
        A name for each system; by default the text of a transformer, and run1, run2, .. for frames.
    baseline
        The position or the name of the system that the others are compared with.
    test, correction
        The significance test of PyTerrier, and its correction for several comparisons.
    level
        The probability of intervals.
    options
        Options of :func:`probeval.evaluate`: ``labels``, ``docs``, ``model``, ``scale``, ``pool`` and others.

    Examples
    --------
    >>> import pandas as pd
    >>> from ir_measures import P
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["cats", "dogs"]})
    >>> bm25 = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d4"], "score": [2.0, 1.0, 1.5]})
    >>> dense = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d3", "d2", "d5"], "score": [0.9, 0.8, 0.9]})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d2", "d5"], "label": [1, 0]})
    >>> done = experiment(
    ...     {"bm25": bm25, "dense": dense}, topics, qrels, [P @ 2], baseline="bm25", scale="binary", model="uniform"
    ... )
    >>> done.to_frame()[["name", "P@2", "P@2 expected", "P@2 P(better)"]]
        name   P@2  P@2 expected  P@2 P(better)
    0   bm25  0.25         0.500            NaN
    1  dense  0.25         0.375       0.281851
    """
    try:
        pyterrier = import_module("pyterrier")
    except ImportError:
        raise ProbevalError("This adapter needs PyTerrier: pip install 'probeval[tools]'.") from None
    from probeval.adapters.ir_measures import expected_metric

    measures = _measures(metrics)
    _check(topics, "topics", "qid", "query")
    if qrels is not None:
        _check(qrels, "qrels", "qid", "docno", "label")
    results = _results(systems, topics, names)
    against = _baseline(baseline, list(results))
    expected = {}
    for name, measure in measures.items():
        try:
            expected[name] = expected_metric(measure)
        except MetricError:
            continue
    if not expected:
        raise MetricError(f"None of {', '.join(measures)} has an expected value. Give one that has, such as nDCG@10.")
    runs = {_system(name): result for name, result in results.items()}
    first, *others = expected.values()
    done = evaluate(runs, first, qrels=_judged(qrels, topics), level=level, **options)
    evaluations = dict(zip(expected, [done, *(done.by(metric) for metric in others)], strict=True))
    table = pd.DataFrame({"name": list(results)})
    if qrels is not None:
        position = None if against is None else list(results).index(against)
        table = pyterrier.Experiment(
            list(results.values()), topics, qrels, list(metrics), names=list(results), baseline=position, test=test,
            correction=correction,
        )  # fmt: skip
        table = table[["name", *_ordered(table.columns, measures)]]  # PyTerrier's order varies from run to run
    columns = [_columns(name, evaluation, list(runs), against) for name, evaluation in evaluations.items()]
    return Experiment(pd.concat([table, *columns], axis=1), evaluations, against)


def _measures(metrics: Sequence[Any]) -> dict[str, ir_measures.Measure]:
    """Measures of ir_measures by the names of their columns in a table of PyTerrier."""
    import ir_measures

    found: dict[str, ir_measures.Measure] = {}
    for given in metrics:
        if isinstance(given, ir_measures.Measure):
            found[str(given)] = given
            continue
        if given == RUNTIME:
            raise MetricError(f"{RUNTIME} is not a measure of results: take it from pt.Experiment.")
        try:
            named = ir_measures.parse_trec_measure(given)
        except (ValueError, TypeError, AttributeError):
            raise MetricError(
                f"A measure in PyTerrier is one of ir_measures, such as nDCG@10 (from ir_measures import nDCG), or a "
                f"name of trec_eval such as 'ndcg_cut_10'; got {given!r}."
            ) from None
        found |= {given: named[0]} if len(named) == 1 else {str(measure): measure for measure in named}
    if not found:
        raise MetricError("no measure was named. Give at least one, such as nDCG@10.")
    return found


def _check(frame: pd.DataFrame, what: str, *columns: str) -> None:
    """Raise an error if a frame of PyTerrier lacks a column."""
    if not set(columns) <= set(frame.columns):
        got = ", ".join(map(str, frame.columns))
        raise DataError(f"{what} must have the columns {', '.join(columns)}, as in PyTerrier; got {got}.")


def _results(
    systems: Sequence[Any] | Mapping[str, Any], topics: pd.DataFrame, names: Sequence[str] | None
) -> dict[str, pd.DataFrame]:
    """The results of every system by its name, each run once."""
    if isinstance(systems, Mapping):
        names, systems = list(systems), list(systems.values())
    if names is None:
        frames = [isinstance(system, pd.DataFrame) for system in systems]
        names = [f"run{i + 1}" if frame else str(systems[i]) for i, frame in enumerate(frames)]
    if len(names) != len(systems):
        raise DataError(f"{len(systems)} systems need as many names, got {len(names)}.")
    if not names:
        raise DataError("no systems were named. Give transformers or frames of results.")
    if len({_system(name) for name in names}) < len(names):
        raise DataError(f"two systems have one name: {', '.join(names)}. Give distinct ones: names=[..].")
    results = {}
    for name, system in zip(names, systems, strict=True):
        result = system if isinstance(system, pd.DataFrame) else system(topics)
        if result.empty:
            raise DataError(f"the system {name!r} has no results for these topics.")
        results[name] = result
    return results


def _baseline(baseline: int | str | None, names: Sequence[str]) -> str | None:
    """The name of the baseline."""
    if baseline is None or baseline in names:
        return None if baseline is None else str(baseline)
    if isinstance(baseline, str) or not 0 <= baseline < len(names):
        raise DataError(
            f"the baseline must be a position up to {len(names) - 1} or one of {', '.join(names)}; got {baseline!r}."
        )
    return names[baseline]


def _judged(qrels: pd.DataFrame | None, topics: pd.DataFrame) -> pd.DataFrame | None:
    """The judgments of these topics."""
    return None if qrels is None else qrels[qrels["qid"].isin(set(topics["qid"]))]


def _system(name: str) -> str:
    """The name of a system without white space."""
    return "_".join(name.split())


def _columns(name: str, evaluation: Evaluation, systems: Sequence[str], baseline: str | None) -> pd.DataFrame:
    """The expected scores by a measure, with intervals, in the order of the systems."""
    rows = evaluation.scores.to_frame().set_index("system").loc[list(systems)]
    columns: dict[str, Any] = {EXPECTED: rows["mean"], LOWER: rows["lower"], UPPER: rows["upper"]}
    if baseline is not None:
        other = _system(baseline)
        columns[BETTER] = [np.nan if s == other else evaluation.compare(s, other).p_better for s in systems]
    return pd.DataFrame({f"{name} {column}": np.asarray(values) for column, values in columns.items()})


def _measure_of(column: str, measures: Iterable[str]) -> str | None:
    """The measure that a column is of: the column's name is that of the measure, or begins with it and a space."""
    return next((name for name in measures if column == name or column.startswith(f"{name} ")), None)


def _ordered(columns: Sequence[str], measures: Mapping[str, Any]) -> list[str]:
    """The columns of a table of PyTerrier: the measures as asked for, then what compares them with the baseline."""
    rest = [c for c in columns if c != "name" and c not in measures]
    return [*measures, *(c for name in measures for c in rest if _measure_of(c, [name]) == name)]
