r"""Grades of the consensus of several observers, none of whom is the reference.

The grade of a pair is the level in which its relevance :math:`\theta_d` lies, without noise: with more labels
:math:`\theta_d`, and so the grade, becomes certain. The cutpoints are those of the average observer: levels have the
shares that the labels have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats
from probeval.data.evidence import LabelTable
from probeval.data.pool import QueryBlock
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.relevance.inference.posterior import Draws

__all__ = ["ConsensusDraws"]


@dataclass(frozen=True, eq=False)
class ConsensusDraws:
    """Draws of the consensus grades, given draws of relevance.

    Parameters
    ----------
    draws
        Draws of the model's parameters.
    cuts
        The values of relevance from which each level begins, in increasing order, under each draw, shape (cut, n).
    """

    draws: Draws
    cuts: Floats

    @classmethod
    def of(cls, draws: Draws, labels: LabelTable | None, scale: Scale) -> ConsensusDraws:
        """Return draws with the cutpoints of the average observer on the scale of the grades."""
        pool = draws.design.pool
        on_scale = (
            [] if labels is None else [i for i, o in enumerate(labels.observers) if o.levels == len(scale.levels)]
        )
        if labels is None or not on_scale:
            raise ModelError(f"The consensus needs labels or judgments of several observers on the scale {scale}.")
        values = labels.values[:, on_scale]
        labelled = ~np.isnan(values).all(axis=1)
        shares = [float(np.nanmean(np.where(np.isnan(values), np.nan, values >= level))) for level in scale.values[1:]]
        seen = np.concatenate([seen_relevance(draws, block) for block in pool.blocks(len(pool))])[labelled]
        return cls(draws, np.asarray(np.quantile(seen, 1 - np.array(shares), axis=0)))

    @property
    def n(self) -> int:
        """The number of draws."""
        return self.draws.n

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return P(level) of a block's pairs under each draw: 1 for one level, shape (draw, pair, level)."""
        level = (seen_relevance(self.draws, block) >= self.cuts[:, None, :]).sum(axis=0).T
        return np.asarray(level[..., None] == np.arange(len(self.cuts) + 1), dtype=float)


def seen_relevance(draws: Draws, block: QueryBlock) -> Floats:
    """Return the relevance of a block's pairs that all observers see, shape (pair, draw)."""
    design, campaign, (_, seen) = draws.design, draws.campaign(), draws.drawn(block)
    if seen is None:
        raise ModelError("The consensus needs labels or judgments of several observers.")
    out = design.terms[block.pairs] @ campaign["coefficients"] + seen
    for common in design.campaign_columns:
        out += common.columns.take(block.pairs).times(campaign[common.name])
    return np.asarray(out)
