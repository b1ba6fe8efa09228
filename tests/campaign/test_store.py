"""The store: the same on SQLite and PostgreSQL; nothing lost, nothing doubled, no gap, clear errors."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from probeval.campaign import Campaign, Store
from probeval.campaign import log as stores
from probeval.data import Collection
from probeval.errors import CampaignError, StoreError
from tests.campaign.conftest import on_both_databases
from tests.campaign.nursery import start_python

WRITER = Path(__file__).with_name("writer.py").read_text()


@on_both_databases
def test_a_campaign_comes_back_whole(make: Callable[..., Campaign], store: str):
    made = make(guideline="Read all of it.", queries={"q1": "what is ai"}, overlap=0.25, name="mine")
    made.answer("ann", made.pool.label(0), grade=2)
    with Campaign.open(store) as again:
        assert again.setup == made.setup
        assert again.log() == made.log()
        assert again.pool == made.pool
        assert again.queries == made.queries
        assert again.queries["q1"] == "what is ai"
        assert [e.number for e in again.log()] == [1, 2, 3, 4]


@on_both_databases
def test_runs_and_evidence_come_back_as_they_were(make: Callable[..., Campaign], store: str, small):
    make()
    with Campaign.open(store, read_only=True) as again:
        got = again.collection
    assert got.runs.systems == small.runs.systems
    assert (got.runs.pairs == small.runs.pairs).all()
    assert (got.runs.scores == small.runs.scores).all()
    assert got.runs.teams == small.runs.teams
    assert {k: list(v) for k, v in got.metadata.groups.items()} == {
        k: list(v) for k, v in small.metadata.groups.items()
    }


@on_both_databases
def test_a_store_may_hold_several_campaigns(make: Callable[..., Campaign], store: str):
    make(name="one")
    make(name="two").answer("ann", make(name="three").pool.label(0), grade=1)
    with pytest.raises(StoreError, match=r"holds 3 campaigns\. Name one: one, two, three"):
        Campaign.open(store)
    with pytest.raises(StoreError, match=r"no campaign 'tow'\. Did you mean 'two'"):
        Campaign.open(store, name="tow")
    with pytest.raises(StoreError, match="already has a campaign 'one'"):
        make(name="one")
    with Campaign.open(store, name="two") as two, Campaign.open(store, name="one") as one:
        assert (len(two.log()), len(one.log())) == (2, 1)


@on_both_databases
def test_numbers_have_no_gap_under_many_threads(make: Callable[..., Campaign], store: str):
    campaign = make()
    pairs = [campaign.pool.label(i) for i in range(len(campaign.pool))]
    others = [Campaign.open(store) for _ in range(2)]  # as other processes would

    def work(number: int) -> None:
        mine = [campaign, *others][number % 3]
        for i in range(10):
            mine.answer(f"a{number}", pairs[(number * 10 + i) % len(pairs)], grade=i % 3, token=f"{number} {i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.number for event in campaign.log()] == list(range(1, 92))
    assert sorted(e.token for e in campaign.log() if e.token) == sorted(f"{n} {i}" for n in range(9) for i in range(10))
    for other in others:
        assert other.state.number == 91
        other.close()


@on_both_databases
@pytest.mark.slow
def test_processes_write_together_without_gaps_or_losses(make: Callable[..., Campaign], store: str):
    campaign = make()
    writers = [start_python(WRITER, store, f"a{n}", 15) for n in range(3)]
    acknowledged = [line for writer in writers for line in writer.communicate()[0].split()]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(acknowledged) == 45
    log = campaign.log()
    assert [event.number for event in log] == list(range(1, len(log) + 1))
    assert sorted(event.token for event in log if event.token) == sorted(acknowledged)


@on_both_databases
def test_a_refused_step_leaves_the_others_of_its_batch_alone(campaign: Campaign):
    pairs = [campaign.pool.label(i) for i in range(6)]
    refused: list[str] = []
    gate = threading.Barrier(6)

    def work(number: int) -> None:
        gate.wait()
        try:
            campaign.answer("ann", pairs[number], grade=1, token="same" if number < 3 else f"t{number}")
        except CampaignError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 2
    assert all("was used for a different request" in text for text in refused)
    assert len(campaign.state.judged) == 4


@on_both_databases
def test_a_newer_store_is_refused_and_left_alone(make: Callable[..., Campaign], store: str):
    made = make()
    with made._log.store._writer.begin() as connection:
        connection.execute(sa.update(stores.VERSION).values(version=99))
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"written by a newer probeval \(schema 99, this one reads 3\)"):
            Campaign.open(store, read_only=read_only)
    assert len(made.log()) == 1


@on_both_databases
def test_an_older_store_is_migrated_once_and_only_for_writing(
    make: Callable[..., Campaign], store: str, monkeypatch: pytest.MonkeyPatch
):
    make().close()

    def add_colour(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE probeval_campaign ADD COLUMN colour TEXT"))

    monkeypatch.setattr(stores, "SCHEMA", 4)
    monkeypatch.setitem(stores.MIGRATIONS, 3, add_colour)
    with pytest.raises(StoreError, match="has an older schema"):
        Campaign.open(store, read_only=True)
    for _ in range(2):
        with Campaign.open(store) as opened, opened._log.store._reading() as connection:
            assert connection.execute(sa.select(stores.VERSION.c.version)).scalar() == 4
            assert connection.execute(sa.text("SELECT colour FROM probeval_campaign")).all() == [(None,)]
            assert len(opened.log()) == 1


@on_both_databases
def test_a_migration_that_fails_changes_nothing(
    make: Callable[..., Campaign], store: str, monkeypatch: pytest.MonkeyPatch
):
    make().close()

    def fail(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE probeval_campaign ADD COLUMN colour TEXT"))
        connection.execute(sa.text("SELECT nonsense FROM nowhere"))

    monkeypatch.setattr(stores, "SCHEMA", 4)
    monkeypatch.setitem(stores.MIGRATIONS, 3, fail)
    with pytest.raises(StoreError, match="nowhere"):
        Campaign.open(store)
    monkeypatch.setattr(stores, "SCHEMA", 3)
    with Campaign.open(store) as opened:
        assert len(opened.log()) == 1


@on_both_databases
def test_reading_alone_never_writes(make: Callable[..., Campaign], store: str):
    made = make()
    with Campaign.open(store, read_only=True) as reader:
        assert reader.status().pool == len(made.pool)
        with pytest.raises(StoreError, match="open for reading only"):
            reader.answer("ann", made.pool.label(0), grade=1)
        with pytest.raises(StoreError, match="open for reading only"):
            reader.next("ann")
        with reader._log.store._engine.connect() as connection, pytest.raises(sa.exc.DBAPIError):
            connection.execute(sa.delete(stores.EVENT))
    assert len(made.log()) == 1


@contextmanager
def _nobody() -> Iterator[None]:
    """As a user whom the rights of files hold back: root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked(make: Callable[..., Campaign], store: str) -> Iterator[Path]:
    """A store in a folder that nobody may write to."""
    make().close()
    folder = Path(tempfile.mkdtemp())
    file = folder / "store.db"
    file.write_bytes(Path(store).read_bytes())
    file.chmod(0o444)
    folder.chmod(0o555)
    yield file
    folder.chmod(0o755)
    file.unlink()
    folder.rmdir()


