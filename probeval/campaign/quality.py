"""The quality of an assessor's work, by gold and repeated pairs.

An assessor is named if their answers to gold pairs are right significantly less often than those of the others: by
Fisher's exact test, one-sided, at the level .01, with Bonferroni's correction for the number of assessors. The level is
low because the test is repeated after every answer: with up to 60 gold answers each, one of several equally good
assessors is named in at most 5 of 100 campaigns (tests/campaign/test_quality.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, gammaln, stdtrit

from probeval.campaign.controls import PAIR, gold_left
from probeval.campaign.events import TaskPurpose
from probeval.campaign.gold import is_right
from probeval.campaign.state import State

__all__ = ["ALARM", "Quality", "compare_on_gold", "p_worse", "qualities", "share_interval"]

ALARM = 0.01  # p-values up to this name an assessor
FEWEST_GOLD = 5  # answers of an assessor, and of the others together, for a comparison
LEVEL = 0.95
NAN = float("nan")


@dataclass(frozen=True)
class Quality:
    """The answers of one assessor to gold and repeated pairs.

    Parameters
    ----------
    gold, gold_right, gold_lower, gold_upper
        The number of their answers to gold pairs, of the right ones, and the 95% interval of the share that is right.
    gold_bias, gold_bias_lower, gold_bias_upper
        The mean difference from the known grades, in grades, with its 95% interval; NaN if unknown.
    gold_p
        The p-value of being right less often than the others, corrected for the number of assessors; NaN with fewer
        than five answers.
    gold_left
        The number of gold pairs that they may still get.
    repeats, repeats_same, repeats_gap
        The number of pairs that they judged again, of those with the same grade, and the mean absolute difference.
    """

    gold: int = 0
    gold_right: int = 0
    gold_lower: float = NAN
    gold_upper: float = NAN
    gold_bias: float = NAN
    gold_bias_lower: float = NAN
    gold_bias_upper: float = NAN
    gold_p: float = NAN
    gold_left: int = 0
    repeats: int = 0
    repeats_same: int = 0
    repeats_gap: float = NAN


def qualities(state: State, who: Sequence[str]) -> dict[str, Quality]:
    """The quality of each of these assessors, by name."""
    gaps: dict[str, list[float]] = {name: [] for name in who}  # from the known grade
    right, again = dict.fromkeys(who, 0), {name: list[float]() for name in who}  # from their first answer
    scale = state.settings.scale
    for pair in state.controls:
        for name, answer in state.answers(pair).items():
            if name not in gaps:
                continue
            if answer.purpose is TaskPurpose.gold and pair in state.gold:
                gaps[name].append(answer.grade - state.gold[pair])
                right[name] += is_right(scale, answer.grade, state.gold[pair])
            elif answer.purpose is TaskPurpose.repeat and name in state.latest(pair):
                again[name].append(answer.grade - state.latest(pair)[name].grade)
    worse = compare_on_gold({name: (right[name], len(gaps[name])) for name in who})
    found = {}
    for name in who:
        lower, upper = share_interval(right[name], len(gaps[name]))
        bias, bias_lower, bias_upper = _mean_interval(gaps[name])
        found[name] = Quality(
            gold=len(gaps[name]),
            gold_right=right[name],
            gold_lower=lower,
            gold_upper=upper,
            gold_bias=bias,
            gold_bias_lower=bias_lower,
            gold_bias_upper=bias_upper,
            gold_p=worse.get(name, NAN),
            gold_left=gold_left(state, name, PAIR),
            repeats=len(again[name]),
            repeats_same=sum(gap == 0 for gap in again[name]),
            repeats_gap=float(np.mean(np.abs(again[name]))) if again[name] else NAN,
        )
    return found


def compare_on_gold(answers: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """The corrected p-value of each assessor who has enough answers, as have the others together.

    Parameters
    ----------
    answers
        The number of right answers and of all answers, by assessor.

    Examples
    --------
    >>> found = compare_on_gold({"ann": (26, 30), "bob": (12, 30), "cy": (25, 30), "dee": (2, 3)})
    >>> {name: float(f"{p:.2g}") for name, p in found.items()}
    {'ann': 1.0, 'bob': 8.1e-05, 'cy': 1.0}
    """
    all_right, total = (sum(each) for each in zip(*answers.values(), strict=True)) if answers else (0, 0)
    enough = {name: of for name, of in answers.items() if of[1] >= FEWEST_GOLD and total - of[1] >= FEWEST_GOLD}
    return {
        name: min(1.0, len(enough) * p_worse(right, n, all_right - right, total - n))
        for name, (right, n) in enough.items()
    }


def p_worse(right: int, n: int, others_right: int, others: int) -> float:
    r"""The p-value of Fisher's exact test that an assessor is right less often than the others.

    .. math:: p = \sum_{k \le r} \binom{n}{k} \binom{N}{R + r - k} \Big/ \binom{n + N}{R + r},

    with r of n answers right, and R of N answers of the others.

    Examples
    --------
    >>> round(p_worse(12, 30, 51, 60), 5), round(p_worse(25, 30, 51, 60), 2)
    (2e-05, 0.53)
    """
    total = right + others_right
    k = np.arange(max(0, total - others), right + 1)
    logs = _log_choose(n, k) + _log_choose(others, total - k) - _log_choose(n + others, np.array(total))
    return min(1.0, float(np.exp(logs).sum()))


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


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
