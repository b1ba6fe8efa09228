"""The results behind a report, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probeval.data.judgments import NOT_JUDGED, Judgments
from probeval.display import Record
from probeval.relevance import Choice, Hierarchical
from probeval.reliability import DStudy, Estimate, GStudy, dstudy, gstudy
from probeval.reliability.dstudy import QUERIES
from probeval.reporting import SILENT, Reporter
from probeval.reports.milestones import Milestone, as_judged, draw_queries, milestone
from probeval.satisfaction import Agreement, Satisfaction, SatMapping, mapping_for, published_agreements
from probeval.scores import (
    LabelsUsed,
    Ranking,
    Score,
    Scores,
    TrustReport,
    TwoSystems,
    Verdict,
    decide,
    labels_of,
    trust,
    without_labels,
)
from probeval.scores.two_systems import on_new_queries
from probeval.selection import JudgingState, Stopping, StoppingFigure
from probeval.simulation.forecast import Forecast, forecast
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["TARGET", "TWO", "WRITING", "EffectSize", "ReportResults", "StatedProgress"]

TARGET = 0.95  # target reliability and mean confidence, for the numbers of queries and judgments needed
AHEAD = 500  # judgments that the forecast looks ahead
PATHS = 3  # of the forecast
TWO = 2  # systems, whose report is one page on their difference
MARKS = 6  # milestones, if the order of judgments is known
WRITING = "Writing the report; the forecast takes longest"


@dataclass(frozen=True)
class EffectSize:
    """A difference of two systems: value, half-width of its interval, two-sided p.

    >>> str(EffectSize(0.0371, 0.0314, 0.024))
    '0.0371 ± 0.0314 (p = 0.024)'
    """

    value: float
    half_width: float
    p: float

    @classmethod
    def of(cls, difference: Score, level: float) -> EffectSize:
        """Compute from the distribution of a difference."""
        low, high = difference.interval(level)
        below = difference.cdf(0.0)
        tie = difference.standard_deviation() == 0 and abs(difference.mean()) < TIE
        return cls(difference.mean(), (high - low) / 2, 1.0 if tie else 2 * min(below, 1 - below))

    def __str__(self) -> str:
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"{self.value:z.4f} ± {self.half_width:.4f} ({p})"  # z: no negative zero


@dataclass(frozen=True)
class StatedProgress:
    """The progress of a campaign as its status states it.

    Parameters
    ----------
    rule
        The stopping rule, whose figures are shown beside their targets.
    given
        From how many judgments pairs are judged, and why that is another number; empty if it is the same.
    standing
        What the rule tests, and the judgments that its target still takes.
    """

    rule: Stopping
    given: str
    standing: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ReportResults(Record):
    """The results behind the report of an evaluation or a campaign.

    Parameters
    ----------
    state
        The current state of the judging.
    choice
        The model, the reason for its choice, and its card.
    milestones
        The progress from no judgments to now.
    ordered
        Whether the milestones follow the order in which pairs were judged.
    level
        The level of intervals.
    mapping
        A mapping to user satisfaction; by default the published one of the measure, if any.
    agreement
        The preferences of the users of the mapping; by default the published ones of its name, if any.
    stated
        What a campaign's status states, in place of what a report would compute.
    """

    state: JudgingState
    choice: Choice
    milestones: tuple[Milestone, ...] = ()
    ordered: bool = False
    level: float = 0.95
    mapping: SatMapping | None = None
    agreement: Agreement | None = None
    stated: StatedProgress | None = None

    @classmethod
    def of(
        cls,
        state: JudgingState,
        choice: Choice,
        *,
        level: float = 0.95,
        mapping: SatMapping | None = None,
        agreement: Agreement | None = None,
    ) -> ReportResults:
        """Return the results of an evaluation, with two milestones: before the first judgment, and now.

        The report of two systems shows no milestones, so it has none.
        """
        marks: list[Milestone] = []
        if len(state.scores.systems) == TWO:
            return cls(state, choice, level=level, mapping=mapping, agreement=agreement)
        if state.scores.judged:
            marks.append(milestone(_before_judging(state)))
        marks.append(milestone(state))
        return cls(state, choice, tuple(marks), level=level, mapping=mapping, agreement=agreement)

    @classmethod
    def along(
        cls,
        state: JudgingState,
        choice: Choice,
        judgments: Judgments,
        *,
        level: float = 0.95,
        mapping: SatMapping | None = None,
        agreement: Agreement | None = None,
        reporter: Reporter = SILENT,
    ) -> ReportResults:
        """Return the results of a campaign judged in this order, with several milestones.

        ``reporter`` receives the progress of the milestones.
        """
        step = _before_judging(state)
        marks = [milestone(step)]
        for n in reporter.track(
            sorted({int(m) for m in np.linspace(0, len(judgments), MARKS + 1)} - {0, len(judgments)}),
            WRITING,
        ):
            step = step.after(judgments.take(np.arange(n)))
            marks.append(milestone(step))
        if len(judgments):
            marks.append(milestone(state))
        return cls(state, choice, tuple(marks), ordered=True, level=level, mapping=mapping, agreement=agreement)

    @property
    def scores(self) -> Scores:
        """The scores for these queries."""
        return self.state.scores

    @property
    def ranking(self) -> Ranking:
        """The ranking and its confidence."""
        return self.state.ranking

    @property
    def compared(self) -> str:
        """Which comparisons the confidence is about: empty for the order of all systems."""
        goal = self.state.goal
        return "" if goal.orders_all or not goal.compares else f" of the comparisons of the goal {goal}"

    @cached_property
    def tested(self) -> tuple[StoppingFigure, ...]:
        """The figures that a campaign's stopping rule tests; none of an evaluation."""
        return () if self.stated is None else self.stated.rule.check(self.state).figures

    @property
    def not_counted(self) -> dict[str, int]:
        """The pairs that have judgments but no grade, and the judgments besides one per pair of the pool."""
        judgments = self.state.judgments
        pair = judgments.pair[judgments.grade != NOT_JUDGED]
        inside = pair[judgments.pool.within(self.state.judging.pool)[pair] >= 0]
        pairs = len(np.unique(inside))
        return {
            "pairs with judgments that disagree": pairs - self.scores.judged,
            "judgments of pairs outside the pool": len(pair) - len(inside),
            "further judgments of the same pairs": len(inside) - pairs,
        }

    @cached_property
    def by_query(self) -> Scores:
        """Joint draws of the score of every system on every query."""
        return draw_queries(self.state.estimate)

    @cached_property
    def population(self) -> Scores | None:
        """The same scores for the population of queries, Student's t; None for a single query.

        With all pairs judged, its intervals and p-values are those of the paired t test.
        """
        return on_new_queries(self.scores)

    @cached_property
    def labels(self) -> LabelsUsed:
        """The sources of labels."""
        return labels_of(self.state.estimate)

    @cached_property
    def decision(self) -> TwoSystems:
        """The first system of the ranking against the second, with and without labels."""
        first, second, *_ = self.ranking.order
        now = self.state.estimate
        return decide(now, first, second, level=self.level, unlabelled=without_labels(now))

    @cached_property
    def verdict(self) -> Verdict:
        """The state of every comparison."""
        return Verdict.of(self.ranking, level=self.level)

    @cached_property
    def study(self) -> GStudy:
        """The variance components of the scores, with intervals for judging and sampling."""
        scores = self.by_query
        assert scores.joint.query_draws is not None
        uncertain = len(scores.joint.query_draws) > 1
        rng = stream(self.state.judging.seed, Purpose.STUDY)
        return gstudy(scores, interval="bootstrap" if uncertain else None, rng=rng, level=self.level)

    @cached_property
    def reliability(self) -> dict[str, Estimate]:
        """E rho^2 and Phi of the scores as judged so far, with intervals for judging and sampling.

        Not defined without a study (:attr:`study`).
        """
        last, study, tail = self.milestones[-1], self.study, (1 - self.level) / 2
        found = {}
        for name, draws in as_judged(study, self.scores).items():
            low, high = np.quantile(draws, [tail, 1 - tail])
            if study.draws is None:  # all pairs are judged: the coefficients of the study itself
                low, high = study.coefficient(name).ends
            found[name] = Estimate(getattr(last, name), float(low), float(high))
        return found

    @cached_property
    def plan(self) -> DStudy:
        """The reliability with other numbers of queries."""
        sizes = sorted({*QUERIES, len(self.scores.queries)})
        targets = [("erho2", TARGET), ("phi", TARGET), ("tau", 0.9)]
        return dstudy(self.study, queries=sizes, targets=targets)

    @cached_property
    def ahead(self) -> Forecast | None:
        """The forecast of further judgments; None without open pairs."""
        if not self.state.open.any() or len(self.scores.systems) < 2:
            return None
        rng = stream(self.state.judging.seed, Purpose.FORECAST)
        return forecast(self.state, target=TARGET, paths=PATHS, most=AHEAD, rng=rng)

    @cached_property
    def trust(self) -> TrustReport | None:
        """The trust in each source of labels; None without labels, or with a model that does not examine them."""
        judging = self.state.judging
        if judging.collection.labels is None or not isinstance(judging.model, Hierarchical):
            return None
        return trust(self.state.estimate)

    @cached_property
    def users(self) -> Satisfaction:
        """User satisfaction, by the given mapping or the published one of the measure."""
        metric, scale = self.scores.metric, self.state.prediction.relevance.scale
        mapping = mapping_for(metric, scale) if self.mapping is None else self.mapping
        known = self.agreement or published_agreements().get(mapping.name)
        target = "collection" if self.population is None else "population"
        return Satisfaction.of(self.by_query, mapping, agreement=known, target=target, level=self.level)

    def effect(self, a: str, b: str) -> EffectSize:
        """Return the difference of two systems, for the population of queries if there are several queries."""
        scores = self.population or self.scores
        return EffectSize.of(scores[a] - scores[b], self.level)


def _before_judging(state: JudgingState) -> JudgingState:
    return state.judging.state(Judgments.none(state.judging.pool), last=state.prediction)