def test_a_read_only_file_can_be_read_and_says_why_it_cannot_be_written(locked: Path):
    with _nobody():
        with Campaign.open(locked, read_only=True) as reader:
            assert len(reader.log()) == 1
            assert reader.export() == ""
        with pytest.raises(StoreError, match="cannot be written: the file or its folder is read-only here"):
            Campaign.open(locked)
        with pytest.raises(StoreError, match="cannot be opened: no such folder, or no permission"):
            Store(locked.with_name("other.db"), create=True)


def test_a_full_disk_loses_nothing_and_says_so(campaign: Campaign, store: str):
    engine = campaign._log.store._engine
    engine.dispose()
    room = Path(store).stat().st_size // 4096 + 2
    sa.event.listen(engine, "connect", lambda c, _: c.execute(f"PRAGMA max_page_count = {room}"))
    pairs = [campaign.pool.label(i) for i in range(len(campaign.pool))]
    acknowledged: list[str] = []

    def write_on() -> None:
        for i in range(10_000):
            campaign.comment("ann", *pairs[i % len(pairs)], "x" * 1000, token=f"t{i}")
            acknowledged.append(f"t{i}")

    with pytest.raises(StoreError, match="the disk is full; this step was not saved, all earlier ones were"):
        write_on()
    assert acknowledged
    with Campaign.open(store) as again:
        assert [event.token for event in again.log()[1:]] == acknowledged
        again.answer("ann", pairs[0], grade=1)  # there is room again
        assert again.state.number == len(acknowledged) + 2


def test_a_writer_that_does_not_let_go_is_named(campaign: Campaign, store: str, monkeypatch: pytest.MonkeyPatch):
    engine = campaign._log.store._engine
    engine.dispose()
    sa.event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA busy_timeout = 50"))
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process has been writing for 10 seconds"):
        campaign.answer("ann", campaign.pool.label(0), grade=1)
    assert len(campaign.log()) == 1  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    assert len(campaign.log()) == 2


