"""A store that is deleted, replaced, cut short, garbled or migrated while it is open: an error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from probeval.campaign import Campaign, Judged, copy_store
from probeval.campaign import databases as opening
from probeval.campaign import log as stores
from probeval.errors import StoreError
from tests.campaign.conftest import Clock, on_both_databases
from tests.campaign.nursery import start_python
from tests.campaign.test_store import WRITER, _nobody
from tests.cli.conftest import Said, probeval  # noqa: F401


@pytest.fixture
def file(make: Callable[..., Campaign], store: str) -> Path:
    """The file of a campaign with a judgment."""
    campaign = make()
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    campaign.close()
    return Path(store)


def deleted(file: Path) -> None:
    file.unlink()


def moved(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replaced(file: Path) -> None:
    copy = file.with_name("copy.db")
    shutil.copy(file, copy)
    copy.replace(file)


def linked(file: Path) -> None:
    os.link(file, file.with_name("another name.db"))


def linked_back(file: Path) -> None:
    moved(file)
    file.symlink_to("elsewhere.db")


def _log(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def log_deleted(file: Path) -> None:
    _log(file).unlink()


def log_replaced(file: Path) -> None:
    replaced(_log(file))


def index_deleted(file: Path) -> None:
    file.with_name(f"{file.name}-shm").unlink()


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (deleted, "deleted or moved while it was open. Nothing was saved since"),
        (moved, "deleted or moved while it was open. Nothing was saved since"),
        (replaced, "replaced by another file while it was open. Nothing was saved since"),
        (linked, r"the file has 2 names \(hard links\). Remove all but one"),
        (linked_back, "moved while it was open, and linked. Nothing was saved since"),
        (log_deleted, "db-wal: deleted, moved or replaced while the store was open. Nothing was saved since"),
        (log_replaced, "db-wal: deleted, moved or replaced while the store was open. Nothing was saved since"),
        (index_deleted, "db-shm: deleted, moved or replaced while the store was open. Nothing was saved since"),
    ],
)
def test_a_file_that_is_not_the_one_that_was_opened_takes_nothing(file: Path, harm: Callable[[Path], None], says: str):
    with Campaign.open(file) as campaign:
        pair, before = campaign.pool.label(1), len(campaign.log())
        harm(file)
        for _ in range(2):
            with pytest.raises(StoreError, match=says):
                campaign.answer("ann", pair, grade=1)
            with pytest.raises(StoreError, match=says):
                campaign.status()
    if harm in (moved, linked_back):
        file.with_name("elsewhere.db").replace(file)
    if harm is linked:
        with pytest.raises(StoreError, match=says):
            Campaign.open(file)
        file.with_name("another name.db").unlink()
    if harm is not deleted:  # nothing that was acknowledged is lost, and nothing else is there
        with Campaign.open(file) as again:
            assert len(again.log()) == before
            again.answer("ann", pair, grade=1)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (moved, "deleted or moved while it was open"),
        (linked_back, "moved while it was open, and linked"),
        (log_deleted, "db-wal: deleted, moved or replaced"),
    ],
)
def test_a_file_that_goes_during_a_write_is_not_acknowledged(
    file: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], says: str
):
    real = stores.Store._add_events

    def gone(*step: object) -> str:
        end = real(*step)
        harm(file)
        return end

    with Campaign.open(file) as campaign:
        pair = campaign.pool.label(1)
        monkeypatch.setattr(stores.Store, "_add_events", staticmethod(gone))
        with pytest.raises(StoreError, match=says):
            campaign.answer("ann", pair, grade=1)


def test_a_log_that_is_put_back_goes_on(file: Path):
    with Campaign.open(file) as campaign:
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        _log(file).rename(file.with_name("kept"))
        with pytest.raises(StoreError, match="db-wal: deleted, moved or replaced"):
            campaign.answer("ann", campaign.pool.label(2), grade=1)
        file.with_name("kept").rename(_log(file))
        campaign.answer("ann", campaign.pool.label(2), grade=1)
        assert len(campaign.log()) == 4


@pytest.mark.slow
def test_what_others_do_to_the_log_by_right_is_no_fault(file: Path, tmp_path: Path):
    """They open and close the store, write, make a backup, and empty the log; a pool may close all its connections."""
    with Campaign.open(file) as campaign:
        for number in range(1, 6):
            writer = start_python(WRITER, file, f"a{number}", 1)
            assert writer.communicate()[1] == ""
            copy_store(file, tmp_path / f"copy {number}.db")
            with closing(sqlite3.connect(file)) as other:
                assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            assert _log(file).stat().st_size == 0
            campaign._log.store._engine.dispose()
            campaign.answer("ann", campaign.pool.label(number), grade=1)
        assert sum(isinstance(event, Judged) for event in campaign.log()) == 11


@pytest.mark.parametrize("harm", [[log_deleted], [index_deleted], [log_deleted, index_deleted], [moved]])
def test_nobody_else_begins_another_log(
    file: Path, harm: list[Callable[[Path], None]], monkeypatch: pytest.MonkeyPatch
):
    """Whoever has the store open still writes the old one to the file when it is closed, and removes the new one."""
    monkeypatch.setattr(opening, "PATIENCE", 0.1)
    with Campaign.open(file) as campaign:
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        for each in harm:
            each(file)
        place = file if file.exists() else file.with_name("elsewhere.db")
        with pytest.raises(StoreError, match=r"db-wal: deleted while|its -wal or -shm file is gone, and another"):
            Campaign.open(place)
    if place != file:
        place.rename(file)
    with Campaign.open(file) as again:
        assert len(again.log()) == 3


def test_a_store_that_is_used_again_after_it_was_closed_has_a_new_log(file: Path):
    campaign = Campaign.open(file)
    campaign.close()
    with file.with_name("other").open("w"):  # has the place of the old log
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        log_deleted(file)
        with pytest.raises(StoreError, match="db-wal: deleted, moved or replaced"):
            campaign.answer("ann", campaign.pool.label(2), grade=1)
    campaign.close()


def test_a_store_behind_a_link(file: Path):
    """It works as any other; the file must stay where the link led to, even if the link follows it."""
    link = file.with_name("link.db")
    link.symlink_to(file.name)
    with Campaign.open(link) as campaign:
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        assert _log(file).exists()
        assert not _log(link).exists()
        moved(file)
        link.unlink()
        link.symlink_to("elsewhere.db")
        with pytest.raises(StoreError, match="deleted or moved while it was open"):
            campaign.answer("ann", campaign.pool.label(2), grade=1)
        file.with_name("elsewhere.db").rename(file)
        link.unlink()
        link.symlink_to(file.name)
        campaign.answer("ann", campaign.pool.label(2), grade=1)
    with Campaign.open(link) as again:
        assert len(again.log()) == 4


def test_a_store_in_rollback_mode_has_no_log(file: Path, tmp_path: Path):
    """As SQLite's VACUUM INTO makes it."""
    plain = tmp_path / "plain.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("VACUUM INTO ?", [str(plain)])
    with Campaign.open(plain) as campaign:
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        assert not _log(plain).exists()
        campaign.answer("ann", campaign.pool.label(2), grade=1)


