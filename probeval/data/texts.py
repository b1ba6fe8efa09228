"""Texts of queries and documents by id, and vectors of the words of documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from html import unescape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ids, objects
from probeval.characters import readable
from probeval.data.evidence import Vectors
from probeval.data.files import read_bytes, suffix
from probeval.data.irds import is_dataset, read_dataset_texts
from probeval.data.tables import cell_text, column, ids, read_table
from probeval.errors import DataError

__all__ = [
    "as_text_mapping",
    "document_texts",
    "document_vectors",
    "read_text_table",
    "read_texts",
    "read_topics",
    "text_vectors",
    "texts_from_table",
]

TEXTS = ("text", "title", "contents", "segment", "passage", "description", "query_text")
DESCRIPTIONS, NARRATIVES = ("description", "desc", "question"), ("narrative", "narr")
# Topics of TREC: in fields without ends, each with its label, or as XML.
TOPICS_BEGIN = 1000  # bytes in which the first one, or what comes before it, begins
TOPIC = re.compile(r"<top(?:ic)?\b([^<>]*)>", re.IGNORECASE)
FIELD = re.compile(r"<(num|title|query|desc|description|question|narr|narrative)>([^<]*)", re.IGNORECASE)
LABEL = re.compile(r"(?:Number|Topic|Title|Description|Narrative)\s*:", re.IGNORECASE)
NUMBER = re.compile(r"""\b(?:number|num|id)\s*=\s*["']([^"']+)["']""")
TOPIC_FIELDS = {"text": ("title", "query"), "description": DESCRIPTIONS, "narrative": NARRATIVES}
VECTOR = "vector"  # a column of documents' own vectors
WORD = re.compile(r"\w+")


def read_texts(path: Path, name: str, *, only: Names[str] | None = None) -> dict[str, str]:
    """Texts by id, from a table, a TSV of id and text, or a dataset of ir_datasets.

    Parameters
    ----------
    path
        A table with a ``query`` or ``doc`` column and a text column, or a TSV file without names of columns; or the id
        of a dataset, as ``irds:beir/scifact``.
    name
        ``"query"`` or ``"doc"``.
    only
        The ids to look up in a dataset; by default all. A table is read whole.
    """
    keys, texts, _ = read_text_table(path, name, only=only)
    return dict(zip(keys, texts, strict=True))


def read_text_table(
    path: Path, name: str, *, instead: Names[str] = (), only: Names[str] | None = None
) -> tuple[list[str], list[str], pd.DataFrame]:
    """The ids and texts of a table or a dataset, and the table; a column in ``instead`` makes texts optional.

    Of a dataset only the ids in ``only`` are looked up.
    """
    if is_dataset(path):
        table = read_dataset_texts(path, name, only=only)
    else:
        topics = _topics(path) if name == "query" else None
        table = read_table(path) if topics is None else topics
    if column(table, name, path=path, required=False) is None and suffix(path) == ".tsv" and len(table.columns) == 2:
        first = pd.DataFrame([list(table.columns)], columns=table.columns)  # no header: the first row is data
        table = pd.concat([first, table], ignore_index=True)
        return ids(table.iloc[:, 0], name, path=path), [cell_text(v) for v in table.iloc[:, 1]], table
    keys, texts = _id_and_text(table, name, instead=instead, path=path)
    return keys, texts, table


def read_topics(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of queries, and what else describes them: description and narrative, where the file has them.

    Parameters
    ----------
    path
        Topics of TREC (``<top>`` with title, description and narrative, or ``<topic>`` as XML), a table with these
        columns, or any file that :func:`read_texts` takes.
    """
    keys, texts, table = read_text_table(path, "query")
    named = {str(c).strip().lower(): c for c in table.columns}
    columns = [next((named[name] for name in names if name in named), None) for names in (DESCRIPTIONS, NARRATIVES)]
    known = [[cell_text(value).strip() for value in table[name]] for name in columns if name is not None]
    notes = {
        key: "\n\n".join(note for note in each if note and note != text)
        for key, text, *each in zip(keys, texts, *known, strict=True)
    }
    return dict(zip(keys, texts, strict=True)), {key: note for key, note in notes.items() if note}


