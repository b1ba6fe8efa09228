"""What labels by machines are worth, as terms of the hierarchical model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probeval.arrays import Floats
from probeval.data.evidence import LabelTable
from probeval.data.pool import Pool
from probeval.relevance.normal import Normal

__all__ = ["LabelWorth"]

LOGISTIC = np.pi**2 / 3  # the variance of the logistic
RIDGE = 0.05  # on the correlations of labels: sources repeat one another
DOUBT, LEAST, UNKNOWN = 0.35, 0.6, 1.0  # of a source's worth: relative and least sd, and that of one never seen
CUT, GAP = 0.5, 0.25  # how far cutpoints given labels differ between campaigns: sd of the first, relative sd of gaps


@dataclass(frozen=True)
class LabelWorth:
    r"""What labels by machines are worth, learned where labels and grades are both known.

    Labels are evidence about relevance, never relevance: each source is a term whose coefficient has a prior and goes
    on learning, so that a bad source is found out. The prior depends on which other sources there are, as they repeat
    one another: from the correlations :math:`C` of the standardised labels and their covariances :math:`s` with the
    signal in relevance (in logits), the sources at hand have the coefficients :math:`C^{-1}s`, less what the missing
    ones leave to noise.

    Parameters
    ----------
    sources
        Names of the label columns.
    centre, spread
        What standardises each.
    correlation
        Of the standardised labels, shape (source, source).
    signal
        The covariance of each with the signal.
    variance
        The variance of the signal, all sources known.
    cuts
        The cutpoints given the labels, for the number of levels they were learned on: labels tell the level too.
    """

    sources: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...]
    signal: tuple[float, ...]
    variance: float
    cuts: tuple[float, ...]

    def weights(self, sources: Sequence[str]) -> tuple[dict[str, float], float]:
        """The coefficients of those of the sources that are known, and the share of relevance that they explain."""
        known = [s for s in sources if s in self.sources]
        at = [self.sources.index(s) for s in known]
        inside = np.array(self.correlation)[np.ix_(at, at)] + RIDGE * np.eye(len(at))
        signal = np.array(self.signal)[at]
        weights = np.linalg.solve(inside, signal) if at else signal
        seen = min(float(weights @ signal), self.variance)
        weights = weights / np.sqrt(1 + (self.variance - seen) / LOGISTIC)  # what is lost is noise to the rest
        return {s: float(w) for s, w in zip(known, weights, strict=True)}, seen / (self.variance + LOGISTIC)

    def cut_priors(self, n_levels: int, explained: float) -> tuple[Normal, ...] | None:
        """The priors of the first cutpoint and the gaps given labels, or None where labels say nothing of them."""
        if n_levels != len(self.cuts) + 1 or explained == 0:
            return None
        full = self.variance / (self.variance + LOGISTIC)
        sharpness = np.sqrt((1 - full) / (1 - explained))  # of what is left to noise, against all sources known
        first, gaps = self.cuts[0] * sharpness, -np.diff(self.cuts) * sharpness
        return (Normal(float(first), CUT), *(Normal(float(g), GAP * float(g)) for g in gaps))

    def coefficients(self, sources: Sequence[str]) -> tuple[Normal, ...]:
        """The priors of these sources' standardised coefficients; one never seen may be worth something or not."""
        worth, _ = self.weights(sources)
        share = float(np.sqrt(max(len(sources), 1)))
        return tuple(
            Normal(worth[s], DOUBT * abs(worth[s]) + LEAST / share) if s in worth else Normal(0.0, UNKNOWN / share)
            for s in sources
        )

    def standardised(self, labels: LabelTable, pool: Pool) -> Floats:
        """The labels of a pool's pairs, standardised, 0 where missing, shape (pair, source)."""
        values = labels.on(pool)
        out = np.zeros(values.shape)
        for i, source in enumerate(labels.sources):
            column = values[:, i]
            if source in self.sources:
                at = self.sources.index(source)
                centre, spread = self.centre[at], self.spread[at]
            elif np.isnan(column).all():
                continue
            else:
                centre, spread = float(np.nanmean(column)), float(np.nanstd(column)) or 1.0
            out[:, i] = (column - centre) / spread
        return np.nan_to_num(out)

    def to_dict(self) -> dict[str, Any]:
        """The worth as plain data."""
        return {
            "sources": list(self.sources),
            "centre": list(self.centre),
            "spread": list(self.spread),
            "correlation": [list(row) for row in self.correlation],
            "signal": list(self.signal),
            "variance": self.variance,
            "cuts": list(self.cuts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelWorth:
        """The worth from plain data."""
        return cls(
            sources=tuple(data["sources"]),
            centre=tuple(map(float, data["centre"])),
            spread=tuple(map(float, data["spread"])),
            correlation=tuple(tuple(map(float, row)) for row in data["correlation"]),
            signal=tuple(map(float, data["signal"])),
            variance=float(data["variance"]),
            cuts=tuple(map(float, data["cuts"])),
        )
