"""Decisions of a campaign's owner: settle grades, change texts and settings, import files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from probeval.campaign.archive import pack_labels
from probeval.campaign.decisions import Action, Decision, PairAction
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Event,
    GuidelineChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
)
from probeval.campaign.exchange import Incoming, incoming_events
from probeval.campaign.setup import Setup
from probeval.campaign.state import State
from probeval.errors import CampaignError

__all__ = ["Adjudicate", "ChangeGuideline", "ChangeQueries", "ChangeQueryGuidelines", "ChangeSettings", "Import"]


@dataclass(frozen=True, kw_only=True)
class Adjudicate(PairAction[Adjudicated]):
    """Settle the grade of a pair."""

    kind = Adjudicated
    same_request = ("pair", "grade", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    grade: float
    reason: str = ""

    def event(self, state: State, now: float) -> Adjudicated:
        """The settled grade."""
        return Adjudicated(**self._head(now), grade=self.grade, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class ChangeGuideline(Action[GuidelineChanged]):
    """Give assessors a new guideline."""

    kind = GuidelineChanged
    same_request = ("text",)
    text_fields = MappingProxyType({"text": "A guideline"})
    text: str

    def event(self, state: State, now: float) -> GuidelineChanged:
        """The next version of the guideline."""
        return GuidelineChanged(**self._head(now), version=state.guideline_version + 1, text=self.text)


@dataclass(frozen=True, kw_only=True)
class ChangeQueryGuidelines(Action[QueryGuidelinesChanged]):
    """Give assessors guidelines for single queries, by id; an empty text removes one."""

    kind = QueryGuidelinesChanged
    same_request = ("texts",)
    texts: Mapping[str, str]

    def event(self, state: State, now: float) -> QueryGuidelinesChanged:
        """The next version of the guidelines."""
        return QueryGuidelinesChanged(**self._head(now), version=state.guideline_version + 1, texts=self.texts)


@dataclass(frozen=True, kw_only=True)
class ChangeQueries(Action[QueriesChanged]):
    """Add or replace query texts, by id."""

    kind = QueriesChanged
    same_request = ("texts",)
    texts: Mapping[str, str]

    def event(self, state: State, now: float) -> QueriesChanged:
        """The new texts."""
        return QueriesChanged(**self._head(now), texts=self.texts)


@dataclass(frozen=True, kw_only=True)
class ChangeSettings(Action[Changed]):
    """Replace the settings."""

    kind = Changed
    same_request = ("setup",)
    setup: Setup

    def event(self, state: State, now: float) -> Changed:
        """The new settings."""
        return Changed(**self._head(now), setup=self.setup)


@dataclass(frozen=True, kw_only=True)
class Import(Decision[Event]):
    """Add the judgments and labels of a file; a file with the same content is refused.

    Parameters
    ----------
    by
        The person who imports it.
    incoming
        The content of the file.
    path, source
        The file as error messages name it, and as the log does.
    digest
        Of the file's bytes.
    """

    by: str
    incoming: Incoming
    path: str
    source: str
    digest: str

    def events(self, state: State, now: float) -> Sequence[Event]:
        """One event for the file, with the token, and one for each judgment."""
        if self._token in state.tokens:
            raise CampaignError(f"{self.path}: already imported, as event {state.tokens[self._token].number}.")
        first, *others = incoming_events(self.incoming, self.by, now, source=self.source, part=self._part)
        return [replace(first, token=self._token), *others]

    def event_asked_for(self, state: State, events: Sequence[Event]) -> Event:
        """The first event of the import."""
        return events[0]

    @property
    def parts(self) -> Mapping[str, bytes]:
        """The table of labels, if the file has labels."""
        return {} if self.incoming.labels is None else {self._part: pack_labels(self.incoming.labels)}

    @property
    def _token(self) -> str:
        return f"import {self.digest}"

    @property
    def _part(self) -> str:
        return f"labels of {self._token}"
