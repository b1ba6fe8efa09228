"""The log of a campaign: its events in a store (an SQLite file or a PostgreSQL database), and decisions that add to it.

Events are only ever added. A step of a campaign is one transaction: take the lock, read the new events of others,
decide, add, commit. So event numbers have no gaps with any number of writers, and a step that returned is on disk.
[event log]

An event is a row: common fields in columns, the rest as JSON, and a digest that continues the one of the event before.
Rows of earlier versions stay as they are, and are read as events of today.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from probeval.errors import ProbevalError, StoreError, did_you_mean

try:  # the first module of campaigns that needs it
    import sqlalchemy as sa
    from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound, StatementError
    from sqlalchemy.exc import TimeoutError as PoolTimeoutError
except ImportError:
    raise StoreError("Campaigns need SQLAlchemy: pip install 'probeval[web]'.") from None

from probeval.campaign.archive import digest_of
from probeval.campaign.databases import (
    BUSY,
    DAMAGED,
    PATIENCE,
    FileIdentity,
    mark_as_closed,
    mark_as_open,
    open_postgres,
    open_sqlite,
    reason_of,
    server_lock,
    sqlite_file,
    was_left_open,
)
from probeval.campaign.decisions import Decision, Outcome
from probeval.campaign.events import (
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GuidelineChanged,
    Imported,
    Invited,
    Labelled,
    Leased,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    QuestionEvent,
    Released,
    Restored,
    Revoked,
    RunsAdded,
    SetAside,
    SignedIn,
    SignedOut,
    Skipped,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.questions import COMPARISON, GRADE, KINDS, Kind
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.data.scale import Scale

if TYPE_CHECKING:
    from probeval.campaign.creation import Creation

__all__ = ["Log", "PendingDecision", "Store", "chained", "decode", "encode", "event_classes"]

A = TypeVar("A")
TRIES = 5
PAGE_SECRET = "page-secret"  # the name of a part
ROLLED_BACK = {"40001", "40P01"}  # PostgreSQL: serialisation failure, deadlock
HEAD = ("number", "time", "by", "token")
EVENTS: tuple[type[Event], ...] = (
    Created, Changed, GuidelineChanged, QueryGuidelinesChanged, QueriesChanged, TopicsAssigned, Leased, Released,
    Withdrawn, Skipped, Flagged, Commented, Imported, Labelled, RunsAdded, PhaseChanged, Invited, Revoked,
    SetAside, Restored, SignedIn, SignedOut,
)  # fmt: skip

# Events as rows


def event_classes() -> dict[str, type[Event]]:
    """The events that a log may have, by their kind: the general ones, and those of each kind of question."""
    return _event_classes(tuple(KINDS.values()))


@cache
def _event_classes(kinds: tuple[Kind, ...]) -> dict[str, type[Event]]:
    own = (event for kind in kinds for event in (kind.answered, kind.settled, kind.gold) if event is not None)
    return {event.kind: event for event in (*EVENTS, *own)}


def encode(event: Event) -> dict[str, Any]:
    """An event as a row of the store: common fields in columns, the rest as JSON.

    >>> from probeval.campaign import Judged
    >>> row = encode(Judged(by="ann", time=5.0, number=3, query="q", documents=("d",), grade=2.0, guideline=1))
    >>> row["kind"], row["body"]
    ('judged', '{"query":"q","documents":["d"],"guideline":1,"grade":2.0}')
    """
    values = ((field, getattr(event, field.name)) for field in fields(event) if field.name not in HEAD)
    rest = {field.name: _plain(value) for field, value in values if value != field.default}
    head = {name: getattr(event, name) for name in HEAD}
    return head | {"kind": event.kind, "body": json.dumps(rest, separators=(",", ":"))}


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def decode(row: Mapping[str, Any]) -> Event:
    """The event in a row of the store.

    >>> from probeval.campaign import Leased
    >>> event = Leased(by="ann", time=5.0, number=3, query="q", documents=("d",), until=65.0)
    >>> decode(encode(event)) == event
    True
    """
    try:
        return _event_of(row)
    except (ProbevalError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        known = row["kind"] in event_classes()
        why = f"{type(error).__name__}: {error}" if known else f"unknown kind {row['kind']!r}"
        raise StoreError(f"event {row['number']} cannot be read ({why:.100})") from None


def _event_of(row: Mapping[str, Any]) -> Event:
    body, kind = json.loads(row["body"]), row["kind"]
    if "\\ud" in row["body"].lower():  # half of a character, unless its other half follows
        json.dumps(body, ensure_ascii=False).encode()
    if kind in EARLIER:
        kind, body = EARLIER[kind](kind, body)
    given = {name: row[name] for name in HEAD} | body
    unknown = given.keys() - event_classes()[kind].__dataclass_fields__.keys()
    if unknown:
        raise TypeError(f"unknown field {min(unknown)}")
    event = msgspec.convert(given, event_classes()[kind])
    if isinstance(event, QuestionEvent):
        _ = event.question  # its documents are those of its kind
    return event


# Events of schemas 1 and 2


Body = dict[str, Any]


def _documents(kind: str, body: Body) -> tuple[str, Body]:
    """One document, or two: ``doc`` and ``other``, or ``left`` and ``right``."""
    if "documents" in body:
        return kind, body
    pair = [body.pop(name) for name in ("doc", "other", "left", "right") if name in body]
    body["documents"] = [doc for doc in pair if doc]
    return kind, body


def _task(kind: str, body: Body) -> tuple[str, Body]:
    """A question that an assessor got."""
    kind, body = _documents(kind, body)
    return kind, {"asks": COMPARISON if len(body["documents"]) > 1 else GRADE, **body}


def _lists(kind: str, body: Body) -> tuple[str, Body]:
    """A question about two lists, by its number."""
    if "question" in body:
        number, swapped = body.pop("question"), body.pop("swapped", False)
        letters = "ba" if swapped else "ab"
        body |= {"query": "", "documents": [f"{number}{letter}" for letter in letters]}
    return kind, body


def _lists_withdrawn(kind: str, body: Body) -> tuple[str, Body]:
    number = body.pop("answer")
    return Withdrawn.kind, {**_lists(kind, body)[1], "asks": "lists", "judgment": number}


def _study(kind: str, body: Body) -> tuple[str, Body]:
    """A study with users, which is a campaign that asks about lists."""
    given = body["study"]
    scale = asdict(Scale.parse(given.pop("scale")))
    return Created.kind, {"setup": {**given, "scale": scale, "model": "none", "ask": "lists"}}


EARLIER: dict[str, Callable[[str, Body], tuple[str, Body]]] = {
    "judged": _documents,
    "compared": _documents,
    "adjudicated": _documents,
    "comparison adjudicated": _documents,
    "leased": _task,
    "released": _task,
    "withdrawn": _task,
    "skipped": _task,
    "lists compared": _lists,
    "lists withdrawn": _lists_withdrawn,
    "study created": _study,
}


# Tables


SCHEMA = 3
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


def _digest() -> sa.Column[str]:
    return sa.Column("digest", sa.Text, nullable=False, server_default="")


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
    _digest(),
    sa.UniqueConstraint("campaign", "token"),
)
PART = sa.Table(
    "probeval_part",
    TABLES,
    _of_campaign(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    _digest(),
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

# The statements of every step, built once: to build one takes longer than to run it.
_campaign: sa.BindParameter[int] = sa.bindparam("campaign")

SCHEMA_VERSION = sa.select(VERSION.c.version)
HELD_CAMPAIGN = sa.select(CAMPAIGN.c.id).where(CAMPAIGN.c.id == _campaign).with_for_update()
EVENTS_FROM = (  # this number on, in order
    sa.select(EVENT)
    .where((EVENT.c.campaign == _campaign) & (EVENT.c.number >= sa.bindparam("number")))
    .order_by(EVENT.c.number)
)
LAST_EVENT = (
    sa.select(EVENT.c.number, EVENT.c.digest)
    .where(EVENT.c.campaign == _campaign)
    .order_by(EVENT.c.number.desc())
    .limit(1)
)
OTHER_SNAPSHOT = sa.select(SNAPSHOT).where(  # the latest, unless it has this number and time
    (SNAPSHOT.c.campaign == _campaign)
    & SNAPSHOT.c.body.is_not(None)
    & ((SNAPSHOT.c.number != sa.bindparam("number")) | (SNAPSHOT.c.time != sa.bindparam("time")))
)


def chained(before: str, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The digests of the rows of consecutive events.

    Parameters
    ----------
    before
        The digest of the event before them; empty for the first event of a campaign.
    rows
        The rows, in order: number, time, by, token, kind and body.
    """
    digests = []
    for row in rows:
        content = [before, *(row[name] for name in ("number", "time", "by", "token", "kind", "body"))]
        before = hashlib.sha256(json.dumps(content, separators=(",", ":"), default=repr).encode()).hexdigest()
        digests.append(before)
    return digests


