"""Fast readers and writers of TREC runs, qrels and prels, with errors that name the line.

A file is read in one vectorised pass. Only if that fails is it read again line by line, to report where and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probeval.arrays import Floats, Ints, objects
from probeval.data.files import line_chunks, read_bytes, stem, write_bytes
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.errors import DataError, ScaleError
from probeval.reporting import SILENT, Reporter

__all__ = [
    "JudgmentRows",
    "RunRows",
    "check_writable",
    "numbered",
    "qrels_text",
    "read_qrels",
    "read_qrels_rows",
    "read_run_chunks",
    "read_run_rows",
    "read_trec_runs",
    "runs_of_rows",
    "write_qrels",
    "write_run",
]

BY_RANK = ("score", "rank")  # the orders that use the submitted ranks
CHUNK = 1 << 25  # bytes of a run read at a time, where it may be larger than memory
LINE = re.compile(rb"^[^\s#]", re.MULTILINE)  # the start of a line that holds something
BOM = b"\xef\xbb\xbf"
SQLITE = b"SQLite format 3\0"  # the first bytes of a campaign store
RUN = "query Q0 doc rank score tag"
QRELS = "query assessor doc grade"
PRELS = "query doc grade method probability"
Tokens = NDArray[Any]  # ids as bytes: of a fixed width in whole machine words, or objects if one is long
WORD, WIDEST = 8, 64
MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number of random bits
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
UNWRITABLE = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]")
CONTROL_BYTES = re.compile(b"\x7f|\xc2[\x80-\x9f]")  # those beyond the first 32, in UTF-8


@dataclass(frozen=True)
class RunRows:
    """The rows of one run, ids still as bytes."""

    queries: Tokens
    docs: Tokens
    scores: Floats
    ranks: Floats | None


@dataclass(frozen=True)
class JudgmentRows:
    """The rows of one judgment file, ids still as bytes."""

    queries: Tokens
    docs: Tokens
    grades: Floats
    assessors: Tokens | None = None
    times: Floats | None = None


def read_run_rows(path: Path, *, with_ranks: bool = False) -> RunRows:
    """Read a TREC run: lines of ``query Q0 doc rank score tag``, tabs or spaces, ``#`` comments, gzipped or not."""
    data = read_bytes(path)
    try:
        return _run_rows(data, with_ranks)
    except ValueError:
        raise _first_fault(path, data, RUN, {"score": _number, **({"rank": _number} if with_ranks else {})}) from None


def read_run_chunks(path: Path, *, with_ranks: bool = False) -> Iterator[RunRows]:
    """The rows of a TREC run, some at a time, for files that are larger than memory."""
    found = False
    for data in line_chunks(path, CHUNK):
        if not LINE.search(data):
            continue  # comments or nothing
        try:
            yield _run_rows(data, with_ranks)
            found = True
        except ValueError:
            read_run_rows(path, with_ranks=with_ranks)  # raises with the line
            raise
    if not found:
        read_run_rows(path)  # raises with the reason


def _run_rows(data: bytes, with_ranks: bool) -> RunRows:
    columns = _columns(data, RUN, ("query", "doc", "score", *(["rank"] if with_ranks else [])))
    ranks = _numbers(columns["rank"]) if with_ranks else None
    return RunRows(columns["query"], columns["doc"], _numbers(columns["score"]), ranks)


def read_trec_runs(files: Sequence[Path], *, order: str = "trec_eval", reporter: Reporter = SILENT) -> Runs:
    """The runs of TREC files, one system per file, named by it."""
    return runs_of_rows(
        [read_run_rows(path, with_ranks=order in BY_RANK) for path in reporter.track(files, "Reading runs")],
        files,
        order,
    )


def runs_of_rows(parts: Sequence[RunRows], files: Sequence[Path], order: str) -> Runs:
    """The runs of the rows of each file, which name the systems."""
    query, queries = numbered([rows.queries for rows in parts])
    doc, docs = numbered([rows.docs for rows in parts])
    system = np.repeat(np.arange(len(files)), [len(rows.scores) for rows in parts])
    try:
        pool, pair = Pool.coded(_text(queries), _text(docs), query, doc)
    except UnicodeDecodeError:
        for path in files:
            _refuse_bytes(path)
        raise
    score = np.concatenate([rows.scores for rows in parts])
    ranks = [rows.ranks for rows in parts if rows.ranks is not None]
    names = tuple(map(stem, files))
    try:
        return Runs.coded(names, pool, system, pair, score, ranks=np.concatenate(ranks) if ranks else None, order=order)
    except DataError:
        for path in files:  # say the line where a document stands twice
            _refuse_repeats(path)
        raise


def read_qrels(path: Path, *, scale: Scale | None = None) -> Judgments:
    """The judgments of a TREC qrels or prels file."""
    rows = read_qrels_rows(path, scale=scale)
    (query, queries), (doc, docs) = numbered([rows.queries]), numbered([rows.docs])
    try:
        pool, pair = Pool.coded(_text(queries), _text(docs), query, doc)
        assessors = [] if rows.assessors is None else rows.assessors.tolist()
        who = _text(assessors) if len(set(assessors)) > 1 else None
    except UnicodeDecodeError:
        _refuse_bytes(path)
        raise
    return Judgments.coded(pool, pair, rows.grades, assessors=who)


