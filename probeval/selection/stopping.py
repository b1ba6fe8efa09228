"""When to stop: confidence reached, scores narrow enough, budget spent, and any combination of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from probeval.errors import SelectionError, did_you_mean
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.selection.judging import JudgingState

__all__ = ["RULES", "Stopping", "StoppingCheck"]

LEVEL = 0.95  # of the intervals whose half-width is looked at

RULES = {
    "confidence": "mean confidence over the comparisons that the goal asks for (all pairs of systems, for a ranking)",
    "every": "the confidence of the least sure of these comparisons",
    "best": "the probability that the leading system is the best",
    "halfwidth": "the widest 95% interval of a system's score, as a half-width",
    "budget": "judgments made",
    "hours": "hours of judging, at `seconds=` a judgment",
    "cost": "what the judgments cost, at `price=` each",
}
RATES = {"seconds": "hours", "price": "cost"}
AT_MOST = ("halfwidth",)


@dataclass(frozen=True)
class StoppingCheck:
    """Whether to stop, and how far it is.

    Parameters
    ----------
    reached
        Whether any of the alternatives holds.
    reasons
        Those that hold, in words.
    values
        Where each rule stands now, by name.
    progress
        How far the nearest alternative is, from 0 to 1.
    """

    reached: bool
    reasons: tuple[str, ...]
    values: dict[str, float]
    progress: float


@dataclass(frozen=True)
class Stopping:
    """Alternatives, each a set of rules that must hold together; the first alternative that holds stops the judging.

    Parameters
    ----------
    alternatives
        Targets by rule, one mapping an alternative.
    seconds, price
        What a judgment takes and costs.

    Examples
    --------
    >>> rule = Stopping.parse("confidence=.95+halfwidth=.05, budget=500")
    >>> rule.alternatives
    ({'confidence': 0.95, 'halfwidth': 0.05}, {'budget': 500.0})
    >>> str(rule)
    'confidence=0.95+halfwidth=0.05,budget=500'
    """

    alternatives: tuple[dict[str, float], ...] = ()
    seconds: float | None = None
    price: float | None = None

    @classmethod
    def parse(cls, text: str | Stopping | None) -> Stopping:
        """From a text such as ``confidence=.95,budget=500``: a comma is "or", a plus "and"."""
        if isinstance(text, Stopping):
            return text
        alternatives: list[dict[str, float]] = []
        rates: dict[str, float] = {}
        for part in (text or "").split(","):
            together: dict[str, float] = {}
            for item in part.split("+"):
                if not item.strip():
                    continue
                name, sign, value = (s.strip() for s in item.partition("="))
                target = _number(name, sign, value)
                (rates if name in RATES else together)[name] = target
            if together:
                alternatives.append(together)
        out = cls(tuple(alternatives), **rates)
        for rate, rule in RATES.items():
            asked = any(rule in together for together in alternatives)
            if asked and getattr(out, rate) is None:
                raise SelectionError(f"To stop at {rule}= say what a judgment takes: {rate}=.")
        return out

    def __str__(self) -> str:
        said = ["+".join(f"{k}={v:.15g}" for k, v in together.items()) for together in self.alternatives]
        said += [f"{rate}={getattr(self, rate):.15g}" for rate in RATES if getattr(self, rate) is not None]
        return ",".join(said)

    @property
    def names(self) -> set[str]:
        """The rules that it has."""
        return {name for together in self.alternatives for name in together}

    def left(self, judged: int) -> int | None:
        """How many more judgments budgets allow, or None where nothing limits them."""
        limits = []
        for together in self.alternatives:
            if set(together) <= {"budget", "hours", "cost"}:
                limits.append(max(self._judgments(name, target) for name, target in together.items()))
        return max(0, int(np.ceil(min(limits) - 1e-9)) - judged) if limits else None

    def _judgments(self, name: str, target: float) -> float:
        """How many judgments a budget stands for."""
        if name == "hours":
            assert self.seconds is not None
            return target * 3600 / self.seconds
        if name == "cost":
            assert self.price is not None
            return target / self.price
        return target

    def check(self, state: JudgingState) -> StoppingCheck:
        """Where the rules stand at a state of the judging."""
        values = {name: self._value(name, state) for name in RULES if name in self.names}
        reasons, progress = [], 0.0
        for together in self.alternatives:
            held = [_holds(name, values[name], target) for name, target in together.items()]
            progress = max(progress, min(_share(name, values[name], target) for name, target in together.items()))
            if all(held):
                reasons.append(" and ".join(_said(name, values[name], t) for name, t in together.items()))
        return StoppingCheck(bool(reasons), tuple(reasons), values, 1.0 if reasons else min(progress, 1.0))

    def _value(self, name: str, state: JudgingState) -> float:
        ranking, judged = state.ranking, len(state.judgments)
        if name == "confidence":
            return state.goal.confidence(ranking) if state.goal.compares else ranking.confidence
        if name == "every":
            matters = np.triu(state.goal.comparisons(ranking), k=1) > 0
            return float(ranking.pair_confidence[matters].min()) if matters.any() else 1.0
        if name == "best":
            return float(ranking.p_best.max())
        if name == "halfwidth":
            return state.scores.halfwidth(LEVEL)
        if name == "hours":
            assert self.seconds is not None
            return judged * self.seconds / 3600
        if name == "cost":
            assert self.price is not None
            return judged * self.price
        return float(judged)


def _number(name: str, sign: str, value: str) -> float:
    known = {**RULES, **RATES}
    if name not in known:
        raise SelectionError(f"No stopping rule {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    probability = name in ("confidence", "every", "best")
    if not sign or not 0 <= number < np.inf or (probability and number > 1) or (name in RATES and number == 0):
        what = "a probability" if probability else "a positive number"
        raise SelectionError(f"A stopping rule is {name}=NUMBER, {what}; got {name}{sign}{value}.")
    return number


def _holds(name: str, value: float, target: float) -> bool:
    return value <= target + TIE if name in AT_MOST else value >= target - TIE


def _share(name: str, value: float, target: float) -> float:
    """How far a rule has come, 1 where it holds."""
    if _holds(name, value, target):
        return 1.0
    if name in AT_MOST:
        return target / value
    if name in ("confidence", "every"):
        # Confidence starts at a half, and the last steps are the long ones: on the scale of normal quantiles.
        to = float(ndtri(min(target, 1 - 1e-9)))
        return float(np.clip(ndtri(np.clip(value, 0.5, 1 - 1e-9)) / to, 0, 1)) if to > 0 else 1.0
    return value / target if target > 0 else 1.0


def _said(name: str, value: float, target: float) -> str:
    return f"{name} {value:.4g} {'<=' if name in AT_MOST else '>='} {target:g}"
