r"""How labels agree with the grades that people give or would give, over all labelled pairs and not the judged ones only.

Judged pairs are chosen, and those that are chosen for doubt are the hard ones. What a pair's chance to be chosen depends
on is known to the model: labels, lists, and judgments so far. Given these, whether it was judged tells nothing of its
grade. So the grades of the others are drawn from the posterior, and every figure is computed on all labelled pairs.

The posterior may be wrong about one labeller, however, so it is recalibrated first: on the judged pairs, each with its own
judgment left out, a shift of the logits that depends on some columns :math:`x`, of which the label is one,

.. math:: \text{logit}\,P^*(R_d \ge \ell) = \text{logit}\,P(R_d \ge \ell) + x_d'b, \qquad b \sim N(0, \tau^2 I),

is fitted, and its error, with judged pairs of one query counted as one, is part of the draws.
See docs/theory/observers.md#agreement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from probeval.arrays import Floats, Ints
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.surprise import LeftOut, level_logits, slope_and_curvature

__all__ = ["GradeDraws", "GradePosterior", "correlation", "interval", "weighted_kappa_draws"]

DRAWS = 200  # of all grades: the error of a limit is about a tenth of a standard deviation
ENOUGH = 20  # judged pairs with a label, for a statement on their agreement
MOST_PAIRS = 20_000  # unjudged pairs whose grades are drawn; of more, a random sample stands for all
SHIFT = 0.5  # sd of the shift of logits, per standard deviation of a column
STEPS = 20  # of Newton's method; 4 are typical
SETTLED = 1e-8
NORMAL = 1.96  # of an interval of 95%
NEAR = 1e-6  # least distance of a correlation from 1, or of a share from 0 and 1, on their unbounded scales


@dataclass(frozen=True, eq=False)
class GradePosterior:
    """The posterior of the grades of a pool's pairs, and what it expects of judged pairs without their judgments.

    Parameters
    ----------
    pairs
        Positions in the pool: the judged pairs, then unjudged ones, shape (n,).
    query
        The query of each, shape (n,).
    weight
        The number of pairs that each stands for, shape (n,).
    out
        The judged pairs.
    logits
        The logit of each level or more of the unjudged ones under each draw, shape (draw, unjudged, level - 1).
    values
        The grade of each level, shape (level,).
    """

    pairs: Ints
    query: Ints
    weight: Floats
    out: LeftOut
    logits: Floats
    values: Floats

    @classmethod
    def of(
        cls, relevance: RelevanceDistribution, rng: np.random.Generator, *, draws: int = DRAWS, most: int = MOST_PAIRS
    ) -> GradePosterior:
        """Return the posterior of a pool's pairs, or of a random sample of ``most`` of the unjudged ones."""
        out, pool = LeftOut.of(relevance), relevance.pool
        free = np.flatnonzero(~relevance.certain)
        kept = free if len(free) <= most else np.sort(rng.choice(free, most, replace=False))
        parts = []
        for block in relevance.blocks(relevance.n_draws * len(relevance.levels)):
            inside = slice(*np.searchsorted(kept, [block.pairs.start, block.pairs.stop]))
            if inside.start < inside.stop:
                given = relevance.source.probabilities(block)
                given = given if given.ndim == 3 else given[None]
                parts.append(level_logits(given[:draws, kept[inside] - block.pairs.start]))
        n = (min(relevance.n_draws, draws), 0, len(relevance.levels) - 1)
        pairs = np.concatenate([out.pairs, kept])
        stands = np.ones(len(pairs))
        stands[len(out.pairs) :] = len(free) / max(len(kept), 1)
        logits = np.concatenate(parts, axis=1) if parts else np.empty(n)
        return cls(pairs, pool.query[pairs], stands, out, logits, relevance.scale.values[relevance.levels])

    @property
    def judged(self) -> int:
        """The number of judged pairs."""
        return len(self.out.pairs)

    def draw(self, columns: Floats, rng: np.random.Generator, *, n: int = DRAWS) -> GradeDraws:
        """Return draws of the grades of the pairs that have all columns, the posterior recalibrated by these.

        ``columns`` have shape (pair, column), in the order of the pairs of this posterior, NaN where unknown.
        """
        has = ~np.isnan(columns).any(axis=1)
        n_judged = int(has[: self.judged].sum())
        given = columns[has]
        sd = given.std(axis=0)
        x = np.column_stack([np.ones(len(given)), (given - given.mean(axis=0)) / np.where(sd > 0, sd, 1.0)])
        judged, free = has[: self.judged], has[self.judged :]
        left = level_logits(self.out.probability[judged])
        level = self.out.level[judged]
        shift, covariance = recalibration(left, level, x[:n_judged], self.query[: self.judged][judged])
        root = np.linalg.cholesky(covariance)
        under = np.arange(n) % len(self.logits)
        drawn = np.empty((n, len(given)), dtype=np.int8)
        drawn[:, :n_judged] = level
        logits = self.logits[:, free]
        for t in range(n):
            moved = logits[under[t]] + (x[n_judged:] @ (shift + root @ rng.standard_normal(len(shift))))[:, None]
            drawn[t, n_judged:] = (rng.random((len(moved), 1)) < expit(moved)).sum(axis=1)
        return GradeDraws(has, drawn, self.weight[has], n_judged, self.values)


