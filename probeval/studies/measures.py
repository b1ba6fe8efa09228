"""Meta-evaluation of a measure: the power, conflicts and self-agreement of tests on its scores, and its reliability.

See docs/theory/significance.md#meta.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.display import Record
from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.metrics import Measured
from probeval.reliability.coefficients import Estimate
from probeval.reliability.gstudy import gstudy
from probeval.reliability.paired import TESTS, differences, pair_index, run_test
from probeval.reliability.resampling import RESAMPLED, Resamples
from probeval.reliability.splithalf import BINS, OUTCOMES, SplitHalf, split_halves
from probeval.streams import Purpose, stream

__all__ = ["ALPHAS", "RATES", "SAMPLES", "SPLITS", "PairTests", "StudiedMeasure", "check_alphas", "study_measure"]

ALPHAS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
SPLITS = 100  # random halves of the queries
SAMPLES = 10_000  # resamples of bootstrap and permutation: p down to .0001
LEAST_SYSTEMS, LEAST_QUERIES = 2, 4
RATES = ("discrimination", "nonsignificance", *OUTCOMES, "conflict")


@dataclass(frozen=True, eq=False, repr=False)
class PairTests(Record):
    """A test of all pairs of systems: on all queries, and on both halves of many splits, at several levels.

    Parameters
    ----------
    test
        Its name; or ``all``, for several together.
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

    test: str
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

    def rates(self) -> pd.DataFrame:
        """One row per level: alpha and :data:`RATES`; see :meth:`SplitHalf.rates`."""
        found = np.where(self.significant > 0, self.significant, np.nan)
        shares = dict(zip(OUTCOMES, (self.outcomes / found[:, None]).T, strict=True))
        return pd.DataFrame(
            {
                "alpha": self.alphas,
                "discrimination": self.discrimination,
                "nonsignificance": 1 - self.significant / max(self.comparisons, 1),
                **shares,
                "conflict": shares["minor_conflict"] + shares["major_conflict"],
            }
        )

    @property
    def exactness(self) -> float:
        r"""The distance of conflicts from the nominal level: the root mean square over levels of the relative error.

        .. math:: \sqrt{\frac{1}{n} \sum_\alpha \left(\frac{c_\alpha - \alpha}{\alpha}\right)^2}

        with :math:`c_\alpha` the conflict rate at level :math:`\alpha`. 0 for a test that is contradicted as often as
        its level states; 1 for one that never is. NaN if a level has no significant pair.
        """
        off = self.rates()["conflict"].to_numpy() / np.array(self.alphas) - 1
        return float(np.sqrt(np.mean(off**2)))

    @property
    def p_rms(self) -> float:
        """The disagreement of the test with itself: the root mean square difference of the p-values of two halves."""
        return float(np.sqrt(self.squares[-1] / self.binned[-1])) if self.binned[-1] else float("nan")

    def stability(self) -> pd.DataFrame:
        """One row per bin of the first p: low, high, pairs and the root mean square difference (rms)."""
        n = np.where(self.binned > 0, self.binned, np.nan)
        edges = pd.DataFrame(list(pairwise(BINS)), columns=["low", "high"])
        return edges.assign(pairs=self.binned[:-1], rms=np.sqrt(self.squares / n)[:-1])


@dataclass(frozen=True, eq=False, repr=False)
class StudiedMeasure(Record):
    """A measure on a scale, studied on one campaign.

    Parameters
    ----------
    metric, scale
        The measure and the scale of the grades.
    systems, queries
        Their numbers.
    erho2, phi
        The reliability of differences and of scores, as a G-study gives them.
    tests
        One entry per test.
    preference_distance
        The distance of users from always preferring the better list; NaN if no preferences are published for it.
    satisfaction_distance
        The distance of the share of satisfied users from the score; NaN without a published mapping.
    notes
        Warnings of the G-study.
    """

    metric: str
    scale: str
    systems: int
    queries: int
    erho2: Estimate
    phi: Estimate
    tests: tuple[PairTests, ...]
    preference_distance: float = float("nan")
    satisfaction_distance: float = float("nan")
    notes: tuple[str, ...] = ()

    @property
    def together(self) -> PairTests:
        """All tests together."""
        return PairTests.pool(self.tests)


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
        The seed, and the name of the campaign: all its measures get the same halves and resamples.
    preference_distance, satisfaction_distance
        The distances to its users: see :class:`StudiedMeasure`.

    Examples
    --------
    >>> from probeval import measure, synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=5, queries=40, depth=5, sds={"system": 1.5})
    >>> found = study_measure(measure(campaign.runs, campaign.judgments, "nDCG@5"), tests=["t"], alphas=[0.05])
    >>> found.tests[0].rates()[["alpha", "discrimination", "nonsignificance"]].round(3)
       alpha  discrimination  nonsignificance
    0   0.05             0.6            0.386
    """
    if len(scores.systems) < LEAST_SYSTEMS or len(scores.queries) < LEAST_QUERIES:
        raise ReliabilityError(
            f"{campaign or scores.metric}: a meta-evaluation needs at least {LEAST_SYSTEMS} systems and "
            f"{LEAST_QUERIES} queries, got {len(scores.systems)} and {len(scores.queries)}."
        )
    levels = check_alphas(alphas)
    rng = stream(seed, campaign, Purpose.SPLITS)
    halves = split_halves(scores.values, tests=tests, splits=splits, samples=samples, rng=rng)
    found = tuple(
        PairTests.of(half, _whole(half.test, scores.values, samples, rng), levels) for half in halves
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProbevalWarning)
        study = gstudy(scores, rng=stream(seed))
    return StudiedMeasure(
        metric=str(scores.metric),
        scale=str(scores.scale),
        systems=len(scores.systems),
        queries=len(scores.queries),
        erho2=study.coefficient("erho2", level=level),
        phi=study.coefficient("phi", level=level),
        tests=found,
        preference_distance=preference_distance,
        satisfaction_distance=satisfaction_distance,
        notes=tuple(str(warning.message) for warning in caught),
    )


def _whole(test: str, values: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Return the p-value of every pair on all queries, shape (pair,)."""
    if test in RESAMPLED and not np.isnan(values).any():
        return Resamples.draw(test, values.shape[1], samples=samples, rng=rng).p(values)
    return run_test(test, differences(values, *pair_index(len(values))), samples=samples, rng=rng)[1]
