r"""The labels of all queries as one joint normal, for NUTS.

Given the worth of labels (slopes, standard deviations) the labels :math:`y` of a query by all families, and the seen
relevance :math:`x` of its pairs, are jointly normal given the campaign's parameters. With these as standard normals
:math:`u`:

.. math:: y \mid u \sim N(o + Au,\; V),\qquad \text{Cov}[x, y] = C',\qquad V = \sum_k (\lambda\lambda'\rho_k\sigma_k^2 +
          \text{diag}\,o_k^2) \otimes G_k + \text{noise}

so that effects within queries and pairs' own effects are integrated out of the labels, and :math:`x` is normal given
labels. The functions take arrays of NumPy or of PyTensor. This is a second route to the algebra of
:mod:`probeval.relevance.observers.measure`, which takes one family after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.bayes import load
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.observers.measure import LEVEL, LIKING, LevelTarget, family_block, level_target, pair_scale
from probeval.relevance.observers.prior import PAIR
from probeval.relevance.observers.worth import LOGISTIC, LeastSquares, Worth

__all__ = ["Algebra", "CampaignPosterior", "LabelledQueries", "Setting", "Targets", "numpy_algebra", "pytensor_algebra"]

JITTER = 1e-9  # squared logits, on the variance of relevance given labels before its root is taken


class Algebra(NamedTuple):
    """The functions of one array library; ``solve_lower`` solves with lower triangular matrices, in stacks."""

    xp: Any
    cholesky: Callable[[Any], Any]
    solve_lower: Callable[[Any, Any], Any]


def numpy_algebra() -> Algebra:
    """Return NumPy's functions."""
    return Algebra(np, np.linalg.cholesky, np.linalg.solve)


def pytensor_algebra() -> Algebra:
    """Return PyTensor's functions."""
    pt = load("pytensor.tensor")
    return Algebra(pt, pt.linalg.cholesky, lambda root, right: pt.linalg.solve_triangular(root, right, lower=True))


class Setting(NamedTuple):
    """One setting of the worth of labels, as arrays: names as in :class:`~probeval.relevance.observers.worth.Worth`."""

    sds: Mapping[str, Any]  # by effect
    slopes: Any  # shape (family,)
    own: Mapping[str, Any]  # by level, shapes (family,)
    popularity: Any  # shape (family,)

    @classmethod
    def of(cls, worth: Worth) -> Setting:
        """Return a setting of the worth in NumPy."""
        own = {level: np.array([o[level] for o in worth.own]) for level in worth.own[0]}
        return cls(worth.sds, np.array(worth.slopes), own, np.array(worth.popularity))


@dataclass(frozen=True, eq=False)
class Targets:
    """Some pairs of each query, whose seen relevance is asked for.

    Parameters
    ----------
    place
        Their positions among the query's pairs, -1 after the last one, shape (query, target).
    cross, inner
        :math:`G_k` with all pairs and among themselves, shapes (level, query, pair, target) and
        (level, query, target, target).
    """

    place: Ints
    cross: Floats
    inner: Floats


class Whitened(NamedTuple):
    """The labels of each query by the root of their variance, :math:`V = LL'`."""

    log_det: Any  # of all V
    columns: Any  # L^-1 A, shape (query, label, parameter)
    scores: Any  # L^-1 (y - o), shape (query, label)
    level: Any  # L^-1 times the covariance with the mean relevance of retrieved documents, shape (query, label)
    cross: Any  # L^-1 C, shape (query, label, target)
    left: Any  # the root of the variance of the targets given labels, shape (query, target, target)


class CampaignPosterior(NamedTuple):
    r"""The campaign's parameters given labels, :math:`u \sim N(S^{-1}h, S^{-1})` with :math:`S = RR'`."""

    root: Any  # R
    right: Any  # R^-1 h
    log_marginal: Any  # of the labels, up to a constant


