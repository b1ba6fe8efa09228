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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats
from probeval.data.evidence import LabelTable
from probeval.relevance.effects.effect import Columns
from probeval.relevance.inference.design import CampaignColumns, DesignedEffect, ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior
from probeval.relevance.normal import Normal
from probeval.relevance.observers.conditioning import (
    CampaignPrior,
    LabelSums,
    QueryLabels,
    campaign_prior,
    family_block,
    measure_queries,
    pair_scale,
)
from probeval.relevance.observers.family import Family, FamilyUnits, family_units
from probeval.relevance.observers.levels import LevelVariances, Stacks, level_variances
from probeval.relevance.observers.prior import ObserverPriors
from probeval.relevance.observers.target import LevelTarget, suggested_level, target_of, with_level
from probeval.relevance.observers.worth import Worth, WorthPosterior, find_worth, joint_slope, n_systems
from probeval.threads import in_order

__all__ = [
    "LabelEvidence",
    "LabelModel",
    "LabelledPart",
    "level_target",
    "measure",
    "measure_labels",
    "reference_design",
    "seen_design",
    "with_labels",
]


@dataclass(frozen=True, eq=False)
class LabelModel:
    """The worth of a campaign's labels, found from a sample of its queries: any part is measured with it."""

    priors: ObserverPriors
    units: tuple[FamilyUnits, ...]  # the families of observers
    levels: tuple[LevelVariances, ...]  # the variances of their labels
    worth: WorthPosterior  # before any judgment
    settings: tuple[Worth, ...]  # those of the worth, with the errors of labels that are asked for
    direction: Floats  # the joint slope on the terms

    @classmethod
    def of(
        cls, design: ModelDesign, priors: ObserverPriors, labels: LabelTable, *, worth_factor: float = 1.0
    ) -> LabelModel | None:
        """Return the worth of labels by the queries of a design; None if no column has two different labels."""
        units = family_units(labels, priors, counts=design.counts)
        if not units:
            return None
        seen = seen_design(design, priors)
        stacks = Stacks(seen)
        found = [family.on(labels.values) for family in units]
        levels = tuple(in_order(lambda family: level_variances(stacks, family.scores, family.extra), found))
        worth = find_worth(seen, priors, found, levels)
        # What if labels were worth more: all own effects and noise are divided, slopes and hypotheses stay.
        settings = tuple(
            replace(w, own=tuple({level: sd / worth_factor for level, sd in own.items()} for own in w.own))
            for w in worth.settings
        )
        return cls(priors, units, levels, worth, settings, joint_slope(seen))


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """The labels of some queries of a campaign."""

    model: LabelModel
    design: ModelDesign  # these queries, before their labels are seen
    labels: Floats  # shape (pair, source)

    @cached_property
    def stacks(self) -> Stacks:
        """The queries by their number of pairs."""
        return Stacks(seen_design(self.design, self.model.priors))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The labels of each family."""
        return tuple(units.on(self.labels) for units in self.model.units)

    @cached_property
    def reference(self) -> ModelDesign:
        """The design of the reference observer's grades."""
        return reference_design(self.design, self.model.priors, self.families)

    def measured(self, setting: Worth, *, sums_only: bool = False) -> QueryLabels:
        """Return what the labels tell of these queries."""
        return measure_queries(
            self.stacks, self.reference, self.model.priors, self.families, setting, sums_only=sums_only
        )

    def campaign(self, setting: Worth, sums: LabelSums, mine: QueryLabels | None = None) -> CampaignPrior:
        """Return the prior of the campaign's parameters, by the sums over all queries.

        These queries, the sample, tell at which mean logit grades have the level that labels suggest.
        """
        model = self.model
        prior = campaign_prior(self.stacks, self.reference, model.priors, self.families, setting, sums, model.direction)
        level = suggested_level(self.families, setting)
        if level is None:
            return prior
        local = self.measured(setting) if mine is None else mine
        return with_level(local.prior(prior, setting.weight), self.reference, level)

    def given(self, measured: Sequence[MeasuredPrior]) -> ModelDesign:
        """Return the design of these queries with the priors given labels, one per setting."""
        model = self.model
        evidence = LabelEvidence(self.stacks.design, model.priors, self.families, model.levels, model.worth)
        return replace(self.reference, measured=tuple(measured), evidence=evidence)


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
    design: ModelDesign,
    priors: ObserverPriors,
    labels: LabelTable,
    *,
    sample: tuple[ModelDesign, LabelTable] | None = None,
    worth_factor: float = 1.0,
) -> ModelDesign:
    """Return the design of a campaign given its labels; unchanged if no column has two different labels.

    Parameters
    ----------
    design, priors, labels
        The campaign, the priors of observers, and the labels of its pairs.
    sample
        The design and the labels of the queries by which the worth of labels is found; all queries by default.
    worth_factor
        Divides the errors of all labels, to see what would change were they worth less, or more, than they seem.
    """
    some, seen = (design, labels) if sample is None else sample
    model = LabelModel.of(some, priors, seen, worth_factor=worth_factor)
    if model is None:
        return design
    whole = LabelledPart(model, design, labels.values)
    part = whole if sample is None else LabelledPart(model, some, seen.values)

    # Labels of all queries inform the campaign's parameters; their worth and the level of grades come from the sample.
    def measured(setting: Worth) -> MeasuredPrior:
        mine = whole.measured(setting)
        campaign = part.campaign(setting, mine.sums, mine if part is whole else None)
        return mine.prior(campaign, setting.weight)

    return whole.given(tuple(in_order(measured, model.settings)))