def _add_digests(connection: sa.Connection) -> None:
    """From schema 1 to 2: digests of events and parts."""
    for table in (EVENT, PART):
        connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN digest TEXT NOT NULL DEFAULT ''"))
    for key in connection.execute(sa.select(CAMPAIGN.c.id)).scalars().all():
        mine = sa.select(EVENT).where(EVENT.c.campaign == key).order_by(EVENT.c.number)
        rows = [dict(row) for row in connection.execute(mine).mappings()]
        given = sa.update(EVENT).where(EVENT.c.campaign == key, EVENT.c.number == sa.bindparam("at"))
        digests = [{"at": row["number"], "to": digest} for row, digest in zip(rows, chained("", rows), strict=True)]
        if digests:
            connection.execute(given.values(digest=sa.bindparam("to")), digests)
    for part in connection.execute(sa.select(PART.c.campaign, PART.c.name)).all():
        mine_too = (PART.c.campaign == part.campaign) & (PART.c.name == part.name)
        content = connection.execute(sa.select(PART.c.content).where(mine_too)).scalar_one()
        if not isinstance(content, bytes):
            raise StoreError(f"the part {part.name!r} is damaged. Restore the store from a backup.")
        connection.execute(sa.update(PART).where(mine_too).values(digest=digest_of(content)))


