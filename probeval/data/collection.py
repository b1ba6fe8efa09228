"""Read runs, judgments and whole campaign folders from files; write campaign folders."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TypeVar

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.evidence import LabelTable, Metadata, Vectors, read_labels, read_metadata
from probeval.data.exchange import read_mteb
from probeval.data.files import PREDICTIONS, find, run_files, stem, suffix, write_bytes
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.tables import judgments_from_table, read_table, runs_from_table
from probeval.data.trec import (
    JudgmentRows,
    numbered,
    read_qrels_rows,
    read_run_rows,
    refuse_bytes,
    refuse_repeats,
    write_qrels,
    write_run,
)
from probeval.errors import DataError, ScaleError

__all__ = ["Collection", "read_campaign", "read_judgments", "read_runs", "read_teams", "write_campaign"]

T = TypeVar("T")
JUDGED = 0.99  # minimum judged share of a system's documents for its true score to count as known
PathName = str | os.PathLike[str]
Progress = Callable[[Sequence[Path]], Iterable[Path]]


@dataclass(frozen=True, eq=False)
class Collection:
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
        Groups of documents, machine labels, document vectors; None if not available.
    """

    name: str
    runs: Runs
    judgments: Judgments | None = None
    metadata: Metadata | None = None
    labels: LabelTable | None = None
    vectors: Vectors | None = None

    def __repr__(self) -> str:
        parts = [repr(p) for p in (self.runs, self.judgments, self.metadata, self.labels) if p is not None]
        return f"<Collection {self.name}: {', '.join(parts)}>"

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

    def scale(self, named: Scale | None = None) -> Scale:
        """The scale of the grades: the one named, else that of the judgments.

        Raises
        ------
        ScaleError
            If there is neither.
        """
        if named is not None:
            return named
        if self.judgments is None or not len(self.judgments):
            raise ScaleError("Without judgments the scale of the grades must be named.")
        return self.judgments.scale()

    def codes_on(self, pool: Pool, scale: Scale) -> Codes:
        """Return one grade per pair of a pool as its position on ``scale``, negative where unjudged."""
        judgments = Judgments.none(pool) if self.judgments is None else self.judgments
        return judgments.codes_on(pool, scale)

    def judged_systems(self, depth: int, *, share: float = JUDGED) -> Collection:
        """The collection with only the systems that have more than ``share`` of their top ``depth`` judged."""
        if self.judgments is None:
            raise DataError(f"{self.name}: without judgments no system is judged.")
        judged = judged_share(self.runs, self.judgments, depth)
        kept = [s for s, part in zip(self.runs.systems, judged, strict=True) if part > share]
        if not kept:
            raise DataError(f"no system has more than {share:g} of its documents judged. Use all systems.")
        return replace(self, runs=self.runs.select(kept))


def judged_share(runs: Runs, judgments: Judgments, depth: int) -> Floats:
    """Return the judged share of the documents in each system's top ``depth``, shape (system,).

    Queries without any judgment do not count.
    """
    pairs = runs.pairs[:, np.isin(runs.queries, judgments.pool.queries), :depth]
    grades = judgments.on(runs.pool).grades()
    graded = np.append(~np.isnan(grades) & (grades != -1), False)  # junk is judged; sampled (-1) is not
    return np.asarray(graded[pairs].sum(axis=(1, 2)) / np.maximum((pairs >= 0).sum(axis=(1, 2)), 1))


def read_runs(*paths: PathName, order: str = "trec_eval", depth: int | None = None, progress: Progress = iter) -> Runs:
    """Read runs from TREC files, tables, globs or directories; a system is named after its file.

    Parameters
    ----------
    paths
        TREC runs or tables (CSV, TSV, JSONL, parquet), plain or gzipped; ``*_predictions.json`` of MTEB; globs;
        directories.
    order
        How a list is ordered, one of :data:`probeval.data.runs.ORDERS`.
    depth
        Keep only this many ranks.
    progress
        A wrapper around the list of files, such as a progress bar.
    """
    files = run_files(paths)
    if not files:
        raise DataError("no runs were named. Give files, globs or a directory.")
    tables = [path for path in files if suffix(path)]
    if all(path.name.endswith(PREDICTIONS) for path in files):
        runs = read_mteb(*files, order=order)
    elif not tables:
        runs = _trec_runs(files, order=order, progress=progress)
    elif len(files) == 1:
        table = read_table(tables[0], triples=True)
        runs = _with_path(tables[0], lambda p: runs_from_table(table, system=stem(p), path=p, order=order))
    else:
        raise DataError("tables and TREC runs, or several tables, in one call. Give one table with a system column.")
    return runs if depth is None else runs.top(depth)


