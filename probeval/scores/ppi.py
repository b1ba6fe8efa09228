"""Prediction-powered estimates of linear measures: predictions of all pairs, corrected by judgments of a sample.

See docs/theory/scores.md#ppi.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ints
from probeval.data.runs import Runs
from probeval.errors import ScoreError
from probeval.metrics import Metric
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.moments import list_weights, weight_matrix
from probeval.scores.scores import Joint, between_queries
from probeval.ties import TIE

__all__ = ["check_linear", "prediction_powered"]

FEWEST = 2  # judged pairs of a system from which the variance of its errors can be estimated


def check_linear(metric: Metric) -> None:
    """Raise an error unless the measure is a weighted sum of gains."""
    if not metric.is_linear:
        raise ScoreError(f"ppi is for weighted sums of gains, such as DCG@10, P@10 or RBP@10; {metric} is none.")


def prediction_powered(
    runs: Runs, relevance: RelevanceDistribution, metric: Metric, *, tuning: float | None = None
) -> Joint:
    r"""Return PPI++ estimates (Angelopoulos, Duchi and Zrnic 2023) of all systems, with their joint covariance.

    The score of system :math:`a` is :math:`\sum_d W_{ad}\, y_d` over the pairs of the pool. With predicted gains
    :math:`f_d` of all pairs, and gains :math:`y_d` of the judged ones :math:`J`,

    .. math:: \hat s_a = \lambda_a \sum_d W_{ad} f_d
        + \frac{\sum_d W_{ad}}{\sum_{d \in J} W_{ad}} \sum_{d \in J} W_{ad} (y_d - \lambda_a f_d).

    The judged pairs must be a random sample of the pool, and the predictions must not depend on the judgments. A system
    with fewer than two judged documents has no estimate of its own: its predictions are used as they are, and every
    unjudged gain has the largest variance that its range allows.

    Parameters
    ----------
    runs, relevance, metric
        The lists; predictions and judgments of their pairs; a linear measure.
    tuning
        :math:`\lambda` of all systems: 0 ignores the predictions, 1 is plain PPI. By default, the :math:`\lambda` of
        each system that minimises its variance, cut to 0..1.

    Examples
    --------
    >>> from probeval.data import Judgments, Runs, Scale
    >>> from probeval.metrics import parse
    >>> runs = Runs.rows(["a"] * 4, ["q"] * 4, ["d1", "d2", "d3", "d4"])
    >>> predicted = np.array([[0, 1], [1, 0], [1, 0], [1, 0]])  # d1 is relevant, the others are not
    >>> judged = Judgments.rows(["q", "q"], ["d1", "d2"], [1, 0])  # right, right
    >>> relevance = RelevanceDistribution.of(runs.pool, Scale.binary(), predicted, judgments=judged)
    >>> [float(prediction_powered(runs, relevance, parse("P@4"), tuning=t).mean[0]) for t in (0, 1)]
    [0.5, 0.25]
    """
    check_linear(metric)
    gains = metric.gains(relevance.scale)
    weights = metric.weights(relevance.scale, runs.depth)
    matrix = weight_matrix(runs, weights)
    known, judged = relevance.certain, np.flatnonzero(relevance.certain)
    predicted, actual = _predicted_gains(relevance, gains), gains[relevance.judged[judged]]
    sample = Sample(np.asarray(matrix[:, judged].toarray()), np.asarray(matrix.sum(axis=1)), actual, predicted[judged])
    enough = sample.sizes >= FEWEST
    lambdas = _best_tuning(sample, matrix, predicted) if tuning is None else np.full(len(enough), float(tuning))
    lambdas = np.where(enough, lambdas, 1.0)
    correction, residuals = sample.correct(lambdas)
    correction[~enough], residuals[~enough] = 0.0, 0.0

    n_queries = len(runs.queries)
    unsampled = 1 - len(judged) / max(len(known), 1)  # the correction for a finite pool
    errors = residuals * np.sqrt(unsampled * sample.sizes / np.maximum(sample.sizes - 1, 1))[:, None]
    expanded = errors * sample.expansion[:, None] / n_queries
    # A gain has the largest variance if it is at either end of its range with probability 1/2.
    largest = float(np.ptp(gains)) ** 2 / 4
    open_weights = matrix.multiply((~known)[None] & ~enough[:, None]).tocsr() / n_queries
    covariance = expanded @ expanded.T + largest * (open_weights @ open_weights.T).toarray()

    by_query = (len(runs.systems), n_queries)
    lists = list_weights(runs, weights)
    settled = np.zeros(len(known))
    settled[judged] = actual
    left = (lists @ (~known).astype(float)).reshape(by_query)
    query_mean = (lists @ settled).reshape(by_query) + correction[:, None] * left
    query_mean += lambdas[:, None] * (lists @ np.where(known, 0.0, predicted)).reshape(by_query)
    of_error = np.where(enough, _divide((residuals**2).sum(axis=1), (sample.weights**2).sum(axis=1)), largest)
    of_correction = _divide((errors**2).sum(axis=1), sample.weights.sum(axis=1) ** 2)
    left_squares = (list_weights(runs, weights**2) @ (~known).astype(float)).reshape(by_query)
    return Joint(
        mean=query_mean.mean(axis=1),
        covariance=covariance,
        between=between_queries(query_mean, covariance * n_queries**2, covariance),
        query_mean=query_mean,
        query_variance=of_error[:, None] * left_squares + of_correction[:, None] * left**2,
    )


class Sample(NamedTuple):
    """The judged pairs of a pool, with their weights in each system's sum over queries.

    ``weights`` has shape (system, judged pair), ``total`` is each system's weight over the whole pool, shape (system,),
    and ``actual`` and ``predicted`` are gains, shape (judged pair,).
    """

    weights: Floats
    total: Floats
    actual: Floats
    predicted: Floats

    @property
    def sizes(self) -> Ints:
        """The number of judged documents of each system, shape (system,)."""
        return np.asarray((self.weights > 0).sum(axis=1))

    @property
    def expansion(self) -> Floats:
        """The weight of the pool over that of its judged pairs, shape (system,)."""
        return _divide(self.total, self.weights.sum(axis=1))

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean of values of the judged pairs for each system, shape (system,)."""
        return _divide((self.weights * values).sum(axis=1), self.weights.sum(axis=1))

    def correct(self, lambdas: Floats) -> tuple[Floats, Floats]:
        """Return the mean error of tuned predictions, and weighted residuals, shapes (system,) and (system, pair)."""
        error = self.actual - lambdas[:, None] * self.predicted
        mean = self.mean(error)
        return mean, self.weights * (error - mean[:, None])


