"""Files of other tools, checked as they are read: text, JSON, the members of JSON objects, ids by text."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar, overload

from probeval.data.limits import check_cells
from probeval.errors import DataError

__all__ = ["csv_rows", "decoded", "ids_of_texts", "json_records", "member", "parsed_json", "query_ids"]

T = TypeVar("T")
KINDS: dict[type, str] = {dict: "an object", list: "an array", str: "a text"}
MOST_SHOWN = 60  # characters of a wrong value in an error


def decoded(path: Path, data: bytes) -> str:
    """The text of a file in UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: {error.reason} at byte {error.start}.", path=path) from None


def parsed_json(path: Path, data: bytes) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise DataError(f"not JSON: {error}.", path=path) from None


def csv_rows(path: Path, data: bytes) -> list[list[str]]:
    """The rows of a CSV file; none is an error."""
    try:
        rows = list(csv.reader(StringIO(decoded(path, data), newline="")))
    except csv.Error as error:
        raise DataError(f"not CSV: {error}.", path=path) from None
    if not rows:
        raise DataError("the table has no rows.", path=path)
    check_cells(1, max(map(len, rows)), len(data), path=path)
    return rows


def json_records(path: Path, data: bytes) -> list[dict[str, Any]]:
    """JSON objects from JSON lines or one array."""
    if data.lstrip()[:1] == b"[":
        rows = parsed_json(path, data)
    else:
        rows = [parsed_json(path, line.encode()) for line in decoded(path, data).splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise DataError("expected JSON objects, one per line or in one array.", path=path)
    return list(rows)


@overload
def member(record: Any, key: str, kind: type[T], *, where: str, path: Path) -> T: ...
@overload
def member(record: Any, key: str, kind: type[T], *, where: str, path: Path, default: T) -> T: ...
def member(record: Any, key: str, kind: type[T], *, where: str, path: Path, default: T | None = None) -> T:
    """The value of a key, which must be an object, an array or a text; ``default`` if the key is missing or null.

    Parameters
    ----------
    record
        A JSON object, or anything else, which is refused.
    key, kind
        The key and the type of its value.
    where
        The place in the file, for errors.
    path
        The file.
    default
        The value of a missing key; without it, the key must be there.
    """
    if not isinstance(record, dict):
        raise DataError(f"{where} must be an object, got {_shown(record)}.", path=path)
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        got = "nothing" if value is None else _shown(value)
        raise DataError(f"{where}: {key!r} must be {KINDS[kind]}, got {got}.", path=path)
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}.."


def query_ids(texts: Sequence[str], queries: Mapping[str, str] | None, *, path: Path) -> list[str]:
    """The ids of queries that a file names by their text; without ``queries`` the texts are the ids."""
    # Quepid prepends a space to texts that a spreadsheet would read as formulas.
    texts = [str(text).strip() for text in texts]
    if queries is not None:
        return ids_of_texts(texts, queries, "queries", path=path)
    spaced = next((text for text in texts if len(text.split()) != 1), None)
    if spaced is not None:
        raise DataError(
            f"the query {spaced!r} is a text, not an id. Give queries={{'q1': {spaced!r}, ..}}; on the command line: "
            "probeval convert FILE --queries TEXTS -o qrels.txt.",
            path=path,
        )
    return texts


def ids_of_texts(texts: Sequence[str], known: Mapping[str, str], what: str, *, path: Path) -> list[str]:
    """The ids of texts; ``what`` names the argument that maps ids to texts."""
    by_text: dict[str, list[str]] = {}
    for key, text in known.items():
        by_text.setdefault(text.strip(), []).append(key)
    for text in texts:
        if len(by_text.get(text.strip(), ())) != 1:
            count = "no id" if text.strip() not in by_text else "several ids"
            raise DataError(f"{count} in {what}= for the text {text[:MOST_SHOWN]!r}; one is needed.", path=path)
    return [by_text[text.strip()][0] for text in texts]
