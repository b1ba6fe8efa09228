r"""Several columns of labels as a panel: how many independent judges they are worth, and repeats of one judge.

What counts is the correlation of errors, given the grade. Within grades, the covariance of two columns is

.. math:: \text{Cov}(y_j, y_k) - \sum_\ell \pi_\ell (\mu_{j\ell} - \bar y_j)(\mu_{k\ell} - \bar y_k),

with :math:`\pi_\ell` the share of grade :math:`\ell` and :math:`\mu_{j\ell}` the mean label of its pairs. The first
term needs no judgment. So of each column only its own relation with the grades has to be known, which the judged pairs
show of it alone: that the model takes columns for independent does not enter. With :math:`\rho_{jk}` the correlations
that follow, :math:`n` columns are worth

.. math:: n_{\text{eff}} = \frac{n^2}{\sum_{jk} \rho_{jk}}

independent ones (the design effect of Kish 1965): their mean is as exact as that of so many. See
docs/theory/observers.md#panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.data.observers import ObserverSpec
from probeval.relevance.observers.agreement import ENOUGH, GradePosterior, interval, label_kappa
from probeval.streams import stream

__all__ = ["ColumnPair", "JudgeRepeats", "Panel", "panel"]

LEAST = 1e-6  # share of a column's variance that is left within grades
MOST = 1 - 1e-9  # correlation of errors, of a column with its copy


@dataclass(frozen=True)
class ColumnPair:
    """Two columns of labels, and how alike they are."""

    a: str
    b: str
    family: Annotated[str | None, "Their family, if they are of one."]
    pairs: Annotated[int, "The number of pairs with both labels."]
    equal: Annotated[float | None, "The share of equal labels; null if their scales differ."]
    kappa: Annotated[float | None, "Kappa of the two with quadratic weights; null if their scales differ."]
    error_correlation: Annotated[float, "The correlation of their errors, given the grade."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float


@dataclass(frozen=True)
class JudgeRepeats:
    """The columns of one family: repeats of one judge, or its prompts."""

    family: str
    columns: int
    equal: Annotated[float | None, "The mean share of equal labels of two columns; null if their scales differ."]
    kappa: Annotated[float | None, "The mean kappa of two columns; null if their scales differ."]
    error_correlation: Annotated[float, "The mean correlation of the errors of two columns."]
    effective: Annotated[float, "The number of independent judges that they are worth."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float


@dataclass(frozen=True)
class Panel:
    """The columns of labels as a panel of judges."""

    columns: Annotated[int, "The number of columns with enough judged pairs."]
    judged: Annotated[int, "The number of judged pairs."]
    error_correlation: Annotated[float, "The mean correlation of the errors of two columns, given the grade."]
    effective: Annotated[float, "The number of independent judges that the columns are worth."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float
    families: Annotated[tuple[JudgeRepeats, ...], "One entry per family with several columns."]
    pairs: Annotated[tuple[ColumnPair, ...], "One entry per pair of columns, the most alike errors first."]

    @property
    def sentence(self) -> str:
        """The finding."""
        between = "" if self.lower == self.upper else f" ({self.lower:.1f} to {self.upper:.1f})"
        return (
            f"Panel: the errors of {self.columns} columns correlate by {self.error_correlation:.2f} on average, so "
            f"together they are worth {self.effective:.1f}{between} independent judges."
        )


def panel(
    posterior: GradePosterior, labels: Floats, observers: Sequence[ObserverSpec], *, seed: Sequence[int]
) -> Panel | None:
    """Return what several columns are worth together; None without two that have enough judged pairs.

    Parameters
    ----------
    posterior
        The posterior of the grades.
    labels, observers
        The labels of the pool's pairs, NaN where missing, shape (pair, source), and who gave them.
    seed
        The seed of the draws.
    """
    given = labels[posterior.pairs]
    known = ~np.isnan(given)
    varies = np.array([bool(len(y := given[k, j]) and np.ptp(y) > 0) for j, k in enumerate(known.T)], dtype=bool)
    kept = np.flatnonzero((known[: posterior.judged].sum(axis=0) >= ENOUGH) & varies)
    if len(kept) < 2:
        return None
    within = _within(posterior, given[:, kept], seed)
    sd = np.sqrt(np.diagonal(within, axis1=1, axis2=2))
    rho = np.clip(within / sd[:, :, None] / sd[:, None, :], -MOST, MOST)
    rho[:, np.arange(len(kept)), np.arange(len(kept))] = 1.0
    who = [observers[j] for j in kept.tolist()]
    pairs = []
    for i in range(len(who)):
        for j in range(i + 1, len(who)):
            equal, kappa = label_kappa(given[:, kept[i]], given[:, kept[j]], who[i], who[j])
            value, lower, upper = interval(rho[:, i, j], bounded="correlation")
            same = who[i].family if who[i].family == who[j].family else None
            both = int((known[:, kept[i]] & known[:, kept[j]]).sum())
            pairs.append(ColumnPair(who[i].name, who[j].name, same, both, equal, kappa, value, lower, upper))
    families = [family for family in dict.fromkeys(o.family for o in who) if sum(o.family == family for o in who) > 1]
    mean, (effective, lower, upper) = _worth(rho)
    return Panel(
        columns=len(who),
        judged=posterior.judged,
        error_correlation=mean,
        effective=effective,
        lower=lower,
        upper=upper,
        families=tuple(_repeats(family, who, rho, pairs) for family in families),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair.error_correlation)),
    )


def _within(posterior: GradePosterior, given: Floats, seed: Sequence[int]) -> Floats:
    """Return the covariance of columns within grades under each draw, shape (draw, column, column).

    A reversed column is turned, so that the errors of all are errors of the same relevance.
    """
    standard = (given - np.nanmean(given, axis=0)) / np.nanstd(given, axis=0)
    known, weight = ~np.isnan(standard), posterior.weight
    filled = np.where(known, standard, 0.0)
    both = (known * weight[:, None]).T @ known
    # Total covariance of two columns, over the pairs that have both.
    sums = (filled * weight[:, None]).T @ known  # of a, where b is known too
    total = (filled * weight[:, None]).T @ filled / both - (sums / both) * (sums / both).T
    means, shares = [], []
    for column in standard.T:
        # The same random numbers for every column: what is uncertain of the grades moves all of them together.
        drawn = posterior.draw(column[:, None], stream(*seed))
        n, s, _ = np.moveaxis(drawn.moments(column), -1, 0)
        share = n / n.sum(axis=1, keepdims=True)
        mean = np.divide(s, n, out=np.zeros_like(s), where=n > 0)
        means.append(mean - (share * mean).sum(axis=1, keepdims=True))
        shares.append(share)
    levels, share = np.stack(means, axis=1), np.mean(shares, axis=0)  # (draw, column, level), (draw, level)
    turned = np.sign((levels @ posterior.values).mean(axis=0) + 1e-300)
    between = np.einsum("tl,tjl,tkl->tjk", share, levels, levels)
    within = (total[None] - between) * np.multiply.outer(turned, turned)
    diagonal = np.arange(given.shape[1])
    within[:, diagonal, diagonal] = np.maximum(within[:, diagonal, diagonal], LEAST)
    return np.asarray(within)


def _worth(rho: Floats) -> tuple[float, tuple[float, float, float]]:
    """Return the mean correlation of two columns, and the number of independent ones with its interval."""
    n = rho.shape[1]
    mean = (rho.sum(axis=(1, 2)) - n) / (n * (n - 1))
    effective = n / np.maximum(1 + (n - 1) * mean, 1 / n)
    return float(mean.mean()), interval(effective, bounded="positive")


def _repeats(family: str, who: Sequence[ObserverSpec], rho: Floats, pairs: Sequence[ColumnPair]) -> JudgeRepeats:
    at = [i for i, observer in enumerate(who) if observer.family == family]
    mean, (effective, lower, upper) = _worth(rho[np.ix_(range(len(rho)), at, at)])
    mine = [pair for pair in pairs if pair.family == family]
    equal = [pair.equal for pair in mine if pair.equal is not None]
    kappa = [pair.kappa for pair in mine if pair.kappa is not None]
    return JudgeRepeats(
        family=family,
        columns=len(at),
        equal=float(np.mean(equal)) if equal else None,
        kappa=float(np.mean(kappa)) if kappa else None,
        error_correlation=mean,
        effective=effective,
        lower=lower,
        upper=upper,
    )
