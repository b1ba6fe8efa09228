"""The stopping rules, one class each; :data:`RULES` lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import ndtri

from probeval.errors import SelectionError, did_you_mean
from probeval.extensions import Registry
from probeval.selection.errors import ErrorCorrection, model_kind, published_corrections, stated_sd
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.selection.judging import JudgingState

__all__ = [
    "CONFIDENCE",
    "RULES",
    "Quantity",
    "Rate",
    "StoppingRule",
    "TrueError",
    "find_quantity",
    "rates",
    "register_rule",
]

LEVEL = 0.95  # of the intervals whose half-width is compared
ALMOST_ONE = 1 - 1e-9  # the highest probability to take a normal quantile of
RESERVED = frozenset("=,+ ")  # separators in combinations of rules


class Quantity:
    """A number in a combination of stopping rules, written ``name=NUMBER``."""

    name: ClassVar[str]
    summary: ClassVar[str]
    title: ClassVar[str] = ""  # of its figure on pages and in reports; empty for the name
    kind: ClassVar[str] = "a positive number"

    def allows(self, number: float) -> bool:
        """Return whether the number is valid for this quantity."""
        return 0 <= number < np.inf

    def read(self, text: str) -> float:
        """Parse the number in ``name=NUMBER``."""
        try:
            number = float(text.partition("=")[2])
        except ValueError:
            number = float("nan")
        if not self.allows(number):
            raise SelectionError(f"A stopping rule is {self.name}=NUMBER, {self.kind}; got {text}.")
        return number

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Rate(Quantity):
    """The time or money that one judgment takes."""

    def allows(self, number: float) -> bool:
        """Return whether the number is positive."""
        return 0 < number < np.inf


class Seconds(Rate):
    """The seconds per judgment."""

    name = "seconds"
    summary = "seconds per judgment"


class Price(Rate):
    """The price per judgment."""

    name = "price"
    summary = "price per judgment"


class StoppingRule(Quantity, ABC):
    """A figure of the judging, and the target at which judging can stop.

    A rule has a ``name``, a ``summary`` for the help, a ``value`` and a direction: it holds from its target on, or up
    to its target if ``at_most`` is set. A rule that counts time or money has a ``rate``.

    Examples
    --------
    >>> class ExpectedTau(StoppingRule):
    ...     name = "tau"
    ...     summary = "the expected rank correlation with the true order"
    ...
    ...     def value(self, state, rate):
    ...         return state.ranking.expected_tau
    >>> rule = ExpectedTau()
    >>> rule.read("tau=.8"), rule.holds(0.75, 0.8), rule.progress(0.4, 0.8)
    (0.8, False, 0.5)
    """

    at_most: ClassVar[bool] = False
    rate: ClassVar[Rate | None] = None

    @abstractmethod
    def value(self, state: JudgingState, rate: float) -> float:
        """Return the figure at a state of the judging; ``rate`` is 1 for a rule without one."""

    def holds(self, value: float, target: float) -> bool:
        """Return whether the target is met."""
        return value <= target + TIE if self.at_most else value >= target - TIE

    def progress(self, value: float, target: float) -> float:
        """Return the progress towards the target, from 0 to 1; 1 if the rule holds."""
        if self.holds(value, target):
            return 1.0
        if self.at_most:
            return target / value
        return value / target if target > 0 else 1.0

    def judgments(self, target: float, rate: float) -> float | None:
        """Return the number of judgments at which the rule holds; None if it depends on their grades."""
        return None

    def describe(self, value: float, target: float) -> str:
        """Describe the figure and its target, such as ``budget 12 >= 10``."""
        return f"{self.name} {value:.4g} {'<=' if self.at_most else '>='} {target:g}"


class ProbabilityRule(StoppingRule):
    """A rule whose target is a probability."""

    kind = "a probability"

    def allows(self, number: float) -> bool:
        """Return whether the number is between 0 and 1."""
        return 0 <= number <= 1


class ConfidenceRule(ProbabilityRule):
    """A rule whose target is a confidence, from .5 to 1."""

    def progress(self, value: float, target: float) -> float:
        """Return the progress on the scale of normal quantiles, as the last steps take the most judgments."""
        if self.holds(value, target):
            return 1.0
        to = float(ndtri(min(target, ALMOST_ONE)))
        return float(np.clip(ndtri(np.clip(value, 0.5, ALMOST_ONE)) / to, 0, 1)) if to > 0 else 1.0


class MeanConfidence(ConfidenceRule):
    """Mean confidence over the comparisons of the goal."""

    name = "confidence"
    summary = "mean confidence over the comparisons of the goal (all pairs of systems, for a ranking)"
    title = "confidence"

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the confidence of the goal."""
        return state.confidence