@dataclass(frozen=True, eq=False)
class LabelledQueries:
    """All queries of a campaign with the labels of its families, as one stack of equal sizes.

    Parameters
    ----------
    design
        The campaign given its labels.
    signs
        The most probable sign of each family's slope.
    names
        The levels of effects within queries, and ``pair``.
    share
        The share of each level's variance that observers see, and of the campaign's effects.
    grams
        :math:`G_k` of each level, 0 beyond a query's pairs, shape (level, query, pair, pair).
    given
        1 for labels, 0 where there is none, shape (query, label); labels are those of the first family, the second, ..
    scores, noise
        Labels, and their additional noise variance (1 without label), shapes (query, label).
    base
        The columns of labels for coefficients of size 1, shape (query, label, parameter).
    rows
        The columns of all pairs' logits, shape (pair, parameter).
    blocks
        The parameters by name.
    level
        The level of grades that labels suggest, if any: an observation of the mean logit of retrieved documents, which
        Laplace's method makes at each setting of the worth. Here it is that of the central setting.
    mean_grams, mean_rows
        :math:`G_k` of all pairs with that mean, and its columns, shapes (level, query, pair) and (parameter,).
    """

    design: ModelDesign
    signs: Floats
    names: tuple[str, ...]
    share: Mapping[str, float]
    grams: Floats
    given: Floats
    scores: Floats
    noise: Floats
    base: Floats
    rows: Floats
    blocks: Mapping[str, slice]
    level: LevelTarget | None
    mean_grams: Floats
    mean_rows: Floats

    @classmethod
    def of(cls, design: ModelDesign) -> LabelledQueries:
        """Return the labels of a campaign."""
        evidence = design.evidence
        assert evidence is not None
        plain, found, priors = evidence.design, evidence.families, evidence.priors
        pool, n_families = plain.pool, len(found)
        every = np.arange(len(pool))
        at = pool.query, every - (np.cumsum(pool.sizes) - pool.sizes)[pool.query]
        shape = (len(pool.queries), int(pool.sizes.max(initial=0)))

        def stacked(values: Floats) -> Floats:
            out = np.zeros((*shape, *values.shape[1:]))
            out[at] = values
            return out

        grams = []
        for effect in plain.of_query:
            columns = stacked(effect.columns.rows(every))
            grams.append(columns @ columns.transpose(0, 2, 1))
        grams.append(stacked(np.ones(len(pool)))[..., None] * np.eye(shape[1]))
        scope = {e.name: e.effect.scope for e in plain.effects}
        best = tuple(max(p, key=p.__getitem__) for p in evidence.worth.signs)
        problem = LeastSquares(plain, priors, found, evidence.levels, best)
        centre = problem.worth(problem.solve()[0], 1.0)
        layout = {name: where for name, where in Layout.of(design).blocks.items() if name != "gaps"}
        ends = np.cumsum([0, *(where.stop - where.start for where in layout.values())]).tolist()
        blocks = {name: slice(a, b) for name, (a, b) in zip(layout, pairwise(ends), strict=True)}
        rows = np.concatenate([np.ones((len(pool), 1)), design.campaign_rows(every)], axis=1)
        base = np.repeat(stacked(rows)[:, None], n_families, axis=1)
        base[..., blocks["first_cut"]] = 0.0
        for i, family in enumerate(found):
            base[:, i, :, blocks[family_block(family, "level")]] = 1.0
            base[:, i, :, blocks[family_block(family, "terms")]] = stacked(plain.terms)
            for effect in plain.of_campaign:
                base[:, i, :, blocks[family_block(family, effect.name)]] = stacked(effect.columns.rows(every))
        given = np.stack([stacked(f.labelled.astype(float)) for f in found], axis=1)
        noise = np.stack([stacked(np.where(f.labelled, f.extra, 0.0)) for f in found], axis=1)
        flat = (shape[0], n_families * shape[1])
        weights = plain.counts / max(float(plain.counts.sum()), 1.0)
        return cls(
            design=design,
            signs=np.array(best, dtype=float),
            names=(*(e.name for e in plain.of_query), PAIR),
            share={name: priors.share(name, scope.get(name, "query")) for name in (*scope, PAIR)},
            grams=np.array(grams),
            given=given.reshape(flat),
            scores=np.stack([stacked(f.scores) for f in found], axis=1).reshape(flat),
            noise=(noise + 1 - given).reshape(flat),
            base=(base * given[..., None]).reshape(*flat, -1),
            rows=rows,
            blocks=blocks,
            level=level_target(design, centre),
            mean_grams=(np.array(grams) @ stacked(weights)[..., None])[..., 0],
            mean_rows=weights @ rows,
        )

    @property
    def scale(self) -> float:
        """The factor of all logits."""
        assert self.design.evidence is not None
        return pair_scale(self.design.evidence.priors)

    def targets(self, place: Ints) -> Targets:
        """Return some pairs of each query, by their positions among its pairs, -1 for none."""
        there = place >= 0
        cross = np.take_along_axis(self.grams, np.maximum(place, 0)[None, :, None, :], axis=3) * there[None, :, None, :]
        inner = np.take_along_axis(cross, np.maximum(place, 0)[None, :, :, None], axis=2) * there[None, :, :, None]
        return Targets(place, cross, inner)

    def take(self, queries: slice) -> LabelledQueries:
        """Return some queries."""
        return replace(
            self,
            grams=self.grams[:, queries],
            given=self.given[queries],
            scores=self.scores[queries],
            noise=self.noise[queries],
            base=self.base[queries],
            mean_grams=self.mean_grams[:, queries],
        )

    def spread(self, algebra: Algebra, setting: Setting) -> Any:
        """Return the prior standard deviation of each of the campaign's parameters, shape (parameter,)."""
        xp, out = algebra.xp, {}
        assert self.design.evidence is not None
        out["first_cut"] = np.array([self.design.cuts[0].sd])
        out["coefficients"] = np.array([c.sd for c in self.design.coefficients])
        effects = [e.name for e in self.design.evidence.design.of_campaign]
        out |= {name: self.scale * setting.sds[name] for name in effects}
        for i, family in enumerate(self.design.evidence.families):
            out |= {family_block(family, "level"): LEVEL.sd, family_block(family, "terms"): LIKING}
            out |= {family_block(family, name): setting.own[name][i] for name in effects}
        return xp.concatenate([value * np.ones(self.blocks[n].stop - self.blocks[n].start) for n, value in out.items()])

    def parameters(self, algebra: Algebra, setting: Setting, u: Any) -> Any:
        """Return the campaign's parameters from standard normals; a family's slopes on terms without their tie."""
        return self.centre + self.spread(algebra, setting) * u

    @property
    def centre(self) -> Floats:
        """The prior means of the campaign's parameters."""
        out = np.zeros(self.rows.shape[1])
        out[self.blocks["first_cut"]] = self.design.cuts[0].mean
        out[self.blocks["coefficients"]] = [c.mean for c in self.design.coefficients]
        return out

    def covariances(self, setting: Setting, which: Floats) -> Any:
        r"""Return :math:`\sum_k \rho_k\sigma_k^2 G_k`, for parts of the :math:`G_k`, shape (query, ..)."""
        return sum(self._seen(setting, name) * part for name, part in zip(self.names, which, strict=True))

    def _seen(self, setting: Setting, name: str) -> Any:
        """Return the seen variance of a level, in logits of grades."""
        variance = LOGISTIC if name == PAIR else setting.sds[name] ** 2
        return self.share[name] * self.scale**2 * variance

    def whitened(self, algebra: Algebra, setting: Setting, targets: Targets) -> Whitened:
        """Return labels, their columns and their covariance with relevance, by the root of their variance."""
        xp, n, n_families = algebra.xp, self.grams.shape[2], len(self.signs)
        slopes = setting.slopes / self.scale
        family = np.repeat(np.arange(n_families), n)  # of each label
        pair = np.tile(np.arange(n), n_families)
        slope = slopes[family] * self.given
        v: Any = 0.0
        for name, gram in zip(self.names, self.grams, strict=True):
            own = setting.own[name] ** 2 * np.eye(n_families)
            between = slopes[:, None] * slopes[None, :] * self._seen(setting, name) + own
            v = v + between[None, :, None, :, None] * gram[:, None, :, None, :]
        v = v.reshape((*self.given.shape, len(family))) * (self.given[:, :, None] * self.given[:, None, :])
        root = algebra.cholesky(v + self.noise[:, :, None] * np.eye(len(family)))
        columns, off = self._columns(algebra, setting)
        parts = [
            columns,
            (self.scores - off)[..., None],
            (self.covariances(setting, self.mean_grams[:, :, pair]) * slope)[..., None],
            self.covariances(setting, targets.cross[:, :, pair]) * slope[..., None],
        ]
        white = algebra.solve_lower(root, xp.concatenate(parts, axis=2))
        n_columns, n_targets = self.base.shape[2], targets.place.shape[1]
        cross = white[..., n_columns + 2 :]
        alone = ((targets.place < 0) + JITTER)[:, :, None] * np.eye(n_targets)
        left = self.covariances(setting, targets.inner) + alone - cross.transpose(0, 2, 1) @ cross
        return Whitened(
            log_det=2 * xp.log(root[:, np.arange(len(family)), np.arange(len(family))]).sum(),
            columns=white[..., :n_columns],
            scores=white[..., n_columns],
            level=white[..., n_columns + 1],
            cross=cross,
            left=algebra.cholesky(left) if n_targets else left,
        )

    def _columns(self, algebra: Algebra, setting: Setting) -> tuple[Any, Any]:
        """Return :math:`A` and :math:`o`; a family's slopes on terms are tied to those of relevance.

        They are the slope times the coefficients, times one and the family's own liking, and an own part.
        """
        family = np.repeat(np.arange(len(self.signs)), self.grams.shape[2])
        kind = np.zeros((2, 1, self.base.shape[2]))  # of each parameter: coefficients, the campaign's effects
        assert self.design.evidence is not None
        kind[0, :, self.blocks["coefficients"]] = 1.0
        for effect in self.design.evidence.design.of_campaign:
            kind[1, :, self.blocks[effect.name]] = 1.0
        slopes = setting.slopes[:, None] / self.scale
        tied = slopes * (1 + setting.popularity[:, None])
        factor = kind[0] * tied + kind[1] * slopes + (1 - kind.sum(axis=0))
        columns = self.base * (factor * self.spread(algebra, setting))[family]
        return columns, (self.base * factor[family]) @ self.centre

    def campaign(self, algebra: Algebra, setting: Setting, white: Whitened, gaps: Any) -> CampaignPosterior:
        """Return the campaign's parameters given labels and the level that they suggest."""
        xp, both = algebra.xp, ([0, 1], [0, 1])
        information = np.eye(self.rows.shape[1]) + xp.tensordot(white.columns, white.columns, both)
        right = xp.tensordot(white.columns, white.scores, both)
        square = (white.scores**2).sum()
        if self.level is not None:
            row = self.mean_rows * self.spread(algebra, setting) - xp.tensordot(white.columns, white.level, both)
            middle = 0.0 if gaps is None else gap_columns(len(self.design.cuts)).middle @ gaps
            off = self.level.logit - self.mean_rows @ self.centre - middle - (white.level * white.scores).sum()
            information = information + row[:, None] * row[None, :] / self.level.sd**2
            right = right + row * off / self.level.sd**2
            square = square + off**2 / self.level.sd**2
        root = algebra.cholesky(information)
        half = algebra.solve_lower(root, right[:, None])[:, 0]
        log_det = white.log_det + 2 * xp.log(xp.diagonal(root)).sum()
        return CampaignPosterior(root, half, -(log_det + square - (half**2).sum()) / 2)
