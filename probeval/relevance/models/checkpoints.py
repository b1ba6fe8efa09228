"""Checkpoints of judging, simulated on finished campaigns, so that models are fitted as they are used.

See docs/theory/relevance-models.md#checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from probeval.arrays import Bools, Ints
from probeval.data.runs import Runs
from probeval.streams import Purpose, stream

__all__ = ["SHARES", "judging_checkpoints", "judging_orders"]

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # of the pool


def judging_orders(runs: Runs, known: Ints, *, name: str) -> list[Ints]:
    r"""Return two orders of judging: that of ``mtc`` while no comparison is decided, and a random one.

    With every comparison as uncertain as any other, the weight of a pair that :math:`n` of :math:`S` systems retrieved
    is :math:`n (S - n)`.

    Parameters
    ----------
    runs
        The lists, cut at the depth of the pool.
    known
        The pairs with a judgment.
    name
        The name of the campaign, from which the random order follows.
    """
    pairs = runs.pairs[runs.retrieved]
    retrieved = np.bincount(pairs, minlength=len(runs.pool))[known]
    weight = retrieved * (len(runs.systems) - retrieved)
    return [known[np.argsort(-weight, kind="stable")], stream(0, name, Purpose.ORDER).permutation(known)]


def judging_checkpoints(
    runs: Runs, known: Bools, *, name: str, shares: Sequence[float] = SHARES
) -> Iterator[tuple[Bools, Bools]]:
    """Yield the judged pairs of each checkpoint and the unjudged pairs to learn from, as masks of the pool.

    Every pair with a judgment is learned from at one checkpoint of each order, the shares taken in turn, unless it is
    judged by then.

    Parameters
    ----------
    runs, name
        As in :func:`judging_orders`.
    known
        The pairs with a judgment, shape (pair,).
    shares
        The judged shares of the pool.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> runs = synthetic_campaign(seed=1, systems=4, queries=3, depth=5).runs
    >>> known = np.ones(len(runs.pool), dtype=bool)
    >>> checkpoints = judging_checkpoints(runs, known, name="a", shares=(0, 0.2))
    >>> [(int(judged.sum()), int(rows.sum())) for judged, rows in checkpoints]
    [(0, 18), (7, 14), (0, 18), (7, 15)]
    """
    pairs = np.flatnonzero(known)
    for order in judging_orders(runs, pairs, name=name):
        for i, share in enumerate(shares):
            judged, rows = np.zeros(len(known), dtype=bool), np.zeros(len(known), dtype=bool)
            judged[order[: ceil(share * len(known) - 1e-9)]] = True
            rows[pairs[i :: len(shares)]] = True
            yield judged, rows & ~judged
