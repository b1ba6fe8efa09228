"""The informativeness of machine labels, as terms of the hierarchical model."""

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
RIDGE = 0.05  # on the correlations of labels: sources are redundant
DOUBT, LEAST, UNKNOWN = 0.35, 0.6, 1.0  # of a source's coefficient: relative sd, least sd, and sd if never seen
CUT, GAP = 0.5, 0.25  # between campaigns, of cutpoints given labels: sd of the first, relative sd of gaps


@dataclass(frozen=True)
class LabelWorth:
    r"""The informativeness of machine labels, learned from pairs with both labels and grades.

    Labels are evidence about relevance, never relevance: each source is a term whose coefficient has a prior and is
    updated by judgments, so that bad sources are detected. The prior depends on the set of sources, as they are
    redundant: from the correlations :math:`C` of the standardised labels and their covariances :math:`s` with the
    signal in relevance (in logits), the available sources have the coefficients :math:`C^{-1}s`, reduced by the noise
    of the missing ones.

    Parameters
    ----------
    sources
        Names of the label columns.
    centre, spread
        The mean and standard deviation used to standardise each source.
    correlation
        The correlations of the standardised labels, shape (source, source).
    signal
        The covariance of each source with the signal.
    variance
        The variance of the signal given all sources.
    cuts
        The cutpoints given the labels, for the number of levels in the training data.
    """

    sources: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...]
    signal: tuple[float, ...]
    variance: float
    cuts: tuple[float, ...]

    def weights(self, sources: Sequence[str]) -> tuple[dict[str, float], float]:
        """Return the coefficients of the known sources, and the share of relevance that they explain."""
        known = [s for s in sources if s in self.sources]
        at = [self.sources.index(s) for s in known]
        inside = np.array(self.correlation)[np.ix_(at, at)] + RIDGE * np.eye(len(at))
        signal = np.array(self.signal)[at]
        weights = np.linalg.solve(inside, signal) if at else signal
        seen = min(float(weights @ signal), self.variance)
        weights = weights / np.sqrt(1 + (self.variance - seen) / LOGISTIC)  # the missing signal is noise
        return {s: float(w) for s, w in zip(known, weights, strict=True)}, seen / (self.variance + LOGISTIC)

    def cut_priors(self, n_levels: int, explained: float) -> tuple[Normal, ...] | None:
        """Return the priors of the first cutpoint and the gaps given labels, or None if labels are uninformative."""
        if n_levels != len(self.cuts) + 1 or explained == 0:
            return None
        full = self.variance / (self.variance + LOGISTIC)
        sharpness = np.sqrt((1 - full) / (1 - explained))  # relative to the noise given all sources
        first, gaps = self.cuts[0] * sharpness, -np.diff(self.cuts) * sharpness
        return (Normal(float(first), CUT), *(Normal(float(g), GAP * float(g)) for g in gaps))

    def coefficients(self, sources: Sequence[str]) -> tuple[Normal, ...]:
        """Return the priors of the sources' standardised coefficients; that of an unknown source has mean 0."""
        worth, _ = self.weights(sources)
        share = float(np.sqrt(max(len(sources), 1)))
        return tuple(
            Normal(worth[s], DOUBT * abs(worth[s]) + LEAST / share) if s in worth else Normal(0.0, UNKNOWN / share)
            for s in sources
        )

    def standardised(self, labels: LabelTable, pool: Pool) -> Floats:
        """Return the standardised labels of a pool's pairs, 0 where missing, shape (pair, source)."""
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
        """Return plain data."""
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
        """Restore from plain data."""
        return cls(
            sources=tuple(data["sources"]),
            centre=tuple(map(float, data["centre"])),
            spread=tuple(map(float, data["spread"])),
            correlation=tuple(tuple(map(float, row)) for row in data["correlation"]),
            signal=tuple(map(float, data["signal"])),
            variance=float(data["variance"]),
            cuts=tuple(map(float, data["cuts"])),
        )
