"""The status of a campaign: progress, assessors, agreement, remaining work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict, cast

import numpy as np
import pandas as pd

from probeval.campaign.advice import advice, counted
from probeval.campaign.comparers import Comparer, ComparerDocument, comparer_sentences, comparers
from probeval.campaign.comparison_events import Compared
from probeval.campaign.events import Pair, Phase
from probeval.campaign.query_progress import QueryProgress, QueryProgressDocument, query_progress
from probeval.campaign.questions import PER_DOCUMENT, seconds_per_answer
from probeval.campaign.setup import Setup
from probeval.campaign.shares import (
    AssessorAgreement,
    AssessorAgreementDocument,
    Share,
    ShareDocument,
    agreements,
    grade_level,
    quality_sentences,
    shares,
)
from probeval.campaign.snapshot import ModelSnapshot, SnapshotDocument, judgments_left, target_confidence, way_come
from probeval.campaign.state import State
from probeval.display import Table, fact_table
from probeval.reliability.agreement import krippendorff_alpha
from probeval.results import Result
from probeval.schema import records
from probeval.selection import Stopping

__all__ = ["Status", "StatusDocument", "status_of"]


class StatusDocument(TypedDict):
    """The status of a campaign.

    Parameters
    ----------
    name, metric, scale, grade_words, model, depth, policy, goal, stopping, rope, explore, opinions, lease, rule,
    topics, stay, seed
        The settings of the campaign.
    gold_share, repeat_share
        The shares of an assessor's tasks that are gold pairs and repeated ones.
    phase
        Whether the campaign is open, paused or closed.
    guideline, events
        The version of the guideline, 0 if there is none, and the number of events in the log.
    ask
        What assessors are asked: grades, preferences, magnitudes or mixed.
    pool, judged, judgments
        Pairs of the pool, those with a grade, and current judgments.
    answers, preferences, magnitudes
        Current answers about two documents, those with a choice, and those with numbers.
    adjudicated, disagreements, flagged, leased
        Pairs that are settled other than as gold, in open disagreement, flagged, and questions leased now.
    settled, contested
        Comparisons whose answer is settled, and those in open disagreement.
    gold, gold_orders
        Pairs with a known grade, and comparisons with a known answer.
    overlap, overlap_done
        Pairs of the pool that need several opinions, and those that have them.
    shared, alpha
        Pairs that several assessors judged, and Krippendorff's alpha over them.
    behind
        Judgments added, changed or withdrawn since the snapshot.
    seconds, paces
        The median time per judgment; and the seconds that a grade, a preference and the numbers of two documents take:
        the median of the latest ones, or with few of them what is usual.
    comparers
        The answers of each assessor about two documents.
    way, left, left_lower, left_upper
        The progress to the target, from 0 to 1, and the estimated number of judgments left, with its 90% interval where
        there is a forecast.
    agreements, queries
        The agreement of every two assessors, and the progress of each query.
    advice
        What to do next.
    """

    name: str
    metric: str
    scale: str
    grade_words: list[str]
    model: str
    depth: int
    policy: str
    goal: str
    stopping: str
    rope: float
    explore: float | None
    overlap: int
    opinions: int
    gold_share: float
    repeat_share: float
    lease: float
    rule: str
    topics: str
    stay: float
    seed: int
    phase: Phase
    guideline: int
    events: int
    ask: str
    pool: int
    judged: int
    judgments: int
    answers: int
    preferences: int
    magnitudes: int
    gold: int
    gold_orders: int
    adjudicated: int
    settled: int
    disagreements: int
    contested: int
    flagged: int
    leased: int
    overlap_done: int
    shared: int
    alpha: float
    assessors: list[ShareDocument]
    comparers: list[ComparerDocument]
    agreements: list[AssessorAgreementDocument]
    queries: list[QueryProgressDocument]
    behind: int
    seconds: float
    paces: dict[str, float]
    way: float | None
    left: int | None
    left_lower: int | None
    left_upper: int | None
    advice: list[str]
    snapshot: SnapshotDocument | None


@dataclass(frozen=True, repr=False)
class Status(Result):
    """The status of a campaign.

    Parameters
    ----------
    setup
        The settings.
    phase, phase_reason
        Whether the campaign is open, paused or closed, and the reason that the owner gave, if any.
    guideline
        The version of the guideline; 0 if there is none.
    events
        The number of events in the log.
    pool, judged, judgments
        Pairs of the pool, those with a grade, and all judgments (of other pairs too).
    answers, preferences, magnitudes
        Answers about two documents, those with a choice, and those with numbers.
    gold, gold_orders
        Pairs with a known grade, and comparisons with a known answer.
    adjudicated, disagreements, flagged
        Pairs that are settled other than as gold, that are in dispute, and that are flagged.
    settled, contested
        Comparisons that are settled, and that are in dispute.
    leased
        Questions that are leased now.
    overlap, overlap_done
        Pairs of the pool that need several judgments, and those that have them.
    shared, alpha
        Pairs that several assessors judged, and Krippendorff's alpha over them (NaN if undefined).
    assessors, comparers
        The judgments of each assessor, and their answers about two documents.
    snapshot
        The latest snapshot of the model, or None.
    behind
        Changes to the model's input since then.
    seconds, paces
        The median time per judgment or answer, and the seconds that an answer of each kind takes.
    way
        Progress to the target, from 0 at the first snapshot to 1; None before the first.
    left, left_lower, left_upper
        The estimated number of judgments still needed to meet the stopping rule, and its 90% interval; None if unknown.
    agreements, queries
        The agreement of every two assessors, and the progress of each query.
    time
        The time of the status, in seconds since 1970.
    """

    setup: Setup
    phase: Phase
    phase_reason: str
    guideline: int
    events: int
    pool: int
    judged: int
    judgments: int
    answers: int
    preferences: int
    magnitudes: int
    gold: int
    gold_orders: int
    adjudicated: int
    settled: int
    disagreements: int
    contested: int
    flagged: int
    leased: int
    overlap: int
    overlap_done: int
    shared: int
    alpha: float
    assessors: tuple[Share, ...]
    comparers: tuple[Comparer, ...]
    snapshot: ModelSnapshot | None
    behind: int
    seconds: float
    paces: Mapping[str, float]
    way: float | None
    left: int | None
    left_lower: int | None
    left_upper: int | None
    agreements: tuple[AssessorAgreement, ...]
    queries: tuple[QueryProgress, ...]
    time: float

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        setup, snapshot = self.setup, self.snapshot
        yield f"{setup.name}: {setup.metric}, scale {setup.scale}, model {setup.model}, policy {setup.policy}."
        if self.phase is not Phase.open:
            why = f" ({self.phase_reason})" if self.phase_reason else ""
            yield f"The campaign is {self.phase}{why}: no pairs are given out, and no judgments are taken."
        yield f"{self.judged:,} of {self.pool:,} pairs judged, {self.leased:,} leased now."
        if self.answers or setup.ask != "grades":
            kinds = f"{self.preferences:,} with a choice, {self.magnitudes:,} with numbers"
            yield f"Asked for {setup.ask}: {counted(self.answers, 'answer')} about two documents ({kinds})."
        if self.overlap:
            yield f"Overlap: {self.overlap_done:,} of {self.overlap:,} pairs have all {setup.opinions} judgments."
        if self.shared:
            yield f"Krippendorff's alpha {self.alpha:.3f} over {self.shared:,} pairs with several assessors."
        for share in self.assessors:
            if share.manner:
                between = f"{share.tendency_lower:+.2f} to {share.tendency_upper:+.2f}"
                yield f"{share.assessor} is {share.manner}: {share.tendency:+.2f} logits ({between})."
        yield from quality_sentences(self.assessors)
        yield from comparer_sentences(self.comparers)
        if self.contested or self.settled:
            yield f"{self.contested:,} comparisons in dispute, {self.settled:,} settled."
        if self.disagreements or self.adjudicated:
            yield f"{self.disagreements:,} disagreements to settle, {self.adjudicated:,} settled."
        if snapshot is None:
            yield "The model has not run yet."
            return
        if self.answers and not snapshot.uses_answers:
            yield f"The model {setup.model} does not use answers about two documents: they change no score."
        since = f", {self.behind:,} changes ago" if self.behind else ""
        yield f"Confidence {snapshot.confidence:.3f}, expected tau {snapshot.expected_tau:.3f}{since}."
        if snapshot.audit is not None:
            yield from snapshot.audit.sentences()
        if snapshot.reached:
            yield f"Target met: {'; '.join(snapshot.reasons)}."
        elif self.left is None:
            yield f"Target {setup.stopping}: {self.way:.0%} of the way."
        else:
            hours = self.left * self.seconds / 3600
            pace = "" if np.isnan(hours) else f", {hours:.1f} hours at the current pace"
            between = "" if self.left_lower is None else f" ({self.left_lower:,} to {self.left_upper:,})"
            yield f"Target {setup.stopping}: about {self.left:,} more judgments{between}{pace}."

    def to_frame(self) -> pd.DataFrame:
        """One row per assessor."""
        return pd.DataFrame([asdict(share) for share in self.assessors], columns=list(Share.__dataclass_fields__))

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most important first."""
        return advice(self, self.time)

    def to_dict(self) -> StatusDocument:
        """As plain data for JSON."""
        setup = self.setup
        return {
            "name": setup.name,
            "metric": setup.metric,
            "scale": str(setup.scale),
            "grade_words": list(setup.grade_words),
            "model": setup.model,
            "depth": setup.depth,
            "policy": setup.policy,
            "goal": setup.goal,
            "stopping": setup.stopping,
            "rope": setup.rope,
            "explore": setup.explore,
            "overlap": self.overlap,
            "opinions": setup.opinions,
            "gold_share": setup.gold_share,
            "repeat_share": setup.repeat_share,
            "lease": setup.lease,
            "topics": setup.topics,
            "stay": setup.stay,
            "rule": setup.rule,
            "seed": setup.seed,
            "phase": self.phase,
            "guideline": self.guideline,
            "events": self.events,
            "ask": setup.ask,
            "pool": self.pool,
            "judged": self.judged,
            "judgments": self.judgments,
            "answers": self.answers,
            "preferences": self.preferences,
            "magnitudes": self.magnitudes,
            "gold": self.gold,
            "gold_orders": self.gold_orders,
            "adjudicated": self.adjudicated,
            "settled": self.settled,
            "disagreements": self.disagreements,
            "contested": self.contested,
            "flagged": self.flagged,
            "leased": self.leased,
            "overlap_done": self.overlap_done,
            "shared": self.shared,
            "alpha": self.alpha,
            "assessors": records(self.to_frame(), ShareDocument),
            "comparers": [cast("ComparerDocument", asdict(each)) for each in self.comparers],
            "agreements": [cast("AssessorAgreementDocument", asdict(each)) for each in self.agreements],
            "queries": [cast("QueryProgressDocument", asdict(each)) for each in self.queries],
            "behind": self.behind,
            "seconds": self.seconds,
            "paces": dict(self.paces),
            "way": self.way,
            "left": self.left,
            "left_lower": self.left_lower,
            "left_upper": self.left_upper,
            "advice": list(self.advice),
            "snapshot": None if self.snapshot is None else self.snapshot.to_dict(),
        }

    def _headline(self) -> str:
        return f"{self.setup.name}, {self.setup.metric}, {self.judged:,} of {self.pool:,} pairs judged"

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
        if self.snapshot is not None:
            about["confidence"] = f"{self.snapshot.confidence:.3f}"
        people = (Table(self.to_frame(), "Assessors"),) if self.assessors else ()
        if self.comparers:
            compared = pd.DataFrame([asdict(each) for each in self.comparers])
            people = (*people, Table(compared, "Answers about two documents"))
        return (Table(fact_table(about), self._headline()), *people)

    def sentences(self) -> tuple[str, ...]:
        """Progress, agreement and quality of assessors, confidence of the ranking, remaining work."""
        return tuple(self._sentences())


