"""The judging loop of campaigns and simulations: predict, score, choose the next pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from probeval.arrays import Bools, Floats
from probeval.data.answers import PairAnswers
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Brief
from probeval.metrics import AnyMetric, Metric
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.online import OnlineModel, Prediction, follow
from probeval.relevance.outside import OutsideModel
from probeval.scores import Ranking, Scores, evaluate
from probeval.scores.compare import check_rope
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import retrieved_pairs
from probeval.selection.batch import Batch, choose, choose_by_topic, draw_pairs
from probeval.selection.comparisons import PairQuestion
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.pairs import Questions, next_questions
from probeval.selection.policies import Policy, PolicyFunction, as_policy
from probeval.selection.topics import Queue
from probeval.streams import Purpose, stream
from probeval.threads import one_thread

__all__ = ["Judging", "JudgingState"]


@dataclass(frozen=True, eq=False, repr=False)
class Judging(Brief):
    """A campaign to be judged: the systems' lists, a model, a measure, a policy and a goal.

    :meth:`of` builds one from names. ``dataclasses.replace`` keeps the online model, so nothing is refitted.

    Parameters
    ----------
    online
        The online model: the model with the collection, the depth of the pool and the scale.
    runs
        The lists to evaluate, cut at that depth, on the pool of all.
    metric
        The measure.
    policy, goal
        The policy that chooses pairs, and the goal of the judging.
    explore
        The share of exploratory judgments.
    offered
        The pairs of the pool that may be judged, shape (pair,); all by default.
    refresh
        The number of judgments between refits; in between, judged pairs only become certain.
    method, target, family, draws
        As in :func:`probeval.scores.evaluate`, with ``draws`` for its ``n``.
    rope
        Differences between systems up to this size do not matter.
    query_weights
        The weight of each query in the mean over queries, shape (query,); equal weights by default.
    outside
        The model of relevant documents outside the pool, to count them in the ideal list; None counts none.
    aggregate
        The mean over queries, arithmetic or geometric: one of :data:`~probeval.metrics.AGGREGATES`.
    ranking_draws
        The number of draws of scores, for the probabilities of ranks.
    seed
        The seed: the same seed gives the same order.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from dataclasses import replace
    >>> campaign = replace(synthetic_campaign(seed=1, systems=4, queries=3, depth=5), judgments=None)
    >>> judging = Judging.of(campaign, FallbackModel([Uniform()]), "DCG@5", policy="mtc", scale=Scale.graded(2))
    >>> state = judging.begin()
    >>> [judging.pool.label(p) for p in state.next(2).pairs]
    [('q1', 'd031'), ('q2', 'd148')]
    """

    online: OnlineModel = field(repr=False)
    runs: Runs = field(repr=False)
    metric: Metric
    policy: Policy
    goal: Goal
    explore: float
    offered: Bools | None = None
    refresh: int = 1
    method: str | None = None
    target: str = "collection"
    family: str | None = None
    draws: int = 1000
    rope: float = 0.0
    query_weights: Floats | None = None
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
        policy: str | Policy | PolicyFunction = "gain",
        goal: Goal | str = "ranking",
        scale: Scale | str | None = None,
        depth: int | None = None,
        explore: float | None = None,
        offered: Bools | None = None,
        refresh: int = 1,
        method: str | None = None,
        target: str = "collection",
        family: str | None = None,
        draws: int = 1000,
        rope: float = 0.0,
        outside: OutsideModel | None = None,
        aggregate: str = "mean",
        ranking_draws: int = 1000,
        seed: int = 0,
    ) -> Judging:
        """Build from names, with defaults from the collection and the policy.

        Parameters
        ----------
        collection
            Runs, with judgments, metadata and labels if available.
        model
            The relevance model.
        metric
            The measure or its name. With goal success, the judging is by PSucc with the published mapping of it.
        policy, goal
            Names (:data:`probeval.selection.POLICIES`, :data:`probeval.selection.GOALS`), objects, or for a policy a
            plain function.
        scale, depth
            The grades, by default those of the judgments; the depth of the pool, by default the metric's cutoff, or
            whole runs without one.
        explore
            The share of exploratory judgments, by default the policy's own for the goal.
        offered, refresh, method, target, family, draws, rope, outside, aggregate, ranking_draws, seed
            As above; where runs only widen the pool, the pairs of the others are offered.
        """
        chosen, measure, aim = as_policy(policy), as_metric(metric), Goal.parse(goal)
        grades = collection.scale(Scale.parse(scale) if isinstance(scale, str) else scale)
        measure = aim.metric(measure, grades)
        depth = depth or measure.cutoff or collection.runs.depth
        runs = collection.lists(depth)
        aim.check(runs.systems)  # before any work
        return cls(
            online=follow(model, collection, depth=depth, scale=grades),
            runs=runs,
            metric=measure,
            policy=chosen,
            goal=aim,
            explore=chosen.exploration(aim, len(runs.systems)) if explore is None else explore,
            offered=_retrieved(collection, runs) if offered is None else offered,
            refresh=refresh,
            method=method,
            target=target,
            family=family,
            draws=draws,
            rope=rope,
            outside=outside,
            aggregate=aggregate,
            ranking_draws=ranking_draws,
            seed=seed,
        )

    def choosing(
        self, policy: str | Policy | PolicyFunction, *, goal: Goal | str = "ranking", explore: float | None = None
    ) -> Judging:
        """Return the same judging with another policy and goal, without refitting."""
        chosen, aim = as_policy(policy), Goal.parse(goal)
        aim.check(self.runs.systems)
        return replace(
            self,
            metric=aim.metric(self.metric, self.scale),
            policy=chosen,
            goal=aim,
            explore=chosen.exploration(aim, len(self.runs.systems)) if explore is None else explore,
        )

    def to_depth(self, depth: int, *, metric: Metric) -> Judging:
        """Return the same judging with another measure and depth of the pool."""
        online = follow(self.model, self.collection, depth=depth, scale=self.scale)
        runs = self.collection.lists(depth)
        return replace(self, online=online, runs=runs, metric=metric, offered=_retrieved(self.collection, runs))

    @property
    def collection(self) -> Collection:
        """Runs, with judgments, metadata and labels if available."""
        return self.online.collection

    @property
    def model(self) -> Predicts:
        """The relevance model."""
        return self.online.model

    @property
    def depth(self) -> int:
        """The depth of the pool."""
        return self.online.depth

    @property
    def scale(self) -> Scale:
        """The grades."""
        return self.online.scale

    @property
    def pool(self) -> Pool:
        """The pairs."""
        return self.runs.pool

    def begin(self) -> JudgingState:
        """Return the first state: the judgments and the answers of the collection."""
        judgments = self.collection.judgments
        return self.state(
            Judgments.none(self.pool) if judgments is None else judgments, answers=self.collection.answers
        )

    def state(
        self, judgments: Judgments, *, answers: PairAnswers | None = None, last: Prediction | None = None
    ) -> JudgingState:
        """Return the state with these judgments, and answers about two documents.

        ``last`` is an earlier prediction, the start of the fit.
        """
        now = judgments if len(judgments) else None
        prediction = self.online.after(now, stream(self.seed, Purpose.PREDICTION), answers=answers, last=last)
        if self.outside is not None:
            lists = self.collection.runs.top(self.depth)
            outside = self.outside.on(lists, self.scale, stream(self.seed, Purpose.OUTSIDE))
            prediction = replace(prediction, relevance=prediction.relevance.with_outside(outside))
        return JudgingState(self, judgments, prediction, len(judgments) + _count(answers), answers)


@dataclass(frozen=True, eq=False, repr=False)
class JudgingState(Brief):
    """A state of the judging: judgments, prediction and scores, and the next pairs to judge.

    Parameters
    ----------
    judging
        The judging that this is a state of.
    judgments
        All judgments so far, also of pairs outside the pool.
    prediction
        The current prediction.
    learned
        The number of judgments and answers at the last fit.
    answers
        All answers about two documents so far; None if they are not asked for.
    """

    judging: Judging
    judgments: Judgments
    prediction: Prediction
    learned: int
    answers: PairAnswers | None = None

    @cached_property
    def context(self) -> SelectionContext:
        """The input of the policy."""
        judging = self.judging
        scores = evaluate(
            judging.runs,
            self.prediction.relevance,
            judging.metric,
            method=judging.method,
            target=judging.target,
            family=judging.family,
            n=judging.draws,
            rng=stream(judging.seed, Purpose.SCORES),
            query_weights=judging.query_weights,
            aggregate=judging.aggregate,
        )
        return SelectionContext(
            judging.runs, self.judgments, self.prediction, scores, judging.seed, judging.rope, judging.ranking_draws
        )

    @property
    def collection(self) -> Collection:
        """The collection with the judgments and the answers so far."""
        judgments = self.judgments if len(self.judgments) else None
        return replace(self.judging.collection, judgments=judgments, answers=self.answers)

    @property
    def goal(self) -> Goal:
        """The goal of the judging."""
        return self.judging.goal

    @property
    def scores(self) -> Scores:
        """The joint scores of all systems."""
        return self.context.scores

    @property
    def ranking(self) -> Ranking:
        """The ranking and its confidence."""
        return self.context.ranking

    @property
    def open(self) -> Bools:
        """The pairs that may still be judged, shape (pair,)."""
        offered = self.judging.offered
        free = ~self.prediction.relevance.certain
        return free if offered is None else free & offered

    def next(self, n: int = 1, *, taken: Iterable[int] = ()) -> Batch:
        """Return the next ``n`` pairs of the pool to judge, best first, except judged pairs and those in ``taken``."""
        offered = self.open.copy()
        offered[list(taken)] = False
        judging = self.judging
        with one_thread():
            return choose(self.context, judging.policy, n, goal=self.goal, offered=offered, explore=judging.explore)

    @property
    def draws_from_sides(self) -> bool:
        """Whether a share of the judgments is drawn from both sides of the goal's comparisons."""
        judging = self.judging
        explores = judging.explore > 0 and not judging.policy.at_random
        return explores and judging.goal.has_sides(len(judging.runs.systems))

    @property
    def chooses_comparisons(self) -> bool:
        """Whether two documents to compare can be chosen by their gain: by the policy, the goal and the model."""
        chosen_by_gain = self.judging.policy.joint_value is not None and self.goal.about_scores
        return chosen_by_gain and self.prediction.posterior is not None

    def questions(
        self,
        n: int = 1,
        *,
        ask: str = "mixed",
        answering: Mapping[str, PairQuestion] | None = None,
        seconds: Mapping[str, float] | None = None,
        taken: Iterable[tuple[int, int]] = (),
    ) -> Questions:
        """Return the next ``n`` questions, about one document or two (:func:`probeval.selection.next_questions`)."""
        judging = self.judging
        offered = np.ones(len(judging.pool), dtype=bool) if judging.offered is None else judging.offered
        with one_thread():
            return next_questions(
                self.context,
                n,
                ask=ask,
                goal=self.goal,
                offered=offered,
                policy=judging.policy,
                explore=judging.explore,
                answering=answering,
                seconds=seconds,
                asked=len(self.judgments) + _count(self.answers),
                taken=taken,
            )

    def by_topic(
        self, n: int, *, per_topic: int, waiting: Iterable[int] = (), current: Iterable[int] = ()
    ) -> tuple[Queue[int, int], Batch]:
        """Return the next pairs of every query, and the exploratory draws among them.

        Parameters
        ----------
        n
            The number of judgments to draw for: the share of them that explores is drawn.
        per_topic
            The number of pairs of each query, beside draws.
        waiting
            Pairs that were drawn earlier and are not judged yet: they are due at once.
        current
            The queries that assessors judge now, by position: half of the draws are from them.
        """
        judging, context, early = self.judging, self.context, list(waiting)
        free = self.open.copy()
        free[early] = False
        explore = 0.0 if judging.policy.at_random else judging.explore
        with one_thread():
            near = np.isin(judging.pool.query, list(current))
            at, draws = draw_pairs(context, self.goal, n, offered=free, explore=explore, near=near)
            free[draws.pairs] = False
            chosen, values = choose_by_topic(context, judging.policy, per_topic, goal=self.goal, offered=free)
        pairs = [*early, *draws.pairs.tolist(), *chosen.tolist()]
        due = [*[0] * len(early), *at.tolist(), *[None] * len(chosen)]
        worth = [*[0.0] * (len(early) + len(draws)), *values.tolist()]
        return Queue(pairs, judging.pool.query[pairs].tolist(), worth, due), draws

    def by(self, metric: Metric, *, depth: int) -> JudgingState:
        """Return the state with another measure; measures of one depth share one prediction."""
        if depth == self.judging.depth:
            return replace(self, judging=replace(self.judging, metric=metric))
        return self.judging.to_depth(depth, metric=metric).begin()

    def relabelled(self, sources: tuple[str, ...], *, worth_factor: float = 1.0) -> JudgingState:
        """Return the state with the labels of some sources alone, or of none, and their worth multiplied.

        The model must be hierarchical, and there must be labels.
        """
        judging = self.judging
        labels = judging.collection.labels
        assert isinstance(judging.model, Hierarchical)
        assert labels is not None
        collection = replace(judging.collection, labels=labels.take(sources) if sources else None)
        design = judging.model.design(collection, depth=judging.depth, scale=judging.scale, worth_factor=worth_factor)
        online = replace(judging.online, collection=collection, design=design)
        return replace(judging, online=online).state(self.judgments)

    def check_whole(self, what: str) -> None:
        """Raise an error if something needs all pairs of the campaign, and not all are in memory."""

    @property
    def labelled_shares(self) -> Floats | None:
        """The share of the pairs with a label by each source, shape (source,), where not all pairs are in memory."""
        return None

    def after(self, judgments: Judgments, *, answers: PairAnswers | None = None) -> JudgingState:
        """Return the state with these judgments and answers, old and new; without answers, with those of before."""
        answers = self.answers if answers is None else answers
        if len(judgments) + _count(answers) - self.learned < self.judging.refresh:
            known = self.prediction.knowing(judgments)
            return replace(self, judgments=judgments, answers=answers, prediction=known)
        return self.judging.state(judgments, answers=answers, last=self.prediction)


def _count(answers: PairAnswers | None) -> int:
    return 0 if answers is None else len(answers)


def _retrieved(collection: Collection, runs: Runs) -> Bools | None:
    """Return the pairs that the systems to evaluate retrieved, shape (pair,); None if these are all pairs."""
    return None if collection.ranked is None else retrieved_pairs(runs)
