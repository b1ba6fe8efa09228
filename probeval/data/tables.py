"""Runs and judgments from tables with named columns (CSV, TSV, JSONL, parquet) and from objects of other packages.

Ids stay strings: ``007``, ``1e5`` and ``NaN`` are read verbatim.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats
from probeval.characters import HIDDEN, readable
from probeval.data.files import first_bytes, read_bytes, suffix
from probeval.data.judgments import Judgments, on_scale
from probeval.data.limits import check_cells
from probeval.data.parquet import parquet_table
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.spreadsheets import restored, restored_cell
from probeval.errors import DataError

__all__ = [
    "ABOUT_OBSERVER",
    "as_frame",
    "cell_text",
    "column_names",
    "ids",
    "is_text_column",
    "judgments_from_object",
    "names_grades",
    "names_pairs",
    "numbers",
    "observers_before",
    "read_table",
    "runs_from_object",
]

NAMES = {
    "system": ("system", "run", "run_id", "system_id", "tag"),
    # The first that a table has: PyTerrier's frames have the text of a query beside its qid, and a docid of their own.
    "query": ("query_id", "query-id", "qid", "q_id", "query", "topic", "topic_id", "topicid"),
    "doc": ("docno", "doc", "doc_id", "docid", "corpus-id", "corpus_id", "document", "document_id"),
    "score": ("score", "similarity"),
    "rank": ("rank", "position"),
    "grade": ("grade", "relevance", "rel", "label", "judgment", "rating", "score"),
    "assessor": (
        "assessor",
        "assessor_id",
        "annotator",
        "rater",
        "judge",
        "worker",
        "worker_id",
        "workerid",
        "iteration",
    ),
    "time": ("time", "timestamp"),
    "gold": ("gold",),
    "purpose": ("purpose",),
}
# Purposes of answers, in exports of campaigns, that do not count: they check an assessor, or are set aside.
CONTROLS = ("gold", "repeat", "aside")
TRIPLES = ("system", "query", "doc")
# In front of a table of labels: the description of an observer as JSON, one per line.
ABOUT_OBSERVER = b"# labels by "
MOST_FLOAT = int(np.finfo(float).max)
MOST_SHOWN = 60  # characters of a wrong value in an error
NOT_IN_IDS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
PLAIN_NUMBERS = re.compile(r"[0-9.\-]*+")
# The first row of a text table: line breaks in quotes do not end it.
FIRST_ROW = re.compile(rb'(?:[^"\r\n]++|"[^"]*+"?+)*+')


def read_table(path: Path, *, triples: bool = False, separator: str | None = None) -> pd.DataFrame:
    """Read a table of strings with at least one row.

    With ``triples``, three columns without a header of query and doc are system, query, doc in rank order. A
    ``separator`` is for text files whose names do not tell theirs.
    """
    kind = suffix(path)
    if kind == ".parquet":
        table = parquet_table(path, read_bytes(path))
    elif kind == ".jsonl":
        table = _read_jsonl(path, read_bytes(path))
    else:
        table = _read_csv(path, read_bytes(path), triples=triples, separator=separator or _separator(path))
    if table.empty:
        raise DataError("the table has no rows.", path=path)
    _check_names(list(map(str, table.columns)), path)
    return table


def _check_names(names: Sequence[str], path: Path) -> None:
    """Refuse names of columns with control characters, and two columns of one name."""
    for number, name in enumerate(names, start=1):
        if HIDDEN.search(name):
            raise DataError(f"the name of column {number} must be one line of text, got {name!r:.60}.", path=path)
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise DataError(f"two columns are called {twice!r:.60}. Rename one.", path=path)


def observers_before(data: bytes) -> tuple[list[str], bytes]:
    r"""The descriptions of observers in front of a table in text, and the table itself.

    >>> observers_before(b'# labels by {"name": "llm"}\nquery,doc,llm\n')
    (['{"name": "llm"}'], b'query,doc,llm\n')
    """
    lines, data = list[str](), data.removeprefix(b"\xef\xbb\xbf")
    while data.startswith(ABOUT_OBSERVER):
        line, _, data = data.partition(b"\n")
        lines.append(line.removeprefix(ABOUT_OBSERVER).decode("utf-8", "replace").strip())
    return lines, data


def column_names(path: Path) -> list[str]:
    """The names of a table's columns in lower case, from its first row alone where the format allows that."""
    kind = suffix(path)
    if kind != ".parquet":
        first = observers_before(first_bytes(path))[1].decode("utf-8-sig", "replace").lstrip().splitlines()[:1]
        names = _json_keys(first) if kind == ".jsonl" else next(csv.reader(first, delimiter=_separator(path)), [])
        if names:
            return [restored_cell(name).strip().lower() for name in names]
    return [str(name).strip().lower() for name in read_table(path).columns]


