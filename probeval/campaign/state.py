"""The state of a campaign: a pure fold over the events of its log.

.. math:: S_n = f(S_{n-1}, e_n)

Nothing here reads a clock or a store: the time and the events are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from probeval.campaign.access import Access
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
    Pair,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Revoked,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.setup import Setup
from probeval.campaign.study_events import ComparisonWithdrawn, ListsCompared, StudyCreated, StudySetup
from probeval.data.judgments import Judgments
from probeval.display import Brief
from probeval.errors import CampaignError

__all__ = ["State", "concerns_models", "fold"]

# Events that change a model's input.
FOR_MODELS = (Created, Changed, Judged, Withdrawn, Adjudicated, Labelled, RunsAdded)


def concerns_models(event: Event) -> bool:
    """Whether an event changes a model's input; answers to gold and repeated pairs do not."""
    is_answer = isinstance(event, (Judged, Withdrawn)) and event.purpose is not TaskPurpose.judgment
    return isinstance(event, FOR_MODELS) and not is_answer


@dataclass(frozen=True, eq=False, repr=False)
class State(Brief):
    """A campaign at one moment.

    Parameters
    ----------
    number
        The number of the last event.
    changed
        The number of the last event that changed a model's input: grades, labels or settings.
    setup
        The current settings; None before the first event.
    judged
        The judgments of each pair that were not withdrawn, in order. An assessor's latest counts.
    adjudicated
        The settled grades, by pair.
    gold
        The pairs with known grades, and the grades.
    controls
        The answers to gold and repeated pairs that were not withdrawn, by pair, in order. They are not judgments.
    made
        The number of pairs that each assessor judged here, gold and repeated ones included.
    waiting
        The pairs that have a judgment and need another, as keys.
    leases
        Leases by pair and assessor. Some may have run out: compare ``until`` with the time.
    picks
        The latest lease, before any judgment, of each pair that the model proposed: with the prediction of the pair.
    skipped, flags, comments
        These events, by pair.
    owners
        The owners of topics, by query; topics without an owner are missing.
    topics
        The latest lease of each assessor to a pair without a judgment: its query is their topic.
    finished
        The last pair that each assessor judged or skipped here.
    guideline
        The current guideline, or None.
    query_guidelines
        The latest change of the guideline of each query that has had one.
    texts
        Query texts by id, where known.
    labels, imports
        The imports of labels and of judgments, in order.
    runs
        The additions of late runs, in order.
    pooled
        The number of the last event that changed the runs, the depth or the measure: predictions made before it are of
        another pool or measure.
    phase_change
        The latest pause, closing or the like; None if there was none.
    study, compared
        The settings of a study with users, which is no campaign; and its answers, by user and question.
    access
        The people who may sign in, and their sessions.
    tokens
        The events that have a token, by token.
    """

    number: int = 0
    changed: int = 0
    setup: Setup | None = None
    judged: Mapping[Pair, tuple[Judged, ...]] = field(default_factory=dict)
    adjudicated: Mapping[Pair, Adjudicated] = field(default_factory=dict)
    gold: Mapping[Pair, float] = field(default_factory=dict)
    controls: Mapping[Pair, tuple[Judged, ...]] = field(default_factory=dict)
    made: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[Pair, None] = field(default_factory=dict)
    leases: Mapping[Pair, Mapping[str, Leased]] = field(default_factory=dict)
    picks: Mapping[Pair, Leased] = field(default_factory=dict)
    skipped: Mapping[Pair, tuple[Skipped, ...]] = field(default_factory=dict)
    flags: Mapping[Pair, tuple[Flagged, ...]] = field(default_factory=dict)
    comments: Mapping[Pair, tuple[Commented, ...]] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, Leased] = field(default_factory=dict)
    finished: Mapping[str, Pair] = field(default_factory=dict)
    guideline: GuidelineChanged | None = None
    query_guidelines: Mapping[str, QueryGuidelinesChanged] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[Labelled, ...] = ()
    imports: tuple[Imported, ...] = ()
    runs: tuple[RunsAdded, ...] = ()
    pooled: int = 0
    phase_change: PhaseChanged | None = None
    study: StudySetup | None = None
    compared: Mapping[tuple[str, int], ListsCompared] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    tokens: Mapping[str, Event] = field(default_factory=dict)

    @property
    def settings(self) -> Setup:
        """The current settings."""
        if self.study is not None:
            raise CampaignError(f"{self.study.name!r} is a study with users. Use probeval users.")
        if self.setup is None:
            raise CampaignError("The log does not begin with the creation of a campaign.")
        return self.setup

    @property
    def phase(self) -> Phase:
        """Whether the campaign is open, paused or closed."""
        return Phase.open if self.phase_change is None else self.phase_change.phase

    @property
    def guideline_version(self) -> int:
        """The version of the guidelines, of all queries and of single ones; 0 if there are none."""
        general = 0 if self.guideline is None else self.guideline.version
        return max(general, *(each.version for each in self.query_guidelines.values()), 0)

    def query_guideline(self, query: str) -> str:
        """The guideline for this query alone; empty if there is none."""
        change = self.query_guidelines.get(query)
        return "" if change is None else change.texts[query].strip()

    def latest(self, pair: Pair) -> dict[str, Judged]:
        """Each assessor's latest judgment of a pair, by assessor."""
        return {judgment.by: judgment for judgment in self.judged.get(pair, ())}

    def answers(self, pair: Pair) -> dict[str, Judged]:
        """Each assessor's latest answer to a gold or repeated pair, by assessor."""
        return {answer.by: answer for answer in self.controls.get(pair, ())}

    def holders(self, pair: Pair, now: float) -> set[str]:
        """The assessors who hold the pair at this time."""
        return {who for who, lease in self.leases.get(pair, {}).items() if lease.until > now}

    def held_by(self, assessor: str, now: float) -> list[Leased]:
        """The leases of an assessor at this time, oldest first."""
        mine = (held[assessor] for held in self.leases.values() if assessor in held)
        return sorted((lease for lease in mine if lease.until > now), key=lambda lease: lease.number)

    def is_open(self, pair: Pair, assessor: str, now: float) -> bool:
        """Whether the pair may be leased to this assessor.

        It may if they have not judged or skipped it and do not hold it, it is not adjudicated, and it needs more
        assessors than have judged it or hold it.
        """
        if pair in self.adjudicated or (pair in self.judged and pair not in self.waiting):
            return False  # adjudicated, or judged by as many assessors as it needs
        if any(skip.by == assessor for skip in self.skipped.get(pair, ())):
            return False
        busy = self.holders(pair, now).union(judgment.by for judgment in self.judged.get(pair, ()))
        return assessor not in busy and (not busy or len(busy) < self.settings.wanted(*pair))

    @cached_property
    def disagreements(self) -> list[Pair]:
        """Pairs whose assessors disagree, not yet adjudicated: widest spread first, then by id."""
        spread = {}
        for pair in self.judged.keys() - self.adjudicated.keys():
            grades = [judgment.grade for judgment in self.latest(pair).values()]
            if max(grades) > min(grades):
                spread[pair] = max(grades) - min(grades)
        return sorted(spread, key=lambda pair: (-spread[pair], pair))

    @cached_property
    def judgments(self) -> Judgments:
        """One grade per pair: the adjudicated one, otherwise the latest grades combined by the rule.

        By the rule ``unanimous`` a pair whose assessors differ has their median here, for exports; for the model it is
        uncertain until it is adjudicated (:attr:`evidence`).
        """
        rule = "median" if self.settings.rule == "unanimous" else self.settings.rule
        return _one_per_pair(self._given(), rule, list(self.adjudicated.values()))

    @cached_property
    def evidence(self) -> Judgments:
        """The judgments for the model: one grade per pair; by the rule ``unanimous`` all grades that differ."""
        if self.settings.rule != "unanimous" or not self.disagreements:
            return self.judgments
        queries, docs = zip(*self.disagreements, strict=True)
        one, given = self.judgments, self._given()
        settled = one.take(~np.isin(one.pair, one.pool.locate(queries, docs))).to_frame()
        differing = given.take(np.isin(given.pair, given.pool.locate(queries, docs))).to_frame()
        rows = pd.concat([settled, differing.drop_duplicates(["query", "doc", "assessor"], keep="last")])
        return Judgments.rows(
            rows["query"].tolist(), rows["doc"].tolist(), rows["grade"].to_numpy(), assessors=rows["assessor"].tolist()
        )

    def _given(self) -> Judgments:
        """All grades of pairs that are not adjudicated, in chronological order."""
        given = [j for pair, events in self.judged.items() if pair not in self.adjudicated for j in events]
        given.sort(key=lambda judgment: judgment.number)
        return _as_judgments(given)

    def grade_matrix(self) -> tuple[list[str], list[Pair], np.ndarray[Any, np.dtype[np.float64]]]:
        """Assessors, pairs, and the latest grades, shape (assessor, pair), NaN for none."""
        pairs = sorted(self.judged)
        who = sorted({j.by for events in self.judged.values() for j in events})
        row = {name: i for i, name in enumerate(who)}
        grades = np.full((len(who), len(pairs)), np.nan)
        for at, pair in enumerate(pairs):
            for judgment in self.judged[pair]:
                grades[row[judgment.by], at] = max(judgment.grade, self.settings.scale.grades[0])
        return who, pairs, grades