def recalibration(logits: Floats, level: Ints, x: Floats, query: Ints) -> tuple[Floats, Floats]:
    """Return the shift of the logits of judged pairs per unit of each column, and its covariance.

    Parameters
    ----------
    logits
        The logit of each level or more of each judged pair, its own judgment left out, shape (n, level - 1).
    level
        The level that it was judged to have, shape (n,).
    x
        The columns, shape (n, column).
    query
        Its query, shape (n,): what is left out of the model is shared within a query.
    """
    k = x.shape[1]
    prior, shift = np.eye(k) / SHIFT**2, np.zeros(k)
    slope, curvature = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(STEPS if len(x) else 0):
        slope, curvature = slope_and_curvature(logits + (x @ shift)[:, None], level)
        information = (x * curvature[:, None]).T @ x + prior
        step = np.linalg.solve(information, x.T @ slope - prior @ shift)
        shift = shift + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < SETTLED:
            break
    inverse = np.linalg.inv((x * curvature[:, None]).T @ x + prior)
    # The sandwich with queries as clusters: what they share makes a sum of slopes vary more, or less, than its curvature.
    queries, of = np.unique(query, return_inverse=True)
    sums = np.zeros((len(queries), k))
    np.add.at(sums, of, x * slope[:, None])
    sums -= sums.mean(axis=0) if len(queries) else 0.0
    spread = sums.T @ sums * (len(queries) / max(len(queries) - 1, 1))
    return shift, inverse @ (spread + prior) @ inverse


@dataclass(frozen=True, eq=False)
class GradeDraws:
    """Draws of the grades of some pairs, judged ones as they were judged.

    Parameters
    ----------
    among
        Which pairs of the posterior these are, shape (all,).
    level
        The level of each under each draw, shape (draw, pair).
    weight
        The number of pairs that each stands for, shape (pair,).
    judged
        How many of them, the first ones, are judged.
    values
        The grade of each level, shape (level,).
    """

    among: np.ndarray
    level: np.ndarray
    weight: Floats
    judged: int
    values: Floats

    def moments(self, labels: Floats) -> Floats:
        """Return the sums of 1, labels and squared labels over the pairs of each level, shape (draw, level, 3)."""
        mine = labels[self.among]
        return self.sums(np.column_stack([np.ones(len(mine)), mine, mine**2]))

    def sums(self, columns: Floats) -> Floats:
        """Return the weighted sums of columns over the pairs of each level, shape (draw, level, column)."""
        weighted = (columns * self.weight[:, None]).astype(np.float32)
        out = np.empty((len(self.level), len(self.values), columns.shape[1]))
        for code in range(len(self.values)):
            out[:, code] = (self.level == code).astype(np.float32) @ weighted
        return out


def correlation_interval(
    posterior: GradePosterior, labels: Floats, rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """Return the correlation of labels and grades over all pairs with a label, and its interval.

    None with too few judged pairs, or without variation. ``labels`` are those of the pool's pairs, NaN where missing.
    """
    given = labels[posterior.pairs]
    if (~np.isnan(given[: posterior.judged])).sum() < ENOUGH:
        return None
    drawn = posterior.draw(given[:, None], rng, n=len(posterior.logits))
    found = interval(correlation(drawn.moments(given), posterior.values), bounded="correlation")
    return None if np.isnan(found[0]) else found


def weighted_kappa_draws(sums: Floats, grades: Floats) -> Floats:
    r"""Return kappa with quadratic weights of each draw, shape (draw,); NaN where neither grades nor labels vary.

    With quadratic weights it is a function of moments,

    .. math:: \kappa = \frac{2\,\text{Cov}(r, y)}{\text{Var}(r) + \text{Var}(y) + (\bar r - \bar y)^2}.

    Parameters
    ----------
    sums
        The sums of 1, :math:`y` and :math:`y^2` over the pairs of each level, shape (draw, level, 3).
    grades
        The grade of each level, on the scale of the labels, shape (level,).
    """
    n, mean, mean_y, var, var_y, cov = _moments(sums, grades)
    spread = var + var_y + (mean - mean_y) ** 2
    return np.asarray(np.divide(2 * cov, spread, out=np.full(len(cov), np.nan), where=spread > 0))


def correlation(sums: Floats, grades: Floats) -> Floats:
    """Return the correlation of labels and grades of each draw, shape (draw,); NaN where one of them does not vary."""
    n, mean, mean_y, var, var_y, cov = _moments(sums, grades)
    spread = np.sqrt(np.maximum(var * var_y, 0.0))
    return np.asarray(np.divide(cov, spread, out=np.full(len(cov), np.nan), where=spread > 1e-12))


def _moments(sums: Floats, grades: Floats) -> tuple[Floats, ...]:
    n = sums[..., 0].sum(axis=1)
    mean, mean_y = sums[..., 0] @ grades / n, sums[..., 1].sum(axis=1) / n
    var = sums[..., 0] @ grades**2 / n - mean**2
    var_y = sums[..., 2].sum(axis=1) / n - mean_y**2
    cov = sums[..., 1] @ grades / n - mean * mean_y
    return n, mean, mean_y, var, var_y, cov


def interval(draws: Floats, *, bounded: str = "") -> tuple[float, float, float]:
    """Return the mean of draws of a figure and its 95% interval, normal on an unbounded scale.

    ``bounded`` is ``correlation`` for figures between -1 and 1 (Fisher's z), ``share`` for those between 0 and 1 (the
    logit), or empty.
    """
    if not len(draws) or np.isnan(draws).any():
        return (float("nan"),) * 3
    if not np.ptp(draws):
        return (float(draws[0]),) * 3
    to, back = _SCALES[bounded]
    moved = to(draws)
    middle, half = moved.mean(), NORMAL * moved.std()
    return tuple(float(back(each)) for each in (middle, middle - half, middle + half))  # type: ignore[return-value]


def _same(x: Floats) -> Floats:
    return x


_SCALES = {
    "": (_same, _same),
    "correlation": (lambda x: np.arctanh(np.clip(x, NEAR - 1, 1 - NEAR)), np.tanh),
    "share": (lambda x: logit(np.clip(x, NEAR, 1 - NEAR)), expit),
}
