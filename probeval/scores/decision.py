"""The verdict on two systems: one rule for comparisons by a model, Bayesian ones, gates and reports.

See docs/theory/scores.md#verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["PairDecision", "Verdicts"]

Verdicts = Literal["better", "worse", "equal", "undecided"]


@dataclass(frozen=True)
class PairDecision:
    """What is decided of a system against another: a verdict is stated when its own probability reaches the level.

    With a rope, better and worse are by more than the rope, and equal is within it. Without one, equal is an exact tie.

    Parameters
    ----------
    p_better, p_worse, p_equal
        The probabilities of the three verdicts.
    level
        The probability that a verdict needs.

    Examples
    --------
    >>> PairDecision(0.96, 0.01, 0.03, 0.95).verdict, PairDecision(0.90, 0.01, 0.09, 0.95).verdict
    ('better', 'undecided')
    """

    p_better: float
    p_worse: float
    p_equal: float
    level: float = 0.95

    @property
    def confidence(self) -> float:
        """The probability of the likeliest verdict, be it stated or not."""
        return max(self.p_better, self.p_worse, self.p_equal)

    @property
    def verdict(self) -> Verdicts:
        """The likeliest verdict if its probability reaches the level, else ``undecided``."""
        chances: dict[Verdicts, float] = {"better": self.p_better, "worse": self.p_worse, "equal": self.p_equal}
        likeliest: list[Verdicts] = [word for word, p in chances.items() if p == self.confidence]
        # At a level of one half or less two can reach it; equally likely ones decide nothing.
        return likeliest[0] if self.confidence >= self.level and len(likeliest) == 1 else "undecided"