def names_grades(names: Iterable[str]) -> bool:
    """Whether one of these columns is that of the grade."""
    return not set(names).isdisjoint(NAMES["grade"])


def _json_keys(lines: Sequence[str]) -> list[str]:
    try:
        return list(json.loads(lines[0]))
    except (ValueError, TypeError, IndexError, RecursionError):
        return []


def _separator(path: Path) -> str:
    return "\t" if suffix(path) == ".tsv" else ","


def _read_csv(path: Path, data: bytes, *, triples: bool, separator: str) -> pd.DataFrame:
    kind = "tsv" if separator == "\t" else "csv"
    data = observers_before(data)[1]
    lines = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").splitlines() or [b""]
    first = lines[0].decode("utf-8", "replace").split(separator)
    header = FIRST_ROW.match(data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))
    assert header is not None
    check_cells(len(lines), header[0].count(separator.encode()) + 1, len(data), path=path)
    headless = triples and len(first) == len(TRIPLES) and not names_pairs(first)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            table = pd.read_csv(
                BytesIO(data),
                sep=separator,
                dtype=str,
                keep_default_na=False,
                na_filter=False,
                header=None if headless else "infer",
                names=TRIPLES if headless else None,
                index_col=False,
                on_bad_lines="error",
            )
        return restored(table, data)
    except pd.errors.ParserWarning:
        raise DataError(f"rows have more cells than the header has names ({len(first)}).", path=path) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. C error: ")
        raise DataError(f"not a table of {kind.upper()} with named columns: {reason}.", path=path) from None


def names_pairs(header: Iterable[str]) -> bool:
    """Whether these columns include those of the query and of the document."""
    names = {name.strip().strip('"').lower() for name in header}
    return bool(names & set(NAMES["query"])) and bool(names & set(NAMES["doc"]))


def _read_jsonl(path: Path, data: bytes) -> pd.DataFrame:
    rows, known = [], dict[str, None]()
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_int=str, parse_float=str)  # a number keeps its spelling
        except (ValueError, RecursionError) as error:
            raise DataError(f"not a JSON object: {error}.", path=path, line=number) from None
        if not isinstance(row, dict):
            raise DataError(f"expected a JSON object, got {type(row).__name__}.", path=path, line=number)
        rows.append(row)
        known.update(dict.fromkeys(row))
    check_cells(len(rows), len(known), len(data), path=path)
    _check_names(list(known), path)
    return pd.DataFrame(rows, dtype=object)


def column(table: pd.DataFrame, name: str, *, path: Path | None = None, required: bool = True) -> pd.Series | None:
    """Return the column for ``name`` under any of its aliases."""
    by_name = {str(c).strip().lower(): c for c in table.columns}
    found = next((by_name[alias] for alias in NAMES[name] if alias in by_name), None)
    if found is None and required:
        raise DataError(
            f"no column for the {name}: one of {', '.join(NAMES[name])} is expected, "
            f"got {', '.join(repr(str(c)) for c in table.columns[:9])}{', ..' * (len(table.columns) > 9)}.",
            path=path,
        )
    return None if found is None else table[found]


def cell_text(value: Any) -> str:
    r"""The content of a cell as text that can be encoded; empty for a missing value.

    >>> cell_text(None), cell_text("cut \ud83d")
    ('', 'cut \ufffd')
    """
    if isinstance(value, str):
        return readable(value)
    return "" if pd.api.types.is_scalar(value) and pd.isna(value) else readable(str(value))


def ids(values: Iterable[Any], name: str, *, path: Path | None = None) -> list[str]:
    """Return ids as strings. Floats are an error: their original spelling is lost."""
    given = list(values)
    # All of them at once, which is the usual case; the first that is wrong is found one by one.
    if all(type(value) is str and value for value in given) and not NOT_IN_IDS.search("".join(given)):
        return given
    out = []
    for row, value in enumerate(given):
        if isinstance(value, str):
            text = value
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            text = str(value)
        else:
            raise DataError(
                f"the {name} in row {row + 1} must be a string, got {value!r}. Read ids as strings (dtype=str).",
                path=path,
            )
        if not text or NOT_IN_IDS.search(text):
            raise DataError(
                f"the {name} in row {row + 1} must be text without white space or control characters, got {text!r}.",
                path=path,
            )
        out.append(text)
    return out


