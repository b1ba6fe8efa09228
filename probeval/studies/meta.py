"""Measures, scales and tests compared on several campaigns: the result and its exits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import pandas as pd

from probeval.display import Record, Table
from probeval.reliability.coefficients import Estimate, EstimateDocument
from probeval.schema import records
from probeval.studies.collections import CollectionStudy
from probeval.studies.measures import RATES, PairTests, StudiedMeasure

__all__ = ["MetaCampaign", "MetaStudy", "MetaStudyDocument"]

USUAL = 0.05  # tables show the level nearest to it
SHOWN = ("discrimination", "nonsignificance", "success", "minor_conflict", "major_conflict", "conflict")


class RatesDocument(TypedDict):
    """A test at one level of significance.

    Parameters
    ----------
    discrimination
        The share of pairs that differ significantly on all queries.
    nonsignificance
        The share of pairs that do not differ significantly on a half of the queries.
    success, lack_of_power, minor_conflict, major_conflict
        Of those that do, the shares of outcomes on the other half; they sum to 1.
    conflict
        Both conflicts together.
    """

    alpha: float
    discrimination: float
    nonsignificance: float
    success: float
    lack_of_power: float
    minor_conflict: float
    major_conflict: float
    conflict: float


class StabilityDocument(TypedDict):
    """The self-agreement of a test: the root mean square difference of two p-values, by a bin of the first."""

    low: float
    high: float
    pairs: int
    rms: float


class PairTestsDocument(TypedDict):
    """A test.

    Parameters
    ----------
    test
        Its name.
    exactness
        The relative distance of conflicts from the nominal level, over all levels; 0 is exact.
    p_rms
        The root mean square difference of its p-values on two halves.
    rates, stability
        One entry per level, and one per bin of p.
    """

    test: str
    exactness: float
    p_rms: float
    rates: list[RatesDocument]
    stability: list[StabilityDocument]


class StudiedMeasureDocument(TypedDict):
    """A measure on a scale.

    Parameters
    ----------
    erho2, phi
        The reliability of differences between systems, and of scores.
    preference_distance, satisfaction_distance
        The distance of users from always preferring the better list, and of the share of satisfied users from the
        score; null where nothing is published.
    tests
        One entry per test.
    """

    metric: str
    scale: str
    erho2: EstimateDocument
    phi: EstimateDocument
    preference_distance: float
    satisfaction_distance: float
    tests: list[PairTestsDocument]


class MetaCampaignDocument(TypedDict):
    """A campaign.

    Parameters
    ----------
    systems, queries
        Their numbers.
    measures
        One entry per measure and scale.
    tests
        One entry per test, all measures and scales together.
    """

    campaign: str
    systems: int
    queries: int
    measures: list[StudiedMeasureDocument]
    tests: list[PairTestsDocument]


class MetaStudyDocument(TypedDict):
    """Measures, scales and tests compared on campaigns.

    Parameters
    ----------
    alphas, level
        The levels of significance, and the probability of intervals.
    splits, samples, seed
        The number of random halves and of resamples, and the seed.
    campaigns
        One entry per campaign.
    """

    alphas: list[float]
    level: float
    splits: int
    samples: int
    seed: int
    campaigns: list[MetaCampaignDocument]


@dataclass(frozen=True, eq=False, repr=False)
class MetaCampaign(Record):
    """Measures, scales and tests compared on one campaign.

    Parameters
    ----------
    campaign
        Its name.
    measures
        One entry per measure and scale.
    """

    campaign: str
    measures: tuple[StudiedMeasure, ...]

    @property
    def tests(self) -> tuple[PairTests, ...]:
        """One entry per test, all measures and scales together."""
        return tuple(
            PairTests.pool(same, name=same[0].test) for same in zip(*(m.tests for m in self.measures), strict=True)
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per measure, scale, test and level."""
        rows = [
            tested.rates().assign(
                metric=measure.metric, scale=measure.scale, test=tested.test, exactness=tested.exactness,
                p_rms=tested.p_rms, **_reliability(measure), **_users(measure),
            )
            for measure in self.measures
            for tested in measure.tests
        ]  # fmt: skip
        frame = pd.concat(rows, ignore_index=True)
        labels = ["metric", "scale", "test", "alpha"]
        return frame[[*labels, *(str(name) for name in frame.columns if name not in labels)]]

    def measures_frame(self, alpha: float) -> pd.DataFrame:
        """One row per measure and scale: all tests together at one level, reliability, and users."""
        return pd.DataFrame(
            [
                {
                    "metric": measure.metric,
                    "scale": measure.scale,
                    **_at(measure.together, alpha, SHOWN),
                    **_reliability(measure),
                    **_users(measure),
                }
                for measure in self.measures
            ]
        )

    def tests_frame(self, alpha: float) -> pd.DataFrame:
        """One row per test: all measures and scales together at one level, exactness and self-agreement."""
        return pd.DataFrame(
            [
                {"test": t.test, **_at(t, alpha, RATES), "exactness": t.exactness, "p_rms": t.p_rms}
                for t in self.tests
            ]
        )  # fmt: skip

    def levels_frame(self, rate: str) -> pd.DataFrame:
        """One row per level and one column per test: a rate of :data:`RATES`, all measures and scales together."""
        tests = self.tests
        return pd.DataFrame({"alpha": tests[0].alphas, **{t.test: t.rates()[rate].to_numpy() for t in tests}})

    def stability_frame(self) -> pd.DataFrame:
        """One row per bin of p and one column per test: the root mean square difference of two p-values."""
        tests = self.tests
        bins = tests[0].stability()[["low", "high"]].rename(columns={"low": "p above", "high": "up to"})
        return bins.assign(**{t.test: t.stability()["rms"].to_numpy() for t in tests})

    def to_dict(self) -> MetaCampaignDocument:
        """The campaign as plain data for JSON."""
        first = self.measures[0]
        return {
            "campaign": self.campaign,
            "systems": first.systems,
            "queries": first.queries,
            "measures": [
                {
                    "metric": m.metric,
                    "scale": m.scale,
                    "erho2": m.erho2.to_dict(),
                    "phi": m.phi.to_dict(),
                    "preference_distance": m.preference_distance,
                    "satisfaction_distance": m.satisfaction_distance,
                    "tests": [_document(t) for t in m.tests],
                }
                for m in self.measures
            ],
            "tests": [_document(t) for t in self.tests],
        }


