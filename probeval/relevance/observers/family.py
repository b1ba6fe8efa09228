r"""The labels of a family of observers as one measurement per pair.

Observers of one family (one language model with several prompts) share errors, so their labels are combined before
they are used: with :math:`C` the correlations of their labels and :math:`\lambda` their expected slopes, the weights
are :math:`C^{-1}\lambda`. A column that copies another adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import logit

from probeval.arrays import Floats, frozen
from probeval.data.evidence import LabelTable
from probeval.data.observers import ObserverSpec
from probeval.relevance.normal import Normal
from probeval.relevance.observers.prior import ObserverPrior, ObserverPriors, PossiblePrior

__all__ = ["Family", "FamilyUnits", "distinguishes", "family_units", "highest_label", "single_families"]

FEWEST = 20  # pairs that two members both labelled, for their correlation; with fewer it counts as 0
RARE = 0.01  # the share of labels that must reach the top of a scale: rarer ones are slips
ENDS = 0.01  # the mean label is kept this far from the ends of its scale, where the logit is infinite


@dataclass(frozen=True, eq=False)
class Family:
    """The labels of a family as one measurement per pair.

    Parameters
    ----------
    name
        The family.
    members
        The observers whose labels are combined.
    scores
        The combined labels in units of their standard deviation, 0 where there is none, shape (pair,).
    extra
        The additional noise variance of pairs that some members did not label, infinite without any label, shape
        (pair,).
    priors
        The priors that the family may have as an observer, by its kind.
    level
        The logit of the mean grade of retrieved documents, as a share of its maximum, that the mean labels suggest;
        None if they suggest none.
    suspects
        Columns of suspected biases, such as the documents of a team, of which the trust report finds the size; shape
        (pair, column).
    unit
        The standard deviation of the labels before they were divided by it, as a share of their range; None for
        families of several members or without a range.
    """

    name: str
    members: tuple[ObserverSpec, ...]
    scores: Floats
    extra: Floats
    priors: tuple[PossiblePrior, ...]
    level: Normal | None
    unit: float | None
    suspects: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", frozen(self.scores))
        object.__setattr__(self, "extra", frozen(self.extra))

    @property
    def labelled(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask of the labelled pairs, shape (pair,)."""
        return np.isfinite(self.extra)


def distinguishes(labels: LabelTable) -> bool:
    """Whether a column has two different labels; without one, labels are as good as none."""
    return any(np.unique(column[~np.isnan(column)]).size > 1 for column in labels.values.T)


@dataclass(frozen=True, eq=False)
class FamilyUnits:
    """The constants by which the labels of a family become one measurement per pair.

    They are found once, from all queries or a sample, and are the same for every part of a campaign. The first five
    fields are those of :class:`Family`.
    """

    name: str
    members: tuple[ObserverSpec, ...]
    priors: tuple[PossiblePrior, ...]
    level: Normal | None
    unit: float | None
    columns: tuple[int, ...]  # of the members, in the table of labels
    centres: Floats  # the mean of each member's labels, shape (member,)
    sds: Floats  # their standard deviation
    weights: Floats  # negative for a member that contradicts the majority, shape (member,)
    correlation: Floats  # of the members' labels, as they are, shape (member, member)
    centre: float = 0.0  # the mean of the weighted means
    sd: float = 1.0  # their standard deviation

    def on(self, labels: Floats) -> Family:
        """Return the measurement of some pairs from their labels, shape (pair, source)."""
        standard = (labels[:, self.columns] - self.centres) / self.sds
        scores, extra = _combined(standard, self.weights, self.correlation)
        labelled = np.isfinite(extra)
        scores[labelled] = (scores[labelled] - self.centre) / self.sd
        return Family(self.name, self.members, scores, extra, self.priors, self.level, self.unit)


def family_units(labels: LabelTable, priors: ObserverPriors, *, counts: Floats) -> tuple[FamilyUnits, ...]:
    """Return the families of the observers of a pool's labels; columns without two different labels are left out.

    ``counts`` is the number of systems that retrieved each pair, shape (pair,).
    """
    by_family: dict[tuple[str, str], list[int]] = {}
    for i, spec in enumerate(labels.observers):
        by_family.setdefault((spec.kind, spec.family), []).append(i)
    out = (_units(name, labels, columns, priors, counts) for (_, name), columns in by_family.items())
    return tuple(family for family in out if family is not None)


def single_families(labels: LabelTable, priors: ObserverPriors, *, counts: Floats) -> tuple[Family, ...]:
    """Return each observer as a family of its own, as the trust report and learning need them."""
    out = (_units(s, labels, [i], priors, counts) for i, s in enumerate(labels.sources))
    return tuple(units.on(labels.values) for units in out if units is not None)


def _units(
    name: str, labels: LabelTable, columns: Sequence[int], priors: ObserverPriors, counts: Floats
) -> FamilyUnits | None:
    values = labels.values
    columns = [i for i in columns if np.unique(values[~np.isnan(values[:, i]), i]).size > 1]
    if not columns:
        return None
    members = tuple(labels.observers[i] for i in columns)
    mine = values[:, columns]
    centres, sds = np.nanmean(mine, axis=0), np.nanstd(mine, axis=0)
    known = [priors.possible(member) for member in members]
    # A member whose kind is in doubt has the mean slope of its kinds.
    expected = [sum(p.weight * float(np.exp(p.prior.log_slope.mean)) for p in each) for each in known]
    weights, correlation = _weights((mine - centres) / sds, np.array(expected), priors.constants.ridge)
    ranges = [highest_label(member, column) for member, column in zip(members, mine.T, strict=True)]
    units = FamilyUnits(
        name=name,
        members=members,
        priors=_priors(known, weights, correlation),
        level=_level(mine, counts, ranges, [each[0].prior for each in known]),
        unit=float(sds[0]) / ranges[0] if len(members) == 1 and ranges[0] else None,
        columns=tuple(columns),
        centres=centres,
        sds=sds,
        weights=weights,
        correlation=correlation,
    )
    # Priors are in sds of the labels of one observer, so the weighted mean is divided by its own sd.
    combined = units.on(values)
    scores = combined.scores[combined.labelled]
    centre = float(scores.mean())
    return replace(units, centre=centre, sd=float((scores - centre).std()) or 1.0)


