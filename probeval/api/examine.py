"""Files examined: what each is taken for, what looks wrong, what can be computed, and the next command."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from probeval.data import Judgments, PairAnswers, Runs, Scale, read_judgments, read_labels, read_runs
from probeval.data.collection import judged_share
from probeval.data.evidence import LabelTable
from probeval.data.files import TABLES, find, first_bytes, suffix
from probeval.data.formats import find_format
from probeval.data.pool import Pool
from probeval.data.suspicions import suspicious_ids, suspicious_judgments, suspicious_labels
from probeval.data.tables import NAMES, column_names, names_grades, names_pairs
from probeval.display import Record, Table
from probeval.errors import DataError, ProbevalError, ScaleError
from probeval.records import About, task
from probeval.results import Result, frame, key

__all__ = ["ExaminedFile", "ExaminedFiles", "FilesToExamine", "examine"]

DEPTH = 10  # of the measure that the next command names
METRIC = f"nDCG@{DEPTH}"
FIRST = 20  # judgments to start with
RUN_COLUMNS, QREL_COLUMNS = 6, (4, 5)  # of TREC files
SHOWN = 6  # columns that are named
Kind = Literal["runs", "judgments", "labels", "answers", "teams", "texts", "groups", "unknown"]


@dataclass(frozen=True)
class ExaminedFile:
    """A file, and what it is taken for."""

    file: str
    taken_for: Annotated[Kind, "What it is taken for."]
    queries: Annotated[int, "The number of queries; 0 where it has none."]
    rows: Annotated[int, "The number of rows: retrieved documents, judgments, labelled pairs."]
    found: Annotated[str, "Its columns and values; what is wrong, if it cannot be read."]
    in_runs: Annotated[str, "How many of its queries and pairs the runs have; empty for runs."] = ""


@dataclass(frozen=True)
class _Read:
    """A file that was read: what people see of it, and its content."""

    shown: ExaminedFile
    path: str
    runs: Runs | None = None
    judgments: Judgments | None = None
    labels: LabelTable | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ExaminedFiles(Result):
    """Files, what looks wrong about them, and what can be done with them."""

    files: Annotated[tuple[ExaminedFile, ...], "One entry per file."]
    suspicious: Annotated[tuple[str, ...], "What looks wrong, with what to do."]
    possible: Annotated[tuple[str, ...], "What can be computed now."]
    missing: Annotated[tuple[str, ...], "What would allow more."]
    next: Annotated[str, "The next command to type; empty where a file must be mended first."]

    @key
    def ok(self) -> bool:
        """Whether every file can be read."""
        return all(file.taken_for != "unknown" for file in self.files)

    @property
    def exit_code(self) -> int:
        """1 if a file cannot be read."""
        return int(not self.ok)

    def to_frame(self) -> Any:
        """One row per file."""
        return frame(self.files, ExaminedFile)

    def _headline(self) -> str:
        return f"{len(self.files)} files, {len(self.suspicious)} things to look at"

    def tables(self) -> tuple[Table]:
        """One row per file."""
        return (Table(self.to_frame(), "Files"),)

    def sentences(self) -> tuple[str, ...]:
        """What looks wrong; what is possible, and missing; the next command."""
        unread = [f"{file.file}: {file.found}" for file in self.files if file.taken_for == "unknown"]
        found = [*unread, *(f"Look at this: {line}" for line in self.suspicious)]
        found += [f"Possible now: {line}" for line in self.possible] + [f"For more: {line}" for line in self.missing]
        return (*found, f"Next: {self.next}") if self.next else tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class FilesToExamine(Record):
    r"""Examine files before anything is computed: what each is taken for, what looks wrong, and what to do next.

    Examples
    --------
    >>> import tempfile, probeval
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "bm25.txt").write_text("q1 Q0 d1 1 2.5 bm25")
    >>> _ = (folder / "llm.csv").write_text(chr(10).join(["query,doc,llm", "q1,d1,2"]))
    >>> print(*probeval.examine([folder / "bm25.txt", folder / "llm.csv"]).possible)
    Rank 1 system by a relevance model and the labels by llm.
    """

    files: Annotated[
        Any,
        About(
            "Files or folders to examine: runs, judgments, labels; none: the installation.",
            metavar="FILES...",
            argument=True,
            kind=str,
            many=True,
        ),
    ] = field(default=())

    def run(self) -> ExaminedFiles:
        """What the files are."""
        paths = [self.files] if isinstance(self.files, (str, Path)) else list(self.files)
        if not paths:
            raise DataError("no file was named. Give runs, judgments or labels.")
        read = [_examined(given, path) for given in map(str, paths) for path in _expanded(Path(given))]
        runs = _joined(read)
        files = tuple(_matched(one, runs) for one in read)
        ready = all(file.taken_for != "unknown" for file in files)
        return ExaminedFiles(
            files,
            tuple(_suspicious(read, runs)),
            tuple(_possible(read, runs)),
            tuple(_missing(read, runs)),
            _command(read, runs, paths) if ready else "",
        )


def _expanded(path: Path) -> Iterator[Path]:
    """The files of a folder: runs, and what a campaign has beside them; a file as it is."""
    if not path.is_dir():
        yield path
        return
    inside = path / "runs"
    yield from sorted(p for p in (inside if inside.is_dir() else path).iterdir() if p.is_file() and p.name[0] != ".")
    if inside.is_dir():
        beside = [("qrels.txt", "qrels.tsv", "qrels.csv"), ("labels.tsv",), ("systems.tsv",), ("metadata.tsv",)]
        yield from (found for names in beside if (found := find(path, *names)) is not None)


def _examined(given: str, path: Path) -> _Read:
    """A file read as what it is taken for, or with the reason why it cannot be."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            kind = _kind(path)
            found = READERS[kind](path)
        except (ProbevalError, OSError, ValueError) as error:
            text = str(error).removeprefix(f"{path}: ")
            return _Read(ExaminedFile(str(path), "unknown", 0, 0, text), given)
    rows, queries, about = _content(found, path)
    notes = [str(one.message).removeprefix(f"{path}: ") for one in heard]
    shown = ExaminedFile(str(path), kind, queries, rows, " ".join([about, *notes]))
    return _Read(
        shown,
        given,
        runs=found if isinstance(found, Runs) else None,
        judgments=found if isinstance(found, Judgments) else None,
        labels=found if isinstance(found, LabelTable) else None,
    )


