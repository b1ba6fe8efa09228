"""Judging campaigns: a durable log of events, and the state, status and files derived from it."""

from probeval.campaign.background import Refresher
from probeval.campaign.campaign import Campaign
from probeval.campaign.events import (
    KINDS,
    Adjudicated,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GuidelineChanged,
    Imported,
    Judged,
    Labelled,
    Leased,
    QueriesChanged,
    Released,
    Skipped,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.exchange import (
    ExportFormat,
    Incoming,
    export_formats,
    import_formats,
    read_incoming,
)
from probeval.campaign.leases import Task
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.campaign.status import Share, Status
from probeval.campaign.store import Store
from probeval.campaign.topics import Topic, TopicList

__all__ = [
    "KINDS",
    "Adjudicated",
    "Campaign",
    "Changed",
    "Commented",
    "Created",
    "Event",
    "ExportFormat",
    "Flagged",
    "GuidelineChanged",
    "Imported",
    "Incoming",
    "Judged",
    "Labelled",
    "Leased",
    "ModelSnapshot",
    "QueriesChanged",
    "Refresher",
    "Released",
    "Setup",
    "Share",
    "Skipped",
    "State",
    "Status",
    "Store",
    "Task",
    "Topic",
    "TopicList",
    "TopicsAssigned",
    "Withdrawn",
    "export_formats",
    "fold",
    "import_formats",
    "read_incoming",
]
