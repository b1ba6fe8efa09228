r"""Relevance given labels: the prior of a campaign's judgments once its labels are seen.

Given the worth of labels everything about them is normal. Within a query the seen part of relevance
:math:`x \sim N(0, K)` is measured by each family in turn:

.. math:: y = A g + \lambda x + \epsilon,\quad \epsilon \sim N(0, E)\qquad\Rightarrow\qquad
          x \mid y, g \sim N\big(\lambda K V^{-1}(y - Ag),\; K - \lambda^2 K V^{-1} K\big),\quad V = \lambda^2 K + E

with :math:`g` the campaign's parameters (those of relevance, and the family's level, likings and biases), of which
labels give the information :math:`A'V^{-1}A`. The result is again a normal prior in :math:`g` and :math:`x`, with
which judgments are fitted as before. See docs/theory/observers.md#measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import expit

from probeval.arrays import Floats
from probeval.data.evidence import LabelTable
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.effects.effect import Columns
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import CampaignColumns, DesignedEffect, ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import Family, families
from probeval.relevance.observers.levels import MISSING, LevelVariances, Stacks, level_variances
from probeval.relevance.observers.prior import PAIR, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC, TOGETHER, Worth, WorthPosterior, find_worth, joint_slope
from probeval.threads import in_order

__all__ = [
    "LabelEvidence",
    "LevelTarget",
    "family_block",
    "level_target",
    "measure",
    "measure_labels",
    "measured_design",
    "pair_scale",
    "with_labels",
]

LEVEL = Normal(0.0, 3.0)  # the level of a family's labels, in their sds
SUSPECTED = Normal(0.0, 0.5)  # a suspected bias, if there is one, in sds of the labels
LIKING = 0.02  # the least sd of a family's own slope on a term
FARTHEST = 12.0  # logits, between the level of grades and the one that labels suggest


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    """The labels of a campaign and their worth.

    Parameters
    ----------
    design
        The campaign before its labels are seen, with the effects that observers see.
    priors
        The priors of observers.
    families, levels
        The families of observers, and the variances of their labels.
    worth
        The posterior of the worth of labels, before any judgment.
    """

    design: ModelDesign
    priors: ObserverPriors
    families: tuple[Family, ...]
    levels: tuple[LevelVariances, ...]
    worth: WorthPosterior


def with_labels(
    design: ModelDesign, priors: ObserverPriors, labels: LabelTable, *, worth_factor: float = 1.0
) -> ModelDesign:
    """Return the design of a campaign given its labels; unchanged if no column has two different labels.

    ``worth_factor`` divides the errors of all labels, to see what would change were they worth less, or more, than they
    seem.
    """
    found = families(labels, design.pool, priors, counts=design.counts)
    return measured_design(design, priors, found, worth_factor=worth_factor) if found else design


def measured_design(
    design: ModelDesign, priors: ObserverPriors, found: Sequence[Family], *, worth_factor: float = 1.0
) -> ModelDesign:
    """Return the design of a campaign given the labels of some families.

    Effects with a stated prior are the reference observer's alone: nothing is known of how others see them.
    """
    seen = replace(design, effects=tuple(e for e in design.effects if e.effect.stated is None))
    stacks = Stacks(seen)
    levels = tuple(in_order(lambda family: level_variances(stacks, family.scores, family.extra), found))
    worth = find_worth(seen, priors, found, levels)
    reference = reference_design(design, priors, found)
    settings = [
        replace(w, own=tuple({level: sd / worth_factor for level, sd in own.items()} for own in w.own))
        for w in worth.settings
    ]
    measured = tuple(in_order(lambda setting: measure(stacks, reference, priors, found, setting), settings))
    evidence = LabelEvidence(seen, priors, tuple(found), levels, worth)
    return replace(reference, measured=measured, evidence=evidence)


def pair_scale(priors: ObserverPriors) -> float:
    """Return the factor of all logits once the pairs' own seen effects are no longer part of the noise."""
    return float(1 / np.sqrt(1 - priors.share(PAIR)))


def family_block(family: Family, part: str) -> str:
    """Return the name of a block of a family's parameters: ``level``, ``terms``, or an effect of the campaign."""
    return f"{family.name}: {part}"


