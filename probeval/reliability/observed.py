"""The input of reliability studies: scores as one array over the facets of a design, with gaps if missing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, frozen
from probeval.data.judgments import Judgments
from probeval.data.queries import as_clusters
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.tables import NAMES, ids, numbers, read_table
from probeval.display import Described, Table
from probeval.errors import DataError, ProbevalWarning, ReliabilityError, did_you_mean
from probeval.metrics import AnyMetric, Measured, measure
from probeval.reliability.designs import Design
from probeval.scores import Scores
from probeval.ties import TIE

__all__ = ["Observed", "observe", "observe_assessors", "read_scores"]

CROSSED = Design(("system", "query"))
FLAT = 1e-20  # smaller variances are due to rounding
SCORE = ("score", "value", "mean")  # the names of the column of scores in a long table


@dataclass(frozen=True, eq=False, repr=False)
class Observed(Described):
    """Scores over the facets of a design.

    Parameters
    ----------
    design
        The facets and their nesting.
    labels
        The levels of each facet; those of a nested one are numbers within each level of the facets above it.
    values
        The scores, shape (draw, facet, ..): one draw if scores are known, NaN if missing.

    Examples
    --------
    >>> Observed.matrix([[0.1, 0.4, 0.3], [0.3, 0.5, 0.7]], ["a", "b"])
    <Observed: s x q, 2 systems, 3 queries>
    """

    design: Design
    labels: Mapping[str, tuple[str, ...]]
    values: Floats

    def __post_init__(self) -> None:
        shape = tuple(len(self.labels[f]) for f in self.design.facets)
        if self.values.shape[1:] != shape or not len(self.values):
            raise ReliabilityError(f"Scores of {self.design} must have shape (draw, {', '.join(map(str, shape))}).")
        for facet, names in self.labels.items():
            if len(set(names)) < len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise ReliabilityError(f"{facet} {twice!r} stands twice. Rename one.")
        object.__setattr__(self, "values", frozen(self.values))

    def _headline(self) -> str:
        gaps = f", {self.missing:,} missing" if self.missing else ""
        draws = f", {len(self.values):,} draws" if self.is_uncertain else ""
        return f"{self.design}, {self.sizes_text()}{gaps}{draws}"

    def tables(self) -> tuple[Table, ...]:
        """The number of levels of each facet."""
        return (Table(pd.DataFrame({"facet": list(self.sizes), "levels": self.sizes.values()}), self._headline()),)

    def sizes_text(self) -> str:
        """Return the number of levels of each facet, as text."""
        return ", ".join(f"{n} {_plural(facet, n)}" for facet, n in self.sizes.items())

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels of each facet."""
        return {f: len(self.labels[f]) for f in self.design.facets}

    @property
    def missing(self) -> int:
        """The number of cells without a score."""
        return int(np.isnan(self.values[0]).sum())

    @property
    def is_uncertain(self) -> bool:
        """Whether there are joint draws of the scores instead of known scores."""
        return len(self.values) > 1

    def check(self) -> None:
        """Raise an error for scores without variance; warn of irregularities."""
        if np.isinf(self.values).any():
            raise ReliabilityError("Scores must be finite. Leave a cell empty where there is no score.")
        for facet, size in self.sizes.items():
            if size < 2:
                raise ReliabilityError(
                    f"{self.design} needs two of each facet to see how much it varies, and there is one {facet}."
                )
            axes = tuple(i + 1 for i, f in enumerate(self.design.facets) if f != facet)
            empty = np.isnan(self.values).all(axis=(0, *axes))
            if empty.any():
                raise ReliabilityError(
                    f"{facet} {self.labels[facet][int(np.argmax(empty))]!r} has no score. Leave it out."
                )
        if np.nanmax(np.nanvar(self.values.reshape(len(self.values), -1), axis=1)) < FLAT:
            raise ReliabilityError(f"Every score is {np.nanmean(self.values):g}: there is no variance to study.")
        if self.missing:
            _warn(f"{self.missing:,} of {self.values[0].size:,} scores are missing.")
        twins = self._twins()
        if twins:
            a, b = twins[0]
            more = f", and {len(twins) - 1} more pairs" if len(twins) > 1 else ""
            _warn(f"{a} and {b} have the same scores{more}: they count as different systems all the same.")

    def _twins(self) -> list[tuple[str, str]]:
        """Return pairs of systems with identical scores, in the order of their scores."""
        if self.design.objects != ("system",):
            return []
        names = self.labels["system"]
        rows = np.moveaxis(self.values, 1, 0).reshape(len(names), -1)
        first: dict[bytes, str] = {}
        found = []
        for name, row in zip(names, rows, strict=True):
            other = first.setdefault(row.tobytes(), name)
            if other != name:
                found.append((other, name))
        return found

    @property
    def averaged(self) -> dict[str, float]:
        """The number of levels of each facet; for a nested one with gaps, the harmonic mean."""
        sizes: dict[str, float] = dict(self.sizes)
        known = np.isfinite(self.values[0])
        for facet, above in self.design.within.items():
            others = tuple(i for i, f in enumerate(self.design.facets) if f != facet and f not in above)
            seen = known.any(axis=others)
            kept = [f for f in self.design.facets if f == facet or f in above]
            counts = seen.sum(axis=kept.index(facet))
            if counts.min() < self.sizes[facet]:
                sizes[facet] = float(1 / np.mean(1 / counts[counts > 0]))
        return sizes

    @classmethod
    def matrix(
        cls, values: object, systems: Sequence[str] | None = None, queries: Sequence[str] | None = None
    ) -> Observed:
        """Return scores from an array of shape (system, query), or joint draws of shape (draw, system, query)."""
        array = np.asarray(values, dtype=float)
        array = array[None] if array.ndim == 2 else array
        if array.ndim != 3:
            raise ReliabilityError(
                f"Scores must have shape (system, query) or (draw, system, query), got {array.shape}."
            )
        systems = [str(i + 1) for i in range(array.shape[1])] if systems is None else systems
        queries = [str(i + 1) for i in range(array.shape[2])] if queries is None else queries
        return cls(CROSSED, {"system": tuple(systems), "query": tuple(map(str, queries))}, array)

    @classmethod
    def long(cls, table: pd.DataFrame, design: Design | str, *, path: Path | None = None) -> Observed:
        """Return scores from a table with a column per facet and one for the score, one row per cell."""
        design = Design.parse(design) if isinstance(design, str) else design
        columns = {f: ids(table[_column(table, f, path)], f, path=path) for f in design.facets}
        score = numbers(table[_column(table, "score", path)], "score", path=path, missing=True)
        frame = pd.DataFrame(columns)
        for facet, above in design.within.items():  # levels of a nested facet are numbered within the facets above
            outer = [g for g in design.facets if g in above]
            frame[facet] = frame.groupby(outer)[facet].transform(lambda v: pd.factorize(v)[0] + 1).astype(str)
        twice = frame.duplicated()
        if twice.any():
            cell = ", ".join(f"{f} {columns[f][int(np.argmax(twice))]!r}" for f in design.facets)
            others = [
                str(c) for c in table.columns if c not in {_column(table, f, path) for f in (*design.facets, "score")}
            ]
            hint = f" Is {others[0]!r} another facet? Name it in the design." if others else ""
            raise DataError(f"several scores for {cell}.{hint}", path=path)
        labels = {f: tuple(dict.fromkeys(frame[f])) for f in design.facets}
        values = np.full((1, *map(len, labels.values())), np.nan)
        at = tuple(pd.Index(labels[f]).get_indexer(pd.Index(frame[f])) for f in design.facets)
        values[(0, *at)] = score
        return cls(design, labels, values)

    def take(self, facet: str, kept: Bools) -> Observed:
        """Return the scores of some levels of a facet."""
        names = tuple(n for n, keep in zip(self.labels[facet], kept, strict=True) if keep)
        axis = self.design.facets.index(facet) + 1
        return replace(self, labels={**self.labels, facet: names}, values=np.compress(kept, self.values, axis=axis))

    def clustered(self, clusters: Mapping[str, str] | pd.DataFrame | PathLike[str] | str | None) -> Observed:
        """Return the mean scores over each cluster of queries, such as those of one user: a cluster is then a query.

        Examples
        --------
        >>> scores = Observed.matrix([[0.1, 0.4, 0.3], [0.3, 0.5, 0.7]], ["a", "b"], ["q1", "q2", "q3"])
        >>> scores.clustered({"q1": "ann", "q2": "bob", "q3": "bob"}).values[0]
        array([[0.1 , 0.35],
               [0.3 , 0.6 ]])
        """
        if clusters is None:
            return self
        nested = {"query"} & {*self.design.within, *(f for above in self.design.within.values() for f in above)}
        if "query" not in self.design.facets or nested:
            raise ReliabilityError(
                f"Clusters are of queries, and {self.design} has none that are crossed with the rest."
            )
        at = as_clusters(clusters, self.labels["query"])
        first = [self.labels["query"][int(np.argmax(at == cluster))] for cluster in range(at.max() + 1)]
        axis = self.design.facets.index("query") + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a mean of no score is missing
            parts = [np.nanmean(np.compress(at == c, self.values, axis=axis), axis=axis) for c in range(len(first))]
        return replace(self, labels={**self.labels, "query": tuple(first)}, values=np.stack(parts, axis=axis))

    def drop(self, share: float) -> Observed:
        """Return the scores without the worst ``share`` of the systems by mean score; ties at the border stay.

        Failed systems tell little about competitive ones, and make any collection look reliable.
        """
        if not 0 <= share < 1:
            raise ReliabilityError(f"The share of systems to drop is from 0 to below 1, got {share:g}.")
        if self.design.objects != ("system",):
            raise ReliabilityError(f"Only whole systems can be dropped, and {self.design} has parts of systems.")
        means = np.nanmean(np.moveaxis(self.values, 1, 0).reshape(self.values.shape[1], -1), axis=1)
        return self.take("system", means >= np.quantile(means, share) - TIE)

    def split_systems(self, pattern: str) -> Observed:
        """Return the scores over the components in the systems' names.

        ``"stop_stemmer_model"`` splits ``lucene_porter_bm25`` at each ``_``. The first character of the pattern that is
        neither letter nor digit is the separator. Combinations without a run are missing.

        Examples
        --------
        >>> scores = Observed.matrix([[0.1, 0.4], [0.3, 0.5]], ["porter_bm25", "krovetz_lm"])
        >>> scores.split_systems("stemmer_model")
        <Observed: stemmer x model x q, 2 stemmers, 2 models, 2 queries, 4 missing>
        """
        between = next((c for c in pattern if not c.isalnum()), None)
        names = [pattern] if between is None else pattern.split(between)
        if self.design.objects != ("system",):
            raise ReliabilityError(f"Only whole systems can be split, and {self.design} has parts of systems already.")
        parts = [[s] if between is None else s.split(between) for s in self.labels["system"]]
        wrong = next((s for s, p in zip(self.labels["system"], parts, strict=True) if len(p) != len(names)), None)
        if wrong is not None or len(names) < 2:
            raise ReliabilityError(f"The pattern {pattern!r} does not fit {wrong or 'systems of several parts'!r}.")
        constant = [n for i, n in enumerate(names) if len({p[i] for p in parts}) == 1]
        kept = [i for i, n in enumerate(names) if n not in constant]  # a constant part is no facet
        labels = {names[i]: tuple(dict.fromkeys(p[i] for p in parts)) for i in kept}
        shape = tuple(map(len, labels.values()))
        values = np.full((len(self.values), *shape, *self.values.shape[2:]), np.nan)
        at = tuple(np.array([labels[names[i]].index(p[i]) for p in parts]) for i in kept)
        cells: Any = (slice(None), *at)
        values[cells] = self.values
        conditions = {f: self.labels[f] for f in self.design.conditions}
        design = Design((*labels, *self.design.conditions), self.design.within)
        return Observed(design, {**labels, **conditions}, values)


