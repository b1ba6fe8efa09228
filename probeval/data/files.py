"""Read and write files: gzip detected by content, writes that are complete or not done at all."""

from __future__ import annotations

import glob
import gzip
import os
import re
import select
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, cast

from probeval.data.limits import most_bytes, refuse_size
from probeval.errors import DataError

__all__ = [
    "MANIFEST",
    "find",
    "first_bytes",
    "is_partitioned",
    "line_chunks",
    "opened",
    "read_bytes",
    "refuse_partitions",
    "run_files",
    "stem",
    "write_bytes",
]

GZIP = b"\x1f\x8b"
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
PREDICTIONS = "_predictions.json"  # how MTEB names the lists of a task
MANIFEST = "partitions.json"  # of a campaign in partitions
HEAD = 1 << 16  # bytes that tell what a file is
CHUNK = 1 << 22  # bytes unpacked at once
STREAM = re.compile(r"/dev/std(out|err)|(?:/dev/fd|/proc/self/fd)/(\d+)")  # names of what is open already
PATIENCE = 60.0  # seconds that a pipe may be silent


def read_bytes(path: Path) -> bytes:
    """Return the content of a text file, gzipped or plain (detected by its first bytes, not its name)."""
    try:
        data = _content(path)
        if data.startswith(GZIP):
            data = _unpacked(path, data)
    except EOFError:
        raise DataError("the gzip data ends too early; the file is cut short. Copy it again.", path=path) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"the gzip data is damaged ({error}). Copy it again.", path=path) from None
    except IsADirectoryError:
        raise DataError("expected a file, got a directory.", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}.", path=path) from None
    if not data.strip():
        raise DataError("the file is empty.", path=path)
    return data


def _content(path: Path) -> bytes:
    """The bytes of a file, or of a pipe."""
    most = most_bytes()
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return _piped(path, most)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError("expected a file or a pipe, got a device or a socket.", path=path)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > most:
            raise refuse_size("has", most, path=path)
        return file.read()


# A pipe can be read once, but is asked for its format and then for its content: it counts as a file with what came
# last. What came is forgotten when the pipe is gone, written to again, or another one.
_pipes: dict[Path, tuple[tuple[int, ...] | None, bytes]] = {}


def _version(path: Path) -> tuple[int, ...] | None:
    """The pipe at a path and the time of the last write to it; None if there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns


def _piped(path: Path, most: int) -> bytes:
    """All that comes through a pipe, such as ``<(zcat run.gz)``; an error if nothing comes for a while."""
    for other in [other for other, (version, _) in _pipes.items() if _version(other) != version]:
        del _pipes[other]
    if path not in _pipes:
        content = b"".join(_received(path, most))
        _pipes[path] = _version(path), content
    return _pipes[path][1]


def _received(path: Path, most: int) -> Iterator[bytes]:
    """What comes through a pipe, part by part, until its writers close it."""
    handle, size = os.open(path, os.O_RDONLY | os.O_NONBLOCK), 0  # without a writer, opening would wait for ever
    try:
        while True:
            if not select.select([handle], [], [], PATIENCE)[0]:
                raise DataError(f"nothing came through the pipe for {PATIENCE:g} s. Is its writer running?", path=path)
            part = os.read(handle, CHUNK)
            if not part:
                return
            size += len(part)
            if size > most:
                raise refuse_size("has", most, path=path)
            yield part
    finally:
        os.close(handle)


def _unpacked(path: Path, data: bytes) -> bytes:
    """The content of gzip data."""
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        return _all_of(path, file, "unpacks to", most_bytes(len(data)))


def _all_of(path: Path, file: BinaryIO | gzip.GzipFile, what: str, most: int) -> bytes:
    """The rest of an open file, which must not have more than ``most`` bytes."""
    parts, size = list[bytes](), 0
    while part := file.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > most:
            raise refuse_size(what, most, path=path)
    return b"".join(parts)


def first_bytes(path: Path, n: int = HEAD) -> bytes:
    """The first bytes of a text file, gzipped or plain: to detect its format."""
    try:
        if not path.is_file():
            return read_bytes(path)[:n]
        with path.open("rb") as file:
            data = file.read(n)
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, n) if data.startswith(GZIP) else data
    except (OSError, zlib.error):
        return read_bytes(path)[:n]  # raises with the reason


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A text file, gzipped or plain, to be read bit by bit; errors as in :func:`read_bytes`."""
    if not path.is_file():
        yield BytesIO(read_bytes(path))
        return
    try:
        with path.open("rb") as file:
            zipped = file.read(len(GZIP)) == GZIP
        with path.open("rb") as file:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if zipped else file
    except (EOFError, OSError, zlib.error):
        read_bytes(path)  # raises with the reason
        raise


