"""Decisions of a campaign's owner: change gold, texts, settings and the phase, add files and late runs."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

from probeval.campaign.archive import digest_of, pack_labels, pack_runs
from probeval.campaign.creation import check_ids, checked_settings
from probeval.campaign.decisions import NOT_CLOSED, Action, Decision
from probeval.campaign.events import (
    Changed,
    Event,
    GoldChanged,
    GuidelineChanged,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Restored,
    RunsAdded,
    SetAside,
    TopicsAssigned,
)
from probeval.campaign.exchange import Incoming, incoming_events
from probeval.campaign.kinds.grade import GOLD, Adjudicated
from probeval.campaign.questions import GRADE, Pair, kind_of
from probeval.campaign.state import State
from probeval.data.collection import Collection
from probeval.data.runs import Runs
from probeval.errors import CampaignError, did_you_mean
from probeval.scores.evaluate import as_metric

__all__ = [
    "AddRuns",
    "AssignTopics",
    "ChangeGold",
    "ChangeGuideline",
    "ChangePhase",
    "ChangeQueries",
    "ChangeQueryGuidelines",
    "ChangeSettings",
    "Import",
    "PutAside",
    "Restore",
]

FROM = {Phase.paused: {Phase.open}, Phase.closed: {Phase.open, Phase.paused}, Phase.open: {Phase.paused, Phase.closed}}


@dataclass(frozen=True, kw_only=True)
class ChangeGold(Action[GoldChanged]):
    """Replace the gold questions of a kind. The known grade of a pair that some run retrieves counts: it is settled.

    Parameters
    ----------
    asks
        The kind.
    values
        The fields of its event, as the kind has checked them.
    retrieved
        The pairs that some run retrieves.
    """

    kind = GoldChanged
    phases = NOT_CLOSED
    asks: str
    values: Mapping[str, Any]
    retrieved: Names[Pair] = field(compare=False, repr=False)

    def is_same(self, event: Event) -> bool:
        """Whether an event is that of the same request: with the same known answers."""
        return super().is_same(event) and all(
            getattr(event, name, None) == value for name, value in self.values.items()
        )

    def event(self, state: State, now: float) -> GoldChanged:
        """The new gold questions."""
        gold = kind_of(self.asks).gold
        if gold is None:
            raise CampaignError(f"There are no known answers to questions for a {self.asks}.")
        return gold(**self._head(now), **self.values)

    def following(self, state: State, event: GoldChanged, now: float, *, is_new: bool) -> Sequence[Event]:
        """The grades of the pairs that some run retrieves, settled; nothing if the request was repeated."""
        return settle_gold(state, self.retrieved, self.by, now) if is_new and kind_of(self.asks).gold_counts else []


def settle_gold(state: State, retrieved: Names[Pair], by: str, now: float) -> list[Adjudicated]:
    """The known grades of these pairs as settled ones, where they are not settled so already."""
    return [
        Adjudicated(by=by, time=now, query=pair[0], documents=question.documents, grade=grade, reason=GOLD)
        for question, grade in sorted(state.known(GRADE).items())
        for pair in question.pairs
        if pair in retrieved and (pair not in state.adjudicated or state.adjudicated[pair].grade != grade)
    ]


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
class AssignTopics(Action[TopicsAssigned]):
    """Give topics to assessors, by query; an empty name leaves a topic to all."""

    kind = TopicsAssigned
    same_request = ("owners",)
    owners: Mapping[str, str]

    def event(self, state: State, now: float) -> TopicsAssigned:
        """The new owners."""
        return TopicsAssigned(**self._head(now), owners=self.owners)


@dataclass(frozen=True, kw_only=True)
class ChangeSettings(Action[Changed]):
    """Change some settings.

    Parameters
    ----------
    settings
        The new values, by name; the others stay as they are at that moment.
    collection
        The runs, which a goal may name.
    """

    kind = Changed
    phases = NOT_CLOSED
    settings: Mapping[str, Any]
    collection: Collection = field(compare=False)

    def event(self, state: State, now: float) -> Changed:
        """The new settings; a measure that looks deeper than the pool needs a depth too."""
        before = state.settings
        setup = checked_settings(before.changed(**self.settings), self.collection)
        if setup == before:
            raise CampaignError("These are the campaign's settings already: nothing changes.")
        cutoff = as_metric(setup.metric).cutoff or 0
        if setup.metric != before.metric and "depth" not in self.settings and cutoff > setup.depth:
            raise CampaignError(
                f"{setup.metric} looks at {cutoff} ranks, and the pool has {setup.depth}. Change the depth as well."
            )
        return Changed(**self._head(now), setup=setup)


@dataclass(frozen=True, kw_only=True)
class PutAside(Action[SetAside]):
    """Set all answers of a person aside, also those that they give later: their questions open again.

    Parameters
    ----------
    assessor
        The person.
    reason
        Why.
    """

    kind = SetAside
    phases = NOT_CLOSED
    same_request = ("assessor", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    assessor: str
    reason: str = ""

    def event(self, state: State, now: float) -> SetAside:
        """The event; a person without an answer is refused, and one whose answers are set aside already."""
        known = {answer.by for given in state.answers.values() for answer in given}
        if self.assessor not in known:
            raise CampaignError(f"{self.assessor!r} has answered nothing.{did_you_mean(self.assessor, known)}")
        if state.is_set_aside(self.assessor):
            raise CampaignError(f"The answers of {self.assessor!r} are set aside already.")
        return SetAside(**self._head(now), assessor=self.assessor, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class Restore(Action[Restored]):
    """Let the answers of a person, which were set aside, count again.

    Parameters
    ----------
    assessor
        The person.
    reason
        Why.
    """

    kind = Restored
    phases = NOT_CLOSED
    same_request = ("assessor", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    assessor: str
    reason: str = ""

    def event(self, state: State, now: float) -> Restored:
        """The event; a person whose answers are not set aside is refused."""
        if not state.is_set_aside(self.assessor):
            raise CampaignError(
                f"The answers of {self.assessor!r} are not set aside.{did_you_mean(self.assessor, state.set_aside)}"
            )
        return Restored(**self._head(now), assessor=self.assessor, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class ChangePhase(Action[PhaseChanged]):
    """Pause, resume, close or reopen the campaign."""

    kind = PhaseChanged
    same_request = ("phase", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    phase: Phase
    reason: str = ""

    def event(self, state: State, now: float) -> PhaseChanged:
        """The new phase; the one that the campaign is in already is refused."""
        if state.phase not in FROM[self.phase]:
            raise CampaignError(f"The campaign is {state.phase}: it cannot become {self.phase} from there.")
        return PhaseChanged(**self._head(now), phase=self.phase, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class AddRuns(Decision[RunsAdded]):
    """Add late runs; runs of a system that the campaign has are refused.

    Parameters
    ----------
    by
        The person who adds them.
    before
        The runs of the campaign so far.
    runs
        The late runs.
    source
        Their files, as the log names them.
    pairs
        The number of pairs that the pool gains.
    """

    phases = NOT_CLOSED
    by: str
    before: Runs = field(compare=False)
    runs: Runs = field(compare=False)
    source: str
    pairs: int

    def __post_init__(self) -> None:
        check_ids(self.runs)
        if not set(self.before.queries) & set(self.runs.queries):
            raise CampaignError(
                f"The late runs have none of the campaign's queries, such as {self.before.queries[0]!r}; "
                f"they have {self.runs.queries[0]!r}."
            )

    def events(self, state: State, now: float) -> Sequence[Event]:
        """One event for all of the runs; the grades of gold pairs that no run had retrieved are settled now."""
        self.check_phase(state)
        known = {*self.before.systems, *(system for added in state.runs for system in added.systems)}
        again = next((system for system in self.runs.systems if system in known), None)
        if again is not None:
            raise CampaignError(f"The campaign has a system {again!r} already. Rename the run's file if it is another.")
        systems, pairs = self.runs.systems, self.pairs
        added = RunsAdded(by=self.by, time=now, source=self.source, part=self._part, systems=systems, pairs=pairs)
        new = [question.pairs[0] for question in state.known(GRADE) if question not in state.settled]
        found = self.runs.pool.locate([query for query, _ in new], [doc for _, doc in new]) >= 0
        retrieved = [pair for pair, here in zip(new, found, strict=True) if here]
        return [added, *settle_gold(state, retrieved, self.by, now)]

    def event_asked_for(self, state: State, events: Sequence[Event]) -> RunsAdded:
        """The event of the runs."""
        return cast("RunsAdded", events[0])

    @property
    def parts(self) -> Mapping[str, bytes]:
        """The runs."""
        return {self._part: self._packed}

    @cached_property
    def _packed(self) -> bytes:
        return pack_runs(self.runs)

    @property
    def _part(self) -> str:
        return f"runs {digest_of(self._packed)}"


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

    phases = NOT_CLOSED
    by: str
    incoming: Incoming
    path: str
    source: str
    digest: str

    def events(self, state: State, now: float) -> Sequence[Event]:
        """One event for the file, with the token, and one for each judgment."""
        self.check_phase(state)
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
