"""The status of a campaign: progress, assessors, agreement, queries, remaining work, and what to do next."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.campaign.assessors import (
    AssessorAgreement,
    Comparer,
    Respondent,
    Share,
    agreements,
    comparer_sentences,
    comparers,
    grade_level,
    quality_sentences,
    respondents,
    shares,
    user_sentences,
)
from probeval.campaign.candidates import PER_DOCUMENT, Material, seconds_per_answer
from probeval.campaign.events import Event, Phase
from probeval.campaign.kinds import Compared
from probeval.campaign.questions import COMPARISON, GRADE
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot, forecast_target, judgments_left, way_come
from probeval.campaign.state import State
from probeval.campaign.verdicts import AssessorVerdict, verdicts_of
from probeval.display import Record, Table, counted, fact_table
from probeval.reliability.agreement import krippendorff_alpha
from probeval.results import FLAT, Result, frame, key
from probeval.selection.pairs import ASK

__all__ = ["QueryProgress", "Status", "day_of", "error_sentence", "status_of"]

DAY = 24 * 3600.0
WEEK = 7 * DAY
LATE_JUDGMENTS, LATE_SECONDS = 20, 60.0  # behind by more, the owner is told
# What tables show of each assessor; to_frame() has all.
WORK = ("assessor", "judgments", "skipped", "flagged", "seconds", "shared", "bias", "bias_error")
CHECKED = ("gold", "gold_right", "repeats", "repeats_same")  # with gold or repeated questions
LISTED = ("assessor", "answers", "skipped", "seconds", "gold", "gold_right")
COMPARED = ("assessor", "answers", "seconds", *CHECKED, "violated", "contradictions", "left", "relevant")


@dataclass(frozen=True, repr=False)
class QueryProgress(Record):
    """The progress of one query."""

    query: str
    text: str
    pool: Annotated[int, "Its pairs in the pool."]
    judged: Annotated[int, "Its pairs with a grade."]
    answers: Annotated[int, "The answers about two of its documents."]
    proposed: Annotated[int, "Its unjudged pairs among those that the model proposes to judge next."]
    assessors: Annotated[tuple[str, ...], "The assessors who judged some of them."]
    uncertainty: Annotated[
        float, "The standard deviation of a system's score on this query; null if the model has not run."
    ]


@dataclass(frozen=True, repr=False)
class Status(Result):
    """The status of a campaign."""

    setup: Annotated[Setup, FLAT]
    phase: Annotated[Phase, "Whether the campaign is open, paused or closed."]
    phase_reason: str  # that the owner gave, if any
    guideline: Annotated[int, "The version of the guideline; 0 if there is none."]
    events: Annotated[int, "The number of events in the log."]
    pool: Annotated[int, "Pairs of the pool; of a study with users, pairs of lists."]
    judged: Annotated[int, "Those of them with a grade that counts, or an answer."]
    judgments: Annotated[int, "Current judgments: judged - known + further + outside + undecided."]
    known: Annotated[int, "Judged pairs whose grade is known or adjudicated without any judgment."]
    further: Annotated[int, "Judgments of pairs of the pool besides the first of each."]
    outside: Annotated[int, "Judgments of pairs outside the pool."]
    undecided: Annotated[int, "Pairs of the pool that do not count as judged because their assessors differ."]
    answers: Annotated[int, "Current answers about two documents."]
    preferences: Annotated[int, "Answers with a choice."]
    magnitudes: Annotated[int, "Answers with numbers."]
    gold: Annotated[int, "Pairs with a known grade."]
    gold_asked: Annotated[int, "Those of them that an assessor has been asked about and answered."]
    gold_orders: Annotated[int, "Comparisons with a known answer."]
    adjudicated: Annotated[int, "Pairs that are settled other than as gold."]
    settled: Annotated[int, "Comparisons whose answer is settled."]
    disagreements: Annotated[int, "Pairs on which assessors differ and that are not settled."]
    contested: Annotated[int, "Comparisons on which assessors differ and that are undecided."]
    flagged: Annotated[int, "Pairs that are flagged."]
    leased: Annotated[int, "Questions that are leased now."]
    overlap: Annotated[int, "Pairs of the pool that need several opinions."]
    overlap_done: Annotated[int, "Those of them that have all opinions."]
    shared: Annotated[int, "Pairs that several assessors judged."]
    alpha: Annotated[float, "Krippendorff's alpha over these; null if undefined."]
    assessors: Annotated[tuple[Share, ...], "The judgments of each assessor."]
    comparers: Annotated[tuple[Comparer, ...], "The answers of each assessor about two documents."]
    users: Annotated[tuple[Respondent, ...], "The answers of each person about two lists, or of another kind."]
    verdicts: Annotated[
        tuple[AssessorVerdict, ...],
        "For each assessor, how probable it is that they are careless, by all checks together.",
    ]
    snapshot: Annotated[ModelSnapshot | None, "The latest results of the model; null before its first run."]
    behind: Annotated[int, "Judgments added, changed or withdrawn since the snapshot."]
    behind_seconds: Annotated[float, "The seconds since the first of these; 0 if there is none."]
    seconds: Annotated[float, "The median time per judgment or answer; null if unknown."]
    paces: Annotated[
        Mapping[str, float],
        "The seconds that a grade, a preference and the numbers of two documents take: the median of the latest ones, "
        "or with few of them what is usual.",
    ]
    way: Annotated[float | None, "Progress to the target, from 0 at the first snapshot to 1; null before the first."]
    left: Annotated[int | None, "The estimated number of judgments left to meet the stopping rule; null if unknown."]
    left_lower: Annotated[int | None, "The lower end of its 90% interval; null without a forecast."]
    left_upper: Annotated[int | None, "The upper end of its 90% interval; null without a forecast."]
    agreements: Annotated[tuple[AssessorAgreement, ...], "The agreement of every two assessors."]
    queries: Annotated[tuple[QueryProgress, ...], "The progress of each query."]
    time: float  # of the status, in seconds since 1970

    @property
    def gold_name(self) -> str:
        """What questions with a known answer are called."""
        return "traps" if self.setup.ask == "lists" else "gold questions"

    @key
    def late(self) -> bool:
        """Whether the model is more than 20 judgments or a minute behind."""
        return self.behind > LATE_JUDGMENTS or self.behind_seconds > LATE_SECONDS

    @key
    def reached(self) -> bool:
        """Whether the stopping rule is met, by a fit that has all judgments."""
        return self.snapshot is not None and self.snapshot.reached and not self.behind

    @property
    def aim(self) -> str:
        """The stopping rule, and the goal where it is not the whole ranking."""
        goal = "" if self.setup.goal == "ranking" else f" for {self.setup.goal}"
        return f"{self.setup.stopping}{goal}"

    @property
    def made(self) -> int:
        """What was judged: pairs of the pool with a grade, and answers to other questions."""
        return self.answers if self.setup.ask not in ASK else self.judged + self.answers

    @property
    def ends(self) -> tuple[int, int, int] | None:
        """The judged pairs and answers when the target is met, and the ends of the interval; None if unknown."""
        if self.left is None:
            return None
        lower, upper = (self.left if end is None else end for end in (self.left_lower, self.left_upper))
        return self.made + self.left, self.made + lower, self.made + upper

    @property
    def outlook(self) -> str:
        """The judgments that the target still takes, in a few words; empty if unknown."""
        if self.left is None:
            return ""
        between = "" if self.left_lower is None else f" ({self.left_lower:,} to {self.left_upper:,})"
        return f"about {counted(self.left, 'judgment')} more{between}"

    @property
    def given(self) -> str:
        """From how many judgments pairs are judged, and why that is another number; empty if it is the same."""
        reasons = (
            (self.known, f"{counted(self.known, 'pair')} without a judgment, the grade being known or adjudicated"),
            (self.further, f"{counted(self.further, 'further judgment')} of the same pairs"),
            (self.outside, f"{counted(self.outside, 'judgment')} of pairs outside the pool"),
            (self.undecided, f"{counted(self.undecided, 'pair')} not counted, as assessors differ"),
        )
        why = "; ".join(reason for n, reason in reasons if n)
        return f"from {counted(self.judgments, 'judgment')} ({why})" if why else ""

    @property
    def count(self) -> str:
        """How many pairs are judged, and why that is not the number of judgments, if it is not."""
        return f"{self.judged:,} of {self.pool:,} pairs judged {self.given}".rstrip()

    def standing(self) -> Iterator[str]:
        """What the stopping rule tests, beside its targets, and what the target still takes."""
        snapshot = self.snapshot
        if snapshot is None:
            yield "The model has not run yet."
            return
        since = f", {counted(self.behind, 'change')} ago" if self.behind else ""
        said = f"{snapshot.stated}, expected tau {snapshot.expected_tau:.3f}{since}{snapshot.caveat}."
        yield f"{said[0].upper()}{said[1:]}"
        if snapshot.reached and self.way is not None:
            since = f", before the last {counted(self.behind, 'judgment')}" if self.behind else ""
            yield f"Target met: {'; '.join(snapshot.reasons)}{since}."
        elif self.left is not None:
            hours = self.left * self.seconds / 3600
            pace = "" if np.isnan(hours) else f", {hours:.1f} hours at the current pace"
            yield f"Target {self.aim}: {self.outlook}{pace}."
        elif self.way is not None:
            yield f"Target {self.aim}: {self.way:.0%} of the way; how many more judgments it takes is not known yet."
        else:
            yield f"Target {self.aim}: the model has not run since it changed."

    @key
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most important first."""
        return tuple(_advice(self))

    def _headline(self) -> str:
        what = "questions answered" if self.setup.ask == "lists" else "pairs judged"
        return f"{self.setup.name}, {self.setup.metric}, {self.judged:,} of {self.pool:,} {what}"

    def tables(self) -> tuple[Table, ...]:
        """The settings and the progress; one row per assessor, if any."""
        setup = self.setup
        about = {
            "measure": setup.metric,
            "scale": setup.scale,
            "model": setup.model,
            "policy": setup.policy,
            "target": setup.stopping,
            "judged": f"{self.judged:,} of {self.pool:,} pairs",
        }
        if self.users or setup.ask == "lists":
            about = {"measure": setup.metric, "scale": setup.scale, "questions": self.pool, "answers": self.answers}
        if setup.goal != "ranking":
            about["goal"] = setup.goal
        if self.snapshot is not None:
            about["so far"] = f"{self.snapshot.stated}{self.snapshot.caveat}"
        found = [Table(fact_table(about), self._headline())]
        if self.assessors:
            columns = [*WORK, *CHECKED] if any(each.gold or each.repeats for each in self.assessors) else [*WORK]
            found.append(Table(self.to_frame()[columns], "Assessors"))
        if self.comparers:
            found.append(Table(frame(self.comparers, Comparer)[[*COMPARED]], "Answers about two documents"))
        if self.users:
            what = (
                "Answers about two lists; gold questions are traps" if setup.ask == "lists" else f"Answers: {setup.ask}"
            )
            found.append(Table(frame(self.users, Respondent)[[*LISTED]], what))
        return tuple(found)

    def sentences(self) -> tuple[str, ...]:
        """Progress, agreement and quality of assessors, confidence of the ranking, remaining work."""
        return tuple(_progress(self))