def _text(labels: Sequence[bytes]) -> list[str]:
    return [label.decode() for label in labels]


def _refuse_bytes(path: Path) -> None:
    """Raise where an id of a run or qrels file is not UTF-8, with the line."""
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        try:
            b" ".join(line.split()[:3]).decode()  # the ids are among the first three columns in every layout
        except UnicodeDecodeError:
            raise DataError("ids must be UTF-8 text. Convert the file.", path=path, line=number) from None


def _refuse_repeats(path: Path) -> None:
    """Raise if a document occurs twice in the list of one query, with the line number."""
    repeat = _first_repeat(path, read_bytes(path), RUN, ("query", "doc"))
    if repeat:
        raise repeat


def read_qrels_rows(path: Path, *, scale: Scale | None = None) -> JudgmentRows:
    """Read TREC judgments: qrels ``query assessor doc grade`` or prels ``query doc grade method probability``.

    With a ``scale``, a grade outside it is an error that names the line.
    """
    data = read_bytes(path)
    first = next(iter(_lines(data)), (0, []))[1]
    layout, key = (PRELS, ("query", "doc")) if len(first) == 5 else (QRELS, ("query", "doc", "assessor"))
    try:
        columns = _columns(data, layout, ("query", "doc", "grade", "assessor"))
        rows = JudgmentRows(columns["query"], columns["doc"], _numbers(columns["grade"]), columns.get("assessor"))
        if not np.isfinite(rows.grades).all():
            raise ValueError
        if scale is not None:
            scale.codes(rows.grades)
    except (ValueError, ScaleError):
        raise _first_fault(path, data, layout, {"grade": _grade_on(scale)}) from None
    row = np.zeros(len(rows.grades), dtype=np.int64)
    for name in key:
        number, known = numbered([columns[name]])
        row = row * len(known) + number
    if len(np.unique(row)) < len(row):
        repeat = _first_repeat(path, data, layout, key)
        assert repeat is not None
        raise repeat
    return rows


def write_run(path: str | PathLike[str], runs: Runs, system: str) -> None:
    """Write one system's lists as a TREC run, gzipped if the name ends in ``.gz``.

    Scores are written in full precision. Lists without scores get decreasing ones, to preserve the order. White space
    in the system's name becomes ``_`` in the tag.
    """
    table = runs.select([system]).to_frame()
    check_writable(Path(path), queries=table["query"], docs=table["doc"])
    tag = "_".join(system.split()) or "run"
    scores = table["score"].where(table["score"].notna(), runs.depth + 1.0 - table["rank"])
    lines = (
        f"{q} Q0 {d} {r} {s!r} {tag}\n"
        for q, d, r, s in zip(table["query"], table["doc"], table["rank"], scores.astype(float), strict=True)
    )
    write_bytes(Path(path), "".join(lines).encode())


def write_qrels(path: str | PathLike[str], judgments: Judgments) -> None:
    """Write judgments as TREC qrels, one line per assessor and pair (the latest); gzipped for a name in ``.gz``."""
    write_bytes(Path(path), qrels_text(judgments, path=Path(path)).encode())


def qrels_text(judgments: Judgments, *, path: Path | None = None) -> str:
    """Judgments as the text of a TREC qrels file, to be written to ``path``."""
    table = judgments.to_frame()
    table = table.assign(assessor=table["assessor"].where(table["assessor"] != "", "0"))
    table = table.drop_duplicates(["query", "doc", "assessor"], keep="last")
    check_writable(path, queries=table["query"], docs=table["doc"], assessors=table["assessor"])
    lines = (
        f"{q} {a} {d} {int(g) if g == int(g) else repr(g)}\n"
        for q, a, d, g in zip(table["query"], table["assessor"], table["doc"], table["grade"], strict=True)
    )
    return "".join(lines)


def check_writable(path: Path | None, **columns: Iterable[str]) -> None:
    """Refuse ids that would not come back from a TREC file."""
    for name, column in columns.items():
        for label in set(column):
            if UNWRITABLE.search(label) or not label or (name == "queries" and label.startswith(("#", "\ufeff"))):
                raise DataError(
                    f"a TREC file cannot hold {label!r} among its {name}: ids there are not empty, have no white space "
                    "or control characters, and no '#' or byte order mark at the start of a query.",
                    path=path,
                )