def status_of(
    state: State,
    *,
    pool: Sequence[Pair],
    now: float,
    snapshot: ModelSnapshot | None,
    behind: int,
    curve: Sequence[tuple[int, float]],
) -> Status:
    """The status, from the state, the pairs of the pool, and the judged pairs and progress of every snapshot."""
    setup = state.settings
    who, _, grades = state.grade_matrix()
    several = (~np.isnan(grades)).sum(axis=0) > 1
    graded = state.judged.keys() | state.adjudicated.keys()
    overlap = [pair for pair in pool if setup.overlap and setup.wanted(*pair) > 1]
    tendency = () if snapshot is None else snapshot.tendencies
    work, seconds = shares(state, who, grades, tendency)
    judged = sum(pair in graded for pair in pool)
    given = state.counted_answers
    timed = [each for times in state.paces.values() for each in times] if setup.ask != "grades" else []
    left, lower, upper = _left(snapshot, setup, judged + len(given), curve, _questions_left(state, pool))
    return Status(
        setup=setup,
        phase=state.phase,
        phase_reason="" if state.phase_change is None else state.phase_change.reason,
        guideline=state.guideline_version,
        events=state.number,
        pool=len(pool),
        judged=judged,
        judgments=sum(map(len, (state.latest(pair) for pair in state.judged))),
        answers=len(given),
        preferences=sum(bool(answer.choice) for answer in given),
        magnitudes=sum(isinstance(answer, Compared) and answer.left_number is not None for answer in given),
        gold=len(state.gold),
        gold_orders=len(state.gold_orders),
        settled=len(state.settled),
        contested=len(state.contested),
        adjudicated=sum(pair not in state.gold for pair in state.adjudicated),
        disagreements=len(state.disagreements),
        flagged=len(state.flags),
        leased=sum(bool(state.holders(pair, now)) for pair in state.leases),
        overlap=len(overlap),
        overlap_done=sum(pair in graded and pair not in state.waiting for pair in overlap),
        shared=int(several.sum()),
        alpha=krippendorff_alpha(grades, level=grade_level(setup.scale)) if several.any() else float("nan"),
        assessors=work,
        comparers=comparers(state, () if snapshot is None else snapshot.answering),
        snapshot=snapshot,
        behind=behind,
        seconds=float(np.median(timed)) if timed else seconds,
        paces=seconds_per_answer(state),
        way=way_come(curve),
        left=left,
        left_lower=lower,
        left_upper=upper,
        agreements=agreements(who, grades),
        queries=query_progress(state, pool, snapshot),
        time=now,
    )