def _progress(status: Status) -> Iterator[str]:
    setup, snapshot = status.setup, status.snapshot
    if setup.ask == "lists":
        yield f"{setup.name}: {setup.metric}, scale {setup.scale}, lists of {setup.depth}."
        yield f"{status.judged:,} of {status.pool:,} questions answered: {counted(status.answers, 'answer')}."
        yield from user_sentences(status.users, status.gold_name)
        yield from _on_verdicts(status)
        return
    yield f"{setup.name}: {setup.metric}, scale {setup.scale}, model {setup.model}, policy {setup.policy}."
    if status.phase is not Phase.open:
        why = f" ({status.phase_reason})" if status.phase_reason else ""
        yield f"The campaign is {status.phase}{why}: no pairs are given out, and no judgments are taken."
    yield f"{status.count}, {status.leased:,} leased now."
    if setup.ask not in ASK:
        yield f"Asked for {setup.ask}: {counted(status.answers, 'answer')}."
    elif status.answers or setup.ask != "grades":
        kinds = f"{status.preferences:,} with a choice, {status.magnitudes:,} with numbers"
        yield f"Asked for {setup.ask}: {counted(status.answers, 'answer')} about two documents ({kinds})."
    if status.overlap:
        yield f"Overlap: {status.overlap_done:,} of {status.overlap:,} pairs have all {setup.opinions} judgments."
    if status.shared:
        yield f"Krippendorff's alpha {status.alpha:.3f} over {status.shared:,} pairs with several assessors."
    for share in status.assessors:
        if share.manner:
            between = f"{share.tendency_lower:+.2f} to {share.tendency_upper:+.2f}"
            yield f"{share.assessor} is {share.manner}: {share.tendency:+.2f} logits ({between})."
    if status.gold:
        yield f"{counted(status.gold, 'gold pair')}, {status.gold_asked:,} of them asked so far."
    yield from quality_sentences(status.assessors)
    yield from comparer_sentences(status.comparers)
    yield from user_sentences(status.users, status.gold_name)
    yield from _on_verdicts(status)
    if status.contested or status.settled:
        yield f"{status.contested:,} comparisons in dispute, {status.settled:,} settled."
    if status.disagreements or status.adjudicated:
        yield f"{status.disagreements:,} disagreements to settle, {status.adjudicated:,} settled."
    if status.answers and snapshot is not None and not snapshot.uses_answers:
        yield f"The model {setup.model} does not use answers about two documents: they change no score."
    shares = () if snapshot is None else [f"{each['source']} {1 - each['missing']:.0%}" for each in snapshot.labels]
    if shares:
        yield f"Share of the pool that machines labelled: {', '.join(shares)}."
    yield from status.standing()
    if error_sentence(status):
        yield error_sentence(status)
    if snapshot is not None and snapshot.audit is not None:
        yield from snapshot.audit.sentences()


