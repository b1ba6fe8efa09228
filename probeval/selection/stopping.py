"""Combinations of stopping rules with targets, by "and" and "or"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from probeval.display import Record
from probeval.errors import SelectionError
from probeval.selection.errors import ErrorCorrection
from probeval.selection.rules import RULES, StoppingRule, TrueError, find_quantity, rates

if TYPE_CHECKING:
    from probeval.selection.judging import JudgingState

__all__ = ["Stopping", "StoppingCheck", "StoppingFigure", "StoppingTarget", "stated"]


@dataclass(frozen=True)
class StoppingFigure:
    """The figure of a stopping rule and its target.

    >>> str(StoppingFigure("confidence", "confidence", 0.9123, 0.95))
    'confidence 0.912 (target 0.95)'
    """

    name: Annotated[str, "The name of the rule."]
    title: Annotated[str, "What the figure is."]
    value: Annotated[float, "The figure."]
    target: Annotated[float, "The target."]

    def __str__(self) -> str:
        return f"{self.title} {self.value:.3f} (target {self.target:g})"


def stated(figures: Iterable[StoppingFigure], confidence: float) -> str:
    """Return what a rule tests beside its targets; the confidence alone if it tests nothing that a model states.

    >>> stated([], 0.9123)
    'confidence 0.912'
    """
    return ", ".join(map(str, figures)) or f"confidence {confidence:.3f}"


@dataclass(frozen=True, repr=False)
class StoppingCheck(Record):
    """Whether to stop, and the progress towards stopping.

    Parameters
    ----------
    reached
        Whether any of the alternatives holds.
    reasons
        The alternatives that hold, as text.
    values
        The current figure of each rule, by name.
    progress
        The progress of the nearest alternative, from 0 to 1.
    figures
        The figures that the model states, each beside its target; no counts, such as a budget.
    """

    reached: bool
    reasons: tuple[str, ...]
    values: dict[str, float]
    progress: float
    figures: tuple[StoppingFigure, ...] = ()


@dataclass(frozen=True)
class StoppingTarget:
    """A stopping rule and the target of its figure.

    Parameters
    ----------
    rule
        The rule.
    target
        The least value at which it holds, or the largest for a rule with ``at_most``.
    """

    rule: StoppingRule
    target: float

    def __str__(self) -> str:
        return f"{self.rule.name}={self.target:.15g}"


@dataclass(frozen=True, repr=False)
class Stopping(Record):
    """Alternatives, each a set of rules that must all hold; judging stops when any alternative holds.

    Parameters
    ----------
    alternatives
        The targets of each alternative.
    rates
        Time or price per judgment, by the name of the rate, for rules that need it.

    Examples
    --------
    >>> rule = Stopping.parse("confidence=.95+halfwidth=.05, budget=500")
    >>> [[str(target) for target in together] for together in rule.alternatives]
    [['confidence=0.95', 'halfwidth=0.05'], ['budget=500']]
    >>> str(rule)
    'confidence=0.95+halfwidth=0.05,budget=500'
    """

    alternatives: tuple[tuple[StoppingTarget, ...], ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.rules.values():
            if rule.rate is not None and rule.rate.name not in self.rates:
                raise SelectionError(f"The stopping rule {rule.name}= needs {rule.rate.name}= per judgment.")

    @classmethod
    def parse(cls, text: str | Stopping | StoppingTarget | None) -> Stopping:
        """Parse a text such as ``confidence=.95,budget=500``: a comma is "or", a plus "and"; or take one target."""
        if isinstance(text, Stopping):
            return text
        if isinstance(text, StoppingTarget):
            return cls(((text,),))
        alternatives: list[tuple[StoppingTarget, ...]] = []
        given: dict[str, float] = {}
        for part in (text or "").split(","):
            together: dict[str, StoppingTarget] = {}
            for item in part.split("+"):
                if not item.strip():
                    continue
                name, sign, value = (s.strip() for s in item.partition("="))
                quantity = find_quantity(name)
                number = quantity.read(f"{name}{sign}{value}")
                if isinstance(quantity, StoppingRule):
                    together[name] = StoppingTarget(quantity, number)
                else:
                    given[name] = number
            if together:
                alternatives.append(tuple(together.values()))
        return cls(tuple(alternatives), {name: given[name] for name in rates() if name in given})

    def with_corrections(self, corrections: Iterable[ErrorCorrection]) -> Stopping:
        """Return the same rules, with corrections of your own for the rule ``error=``."""
        rule = TrueError(tuple(corrections))
        return replace(
            self,
            alternatives=tuple(
                tuple(replace(t, rule=rule) if isinstance(t.rule, TrueError) else t for t in together)
                for together in self.alternatives
            ),
        )

    def __str__(self) -> str:
        targets = ["+".join(map(str, together)) for together in self.alternatives]
        return ",".join([*targets, *(f"{name}={rate:.15g}" for name, rate in self.rates.items())])

    @property
    def rules(self) -> dict[str, StoppingRule]:
        """The rules, by name."""
        return {t.rule.name: t.rule for together in self.alternatives for t in together}

    def targets(self, rule: StoppingRule) -> list[float]:
        """Return the targets of a rule over all alternatives.

        >>> from probeval.selection.rules import CONFIDENCE
        >>> Stopping.parse("confidence=.9+halfwidth=.02,confidence=.95,budget=100").targets(CONFIDENCE)
        [0.9, 0.95]
        """
        return [t.target for together in self.alternatives for t in together if t.rule == rule]

    def left(self, judged: int) -> int | None:
        """Return how many more judgments the budgets allow; None without a limit."""
        limits = []
        for together in self.alternatives:
            counts = [t.rule.judgments(t.target, self._rate(t.rule)) for t in together]
            known = [count for count in counts if count is not None]
            if len(known) == len(counts):
                limits.append(max(known))
        return max(0, int(np.ceil(min(limits) - 1e-9)) - judged) if limits else None

    def check(self, state: JudgingState) -> StoppingCheck:
        """Check the rules at a state of the judging."""
        values = {name: rule.value(state, self._rate(rule)) for name, rule in _in_order(self.rules).items()}
        reasons, progress, shown = [], 0.0, dict[StoppingFigure, None]()
        for together in self.alternatives:
            figures = [(t, values[t.rule.name]) for t in together]
            progress = max(progress, min(t.rule.progress(value, t.target) for t, value in figures))
            for t, value in figures:
                if t.rule.judgments(t.target, self._rate(t.rule)) is None:
                    shown[StoppingFigure(t.rule.name, t.rule.title or t.rule.name, value, t.target)] = None
            if all(t.rule.holds(value, t.target) for t, value in figures):
                reason = " and ".join(t.rule.describe(value, t.target) for t, value in figures)
                counted = all(t.rule.judgments(t.target, self._rate(t.rule)) is not None for t in together)
                reasons.append(reason if counted else f"{reason}{state.scores.caveat}")  # a budget needs no model
        done = 1.0 if reasons else min(progress, 1.0)
        return StoppingCheck(bool(reasons), tuple(reasons), values, done, tuple(shown))

    def _rate(self, rule: StoppingRule) -> float:
        return 1.0 if rule.rate is None else self.rates[rule.rate.name]


def _in_order(rules: Mapping[str, StoppingRule]) -> dict[str, StoppingRule]:
    """Return the rules in the order of :data:`RULES`; rules registered in another process come last."""
    return {name: rules[name] for name in {**RULES, **rules} if name in rules}