def seen_design(design: ModelDesign, priors: ObserverPriors) -> ModelDesign:
    """Return the design with the effects that observers see.

    Effects with a stated prior are the reference observer's alone: nothing is known of how others see them.
    """
    seen = tuple(e for e in design.effects if e.effect.stated is None)
    return replace(design, effects=seen, coefficients=_widened(design, priors))


def _widened(design: ModelDesign, priors: ObserverPriors) -> tuple[Normal, ...]:
    # sqrt(1 + c/S) with S systems: what few systems agree on says less of relevance (docs/theory/observers.md#signs).
    factor = priors.constants.widening(n_systems(design))
    return tuple(Normal(c.mean, c.sd * factor) for c in design.coefficients)


def reference_design(design: ModelDesign, priors: ObserverPriors, found: Sequence[Family]) -> ModelDesign:
    """Return the design of the reference observer's grades: its own views as effects, the seen part given by labels.

    All logits are larger, as the noise of a grade is what no other observer sees of a pair. Effects of the campaign and
    parameters of families are columns with a common prior, given by labels.
    """
    scale = pair_scale(priors)
    own = []
    for e in design.effects:
        if e.effect.acts_on == "cutpoints":
            own.append(e)  # a factor of the distances between cutpoints: the same on any scale of logits
        elif e.effect.scope == "query":
            # The reference's own view has the sd sigma sqrt(1 - rho), in larger logits. The rest is in x.
            share = priors.share(e.name) if e.effect.stated is None else 0.0
            factor = float(np.log(scale * np.sqrt(1 - share)))
            own.append(DesignedEffect(e.effect, e.columns, Normal(e.log_sd.mean + factor, e.log_sd.sd)))
    common = [CampaignColumns(e.name, e.columns) for e in design.of_campaign]
    sizes = {"level": 1, "terms": design.terms.shape[1]} | {c.name: c.columns.n_columns for c in common}
    for family in found:
        suspects = {} if family.suspects is None else {"suspects": family.suspects.shape[1]}
        for part, size in (sizes | suspects).items():
            # A family's level, likings and biases move its labels, not the logit of a grade. They are parameters of g
            # all the same, as labels make them dependent on those of relevance.
            nothing = Columns.of(csr_array((len(design.pool), size)))
            common.append(CampaignColumns(family_block(family, part), nothing))
    return replace(
        design,
        coefficients=tuple(c.times(scale) for c in _widened(design, priors)),
        cuts=tuple(c.times(scale) for c in design.cuts),
        effects=tuple(own),
        common=tuple(common),
    )


def measure(
    stacks: Stacks, reference: ModelDesign, priors: ObserverPriors, found: Sequence[Family], worth: Worth
) -> MeasuredPrior:
    """Return the prior given labels and the level that they suggest, at one setting of their worth."""
    prior = measure_labels(stacks, reference, priors, found, worth)
    level = suggested_level(found, worth)
    if level is None:
        return prior
    campaign = with_level(prior, reference, level)
    return replace(prior, mean=campaign.mean, precision=campaign.precision)


def measure_labels(
    stacks: Stacks, reference: ModelDesign, priors: ObserverPriors, found: Sequence[Family], worth: Worth
) -> MeasuredPrior:
    """Return the prior given the labels of all families, at one setting of their worth."""
    mine = measure_queries(stacks, reference, priors, found, worth)
    direction = joint_slope(stacks.design)
    return mine.prior(campaign_prior(stacks, reference, priors, found, worth, mine.sums, direction), worth.weight)


def level_target(design: ModelDesign, worth: Worth) -> LevelTarget | None:
    """Return the level of grades that labels suggest at a setting of their worth; ``design`` is that given labels."""
    evidence = design.evidence
    level = None if evidence is None else suggested_level(evidence.families, worth)
    if evidence is None or level is None:
        return None
    prior = measure_labels(Stacks(evidence.design), design, evidence.priors, evidence.families, worth)
    return target_of(prior, design, level)
