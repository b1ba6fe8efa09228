"""The status of a campaign: progress, assessors, agreement, remaining work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot, SnapshotDocument, judgments_left, way_come
from probeval.campaign.state import State
from probeval.data.scale import Scale
from probeval.display import Brief, Shown, View, fact_table
from probeval.reliability.agreement import krippendorff_alpha
from probeval.schema import records

__all__ = ["Share", "Status", "StatusDocument", "assessor_bias", "status_of"]

PAUSE = 600.0  # a longer gap between judgments is a break, not judging time


class ShareDocument(TypedDict):
    """The work of one assessor.

    Parameters
    ----------
    judgments, skipped, flagged
        The numbers of their current judgments, and of the pairs that they skipped and flagged.
    seconds
        The median time between judgments, without breaks; null if unknown.
    shared, bias, bias_error
        The number of their pairs that others judged too, their mean difference from the others on these pairs, in
        grades, and its standard error.
    """

    assessor: str
    judgments: int
    skipped: int
    flagged: int
    seconds: float
    shared: int
    bias: float
    bias_error: float


class StatusDocument(TypedDict):
    """The status of a campaign.

    Parameters
    ----------
    name, metric, scale, model, depth, policy, goal, stopping, rope, explore, opinions, lease, rule, seed
        The settings of the campaign.
    guideline, events
        The version of the guideline, 0 if there is none, and the number of events in the log.
    pool, judged, judgments
        Pairs of the pool, those with a grade, and current judgments.
    adjudicated, disagreements, flagged, leased
        Pairs that are settled, in open disagreement, flagged, and leased now.
    overlap, overlap_done
        Pairs of the pool that need several opinions, and those that have them.
    shared, alpha
        Pairs that several assessors judged, and Krippendorff's alpha over them.
    behind
        Judgments added, changed or withdrawn since the snapshot.
    seconds
        The median time per judgment.
    way, left
        The progress to the target, from 0 to 1, and the estimated number of judgments left.
    """

    name: str
    metric: str
    scale: str
    model: str
    depth: int
    policy: str
    goal: str
    stopping: str
    rope: float
    explore: float | None
    overlap: int
    opinions: int
    lease: float
    rule: str
    seed: int
    guideline: int
    events: int
    pool: int
    judged: int
    judgments: int
    adjudicated: int
    disagreements: int
    flagged: int
    leased: int
    overlap_done: int
    shared: int
    alpha: float
    assessors: list[ShareDocument]
    behind: int
    seconds: float
    way: float | None
    left: int | None
    snapshot: SnapshotDocument | None


@dataclass(frozen=True, repr=False)
class Share(Brief):
    """The work of one assessor.

    Parameters
    ----------
    assessor
        Their name.
    judgments, skipped, flagged
        Pairs that they judged, skips and flags.
    seconds
        The median time from one judgment to the next, without breaks; NaN if unknown.
    shared
        Pairs that others judged too.
    bias
        The mean difference between their grades of these pairs and the others' mean; NaN if there are none.
    bias_error
        The standard error of the bias; NaN with fewer than two shared pairs.
    """

    assessor: str
    judgments: int
    skipped: int
    flagged: int
    seconds: float
    shared: int
    bias: float
    bias_error: float


@dataclass(frozen=True, repr=False)
class Status(Shown):
    """The status of a campaign.

    Parameters
    ----------
    setup
        The settings.
    guideline
        The version of the guideline; 0 if there is none.
    events
        The number of events in the log.
    pool, judged, judgments
        Pairs of the pool, those with a grade, and all judgments (of other pairs too).
    adjudicated, disagreements, flagged
        Pairs that are settled, that are in dispute, and that are flagged.
    leased
        Pairs that are leased now.
    overlap, overlap_done
        Pairs of the pool that need several judgments, and those that have them.
    shared, alpha
        Pairs that several assessors judged, and Krippendorff's alpha over them (NaN if undefined).
    assessors
        The work of each assessor.
    snapshot
        The latest snapshot of the model, or None.
    behind
        Changes to the model's input since then.
    seconds
        The median time per judgment.
    way
        Progress to the target, from 0 at the first snapshot to 1; None before the first.
    left
        The estimated number of judgments still needed to meet the stopping rule; None if unknown.
    """

    setup: Setup
    guideline: int
    events: int
    pool: int
    judged: int
    judgments: int
    adjudicated: int
    disagreements: int
    flagged: int
    leased: int
    overlap: int
    overlap_done: int
    shared: int
    alpha: float
    assessors: tuple[Share, ...]
    snapshot: ModelSnapshot | None
    behind: int
    seconds: float
    way: float | None
    left: int | None

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        setup, snapshot = self.setup, self.snapshot
        yield f"{setup.name}: {setup.metric}, scale {setup.scale}, model {setup.model}, policy {setup.policy}."
        yield f"{self.judged:,} of {self.pool:,} pairs judged, {self.leased:,} leased now."
        if self.overlap:
            yield f"Overlap: {self.overlap_done:,} of {self.overlap:,} pairs have all {setup.opinions} judgments."
        if self.shared:
            yield f"Krippendorff's alpha {self.alpha:.3f} over {self.shared:,} pairs with several assessors."
        if self.disagreements or self.adjudicated:
            yield f"{self.disagreements:,} disagreements to settle, {self.adjudicated:,} settled."
        if snapshot is None:
            yield "The model has not run yet."
            return
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
            yield f"Target {setup.stopping}: about {self.left:,} more judgments{pace}."

    def to_frame(self) -> pd.DataFrame:
        """One row per assessor."""
        return pd.DataFrame([asdict(share) for share in self.assessors], columns=list(Share.__dataclass_fields__))

    def to_dict(self) -> StatusDocument:
        """As plain data for JSON."""
        setup = self.setup
        return {
            "name": setup.name,
            "metric": setup.metric,
            "scale": str(setup.scale),
            "model": setup.model,
            "depth": setup.depth,
            "policy": setup.policy,
            "goal": setup.goal,
            "stopping": setup.stopping,
            "rope": setup.rope,
            "explore": setup.explore,
            "overlap": self.overlap,
            "opinions": setup.opinions,
            "lease": setup.lease,
            "rule": setup.rule,
            "seed": setup.seed,
            "guideline": self.guideline,
            "events": self.events,
            "pool": self.pool,
            "judged": self.judged,
            "judgments": self.judgments,
            "adjudicated": self.adjudicated,
            "disagreements": self.disagreements,
            "flagged": self.flagged,
            "leased": self.leased,
            "overlap_done": self.overlap_done,
            "shared": self.shared,
            "alpha": self.alpha,
            "assessors": records(self.to_frame(), ShareDocument),
            "behind": self.behind,
            "seconds": self.seconds,
            "way": self.way,
            "left": self.left,
            "snapshot": None if self.snapshot is None else self.snapshot.to_dict(),
        }

    def _headline(self) -> str:
        return f"{self.setup.name}, {self.setup.metric}, {self.judged:,} of {self.pool:,} pairs judged"

    def views(self) -> tuple[View, ...]:
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
        people = (View(self.to_frame(), "Assessors"),) if self.assessors else ()
        return (View(fact_table(about), self._headline()), *people)

    def sentences(self) -> tuple[str, ...]:
        """Progress, agreement of assessors, confidence of the ranking, remaining work."""
        return tuple(self._sentences())


def status_of(
    state: State,
    *,
    pool: Sequence[tuple[str, str]],
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
    times = {name: _gaps(state, name) for name in who}
    every = np.concatenate([*times.values(), np.empty(0)])
    return Status(
        setup=setup,
        guideline=state.guideline_version,
        events=state.number,
        pool=len(pool),
        judged=sum(pair in graded for pair in pool),
        judgments=sum(map(len, (state.latest(pair) for pair in state.judged))),
        adjudicated=len(state.adjudicated),
        disagreements=len(state.disagreements),
        flagged=len(state.flags),
        leased=sum(bool(state.holders(pair, now)) for pair in state.leases),
        overlap=len(overlap),
        overlap_done=sum(pair in graded and pair not in state.waiting for pair in overlap),
        shared=int(several.sum()),
        alpha=krippendorff_alpha(grades, level=_level(setup.scale)) if several.any() else float("nan"),
        assessors=tuple(_share(state, name, grades, at, times[name]) for at, name in enumerate(who)),
        snapshot=snapshot,
        behind=behind,
        seconds=float(np.median(every)) if every.size else float("nan"),
        way=way_come(curve),
        left=judgments_left(curve, unjudged=sum(pair not in state.judged for pair in pool)),
    )


def _share(state: State, name: str, grades: Floats, at: int, gaps: Floats) -> Share:
    bias, error, shared = assessor_bias(grades, at)
    return Share(
        assessor=name,
        judgments=int((~np.isnan(grades[at])).sum()),
        skipped=sum(skip.by == name for skips in state.skipped.values() for skip in skips),
        flagged=sum(flag.by == name for flags in state.flags.values() for flag in flags),
        seconds=float(np.median(gaps)) if gaps.size else float("nan"),
        shared=shared,
        bias=bias,
        bias_error=error,
    )


def assessor_bias(grades: Floats, assessor: int) -> tuple[float, float, int]:
    r"""The bias of an assessor against the others, its standard error, and the number of shared pairs.

    .. math:: b_a = \frac{1}{|P_a|} \sum_{p \in P_a} \Big( g_{ap} - \frac{1}{m_p - 1} \sum_{a' \ne a} g_{a'p} \Big),

    with :math:`P_a` the pairs that a and others judged, and :math:`m_p` the number of assessors of pair p.

    Parameters
    ----------
    grades
        Shape (assessor, pair), NaN for none.
    assessor
        The row of the assessor.

    Examples
    --------
    >>> grades = np.array([[2.0, 1.0, np.nan], [1.0, 1.0, 0.0]])
    >>> assessor_bias(grades, 0)
    (0.5, 0.5, 2)
    """
    others = np.delete(grades, assessor, axis=0)
    both = ~np.isnan(grades[assessor]) & ~np.isnan(others).all(axis=0)
    gap = grades[assessor, both] - np.nanmean(others[:, both], axis=0)
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")
    return float(gap.mean()) if len(gap) else float("nan"), error, len(gap)


def _gaps(state: State, assessor: str) -> Floats:
    """The seconds between an assessor's judgments made here, without breaks."""
    times = sorted(j.time for events in state.judged.values() for j in events if j.by == assessor and not j.source)
    gaps = np.diff(np.array(times))
    return np.asarray(gaps[gaps <= PAUSE])


def _level(scale: Scale) -> str:
    """The level of measurement of the grades: ordinal on a graded scale, interval on a fine one."""
    return "ordinal" if scale.bins is None else "interval"
