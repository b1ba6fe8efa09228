r"""The design of the hierarchical model for one campaign.

.. math:: \text{logit}\,P(R_d \ge \ell) = \alpha_{q\ell} + x_d\beta + u_q + t_q\,\text{pop}_d
          + \frac{1}{\sqrt{n_d}} \sum_{s \ni d} (a_s + c_{sq} + m_{\text{team}(s)} + b\,l_s)
          + w_{q,\text{group}(d)} + h_d

Each summand after :math:`x_d\beta` is an effect (:mod:`probeval.relevance.effects`), and so is the scale of the
cutpoints. The priors of all parameters, including variances, come from past campaigns, except that of similar
documents, which is stated; the judgments update them. See docs/theory/hierarchical.md#hier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from probeval.arrays import Floats, Ints, frozen
from probeval.data.pool import Pool
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.features import FeatureName, feature_names
from probeval.features.outputs import Retrievals
from probeval.features.standards import Standards, TermUnits, sample_positions
from probeval.relevance.effects.effect import AUTHORITY, POPULARITY, CampaignView, Columns, Effect
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.effects.system import widened
from probeval.relevance.inference.measured import MeasuredPrior
from probeval.relevance.normal import Normal

if TYPE_CHECKING:
    from probeval.relevance.answers.fit import AnswerEvidence
    from probeval.relevance.observers.measure import LabelEvidence

__all__ = ["CampaignColumns", "DesignedEffect", "ModelDesign", "standards_of"]


def standards_of(prior: HierarchicalPrior, problem: Problem, later: Sequence[str] = ()) -> Standards:
    """Return the constants of a campaign's design, from a sample of its queries if they are many.

    The prior of the quality of ``later`` systems is wider (:data:`probeval.relevance.effects.system.LATER`).
    """
    sample = sample_positions(len(problem.runs.queries))
    some = problem if len(sample) == len(problem.runs.queries) else problem.part(sample)
    view = CampaignView.of(some, correlated=prior.overlap)
    names = [FeatureName.parse(name) for name in feature_names((*prior.terms, POPULARITY, AUTHORITY))]
    depths = {name.depth or problem.depth for name in names}
    units = (
        TermUnits.given(prior.standard)
        if prior.standard
        else TermUnits.of(view.features(prior.terms).design(prior.terms))
    )
    return Standards(
        agreements={far: Retrievals(some, far).agreement for far in depths},
        popularity=view.mean_popularity,
        overlap=widened(view.overlap, [system in later for system in view.runs.systems]),
        selectivity=view.selectivity,
        units=units,
    )


@dataclass(frozen=True, eq=False)
class CampaignColumns:
    """The columns of parameters of the campaign, by name."""

    name: str
    columns: Columns


@dataclass(frozen=True, eq=False)
class DesignedEffect:
    """An effect in one campaign: its columns, and the prior of its log standard deviation.

    ``widening`` is the part of its mean that is due to few systems.
    """

    effect: Effect
    columns: Columns
    log_sd: Normal
    widening: float = 0.0

    @classmethod
    def of(cls, effect: Effect, view: CampaignView, prior: HierarchicalPrior) -> DesignedEffect:
        """Return an effect in a campaign, from its prior in a campaign of many systems."""
        log_sd = prior.log_sds[effect.name]
        more = prior.widening(len(view.runs.systems)) if effect.widened else 0.0
        return cls(effect, effect.columns(view), Normal(log_sd.mean + more, log_sd.sd), more)

    @property
    def name(self) -> str:
        """The name of the effect."""
        return self.effect.name


@dataclass(frozen=True, eq=False)
class ModelDesign:
    """The contributions of all coefficients to each pair's logit, and the priors of all parameters.

    Parameters
    ----------
    pool, scale
        The pairs, and their grades.
    terms, term_names, coefficients
        Standardised terms, shape (pair, term); their names; the priors of their coefficients.
    cuts
        The priors of the first cutpoint and of the gaps after it.
    effects
        The effects that are identifiable in this campaign, in the order of the model. Given labels, those of the
        reference observer alone.
    coords
        The names along each axis of their coefficients.
    counts
        The number of systems that retrieved each pair, shape (pair,).
    standards
        The constants of the design, the same for all parts of a campaign.
    positions
        The position of each query among those of the campaign, by which it has its random stream, shape (query,).
    common
        Given labels: parameters of the campaign whose prior labels give, such as effects of systems.
    measured
        The priors given labels, at each setting of their worth; empty without labels.
    evidence
        The labels and their worth; None without labels.
    answers
        The answers of assessors about documents, once they are part of the prior; None before, and without.
    """

    pool: Pool
    scale: Scale
    terms: Floats
    term_names: tuple[str, ...]
    coefficients: tuple[Normal, ...]
    cuts: tuple[Normal, ...]
    effects: tuple[DesignedEffect, ...]
    coords: Mapping[str, Sequence[str]]
    counts: Floats
    standards: Standards
    positions: Ints
    common: tuple[CampaignColumns, ...] = ()
    measured: tuple[MeasuredPrior, ...] = ()
    evidence: LabelEvidence | None = None
    answers: AnswerEvidence | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", frozen(self.terms))
        on_cutpoints = [e for e in self.effects if e.effect.acts_on == "cutpoints"]
        if len(on_cutpoints) > 1 or any(e.effect.scope != "query" for e in on_cutpoints):
            raise ModelError("Cutpoints can have one effect, and it is of queries.")
        if not self.of_query and not self.measured:
            raise ModelError("The model needs an effect of queries on predictors, such as 'query'.")

    @classmethod
    def of(
        cls,
        prior: HierarchicalPrior,
        problem: Problem,
        *,
        standards: Standards | None = None,
    ) -> ModelDesign:
        """Return the design of a problem's pairs; a system without a team is one of its own.

        With ``standards`` the problem is part of a campaign, whose constants these are.
        """
        if standards is None:
            standards = standards_of(prior, problem)
        scale = problem.scale
        view = CampaignView.of(problem, correlated=prior.overlap, standards=standards)
        existing = [effect for effect in prior.effects if effect.exists(scale) and effect.applies(view)]
        coords: dict[str, Sequence[str]] = {"query": [str(q) for q in view.runs.queries]}
        for effect in existing:
            coords |= effect.coords(view)
        return cls(
            pool=view.runs.pool,
            scale=scale,
            terms=standards.units.standardised(view.features(prior.terms).design(prior.terms)),
            term_names=prior.terms,
            coefficients=prior.coefficients,
            cuts=prior.cut_priors(len(scale.levels)),
            effects=tuple(DesignedEffect.of(e, view, prior) for e in existing),
            coords=coords,
            counts=view.membership.offset**2,
            standards=standards,
            positions=problem.positions,
        )

    @property
    def n_levels(self) -> int:
        """The number of levels that the model distinguishes."""
        return len(self.scale.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the effects, in the order of their log standard deviations."""
        return tuple(e.name for e in self.effects)

    def variances(self, log_sd: Floats) -> dict[str, float]:
        """Return the variance of each effect, by name."""
        return dict(zip(self.names, np.exp(2 * log_sd).tolist(), strict=True))

    def position(self, name: str) -> int:
        """Return the position of an effect."""
        return self.names.index(name)

    @cached_property
    def of_campaign(self) -> tuple[DesignedEffect, ...]:
        """The effects with one vector of coefficients for the campaign."""
        return tuple(e for e in self.effects if e.effect.scope == "campaign")

    @cached_property
    def of_query(self) -> tuple[DesignedEffect, ...]:
        """The effects on predictors with one vector of coefficients per query."""
        return tuple(e for e in self.effects if e.effect.scope == "query" and e.effect.acts_on == "predictor")

    @cached_property
    def constant_effect(self) -> DesignedEffect | None:
        """The effect that adds the same to every pair of a query."""
        return next((e for e in self.of_query if e.effect.constant), None)

    @cached_property
    def cutpoint_scale(self) -> DesignedEffect | None:
        """The effect on cutpoints, if the scale has at least two."""
        return next((e for e in self.effects if e.effect.acts_on == "cutpoints"), None)

    @cached_property
    def campaign_columns(self) -> tuple[CampaignColumns, ...]:
        """The columns of all parameters of the campaign that are linear in predictors, beside the terms."""
        return (*(CampaignColumns(e.name, e.columns) for e in self.of_campaign), *self.common)

    def campaign_rows(self, pairs: Ints) -> Floats:
        """Return the columns of the terms and the campaign's parameters for some pairs, shape (n, column)."""
        return np.concatenate([self.terms[pairs], *(c.columns.rows(pairs) for c in self.campaign_columns)], axis=1)