@on_both_databases
def test_a_log_that_is_cut_short_or_another_one_is_not_continued(make: Callable[..., Campaign], store: str):
    campaign = make()
    for i in range(3):
        campaign.answer("ann", campaign.pool.label(i), grade=1)
    with campaign._log.store._writer.begin() as connection:
        connection.execute(sa.delete(stores.EVENT).where(stores.EVENT.c.number > 2))
    for step in (lambda: campaign.state, lambda: campaign.answer("ann", campaign.pool.label(3), grade=1)):
        with pytest.raises(StoreError, match="the log was cut short or replaced while it was open: event 4 is gone"):
            step()
    with Campaign.open(store) as again:  # the log that is there now can be opened
        again.answer("ann", again.pool.label(3), grade=1)
        again.answer("ann", again.pool.label(4), grade=1)
        assert again.state.number == 4
    with pytest.raises(StoreError, match="cut short or replaced"):  # as long as before, and another one
        campaign.answer("ann", campaign.pool.label(5), grade=1)


@pytest.mark.parametrize("harm", ["cut", "garbled", "emptied"])
def test_a_file_cut_short_or_garbled_in_place_is_an_error_in_one_line(file: Path, harm: str):
    with Campaign.open(file) as campaign:
        pair = campaign.pool.label(1)
        campaign._log.store._engine.dispose()  # so that what was read before is not used
        sqlite3.connect(file).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
        size = file.stat().st_size
        with file.open("r+b") as content:
            if harm == "garbled":
                content.write(os.urandom(size))
            else:
                content.truncate(size // 2 if harm == "cut" else 0)
        for step in (campaign.status, lambda: campaign.answer("ann", pair, grade=1)):
            with pytest.raises(StoreError) as refused:
                step()
            assert "\n" not in str(refused.value)
            assert "Create one" not in str(refused.value)


@on_both_databases
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("kind = 'danced'", r"event 2 cannot be read \(unknown kind 'danced'\)"),
        ('body = \'{"query":"q","doc":"d","grade":1.0,"mood":2}\'', "unknown field mood"),
        ("body = 'no json'", "event 2 cannot be read"),
        ("body = '[1]'", "event 2 cannot be read"),
        ('body = \'{"query":"q","doc":"d","grade":"x"}\'', "Expected `float`, got `str`"),
    ],
)
def test_an_event_that_cannot_be_read_is_a_store_error(
    make: Callable[..., Campaign], store: str, change: str, says: str
):
    campaign = make()
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    with campaign._log.store._writer.begin() as connection:
        connection.execute(sa.text(f"UPDATE probeval_event SET {change} WHERE number = 2".replace(":", r"\:")))
    with Campaign.open(store) as again, pytest.raises(StoreError, match=says) as refused:
        _ = again.state
    assert "restore a backup, update probeval" in str(refused.value)