def _trec_runs(files: Sequence[Path], *, order: str, progress: Progress) -> Runs:
    parts = [read_run_rows(path, with_ranks=order in ("score", "rank")) for path in progress(files)]
    query, queries = numbered([rows.queries for rows in parts])
    doc, docs = numbered([rows.docs for rows in parts])
    system = np.repeat(np.arange(len(files)), [len(rows.scores) for rows in parts])
    try:
        pool, pair = Pool.coded(_text(queries), _text(docs), query, doc)
    except UnicodeDecodeError:
        for path in files:
            refuse_bytes(path)
        raise
    score = np.concatenate([rows.scores for rows in parts])
    ranks = [rows.ranks for rows in parts if rows.ranks is not None]
    names = tuple(map(stem, files))
    try:
        return Runs.coded(names, pool, system, pair, score, ranks=np.concatenate(ranks) if ranks else None, order=order)
    except DataError:
        for path in files:  # to report the line of the repeated document
            refuse_repeats(path)
        raise


def read_judgments(path: PathName, *, scale: Scale | None = None) -> Judgments:
    """Read judgments from a TREC qrels or prels file, or a table, plain or gzipped.

    With a ``scale``, a grade outside it is an error that names the line.
    """
    file = Path(path)
    if suffix(file):
        return _with_path(file, lambda p: judgments_from_table(read_table(p), path=p, scale=scale))
    rows = read_qrels_rows(file, scale=scale)
    return _judgments(file, rows)


def _judgments(path: Path, rows: JudgmentRows) -> Judgments:
    (query, queries), (doc, docs) = numbered([rows.queries]), numbered([rows.docs])
    try:
        pool, pair = Pool.coded(_text(queries), _text(docs), query, doc)
        assessors = [] if rows.assessors is None else rows.assessors.tolist()
        who = _text(assessors) if len(set(assessors)) > 1 else None
    except UnicodeDecodeError:
        refuse_bytes(path)
        raise
    return Judgments.coded(pool, pair, rows.grades, assessors=who)


def read_teams(path: PathName) -> Mapping[str, str]:
    """Read the team of each system from a table with the columns ``run`` (or ``system``) and ``team``."""
    file = Path(path)
    table = read_table(file)
    system = next((table[c] for c in ("run", "system") if c in table.columns), None)
    if system is None or "team" not in table.columns:
        raise DataError("expected the columns 'run' and 'team'.", path=file)
    return dict(zip(system, table["team"], strict=True))


def read_campaign(folder: PathName, *, order: str = "trec_eval", progress: Progress = iter) -> Collection:
    """Read a whole campaign folder: ``runs/`` and the optional files beside it.

    These are ``qrels.txt``, ``metadata.tsv``, ``systems.tsv`` and ``labels.tsv``; each may be gzipped.
    """
    path = Path(folder)
    if not (path / "runs").is_dir():
        raise DataError("a campaign folder has its runs in 'runs/', and there is none.", path=path)
    runs = read_runs(path / "runs", order=order, progress=progress)
    teams, qrels = find(path, "systems.tsv"), find(path, "qrels.txt", "qrels.tsv", "qrels.csv")
    metadata, labels = find(path, "metadata.tsv"), find(path, "labels.tsv")
    return Collection(
        name=path.resolve().name,
        runs=runs if teams is None else runs.with_teams(read_teams(teams)),
        judgments=None if qrels is None else read_judgments(qrels),
        metadata=None if metadata is None else read_metadata(metadata),
        labels=None if labels is None else read_labels(labels),
    )


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
        table = collection.labels
        cells = [["" if np.isnan(v) else repr(float(v)) for v in row] for row in table.values]
        labelled = [(*table.pool.label(i), *row) for i, row in enumerate(cells)]
        _write_tsv(path / "labels.tsv", [("query", "doc", *table.sources), *labelled])


def _write_tsv(path: Path, rows: Iterable[Iterable[str]]) -> None:
    text = StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    write_bytes(path, text.getvalue().encode())


def _text(labels: Sequence[bytes]) -> list[str]:
    return [label.decode() for label in labels]


def _with_path(path: Path, read: Callable[[Path], T]) -> T:
    """Call ``read``, and add the path to errors that lack it."""
    try:
        return read(path)
    except DataError as error:
        raise error if error.path is not None else DataError(str(error), path=path) from None
