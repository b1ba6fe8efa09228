"""The quality of a model's probabilities on training pairs, held-out queries and held-out campaigns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.data.judgments import NOT_JUDGED, Judgments
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ModelError
from probeval.relevance.effects.cutpoints import level_probabilities
from probeval.relevance.models.base import Finding
from probeval.relevance.models.cumulative import Observations, fit_cumulative
from probeval.relevance.models.ordinal import FittedOrdinal, OrdinalModel, TrainingData

__all__ = [
    "Diagnostics",
    "assessor_rmse",
    "cross_validate",
    "diagnose",
    "likelihood_ratios",
    "predict_data",
    "proportional_odds",
]


@dataclass(frozen=True, repr=False)
class Diagnostics(Record):
    r"""Predictions compared with judgments; relevance is the grade over the top grade.

    Parameters
    ----------
    n
        The number of pairs.
    rmse, r2
        Root mean squared error of expected relevance, and the share of its variance that is explained.
    stated_variance, squared_error
        The mean variance stated by the model, and its mean squared error; equal for a calibrated model.
    log_score
        The mean log probability of the judged level.
    ranked_probability_score
        The mean over cutpoints of :math:`(P(R \ge \ell) - 1(r \ge \ell))^2`.
    """

    n: int
    rmse: float
    r2: float
    stated_variance: float
    squared_error: float
    log_score: float
    ranked_probability_score: float

    @property
    def ratio(self) -> float:
        """Stated variance over squared error: below 1 is overconfident, above 1 underconfident."""
        return self.stated_variance / self.squared_error if self.squared_error else float("nan")


def predict_data(model: FittedOrdinal, data: TrainingData) -> Floats:
    """Return P(level) of each pair, 0 beyond its scale's levels, shape (observation, level)."""
    eta = model.linear_predictor(data.x, data.number)
    out = np.zeros((len(data), int(data.n_levels.max(initial=2))))
    for n in np.unique(data.n_levels):
        rows = data.n_levels == n
        out[rows, :n] = level_probabilities(model.cuts(int(n)), eta[rows])
    return out


def diagnose(probability: Floats, data: TrainingData) -> Diagnostics:
    """Compare predicted probabilities, shape (observation, level), with the judgments."""
    n_levels = data.n_levels[:, None]
    level = np.arange(probability.shape[1])
    value = np.zeros(probability.shape)
    for n in np.unique(data.n_levels):
        value[data.n_levels == n, :n] = data.values[int(n)]
    mean = (probability * value).sum(axis=1)
    variance = (probability * value**2).sum(axis=1) - mean**2
    error = float(np.mean((mean - data.relevance) ** 2))
    spread = float(np.var(data.relevance))
    at_least = np.cumsum(probability[:, ::-1], axis=1)[:, ::-1][:, 1:]
    reached = data.level[:, None] >= level[1:]
    inside = level[1:] < n_levels
    return Diagnostics(
        n=len(data),
        rmse=float(np.sqrt(error)),
        r2=1 - error / spread if spread else float("nan"),
        stated_variance=float(variance.mean()),
        squared_error=error,
        log_score=float(np.log(np.maximum(probability[np.arange(len(data)), data.level], 1e-300)).mean()),
        ranked_probability_score=float((((at_least - reached) ** 2 * inside).sum(axis=1) / (data.n_levels - 1)).mean()),
    )


def assessor_rmse(judgments: Judgments, scale: Scale | None = None) -> float:
    r"""Return the root mean squared error of one assessor's relevance as an estimate of another's.

    .. math:: \Big(\frac1D \sum_d \frac{1}{m_d (m_d - 1)} \sum_{i \ne j} (r_{di} - r_{dj})^2\Big)^{1/2}

    over the :math:`D` pairs with :math:`m_d > 1` assessors; relevance is the grade over the top grade. It is the
    yardstick of a model's error (Urbano 2013, section 7.4): a model whose error is no larger estimates the grades of an
    assessor as well as another assessor does. NaN if no pair has several assessors.

    Examples
    --------
    >>> judged = Judgments.rows(["q"] * 4, list("aabb"), [0, 2, 1, 1], assessors=["x", "y", "x", "y"])
    >>> round(assessor_rmse(judged), 4)
    0.7071
    """
    scale = judgments.scale(scale)
    given = judgments.take(judgments.grade != NOT_JUDGED)
    latest = pd.DataFrame({"pair": given.pair, "assessor": given.assessor, "code": scale.codes(given.grade)})
    latest = latest.groupby(["pair", "assessor"], as_index=False).last()
    relevance = pd.Series(scale.values[latest["code"]] / scale.values[-1]).groupby(latest["pair"])
    spread = 2 * relevance.var(ddof=1)  # the mean squared difference of two assessors; NaN for one
    return float(np.sqrt(spread.mean()))


