r"""The labels of all queries as one joint normal, for NUTS.

Given the worth of labels (slopes and standard deviations) the labels :math:`y` of a query by all families, and the seen
relevance :math:`x` of its pairs, are normal given the campaign's parameters. With these as standard normals :math:`u`:

.. math:: y \mid u \sim N(D(h_0 + Zu),\; V),\qquad V = \sum_k (\rho_k\sigma_k^2\,\lambda\lambda' + \text{diag}\,o_k^2)
          \otimes G_k + \text{noise},\qquad \text{Cov}[x, y] = C'

with :math:`D` the columns of families' levels, terms and effects of the campaign. So effects within queries and pairs'
own effects are integrated out of the labels; :math:`u` is normal given labels, and :math:`x` given both. All that is
needed are the products of :math:`D`, :math:`y` and :math:`C` by :math:`V^{-1}`. This is a second route to the algebra
of :mod:`probeval.relevance.observers.measure`, which takes one family after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.observers.conditioning import LEVEL, LIKING, family_block, pair_scale
from probeval.relevance.observers.measure import level_target
from probeval.relevance.observers.target import LevelTarget
from probeval.relevance.observers.worth import LOGISTIC, LeastSquares, Worth, hypotheses_of

__all__ = ["CampaignGivenLabels", "LabelledQueries", "Products", "Setting", "Targets"]

JITTER = 1e-9  # squared logits, on the variance of relevance given labels before its root is taken


class Setting(NamedTuple):
    """One setting of the worth of labels, as arrays."""

    sds: Floats  # of the model's effects on predictors, shape (effect,)
    slopes: Floats  # shape (family,)
    own: Floats  # the sds of families' own effects, shape (level, family)
    popularity: Floats  # families' own liking for popular documents, shape (family,)

    @classmethod
    def of(cls, worth: Worth) -> Setting:
        """Return a setting of the worth as arrays."""
        own = [[mine[level] for mine in worth.own] for level in worth.own[0]]
        return cls(
            np.array(list(worth.sds.values())), np.array(worth.slopes), np.array(own), np.array(worth.popularity)
        )


class WorthScale(NamedTuple):
    r"""Coordinates of the worth of labels: :math:`\theta = \hat\theta + Qw`, with its prior.

    :math:`\theta` are the log standard deviations of the model's effects and, for each family, its log slope, the log
    standard deviations of its own effects and its liking. Its centre and scale are those that the variances of labels
    by level suggest (:mod:`probeval.relevance.observers.worth`): labels determine sums of variances precisely and their
    parts not. Coordinates do not change the posterior.
    """

    centre: Floats
    root: Floats  # Q
    effects: tuple[Floats, Floats]  # mean and sd of the log standard deviations of the model's effects
    families: tuple[PossibleWorth, ...]

    @classmethod
    def of(cls, problem: LeastSquares, possible: Sequence[Sequence[tuple[LeastSquares, float]]]) -> WorthScale:
        """Return the coordinates; coefficients of terms are parameters of the campaign.

        ``possible`` has for each family what it may be, as a problem of its own, with the probabilities.
        """
        x, covariance, _ = problem.solve()
        keep = np.delete(np.arange(len(x)), np.arange(*problem.blocks[1].indices(len(x))))
        root = np.asarray(np.linalg.cholesky(covariance[np.ix_(keep, keep)]))
        shared = problem.blocks[0]
        return cls(
            x[keep],
            root,
            (problem.mean[shared], problem.sd[shared]),
            tuple(PossibleWorth.of(each) for each in possible),
        )

    def log_prior(self, w: Any, pt: Any) -> Any:
        r"""Return the log prior density of the coordinates, up to a constant.

        A family's part is a mixture over what it may be: :math:`\log\sum_h p_h N(\theta \mid \mu_h, \sigma_h)`.
        """
        theta = self.centre + pt.dot(self.root, w)
        mean, sd = self.effects
        out = -(((theta[: len(mean)] - mean) / sd) ** 2).sum() / 2
        start = len(mean)
        for family in self.families:
            mine = theta[start : start + family.mean.shape[1]]
            start += family.mean.shape[1]
            out += pt.logsumexp(family.log_weight - (((mine - family.mean) / family.sd) ** 2).sum(axis=1) / 2)
        return out


class PossibleWorth(NamedTuple):
    """The priors that the parameters of a family may have."""

    log_weight: Floats  # with the constant of the density, shape (hypothesis,)
    mean: Floats  # shape (hypothesis, parameter)
    sd: Floats

    @classmethod
    def of(cls, possible: Sequence[tuple[LeastSquares, float]]) -> PossibleWorth:
        """Return the priors of a family alone, by its hypotheses and their probabilities."""
        mean, sd = (np.array([getattr(each, name)[each.blocks[2]] for each, _ in possible]) for name in ("mean", "sd"))
        return cls(np.log([p for _, p in possible]) - np.log(sd).sum(axis=1), mean, sd)


class Targets(NamedTuple):
    """Some pairs of each query, whose seen relevance is asked for."""

    place: Ints  # positions among the query's pairs, -1 after the last one, shape (query, target)
    cross: Floats  # G_k with all pairs, shape (level, query, pair, target)
    inner: Floats  # G_k among themselves, shape (level, query, target, target)


class Products(NamedTuple):
    r"""The products of all columns :math:`B = [D, y, c, C]` of a query by :math:`V^{-1}`.

    :math:`c` is the covariance with the mean relevance of retrieved documents.
    """

    inverse: Floats  # V^-1, shape (query, label, label)
    log_det: float  # of all V
    solved: Floats  # V^-1 B, shape (query, label, column)
    values: Floats  # B'V^-1 B, shape (query, column, column)
    total: Floats  # their sum over queries
    root: Floats  # of the variance of the targets given labels, shape (query, target, target)


class CampaignGivenLabels(NamedTuple):
    r"""The campaign's parameters given labels: :math:`u \sim N(S^{-1}r, S^{-1})` with :math:`S = RR'`."""

    spread: Floats  # the prior standard deviation of each parameter
    z: Floats  # Z, shape (column of D, parameter)
    start: Floats  # h_0, shape (column of D,)
    row: Floats  # the mean logit of retrieved documents in u
    off: float  # its suggested value less that at u = 0
    right: Floats  # r
    root: Floats  # R
    mean: Floats  # S^-1 r
    log_marginal: float  # of the labels, up to a constant


class Links(NamedTuple):
    """The entries of :math:`Z` by kind: columns of :math:`D` by family, and their parameters."""

    level: tuple[Ints, Ints]  # shapes (family,)
    terms: tuple[Ints, Ints]  # shapes (family, term) and (term,)
    liking: Ints  # the parameters of families' own slopes, shape (family, term)
    effects: tuple[Ints, Ints]  # of the campaign, shapes (family, column) and (column,)
    biases: Ints  # the parameters of families' own effects of the campaign, shape (family, column)
    effect: Ints  # the effect of each column, shape (column,)
    bias_level: Ints  # the level of each column


@dataclass(frozen=True, eq=False)
class LabelledQueries:
    """All queries of a campaign with the labels of its families, as one stack of equal sizes.

    Parameters
    ----------
    design
        The campaign given its labels.
    signs
        The most probable sign of each family's slope, shape (family,).
    worth
        The coordinates of the worth of labels.
    effects, levels
        The names of the model's effects on predictors, and of the levels of families' own effects: those within
        queries, ``pair``, those of the campaign.
    share
        The share of each level's variance that observers see, shape (level,).
    grams
        :math:`G_k` of each level within queries, 0 beyond a query's pairs, shape (level, query, pair, pair).
    given
        1 for labels, 0 where there is none, shape (query, label); labels are those of the first family, the second, ..
    noise
        The additional noise variance of labels, 1 without label, shape (query, label).
    base
        :math:`D`, and the labels as last column, shape (query, label, column).
    rows
        The columns of pairs' logits, shape (pair, parameter).
    blocks
        The campaign's parameters by name.
    level
        The level of grades that labels suggest, if any: an observation of the mean logit of retrieved documents, which
        Laplace's method makes at each setting of the worth. Here it is that of the central setting.
    mean_grams, mean_rows
        :math:`G_k` of all pairs with that mean, and its columns, shapes (level, query, pair) and (parameter,).
    """

    design: ModelDesign
    signs: Floats
    worth: WorthScale
    effects: tuple[str, ...]
    levels: tuple[str, ...]
    share: Floats
    grams: Floats
    given: Floats
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
        pool, every = plain.pool, np.arange(len(plain.pool))
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
        problem = LeastSquares(plain, priors, evidence.levels, evidence.worth.best)
        possible = [
            [
                (LeastSquares(plain, priors, [level], [hypothesis]), p)
                for hypothesis, p in hypotheses_of(priors, family)
                if hypothesis.sign == sign
            ]
            for family, level, sign in zip(found, evidence.levels, problem.signs, strict=True)
        ]
        centre = problem.worth(problem.solve()[0], 1.0)
        layout = {name: where for name, where in Layout.of(design).blocks.items() if name != "gaps"}
        ends = np.cumsum([0, *(where.stop - where.start for where in layout.values())]).tolist()
        rows = np.concatenate([np.ones((len(pool), 1)), design.campaign_rows(every)], axis=1)
        weights = plain.counts / max(float(plain.counts.sum()), 1.0)
        mine = np.concatenate(
            [np.ones((len(pool), 1)), plain.terms, *(e.columns.rows(every) for e in plain.of_campaign)], axis=1
        )
        base = np.zeros((shape[0], len(found), shape[1], len(found) * mine.shape[1] + 1))
        given, noise = np.zeros((2, shape[0], len(found), shape[1]))
        for i, family in enumerate(found):
            labelled = family.labelled[:, None]
            base[:, i, :, i * mine.shape[1] : (i + 1) * mine.shape[1]] = stacked(mine * labelled)
            base[:, i, :, -1] = stacked(family.scores)
            given[:, i] = stacked(family.labelled.astype(float))
            noise[:, i] = stacked(np.where(family.labelled, family.extra, 0.0))
        flat = (shape[0], len(found) * shape[1])
        return cls(
            design=design,
            signs=np.array(problem.signs, dtype=float),
            worth=WorthScale.of(problem, possible),
            effects=tuple(problem.effects),
            levels=problem.names,
            share=problem.seen,
            grams=np.array(grams),
            given=given.reshape(flat),
            noise=(noise + 1 - given).reshape(flat),
            base=base.reshape(*flat, -1),
            rows=rows,
            blocks={name: slice(a, b) for name, (a, b) in zip(layout, pairwise(ends), strict=True)},
            level=level_target(design, centre),
            mean_grams=(np.array(grams) @ stacked(weights)[..., None])[..., 0],
            mean_rows=weights @ rows,
        )

    @property
    def scale(self) -> float:
        """The factor of all logits."""
        assert self.design.evidence is not None
        return pair_scale(self.design.evidence.priors)

    @property
    def families(self) -> Ints:
        """The family of each label, shape (label,)."""
        return np.repeat(np.arange(len(self.signs)), self.grams.shape[2])

    def setting(self, w: Any, xp: Any = np) -> Setting:
        """Return the worth of labels at its coordinates, in NumPy or in PyTensor."""
        n_effects, n_families = len(self.effects), len(self.signs)
        theta = self.worth.centre + xp.dot(self.worth.root, w)
        mine = theta[n_effects:].reshape((n_families, 2 + len(self.levels)))
        slopes = self.signs * xp.exp(mine[:, 0])
        return Setting(xp.exp(theta[:n_effects]), slopes, xp.exp(mine[:, 1:-1].T), mine[:, -1])

    @cached_property
    def both_given(self) -> Floats:
        """Whether both labels of two are given, shape (query, label, label)."""
        return np.asarray(self.given[:, :, None] * self.given[:, None, :])

    def copies(self, values: Floats) -> Floats:
        """Return values of pairs, shape (level, query, pair, ..), as those of labels."""
        return np.tile(values, (1, 1, len(self.signs)) + (1,) * (values.ndim - 3))

    def targets(self, place: Ints) -> Targets:
        """Return some pairs of each query, by their positions among its pairs, -1 for none."""
        there, at = place >= 0, np.maximum(place, 0)
        cross = np.take_along_axis(self.grams, at[None, :, None, :], axis=3) * there[None, :, None, :]
        inner = np.take_along_axis(cross, at[None, :, :, None], axis=2) * there[None, :, :, None]
        return Targets(place, cross, inner)

    def take(self, queries: slice) -> LabelledQueries:
        """Return some queries."""
        return replace(
            self,
            grams=self.grams[:, queries],
            given=self.given[queries],
            noise=self.noise[queries],
            base=self.base[queries],
            mean_grams=self.mean_grams[:, queries],
        )

    def seen(self, setting: Setting) -> Floats:
        """Return the seen variance of each level within queries, in logits of grades."""
        n = len(self.grams)
        variance = np.append(setting.sds[self.places(self.levels[: n - 1])] ** 2, LOGISTIC)
        return np.asarray(self.share[:n] * self.scale**2 * variance)

    def places(self, names: tuple[str, ...]) -> Ints:
        """Return the positions of effects among the model's."""
        return np.array([self.effects.index(name) for name in names], dtype=np.int64)

    def products(self, setting: Setting, targets: Targets) -> Products:
        """Return all columns of labels by the inverse of their variance."""
        seen, slopes = self.seen(setting), setting.slopes / self.scale
        n_families, n = len(slopes), self.grams.shape[2]
        between = seen[:, None, None] * np.outer(slopes, slopes)
        between = between + setting.own[: len(seen), :, None] ** 2 * np.eye(n_families)
        v = (between.reshape(len(seen), -1).T @ self.grams.reshape(len(seen), -1)).reshape(
            n_families, n_families, -1, n, n
        )
        v = v.transpose(2, 0, 3, 1, 4).reshape(-1, n_families * n, n_families * n)
        v = v * self.both_given
        at = np.arange(n_families * n)
        v[:, at, at] += self.noise
        slope = slopes[self.families] * self.given
        mean = np.tensordot(seen, self.copies(self.mean_grams), 1) * slope
        cross = np.tensordot(seen, self.copies(targets.cross), 1) * slope[..., None]
        columns = np.concatenate([self.base, mean[..., None], cross], axis=2)
        inverse = np.asarray(np.linalg.inv(v))
        solved = inverse @ columns
        values = columns.transpose(0, 2, 1) @ solved
        first = self.base.shape[2] + 1
        alone = ((targets.place < 0) + JITTER)[:, :, None] * np.eye(targets.place.shape[1])
        left = np.tensordot(seen, targets.inner, 1) + alone - values[:, first:, first:]
        return Products(
            inverse=np.asarray(inverse),
            log_det=2 * float(np.log(np.diagonal(np.linalg.cholesky(v), axis1=1, axis2=2)).sum()),
            solved=solved,
            values=values,
            total=values.sum(axis=0),
            root=np.asarray(np.linalg.cholesky(left)),
        )

    @cached_property
    def links(self) -> Links:
        """The entries of :math:`Z`."""
        assert self.design.evidence is not None
        found, effects = self.design.evidence.families, self.design.evidence.design.of_campaign

        def of_family(part: str) -> list[Ints]:
            blocks = [self.blocks[family_block(family, part)] for family in found]
            return [np.arange(block.start, block.stop) for block in blocks]

        sizes = [e.columns.n_columns for e in effects]
        coefficients = self.blocks["coefficients"]
        n_terms = coefficients.stop - coefficients.start
        columns = np.arange((1 + n_terms + sum(sizes)) * len(found)).reshape(len(found), -1)
        none = np.empty(0, dtype=np.int64)
        return Links(
            level=(columns[:, 0], np.concatenate(of_family("level"))),
            terms=(columns[:, 1 : 1 + n_terms], np.arange(coefficients.start, coefficients.stop)),
            liking=np.array(of_family("terms")),
            effects=(
                columns[:, 1 + n_terms :],
                np.concatenate(
                    [none, *(np.arange(*self.blocks[e.name].indices(len(self.mean_rows))) for e in effects)]
                ),
            ),
            biases=np.concatenate([np.empty((len(found), 0), int), *(np.array(of_family(e.name)) for e in effects)], 1),
            effect=np.repeat(self.places(tuple(e.name for e in effects)), sizes),
            bias_level=np.repeat([self.levels.index(e.name) for e in effects], sizes).astype(np.int64),
        )

    @cached_property
    def centre(self) -> Floats:
        """The prior means of the campaign's parameters."""
        out = np.zeros(len(self.mean_rows))
        out[self.blocks["first_cut"]] = self.design.cuts[0].mean
        out[self.blocks["coefficients"]] = [c.mean for c in self.design.coefficients]
        return out

    def spread(self, setting: Setting) -> Floats:
        """Return the prior standard deviation of each of the campaign's parameters, shape (parameter,)."""
        out, links = np.empty(len(self.mean_rows)), self.links
        out[self.blocks["first_cut"]] = self.design.cuts[0].sd
        out[self.blocks["coefficients"]] = [c.sd for c in self.design.coefficients]
        out[links.effects[1]] = self.scale * setting.sds[links.effect]
        out[links.level[1]] = LEVEL.sd
        out[links.liking] = LIKING
        out[links.biases] = setting.own[links.bias_level].T
        return out

    def parameters(self, setting: Setting, u: Floats) -> Floats:
        """Return the campaign's parameters; a family's slopes on terms are tied to those of relevance."""
        out = self.centre + self.spread(setting) * u
        tie = setting.slopes / self.scale * setting.popularity
        out[self.links.liking] += tie[:, None] * out[self.links.terms[1]]
        return np.asarray(out)

    def mixing(self, setting: Setting, spread: Floats) -> tuple[Floats, Floats]:
        """Return :math:`Z` and :math:`h_0`, shapes (column of D, parameter) and (column of D,)."""
        links, slopes = self.links, setting.slopes / self.scale
        n = self.base.shape[2] - 1
        z, start = np.zeros((n, len(spread))), np.zeros(n)
        tied = (slopes * (1 + setting.popularity))[:, None]
        z[links.level] = spread[links.level[1]]
        z[links.terms] = tied * spread[links.terms[1]]
        z[links.terms[0], links.liking] = spread[links.liking]
        z[links.effects] = slopes[:, None] * spread[links.effects[1]]
        z[links.effects[0], links.biases] = spread[links.biases]
        start[links.terms[0]] = tied * self.centre[links.terms[1]]
        return z, start

    def campaign(self, setting: Setting, products: Products, middle: float) -> CampaignGivenLabels:
        r"""Return the campaign's parameters given labels and the level that they suggest.

        ``middle`` is the middle of the cutpoints less the first one. With :math:`M` the products of :math:`D` by
        :math:`V^{-1}`: :math:`S = I + Z'MZ + ff'/\tau^2`, with :math:`f` the mean logit of retrieved documents in
        :math:`u`, given labels.
        """
        spread = self.spread(setting)
        z, start = self.mixing(setting, spread)
        n, total = len(start), products.total
        right = z.T @ (total[:n, n] - total[:n, :n] @ start)
        information = np.eye(len(spread)) + z.T @ total[:n, :n] @ z
        square = total[n, n] - 2 * start @ total[:n, n] + start @ total[:n, :n] @ start
        row, off = np.zeros(len(spread)), 0.0
        if self.level is not None:
            row = self.mean_rows * spread - z.T @ total[:n, n + 1]
            off = self.level.logit - float(self.mean_rows @ self.centre) - middle
            off -= float(total[n, n + 1] - start @ total[:n, n + 1])
            information += np.outer(row, row) / self.level.sd**2
            right = right + row * off / self.level.sd**2
            square += off**2 / self.level.sd**2
        root = np.asarray(np.linalg.cholesky(information))
        half = solve_triangular(root, right, lower=True)
        log_det = products.log_det + 2 * float(np.log(np.diag(root)).sum())
        return CampaignGivenLabels(
            spread=spread,
            z=z,
            start=start,
            row=row,
            off=off,
            right=right,
            root=np.asarray(root),
            mean=solve_triangular(root, half, lower=True, trans=1),
            log_marginal=-(log_det + float(square) - float(half @ half)) / 2,
        )

    def relevance(self, products: Products, h: Floats, normals: Floats) -> Floats:
        """Return the seen relevance of targets from coefficients of :math:`D` and normals, shape (query, target)."""
        n = self.base.shape[2] - 1
        cross = products.values[:, n + 2 :]
        return np.asarray(cross[:, :, n] - cross[:, :, :n] @ h + np.einsum("qij,qj->qi", products.root, normals))
