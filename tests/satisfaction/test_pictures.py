"""Pictures of users: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np

from probeval.plots import plot_agreement, plot_mappings, plot_satisfaction, save
from probeval.satisfaction import Agreement, Satisfaction, load_agreement, load_mapping

NAMES = ("CGl@5/broad", "CGe@5/broad", "DCGl@5/fine", "P@5/lmin40", "AP@5/lmin40")


def test_mappings_are_drawn_over_all_scores():
    ax = plot_mappings([load_mapping(name) for name in NAMES])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(NAMES)
    drawn = ax.lines[2]
    np.testing.assert_allclose(drawn.get_ydata(), load_mapping(NAMES[1])(drawn.get_xdata()))
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.lines[1:]}
    assert len(looks) == len(NAMES)  # told apart though there are more than colours


def test_agreement_adds_up_to_all_users():
    agreement = load_agreement("DCGl@5/broad")
    ax = plot_agreement(agreement)
    heights = np.array([[bar.get_height() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(heights.sum(axis=0), 1)
    np.testing.assert_allclose(heights[0], agreement.to_frame()["better"])
    assert [text.get_text() for text in ax.texts] == [f"{n:,}" for n in agreement.n]


def test_a_tenth_without_answers_is_empty():
    none = np.zeros(10, dtype=int)
    ax = plot_agreement(Agreement(none + np.eye(10, dtype=int)[3], none, none))
    assert [bar.get_height() for bar in ax.containers[0]] == np.eye(10)[3].tolist()


def test_systems_stand_by_satisfaction(tmp_path):
    scores = np.random.default_rng(0).random((3, 20)) * np.array([[0.4], [1.0], [0.7]])
    users = Satisfaction(scores, load_mapping("CGl@5/broad"), ("low", "high", "middle"))
    ax = plot_satisfaction(users)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["high", "middle", "low"]
    table = users.to_frame()
    np.testing.assert_allclose(ax.lines[0].get_xdata(), table["p_sat"])
    np.testing.assert_allclose(ax.lines[1].get_xdata(), table["p_success"])
    new, mean = ([segment[:, 0] for segment in lines.get_segments()] for lines in ax.collections)
    np.testing.assert_allclose(new, table[["new_lower", "new_upper"]])
    np.testing.assert_allclose(mean, table[["lower", "upper"]])
    save(ax, tmp_path / "users.svg")
    assert (tmp_path / "users.svg").stat().st_size > 1000
