"""Pictures of comparisons say what the comparison says."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.plots import plot_critical, plot_tests
from probeval.reliability import ScorePosterior, compare

SCORES = np.random.default_rng(6).normal([[0.2], [0.25], [0.6], [0.9]], 0.1, size=(4, 15))
FOUND = compare(SCORES, systems=["d", "c", "b", "a"])


def test_pairs_that_differ_are_coloured():
    ax = plot_tests(FOUND)
    cells = ax.images[0].get_array().filled(np.nan)
    upper = np.triu_indices(4, k=1)
    np.testing.assert_array_equal(~np.isnan(cells[upper]), FOUND.decision != 0)
    assert np.isnan(cells[np.tril_indices(4)]).all()
    assert [t.get_text() for t in ax.get_yticklabels()] == list(FOUND.systems)
    assert len(ax.texts) == 6
    assert "pairs differ" in ax.get_title(loc="left")


def test_bars_of_ranks_are_half_a_critical_difference():
    ax = plot_critical(FOUND)
    gap = FOUND.friedman.critical_difference()
    widths = [np.ptp(segment[:, 0]) for lines in ax.collections for segment in lines.get_segments()]
    np.testing.assert_allclose(widths, gap)
    assert len(widths) == 4
    assert f"{gap:.2f}" in ax.get_xlabel()


def test_ranks_need_two_systems():
    with pytest.raises(ReliabilityError, match="two systems"):
        plot_critical(compare(SCORES[:1]))


def test_a_posterior_shows_probabilities():
    means = np.random.default_rng(7).normal([0.9, 0.6, 0.2], 0.05, size=(200, 3))
    posterior = ScorePosterior(
        ("a", "b", "c"), ("q1", "q2"), "bounded", SCORES[:3, :2], 0.95, 0.01, np.arange(3), {}, {}, means
    )
    ax = plot_tests(posterior)
    cells = ax.images[0].get_array().filled(np.nan)
    np.testing.assert_allclose(cells[np.triu_indices(3, k=1)], posterior.to_frame()["p_better"])
