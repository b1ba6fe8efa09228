"""Stores of campaigns: one SQLite file, or a PostgreSQL database.

Events are only ever added. A step of a campaign is one transaction: take the lock, read the new events of others,
decide, add, commit. So event numbers have no gaps with any number of writers, and a step that returned is on disk.
[event log]
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from probeval.campaign.codec import decode, encode, event_classes
from probeval.campaign.databases import (
    BUSY,
    DAMAGED,
    PATIENCE,
    FileIdentity,
    open_postgres,
    open_sqlite,
    reason_of,
    server_lock,
    sqlite_file,
)
from probeval.campaign.events import Event
from probeval.campaign.state import State, fold
from probeval.campaign.tables import (
    CAMPAIGN,
    EVENT,
    EVENTS_FROM,
    HELD_CAMPAIGN,
    LAST_EVENT,
    MIGRATIONS,
    OTHER_SNAPSHOT,
    PART,
    SCHEMA,
    SCHEMA_VERSION,
    SNAPSHOT,
    TABLES,
    VERSION,
    chained,
    digest_of,
)
from probeval.errors import ProbevalError, StoreError, did_you_mean

if TYPE_CHECKING:
    from probeval.campaign.creation import Creation
    from probeval.campaign.log import PendingDecision

__all__ = ["Store"]

TRIES = 5
PAGE_SECRET = "page-secret"  # the name of a part
ROLLED_BACK = {"40001", "40P01"}  # PostgreSQL: serialisation failure, deadlock


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
        self._file = sqlite_file(self.url)
        self._identity: FileIdentity | None = None
        self._ends: dict[int, tuple[int, str]] = {}  # the number and digest of the last event seen, by campaign
        if self._file is None:
            self.name, self._engine = open_postgres(self.url, read_only=read_only)
        else:
            self.name = str(self._file)
            self._engine = open_sqlite(self._file, create=create, read_only=read_only)
        self._writer = self._engine.execution_options(writing=True)
        self._set_up(create=create)

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    def close(self) -> None:
        """Close all connections."""
        if self._identity is not None:
            self._identity.close()
            self._identity = None
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
            events = [replace(event, number=i) for i, event in enumerate(creation.events, start=1)]
            self._add_events(connection, key, events, "")
        return key

    def events(self, campaign: int, after: int = 0) -> list[Event]:
        """The events after this number, in order."""
        with self._reading() as connection:
            return self._events(connection, campaign, after)

    def news(
        self, campaign: int, after: int, other_than: tuple[int, float] | None
    ) -> tuple[list[Event], Mapping[str, Any] | None]:
        """The events after this number, and the latest snapshot unless it is the one with this number and time."""
        with self._reading() as connection:
            return self._events(connection, campaign, after), self._snapshot(connection, campaign, other_than)

    def advance(self, campaign: int, state: State, decisions: Sequence[PendingDecision[Any]]) -> State:
        """Take several decisions in one transaction, each on the state after the one before it.

        Nothing is added to a log that is not the one of the given state: one that was cut short or replaced.

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
                    last = self._last(connection, campaign)
                    now = state
                    if last != self._ends.get(campaign) or last[0] != state.number:  # of others, or none read yet
                        now = fold(state, self._events(connection, campaign, state.number))
                    for decision in decisions:
                        now = decision.take(now)
                    new = [event for each in decisions for event in each.events]
                    end = self._add_events(connection, campaign, new, last[1])
                    for decision in decisions:
                        self._add_parts(connection, campaign, decision.parts)
                self._ends[campaign] = now.number, end
                return now
            except _TryAgainError:
                if not left:
                    raise StoreError(f"{self.name}: too many concurrent writers. Try again.") from None
        raise AssertionError

    def part(self, campaign: int, name: str) -> bytes | None:
        """A part of a campaign, such as its runs or labels; None if it has no such part."""
        with self._reading() as connection:
            mine = (PART.c.campaign == campaign) & (PART.c.name == name)
            row = connection.execute(sa.select(PART.c.content, PART.c.digest).where(mine)).first()
        if row is not None and (not isinstance(row.content, bytes) or digest_of(row.content) != row.digest):
            raise StoreError(f"{self.name}: the part {name!r} is damaged. Restore the store from a backup.")
        return None if row is None else row.content

    def page_secret(self, campaign: int) -> str:
        """A random secret, which is kept with the campaign; made when it is first asked for."""
        kept = self.part(campaign, PAGE_SECRET)
        if kept is None:
            with self._writing() as connection:
                self._hold(connection, campaign)
                mine = (PART.c.campaign == campaign) & (PART.c.name == PAGE_SECRET)
                kept = connection.execute(sa.select(PART.c.content).where(mine)).scalar()  # of another process
                if kept is None:
                    kept = secrets.token_urlsafe(32).encode()
                    self._add_parts(connection, campaign, {PAGE_SECRET: kept})
        return kept.decode()

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
        with self._reading() as connection:
            return self._snapshot(connection, campaign, other_than)

    @staticmethod
    def _snapshot(
        connection: sa.Connection, campaign: int, other_than: tuple[int, float] | None
    ) -> Mapping[str, Any] | None:
        number, time = other_than or (-1, -1.0)
        given = {"campaign": campaign, "number": number, "time": time}
        row = connection.execute(OTHER_SNAPSHOT, given).mappings().first()
        return None if row is None else {**row}

    def curve(self, campaign: int) -> list[dict[str, Any]]:
        """The figures of every snapshot, in order: number, time, judged, confidence, progress."""
        figures = [column for column in SNAPSHOT.c if column.name not in ("campaign", "body")]
        mine = sa.select(*figures).where(SNAPSHOT.c.campaign == campaign).order_by(SNAPSHOT.c.number)
        with self._reading() as connection:
            rows = [dict(row) for row in connection.execute(mine).mappings()]
        if not all(isinstance(value, (int, float)) for row in rows for value in row.values()):
            raise StoreError(f"{self.name}: {DAMAGED}")
        return rows

    def event_rows(self, campaign: int) -> list[Mapping[str, Any]]:
        """The rows of all events as they are in the database, not decoded."""
        with self._reading() as connection:
            mine = sa.select(EVENT).where(EVENT.c.campaign == campaign).order_by(EVENT.c.number)
            return [dict(row) for row in connection.execute(mine).mappings()]

    def part_names(self, campaign: int) -> list[str]:
        """The names of a campaign's parts, sorted."""
        with self._reading() as connection:
            return list(
                connection.execute(sa.select(PART.c.name).where(PART.c.campaign == campaign).order_by("name")).scalars()
            )

    def integrity(self) -> list[str]:
        """The faults that the database itself finds in its file; PostgreSQL checks its pages as it reads them."""
        if self._file is None:
            return []
        with self._reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
            strays = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        return [str(each) for each in found if each != "ok"] + [f"a row of {row[0]} has no campaign" for row in strays]

    def copy_to(self, target: Store) -> None:
        """Copy all campaigns, as they are at one moment, into a store that has none, in one transaction."""
        with self._one_moment() as old, target._writing() as new:
            if new.execute(sa.select(CAMPAIGN.c.id)).first():
                raise StoreError(f"{target.name}: has campaigns already. Copy into an empty store.")
            for campaign in old.execute(sa.select(CAMPAIGN).order_by(CAMPAIGN.c.id)).all():
                made = sa.insert(CAMPAIGN).values(name=campaign.name).returning(CAMPAIGN.c.id)
                key = new.execute(made).scalar_one()
                for table, at_once in ((EVENT, 1000), (PART, 1), (SNAPSHOT, 100)):
                    mine = sa.select(table).where(table.c.campaign == campaign.id).order_by(*table.primary_key)
                    found = old.execute(mine, execution_options={"yield_per": at_once})
                    for rows in found.mappings().partitions():
                        new.execute(sa.insert(table), [{**row, "campaign": key} for row in rows])

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Hold the server lock of an SQLite file for the duration of the block; PostgreSQL needs none.

        It is an SQLite lock on a file beside the store, so it ends with the process even if that is killed. The file
        stays, because a lock on a file that another process removes holds nothing.
        """
        if self._file is None:
            yield
            return
        with closing(server_lock(Path(f"{self._file.resolve()}-server"), self.name)):
            yield

    def _set_up(self, *, create: bool) -> None:
        try:
            with self._reported(), self._engine.connect() as connection:
                there = sa.inspect(connection).has_table(VERSION.name)
                version = connection.execute(sa.select(VERSION.c.version)).scalar() if there else None
                foreign = self._file is not None and not there and bool(sa.inspect(connection).get_table_names())
            if version is None and create and not foreign:
                with self._transaction() as connection:
                    TABLES.create_all(connection)
                    connection.execute(sa.insert(VERSION).values(version=SCHEMA))
            elif version is None:
                raise StoreError(f"{self.name}: not a store of campaigns. Create one first.")
            elif not isinstance(version, int) or version < 1:
                raise StoreError(f"{self.name}: {DAMAGED}")
            elif version < SCHEMA:
                self._migrate(version)
            else:
                self._check_version(version)
            self._check_file()
        except BaseException:
            self.close()
            raise

    def _migrate(self, version: int) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.name}: has an older schema ({version}, this probeval has {SCHEMA}). Open it once for writing, "
                "for example with 'probeval campaign check --migrate'."
            )
        with self._transaction() as connection:
            # Another process may have done it meanwhile.
            version = connection.execute(sa.select(VERSION.c.version).with_for_update()).scalar_one()
            for old in range(version, SCHEMA):
                MIGRATIONS[old](connection)
            connection.execute(sa.update(VERSION).values(version=SCHEMA))

    def _check_version(self, version: int | None) -> None:
        if version is None or version > SCHEMA:
            raise StoreError(
                f"{self.name}: written by a newer probeval (schema {version}, this one reads {SCHEMA}). Update it."
            )

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._reported(), self._engine.connect() as connection:
            self._check_file()
            yield connection

    @contextmanager
    def _one_moment(self) -> Iterator[sa.Connection]:
        """A transaction that reads the store as it is at one moment, while others write."""
        level = {} if self._file is not None else {"isolation_level": "REPEATABLE READ"}
        with self._reading() as connection:
            yield connection.execution_options(**level)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction on the store as it was opened; one that is deleted, replaced or migrated is not written to."""
        with self._transaction() as connection:
            self._check_file()
            self._check_version(connection.execute(SCHEMA_VERSION).scalar())
            yield connection
        self._check_file()  # it may have gone in between: then the step is not acknowledged

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        if self.read_only:
            raise StoreError(f"{self.name}: open for reading only.")
        if not self._lock.acquire(timeout=PATIENCE):
            raise StoreError(f"{self.name}: {BUSY}")
        try:
            with self._reported(), self._writer.begin() as connection:
                yield connection
        finally:
            self._lock.release()

    def _check_file(self) -> None:
        if self._file is None:
            return
        if self._identity is None:  # just opened, or used again after it was closed
            self._identity = FileIdentity(self._file, self._engine.raw_connection())
        self._identity.check()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeoutError:
            raise StoreError(f"{self.name}: too many reads at once. Try again.") from None
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) in ROLLED_BACK:
                raise _TryAgainError from None
            raise StoreError(f"{self.name}: {reason_of(error, opened=self._identity is not None)}") from None

    def _hold(self, connection: sa.Connection, campaign: int) -> None:
        """Lock the campaign for writing; in SQLite the transaction already has."""
        if self._file is None:
            connection.execute(HELD_CAMPAIGN, {"campaign": campaign})

    def _events(self, connection: sa.Connection, campaign: int, after: int) -> list[Event]:
        """The events after this number; an error if the log does not continue the one that was read before."""
        rows = connection.execute(EVENTS_FROM, {"campaign": campaign, "number": after}).mappings().all()
        number, digest = self._ends.get(campaign, (0, ""))
        if after and (not rows or rows[0]["number"] != after or (number == after and rows[0]["digest"] != digest)):
            raise StoreError(
                f"{self.name}: the log was cut short or replaced while it was open: event {after} is gone. "
                "Restore a backup, and start again."
            )
        new = rows[1:] if after else rows
        for expected, row in enumerate(new, start=after + 1):
            if row["number"] != expected:
                raise StoreError(f"{self.name}: event {expected} of the log is missing. Restore a backup.")
        events = [self._decoded({**row}) for row in new]
        if rows:
            self._ends[campaign] = rows[-1]["number"], rows[-1]["digest"]
        return events

    def _decoded(self, row: Mapping[str, Any]) -> Event:
        try:
            return decode(row)
        except (ProbevalError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            known = row["kind"] in event_classes()
            why = f"{type(error).__name__}: {error}" if known else f"unknown kind {row['kind']!r}"
            raise StoreError(
                f"{self.name}: event {row['number']} cannot be read ({why:.100}). It is damaged, written by a newer "
                "probeval, or of a kind of question of one's own: restore a backup, update probeval, or --import it."
            ) from None

    @staticmethod
    def _last(connection: sa.Connection, campaign: int) -> tuple[int, str]:
        """The number and the digest of the last event; 0 and empty without any."""
        row = connection.execute(LAST_EVENT, {"campaign": campaign}).first()
        return (0, "") if row is None else (row.number, row.digest)

    @staticmethod
    def _add_events(connection: sa.Connection, campaign: int, events: Sequence[Event], last: str) -> str:
        """Add events after the one with this digest; the digest of the last one in the log."""
        if not events:
            return last
        rows = [encode(event) for event in events]
        digests = chained(last, rows)
        connection.execute(
            sa.insert(EVENT),
            [{"campaign": campaign, "digest": digest, **row} for row, digest in zip(rows, digests, strict=True)],
        )
        return digests[-1]

    @staticmethod
    def _add_parts(connection: sa.Connection, campaign: int, parts: Mapping[str, bytes]) -> None:
        for name, content in parts.items():
            row = {"campaign": campaign, "name": name, "content": content, "digest": digest_of(content)}
            connection.execute(sa.insert(PART).values(**row))


class _TryAgainError(Exception):
    """The database rolled a transaction back."""
