"""The input of a policy: lists, judgments, prediction and scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Bools, Floats, Ints
from probeval.data.judgments import Judgments
from probeval.data.pool import QueryBlock
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.metrics import Metric
from probeval.relevance.dependence import Dependence
from probeval.relevance.distribution import GainSummary, RelevanceDistribution
from probeval.relevance.online import Prediction
from probeval.relevance.outside import outside_streams
from probeval.scores import Ranking, Scores
from probeval.scores.draws import drawn_queries, score_blocks
from probeval.scores.estimate import ScoreEstimate
from probeval.scores.moments import weight_matrix
from probeval.streams import Purpose, query_streams, stream
from probeval.threads import in_order

__all__ = ["SelectionContext", "effective_weights", "level_weights"]

SAMPLE = 500  # draws to estimate the weights of a measure that is not linear
LEAST_SAMPLE, CELLS = 150, 25_000_000  # with more draws times pairs fewer are made, down to this number
RIDGE = 0.01  # relative: pairs that hardly vary carry no information


@dataclass(frozen=True, eq=False, repr=False)
class SelectionContext(Record):
    """The input of a policy.

    Parameters
    ----------
    estimate
        The scores and the ranking now, with the judgments and the prediction that they follow from.
    """

    estimate: ScoreEstimate
    _kept: dict[Hashable, Floats] = field(default_factory=dict, init=False, repr=False)

    def kept(self, name: Hashable, make: Callable[[], Floats]) -> Floats:
        """Return an array that is made once for this context."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    @property
    def runs(self) -> Runs:
        """The lists, on the pool that all arrays follow."""
        return self.estimate.estimation.runs

    @property
    def judgments(self) -> Judgments:
        """The judgments so far, in order."""
        return self.estimate.judgments

    @property
    def prediction(self) -> Prediction:
        """The prediction of the model."""
        return self.estimate.prediction

    @property
    def scores(self) -> Scores:
        """The current scores."""
        return self.estimate.scores

    @property
    def ranking(self) -> Ranking:
        """The current ranking."""
        return self.estimate.ranking

    @property
    def seed(self) -> int:
        """The seed of all randomness."""
        return self.estimate.estimation.seed

    @property
    def rope(self) -> float:
        """Differences up to this size do not matter."""
        return self.estimate.estimation.rope

    @property
    def relevance(self) -> RelevanceDistribution:
        """P(grade) of every pair."""
        return self.prediction.relevance

    @property
    def metric(self) -> Metric:
        """The measure."""
        return self.scores.metric

    def stream(self, *purpose: Purpose) -> np.random.Generator:
        """Return a random generator for a purpose, fixed by the seed and the number of judgments."""
        return stream(self.seed, len(self.judgments), *purpose)

    @cached_property
    def retrieved(self) -> csr_array:
        """1 where a system retrieved a pair within the measure's cutoff, shape (system, pair)."""
        depth = min(self.metric.cutoff or self.runs.depth, self.runs.depth)
        return weight_matrix(self.runs, (np.arange(self.runs.depth) < depth).astype(float))

    @cached_property
    def gains(self) -> Floats:
        """The gain of each grade, shape (grade,): the measure's, or the scale's if the measure has none."""
        return scale_gains(self.metric, self.relevance.scale)

    @cached_property
    def dependence(self) -> Dependence:
        """The covariance of gains between pairs."""
        return self.prediction.dependence(self.gains)

    @cached_property
    def weights(self) -> Floats:
        """The increase of each system's mean score per unit of gain of each pair, shape (pair, system)."""
        slopes = effective_weights(self.runs, self.relevance, self.metric, self.gains, self.stream(Purpose.WEIGHTS))
        return slopes * self._query_weights[:, None]

    @cached_property
    def level_weights(self) -> csr_array:
        """The weight of each pair's gain in each system's level (:func:`level_weights`), shape (system, pair)."""
        return csr_array(level_weights(self.runs, self.metric, self.relevance.scale) * self._query_weights)

    @property
    def _query_weights(self) -> Floats:
        """The weight of each pair's query, of mean 1 over queries, shape (pair,)."""
        weights, query = self.scores.query_weights, self.runs.pool.query
        return np.ones(len(query)) if weights is None else weights[query]

    @cached_property
    def gain_moments(self) -> tuple[Floats, Floats]:
        """The mean of each pair's gain, and its variance given the model's parameters, shapes (pair,)."""
        summary = self.relevance.gain_summary(self.gains)
        return summary.mean, summary.variance

    @cached_property
    def gain_variance(self) -> Floats:
        """The variance of each pair's gain, uncertainty of the parameters included, shape (pair,)."""
        return self.gain_moments[1] + self.dependence.variance

    @cached_property
    def covariance(self) -> Floats:
        r""":math:`g_{da} = \text{Cov}(G_d, \text{score}_a)`, shape (pair, system).

        See docs/theory/judging.md#gain-covariance.
        """
        weights = self.weights
        return weights * self.gain_moments[1][:, None] + self.dependence.times(weights)

    @cached_property
    def best_rank(self) -> Ints:
        """The best rank of each pair over all systems, from 0, shape (pair,)."""
        best = np.full(len(self.runs.pool), self.runs.depth)
        system, query, rank = np.nonzero(self.runs.retrieved)
        np.minimum.at(best, self.runs.pairs[system, query, rank], rank)
        return best

    @property
    def judged(self) -> Bools:
        """Whether each pair is certain, so needs no judgment, shape (pair,)."""
        return self.relevance.certain


