r"""Priors over observers, learned from labels of pairs with known grades.

An observer's labels, in units of their standard deviation, measure the latent relevance :math:`\theta_d` of pairs:
:math:`y_d = \kappa + \lambda\theta_d + \text{own effects} + \text{noise}`. The prior of its slope :math:`\lambda`, of
the standard deviations of its own effects and of its level depends on its name if the card has it, else on its kind and
the kind of its scale. A number by an observer never seen may be of any kind that gives numbers. See
docs/theory/observers.md#latent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from probeval.data.observers import ObserverSpec
from probeval.relevance.normal import LOG, Normal

__all__ = ["PAIR", "SIMILARITY", "LabelConstants", "ObserverPrior", "ObserverPriors", "PossiblePrior"]

PAIR = "pair"  # the level of single pairs, beside those of the effects
# rho, the share of an effect's variance that observers other than the reference see. Triads of grades, a language model
# and people on Deep Learning 2019 gave .61 (query), .49 (system on a query) and .37 (pair), here rounded; that of the
# slope of popularity is assumed. Without these shares slopes come out too low (docs/theory/observers.md#reference).
SEEN = {"query": 0.6, "slope": 0.6, "interaction": 0.5, PAIR: 0.4}
# The same of effects without data, by scope. The triads gave 1.0 for systems; that of queries is assumed.
SEEN_ELSEWHERE = {"campaign": 1.0, "query": 0.5}
OWN = Normal(-2.0, 0.8)  # the log sd of an observer's own effect at a level without data, in sds of the labels; stated
BIASES = ("system", "team")  # in cards of earlier versions, levels whose own effects were multiples of relevance's
EARLIER = Normal(-0.9, 0.7)  # the same, of an observer without data
FAVOUR = Normal(1.0, 0.6)  # added to the log bias of an observer that favours systems
SIMILARITY = "similarity number"  # the kind that numbers by a machine may be of
LARGEST = 1e3  # a constant of a card above it is an error, not a choice
ORIGINS = {
    "seen": "triads of grades, a language model and people on Deep Learning 2019, rounded",
    "noise": "stated",
    "reversed": "stated; for kinds and names it falls with the number of columns that were not",
    "favours": "stated",
    "log_favour": "stated: for a strong judge, biases as large as the differences between systems",
    "similarity": "stated: the record of kinds with nothing judged, on campaigns left out",
    "together": "the range .6 to 1.4 of past campaigns",
    "few": "subsets of 2 to 20 systems of past campaigns, rounded",
    "ridge": "stated",
}


@dataclass(frozen=True)
class ObserverPrior:
    r"""The prior of one observer.

    Parameters
    ----------
    log_slope
        :math:`\log|\lambda|`, in standard deviations of the labels per logit of relevance.
    log_own
        The log standard deviations of the observer's own effects by level within queries (effects of the model, and
        ``pair``), in standard deviations of its labels.
    log_bias
        :math:`\log\kappa` of its biases towards systems and teams: at level :math:`k` they have the standard deviation
        :math:`o_k = \kappa\,\bar\sigma_k`, in standard deviations of its labels, with :math:`\bar\sigma_k` the effect
        that is expected of a campaign. They depend neither on the slope nor on the noise of single labels.
    popularity
        The observer's own liking for popular documents, as a multiple of :math:`\lambda\beta`.
    level
        The logit of the mean grade less that of the mean label, each as a share of its maximum; None for scales without
        a maximum.
    reversed
        The probability that its scale is reversed, before its labels are seen.
    """

    log_slope: Normal
    log_own: Mapping[str, Normal]
    log_bias: Normal
    popularity: Normal
    level: Normal | None
    reversed: float

    def own(self, level: str) -> Normal:
        """Return the prior of the log standard deviation of the observer's own effect at a level within queries."""
        return self.log_own.get(level, OWN)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "log_slope": self.log_slope.to_list(),
            "log_own": {level: n.to_list() for level, n in self.log_own.items()},
            "log_bias": self.log_bias.to_list(),
            "popularity": self.popularity.to_list(),
            "level": None if self.level is None else self.level.to_list(),
            "reversed": self.reversed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ObserverPrior:
        """Restore from plain data; biases of earlier versions are multiples of the effect of relevance."""
        own = {str(k): Normal.from_list(n, within=LOG) for k, n in data["log_own"].items()}
        slope = Normal.from_list(data["log_slope"], within=LOG)
        # They were o = r lambda sigma; now o = kappa sigma, so log kappa = log r + log lambda, at the expected slope.
        old = own.get(BIASES[0], EARLIER)
        bias = Normal(old.mean + slope.mean, old.sd)
        turned = float(data.get("reversed", LabelConstants().reversed))
        if not 0 <= turned <= 1:
            raise ValueError("the probability of a reversed scale is from 0 to 1")
        return cls(
            log_slope=slope,
            log_own={level: n for level, n in own.items() if level not in BIASES},
            log_bias=Normal.from_list(data["log_bias"], within=LOG) if "log_bias" in data else bias,
            popularity=Normal.from_list(data["popularity"]),
            level=None if data["level"] is None else Normal.from_list(data["level"]),
            reversed=turned,
        )


class PossiblePrior(NamedTuple):
    """A prior that an observer may have, by its kind, and its probability."""

    kind: str
    weight: float
    prior: ObserverPrior


