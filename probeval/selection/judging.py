"""The loop that a person, a page and a simulation share: what is known now, what to judge next, when to stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from probeval.arrays import Bools, Ints
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.metrics import Metric
from probeval.relevance.models.base import Predicts
from probeval.relevance.online import OnlineModel, Prediction, follow
from probeval.scores import Ranking, Scores, evaluate
from probeval.scores.evaluate import as_metric
from probeval.selection.batch import choose
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.policies import Policy, PolicyFunction, as_policy
from probeval.streams import Purpose, stream
from probeval.threads import one_thread

__all__ = ["Judging", "JudgingState"]


@dataclass(frozen=True, eq=False)
class Judging:
    """A campaign to be judged: the systems' lists, a model, a measure, a policy and a goal.

    :meth:`of` makes one from names and texts. ``dataclasses.replace`` keeps the online model, so that nothing is
    fitted again.

    Parameters
    ----------
    online
        The model as it follows the campaign; it has the collection, the model, the depth of the pool and the scale.
    runs
        The lists to that depth.
    metric
        The measure.
    policy, goal
        How to choose pairs, and to what end.
    explore
        The share of exploratory judgments.
    offered
        The pairs of the pool that may be judged; all when not given, shape (pair,).
    refresh
        After how many judgments the model learns again; in between, judged pairs are merely known.
    method, target, family, draws
        How scores are computed, what they are scores of, the shape that confidence takes, and how many draws where
        draws are made: as in :func:`probeval.scores.evaluate`.
    seed
        Same seed, same order.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from dataclasses import replace
    >>> campaign = replace(synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5), judgments=None)
    >>> judging = Judging.of(campaign, FallbackModel([Uniform()]), "DCG@5", policy="mtc", scale=Scale.graded(2))
    >>> state = judging.begin()
    >>> [judging.pool.label(p) for p in state.next(2)]
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
    seed: int = 0

    @classmethod
    def of(
        cls,
        collection: Collection,
        model: Predicts,
        metric: Metric | str,
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
        seed: int = 0,
    ) -> Judging:
        """From names and texts; what is not given follows from the rest.

        Parameters
        ----------
        collection
            Runs, and whatever judgments, metadata and labels there are.
        model
            What predicts relevance.
        metric
            The measure or its name.
        policy, goal
            Names (:data:`probeval.selection.POLICIES`, :data:`probeval.selection.GOALS`), objects, or for a policy a
            plain function.
        scale, depth
            The grades, those of the judgments when not given; how many ranks are pooled, the metric's cutoff, else the
            whole runs, when not given.
        explore
            The share of exploratory judgments; the policy's own when not given.
        offered, refresh, method, target, family, draws, seed
            As above.
        """
        chosen, measure, aim = as_policy(policy), as_metric(metric), Goal.parse(goal)
        grades = collection.scale(Scale.parse(scale) if isinstance(scale, str) else scale)
        depth = depth or measure.cutoff or collection.runs.depth
        runs = collection.runs.top(depth)
        aim.check(runs.systems)  # before any work
        return cls(
            online=follow(model, collection, depth=depth, scale=grades),
            runs=runs,
            metric=measure,
            policy=chosen,
            goal=aim,
            explore=chosen.explores if explore is None else explore,
            offered=offered,
            refresh=refresh,
            method=method,
            target=target,
            family=family,
            draws=draws,
            seed=seed,
        )

    def choosing(
        self, policy: str | Policy | PolicyFunction, *, goal: Goal | str = "ranking", explore: float | None = None
    ) -> Judging:
        """The same judging by another policy and for another goal; nothing is fitted again."""
        chosen, aim = as_policy(policy), Goal.parse(goal)
        aim.check(self.runs.systems)
        return replace(self, policy=chosen, goal=aim, explore=chosen.explores if explore is None else explore)

    def to_depth(self, depth: int, *, metric: Metric) -> Judging:
        """The same judging by another measure, on a pool of another depth."""
        online = follow(self.model, self.collection, depth=depth, scale=self.scale)
        return replace(self, online=online, runs=self.collection.runs.top(depth), metric=metric, offered=None)

    @property
    def collection(self) -> Collection:
        """Runs, and whatever judgments, metadata and labels there are."""
        return self.online.collection

    @property
    def model(self) -> Predicts:
        """What predicts relevance."""
        return self.online.model

    @property
    def depth(self) -> int:
        """How many ranks are pooled."""
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
        """Where it starts: with the judgments of the collection."""
        judgments = self.collection.judgments
        return self.state(Judgments.none(self.pool) if judgments is None else judgments)

    def state(self, judgments: Judgments, *, last: Prediction | None = None) -> JudgingState:
        """The state with these judgments; ``last`` is a prediction with others, to start from."""
        now = judgments if len(judgments) else None
        prediction = self.online.after(now, stream(self.seed, Purpose.PREDICTION), last=last)
        return JudgingState(self, judgments, prediction, len(judgments))


@dataclass(frozen=True, eq=False)
class JudgingState:
    """A moment of the judging: what is judged and believed, how the scores stand, what comes next.

    Parameters
    ----------
    judging
        What is being done.
    judgments
        What was judged so far, outside the pool too.
    prediction
        What the model says now.
    learned
        How many judgments the model has learned from.
    """

    judging: Judging
    judgments: Judgments
    prediction: Prediction
    learned: int

    @cached_property
    def context(self) -> SelectionContext:
        """All that a policy looks at."""
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
        )
        return SelectionContext(judging.runs, self.judgments, self.prediction, scores, judging.seed)

    @property
    def goal(self) -> Goal:
        """What the judging is for."""
        return self.judging.goal

    @property
    def scores(self) -> Scores:
        """The scores of all systems, jointly."""
        return self.context.scores

    @property
    def ranking(self) -> Ranking:
        """The ranking, and how sure it is."""
        return self.context.ranking

    @property
    def open(self) -> Bools:
        """The pairs that may still be judged, shape (pair,)."""
        offered = self.judging.offered
        free = ~self.prediction.relevance.certain
        return free if offered is None else free & offered

    def next(self, n: int = 1, *, taken: Iterable[int] = ()) -> Ints:
        """The next ``n`` pairs of the pool to judge, the best first; none that is judged, nor any that is ``taken``."""
        offered = self.open.copy()
        offered[list(taken)] = False
        judging = self.judging
        with one_thread():
            return choose(self.context, judging.policy, n, goal=self.goal, offered=offered, explore=judging.explore)

    def after(self, judgments: Judgments) -> JudgingState:
        """The state with these judgments: all so far, the new ones among them."""
        if len(judgments) - self.learned < self.judging.refresh:
            return replace(self, judgments=judgments, prediction=self.prediction.knowing(judgments))
        return self.judging.state(judgments, last=self.prediction)
