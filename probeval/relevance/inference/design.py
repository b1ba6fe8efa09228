r"""A campaign as the hierarchical model sees it.

.. math:: \text{logit}\,P(R_d \ge \ell) = \alpha_{q\ell} + x_d\beta + u_q + t_q\,\text{pop}_d
          + \frac{1}{\sqrt{n_d}} \sum_{s \ni d} (a_s + c_{sq} + m_{\text{team}(s)}) + w_{q,\text{group}(d)}

Each summand after :math:`x_d\beta` is an effect (:mod:`probeval.relevance.effects`). Past campaigns give the prior of
everything, variances included; the judgments at hand go on from there. See docs/theory/hierarchical.md#hier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.features import compute_features, feature_names
from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.effects.labels import LOGISTIC, LabelWorth
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.normal import Normal

__all__ = ["DesignedEffect", "ModelDesign"]


@dataclass(frozen=True, eq=False)
class DesignedEffect:
    """An effect in one campaign: its columns, and the prior of its log standard deviation."""

    effect: Effect
    columns: Columns
    log_sd: Normal

    @property
    def name(self) -> str:
        """The effect's."""
        return self.effect.name


@dataclass(frozen=True, eq=False)
class ModelDesign:
    """What each coefficient of the model adds to each pair's logit, and the priors of all of them.

    Parameters
    ----------
    pool, scale
        The pairs, and their grades.
    terms, term_names, coefficients
        Standardised terms, shape (pair, term), labels at their end; their names; the prior of each one's coefficient.
    cuts
        The priors of the first cutpoint and of the gaps after it.
    effects
        The effects that this campaign can show, in the order of the model.
    coords
        The names along each axis of their coefficients.
    """

    pool: Pool
    scale: Scale
    terms: Floats
    term_names: tuple[str, ...]
    coefficients: tuple[Normal, ...]
    cuts: tuple[Normal, ...]
    effects: tuple[DesignedEffect, ...]
    coords: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", frozen(self.terms))
        on_cutpoints = [e for e in self.effects if e.effect.acts_on == "cutpoints"]
        if len(on_cutpoints) > 1 or any(e.effect.scope != "query" for e in on_cutpoints):
            raise ModelError("Cutpoints can have one effect, and it is of queries.")
        if not self.of_query:
            raise ModelError("The model needs an effect of queries on predictors, such as 'query'.")

    @classmethod
    def of(cls, prior: HierarchicalPrior, collection: Collection, *, depth: int, scale: Scale) -> ModelDesign:
        """The design of a campaign's pairs in the top ``depth``; a system without a team is one of its own."""
        view = CampaignView.of(collection, depth=depth, scale=scale)
        table = compute_features(view.collection, feature_names(prior.terms), depth=depth, scale=scale)
        standard = (table.design(prior.terms) - np.array(prior.centre)) / np.array(prior.spread)
        existing = [effect for effect in prior.effects if effect.exists(scale)]
        coords: dict[str, Sequence[str]] = {"query": [str(q) for q in view.runs.queries]}
        for effect in existing:
            coords |= effect.coords(view)
        plain = cls(
            pool=view.runs.pool,
            scale=scale,
            terms=np.nan_to_num(standard),
            term_names=prior.terms,
            coefficients=prior.coefficients,
            cuts=prior.cut_priors(len(scale.levels)),
            effects=tuple(DesignedEffect(e, e.columns(view), prior.log_sds[e.name]) for e in existing),
            coords=coords,
        )
        if prior.labels is None or collection.labels is None:
            return plain
        return _with_labels(plain, prior.labels, collection)

    @property
    def n_levels(self) -> int:
        """How many levels the scale has for the model."""
        return len(self.scale.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the effects, in the order of their log standard deviations."""
        return tuple(e.name for e in self.effects)

    def variances(self, log_sd: Floats) -> dict[str, float]:
        """The variance of each effect, by name."""
        return dict(zip(self.names, np.exp(2 * log_sd).tolist(), strict=True))

    def position(self, name: str) -> int:
        """Where an effect stands among them."""
        return self.names.index(name)

    @cached_property
    def of_campaign(self) -> tuple[DesignedEffect, ...]:
        """The effects with one vector of coefficients."""
        return tuple(e for e in self.effects if e.effect.scope == "campaign")

    @cached_property
    def of_query(self) -> tuple[DesignedEffect, ...]:
        """The effects on predictors with a vector of coefficients per query."""
        return tuple(e for e in self.effects if e.effect.scope == "query" and e.effect.acts_on == "predictor")

    @cached_property
    def constant_effect(self) -> DesignedEffect | None:
        """The effect that adds the same to every pair of a query."""
        return next((e for e in self.of_query if e.effect.constant), None)

    @cached_property
    def cutpoint_scale(self) -> DesignedEffect | None:
        """The effect on cutpoints, where the scale has any to draw apart."""
        return next((e for e in self.effects if e.effect.acts_on == "cutpoints"), None)

    def campaign_rows(self, pairs: Ints) -> Floats:
        """The columns of the terms and of the campaign's effects, for some pairs, shape (n, column)."""
        return np.concatenate([self.terms[pairs], *(e.columns.rows(pairs) for e in self.of_campaign)], axis=1)


def _with_labels(design: ModelDesign, worth: LabelWorth, collection: Collection) -> ModelDesign:
    """The design with labels by machines as further terms."""
    assert collection.labels is not None
    sources = collection.labels.sources
    # What labels explain is no longer there for the other terms and the effects to explain.
    explained = worth.weights(sources)[1]
    less = float(np.log(1 - explained) / 2)
    effects = tuple(
        DesignedEffect(e.effect, e.columns, Normal(e.log_sd.mean + less, e.log_sd.sd))
        if e.effect.acts_on == "predictor"
        else e
        for e in design.effects
    )
    # Labels were learned without the effects, which are noise to them: with the effects they are sharper.
    noise = sum(e.log_sd.square * float(e.columns.squares.mean()) for e in effects if e.effect.acts_on == "predictor")
    sharper = float(np.sqrt(1 + noise / LOGISTIC))
    known = worth.cut_priors(design.n_levels, explained)
    return ModelDesign(
        pool=design.pool,
        scale=design.scale,
        terms=np.concatenate([design.terms, worth.standardised(collection.labels, design.pool)], axis=1),
        term_names=(*design.term_names, *(f"label {source}" for source in sources)),
        coefficients=(
            *(Normal(c.mean * (1 - explained), c.sd) for c in design.coefficients),
            *(c.times(sharper) for c in worth.coefficients(sources)),
        ),
        cuts=design.cuts if known is None else tuple(c.times(sharper) for c in known),
        effects=effects,
        coords=design.coords,
    )