def reference_design(design: ModelDesign, priors: ObserverPriors, found: Sequence[Family]) -> ModelDesign:
    """Return the design of the reference observer's grades: its own views as effects, the seen part given by labels.

    All logits are larger, as the noise of a grade is what no other observer sees of a pair. Effects of the campaign and
    parameters of families are columns with a common prior, given by labels.
    """
    scale = pair_scale(priors)
    own = []
    for e in design.effects:
        if e.effect.acts_on == "cutpoints":
            own.append(e)
        elif e.effect.scope == "query":
            share = priors.share(e.name) if e.effect.stated is None else 0.0
            factor = float(np.log(scale * np.sqrt(1 - share)))
            own.append(DesignedEffect(e.effect, e.columns, Normal(e.log_sd.mean + factor, e.log_sd.sd)))
    common = [CampaignColumns(e.name, e.columns) for e in design.of_campaign]
    sizes = {"level": 1, "terms": design.terms.shape[1]} | {c.name: c.columns.n_columns for c in common}
    for family in found:
        suspects = {} if family.suspects is None else {"suspects": family.suspects.shape[1]}
        for part, size in (sizes | suspects).items():
            nothing = Columns.of(csr_array((len(design.pool), size)))
            common.append(CampaignColumns(family_block(family, part), nothing))
    return replace(
        design,
        coefficients=tuple(c.times(scale) for c in design.coefficients),
        cuts=tuple(c.times(scale) for c in design.cuts),
        effects=tuple(own),
        common=tuple(common),
    )


def measure(
    stacks: Stacks, reference: ModelDesign, priors: ObserverPriors, found: Sequence[Family], worth: Worth
) -> MeasuredPrior:
    """Return the prior given labels and the level that they suggest, at one setting of their worth."""
    prior = measure_labels(stacks, reference, priors, found, worth)
    level = _suggested_level(found, worth)
    return prior if level is None else _with_level(prior, reference, level)


def measure_labels(
    stacks: Stacks, reference: ModelDesign, priors: ObserverPriors, found: Sequence[Family], worth: Worth
) -> MeasuredPrior:
    """Return the prior given the labels of all families, at one setting of their worth."""
    layout, scale = Layout.of(reference), pair_scale(priors)
    mean, precision = np.zeros(layout.size), np.zeros(layout.size)
    for where, known in ((layout.cuts, reference.cuts), (layout["coefficients"], reference.coefficients)):
        mean[where] = [p.mean for p in known]
        precision[where] = [p.sd**-2.0 for p in known]
    for effect in stacks.design.of_campaign:
        precision[layout[effect.name]] = (worth.sds[effect.name] * scale) ** -2.0
    slopes = [slope / scale for slope in worth.slopes]
    information = np.diag(precision)
    right = precision * mean
    for row in joint_slope(stacks.design) / scale:
        where = layout["coefficients"]
        information[where, where] += np.outer(row, row) / TOGETHER**2
        right[where] += row / TOGETHER**2
    for family, slope, own, liking in zip(found, slopes, worth.own, worth.popularity, strict=True):
        information += _family_prior(stacks, reference, layout, family, slope, own, liking)
    every = np.concatenate([stacks.with_level, *(f.suspects for f in found if f.suspects is not None)], axis=1)
    ends = np.cumsum([stacks.with_level.shape[1], *(0 if f.suspects is None else f.suspects.shape[1] for f in found)])
    maps = [
        _family_map(stacks, layout, family, slope, slice(int(a), int(b)), every.shape[1])
        for family, slope, a, b in zip(found, slopes, ends, ends[1:], strict=False)
    ]
    basis = Basis(maps, slopes)
    offset, response = np.zeros(len(reference.pool)), np.zeros((len(reference.pool), basis.width))
    seen, queries = [], []
    for stack in stacks.stacks:
        own_variance = np.full(stack.pairs.shape, priors.share(PAIR) * LOGISTIC * scale**2)
        k = stack.covariances(own_variance, {n: np.sqrt(priors.share(n)) * worth.sds[n] * scale for n in stack.factors})
        rows = every[stack.pairs]
        m, t = np.zeros(stack.pairs.shape), rows[:, :, :0]
        for i, (family, slope, own) in enumerate(zip(found, slopes, worth.own, strict=True)):
            extra = family.extra[stack.pairs]
            noise = own[PAIR] ** 2 + np.where(np.isfinite(extra), extra, MISSING)
            labels = k.observed(slope, noise, stack.factor(own))
            a = np.concatenate([rows, t], axis=2)
            residual = family.scores[stack.pairs] - slope * m
            basis.add(i, a, labels.covariances.inverse.times(a), residual)
            m = m + labels.gain_times(residual[..., None])[..., 0]
            moved = labels.gain_times(a)
            width = rows.shape[2]
            t = np.concatenate([t - slope * moved[:, :, width:], -moved[:, :, :width]], axis=2)
            k = labels.posterior()
        offset[stack.pairs], response[stack.pairs] = m, t
        seen.append(SeenStack(stack.pairs, k))
        queries.append(reference.pool.query[stack.pairs[:, 0]])
    columns = layout.columns
    of_labels, to_labels = basis.information()
    information[columns, columns] += of_labels
    right[columns] += to_labels
    return MeasuredPrior(
        worth.weight,
        np.asarray(np.linalg.solve(information, right)),
        information,
        offset,
        response,
        basis.response,
        tuple(seen),
        tuple(queries),
    )