def test_what_sqlite_promises_is_asked_for(campaign: Campaign, store: str):
    with campaign._log.store._reading() as connection:
        for pragma, value in (
            ("journal_mode", "wal"),
            ("synchronous", 2),
            ("foreign_keys", 1),
            ("busy_timeout", 10_000),
        ):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


def test_the_roles_of_the_page_on_postgres(postgres: str, small: Collection):
    """What the page says to set up is enough: an owner creates, another role judges, a third one only reads."""
    import psycopg

    page = (Path(__file__).parents[2] / "docs" / "how-to" / "postgresql.md").read_text()
    owner, judges = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    reads = "CREATE ROLE reads LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reads"
    place = {
        role: postgres.replace("//postgres@/postgres", f"//{role}@/judging") for role in ("judge", "page", "reads")
    }

    def run(statements: str, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for each in statements.split(";"):
                if each.strip():
                    connection.execute(each)

    run(owner, postgres)
    Campaign.create(place["judge"], replace(small, judgments=None), metric="P@5", model="uniform").close()
    run(judges + reads, postgres.replace("/postgres?", "/judging?"))
    with Campaign.open(place["page"]) as served:
        (task,) = served.next("ann")
        served.answer("ann", task.question, grade=1)
        served.refresh()
    with Campaign.open(place["reads"], read_only=True) as seen:
        assert seen.status().judged == 1
    with Campaign.open(place["reads"]) as seen, pytest.raises(StoreError, match="permission denied"):
        seen.next("bob")
    with pytest.raises(StoreError, match="permission denied"):
        Campaign.create(place["reads"], small, metric="P@5", model="uniform", name="other")


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_what_postgres_promises_is_asked_for(campaign: Campaign):
    with campaign._log.store._reading() as connection:
        assert connection.execute(sa.text("SHOW synchronous_commit")).scalar() == "on"


@on_both_databases
def test_a_transaction_that_the_database_gives_up_on_is_tried_again(
    campaign: Campaign, store: str, monkeypatch: pytest.MonkeyPatch
):
    class GaveUpError(Exception):
        sqlstate = "40001"

    real, fails = stores.Store._add_events, [1, 1]

    def flaky(*step: object) -> str:
        end = real(*step)
        if fails:
            fails.pop()
            raise sa.exc.OperationalError("insert", {}, GaveUpError("could not serialize access"))
        return end

    monkeypatch.setattr(stores.Store, "_add_events", staticmethod(flaky))
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    assert not fails
    assert [event.number for event in campaign.log()] == [1, 2]
    fails[:] = [1] * 9
    with pytest.raises(StoreError, match="too many concurrent writers"):
        campaign.answer("ann", campaign.pool.label(1), grade=1)
    assert campaign.state.number == 2


def test_one_server_for_a_file(make: Callable[..., Campaign], store: str):
    made = make()
    with made.serving():
        with Campaign.open(store) as other, pytest.raises(StoreError, match="another server is using this store"):
            other.serving().__enter__()
        made.answer("ann", made.pool.label(0), grade=1)
        with Campaign.open(store) as other:  # the command line may write beside a server
            other.answer("bob", made.pool.label(0), grade=1)
    with Campaign.open(store) as other, other.serving():
        assert other.state.number == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such store. Create one first"),
        (b"a text, not a database\n" * 100, "not a store of campaigns"),
        (b"", "not a store of campaigns"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes | None, says: str):
    file = tmp_path / "file.db"
    if content is not None:
        file.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=says):
            Campaign.open(file, read_only=read_only)
    assert not file.exists() if content is None else file.read_bytes() == content


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://root:secret@here/x", "a postgresql:// URL"),
        ("nonsense://", "a postgresql:// URL"),
        ("postgresql://me:secret@127.0.0.1:1/none", r"postgresql\+psycopg://me:\*\*\*@127.0.0.1:1/none: conn"),
    ],
)
def test_urls_that_lead_nowhere_are_refused_in_one_line_without_passwords(url: str, says: str):
    with pytest.raises(StoreError, match=says) as refused:
        Campaign.open(url)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_path_may_have_any_character(tmp_path: Path, small):
    odd = tmp_path / "a b?c#d%41&mode=ro.db"
    with Campaign.create(odd, small, metric="P@5", model="uniform") as made:
        made.answer("ann", made.pool.label(0), grade=1)
    assert odd.exists()
    with Campaign.open(f"sqlite:///{odd}") as again:
        assert again.state.judged


def test_a_database_of_something_else_is_not_taken_over(tmp_path: Path, small):
    file = tmp_path / "other.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    other.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="not a store of campaigns"):
        Campaign.open(file)
    with pytest.raises(StoreError, match="not a store of campaigns"):
        Campaign.create(file, small, metric="P@5", model="uniform")
    assert file.read_bytes() == before
