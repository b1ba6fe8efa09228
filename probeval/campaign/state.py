"""The state of a campaign at one moment, as the fold over its log (``folding.py``) makes it.

Nothing here reads a clock or a store: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from probeval.campaign.access import Access
from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated
from probeval.campaign.events import (
    Adjudicated,
    Commented,
    Event,
    Flagged,
    GuidelineChanged,
    Imported,
    Judged,
    Labelled,
    Leased,
    Pair,
    Phase,
    PhaseChanged,
    QueryGuidelinesChanged,
    Question,
    RunsAdded,
    Skipped,
    TaskPurpose,
)
from probeval.campaign.setup import Setup
from probeval.campaign.study_events import ListsCompared, StudySetup
from probeval.data.answers import PairAnswers, as_answers
from probeval.data.judgments import Judgments
from probeval.display import Record
from probeval.errors import CampaignError

__all__ = ["State", "as_pair_answers"]


@dataclass(frozen=True, eq=False, repr=False)
class State(Record):
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
    compared
        The answers about two documents that were not withdrawn, by question, in order: those to gold and repeated
        questions too, which their purpose tells apart.
    adjudicated, settled
        The settled grades, by pair, and the settled answers about two documents, by question.
    gold, gold_orders
        The pairs with known grades, and the grades; and the comparisons with a known answer, with the better document.
    controls
        The answers to gold and repeated pairs that were not withdrawn, by pair, in order. They are not judgments.
    paces
        The seconds of the latest answers with a measured time, by kind: ``grade``, ``preference`` or ``magnitude``.
    made
        The number of questions that each assessor answered here, gold and repeated ones included.
    answered
        The number of questions of each query that each assessor has given an answer that counts, by assessor and query.
    withdrawn
        The number of the last withdrawal.
    waiting
        The questions that have an answer and need another, as keys.
    leases
        Leases by question and assessor. Some may have run out: compare ``until`` with the time.
    picks
        The latest lease, before any judgment, of each pair that the model proposed: with the prediction of the pair.
    skipped
        Skips, by question.
    flags, comments
        These events, by pair.
    owners
        The owners of topics, by query; topics without an owner are missing.
    topics
        The latest lease of each assessor to a question without an answer: its query is their topic.
    finished
        The last question that each assessor answered or skipped here.
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
    study, lists_compared
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
    compared: Mapping[Question, tuple[Compared, ...]] = field(default_factory=dict)
    settled: Mapping[Question, ComparisonAdjudicated] = field(default_factory=dict)
    gold_orders: Mapping[Question, str] = field(default_factory=dict)
    made: Mapping[str, int] = field(default_factory=dict)
    answered: Mapping[tuple[str, str], int] = field(default_factory=dict)
    withdrawn: int = 0
    paces: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    waiting: Mapping[Question, None] = field(default_factory=dict)
    leases: Mapping[Question, Mapping[str, Leased]] = field(default_factory=dict)
    picks: Mapping[Pair, Leased] = field(default_factory=dict)
    skipped: Mapping[Question, tuple[Skipped, ...]] = field(default_factory=dict)
    flags: Mapping[Pair, tuple[Flagged, ...]] = field(default_factory=dict)
    comments: Mapping[Pair, tuple[Commented, ...]] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, Leased] = field(default_factory=dict)
    finished: Mapping[str, Question] = field(default_factory=dict)
    guideline: GuidelineChanged | None = None
    query_guidelines: Mapping[str, QueryGuidelinesChanged] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[Labelled, ...] = ()
    imports: tuple[Imported, ...] = ()
    runs: tuple[RunsAdded, ...] = ()
    pooled: int = 0
    phase_change: PhaseChanged | None = None
    study: StudySetup | None = None
    lists_compared: Mapping[tuple[str, int], ListsCompared] = field(default_factory=dict)
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

    def given(self, question: Question) -> tuple[Judged | Compared, ...]:
        """The judgments of a pair, or the answers to a comparison, that count as such, in order."""
        if len(question) == 2:
            return self.judged.get((question[0], question[1]), ())
        return tuple(a for a in self.compared.get(question, ()) if a.purpose is TaskPurpose.judgment)

    def has_grade(self, pair: Pair) -> bool:
        """Whether the pair is judged or adjudicated."""
        return pair in self.judged or pair in self.adjudicated

    def checks(self, question: Question) -> dict[str, Judged | Compared]:
        """Each assessor's latest answer to a gold or repeated question, by assessor."""
        if len(question) == 2:
            return {answer.by: answer for answer in self.controls.get((question[0], question[1]), ())}
        return {a.by: a for a in self.compared.get(question, ()) if a.purpose is not TaskPurpose.judgment}

    def holders(self, question: Question, now: float) -> set[str]:
        """The assessors who hold the question at this time."""
        return {who for who, lease in self.leases.get(question, {}).items() if lease.until > now}

    def held_by(self, assessor: str, now: float) -> list[Leased]:
        """The leases of an assessor at this time, oldest first."""
        mine = (held[assessor] for held in self.leases.values() if assessor in held)
        return sorted((lease for lease in mine if lease.until > now), key=lambda lease: lease.number)

    def is_open(self, question: Question, assessor: str, now: float) -> bool:
        """Whether the question may be leased to this assessor.

        It may if they have not answered or skipped it and do not hold it, it is not adjudicated, and it needs more
        assessors than have answered it or hold it.
        """
        given = self.given(question)
        if question in self.adjudicated or question in self.settled or (given and question not in self.waiting):
            return False  # adjudicated, or answered by as many assessors as it needs
        if any(skip.by == assessor for skip in self.skipped.get(question, ())):
            return False
        busy = self.holders(question, now).union(answer.by for answer in given)
        return assessor not in busy and (not busy or len(busy) < self.settings.wanted(*question))

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
    def contested(self) -> list[Question]:
        """Comparisons whose assessors prefer different documents, not yet settled: by id."""
        found = []
        for question in self.compared.keys() - self.settled.keys():
            latest = {answer.by: answer.better for answer in self.given(question) if isinstance(answer, Compared)}
            if len(set(latest.values()) - {""}) > 1:
                found.append(question)
        return sorted(found)

    @cached_property
    def counted_answers(self) -> list[Compared | ComparisonAdjudicated]:
        """The answers about two documents that count: each assessor's latest, or the settled one."""
        events: list[Compared | ComparisonAdjudicated] = [*self.settled.values()]
        for question in self.compared.keys() - self.settled.keys():
            events += {a.by: a for a in self.given(question) if isinstance(a, Compared)}.values()
        return sorted(events, key=lambda event: event.number)

    @cached_property
    def pair_answers(self) -> PairAnswers | None:
        """The answers about two documents that count, as data; None without any."""
        return as_pair_answers(self.counted_answers) if self.counted_answers else None

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


def as_pair_answers(events: Iterable[Compared | ComparisonAdjudicated]) -> PairAnswers:
    """Answers as data."""
    rows = [
        {
            "query": event.query,
            "left": event.left,
            "right": event.right,
            "choice": event.choice,
            "relevant": event.relevant,
            "left_number": getattr(event, "left_number", None),
            "right_number": getattr(event, "right_number", None),
            "assessor": event.by,
            "seconds": getattr(event, "seconds", None),
        }
        for event in events
    ]
    return as_answers(pd.DataFrame(rows))


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
