"""The tables of a store, and the migrations from earlier versions of them.

Every event has a digest of itself and of the digest before it, so that changes, gaps and replacements of a
log can be found. [hash chain]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from probeval.errors import StoreError

try:  # the first module of campaigns that needs it
    import sqlalchemy as sa
except ImportError:
    raise StoreError("Campaigns need SQLAlchemy: pip install 'probeval[web]'.") from None

__all__ = [
    "CAMPAIGN",
    "EVENT",
    "EVENTS_FROM",
    "HELD_CAMPAIGN",
    "LAST_EVENT",
    "MIGRATIONS",
    "OTHER_SNAPSHOT",
    "PART",
    "SCHEMA",
    "SCHEMA_VERSION",
    "SNAPSHOT",
    "TABLES",
    "VERSION",
    "chained",
    "digest_of",
]

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


def digest_of(content: bytes) -> str:
    """The digest of a part."""
    return hashlib.sha256(content).hexdigest()


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
        connection.execute(sa.update(PART).where(mine_too).values(digest=digest_of(content)))


def _keep_rows(connection: sa.Connection) -> None:
    """From schema 2 to 3: new events name the documents of their question and its kind. Old rows stay as they are."""


# From each version to the next.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _add_digests, 2: _keep_rows}