def _weights(standard: Floats, slopes: Floats, ridge: float) -> tuple[Floats, Floats]:
    # w = max{(C + r I)^-1 lambda, 0}, the weights of the best linear estimate of relevance from correlated labels
    # (docs/theory/observers.md#families).
    n = len(slopes)
    correlation = pd.DataFrame(standard).corr(min_periods=FEWEST).fillna(0.0).to_numpy(copy=True)
    np.fill_diagonal(correlation, 1.0)
    # Expected slopes have no sign. The first principal component shows who contradicts the majority: these members are
    # turned, and the sign of the family as a whole is a hypothesis later (worth.hypotheses_of).
    leading = np.linalg.eigh(correlation)[1][:, -1]
    sign = np.where(leading * np.sign(leading.sum() or 1.0) < 0, -1.0, 1.0)
    correlation *= np.outer(sign, sign)
    # The ridge r keeps the matrix invertible with copies, which then share one weight. A negative weight would subtract
    # a member for being a worse copy of another: it is 0 instead.
    weights = np.maximum(np.linalg.solve(correlation + ridge * np.eye(n), slopes), 0.0)
    # The weights carry the signs, so the correlations are those of the labels as they are again.
    return sign * (weights if weights.any() else slopes), correlation * np.outer(sign, sign)


def _combined(standard: Floats, weights: Floats, correlation: Floats) -> tuple[Floats, Floats]:
    scores, extra = np.zeros(len(standard)), np.full(len(standard), np.inf)
    # Pairs labelled by the same members have the same weights: one step per pattern, not per pair.
    here = ~np.isnan(standard)
    patterns, which = np.unique(here, axis=0, return_inverse=True)
    whole = _variance(weights, correlation)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == number)
        w = np.where(pattern, weights, 0.0)
        if not w.any():
            continue
        scores[rows] = np.nan_to_num(standard[rows]) @ w / np.abs(w).sum()
        # A mean over fewer members varies more. The excess, in units of the variance of the complete mean, is noise.
        extra[rows] = max(_variance(w, correlation) / whole - 1.0, 0.0)
    return scores, extra


def _variance(weights: Floats, correlation: Floats) -> float:
    # Var[sum_j w_j z_j / sum_j |w_j|] of standardised labels z.
    return float(weights @ correlation @ weights) / float(np.abs(weights).sum()) ** 2


def _priors(
    known: Sequence[tuple[PossiblePrior, ...]], weights: Floats, correlation: Floats
) -> tuple[PossiblePrior, ...]:
    """Return the priors that the combined labels may have: members whose kind is in doubt are of one kind."""
    doubtful = max(known, key=len)
    return tuple(
        case._replace(prior=_prior([each[min(i, len(each) - 1)].prior for each in known], weights, correlation))
        for i, case in enumerate(doubtful)
    )


def _prior(known: Sequence[ObserverPrior], weights: Floats, correlation: Floats) -> ObserverPrior:
    if len(known) == 1:
        return known[0]
    # The combined label is sum_j w_j z_j / sqrt(w'Cw), so its slope is the sum of these shares of the members' slopes.
    # Members are turned to agree, so shares are positive. Own effects add up as sds: members of a family share them.
    share = np.abs(weights) / np.sqrt(max(float(weights @ correlation @ weights), 1e-12))
    best = int(np.argmax(share))  # what does not add up (spreads, bias, liking, reversal) is that of the main member

    def combined(normals: Sequence[Normal]) -> Normal:
        return Normal(float(np.log(share @ np.exp([n.mean for n in normals]))), normals[best].sd)

    levels = {level for prior in known for level in prior.log_own}
    return replace(
        known[best],
        log_slope=combined([p.log_slope for p in known]),
        log_own={level: combined([p.own(level) for p in known]) for level in sorted(levels)},
    )


def highest_label(member: ObserverSpec, labels: Floats) -> float | None:
    """Return the highest label of a scale that has one; labels beyond it that hardly occur are slips.

    >>> highest_label(ObserverSpec("bot", scale="graded:5"), np.array([0.0, 1.0, 2.0] * 50 + [5.0]))
    2.0
    """
    if member.levels is None:
        return None
    given = labels[~np.isnan(labels)]
    reached = [top for top in range(member.levels - 1, 0, -1) if np.mean(given >= top) >= RARE]
    return float(reached[0]) if reached else float(member.levels - 1)


def _level(
    values: Floats, counts: Floats, ranges: Sequence[float | None], known: Sequence[ObserverPrior]
) -> Normal | None:
    # logit(mean grade) = logit(mean label) + N(mu, s), each as a share of its maximum. A document counts once for each
    # system that retrieved it, as in the scores of systems (docs/theory/observers.md#level-link).
    found = []
    for column, top, prior in zip(values.T, ranges, known, strict=True):
        if top and prior.level is not None:
            here = ~np.isnan(column)
            mean = float(column[here] @ counts[here]) / max(float(counts[here].sum()), 1.0)
            share = float(np.clip(mean / top, ENDS, 1 - ENDS))
            found.append(Normal(float(logit(share)) + prior.level.mean, prior.level.sd))
    return min(found, key=lambda n: n.sd) if found else None
