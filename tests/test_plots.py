"""Pictures of rankings: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Scale, as_runs
from probeval.plots import ORANGE, plot_pairs, plot_ranking, save
from probeval.relevance import RelevanceDistribution
from probeval.scores import Ranking, evaluate


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    """a and b are the same system; c is better, d is worse."""
    same = {"q1": {"d1": 2, "d2": 1}, "q2": {"e1": 2, "e2": 1}}
    runs = as_runs({
        "a": same,
        "b": same,
        "c": {"q1": {"d3": 2, "d4": 1}, "q2": {"e3": 2, "e4": 1}},
        "d": {"q1": {"d5": 2, "d6": 1}, "q2": {"e5": 2, "e6": 1}},
    })  # fmt: skip
    p = {"1": 0.5, "2": 0.5, "3": 0.99, "4": 0.99, "5": 0.02, "6": 0.02}
    p = np.array([p[doc[1]] for _, doc in map(runs.pool.label, range(len(runs.pool)))])
    relevance = RelevanceDistribution.of(runs.pool, Scale.binary(), np.stack([1 - p, p], axis=1))
    return evaluate(runs, relevance, "DCG@2").ranking()


def test_the_ranking_has_the_best_on_top_with_its_interval(ranking):
    ax = plot_ranking(ranking, level=0.9)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c", "a", "b", "d"]
    bottom, top = ax.get_ylim()
    assert top < bottom  # the first row is the highest
    table = ranking.to_frame(level=0.9)
    bars = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(bars, table[["lower", "upper"]].to_numpy())
    np.testing.assert_allclose(ax.lines[0].get_xdata(), table["mean"])
    assert "DCG@2, 90% interval for these queries" in ax.get_xlabel()
    assert "0 of 12 pairs judged" in ax.get_title(loc="left")
    assert f"{ranking.confidence:.3f}" in ax.get_title(loc="left")


def test_ties_and_groups_are_visible(ranking):
    ax = plot_ranking(ranking)
    tied = next(line for line in ax.lines if line.get_label() == "tied")
    assert tied.get_ydata().tolist() == [1, 2]
    assert tied.get_markeredgecolor() == ORANGE
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["tied"]
    # Groups 1 (c), 2 (a and b), 3 (d): the odd ones have a band.
    assert ranking.to_frame()["group"].tolist() == [1, 2, 2, 3]
    bands = [(patch.get_y(), patch.get_y() + patch.get_height()) for patch in ax.patches]
    assert bands == [(-0.5, 0.5), (2.5, 3.5)]


def test_no_legend_without_ties(ranking):
    from dataclasses import replace

    apart = replace(ranking.scores.joint, mean=np.array([0.5, 0.4, 0.9, 0.1]))
    ax = plot_ranking(replace(ranking.scores, joint=apart).ranking())
    assert ax.get_legend() is None


def test_the_population_is_named(ranking):
    assert (
        "for the population of queries" in plot_ranking(ranking.scores.with_target("population").ranking()).get_xlabel()
    )


def test_the_heat_map_is_the_table_of_pairs(ranking):
    ax = plot_pairs(ranking)
    names = ["c", "a", "b", "d"]
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    assert [t.get_text() for t in ax.get_xticklabels()] == names
    shown = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
    at = [ranking.scores.systems.index(n) for n in names]
    expected = ranking.p_better[np.ix_(at, at)]
    assert shown[0, 3] == expected[0, 3] > 0.99
    assert shown[3, 0] == expected[3, 0] < 0.01
    assert shown[1, 2] == shown[2, 1] == 0.5  # a certain tie is neither better nor worse
    assert np.isnan(np.diag(shown)).all()
    texts = {tuple(map(int, t.get_position()[::-1])): t.get_text() for t in ax.texts}
    assert len(texts) == 12
    assert (texts[1, 2], texts[0, 3], texts[3, 0]) == (".50", "1", ".00")
    assert ax.images[0].get_clim() == (0, 1)


def test_many_systems_have_no_numbers_in_the_cells(small):
    rows = {f"s{i:02d}": {"q": {f"d{i}": 1.0}} for i in range(41)}
    runs = as_runs(rows)
    even = RelevanceDistribution.of(runs.pool, Scale.binary(), np.full((len(runs.pool), 2), 0.5))
    ax = plot_pairs(evaluate(runs, even, "P@1").ranking())
    assert not ax.texts
    assert len(ax.get_xticklabels()) == 41
    assert ax.figure.get_figwidth() < 0.2 * 41 + 2.6  # smaller cells


def test_one_system(ranking):
    runs = as_runs({"only": {"q": {"d": 1.0}}})
    even = RelevanceDistribution.of(runs.pool, Scale.binary(), np.array([[0.5, 0.5]]))
    alone = evaluate(runs, even, "P@1").ranking()
    assert [t.get_text() for t in plot_ranking(alone).get_yticklabels()] == ["only"]
    assert not plot_pairs(alone).texts


def test_given_axes_are_drawn_on(ranking):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_ranking(ranking, ax=ax) is ax
    other = Figure().add_subplot()
    assert plot_pairs(ranking, ax=other) is other


def test_same_ranking_same_bytes(ranking, tmp_path):
    for name in ("one.png", "two.png"):
        save(plot_ranking(ranking), tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one == two
    assert one.startswith(b"\x89PNG")


def test_pyplot_is_not_touched(ranking):
    import subprocess
    import sys

    code = "import sys, probeval.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
