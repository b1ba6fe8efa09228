"""The accuracy and calibration of a ranking, given the true scores.

See docs/theory/calibration.md#null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from probeval.arrays import Bools, Floats, Ints
from probeval.display import Record
from probeval.errors import ScoreError
from probeval.reliability.correlation import ap_correlation, spearman
from probeval.reliability.multiple import significant_signs
from probeval.results import HIDDEN
from probeval.scores import Ranking, Scores
from probeval.selection.errors import stated_sd
from probeval.ties import TIE, signs

__all__ = [
    "BINS",
    "Bins",
    "Point",
    "measure_point",
    "right_verdicts",
    "significant_pairs",
    "tau_and_accuracy",
    "top_tau",
]

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)  # of stated confidence; the last one is closed
ALPHA = 0.05  # of the test for significant true differences
TOP = 15  # systems at the top of the true ranking, of which tau is taken apart
LOW = 0.05  # the quantile of the null distribution of centred coverage


@dataclass(frozen=True, repr=False)
class Bins(Record):
    """Pairs of systems by stated confidence, true ties left out; one number per bin of :data:`BINS`.

    Parameters
    ----------
    pairs
        The number of pairs.
    stated
        The sum of their confidences.
    right
        The number of right verdicts; one without a stated direction counts half.
    """

    pairs: tuple[float, ...]
    stated: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def error(self) -> float:
        """The calibration error: the mean distance of accuracy from confidence over bins, weighted by pairs."""
        n = sum(self.pairs)
        return sum(abs(r - s) for r, s in zip(self.right, self.stated, strict=True)) / n if n else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per bin: its edges, pairs, and the sums of confidence and of right directions."""
        names = ("low", "high", "pairs", "confidence", "accuracy")
        columns = (BINS[:-1], BINS[1:], self.pairs, self.stated, self.right)
        return pd.DataFrame(dict(zip(names, columns, strict=True)))


@dataclass(frozen=True, repr=False)
class Point(Record):
    """The accuracy and calibration of a ranking after some judgments, against the ranking with all judgments."""

    judged: Annotated[int, "The number of judged pairs."]
    fraction: Annotated[float, "Their share of the pool."]
    confidence: Annotated[float, "The mean stated confidence over pairs of systems."]
    accuracy: Annotated[
        float,
        "The share of pairs of systems in the true order; a tie in one ranking counts 1/2, in both 1. With a rope, "
        "ties count as right if the true scores differ by no more than the rope.",
    ]
    accuracy_p: Annotated[
        float,
        "The probability that a perfectly calibrated model is right about no more pairs of systems than this one, true "
        "ties left out: small if the accuracy is below the stated confidence by more than chance.",
    ]
    accuracy_significant: Annotated[
        float, "The accuracy if pairs without a significant true difference (at .05) count as right."
    ]
    tau: Annotated[float, "Kendall's tau-a."]
    tau_top15: Annotated[
        float, "Kendall's tau-a among the 15 truly best systems, and those tied with the last of them."
    ]
    tau_ap: Annotated[float, "The AP correlation: Kendall's tau with more weight on the top of the ranking."]
    rho: Annotated[float, "Spearman's correlation: Pearson's of the ranks, ties sharing theirs."]
    rmse_difference: Annotated[float, "The root mean squared error of the differences."]
    mae: Annotated[float, "The mean absolute error of the scores."]
    sd: Annotated[float, "The stated standard deviation of scores: the root of their mean variance over systems."]
    calibration_error: Annotated[
        float, "The mean distance between accuracy and stated confidence over bins; true ties are left out."
    ]
    calibration_excess: Annotated[float, "Its excess over the mean of a perfectly calibrated model."]
    calibration_p: Annotated[float, "The probability that such a model has as large an error."]
    coverage: Annotated[float, "The share of systems whose interval holds the true score."]
    centred_coverage: Annotated[float, "The same for scores minus their mean over systems."]
    level_z: Annotated[float, "The error of the mean score in standard deviations."]
    centred_coverage_null05: Annotated[float, "The 5% quantile of centred coverage under perfect calibration."]
    bins: Annotated[Bins, HIDDEN]  # those of the calibration error