def error_sentence(status: Status) -> str:
    """What the errors of assessors do to the confidence; empty before a model has run."""
    snapshot = status.snapshot
    if snapshot is None or snapshot.as_certain is None or not status.judgments:
        return ""
    certain, consensus = snapshot.as_certain, snapshot.by_consensus
    if consensus is None:
        return "Grades are taken as right: no answer is checked by gold or repeated questions, or by a second assessor."
    taken = status.setup.answers_as
    return (
        f"With the errors of assessors (by consensus) the confidence is {consensus.confidence:.3f} and the expected "
        f"tau {consensus.expected_tau:.3f}; with answers as certain {certain.confidence:.3f} and "
        f"{certain.expected_tau:.3f}. The campaign takes answers "
        f"{'as certain' if taken == 'certain' else 'by consensus'}."
    )


def _on_verdicts(status: Status) -> Iterator[str]:
    for verdict in status.verdicts:
        if verdict.is_careless or verdict.manner:
            yield str(verdict)
        if verdict.set_aside:
            yield f"The answers of {verdict.assessor} are set aside: they do not count."


def _advice(status: Status) -> Iterator[str]:
    snapshot, now = status.snapshot, status.time
    if snapshot is not None and snapshot.audit is not None and snapshot.audit.alarm is not None:
        yield "The audit raises an alarm: find the reason before you rely on the scores."
    if status.late:
        yield _lateness(status)
    for verdict in status.verdicts:
        if verdict.is_careless and not verdict.set_aside:
            yield f"{verdict} Look at their answers; campaign set-aside takes them all out."
    if status.disagreements:
        yield f"Adjudicate {counted(status.disagreements, 'pair')} on which assessors differ."
    if status.contested:
        yield f"Adjudicate {counted(status.contested, 'comparison')} on which assessors differ."
    if status.setup.ask == "lists":
        return
    if snapshot is None:
        yield "The model has not run yet: it needs a moment."
    elif status.reached:
        yield "The target is met: export the judgments, or go on for more confidence."
    elif snapshot.reached and status.way is not None:
        yield f"The target was met before the last {counted(status.behind, 'judgment')}: wait for the model."
    elif status.left is not None:
        yield _remaining(status, now)
    if not status.reached:
        for share in status.assessors:
            if now - share.last > DAY:
                yield f"{share.assessor} has not judged since {day_of(share.last, now)}."
    if status.setup.gold_share and not status.gold:
        yield "There are no gold pairs yet: give them with campaign gold."
    for share in status.assessors:
        if status.setup.gold_share and share.gold and not share.gold_left:
            yield f"{share.assessor} has answered all gold pairs: give more with campaign gold."
    manners = {verdict.assessor: verdict.manner for verdict in status.verdicts}
    for share in status.assessors:
        manner = share.manner or manners[share.assessor]
        if manner:
            yield f"{share.assessor} is more {manner} than the others: discuss the guideline."


