"""Datasets of ir_datasets by id, as ``irds:beir/scifact/test``: judgments, and texts of queries and documents.

The prefix is PyTerrier's. ir_datasets downloads what is not on this machine yet. It is imported when an id is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from probeval.data.judgments import Judgments
from probeval.data.tables import judgments_from_object
from probeval.errors import DataError, did_you_mean

__all__ = ["is_dataset", "read_dataset_judgments", "read_dataset_texts"]

PREFIX = "irds:"
NAMED = 3  # datasets in an error
PARTS = {"doc": "docs", "query": "queries"}


def is_dataset(path: Path) -> bool:
    """Whether a path is the id of a dataset.

    >>> is_dataset(Path("irds:beir/scifact/test")), is_dataset(Path("qrels.txt"))
    (True, False)
    """
    return path.as_posix().startswith(PREFIX)


def read_dataset_judgments(path: Path) -> Judgments:
    """The judgments of a dataset, without regard to the iterations of its qrels."""
    dataset = _load(path, "qrels")
    with _reading(path):
        rows = [(qrel.query_id, qrel.doc_id, qrel.relevance) for qrel in dataset.qrels_iter()]
    return judgments_from_object(rows)


def read_dataset_texts(path: Path, name: str, *, only: Collection[str] | None = None) -> pd.DataFrame:
    """The texts of a dataset's queries or documents: one row each with its id, its text and its link if it has one.

    Queries have their description and narrative too, empty where there is none.

    Parameters
    ----------
    path, name
        The id, and ``"query"`` or ``"doc"``: the column of the ids.
    only
        The ids to look up; by default all, which for documents reads the whole collection.
    """
    dataset = _load(path, PARTS[name])
    more = ("description", "narrative") if name == "query" else ()
    with _reading(path):
        if name == "doc" and only is not None:
            rows: Iterable[Any] = dataset.docs_store().get_many_iter(sorted(only))
        else:
            rows = dataset.docs_iter() if name == "doc" else dataset.queries_iter()
        found = [
            {name: row[0], "text": _text(row), "link": _link(row)}
            | {each: str(getattr(row, each, None) or "") for each in more}
            for row in rows
            if only is None or row[0] in only
        ]
    return pd.DataFrame(found, columns=[name, "text", "link", *more])


def _text(row: Any) -> str:
    """The text that a dataset gives for retrieval; for the few that give none, all texts beside the id."""
    if hasattr(row, "default_text"):
        return str(row.default_text())
    return " ".join(field for field in row[1:] if isinstance(field, str))


def _link(row: Any) -> str:
    """The address of a document; empty without one that a browser opens."""
    link = str(getattr(row, "url", ""))
    return link if link.startswith(("http://", "https://")) else ""


def _load(path: Path, part: str) -> Any:
    """The dataset with this id, which must have this part: docs, queries or qrels."""
    try:
        package = import_module("ir_datasets")
    except ImportError:
        raise DataError("datasets by id need ir_datasets: pip install 'probeval[tools]'.", path=path) from None
    name = path.as_posix().removeprefix(PREFIX)
    with _reading(path):
        try:
            dataset = package.load(name)
        except KeyError:
            raise DataError(
                f"ir_datasets has no dataset {name!r}.{did_you_mean(name, package.registry)}", path=path
            ) from None
        if not getattr(dataset, f"has_{part}")():
            hint = _below(name, package.registry, lambda other: getattr(package.load(other), f"has_{part}")())
            raise DataError(f"this dataset has no {part}.{hint}", path=path)
    return dataset


def _below(name: str, known: Iterable[str], fits: Callable[[str], bool]) -> str:
    """A sentence that names some parts of a dataset that fit."""
    parts = [other for other in known if other.startswith(f"{name}/") and fits(other)]
    return f" Parts that do: {', '.join(PREFIX + part for part in parts[:NAMED])}." if parts else ""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of downloads and of files into one line."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        reason = next((part for part in error.args if isinstance(part, str) and part), type(error).__name__)
        first = reason.strip().splitlines()[0].rstrip(".")
        raise DataError(f"ir_datasets cannot read it: {first}. Its own messages have more.", path=path) from None
