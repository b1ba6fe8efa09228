r"""How far each source of labels can be trusted: its slope, its noise, and its biases towards teams or systems.

An observer is examined alone, so that the errors of others do not matter, in the model of
:mod:`probeval.relevance.observers.measure`. A *suspect* is a set of documents, those that a team (or a system without a
team) retrieved, whose labels may be shifted by :math:`\delta`. Most observers favour no team, so a shift is either zero
or normal; the probability of each small set of shifted suspects follows from the normal posterior of all shifts,

.. math:: \log\frac{p(h)}{p(\emptyset)} = \log\frac{\pi(h)}{\pi(\emptyset)}
          - \tfrac12\log|I + \tau^2\Lambda_h| + \tfrac12 b_h'(\Lambda_h + \tau^{-2}I)^{-1}b_h

with :math:`\Lambda` and :math:`b` the information of labels and judgments on the shifts. The *kin* of an observer, the
systems with the name of its family, are suspects from the start, each and all together.
See docs/theory/observers.md#trust.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated

import numpy as np

from probeval.arrays import Bools, Codes, Floats
from probeval.data.observers import ObserverSpec
from probeval.data.problem import Problem
from probeval.data.runs import Runs
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import LaplacePosterior, fit_laplace
from probeval.relevance.normal import Normal
from probeval.relevance.observers.conditioning import SUSPECTED, family_block
from probeval.relevance.observers.family import Family, single_families
from probeval.relevance.observers.levels import Stacks, level_variances
from probeval.relevance.observers.measure import measure, reference_design, seen_design
from probeval.relevance.observers.prior import PAIR, SIMILARITY, ObserverPriors
from probeval.relevance.observers.worth import Worth, find_worth
from probeval.threads import one_thread

__all__ = ["KinBias", "ObserverTrust", "SuspectedBias", "examine", "kin_of"]

SUSPICION = 0.05  # the prior probability that labels favour, or disfavour, the documents of one team: most favour none
OF_KIN = 0.25  # the same of a system that is kin of the labeller, and of all its kin together; stated
MAX_SHIFTED = 2  # suspects that may be shifted at once: of n suspects there are then 1 + n + n(n - 1)/2 sets
SMALL = 0.03  # sd of biases by system beside the suspects, in sds of the labels: the suspects have to explain them
DRAWS = 4000  # of the shifts, for intervals: 100 beyond each end of one of 95%
SURE = 0.95  # the probability from which a verdict is given
DOUBTFUL = 0.2  # the probability above which a doubt is said
WORDS = re.compile(r"[^\W_]+")  # of the names of systems


@dataclass(frozen=True)
class SuspectedBias:
    """The shift of an observer's labels on the documents of one team, or of one system without a team.

    Parameters
    ----------
    name, systems
        The team (or system), and its systems.
    p_biased
        The probability that labels are shifted.
    mean, lower, upper
        The shift and its interval, in units of the labels.
    p_within
        The probability that the shift is at most the margin.
    verdict
        ``biased``, ``unbiased`` (within the margin) or ``undecided`` (not enough judged to tell).
    needed
        About how many more judgments would tell; 0 with a verdict, None with nothing judged.
    """

    name: str
    systems: tuple[str, ...]
    p_biased: float
    mean: float
    lower: float
    upper: float
    p_within: float
    verdict: str
    needed: int | None


@dataclass(frozen=True)
class KinBias:
    """The shift of an observer's labels on the documents that its kin retrieved, relative to all others."""

    systems: Annotated[tuple[str, ...], "The systems with the name of its family in theirs, or in that of their team."]
    p_favours: Annotated[float, "The probability that its labels are higher there."]
    mean: Annotated[float, "The shift, in units of the labels."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float
    verdict: Annotated[
        str, "``favours``, ``disfavours``, ``unbiased`` (within the margin) or ``undecided`` (not enough judged)."
    ]


@dataclass(frozen=True)
class ObserverTrust:
    """The reliability of one source of labels, by judgments and the other evidence.

    Parameters
    ----------
    observer, known
        The observer, and whether the model has met it before.
    mean_label
        The mean of its labels, which shows who is generous.
    labelled, judged
        The share of the pool's pairs with a label, and the number of judged pairs among them.
    slope, slope_lower, slope_upper
        Standard deviations of the labels per logit of relevance.
    p_measures, p_noise, p_reversed
        The probabilities that its labels measure relevance, are noise, or are reversed.
    p_similarity
        The probability that its labels are a similarity, if its kind is not known; else None.
    p_favours
        The probability that it favours systems, of any team, far beyond its noise.
    noise
        The standard deviation of labels of single pairs that relevance does not explain, in those of the labels.
    biases
        The suspected biases, the most probable first.
    kin
        Its bias towards the systems with the name of its family; None without any.
    margin
        The shift up to which labels count as unbiased, as a share of their range.
    """

    observer: ObserverSpec
    known: bool
    mean_label: float
    labelled: float
    judged: int
    slope: float
    slope_lower: float
    slope_upper: float
    p_measures: float
    p_noise: float
    p_reversed: float
    p_similarity: float | None
    p_favours: float
    noise: float
    biases: tuple[SuspectedBias, ...]
    kin: KinBias | None
    margin: float

    @property
    def finding(self) -> str:
        """Whom it favours, what else is in doubt, and whether that is known, in a sentence."""
        return f"{'; '.join((*self._biased(), *self._doubts()))}."

    def _biased(self) -> tuple[str, ...]:
        if not self.judged:
            return ("nothing is judged, so nothing can be said of its biases",)
        biased = [b for b in self.biases if b.verdict == "biased"]
        unclear = sum(b.verdict == "undecided" for b in self.biases)
        parts = [f"shifts the labels of {b.name} by {b.mean:+.2f} (P(biased) {b.p_biased:.2f})" for b in biased]
        if self.kin is not None and self.kin.verdict == "favours":
            parts.append(f"favours its kin by {self.kin.mean:+.2f} (P(favours) {self.kin.p_favours:.2f})")
        if unclear:
            parts.append(f"too little is judged to tell of {unclear} of {len(self.biases)} teams")
        if not parts and self.p_favours <= DOUBTFUL:
            parts.append(f"favours no team by more than {self.margin:.0%} of its range")
        return tuple(parts)

    def _doubts(self) -> tuple[str, ...]:
        doubts = {
            "its scale may be reversed (P(reversed)": self.p_reversed,
            "its numbers may be a similarity (P(similarity)": self.p_similarity or 0.0,
            "may favour systems beyond its noise (P(favours)": self.p_favours,
        }
        return tuple(f"{text} {p:.2f})" for text, p in doubts.items() if p > DOUBTFUL)


def examine(
    design: ModelDesign,
    priors: ObserverPriors,
    problem: Problem,
    *,
    margin: float,
    rng: np.random.Generator,
) -> tuple[ObserverTrust, ...]:
    """Return the trust in each source of labels of a campaign, the steepest slope first.

    Parameters
    ----------
    design
        The campaign before its labels are seen.
    priors
        The priors of observers.
    problem
        The campaign, with labels and the judgments so far.
    margin
        The shift up to which labels count as unbiased, as a share of the range of the labels.
    rng
        Draws the shifts for intervals.
    """
    labels = problem.labels
    assert labels is not None
    suspects = Suspects.of(problem.lists)
    found = single_families(labels, priors, counts=design.counts)
    out = []
    with one_thread():
        stacks = Stacks(seen_design(design, priors))
        for family in found:
            given = labels.values[:, labels.sources.index(family.name)]
            own = suspects.with_kin(kin_of(family.members[0], problem.lists))
            out.append(_examine_one(design, stacks, priors, family, own, given, problem.grades.codes, margin, rng))
    return tuple(sorted(out, key=lambda trust: -trust.slope))


def kin_of(observer: ObserverSpec, runs: Runs) -> tuple[str, ...]:
    """Return the systems whose name, or whose team's, has the family of an observer as a word; none if all have.

    >>> runs = Runs.rows(["bm25", "bm25--rank1-7b"], ["q", "q"], ["d", "d"], [1, 1])
    >>> kin_of(ObserverSpec("rank1_32b"), runs)
    ('bm25--rank1-7b',)
    """
    teams = runs.systems if runs.teams is None else runs.teams
    family = observer.family.lower()
    kin = tuple(
        str(system)
        for system, team in zip(runs.systems, teams, strict=True)
        if family in WORDS.findall(f"{system} {team}".lower())
    )
    return kin if len(kin) < len(runs.systems) else ()


@dataclass(frozen=True, eq=False)
class Suspects:
    """Sets of documents whose labels may be shifted: of each team or system without a team, and of a labeller's kin.

    Parameters
    ----------
    names, systems
        The teams, and the systems of each.
    columns
        1 for the documents of each set, else 0, shape (pair, set): those of the teams first.
    reach
        Which teams each set concerns, shape (set, team).
    suspicion
        The prior probability that each set is shifted, shape (set,).
    kin
        The documents that the labeller's kin retrieved, shape (pair,), and the names of these systems.
    """

    names: tuple[str, ...]
    systems: tuple[tuple[str, ...], ...]
    columns: Floats
    reach: Bools
    suspicion: Floats
    kin: Bools
    kin_systems: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: Runs) -> Suspects:
        """Return the documents of each team as suspects."""
        members: dict[str, list[int]] = {}
        for system, team in enumerate(runs.systems if runs.teams is None else runs.teams):
            members.setdefault(str(team), []).append(system)
        columns = np.zeros((len(runs.pool), len(members)))
        for i, of in enumerate(members.values()):
            pairs = runs.pairs[of]
            columns[np.unique(pairs[pairs >= 0]), i] = 1.0
        systems = tuple(tuple(str(runs.systems[s]) for s in of) for of in members.values())
        n = len(members)
        nobody = np.zeros(len(runs.pool), dtype=bool)
        return cls(tuple(members), systems, columns, np.eye(n, dtype=bool), np.full(n, SUSPICION), nobody)

    def with_kin(self, kin: Sequence[str]) -> Suspects:
        """Return the same where some systems are kin of the labeller: suspects from the start, each and together."""
        related = np.array([bool(set(of) & set(kin)) for of in self.systems])
        if not related.any():
            return self
        docs: Bools = self.columns[:, related].max(axis=1) > 0
        suspicion = np.where(related, OF_KIN, self.suspicion)
        found = replace(self, suspicion=suspicion, kin=docs, kin_systems=tuple(kin))
        if related.sum() == 1:
            return found
        return replace(
            found,
            columns=np.column_stack([self.columns, docs]),
            reach=np.vstack([self.reach, related]),
            suspicion=np.append(suspicion, OF_KIN),
        )

    @property
    def centred(self) -> Floats:
        """The columns less their means: a shift leaves the mean label as it is, which is the family's level."""
        return np.asarray(self.columns - self.columns.mean(axis=0))

    @property
    def towards_kin(self) -> Floats:
        """The mean of each column over the documents of the kin, less that over the others, shape (set,)."""
        return np.asarray(self.columns[self.kin].mean(axis=0) - self.columns[~self.kin].mean(axis=0))