def _questions_left(state: State, pool: Sequence[Pair]) -> int:
    """The questions that the campaign can still ask, at most: documents to grade, and pairs of the design."""
    ask = state.settings.ask
    documents = 0 if ask in ("preferences", "magnitudes") else sum(pair not in state.judged for pair in pool)
    pairs = 0 if ask == "grades" else max(0, PER_DOCUMENT * len(pool) - len(state.counted_answers))
    return documents + pairs


def _left(
    snapshot: ModelSnapshot | None, setup: Setup, judged: int, curve: Sequence[tuple[int, float]], unjudged: int
) -> tuple[int | None, int | None, int | None]:
    """Answers still needed, and the interval: by the forecast for this target if there is one, else by the curve."""
    stopping = Stopping.parse(setup.stopping)
    ahead = None if snapshot is None else snapshot.forecast
    current = ahead is not None and setup.ask == "grades" and ahead["target"] == target_confidence(stopping)
    if ahead is None or snapshot is None or snapshot.reached or not current:
        return judgments_left(curve, unjudged=unjudged), None, None
    budget = stopping.left(judged)
    most = unjudged if budget is None else min(unjudged, budget)
    needed, lower, upper = (min(most, max(1, round(ahead[key]) - judged)) for key in ("needed", "lower", "upper"))
    return needed, lower, upper
