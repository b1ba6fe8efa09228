"""Copies of stores, from either kind into either, and the check of their integrity."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from probeval.campaign import Campaign, Store, check_store, copy_store
from probeval.data import Collection, Scale
from probeval.errors import StoreError
from tests.campaign.conftest import on_both_databases
from tests.cli.conftest import probeval  # noqa: F401


def judged(campaign: Campaign, n: int = 5) -> None:
    for i in range(n):
        campaign.answer("ann", campaign.pool.label(i), grade=i % 3)
    campaign.withdraw("ann")
    campaign.refresh()


def checked(place: str | Path) -> tuple[str, ...]:
    store = Store(place, read_only=True)
    try:
        return check_store(store).faults
    finally:
        store.close()


@on_both_databases
def test_a_backup_is_restored_into_either_kind(
    make: Callable[..., Campaign], store: str, tmp_path: Path, request: pytest.FixtureRequest
):
    one, two = make(name="one"), make(name="two")
    judged(one)
    one.people.invite("eve", "ann")
    file = tmp_path / "backup.db"
    found = copy_store(store, file)
    assert (found.store, found.faults) == (str(file), ())
    assert [(c.campaign, c.events, c.judgments) for c in found.campaigns] == [("one", 9, 5), ("two", 1, 0)]
    assert sorted(each.name for each in tmp_path.glob("backup*")) == ["backup.db"]
    places = [str(tmp_path / "again.db")]
    if "://" in store:
        import psycopg

        url = request.getfixturevalue("postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA restored")
        places.append(f"{url}&options=-csearch_path%3Drestored")
    for place in places:
        assert copy_store(file, place).faults == ()
        with Campaign.open(place, name="one") as again:
            assert again.log() == one.log()
            assert again.pool == one.pool
            assert again.snapshot == one.snapshot
            assert again.curve() == one.curve()
            again.answer("bob", again.pool.label(0), grade=1)
        with Campaign.open(place, name="two") as again:
            assert again.setup == two.setup
        with pytest.raises(StoreError, match=r"exists already|has campaigns already"):
            copy_store(file, place)
        assert checked(place) == ()
    assert len(one.log()) == 9


@on_both_databases
def test_a_backup_while_people_judge_is_of_one_moment(make: Callable[..., Campaign], store: str, tmp_path: Path):
    campaign, stop = make(), threading.Event()

    def work() -> None:
        i = 0
        while not stop.is_set():
            campaign.answer("ann", campaign.pool.label(i % len(campaign.pool)), grade=i % 3)
            i += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        sizes = [copy_store(store, tmp_path / f"{i}.db").campaigns[0].events for i in range(3)]
    finally:
        stop.set()
        worker.join()
    assert sizes == sorted(sizes)
    for i, size in enumerate(sizes):
        with Campaign.open(tmp_path / f"{i}.db") as copy:
            assert copy.log() == campaign.log()[:size]


@on_both_databases
def test_nothing_is_overwritten_and_nothing_is_left_behind(campaign: Campaign, store: str, tmp_path: Path):
    file = tmp_path / "taken.db"
    file.write_text("mine")
    with pytest.raises(StoreError, match="exists already, and nothing is overwritten"):
        copy_store(store, file)
    assert file.read_text() == "mine"
    with pytest.raises(StoreError, match="cannot be opened: no such folder"):
        copy_store(store, tmp_path / "nowhere" / "x.db")
    with pytest.raises(StoreError, match="no such store"):
        copy_store(tmp_path / "none.db", tmp_path / "x.db")
    assert not list(tmp_path.glob("*.part*"))


@pytest.fixture
def file(tmp_path: Path, small: Collection) -> Path:
    """A store with judgments, a withdrawal, a snapshot and labels."""
    place = tmp_path / "checked.db"
    bare = replace(small, judgments=None)
    with Campaign.create(place, bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform") as campaign:
        judged(campaign)
    return place


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("DELETE FROM probeval_event WHERE number = 3", "event 3 is missing: event 4 comes instead"),
        ("DELETE FROM probeval_event WHERE number > 4", "the log ends at event 4, but a snapshot includes event 8"),
        ("UPDATE probeval_event SET kind = 'danced' WHERE number = 3", "event 3 cannot be read (unknown kind"),
        ("UPDATE probeval_event SET body = '{' WHERE number = 3", "event 3 cannot be read"),
        ("UPDATE probeval_event SET body = '{\"x\":1}' WHERE number = 3", "event 3 cannot be read"),
        ("UPDATE probeval_event SET body = replace(body, '1.0', '\"1\"')", "Expected `float`, got `str`"),
        ("UPDATE probeval_event SET body = replace(body, '1.0', '7.0')", "grade 7 is not on the scale graded:2"),
        ("UPDATE probeval_event SET by = 'bob' WHERE number = 3", "event 3 was changed, or an event before it"),
        ("UPDATE probeval_event SET by = 'bob' WHERE kind = 'withdrawn'", "to this question by 'bob' to withdraw"),
        ("UPDATE probeval_part SET content = x'00' WHERE name = 'runs'", "the part 'runs' is damaged"),
        ("DELETE FROM probeval_part WHERE name = 'runs'", "lacks runs"),
        (
            "UPDATE probeval_event SET body = replace(body, 'q1', 'q77') WHERE number = 2",
            "No query 'q77' in this campaign",
        ),
        ("INSERT INTO probeval_event SELECT 9, number, time, by, NULL, kind, body, digest FROM probeval_event",
         "a row of probeval_event has no campaign"),
    ],
)  # fmt: skip
def test_damage_is_found_and_a_copy_of_it_refused(file: Path, tmp_path: Path, damage: str, says: str):
    assert checked(file) == ()
    with sqlite3.connect(file) as connection:
        connection.execute(damage)
    connection.close()
    faults = checked(file)
    assert any(says in fault for fault in faults), faults
    assert all("\n" not in fault for fault in faults)
    if "has no campaign" not in says:  # rows of no campaign are not copied
        with pytest.raises(StoreError, match=r"The copy has .* faults, as the original has"):
            copy_store(file, tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))


def test_a_damaged_page_is_found(file: Path):
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 4] = bytes(4096)
    file.write_bytes(content)
    try:
        faults = checked(file)
    except StoreError as error:
        faults = (str(error),)
    assert faults
    assert all("\n" not in fault for fault in faults)


@pytest.mark.slow
def test_a_plain_copy_of_a_store_in_use_lacks_a_clean_end(file: Path, tmp_path: Path, probeval):  # noqa: F811
    """The latest events are in the log beside the original."""
    alone, both = tmp_path / "alone.db", tmp_path / "both.db"
    with Campaign.open(file) as campaign:
        campaign.answer("zoe", campaign.pool.label(2), grade=1)  # the mark reaches the file with the first event
        campaign.answer("zoe", campaign.pool.label(3), grade=1)
        shutil.copy(file, alone)
        for end in ("", "-wal"):
            shutil.copy(f"{file}{end}", f"{both}{end}")
        events = len(campaign.log())
    assert _warnings(file) == _warnings(both) == ()
    (warning,) = _warnings(alone)
    assert warning.startswith(f"{alone}: a clean end is missing.")
    (found,) = _check(alone).campaigns
    assert found.events == events - 1
    checked = probeval("campaign", "check", alone)
    assert checked.code == 0
    assert f"Warning: {warning}." in checked.err
    restored = probeval("campaign", "restore", alone, tmp_path / "restored.db")
    assert restored.code == 0
    assert f"Warning: {warning}." in restored.err
    assert _warnings(tmp_path / "restored.db") == ()


@pytest.mark.slow
def test_a_store_that_is_never_closed_has_a_clean_end(file: Path, tmp_path: Path):
    """Python closes it at its end."""
    lines = [
        "import sys",
        "from probeval.campaign import Campaign",
        "campaign = Campaign.open(sys.argv[1])",
        "campaign.answer('zoe', campaign.pool.label(2), grade=1)",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines), str(file)], check=True)
    assert not Path(f"{file}-wal").exists()
    assert _warnings(file) == ()


def _check(file: Path):
    store = Store(file, read_only=True)
    with closing(store):
        return check_store(store)


def _warnings(file: Path) -> tuple[str, ...]:
    return _check(file).warnings