@dataclass(frozen=True)
class LabelConstants:
    r"""Constants of the model of labels. A card has them with their origin.

    Parameters
    ----------
    seen
        The share of the variance of each of the model's effects, and of the pairs' own, that other observers than the
        reference see: the rest is the reference's own view.
    noise, reversed
        The probabilities that an observer of whom nothing is known is noise, and that it is reversed.
    favours
        The probability that an observer favours systems far beyond its noise.
    log_favour
        What is added to the :math:`\log\kappa` of such an observer.
    similarity
        The probability that numbers by a machine never seen are similarities.
    together
        The standard deviation of the joint slope on the terms, which is 1 on average.
    few
        With :math:`S` systems the standard deviations of the slopes on the terms are :math:`\sqrt{1 + c/S}` times as
        large; this is :math:`c`.
    ridge
        On the correlations of the labels of a family, so that copies share their weight.
    """

    seen: Mapping[str, float] = field(default_factory=lambda: dict(SEEN))
    noise: float = 0.05
    reversed: float = 0.05
    favours: float = 0.1
    log_favour: Normal = FAVOUR
    similarity: float = 0.95
    together: float = 0.4
    few: float = 3.0
    ridge: float = 0.1

    def widening(self, systems: int) -> float:
        r"""Return :math:`\sqrt{1 + c/S}`: what few systems agree on says less of relevance."""
        return float(np.sqrt(1 + self.few / max(systems, 1)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: each constant with its origin."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {"seen": dict(self.seen), "log_favour": self.log_favour.to_list()}
        return {name: {"value": value, "origin": ORIGINS[name]} for name, value in values.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelConstants:
        """Restore from plain data."""
        values = {name: data[name]["value"] for name in ORIGINS}
        seen = {str(k): float(v) for k, v in values.pop("seen").items()}
        favour = Normal.from_list(values.pop("log_favour"), within=LOG)
        numbers = {name: float(value) for name, value in values.items()}
        shares = [*seen.values(), *(numbers[name] for name in ("noise", "reversed", "favours", "similarity"))]
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError("the shares and probabilities of the model of labels are from 0 to 1")
        if not all(0 < numbers[name] <= LARGEST for name in ("together", "few", "ridge")):
            raise ValueError(f"the constants of the model of labels are above 0 and at most {LARGEST:g}")
        return cls(seen=seen, log_favour=favour, **numbers)


# An observer of a kind that the card does not have: the middle of what columns of labels with known grades showed.
UNSEEN = ObserverPrior(
    log_slope=Normal(-1.3, 0.5),
    log_own={
        "query": Normal(-1.0, 0.5),
        "slope": Normal(-2.5, 0.8),
        "interaction": Normal(-1.0, 0.5),
        PAIR: Normal(-0.6, 0.4),
    },
    log_bias=Normal(-2.1, 0.55),
    popularity=Normal(0.0, 0.35),
    level=Normal(-0.4, 0.8),
    reversed=0.05,
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
    constants
        The constants of the model of labels.
    """

    by_kind: Mapping[str, ObserverPrior] = field(default_factory=dict)
    by_name: Mapping[str, ObserverPrior] = field(default_factory=dict)
    constants: LabelConstants = field(default_factory=LabelConstants)

    @staticmethod
    def kind_of(spec: ObserverSpec) -> str:
        """Return the key of a kind of observers, such as ``machine graded``."""
        return f"{spec.kind} {spec.scale.partition(':')[0]}"

    def knows(self, spec: ObserverSpec) -> bool:
        """Whether this observer was seen."""
        return spec.name in self.by_name

    def possible(self, spec: ObserverSpec) -> tuple[PossiblePrior, ...]:
        """Return the priors that an observer may have: its own, or that of each kind that it may be of.

        Numbers by a machine never seen are a judgment of relevance or a similarity, and their name does not tell.
        """
        kind = self.kind_of(spec)
        if self.knows(spec):
            return (PossiblePrior(kind, 1.0, self.by_name[spec.name]),)
        weights = {kind: 1.0}
        # Without judgments a similarity explains its labels as well as a judge does: the prior has to tell them apart.
        # A card that has not learned any similarity cannot do so (docs/theory/observers.md#kinds).
        if kind == "machine number" and SIMILARITY in self.by_kind:
            weights = {kind: 1 - self.constants.similarity, SIMILARITY: self.constants.similarity}
        return tuple(PossiblePrior(k, weight, self.by_kind.get(k, UNSEEN)) for k, weight in weights.items())

    def share(self, level: str, scope: str = "query") -> float:
        """Return the share of an effect's variance that other observers see."""
        return self.constants.seen.get(level, SEEN_ELSEWHERE[scope])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "by_kind": {kind: prior.to_dict() for kind, prior in self.by_kind.items()},
            "by_name": {name: prior.to_dict() for name, prior in self.by_name.items()},
            "constants": self.constants.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ObserverPriors:
        """Restore from plain data; cards of earlier versions have no constants but the shares that observers see."""
        given = (
            data["constants"]
            if "constants" in data
            else {**LabelConstants().to_dict(), "seen": {"value": data["seen"]}}
        )
        return cls(
            by_kind={str(k): ObserverPrior.from_dict(p) for k, p in data["by_kind"].items()},
            by_name={str(k): ObserverPrior.from_dict(p) for k, p in data["by_name"].items()},
            constants=LabelConstants.from_dict(given),
        )
