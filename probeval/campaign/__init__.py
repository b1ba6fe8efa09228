"""Judging campaigns: a durable log of events, and the state, status and files derived from it."""

from probeval.campaign.access import Access
from probeval.campaign.assessors import AssessorAgreement, CheckedWork, Comparer, Respondent, Share
from probeval.campaign.background import Refresher
from probeval.campaign.campaign import Campaign
from probeval.campaign.checking import CampaignCheck, StoreCheck, check_store
from probeval.campaign.copying import copy_store
from probeval.campaign.events import (
    Answered,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Labelled,
    Leased,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Restored,
    Revoked,
    Role,
    RunsAdded,
    SetAside,
    Settled,
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
from probeval.campaign.gold import GoldList, GoldOrder, GoldPair
from probeval.campaign.history import HistoryEntry, history
from probeval.campaign.kinds import (
    Adjudicated,
    Compared,
    ComparisonAdjudicated,
    GoldGradesChanged,
    GoldOrdersChanged,
    Judged,
    ListsCompared,
)
from probeval.campaign.leases import Task
from probeval.campaign.log import Store
from probeval.campaign.people import People
from probeval.campaign.questions import KINDS, Kind, Question
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.campaign.statement import LoggedChange, Registration, Statement, UndecidedPair
from probeval.campaign.status import QueryProgress, Status
from probeval.campaign.topics import Topic, TopicList
from probeval.campaign.verdicts import AssessorVerdict

__all__ = [
    "KINDS",
    "Access",
    "Adjudicated",
    "Answered",
    "AssessorAgreement",
    "AssessorVerdict",
    "Campaign",
    "CampaignCheck",
    "Changed",
    "CheckedWork",
    "Commented",
    "Compared",
    "Comparer",
    "ComparisonAdjudicated",
    "Created",
    "Event",
    "ExportFormat",
    "Flagged",
    "GoldChanged",
    "GoldGradesChanged",
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
    "Kind",
    "Labelled",
    "Leased",
    "ListsCompared",
    "LoggedChange",
    "ModelSnapshot",
    "People",
    "Phase",
    "PhaseChanged",
    "QueriesChanged",
    "QueryGuidelinesChanged",
    "QueryProgress",
    "Question",
    "Refresher",
    "Registration",
    "Released",
    "Respondent",
    "Restored",
    "Revoked",
    "Role",
    "RunsAdded",
    "SetAside",
    "Settled",
    "Setup",
    "Share",
    "SignedIn",
    "SignedOut",
    "Skipped",
    "State",
    "Statement",
    "Status",
    "Store",
    "StoreCheck",
    "Task",
    "TaskPurpose",
    "Topic",
    "TopicList",
    "TopicsAssigned",
    "UndecidedPair",
    "Withdrawn",
    "check_store",
    "copy_store",
    "export_formats",
    "fold",
    "history",
    "import_formats",
    "read_incoming",
]
