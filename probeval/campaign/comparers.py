"""The answers of each assessor about two documents: how many, how fast, and how good.

An assessor is named if their answers to gold comparisons are right significantly less often than those of the others,
by the same test as for grades (``quality.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypedDict

import numpy as np
from scipy.special import stdtrit

from probeval.campaign.advice import counted
from probeval.campaign.comparison_events import Compared
from probeval.campaign.controls import COMPARISON, gold_left
from probeval.campaign.events import TaskPurpose
from probeval.campaign.quality import ALARM, compare_on_gold, share_interval
from probeval.campaign.state import State
from probeval.data.answers import RELEVANT
from probeval.preferences.quality import contradictions, wilson_interval
from probeval.relevance.answers.verdicts import AnsweringAssessor

__all__ = ["Comparer", "ComparerDocument", "comparer_sentences", "comparers", "side_by_query"]

NAN = float("nan")


class ComparerDocument(TypedDict):
    """The answers of one assessor about two documents.

    Parameters
    ----------
    answers, preferences, magnitudes
        The number of their current answers, of those with a choice, and of those with numbers.
    seconds, last
        The median time per answer, and the time of the latest one, in seconds since 1970; null if unknown.
    gold, gold_right, gold_lower, gold_upper
        The number of their answers to gold comparisons, of the right ones, and the 95% interval of the share.
    gold_p
        The p-value of being right less often than the others, corrected for the number of assessors; null with fewer
        than five answers.
    gold_left
        The number of gold comparisons that they may still get.
    repeats, repeats_same
        The number of comparisons that they answered again, sides exchanged, and of those with the same answer.
    violated, contradictions
        The fewest of their preferences that any order of the documents goes against, and the share of documents in
        such preferences, the mean over queries; null without a preference.
    left, left_lower, left_upper
        The share of preferences for the document on the left, with its 95% interval over queries; null without one.
    relevant, relevant_lower, relevant_upper
        The share of documents that they called relevant, with its 95% interval; null if they were not asked.
    manner
        ``generous`` or ``strict`` if that interval excludes the share of the others; otherwise empty.
    verdict, careless, reversed
        The verdict of the model at its last run: ``attentive``, ``careless`` (the answers do not depend on
        relevance), ``reversed`` or ``unclear``, with the probabilities; empty and null if the model does not use them.
    """

    assessor: str
    answers: int
    preferences: int
    magnitudes: int
    seconds: float
    last: float
    gold: int
    gold_right: int
    gold_lower: float
    gold_upper: float
    gold_p: float
    gold_left: int
    repeats: int
    repeats_same: int
    violated: int
    contradictions: float
    left: float
    left_lower: float
    left_upper: float
    relevant: float
    relevant_lower: float
    relevant_upper: float
    manner: str
    verdict: str
    careless: float
    reversed: float


@dataclass(frozen=True)
class Comparer:
    """The answers of one assessor about two documents: the fields of :class:`ComparerDocument`, NaN for null."""

    assessor: str
    answers: int
    preferences: int
    magnitudes: int
    seconds: float
    last: float
    gold: int
    gold_right: int
    gold_lower: float
    gold_upper: float
    gold_p: float
    gold_left: int
    repeats: int
    repeats_same: int
    violated: int
    contradictions: float
    left: float
    left_lower: float
    left_upper: float
    relevant: float
    relevant_lower: float
    relevant_upper: float
    manner: str
    verdict: str
    careless: float
    reversed: float

    @property
    def is_worse(self) -> bool:
        """Whether their answers to gold comparisons are significantly worse than those of the others."""
        return self.gold_p <= ALARM

    @property
    def is_bad(self) -> bool:
        """Whether by the model their answers do not depend on relevance, or are reversed."""
        return self.verdict in ("careless", "reversed")


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
    for answers in state.compared.values():
        for latest in {(answer.by, answer.purpose): answer for answer in answers}.values():
            own.setdefault(latest.by, []).append(latest)
    checks = {name: _gold(state, given) for name, given in own.items()}
    worse = compare_on_gold(checks)
    called = {name: _called(given) for name, given in own.items()}
    total = tuple(sum(each) for each in zip(*called.values(), strict=True)) if called else (0, 0)
    return tuple(
        _comparer(state, name, own[name], checks[name], worse.get(name, NAN), called[name], total, found.get(name))
        for name in sorted(own)
    )


def _comparer(
    state: State,
    name: str,
    given: Sequence[Compared],
    gold: tuple[int, int],
    gold_p: float,
    called: tuple[int, int],
    called_by_all: tuple[int, ...],
    verdict: AnsweringAssessor | None,
) -> Comparer:
    counted = [answer for answer in given if answer.purpose is TaskPurpose.judgment]
    times = [answer.seconds for answer in given if answer.seconds is not None]
    side = side_by_query([(answer.query, answer.choice) for answer in given])
    relevant = _share(*called)
    others = (called_by_all[0] - called[0], called_by_all[1] - called[1])
    usual = others[0] / others[1] if others[1] else NAN
    again = _repeated(state, name, given)
    violated, touched = _contradictions(counted)
    lower, upper = share_interval(*gold)
    return Comparer(
        assessor=name,
        answers=len(counted),
        preferences=sum(bool(answer.choice) for answer in counted),
        magnitudes=sum(answer.left_number is not None for answer in counted),
        seconds=median(times) if times else NAN,
        last=max((answer.time for answer in given if not answer.source), default=NAN),
        gold=gold[1],
        gold_right=gold[0],
        gold_lower=lower,
        gold_upper=upper,
        gold_p=gold_p,
        gold_left=gold_left(state, name, COMPARISON),
        repeats=len(again),
        repeats_same=sum(again),
        violated=violated,
        contradictions=touched,
        left=side[0],
        left_lower=side[1],
        left_upper=side[2],
        relevant=relevant[0],
        relevant_lower=relevant[1],
        relevant_upper=relevant[2],
        manner="generous" if relevant[1] > usual else "strict" if relevant[2] < usual else "",
        verdict="" if verdict is None else verdict.verdict,
        careless=NAN if verdict is None else verdict.careless,
        reversed=NAN if verdict is None else verdict.reversed,
    )


def _share(count: int, n: int) -> tuple[float, float, float]:
    """A share with its 95% interval; NaN without any."""
    return wilson_interval(count, n)[:3] if n else (NAN, NAN, NAN)


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
    share, lower, upper = wilson_interval(int(left.sum()), int(n.sum()))[:3]
    if len(n) > 1:
        variance = len(n) / (len(n) - 1) * float(((left - share * n) ** 2).sum()) / int(n.sum()) ** 2
        reach = float(stdtrit(len(n) - 1, 0.975)) * np.sqrt(variance)
        lower, upper = max(0.0, min(lower, share - reach)), min(1.0, max(upper, share + reach))
    return share, float(lower), float(upper)


def _gold(state: State, given: Sequence[Compared]) -> tuple[int, int]:
    """The right answers to gold comparisons, and all of them."""
    asked = [a for a in given if a.purpose is TaskPurpose.gold and a.question in state.gold_orders]
    return sum(answer.better == state.gold_orders[answer.question] for answer in asked), len(asked)


def _called(given: Sequence[Compared]) -> tuple[int, int]:
    """The documents called relevant, and all for which this was asked."""
    counts = [RELEVANT[answer.relevant] for answer in given if answer.relevant]
    return sum(counts), 2 * len(counts)


def _repeated(state: State, name: str, given: Sequence[Compared]) -> list[bool]:
    """For each repeated comparison, whether the answer is that of the first time."""
    first = {a.question: a.better for a in given if a.purpose is TaskPurpose.judgment}
    again = [a for a in given if a.purpose is TaskPurpose.repeat and a.question in first]
    return [answer.better == first[answer.question] for answer in again]


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


def comparer_sentences(found: Sequence[Comparer]) -> Iterator[str]:
    """How assessors answered gold and repeated comparisons; who contradicts themselves, favours a side, or is worse."""
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
        if each.verdict == "careless":
            sure = f"P {each.careless:.2f}"
            yield f"{each.assessor} is careless ({sure}): by the model, answers do not depend on relevance."
        if each.verdict == "reversed":
            yield f"{each.assessor} is reversed (P {each.reversed:.2f}): by the model, answers mean the opposite."
        if each.is_worse:
            others = f"the others {right - each.gold_right:,} of {gold - each.gold:,} (p {each.gold_p:.2g})"
            yield f"{each.assessor} is worse on gold comparisons: {each.gold_right} of {each.gold} right, {others}."
