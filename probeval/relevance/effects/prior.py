"""The prior of the hierarchical model for a new campaign, learned from past ones, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from probeval.display import Record
from probeval.features import FeatureName, feature_names
from probeval.relevance.effects import added_effects, effects_named, receive_effects, stated_effects
from probeval.relevance.effects.effect import Effect
from probeval.relevance.normal import LOG, Normal
from probeval.relevance.observers.prior import ObserverPriors

__all__ = ["HierarchicalPrior"]

ADDED = "effects from outside"  # in a pickled prior
MOST_LOGITS = 100.0  # by which a term moves a document: beyond it, probabilities and their errors overflow
FARTHEST = 1e3  # centre of a term, its spread, and the constant of few systems
RENAMED = {"stretch": "cutpoint_scale"}  # effects that older cards call otherwise


@dataclass(frozen=True, repr=False)
class HierarchicalPrior(Record):
    r"""The prior for a new campaign, learned from past ones.

    Parameters
    ----------
    terms
        The model's terms, standardised within each campaign; a missing term counts as average.
    coefficients
        The prior of each standardised term's coefficient.
    first_cut, gaps, gap
        The priors of the first cutpoint, of the gaps between cutpoints by number of levels, and of a gap for any other
        number of levels.
    log_sds
        The prior of the log standard deviation of each effect by name: the model has the effects listed here.
    observers
        The priors of sources of labels; general ones if none were learned.
    standard
        In cards of earlier versions, the centre and spread by which each term is standardised in all campaigns.
    overlap
        Whether systems that retrieve the same documents have like effects; not in cards of earlier versions.
    few
        With :math:`S` systems the standard deviations of effects of systems and teams are :math:`\sqrt{1 + c/S}` times
        as large as in a campaign of very many; this is :math:`c`, 0 in cards of earlier versions.
    """

    terms: tuple[str, ...]
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: Mapping[int, tuple[Normal, ...]]
    gap: Normal
    log_sds: Mapping[str, Normal] = field(default_factory=dict)
    observers: ObserverPriors = field(default_factory=ObserverPriors)
    standard: tuple[tuple[float, float], ...] = ()
    overlap: bool = True
    few: float = 3.0

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the model, in its order."""
        return effects_named(self.log_sds)

    def __getstate__(self) -> dict[str, Any]:
        """The prior with the effects from outside that it names, so that another process has them."""
        added = [e for e in added_effects() if e.name in self.log_sds or e.stated is not None]
        return self.__dict__ | ({ADDED: added} if added else {})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        receive_effects(state.get(ADDED, ()))
        self.__dict__.update({name: value for name, value in state.items() if name != ADDED})

    def with_stated(self) -> HierarchicalPrior:
        """Return the prior with the effects that no card has; one without its evidence is left out of the design."""
        stated = {effect.name: effect.stated for effect in stated_effects() if effect.stated is not None}
        return replace(self, log_sds={**self.log_sds, **stated})

    def widening(self, systems: int) -> float:
        """Return the logarithm of the factor of the standard deviations that are larger with so few systems."""
        return 0.5 * math.log1p(self.few / max(systems, 1))

    def cut_priors(self, n_levels: int) -> tuple[Normal, ...]:
        """Return the priors of the first cutpoint and of the gaps after it."""
        return (self.first_cut, *self.gaps.get(n_levels, (self.gap,) * (n_levels - 2)))

    def for_paper(self, n_levels: int) -> str:
        """Return the priors on a scale of so many levels as a sentence for a methods section."""
        first, *gaps = self.cut_priors(n_levels)
        effects = ", ".join(f"{name} {np.exp(n.mean):.2f} ({n.sd:.2f})" for name, n in self.log_sds.items())
        terms = ", ".join(
            f"{t} N({c.mean:.2f}, {c.sd:.2f})" for t, c in zip(self.terms, self.coefficients, strict=True)
        )
        between = ", ".join(f"N({gap.mean:.2f}, {gap.sd:.2f})" for gap in gaps)
        return (
            "Its priors are normal, given as N(mean, sd): of the coefficients of standardised terms "
            f"{terms}; of the first cutpoint N({first.mean:.2f}, {first.sd:.2f})"
            f"{f'; of the gaps after it, which are positive, {between}' * bool(gaps)}; of the log standard deviations "
            f"of effects, given as the median of the standard deviation (sd of its log), {effects}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as plain data."""
        return {
            "terms": list(self.terms),
            "coefficients": [c.to_list() for c in self.coefficients],
            "first_cut": self.first_cut.to_list(),
            "gaps": {str(n): [g.to_list() for g in gaps] for n, gaps in self.gaps.items()},
            "gap": self.gap.to_list(),
            "log_sds": {name: n.to_list() for name, n in self.log_sds.items()},
            "observers": self.observers.to_dict(),
            "standard": [list(pair) for pair in self.standard],
            "overlap": self.overlap,
            "few": self.few,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HierarchicalPrior:
        """Return the prior from plain data."""
        fixed = zip(data["centre"], data["spread"], strict=True) if "centre" in data else data["standard"]
        prior = cls(
            terms=tuple(data["terms"]),
            coefficients=tuple(Normal.from_list(c) for c in data["coefficients"]),
            first_cut=Normal.from_list(data["first_cut"]),
            gaps={int(n): tuple(Normal.from_list(g) for g in gaps) for n, gaps in data["gaps"].items()},
            gap=Normal.from_list(data["gap"]),
            log_sds={RENAMED.get(k, k): Normal.from_list(n, within=LOG) for k, n in data["log_sds"].items()},
            observers=ObserverPriors.from_dict(data["observers"]) if "observers" in data else ObserverPriors(),
            standard=tuple((float(centre), float(spread)) for centre, spread in fixed),
            overlap=bool(data.get("overlap", False)),
            few=float(data.get("few", 0.0)),
        )
        prior._check()
        return prior

    def _check(self) -> None:
        """Raise an error if a term or an effect is unknown, or the parts do not fit together."""
        for name in feature_names(self.terms):
            FeatureName.parse(name)
        if len(self.coefficients) != len(self.terms) or len(self.standard) not in (0, len(self.terms)):
            raise ValueError(f"{len(self.terms)} terms need as many coefficients, centres and spreads")
        if not all(abs(centre) <= FARTHEST and 1 / FARTHEST <= spread <= FARTHEST for centre, spread in self.standard):
            raise ValueError(f"a centre is at most {FARTHEST:g}, and a spread from {1 / FARTHEST:g} to that")
        for term, (centre, spread), b in zip(self.terms, self.standard, self.coefficients, strict=bool(self.standard)):
            if abs(centre) / spread * (abs(b.mean) + 2 * b.sd) > MOST_LOGITS:
                raise ValueError(
                    f"the centre of {term}, {centre:g}, moves documents by more than {MOST_LOGITS:g} logits with its "
                    f"spread {spread:g} and its coefficient {b.mean:g}"
                )
        if not 0 <= self.few <= FARTHEST:
            raise ValueError(f"the constant of few systems is from 0 to {FARTHEST:g}")
        if any(len(gaps) != n - 2 for n, gaps in self.gaps.items()):
            raise ValueError("a scale needs two gaps fewer than its levels")
        if not all(gap.mean > 0 for gaps in (*self.gaps.values(), (self.gap,)) for gap in gaps):
            raise ValueError("a gap between cutpoints is above 0")
        effects_named(self.log_sds)