def _kind(path: Path) -> Kind:
    """What a file is taken for, by its format and its columns."""
    if suffix(path) in TABLES:
        return _kind_of_table(set(column_names(path)), path)
    if suffix(path):
        known = find_format(path, Runs, Judgments, LabelTable, PairAnswers)
        if known is None:
            raise DataError("neither a table nor the export of a tool that is known.", path=path)
        return KINDS[known.holds]
    lines = (line.split() for line in first_bytes(path).decode("utf-8", "replace").splitlines())
    width = next((len(words) for words in lines if words and not words[0].startswith("#")), 0)
    if width == RUN_COLUMNS:
        return "runs"
    if width in QREL_COLUMNS:
        return "judgments"
    raise DataError(
        f"{width} columns. A run has 6 (query Q0 doc rank score tag), judgments have 4 (query 0 doc grade); the name "
        "of a table ends in .csv, .tsv, .jsonl or .parquet."
    )


def _kind_of_table(names: set[str], path: Path) -> Kind:
    """What a table is taken for."""
    if {"left", "right"} <= names:
        return "answers"
    if "team" in names:
        return "teams"
    if names & {"text", "vector", "title", "contents"} and not names_pairs(names):
        return "texts"
    if not names_pairs(names):
        if names & set(NAMES["doc"]):
            return "groups"
        raise DataError(f"no columns for query and doc: {', '.join(sorted(names)[:SHOWN])}. Name them query and doc.")
    known = find_format(path, LabelTable)
    if known is not None and known.name != "labels":
        return "labels"
    grades = names & set(NAMES["grade"]) - {"score"}
    others = names - grades - {alias for name in ("query", "doc", "assessor", "time") for alias in NAMES[name]}
    if grades and not others - {"purpose", "gold", "score"}:
        return "judgments"
    if names & {*NAMES["system"], *NAMES["rank"], "score", "similarity"} and not grades:
        return "runs"
    return "judgments" if names_grades(grades) and not others else "labels"


def _content(found: Any, path: Path) -> tuple[int, int, str]:
    """The number of rows and of queries, and the columns and values."""
    if isinstance(found, Runs):
        n = int(found.retrieved.sum())
        systems = ", ".join(found.systems[:SHOWN]) + " and others" * (len(found.systems) > SHOWN)
        return n, len(found.queries), f"{systems}: {found.depth} rank{'s' * (found.depth > 1)}."
    if isinstance(found, Judgments):
        many = f", {len(found.assessors)} assessors" if len(found.assessors) > 1 else ""
        return len(found.pair), _queries(found.pool, found.pair), f"{_values(found.grade)}{many}."
    if isinstance(found, LabelTable):
        columns = [f"{s}: {_values(v)}" for s, v in zip(found.sources, found.values.T, strict=True)]
        more = f"; {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        return len(found.pool), len(found.pool.queries), "; ".join(columns[:SHOWN]) + more + "."
    return 0, 0, f"columns {', '.join(column_names(path)[:SHOWN])}."


def _values(values: Any) -> str:
    """The values of a column, in a few words."""
    said = np.asarray(values)[~np.isnan(values)]
    if not len(said):
        return "empty"
    seen = np.unique(said)
    missing = f", {len(values) - len(said):,} empty" if len(said) < len(values) else ""
    if len(seen) <= SHOWN:
        return f"values {', '.join(f'{v:g}' for v in seen)}{missing}"
    return f"{len(seen):,} values from {seen[0]:g} to {seen[-1]:g}{missing}"


def _queries(pool: Pool, pairs: Any) -> int:
    return len(np.unique(pool.query[pairs]))


