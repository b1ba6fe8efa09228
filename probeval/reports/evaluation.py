"""An evaluation as a report sees it: every result that its sections speak of, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.relevance import Choice
from probeval.reliability import DStudy, GStudy, dstudy, gstudy
from probeval.reliability.dstudy import QUERIES
from probeval.reports.milestones import Milestone, draw_queries, milestone
from probeval.satisfaction import Satisfaction, SatMapping, mapping_for, published_agreements
from probeval.scores import Ranking, Score, Scores
from probeval.selection import Judging, JudgingState, Verdict
from probeval.simulation.forecast import Forecast, forecast
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["TARGET", "EffectSize", "Evaluation", "begin", "follow"]

TARGET = 0.95  # the reliability, and the mean confidence, that the report counts queries and judgments for
AHEAD = 500  # judgments that the forecast looks ahead
PATHS = 3  # of the forecast
MARKS = 6  # milestones of judgments whose order is known


@dataclass(frozen=True)
class EffectSize:
    """A difference for a paper: value, half-width of its interval, two-sided p.

    >>> str(EffectSize(0.0371, 0.0314, 0.024))
    '0.0371 ± 0.0314 (p = 0.024)'
    """

    value: float
    half_width: float
    p: float

    @classmethod
    def of(cls, difference: Score, level: float) -> EffectSize:
        """From the distribution of a difference."""
        low, high = difference.interval(level)
        below = difference.cdf(0.0)
        tie = difference.standard_deviation() == 0 and abs(difference.mean()) < TIE
        return cls(difference.mean(), (high - low) / 2, 1.0 if tie else 2 * min(below, 1 - below))

    def __str__(self) -> str:
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"{self.value:z.4f} ± {self.half_width:.4f} ({p})"  # z: no minus before zeros


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All that the report of an evaluation or a campaign draws on.

    Parameters
    ----------
    state
        The judging as it stands: lists, measure, judgments, prediction, scores.
    choice
        The model, why it was taken, and its card.
    milestones
        What judging bought, from nothing to now.
    ordered
        Whether the milestones follow the order in which pairs were judged.
    level
        The probability that intervals hold.
    mapping
        A mapping to users' satisfaction; the published one of the measure, where there is one, if not given.
    """

    state: JudgingState
    choice: Choice
    milestones: tuple[Milestone, ...] = ()
    ordered: bool = False
    level: float = 0.95
    mapping: SatMapping | None = None

    @property
    def scores(self) -> Scores:
        """The scores for these queries."""
        return self.state.scores

    @property
    def ranking(self) -> Ranking:
        """The order of the systems, and how sure it is."""
        return self.state.ranking

    @cached_property
    def by_query(self) -> Scores:
        """Joint draws of the score of every system on every query."""
        return draw_queries(self.state)

    @cached_property
    def population(self) -> Scores | None:
        """The same scores for the population of queries, Student's t; None for a single query.

        With everything judged its intervals and p-values are those of the paired t test.
        """
        if len(self.scores.queries) < 2:
            return None
        return replace(self.scores, target="population", family="t")

    @cached_property
    def verdict(self) -> Verdict:
        """Which comparisons are decided, and which no judgment can decide."""
        return Verdict.of(self.ranking, level=self.level)

    @cached_property
    def study(self) -> GStudy:
        """Where the variance of the scores comes from, with intervals for judging and sampling together."""
        scores = self.by_query
        assert scores.joint.query_draws is not None
        uncertain = len(scores.joint.query_draws) > 1
        rng = stream(self.state.judging.seed, Purpose.STUDY)
        return gstudy(scores, interval="bootstrap" if uncertain else None, rng=rng)

    @cached_property
    def plan(self) -> DStudy:
        """How reliable other numbers of queries would be."""
        sizes = sorted({*QUERIES, len(self.scores.queries)})
        targets = [("erho2", TARGET), ("phi", TARGET), ("tau", 0.9)]
        return dstudy(self.study, queries=sizes, targets=targets, level=self.level)

    @cached_property
    def ahead(self) -> Forecast | None:
        """What more judgments are expected to bring; None where nothing is open."""
        if not self.state.open.any() or len(self.scores.systems) < 2:
            return None
        rng = stream(self.state.judging.seed, Purpose.FORECAST)
        return forecast(self.state, target=TARGET, paths=PATHS, most=AHEAD, rng=rng)

    @cached_property
    def users(self) -> Satisfaction:
        """What the scores mean for users, by the mapping given or the published one of the measure."""
        metric, scale = self.scores.metric, self.state.prediction.relevance.scale
        mapping = mapping_for(metric, scale) if self.mapping is None else self.mapping
        known = published_agreements().get(mapping.name)
        target = "collection" if self.population is None else "population"
        return Satisfaction.of(self.by_query, mapping, agreement=known, target=target)

    def effect(self, a: str, b: str) -> EffectSize:
        """The difference of two systems: for the population of queries, else for these."""
        scores = self.population or self.scores
        return EffectSize.of(scores[a] - scores[b], self.level)


def begin(
    collection: Collection,
    choice: Choice,
    metric: str,
    *,
    depth: int | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    mapping: SatMapping | None = None,
) -> Evaluation:
    """Evaluate runs with whatever judgments there are, and see what these have bought.

    Parameters
    ----------
    collection, choice
        Runs, evidence and judgments, and the model.
    metric, depth
        The measure, and how many ranks are pooled.
    level, draws, seed, mapping
        As in :class:`Evaluation`; how many joint draws; same seed, same report.
    """
    state = Judging.of(
        collection, choice.model, metric, scale=choice.scale, depth=depth, draws=draws, seed=seed
    ).begin()
    marks: list[Milestone] = []
    if state.scores.judged:
        marks.append(milestone(_with_nothing_judged(state)))
    marks.append(milestone(state))
    return Evaluation(state, choice, tuple(marks), level=level, mapping=mapping)


def follow(
    state: JudgingState,
    choice: Choice,
    judgments: Judgments,
    *,
    level: float = 0.95,
    mapping: SatMapping | None = None,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> Evaluation:
    """The same from a state of a campaign whose judgments were made in this order: milestones along the way.

    ``progress`` goes over the numbers of judgments at which there is one.
    """
    step = _with_nothing_judged(state)
    marks = [milestone(step)]
    for n in progress(sorted({int(m) for m in np.linspace(0, len(judgments), MARKS + 1)} - {0, len(judgments)})):
        step = step.after(judgments.take(np.arange(n)))
        marks.append(milestone(step))
    if len(judgments):
        marks.append(milestone(state))
    return Evaluation(state, choice, tuple(marks), ordered=True, level=level, mapping=mapping)


def _with_nothing_judged(state: JudgingState) -> JudgingState:
    return state.judging.state(Judgments.none(state.judging.pool), last=state.prediction)
