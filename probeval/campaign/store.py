"""Stores of campaigns: one SQLite file, or a PostgreSQL database.

Events are only ever added. A step of a campaign is one transaction: take the lock, read the new events of others,
decide, add, commit. So event numbers have no gaps with any number of writers, and a step that returned is on disk.
[event log]
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from probeval.campaign.events import Event, decode, encode
from probeval.campaign.state import State, fold
from probeval.errors import StoreError, did_you_mean

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, DBAPIError
except ImportError:
    raise StoreError("Campaigns need SQLAlchemy: pip install 'probeval[web]'.") from None

if TYPE_CHECKING:
    from probeval.campaign.creation import Creation
    from probeval.campaign.log import PendingDecision

__all__ = ["MIGRATIONS", "SCHEMA", "Store"]

SCHEMA = 1
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}  # from each version to the next
PATIENCE = 10.0  # seconds to wait for another process that writes
TRIES = 5
ROLLED_BACK = {"40001", "40P01"}  # PostgreSQL: serialisation failure, deadlock

TABLES = sa.MetaData()
VERSION = sa.Table("probeval_version", TABLES, sa.Column("version", sa.Integer, nullable=False))
CAMPAIGN = sa.Table(
    "probeval_campaign",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)


def _of_campaign() -> sa.Column[int]:
    return sa.Column("campaign", sa.ForeignKey(CAMPAIGN.c.id), primary_key=True)


EVENT = sa.Table(
    "probeval_event",
    TABLES,
    _of_campaign(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("token", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign", "token"),
)
PART = sa.Table(
    "probeval_part",
    TABLES,
    _of_campaign(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
SNAPSHOT = sa.Table(
    "probeval_outlook",
    TABLES,
    _of_campaign(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("judged", sa.Integer, nullable=False),
    sa.Column("confidence", sa.Double, nullable=False),
    sa.Column("progress", sa.Double, nullable=False),
    sa.Column("body", sa.Text),  # of the latest snapshot only
)


class Store:
    """An open store of campaigns.

    Parameters
    ----------
    url
        The path of an SQLite file, or a URL such as ``postgresql://user@host/base``.
    create
        Create the store if it does not exist.
    read_only
        Open it for reading only.
    """

    def __init__(self, url: str | Path, *, create: bool = False, read_only: bool = False) -> None:
        self.url, self.read_only = str(url), read_only
        self._lock = threading.Lock()  # SQLite makes waiting writers sleep; threads need not
        text = str(url)
        self._file = None if "://" in text and not text.startswith("sqlite:") else _file(text)
        if self._file is None:
            self.name, self._engine = _postgres(text, read_only=read_only)
        else:
            self.name = str(self._file)
            self._engine = _sqlite(self._file, create=create, read_only=read_only)
        self._writer = self._engine.execution_options(writing=True)
        self._set_up(create=create)

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def campaigns(self) -> dict[str, int]:
        """The key of each campaign, by name."""
        with self._reading() as connection:
            rows = connection.execute(sa.select(CAMPAIGN.c.name, CAMPAIGN.c.id).order_by(CAMPAIGN.c.id))
            return {row.name: row.id for row in rows}

    def find(self, name: str | None) -> int:
        """The key of the campaign with this name, or of the only campaign."""
        known = self.campaigns()
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        if name is None:
            raise StoreError(
                f"{self.name}: holds {len(known)} campaigns. Name one: {', '.join(known) or 'there is none'}."
            )
        if name not in known:
            raise StoreError(f"{self.name}: no campaign {name!r}.{did_you_mean(name, known)}")
        return known[name]

    def add(self, creation: Creation) -> int:
        """Add a campaign in one transaction; its key."""
        name = creation.setup.name
        with self._writing() as connection:
            if connection.execute(sa.select(CAMPAIGN.c.id).where(CAMPAIGN.c.name == name)).first():
                raise StoreError(f"{self.name}: already has a campaign {name!r}. Use another name or another store.")
            key = int(connection.execute(sa.insert(CAMPAIGN).values(name=name).returning(CAMPAIGN.c.id)).scalar_one())
            self._add_parts(connection, key, creation.parts)
            self._add_events(connection, key, [replace(e, number=i) for i, e in enumerate(creation.events, start=1)])
        return key

    def events(self, campaign: int, after: int = 0) -> list[Event]:
        """The events after this number, in order."""
        with self._reading() as connection:
            return self._events(connection, campaign, after)

    def advance(self, campaign: int, state: State, decisions: Sequence[PendingDecision[Any]]) -> State:
        """Take several decisions in one transaction, each on the state after the one before it.

        Parameters
        ----------
        campaign
            Its key.
        state
            A state of it; events that others added since are read first.
        decisions
            Each keeps its outcome. A refused one adds no events and does not affect the others.

        Returns
        -------
        The state after all of them.
        """
        for left in reversed(range(TRIES)):
            try:
                with self._writing() as connection:
                    self._hold(connection, campaign)
                    now = fold(state, self._events(connection, campaign, state.number))
                    for decision in decisions:
                        now = decision.take(now)
                    self._add_events(connection, campaign, [event for each in decisions for event in each.events])
                    for decision in decisions:
                        self._add_parts(connection, campaign, decision.parts)
                return now
            except _TryAgainError:
                if not left:
                    raise StoreError(f"{self.name}: too many concurrent writers. Try again.") from None
        raise AssertionError

    def part(self, campaign: int, name: str) -> bytes | None:
        """A part of a campaign, such as its runs or labels; None if it has no such part."""
        with self._reading() as connection:
            mine = (PART.c.campaign == campaign) & (PART.c.name == name)
            return connection.execute(sa.select(PART.c.content).where(mine)).scalar()

    def add_snapshot(self, campaign: int, row: Mapping[str, Any]) -> None:
        """Add a snapshot; older ones keep only their figures."""
        mine = SNAPSHOT.c.campaign == campaign
        with self._writing() as connection:
            self._hold(connection, campaign)
            newest = connection.execute(sa.select(sa.func.max(SNAPSHOT.c.number)).where(mine)).scalar()
            if newest is not None and newest > row["number"]:
                return  # another process has added a newer one
            connection.execute(sa.delete(SNAPSHOT).where(mine & (SNAPSHOT.c.number == row["number"])))
            connection.execute(sa.update(SNAPSHOT).where(mine).values(body=None))
            connection.execute(sa.insert(SNAPSHOT).values(campaign=campaign, **row))

    def snapshot(self, campaign: int, other_than: tuple[int, float] | None = None) -> Mapping[str, Any] | None:
        """The latest snapshot, unless it is the one with this number and time."""
        mine = (SNAPSHOT.c.campaign == campaign) & SNAPSHOT.c.body.is_not(None)
        if other_than is not None:
            mine &= (SNAPSHOT.c.number != other_than[0]) | (SNAPSHOT.c.time != other_than[1])
        with self._reading() as connection:
            row = connection.execute(sa.select(SNAPSHOT).where(mine)).mappings().first()
            return None if row is None else {**row}

    def curve(self, campaign: int) -> list[dict[str, Any]]:
        """The figures of every snapshot, in order: number, time, judged, confidence, progress."""
        figures = [column for column in SNAPSHOT.c if column.name not in ("campaign", "body")]
        mine = sa.select(*figures).where(SNAPSHOT.c.campaign == campaign).order_by(SNAPSHOT.c.number)
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(mine).mappings()]

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Hold the server lock of an SQLite file for the duration of the block; PostgreSQL needs none.

        It is an SQLite lock on a file beside the store, so it ends with the process even if that is killed.
        """
        if self._file is None:
            yield
            return
        lock = sqlite3.connect(f"{self._file}-server", timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise StoreError(f"{self.name}: another server is using this store. Use it or stop it first.") from None
        try:
            yield
        finally:
            lock.close()
            Path(f"{self._file}-server").unlink(missing_ok=True)

    def _set_up(self, *, create: bool) -> None:
        try:
            with self._reading() as connection:
                there = sa.inspect(connection).has_table(VERSION.name)
                version = connection.execute(sa.select(VERSION.c.version)).scalar() if there else None
                foreign = self._file is not None and not there and bool(sa.inspect(connection).get_table_names())
            if version is None and create and not foreign:
                with self._writing() as connection:
                    TABLES.create_all(connection)
                    connection.execute(sa.insert(VERSION).values(version=SCHEMA))
            elif version is None:
                raise StoreError(f"{self.name}: not a store of campaigns. Create one first.")
            elif version > SCHEMA:
                raise StoreError(
                    f"{self.name}: written by a newer probeval (schema {version}, this one reads {SCHEMA}). Update it."
                )
            elif version < SCHEMA:
                self._migrate(int(version))
        except BaseException:
            self.close()
            raise

    def _migrate(self, version: int) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.name}: has an older schema ({version}, this probeval has {SCHEMA}). Open it once for writing."
            )
        with self._writing() as connection:
            for old in range(version, SCHEMA):
                MIGRATIONS[old](connection)
            connection.execute(sa.update(VERSION).values(version=SCHEMA))

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._reported(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        if self.read_only:
            raise StoreError(f"{self.name}: open for reading only.")
        with self._lock, self._reported(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) in ROLLED_BACK:
                raise _TryAgainError from None
            raise StoreError(f"{self.name}: {_reason(error)}") from None

    @staticmethod
    def _hold(connection: sa.Connection, campaign: int) -> None:
        """Lock the campaign for writing (in SQLite the transaction already has)."""
        connection.execute(sa.select(CAMPAIGN.c.id).where(CAMPAIGN.c.id == campaign).with_for_update())

    @staticmethod
    def _events(connection: sa.Connection, campaign: int, after: int) -> list[Event]:
        mine = (EVENT.c.campaign == campaign) & (EVENT.c.number > after)
        rows = connection.execute(sa.select(EVENT).where(mine).order_by(EVENT.c.number)).mappings()
        return [decode({**row}) for row in rows]

    @staticmethod
    def _add_events(connection: sa.Connection, campaign: int, events: Sequence[Event]) -> None:
        if events:
            connection.execute(sa.insert(EVENT), [{"campaign": campaign, **encode(event)} for event in events])

    @staticmethod
    def _add_parts(connection: sa.Connection, campaign: int, parts: Mapping[str, bytes]) -> None:
        for name, content in parts.items():
            connection.execute(sa.insert(PART).values(campaign=campaign, name=name, content=content))


class _TryAgainError(Exception):
    """The database rolled a transaction back."""


def _file(text: str) -> Path:
    """The file that a path or an SQLite URL names."""
    return Path(text.removeprefix("sqlite:").removeprefix("//").removeprefix("/") if "://" in text else text)


def _sqlite(file: Path, *, create: bool, read_only: bool) -> sa.Engine:
    if not create and not file.exists():
        raise StoreError(f"{file}: no such store. Create one first.")
    modes = ["ro", "ro&immutable=1"] if read_only else ["rwc" if create else "rw"]
    fresh = create and (not file.exists() or file.stat().st_size == 0)

    def connect() -> sqlite3.Connection:
        for mode in modes:
            address = f"file:{quote(str(file.absolute()))}?mode={mode}"
            connection = sqlite3.connect(
                address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                # Reading may need files beside the database that this user cannot create: try it.
                connection.execute(
                    "PRAGMA journal_mode = WAL" if fresh else "SELECT name FROM sqlite_master"
                ).fetchall()
            except sqlite3.Error:
                connection.close()
                if mode == modes[-1]:
                    raise
            else:
                return connection
        raise AssertionError

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)
    sa.event.listen(
        engine,
        "begin",
        lambda connection: connection.exec_driver_sql(
            "BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN"
        ),
    )
    return engine


def _postgres(text: str, *, read_only: bool) -> tuple[str, sa.Engine]:
    try:
        url = sa.make_url(text)
        if url.drivername not in ("postgres", "postgresql", "postgresql+psycopg"):
            raise ValueError
        url = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, pool_pre_ping=True)
    except (ArgumentError, ValueError):
        raise StoreError("A store must be the path of an SQLite file or a postgresql:// URL; got neither.") from None
    except ImportError:
        raise StoreError("PostgreSQL needs psycopg: pip install 'probeval[postgres]'.") from None

    def prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO on")  # a commit that returned is on disk
            if read_only:
                cursor.execute("SET default_transaction_read_only TO on")
        connection.commit()

    sa.event.listen(engine, "connect", prepare)
    return url.render_as_string(hide_password=True), engine


def _reason(error: DBAPIError) -> str:
    """The cause of a database error, and what to do about it."""
    message = str(error.orig).strip().splitlines()[0].rstrip(".") if str(error.orig).strip() else "no reason given"
    for part, known in REASONS.items():
        if part in message.lower():
            return known
    return f"{message[0].lower()}{message[1:]}."


FULL = "the disk is full; this step was not saved, all earlier ones were. Free some space and try again."
REASONS = {
    "disk is full": FULL,
    "no space left": FULL,
    "database is locked": f"another process has been writing for {PATIENCE:g} seconds. Stop it, or try again.",
    "readonly database": "cannot be written: the file or its folder is read-only here.",
    "read-only transaction": "open for reading only.",
    "file is not a database": "not a store of campaigns. Create one first.",
    "malformed": "the file is damaged. Restore it from a backup.",
    "unable to open": "cannot be opened: no such folder, or no permission.",
}
