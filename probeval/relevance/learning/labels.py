"""Learn the informativeness of machine labels from pairs with both labels and grades."""

from __future__ import annotations

import numpy as np

from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import ModelError
from probeval.relevance.effects.labels import LabelWorth
from probeval.relevance.models.cumulative import Observations, fit_cumulative

__all__ = ["learn_labels"]


def learn_labels(labels: LabelTable, judgments: Judgments, *, complete: float = 0.9) -> LabelWorth:
    """Learn the informativeness of labels from pairs with both labels and grades.

    Sources that label less than ``complete`` of the pairs are left out: their labels may be a selected sample.
    """
    scale = judgments.scale()
    codes = judgments.codes_on(labels.pool, scale)
    values = labels.values[codes >= 0]
    kept = [
        i
        for i in range(len(labels.sources))
        if np.mean(~np.isnan(values[:, i])) >= complete and np.nanstd(values[:, i])
    ]
    if not kept:
        raise ModelError(f"No source labels {complete:.0%} of the judged pairs: there is nothing to learn of labels.")
    centre, spread = np.nanmean(values[:, kept], axis=0), np.nanstd(values[:, kept], axis=0)
    x = np.nan_to_num((values[:, kept] - centre) / spread)
    level = scale.level_of(codes[codes >= 0]).astype(np.int64)
    rows = Observations(x, level, np.full(len(level), len(scale.levels)), np.ones(len(level)))
    fit = fit_cumulative(rows, ridge=len(level) / 1000)
    beta = fit.beta
    correlation = x.T @ x / len(x)
    return LabelWorth(
        sources=tuple(labels.sources[i] for i in kept),
        centre=tuple(map(float, centre)),
        spread=tuple(map(float, spread)),
        correlation=tuple(tuple(map(float, row)) for row in correlation),
        signal=tuple(map(float, correlation @ beta)),
        variance=float(beta @ correlation @ beta),
        cuts=tuple(map(float, fit.cuts[len(scale.levels)])),
    )
