"""How a campaign goes: what is done, who did it, how far they agree, what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot, judgments_left, way_come
from probeval.campaign.state import State
from probeval.data.scale import Scale
from probeval.reliability.agreement import krippendorff_alpha

__all__ = ["Share", "Status", "assessor_bias", "status_of"]

PAUSE = 600.0  # seconds after which somebody was away, not judging


@dataclass(frozen=True)
class Share:
    """What one assessor has done.

    Parameters
    ----------
    assessor
        Who.
    judgments
        How many of theirs stand.
    seconds
        The median time from one judgment to the next, pauses aside; NaN where unknown.
    shared
        How many of their pairs others judged too.
    bias
        How much higher than the others' mean they judge these, in grades, on average; NaN where there is none.
    bias_error
        The standard error of that; NaN below two shared pairs.
    """

    assessor: str
    judgments: int
    skipped: int
    flagged: int
    seconds: float
    shared: int
    bias: float
    bias_error: float


@dataclass(frozen=True)
class Status:
    """How a campaign goes.

    Parameters
    ----------
    setup
        Its settings.
    guideline
        The version of the guideline, 0 where there is none.
    events
        In the log.
    pool, judged, judgments
        Pairs of the pool, those of them with a grade, and judgments that stand (of other pairs too).
    adjudicated, disagreements, flagged
        Pairs that were settled, that wait to be, and that somebody flagged.
    leased
        Pairs that somebody has now.
    overlap, overlap_done
        Pairs of the pool that want several opinions, and those that have them.
    shared, alpha
        Pairs that several assessors judged, and Krippendorff's alpha over them (NaN where it is not defined).
    assessors
        What each one has done.
    snapshot
        What the model said last, or None.
    behind
        Judgments that came, changed or went since.
    seconds
        The median time a judgment takes.
    way
        How much of the way to the target is done, from 0 at the first snapshot to 1; None before that.
    left
        How many more judgments until the stopping rule says stop, by estimate; None where unknown.
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
        yield f"{self.judged:,} of {self.pool:,} pairs judged; {self.leased:,} being judged now."
        if self.overlap:
            yield f"Overlap: {self.overlap_done:,} of {self.overlap:,} pairs have their {setup.opinions} opinions."
        if self.shared:
            yield f"Krippendorff's alpha {self.alpha:.3f} over {self.shared:,} pairs that several judged."
        if self.disagreements or self.adjudicated:
            yield f"{self.disagreements:,} disagreements to settle, {self.adjudicated:,} settled."
        if snapshot is None:
            yield "The model has not looked at it yet."
            return
        since = f", {self.behind:,} changes ago" if self.behind else ""
        yield f"Confidence {snapshot.confidence:.3f}, expected tau {snapshot.expected_tau:.3f}{since}."
        if snapshot.reached:
            yield f"Target met: {'; '.join(snapshot.reasons)}."
        elif self.left is None:
            yield f"Target {setup.stopping}: {self.way:.0%} of the way."
        else:
            hours = self.left * self.seconds / 3600
            pace = "" if np.isnan(hours) else f", {hours:.1f} hours at the present pace"
            yield f"Target {setup.stopping}: about {self.left:,} more judgments{pace}."

    def table(self) -> pd.DataFrame:
        """The assessors, one row each."""
        return pd.DataFrame([asdict(share) for share in self.assessors], columns=list(Share.__dataclass_fields__))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("setup", "snapshot")}
        snapshot = None if self.snapshot is None else {k: v for k, v in asdict(self.snapshot).items() if k != "queue"}
        setup = {**self.setup.to_dict(), "scale": str(self.setup.scale)}
        return {**setup, **plain, "assessors": self.table().to_dict("records"), "snapshot": snapshot}


def status_of(
    state: State,
    *,
    pool: Sequence[tuple[str, str]],
    now: float,
    snapshot: ModelSnapshot | None,
    behind: int,
    curve: Sequence[tuple[int, float]],
) -> Status:
    """How a campaign goes, from its state, the pairs of its pool, and judged pairs and progress of every snapshot."""
    setup = state.settings
    who, _, grades = state.table()
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
    r"""How much higher an assessor judges than the others do, its standard error, and over how many pairs.

    .. math:: b_a = \frac{1}{|P_a|} \sum_{p \in P_a} \Big( g_{ap} - \frac{1}{m_p - 1} \sum_{a' \ne a} g_{a'p} \Big),

    with :math:`P_a` the pairs that a and others judged, :math:`m_p` the number of assessors of a pair.

    Parameters
    ----------
    grades
        NaN where there is none, shape (assessor, pair).
    assessor
        Their row.

    Examples
    --------
    >>> said = np.array([[2.0, 1.0, np.nan], [1.0, 1.0, 0.0]])
    >>> assessor_bias(said, 0)
    (0.5, 0.5, 2)
    """
    others = np.delete(grades, assessor, axis=0)
    both = ~np.isnan(grades[assessor]) & ~np.isnan(others).all(axis=0)
    gap = grades[assessor, both] - np.nanmean(others[:, both], axis=0)
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")
    return float(gap.mean()) if len(gap) else float("nan"), error, len(gap)


def _gaps(state: State, assessor: str) -> Floats:
    """The seconds between an assessor's judgments made here, pauses aside."""
    times = sorted(j.time for said in state.judged.values() for j in said if j.by == assessor and not j.source)
    gaps = np.diff(np.array(times))
    return np.asarray(gaps[gaps <= PAUSE])


def _level(scale: Scale) -> str:
    """What differences of grades mean: order on a graded scale, amounts on a fine one."""
    return "ordinal" if scale.bins is None else "interval"
