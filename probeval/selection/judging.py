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
from probeval.selection.policies import find_policy
from probeval.streams import Purpose, stream
from probeval.threads import one_thread

__all__ = ["EXPLORE", "Judging", "JudgingState"]

EXPLORE = 0.1  # of the judgments of a policy that trusts its model
TRUSTING = ("gain",)  # the published policies stay as they were published


@dataclass(frozen=True, eq=False)
class Judging:
    """A campaign to be judged: the systems' lists, a model, a measure, a policy and a goal.

    Parameters
    ----------
    collection
        Runs, and whatever judgments, metadata and labels there are.
    model
        What predicts relevance.
    metric
        The measure or its name.
    policy, goal
        How to choose pairs (:data:`probeval.selection.POLICIES`), and to what end (:data:`probeval.selection.GOALS`).
    scale, depth
        The grades, and how many ranks are pooled; the metric's cutoff, else the whole runs, when not given.
    explore
        The share of exploratory judgments.
    offered
        The pairs of the pool that may be judged; all when not given, shape (pair,).
    refresh
        After how many judgments the model learns again; in between, judged pairs are merely known.
    family, draws
        The shape that confidence takes, and how many draws of scores where draws are made.
    seed
        Same seed, same order.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from dataclasses import replace
    >>> campaign = replace(synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5), judgments=None)
    >>> judging = Judging(campaign, FallbackModel([Uniform()]), "DCG@5", policy="mtc", scale=Scale.graded(2), explore=0)
    >>> state = judging.begin()
    >>> [judging.pool.label(p) for p in state.next(2)]
    [('q1', 'd031'), ('q2', 'd148')]
    """

    collection: Collection
    model: Predicts
    metric: Metric | str
    policy: str = "gain"
    goal: Goal | str = "ranking"
    scale: Scale | None = None
    depth: int | None = None
    explore: float | None = None
    offered: Bools | None = None
    refresh: int = 1
    family: str | None = None
    draws: int = 1000
    seed: int = 0
    online: OnlineModel = field(init=False, repr=False)
    runs: Runs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        find_policy(self.policy)
        metric, goal = as_metric(self.metric), Goal.parse(self.goal)
        scale = self.collection.scale(self.scale)
        depth = self.depth or metric.cutoff or self.collection.runs.depth
        runs = self.collection.runs.top(depth)
        goal.check(runs.systems)
        explore = (EXPLORE if self.policy in TRUSTING else 0.0) if self.explore is None else self.explore
        settled = {"metric": metric, "goal": goal, "scale": scale, "depth": depth, "runs": runs, "explore": explore}
        settled["online"] = follow(self.model, self.collection, depth=depth, scale=scale)
        for name, value in settled.items():
            object.__setattr__(self, name, value)

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
        assert isinstance(judging.metric, Metric)
        rng = stream(judging.seed, Purpose.SCORES)
        scores = evaluate(
            judging.runs, self.prediction.relevance, judging.metric, family=judging.family, n=judging.draws, rng=rng
        )
        return SelectionContext(judging.runs, self.judgments, self.prediction, scores, judging.seed)

    @property
    def goal(self) -> Goal:
        """What the judging is for."""
        assert isinstance(self.judging.goal, Goal)
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
        assert judging.explore is not None
        with one_thread():
            return choose(self.context, judging.policy, n, goal=self.goal, offered=offered, explore=judging.explore)

    def after(self, judgments: Judgments) -> JudgingState:
        """The state with these judgments: all so far, the new ones among them."""
        if len(judgments) - self.learned < self.judging.refresh:
            return replace(self, judgments=judgments, prediction=self.prediction.knowing(judgments))
        return self.judging.state(judgments, last=self.prediction)