def numbers(
    values: pd.Series, name: str, *, path: Path | None = None, missing: bool = False, finite: bool = False
) -> Floats:
    """Return a column as numbers; empty cells are NaN if ``missing`` allows them, and ``finite`` refuses infinity."""
    out, filled = _parsed(values)
    bad = np.isnan(out) & (filled | (not missing))
    if finite:
        bad |= np.isinf(out)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        got = values.iloc[row]
        shown = repr(got if len(str(got)) <= MOST_SHOWN else f"{str(got)[:MOST_SHOWN]}..")
        what = "a finite number" if np.isinf(out[row]) else "a number"
        raise DataError(f"the {name} in row {row + 1} must be {what}, got {shown}.", path=path)
    return out


def is_text_column(values: pd.Series) -> bool:
    """Whether most of the filled cells of a column are not numbers: it is a text, not numbers with errors."""
    out, filled = _parsed(values)
    return bool(filled.any()) and bool(np.mean(np.isnan(out[filled])) > 0.5)


def _parsed(values: pd.Series) -> tuple[Floats, Bools]:
    """The cells as numbers, NaN where they are none; and which cells are filled."""
    cells = values.astype(object)
    # Plain numbers in all cells are the usual case, and as they should be.
    if not (all(type(cell) is str and cell for cell in cells) and PLAIN_NUMBERS.fullmatch("".join(cells))):
        cells = cells.map(_cell)
    return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float), cells.notna().to_numpy()


def _cell(value: Any) -> Any:
    """A cell with NaN for nothing, and infinity for a whole number beyond all floats."""
    if value is None or (isinstance(value, str) and value == ""):
        return np.nan
    if isinstance(value, int) and abs(value) > MOST_FLOAT:
        return np.inf
    return readable(value) if isinstance(value, str) else value


def runs_from_table(table: pd.DataFrame, *, system: str = "run", path: Path | None = None, order: str) -> Runs:
    """Return runs from a table with columns for query, doc and score or rank, and for the system if several."""
    names, scores, ranks = (column(table, c, path=path, required=False) for c in ("system", "score", "rank"))
    if path is not None and names is None and scores is None and ranks is None:
        _refuse_labels(table, path)
    return Runs.rows(
        [system] * len(table) if names is None else ids(names, "system", path=path),
        ids(_required(table, "query", path), "query", path=path),
        ids(_required(table, "doc", path), "doc", path=path),
        None if scores is None else numbers(scores, "score", path=path),
        ranks=None if ranks is None else numbers(ranks, "rank", path=path),
        order=order,
    )


def _refuse_labels(table: pd.DataFrame, path: Path) -> None:
    """Refuse a table of labels or judgments in place of a run: beside query and doc it has numbers alone."""
    pair = {
        found.name for name in ("query", "doc") if (found := column(table, name, path=path, required=False)) is not None
    }
    rest = [str(c) for c in table.columns if c not in pair]
    if rest and not any(is_text_column(pd.Series(table[c])) for c in table.columns if c not in pair):
        raise DataError(
            f"not a run but labels or judgments ({', '.join(rest)[:MOST_SHOWN]}): there is no column for system, score "
            "or rank. Take it out of the runs, and give it with --labels or --qrels.",
            path=path,
        )


def judgments_from_table(table: pd.DataFrame, *, path: Path | None = None, scale: Scale | None = None) -> Judgments:
    """Return judgments from a table with columns for query, doc and grade, and optionally assessor and time.

    Rows are in chronological order: by time if every row has one, else as listed. Rows whose purpose is to check an
    assessor, or that are set aside, are left out.
    """
    why = column(table, "purpose", path=path, required=False)
    if why is not None:
        table = table[~why.isin(CONTROLS)]
    who, when = (column(table, c, path=path, required=False) for c in ("assessor", "time"))
    grades = numbers(_required(table, "grade", path), "grade", path=path)
    wrong = ~np.isfinite(grades) if scale is None else np.array([not on_scale(scale, g) for g in grades])
    if wrong.any():
        row = int(np.argmax(wrong))
        what = f"{grades[row]:g} is not on the scale {scale}" if scale else "must be finite"
        raise DataError(f"the grade in row {row + 1}: {what}.", path=path)
    events = Judgments.rows(
        ids(_required(table, "query", path), "query", path=path),
        ids(_required(table, "doc", path), "doc", path=path),
        grades,
        assessors=None if who is None else [cell_text(name) for name in who],
        times=None if when is None else numbers(when, "time", path=path, missing=True),
    )
    return events if np.isnan(events.time).any() else events.take(np.argsort(events.time, kind="stable"))