@dataclass(frozen=True, eq=False, repr=False)
class MetaStudy(CollectionStudy[MetaCampaign]):
    """Measures, scales and tests compared on campaigns.

    Parameters
    ----------
    campaigns
        The results of each.
    alphas, level
        The levels of significance, and the probability of intervals.
    splits, samples, seed
        The number of random halves and of resamples, and the seed.
    """

    alphas: tuple[float, ...]
    level: float
    splits: int
    samples: int
    seed: int

    @property
    def alpha(self) -> float:
        """The level that tables show: the nearest to .05."""
        return min(self.alphas, key=lambda alpha: abs(alpha - USUAL))

    def _headline(self) -> str:
        first = self.campaigns[0]
        where = self.names[0] if len(self.names) == 1 else f"{len(self.names)} campaigns"
        measures, tests = len(first.measures), len(first.tests)
        return f"{measures} measure{'s' * (measures > 1)}, {tests} test{'s' * (tests > 1)} on {where}"

    def to_dict(self) -> MetaStudyDocument:
        """The study as plain data for JSON."""
        return {
            "alphas": list(self.alphas),
            "level": self.level,
            "splits": self.splits,
            "samples": self.samples,
            "seed": self.seed,
            "campaigns": [part.to_dict() for part in self.campaigns],
        }

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


LEVEL_TITLES = {
    "discrimination": "Discrimination by alpha",
    "conflict": "Conflicts by alpha (exact where they equal alpha)",
}


def _at(tested: PairTests, alpha: float, rates: Sequence[str]) -> dict[str, float]:
    """The rates of a test at one level."""
    row = tested.rates().iloc[tested.alphas.index(alpha)]
    return {name: float(row[name]) for name in rates}


def _reliability(measure: StudiedMeasure) -> dict[str, float]:
    return {**_named("erho2", measure.erho2), **_named("phi", measure.phi)}


def _named(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_lower": estimate.lower, f"{name}_upper": estimate.upper}


def _users(measure: StudiedMeasure) -> dict[str, float]:
    return {"preference_distance": measure.preference_distance, "satisfaction_distance": measure.satisfaction_distance}


def _document(tested: PairTests) -> PairTestsDocument:
    return {
        "test": tested.test,
        "exactness": tested.exactness,
        "p_rms": tested.p_rms,
        "rates": records(tested.rates(), RatesDocument),
        "stability": records(tested.stability(), StabilityDocument),
    }
