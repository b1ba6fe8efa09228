"""Sounds and images of documents: whole and in parts, and swapped while they are served."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.errors import DataError
from probeval.web import read_documents
from tests.web.asking import Client

Open = Callable[..., Client]


def open_files() -> int:
    """How many files this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    return len([*folder.iterdir()]) if folder.exists() else 0


def test_a_link_out_of_the_folder_of_documents_is_refused(put: Callable[[str, str], Path], tmp_path: Path):
    secret = put("secret.png", "x")
    table = put("inner/docs.csv", "doc,text,image\nd1,x,a.png\n")
    (tmp_path / "inner" / "a.png").symlink_to(secret)
    with pytest.raises(DataError, match="not be a link out of it"):
        read_documents(table)
    put("inner/b.png", "x")
    (tmp_path / "inner" / "a.png").unlink()
    (tmp_path / "inner" / "a.png").symlink_to("b.png")
    (document,) = read_documents(table).values()
    assert document.image is not None
    assert document.image.name == Path("b.png")


def gone(file: Path, secret: Path) -> None:
    file.unlink()


def pipe(file: Path, secret: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path, secret: Path) -> None:
    file.unlink()
    file.mkdir()


def link(file: Path, secret: Path) -> None:
    file.unlink()
    file.symlink_to(secret)


def link_of_folder(file: Path, secret: Path) -> None:
    secret.rename(secret.with_name(file.name))
    file.parent.rename(file.parent.with_name("moved"))
    file.parent.symlink_to(secret.parent)


def unreadable(file: Path, secret: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(file))


@pytest.mark.parametrize("swap", [gone, pipe, folder, link, link_of_folder, unreadable])
def test_media_swapped_while_serving_are_not_found(
    open_page: Open, put: Callable[[str, str], Path], tmp_path: Path, swap: Callable[[Path, Path], None]
):
    file, secret = put("docs/sounds/a.mp3", "sound"), put("outside/secret", "secret")
    documents = read_documents(put("docs/docs.csv", "doc,text,audio\nd1,x,sounds/a.mp3\n"))
    audio = documents["d1"].audio
    assert audio is not None
    client = open_page(documents=documents)
    assert client.get(f"/media/{audio.key}").text == "sound"
    before = open_files()
    swap(file, secret)
    for _ in range(3):
        answer = client.get(f"/media/{audio.key}")  # and at once: a pipe would wait
        assert answer.status == 404
        assert "There is no such file." in answer.text
        assert "secret" not in answer.text
    assert open_files() <= before


def test_parts_of_a_sound(open_page: Open, put: Callable[[str, str], Path]):
    put("a.mp3", "0123456789")
    documents = read_documents(put("docs.csv", "doc,text,audio\nd1,x,a.mp3\n"))
    audio = documents["d1"].audio
    assert audio is not None
    client = open_page(documents=documents)
    for wanted, status, body, range_ in [
        ("bytes=0-", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=8-99", 206, "89", "bytes 8-9/10"),
        ("bytes=10-", 416, "", "bytes */10"),
        ("bytes=5-2", 416, "", "bytes */10"),
        ("bytes=-0", 416, "", "bytes */10"),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("bytes=-", 200, "0123456789", None),
        ("lines=1-2", 200, "0123456789", None),
        (f"bytes={'9' * 4000}-", 200, "0123456789", None),
    ]:
        answer = client.get(f"/media/{audio.key}", {"range": wanted})
        assert (answer.status, answer.text, answer.headers.get("content-range")) == (status, body, range_)
        assert answer.headers["content-length"] == str(len(body))
    head = client.ask("HEAD", f"/media/{audio.key}", {})
    assert (head.status, head.text, head.headers["content-length"]) == (200, "", "10")
