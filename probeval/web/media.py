"""Sounds and images of documents: files below the folder of their table, sent whole or in part.

A file may be deleted, or swapped for a pipe or a link, while it is served. So each request opens it anew, from the
folder down and without following links, and sends what was opened.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from probeval.errors import DataError

__all__ = ["FORMATS", "Media", "MediaResponse", "find_media"]

# Formats that a browser shows or plays without running scripts in them: not SVG.
FORMATS = {
    "audio": {
        ".aac": "audio/aac",
        ".flac": "audio/flac",
        ".m4a": "audio/mp4",
        ".mp3": "audio/mpeg",
        ".oga": "audio/ogg",
        ".ogg": "audio/ogg",
        ".opus": "audio/ogg",
        ".wav": "audio/wav",
    },
    "image": {
        ".avif": "image/avif",
        ".gif": "image/gif",
        ".jpeg": "image/jpeg",
        ".jpg": "image/jpeg",
        ".png": "image/png",
        ".webp": "image/webp",
    },
}
CHUNK = 256 * 1024  # bytes read at once
RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})", re.ASCII)
# Windows has none of the first three, and cannot open a file step by step.
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for its writer
FOLDER = getattr(os, "O_DIRECTORY", 0)
BINARY = getattr(os, "O_BINARY", 0)
STEPWISE = os.open in os.supports_dir_fd


@dataclass(frozen=True)
class Media:
    """A media file, and the key by which a browser requests it.

    Parameters
    ----------
    key
        The key.
    folder, name
        The folder of the table, without links, and the path of the file below it.
    type
        Its type for browsers.
    """

    key: str
    folder: Path
    name: Path
    type: str

    def open(self) -> BinaryIO:
        """The file, open for reading; OSError if it is gone, no longer a plain file, or behind a link."""
        folders = [str(self.folder), *self.name.parent.parts] if STEPWISE else []
        name = self.name.name if STEPWISE else self.folder / self.name
        at = None
        with ExitStack() as stack:
            for each in folders:
                at = os.open(each, os.O_RDONLY | FOLDER | NO_LINK, dir_fd=at)
                stack.callback(os.close, at)
            file = os.open(name, os.O_RDONLY | NO_LINK | NO_WAIT | BINARY, dir_fd=at)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileNotFoundError(self.name)
        return os.fdopen(file, "rb")


def find_media(kind: str, name: str, doc: str, path: Path) -> Media | None:
    """The media file named in a cell of a table: it must be below the table's folder and have a known format.

    Parameters
    ----------
    kind
        ``audio`` or ``image``.
    name
        The cell; empty for none.
    doc
        The document.
    path
        The table.
    """
    if not name:
        return None
    folder = Path(os.path.realpath(path.parent))
    file = Path(os.path.realpath(folder / name)) if "\x00" not in name else folder
    if file == folder or not file.is_relative_to(folder):
        where = "must lie below the table's folder, and not be a link out of it"
        raise DataError(f"the {kind} of document {doc!r} {where}, got {name!r}.", path=path)
    kinds = FORMATS[kind]
    suffix = Path(name).suffix.lower()
    if suffix not in kinds:
        raise DataError(
            f"the {kind} of document {doc!r} must end in one of {', '.join(kinds)}, got {name!r}.", path=path
        )
    if not file.is_file():
        raise DataError(f"the {kind} of document {doc!r} does not exist: {name!r}.", path=path)
    key = hashlib.sha256(f"{kind}\t{doc}".encode()).hexdigest()[:32]
    return Media(key, folder, file.relative_to(folder), kinds[suffix])


class MediaResponse(Response):
    """An open file as a response, whole or the range that a browser asked for; it closes the file.

    Parameters
    ----------
    file
        The open file.
    media_type
        Its type for browsers.
    wanted
        The ``Range`` header; one that names several ranges, or none, gets the whole file.
    """

    def __init__(self, file: BinaryIO, *, media_type: str, wanted: str = "") -> None:
        self._file, size = file, os.fstat(file.fileno()).st_size
        found = parse_range(wanted, size)
        self._start, self._end = found or (0, 0 if found == () else size)
        headers = {"accept-ranges": "bytes", "content-length": str(self._end - self._start)}
        if found is not None:
            headers["content-range"] = f"bytes {self._start}-{self._end - 1}/{size}" if found else f"bytes */{size}"
        super().__init__(None, 200 if found is None else 206 if found else 416, headers, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A file that was cut short meanwhile ends the connection before the announced length."""
        with self._file as file:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            left = 0 if scope["method"] == "HEAD" else self._end - self._start
            file.seek(self._start)
            while left:
                chunk = await run_in_threadpool(file.read, min(CHUNK, left))
                if not chunk:
                    return
                left -= len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def parse_range(wanted: str, size: int) -> tuple[int, int] | tuple[()] | None:
    """The first byte that a ``Range`` header asks for and the one after the last; () if there are none, None for all.

    >>> parse_range("bytes=2-4", 10), parse_range("bytes=-3", 10), parse_range("bytes=8-", 10)
    ((2, 5), (7, 10), (8, 10))
    >>> parse_range("bytes=10-", 10), parse_range("bytes=0-1,3-4", 10)
    ((), None)
    """
    found = RANGE.fullmatch(wanted.strip())
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (start, end) if start < end else ()
