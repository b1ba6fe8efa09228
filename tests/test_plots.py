"""Pictures of rankings: what is drawn is what was computed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from probeval.data import Scale, as_judgments, as_runs
from probeval.errors import ReliabilityError
from probeval.plots import (
    ORANGE,
    plot_components,
    plot_critical,
    plot_dstudy,
    plot_pairs,
    plot_precision_recall,
    plot_ranking,
    plot_roc,
    plot_tests,
    plot_trajectory,
    save,
)
from probeval.plots.canvas import entitle, listed
from probeval.relevance import RelevanceDistribution
from probeval.reliability import Observed, compare, dstudy, gstudy
from probeval.scores import Ranking, evaluate
from probeval.simulation import ReplaySetup, Simulation, Trajectory, TrajectoryStep
from probeval.studies.curves import measure_curves


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
    table = ranking.at(0.9).to_frame()
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


LONG = "the-submitted-run-of-a-team-with-all-of-its-settings"


def untidy(ax) -> list[str]:
    """The texts of a figure that leave it, and the neighbouring ticks that overlap."""
    figure = ax.figure
    figure.draw_without_rendering()
    inside, found = figure.bbox.padded(1), []
    for each in figure.axes:
        parts = {t.get_text(): t.get_window_extent() for t in (each.xaxis.label, each.yaxis.label, each._left_title)}
        for axis in (each.xaxis, each.yaxis):
            low, high = sorted(axis.get_view_interval())
            labels = zip(axis.get_ticklabels(), axis.get_majorticklocs(), strict=True)
            ticks = {t.get_text(): t.get_window_extent() for t, at in labels if low <= at <= high and t.get_text()}
            parts |= ticks
            for (one, a), (other, b) in pairwise(ticks.items()):
                if a.padded(-1).overlaps(b.padded(-1)):
                    found.append(f"overlap: {one}, {other}")
        found += [name for name, box in parts.items() if name and not _within(box, inside)]
    return found + ["the legend" for legend in figure.legends if not _within(legend.get_window_extent(), inside)]


def _within(box, outer) -> bool:
    return bool(outer.contains(box.x0, box.y0) and outer.contains(box.x1, box.y1))


@pytest.mark.parametrize("n", [3, 21, 60])
@pytest.mark.parametrize("name", ["s", LONG])
def test_names_and_titles_fit(n, name):
    runs = as_runs({f"{name}-{i:02d}": {"q": {f"d{i}": 1.0}} for i in range(n)})
    even = RelevanceDistribution.of(runs.pool, Scale.binary(), np.full((len(runs.pool), 2), 0.5))
    ranking = evaluate(runs, even, "P@1").ranking()
    assert untidy(plot_ranking(ranking)) == []
    assert untidy(plot_pairs(ranking)) == []


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("name", ["s", LONG])
def test_comparisons_fit(alpha, name):
    scores = np.random.default_rng(6).normal(np.linspace(0, 1, 12)[:, None], 0.3, size=(12, 15))
    found = compare(scores, systems=[f"{name}-{i}" for i in range(12)], level=1 - alpha)
    assert untidy(plot_tests(found)) == []
    assert untidy(plot_critical(found)) == []


@pytest.mark.parametrize("queries", [43, 54, 97])
def test_numbers_of_queries_do_not_overlap(queries):
    means = np.linspace(0, 1, 6)[:, None] + np.linspace(0, 1, queries)
    scores = np.random.default_rng(1).normal(means, 0.5)
    study = gstudy(Observed.matrix(scores, [f"s{i}" for i in range(6)]))
    ax = plot_dstudy(dstudy(study, queries=[10, 25, 50, 100, 200, 400, queries]))
    assert untidy(ax) == []
    assert str(queries) in [t.get_text() for t in ax.get_xticklabels()]
    assert untidy(plot_components(study)) == []


@pytest.mark.parametrize("n", [1, 3, 12])
def test_trajectories_of_several_policies_fit(n):
    steps = tuple(TrajectoryStep(1000 * i, 0.5 + i / 20, 0.5 + i / 20, i / 10) for i in range(10))
    made = [
        Trajectory(
            setup=ReplaySetup("nDCG@10", pool=12000, offered=12000, systems=60), policy=f"a-policy-of-my-own-{i}",
            model="hierarchical", seed=0, steps=steps, points=(), rules=(), stop=steps[5], reasons=("budget",),
            order=(),
        )
        for i in range(n)
    ]  # fmt: skip
    ax = plot_trajectory(Simulation(tuple(made)), "tau")
    assert untidy(ax) == []
    lines = {(line.get_color(), line.get_linestyle()) for line in ax.lines if not line.get_label().startswith("_")}
    assert len(lines) == n  # every policy has a line of its own


HOSTILE = (r"$\foo$", "$x^2$", "a$b", r"\$c\$", "$$")  # mathematics, broken and whole, if they were read as such


def drawn(ax, tmp_path) -> list[str]:
    """The words of a figure as an SVG shows them; mathematics would be drawn in other elements."""
    import re
    from html import unescape

    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        save(ax, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    return [unescape(found) for found in re.findall(r"<text[^>]*>([^<]*)</text>", text)]


def test_names_are_never_mathematics(tmp_path):
    scores = np.random.default_rng(2).normal(np.linspace(0, 1, 5)[:, None], 0.3, size=(5, 12))
    runs = as_runs({name: {"q": {f"d{i}": 1.0}} for i, name in enumerate(HOSTILE)})
    even = RelevanceDistribution.of(runs.pool, Scale.binary(), np.full((len(runs.pool), 2), 0.5))
    ranking = evaluate(runs, even, "P@1").ranking()
    found, study = compare(scores, systems=HOSTILE), gstudy(Observed.matrix(scores, HOSTILE))
    for ax in (plot_ranking(ranking), plot_pairs(ranking), plot_tests(found), plot_critical(found)):
        assert set(HOSTILE) <= set(drawn(ax, tmp_path))
    assert {*HOSTILE[:2]} <= set(drawn(plot_components(dict.fromkeys(HOSTILE[:2], study)), tmp_path))
    shown = drawn(plot_dstudy(dict.fromkeys(HOSTILE[:2], dstudy(study))), tmp_path)
    assert {f"E ρ², {name}" for name in HOSTILE[:2]} <= set(shown)
    curves = measure_curves(runs, as_judgments({"q": {f"d{i}": i % 2 for i in range(5)}}))
    for ax in (plot_precision_recall(curves), plot_roc(curves)):
        assert set(HOSTILE) <= set(drawn(ax, tmp_path))
    entitle(ax, listed(HOSTILE[:4]))
    assert ", ".join(HOSTILE[:4]) in drawn(ax, tmp_path)


def test_names_of_policies_are_never_mathematics(tmp_path):
    steps = tuple(TrajectoryStep(10 * i, 0.5 + i / 20, 0.5 + i / 20, i / 10) for i in range(5))
    made = Trajectory(
        setup=ReplaySetup("nDCG@10", pool=50, offered=50, systems=6), policy=HOSTILE[0], model=HOSTILE[1], seed=0,
        steps=steps, points=(), rules=(), stop=None, reasons=(), order=(),
    )  # fmt: skip
    shown = drawn(plot_trajectory(Simulation((made,)), "tau"), tmp_path)
    assert any(HOSTILE[0] in text and HOSTILE[1] in text for text in shown)


def test_reliability_against_judgments_has_the_cost_of_each_size():
    values = np.random.default_rng(1).random((5, 20)) + np.arange(5)[:, None] + np.arange(20)
    scores = gstudy(Observed.matrix(values), interval="none")
    known = dstudy(scores, queries=[20, 50], pool=12)
    ax = plot_dstudy(known, against="judgments")
    assert ax.lines[0].get_xdata().tolist() == [240, 600]
    assert ax.get_xlabel() == "judgments"
    with pytest.raises(ReliabilityError, match="not known"):
        plot_dstudy(dstudy(scores, queries=[20]), against="judgments")
