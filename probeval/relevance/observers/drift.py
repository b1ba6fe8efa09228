"""Drift of a judge: the labels of two versions of it on the same pairs.

How often labels differ, in which direction, and on average needs no judgment. What it does to the agreement with people
does: both versions are compared with the same draws of the grades. See docs/theory/observers.md#drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import stdtrit

from probeval.arrays import Floats, Ints
from probeval.data.observers import ObserverSpec
from probeval.data.runs import Runs
from probeval.relevance.observers.agreement import ENOUGH, GradePosterior, agreement_draws, interval, label_kappa
from probeval.streams import stream

__all__ = ["Drift", "drift"]


@dataclass(frozen=True)
class Drift:
    """A judge against its earlier version."""

    source: str
    pairs: Annotated[int, "The number of pairs with both labels."]
    up: Annotated[float, "The share of pairs whose label is higher now."]
    down: Annotated[float, "The share of pairs whose label is lower now."]
    kappa: Annotated[float | None, "Kappa of the two versions with quadratic weights; null for numbers."]
    shift: Annotated[float, "The mean change of a label."]
    lower: Annotated[float, "The lower end of its 95% interval, for such queries."]
    upper: float
    system: Annotated[str, "The system whose documents changed most, relative to those of all."]
    system_shift: Annotated[float, "The mean change of its labels, less that of all systems."]
    agreement: Annotated[
        float | None,
        "The change of its agreement with the grades, now less earlier: of kappa, or of the correlation for numbers; "
        "null "
        "with too few judged pairs.",
    ]
    agreement_lower: Annotated[float | None, "The lower end of its 95% interval."]
    agreement_upper: float | None
    verdict: Annotated[
        str,
        "``drifted`` if the interval of the mean change, or of the change of agreement, excludes 0; else ``stable``.",
    ]

    @property
    def sentence(self) -> str:
        """The finding."""
        text = (
            f"{self.source}: {self.up + self.down:.0%} of its labels differ from the earlier ones ({self.up:.0%} "
            f"higher, "
            f"{self.down:.0%} lower), by {self.shift:+.3f} on average ({self.lower:+.3f} to {self.upper:+.3f})"
        )
        if self.agreement is not None:
            text += (
                f"; its agreement with the grades changes by {self.agreement:+.3f} ({self.agreement_lower:+.3f} to "
                f"{self.agreement_upper:+.3f})"
            )
        return f"{text}: {self.verdict}."


def drift(
    posterior: GradePosterior,
    runs: Runs,
    now: Floats,
    earlier: Floats,
    of: Sequence[ObserverSpec],
    top: float,
    seed: Sequence[int],
) -> Drift | None:
    """Return the drift of one judge; None without a pair that has both labels.

    Parameters
    ----------
    posterior
        The posterior of the grades.
    runs
        The lists of the systems.
    now, earlier
        The labels of the pool's pairs, NaN where missing, shape (pair,).
    of
        Its description now and earlier.
    top
        The highest grade of the scale of the grades.
    seed
        The seed of the draws.
    """
    both = ~np.isnan(now) & ~np.isnan(earlier)
    if not both.any():
        return None
    change = np.where(both, now - earlier, np.nan)
    shift, lower, upper = _over_queries(change[both], runs.pool.query[both])
    by_system = _by_system(runs, change)
    most = int(np.nanargmax(np.abs(by_system))) if np.isfinite(by_system).any() else 0
    agreed = _agreement(posterior, now, earlier, of, top, seed)
    excluded = lower > 0 or upper < 0 or (agreed is not None and (agreed[1] > 0 or agreed[2] < 0))
    return Drift(
        source=of[0].name,
        pairs=int(both.sum()),
        up=float(np.mean(change[both] > 0)),
        down=float(np.mean(change[both] < 0)),
        kappa=label_kappa(now, earlier, *of)[1],
        shift=shift,
        lower=lower,
        upper=upper,
        system=str(runs.systems[most]),
        system_shift=float(np.nan_to_num(by_system[most])),
        agreement=None if agreed is None else agreed[0],
        agreement_lower=None if agreed is None else agreed[1],
        agreement_upper=None if agreed is None else agreed[2],
        verdict="drifted" if excluded else "stable",
    )


def _over_queries(change: Floats, query: Ints) -> tuple[float, float, float]:
    """Return a mean over pairs and its interval, with queries as clusters: a ratio of means over queries."""
    queries, of = np.unique(query, return_inverse=True)
    n, mean = len(queries), float(change.mean())
    if n < 2:
        return mean, float("-inf"), float("inf")
    residual = np.bincount(of, weights=change - mean)
    error = np.sqrt(n / (n - 1) * (residual**2).sum()) / len(change)
    half = float(stdtrit(n - 1, 0.975)) * error
    return mean, mean - half, mean + half


def _by_system(runs: Runs, change: Floats) -> Floats:
    """Return the mean change of the labels of each system's documents, less the mean over systems, shape (system,)."""
    pairs = runs.pairs
    values = np.append(change, np.nan)[pairs]  # -1, no document, is the last
    known = ~np.isnan(values)
    n = known.sum(axis=(1, 2))
    mean = np.divide(np.where(known, values, 0.0).sum(axis=(1, 2)), n, out=np.full(len(n), np.nan), where=n > 0)
    return np.asarray(mean - np.nanmean(mean)) if known.any() else mean


def _agreement(
    posterior: GradePosterior, now: Floats, earlier: Floats, of: Sequence[ObserverSpec], top: float, seed: Sequence[int]
) -> tuple[float, float, float] | None:
    given = np.column_stack([now, earlier])[posterior.pairs]
    if (~np.isnan(given[: posterior.judged]).any(axis=1)).sum() < ENOUGH:
        return None
    drawn = posterior.draw(given, stream(*seed))
    first, second = (agreement_draws(drawn, given[:, i], of[i], top) for i in range(2))
    found = interval(first - second)
    return None if np.isnan(found[0]) else found