def measure_point(
    scores: Scores,
    truth: Floats,
    *,
    draws: Floats,
    query_truth: Floats | None = None,
    level: float = 0.95,
    rope: float = 0.0,
    test: str = "t",
) -> Point:
    r"""Compare a distribution of scores with the true scores.

    A collection has one truth, and its pairs of systems share documents, so even a perfectly calibrated model has some
    calibration error. The p-value compares the error :math:`e` with errors :math:`e_i` on truths drawn from the model:

    .. math:: p = \frac{1 + |\{i : e_i \ge e\}|}{1 + n}

    ``accuracy_p`` compares the share of right verdicts in the same way, and counts the truths with no larger share.

    Parameters
    ----------
    scores
        The estimated scores.
    truth
        The mean score of each system with all judgments, shape (system,).
    draws
        Truths drawn from the stated joint distribution, shape (n, system).
    query_truth
        The true score of every system on every query, shape (system, query); without it ``accuracy_significant`` is
        NaN.
    level
        The level of intervals.
    rope
        The largest difference that does not matter.
    test
        The test behind ``accuracy_significant``: one of :data:`probeval.reliability.SIGNIFICANCE`.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from probeval.scores import evaluate
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> scores = evaluate(campaign.runs, FallbackModel([Uniform()]).predict(campaign.problem(depth=5)), "nDCG@5")
    >>> point = measure_point(scores, scores.mean, draws=scores.sample(100, np.random.default_rng(0)))
    >>> point.accuracy, point.confidence, point.calibration_error, point.calibration_p  # every pair is judged
    (1.0, 1.0, 0.0, 1.0)
    """
    n = len(scores.systems)
    if truth.shape != (n,) or draws.ndim != 2 or draws.shape[1] != n or not len(draws):
        raise ScoreError(f"{n} systems need as many true and drawn scores, got shapes {truth.shape} and {draws.shape}.")
    ranking = Ranking(scores, draws, rope)
    a, b = np.triu_indices(n, k=1)
    estimated, true = (x[a] - x[b] for x in (scores.mean, truth))
    agrees = right_verdicts(ranking, truth)
    bins = _bins(ranking, truth[None], a, b)
    drawn = _bins(ranking, draws, a, b)
    null, error = _errors(drawn), float(_errors(bins)[0])
    right = float(_shares(bins)[0])
    low, high = _centred_interval(scores, level)
    held = _inside(draws - draws.mean(axis=1, keepdims=True), low, high).mean(axis=1)
    centred = truth - truth.mean()
    return Point(
        judged=scores.judged,
        fraction=scores.judged / max(scores.pool, 1),
        confidence=ranking.confidence,
        accuracy=_mean(agrees),
        accuracy_p=_tail(_shares(drawn) <= right + TIE, right),
        accuracy_significant=float("nan")
        if query_truth is None
        else _mean(np.where(significant_pairs(query_truth, test), agrees, 1.0)),
        tau=_mean(signs(estimated) * signs(true)),
        tau_top15=top_tau(scores.mean, truth),
        tau_ap=ap_correlation(truth, scores.mean, variant="a"),
        rho=spearman(scores.mean, truth),
        rmse_difference=float(np.sqrt(_mean((estimated - true) ** 2))),
        mae=float(np.abs(scores.mean - truth).mean()),
        sd=stated_sd(scores),
        calibration_error=error,
        calibration_excess=error - _mean(null[~np.isnan(null)]),
        calibration_p=_tail(null >= error - TIE, error),
        coverage=float(_inside(truth, *scores.intervals(level)).mean()),
        centred_coverage=float(_inside(centred, low, high).mean()),
        level_z=_level_z(scores, truth),
        centred_coverage_null05=float(np.quantile(held, LOW)),
        bins=Bins(*(tuple(float(x) for x in part[0]) for part in bins)),
    )


def tau_and_accuracy(estimated: Floats, true: Floats) -> tuple[float, float]:
    """Return Kendall's tau-a between estimated and true scores, and the share of pairs of systems in the true order.

    Examples
    --------
    >>> tau_and_accuracy(np.array([0.3, 0.2, 0.1]), np.array([0.5, 0.6, 0.1]))
    (0.3333333333333333, 0.6666666666666666)
    """
    a, b = np.triu_indices(len(estimated), k=1)
    sign_estimated, sign_true, agrees = _agreement(estimated[a] - estimated[b], true[a] - true[b])
    return _mean(sign_estimated * sign_true), _mean(agrees)