def level_weights(runs: Runs, metric: Metric, scale: Scale) -> csr_array:
    """Return the weight of each pair's gain in each system's level, shape (system, pair).

    For a linear measure the level is the mean score. For any other it is a weighted mean of gains, as a share of the
    highest gain, by the measure's discount of ranks if it has one.
    """
    depth, n_queries = runs.depth, max(len(runs.queries), 1)
    if metric.is_linear:
        return weight_matrix(runs, metric.weights(scale, depth) / n_queries)
    if metric.definition.rank_weights is not None:
        at_rank = metric.rank_weights(depth)
    else:
        at_rank = (np.arange(depth) < (metric.cutoff or depth)).astype(float)
    return weight_matrix(runs, at_rank / (at_rank.sum() * (scale_gains(metric, scale).max() or 1.0) * n_queries))


def scale_gains(metric: Metric, scale: Scale) -> Floats:
    """Return the gain of each grade, shape (grade,): the measure's, or the scale's if the measure has none."""
    return metric.gains(scale) if metric.definition.gains is not None else scale.gains


def effective_weights(
    runs: Runs, relevance: RelevanceDistribution, metric: Metric, gains: Floats, rng: np.random.Generator
) -> Floats:
    """Return the increase of each system's mean score per unit of gain of each pair, shape (pair, system).

    For a linear measure these are its weights. For any other, they are the slopes of a ridge regression of each query's
    score on the gains of its pairs, over joint draws.
    """
    n_queries = max(len(runs.queries), 1)
    if metric.is_linear:
        return np.asarray(weight_matrix(runs, metric.weights(relevance.scale, runs.depth)).T.toarray() / n_queries)
    seed, n = int(rng.integers(2**63)), min(SAMPLE, max(CELLS // max(len(runs.pool), 1), LEAST_SAMPLE))

    def slopes(block: QueryBlock) -> tuple[Floats, GainSummary]:
        mine, lists = relevance.part(block), runs.part(block)
        streams = query_streams(seed, block.queries)
        outside = () if mine.outside is None else outside_streams(streams)
        out = np.zeros((len(lists.pool), len(lists.systems)))
        for q, drawn in enumerate(drawn_queries(lists, mine, metric, gains, streams, n, outside)):
            where = lists.pool.pairs_of(q)
            open_ = ~mine.certain[where]  # a judged pair has no slope
            x, y = drawn.gains[:, open_], drawn.scores
            out[where][open_] = _ridge(x - x.mean(axis=0), y - y.mean(axis=0)) / n_queries
        return out, mine.summary_of(gains)  # which policies need too: the probabilities are made once for both

    found = list(in_order(slopes, score_blocks(runs, relevance, n)))
    relevance.keep_summary(gains, [summary for _, summary in found])
    return np.concatenate([part for part, _ in found])


def _ridge(x: Floats, y: Floats) -> Floats:
    """Return the slopes of columns y on columns x, by the primal or the dual solution, whichever is smaller."""
    rows, columns = x.shape
    level = RIDGE * float((x**2).sum()) / rows
    if level == 0:
        return np.zeros((columns, y.shape[1]))
    if columns < rows:
        return np.asarray(np.linalg.solve(x.T @ x + level * np.eye(columns), x.T @ y))
    return np.asarray(x.T @ np.linalg.solve(x @ x.T + level * np.eye(rows), y))
