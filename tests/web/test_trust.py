"""Stores that fail under a running server, its memory, and the pages that are open while a campaign changes."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probeval.campaign import Campaign, Judged, Store, check_store
from probeval.campaign.log import SCHEMA
from probeval.data import Runs
from probeval.errors import StoreError
from tests.attack.cases import check_apart, check_some
from tests.web.asking import Client
from tests.web.browsing import press
from tests.web.conftest import EVE
from tests.web.hostile_requests import REQUESTS, memory_of
from tests.web.served import Judge, Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

Serve = Callable[..., Served]
PATHS = ("/", "/progress", "/overview", "/adjudicate", "/export/qrels", "/export/log", "/media/x")


def _refusal(judge: Judge) -> str:
    """The one line with which the server refuses a judgment."""
    with pytest.raises(AssertionError, match=r"^503 ") as refused:
        judge.judge(1)
    status, _, line = str(refused.value).partition("\n")[0].partition(" ")
    assert status == "503"
    return line


def _wait_for_line(server: Served, says: str) -> None:
    """Wait until the terminal shows a line."""
    assert server.process.stderr is not None
    limit = threading.Timer(60, server.process.kill)
    limit.start()
    shown = []
    for line in server.process.stderr:
        shown.append(line)
        if re.search(says, line):
            limit.cancel()
            return
    raise AssertionError("".join(shown))


def _checkpoint(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def deleted(file: Path) -> None:
    file.rename(file.with_name("kept.db"))


def linked_back(file: Path) -> None:
    deleted(file)
    file.symlink_to("kept.db")


def log_deleted(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def cut(file: Path) -> None:
    _checkpoint(file)
    shutil.copy(file, file.with_name("kept.db"))
    with file.open("r+b") as content:
        content.truncate(file.stat().st_size // 2)


def garbled(file: Path) -> None:
    _checkpoint(file)
    shutil.copy(file, file.with_name("kept.db"))
    with file.open("r+b") as content:
        content.write(os.urandom(file.stat().st_size))


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE probeval_version SET version = 99")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (deleted, "deleted or moved while it was open"),
        (linked_back, "moved while it was open, and linked"),
        (log_deleted, "db-wal: deleted, moved or replaced while the store was open"),
        (cut, "damaged|cut short"),
        (garbled, "damaged"),
        (newer, "written by a newer probeval"),
    ],
)
def test_a_store_that_fails_under_a_server(campaign: Campaign, serve: Serve, harm: Callable[[Path], None], says: str):
    """The page and the terminal say so, and what was acknowledged is there once the store is back."""
    file = Path(campaign.address[0])
    campaign.close()
    server = serve(file, "--assessor", "ann", quiet=False)
    with closing(Judge(server.url)) as judge:
        judge.look()
        for _ in range(3):
            judge.judge(2)
        harm(file)
        assert re.search(says, _refusal(judge))
    _wait_for_line(server, says)
    server.kill()
    if harm in (linked_back, log_deleted):  # without its log a file looks sound: it is not opened
        with pytest.raises(StoreError, match=r"db-wal: (deleted while the store was open|has events of a store)"):
            Store(file, read_only=True)
    if harm is log_deleted:
        Path(f"{file}-shm").unlink()
    elif harm is newer:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE probeval_version SET version = ?", [SCHEMA])
    else:
        file.with_name("kept.db").replace(file)
    if harm in (cut, garbled):  # a backup is one file
        for end in ("-wal", "-shm"):
            Path(f"{file}{end}").unlink(missing_ok=True)
    with Campaign.open(file) as again:
        assert sum(isinstance(event, Judged) for event in again.log()) == 3
    with closing(Store(file, read_only=True)) as store:
        assert check_store(store).faults == ()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("a disk of its own takes the rights of root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["while it is full", "later"])
def test_a_disk_that_fills_up_under_a_server(campaign: Campaign, serve: Serve, small_disk: Path, killed: str):
    campaign.close()
    file = Path(shutil.copy(campaign.address[0], small_disk / "store.db"))
    server = serve(file, "--assessor", "ann")
    with closing(Judge(server.url)) as judge:
        judge.look()
        judge.judge(1)
        room = os.statvfs(small_disk)
        with (small_disk / "other").open("wb") as other:
            other.write(b"x" * (room.f_bavail * room.f_frsize - 8192))
        kept = 1
        line = ""
        while not line and kept < 100:
            try:
                judge.judge(1)
                kept += 1
            except AssertionError as refused:
                line = str(refused).splitlines()[0]
        assert line.startswith("503 ")
        assert "the disk is full; this step was not saved, all earlier ones were" in line
        if killed == "while it is full":
            server.kill()
        (small_disk / "other").unlink()  # there is room again
        if killed == "later":  # the server goes on
            judge.look()
            judge.judge(2)
            kept += 1
    server.kill()
    with Campaign.open(file) as again:
        assert sum(isinstance(event, Judged) for event in again.log()) == kept
        again.answer("zoe", again.pool.label(0), grade=1)
    with closing(Store(file, read_only=True)) as store:
        assert check_store(store).faults == ()


@pytest.mark.slow
def test_a_disk_that_is_full_at_the_start(campaign: Campaign, small_disk: Path):
    """It is not taken for another server."""
    campaign.close()
    file = Path(shutil.copy(campaign.address[0], small_disk / "store.db"))
    with (small_disk / "other").open("wb", buffering=0) as other, suppress(OSError):
        while True:
            other.write(b"x" * 512)
    with pytest.raises(AssertionError) as refused:
        Served.start(file, "--assessor", "ann")
    assert "the disk is full" in str(refused.value)
    assert str(refused.value).startswith("Error: ")
    assert str(refused.value).count("\n") == 1


@pytest.mark.parametrize(
    "change",
    [
        "kind = 'danced'",
        "body = 'no json'",
        "body = '{\"mood\": 1}'",
        "\"by\" = x'ff'",
        "time = 'noon'",
        "number = number + 1",
        "digest = ''",
    ],
)
def test_an_event_that_cannot_be_read_is_503_on_every_page(
    open_page: Callable[..., Client], campaign: Campaign, change: str
):
    """It comes from another process while the page is served."""
    client = open_page(who=EVE)
    form = client.get("/").form("/judge")
    with closing(sqlite3.connect(campaign.address[0])) as other, other:
        other.execute(
            "INSERT INTO probeval_event SELECT campaign, number + 1, time, by, NULL, kind, body, digest "
            "FROM probeval_event ORDER BY number DESC LIMIT 1"
        )
        other.execute(f"UPDATE probeval_event SET {change} WHERE number = (SELECT MAX(number) FROM probeval_event)")
    reads = {path: client.get(path).status for path in PATHS}
    steps = {path: client.post(path, {**form, "grade": "1"}).status for path in ("/judge", "/skip", "/undo")}
    assert max((reads | steps).values()) <= 503
    assert 500 not in (reads | steps).values()
    if change != "digest = ''":  # only check_store computes digests
        assert set((reads | steps).values()) == {503}


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_every_address_refuses_a_session_that_has_ended(open_page: Callable[..., Client], campaign: Campaign, how: str):
    client = open_page(who=EVE)
    form = client.get("/").form("/judge")
    assert {client.get(path).status for path in PATHS} <= {200, 404}
    if how == "revoked":
        campaign.people.revoke("owner", "eve")
    else:
        later = campaign._log.clock() + 1e9
        campaign._log.clock = lambda: later
    assert {path: client.get(path).status for path in PATHS} == dict.fromkeys(PATHS, 401)
    steps = ("/judge", "/undo", "/skip", "/flag", "/comment", "/settle", "/logout")
    assert {path: client.post(path, form).status for path in steps} == dict.fromkeys(steps, 401)


def test_pages_work_when_the_clock_goes_backwards(open_page: Callable[..., Client], campaign: Campaign):
    client = open_page(who=EVE)
    page = client.get("/")
    assert client.post("/judge", {**page.form("/judge"), "grade": "1"}).status == 200
    past = campaign._log.clock() - 1e6
    campaign._log.clock = lambda: past
    assert {client.get(path).status for path in PATHS} <= {200, 404}
    form = {**client.get("/").form("/judge"), "grade": "2"}
    assert client.post("/judge", form).status == 200
    assert client.post("/judge", form).status == 200  # sent twice, it counts once
    assert len(campaign.state.judged) == 2


@pytest.mark.slow
def test_a_hundred_fuzzed_requests_over_the_wire():
    check_some(REQUESTS, 100)


@pytest.mark.validation
def test_ten_thousand_fuzzed_requests_over_the_wire():
    check_apart("requests", REQUESTS.full)


@pytest.mark.slow
def test_pages_that_are_open_while_the_campaign_changes(
    new_page: Callable[..., Page], campaign: Campaign, serve: Serve
):
    """A late run, a higher target, a revocation: the pages tell, and no judgment is lost. Keys only."""
    campaign.change("eve", stopping="confidence=.5")
    campaign.refresh()
    links = {
        who: campaign.people.invite("eve", who, role=role)[1] for who, role in (("ann", "assessor"), ("olga", "owner"))
    }
    server = serve(campaign.address[0])
    ann, olga = new_page(), new_page()
    ann.clock.install()
    ann.goto(f"{server.url}/join/{links['ann']}")
    ann.wait_for_url(server.url + "/")
    olga.goto(f"{server.url}/join/{links['olga']}")
    olga.wait_for_url(server.url + "/")
    olga.goto(server.url + "/overview")
    press(ann, "1")

    query = campaign.pool.label(0)[0]
    before = len(campaign.pool)
    campaign.add_runs("eve", Runs.rows(["late"] * 2, [query] * 2, ["late-1", "late-2"]))
    assert len(campaign.pool) == before + 2
    campaign.refresh()  # the server's own worker has a low priority: beside other tests it may take minutes
    olga.get_by_role("row", name=re.compile("late")).first.wait_for()  # in the ranking
    press(ann, "2")  # the page that was open goes on

    campaign.change("eve", stopping="confidence=.97")
    ann.get_by_text("target 0.97").first.wait_for()
    olga.get_by_text("target 0.97").first.wait_for()
    press(ann, "1")

    ann.keyboard.press("c")
    ann.keyboard.type("half a comment")
    campaign.people.revoke("eve", "ann")
    ann.keyboard.press("Control+Enter")
    alert = ann.get_by_text("Your session has ended, or your token was revoked.")
    alert.wait_for()
    assert ann.locator("#text").input_value() == "half a comment"  # it is not lost
    ann.keyboard.press("Escape")
    ann.keyboard.press("1")
    with ann.expect_response(lambda answer: answer.status == 401 and answer.url.endswith("/progress")):
        ann.clock.run_for(4_000)
    asked: list[str] = []
    ann.on("request", lambda request: asked.append(request.url))
    ann.clock.run_for(30_000)
    assert not asked  # a page whose session has ended stops asking
    ann.reload()
    assert "token was revoked" in ann.locator("body").inner_text()
    judged = [event for event in campaign.log() if isinstance(event, Judged)]
    assert [(event.by, event.grade) for event in judged] == [("ann", 1), ("ann", 2), ("ann", 1)]


HALF_AN_HOUR = 1800  # seconds


@pytest.mark.slow
def test_pages_that_are_open_for_half_an_hour(new_page: Callable[..., Page], campaign: Campaign, serve: Serve):
    """Their clocks run thirty times a minute, while another person judges: they keep up, and nothing grows."""
    tokens = {
        who: campaign.people.invite("eve", who, role=role)[1] for who, role in (("ann", "assessor"), ("olga", "owner"))
    }
    campaign.refresh()
    server = serve(campaign.address[0])
    ann, olga = new_page(), new_page()
    asked, wrong = list[str](), list[str]()
    for who, page in (("ann", ann), ("olga", olga)):
        page.clock.install()
        page.goto(f"{server.url}/join/{tokens[who]}")
        page.wait_for_url(server.url + "/")
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
    olga.goto(server.url + "/overview")
    shown, early = ann.locator("#answer [name=doc]").input_value(), 0.0
    for minute in range(HALF_AN_HOUR // 60):
        campaign.answer("bob", campaign.pool.label(minute % len(campaign.pool)), grade=minute % 3)
        for page in (ann, olga):
            page.clock.run_for(60_000)
        if minute == HALF_AN_HOUR // 240:
            early = memory_of(server)
    assert wrong == []
    assert HALF_AN_HOUR // 60 <= len(asked) < HALF_AN_HOUR  # it asks, at most once a second
    assert memory_of(server) - early < 30
    olga.clock.resume()
    olga.get_by_role("row", name=re.compile(r"^bob\s+30\b")).first.wait_for()  # among the assessors
    assert ann.locator("#answer [name=doc]").input_value() == shown  # the form that she had is still there
    press(ann, "1")
    (mine,) = [event for event in campaign.log() if isinstance(event, Judged) and event.by == "ann"]
    assert (mine.doc, mine.grade) == (shown, 1)
