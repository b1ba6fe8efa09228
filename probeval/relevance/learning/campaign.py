"""Estimates of the hierarchical model's parameters from one finished campaign."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from probeval.data.collection import Collection
from probeval.errors import ModelError, ProbevalWarning
from probeval.relevance.effects import added_effects, model_effects
from probeval.relevance.effects.effect import Effect
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import DesignedEffect, ModelDesign
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.inference.newton import LEAST_GAP
from probeval.relevance.normal import Normal
from probeval.threads import one_thread

__all__ = ["CampaignEstimate", "ModelSpec", "estimate_campaign"]

VAGUE_COEFFICIENT = Normal(0.0, 2.0)  # per sd of its term, in logits: nothing seen so far was beyond 1.8
VAGUE_CUT = Normal(0.0, 4.0)  # one sd either way is 2% to 98% relevant
VAGUE_GAP = Normal(1.0, 2.0)  # logits: nothing seen so far was beyond 3


@dataclass(frozen=True)
class ModelSpec:
    """The inputs of the model: terms, and groupings of documents.

    Effects from outside are part of it: estimates are cached by their spec.
    """

    terms: tuple[str, ...]
    groups: tuple[str, ...] = ()
    added: tuple[Effect, ...] = field(default_factory=added_effects)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the model."""
        return model_effects(self.groups)

    def vague(self) -> HierarchicalPrior:
        """Return a vague prior, for learning from a whole campaign."""
        return HierarchicalPrior(
            terms=self.terms,
            coefficients=(VAGUE_COEFFICIENT,) * len(self.terms),
            first_cut=VAGUE_CUT,
            gaps={},
            gap=VAGUE_GAP,
            log_sds={effect.name: effect.vague for effect in self.effects},
        )


@dataclass(frozen=True)
class CampaignEstimate:
    """Estimates of the model's parameters from one finished campaign, with standard errors.

    Parameters
    ----------
    name
        The campaign.
    n_levels
        The number of levels of its scale.
    coefficients, first_cut, gaps, log_sds
        Estimates as normals: mean and standard error. A gap is None if one of its grades was never given.
    """

    name: str
    n_levels: int
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: tuple[Normal | None, ...]
    log_sds: Mapping[str, Normal]


@lru_cache(maxsize=32)
def estimate_campaign(collection: Collection, spec: ModelSpec, *, depth: int) -> CampaignEstimate:
    """Return the estimates of a judged campaign under a vague prior; cached, as it is slow."""
    if collection.judgments is None:
        raise ModelError(f"{collection.name}: there are no judgments to learn from.")
    scale = collection.judgments.scale()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # a missing term counts as average here
        problem = collection.problem(depth=depth, scale=scale)
        design = ModelDesign.of(spec.vague(), problem)
    with one_thread():
        posterior = fit_laplace(design, problem.grades.codes, points=1)
    mode, layout = posterior.best, posterior.problem.layout
    error = np.sqrt((np.linalg.inv(mode.schur) ** 2).sum(axis=0))

    def estimates(block: str) -> tuple[Normal, ...]:
        where = layout[block]
        return tuple(Normal(float(m), float(s)) for m, s in zip(mode.campaign[where], error[where], strict=True))

    return CampaignEstimate(
        name=collection.name,
        n_levels=design.n_levels,
        coefficients=estimates("coefficients"),
        first_cut=estimates("first_cut")[0],
        gaps=tuple(gap if gap.mean > 2 * LEAST_GAP else None for gap in estimates("gaps")),
        log_sds={e.name: _among_many(e, posterior.log_sds[e.name]) for e in design.effects},
    )


def _among_many(effect: DesignedEffect, log_sd: Normal) -> Normal:
    """Return an estimate of a log standard deviation as it would be in a campaign of many systems."""
    return Normal(log_sd.mean - effect.widening, log_sd.sd)