@on_both_databases
def test_a_damaged_part_is_a_store_error(make: Callable[..., Campaign], store: str):
    campaign = make()
    with campaign._log.store._writer.begin() as connection:
        connection.execute(sa.update(stores.PART).values(content=b"x"))
    with Campaign.open(store) as again, pytest.raises(StoreError, match="the part 'runs' is damaged"):
        _ = again.pool


@on_both_databases
def test_a_schema_raised_while_serving_stops_writes(make: Callable[..., Campaign], store: str):
    campaign = make()
    with campaign._log.store._writer.begin() as connection:
        connection.execute(sa.update(stores.VERSION).values(version=99))
    with pytest.raises(StoreError, match=r"written by a newer probeval \(schema 99"):
        campaign.answer("ann", campaign.pool.label(0), grade=1)
    assert len(campaign.log()) == 1


def test_events_in_the_write_ahead_log_are_not_left_out(file: Path, tmp_path: Path, request: pytest.FixtureRequest):
    """After a kill on a read-only mount, the file alone lacks the latest events."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    with Campaign.open(file) as campaign:
        campaign.answer("ann", campaign.pool.label(1), grade=1)
        for end in ("", "-wal"):
            shutil.copy(f"{file}{end}", folder / f"store.db{end}")
    assert (folder / "store.db-wal").stat().st_size
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(0o555)
    for above in folder.parents:
        if above.stat().st_mode & 0o777 == 0o700:  # pytest's own
            above.chmod(0o755)
    run: Callable[..., Said] = request.getfixturevalue("probeval")
    for words in (["campaign", "status"], ["campaign", "export"], ["report"]):
        with _nobody():
            done = run(*words, folder / "store.db")
        assert done.code == 1
        assert done.out == ""
        assert "its latest events are in store.db-wal, which cannot" in done.err
    folder.chmod(0o755)
    with Campaign.open(folder / "store.db") as again:
        assert len(again.log()) == 3


def test_the_server_lock_outlives_its_file_and_says_what_is_wrong(file: Path, monkeypatch: pytest.MonkeyPatch):
    lock = Path(f"{file}-server")
    with Campaign.open(file) as one, Campaign.open(file) as two:
        with one.serving():
            assert lock.exists()
        assert lock.exists()  # never removed: another server may wait for it
        with two.serving(), pytest.raises(StoreError, match="another server is using this store"), one.serving():
            pass
        link = file.with_name("link.db")
        link.symlink_to(file)
        with (
            Campaign.open(link) as three,
            one.serving(),
            pytest.raises(StoreError, match="another server is using"),
            three.serving(),
        ):
            pass

        class Full:
            def execute(self, _: str) -> None:
                raise sqlite3.OperationalError("database or disk is full")

            def close(self) -> None:
                pass

        monkeypatch.setattr(opening.sqlite3, "connect", lambda *_, **__: Full())
        with pytest.raises(StoreError, match=r"store.db-server: the disk is full"), one.serving():
            pass


def test_a_lock_on_a_file_that_lost_its_name_is_not_held(file: Path, monkeypatch: pytest.MonkeyPatch):
    """Another process removes the file between opening and locking it."""
    lock, real = Path(f"{file}-server"), sqlite3.connect

    def connect(place: Path, **options: object) -> sqlite3.Connection:
        made: sqlite3.Connection = real(place, **options)
        lock.unlink()
        return made

    with Campaign.open(file) as one:
        with monkeypatch.context() as patch:
            patch.setattr(opening.sqlite3, "connect", connect)
            with pytest.raises(StoreError, match=r"store.db-server: "), one.serving():
                pass
        with one.serving():
            assert lock.exists()


SERVES = """
import os, sys, time
from probeval.campaign import Store
from probeval.errors import StoreError
store, mark, held = Store(sys.argv[1]), sys.argv[1] + "-held", 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        with store.serving():
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # an error if another one serves
            held += 1
            os.unlink(mark)
    except StoreError:
        pass