def _required(table: pd.DataFrame, name: str, path: Path | None) -> pd.Series:
    found = column(table, name, path=path)
    assert found is not None
    return found


def as_frame(table: Any) -> pd.DataFrame | None:
    """Return a data frame of pandas, or of anything that exports Arrow (polars, duckdb, pyarrow); None for the rest."""
    if isinstance(table, pd.DataFrame):
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        return None
    try:
        import pyarrow as arrow
    except ImportError:
        raise DataError(
            f"a {type(table).__name__} is read through pyarrow, which is missing: pip install 'probeval[parquet]'."
        ) from None
    return arrow.table(table).to_pandas()  # type: ignore[no-any-return]


def runs_from_object(runs: Any, *, order: str) -> Runs:
    """Return runs from those of other packages: see :func:`probeval.data.as_runs`."""
    if not isinstance(runs, Mapping):
        listed = [runs] if hasattr(runs, "to_dict") else list(runs)
        if not all(hasattr(run, "to_dict") for run in listed):
            raise DataError("a single run needs a name: pass {'name': run}.")
        names = [getattr(run, "name", None) or f"run{i + 1}" for i, run in enumerate(listed)]
        if len(set(names)) != len(names):
            raise DataError(f"two runs have one name: {', '.join(names)}. Rename one.")
        runs = dict(zip(names, listed, strict=True))
    frames = {name: as_frame(run) for name, run in runs.items()}
    if runs and all(frame is not None for frame in frames.values()):
        return runs_from_table(
            _stacked({name: frame for name, frame in frames.items() if frame is not None}), order=order
        )
    rows = []
    for name, run in runs.items():
        lists = _scored(run)
        if not lists:
            raise DataError(f"run {name!r} is empty.")
        rows += [(name, *row) for row in lists]
    systems, queries, docs, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Runs.rows(
        ids(systems, "system"),
        ids(queries, "query"),
        ids(docs, "doc"),
        numbers(pd.Series(scores, dtype=object), "score"),
        order=order,
    )


def judgments_from_object(judgments: Any) -> Judgments:
    """Return judgments from those of other packages: see :func:`probeval.data.as_judgments`."""
    rows = _scored(judgments)
    queries, docs, grades = zip(*rows, strict=True) if rows else ((), (), ())
    return Judgments.rows(ids(queries, "query"), ids(docs, "doc"), numbers(pd.Series(grades, dtype=object), "grade"))


def _stacked(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the frames of several systems as one table with our column names."""
    parts = []
    for system, frame in frames.items():
        columns = {c: column(frame, c, required=c in ("query", "doc")) for c in ("query", "doc", "score", "rank")}
        parts.append(pd.DataFrame({c: v for c, v in columns.items() if v is not None}).assign(system=system))
        if frame.empty:
            raise DataError(f"run {system!r} is empty.")
    return pd.concat(parts, ignore_index=True)


def _scored(source: Any) -> list[tuple[Any, Any, Any]]:
    """Return rows of query, document and number."""
    frame = as_frame(source)
    if frame is not None:
        value = _required(frame, "score", None)
        return list(zip(_required(frame, "query", None), _required(frame, "doc", None), value, strict=True))
    if hasattr(source, "to_dict"):
        source = source.to_dict()
    if isinstance(source, Mapping):
        if not all(isinstance(docs, Mapping) for docs in source.values()):
            raise DataError("expected {query: {doc: number}} for each run (runs are {system: {query: {doc: score}}}).")
        return [(q, d, v) for q, docs in source.items() for d, v in docs.items()]
    rows = [
        (row.query_id, row.doc_id, row.score if hasattr(row, "score") else row.relevance)
        if hasattr(row, "query_id")
        else tuple(row)
        for row in source
    ]
    wrong = next((row for row in rows if len(row) != 3), None)
    if wrong is not None:
        raise DataError(f"expected rows of query, doc and number, got {wrong!r}.")
    return rows
