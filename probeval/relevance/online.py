"""Refits as judgments come in: each starts where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Floats
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.features import feature_names, needs
from probeval.relevance.dependence import Dependence, Drawn, Linearised, Unrelated
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import LaplacePosterior
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical

__all__ = ["OnlineModel", "Prediction", "follow"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction of a model after some judgments.

    Parameters
    ----------
    relevance
        P(grade) of every pair; judged pairs are certain.
    posterior
        The posterior behind it, where Laplace's method gave it: the next refit starts there.
    """

    relevance: RelevanceDistribution
    posterior: LaplacePosterior | None = None

    def dependence(self, gains: Floats) -> Dependence:
        """How the expected gains of pairs depend on one another, given the gain of each grade."""
        if not self.relevance.has_posterior:
            return Unrelated(len(self.relevance.pool))
        if self.posterior is None:
            return Drawn.of(self.relevance, gains)
        return Linearised.of(self.posterior, self.relevance, gains)

    def knowing(self, judgments: Judgments) -> Prediction:
        """The same prediction with these pairs certain, and nothing learned from them."""
        return replace(self, relevance=self.relevance.with_judgments(judgments))


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """A model, a campaign, and what does not change as judgments come in.

    Parameters
    ----------
    model, collection, depth, scale
        What predicts, what, to which depth, in which grades.
    design
        The campaign as the hierarchical model sees it; None where every prediction starts anew.
    """

    model: Predicts
    collection: Collection
    depth: int
    scale: Scale
    design: ModelDesign | None = None

    def after(
        self, judgments: Judgments | None, rng: np.random.Generator, *, last: Prediction | None = None
    ) -> Prediction:
        """The prediction with these judgments; ``last`` is the one with fewer.

        The first is by the model's own inference. Refits are by Laplace's method, as a sampler would start over.
        """
        now = replace(self.collection, judgments=judgments)
        sampled = isinstance(self.model, Hierarchical) and self.model.inference == "nuts"
        if self.design is None or (sampled and last is None):
            return Prediction(self.model.predict(now, depth=self.depth, scale=self.scale, rng=rng))
        assert isinstance(self.model, Hierarchical)
        start = last.posterior.start if last is not None and last.posterior is not None else None
        posterior = self.model.refit(now, self.design, start=start)
        return Prediction(self.model.distribution(now, posterior, rng), posterior)


def follow(model: Predicts, collection: Collection, *, depth: int, scale: Scale) -> OnlineModel:
    """A model that follows a campaign."""
    design = None
    # A design that looks at judgments has to be made anew with every one.
    if isinstance(model, Hierarchical) and "judgments" not in needs(feature_names(model.terms)):
        design = model.design(collection, depth=depth, scale=scale)
    return OnlineModel(model, collection, depth, scale, design)
