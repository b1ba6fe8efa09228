"""The hierarchical model as users meet it: it predicts with a posterior, so that pairs depend on one another.

See docs/theory/hierarchical.md#hier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from probeval.data.collection import Collection
from probeval.data.scale import Scale
from probeval.errors import ModelError, did_you_mean
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.blocks import Start
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import LaplacePosterior, fit_laplace
from probeval.relevance.inference.posterior import Posterior
from probeval.relevance.models.base import Finding
from probeval.threads import one_thread

__all__ = ["Hierarchical", "Inference"]

Inference = Literal["laplace", "nuts"]
DRAWS = 200  # of the posterior: what they leave to chance in a score is below a hundredth of its sd
LEAST_DRAWS = 50  # however large the pool
CELLS = 10_000_000  # draws times pairs, above which fewer draws are made
UNKNOWN = 1.0  # the sd of a log sd past which a prior says nothing


@dataclass(frozen=True)
class Hierarchical:
    """The hierarchical model with what past campaigns taught it.

    Parameters
    ----------
    prior
        The predictive over past campaigns.
    draws
        How many posterior draws a prediction keeps; fewer where there are more than 50,000 pairs.
    inference
        How the posterior is computed: ``"laplace"`` in seconds, ``"nuts"`` in minutes and without the normal
        approximation.
    """

    prior: HierarchicalPrior
    draws: int = DRAWS
    inference: Inference = "laplace"
    kind = "hierarchical"

    def __post_init__(self) -> None:
        known = get_args(Inference)
        if self.inference not in known:
            raise ModelError(
                f"No inference {self.inference!r}: {', '.join(known)}.{did_you_mean(self.inference, known)}"
            )

    @property
    def terms(self) -> tuple[str, ...]:
        """What it looks at."""
        return self.prior.terms

    def design(self, collection: Collection, *, depth: int, scale: Scale | None = None) -> ModelDesign:
        """A campaign as the model sees it, whatever is judged of it."""
        return ModelDesign.of(self.prior, collection, depth=depth, scale=collection.scale(scale))

    def infer(
        self,
        collection: Collection,
        *,
        depth: int,
        scale: Scale | None = None,
        inference: Inference | None = None,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> Posterior:
        """The posterior given the judgments at hand.

        Parameters
        ----------
        collection
            Runs, and whatever judgments, metadata and labels there are.
        depth, scale
            The depth of the pool, and the grades; those of the judgments when not given.
        inference
            ``"laplace"`` or ``"nuts"``; the model's own when not given.
        rng
            Where a sampler's seed comes from; seed 0 when not given.
        options
            For ``"nuts"``: ``draws``, ``tune``, ``chains``, ``target_accept``, ``progress``.
        """
        model = self if inference is None else replace(self, inference=inference)
        design = self.design(collection, depth=depth, scale=scale)
        if model.inference == "laplace":
            if options:
                raise ModelError(f"{', '.join(options)}: for a sampler. Use inference='nuts'.")
            return self.refit(collection, design)
        from probeval.relevance.inference.nuts import fit_nuts  # PyMC is slow to load

        rng = np.random.default_rng(0) if rng is None else rng
        return fit_nuts(design, collection.codes_on(design.pool, design.scale), rng=rng, **options)

    def refit(self, collection: Collection, design: ModelDesign, *, start: Start | None = None) -> LaplacePosterior:
        """The posterior by Laplace's method on a design made before; ``start`` from an earlier one makes it quick."""
        with one_thread():
            return fit_laplace(design, collection.codes_on(design.pool, design.scale), start=start)

    def predict(
        self,
        collection: Collection,
        *,
        depth: int,
        scale: Scale | None = None,
        rng: np.random.Generator | None = None,
    ) -> RelevanceDistribution:
        """P(grade) of every pair in the top ``depth``, with a posterior axis; judged pairs are certain."""
        rng = np.random.default_rng(0) if rng is None else rng
        return self.distribution(collection, self.infer(collection, depth=depth, scale=scale, rng=rng), rng)

    def distribution(
        self, collection: Collection, posterior: Posterior, rng: np.random.Generator
    ) -> RelevanceDistribution:
        """The distribution of relevance under a posterior, by joint draws of its parameters."""
        design = posterior.design
        n = min(self.draws, max(CELLS // max(len(design.pool), 1), LEAST_DRAWS))
        with one_thread():
            return RelevanceDistribution.of(
                design.pool, design.scale, posterior.draw(n, rng), judgments=collection.judgments
            )

    def check(self) -> list[Finding]:
        """Priors that are too wide to say anything."""
        wide = [name for name, n in self.prior.log_sds.items() if n.sd > UNKNOWN]
        return [Finding(f"The variance of {k} effects is hardly known.", "Learn from more campaigns.") for k in wide]

    def to_dict(self) -> dict[str, Any]:
        """Its numbers as plain data."""
        return {"kind": self.kind, "prior": self.prior.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Hierarchical:
        """The model from plain data."""
        return cls(HierarchicalPrior.from_dict(data["prior"]))