def line_chunks(path: Path, size: int) -> Iterator[bytes]:
    """The text of a file in chunks of whole lines, of about ``size`` bytes each."""
    rest = b""
    with opened(path) as file:
        while data := file.read(size):
            end = data.rfind(b"\n") + 1
            if end:
                yield rest + data[:end]
                rest = data[end:]
            else:
                rest += data
    if rest:
        yield rest


def write_bytes(path: Path, data: bytes) -> None:
    """Write the whole file or leave the old one unchanged; gzip if the name ends in ``.gz``.

    The target of a link is replaced, and a device or a pipe is written into.
    """
    if path.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    try:
        stream = STREAM.fullmatch(str(path))
        if stream or (path.exists() and not (path.is_file() or path.is_dir())):
            with _open_stream(stream) if stream else path.open("wb") as device:
                device.write(data)
            return
        path = path.resolve() if path.is_symlink() else path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}.", path=path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataError(f"cannot be written: {error.strerror or error}.", path=path) from None
        raise


def _open_stream(name: re.Match[str]) -> BinaryIO:
    """The stream of that name: a file opened anew would be written from its start, over what else is printed."""
    sys.stdout.flush()
    number = int(name[2]) if name[2] else {"out": 1, "err": 2}[name[1]]
    return os.fdopen(os.dup(number), "wb")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def stem(path: Path) -> str:
    """Return a file's name without ``.gz``, and without the suffix of a table: the name of its system."""
    name = path.name.removesuffix(".gz")
    return name[: len(name) - len(suffix(path))]


def suffix(path: Path) -> str:
    """Return the suffix of a table file; empty for other files."""
    end = Path(path.name.removesuffix(".gz")).suffix.lower()
    return end if end in TABLES else ""


def find(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that exists in the folder, plain or ``.gz``."""
    candidates = (folder / (name + end) for name in names for end in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def is_partitioned(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder of a campaign in partitions."""
    try:
        return (Path(path) / MANIFEST).is_file()
    except OSError:  # no permission, or a name too long
        return False


def refuse_partitions(path: str | os.PathLike[str]) -> None:
    """Raise an error if this is a campaign in partitions, where all of a campaign is read at once."""
    if is_partitioned(path):
        raise DataError(
            "this is a campaign in partitions: only evaluate, compare and next take one, and only with a model. Name "
            "the runs, or the campaign folder, that it was made from.",
            path=path,
        )


def run_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the run files of paths, globs and directories, sorted within each; of a campaign folder, its ``runs/``.

    A directory without files is searched for MTEB predictions, recursively.
    """
    files: list[Path] = []
    for given in paths:
        try:
            files += _run_files(Path(given))
        except OSError as error:  # no permission, or a name too long
            raise DataError(f"cannot be read: {error.strerror or error}.", path=given) from None
    return files


def _run_files(path: Path) -> list[Path]:
    if path.is_dir():
        refuse_partitions(path)
        folder = path / "runs" if (path / "runs").is_dir() else path
        inside = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
        inside = inside or sorted(folder.rglob(f"*{PREDICTIONS}"))
        if not inside:
            raise DataError("the directory has no runs. Expected one TREC run file per system.", path=path)
        return inside
    if path.exists():
        return [path]
    matches = sorted(Path(p) for p in glob.glob(os.fspath(path)))  # noqa: PTH207 (Path.glob needs a root)
    if not matches:
        raise DataError("no such file or directory, and no file matches it.", path=path)
    return matches