def _lateness(status: Status) -> str:
    since = duration(status.behind_seconds / 3600)
    return (
        f"The model is {counted(status.behind, 'judgment')} behind, the first of them {since} old: keep the judging "
        "page running, and give its machine more processor time if this lasts."
    )


def _remaining(status: Status, now: float) -> str:
    assert status.left is not None
    work = status.outlook.capitalize()
    hours = status.left * status.seconds / 3600
    if hours != hours:
        return f"{work}."
    active = max(1, sum(now - share.last <= DAY for share in status.assessors))
    return f"{work}: {duration(hours / active)} with {counted(active, 'assessor')}."


def duration(hours: float) -> str:
    """A length of time in words.

    >>> duration(0.01), duration(0.5), duration(3.21)
    ('1 minute', '30 minutes', '3.2 hours')
    """
    minutes = max(1, round(60 * hours))
    return counted(minutes, "minute") if minutes < 90 else f"{hours:.1f} hours"


def day_of(moment: float, now: float) -> str:
    """The day of a moment: a weekday within the last week, otherwise a date; in local time."""
    return time.strftime("%A" if now - moment < WEEK - DAY else "%d %B %Y", time.localtime(moment))


def status_of(
    state: State,
    *,
    material: Material,
    now: float,
    snapshot: ModelSnapshot | None,
    missing: Sequence[Event],
    curve: Sequence[tuple[int, float]],
) -> Status:
    """The status, from the state, what is asked about, the latest snapshot and the events that it lacks.

    ``curve`` has the judged pairs and the progress of every snapshot since the target last changed.
    """
    setup, pool = state.settings, material.asked
    if snapshot is not None:  # a forecast for another target says nothing
        ahead = snapshot.forecast_for(forecast_target(setup.rule_to_stop), state.aimed)
        snapshot = replace(snapshot, forecast=ahead)
    who, _, grades = state.grade_matrix()
    several = (~np.isnan(grades)).sum(axis=0) > 1
    overlap = [question for question in pool if setup.overlap and setup.wanted(question) > 1]
    tendency = () if snapshot is None else snapshot.tendencies
    graders = {answer.by for answers in state.answers.values() for answer in answers if answer.asks == GRADE}
    people = sorted({*who, *(name for name in state.set_aside if name in graders)})
    work, seconds = shares(state, people, _by_row(people, who, grades), tendency)
    compare, users = comparers(state, () if snapshot is None else snapshot.answering), respondents(state, material)
    known = [question for question in pool if state.is_known(question)]
    disputed = frozenset(state.contested(GRADE) if setup.rule == "unanimous" else ())
    judged = sum(question not in disputed for question in known)
    opinions = [len(state.latest(question)) for question in known if question.kind == GRADE]
    judgments = sum(len({judgment.by for judgment in events}) for events in state.judged.values())
    given, compared = state.counted_answers, state.compared
    timed = [each for times in state.paces.values() for each in times] if setup.ask != "grades" else []
    left, lower, upper = _left(snapshot, state, judged + len(given), curve, _questions_left(state, material))
    return Status(
        setup=setup,
        phase=state.phase,
        phase_reason="" if state.phase_change is None else state.phase_change.reason,
        guideline=state.guideline_version,
        events=state.number,
        pool=len(pool),
        judged=judged,
        judgments=judgments,
        known=sum(not n for n in opinions),
        further=sum(max(0, n - 1) for n in opinions),
        outside=judgments - sum(opinions),
        undecided=len(known) - judged,
        answers=len(given),
        preferences=sum(bool(answer.choice) for answer in compared),
        magnitudes=sum(isinstance(answer, Compared) and answer.left_number is not None for answer in compared),
        gold=len(state.known(GRADE)),
        gold_asked=sum(bool(state.gold_answers(question)) for question in state.known(GRADE)),
        gold_orders=len(state.known(COMPARISON)),
        settled=len(state.settled) - len(state.adjudicated),
        contested=len(state.disagreements) - len(state.contested(GRADE)),
        adjudicated=sum(not event.is_gold for event in state.adjudicated.values()),
        disagreements=len(state.contested(GRADE)),
        flagged=len(state.flags),
        leased=sum(bool(state.holders(question, now)) for question in state.leases),
        overlap=len(overlap),
        overlap_done=sum(state.is_known(question) and question not in state.waiting for question in overlap),
        shared=int(several.sum()),
        alpha=krippendorff_alpha(grades, level=grade_level(setup.scale)) if several.any() else float("nan"),
        assessors=work,
        comparers=compare,
        users=users,
        verdicts=verdicts_of(state, work, compare, users, () if snapshot is None else snapshot.surprise),
        snapshot=snapshot,
        behind=len(missing),
        behind_seconds=max(0.0, now - missing[0].time) if missing else 0.0,
        seconds=float(np.median(timed)) if timed else seconds,
        paces=seconds_per_answer(state),
        way=way_come(curve),
        left=left,
        left_lower=lower,
        left_upper=upper,
        agreements=agreements(who, grades),
        queries=_query_progress(state, material, snapshot),
        time=now,
    )