class Basis:
    r"""The information of labels on the campaign's parameters, in a basis with few columns.

    With :math:`F` the columns of the level, the terms and the campaign's effects, those of a family's labels are
    :math:`F M_i`; relevance given the labels of the families before has the columns :math:`B = T C`, in which :math:`T`
    has one part per family and :math:`C` stacks their :math:`M`. So :math:`A_i = [F\ T]\,[M_i;\ \lambda_i C]`, and
    sums over queries need the products of :math:`[F\ T]` only.
    """

    def __init__(self, maps: Sequence[Floats], slopes: Sequence[float]) -> None:
        self.response = np.concatenate(maps)
        sizes = [len(m) for m in maps]
        self.width = sum(sizes)
        befores = [self.response[: sum(sizes[:i])] for i in range(len(maps))]
        self.maps = [np.concatenate([m, s * c]) for m, s, c in zip(maps, slopes, befores, strict=True)]
        self.products = [np.zeros((len(m), len(m))) for m in self.maps]
        self.right = [np.zeros(len(m)) for m in self.maps]

    def add(self, family: int, a: Floats, weighed: Floats, residual: Floats) -> None:
        """Add some queries: their columns, the same weighed by the labels' precision, and the labels."""
        self.products[family] += np.tensordot(a, weighed, axes=([0, 1], [0, 1]))
        self.right[family] += np.tensordot(weighed, residual, axes=([0, 1], [0, 1]))

    def information(self) -> tuple[Floats, Floats]:
        """Return the sums over families, in the campaign's parameters."""
        information = sum(m.T @ products @ m for m, products in zip(self.maps, self.products, strict=True))
        right = sum(m.T @ r for m, r in zip(self.maps, self.right, strict=True))
        return np.asarray(information), np.asarray(right)


def _family_map(
    stacks: Stacks, layout: Layout, family: Family, slope: float, suspects: slice, n_columns: int
) -> Floats:
    """Return the map from the campaign's parameters to the coefficients of a family's labels.

    Shape (coefficient, parameter): the coefficients are those of the level, the terms, the campaign's effects and the
    suspects of all families, of which this one has those at ``suspects``; the parameters are those of the layout
    without cutpoints. Relevance counts times the slope.
    """
    first = layout.columns.start
    out = np.zeros((n_columns, layout.size - first))

    def place(rows: slice, block: str, factor: float) -> None:
        where = layout[block]
        out[rows, where.start - first : where.stop - first] += factor * np.eye(where.stop - where.start)

    place(slice(0, 1), family_block(family, "level"), 1.0)
    for name, where in stacks.columns.items():
        rows = slice(1 + where.start, 1 + where.stop)
        place(rows, "coefficients" if name == "terms" else name, slope)
        place(rows, family_block(family, name), 1.0)
    if family.suspects is not None:
        place(suspects, family_block(family, "suspects"), 1.0)
    return out


def _family_prior(
    stacks: Stacks,
    reference: ModelDesign,
    layout: Layout,
    family: Family,
    slope: float,
    own: Mapping[str, float],
    liking: float,
) -> Floats:
    """Return the prior precision of a family's parameters; its slopes on terms are tied to those of relevance."""
    out = np.zeros((layout.size, layout.size))
    level = layout[family_block(family, "level")].start
    out[level, level] = LEVEL.sd**-2.0
    terms = layout[family_block(family, "terms")]
    for i, coefficient in enumerate(reference.coefficients):
        tie = np.zeros(layout.size)
        tie[terms.start + i], tie[layout["coefficients"].start + i] = 1.0, -liking * slope
        spread = family.prior.popularity.sd * abs(slope * coefficient.mean)
        out += np.outer(tie, tie) / (spread**2 + LIKING**2)
    for effect in stacks.design.of_campaign:
        where = np.arange(*layout[family_block(family, effect.name)].indices(layout.size))
        out[where, where] = own[effect.name] ** -2.0
    if family.suspects is not None:
        where = np.arange(*layout[family_block(family, "suspects")].indices(layout.size))
        out[where, where] = SUSPECTED.sd**-2.0
    return out


