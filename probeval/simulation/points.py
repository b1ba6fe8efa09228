"""One moment of a campaign against the truth: how right the ranking is, and whether it knows how right.

See docs/theory/calibration.md#null.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from probeval.arrays import Bools, Floats, Ints
from probeval.errors import ScoreError
from probeval.reliability.correlation import spearman
from probeval.reliability.paired import differences, pair_index, t_test
from probeval.reliability.twoway import signed
from probeval.scores import Ranking, Scores
from probeval.ties import TIE, signs

__all__ = ["BINS", "Bins", "Point", "measure_point", "significant_pairs", "tau_and_accuracy"]

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)  # of stated confidence; the last one is closed
ALPHA = 0.05  # of the paired t test that says which true differences are significant
LOW = 0.01  # the point of the null that centred coverage is held against


@dataclass(frozen=True)
class Bins:
    """Pairs of systems by stated confidence, true ties left out; one number a bin of :data:`BINS`.

    Parameters
    ----------
    pairs
        How many there are.
    stated
        The sum of their confidences.
    right
        How many of them stand in the true order; one without a stated direction counts half.
    """

    pairs: tuple[float, ...]
    stated: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def error(self) -> float:
        """The mean distance of a bin's accuracy from its mean confidence, bins weighted by their pairs."""
        n = sum(self.pairs)
        return sum(abs(r - s) for r, s in zip(self.right, self.stated, strict=True)) / n if n else float("nan")

    def rows(self) -> list[dict[str, float]]:
        """One row per bin: its edges, pairs, and the sums of confidence and of right directions."""
        names = ("low", "high", "pairs", "confidence", "accuracy")
        columns = (BINS[:-1], BINS[1:], self.pairs, self.stated, self.right)
        return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Point:
    """A ranking with so many judgments, against the ranking with all of them.

    Parameters
    ----------
    judged, fraction
        How many pairs are judged, and their share of the pool.
    confidence
        What is stated: the mean over pairs of systems.
    accuracy
        The share of pairs of systems in the true order; one tied on one side counts 1/2, on both 1.
    accuracy_significant
        The same, a wrong order forgiven where the true difference is not significant (paired t test, .05).
    tau, rho
        Kendall's tau-a, and Spearman's correlation (Pearson's of the ranks, ties sharing theirs).
    rmse_difference, mae
        Root mean squared error of the differences, mean absolute error of the scores.
    calibration_error
        The mean distance between accuracy and mean confidence over :data:`BINS`; true ties are left out.
    calibration_excess, calibration_p
        The error less what a perfect model would show on average, and the probability that it would show as much.
    coverage, centred_coverage
        The share of systems whose interval holds the true score; and the true score less the mean over systems.
    level_z
        The error of the mean score over its standard deviation.
    centred_coverage_null01
        What centred coverage would stay below once in a hundred times if the model were perfect.
    bins
        What the calibration error is made of.
    """

    judged: int
    fraction: float
    confidence: float
    accuracy: float
    accuracy_significant: float
    tau: float
    rho: float
    rmse_difference: float
    mae: float
    calibration_error: float
    calibration_excess: float
    calibration_p: float
    coverage: float
    centred_coverage: float
    level_z: float
    centred_coverage_null01: float
    bins: Bins

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, the bins left out."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "bins"}


def measure_point(
    scores: Scores,
    truth: Floats,
    *,
    draws: Floats,
    query_truth: Floats | None = None,
    level: float = 0.95,
) -> Point:
    r"""Hold a distribution of scores against the truth.

    One campaign has one truth, and its pairs of systems share documents: even a perfect model misses. So the
    calibration error is read against the errors that the same statements make on truths drawn from the model itself:

    .. math:: p = \frac{1 + |\{i : e_i \ge e\}|}{1 + n}

    Parameters
    ----------
    scores
        What is stated, with few judgments or none.
    truth
        The mean score of each system with all judgments, shape (system,).
    draws
        Truths drawn from the stated joint distribution, shape (n, system).
    query_truth
        The true score of every system on every query, shape (system, query); without it ``accuracy_significant`` is not
        known.
    level
        The probability that intervals are to hold.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from probeval.scores import evaluate
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5)
    >>> scores = evaluate(campaign.runs, FallbackModel([Uniform()]).predict(campaign, depth=5), "nDCG@5")
    >>> point = measure_point(scores, scores.mean, draws=scores.sample(100, np.random.default_rng(0)))
    >>> point.accuracy, point.confidence, point.calibration_error, point.calibration_p  # every pair is judged
    (1.0, 1.0, 0.0, 1.0)
    """
    n = len(scores.systems)
    if truth.shape != (n,) or draws.ndim != 2 or draws.shape[1] != n or not len(draws):
        raise ScoreError(f"{n} systems need as many true and drawn scores, got shapes {truth.shape} and {draws.shape}.")
    ranking = Ranking(scores, draws)
    a, b = np.triu_indices(n, k=1)
    said, true = (x[a] - x[b] for x in (scores.mean, truth))
    sign_said, sign_true, agrees = _agreement(said, true)
    better, worse = ranking.p_better[a, b], ranking.p_better[b, a]
    stated, direction = ranking.pair_confidence[a, b], np.sign(better - worse)
    bins = _bins(stated, direction, truth[None], a, b)
    null = _errors(_bins(stated, direction, draws, a, b))
    error = float(_errors(bins)[0])
    low, high = _centred_interval(scores, level)
    held = _inside(draws - draws.mean(axis=1, keepdims=True), low, high).mean(axis=1)
    centred = truth - truth.mean()
    return Point(
        judged=scores.judged,
        fraction=scores.judged / max(scores.pool, 1),
        confidence=ranking.confidence,
        accuracy=_mean(agrees),
        accuracy_significant=float("nan")
        if query_truth is None
        else _mean(np.where(significant_pairs(query_truth), agrees, 1.0)),
        tau=_mean(sign_said * sign_true),
        rho=spearman(scores.mean, truth),
        rmse_difference=float(np.sqrt(_mean((said - true) ** 2))),
        mae=float(np.abs(scores.mean - truth).mean()),
        calibration_error=error,
        calibration_excess=error - _mean(null[~np.isnan(null)]),
        calibration_p=float("nan") if np.isnan(error) else float((1 + np.sum(null >= error - TIE)) / (1 + len(null))),
        coverage=float(_inside(truth, *scores.intervals(level)).mean()),
        centred_coverage=float(_inside(centred, low, high).mean()),
        level_z=_level_z(scores, truth),
        centred_coverage_null01=float(np.quantile(held, LOW)),
        bins=Bins(*(tuple(float(x) for x in part[0]) for part in bins)),
    )