def top_tau(estimated: Floats, true: Floats, *, n: int = TOP) -> float:
    """Return Kendall's tau-a among the ``n`` systems of the highest true scores, and those tied with the last of them.

    Tau over all systems hides the top, where systems are close and which matters most.

    Examples
    --------
    >>> true, estimated = np.array([0.9, 0.8, 0.5, 0.1]), np.array([0.7, 0.8, 0.3, 0.2])
    >>> round(tau_and_accuracy(estimated, true)[0], 3), top_tau(estimated, true, n=2)
    (0.667, -1.0)
    """
    top = np.ones(len(true), dtype=bool)
    if len(true) > n:
        top = true >= np.partition(true, -n)[-n] - TIE
    return tau_and_accuracy(estimated[top], true[top])[0]


def _agreement(estimated: Floats, true: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the signs of estimated and true differences, and their agreement: a tie on one side counts half."""
    sign_estimated, sign_true = signs(estimated), signs(true)
    agrees = np.where(sign_estimated == sign_true, 1.0, np.where(sign_estimated * sign_true == 0, 0.5, 0.0))
    return sign_estimated, sign_true, agrees


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def right_verdicts(ranking: Ranking, truth: Floats) -> Floats:
    """Return whether the verdict on each pair of systems is right, in the order of ``np.triu_indices``.

    A tie is right if the true scores differ by no more than the rope, a direction if it is the true one; a direction
    counts half if only one of the two differences, expected and true, is 0.
    """
    a, b = np.triu_indices(len(truth), k=1)
    estimated, true = (x[a] - x[b] for x in (ranking.scores.mean, truth))
    tie = np.abs(true) <= ranking.rope + TIE
    return np.where(ranking.tied[a, b], tie, _agreement(estimated, true)[2])


def _bins(ranking: Ranking, truths: Floats, a: Ints, b: Ints) -> tuple[Floats, Floats, Floats]:
    """Return pairs, summed confidence and right verdicts per truth and bin, shapes (truth, bin)."""
    stated, tied = ranking.pair_confidence[a, b], ranking.tied[a, b]
    direction = np.sign(ranking.p_higher[a, b] - ranking.p_higher[b, a])
    member = np.equal(np.digitize(stated, BINS[1:-1])[:, None], np.arange(len(BINS) - 1)).astype(float)
    gap = truths[:, a] - truths[:, b]
    # Without a rope, true ties are left out: no direction is right.
    real = (np.abs(gap) >= TIE) | (tied & (ranking.rope > 0))
    # A direction is right, half right (none stated) or wrong: (1 + sign x direction) / 2.
    right = np.where(tied, np.abs(gap) <= ranking.rope + TIE, (1 + np.sign(gap) * direction) / 2) * real
    counted = real.astype(float)
    return counted @ member, counted @ (member * stated[:, None]), right @ member


def _errors(bins: tuple[Floats, Floats, Floats]) -> Floats:
    """Return the calibration error under each truth, NaN if all pairs are ties, shape (truth,)."""
    pairs, stated, right = bins
    n = pairs.sum(axis=1)
    return np.asarray(np.where(n > 0, np.abs(right - stated).sum(axis=1) / np.maximum(n, 1), np.nan))


def _shares(bins: tuple[Floats, Floats, Floats]) -> Floats:
    """Return the share of right verdicts under each truth, NaN if all pairs are ties, shape (truth,)."""
    n = bins[0].sum(axis=1)
    return np.asarray(np.where(n > 0, bins[2].sum(axis=1) / np.maximum(n, 1), np.nan))


def _tail(extreme: Bools, figure: float) -> float:
    """Return the p of a figure, given which drawn truths are as extreme; NaN if the figure is."""
    return float("nan") if np.isnan(figure) else float((1 + extreme.sum()) / (1 + len(extreme)))


def significant_pairs(query_truth: Floats, test: str = "t") -> Bools:
    """Return which true differences are significant by a test, in the order of ``np.triu_indices``."""
    return np.asarray(significant_signs(query_truth, test=test, alpha=ALPHA) != 0)


def _centred_interval(scores: Scores, level: float) -> tuple[Floats, Floats]:
    """Return the interval of each system's score minus the mean over systems, shapes (system,)."""
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
    """Return the error of the mean score in standard deviations; infinite if it is certain but wrong."""
    error = float(scores.mean.mean() - truth.mean())
    variance = float(scores.covariance.mean())
    if abs(error) < TIE:
        return 0.0
    return error / np.sqrt(variance) if variance > TIE**2 else float(np.copysign(np.inf, error))