def calibration(probability: Floats, data: TrainingData, *, bins: int = 10) -> pd.DataFrame:
    """Return the predicted probability of at least each level and the observed share, by bins of the former."""
    at_least = np.cumsum(probability[:, ::-1], axis=1)[:, ::-1]
    rows = []
    for level in range(1, probability.shape[1]):
        inside = data.n_levels > level
        stated, reached = at_least[inside, level], data.level[inside] >= level
        which = np.minimum((stated * bins).astype(int), bins - 1)
        for b in np.unique(which):
            here = which == b
            rows.append((level, int(here.sum()), float(stated[here].mean()), float(reached[here].mean())))
    return pd.DataFrame(rows, columns=["level", "n", "stated", "observed"])


def likelihood_ratios(model: OrdinalModel, data: TrainingData) -> dict[str, float]:
    """Return the likelihood ratio statistic of each term given the others: chi-squared with one degree of freedom.

    Terms of the model's base are left out.
    """
    full = model.fit_data(data).log_likelihood
    kept = () if model.base is None else model.base.terms
    return {
        term: 2 * (full - _without(model, data, i).log_likelihood)
        for i, term in enumerate(model.terms)
        if term not in kept
    }


def _without(model: OrdinalModel, data: TrainingData, term: int) -> FittedOrdinal:
    fewer = data.without(term)
    return replace(model, terms=fewer.terms).fit_data(fewer)


def cross_validate(
    model: OrdinalModel,
    data: TrainingData,
    *,
    by: str = "query",
    folds: int = 10,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Return P(level) of each pair by a model fitted without its fold, shape (observation, level).

    Parameters
    ----------
    model, data
        The model to fit, and the data.
    by
        ``"query"``: folds of whole queries; ``"campaign"``: one campaign left out at a time.
    folds
        The number of folds of queries.
    rng
        The generator that assigns queries to folds; in turn by default.
    """
    if by == "campaign":
        fold = data.campaign
    elif by == "query":
        queries, index = np.unique(data.query, return_inverse=True)
        turn = np.arange(len(queries)) if rng is None else rng.permutation(len(queries))
        fold = (turn % min(folds, len(queries)))[index]
    else:
        raise ModelError(f"Cross-validation is by 'query' or by 'campaign', got {by!r}.")
    if len(np.unique(fold)) < 2:
        raise ModelError(f"Cross-validation by {by} needs at least two of them.")
    out = np.zeros((len(data), int(data.n_levels.max(initial=2))))
    for held_out in np.unique(fold):
        mine = fold == held_out
        out[mine] = _padded(predict_data(model.fit_data(data.take(~mine)), data.take(mine)), out.shape[1])
    return out


def _padded(probability: Floats, width: int) -> Floats:
    return np.pad(probability, ((0, 0), (0, width - probability.shape[1])))


def proportional_odds(model: OrdinalModel, data: TrainingData) -> list[Finding]:
    """Check proportional odds: fit each term's coefficient at every cutpoint separately, and compare.

    A term is reported if its coefficients at two cutpoints have opposite signs, both beyond two standard errors: a
    qualitative violation.
    """
    to_fit = model.standardise(data)
    x = to_fit.columns
    signs: dict[str, set[int]] = {term: set() for term in to_fit.names}
    for level in range(1, int(data.n_levels.max())):
        rows = data.n_levels > level
        reached = (data.level[rows] >= level).astype(np.int64)
        if reached.min() == reached.max():
            continue
        one = fit_cumulative(Observations(x[rows], reached, np.full(rows.sum(), 2), np.ones(rows.sum())), ridge=1e-6)
        error = np.sqrt(np.diag(one.covariance)[1:])
        for term, b, se in zip(to_fit.names, one.beta, error, strict=True):
            if abs(b) > 2 * se:
                signs[term].add(int(np.sign(b)))
    return [
        Finding(f"{term} helps at one cutpoint and hurts at another.", "Proportional odds do not hold for it: drop it.")
        for term, seen in signs.items()
        if len(seen) > 1
    ]
