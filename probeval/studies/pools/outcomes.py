r"""The outcomes of a study: tests, decisions and scores by each cut, against those by the reference.

See docs/theory/pools.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Bools, Floats, Ints
from probeval.display import Record
from probeval.errors import ReliabilityError, did_you_mean
from probeval.metrics import Lists, Metric, bounds, parse
from probeval.reliability.correlation import kendall
from probeval.reliability.paired import SAMPLES, TESTS, differences, pair_index, run_test
from probeval.reliability.twoway import compare_counts, p_trend, signed, straddling, two_way
from probeval.results import FLAT, Named
from probeval.streams import Purpose, stream
from probeval.studies.pools.cuts import Cut
from probeval.studies.pools.reference import ReferencePool
from probeval.ties import signs

__all__ = [
    "ASSUMPTIONS",
    "DecisionOutcome",
    "PoolOptions",
    "PoolOutcomes",
    "PoolRow",
    "PoolTrend",
    "ScoreMovement",
    "TrendBar",
    "compare_pools",
    "decision_outcome",
    "movement",
    "residuals",
]

ASSUMPTIONS = {  # of unjudged documents, by kind of lists
    "whole": "not relevant",
    "condensed": "left out",
}
DECIMALS = 12  # of values whose order counts: smaller differences are ties
SEQUENCES = ("depth", "share")  # kinds of cuts that follow one another
END = 1.0 - 1e-9  # tau of a trend without exception, in size


@dataclass(frozen=True, repr=False)
class PoolOptions(Record):
    """How systems are compared.

    Parameters
    ----------
    tests, alpha
        Tests of pairs of systems (:data:`~probeval.reliability.TESTS`), without a correction for many pairs as in the
        published tables, and the level of significance.
    persistence
        The persistence p of the RBP residual.
    condensed
        Whether lists without their unjudged documents are scored as well.
    across_teams
        Whether only systems of different teams are compared; by default every pair is.
    samples, seed
        The number of resamples of bootstrap and permutation, and their seed.
    """

    tests: tuple[str, ...] = ("t",)
    alpha: float = 0.05
    persistence: float = 0.98
    condensed: bool = False
    across_teams: bool = False
    samples: int = SAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = next((test for test in self.tests if test not in TESTS), None)
        if unknown is not None:
            raise ReliabilityError(f"No test {unknown!r}: {', '.join(TESTS)}.{did_you_mean(unknown, TESTS)}")
        if not self.tests:
            raise ReliabilityError(f"A study of pools needs a test: {', '.join(TESTS)}.")
        if not 0 < self.alpha < 1:
            raise ReliabilityError(f"The level of significance is between 0 and 1, got {self.alpha:g}.")
        if not 0 < self.persistence < 1:
            raise ReliabilityError(f"The persistence of the residual is between 0 and 1, got {self.persistence:g}.")


@dataclass(frozen=True)
class DecisionOutcome:
    """Decisions on pairs of systems against those by the reference."""

    pairs: Annotated[int, "The number of pairs of systems tested."]
    significant: Annotated[int, "The number of those that differ significantly."]
    discrimination: Annotated[float, "Their share."]
    tp: Annotated[int, "Pairs that differ in both."]
    fp: Annotated[int, "Pairs that differ by these judgments alone, or with opposite winners."]
    fn: Annotated[int, "Pairs that differ by the reference alone."]
    tn: Annotated[int, "Pairs that differ in neither."]
    opposite: Annotated[int, "The number of pairs with opposite winners."]
    concordance: Annotated[float, "The share of pairs with the same decision."]
    p_counts: Annotated[
        float,
        "The p-value of a different number of significant pairs than by the reference, as if pairs were independent.",
    ]


@dataclass(frozen=True)
class ScoreMovement:
    """Scores of lists against those by the reference."""

    rises: Annotated[float, "The share of lists whose score rises once the rest of the reference is judged."]
    stays: Annotated[float, "The share whose score stays."]
    falls: Annotated[float, "The share whose score falls."]
    change: Annotated[float, "The score by these judgments minus that by the reference, mean over lists."]
    largest_change: Annotated[float, "The one that is largest in size."]


@dataclass(frozen=True)
class PoolRow:
    """One measure, by one test, with some of the judgments."""

    metric: Annotated[str, "The measure."]
    test: Annotated[str, "The test of pairs of systems."]
    lists: Annotated[str, "``whole`` or ``condensed``."]
    unjudged_as: Annotated[str, "What unjudged documents are taken for: ``not relevant`` or ``left out``."]
    cut: Annotated[str, "The judgments that were kept."]
    kind: Annotated[str, "``depth``, ``share`` or ``team``."]
    value: Annotated[float, "The depth or share; null for a team."]
    residual: Annotated[
        float, "The RBP residual of the lists: the part of a score that rests on unjudged documents, mean."
    ]
    largest_residual: Annotated[float, "The largest RBP residual."]
    decisions: Annotated[DecisionOutcome, FLAT]
    tau: Annotated[float, "Kendall's tau between the order of all systems and that by the reference."]
    scores: Annotated[ScoreMovement, FLAT]


@dataclass(frozen=True)
class CutSequence:
    """A sequence of cuts, for one measure."""

    metric: Annotated[str, "The measure."]
    test: Annotated[str, "The test of pairs of systems."]
    lists: Annotated[str, "``whole`` or ``condensed``."]
    kind: Annotated[str, "The kind of cuts."]


@dataclass(frozen=True)
class PoolTrend(CutSequence):
    """How decisions and scores move from cut to cut, the reference left out."""

    cuts: Annotated[int, "The number of cuts."]
    pairs: Annotated[int, "The number of pairs of systems."]
    straddling: Annotated[float, "The share of pairs that are significant by some of these cuts and not by others."]
    falling: Annotated[float, "The share of pairs whose p falls with every cut that keeps more judgments: tau is -1."]
    rising: Annotated[float, "The share of pairs whose p rises with every such cut: tau is 1."]
    straddling_falling: Annotated[float, "The share of straddling pairs among the falling."]
    straddling_rising: Annotated[float, "The share of straddling pairs among the rising."]
    tau_difference: Annotated[
        float,
        "Kendall's tau between the residual of a list and the difference of its score by the cut to its score by the "
        "reference.",
    ]
    tau_ratio: Annotated[float, "The same with the ratio of the scores."]


@dataclass(frozen=True)
class TrendBar(CutSequence):
    """Pairs of systems whose p-values have the same trend."""

    tau: Annotated[float, "Kendall's tau between the cuts, the smallest first, and the p-values of a pair."]
    significant: Annotated[int, "The number of pairs that are significant by every cut."]
    straddling: Annotated[int, "The number of those by some."]
    undecided: Annotated[int, "The number of those by none.", Named("open")]


@dataclass(frozen=True, eq=False, repr=False)
class PoolOutcomes(Record):
    """The outcomes of one measure."""

    rows: tuple[PoolRow, ...]
    trends: tuple[PoolTrend, ...]
    bars: tuple[TrendBar, ...]


def residuals(lists: Lists, persistence: float) -> Floats:
    r"""Return the RBP residual of each list: what unjudged documents could add to its score, shape (system, query).

    .. math:: (1-p) \sum_{i \notin J} p^{i-1}

    Ranks past the end of a list count as unjudged: the list was cut there.
    """
    low, high = bounds(parse(f"RBP(p={persistence})"), lists)
    return np.asarray(high - low)


def decision_outcome(found: Ints, reference: Ints) -> DecisionOutcome:
    """Return the counts of two sets of decisions on the same pairs, and what follows from them.

    >>> decision_outcome(np.array([1, 1, 0, 0, -1]), np.array([1, 0, -1, 0, 1])).concordance
    0.4
    """
    table = two_way(found, reference)
    counts = int((found != 0).sum()), int((reference != 0).sum())
    return DecisionOutcome(
        pairs=table.pairs,
        significant=counts[0],
        discrimination=table.discrimination,
        tp=table.tp,
        fp=table.fp,
        fn=table.fn,
        tn=table.tn,
        opposite=int((found * reference < 0).sum()),
        concordance=table.concordance,
        p_counts=compare_counts(*counts, n=table.pairs)[1] if table.pairs else float("nan"),
    )


def movement(values: Floats, reference: Floats) -> ScoreMovement:
    """Return how scores by some judgments, shape (system, query), differ from those by the reference.

    >>> movement(np.array([[0.5, 0.2]]), np.array([[0.4, 0.2]])).falls
    0.5
    """
    gap = values - reference
    sign = signs(gap)
    return ScoreMovement(
        rises=float((sign < 0).mean()),
        stays=float((sign == 0).mean()),
        falls=float((sign > 0).mean()),
        change=float(gap.mean()),
        largest_change=float(gap.flat[np.argmax(np.abs(gap))]),
    )


def compare_pools(
    pool: ReferencePool, cuts: Sequence[Cut], metric: Metric, options: PoolOptions | None = None
) -> PoolOutcomes:
    """Score and test every pair of systems by each cut, and compare the outcomes with those by the reference.

    The reference is scored by its whole lists, and condensed lists are compared with that too.

    Parameters
    ----------
    pool, cuts
        The reference, and some of its judgments at a time.
    metric
        The measure.
    options
        How systems are compared.

    Examples
    --------
    >>> from probeval.studies.pools import choose_pool, depth_cuts
    >>> from probeval.relevance import synthetic_campaign
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=20, depth=20))
    >>> found = compare_pools(pool, depth_cuts(pool, [5, 10]), parse("AP"))
    >>> [(row.cut, round(row.decisions.concordance, 2)) for row in found.rows]
    [('depth 5', 0.87), ('depth 10', 0.93), ('depth 20', 1.0)]
    """
    options = PoolOptions() if options is None else options
    study = _Scored(pool, cuts, metric, options)
    rows: list[PoolRow] = []
    trends: list[PoolTrend] = []
    bars: list[TrendBar] = []
    for list_kind in ASSUMPTIONS if options.condensed else ("whole",):
        values = [study.values(i, list_kind) for i in range(len(cuts))]
        for test in options.tests:
            p = study.p_values(values, test)
            rows += [study.row(i, list_kind, test, values[i], p[i]) for i in range(len(cuts))]
            for kind in SEQUENCES:
                at = [i for i, cut in enumerate(cuts) if cut.kind == kind and not study.whole[i]]
                if len(at) > 1:
                    trend, found = study.trend(at, list_kind, test, values, p)
                    trends.append(trend)
                    bars += found
    return PoolOutcomes(tuple(rows), tuple(trends), tuple(bars))


class _Scored:
    """The lists of each cut, and the pairs of systems that are compared."""

    def __init__(self, pool: ReferencePool, cuts: Sequence[Cut], metric: Metric, options: PoolOptions) -> None:
        self.cuts, self.metric, self.options = cuts, metric, options
        self.lists = [pool.lists(cut.kept) for cut in cuts]
        self.whole = [bool((cut.kept == pool.judged).all()) for cut in cuts]
        self.residuals = [residuals(lists, options.persistence) for lists in self.lists]
        self.reference = metric.scores(pool.lists(pool.judged))
        self.a, self.b = pair_index(len(pool.teams))
        if options.across_teams:
            teams = np.array(pool.teams, dtype=object)
            others = np.asarray(teams[self.a] != teams[self.b])
            if not others.any():
                raise ReliabilityError(f"{pool.campaign}: all systems are of one team. Compare those of one team too.")
            self.a, self.b = self.a[others], self.b[others]
        self.reference_p = {test: self._tested(self.reference, test) for test in options.tests}

    def values(self, i: int, list_kind: str) -> Floats:
        """Return the scores by a cut, shape (system, query)."""
        lists = self.lists[i]
        return self.metric.scores(lists.condensed() if list_kind == "condensed" else lists)

    def p_values(self, values: Sequence[Floats], test: str) -> list[Floats]:
        """Return the p-values of all pairs by each cut."""
        return [
            self.reference_p[test] if np.array_equal(scores, self.reference) else self._tested(scores, test)
            for scores in values
        ]

    def _tested(self, values: Floats, test: str) -> Floats:
        gap = differences(values, self.a, self.b)
        rng = stream(self.options.seed, Purpose.SPLITS)
        return run_test(test, gap, samples=self.options.samples, rng=rng)[1]

    def _decided(self, values: Floats, p: Floats) -> Ints:
        gap = (values[self.a] - values[self.b]).mean(axis=1)
        return signed(gap, p, alpha=self.options.alpha)

    def _pairs(self, cut: Cut) -> Bools:
        """Return the pairs that are looked at: all, or those with one system of the team that is left out."""
        if cut.systems.all():
            return np.ones(len(self.a), dtype=bool)
        return np.asarray(cut.systems[self.a] != cut.systems[self.b])

    def row(self, i: int, list_kind: str, test: str, values: Floats, p: Floats) -> PoolRow:
        """Return the outcome of one cut."""
        cut, residual = self.cuts[i], self.residuals[i][self.cuts[i].systems]
        at = self._pairs(cut)
        found, reference = self._decided(values, p), self._decided(self.reference, self.reference_p[test])
        return PoolRow(
            metric=str(self.metric),
            test=test,
            lists=list_kind,
            unjudged_as=ASSUMPTIONS[list_kind],
            cut=cut.name,
            kind=cut.kind,
            value=cut.value,
            residual=float(residual.mean()),
            largest_residual=float(residual.max()),
            decisions=decision_outcome(found[at], reference[at]),
            tau=kendall(values.mean(axis=1), self.reference.mean(axis=1)),
            scores=movement(values[cut.systems], self.reference[cut.systems]),
        )

    def trend(
        self, at: Sequence[int], list_kind: str, test: str, values: Sequence[Floats], p: Sequence[Floats]
    ) -> tuple[PoolTrend, list[TrendBar]]:
        """Return how decisions and scores move over a sequence of cuts."""
        tested = np.stack([p[i] for i in at])
        tau = p_trend([self.cuts[i].value for i in at], tested)
        across = straddling(tested, alpha=self.options.alpha)
        always = (tested < self.options.alpha).all(axis=0)
        falling, rising = tau < -END, tau > END
        residual = np.concatenate([self.residuals[i].ravel() for i in at])
        reference = np.tile(self.reference.ravel(), len(at))
        scores = np.concatenate([values[i].ravel() for i in at])
        positive = reference > 0
        sequence = str(self.metric), test, list_kind, self.cuts[at[0]].kind
        trend = PoolTrend(
            *sequence,
            cuts=len(at),
            pairs=len(tau),
            straddling=float(across.mean()),
            falling=float(falling.mean()),
            rising=float(rising.mean()),
            straddling_falling=_share(across, falling),
            straddling_rising=_share(across, rising),
            tau_difference=_tau(residual, scores - reference),
            tau_ratio=_tau(residual[positive], scores[positive] / reference[positive]),
        )
        place = np.round(tau, DECIMALS)
        bars = [
            TrendBar(
                *sequence,
                tau=float(value),
                significant=int((always & here).sum()),
                straddling=int((across & here).sum()),
                undecided=int((~always & ~across & here).sum()),
            )
            for value, here in ((value, place == value) for value in np.unique(place))
        ]
        return trend, bars


def _share(found: Bools, among: Bools) -> float:
    """Return the share of the marked pairs that is found; NaN if none is marked."""
    return float(found[among].mean()) if among.any() else float("nan")


def _tau(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b of long columns, in n log n steps."""
    from scipy.stats import kendalltau

    x, y = np.round(x, DECIMALS), np.round(y, DECIMALS)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(kendalltau(x, y).statistic)
