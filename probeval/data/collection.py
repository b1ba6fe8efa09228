"""Read runs, judgments and whole campaign folders from files; write campaign folders."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.data.answers import PairAnswers, read_answers
from probeval.data.evidence import LabelTable, Metadata, Vectors, labels_from_table, read_metadata
from probeval.data.files import TABLES, find, refuse_partitions, run_files, stem, suffix, write_bytes
from probeval.data.formats import FileFormat, ReadOptions, find_format, format_named
from probeval.data.judgments import Judgments, on_scale
from probeval.data.magnitudes import Magnitudes, read_magnitudes
from probeval.data.observers import OBSERVER_COLUMNS, read_observers
from probeval.data.problem import Problem
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.spreadsheets import as_text, csv_text
from probeval.data.tables import (
    as_frame,
    cell_text,
    column_names,
    judgments_from_object,
    judgments_from_table,
    names_pairs,
    read_table,
    runs_from_object,
    runs_from_table,
)
from probeval.data.trec import write_qrels, write_run
from probeval.display import Described, Table, fact_table
from probeval.errors import DataError, ScaleError
from probeval.reporting import SILENT, Reporter

__all__ = [
    "Collection",
    "are_paths",
    "as_judgments",
    "as_labels",
    "as_runs",
    "read_campaign",
    "read_judgments",
    "read_labels",
    "read_runs",
    "read_teams",
    "teams_from_table",
    "write_campaign",
]

T = TypeVar("T")
QUARTER = 0.25  # least share of fully judged systems to learn at a depth
JUDGED = 0.99  # minimum judged share of a system's documents for its true score to count as known
PathName = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Described):
    """The contents of a campaign folder.

    Parameters
    ----------
    name
        The folder's name.
    runs
        The systems' lists, with teams where ``systems.tsv`` gives them.
    judgments
        The judgments, on their own pool; None without qrels.
    metadata, labels, vectors
        Groups of documents, labels, document vectors; None if not available.
    answers
        Assessors' answers about two documents side by side; None without.
    magnitudes
        Assessors' numbers for single documents; None without.
    consensus
        Whether measures count the consensus of all observers, as no single grade is certain. See
        :func:`probeval.data.with_reference`.
    ranked
        The systems to evaluate, if not all: the others only widen the pool.
    """

    name: str
    runs: Runs
    judgments: Judgments | None = None
    metadata: Metadata | None = None
    labels: LabelTable | None = None
    vectors: Vectors | None = None
    answers: PairAnswers | None = None
    magnitudes: Magnitudes | None = None
    consensus: bool = False
    ranked: tuple[str, ...] | None = None

    def _headline(self) -> str:
        parts = [self.name, repr(self.runs).removeprefix("<Runs: ").removesuffix(">")]
        if self.judgments is not None:
            parts.append(f"{len(self.judgments):,} judgment{'s' * (len(self.judgments) != 1)}")
        if self.labels is not None:
            n = len(self.labels.sources)
            parts.append(f"labels by {n} source{'s' * (n > 1)}")
        names = ("metadata", "vectors", "answers", "magnitudes")
        return ", ".join(parts + [name for name in names if getattr(self, name) is not None])

    def tables(self) -> tuple[Table, ...]:
        """The parts of the collection."""
        names = ("runs", "judgments", "metadata", "labels", "vectors", "answers", "magnitudes")
        parts = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        about = {name: repr(part)[1:-1].split(": ", 1)[1] for name, part in parts.items()}
        return (Table(fact_table(about), self.name),)

    @property
    def has(self) -> dict[str, tuple[str, ...]]:
        """The available sources of features, with the columns of each."""
        return {
            "outputs": (),
            **({"teams": ()} if self.runs.teams is not None else {}),
            **({"judgments": ()} if self.judgments is not None else {}),
            **({"metadata": tuple(self.metadata.groups)} if self.metadata is not None else {}),
            **({"labels": self.labels.sources} if self.labels is not None else {}),
            **({"vectors": ()} if self.vectors is not None else {}),
        }

    @property
    def has_answers(self) -> bool:
        """Whether assessors answered about pairs of documents, or gave numbers."""
        return any(rows is not None and len(rows) for rows in (self.answers, self.magnitudes))

    def pooled(self, runs: Runs) -> Collection:
        """The collection with more runs in its pool; the systems to evaluate stay the same.

        See docs/theory/scores.md#ideal.
        """
        ranked = self.runs.systems if self.ranked is None else self.ranked
        return replace(self, runs=self.runs.joined(runs), ranked=ranked)

    def scale(self, named: Scale | None = None) -> Scale:
        """The scale of the grades: the one named, else that of the judgments.

        Raises
        ------
        ScaleError
            If there is neither.
        """
        if named is not None and not named.is_open:
            return named
        if self.judgments is None or not len(self.judgments):
            raise ScaleError(
                "Without judgments the scale of the grades must be named"
                + ("." if named is None else ", and cannot be real: that has the values of the judgments.")
            )
        return self.judgments.scale(named)

    @cached_property
    def judged_places(self) -> Ints:
        """The position in the pool of the runs of each pair that may have judgments, -1 outside."""
        return self._places(self.judgments)

    @cached_property
    def labelled_places(self) -> Ints:
        """The position in the pool of the runs of each pair that may have labels, -1 outside."""
        return self._places(self.labels)

    def _places(self, table: Judgments | LabelTable | None) -> Ints:
        return np.empty(0, dtype=np.int64) if table is None else table.pool.within(self.runs.pool)

    def problem(self, *, depth: int, scale: Scale | None = None) -> Problem:
        """The collection on one axis: the pairs in some system's top ``depth``, with grades on one scale.

        Parameters
        ----------
        depth
            The depth of the pool.
        scale
            The scale of the grades; that of the judgments by default.
        """
        return Problem.of(self, depth=depth, scale=self.scale(scale))

    def judged_systems(self, depth: int, *, share: float = JUDGED) -> Collection:
        """The collection with only the systems that have more than ``share`` of their top ``depth`` judged."""
        if self.judgments is None:
            raise DataError(f"{self.name}: without judgments no system is judged.")
        judged = judged_share(self.runs, self.judgments, depth)
        asked = self.runs.systems if self.ranked is None else self.ranked
        kept = [s for s, part in zip(self.runs.systems, judged, strict=True) if part > share and s in asked]
        if not kept:
            raise DataError(f"no system has more than {share:g} of its documents judged. Use all systems.")
        if self.ranked is not None:
            return replace(self, ranked=tuple(kept))
        return replace(self, runs=self.runs.select(kept))

    def judged_part(self, depth: int) -> Collection:
        """The part to learn from: the fully judged systems, with lists as deep as they are judged, ``depth`` at most.

        If fewer than a quarter of the systems are fully judged to ``depth``, lists are cut at the first lesser depth
        to which a quarter is, down to half of ``depth``. If there is none, all systems count, with the pairs of their
        top ``depth`` that are judged.
        """
        if self.judgments is None:
            raise DataError(f"{self.name}: without judgments there is nothing to learn from.")
        for cut in range(depth, depth // 2 - 1, -1):
            if cut and np.mean(judged_share(self.runs, self.judgments, cut) > JUDGED) >= QUARTER:
                kept = self.judged_systems(cut)
                return replace(kept, runs=kept.runs.top(cut))
        return replace(self, runs=self.runs.top(depth))


def judged_share(runs: Runs, judgments: Judgments, depth: int) -> Floats:
    """Return the judged share of the documents in each system's top ``depth``, shape (system,).

    Queries without any judgment do not count.
    """
    pairs = runs.pairs[:, np.isin(runs.queries, judgments.pool.queries), :depth]
    grades = judgments.on(runs.pool).grades()
    graded = np.append(~np.isnan(grades) & (grades != -1), False)  # junk is judged; sampled (-1) is not
    return np.asarray(graded[pairs].sum(axis=(1, 2)) / np.maximum((pairs >= 0).sum(axis=(1, 2)), 1))


def read_runs(
    *paths: PathName,
    order: str = "trec_eval",
    depth: int | None = None,
    reporter: Reporter = SILENT,
    file_format: str | None = None,
) -> Runs:
    """Runs from TREC files, tables, globs or directories; a system is named by its file.

    Parameters
    ----------
    paths
        TREC runs or tables (CSV, TSV, JSONL, parquet), plain or gzipped; ``*_predictions.json`` of MTEB; globs;
        directories.
    order
        How a list is ordered, one of :data:`probeval.data.runs.ORDERS`.
    depth
        Keep only this many ranks.
    reporter
        Receives progress and remarks.
    file_format
        The name of a :class:`FileFormat` of runs; by default detected from the files.
    """
    files = run_files(paths)
    if not files:
        raise DataError("no runs were named. Give files, globs or a directory.")
    options = ReadOptions(order=order, reporter=reporter)
    if file_format is None:
        found = list(dict.fromkeys(find_format(path, Runs) or format_named("trec", Runs) for path in files))
    else:
        found = [format_named(file_format, Runs)]
    kind: FileFormat[Runs] = found[0]
    if len(found) == 1 and kind.read_all is not None:
        runs = kind.read_all(files, options)
    elif len(found) == 1 and len(files) == 1:
        runs = _with_path(files[0], lambda path: kind.read(path, options))
    else:
        for path in files:  # labels among the runs say so by themselves
            if suffix(path) in TABLES and names_pairs(column_names(path)):
                runs_from_table(read_table(path, triples=True), system=stem(path), path=path, order=order)
        raise _several(found)
    return runs if depth is None else runs.top(depth)


def are_paths(given: Any) -> bool:
    """Whether something is a path, or several."""
    if isinstance(given, (str, os.PathLike)):
        return True
    return isinstance(given, Sequence) and bool(given) and all(isinstance(one, (str, os.PathLike)) for one in given)


def _names_paths(given: Any) -> bool:
    """Whether something is a mapping from names to paths."""
    return isinstance(given, Mapping) and bool(given) and all(are_paths(one) for one in given.values())


def as_runs(runs: Any, *, order: str = "trec_eval", reporter: Reporter = SILENT) -> Runs:
    """Return runs in any form.

    Takes :class:`Runs` and a :class:`Collection`; a path, a glob, a folder, or several of them; a mapping from names to
    paths of one run each; a frame with a system column, of pandas or of anything that exports Arrow (polars, duckdb,
    pyarrow); a mapping from names to runs; a ranx ``Run`` or a list of them. A run is a mapping from queries to
    mappings from documents to scores, a frame, a ranx ``Run`` or an iterable of ir_measures' ``ScoredDoc``.

    >>> as_runs({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}})
    <Runs: 1 system, 1 query, depth 2, 2 pairs>
    """
    if isinstance(runs, Runs):
        return runs
    if isinstance(runs, Collection):
        return runs.runs
    if are_paths(runs):
        paths = [runs] if isinstance(runs, (str, os.PathLike)) else runs
        return read_runs(*paths, order=order, reporter=reporter)
    frame = as_frame(runs)
    if frame is not None:
        return runs_from_table(frame, order=order)
    if _names_paths(runs):
        runs = {name: _single(name, path, order, reporter) for name, path in runs.items()}
    return runs_from_object(runs, order=order)


def _single(name: str, path: PathName, order: str, reporter: Reporter) -> pd.DataFrame:
    """The lists of the only run of a file."""
    found = as_runs(path, order=order, reporter=reporter)
    if len(found.systems) != 1:
        raise DataError(f"{name!r} must be one run, got {len(found.systems)} systems.", path=Path(path))
    return found.to_frame()


def as_judgments(judgments: Any, *, scale: Scale | None = None) -> Judgments:
    """Return judgments in any form; a grade that the scale lacks, if one is given, is refused.

    Takes :class:`Judgments`; a path or several; a mapping from assessors to paths of their judgments; a frame, of
    pandas or of anything that exports Arrow (polars, duckdb, pyarrow); a mapping from queries to mappings from
    documents to grades; a ranx ``Qrels``; or an iterable of ir_measures' ``Qrel``.

    >>> as_judgments({"q1": {"d1": 1, "d2": 0}})
    <Judgments: 2 of 2 pairs>
    """
    if isinstance(judgments, Judgments):
        return judgments
    if isinstance(judgments, (str, os.PathLike)):
        return read_judgments(judgments, scale=scale)
    frame = as_frame(judgments)
    if frame is not None:
        return judgments_from_table(frame)
    if are_paths(judgments):
        tables = [read_judgments(path, scale=scale).to_frame() for path in judgments]
        return judgments_from_table(pd.concat(tables, ignore_index=True))
    if _names_paths(judgments):
        by = [as_judgments(path, scale=scale).to_frame().assign(assessor=name) for name, path in judgments.items()]
        return judgments_from_table(pd.concat(by, ignore_index=True))
    return judgments_from_object(judgments)


def as_labels(labels: Any) -> LabelTable:
    """Return labels in any form, as one table.

    Takes a :class:`LabelTable`; a path; a frame, of pandas or of anything that exports Arrow; several of these, with
    distinct columns; or a mapping from observers to any of these with one column each.
    """
    if isinstance(labels, LabelTable):
        return labels
    if isinstance(labels, (str, os.PathLike)):
        return read_labels(labels)
    frame = as_frame(labels)
    if frame is not None:
        return labels_from_table(frame)
    if isinstance(labels, Mapping):
        labels = [_by_observer(name, as_labels(given)) for name, given in labels.items()]
    tables = [as_labels(one) for one in labels]
    if not tables:
        raise DataError("no labels were given. Leave them out, or name a table.")
    return tables[0].joined(tables[1:]) if len(tables) > 1 else tables[0]


def _by_observer(name: str, table: LabelTable) -> LabelTable:
    """The only column of labels under the name of its observer."""
    if len(table.sources) != 1:
        raise DataError(f"labels of {name!r} must be one column, got {', '.join(table.sources)}.")
    shares = dict(zip([name], table.probabilities.values(), strict=False))  # none, or those of the column
    return replace(table, sources=(name,), probabilities=shares)


def _several(found: Sequence[FileFormat[Runs]]) -> DataError:
    """The error for files that cannot be read in one call."""
    names = [kind.name for kind in found]
    if "table" in names:
        return DataError("tables and TREC runs, or several tables, in one call. Give one table with a system column.")
    what = f"several files in the format {names[0]}" if len(names) == 1 else f"runs in the formats {', '.join(names)}"
    return DataError(f"{what} in one call. Read one at a time.")


def read_judgments(
    path: PathName,
    *,
    scale: Scale | None = None,
    file_format: str | None = None,
    queries: Mapping[str, str] | None = None,
) -> Judgments:
    """Judgments from a TREC qrels or prels file, a table, or a file of a tool such as Quepid or Label Studio.

    Parameters
    ----------
    path
        The file.
    scale
        A grade that it lacks is refused, with its line where the format has lines.
    file_format
        The name of a :class:`FileFormat` of judgments; by default detected from the file.
    queries
        Texts by id, for files that name queries by their text.
    """
    scale = None if scale is None or scale.is_open else scale
    file, options = Path(path), ReadOptions(scale=scale, queries=queries)
    known: FileFormat[Judgments] | None = None if file_format else find_format(file, Judgments)
    kind = known or format_named(file_format or "table", Judgments)  # a table says which column it lacks
    judgments = _with_path(file, lambda p: kind.read(p, options))
    wrong = None if scale is None else next((g for g in np.unique(judgments.grade) if not on_scale(scale, g)), None)
    if wrong is not None:
        raise DataError(f"the grade {wrong:g} is not on the scale {scale}.", path=file)
    return judgments


def read_labels(
    path: PathName,
    *,
    file_format: str | None = None,
    queries: Mapping[str, str] | None = None,
    docs: Mapping[str, str] | None = None,
) -> LabelTable:
    """Labels by machines or people: a table with query and document, and one column of numbers for each source.

    Empty cells are missing labels. A source with probabilities of the grades has one column per grade, ``NAME:0`` to
    ``NAME:M``. Output of UMBRELA and RAGElo and judgment lists of OpenSearch are recognised too.

    Parameters
    ----------
    path
        The file.
    file_format
        The name of a :class:`FileFormat` of labels; by default detected from the file.
    queries, docs
        Texts by id, for files that name queries or documents by their text.
    """
    file, options = Path(path), ReadOptions(queries=queries, docs=docs)
    known: FileFormat[LabelTable] | None = None if file_format else find_format(file, LabelTable)
    kind = known or format_named(file_format or "labels", LabelTable)
    return _with_path(file, lambda p: kind.read(p, options))


def read_teams(path: PathName) -> Mapping[str, str]:
    """Read the team of each system from a table with the columns ``run`` (or ``system``) and ``team``."""
    return _with_path(Path(path), lambda file: teams_from_table(read_table(file)))


def teams_from_table(table: pd.DataFrame) -> dict[str, str]:
    """Return the team of each system from a table with the columns ``run`` (or ``system``) and ``team``."""
    system = next((table[c] for c in ("run", "system") if c in table.columns), None)
    if system is None or "team" not in table.columns:
        got = ", ".join(repr(str(c)) for c in table.columns)
        raise DataError(f"expected the columns 'run' (or 'system') and 'team', got {got}.")
    return dict(zip(map(cell_text, system), map(cell_text, table["team"]), strict=True))


def read_campaign(folder: PathName, *, order: str = "trec_eval", reporter: Reporter = SILENT) -> Collection:
    """Read a whole campaign folder: ``runs/`` and the optional files beside it.

    These are ``qrels.txt``, ``metadata.tsv``, ``systems.tsv``, ``labels.tsv`` and ``observers.tsv``, which describes
    the columns of the labels, and the answers of assessors in ``preferences.csv`` and ``magnitudes.csv``; each may be
    gzipped. Preferences between lists, which have no columns ``left`` and ``right``, are left to
    :func:`probeval.satisfaction.read_preferences`.
    """
    path = Path(folder)
    try:
        is_folder = path.is_dir()
    except OSError as error:  # no permission, or a name too long
        raise DataError(f"cannot be read: {error.strerror or error}.", path=path) from None
    if not is_folder:
        raise DataError("no such folder. Expected a campaign folder, with its runs in 'runs/'.", path=path)
    if not (path / "runs").is_dir():
        raise DataError("a campaign folder has its runs in 'runs/', and there is none.", path=path)
    refuse_partitions(path)
    runs = read_runs(path / "runs", order=order, reporter=reporter)
    teams, qrels = find(path, "systems.tsv"), find(path, "qrels.txt", "qrels.tsv", "qrels.csv")
    metadata = find(path, "metadata.tsv")
    answers, magnitudes = find(path, "preferences.csv"), find(path, "magnitudes.csv")
    if answers is not None and not {"left", "right"} & set(column_names(answers)):
        answers = None  # of lists, not of documents
    return Collection(
        name=path.resolve().name,
        runs=runs if teams is None else runs.with_teams(read_teams(teams)),
        judgments=None if qrels is None else read_judgments(qrels),
        metadata=None if metadata is None else read_metadata(metadata),
        labels=_described_labels(path),
        answers=None if answers is None else read_answers(answers),
        magnitudes=None if magnitudes is None else read_magnitudes(magnitudes),
    )


def _described_labels(folder: Path) -> LabelTable | None:
    """The labels of a campaign folder, with the descriptions of their observers."""
    labels, observers = find(folder, "labels.tsv"), find(folder, "observers.tsv")
    if labels is None:
        return None
    table = read_labels(labels)
    return table if observers is None else _with_path(observers, lambda p: table.described(read_observers(p)))


def write_campaign(collection: Collection, folder: PathName) -> None:
    """Write a collection as a campaign folder that :func:`read_campaign` reads."""
    path = Path(folder)
    names = {f"{system}.gz": system for system in collection.runs.systems}
    for name, system in names.items():
        if Path(name).name != name or name.startswith(".") or stem(Path(name)) != system:
            raise DataError(f"system {system!r} cannot be the name of a run file. Rename it.", path=path)
    others = sorted({p.name for p in (path / "runs").glob("[!.]*")} - set(names))
    if others:
        raise DataError(f"the folder holds other runs already ({others[0]}). Name an empty one.", path=path / "runs")
    for name, system in names.items():
        write_run(path / "runs" / name, collection.runs, system)
    if collection.runs.teams is not None:
        rows = zip(collection.runs.systems, collection.runs.teams, strict=True)
        _write_tsv(path / "systems.tsv", [("run", "team"), *rows])
    if collection.judgments is not None:
        write_qrels(path / "qrels.txt", collection.judgments)
    if collection.metadata is not None:
        groups = collection.metadata.groups
        _write_tsv(
            path / "metadata.tsv", [("doc", *groups), *zip(collection.metadata.docs, *groups.values(), strict=True)]
        )
    if collection.labels is not None:
        table = collection.labels.to_frame()
        cells = [["" if np.isnan(v) else repr(float(v)) for v in row] for row in table.iloc[:, 2:].to_numpy()]
        pairs = zip(table["query"], table["doc"], cells, strict=True)
        _write_tsv(path / "labels.tsv", [table.columns, *((query, doc, *row) for query, doc, row in pairs)])
        described = [astuple(observer) for observer in collection.labels.descriptions.values()]
        if described:
            _write_tsv(path / "observers.tsv", [OBSERVER_COLUMNS, *described])
    for name, answers in (("preferences.csv", collection.answers), ("magnitudes.csv", collection.magnitudes)):
        if answers is not None and len(answers):
            write_bytes(path / name, csv_text(answers.to_frame()).encode())


def _write_tsv(path: Path, rows: Iterable[Iterable[str]]) -> None:
    text = StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows([as_text(cell) for cell in row] for row in rows)
    write_bytes(path, text.getvalue().encode())


def _with_path(path: Path, read: Callable[[Path], T]) -> T:
    """Call ``read``, and add the path to errors that lack it."""
    try:
        return read(path)
    except DataError as error:
        raise error if error.path is not None else DataError(str(error), path=path) from None
