"""Scores of systems from judgments and a model: how they are estimated, and the estimate after some judgments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from probeval.arrays import Floats, Ints
from probeval.data.answers import PairAnswers
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.problem import Problem
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.metrics import AnyMetric, Metric
from probeval.relevance.answers.verdicts import AnswersUsed, answers_used
from probeval.relevance.models.base import FallbackModel, Predicts
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.online import OnlineModel, Prediction, follow
from probeval.relevance.outside import MOST_GRADES, OutsideModel, load_outside
from probeval.scores.compare import Ranking, check_rope
from probeval.scores.evaluate import as_metric, evaluate
from probeval.scores.scores import Scores
from probeval.streams import Purpose, stream

__all__ = ["ScoreEstimate", "ScoreEstimation"]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreEstimation(Record):
    """How the scores of a problem's systems are estimated: a model, a measure, and the distribution to compute.

    :meth:`of` builds one from a collection. ``dataclasses.replace`` keeps the online model, so nothing is refitted.

    Parameters
    ----------
    online
        The online model: the model with the problem.
    metric
        The measure.
    method, target, family, draws
        As in :func:`probeval.scores.evaluate`, with ``draws`` for its ``n``.
    rope
        Differences between systems up to this size do not matter.
    query_weights
        The weight of each query in the mean over queries, shape (query,); equal weights by default.
    clusters
        The cluster of each query, if they are not independent, shape (query,).
    outside
        The model of relevant documents outside the pool, to count them in the ideal list; None counts none.
    aggregate
        The mean over queries, arithmetic or geometric: one of :data:`~probeval.metrics.AGGREGATES`.
    ranking_draws
        The number of draws of scores, for the probabilities of ranks.
    seed
        The seed: the same seed gives the same scores.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> estimation = ScoreEstimation.of(campaign, FallbackModel([Uniform()]), "DCG@5")
    >>> estimation.estimate(campaign.judgments.take(np.arange(8))).scores
    <Scores: DCG@5 of 4 systems on 3 queries, moments>
    """

    online: OnlineModel = field(repr=False)
    metric: Metric
    method: str | None = None
    target: str = "collection"
    family: str | None = None
    draws: int = 1000
    rope: float = 0.0
    query_weights: Floats | None = None
    clusters: Ints | None = None
    outside: OutsideModel | None = None
    aggregate: str = "mean"
    ranking_draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_rope(self.rope)

    @classmethod
    def of(
        cls,
        collection: Collection,
        model: Predicts,
        metric: AnyMetric,
        *,
        depth: int | None = None,
        scale: Scale | str | None = None,
        **settings: Any,
    ) -> ScoreEstimation:
        """Build from a collection.

        Parameters
        ----------
        collection, model, metric
            Runs, with judgments, metadata and labels if available; the relevance model; the measure or its name.
        depth, scale
            The depth of the pool, by default the metric's cutoff, or whole runs without one; the grades, by default
            those of the judgments.
        settings
            The fields of the class from ``method`` on.
        """
        return cls(
            follow(model, problem_of(collection, metric, depth=depth, scale=scale)), as_metric(metric), **settings
        )

    @property
    def problem(self) -> Problem:
        """Runs and evidence on one axis."""
        return self.online.problem

    @property
    def collection(self) -> Collection:
        """Runs, with judgments, metadata and labels if available."""
        return self.problem.collection

    @property
    def model(self) -> Predicts:
        """The relevance model."""
        return self.online.model

    @property
    def depth(self) -> int:
        """The depth of the pool."""
        return self.problem.depth

    @property
    def scale(self) -> Scale:
        """The grades."""
        return self.problem.scale

    @cached_property
    def runs(self) -> Runs:
        """The lists to evaluate, cut at the depth of the pool, on the pool of all."""
        return self.problem.lists

    @property
    def pool(self) -> Pool:
        """The pairs."""
        return self.problem.pool

    def first(self) -> ScoreEstimate:
        """Return the estimate with the judgments and the answers of the collection."""
        return self.estimate(self.first_judgments, answers=self.collection.answers)

    @property
    def first_judgments(self) -> Judgments:
        """The judgments of the collection."""
        judgments = self.collection.judgments
        return Judgments.none(self.pool) if judgments is None else judgments

    def estimate(
        self, judgments: Judgments, *, answers: PairAnswers | None = None, last: Prediction | None = None
    ) -> ScoreEstimate:
        """Return the estimate with these judgments, and answers about two documents.

        ``last`` is an earlier prediction, the start of the fit.
        """
        return ScoreEstimate(self, judgments, self.predict(judgments, answers=answers, last=last), answers)

    def predict(
        self, judgments: Judgments, *, answers: PairAnswers | None = None, last: Prediction | None = None
    ) -> Prediction:
        """Return the prediction of relevance with these judgments and answers."""
        now = judgments if len(judgments) else None
        prediction = self.online.after(now, stream(self.seed, Purpose.PREDICTION), answers=answers, last=last)
        return self.widened(prediction)

    def widened(self, prediction: Prediction) -> Prediction:
        """Return a prediction that counts the relevant documents outside the pool, if the measure does."""
        relevance, model = prediction.relevance, self.outside
        needed = model is not None and (
            not model.only_bases or (self.metric.counts_all(self.scale) and not relevance.certain.all())
        )
        if model is None or not needed:
            return prediction if relevance.outside is None else replace(prediction, relevance=relevance.without_outside)
        outside = model.on(self.problem.runs, self.scale, stream(self.seed, Purpose.OUTSIDE))
        return replace(prediction, relevance=relevance.with_outside(outside))


@dataclass(frozen=True, eq=False, repr=False)
class ScoreEstimate(Record):
    """Scores and their ranking after some judgments.

    Parameters
    ----------
    estimation
        How they are estimated.
    judgments
        All judgments so far, also of pairs outside the pool.
    prediction
        The prediction of relevance.
    answers
        All answers about two documents so far; None if they are not asked for.
    """

    estimation: ScoreEstimation
    judgments: Judgments
    prediction: Prediction
    answers: PairAnswers | None = None

    @property
    def answered(self) -> int:
        """The number of judgments and answers so far."""
        return len(self.judgments) + (0 if self.answers is None else len(self.answers))

    @cached_property
    def scores(self) -> Scores:
        """The joint scores of all systems."""
        how = self.estimation
        found = evaluate(
            how.runs,
            self.prediction.relevance,
            how.metric,
            method=how.method,
            target=how.target,
            family=how.family,
            n=how.draws,
            rng=stream(how.seed, Purpose.SCORES),
            query_weights=how.query_weights,
            aggregate=how.aggregate,
        ).with_clusters(how.clusters)
        below = how.depth < how.collection.runs.depth and how.depth < (how.metric.cutoff or how.depth + 1)
        if found.ideal is None or not below or found.judged == found.pool:
            return found
        return replace(found, ideal=replace(found.ideal, goes_on=True))

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking and its confidence."""
        how = self.estimation
        return self.scores.ranking(rng=stream(how.seed, Purpose.RANKING), n=how.ranking_draws, rope=how.rope)

    @property
    def collection(self) -> Collection:
        """The collection with the judgments and the answers so far."""
        judgments = self.judgments if len(self.judgments) else None
        return replace(self.estimation.collection, judgments=judgments, answers=self.answers)

    @cached_property
    def problem(self) -> Problem:
        """The problem with the judgments and the answers so far."""
        return self.estimation.problem.with_judgments(self.collection.judgments, self.answers)

    @property
    def in_memory(self) -> ScoreEstimate:
        """The estimate of the queries whose pairs are in memory: of all of them, unless they are in partitions."""
        return self

    @property
    def with_all_pairs(self) -> ScoreEstimate:
        """The same with all pairs in memory; itself, if they are, or cannot be."""
        return self

    @property
    def lists(self) -> Runs:
        """The lists to evaluate, of all queries that are in memory."""
        return self.estimation.runs

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return self.estimation.collection.runs.depth

    @property
    def answers_used(self) -> AnswersUsed:
        """The answers about documents, and the verdict on each assessor; none without answers."""
        if self.collection.has_answers and isinstance(self.estimation.model, FallbackModel):
            return AnswersUsed(used=False)
        return answers_used(self.prediction.answers)

    def by(self, metric: Metric, *, depth: int) -> ScoreEstimate:
        """Return the estimate with another measure; measures of one depth share one prediction."""
        how = replace(self.estimation, metric=metric)
        if depth == how.depth:
            return replace(self, estimation=how, prediction=how.widened(self.prediction))
        problem = how.collection.problem(depth=depth, scale=how.scale)
        return replace(how, online=follow(how.model, problem)).estimate(self.judgments, answers=self.answers)

    def with_outside(self, model: OutsideModel) -> ScoreEstimate:
        """Return the estimate that counts also the relevant documents outside the pool; the prediction is the same."""
        how = replace(self.estimation, outside=model)
        return replace(self, estimation=how, prediction=how.widened(self.prediction))

    @cached_property
    def scores_with_outside(self) -> Scores | None:
        """The scores with an estimate of the relevant documents outside the pool, where these are likely; else None.

        They are drawn, on scales with few grades.
        """
        how, ideal = self.estimation, self.scores.ideal
        if ideal is None or not ideal.is_narrow or self.scores.method != "draws" or len(how.scale) > MOST_GRADES:
            return None
        return self.with_outside(load_outside()).scores

    def relabelled(self, sources: tuple[str, ...], *, worth_factor: float = 1.0) -> ScoreEstimate:
        """Return the estimate with the labels of some sources alone, or of none, and their worth multiplied.

        The model must be hierarchical, and there must be labels.
        """
        how = self.estimation
        assert isinstance(how.model, Hierarchical)
        problem = how.problem.with_sources(sources)
        design = how.model.design(problem, worth_factor=worth_factor)
        return replace(how, online=OnlineModel(how.model, problem, design)).estimate(
            self.judgments, answers=self.answers
        )

    def check_whole(self, what: str) -> None:
        """Raise an error if something needs all pairs of the campaign, and not all are in memory."""

    @property
    def labelled_shares(self) -> Floats | None:
        """The share of the pairs with a label by each source, shape (source,), where not all pairs are in memory."""
        return None


def problem_of(
    collection: Collection, metric: AnyMetric, *, depth: int | None = None, scale: Scale | str | None = None
) -> Problem:
    """Return the problem of a measure: to its cutoff, or to another depth."""
    grades = Scale.parse(scale) if isinstance(scale, str) else scale
    return collection.problem(depth=depth or as_metric(metric).cutoff or collection.runs.depth, scale=grades)
