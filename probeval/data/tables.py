"""Tables with named columns (CSV, TSV, JSONL, parquet), and objects of other packages, as runs and judgments.

Ids stay strings: ``007``, ``1e5`` and ``NaN`` are read as they are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.data.files import read_bytes, suffix
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.errors import DataError

__all__ = ["as_judgments", "as_runs", "ids", "numbers", "read_table"]

NAMES = {
    "system": ("system", "run", "run_id", "system_id", "tag"),
    "query": ("query", "query_id", "query-id", "qid", "topic", "topic_id", "q_id"),
    "doc": ("doc", "doc_id", "docid", "docno", "corpus-id", "corpus_id", "document", "document_id"),
    "score": ("score", "similarity"),
    "rank": ("rank", "position"),
    "grade": ("grade", "relevance", "rel", "label", "judgment", "rating", "score"),
    "assessor": ("assessor", "assessor_id", "annotator", "rater", "judge", "worker", "iteration"),
    "time": ("time", "timestamp"),
}
TRIPLES = ("system", "query", "doc")


def read_table(path: Path) -> pd.DataFrame:
    """A table of strings; a TSV of three columns without a header is system, query, doc in rank order."""
    kind = suffix(path)
    if kind == ".parquet":
        return _read_parquet(path)
    data = read_bytes(path)
    if kind == ".jsonl":
        return _read_jsonl(path, data)
    separator = b"\t" if kind == ".tsv" else b","
    first = data.removeprefix(b"\xef\xbb\xbf").splitlines()[0].decode("utf-8", "replace").split(separator.decode())
    known = {name for names in NAMES.values() for name in names}
    headless = len(first) == len(TRIPLES) and not known & {name.strip().lower() for name in first}
    try:
        return pd.read_csv(
            BytesIO(data),
            sep=separator.decode(),
            dtype=str,
            keep_default_na=False,
            na_filter=False,
            header=None if headless else "infer",
            names=TRIPLES if headless else None,
            index_col=False,
            on_bad_lines="error",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. C error: ")
        raise DataError(
            f"not a table of {kind.removeprefix('.').upper()} with named columns: {reason}.", path=path
        ) from None


def _read_jsonl(path: Path, data: bytes) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_int=str, parse_float=str)  # a number keeps its spelling
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"not a JSON object: {error}.", path=path, line=number) from None
        if not isinstance(row, dict):
            raise DataError(f"expected a JSON object, got {type(row).__name__}.", path=path, line=number)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise DataError("reading parquet needs pyarrow: pip install 'probeval[parquet]'.", path=path) from None
    except Exception as error:  # pyarrow's own tree of errors, of which no base is public
        raise DataError(f"not a parquet file: {str(error).splitlines()[0]}.", path=path) from None


def column(table: pd.DataFrame, name: str, *, path: Path | None = None, required: bool = True) -> pd.Series | None:
    """The column that means ``name`` under any of its names."""
    by_name = {str(c).strip().lower(): c for c in table.columns}
    found = next((by_name[alias] for alias in NAMES[name] if alias in by_name), None)
    if found is None and required:
        raise DataError(
            f"no column for the {name}: one of {', '.join(NAMES[name])} is expected, "
            f"got {', '.join(map(str, table.columns))}.",
            path=path,
        )
    return None if found is None else table[found]


def ids(values: Iterable[Any], name: str, *, path: Path | None = None) -> list[str]:
    """Ids as strings. A float is refused: its spelling is lost already."""
    out = []
    for row, value in enumerate(values):
        if isinstance(value, str):
            text = value
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            text = str(value)
        else:
            raise DataError(
                f"the {name} in row {row + 1} must be a string, got {value!r}. Read ids as strings (dtype=str).",
                path=path,
            )
        if not text or any(c.isspace() for c in text):
            raise DataError(f"the {name} in row {row + 1} must have no white space, got {text!r}.", path=path)
        out.append(text)
    return out


def numbers(values: pd.Series, name: str, *, path: Path | None = None, missing: bool = False) -> Floats:
    """A column as numbers; empty cells are NaN where ``missing`` allows them."""
    text = values.astype(object).map(lambda v: np.nan if v is None or v == "" else v)
    out = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    bad = np.isnan(out) & (text.notna().to_numpy() | (not missing))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"the {name} in row {row + 1} must be a number, got {values.iloc[row]!r}.", path=path)
    return out


def runs_from_table(table: pd.DataFrame, *, system: str = "run", path: Path | None = None, order: str) -> Runs:
    """Runs from a table with columns for query, doc and score or rank, and the system where there are several."""
    names, scores, ranks = (column(table, c, path=path, required=False) for c in ("system", "score", "rank"))
    return Runs.rows(
        [system] * len(table) if names is None else ids(names, "system", path=path),
        ids(_required(table, "query", path), "query", path=path),
        ids(_required(table, "doc", path), "doc", path=path),
        None if scores is None else numbers(scores, "score", path=path),
        ranks=None if ranks is None else numbers(ranks, "rank", path=path),
        order=order,
    )


def judgments_from_table(table: pd.DataFrame, *, path: Path | None = None) -> Judgments:
    """Judgments from a table with columns for query, doc and grade; assessor and time where there are any."""
    who, when = (column(table, c, path=path, required=False) for c in ("assessor", "time"))
    return Judgments.rows(
        ids(_required(table, "query", path), "query", path=path),
        ids(_required(table, "doc", path), "doc", path=path),
        numbers(_required(table, "grade", path), "grade", path=path),
        assessors=None if who is None else [str(w) for w in who],
        times=None if when is None else numbers(when, "time", path=path, missing=True),
    )


def _required(table: pd.DataFrame, name: str, path: Path | None) -> pd.Series:
    found = column(table, name, path=path)
    assert found is not None
    return found


def as_runs(runs: Any, *, order: str = "trec_eval") -> Runs:
    """Runs from what other packages hold.

    Takes :class:`Runs`; a data frame with a system column; a mapping from system names to runs; a ranx ``Run`` or
    a list of them. A run is a mapping from queries to mappings from documents to scores, a data frame, a ranx
    ``Run`` or an iterable of ir_measures' ``ScoredDoc``.

    >>> as_runs({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}})
    <Runs: 1 system, 1 query, depth 2, 2 pairs>
    """
    if isinstance(runs, Runs):
        return runs
    if isinstance(runs, pd.DataFrame):
        return runs_from_table(runs, order=order)
    if not isinstance(runs, Mapping):
        listed = [runs] if hasattr(runs, "to_dict") else list(runs)
        if not all(hasattr(run, "to_dict") for run in listed):
            raise DataError("a single run needs a name: pass {'name': run}.")
        runs = {run.name or f"run{i + 1}": run for i, run in enumerate(listed)}
    rows = [(name, *row) for name, run in runs.items() for row in _scored(run)]
    systems, queries, docs, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Runs.rows(
        ids(systems, "system"),
        ids(queries, "query"),
        ids(docs, "doc"),
        numbers(pd.Series(scores, dtype=object), "score"),
        order=order,
    )


def as_judgments(judgments: Any) -> Judgments:
    """Judgments from what other packages hold.

    Takes :class:`Judgments`; a data frame; a mapping from queries to mappings from documents to grades; a ranx
    ``Qrels``; or an iterable of ir_measures' ``Qrel``.

    >>> as_judgments({"q1": {"d1": 1, "d2": 0}})
    <Judgments: 2 of 2 pairs>
    """
    if isinstance(judgments, Judgments):
        return judgments
    if isinstance(judgments, pd.DataFrame):
        return judgments_from_table(judgments)
    rows = list(_scored(judgments))
    queries, docs, grades = zip(*rows, strict=True) if rows else ((), (), ())
    return Judgments.rows(ids(queries, "query"), ids(docs, "doc"), numbers(pd.Series(grades, dtype=object), "grade"))


def _scored(source: Any) -> Iterable[tuple[Any, Any, Any]]:
    """Query, document and number, row by row."""
    if isinstance(source, pd.DataFrame):
        value = column(source, "score", required=False)
        value = column(source, "grade") if value is None else value
        assert value is not None
        return zip(_required(source, "query", None), _required(source, "doc", None), value, strict=True)
    if hasattr(source, "to_dict"):
        source = source.to_dict()
    if isinstance(source, Mapping):
        return ((q, d, v) for q, docs in source.items() for d, v in docs.items())
    return (
        (row.query_id, row.doc_id, row.score if hasattr(row, "score") else row.relevance)
        if hasattr(row, "query_id")
        else tuple(row)
        for row in source
    )