def _by_row(people: Sequence[str], who: Sequence[str], grades: Floats) -> Floats:
    """The grades with a row for each of these people, NaN for none, shape (assessor, pair)."""
    found = np.full((len(people), grades.shape[1]), np.nan)
    found[[people.index(name) for name in who]] = grades
    return found


def _query_progress(state: State, material: Material, snapshot: ModelSnapshot | None) -> tuple[QueryProgress, ...]:
    """The progress of each query, by id."""
    size: dict[str, int] = {}
    judged: dict[str, int] = {}
    for question in material.asked:
        query = material.query_of(question)
        size[query] = size.get(query, 0) + 1
        judged[query] = judged.get(query, 0) + state.is_known(question)
    who: dict[str, set[str]] = {}
    for (query, _), events in state.judged.items():
        who.setdefault(query, set()).update(judgment.by for judgment in events)
    answers: dict[str, int] = {}
    for answer in state.counted_answers:
        query = material.query_of(answer.question)
        answers[query] = answers.get(query, 0) + 1
        who.setdefault(query, set()).add(answer.by)
    proposed: dict[str, int] = {}
    for query, doc in () if snapshot is None else snapshot.queue:
        proposed[query] = proposed.get(query, 0) + ((query, doc) not in state.graded)
    uncertainty: Mapping[str, float] = {} if snapshot is None else snapshot.uncertainty
    return tuple(
        QueryProgress(
            query=query,
            text=state.texts.get(query, ""),
            pool=size[query],
            judged=judged[query],
            answers=answers.get(query, 0),
            proposed=proposed.get(query, 0),
            assessors=tuple(sorted(who.get(query, ()))),
            uncertainty=uncertainty.get(query, float("nan")),
        )
        for query in sorted(size)
    )


def _questions_left(state: State, material: Material) -> int:
    """The questions that the campaign can still ask, at most: documents to grade, and pairs of the design."""
    pool, ask = material.asked, state.settings.ask
    documents = 0 if ask in ("preferences", "magnitudes") else sum(not state.given(question) for question in pool)
    pairs = 0 if ask in ("grades", "lists") else max(0, PER_DOCUMENT * len(pool) - len(state.counted_answers))
    return documents + pairs


def _left(
    snapshot: ModelSnapshot | None, state: State, judged: int, curve: Sequence[tuple[int, float]], unjudged: int
) -> tuple[int | None, int | None, int | None]:
    """Answers still needed, and the interval: by the forecast for this target if there is one, else by the curve."""
    stopping = state.settings.rule_to_stop
    budget = stopping.left(judged)
    most = unjudged if budget is None else min(unjudged, budget)
    ahead = None if snapshot is None else snapshot.forecast
    if ahead is None or snapshot is None or snapshot.reached or state.settings.ask != "grades":
        return judgments_left(curve, unjudged=most), None, None
    needed, lower, upper = (min(most, max(1, round(n) - judged)) for n in (ahead.needed, ahead.lower, ahead.upper))
    return needed, lower, upper
