"""What an organiser publishes on a campaign: the rule as registered, every later change, the stop, what is decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd

from probeval.campaign.events import Answered, Changed, Created, Event, Phase, Restored, SetAside
from probeval.campaign.history import changed_settings, history
from probeval.campaign.setup import ABOUT_RULE
from probeval.campaign.snapshot import target_confidence
from probeval.campaign.status import Status
from probeval.display import Table, counted, fact_table, moment
from probeval.results import Result, frame, key
from probeval.scores import Verdict
from probeval.scores.compare import RankedSystem
from probeval.selection import AuditReport, Goal, Stopping, StoppingFigure

if TYPE_CHECKING:
    from probeval.selection import JudgingState

__all__ = ["APPEAL", "LoggedChange", "Registration", "Statement", "UndecidedPair", "rule_advice", "statement_of"]

APPEAL = (
    "Name the query, the document and the grade that you think is wrong, and write to the organisers. The grade is "
    "then settled by an adjudicator, with the reason; the log keeps both, and the scores follow."
)
PRIVATE = {"created", "invited", "revoked", "topics"}  # kinds of events that are not shown: who judges what


@dataclass(frozen=True)
class Registration:
    """The settings with which a campaign began, and their hash."""

    hash: Annotated[str, "The digest of the first event of the log, which has these settings."]
    time: Annotated[float, "In seconds since 1970."]
    by: Annotated[str, "The creator of the campaign."]
    rule: Annotated[str, "The stopping rule."]
    goal: Annotated[str, "What judging is for."]
    metric: Annotated[str, "The measure."]
    scale: Annotated[str, "The scale of grades."]
    rope: Annotated[float, "Differences up to this size do not matter."]
    depth: Annotated[int, "The depth of the pool."]
    model: Annotated[str, "The model."]
    policy: Annotated[str, "The policy that chooses pairs."]
    given: Annotated[int, "Judgments and answers that were there already, imported with the runs."]
    first: Annotated[float | None, "The time of the first judgment made in the campaign; null for none."]


@dataclass(frozen=True)
class LoggedChange:
    """A change after the registration."""

    TIMES = ("time",)

    number: Annotated[int, "The number of the event."]
    time: Annotated[float, "In seconds since 1970."]
    judged: Annotated[int, "The judgments and answers before it."]
    rule: Annotated[bool, "Whether it is of the rule: the stopping rule, the goal, the measure, the rope or the depth."]
    event: Annotated[str, "Its kind."]
    what: Annotated[str, "The values that it carries, in one line."]


@dataclass(frozen=True)
class UndecidedPair:
    """Two systems whose order is not decided."""

    a: Annotated[str, "The one with the higher expected score."]
    b: str
    p_better: Annotated[float, "The probability that a is better."]


@dataclass(frozen=True, eq=False, repr=False)
class Statement(Result):
    """A statement on a campaign for its participants. It names no assessors."""

    campaign: Annotated[str, "The name of the campaign."]
    registered: Annotated[Registration, "The settings at the beginning, and their hash."]
    changes: Annotated[tuple[LoggedChange, ...], "Every later change, oldest first."]
    rule: Annotated[str, "The stopping rule now."]
    phase: Annotated[Phase, "Whether the campaign is open, paused or closed."]
    reached: Annotated[bool, "Whether the stopping rule is met."]
    reasons: Annotated[tuple[str, ...], "Why it is met."]
    values: Annotated[Mapping[str, float], "The figure of each rule now, by name."]
    tested: Annotated[tuple[StoppingFigure, ...], "Those that the model states, each beside its target."]
    judged: Annotated[int, "The pairs of the pool with a grade."]
    pool: Annotated[int, "The pairs of the pool."]
    answers: Annotated[int, "The answers to other questions."]
    level: Annotated[float, "The confidence from which on a comparison is decided."]
    decided: Annotated[int, "The comparisons of two systems whose order is decided."]
    tied: Annotated[int, "The comparisons that are decided as ties."]
    wrong: Annotated[float, "How many of the decided ones are expected to be wrong."]
    undecided: Annotated[tuple[UndecidedPair, ...], "The comparisons that are not decided, the surest first."]
    systems: Annotated[tuple[RankedSystem, ...], "The ranking, best first."]
    audit: Annotated[AuditReport, "The model against the pairs that were drawn at random."]
    agreement: Annotated[tuple[str, ...], "The agreement of assessors, and their answers to gold and repeated pairs."]
    appeal: Annotated[str, "How to appeal."]
    events: Annotated[int, "The number of events in the log."]
    head: Annotated[str, "The digest of the last event: it depends on all events before it."]
    time: Annotated[float, "The time of the last event, in seconds since 1970."]

    @key
    def comparisons(self) -> int:
        """The comparisons of two systems."""
        return self.decided + self.tied + len(self.undecided)

    @property
    def allowed(self) -> str:
        """How many comparisons the registered rule allows to be wrong; empty if it says nothing of that."""
        first = self.registered
        return rule_advice(first.rule, first.goal, len(self.systems), short=True)

    def _headline(self) -> str:
        stop = "met" if self.reached else "not met"
        return f"{self.campaign}: the rule {self.rule} is {stop} after {counted(self.judged, 'judged pair')}"

    def tables(self) -> tuple[Table, ...]:
        """The registration, the changes, the ranking and what is undecided."""
        first = self.registered
        facts = {
            "rule": first.rule,
            "goal": f"{first.goal}, {first.metric}",
            "registered": f"{moment(first.time)} by {first.by}",
            "hash": first.hash,
            "head": f"{self.head} (event {self.events:,}, {moment(self.time)})",
        }
        tables = [Table(fact_table(facts), self._headline())]
        if self.changes:
            tables.append(Table(self.changes_frame(), "Changes after the registration"))
        ranking = frame(self.systems, RankedSystem)[["rank", "system", "mean", "lower", "upper", "group"]]
        tables.append(Table(ranking, "Ranking", intervals=("mean", "lower", "upper")))
        if self.undecided:
            tables.append(Table(self.undecided_frame(), "Not decided"))
        return tuple(tables)

    def changes_frame(self) -> pd.DataFrame:
        """One row per change: when, after how many judgments, what."""
        table = frame(self.changes, LoggedChange)
        rule = ["yes" if own else "" for own in table["rule"]]
        return table.assign(time=[moment(each) for each in table["time"]], rule=rule)[
            ["time", "judged", "rule", "event", "what"]
        ]

    def undecided_frame(self) -> pd.DataFrame:
        """One row per comparison that is not decided: system, other, P(better)."""
        table = frame(self.undecided, UndecidedPair)
        return table.rename(columns={"a": "system", "b": "other", "p_better": "P(better)"})

    def sentences(self) -> tuple[str, ...]:
        """The registration, the changes of the rule, the stop, what is decided, audit, agreement, appeal."""
        return (
            self.of_registration(),
            self.of_changes(),
            self.of_stop(),
            self.of_decisions(),
            *self.audit.sentences(),
            *self.agreement,
            self.appeal,
        )

    def of_registration(self) -> str:
        """When the rule was registered, and whether that was before the first judgment."""
        first = self.registered
        there = f" {counted(first.given, 'judgment')} were there already." if first.given else ""
        before = (
            "before any judgment"
            if first.first is None
            else f"before the first judgment, which is of {moment(first.first)}"
        )
        return f"The rule {first.rule} was registered on {moment(first.time)}, {before}.{there}"

    @key
    def late_changes(self) -> int:
        """The changes of the rule after the first judgment."""
        return sum(change.rule and change.judged > self.registered.given for change in self.changes)

    def of_changes(self) -> str:
        """Whether the rule changed after the first judgment."""
        n = self.late_changes
        changed = f"changed {counted(n, 'time')}" if n else "did not change"
        return f"The rule {changed} after the first judgment."

    def of_stop(self) -> str:
        """Whether the rule is met, and the state of the campaign."""
        state = f"The campaign is {self.phase}"
        if self.reached:
            return f"{state}. The rule is met: {'; '.join(self.reasons)}."
        ended = "was closed before the rule was met" if self.phase is Phase.closed else f"is {self.phase}"
        figures = [*map(str, self.tested)] or [f"{name} {value:.4g}" for name, value in self.values.items()]
        return f"The campaign {ended}: {self.rule} asked for, {', '.join(figures) or 'nothing'} reached."

    def of_decisions(self) -> str:
        """What is decided and what is not."""
        tied = f", {self.tied:,} are ties" if self.tied else ""
        return (
            f"Of {self.comparisons:,} comparisons of two systems {self.decided:,} are decided with confidence "
            f"{self.level:g}, of which about {self.wrong:.1f} are expected to be wrong{tied}; "
            f"{len(self.undecided):,} are not decided."
        )


def rule_advice(rule: str, goal: str, systems: int, *, short: bool = False) -> str:
    """How many comparisons a mean confidence allows to be wrong, and the rules that allow fewer; empty for none.

    >>> rule_advice("confidence=.95", "ranking", 64, short=True)
    'A mean confidence of 0.95 over 2,016 comparisons allows about 101 of them to be wrong, nearly all of neighbours.'
    >>> rule_advice("every=.95", "ranking", 64)
    ''
    """
    target, pairs = target_confidence(Stopping.parse(rule)), systems * (systems - 1) // 2
    wrong = 0.0 if target is None or Goal.parse(goal).kind != "ranking" else (1 - target) * pairs
    if round(wrong) < 1:
        return ""
    found = (
        f"A mean confidence of {target:g} over {pairs:,} comparisons allows about {wrong:.0f} of them to be wrong, "
        "nearly all of neighbours."
    )
    if short:
        return found
    return (
        f"{found} If each one counts: --stop every={target:g}; if only the best one counts: --stop best={target:g}; if "
        "small differences do not: --rope. Reports give groups, within which the order may be due to chance."
    )


def statement_of(
    status: Status,
    state: JudgingState,
    log: Sequence[Event],
    *,
    audit: AuditReport,
    digests: tuple[str, str],
    appeal: str = "",
    level: float = 0.95,
) -> Statement:
    """The statement on a campaign, from its status, the state of judging, its log, and its first and last digest."""
    ranking, setup = state.ranking.at(level), status.setup
    verdict = Verdict.of(ranking, level=level)
    sure, order = ranking.direction_confidence, ranking.scores.order
    upper = np.triu(np.ones_like(verdict.decided), k=1)
    check = setup.rule_to_stop.check(state)
    names, better = ranking.scores.systems, ranking.p_better
    open_pairs = [
        UndecidedPair(names[a], names[b], float(better[a, b]))
        for at, a in enumerate(order)
        for b in order[at + 1 :]
        if verdict.undecided[a, b]
    ]
    return Statement(
        campaign=setup.name,
        registered=_registration(log, digests[0]),
        changes=_changes(log),
        rule=setup.stopping,
        phase=status.phase,
        reached=check.reached,
        reasons=check.reasons,
        values=check.values,
        tested=check.figures,
        judged=status.judged,
        pool=status.pool,
        answers=status.answers,
        level=level,
        decided=int((verdict.decided & upper).sum()),
        tied=int((verdict.tied & upper).sum()),
        wrong=float((1 - sure)[verdict.decided & upper].sum()),
        undecided=tuple(sorted(open_pairs, key=lambda pair: -abs(pair.p_better - 0.5))),
        systems=ranking.systems,
        audit=audit,
        agreement=tuple(_agreement(status)),
        appeal=appeal or APPEAL,
        events=log[-1].number,
        head=digests[1],
        time=log[-1].time,
    )


def _made(event: Event) -> bool:
    """Whether an event is an answer that counts."""
    return isinstance(event, Answered) and event.counts


def _registration(log: Sequence[Event], digest: str) -> Registration:
    first = log[0]
    assert isinstance(first, Created)
    setup, made = first.setup, [event for event in log if isinstance(event, Answered) and event.counts]
    own = [event.time for event in made if not event.source]
    return Registration(
        hash=digest,
        time=first.time,
        by=first.by,
        rule=setup.stopping,
        goal=setup.goal,
        metric=setup.metric,
        scale=str(setup.scale),
        rope=setup.rope,
        depth=setup.depth,
        model=setup.model,
        policy=setup.policy,
        given=sum(event.time == first.time for event in made),
        first=min(own, default=None),
    )


def _changes(log: Sequence[Event]) -> tuple[LoggedChange, ...]:
    """The changes after the creation, with the judgments before each."""
    shown = {entry.number: entry for entry in history(log) if entry.event not in PRIVATE}
    created, judged, before, found = log[0].time, 0, None, list[LoggedChange]()
    for event in log:
        entry, of_rule = shown.get(event.number), False
        if isinstance(event, (Created, Changed)):
            of_rule = before is not None and not changed_settings(before, event.setup).keys().isdisjoint(ABOUT_RULE)
            before = event.setup
        if entry is not None and event.time > created:
            what = "all answers of one person" if isinstance(event, (SetAside, Restored)) else entry.what
            found.append(LoggedChange(entry.number, entry.time, judged, of_rule, entry.event, what))
        judged += _made(event)
    return tuple(found)


def _agreement(status: Status) -> Iterator[str]:
    """How far assessors agree with each other, known grades and themselves, without their names."""
    people = {each.assessor for each in (*status.assessors, *status.comparers)}
    yield f"{counted(len(people), 'assessor')}, {counted(status.judgments + status.answers, 'judgment')}."
    if status.shared:
        yield f"Krippendorff's alpha {status.alpha:.3f} over {counted(status.shared, 'pair')} with several assessors."
    else:
        yield "No pair was judged by several assessors, so their agreement is unknown."
    work = (*status.assessors, *status.comparers)
    gold, again = sum(each.gold for each in work), sum(each.repeats for each in work)
    if gold:
        yield f"Questions with a known answer: {sum(each.gold_right for each in work):,} of {gold:,} answers right."
    if again:
        same = sum(each.repeats_same for each in work)
        yield f"Questions asked a second time: {same:,} of {again:,} answers the same as before."
    careless = sum(each.is_careless for each in status.verdicts)
    aside = sum(each.set_aside for each in status.verdicts)
    if careless or aside:
        yield f"By all checks together {careless:,} are careless; the answers of {aside:,} are set aside."
    if status.adjudicated or status.disagreements:
        yield f"{status.adjudicated:,} pairs were adjudicated, {status.disagreements:,} disagreements are not settled."
