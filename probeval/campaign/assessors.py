"""The work of assessors: how much and how fast they judge and compare, how they agree, and how they answer checks.

What follows for each assessor is in ``verdicts.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd
from scipy.special import betaincinv, stdtrit

from probeval.arrays import Floats
from probeval.campaign.candidates import Material
from probeval.campaign.events import Answered, TaskPurpose
from probeval.campaign.kinds import Compared, Judged, ListsCompared
from probeval.campaign.kinds.grade import is_right
from probeval.campaign.kinds.lists import ListMaterial
from probeval.campaign.leases import gold_left
from probeval.campaign.questions import COMPARISON, GRADE, graded, kind_of
from probeval.campaign.snapshot import Tendency
from probeval.campaign.state import MADE, State
from probeval.data.answers import RELEVANT
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.data.votes import Votes
from probeval.display import counted
from probeval.preferences.quality import contradictions, wilson_interval
from probeval.relevance.answers.verdicts import AnsweringAssessor
from probeval.reliability.agreement import krippendorff_alpha, weighted_kappa

__all__ = [
    "AssessorAgreement",
    "CheckedWork",
    "Comparer",
    "Respondent",
    "Share",
    "agreements",
    "assessor_alpha",
    "assessor_bias",
    "comparer_sentences",
    "comparers",
    "grade_level",
    "quality_sentences",
    "respondents",
    "share_interval",
    "shares",
    "side_by_query",
    "tendencies",
    "user_sentences",
]

PAUSE = 600.0  # a longer gap between judgments is a break, not judging time
FEWEST_SHARED = 10  # pairs with several opinions; the model of assessors needs as many
LEVEL = 0.95
NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class CheckedWork:
    """The work of one assessor, and how they answered gold and repeated questions; NaN (null in JSON) if unknown."""

    assessor: str
    seconds: Annotated[float, "The median time per answer, without breaks; null if unknown."]
    last: Annotated[float, "The time of their latest answer, in seconds since 1970; null if they gave none here."]
    gold: Annotated[int, "The number of their answers to gold questions."]
    gold_right: Annotated[int, "The number of right answers to gold questions."]
    gold_lower: Annotated[float, "The lower end of the 95% interval of the share of right answers."]
    gold_upper: Annotated[float, "The upper end of the 95% interval of the share of right answers."]
    gold_left: Annotated[int, "The number of gold questions that they may still get."]
    repeats: Annotated[
        int, "The number of questions that they answered again; two documents come with sides exchanged."
    ]
    repeats_same: Annotated[int, "The number of these with the same answer."]


@dataclass(frozen=True, kw_only=True)
class Share(CheckedWork):
    """The grades of one assessor; NaN (null in JSON) for what is not known."""

    judgments: Annotated[int, "The number of their current judgments."]
    skipped: Annotated[int, "The number of pairs that they skipped."]
    flagged: Annotated[int, "The number of pairs that they flagged."]
    shared: Annotated[int, "The number of their pairs that others judged too."]
    bias: Annotated[float, "Their mean difference from the others on these pairs, in grades; null if there are none."]
    bias_error: Annotated[float, "The standard error of the bias; null with fewer than two shared pairs."]
    tendency: Annotated[
        float,
        "How much more easily than the others they give high grades, by the model of assessors, in logits; null with "
        "fewer than ten pairs that several assessors judged.",
    ]
    tendency_lower: Annotated[float, "The lower end of its 95% interval."]
    tendency_upper: Annotated[float, "The upper end of its 95% interval."]
    alpha: Annotated[float, "Krippendorff's alpha over the pairs that they and others judged; null if undefined."]
    gold_bias: Annotated[float, "The mean difference from the known grades, in grades; null if unknown."]
    gold_bias_lower: Annotated[float, "The lower end of its 95% interval; null if unknown."]
    gold_bias_upper: Annotated[float, "The upper end of its 95% interval; null if unknown."]
    repeats_gap: Annotated[float, "The mean absolute difference of two grades of a pair; null if there are none."]
    adjudicated: Annotated[int, "The number of their grades of pairs that an adjudicator settled."]
    overruled: Annotated[int, "The number of these that an adjudicator overruled."]

    @property
    def manner(self) -> str:
        """``"generous"`` or ``"strict"`` if the interval of the tendency excludes 0; otherwise empty."""
        return "generous" if self.tendency_lower > 0 else "strict" if self.tendency_upper < 0 else ""


@dataclass(frozen=True, kw_only=True)
class Comparer(CheckedWork):
    """The answers of one assessor about two documents; NaN (null in JSON) for what is not known."""

    answers: Annotated[int, "The number of their current answers."]
    preferences: Annotated[int, "The number of answers with a choice."]
    magnitudes: Annotated[int, "The number of answers with numbers."]
    violated: Annotated[int, "The fewest of their preferences that any order of the documents goes against."]
    contradictions: Annotated[
        float, "The share of documents in such preferences, the mean over queries; null without a preference."
    ]
    left: Annotated[float, "The share of preferences for the document on the left; null without one."]
    left_lower: Annotated[float, "The lower end of its 95% interval over queries."]
    left_upper: Annotated[float, "The upper end of its 95% interval over queries."]
    relevant: Annotated[float, "The share of documents that they called relevant; null if they were not asked."]
    relevant_lower: Annotated[float, "The lower end of its 95% interval."]
    relevant_upper: Annotated[float, "The upper end of its 95% interval."]
    manner: Annotated[
        str, "``generous`` or ``strict`` if that interval excludes the share of the others; otherwise empty."
    ]
    verdict: Annotated[
        str,
        "The verdict of the model at its last run: ``attentive``, ``careless`` (the answers do not depend on "
        "relevance), ``reversed`` or ``unclear``; empty if the model does not use answers.",
    ]
    careless: Annotated[float, "The probability that they are careless; null if the model does not use answers."]
    reversed: Annotated[float, "The probability that they are reversed; null if the model does not use answers."]

    @property
    def is_bad(self) -> bool:
        """Whether by the model their answers do not depend on relevance, or are reversed."""
        return self.verdict in ("careless", "reversed")


@dataclass(frozen=True, kw_only=True)
class Respondent(CheckedWork):
    """The answers of one person about two lists, whose gold questions are traps; or to questions of another kind."""

    answers: Annotated[int, "The number of their answers, traps included."]
    skipped: Annotated[int, "The number of questions that they skipped."]


@dataclass(frozen=True)
class AssessorAgreement:
    """The agreement of two assessors."""

    a: str
    b: str
    shared: Annotated[int, "The number of pairs that both judged."]
    equal: Annotated[int, "The number of these with equal grades."]
    kappa: Annotated[float, "Cohen's kappa with quadratic weights; null if their grades do not vary."]


def shares(
    state: State, who: Sequence[str], grades: Floats, tendency: Sequence[Tendency]
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
    for name in who:
        own = state.own.get(name)
        given = () if own is None else (answer for answer in own.answers() if answer.asks == GRADE)
        made[name] = [(answer.time, answer.seconds) for answer in given]
    skipped, flagged = _count(state.skipped), _count(state.flags)
    known = {each.assessor: each for each in tendency}
    times = {name: spent(given) for name, given in made.items()}
    checks = _checks(state, GRADE)
    settled = _settled(state)
    found = []
    for at, name in enumerate(who):
        bias, error, shared = assessor_bias(grades, at)
        checked = checks.get(name, _Checks())
        gaps = [_grade(answer) - known for answer, known in checked.on_gold]
        again = [_grade(answer) - _grade(before) for answer, before in checked.again]
        gold_bias, gold_bias_lower, gold_bias_upper = _mean_interval(gaps)
        manner = known.get(name, Tendency(name, NAN, NAN, NAN))
        found.append(
            Share(
                **checked.figures(checked.gold),
                assessor=name,
                judgments=int((~np.isnan(grades[at])).sum()),
                skipped=skipped.get(name, 0),
                flagged=flagged.get(name, 0),
                seconds=_median(times[name]),
                shared=shared,
                bias=bias,
                bias_error=error,
                tendency=manner.tendency,
                tendency_lower=manner.lower,
                tendency_upper=manner.upper,
                last=max((time for time, _ in made[name]), default=NAN),
                alpha=assessor_alpha(grades, at, state.settings.scale),
                gold_bias=gold_bias,
                gold_bias_lower=gold_bias_lower,
                gold_bias_upper=gold_bias_upper,
                gold_left=gold_left(state, name, GRADE),
                repeats_gap=float(np.mean(np.abs(again))) if again else NAN,
                adjudicated=len(settled.get(name, ())),
                overruled=sum(settled.get(name, ())),
            )
        )
    return tuple(found), _median([each for own in times.values() for each in own])


@dataclass
class _Checks:
    """The answers of an assessor to gold questions with the known answers, and to repeated ones with the first."""

    on_gold: list[tuple[Answered, Any]] = field(default_factory=list)
    again: list[tuple[Answered, Answered]] = field(default_factory=list)
    right: int = 0

    @property
    def gold(self) -> tuple[int, int]:
        """Right answers to gold questions, and all of them."""
        return self.right, len(self.on_gold)

    def figures(self, gold: tuple[int, int]) -> dict[str, Any]:
        """The fields of :class:`CheckedWork` that come from these, and from right answers to gold and all of them."""
        right, n = gold
        lower, upper = share_interval(right, n)
        return {
            "gold": n,
            "gold_right": right,
            "gold_lower": lower,
            "gold_upper": upper,
            "repeats": len(self.again),
            "repeats_same": sum(answer.asked.is_same(answer, before) for answer, before in self.again),
        }


def _checks(state: State, kind: str) -> dict[str, _Checks]:
    """How each assessor answered the gold and repeated questions of a kind."""
    found: dict[str, _Checks] = {}
    asked = kind_of(kind)
    for question, answers in state.answers.items():
        if question.kind != kind or all(answer.counts for answer in answers):
            continue
        first = state.made(question)
        for (name, purpose), answer in {(a.by, a.purpose): a for a in answers if a.purpose not in MADE}.items():
            own = found.setdefault(name, _Checks())
            if purpose is TaskPurpose.gold and question in state.gold:
                own.on_gold.append((answer, state.gold[question]))
                own.right += asked.is_right(answer, state.gold[question], state.settings)
            elif purpose is TaskPurpose.repeat and name in first:
                own.again.append((answer, first[name]))
    return found


def _settled(state: State) -> dict[str, list[bool]]:
    """Whether each grade of an assessor that an adjudicator looked at was overruled, by assessor."""
    found: dict[str, list[bool]] = {}
    for pair, settled in state.adjudicated.items():
        if not settled.is_gold:
            for name, answer in state.made(graded(*pair)).items():
                right = is_right(state.settings.scale, _grade(answer), settled.grade)
                found.setdefault(name, []).append(not right)
    return found


def _joined(several: Sequence[_Checks]) -> _Checks:
    """The checks of an assessor by questions of several kinds."""
    on_gold, again = ([pair for one in several for pair in getattr(one, name)] for name in ("on_gold", "again"))
    return _Checks(on_gold, again, sum(one.right for one in several))


def _grade(answer: Answered) -> float:
    return cast("Judged", answer).grade


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
    return float(np.median(values)) if values else NAN


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
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else NAN
    return float(gap.mean()) if len(gap) else NAN, error, len(gap)


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


def tendencies(state: State) -> tuple[Tendency, ...]:
    r"""How easily each assessor gives high grades, by the model of assessors fitted to the pairs that several judged.

    The tendency of assessor a is the shift :math:`\beta_a` of their answers (docs/theory/votes.md) minus the mean of
    the others'. Its interval takes the estimates as independent, which makes it a little too wide. Empty with fewer
    than ten such pairs.
    """
    from probeval.relevance import aggregate_votes

    latest = {pair: {judgment.by: judgment for judgment in events} for pair, events in state.judged.items()}
    several = [pair for pair, own in latest.items() if len(own) > 1]
    if len(several) < FEWEST_SHARED:
        return ()
    rows = pd.DataFrame(
        [
            (*pair, max(j.grade, state.settings.scale.grades[0]), who)
            for pair in several
            for who, j in latest[pair].items()
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
        Tendency(str(who), float(c), float(c - r), float(c + r))
        for who, c, r in zip(table["worker"], centre, reach, strict=True)
    )


def share_interval(k: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share of which ``k`` of ``n`` were seen, by Jeffreys' prior; NaN without any.

    >>> [round(end, 2) for end in share_interval(8, 10)]
    [0.5, 0.96]
    """
    if not n:
        return NAN, NAN
    tail = (1 - LEVEL) / 2
    lower, upper = (float(betaincinv(k + 0.5, n - k + 0.5, at)) for at in (tail, 1 - tail))
    return lower if k else 0.0, upper if k < n else 1.0


