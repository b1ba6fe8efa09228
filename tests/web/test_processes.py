"""The server among other processes: one that holds the store, one that ends it, and itself after a restart."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from probeval.campaign import Campaign, Judged, databases, log
from probeval.campaign import log as stores
from probeval.data import Collection, Scale
from probeval.web import Board, Limiter, Roster, application
from probeval.web.site import WRITERS
from tests.campaign.conftest import on_both_databases
from tests.web.asking import Answer, Client, run
from tests.web.conftest import HOST
from tests.web.served import Judge, Served

Serve = Callable[..., Served]
FORM = {"content-type": "application/x-www-form-urlencoded", "x-part": "1"}


@contextmanager
def _held(store: str) -> Iterator[None]:
    """Another process writes, and does not end."""
    if "://" not in store:
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    import psycopg

    with psycopg.connect(store) as other:
        other.execute("SELECT id FROM probeval_campaign FOR UPDATE")
        yield


@pytest.mark.slow
@on_both_databases
def test_a_store_that_another_process_holds(store: str, small: Collection, monkeypatch: pytest.MonkeyPatch):
    """More steps than there are threads: each is refused in bounded time, and pages that only read answer at once."""
    for module in (databases, log, stores):
        monkeypatch.setattr(module, "PATIENCE", 1.5)
    bare = replace(small, judgments=None)
    with Campaign.create(store, bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform") as campaign:
        roster, plenty = Roster(campaign, alone="eve"), Limiter(rate=1e9, burst=1e9)
        app = application(campaign, roster=roster, board=Board(campaign), hosts=[HOST], requests=plenty)
        client = Client(app, HOST)
        form = client.get("/").form("/judge")

        async def at_once() -> tuple[list[Answer], float, float]:
            steps = [
                asyncio.create_task(client.answer("POST", "/judge", FORM, urlencode(each).encode()))
                for each in ({**form, "grade": "1", "request": f"r{i}"} for i in range(60))
            ]
            while (threads := WRITERS.get(None)) is None or threads.available_tokens:  # all threads for steps are taken
                await asyncio.sleep(0.01)
            began = time.monotonic()
            assert (await client.answer("GET", "/progress", {})).status == 200
            read = time.monotonic() - began
            assert not any(step.done() for step in steps)
            return await asyncio.gather(*steps), read, time.monotonic() - began

        before = len(campaign.log())
        with _held(store):
            answers, read, all_of_them = run(at_once())
        assert {answer.status for answer in answers} == {503}
        assert "another process has been writing" in answers[0].text
        assert read < 1
        assert all_of_them < 10
        assert len(campaign.log()) == before
        assert client.post("/judge", {**form, "grade": "1"}).status == 200  # it goes on


def _end(server: Served) -> tuple[int, str, float]:
    """The exit code of a server, what its terminal showed, and the seconds until it ended."""
    began = time.monotonic()
    _, shown = server.process.communicate(timeout=30)
    return server.process.returncode, shown, time.monotonic() - began


@pytest.mark.slow
def test_a_server_that_is_stopped_right_after_its_address(campaign: Campaign, serve: Serve):
    campaign.close()
    for how in (signal.SIGTERM, signal.SIGINT):
        server = serve(campaign.address[0], "--assessor", "ann", quiet=False)
        server.process.send_signal(how)
        code, shown, _ = _end(server)
        assert code == 0, shown
        assert "Traceback" not in shown
        assert shown.splitlines()[-1] == "Stopped. All saved answers are in the store."


@pytest.mark.slow
def test_a_server_that_is_stopped_while_requests_come_in(campaign: Campaign, serve: Serve):
    """Bodies that never end, and a judgment: the server ends in a few seconds, without an error."""
    campaign.close()
    server = serve(campaign.address[0], "--assessor", "ann")
    host, _, port = server.host.partition(":")
    head = f"POST /judge HTTP/1.1\r\nHost: {server.host}\r\nOrigin: {server.url}\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nquery="
    with closing(Judge(server.url)) as judge:
        judge.look()
        judge.judge(1)
        open_ends = [socket.create_connection((host, int(port))) for _ in range(5)]
        for each in open_ends:
            each.sendall(head.encode())
        judge.look()
        server.process.send_signal(signal.SIGTERM)
        code, shown, seconds = _end(server)
    for each in open_ends:
        each.close()
    assert (code, shown) == (0, "")
    assert seconds < 15
    with Campaign.open(campaign.address[0]) as again:
        assert sum(isinstance(event, Judged) for event in again.log()) == 1


@pytest.mark.slow
def test_a_step_is_sent_again_after_a_restart(campaign: Campaign, serve: Serve):
    """One person alone: the page that is open goes on, and the step counts once."""
    campaign.close()
    server = serve(campaign.address[0], "--assessor", "ann")
    with closing(Judge(server.url)) as judge:
        judge.look()
        fields = dict(judge.fields)
        judge.judge(1)
    server.kill()
    server = serve(campaign.address[0], "--assessor", "ann")
    with closing(Judge(server.url)) as judge:
        judge.fields = fields
        judge.judge(1)
        judge.judge(2)
    with Campaign.open(campaign.address[0]) as again:
        assert [event.grade for event in again.log() if isinstance(event, Judged)] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"garbage", b"\x00\xff" * 400])
def test_a_certificate_that_is_none(campaign: Campaign, tmp_path: Path, content: bytes):
    file = tmp_path / "certificate.pem"
    file.write_bytes(content)
    with pytest.raises(AssertionError) as refused:
        Served.start(campaign.address[0], "--certificate", file, "--key", file)
    assert str(refused.value).count("\n") <= 1
    assert str(refused.value).startswith("Error: ")
    assert "expected a certificate" in str(refused.value)


@pytest.mark.slow
def test_a_private_key_with_a_password_is_not_asked_for(campaign: Campaign, tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", key, "-out", certificate]
    try:
        subprocess.run([*made, "-passout", "pass:word", "-subj", "/CN=x"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    with pytest.raises(AssertionError, match="password"):
        Served.start(campaign.address[0], "--certificate", certificate, "--key", key)
