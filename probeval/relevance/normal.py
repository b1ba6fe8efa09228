"""Normal priors, used for all parameters of the hierarchical model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probeval.errors import ModelError

__all__ = ["LOG", "Normal"]

# Parameters are on the scale of logits, where 1 is much and 10 is very much: those of a card are far below these.
LOGIT = (-20.0, 20.0, 20.0)  # the least and the largest mean, and the largest standard deviation
LOG = (-10.0, 3.0, 3.0)  # those of a logarithm
MIN_SD = 1e-3  # standard deviation


@dataclass(frozen=True)
class Normal:
    """A normal prior: its mean and standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not self.sd > 0:
            raise ModelError(f"A prior needs a positive standard deviation, got {self.sd:g}.")

    @property
    def square(self) -> float:
        """The mean of exp(2x): the mean variance, if this is the prior of a log standard deviation."""
        return float(np.exp(2 * self.mean + 2 * self.sd**2))

    def to_list(self) -> list[float]:
        """Return the mean and the standard deviation, as cards have them."""
        return [self.mean, self.sd]

    @classmethod
    def from_list(cls, values: Sequence[float], *, within: tuple[float, float, float] = LOGIT) -> Normal:
        """Restore from the mean and the standard deviation, both within bounds: :data:`LOG` for a logarithm."""
        mean, sd = map(float, values)
        low, high, widest = within
        if not (low <= mean <= high and MIN_SD <= sd <= widest):
            raise ModelError(
                f"a damaged prior: its mean must be from {low:g} to {high:g}, its standard deviation from {MIN_SD:g} "
                f"to {widest:g}, got {mean:g} and {sd:g}."
            )
        return cls(mean, sd)

    def times(self, factor: float) -> Normal:
        """Return the prior of the value times a factor."""
        return Normal(factor * self.mean, factor * self.sd)