def _topics(path: Path) -> pd.DataFrame | None:
    """The topics of a file of TREC: query, text, description and narrative; None for another kind of file."""
    data = read_bytes(path)
    if not data[:TOPICS_BEGIN].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return None
    try:
        parts = TOPIC.split(data.decode())
    except UnicodeDecodeError:
        raise DataError("expected UTF-8 text. Convert the file.", path=path) from None
    found, seen = list[dict[str, str]](), set[str]()
    for attributes, body in zip(parts[1::2], parts[2::2], strict=True):
        fields: dict[str, str] = {}
        for name, value in FIELD.findall(body):
            fields.setdefault(name.lower(), " ".join(unescape(LABEL.sub("", value.strip(), count=1)).split()))
        number = NUMBER.search(attributes)
        key = number[1] if number is not None else fields.get("num", "")
        first = {kind: next((fields[n] for n in names if fields.get(n)), "") for kind, names in TOPIC_FIELDS.items()}
        if not key:
            raise DataError(f"topic {len(found) + 1} has no number: expected <num> or number=.", path=path)
        if key in seen:
            raise DataError(f"topic {key!r:.60} comes twice.", path=path)
        seen.add(key)
        found.append({"query": key, **first})
    if not found:
        raise DataError("expected topics of TREC, <top> or <topic>, or a table of query and text.", path=path)
    return pd.DataFrame(found)


def texts_from_table(table: pd.DataFrame, name: str) -> dict[str, str]:
    """Texts by id, from a data frame with the columns that :func:`read_texts` expects."""
    return dict(zip(*_id_and_text(table, name), strict=True))


def as_text_mapping(given: Any, name: str, *, only: Names[str] | None = None) -> Mapping[str, str] | None:
    """Texts by id from a path, a data frame, or a mapping from ids to texts; ``name`` is ``query`` or ``doc``.

    Of a dataset, ``only`` these ids are looked up.

    >>> as_text_mapping(pd.DataFrame({"query": ["q1"], "text": ["star wars"]}), "query")
    {'q1': 'star wars'}
    """
    if given is None:
        return None
    if isinstance(given, (str, PathLike)):
        return read_texts(Path(given), name, only=only)
    if isinstance(given, pd.DataFrame):
        return texts_from_table(given, name)
    if isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values()):
        return {key: readable(text) for key, text in given.items()}
    raise DataError(
        f"texts are a path, a data frame, or a mapping from {name} ids to texts; got {type(given).__name__}."
    )


def document_texts(given: Any, *, only: Names[str] | None = None) -> Mapping[str, str]:
    """Texts of documents by id, in any form; none where a table has vectors alone.

    >>> document_texts(pd.DataFrame({"doc": ["d1"], "vector": [[1, 0]]}))
    {}
    """
    if isinstance(given, (str, PathLike)):
        keys, texts, _ = read_text_table(Path(given), "doc", instead=(VECTOR,), only=only)
    elif isinstance(given, pd.DataFrame):
        keys, texts = _id_and_text(given, "doc", instead=(VECTOR,))
    else:
        return as_text_mapping(given, "doc") or {}
    return {key: text for key, text in zip(keys, texts, strict=True) if text}


def _id_and_text(
    table: pd.DataFrame, name: str, *, instead: Names[str] = (), path: Path | None = None
) -> tuple[list[str], list[str]]:
    keys = column(table, name, path=path, required=False)
    known = {str(c).strip().lower(): c for c in table.columns}
    text = next((known[each] for each in TEXTS if each in known), None)
    if text is None and name == "query" and keys is not None and keys.name != known.get("query"):
        text = known.get("query")  # PyTerrier's topics: qid and query
    if keys is None or (text is None and not set(instead) & known.keys()):
        raise DataError(f"expected a column for the {name} and one of {', '.join(TEXTS)}.", path=path)
    texts = [""] * len(table) if text is None else [cell_text(value) for value in table[text]]
    return ids(keys, name, path=path), texts


