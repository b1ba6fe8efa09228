"""Documents for assessors: text, and optionally a link, a sound or an image.

Media files are resolved when the table is read. Requests name them by key, so nothing that a browser sends becomes a
path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from probeval.data.tables import cell_text
from probeval.data.texts import read_text_table
from probeval.display import Record
from probeval.errors import DataError
from probeval.web.media import Media, find_media

__all__ = ["Document", "PoolDocuments", "read_documents"]


@dataclass(frozen=True, repr=False)
class Document(Record):
    """A document as assessors see it.

    Parameters
    ----------
    text, title
        Plain text; may be empty.
    link
        An ``http`` or ``https`` address; may be empty.
    audio, image
        Media files, or None.
    """

    text: str
    title: str = ""
    link: str = ""
    audio: Media | None = None
    image: Media | None = None

    @property
    def media(self) -> tuple[Media, ...]:
        """The media files that it has."""
        return tuple(file for file in (self.audio, self.image) if file is not None)


def read_documents(path: Path, *, only: Collection[str] | None = None) -> dict[str, Document]:
    """The documents of a table (CSV, TSV, JSONL or parquet) or of a dataset of ir_datasets, by id.

    Parameters
    ----------
    path
        A table with a document column, a text column, and optionally ``title``, ``link``, ``audio`` and ``image``.
        Media files are named by paths below the folder of the table. Or the id of a dataset: ``irds:beir/scifact``.
    only
        The documents to keep; by default all.
    """
    docs, texts, table = read_text_table(path, "doc", instead=("audio", "image"), only=only)

    def optional(name: str) -> Iterable[str]:
        column = next((c for c in table.columns if str(c).strip().lower() == name), None)
        return [""] * len(table) if column is None else [cell_text(value).strip() for value in table[column]]

    rows = zip(docs, texts, optional("title"), optional("link"), optional("audio"), optional("image"), strict=True)
    return {
        doc: Document(
            text,
            "" if title == text else title,
            _checked_link(link, doc, path),
            find_media("audio", audio, doc, path),
            find_media("image", image, doc, path),
        )
        for doc, text, title, link, audio, image in rows
        if only is None or doc in only
    }


class PoolDocuments(Mapping[str, Document]):
    """The documents of a pool, from a table that is read again when the pool has grown.

    Parameters
    ----------
    path
        The table, as :func:`read_documents` takes it.
    docs
        Gives the ids of the documents of the pool now.
    """

    def __init__(self, path: Path, docs: Callable[[], Iterable[str]]) -> None:
        self._path, self._docs = path, docs
        self._lock = threading.Lock()
        self._read()

    def __getitem__(self, doc: str) -> Document:
        if doc not in self._known and doc not in self._asked:
            with self._lock:
                if doc not in self._asked and doc in set(self._docs()):
                    self._read()
        return self._known[doc]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<PoolDocuments: {len(self):,} documents>"

    def _read(self) -> None:
        asked = frozenset(self._docs())
        self._known, self._asked = read_documents(self._path, only=asked), asked


def _checked_link(link: str, doc: str, path: Path) -> str:
    try:
        fits = not link or (urlsplit(link).scheme in ("http", "https") and bool(urlsplit(link).netloc))
    except ValueError:
        fits = False
    if not fits:
        raise DataError(f"the link of document {doc!r} must begin with http:// or https://, got {link!r}.", path=path)
    return link
