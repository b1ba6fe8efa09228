"""Meta-evaluation: measures, scales of grades and significance tests compared on collections.

The power, conflicts and self-agreement of tests on the scores of a measure, and its reliability. See
docs/theory/significance.md#meta.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.display import Table
from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.metrics import Measured
from probeval.reliability.coefficients import Estimate
from probeval.reliability.gstudy import gstudy
from probeval.reliability.paired import TESTS, differences, pair_index, run_test
from probeval.reliability.resampling import RESAMPLED, Resamples
from probeval.reliability.splithalf import BINS, OUTCOMES, SplitHalf, split_halves
from probeval.results import Result, key, rows
from probeval.streams import Purpose, stream
from probeval.studies.collections import CollectionStudy

__all__ = [
    "ALPHAS",
    "RATES",
    "SAMPLES",
    "SPLITS",
    "LevelRates",
    "MetaCollection",
    "MetaStudy",
    "PStability",
    "PairTests",
    "StudiedMeasure",
    "check_alphas",
    "study_measure",
]

ALPHAS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
SPLITS = 100  # random halves of the queries
SAMPLES = 10_000  # resamples of bootstrap and permutation: p down to .0001
MIN_SYSTEMS, MIN_QUERIES = 2, 4
RATES = ("discrimination", "nonsignificance", *OUTCOMES, "conflict")
MEASURE_RATES = ("discrimination", "nonsignificance", "success", "minor_conflict", "major_conflict", "conflict")
USUAL_ALPHA = 0.05  # tables show the level nearest to it
LEVEL_TITLES = {
    "discrimination": "Discrimination by alpha",
    "conflict": "Conflicts by alpha (exact where they equal alpha)",
}


@dataclass(frozen=True)
class LevelRates:
    """A test at one level of significance."""

    alpha: Annotated[float, "The level of significance."]
    discrimination: Annotated[float, "The share of pairs that differ significantly on all queries."]
    nonsignificance: Annotated[float, "The share of pairs that do not differ significantly on a half of the queries."]
    success: Annotated[float, "Of those that do, the share with the same outcome on the other half."]
    lack_of_power: Annotated[float, "The share that does not differ significantly on the other half."]
    minor_conflict: Annotated[float, "The share with the other system ahead on the other half, not significantly."]
    major_conflict: Annotated[float, "The share with the other system significantly ahead on the other half."]
    conflict: Annotated[float, "Both conflicts together."]


@dataclass(frozen=True)
class PStability:
    """The self-agreement of a test: the root mean square difference of two p-values, by a bin of the first."""

    low: Annotated[float, "The lower edge of the bin."]
    high: Annotated[float, "The upper edge."]
    pairs: Annotated[int, "The number of pairs in it."]
    rms: Annotated[float, "The root mean square difference; null in an empty bin."]


@dataclass(frozen=True, eq=False, repr=False)
class PairTests(Result):
    """A test of all pairs of systems: on all queries, and on both halves of many splits, at several levels.

    Parameters
    ----------
    alphas
        The levels of significance.
    discrimination
        The share of pairs that differ significantly on all queries, at each level, shape (alpha,).
    comparisons
        The number of pairs on first halves.
    significant, outcomes
        Those that differ significantly there, shape (alpha,), and their outcomes on the second half, shape (alpha,
        outcome), in the order of :data:`~probeval.reliability.OUTCOMES`.
    binned, squares
        The number of p-values of first halves in each of :data:`~probeval.reliability.BINS` and, last, in all; and
        the sums of their squared differences from those of second halves, shape (bin + 1,).
    """

    test: Annotated[str, "Its name; or ``all``, for several together."]
    alphas: tuple[float, ...]
    discrimination: Floats
    comparisons: int
    significant: Ints
    outcomes: Ints
    binned: Ints
    squares: Floats

    @classmethod
    def of(cls, halves: SplitHalf, p: Floats, alphas: Sequence[float]) -> PairTests:
        """Build from the p-values on halves, and from those on all queries, shape (pair,)."""
        counts = [halves.counts(alpha=alpha) for alpha in alphas]
        bins, (first, second) = halves.stability(), halves.p
        known = ~np.isnan(first - second)
        whole = float(((first - second)[known] ** 2).sum())
        return cls(
            test=halves.test,
            alphas=tuple(alphas),
            discrimination=np.array([np.mean(p < alpha) for alpha in alphas]),
            comparisons=counts[0]["comparisons"],
            significant=np.array([c["significant"] for c in counts]),
            outcomes=np.array([[c[name] for name in OUTCOMES] for c in counts]),
            binned=np.append(bins["pairs"], known.sum()),
            squares=np.append(np.nan_to_num(bins["rms"] ** 2 * bins["pairs"]), whole),
        )

    @classmethod
    def pool(cls, tests: Sequence[PairTests], *, name: str = "all") -> PairTests:
        """Return several together, as if their pairs were those of one: counts add up, shares of pairs are averaged."""
        return cls(
            test=name,
            alphas=tests[0].alphas,
            discrimination=np.mean([t.discrimination for t in tests], axis=0),
            comparisons=sum(t.comparisons for t in tests),
            significant=np.sum([t.significant for t in tests], axis=0),
            outcomes=np.sum([t.outcomes for t in tests], axis=0),
            binned=np.sum([t.binned for t in tests], axis=0),
            squares=np.sum([t.squares for t in tests], axis=0),
        )

    @key
    def rates(self) -> tuple[LevelRates, ...]:
        """One entry per level; see :meth:`SplitHalf.rates`."""
        found = np.where(self.significant > 0, self.significant, np.nan)
        shares = dict(zip(OUTCOMES, (self.outcomes / found[:, None]).T, strict=True))
        return rows(
            LevelRates,
            alpha=self.alphas,
            discrimination=self.discrimination,
            nonsignificance=1 - self.significant / max(self.comparisons, 1),
            **shares,
            conflict=shares["minor_conflict"] + shares["major_conflict"],
        )

    @key
    def stability(self) -> tuple[PStability, ...]:
        """One entry per bin of the first p."""
        low, high = zip(*pairwise(BINS), strict=True)
        rms = np.sqrt(self.squares / np.where(self.binned > 0, self.binned, np.nan))
        return rows(PStability, low=low, high=high, pairs=self.binned[:-1], rms=rms[:-1])

    @key
    def exactness(self) -> float:
        r"""The relative distance of conflicts from the nominal level, over all levels; 0 is exact.

        It is the root mean square over levels of the relative error:

        .. math:: \sqrt{\frac{1}{n} \sum_\alpha \left(\frac{c_\alpha - \alpha}{\alpha}\right)^2}

        with :math:`c_\alpha` the conflict rate at level :math:`\alpha`. 0 for a test that is contradicted as often as
        its level states; 1 for one that never is. NaN if a level has no significant pair.
        """
        off = np.array([rates.conflict / rates.alpha - 1 for rates in self.rates])
        return float(np.sqrt(np.mean(off**2)))

    @key
    def p_rms(self) -> float:
        """The root mean square difference of its p-values on two halves."""
        return float(np.sqrt(self.squares[-1] / self.binned[-1])) if self.binned[-1] else float("nan")

    def at(self, alpha: float) -> LevelRates:
        """The rates at one of the levels."""
        return self.rates[self.alphas.index(alpha)]

    def _headline(self) -> str:
        return f"{self.test}, {self.comparisons:,} comparisons on halves"


@dataclass(frozen=True, eq=False, repr=False)
class StudiedMeasure(Result):
    """A measure on a scale, studied on one collection."""

    metric: Annotated[str, "The measure."]
    scale: Annotated[str, "The scale of the grades."]
    systems: int
    queries: int
    erho2: Annotated[Estimate, "The reliability of differences between systems, as a G-study gives it."]
    phi: Annotated[Estimate, "The reliability of scores."]
    tests: Annotated[tuple[PairTests, ...], "One entry per test."]
    preference_distance: Annotated[
        float, "The distance of users from always preferring the better list; null where nothing is published."
    ] = float("nan")
    satisfaction_distance: Annotated[
        float, "The distance of the share of satisfied users from the score; null where nothing is published."
    ] = float("nan")
    notes: tuple[str, ...] = ()  # warnings of the G-study

    @property
    def together(self) -> PairTests:
        """All tests together."""
        return PairTests.pool(self.tests)

    def to_frame(self) -> pd.DataFrame:
        """One row per test and level."""
        tables = [
            tested.to_frame().assign(test=tested.test, exactness=tested.exactness, p_rms=tested.p_rms)
            for tested in self.tests
        ]
        found = pd.concat(tables, ignore_index=True).assign(metric=self.metric, scale=self.scale, **self.figures())
        labels = ["metric", "scale", "test", "alpha"]
        return found[[*labels, *(str(name) for name in found.columns if name not in labels)]]

    def figures(self) -> dict[str, float]:
        """Reliability with its intervals, and the distances to users, as columns of a table."""
        return {
            **self.erho2.columns("erho2"),
            **self.phi.columns("phi"),
            "preference_distance": self.preference_distance,
            "satisfaction_distance": self.satisfaction_distance,
        }

    def _headline(self) -> str:
        return f"{self.metric} on {self.scale}, {self.systems} systems, {self.queries} queries"


@dataclass(frozen=True, eq=False, repr=False)
class MetaCollection(Result):
    """Measures, scales and tests compared on one collection."""

    campaign: Annotated[str, "The name of the collection."]
    measures: Annotated[tuple[StudiedMeasure, ...], "One entry per measure and scale."]

    @key
    def systems(self) -> int:
        """The number of systems."""
        return self.measures[0].systems

    @key
    def queries(self) -> int:
        """The number of queries."""
        return self.measures[0].queries

    @key
    def tests(self) -> tuple[PairTests, ...]:
        """One entry per test, all measures and scales together."""
        return tuple(
            PairTests.pool(same, name=same[0].test) for same in zip(*(m.tests for m in self.measures), strict=True)
        )

    def _headline(self) -> str:
        return f"{self.campaign}, {len(self.measures)} measures, {len(self.tests)} tests"

    def to_frame(self) -> pd.DataFrame:
        """One row per measure, scale, test and level."""
        return pd.concat([measure.to_frame() for measure in self.measures], ignore_index=True)

    def measures_frame(self, alpha: float) -> pd.DataFrame:
        """One row per measure and scale: all tests together at one level, reliability, and users."""
        return pd.DataFrame(
            [
                {"metric": m.metric, "scale": m.scale, **_rates(m.together, alpha, MEASURE_RATES), **m.figures()}
                for m in self.measures
            ]
        )

    def tests_frame(self, alpha: float) -> pd.DataFrame:
        """One row per test: all measures and scales together at one level, exactness and self-agreement."""
        return pd.DataFrame(
            [
                {"test": t.test, **_rates(t, alpha, RATES), "exactness": t.exactness, "p_rms": t.p_rms}
                for t in self.tests
            ]
        )

    def levels_frame(self, rate: str) -> pd.DataFrame:
        """One row per level and one column per test: a rate of :data:`RATES`, all measures and scales together."""
        columns = {t.test: [getattr(rates, rate) for rates in t.rates] for t in self.tests}
        return pd.DataFrame({"alpha": self.tests[0].alphas, **columns})

    def stability_frame(self) -> pd.DataFrame:
        """One row per bin of p and one column per test: the root mean square difference of two p-values."""
        bins = {"p above": BINS[:-1], "up to": BINS[1:]}
        return pd.DataFrame({**bins, **{t.test: [one.rms for one in t.stability] for t in self.tests}})


@dataclass(frozen=True, eq=False, repr=False)
class MetaStudy(CollectionStudy[MetaCollection]):
    """Measures, scales and tests compared on collections."""

    campaigns: Annotated[tuple[MetaCollection, ...], "One entry per collection."]
    alphas: Annotated[tuple[float, ...], "The levels of significance."]
    level: Annotated[float, "The probability of intervals."]
    splits: Annotated[int, "The number of random halves of the queries."]
    samples: Annotated[int, "The number of resamples of bootstrap and permutation."]
    seed: Annotated[int, "The seed."]

    @property
    def alpha(self) -> float:
        """The level that tables show: the nearest to .05."""
        return min(self.alphas, key=lambda alpha: abs(alpha - USUAL_ALPHA))

    def _headline(self) -> str:
        first = self.campaigns[0]
        where = self.names[0] if len(self.names) == 1 else f"{len(self.names)} campaigns"
        measures, tests = len(first.measures), len(first.tests)
        return f"{measures} measure{'s' * (measures > 1)}, {tests} test{'s' * (tests > 1)} on {where}"

    def tables(self) -> tuple[Table, ...]:
        """Measures and scales; tests; then discrimination and conflicts by level, if there are several."""
        at = f"at alpha {self.alpha:g}"
        measures = self.side_by_side(lambda part: part.measures_frame(self.alpha))
        empty = [name for name in ("preference_distance", "satisfaction_distance") if measures[name].isna().all()]
        by_level = LEVEL_TITLES if len(self.alphas) > 1 else {}
        return (
            Table(
                measures.drop(columns=["minor_conflict", "major_conflict", *empty]),
                f"Measures and scales, all tests together, {at}",
                intervals=("erho2", "erho2_lower", "erho2_upper"),
            ),
            Table(
                self.side_by_side(lambda part: part.tests_frame(self.alpha)),
                f"Tests, all measures and scales together, {at}",
            ),
            *(
                Table(self.side_by_side(lambda part, rate=rate: part.levels_frame(rate)), title, {"alpha": 3})  # type: ignore[misc]
                for rate, title in by_level.items()
            ),
            Table(
                self.side_by_side(lambda part: part.stability_frame()),
                "Self-agreement of tests, by bins of the p-value on one half",
                {"low": 4, "high": 4},
            ),
        )

    def sentences(self) -> tuple[str, ...]:
        """What the columns mean, and how the study was made."""
        halves = f"{self.splits:,} random halves of the queries"
        return (
            f"Discrimination: pairs of systems that differ significantly, without correction. The other rates are of "
            f"{halves}: pairs not significant on a half; of the others, those confirmed on the other half (success) "
            "and contradicted by it, not significantly (minor conflict) or significantly (major).",
            "Exactness: relative distance of conflicts from alpha, 0 at best. p_rms: difference between the p-values "
            "of a test on two halves.",
            f"{self.level:.0%} intervals of E rho^2 and Phi are for sampling of queries.",
        )


def _rates(tested: PairTests, alpha: float, names: Sequence[str]) -> dict[str, float]:
    """Some rates of a test at one level."""
    return {name: getattr(tested.at(alpha), name) for name in names}


def check_alphas(alphas: Sequence[float]) -> tuple[float, ...]:
    """Return levels of significance; they must rise, between 0 and 1."""
    levels = tuple(map(float, alphas))
    if not levels or min(levels) <= 0 or max(levels) >= 1 or any(a >= b for a, b in pairwise(levels)):
        shown = ", ".join(f"{a:g}" for a in levels) or "none"
        raise ReliabilityError(f"Levels of significance must be between 0 and 1, in ascending order; got {shown}.")
    return levels


def study_measure(
    scores: Measured,
    *,
    tests: Sequence[str] = tuple(TESTS),
    alphas: Sequence[float] = ALPHAS,
    splits: int = SPLITS,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
    campaign: str = "",
    preference_distance: float = float("nan"),
    satisfaction_distance: float = float("nan"),
) -> StudiedMeasure:
    """Study a measure: how well tests tell systems apart by it, how often they contradict themselves, its reliability.

    Parameters
    ----------
    scores
        The score of every system on every query.
    tests, alphas
        Names of :data:`~probeval.reliability.TESTS`, and levels of significance, in rising order. P-values are not
        corrected.
    splits, samples
        The number of random halves of the queries, and of resamples of bootstrap and permutation.
    level
        The probability of the intervals of E rho^2 and Phi.
    seed, campaign
        The seed, and the name of the collection: all its measures get the same halves and resamples.
    preference_distance, satisfaction_distance
        The distances to its users: see :class:`StudiedMeasure`.

    Examples
    --------
    >>> from probeval import measure, synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=5, queries=40, depth=5, sds={"system": 1.5})
    >>> found = study_measure(measure(campaign.runs, campaign.judgments, "nDCG@5"), tests=["t"], alphas=[0.05])
    >>> found.tests[0].to_frame()[["alpha", "discrimination", "nonsignificance"]].round(3)
       alpha  discrimination  nonsignificance
    0   0.05             0.6            0.386
    """
    if len(scores.systems) < MIN_SYSTEMS or len(scores.queries) < MIN_QUERIES:
        raise ReliabilityError(
            f"{campaign or scores.metric}: a meta-evaluation needs at least {MIN_SYSTEMS} systems and "
            f"{MIN_QUERIES} queries, got {len(scores.systems)} and {len(scores.queries)}."
        )
    levels = check_alphas(alphas)
    rng = stream(seed, campaign, Purpose.SPLITS)
    halves = split_halves(scores.values, tests=tests, splits=splits, samples=samples, rng=rng)
    found = tuple(PairTests.of(half, _p_values(half.test, scores.values, samples, rng), levels) for half in halves)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProbevalWarning)
        study = gstudy(scores, rng=stream(seed), level=level)
    return StudiedMeasure(
        metric=str(scores.metric),
        scale=str(scores.scale),
        systems=len(scores.systems),
        queries=len(scores.queries),
        erho2=study.erho2,
        phi=study.phi,
        tests=found,
        preference_distance=preference_distance,
        satisfaction_distance=satisfaction_distance,
        notes=tuple(str(warning.message) for warning in caught),
    )


def _p_values(test: str, values: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Return the p-value of every pair on all queries, shape (pair,)."""
    if test in RESAMPLED and not np.isnan(values).any():
        return Resamples.draw(test, values.shape[1], samples=samples, rng=rng).p(values)
    return run_test(test, differences(values, *pair_index(len(values))), samples=samples, rng=rng)[1]