def observe(source: object) -> Observed:
    """Convert results to scores for a reliability study.

    Takes :class:`Observed`; :class:`~probeval.metrics.Measured` (judged scores); :class:`~probeval.scores.Scores` with
    draws by query (``evaluate(.., method="draws", per_query=True)``); a data frame or array, rows queries and columns
    systems.

    Examples
    --------
    >>> observe(pd.DataFrame({"bm25": [0.1, 0.4, 0.3], "lm": [0.3, 0.5, 0.7]}))
    <Observed: s x q, 2 systems, 3 queries>
    """
    if isinstance(source, Observed):
        return source
    if isinstance(source, Measured):
        return Observed.matrix(source.values, source.systems, list(source.queries))
    if isinstance(source, Scores):
        if source.joint.query_draws is None:
            raise ReliabilityError(
                "These scores have no draws by query: use evaluate(.., method='draws', per_query=True)."
            )
        return Observed.matrix(source.joint.query_draws, source.systems, list(source.queries))
    if isinstance(source, pd.DataFrame):
        return Observed.matrix(
            source.to_numpy(dtype=float).T, list(map(str, source.columns)), list(map(str, source.index))
        )
    return Observed.matrix(np.asarray(source, dtype=float).T)


def observe_assessors(
    runs: Runs, judgments: Judgments, metric: AnyMetric, design: Design, *, scale: Scale | None = None
) -> Observed:
    """Return scores by each assessor's judgments alone; a query that an assessor did not judge is missing.

    Crossed (s x q x h) if the same assessors judged all queries, else nested (s x (h:q)).
    """
    scale = judgments.scale(scale)
    parts = []
    for number, name in enumerate(judgments.assessors):
        mine = judgments.take(judgments.assessor == number)
        if len(mine):
            parts.append(
                measure(runs, mine, metric, scale=scale)
                .to_frame(per_query=True)
                .assign(assessor=name or str(number + 1))
            )
    return Observed.long(pd.concat(parts, ignore_index=True), design)