def _suggested_level(found: Sequence[Family], worth: Worth) -> Normal | None:
    """Return the most reliable of the levels that families with a positive slope suggest."""
    levels = [family.level for family, slope in zip(found, worth.slopes, strict=True) if family.level and slope > 0]
    return min(levels, key=lambda n: n.sd, default=None)


class LevelTarget(NamedTuple):
    """The level of grades that labels suggest, as an observation of the mean logit of retrieved documents."""

    logit: float
    sd: float


def level_target(design: ModelDesign, worth: Worth) -> LevelTarget | None:
    """Return the level of grades that labels suggest at a setting of their worth; ``design`` is that given labels."""
    evidence = design.evidence
    level = None if evidence is None else _suggested_level(evidence.families, worth)
    if evidence is None or level is None:
        return None
    prior = measure_labels(Stacks(evidence.design), design, evidence.priors, evidence.families, worth)
    return _level_target(prior, design, level, *_mean_logit(prior, design))


def _mean_logit(prior: MeasuredPrior, reference: ModelDesign) -> tuple[Floats, float]:
    """Return the mean logit of retrieved documents given labels, as a linear function of the campaign's parameters."""
    layout = Layout.of(reference)
    share = reference.counts / reference.counts.sum()
    rows = reference.campaign_rows(np.arange(len(reference.pool)))
    functional = np.zeros(layout.size)
    functional[layout["first_cut"]] = 1.0
    functional[layout["gaps"]] = gap_columns(len(reference.cuts)).middle
    functional[layout.columns] = share @ rows + share @ prior.basis @ prior.directions
    return functional, float(share @ prior.offset)


def _level_target(
    prior: MeasuredPrior, reference: ModelDesign, level: Normal, functional: Floats, offset: float
) -> LevelTarget:
    r"""Return the mean logit at which grades have the suggested level, with its standard deviation.

    The mean grade of retrieved documents, as a share of its maximum, is :math:`f(t) = \text{mean}\,F((\alpha_\ell +
    \eta_d + t)/\sqrt{1 + \pi v_d/8})` for a shift :math:`t` of all logits, with a document counting once for each
    system; the shift at which it has the suggested logit is added to the mean logit.
    """
    layout = Layout.of(reference)
    rows = reference.campaign_rows(np.arange(len(reference.pool)))
    gaps = prior.mean[layout["gaps"]]
    columns = gap_columns(len(reference.cuts))
    cuts = prior.mean[layout["first_cut"]] + columns.middle @ gaps + columns.apart @ gaps
    own = sum(e.log_sd.square * e.columns.squares for e in reference.of_query)
    eta = prior.offset + (rows + prior.response()) @ prior.mean[layout.columns]
    width = np.sqrt(1 + np.pi / 8 * (prior.variance + own))[:, None]
    share = reference.counts / reference.counts.sum()
    target = float(expit(level.mean))

    def excess(shift: float) -> float:
        return float(share @ expit((eta[:, None] + cuts + shift) / width).mean(axis=1)) - target

    within = excess(-FARTHEST) < 0 < excess(FARTHEST)
    shift = brentq(excess, -FARTHEST, FARTHEST, xtol=1e-12) if within else -np.copysign(FARTHEST, excess(0.0))
    reach = expit((eta[:, None] + cuts + shift) / width)
    steep = float(share @ (reach * (1 - reach) / width).mean(axis=1))
    spread = level.sd * target * (1 - target) / max(steep, 1e-6)
    return LevelTarget(float(functional @ prior.mean) + offset + shift, spread)


def _with_level(prior: MeasuredPrior, reference: ModelDesign, level: Normal) -> MeasuredPrior:
    """Return the prior with the level of grades that labels suggest, as an observation of the mean logit."""
    functional, offset = _mean_logit(prior, reference)
    target = _level_target(prior, reference, level, functional, offset)
    information = prior.precision + np.outer(functional, functional) / target.sd**2
    right = prior.precision @ prior.mean + functional * (target.logit - offset) / target.sd**2
    return replace(prior, mean=np.asarray(np.linalg.solve(information, right)), precision=information)
