"""Pictures of reliability studies show what the studies say."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.plots import plot_components, plot_dstudy, plot_posterior, save
from probeval.reliability import Observed, dstudy, gstudy


@pytest.fixture(scope="module")
def scores() -> Observed:
    return Observed.matrix(np.random.default_rng(1).normal(size=(8, 20)) + np.arange(8)[:, None] / 3)


def test_bars_are_shares(scores, tmp_path):
    study = gstudy(scores, interval="bootstrap", n=100)
    ax = plot_components({"one": study, "two": gstudy(scores)})
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([*study.share.values()] * 2)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["system", "query", "residual"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one", "two"]
    save(ax, tmp_path / "shares.png", dpi=40)


def test_posterior_needs_draws(scores):
    study = gstudy(scores, interval="bootstrap", n=100)
    ax = plot_posterior(study)
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([*study.share.values()])
    with pytest.raises(ReliabilityError, match="no draws"):
        plot_posterior(gstudy(scores))


def test_curves_go_through_the_points(scores):
    plan = dstudy(gstudy(scores), queries=[10, 50, 100])
    ax = plot_dstudy(plan)
    table = plan.to_frame()
    for line, name in zip(ax.lines, ("erho2", "phi"), strict=False):
        np.testing.assert_allclose(line.get_ydata(), table[name])
    assert len(plot_dstudy({"a": plan, "b": plan}).get_legend().get_texts()) == 2