def _as_judgments(events: list[Judged] | list[Adjudicated]) -> Judgments:
    return Judgments.rows(
        [e.query for e in events],
        [e.doc for e in events],
        [e.grade for e in events],
        assessors=[e.by for e in events],
        times=[e.when if isinstance(e, Judged) else e.time for e in events],
    )


def _one_per_pair(given: Judgments, rule: str, settled: list[Adjudicated]) -> Judgments:
    grades = given.grades(rule)
    last = _as_judgments(settled)
    labels = [*map(given.pool.label, range(len(given.pool))), *map(last.pool.label, range(len(last.pool)))]
    return Judgments.rows(
        [query for query, _ in labels], [doc for _, doc in labels], np.concatenate([grades, last.grades("latest")])
    )


def _place(event: Judged | Withdrawn) -> str:
    """Where the state has a judgment: among those of the campaign, or among the answers to gold and repeated pairs."""
    return "judged" if event.purpose is TaskPurpose.judgment else "controls"


def fold(state: State, events: Iterable[Event]) -> State:
    """The state after these events; the given state is not modified.

    >>> from probeval.data import Scale
    >>> setup = Setup(name="mine", metric="P@5", scale=Scale.binary(), model="uniform", depth=5)
    >>> log = [
    ...     Created(by="eve", time=0.0, number=1, setup=setup),
    ...     Judged(by="ann", time=1.0, number=2, query="q", doc="d", grade=1.0),
    ...     Withdrawn(by="ann", time=2.0, number=3, query="q", doc="d", judgment=2),
    ... ]
    >>> before, after = fold(State(), log[:2]), fold(State(), log)
    >>> len(before.judged), len(after.judged)
    (1, 0)
    """
    draft = _Draft(state)
    for event in events:
        draft.add(event)
    return draft.state()