def _best_tuning(sample: Sample, matrix: csr_array, predicted: Floats) -> Floats:
    r"""Return the tuning of least variance, cut to 0..1, shape (system,).

    :math:`\lambda = \text{Cov}_J(y, f) / \text{Var}(f)`, weighted by :math:`W_{ad}^2`: the covariance over judged
    pairs, the variance over all pairs of the system.
    """
    square = sample.weights**2
    actual, guess = (x - sample.mean(x)[:, None] for x in (sample.actual, sample.predicted))
    covariance = _divide((square * actual * guess).sum(axis=1), square.sum(axis=1) * _unbiased(sample.sizes))
    squares = matrix.multiply(matrix)
    weight, first, second = (np.asarray(squares @ x) for x in (np.ones_like(predicted), predicted, predicted**2))
    centre = _divide(np.asarray(matrix @ predicted), sample.total)
    variance = _divide(second - 2 * centre * first + centre**2 * weight, weight * _unbiased(np.diff(matrix.indptr)))
    return np.clip(_divide(covariance, variance), 0.0, 1.0)


def _unbiased(n: Ints) -> Floats:
    """Return (n - 1) / n, the expected ratio of a sample's variance to that of its population."""
    return np.asarray(np.maximum(n - 1, 0) / np.maximum(n, 1))


def _predicted_gains(relevance: RelevanceDistribution, gains: Floats) -> Floats:
    """Return the model's expected gain of every pair, judged ones too, shape (pair,)."""
    probability = relevance.probability
    return np.asarray((probability.mean(axis=0) if relevance.has_posterior else probability) @ gains[relevance.levels])


def _divide(a: Floats, b: Floats) -> Floats:
    """Return a / b, 0 where b is 0."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a, dtype=float), where=b > TIE**2))
