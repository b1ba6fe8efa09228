"""Pictures of validations: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.plots import BLUE, ORANGE, plot_checkpoints, plot_reliability, save
from probeval.simulation import Validation, validate


@pytest.fixture(scope="module")
def result(three) -> Validation:
    return validate(three, models=["independent", "uniform"], depth=5, checkpoints=[0, 0.05, 0.2], seeds=2, draws=50)


def test_reliability_is_the_table(result):
    ax = plot_reliability(result)
    table = result.reliability()
    diagonal, *lines = ax.lines
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0.5, 0.5], [1.0, 1.0]])
    for line, dots, model, colour in zip(
        lines, ax.collections, ("independent", "uniform"), (ORANGE, BLUE), strict=True
    ):
        rows = table[table["model"] == model]
        np.testing.assert_allclose(line.get_xdata(), rows["confidence"])
        np.testing.assert_allclose(line.get_ydata(), rows["accuracy"])
        assert line.get_color() == colour
        assert np.argmax(dots.get_sizes()) == np.argmax(rows["pairs"])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["perfect calibration", "independent", "uniform"]
    assert ax.get_title(loc="left") == "one, two, three"
    low, high = ax.get_ylim()
    assert low < table["accuracy"].min()
    assert table["accuracy"].max() < high


def test_a_figure_against_the_share_judged(result):
    ax = plot_checkpoints(result, "tau")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0%", "5%", "20%"]
    assert [t.get_text() for t in ax.figure.legends[0].get_texts()] == [
        f"{m}, {c}" for m in ("independent", "uniform") for c in ("one", "two", "three")
    ]
    frame = result.to_frame(by_seed=True)
    mine = frame[(frame["model"] == "uniform") & (frame["campaign"] == "two")]
    np.testing.assert_allclose(ax.lines[4].get_ydata(), mine.groupby("checkpoint")["tau"].mean())
    assert ax.get_ylabel() == "tau"
    assert len(plot_checkpoints(result).lines) == 7  # no excess is a line of its own


def test_many_campaigns_are_counted(result):
    from dataclasses import replace

    many = Validation(
        result.checkpoints, tuple(replace(t, collection=f"c{i}") for i in range(5) for t in result.validation_runs[:1])
    )
    assert plot_reliability(many).get_title(loc="left") == "5 campaigns"


def test_given_axes_are_drawn_on_and_bytes_are_the_same(result, tmp_path):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_reliability(result, ax=ax) is ax
    assert plot_checkpoints(result, ax=ax) is ax
    for name in ("one.png", "two.png"):
        save(plot_reliability(result), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
