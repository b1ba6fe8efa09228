"""Learn how many relevant documents lie outside the pool of few runs, from finished campaigns.

See docs/theory/scores.md#outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.data.collection import Collection
from probeval.data.scale import count_at_least
from probeval.errors import ModelError
from probeval.relevance.outside import TERMS, OutsideModel, exact_counts, inside_terms, outside_terms

__all__ = ["fit_outside"]

RUNS = (1, 2, 3, 5, 8, 12, 20)  # sizes of the random subsets of runs
DEPTHS = (5, 10, 20, 50)
MOST_QUERIES = 50  # a campaign counts as its number of queries, up to this many
WEAK = 1e-3  # precision of the prior of coefficients
STEPS = 500  # of the fit
STEP = 1.0  # the largest change of a parameter in one step
PRECISE = 1e-6  # change of the parameters at which the fit ends


@dataclass(frozen=True, eq=False)
class OutsideCounts:
    """The documents inside and outside the pools of random subsets of one campaign's runs.

    Parameters
    ----------
    terms
        The terms of each number, shape (row, term).
    general
        The logarithm of the mean number inside, which the number outside is proportional to, shape (row,).
    outside
        The number of documents outside with one grade, shape (row,).
    queries
        The number of queries.
    """

    terms: Floats
    general: Floats
    outside: Ints
    queries: int

    @classmethod
    def of(cls, collection: Collection, rng: np.random.Generator) -> OutsideCounts:
        """Draw subsets of each size and depth, and count."""
        if collection.judgments is None:
            raise ModelError(f"{collection.name}: without judgments there is nothing to learn from.")
        judgments, scale = collection.judgments, collection.scale()
        offered = count_at_least(judgments.codes(scale), judgments.pool.query, len(judgments.pool.queries), len(scale))
        terms, general, outside = [], [], []
        judged = np.zeros(0, dtype=bool)
        for n in RUNS:
            for depth in DEPTHS:
                if n > len(collection.runs.systems) or depth > collection.runs.depth:
                    continue
                chosen = rng.choice(len(collection.runs.systems), n, replace=False)
                runs = collection.runs.select([collection.runs.systems[i] for i in sorted(chosen)]).top(depth)
                at = judgments.pool.query_positions(runs.queries)
                judged = (at >= 0) & (offered[at, 0] > 0)
                inside = count_at_least(
                    judgments.codes_on(runs.pool, scale), runs.pool.query, len(runs.queries), len(scale)
                )
                term, mine = outside_terms(runs, scale), exact_counts(inside)[:, 1:]
                usual, term[..., TERMS.index("inside")] = inside_terms(mine, mine[judged].mean(axis=0))
                terms.append(term[judged].reshape(-1, len(TERMS)))
                general.append(np.tile(usual, int(judged.sum())))
                outside.append(exact_counts(offered[at] - inside)[judged, 1:].ravel())
        if not terms or not np.concatenate(outside).any():
            raise ModelError(f"{collection.name}: no relevant document is outside the pools of some of its runs.")
        rows = np.concatenate(terms), np.concatenate(general), np.concatenate(outside)
        return cls(*rows, int(judged.sum()))


def fit_outside(collections: Iterable[Collection], *, rng: np.random.Generator | None = None) -> OutsideModel:
    """Return the model of documents outside the pool, from random subsets of the runs of finished campaigns.

    The coefficients and the effect of each campaign maximise the Poisson likelihood, campaigns of the same number of
    queries counting the same; the effects have a normal prior, whose variance is theirs.

    Parameters
    ----------
    collections
        Campaigns with all their runs and judgments; at least three.
    rng
        The generator of the subsets; seed 0 by default.
    """
    campaigns = list(collections)
    if len(campaigns) < 3:
        raise ModelError(
            f"The model is of differences between campaigns: at least three are needed, got {len(campaigns)}."
        )
    rng = np.random.default_rng(0) if rng is None else rng
    observed = [OutsideCounts.of(collection, rng) for collection in campaigns]
    coefficients, effects, variance = _fit(observed)
    dispersion = [_dispersion(one, coefficients, effect) for one, effect in zip(observed, effects, strict=True)]
    return OutsideModel(
        tuple(round(float(b), 4) for b in coefficients),
        round(float(np.sqrt(variance * (1 + 1 / len(observed)))), 4),  # the mean of the effects is not known either
        round(float(np.mean(dispersion)), 2),
        tuple(collection.name for collection in campaigns),
    )


def _fit(observed: list[OutsideCounts]) -> tuple[Floats, Floats, float]:
    """Return the coefficients, the effect of each campaign, and the variance of the effects."""
    p, n = len(TERMS), len(observed)
    beta, variance = np.zeros(p + n), 1.0
    beta[0] = np.log(np.mean([one.outside.mean() / np.exp(one.general).mean() for one in observed]))
    for _ in range(STEPS):
        precision = np.append(np.full(p, WEAK), np.full(n, 1 / variance))
        gradient, curvature = -precision * beta, np.diag(precision)
        for i, one in enumerate(observed):
            weight = min(one.queries, MOST_QUERIES) / one.outside.sum()
            mean = np.exp(one.general + one.terms @ beta[:p] + beta[p + i])
            x = np.column_stack([one.terms, np.ones(len(mean))])
            at = np.append(np.arange(p), p + i)
            gradient[at] += weight * x.T @ (one.outside - mean)
            curvature[np.ix_(at, at)] += weight * (x * mean[:, None]).T @ x
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, STEP / np.abs(step).max())
        beta += step
        spread = np.diag(np.linalg.inv(curvature))[p:]
        variance = float((beta[p:] ** 2 + spread).mean())
        if np.abs(step).max() < PRECISE:
            break
    return beta[:p], beta[p:], variance


def _dispersion(one: OutsideCounts, coefficients: Floats, effect: float) -> float:
    """Return the variance of the numbers of one campaign over their mean, by Pearson's statistic."""
    mean = np.exp(one.general + one.terms @ coefficients + effect)
    return max(float(((one.outside - mean) ** 2).sum() / mean.sum()), 1.01)
