"""Judging campaigns: a durable log of events, and the state, status and files derived from it."""

from probeval.campaign.access import Access
from probeval.campaign.assessors import AssessorAgreement, Comparer, Share
from probeval.campaign.background import Refresher
from probeval.campaign.campaign import Campaign
from probeval.campaign.checking import CampaignCheck, StoreCheck, check_store
from probeval.campaign.codec import KINDS
from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.copying import copy_store
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Judged,
    Labelled,
    Leased,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Revoked,
    Role,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
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
from probeval.campaign.folding import fold
from probeval.campaign.gold import GoldList, GoldOrder, GoldPair
from probeval.campaign.history import HistoryEntry, history
from probeval.campaign.leases import Task
from probeval.campaign.people import People
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State
from probeval.campaign.status import QueryProgress, Status
from probeval.campaign.store import Store
from probeval.campaign.study import ListTask, Study
from probeval.campaign.study_events import ListsCompared, ListsWithdrawn, StudyCreated, StudySetup
from probeval.campaign.topics import Topic, TopicList

__all__ = [
    "KINDS",
    "Access",
    "Adjudicated",
    "AssessorAgreement",
    "Campaign",
    "CampaignCheck",
    "Changed",
    "Commented",
    "Compared",
    "Comparer",
    "ComparisonAdjudicated",
    "Created",
    "Event",
    "ExportFormat",
    "Flagged",
    "GoldChanged",
    "GoldList",
    "GoldOrder",
    "GoldOrdersChanged",
    "GoldPair",
    "GuidelineChanged",
    "HistoryEntry",
    "Imported",
    "Incoming",
    "Invited",
    "Judged",
    "Labelled",
    "Leased",
    "ListTask",
    "ListsCompared",
    "ListsWithdrawn",
    "ModelSnapshot",
    "People",
    "Phase",
    "PhaseChanged",
    "QueriesChanged",
    "QueryGuidelinesChanged",
    "QueryProgress",
    "Refresher",
    "Released",
    "Revoked",
    "Role",
    "RunsAdded",
    "Setup",
    "Share",
    "SignedIn",
    "SignedOut",
    "Skipped",
    "State",
    "Status",
    "Store",
    "StoreCheck",
    "Study",
    "StudyCreated",
    "StudySetup",
    "Task",
    "TaskPurpose",
    "Topic",
    "TopicList",
    "TopicsAssigned",
    "Withdrawn",
    "check_store",
    "copy_store",
    "export_formats",
    "fold",
    "history",
    "import_formats",
    "read_incoming",
]
