r"""The hierarchical model by NUTS (PyMC), for the final analysis: slow, but without Laplace's normal approximation.

Only parameters that the judgments inform are sampled: effects in the directions that judged pairs identify
(:mod:`probeval.relevance.nuts.directions`). The other directions, and the effects of queries without judgments,
keep their prior given their standard deviation, and are drawn from it afterwards. Zero-sum columns never reach the
direction that the cutpoints have. The effect that is constant within queries is sampled as its mean, which joins the
first cutpoint, and zero-sum differences. Labels are in :mod:`probeval.relevance.nuts.with_labels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.bayes import NutsDiagnostics, diagnose, load
from probeval.data.pool import QueryBlock
from probeval.relevance.inference.design import DesignedEffect, ModelDesign
from probeval.relevance.inference.laplace import prior_draws
from probeval.relevance.inference.posterior import Draws, Posterior
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import CAMPAIGN, SampledPairs, completed
from probeval.streams import query_streams

__all__ = ["NutsDiagnostics", "NutsDraws", "NutsPosterior", "pymc_model"]


@dataclass(frozen=True, eq=False, repr=False)
class NutsPosterior(Posterior):
    """The posterior as draws of NUTS.

    Parameters
    ----------
    sampled
        The judged pairs as they were sampled.
    chains
        The sampled parameters, each of shape (chain, draw, ..): ``log_sd`` of each effect, ``intercept`` (the first
        cutpoint and the mean level of the judged queries), ``gaps``, ``coefficients``, and in units of their standard
        deviation ``z`` (coordinates of effects), ``difference`` (zero-sum) and ``cutpoint_scale`` of judged queries.
    statistics
        The sampler's statistics of each draw, each of shape (chain, draw).
    """

    sampled: SampledPairs
    chains: Mapping[str, Floats]
    statistics: Mapping[str, Floats]

    def _headline(self) -> str:
        n_chains, n_draws = self.chains["log_sd"].shape[:2]
        return f"{n_chains} chains of {n_draws:,} draws, {len(self.sampled.pairs):,} judged pairs"

    @property
    def design(self) -> ModelDesign:
        """The campaign."""
        return self.sampled.design

    @property
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each effect's log standard deviation, in normal form."""
        values = self.flat("log_sd")
        moments = zip(self.design.names, values.mean(axis=0), values.std(axis=0), strict=True)
        return {name: Normal(float(m), float(s)) for name, m, s in moments}

    def diagnostics(self) -> NutsDiagnostics:
        """R-hat, bulk ESS and divergences; the first call warns if the draws are unreliable."""
        return self._diagnosed

    @cached_property
    def _diagnosed(self) -> NutsDiagnostics:
        return diagnose(self.chains, self.statistics)

    def draw(self, n: int, rng: np.random.Generator) -> NutsDraws:
        """Return joint draws; each draw of the chains is used once before any is reused."""
        total = len(self.flat("log_sd"))
        rounds = [rng.permutation(total) for _ in range(-(-n // total))]
        return self.draws_at(np.concatenate([np.empty(0, dtype=np.int64), *rounds])[:n], rng)

    def draws_at(self, rows: Ints, rng: np.random.Generator) -> NutsDraws:
        """Return these draws of the chains, with unsampled parameters drawn from their prior."""
        return NutsDraws.of(self, rows, rng)

    @property
    def inference(self) -> str:
        """``nuts``."""
        return "nuts"

    @property
    def judged(self) -> tuple[Ints, Ints]:
        """The judged pairs, and their levels, shapes (judged,)."""
        return self.sampled.pairs, self.sampled.level

    def own_draws(self, rng: np.random.Generator) -> tuple[NutsDraws, tuple[int, int], Mapping[str, Floats]]:
        """Return all draws of the chains, the number of chains and of draws per chain, and the statistics."""
        n_chains, n_draws = self.chains["log_sd"].shape[:2]
        return self.draws_at(np.arange(n_chains * n_draws), rng), (n_chains, n_draws), self.statistics

    def before(self, rng: np.random.Generator) -> Draws:
        """Return draws of the prior; those of Laplace's method, which is exact without judgments."""
        return prior_draws(self.design, rng)

    def flat(self, name: str) -> Floats:
        """Return a sampled parameter with the chains concatenated, shape (draw, ..)."""
        values = self.chains[name]
        return np.asarray(values.reshape(values.shape[0] * values.shape[1], *values.shape[2:]))


@dataclass(frozen=True, eq=False)
class NutsDraws(Draws):
    """Some draws of the chains, with unsampled parameters drawn from their prior.

    Parameters
    ----------
    posterior, rows
        The chains, and the positions of the draws, shape (n,).
    parameters
        The campaign's parameters by name, shapes (parameter, n).
    seed
        The seed of the queries' random streams.
    """

    posterior: NutsPosterior
    rows: Ints
    parameters: Mapping[str, Floats]
    seed: int

    @classmethod
    def of(cls, posterior: NutsPosterior, rows: Ints, rng: np.random.Generator) -> NutsDraws:
        """Return these draws of the chains."""
        design, sampled = posterior.design, posterior.sampled
        log_sd, z = posterior.flat("log_sd")[rows], posterior.flat("z")[rows]
        campaign = {"first_cut": _first_cut(posterior, rows, rng)[None]}
        campaign |= {name: posterior.flat(name)[rows].T for name in ("gaps", "coefficients")}
        for effect in design.of_campaign:
            normals = rng.standard_normal((effect.columns.n_columns, len(rows)))
            seen = sampled.directions[effect.name][CAMPAIGN]
            sd = np.exp(log_sd[:, design.position(effect.name)])
            campaign[effect.name] = completed(normals, seen, z) * sd
        return cls(posterior, rows, campaign, int(rng.integers(2**63)))

    @property
    def n(self) -> int:
        """The number of draws."""
        return len(self.rows)

    @property
    def design(self) -> ModelDesign:
        """The campaign."""
        return self.posterior.design

    def campaign(self) -> Mapping[str, Floats]:
        """The campaign's parameters by name, shapes (parameter, n)."""
        return self.parameters

    @property
    def log_sd(self) -> Floats:
        """The log standard deviation of each effect, shape (n, effect)."""
        return np.asarray(self.posterior.flat("log_sd")[self.rows])

    @property
    def first(self) -> Floats:
        """The first cutpoint, shape (n,)."""
        return np.asarray(self.parameters["first_cut"][0])

    def drawn(self, block: QueryBlock) -> tuple[dict[str, Floats], Floats | None]:
        """Return the coefficients of a block's queries by effect, shape (query, column, n), and None."""
        effects = [e for e in self.design.effects if e.effect.scope == "query"]
        out = {
            e.name: np.empty((block.queries.stop - block.queries.start, e.columns.n_columns, self.n)) for e in effects
        }
        for i, rng in enumerate(query_streams(self.seed, block.queries)):
            for effect in effects:
                out[effect.name][i] = self._of_query(effect, block.queries.start + i, rng)
        return out, None

    def _of_query(self, effect: DesignedEffect, query: int, rng: np.random.Generator) -> Floats:
        """Return the coefficients of one query, shape (column, n)."""
        posterior, sampled = self.posterior, self.posterior.sampled
        normals = rng.standard_normal((effect.columns.n_columns, self.n))
        sd = np.exp(posterior.flat("log_sd")[self.rows, self.design.position(effect.name)])
        at = int(np.searchsorted(sampled.queries, query))
        if at == len(sampled.queries) or sampled.queries[at] != query:
            return np.asarray(normals * sd)
        if effect is self.design.cutpoint_scale:
            return np.asarray(posterior.flat("cutpoint_scale")[self.rows, at] * sd)[None]
        if effect is sampled.level_effect:
            mean = posterior.flat("intercept")[self.rows] - self.first
            return np.asarray(posterior.flat("difference")[self.rows, at] * sd + mean)[None]
        return np.asarray(
            completed(normals, sampled.directions[effect.name][query], posterior.flat("z")[self.rows]) * sd
        )


def _first_cut(posterior: NutsPosterior, rows: Ints, rng: np.random.Generator) -> Floats:
    """Draw the first cutpoint given its sum with the mean level of the judged queries, both normal, shape (n,)."""
    intercept, level = posterior.flat("intercept")[rows], posterior.sampled.level_effect
    if level is None or not len(posterior.sampled.queries):
        return intercept
    first = posterior.design.cuts[0]
    variance = np.exp(2 * posterior.flat("log_sd")[rows, posterior.design.position(level.name)])
    own, others = first.sd**2, variance / len(posterior.sampled.queries)
    mean = first.mean + own / (own + others) * (intercept - first.mean)
    return np.asarray(mean + np.sqrt(own * others / (own + others)) * rng.standard_normal(len(rows)))


def pymc_model(sampled: SampledPairs) -> Any:
    """Return the PyMC model of the judged pairs."""
    pm, pt = load("pymc"), load("pytensor.tensor")
    design, n_queries = sampled.design, len(sampled.queries)
    first, *gap_priors = design.cuts
    with pm.Model() as model:
        sd = pt.exp(pm.Normal("log_sd", *moments([e.log_sd for e in design.effects])))
        mean_sd: Any = first.sd
        if sampled.level_effect is not None and n_queries:
            mean_sd = pt.sqrt(first.sd**2 + sd[design.position(sampled.level_effect.name)] ** 2 / n_queries)
        eta = pm.Normal("intercept", first.mean, mean_sd)
        gap = pm.TruncatedNormal("gaps", *moments(gap_priors), lower=0.0) if gap_priors else None
        if design.coefficients:
            eta = eta + design.terms[sampled.pairs] @ pm.Normal("coefficients", *moments(design.coefficients))
        if n_queries:
            eta = eta + effect_sums(sampled, sd)
            pm.Potential("judged", log_likelihood(eta, gap, cutpoint_factors(sampled, sd), sampled))
    return model


def moments(priors: Sequence[Normal]) -> tuple[Floats, Floats]:
    """Return means and standard deviations."""
    return np.array([p.mean for p in priors]), np.array([p.sd for p in priors])


def effect_sums(sampled: SampledPairs, sd: Any) -> Any:
    """Return the sum of the effects of each judged pair, in a PyMC model."""
    pm, pt = load("pymc"), load("pytensor.tensor")
    n_queries, parts = len(sampled.queries), []
    if len(sampled.coordinate_effect):
        z = pm.Normal("z", 0.0, 1.0, shape=len(sampled.coordinate_effect))
        parts.append(z * sd[sampled.coordinate_effect])
    if n_queries > 1 and sampled.level_effect is not None:
        level_sd = sd[sampled.design.position(sampled.level_effect.name)]
        parts.append(pm.ZeroSumNormal("difference", 1.0, shape=n_queries) * level_sd)
    else:
        parts.append(np.zeros(n_queries))  # with a single query, its effect is part of the intercept
    return (sampled.weight * pt.concatenate([*parts, np.zeros(1)])[sampled.place]).sum(axis=1)


def cutpoint_factors(sampled: SampledPairs, sd: Any) -> Any:
    """Return the factor of the distances of each judged pair's cutpoints, in a PyMC model; None if they have none."""
    pm, pt = load("pymc"), load("pytensor.tensor")
    effect = sampled.design.cutpoint_scale
    if effect is None:
        return None
    scale = pm.Normal("cutpoint_scale", 0.0, 1.0, shape=len(sampled.queries))
    return pt.exp(scale * sd[sampled.design.position(effect.name)])[sampled.query]


def log_likelihood(eta: Any, gap: Any, factor: Any, sampled: SampledPairs) -> Any:
    """Return the sum of :func:`log_probability` in PyTensor; ``eta`` includes the first cutpoint."""
    pt = load("pytensor.tensor")
    level, top = sampled.level, len(sampled.design.cuts)
    some, below = np.flatnonzero(level > 0), np.flatnonzero(level < top)
    total = pt.as_tensor(0.0)
    if gap is None:
        return total - pt.softplus(-eta[some]).sum() - pt.softplus(eta[below]).sum()
    cuts = pt.concatenate([np.zeros(1), -pt.cumsum(gap)])
    middle = cuts.mean()
    apart = cuts - middle
    factor = pt.ones(len(level)) if factor is None else factor
    if len(some):
        total -= pt.softplus(-(eta[some] + middle + factor[some] * apart[level[some] - 1])).sum()
    if len(below):
        total -= pt.softplus(eta[below] + middle + factor[below] * apart[level[below]]).sum()
    between = np.flatnonzero((level > 0) & (level < top))
    if len(between):
        total += pt.log1mexp(-gap[level[between] - 1] * factor[between]).sum()
    return total
