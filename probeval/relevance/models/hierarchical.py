"""The hierarchical model as a relevance model: predicts with a posterior, so that pairs hang together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.data.collection import Collection
from probeval.data.scale import UNJUDGED, Scale
from probeval.errors import ModelError
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import Design
from probeval.relevance.inference.laplace import LaplaceFit, Start, fit_laplace
from probeval.relevance.inference.likelihood import level_probabilities
from probeval.relevance.models.base import Finding
from probeval.threads import one_thread

__all__ = ["Hierarchical"]

DRAWS, CELLS = 200, 10_000_000  # of the posterior, kept for every pair; draws times pairs, at the most


@dataclass(frozen=True)
class Hierarchical:
    """The hierarchical model with what past campaigns taught it.

    Parameters
    ----------
    prior
        The predictive over past campaigns.
    draws
        How many posterior draws a prediction keeps; fewer where there are more than 50,000 pairs.
    """

    prior: HierarchicalPrior
    draws: int = DRAWS
    kind = "hierarchical"

    @property
    def terms(self) -> tuple[str, ...]:
        """What it looks at."""
        return self.prior.terms

    def fit(
        self, collection: Collection, *, depth: int, scale: Scale | None = None, start: Start | None = None
    ) -> LaplaceFit:
        """The posterior given the judgments at hand; ``start`` from an earlier fit makes it quick."""
        scale = _scale(collection, scale)
        return self.refit(collection, Design.of(self.prior, collection, depth=depth, scale=scale), start=start)

    def refit(self, collection: Collection, design: Design, *, start: Start | None = None) -> LaplaceFit:
        """The posterior given the judgments at hand, on a design made before."""
        with one_thread():
            return fit_laplace(design, _judged(collection, design), start=start)

    def predict(
        self,
        collection: Collection,
        *,
        depth: int,
        scale: Scale | None = None,
        rng: np.random.Generator | None = None,
    ) -> RelevanceDistribution:
        """P(grade) of every pair in the top ``depth``, with a posterior axis; judged pairs are certain."""
        fit = self.fit(collection, depth=depth, scale=scale)
        return self.distribution(collection, fit, np.random.default_rng(0) if rng is None else rng)

    def distribution(self, collection: Collection, fit: LaplaceFit, rng: np.random.Generator) -> RelevanceDistribution:
        """The distribution of relevance under a posterior, by joint draws of its parameters."""
        design = fit.problem.design
        with one_thread():
            eta, cuts = fit.draw(min(self.draws, max(CELLS // max(len(design.pool), 1), 50)), rng)
        probability = draw_probabilities(eta, cuts, design.pool.query)
        return RelevanceDistribution.of(design.pool, design.scale, probability, judgments=collection.judgments)

    def check(self) -> list[Finding]:
        """Priors that are too wide to say anything."""
        wide = [k for k, n in self.prior.log_sds.items() if n.sd > 1]
        return [Finding(f"The variance of {k} effects is hardly known.", "Learn from more campaigns.") for k in wide]

    def to_dict(self) -> dict[str, Any]:
        """Its numbers as plain data."""
        return {"kind": self.kind, "prior": self.prior.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Hierarchical:
        """The model from plain data."""
        return cls(HierarchicalPrior.from_dict(data["prior"]))


def draw_probabilities(eta: Floats, cuts: Floats, query: Ints) -> Floats:
    """P(level) of every pair under each draw, shape (draw, pair, level), from (draw, pair) and (draw, query, cut)."""
    out = np.empty((*eta.shape, cuts.shape[2] + 1))
    for i, (e, c) in enumerate(zip(eta, cuts, strict=True)):
        out[i] = level_probabilities(c[query], e)
    return out


def _judged(collection: Collection, design: Design) -> Codes:
    if collection.judgments is None:
        return np.full(len(design.pool), UNJUDGED, dtype=np.int16)
    return collection.judgments.on(design.pool).codes(design.scale)


def _scale(collection: Collection, scale: Scale | None) -> Scale:
    if scale is not None:
        return scale
    if collection.judgments is None or not len(collection.judgments):
        raise ModelError("Without judgments the scale of the grades must be named.")
    return collection.judgments.scale()