KINDS: dict[Any, Kind] = {Runs: "runs", Judgments: "judgments", LabelTable: "labels", PairAnswers: "answers"}
READERS: dict[Kind, Callable[[Path], Any]] = {
    "runs": read_runs,
    "judgments": read_judgments,
    "labels": read_labels,
    "answers": column_names,
    "teams": column_names,
    "texts": column_names,
    "groups": column_names,
}


def _joined(read: Sequence[_Read]) -> Runs | None:
    """All runs on one pool; None if there are none."""
    runs: Runs | None = None
    for one in read:
        if one.runs is None:
            continue
        if runs is None:
            runs = one.runs
            continue
        both = runs.pool.union(one.runs.pool)
        runs = runs.on(both).joined(one.runs.on(both))
    return runs


def _tables(read: Sequence[_Read]) -> Iterator[tuple[str, _Read, Pool]]:
    """Judgments and labels, with their pools."""
    for one in read:
        if one.judgments is not None:
            yield "judgments", one, one.judgments.pool
        if one.labels is not None:
            yield "labels", one, one.labels.pool


def _matched(one: _Read, runs: Runs | None) -> ExaminedFile:
    """A file with the number of its queries and pairs that the runs have."""
    pools = [pool for _, each, pool in _tables([one])]
    if runs is None or not pools:
        return one.shown
    pool, top = pools[0], runs.top(min(DEPTH, runs.depth)).pool
    queries = len(set(pool.queries) & set(runs.queries))
    covered = int((top.within(pool) >= 0).sum())
    there = f"{queries} of {len(pool.queries)} queries; {covered:,} of the {len(top):,} pairs to rank {DEPTH}"
    return replace(one.shown, in_runs=there)


def _suspicious(read: Sequence[_Read], runs: Runs | None) -> Iterator[str]:
    """What looks wrong about the files."""
    for one in read:
        told: list[str] = []
        if one.labels is not None:
            told += suspicious_labels(one.labels)
        if one.judgments is not None:
            told += suspicious_judgments(one.judgments)
        if runs is not None:
            told += [line for what, _, pool in _tables([one]) for line in suspicious_ids(what, pool, runs.pool)]
            for what, _, pool in _tables([one]):
                if not set(pool.queries) & set(runs.queries):
                    told.append(f"no query of the {what} is in the runs: {pool.queries[0]!r}, {runs.queries[0]!r}.")
        yield from (f"{one.shown.file}: {line}" for line in told)


def _possible(read: Sequence[_Read], runs: Runs | None) -> Iterator[str]:
    """What can be computed from the files."""
    if runs is None:
        return
    n = len(runs.systems)
    systems = f"{n} system{'s' * (n > 1)}"
    sources = [source for one in read if one.labels is not None for source in one.labels.sources]
    by = f" and the labels by {', '.join(sources[:SHOWN])}" if sources else ""
    judged = [one.judgments for one in read if one.judgments is not None]
    if not judged:
        yield f"Rank {systems} by a relevance model{by}."
        return
    share = float(judged_share(runs, judged[0], DEPTH).mean())
    if share == 1:
        yield f"Score {systems} exactly: every document to rank {DEPTH} is judged. Tests and effect sizes too."
    else:
        yield f"Rank {systems} by {share:.0%} of the documents to rank {DEPTH} judged, a relevance model{by}."


def _missing(read: Sequence[_Read], runs: Runs | None) -> Iterator[str]:
    """What the files lack for more."""
    if runs is None:
        yield "runs, one file per system: judgments and labels are of their documents."
        return
    if len(runs.systems) == 1:
        yield "a second run to compare with."
    if not any(one.judgments is not None for one in read):
        yield f"judgments; {FIRST} of pairs that `probeval next` chooses tell much."
    if not any(one.labels is not None for one in read):
        yield "labels by a language model: a table with query, doc and one column of numbers."


def _command(read: Sequence[_Read], runs: Runs | None, paths: Iterable[str | Path]) -> str:
    """The next command to type."""
    if runs is None:
        return shlex.join(["probeval", "doctor", "RUNS", *map(str, paths)])
    given = list(dict.fromkeys(one.path for one in read if one.runs is not None))
    words = ["probeval", "compare" if len(runs.systems) == 2 else "evaluate", *given]
    campaign = {path for path in given if Path(path).is_dir()}
    if campaign and (Path(given[0]) / "runs").is_dir():
        words[2:] = [str(Path(path) / "runs") if path in campaign else path for path in given]
    for what, one, _ in _tables(read):
        words += ["--qrels" if what == "judgments" else "--labels", one.shown.file]
    words += ["--metric", METRIC]
    if not any(one.judgments is not None for one in read):
        words += ["--scale", _scale(read)]
    return shlex.join(words)


def _scale(read: Sequence[_Read]) -> str:
    """The scale to name where nothing is judged: that of the labels, if they look like grades."""
    for one in read:
        if one.labels is not None:
            values = one.labels.values[:, 0]
            try:
                found = Scale.infer(values[~np.isnan(values) & (values >= 0)])
            except ScaleError:
                continue
            if not found.real:
                return str(found)
    return "binary"


examine = task(FilesToExamine, "examine")
