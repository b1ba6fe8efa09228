"""The statements of every step, built once: to build one takes longer than to run it."""

from __future__ import annotations

import sqlalchemy as sa

from probeval.campaign.tables import CAMPAIGN, EVENT, SNAPSHOT, VERSION

__all__ = ["EVENTS_FROM", "HELD_CAMPAIGN", "LAST_DIGEST", "OTHER_SNAPSHOT", "SCHEMA_VERSION"]

_campaign: sa.BindParameter[int] = sa.bindparam("campaign")

SCHEMA_VERSION = sa.select(VERSION.c.version)
HELD_CAMPAIGN = sa.select(CAMPAIGN.c.id).where(CAMPAIGN.c.id == _campaign).with_for_update()
EVENTS_FROM = (  # this number on, in order
    sa.select(EVENT)
    .where((EVENT.c.campaign == _campaign) & (EVENT.c.number >= sa.bindparam("number")))
    .order_by(EVENT.c.number)
)
LAST_DIGEST = sa.select(EVENT.c.digest).where(EVENT.c.campaign == _campaign).order_by(EVENT.c.number.desc()).limit(1)
OTHER_SNAPSHOT = sa.select(SNAPSHOT).where(  # the latest, unless it has this number and time
    (SNAPSHOT.c.campaign == _campaign)
    & SNAPSHOT.c.body.is_not(None)
    & ((SNAPSHOT.c.number != sa.bindparam("number")) | (SNAPSHOT.c.time != sa.bindparam("time")))
)