def _mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean and its 95% t-interval; the interval is NaN if fewer than two values differ."""
    if not values:
        return NAN, NAN, NAN
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if not sd:
        return mean, NAN, NAN
    reach = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * sd / np.sqrt(len(values))
    return mean, float(mean - reach), float(mean + reach)


def comparers(state: State, verdicts: Sequence[AnsweringAssessor]) -> tuple[Comparer, ...]:
    """The answers of each assessor who compared documents here or in an imported file, by name.

    Parameters
    ----------
    state
        The state of the campaign.
    verdicts
        The verdicts of the model on assessors.
    """
    found = {one.assessor: one for one in verdicts}
    own: dict[str, list[Compared]] = {}
    for question, answers in state.answers.items():
        for latest in {(answer.by, answer.purpose): answer for answer in answers}.values():
            if question.kind == COMPARISON:
                own.setdefault(latest.by, []).append(cast("Compared", latest))
    checks = _checks(state, COMPARISON)
    called = {name: _called(given) for name, given in own.items()}
    total = tuple(sum(each) for each in zip(*called.values(), strict=True)) if called else (0, 0)
    return tuple(
        Comparer(
            **(checked := checks.get(name, _Checks())).figures(checked.gold),
            gold_left=gold_left(state, name, COMPARISON),
            **_comparing(name, own[name], called[name], total, found.get(name)),
        )
        for name in sorted(own)
    )


def _comparing(
    name: str,
    given: Sequence[Compared],
    called: tuple[int, int],
    called_by_all: tuple[int, ...],
    verdict: AnsweringAssessor | None,
) -> dict[str, Any]:
    """The fields of a :class:`Comparer` that come from the answers of an assessor."""
    judged = [answer for answer in given if answer.counts]
    times = [answer.seconds for answer in given if answer.seconds is not None]
    side = side_by_query([(answer.query, answer.choice) for answer in given])
    relevant = _share(*called)
    others = (called_by_all[0] - called[0], called_by_all[1] - called[1])
    usual = others[0] / others[1] if others[1] else NAN
    violated, touched = _contradictions(judged)
    return {
        "assessor": name,
        "answers": len(judged),
        "preferences": sum(bool(answer.choice) for answer in judged),
        "magnitudes": sum(answer.left_number is not None for answer in judged),
        "seconds": median(times) if times else NAN,
        "last": max((answer.time for answer in given if not answer.source), default=NAN),
        "violated": violated,
        "contradictions": touched,
        "left": side[0],
        "left_lower": side[1],
        "left_upper": side[2],
        "relevant": relevant[0],
        "relevant_lower": relevant[1],
        "relevant_upper": relevant[2],
        "manner": "generous" if relevant[1] > usual else "strict" if relevant[2] < usual else "",
        "verdict": "" if verdict is None else verdict.verdict,
        "careless": NAN if verdict is None else verdict.careless,
        "reversed": NAN if verdict is None else verdict.reversed,
    }


def respondents(state: State, material: Material) -> tuple[Respondent, ...]:
    """The answers of each person to questions other than for grades and comparisons, by name."""
    own: dict[str, list[Answered]] = {}
    aside = (a for given in state.answers.values() for a in given if a.purpose is TaskPurpose.aside)
    for event in (*state.counted_answers, *aside):
        if event.asks not in (GRADE, COMPARISON) and isinstance(event, Answered):
            own.setdefault(event.by, []).append(event)
    of_kind = [_checks(state, kind) for kind in dict.fromkeys(a.asks for given in own.values() for a in given)]
    checks = {name: _joined([found[name] for found in of_kind if name in found]) for name in own}
    gold, left = {name: checks[name].gold for name in own}, dict.fromkeys(own, 0)
    if isinstance(material, ListMaterial):
        traps = {name: [material.is_right(cast("ListsCompared", a)) for a in given] for name, given in own.items()}
        gold = {name: (sum(map(bool, each)), sum(right is not None for right in each)) for name, each in traps.items()}
        left = {name: sum(bool(question.trap) for question in material.questions) - n for name, (_, n) in gold.items()}
    skipped = _count(state.skipped)
    return tuple(
        Respondent(
            **checks[name].figures(gold[name]),
            assessor=name,
            answers=sum(answer.counts for answer in given),
            skipped=skipped.get(name, 0),
            seconds=_median([answer.seconds for answer in given if answer.seconds is not None]),
            last=max(answer.time for answer in given),
            gold_left=left[name] + sum(gold_left(state, name, kind.name) for kind in state.settings.kinds),
        )
        for name, given in sorted(own.items())
    )


def _share(count: int, n: int) -> tuple[float, float, float]:
    """A share with its 95% interval; NaN without any."""
    if not n:
        return NAN, NAN, NAN
    found = wilson_interval(count, n)
    return found.share, found.lower, found.upper


def side_by_query(choices: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    r"""The share of preferences for the left document, with a 95% interval over queries; NaN without any.

    In the design a document stays on its side for several questions, so answers of one query are not independent. With
    k of n preferences for the left document in each of Q queries and p in all,

    .. math:: \widehat{\operatorname{Var}}(p) = \frac{Q}{Q - 1} \sum_q (k_q - p\, n_q)^2 \Big/ \Big(\sum_q n_q\Big)^2,

    and the interval is that of t with Q - 1 degrees of freedom, but never narrower than Wilson's.

    Parameters
    ----------
    choices
        The query and the choice of each answer; other choices than left and right do not count.

    Examples
    --------
    >>> spread = [("q1", "left")] * 8 + [("q2", "right")] * 8
    >>> [round(x, 2) for x in side_by_query(spread)], [round(x, 2) for x in side_by_query(spread[4:12])]
    ([0.5, 0.0, 1.0], [0.5, 0.0, 1.0])
    """
    counts: dict[str, list[int]] = {}
    for query, choice in choices:
        if choice in ("left", "right"):
            each = counts.setdefault(query, [0, 0])
            each[0] += choice == "left"
            each[1] += 1
    if not counts:
        return NAN, NAN, NAN
    left, n = np.array(list(counts.values())).T
    share, lower, upper = _share(int(left.sum()), int(n.sum()))
    if len(n) > 1:
        variance = len(n) / (len(n) - 1) * float(((left - share * n) ** 2).sum()) / int(n.sum()) ** 2
        reach = float(stdtrit(len(n) - 1, 0.975)) * np.sqrt(variance)
        lower, upper = max(0.0, min(lower, share - reach)), min(1.0, max(upper, share + reach))
    return share, float(lower), float(upper)


def _called(given: Sequence[Compared]) -> tuple[int, int]:
    """The documents called relevant, and all for which this was asked."""
    counts = [RELEVANT[answer.relevant] for answer in given if answer.relevant]
    return sum(counts), 2 * len(counts)


def _contradictions(given: Sequence[Compared]) -> tuple[int, float]:
    """The fewest violated preferences, and the share of documents that they touch, the mean over queries."""
    orders: dict[str, list[tuple[str, str]]] = {}
    for answer in given:
        if answer.better:
            worse = answer.right if answer.better == answer.left else answer.left
            orders.setdefault(answer.query, []).append((answer.better, worse))
    found = [contradictions(*zip(*pairs, strict=True)) for pairs in orders.values()]
    if not found:
        return 0, NAN
    return sum(each.violated for each in found), float(np.mean([each.documents for each in found]))


def quality_sentences(assessors: Sequence[Share]) -> Iterator[str]:
    """How assessors answered gold and repeated pairs."""
    gold, right = sum(share.gold for share in assessors), sum(share.gold_right for share in assessors)
    again, same = sum(share.repeats for share in assessors), sum(share.repeats_same for share in assessors)
    if gold:
        yield f"Gold pairs: {right:,} of {gold:,} answers right."
    if again:
        yield f"Repeated pairs: {same:,} of {again:,} answers the same as before."


def user_sentences(found: Sequence[Respondent], gold: str) -> Iterator[str]:
    """How users answered gold and repeated questions."""
    n, right = sum(each.gold for each in found), sum(each.gold_right for each in found)
    again, same = sum(each.repeats for each in found), sum(each.repeats_same for each in found)
    if n:
        yield f"{gold.capitalize()}: {right:,} of {n:,} answers right."
    if again:
        yield f"Repeated questions: {same:,} of {again:,} answers the same as before."


def comparer_sentences(found: Sequence[Comparer]) -> Iterator[str]:
    """How assessors answered gold and repeated comparisons; who contradicts themselves or favours a side."""
    gold, right = sum(each.gold for each in found), sum(each.gold_right for each in found)
    again, same = sum(each.repeats for each in found), sum(each.repeats_same for each in found)
    if gold:
        yield f"Gold comparisons: {right:,} of {gold:,} answers right."
    if again:
        yield f"Repeated comparisons: {same:,} of {again:,} answers the same as before."
    for each in found:
        if each.violated:
            share = f"{each.contradictions:.0%} of the documents"
            yield f"{each.assessor} contradicts themselves in {counted(each.violated, 'preference')} ({share})."
        if each.left_lower > 0.5 or each.left_upper < 0.5:
            between = f"{each.left_lower:.0%} to {each.left_upper:.0%}"
            yield f"{each.assessor} favours a side: the left document in {each.left:.0%} of preferences ({between})."
        if each.manner:
            yield f"{each.assessor} is {each.manner}: {each.relevant:.0%} of documents called relevant."
        if each.verdict == "reversed":
            yield f"{each.assessor} is reversed (P {each.reversed:.2f}): by the model, answers mean the opposite."