def tau_and_accuracy(said: Floats, true: Floats, *, among: Bools | None = None) -> tuple[float, float]:
    """Kendall's tau-a between two sets of scores, and the share of pairs of systems in the true order.

    ``among`` marks the pairs of systems that count, in the order of ``np.triu_indices``; all when not given.

    Examples
    --------
    >>> tau_and_accuracy(np.array([0.3, 0.2, 0.1]), np.array([0.5, 0.6, 0.1]))
    (0.3333333333333333, 0.6666666666666666)
    """
    a, b = np.triu_indices(len(said), k=1)
    if among is not None:
        a, b = a[among], b[among]
    sign_said, sign_true, agrees = _agreement(said[a] - said[b], true[a] - true[b])
    return _mean(sign_said * sign_true), _mean(agrees)


def _agreement(said: Floats, true: Floats) -> tuple[Floats, Floats, Floats]:
    """The signs of stated and true differences, and whether they agree: a tie on one side counts half."""
    sign_said, sign_true = signs(said), signs(true)
    agrees = np.where(sign_said == sign_true, 1.0, np.where(sign_said * sign_true == 0, 0.5, 0.0))
    return sign_said, sign_true, agrees


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _bins(stated: Floats, direction: Floats, truths: Floats, a: Ints, b: Ints) -> tuple[Floats, Floats, Floats]:
    """Pairs, summed confidence and right directions in each bin under each of several truths, shapes (truth, bin)."""
    member = np.equal(np.digitize(stated, BINS[1:-1])[:, None], np.arange(len(BINS) - 1)).astype(float)
    gap = truths[:, a] - truths[:, b]
    real = (np.abs(gap) >= TIE).astype(float)
    # A pair is right, half right (no direction stated) or wrong: (1 + sign x direction) / 2.
    right = (real + np.sign(gap) * real * direction) / 2
    return real @ member, real @ (member * stated[:, None]), right @ member


def _errors(bins: tuple[Floats, Floats, Floats]) -> Floats:
    """The calibration error under each truth, NaN where it has nothing but ties, shape (truth,)."""
    pairs, stated, right = bins
    n = pairs.sum(axis=1)
    return np.asarray(np.where(n > 0, np.abs(right - stated).sum(axis=1) / np.maximum(n, 1), np.nan))


def significant_pairs(query_truth: Floats) -> Bools:
    """Which true differences are significant by a paired t test over queries, in the order of ``np.triu_indices``."""
    gap = differences(query_truth, *pair_index(len(query_truth)))
    return np.asarray(signed(gap.mean(axis=-1), t_test(gap)[1], alpha=ALPHA) != 0)


def _centred_interval(scores: Scores, level: float) -> tuple[Floats, Floats]:
    """The interval of each system's score less the mean over systems, shapes (system,)."""
    tail = (1 - level) / 2
    if scores.family == "empirical":
        drawn = scores.joint.draws
        assert drawn is not None
        low, high = np.quantile(drawn - drawn.mean(axis=1, keepdims=True), [tail, 1 - tail], axis=0)
        return low, high
    n = len(scores.systems)
    contrast = np.eye(n) - 1 / n
    sd = np.sqrt(np.maximum(np.diag(contrast @ scores.covariance @ contrast), 0.0))
    freedom = max(len(scores.queries) - 1, 1)
    half = -float(stdtrit(freedom, tail) if scores.family == "t" else ndtri(tail)) * sd
    mean = scores.mean - scores.mean.mean()
    return mean - half, mean + half


def _inside(values: Floats, low: Floats, high: Floats) -> Bools:
    return (values >= low - TIE) & (values <= high + TIE)


def _level_z(scores: Scores, truth: Floats) -> float:
    """0 where the mean score is known and right, infinite where it is known and wrong."""
    error = float(scores.mean.mean() - truth.mean())
    variance = float(scores.covariance.mean())
    if abs(error) < TIE:
        return 0.0
    return error / np.sqrt(variance) if variance > TIE**2 else float(np.copysign(np.inf, error))
