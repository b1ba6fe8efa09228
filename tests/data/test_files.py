from __future__ import annotations

import os
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest

from probeval.data import files
from probeval.data.files import find, read_bytes, run_files, stem, suffix, write_bytes
from probeval.errors import DataError


def test_write_replaces_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "file"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_same_bytes_gzip_to_the_same_file(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_bytes(tmp_path / name, b"text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert read_bytes(tmp_path / "a.gz") == b"text"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    class Full:
        """A disk that takes half and gives up."""

        def __init__(self, handle: int, mode: str) -> None:
            self.handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        def write(self, data: bytes) -> None:
            os.write(self.handle, data[: len(data) // 2])
            raise error

    monkeypatch.setattr("probeval.data.files.os.fdopen", Full)
    with pytest.raises(DataError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        write_bytes(path, b"new content")
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path}: cannot be written: No space left on device."
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_target_that_cannot_be_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder: cannot be written"):
        write_bytes(tmp_path / "folder", b"text")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be written"):
        write_bytes(tmp_path / "plain" / "file", b"text")


def test_written_files_have_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_bytes(tmp_path / "ours", b"text")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize(
    ("name", "system", "ending"),
    [
        ("bm25", "bm25", ""),
        ("bm25.gz", "bm25", ""),
        ("bm25.txt.gz", "bm25.txt", ""),
        ("runs.csv", "runs", ".csv"),
        ("runs.TSV.gz", "runs", ".tsv"),
        ("a.b.jsonl", "a.b", ".jsonl"),
    ],
)
def test_names(name, system, ending):
    assert stem(Path(name)) == system
    assert suffix(Path(name)) == ending


def test_find_prefers_plain_and_the_first_name(put):
    folder = put("qrels.tsv", "x").parent
    put("qrels.txt.gz", "x")
    assert find(folder, "qrels.txt", "qrels.tsv").name == "qrels.txt.gz"
    put("qrels.txt", "x")
    assert find(folder, "qrels.txt", "qrels.tsv").name == "qrels.txt"
    assert find(folder, "none") is None


def test_run_files_sorts_within_each_argument(put):
    folder = put("d/b", "x").parent
    put("d/a", "x")
    assert [p.name for p in run_files([put("z", "x"), folder])] == ["z", "a", "b"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_device_is_written_into_and_not_read(tmp_path):
    null, zero = tmp_path / "null", tmp_path / "zero"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(zero, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        null.write_bytes(b"")
    except OSError as error:
        pytest.skip(f"devices cannot be made here: {error.strerror}")
    write_bytes(null, b"text")
    assert stat.S_ISCHR(null.stat().st_mode)
    for device in (null, zero):
        with pytest.raises(DataError, match="expected a file or a pipe, got a device"):
            read_bytes(device)


def test_output_to_a_stream_that_is_a_file_is_between_what_else_is_printed(tmp_path):
    with (tmp_path / "out").open("wb", buffering=0) as file:
        file.write(b"before, ")
        write_bytes(Path(f"/dev/fd/{file.fileno()}"), b"between, ")
        file.write(b"after")
    assert (tmp_path / "out").read_bytes() == b"before, between, after"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no files in memory here")
def test_a_file_among_the_devices_is_replaced():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for content in (b"old", b"new"):
            write_bytes(Path(folder) / "out", content)
        assert (Path(folder) / "out").read_bytes() == b"new"


def test_output_to_a_pipe_leaves_the_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"text")
    reader.join(20)
    assert got == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_is_read_for_its_format_and_its_content(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"q1 0 d1 1\n",))
    writer.start()
    assert files.first_bytes(pipe, 2) == b"q1"
    assert read_bytes(pipe) == b"q1 0 d1 1\n"
    assert list(files.line_chunks(pipe, 4)) == [b"q1 0 d1 1\n"]
    writer.join(20)


def test_each_pipe_has_its_own_content(tmp_path):
    """Another pipe may have the inode of one that was closed, and a named one may be written to again."""
    for content in (b"first", b"second"):
        end, start = os.pipe()
        os.write(start, content)
        os.close(start)
        path = Path(f"/dev/fd/{end}")
        assert read_bytes(path) == read_bytes(path) == content
        os.close(end)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content in (b"third", b"fourth"):
        handle = os.open(pipe, os.O_RDWR)  # both ends, so that it opens without a reader
        os.write(handle, content)
        late = threading.Timer(0.2, os.close, [handle])
        late.start()
        assert read_bytes(pipe) == content
        late.join()
    assert path not in files._pipes


def test_a_silent_pipe_is_an_error(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    begin = time.monotonic()
    with pytest.raises(DataError, match="nothing came through the pipe"):
        read_bytes(pipe)
    assert time.monotonic() - begin < 10