def read_scores(path: Path | str, design: Design | str = CROSSED) -> Observed:
    """Read scores from a table: CSV, TSV, JSONL or parquet, plain or gzipped.

    Long, one row per score: a column for each facet of the design, and one named ``score``, ``value`` or ``mean``.
    Wide: one column per system and one row per query, optionally with the queries in the first column; or, if the
    first column is named ``system``, transposed. An empty cell is a missing score.
    """
    file = Path(path)
    design = Design.parse(design) if isinstance(design, str) else design
    table = read_table(file)
    first = str(table.columns[0]).strip().lower()
    is_long = _find(table, "score") is not None and _find(table, "query") is not None
    if is_long or design != CROSSED:
        return Observed.long(table, design, path=file)
    by_system = first in NAMES["system"]
    labelled = by_system or first in NAMES["query"] or first.startswith("unnamed") or not first
    rows = ids(table.iloc[:, 0], "system" if by_system else "query", path=file) if labelled else None
    body = table.iloc[:, 1:] if labelled else table
    if not body.shape[1]:
        raise DataError("the table has no scores: expected one column per system.", path=file)
    values = np.column_stack([numbers(body[c], f"score of {c!r}", path=file, missing=True) for c in body.columns])
    columns = ids(map(str, body.columns), "column", path=file)
    try:
        return Observed.matrix(values, rows, columns) if by_system else Observed.matrix(values.T, columns, rows)
    except ReliabilityError as error:
        raise DataError(str(error), path=file) from None


def _find(table: pd.DataFrame, facet: str) -> object | None:
    """Return the column of a facet or the score under any of its names, or None."""
    names = SCORE if facet == "score" else NAMES.get(facet, (facet,))
    by_name = {str(c).strip().lower(): c for c in table.columns}
    return next((by_name[n.lower()] for n in names if n.lower() in by_name), None)


def _column(table: pd.DataFrame, facet: str, path: Path | None) -> object:
    found = _find(table, facet)
    if found is None:
        columns = [str(c) for c in table.columns]
        raise DataError(
            f"no column {facet!r} for the {'scores' if facet == 'score' else 'design'}, "
            f"got {', '.join(columns[:9])}{', ..' * (len(columns) > 9)}.{did_you_mean(facet, columns)}",
            path=path,
        )
    return found


def _plural(facet: str, n: int) -> str:
    if n == 1:
        return facet
    return f"{facet[:-1]}ies" if facet.endswith("y") else f"{facet}s"


def _warn(text: str) -> None:
    warnings.warn(text, ProbevalWarning, stacklevel=4)