def document_vectors(given: Any, retrieved: Sequence[str] | Ids) -> Vectors:
    """Vectors of the documents that runs retrieved: their own, or those of the words of their texts.

    Parameters
    ----------
    given
        A path or a data frame with a column for the document and ``vector``, lists of numbers of equal length such as
        embeddings by a model of your own; or texts, as :func:`as_text_mapping` takes them.
    retrieved
        The ids of the documents.

    Examples
    --------
    >>> document_vectors(pd.DataFrame({"doc": ["d1", "d2", "d3"], "vector": [[1, 0], [3, 1], [2, 5]]}), ["d1", "d2"])
    <Vectors: 2 documents, 2 dimensions>
    """
    only = frozenset(retrieved)
    path = Path(given) if isinstance(given, (str, PathLike)) else None
    if path is not None:
        keys, texts, table = read_text_table(path, "doc", instead=(VECTOR,), only=only)
    elif isinstance(given, pd.DataFrame):
        keys, texts = _id_and_text(given, "doc", instead=(VECTOR,))
        table = given
    else:
        found = as_text_mapping(given, "doc") or {}
        keys, texts, table = list(found), list(found.values()), pd.DataFrame()
    wanted = [i for i, key in enumerate(keys) if key in only]
    own = VECTOR in table.columns
    words = None if own else text_vectors({keys[i]: texts[i] for i in wanted})
    if not len(wanted if words is None else words.docs):
        what = "vector" if own else "text"
        raise DataError(
            f"no {what} is of a document that the runs retrieved: the runs have {retrieved[0]!r} and others, "
            f"{f'the {what}s {keys[0]!r}' if keys else 'which it does not have'}.",
            path=path,
        )
    return words or Vectors(objects([keys[i] for i in wanted]), _own_vectors(table[VECTOR].iloc[wanted], path))


def _own_vectors(values: pd.Series, path: Path | None) -> Floats:
    """The vectors of a column, shape (doc, dimension)."""
    try:
        return np.stack([np.asarray(value, dtype=float) for value in values])
    except (TypeError, ValueError):
        raise DataError(f"the column {VECTOR} must have lists of numbers, all of one length.", path=path) from None


def text_vectors(texts: Mapping[str, str]) -> Vectors:
    r"""Vectors of the words of documents, by TF-IDF; documents without words have none.

    A word that occurs :math:`f` times in a document, and in :math:`n` of :math:`N` documents, weighs
    :math:`(1 + \log f) \log(N/n)`. Words are runs of letters and digits, in lower case.

    Examples
    --------
    >>> vectors = text_vectors({"d1": "Cats and dogs", "d2": "cats, dogs", "d3": "and so on", "d4": ""})
    >>> vectors
    <Vectors: 3 documents, 5 dimensions>
    """
    counts = {doc: Counter(WORD.findall(text.lower())) for doc, text in texts.items()}
    counts = {doc: words for doc, words in counts.items() if words}
    place = {word: i for i, word in enumerate(dict.fromkeys(word for words in counts.values() for word in words))}
    ends = np.cumsum([0, *(len(words) for words in counts.values())])
    at = np.array([place[word] for words in counts.values() for word in words], dtype=np.int64)
    times = np.array([n for words in counts.values() for n in words.values()], dtype=float)
    rarity = np.log(len(counts) / np.bincount(at, minlength=len(place)))
    weights = csr_array(((1 + np.log(times)) * rarity[at], at, ends), shape=(len(counts), len(place)))
    return Vectors(objects(list(counts)), weights)