class _Draft:
    """A state under construction: each mapping is copied once per batch of events, on its first change."""

    def __init__(self, before: State) -> None:
        self.before, self.now = before, before
        self.copies: dict[str, dict[Any, Any]] = {}

    def state(self) -> State:
        changed: dict[str, Any] = self.copies
        return replace(self.now, **changed)

    def seen(self, name: str) -> Mapping[Any, Any]:
        """The current value of a mapping, to read."""
        before: Mapping[Any, Any] = getattr(self.before, name)
        return self.copies.get(name, before)

    def of(self, name: str) -> dict[Any, Any]:
        """The current value of a mapping, to write."""
        if name not in self.copies:
            self.copies[name] = dict(getattr(self.before, name))
        return self.copies[name]

    def add(self, event: Event) -> None:
        if event.number != self.now.number + 1:
            raise CampaignError(f"Event {event.number} of the log follows event {self.now.number}: events are missing.")
        changed = event.number if concerns_models(event) else self.now.changed
        self.now = replace(self.now, number=event.number, changed=changed)
        if event.token is not None:
            self.of("tokens")[event.token] = event
        match event:
            case Created() | Changed():
                if self.now.setup is not None and any(
                    getattr(self.now.setup, name) != getattr(event.setup, name) for name in ("metric", "depth")
                ):
                    self.repool()
                self.now = replace(self.now, setup=event.setup)
                for pair in list(self.seen("judged")):
                    self.update_waiting(pair)
            case GuidelineChanged():
                self.now = replace(self.now, guideline=event)
            case QueryGuidelinesChanged():
                self.of("query_guidelines").update(dict.fromkeys(event.texts, event))
            case QueriesChanged():
                self.of("texts").update(event.texts)
            case GoldChanged():
                self.copies["gold"] = {
                    (query, doc): grade for query, docs in event.grades.items() for doc, grade in docs.items()
                }
            case TopicsAssigned():
                owners = {**self.seen("owners"), **event.owners}
                self.copies["owners"] = {query: name for query, name in owners.items() if name}
            case Labelled():
                self.now = replace(self.now, labels=(*self.now.labels, event))
            case Imported():
                self.now = replace(self.now, imports=(*self.now.imports, event))
            case RunsAdded():
                self.repool()
                self.now = replace(self.now, runs=(*self.now.runs, event))
            case PhaseChanged():
                self.now = replace(self.now, phase_change=event)
            case Invited() | Revoked() | SignedIn() | SignedOut():
                self.now = replace(self.now, access=self.now.access.after(event))
            case StudyCreated():
                self.now = replace(self.now, study=event.study)
            case ListsCompared():
                self.of("compared")[event.by, event.question] = event
            case ComparisonWithdrawn():
                self.of("compared").pop((event.by, event.question), None)
            case Leased():
                leases = self.of("leases")
                leases[event.pair] = {**leases.get(event.pair, {}), event.by: event}
                if event.purpose is TaskPurpose.judgment and event.pair not in self.seen("judged"):
                    self.of("topics")[event.by] = event
                if event.pick is not None and event.pair not in self.seen("judged"):
                    self.of("picks")[event.pair] = event
            case Released():
                self.release(event.pair, event.by)
            case Judged():
                self.append(_place(event), event)
                if not event.source:
                    self.of("finished")[event.by] = event.pair
                    self.count(event.by, 1)
                self.release(event.pair, event.by)
                self.update_waiting(event.pair)
                if event.source and event.pair not in self.seen("waiting"):
                    self.of("leases").pop(event.pair, None)  # judged in another tool, perhaps under another name
            case Withdrawn():
                self.withdraw(event)
                self.count(event.by, -1)
                self.update_waiting(event.pair)
            case Skipped():
                self.append("skipped", event)
                self.of("finished")[event.by] = event.pair
                self.release(event.pair, event.by)
            case Flagged():
                self.append("flags", event)
            case Commented():
                self.append("comments", event)
            case Adjudicated():
                self.of("adjudicated")[event.pair] = event
                self.update_waiting(event.pair)

    def repool(self) -> None:
        """Forget the predictions so far: they are of another pool or measure."""
        self.of("picks").clear()
        self.now = replace(self.now, pooled=self.now.number)

    def append(self, name: str, event: Judged | Skipped | Flagged | Commented) -> None:
        lists = self.of(name)
        lists[event.pair] = (*lists.get(event.pair, ()), event)

    def count(self, assessor: str, change: int) -> None:
        made = self.of("made")
        made[assessor] = made.get(assessor, 0) + change

    def release(self, pair: Pair, assessor: str) -> None:
        held = self.seen("leases").get(pair, {})
        if assessor not in held:
            return
        left = {who: lease for who, lease in held.items() if who != assessor}
        if left:
            self.of("leases")[pair] = left
        else:
            del self.of("leases")[pair]

    def withdraw(self, event: Withdrawn) -> None:
        answers = self.of(_place(event))
        left = tuple(j for j in answers.get(event.pair, ()) if j.number != event.judgment)
        if left:
            answers[event.pair] = left
        else:
            answers.pop(event.pair, None)

    def update_waiting(self, pair: Pair) -> None:
        """Add the pair to the waiting ones, or remove it."""
        opinions = len({judgment.by for judgment in self.seen("judged").get(pair, ())})
        waits = pair not in self.seen("adjudicated") and 0 < opinions < self.now.settings.wanted(*pair)
        if waits:
            self.of("waiting").setdefault(pair)
        elif pair in self.seen("waiting"):
            del self.of("waiting")[pair]
