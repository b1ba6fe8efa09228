r"""The hierarchical model with labels by NUTS: the second route to what Laplace's method does with labels.

Sampled are the worth of labels (each family's slope, the standard deviations of its own effects and of the model's, its
liking for popular documents) under the priors that Laplace's method has, and everything that grades inform. Given the
worth, labels are normal (:mod:`probeval.relevance.nuts.label_normals`): effects within queries and pairs' own effects
are integrated out of them exactly, and the campaign's parameters and the seen relevance of judged pairs are sampled as
standard normals around their means given labels. So no pair without judgment has a parameter.

Both routes have in common: a family's labels are combined before (:mod:`probeval.relevance.observers.family`); its
slope has its most probable sign, which Laplace's method integrates over, and its kind is integrated over; the level of
grades that labels suggest is one observation of the mean logit, here that of the central setting of the worth.
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
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import SampledPairs
from probeval.relevance.nuts.label_gradient import JudgedLabels, label_operation
from probeval.relevance.nuts.label_normals import LabelledQueries, Setting
from probeval.relevance.nuts.posterior import (
    NutsDraws,
    NutsPosterior,
    cutpoint_factors,
    effect_sums,
    log_likelihood,
    moments,
)
from probeval.relevance.observers.worth import joint_slope, n_systems
from probeval.streams import query_streams

__all__ = ["LabelledDraws", "LabelledPosterior", "labelled_model"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelledPosterior(NutsPosterior):
    """The posterior given labels, as draws of NUTS.

    The chains have, beside those of :class:`NutsPosterior` without ``intercept``, ``coefficients`` and ``difference``:
    ``worth`` (the coordinates of the worth of labels), ``parameters`` of the campaign in units of their prior, and the
    standard normals ``campaign`` and ``relevance`` of which they and the relevance of judged pairs are functions.
    """

    @cached_property
    def labels(self) -> LabelledQueries:
        """The labels."""
        return LabelledQueries.of(self.design)

    @property
    def log_slopes(self) -> Mapping[str, Normal]:
        """The posterior of the log slope of each family, in normal form."""
        assert self.design.evidence is not None
        slopes = np.array([self.labels.setting(w).slopes for w in self.flat("worth")])
        values = np.log(np.abs(slopes), where=slopes != 0, out=np.full(slopes.shape, -np.inf))
        return {
            family.name: Normal(float(column.mean()), float(column.std()))
            for family, column in zip(self.design.evidence.families, values.T, strict=True)
            if np.isfinite(column).all()
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
        labels = posterior.labels
        settings = tuple(labels.setting(w) for w in posterior.flat("worth")[rows])
        u = posterior.flat("parameters")[rows]
        values = np.empty((labels.rows.shape[1], len(rows)))
        for i, setting in enumerate(settings):
            values[:, i] = labels.parameters(setting, u[i])
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
        place, normals = self._ordered(block, labels.grams.shape[2])
        targets = labels.targets(place)
        out = np.empty((*place.shape, self.n))
        u = posterior.flat("parameters")[self.rows]
        for i, setting in enumerate(self.settings):
            z, start = labels.mixing(setting, labels.spread(setting))
            out[..., i] = labels.relevance(labels.products(setting, targets), start + z @ u[i], normals[..., i])
        query = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - sizes
        slot = np.empty(len(query), dtype=np.int64)
        for q, size in enumerate(sizes.tolist()):
            slot[first[q] + place[q, :size]] = np.arange(size)
        return local, out[query, slot]

    def _ordered(self, block: QueryBlock, width: int) -> tuple[Ints, Floats]:
        """Return each query's pairs, judged ones first and -1 up to ``width``, and standard normals (query, pair, n).

        Those of judged pairs were sampled: the root of a variance has the root of its first block in its first rows.
        """
        pool, sampled = self.design.pool, self.posterior.sampled
        sizes = pool.sizes[block.queries]
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
    design = sampled.design
    labels = LabelledQueries.of(design)
    with pm.Model() as model:
        sd = pt.exp(pm.Normal("log_sd", *moments([e.log_sd for e in design.effects])))
        worth = pm.Flat("worth", shape=len(labels.worth.centre))
        pm.Potential("worth_prior", labels.worth.log_prior(worth, pt))
        setting = labels.setting(worth, pt)
        gap = pm.TruncatedNormal("gaps", *moments(design.cuts[1:]), lower=0.0) if len(design.cuts) > 1 else None
        middle = 0.0 if gap is None else pt.dot(gap_columns(len(design.cuts)).middle, gap)
        campaign = pm.Normal("campaign", 0.0, 1.0, shape=len(labels.mean_rows))
        relevance: Any = np.zeros(0)
        if len(sampled.pairs):
            relevance = pm.Normal("relevance", 0.0, 1.0, shape=len(sampled.pairs))
        operation = label_operation(JudgedLabels(labels, sampled.pairs))
        log_marginal, logits, u = operation(*setting, middle, campaign, relevance)
        pm.Potential("labels", log_marginal)
        pm.Deterministic("parameters", u)
        mean, spread = moments(design.coefficients)
        assert design.evidence is not None
        constants = design.evidence.priors.constants
        together = constants.together * constants.widening(n_systems(design))
        for row in joint_slope(design.evidence.design) / labels.scale:
            slope = pt.dot(row, mean + spread * u[labels.blocks["coefficients"]])
            pm.Potential("joint_slope", -(((slope - 1) / together) ** 2) / 2)
        if len(sampled.pairs):
            logits = logits + effect_sums(sampled, sd)
            pm.Potential("judged", log_likelihood(logits, gap, cutpoint_factors(sampled, sd), sampled))
    return model