print(held)
"""


@pytest.mark.slow
def test_servers_that_start_and_stop_never_serve_at_once(file: Path):
    for each in [start_python(SERVES, file) for _ in range(3)]:
        held, wrong = each.communicate()
        assert wrong == ""
        assert int(held) > 0


@pytest.mark.parametrize(
    "change",
    [
        "body = 'no json'",
        "body = '[]'",
        "body = '{}'",
        "body = x'fffe00'",
        "confidence = 2",
        "number = 1",
        "body = json_set(json_remove(body, '$.digest'), '$.expected_tau', 'high')",  # as one of an earlier version
    ],
)
def test_a_damaged_snapshot_is_computed_again(file: Path, change: str):
    with Campaign.open(file) as campaign:
        campaign.refresh()
        before = campaign.status()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE probeval_outlook SET {change}")
    with Campaign.open(file) as again:
        assert again.snapshot is None
        assert again.next("ann")
        assert again.refresh().confidence == before.snapshot.confidence
        assert again.snapshot is not None


@pytest.mark.parametrize("change", ["number = 'x'", "time = 'x'", "judged = x'ff'", "progress = 'much'"])
def test_a_curve_that_is_damaged_is_a_store_error(file: Path, change: str):
    with Campaign.open(file) as campaign:
        campaign.refresh()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE probeval_outlook SET {change}")
    with Campaign.open(file) as again, pytest.raises(StoreError, match="the file is damaged"):
        again.status()


def test_a_version_that_is_no_number_is_a_damaged_store(file: Path):
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE probeval_version SET version = 'two'")
    with pytest.raises(StoreError, match="the file is damaged"):
        Campaign.open(file)


def test_a_clock_that_goes_backwards_loses_nothing(campaign: Campaign, clock: Clock):
    (task,) = campaign.next("ann")
    campaign.answer("ann", task.question, grade=1)
    clock.now -= 10 * 365 * 24 * 3600
    (task,) = campaign.next("ann")
    campaign.answer("ann", task.question, grade=2)
    assert campaign.next("bob")[0].doc != campaign.next("ann")[0].doc
    assert [event.number for event in campaign.log()] == list(range(1, campaign.state.number + 1))
    assert campaign.status().judgments == 2


@pytest.mark.slow
def test_two_processes_migrate_a_store_once(tmp_path: Path):
    old = Path(__file__).parents[1] / "compatibility" / "schema1.sqlite"
    place = Path(shutil.copy(old, tmp_path / "old.db"))
    script = "import sys; from probeval.campaign import Campaign; print(len(Campaign.open(sys.argv[1]).log()))"
    both = [start_python(script, place) for _ in range(2)]
    assert [each.communicate()[0].strip() for each in both] == ["94", "94"]
    with Campaign.open(place, read_only=True) as again:
        assert len(again.log()) == 94


def test_unknown_reasons_are_given_as_they_are():
    assert opening.reason_of(sqlite3.OperationalError("Something New happened")) == "something New happened."
