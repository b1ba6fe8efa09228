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
    QueryGuidelinesChanged,
    Released,
    Skipped,
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
from probeval.campaign.query_progress import QueryProgress
from probeval.campaign.setup import Setup
from probeval.campaign.shares import AssessorAgreement, Share
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.campaign.status import Status
from probeval.campaign.store import Store

__all__ = [
    "KINDS",
    "Adjudicated",
    "AssessorAgreement",
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
    "QueryGuidelinesChanged",
    "QueryProgress",
    "Refresher",
    "Released",
    "Setup",
    "Share",
    "Skipped",
    "State",
    "Status",
    "Store",
    "Task",
    "Withdrawn",
    "export_formats",
    "fold",
    "import_formats",
    "read_incoming",
]
