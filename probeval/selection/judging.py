"""The judging loop of campaigns and simulations: predict, score, choose the next pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from probeval.arrays import Bools
from probeval.data.answers import PairAnswers
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.metrics import AnyMetric
from probeval.records import part
from probeval.relevance.models.base import Predicts
from probeval.relevance.online import Prediction, follow
from probeval.scores import Ranking, Scores
from probeval.scores.estimate import ScoreEstimate, ScoreEstimation, problem_of
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import retrieved_pairs
from probeval.selection.batch import Batch, choose, choose_by_topic, draw_pairs
from probeval.selection.comparisons import PairQuestion
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.labels import agreement_confidence
from probeval.selection.pairs import Questions, next_questions
from probeval.selection.policies import Policy, PolicyFunction, as_policy
from probeval.selection.topics import Queue
from probeval.threads import one_thread

__all__ = ["Judging", "JudgingState"]


@dataclass(frozen=True, eq=False, repr=False)
class Judging(ScoreEstimation):
    """A campaign to be judged: how its scores are estimated, a policy and a goal.

    :meth:`of` builds one from names. ``dataclasses.replace`` keeps the online model, so nothing is refitted.

    Parameters
    ----------
    policy, goal
        The policy that chooses pairs, and the goal of the judging.
    explore
        The share of exploratory judgments.
    offered
        The pairs of the pool that may be judged, shape (pair,); all by default.
    refresh
        The number of judgments between refits; in between, judged pairs only become certain.

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

    _: KW_ONLY
    policy: Policy
    goal: Goal
    explore: float
    offered: Bools | None = None
    refresh: int = 1

    @classmethod
    def of(
        cls,
        collection: Collection,
        model: Predicts,
        metric: AnyMetric,
        *,
        policy: str | Policy | PolicyFunction = "gain",
        goal: Goal | str = "ranking",
        explore: float | None = None,
        depth: int | None = None,
        scale: Scale | str | None = None,
        **settings: Any,
    ) -> Judging:
        """Build from names, with defaults from the collection and the policy.

        Parameters
        ----------
        collection, model
            Runs, with judgments, metadata and labels if available; the relevance model.
        metric
            The measure or its name. With goal success, the judging is by PSucc with the published mapping of it.
        policy, goal
            Names (:data:`probeval.selection.POLICIES`, :data:`probeval.selection.GOALS`), objects, or for a policy a
            plain function.
        explore
            The share of exploratory judgments, by default the policy's own for the goal.
        depth, scale
            As in :meth:`ScoreEstimation.of`.
        settings
            The other fields; where runs only widen the pool, the pairs of the others are offered by default.
        """
        aim, measure = Goal.parse(goal), as_metric(metric)
        measure = aim.metric(measure, collection.scale(Scale.parse(scale) if isinstance(scale, str) else scale))
        problem = problem_of(collection, measure, depth=depth, scale=scale)
        aim.check(problem.lists.systems)  # before any work
        how = ScoreEstimation(follow(model, problem), measure)
        return replace(cls.choosing(how, policy, goal=aim, explore=explore), **settings)

    @classmethod
    def choosing(
        cls,
        estimation: ScoreEstimation,
        policy: str | Policy | PolicyFunction,
        *,
        goal: Goal | str = "ranking",
        explore: float | None = None,
    ) -> Judging:
        """Return a judging by a policy and for a goal, with scores estimated as given, without refitting."""
        chosen, aim, runs = as_policy(policy), Goal.parse(goal), estimation.runs
        aim.check(runs.systems)
        offered = None if estimation.collection.ranked is None else retrieved_pairs(runs)
        more: dict[str, Any] = {} if isinstance(estimation, Judging) else {"offered": offered}
        return part(
            estimation,
            cls,
            metric=aim.metric(estimation.metric, estimation.scale),
            policy=chosen,
            goal=aim,
            explore=chosen.exploration(aim, len(runs.systems)) if explore is None else explore,
            **more,
        )

    def begin(self) -> JudgingState:
        """Return the first state: the judgments and the answers of the collection."""
        return self.state(self.first_judgments, answers=self.collection.answers)

    def state(
        self, judgments: Judgments, *, answers: PairAnswers | None = None, last: Prediction | None = None
    ) -> JudgingState:
        """Return the state with these judgments, and answers about two documents.

        ``last`` is an earlier prediction, the start of the fit.
        """
        now = self.estimate(judgments, answers=answers, last=last)
        return JudgingState(self, now, now.answered)


@dataclass(frozen=True, eq=False, repr=False)
class JudgingState(Record):
    """A state of the judging: judgments, prediction and scores, and the next pairs to judge.

    Parameters
    ----------
    judging
        The judging that this is a state of.
    estimate
        The scores and the ranking now.
    learned
        The number of judgments and answers at the last fit.
    """

    judging: Judging
    estimate: ScoreEstimate
    learned: int

    @cached_property
    def context(self) -> SelectionContext:
        """The input of the policy."""
        return SelectionContext(self.estimate.in_memory)

    @property
    def judgments(self) -> Judgments:
        """All judgments so far, also of pairs outside the pool."""
        return self.estimate.judgments

    @property
    def answers(self) -> PairAnswers | None:
        """All answers about two documents so far; None if they are not asked for."""
        return self.estimate.answers

    @property
    def prediction(self) -> Prediction:
        """The current prediction."""
        return self.estimate.prediction

    @property
    def collection(self) -> Collection:
        """The collection with the judgments and the answers so far."""
        return self.estimate.collection

    @property
    def scores(self) -> Scores:
        """The joint scores of all systems."""
        return self.estimate.scores

    @property
    def ranking(self) -> Ranking:
        """The ranking and its confidence."""
        return self.estimate.ranking

    @property
    def goal(self) -> Goal:
        """The goal of the judging."""
        return self.judging.goal

    @cached_property
    def confidence(self) -> float:
        """The mean confidence over the comparisons of the goal; over all pairs of systems if it compares none."""
        if self.goal.about_labels:
            return agreement_confidence(self.context, self.goal)
        return self.goal.confidence(self.ranking) if self.goal.compares else self.ranking.confidence

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
                asked=self.estimate.answered,
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

    def labelled(self, labels: LabelTable | None) -> JudgingState:
        """Return the state with these labels in place of those before, fitted anew."""
        how = self.judging
        problem = replace(how.collection, labels=labels).problem(depth=how.depth, scale=how.scale)
        return replace(how, online=follow(how.model, problem)).state(self.judgments, answers=self.answers)

    def after(self, judgments: Judgments, *, answers: PairAnswers | None = None) -> JudgingState:
        """Return the state with these judgments and answers, old and new; without answers, with those of before."""
        answers = self.answers if answers is None else answers
        now = replace(self.estimate, judgments=judgments, answers=answers)
        if now.answered - self.learned < self.judging.refresh:
            return replace(self, estimate=replace(now, prediction=self.prediction.given(judgments)))
        return self.judging.state(judgments, answers=answers, last=self.prediction)
