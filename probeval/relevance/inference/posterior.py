"""The common interface of both inferences: a posterior of the hierarchical model, and joint draws by query block.

Either posterior goes to ArviZ whole: with its prior, which is the model before any judgment, and the predictions of
both for the judged pairs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from probeval.arrays import Floats, Ints
from probeval.bayes import NutsDiagnostics, arviz_data
from probeval.data.pool import QueryBlock
from probeval.display import Described, Table, summary_text
from probeval.relevance.effects.cutpoints import cutpoints, level_probabilities, log_probability
from probeval.relevance.inference.design import DesignedEffect, ModelDesign
from probeval.relevance.inference.importance import ImportanceCheck, judged_predictors
from probeval.relevance.normal import Normal

__all__ = ["Draws", "Posterior"]

DRAWS = 1000  # of the prior, and of a posterior that is not sampled
LEVEL = 0.95  # the probability of intervals
CACHED = 10_000  # logits that the processor's cache holds, with all that is computed from them
WITHIN = 1.959963984540054  # standard deviations on either side of a normal's mean that have it


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

    @property
    @abstractmethod
    def log_sd(self) -> Floats:
        """The log standard deviation of each effect under each draw, shape (n, effect)."""

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
        out = np.empty((cuts.shape[2] + 1, *eta.shape))
        few = max(CACHED // max(eta.shape[1], 1), 1)
        for some in (slice(at, at + few) for at in range(0, len(eta), few)):
            out[:, some] = np.moveaxis(level_probabilities(cuts[some].take(query, axis=1), eta[some]), -1, 0)
        return np.moveaxis(out, 0, -1)


class Posterior(Described):
    """The hierarchical model given a campaign's judgments."""

    @property
    @abstractmethod
    def design(self) -> ModelDesign:
        """The campaign with the priors of all parts of the model."""

    @property
    @abstractmethod
    def inference(self) -> str:
        """How it was computed: ``laplace`` or ``nuts``."""

    @property
    @abstractmethod
    def judged(self) -> tuple[Ints, Ints]:
        """The judged pairs, in increasing order, and the level of each, shapes (judged,)."""

    @property
    @abstractmethod
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each effect's log standard deviation, in normal form."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """Return joint draws."""

    @abstractmethod
    def diagnostics(self) -> NutsDiagnostics | ImportanceCheck:
        """The check of the sampler, or of the approximation."""

    @abstractmethod
    def own_draws(self, rng: np.random.Generator) -> tuple[Draws, tuple[int, int], Mapping[str, Floats]]:
        """Return the draws for ArviZ, their numbers of chains and of draws per chain, and statistics of each draw."""

    @abstractmethod
    def before(self, rng: np.random.Generator) -> Draws:
        """Return draws of the prior: the model before any judgment, given the labels and answers there are."""

    def tables(self) -> Sequence[Table]:
        """The standard deviation of each effect: the centre of its log, and its interval."""
        rows = [
            (name, *np.exp([log.mean, log.mean - WITHIN * log.sd, log.mean + WITHIN * log.sd]))
            for name, log in self.log_sds.items()
        ]
        frame = pd.DataFrame(rows, columns=["effect", "sd", "lower", "upper"])
        title = f"Standard deviations of effects, {LEVEL:.0%} posterior intervals (normal on the log scale)"
        return (Table(frame, title, intervals=("sd", "lower", "upper")),)

    def sentences(self) -> Sequence[str]:
        """The check of the inference."""
        found = self.diagnostics()
        return f"Inference by {self.inference}: {found}.", *(f"Unreliable: {problem}." for problem in found.problems)

    def summary(self) -> str:
        """The standard deviations of effects, and the check of the inference, as text."""
        return summary_text(self.tables(), self.sentences())

    def to_arviz(self, *, rng: np.random.Generator | None = None) -> Any:
        """Return ArviZ data: prior and posterior with their predictions, log-likelihood, statistics of draws, grades.

        Every effect has its own name and named dims; predictions and likelihood are of the judged pairs. ``rng`` draws
        what is not sampled: all of the prior, effects without judgments, predictions; seed 0 by default.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        design, (pairs, level) = self.design, self.judged
        drawn, shape, statistics = self.own_draws(rng)
        dims = self._dims()
        groups: dict[str, dict[str, Any]] = {"sample_stats": dict(statistics), "observed_data": {"level": level}}
        groups["constant_data"] = {
            "query_index": design.pool.query[pairs],
            "systems": design.counts[pairs],
            "terms": design.terms[pairs],
        }
        for group, draws, size in (("prior", self.before(rng), (1, DRAWS)), ("posterior", drawn, shape)):
            eta, cuts = judged_predictors(draws, pairs)
            # One uniform number per pair: a level is reached where it is below the probability of reaching it.
            predicted = (rng.random(eta.shape)[..., None] < expit(eta[..., None] + cuts)).sum(axis=-1)
            found = {group: self._named(draws), f"{group}_predictive": {"level": predicted}}
            if group == "posterior":
                found["log_likelihood"] = {"level": log_probability(eta, cuts, level)}
            groups |= {name: {k: v.reshape(*size, *v.shape[1:]) for k, v in of.items()} for name, of in found.items()}
        coords = {
            "cut": np.arange(1, len(design.cuts) + 1),
            "term": list(design.term_names),
            "effect": list(design.names),
            "pair": [" ".join(design.pool.label(int(p))) for p in pairs],
            **{name: list(labels) for name, labels in design.coords.items()},
        }
        dims |= {"level": ["pair"], "query_index": ["pair"], "systems": ["pair"], "terms": ["pair", "term"]}
        checked = asdict(self.diagnostics())
        return arviz_data(groups, coords, dims, {"model": "hierarchical", "inference": self.inference, **checked})

    def _dims(self) -> dict[str, list[str]]:
        """Return the dims of every parameter."""
        dims = {"cutpoint": ["cut"], "coefficient": ["term"], "sd": ["effect"]}
        for effect in self._effects:
            dims[f"{effect.name}_effect"] = [*(["query"] * (effect.effect.scope == "query")), *effect.effect.dims]
        return dims

    @property
    def _effects(self) -> tuple[DesignedEffect, ...]:
        """All effects, those of observers included."""
        design = self.design
        return (*design.effects, *(() if design.evidence is None else design.evidence.design.of_campaign))

    def _named(self, draws: Draws) -> dict[str, Floats]:
        """Return the parameters of draws by name, shapes (n, ..)."""
        design, campaign = self.design, draws.campaign()
        local = draws.local(design.pool.whole)
        found = {
            "cutpoint": cutpoints(campaign["first_cut"][0], campaign["gaps"].T, np.zeros((draws.n, 1)))[:, 0],
            "coefficient": campaign["coefficients"].T,
            "sd": np.exp(draws.log_sd),
        }
        for effect in self._effects:
            coefficients = local[effect.name] if effect.effect.scope == "query" else campaign[effect.name]
            values = np.moveaxis(effect.columns.mixed(coefficients), -1, 0)
            values = values - (values @ effect.columns.share)[..., None]  # set the mean to 0: it is not identified
            found[f"{effect.name}_effect"] = values if effect.effect.dims else values[..., 0]
        return found
