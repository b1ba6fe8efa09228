"""The common interface of both inferences: a posterior of the hierarchical model, and joint draws by query block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from probeval.arrays import Floats
from probeval.data.pool import QueryBlock
from probeval.relevance.effects.cutpoints import cutpoints, level_probabilities
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.normal import Normal

__all__ = ["Draws", "Posterior"]


class Draws(ABC):
    """Joint draws of the model's parameters, as the linear predictors and cutpoints that they imply.

    No array over all pairs is kept. The random numbers of a query depend only on its position in the pool, so blocks of
    any size give the same draws.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of draws."""

    @property
    @abstractmethod
    def design(self) -> ModelDesign:
        """The campaign."""

    @abstractmethod
    def campaign(self) -> Mapping[str, Floats]:
        """The campaign's parameters by name: ``first_cut``, ``gaps``, ``coefficients``, and each of its effects.

        Shapes (parameter, n).
        """

    @abstractmethod
    def drawn(self, block: QueryBlock) -> tuple[Mapping[str, Floats], Floats | None]:
        """Return the coefficients of a block's queries by effect, and the relevance of its pairs that labels measure.

        Shapes (query, column, n) and (pair, n); None without labels.
        """

    def local(self, block: QueryBlock) -> Mapping[str, Floats]:
        """Return the coefficients of a block's queries by effect, shape (query, column, n)."""
        return self.drawn(block)[0]

    def block(self, block: QueryBlock) -> tuple[Floats, Floats]:
        """Return the linear predictors of a block's pairs and its queries' cutpoints: (n, pair) and (n, query, cut)."""
        design, campaign, (local, seen) = self.design, self.campaign(), self.drawn(block)
        query = design.pool.query[block.pairs] - block.queries.start
        eta = design.terms[block.pairs] @ campaign["coefficients"]
        for common in design.campaign_columns:
            eta += common.columns.take(block.pairs).times(campaign[common.name])
        for effect in design.of_query:
            eta += effect.columns.take(block.pairs).times_by_query(local[effect.name], query)
        if seen is not None:
            eta += seen
        log_scale = np.zeros((block.queries.stop - block.queries.start, self.n))
        if design.cutpoint_scale is not None:
            log_scale = local[design.cutpoint_scale.name][:, 0]
        return np.ascontiguousarray(eta.T), cutpoints(campaign["first_cut"][0], campaign["gaps"].T, log_scale.T)

    def whole(self) -> tuple[Floats, Floats]:
        """Return linear predictors and cutpoints of the whole pool."""
        return self.block(self.design.pool.whole)

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return P(level) of a block's pairs under each draw, shape (n, pair, level)."""
        eta, cuts = self.block(block)
        query = self.design.pool.query[block.pairs] - block.queries.start
        out = np.empty((*eta.shape, cuts.shape[2] + 1))
        for drawn, e, c in zip(out, eta, cuts, strict=True):  # one draw at a time fits in the processor's cache
            drawn[:] = level_probabilities(c[query], e)
        return out


class Posterior(ABC):
    """The hierarchical model given a campaign's judgments."""

    @property
    @abstractmethod
    def design(self) -> ModelDesign:
        """The campaign with the priors of all parts of the model."""

    @property
    @abstractmethod
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each effect's log standard deviation, in normal form."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """Return joint draws."""
