"""The work of each assessor: pace, agreement with the others, generosity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.campaign.quality import ALARM, qualities
from probeval.campaign.snapshot import TendencyDocument
from probeval.campaign.state import State
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.data.votes import Votes
from probeval.reliability.agreement import krippendorff_alpha, weighted_kappa

__all__ = [
    "AssessorAgreement",
    "AssessorAgreementDocument",
    "Share",
    "ShareDocument",
    "agreements",
    "assessor_alpha",
    "assessor_bias",
    "grade_level",
    "quality_sentences",
    "shares",
    "tendencies",
]

PAUSE = 600.0  # a longer gap between judgments is a break, not judging time
FEWEST_SHARED = 10  # pairs with several opinions; the model of assessors needs as many
LEVEL = 0.95


class ShareDocument(TypedDict):
    """The work of one assessor.

    Parameters
    ----------
    judgments, skipped, flagged
        The numbers of their current judgments, and of the pairs that they skipped and flagged.
    seconds
        The median time per judgment, without breaks; null if unknown.
    shared, bias, bias_error
        The number of their pairs that others judged too, their mean difference from the others on these pairs, in
        grades, and its standard error.
    tendency, tendency_lower, tendency_upper
        How much more easily than the others they give high grades, by the model of assessors, in logits, with its 95%
        interval; null with fewer than ten pairs that several assessors judged.
    last
        The time of their latest judgment, in seconds since 1970; null if they made none here.
    alpha
        Krippendorff's alpha over the pairs that they and others judged; null if undefined.
    gold, gold_right, gold_lower, gold_upper
        The number of their answers to gold pairs, of the right ones, and the 95% interval of the share that is right.
    gold_bias, gold_bias_lower, gold_bias_upper
        The mean difference from the known grades, in grades, with its 95% interval; null if unknown.
    gold_p
        The p-value of being right less often than the others, corrected for the number of assessors; null with fewer
        than five answers.
    gold_left
        The number of gold pairs that they may still get.
    repeats, repeats_same, repeats_gap
        The number of pairs that they judged again, of those with the same grade, and the mean absolute difference.
    """

    assessor: str
    judgments: int
    skipped: int
    flagged: int
    seconds: float
    shared: int
    bias: float
    bias_error: float
    tendency: float
    tendency_lower: float
    tendency_upper: float
    last: float
    alpha: float
    gold: int
    gold_right: int
    gold_lower: float
    gold_upper: float
    gold_bias: float
    gold_bias_lower: float
    gold_bias_upper: float
    gold_p: float
    gold_left: int
    repeats: int
    repeats_same: int
    repeats_gap: float


@dataclass(frozen=True)
class Share:
    """The work of one assessor.

    Parameters
    ----------
    assessor
        Their name.
    judgments, skipped, flagged
        Pairs that they judged, skips and flags.
    seconds
        The median time per judgment, without breaks; NaN if unknown.
    shared
        Pairs that others judged too.
    bias
        The mean difference between their grades of these pairs and the others' mean; NaN if there are none.
    bias_error
        The standard error of the bias; NaN with fewer than two shared pairs.
    tendency, tendency_lower, tendency_upper
        How much more easily than the others they give high grades, by the model of assessors, in logits, with its 95%
        interval; NaN if unknown.
    last
        The time of their latest judgment made here; NaN if there is none.
    alpha
        Krippendorff's alpha over the pairs that they and others judged; NaN if undefined.
    gold, gold_right, gold_lower, gold_upper, gold_bias, gold_bias_lower, gold_bias_upper, gold_p, gold_left
        Their answers to gold pairs, as in :class:`Quality`.
    repeats, repeats_same, repeats_gap
        Their answers to repeated pairs, as in :class:`Quality`.
    """

    assessor: str
    judgments: int
    skipped: int
    flagged: int
    seconds: float
    shared: int
    bias: float
    bias_error: float
    tendency: float
    tendency_lower: float
    tendency_upper: float
    last: float
    alpha: float
    gold: int
    gold_right: int
    gold_lower: float
    gold_upper: float
    gold_bias: float
    gold_bias_lower: float
    gold_bias_upper: float
    gold_p: float
    gold_left: int
    repeats: int
    repeats_same: int
    repeats_gap: float

    @property
    def manner(self) -> str:
        """``"generous"`` or ``"strict"`` if the interval of the tendency excludes 0; otherwise empty."""
        return "generous" if self.tendency_lower > 0 else "strict" if self.tendency_upper < 0 else ""

    @property
    def is_worse(self) -> bool:
        """Whether their answers to gold pairs are significantly worse than those of the others."""
        return self.gold_p <= ALARM


class AssessorAgreementDocument(TypedDict):
    """The agreement of two assessors.

    Parameters
    ----------
    a, b
        The assessors.
    shared, equal
        The number of pairs that both judged, and of those with equal grades.
    kappa
        Cohen's kappa with quadratic weights; null if their grades do not vary.
    """

    a: str
    b: str
    shared: int
    equal: int
    kappa: float


@dataclass(frozen=True)
class AssessorAgreement:
    """The agreement of two assessors: the fields of :class:`AssessorAgreementDocument`."""

    a: str
    b: str
    shared: int
    equal: int
    kappa: float


def shares(
    state: State, who: Sequence[str], grades: Floats, tendency: Sequence[TendencyDocument]
) -> tuple[tuple[Share, ...], float]:
    """The work of each assessor, and the median time per judgment over all of them.

    Parameters
    ----------
    state
        The state of the campaign.
    who, grades
        The assessors, and their grades, shape (assessor, pair), NaN for none.
    tendency
        What the model of assessors found, by assessor.
    """
    made: dict[str, list[tuple[float, float | None]]] = {name: [] for name in who}
    for events in (*state.judged.values(), *state.controls.values()):
        for judgment in events:
            if not judgment.source and judgment.by in made:
                made[judgment.by].append((judgment.time, judgment.seconds))
    skipped, flagged = _count(state.skipped), _count(state.flags)
    known = {row["assessor"]: row for row in tendency}
    times = {name: spent(given) for name, given in made.items()}
    nothing = {"tendency": float("nan"), "lower": float("nan"), "upper": float("nan")}
    quality, rows = qualities(state, who), []
    for at, name in enumerate(who):
        bias, error, shared = assessor_bias(grades, at)
        found: Mapping[str, Any] = known.get(name, nothing)
        rows.append(
            Share(
                assessor=name,
                judgments=int((~np.isnan(grades[at])).sum()),
                skipped=skipped.get(name, 0),
                flagged=flagged.get(name, 0),
                seconds=_median(times[name]),
                shared=shared,
                bias=bias,
                bias_error=error,
                tendency=found["tendency"],
                tendency_lower=found["lower"],
                tendency_upper=found["upper"],
                last=max((time for time, _ in made[name]), default=float("nan")),
                alpha=assessor_alpha(grades, at, state.settings.scale),
                **asdict(quality[name]),
            )
        )
    return tuple(rows), _median([each for own in times.values() for each in own])


def spent(made: Sequence[tuple[float, float | None]]) -> list[float]:
    """The seconds spent on each judgment: as measured, otherwise the time since the one before it unless it is a break.

    Parameters
    ----------
    made
        The time of each judgment, and the seconds measured for it, or None.

    Examples
    --------
    >>> spent([(100.0, None), (110.0, None), (5000.0, 12.5), (9000.0, None)])
    [10.0, 12.5]
    """
    ordered = sorted(made, key=lambda each: each[0])
    found = []
    for before, (time, seconds) in zip([None, *ordered], ordered, strict=False):
        if seconds is not None:
            found.append(seconds)
        elif before is not None and time - before[0] <= PAUSE:
            found.append(time - before[0])
    return found


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else float("nan")


def _count(events: Mapping[Any, Sequence[Any]]) -> dict[str, int]:
    """The number of events of each person."""
    count: dict[str, int] = {}
    for several in events.values():
        for event in several:
            count[event.by] = count.get(event.by, 0) + 1
    return count


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
    judged = judged_by(grades, assessor)
    others = np.delete(judged, assessor, axis=0)
    both = ~np.isnan(others).all(axis=0)
    gap = judged[assessor, both] - np.nanmean(others[:, both], axis=0)
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")
    return float(gap.mean()) if len(gap) else float("nan"), error, len(gap)


def assessor_alpha(grades: Floats, assessor: int, scale: Scale) -> float:
    """Krippendorff's alpha over the pairs that an assessor and others judged; NaN if undefined.

    Parameters
    ----------
    grades
        Shape (assessor, pair), NaN for none.
    assessor
        The row of the assessor.
    scale
        The scale of the grades.

    Examples
    --------
    >>> grades = np.array([[2.0, 1.0, 0.0, np.nan], [1.0, 1.0, 0.0, 0.0], [np.nan, np.nan, np.nan, 2.0]])
    >>> [round(assessor_alpha(grades, at, Scale.graded(2)), 2) for at in range(3)]
    [0.78, 0.15, 0.0]
    """
    return krippendorff_alpha(judged_by(grades, assessor), level=grade_level(scale))


def judged_by(grades: Floats, assessor: int) -> Floats:
    """The grades of the pairs that an assessor judged, shape (assessor, pair).

    To look at these alone for each of many assessors takes time by their judgments, not by all pairs for each.
    """
    return np.asarray(grades[:, ~np.isnan(grades[assessor])])


def grade_level(scale: Scale) -> str:
    """The level of measurement of the grades: ordinal on a graded scale, interval on a fine one."""
    return "ordinal" if scale.bins is None else "interval"


def agreements(who: Sequence[str], grades: Floats) -> tuple[AssessorAgreement, ...]:
    """The agreement of every two assessors with pairs in common.

    Parameters
    ----------
    who, grades
        The assessors, and their grades, shape (assessor, pair), NaN for none.

    Examples
    --------
    >>> (found,) = agreements(["ann", "bob"], np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0]]))
    >>> found.shared, found.equal, round(found.kappa, 2)
    (3, 2, 0.67)
    """
    found = []
    for a in range(len(who)):
        judged = judged_by(grades, a)
        shared, equal = (~np.isnan(judged)).sum(axis=1), (judged == judged[a]).sum(axis=1)
        for b in (a + 1 + np.flatnonzero(shared[a + 1 :])).tolist():
            kappa = weighted_kappa(judged[a], judged[b], weights="quadratic")
            found.append(AssessorAgreement(who[a], who[b], int(shared[b]), int(equal[b]), kappa))
    return tuple(found)


def quality_sentences(assessors: Sequence[Share]) -> Iterator[str]:
    """How assessors answered gold and repeated pairs, and who is significantly worse on gold than the others."""
    gold, right = sum(share.gold for share in assessors), sum(share.gold_right for share in assessors)
    again, same = sum(share.repeats for share in assessors), sum(share.repeats_same for share in assessors)
    if gold:
        yield f"Gold pairs: {right:,} of {gold:,} answers right."
    if again:
        yield f"Repeated pairs: {same:,} of {again:,} answers the same as before."
    for share in assessors:
        if share.is_worse:
            others = f"the others {right - share.gold_right:,} of {gold - share.gold:,} (p {share.gold_p:.2g})"
            yield f"{share.assessor} is worse on gold pairs: {share.gold_right} of {share.gold} right, {others}."


def tendencies(state: State) -> tuple[TendencyDocument, ...]:
    r"""How easily each assessor gives high grades, by the model of assessors fitted to the pairs that several judged.

    The tendency of assessor a is the shift :math:`\beta_a` of their answers (docs/theory/votes.md) minus the mean of
    the others'. Its interval takes the estimates as independent, which makes it a little too wide. Empty with fewer
    than ten such pairs.
    """
    from probeval.relevance import aggregate_votes

    several = [pair for pair, events in state.judged.items() if len({judgment.by for judgment in events}) > 1]
    if len(several) < FEWEST_SHARED:
        return ()
    rows = pd.DataFrame(
        [
            (*pair, max(j.grade, state.settings.scale.grades[0]), who)
            for pair in several
            for who, j in state.latest(pair).items()
        ],
        columns=["query", "doc", "grade", "assessor"],
    )
    if rows["grade"].nunique() < 2:
        return ()
    given = Judgments.rows(
        rows["query"].tolist(), rows["doc"].tolist(), rows["grade"].to_numpy(), assessors=rows["assessor"].tolist()
    )
    table = aggregate_votes(Votes.of(given), scale=state.settings.scale, level=LEVEL).workers().sort_values("worker")
    shift, half = table["shift"].to_numpy(), (table["shift_upper"] - table["shift"]).to_numpy()
    n = len(shift)
    centre = shift - (shift.sum() - shift) / (n - 1)
    reach = np.sqrt(half**2 + ((half**2).sum() - half**2) / (n - 1) ** 2)
    return tuple(
        {"assessor": str(who), "tendency": float(c), "lower": float(c - r), "upper": float(c + r)}
        for who, c, r in zip(table["worker"], centre, reach, strict=True)
    )