class LeastConfidence(ConfidenceRule):
    """The lowest confidence of the goal's comparisons."""

    name = "every"
    summary = "the lowest confidence of these comparisons"
    title = "lowest confidence"

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the lowest confidence; 1 without comparisons."""
        matters = np.triu(state.goal.comparisons(state.ranking), k=1) > 0
        return float(state.ranking.pair_confidence[matters].min()) if matters.any() else 1.0


class BestSystem(ProbabilityRule):
    """The probability that a system is the best, or tied with the best."""

    name = "best"
    summary = "the probability that no system is better than the leading one (by more than the rope)"
    title = "P(best)"

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the highest probability of any system."""
        return float(state.ranking.p_near_best.max())


class HalfWidth(StoppingRule):
    """The widest interval of a score."""

    name = "halfwidth"
    summary = "the widest 95% interval of a system's score, as a half-width"
    title = "widest half-width"
    at_most = True

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the widest half-width of any system."""
        return state.scores.halfwidth(LEVEL)


class MeanSd(StoppingRule):
    """The root of the mean variance of scores (Urbano 2013, section 8.4)."""

    name = "sd"
    summary = "the stated standard deviation of scores: the root of their mean variance over systems"
    title = "stated sd"
    at_most = True

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the root of the mean variance."""
        return stated_sd(state.scores)


class TrueError(StoppingRule):
    """The true error of scores, by a correction learned from replays of past campaigns.

    Parameters
    ----------
    corrections
        Corrections of your own, which come before those shipped with probeval.
    """

    name = "error"
    summary = "the mean absolute error of scores, as replays of past campaigns show it for the measure and the model"
    title = "true error"
    at_most = True

    def __init__(self, corrections: tuple[ErrorCorrection, ...] = ()) -> None:
        self.corrections = corrections

    def correction(self, state: JudgingState) -> ErrorCorrection:
        """Return the correction for the measure and the kind of model of the judging."""
        metric, kind = str(state.judging.metric), model_kind(state.judging.model)
        known = (*self.corrections, *published_corrections())
        for one in known:
            if (one.metric, one.model) == (metric, kind):
                return one
        rest = ", ".join(sorted({f"{one.metric} by {one.model}" for one in known}))
        raise SelectionError(
            f"The stopping rule error= has no correction for {metric} by the model {kind}; there is one for: "
            f"{rest}. Learn it from past campaigns (probeval simulate --learn-errors FILE) and give --errors FILE, or "
            "stop by sd= or halfwidth=."
        )

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the error that past campaigns had at the stated standard deviation."""
        return self.correction(state).error(stated_sd(state.scores))


class Budget(StoppingRule):
    """A budget of judgments, answers about two documents included."""

    name = "budget"
    summary = "judgments made"
    unit: ClassVar[float] = 1.0  # rate units per unit of the target

    def value(self, state: JudgingState, rate: float) -> float:
        """Return the judgments and answers made, in units of the target."""
        answers = state.collection.answers
        return (len(state.judgments) + (0 if answers is None else len(answers))) * rate / self.unit

    def judgments(self, target: float, rate: float) -> float:
        """Return the number of judgments that the target allows."""
        return target * self.unit / rate


class Hours(Budget):
    """A budget of hours."""

    name = "hours"
    summary = "hours of judging, at `seconds=` per judgment"
    rate = Seconds()
    unit = 3600.0  # seconds per hour


class Cost(Budget):
    """A budget of money."""

    name = "cost"
    summary = "cost of the judgments, at `price=` each"
    rate = Price()


CONFIDENCE = MeanConfidence()
OWN = (CONFIDENCE, LeastConfidence(), BestSystem(), HalfWidth(), MeanSd(), TrueError(), Budget(), Hours(), Cost())
RULES: Registry[StoppingRule] = Registry(
    "stopping rule",
    __name__,
    group="probeval.stopping",
    error=SelectionError,
    take=lambda name, rule: register_rule(rule() if isinstance(rule, type) else rule),
    own={rule.name: rule for rule in OWN},
)


def rates() -> dict[str, Rate]:
    """Return the rates of the rules, by name."""
    return {rule.rate.name: rule.rate for rule in RULES.values() if rule.rate is not None}


def find_quantity(name: str) -> Quantity:
    """Return the rule or rate with this name."""
    if name not in rates():
        RULES.find(name)  # perhaps an installed package has it
    known: dict[str, Quantity] = {**RULES, **rates()}
    if name not in known:
        raise SelectionError(f"No stopping rule {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def register_rule(rule: StoppingRule) -> StoppingRule:
    """Add a stopping rule under its name, for combinations, simulations and the command line.

    An earlier one from outside with the same name is replaced.

    Raises
    ------
    SelectionError
        If the name is that of a rule of the package or of a rate, or has a character that separates rules.
    """
    if not rule.name or RESERVED & set(rule.name):
        raise SelectionError(
            f"The name of a stopping rule must not be empty or have '=', ',', '+' or a space, got {rule.name!r}."
        )
    if rule.name in rates():
        raise SelectionError(f"{rule.name} is the rate of a stopping rule. Give yours another name.")
    RULES.add(rule.name, rule)
    return rule
