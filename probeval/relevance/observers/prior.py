r"""Priors over observers, learned from labels of pairs with known grades.

An observer's labels, in units of their standard deviation, measure the latent relevance :math:`\theta_d` of pairs:
:math:`y_d = \kappa + \lambda\theta_d + \text{own effects} + \text{noise}`. The prior of its slope :math:`\lambda`, of
the standard deviations of its own effects and of its level depends on its name if the card has it, else on its kind and
the kind of its scale. See docs/theory/observers.md#latent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probeval.data.observers import ObserverSpec
from probeval.relevance.normal import LOG, Normal

__all__ = ["PAIR", "ObserverPrior", "ObserverPriors"]

PAIR = "pair"  # the level of single pairs, beside those of the effects
SEEN = {"query": 0.6, "slope": 0.6, "interaction": 0.5, PAIR: 0.4}  # the share of variance that observers see
SEEN_ELSEWHERE = {"campaign": 1.0, "query": 0.5}  # of effects without data, by scope
OWN = Normal(-2.0, 0.8)  # the log sd of an observer's own effect at a level without data, in sds of the labels


@dataclass(frozen=True)
class ObserverPrior:
    r"""The prior of one observer.

    Parameters
    ----------
    log_slope
        :math:`\log|\lambda|`, in standard deviations of the labels per logit of relevance.
    log_own
        The log standard deviations of the observer's own effects by level (effects of the model, and ``pair``): in
        standard deviations of its labels within queries, and for systems and teams, whose own effects are biases, as
        multiples of the effect of relevance.
    popularity
        The observer's own liking for popular documents, as a multiple of :math:`\lambda\beta`.
    level
        The logit of the mean grade less that of the mean label, each as a share of its maximum; None for scales without
        a maximum.
    """

    log_slope: Normal
    log_own: Mapping[str, Normal]
    popularity: Normal
    level: Normal | None

    def own(self, level: str) -> Normal:
        """Return the prior of the log standard deviation of the observer's own effect at a level."""
        return self.log_own.get(level, OWN)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "log_slope": self.log_slope.to_list(),
            "log_own": {level: n.to_list() for level, n in self.log_own.items()},
            "popularity": self.popularity.to_list(),
            "level": None if self.level is None else self.level.to_list(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ObserverPrior:
        """Restore from plain data."""
        return cls(
            log_slope=Normal.from_list(data["log_slope"], within=LOG),
            log_own={str(k): Normal.from_list(n, within=LOG) for k, n in data["log_own"].items()},
            popularity=Normal.from_list(data["popularity"]),
            level=None if data["level"] is None else Normal.from_list(data["level"]),
        )


# Before any data: the middle of what columns of labels with known grades showed.
UNSEEN = ObserverPrior(
    log_slope=Normal(-1.6, 0.5),
    log_own={
        "query": Normal(-1.1, 0.5),
        "slope": Normal(-2.7, 0.8),
        "interaction": Normal(-1.0, 0.5),
        "team": Normal(-0.9, 0.7),
        "system": Normal(-0.9, 0.7),
        PAIR: Normal(-0.6, 0.4),
    },
    popularity=Normal(0.7, 0.35),
    level=Normal(-0.4, 0.8),
)


@dataclass(frozen=True)
class ObserverPriors:
    """The priors of observers by name and by kind.

    Parameters
    ----------
    by_kind
        The prior of an observer never seen, by :meth:`kind_of` its description.
    by_name
        The priors of observers that were seen.
    seen
        The share of the variance of each of the model's effects, and of the pairs' own, that other observers than the
        reference see: the rest is the reference's own view.
    """

    by_kind: Mapping[str, ObserverPrior] = field(default_factory=dict)
    by_name: Mapping[str, ObserverPrior] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=lambda: dict(SEEN))

    @staticmethod
    def kind_of(spec: ObserverSpec) -> str:
        """Return the key of a kind of observers, such as ``machine graded``."""
        return f"{spec.kind} {spec.scale.partition(':')[0]}"

    def knows(self, spec: ObserverSpec) -> bool:
        """Whether this observer was seen."""
        return spec.name in self.by_name

    def of(self, spec: ObserverSpec) -> ObserverPrior:
        """Return the prior of an observer: its own, or its kind's."""
        return self.by_name.get(spec.name) or self.by_kind.get(self.kind_of(spec), UNSEEN)

    def share(self, level: str, scope: str = "query") -> float:
        """Return the share of an effect's variance that other observers see."""
        return self.seen.get(level, SEEN_ELSEWHERE[scope])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "by_kind": {kind: prior.to_dict() for kind, prior in self.by_kind.items()},
            "by_name": {name: prior.to_dict() for name, prior in self.by_name.items()},
            "seen": dict(self.seen),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ObserverPriors:
        """Restore from plain data."""
        seen = {str(k): float(v) for k, v in data["seen"].items()}
        if not all(0 <= share <= 1 for share in seen.values()):
            raise ValueError("the share of an effect that others see is from 0 to 1")
        return cls(
            by_kind={str(k): ObserverPrior.from_dict(p) for k, p in data["by_kind"].items()},
            by_name={str(k): ObserverPrior.from_dict(p) for k, p in data["by_name"].items()},
            seen=seen,
        )