def _keep_rows(connection: sa.Connection) -> None:
    """From schema 2 to 3: new events name the documents of their question and its kind. Old rows stay as they are."""


# From each version to the next.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _add_digests, 2: _keep_rows}


# Decisions in turn


class PendingDecision(Generic[A]):
    """A decision waiting for its turn to be written, and then its outcome.

    Parameters
    ----------
    decision
        The request; its events are computed again if the database rolls a transaction back.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(self, decision: Decision[A], clock: Callable[[], float]) -> None:
        self.decision, self.clock = decision, clock
        self.is_done = False
        self.error: BaseException | None = None
        self._outcome: Outcome[A] | None = None

    @property
    def events(self) -> Sequence[Event]:
        """The new events, numbered; none if the decision was refused."""
        return () if self._outcome is None else self._outcome.events

    @property
    def parts(self) -> Mapping[str, bytes]:
        """The parts of the store to add with the events."""
        return self.decision.parts if self.events else {}

    def take(self, state: State) -> State:
        """Decide on this state; the state after that."""
        self._outcome = self.error = None
        try:
            self._outcome = self.decision.take(state, self.clock())
        except ProbevalError as error:
            self.error = error
            return state
        return self._outcome.state

    def outcome(self) -> Outcome[A]:
        """The outcome, once the events are on disk; raises the error that prevented it."""
        if self.error is not None:
            raise self.error
        if self._outcome is None:
            raise AssertionError
        return self._outcome


# The store


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
        self._end: Callable[[], object] = lambda: None  # also called when Python ends, for a store that was not closed
        self._incomplete = self._marked = False  # see warnings() and _mark()
        self._ends: dict[int, tuple[int, str]] = {}  # the number and digest of the last event seen, by campaign
        if self._file is None:
            self.name, self._engine = open_postgres(self.url, read_only=read_only)
        else:
            self.name = str(self._file)
            self._incomplete = was_left_open(self._file)
            self._engine = open_sqlite(self._file, create=create, read_only=read_only)
        self._writer = self._engine.execution_options(writing=True)
        self._set_up(create=create)

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    def close(self) -> None:
        """Close all connections."""
        self._end()
        self._engine.dispose()
        self._identity, self._marked = None, False

    def campaigns(self) -> dict[str, int]:
        """The key of each campaign, by name."""
        with self._reading() as connection:
            rows = connection.execute(sa.select(CAMPAIGN.c.name, CAMPAIGN.c.id).order_by(CAMPAIGN.c.id)).all()
        for row in rows:
            if not isinstance(row.name, str):
                raise StoreError(
                    f"{self.name}: the name of campaign {row.id} is no text. Restore the store from a backup."
                )
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
        try:
            return kept.decode("ascii")
        except UnicodeDecodeError:
            raise StoreError(f"{self.name}: {DAMAGED}") from None

    def add_snapshot(self, campaign: int, row: Mapping[str, Any]) -> None:
        """Add a snapshot; older ones keep only their figures."""
        mine = SNAPSHOT.c.campaign == campaign
        with self._writing() as connection:
            self._hold(connection, campaign)
            newest = connection.execute(sa.select(sa.func.max(SNAPSHOT.c.number)).where(mine)).scalar()
            if isinstance(newest, int) and newest > row["number"]:
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
        if not all(isinstance(value, (int, float)) and math.isfinite(value) for row in rows for value in row.values()):
            raise StoreError(f"{self.name}: {DAMAGED}")
        return rows

    def digest(self, campaign: int, number: int) -> str:
        """The digest of an event, which depends on all events before it."""
        mine = (EVENT.c.campaign == campaign) & (EVENT.c.number == number)
        with self._reading() as connection:
            found = connection.execute(sa.select(EVENT.c.digest).where(mine)).scalar()
        if not isinstance(found, str):
            raise StoreError(f"{self.name}: {DAMAGED}")
        return found

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

    def warnings(self) -> list[str]:
        """What may be wrong with the store, though nothing in it shows it."""
        if not self._incomplete:
            return []
        return [
            f"{self.name}: a clean end is missing. It was in use when this file was written, and no {self.name}-wal is "
            "beside it: if this is a plain copy of the file, the latest events are in the original only. Make a backup "
            "of that by 'probeval campaign backup'"
        ]

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
                if self._file is not None and not self._marked:
                    mark_as_open(connection)
                yield connection
            if self._file is not None and not self._marked:
                self._mark()
        finally:
            self._lock.release()

    def _mark(self) -> None:
        """Bring the mark of an open store, with the first events, from its log into the file, unless others read it."""
        with suppress(sqlite3.Error), closing(self._engine.raw_connection()) as connection:
            busy, frames, copied = connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._marked = not busy and frames == copied

    def _check_file(self) -> None:
        if self._file is None:
            return
        if self._identity is None:  # just opened, or used again after it was closed
            self._identity = FileIdentity(self._file, self._engine.raw_connection())
            own = None if self.read_only else self._file
            self._end = weakref.finalize(self, _give_back, self._identity, self._engine, own)
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
        except (StatementError, MultipleResultsFound, NoResultFound):  # a value of another type, a row twice or missing
            raise StoreError(f"{self.name}: {DAMAGED}") from None

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
        except StoreError as error:
            raise StoreError(
                f"{self.name}: {error}. It is damaged, written by a newer probeval, or of a kind of question of one's "
                "own: restore a backup, update probeval, or --import it."
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


def _give_back(identity: FileIdentity, engine: sa.Engine, own: Path | None) -> None:
    """Close a file, and write into it that all of its events are in it, if it is the one that was opened to write."""
    try:
        identity.check()
    except StoreError:
        own = None
    identity.close()
    engine.dispose()
    if own is not None:
        mark_as_closed(own)


class _TryAgainError(Exception):
    """The database rolled a transaction back."""


# The open log of one campaign


class Log:
    """The log of a campaign in a store; threads may share it.

    Parameters
    ----------
    store, key
        The store, and the key of the campaign in it.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(self, store: Store, key: int, clock: Callable[[], float]) -> None:
        self.store, self.key, self.clock = store, key, clock
        self._turn = threading.Condition()
        self._waiting: list[PendingDecision[Any]] = []
        self._writing = False
        self._state = State()
        self._snapshot: ModelSnapshot | None = None

    @classmethod
    def create(cls, store: Store, creation: Creation, clock: Callable[[], float]) -> Log:
        """The log of a new campaign; on failure the store is closed."""
        with _closed_on_error(store):
            return cls(store, store.add(creation), clock)

    @classmethod
    def open(cls, store: Store, name: str | None, clock: Callable[[], float]) -> Log:
        """The log of the campaign with this name, or of the only one; on failure the store is closed."""
        with _closed_on_error(store):
            return cls(store, store.find(name), clock)

    @property
    def state(self) -> State:
        """The current state, with the events that other processes added. Never waits for a writer."""
        known, last = self._state, self._snapshot
        new, row = self.store.news(self.key, known.number, None if last is None else (last.number, last.time))
        if row is not None:
            self._snapshot = ModelSnapshot.read(row)
        return self._keep(fold(known, new)) if new else known

    @property
    def known(self) -> State:
        """The state as it was read last, without a look at the store; the current one before that."""
        return self._state if self._state.number else self.state

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The results of the model that were read with the state; None before the first.

        Results that cannot be read count as none: they are computed again.
        """
        return self._snapshot

    def add_snapshot(self, snapshot: ModelSnapshot) -> None:
        """Keep new results of the model."""
        self.store.add_snapshot(self.key, snapshot.to_row())
        self._snapshot = snapshot

    def advance(self, decision: Decision[A]) -> Outcome[A]:
        """Take a decision on the current state and add its events, all or none.

        Decisions of threads that arrive during a write are written together after it, in one transaction. One
        whose turn does not come, because another process holds the store, is refused after a few seconds.
        """
        pending = PendingDecision(decision, self.clock)
        with self._turn:
            self._waiting.append(pending)
            until = time.monotonic() + PATIENCE
            while self._writing and not pending.is_done:
                is_queued, left = pending in self._waiting, until - time.monotonic()
                if is_queued and left <= 0:
                    self._waiting.remove(pending)
                    raise StoreError(f"{self.store.name}: {BUSY}")
                self._turn.wait(left if is_queued else None)
            batch = [] if pending.is_done else self._waiting
            if batch:
                self._waiting, self._writing = [], True
        if batch:
            self._write(batch)
        return pending.outcome()

    def _write(self, batch: Sequence[PendingDecision[Any]]) -> None:
        try:
            self._keep(self.store.advance(self.key, self._state, batch))
        except BaseException as error:
            for pending in batch:
                pending.error = error
        finally:
            with self._turn:
                for pending in batch:
                    pending.is_done = True
                self._writing = False
                self._turn.notify_all()

    def _keep(self, state: State) -> State:
        with self._turn:
            self._state = max(self._state, state, key=lambda each: each.number)
            return self._state


@contextmanager
def _closed_on_error(store: Store) -> Iterator[None]:
    try:
        yield
    except BaseException:
        store.close()
        raise