def _examine_one(
    design: ModelDesign,
    stacks: Stacks,
    priors: ObserverPriors,
    family: Family,
    suspects: Suspects,
    labels: Floats,
    judged: Codes,
    margin: float,
    rng: np.random.Generator,
) -> ObserverTrust:
    # Two fits: the model as it is for sign, kind and slope; one in which only suspects can be favoured for the shifts.
    levels = level_variances(stacks, family.scores, family.extra)
    worth = find_worth(stacks.design, priors, [family], [levels])

    def fitted(family: Family, settings: Sequence[Worth]) -> LaplacePosterior:
        reference = reference_design(design, priors, [family])
        measured = tuple(measure(stacks, reference, priors, [family], setting) for setting in settings)
        return fit_laplace(replace(reference, measured=measured), judged)

    posterior = fitted(family, worth.settings)
    suspected = replace(family, suspects=suspects.centred)
    shifted = fitted(suspected, [_without_biases(s, design) for s in worth.settings])
    draws, included = _shifts(shifted, suspected, suspects, rng)
    member = family.members[0]
    both = (judged >= 0) & ~np.isnan(labels)
    unit = float(np.nanstd(labels))  # shifts are in sds of the labels, the margin is a share of their range
    spread = float(np.nanmax(labels) - np.nanmin(labels))
    # Judgments have reweighted the settings, so each probability is a sum of weights.
    slopes = np.array([abs(s.slopes[0]) for s in worth.settings])
    signs = np.sign([s.slopes[0] for s in worth.settings])
    taken = [s.hypotheses[0] for s in worth.settings]
    similar = float(posterior.weights @ [hypothesis.kind == SIMILARITY for hypothesis in taken])
    centre, width = _log_slope(posterior.weights, slopes, worth.log_slopes[0])
    own = float(posterior.weights @ [s.own[0][PAIR] for s in worth.settings])
    return ObserverTrust(
        observer=member,
        known=priors.knows(member),
        mean_label=float(np.nanmean(labels)),
        labelled=float(np.mean(~np.isnan(labels))),
        judged=int(both.sum()),
        slope=float(np.exp(centre)),
        slope_lower=float(np.exp(centre - 1.96 * width)),
        slope_upper=float(np.exp(centre + 1.96 * width)),
        p_measures=float(posterior.weights @ (signs > 0)),
        p_noise=float(posterior.weights @ (signs == 0)),
        p_reversed=float(posterior.weights @ (signs < 0)),
        p_similarity=similar if len(family.priors) > 1 else None,
        p_favours=float(posterior.weights @ [hypothesis.favours for hypothesis in taken]),
        noise=own,
        biases=_biases(suspects, draws @ suspects.reach * unit, included, margin * spread, int(both.sum())),
        kin=_kin(suspects, draws * unit, margin * spread, int(both.sum())),
        margin=margin,
    )