def _columns(data: bytes, layout: str, wanted: Sequence[str]) -> dict[str, Tokens]:
    """Return the wanted columns by name; ValueError for a wrong number of columns or a control character."""
    data = data.removeprefix(BOM)
    names = layout.split()
    if CONTROL_BYTES.search(data):
        raise ValueError
    if data.startswith(b"#") or b"\n#" in data or b"\r#" in data:
        data = b"\n".join(line for line in data.splitlines() if not line.startswith(b"#"))
    text = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    blank = text <= ord(" ")
    edges = np.flatnonzero(blank[:-1] != blank[1:]) + 1
    if (
        len(edges) == 0
        or len(edges) % (2 * len(names))
        or np.any((text < ord("\t")) | (text > ord("\r")) & (text < ord(" ")))
    ):
        raise ValueError
    starts, ends = edges[::2].reshape(-1, len(names)), edges[1::2].reshape(-1, len(names))
    # Every row must be on a line of its own.
    newlines = np.flatnonzero((text == ord("\n")) | (text == ord("\r")))
    line = np.searchsorted(newlines, starts[:, -1])
    if np.any(newlines[line - 1] > starts[:, 0]) or np.any(np.diff(line) <= 0):
        raise ValueError
    return {name: _tokens(text, starts[:, i], ends[:, i]) for i, name in enumerate(names) if name in wanted}


def _tokens(text: NDArray[np.uint8], start: Ints, end: Ints) -> Tokens:
    """Return the substrings between each start and end."""
    length = end - start
    width = -(-int(length.max()) // WORD) * WORD
    if width > WIDEST:
        return objects([text[a:b].tobytes() for a, b in zip(start, end, strict=True)])
    at = np.arange(width)
    letters = np.take(text, start[:, None] + at, mode="clip")
    letters[at >= length[:, None]] = 0
    return letters.view(f"S{width}")[:, 0]


def numbered(parts: Sequence[Tokens]) -> tuple[Ints, list[bytes]]:
    """Number the ids of all parts in order of first occurrence; return the number of each and the distinct ids.

    Short ids are compared as machine words: numbered by a hash of the words, then verified word by word.
    """
    tokens = np.concatenate(parts)
    if tokens.dtype != object:
        words = tokens.view(np.uint64).reshape(len(tokens), -1)
        key = words[:, 0]
        for word in words.T[1:]:
            key = key * MIX + word
        number = pd.factorize(key)[0]
        first = np.empty(int(number.max()) + 1, dtype=np.int64)
        first[number[::-1]] = np.arange(len(number))[::-1]
        if all(np.array_equal(word, word[first][number]) for word in words.T):
            return number, tokens[first].tolist()
    number, ids = pd.factorize(tokens.astype(object))
    return number, list(ids)


def _numbers(column: Tokens) -> Floats:
    """Return the column as numbers; ValueError if one is not a number."""
    numbers = column.astype(float)
    if np.isnan(numbers).any() or b"_" in b"".join(column.tolist()):  # only Python reads 1_0 as ten
        raise ValueError
    return numbers


def _number(text: str) -> str | None:
    """Return the expected kind of value if the text is not a number, else None."""
    try:
        return "a number" if np.isnan(float(text.encode())) or "_" in text else None
    except ValueError:
        return "a number"


def _grade_on(scale: Scale | None) -> Callable[[str], str | None]:
    def fault(text: str) -> str | None:
        wrong = _number(text)
        if wrong or not np.isfinite(float(text)):
            return "a number"
        if scale is None:
            return None
        try:
            scale.codes([float(text)])
        except ScaleError:
            return f"a grade on the scale {scale}"
        return None

    return fault


def _lines(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbers and fields of lines that are neither blank nor comments."""
    for number, line in enumerate(data.removeprefix(BOM).splitlines(), start=1):
        if line.strip() and not line.startswith(b"#"):
            yield number, [field.decode("utf-8", "backslashreplace") for field in line.split()]


def _first_fault(path: Path, data: bytes, layout: str, faults: dict[str, Callable[[str], str | None]]) -> DataError:
    """Return an error for the first line that does not fit the layout."""
    if data.startswith(SQLITE):
        how = "Open it as a campaign." if layout == RUN else "Export its judgments as qrels first."
        return DataError(f"a store of campaigns; expected text lines of the form '{layout}'. {how}", path=path)
    if b"\0" in data:
        return DataError(f"a binary file; expected text lines of the form '{layout}'.", path=path)
    names = layout.split()
    for number, fields in _lines(data):
        if len(fields) != len(names):
            return DataError(f"expected {len(names)} columns ({layout}), got {len(fields)}.", path=path, line=number)
        for name, value in zip(names, fields, strict=True):
            if CONTROL.search(value):
                what = f"the {name} must have no control character, got {value!r}."
                return DataError(what, path=path, line=number)
            expected = faults[name](value) if name in faults else None
            if expected:
                return DataError(f"the {name} must be {expected}, got {value!r}.", path=path, line=number)
    return DataError(f"holds no line of the form '{layout}'.", path=path)


def _first_repeat(path: Path, data: bytes, layout: str, key: tuple[str, ...]) -> DataError | None:
    """Return an error for the first line that repeats the key of an earlier one."""
    seen: dict[tuple[str, ...], int] = {}
    for number, fields in _lines(data):
        row = dict(zip(layout.split(), fields, strict=True))
        earlier = seen.setdefault(tuple(row[name] for name in key), number)
        if earlier != number:
            what = f"document {row['doc']!r} of query {row['query']!r} stands on line {earlier} already. Keep one."
            return DataError(what, path=path, line=number)
    return None
