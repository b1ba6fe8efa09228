r"""The hierarchical model with labels by NUTS: the second route to what Laplace's method does with labels.

Sampled are the worth of labels (each family's slope, the standard deviations of its own effects and of the model's, its
liking for popular documents) under the priors that Laplace's method has, and everything that grades inform. Given the
worth, labels are normal (:mod:`probeval.relevance.inference.labelled`): effects within queries and pairs' own effects
are integrated out of them exactly, and the campaign's parameters and the seen relevance of judged pairs are sampled as
standard normals around their means given labels. So no pair without judgment has a parameter.

Both routes have in common: a family's labels are combined before (:mod:`probeval.relevance.observers.family`); its
slope has its most probable sign, which Laplace's method integrates over; the level of grades that labels suggest is one
observation of the mean logit, here that of the central setting of the worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.bayes import load
from probeval.data.pool import QueryBlock
from probeval.relevance.inference.directions import SampledPairs
from probeval.relevance.inference.labelled import Algebra, LabelledQueries, Setting, numpy_algebra, pytensor_algebra
from probeval.relevance.inference.nuts import (
    NutsDraws,
    NutsPosterior,
    cutpoint_factors,
    effect_sums,
    log_likelihood,
    moments,
)
from probeval.relevance.normal import Normal
from probeval.streams import query_streams

__all__ = ["LabelledDraws", "LabelledPosterior", "labelled_model"]

WORTH = ("seen_log_sd", "log_slope", "own", "liking")  # the sampled parameters of the worth of labels


@dataclass(frozen=True, eq=False)
class LabelledPosterior(NutsPosterior):
    """The posterior given labels, as draws of NUTS.

    The chains have, beside those of :class:`NutsPosterior` without ``intercept``, ``coefficients`` and ``difference``:
    ``seen_log_sd`` of each of the model's effects before the reference's own part, ``log_slope`` and ``liking`` of each
    family, ``own`` (the log standard deviations of families' own effects by level, in units of their prior),
    ``parameters`` of the campaign in units of their prior, and the standard normals ``campaign`` and ``relevance`` of
    which they and the relevance of judged pairs are functions.
    """

    def __repr__(self) -> str:
        return super().__repr__().replace("NutsPosterior", "LabelledPosterior")

    @cached_property
    def labels(self) -> LabelledQueries:
        """The labels."""
        return LabelledQueries.of(self.design)

    @property
    def log_slopes(self) -> Mapping[str, Normal]:
        """The posterior of the log slope of each family, in normal form."""
        assert self.design.evidence is not None
        values = self.flat("log_slope")
        return {
            family.name: Normal(float(column.mean()), float(column.std()))
            for family, column in zip(self.design.evidence.families, values.T, strict=True)
        }

    def draws_at(self, rows: Ints, rng: np.random.Generator) -> LabelledDraws:
        """Return these draws of the chains, with unsampled parameters drawn given labels or from their prior."""
        return LabelledDraws.of(self, rows, rng)


@dataclass(frozen=True, eq=False)
class LabelledDraws(NutsDraws):
    """Some draws of the chains, with the seen relevance of all pairs drawn given labels and judged pairs.

    Parameters
    ----------
    settings
        The worth of labels of each draw.
    """

    settings: tuple[Setting, ...]

    @classmethod
    def of(cls, posterior: NutsPosterior, rows: Ints, rng: np.random.Generator) -> LabelledDraws:
        """Return these draws of the chains."""
        assert isinstance(posterior, LabelledPosterior)
        labels, algebra = posterior.labels, numpy_algebra()
        worth = [posterior.flat(name)[rows] for name in WORTH]
        settings = tuple(_setting(algebra, labels, *values) for values in zip(*worth, strict=True))
        u = posterior.flat("parameters")[rows]
        values = np.empty((labels.rows.shape[1], len(rows)))
        for i, setting in enumerate(settings):
            values[:, i] = labels.parameters(algebra, setting, u[i])
        campaign = {name: values[where] for name, where in labels.blocks.items()}
        campaign["gaps"] = posterior.flat("gaps")[rows].T
        return cls(posterior, rows, campaign, int(rng.integers(2**63)), settings)

    def drawn(self, block: QueryBlock) -> tuple[dict[str, Floats], Floats | None]:
        """Return the coefficients of a block's queries by effect, and the relevance of its pairs that labels measure.

        Shapes (query, column, n) and (pair, n).
        """
        local, _ = super().drawn(block)
        posterior, sizes = self.posterior, self.design.pool.sizes[block.queries]
        assert isinstance(posterior, LabelledPosterior)
        labels = posterior.labels.take(block.queries)
        place, z = self._ordered(block)
        targets, algebra = labels.targets(place), numpy_algebra()
        out = np.empty((*place.shape, self.n))
        u = posterior.flat("parameters")[self.rows]
        for i, setting in enumerate(self.settings):
            white = labels.whitened(algebra, setting, targets)
            residual = white.scores - white.columns @ u[i]
            mean = (white.cross.transpose(0, 2, 1) @ residual[..., None])[..., 0]
            out[..., i] = mean + (white.left @ z[..., i, None])[..., 0]
        query = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - sizes
        slot = np.empty(len(query), dtype=np.int64)
        for q, size in enumerate(sizes.tolist()):
            slot[first[q] + place[q, :size]] = np.arange(size)
        return local, out[query, slot]

    def _ordered(self, block: QueryBlock) -> tuple[Ints, Floats]:
        """Return each query's pairs, judged ones first, and their standard normals (query, pair, n).

        Those of judged pairs were sampled: the root of a variance has the root of its first block in its first rows.
        """
        pool, sampled = self.design.pool, self.posterior.sampled
        sizes = pool.sizes[block.queries]
        width = self.posterior.labels.grams.shape[2] if isinstance(self.posterior, LabelledPosterior) else 0
        place = np.full((len(sizes), width), -1)
        normals = np.zeros((len(sizes), width, self.n))
        known = self.posterior.flat("relevance")[self.rows].T
        streams = query_streams(self.seed + 1, block.queries)  # other ones than those of the effects
        for i, (size, rng) in enumerate(zip(sizes.tolist(), streams, strict=True)):
            mine = np.flatnonzero(pool.query[sampled.pairs] == block.queries.start + i)
            judged = sampled.pairs[mine] - pool.pairs_of(block.queries.start + i).start
            place[i, :size] = [*judged, *np.setdiff1d(np.arange(size), judged)]
            normals[i, :size] = rng.standard_normal((size, self.n))
            normals[i, : len(mine)] = known[mine]
        return place, normals


def labelled_model(sampled: SampledPairs) -> Any:
    """Return the PyMC model of the judged pairs and the labels."""
    pm, pt = load("pymc"), load("pytensor.tensor")
    design, algebra = sampled.design, pytensor_algebra()
    labels = LabelledQueries.of(design)
    evidence = design.evidence
    assert evidence is not None
    seen = [e.log_sd for e in evidence.design.effects if e.effect.acts_on == "predictor"]
    place = _judged_places(sampled)
    with pm.Model() as model:
        sd = pt.exp(pm.Normal("log_sd", *moments([e.log_sd for e in design.effects])))
        setting = _setting(
            algebra,
            labels,
            pm.Normal("seen_log_sd", *moments(seen)),
            pm.Normal("log_slope", *moments([f.prior.log_slope for f in evidence.families])),
            pm.Normal("own", 0.0, 1.0, shape=(len(evidence.families), len(evidence.levels[0].names))),
            pm.Normal("liking", *moments([f.prior.popularity for f in evidence.families])),
        )
        gap = pm.TruncatedNormal("gaps", *moments(design.cuts[1:]), lower=0.0) if len(design.cuts) > 1 else None
        white = labels.whitened(algebra, setting, labels.targets(place))
        given = labels.campaign(algebra, setting, white, gap)
        pm.Potential("labels", given.log_marginal)
        campaign = pm.Normal("campaign", 0.0, 1.0, shape=labels.rows.shape[1])
        u = pt.linalg.solve_triangular(given.root.T, given.right + campaign, lower=False)
        pm.Deterministic("parameters", u)
        if len(sampled.pairs):
            z = pt.concatenate([pm.Normal("relevance", 0.0, 1.0, shape=len(sampled.pairs)), np.zeros(1)])
            at = np.full(place.shape, len(sampled.pairs))
            at[place >= 0] = np.arange(len(sampled.pairs))
            residual = white.scores - white.columns @ u
            x = (white.cross.transpose(0, 2, 1) @ residual[..., None] + white.left @ z[at][..., None])[..., 0]
            eta = labels.rows[sampled.pairs] @ labels.parameters(algebra, setting, u)
            eta = eta + x[np.nonzero(place >= 0)] + effect_sums(sampled, sd)
            pm.Potential("judged", log_likelihood(eta, gap, cutpoint_factors(sampled, sd), sampled))
    return model


def _judged_places(sampled: SampledPairs) -> Ints:
    """Return the judged pairs of every query by their positions among its pairs, -1 after the last."""
    pool = sampled.design.pool
    query = pool.query[sampled.pairs]
    count = np.bincount(query, minlength=len(pool.queries))
    out = np.full((len(pool.queries), int(count.max(initial=0))), -1)
    slot = np.arange(len(query)) - (np.cumsum(count) - count)[query]
    out[query, slot] = sampled.pairs - (np.cumsum(pool.sizes) - pool.sizes)[query]
    return out


def _setting(
    algebra: Algebra, labels: LabelledQueries, seen_log_sd: Any, log_slope: Any, own: Any, liking: Any
) -> Setting:
    """Return the worth of labels from its sampled parameters.

    Biases of families towards systems and teams have a prior relative to the seen effect, unless a family is noise.
    """
    evidence = labels.design.evidence
    assert evidence is not None
    effects = [e for e in evidence.design.effects if e.effect.acts_on == "predictor"]
    log_sd = {e.name: seen_log_sd[i] for i, e in enumerate(effects)}
    biases = {e.name for e in evidence.design.of_campaign}
    sds = {}
    for i, level in enumerate(evidence.levels[0].names):
        mean, spread = moments([f.prior.own(level) for f in evidence.families])
        log_own = mean + spread * own[:, i]
        if level in biases:
            seen = log_slope + log_sd[level] + np.log(labels.share[level]) / 2
            log_own = log_own + np.abs(labels.signs) * seen
        sds[level] = algebra.xp.exp(log_own)
    return Setting(
        sds={name: algebra.xp.exp(value) for name, value in log_sd.items()},
        slopes=labels.signs * algebra.xp.exp(log_slope),
        own=sds,
        popularity=liking,
    )