def _without_biases(setting: Worth, design: ModelDesign) -> Worth:
    small = {e.name: SMALL for e in design.of_campaign}
    return replace(setting, own=tuple({**own, **small} for own in setting.own))


def _shifts(
    posterior: LaplacePosterior, family: Family, suspects: Suspects, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return draws of all shifts, shape (draw, set), and the probability that the labels of each team are shifted."""
    where = posterior.problem.layout[family_block(family, "suspects")]
    n = where.stop - where.start
    parts, included = [], np.zeros(len(suspects.names))
    ends = np.round(np.cumsum(posterior.weights) * DRAWS).astype(int)
    for mode, weight, size in zip(posterior.modes, posterior.weights, np.diff(ends, prepend=0).tolist(), strict=True):
        # The fit gave every shift the prior N(0, tau^2). Without it, labels and judgments have the information
        # Lambda = Cov^-1 - I/tau^2 on the shifts, and b = Cov^-1 E[delta].
        inverse = np.linalg.inv(mode.schur)
        covariance = (inverse.T @ inverse)[where, where]
        precision = np.linalg.inv(covariance)
        information = precision - np.eye(n) / SUSPECTED.sd**2
        right = precision @ mode.campaign[where]
        sets, probability = _sets(information, right, suspects.suspicion)
        for chosen, p in zip(sets, probability, strict=True):
            included[suspects.reach[list(chosen)].any(axis=0)] += weight * p
        # First a set h of suspects, then their shifts N(C b_h, C) with C = (Lambda_h + I/tau^2)^-1; others are 0.
        drawn = np.zeros((size, n))
        which = rng.choice(len(sets), size=size, p=probability)
        for number in np.unique(which).tolist():
            at, rows = list(sets[number]), np.flatnonzero(which == number)
            if at:
                inner = np.linalg.inv(information[np.ix_(at, at)] + np.eye(len(at)) / SUSPECTED.sd**2)
                normal = rng.standard_normal((len(rows), len(at))) @ np.linalg.cholesky(inner).T
                drawn[np.ix_(rows, at)] = inner @ right[at] + normal
        parts.append(drawn)
    return np.concatenate(parts), included


def _sets(information: Floats, right: Floats, suspicion: Floats) -> tuple[list[tuple[int, ...]], Floats]:
    # Bayes factors of a spike and a normal, relative to the empty set; the formula is that of the module
    # (docs/theory/observers.md#suspects).
    n = len(right)
    sets: list[tuple[int, ...]] = [h for size in range(MAX_SHIFTED + 1) for h in combinations(range(n), size)]
    variance = SUSPECTED.sd**2
    log_odds = np.log(suspicion / (1 - suspicion))
    log_p = np.empty(len(sets))
    for i, h in enumerate(sets):
        at = list(h)
        inner = information[np.ix_(at, at)]
        inside = np.eye(len(at)) + variance * inner
        gain = right[at] @ np.linalg.solve(inner + np.eye(len(at)) / variance, right[at]) if at else 0.0
        log_p[i] = log_odds[at].sum() - np.linalg.slogdet(inside)[1] / 2 + gain / 2
    weight = np.exp(log_p - log_p.max())
    return sets, np.asarray(weight / weight.sum())


def _biases(
    suspects: Suspects, draws: Floats, included: Floats, margin: float, judged: int
) -> tuple[SuspectedBias, ...]:
    out = []
    for i, (name, systems) in enumerate(zip(suspects.names, suspects.systems, strict=True)):
        mine = draws[:, i]
        within = float(np.mean(np.abs(mine) <= margin))
        lower, upper = (float(q) for q in np.quantile(mine, [0.025, 0.975]))
        verdict = "undecided"
        if judged and included[i] >= SURE:
            verdict = "biased"
        elif judged and within >= SURE:
            verdict = "unbiased"
        out.append(
            SuspectedBias(
                name=name,
                systems=systems,
                p_biased=float(included[i]),
                mean=float(mine.mean()),
                lower=lower,
                upper=upper,
                p_within=within,
                verdict=verdict,
                needed=0 if verdict != "undecided" else _needed(mine, margin, judged),
            )
        )
    return tuple(sorted(out, key=lambda bias: -bias.p_biased))


def _kin(suspects: Suspects, draws: Floats, margin: float, judged: int) -> KinBias | None:
    if not suspects.kin_systems or suspects.kin.all():
        return None
    mine = draws @ suspects.towards_kin
    higher, lower = float(np.mean(mine > 0)), float(np.mean(mine < 0))
    verdict = "undecided"
    if judged and max(higher, lower) >= SURE:
        verdict = "favours" if higher > lower else "disfavours"
    elif judged and np.mean(np.abs(mine) <= margin) >= SURE:
        verdict = "unbiased"
    low, high = (float(q) for q in np.quantile(mine, [0.025, 0.975]))
    return KinBias(suspects.kin_systems, higher, float(mine.mean()), low, high, verdict)


def _needed(shift: Floats, margin: float, judged: int) -> int | None:
    # The variance of the shift falls as 1/n, and 1.96 sd is to be the margin: n ((1.96 sd/margin)^2 - 1) more
    # (docs/theory/observers.md#verdicts). Without a verdict it is never less than a tenth of those judged.
    if not judged:
        return None
    ratio = (1.96 * float(np.std(shift)) / max(margin, 1e-9)) ** 2
    return max(int(np.ceil(judged * (max(ratio, 1.1) - 1))), 1)


def _log_slope(weights: Floats, slopes: Floats, prior: Normal) -> tuple[float, float]:
    """Return the mean and standard deviation of the log slope over the settings in which labels are not noise.

    The standard deviation is at least a third of that before judgments, as the settings are few.
    """
    steep = slopes > 0
    weight = weights[steep] / max(float(weights[steep].sum()), 1e-12)
    log = np.log(slopes[steep])
    if not len(log):
        return prior.mean, prior.sd
    mean = float(weight @ log)
    return mean, max(float(np.sqrt(weight @ (log - mean) ** 2)), prior.sd / 3)
