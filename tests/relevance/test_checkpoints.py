"""Checkpoints of judging: which pairs are judged, and which are learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.data import Scale
from probeval.relevance import FallbackModel, Uniform
from probeval.relevance.models.checkpoints import SHARES, judging_checkpoints, judging_orders
from probeval.selection import Judging


def test_the_first_order_is_that_of_mtc_while_nothing_is_decided(small):
    runs = small.runs.top(8)
    known = np.arange(len(runs.pool))
    first, second = judging_orders(runs, known, name="small")
    blind = replace(small, judgments=None)
    judging = Judging.of(blind, FallbackModel([Uniform()]), "CG@8", policy="mtc-thesis", scale=Scale.graded(2), depth=8)
    np.testing.assert_array_equal(judging.begin().next(len(known)).pairs, first)
    np.testing.assert_array_equal(np.sort(second), known)
    assert not np.array_equal(second, known)
    np.testing.assert_array_equal(judging_orders(runs, known, name="small")[1], second)
    assert not np.array_equal(judging_orders(runs, known, name="other")[1], second)


def test_every_pair_is_learned_from_once_per_order_unless_judged(small):
    runs = small.runs.top(8)
    known = np.arange(len(runs.pool)) % 5 > 0
    seen = np.zeros((2, len(known)), dtype=int)
    for i, (judged, rows) in enumerate(judging_checkpoints(runs, known, name="small")):
        share = SHARES[i % len(SHARES)]
        assert judged.sum() == np.ceil(share * len(known))
        assert not (judged & ~known).any()
        assert not (rows & judged).any()
        seen[i // len(SHARES)] += rows
    assert seen.max() == 1
    assert not seen[:, ~known].any()
    left_out = (seen[:, known] == 0).mean(axis=1)  # judged by their checkpoint
    np.testing.assert_allclose(left_out, np.mean(SHARES) / known.mean(), atol=0.1)
