"""The prior of the hierarchical model for a new campaign, learned from past ones, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probeval.relevance.effects import added_effects, effects_named, receive_effects
from probeval.relevance.effects.effect import Effect
from probeval.relevance.effects.labels import LabelWorth
from probeval.relevance.normal import Normal

__all__ = ["HierarchicalPrior"]

ADDED = "effects from outside"  # in a pickled prior
RENAMED = {"stretch": "cutpoint_scale"}  # effects that older cards call otherwise


@dataclass(frozen=True)
class HierarchicalPrior:
    """The prior for a new campaign, learned from past ones.

    Parameters
    ----------
    terms
        The model's terms, each standardised by ``centre`` and ``spread``; a missing term counts as average.
    coefficients
        The prior of each standardised term's coefficient.
    first_cut, gaps, gap
        The priors of the first cutpoint, of the gaps between cutpoints by number of levels, and of a gap for any other
        number of levels.
    log_sds
        The prior of the log standard deviation of each effect by name: the model has the effects listed here.
    labels
        The informativeness of machine labels; None if not learned, in which case labels are ignored.
    """

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: Mapping[int, tuple[Normal, ...]]
    gap: Normal
    log_sds: Mapping[str, Normal] = field(default_factory=dict)
    labels: LabelWorth | None = None

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the model, in its order."""
        return effects_named(self.log_sds)

    def __getstate__(self) -> dict[str, Any]:
        """The prior with the effects from outside that it names, so that another process has them."""
        added = [effect for effect in added_effects() if effect.name in self.log_sds]
        return self.__dict__ | ({ADDED: added} if added else {})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        receive_effects(state.get(ADDED, ()))
        self.__dict__.update({name: value for name, value in state.items() if name != ADDED})

    def cut_priors(self, n_levels: int) -> tuple[Normal, ...]:
        """Return the priors of the first cutpoint and of the gaps after it."""
        return (self.first_cut, *self.gaps.get(n_levels, (self.gap,) * (n_levels - 2)))

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as plain data."""
        return {
            "terms": list(self.terms),
            "centre": list(self.centre),
            "spread": list(self.spread),
            "coefficients": [_pair(c) for c in self.coefficients],
            "first_cut": _pair(self.first_cut),
            "gaps": {str(n): [_pair(g) for g in gaps] for n, gaps in self.gaps.items()},
            "gap": _pair(self.gap),
            "log_sds": {name: _pair(n) for name, n in self.log_sds.items()},
            "labels": None if self.labels is None else self.labels.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HierarchicalPrior:
        """Return the prior from plain data."""
        return cls(
            terms=tuple(data["terms"]),
            centre=tuple(map(float, data["centre"])),
            spread=tuple(map(float, data["spread"])),
            coefficients=tuple(Normal(*map(float, c)) for c in data["coefficients"]),
            first_cut=Normal(*map(float, data["first_cut"])),
            gaps={int(n): tuple(Normal(*map(float, g)) for g in gaps) for n, gaps in data["gaps"].items()},
            gap=Normal(*map(float, data["gap"])),
            log_sds={RENAMED.get(k, k): Normal(*map(float, n)) for k, n in data["log_sds"].items()},
            labels=None if data["labels"] is None else LabelWorth.from_dict(data["labels"]),
        )


def _pair(normal: Normal) -> list[float]:
    return [normal.mean, normal.sd]
