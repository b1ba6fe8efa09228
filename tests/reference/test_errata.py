"""What the sources print and their figures or data contradict: docs/theory/errata.md."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probeval.data import read_campaign
from probeval.errors import ProbevalWarning
from probeval.relevance import FallbackModel, Uniform, load_card
from probeval.scores import evaluate
from probeval.simulation import HeldOut, SimulationProtocol, replay

PAGE = (Path(__file__).parents[2] / "docs" / "theory" / "errata.md").read_text("utf-8")


@pytest.fixture(scope="module")
def campaign(data):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    return read_campaign(data / "mirex2011")


def stated(printed: str, *figures: str) -> None:
    """The page has a row with these figures."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and printed in line]
    assert any(all(figure in row for figure in figures) for row in rows)


def test_the_error_of_the_historical_distribution(campaign):
    historical = load_card("mirex-jud-fine").models[-1]
    variance = {}
    for grades in (np.arange(3.0), np.arange(5.0, 100.0, 10.0)):
        share = historical.share(len(grades))
        variance[len(grades)] = share @ grades**2 - (share @ grades) ** 2
    assert variance[3] ** 0.5 / 2 == pytest.approx(0.3981, abs=1e-4)  # printed, and right
    assert variance[10] ** 0.5 / 100 == pytest.approx(0.300, abs=5e-4)
    error = ((campaign.judgments.to_frame()["grade"] - 43.41) ** 2).mean() ** 0.5 / 100
    assert error == pytest.approx(0.288, abs=5e-4)
    stated(".3953", ".300", ".288")


@pytest.mark.parametrize(("name", "printed", "rise"), [("erho2", 0.025, 0.016), ("phi", 0.045, 0.030)])
def test_fifty_more_queries(oracles, name, printed, rise):
    many = pd.read_csv(oracles / f"dstudy_{name}.csv")[f"{name}_100_queries"]
    found = float((many - 1 / (1 + 2 * (1 / many - 1))).mean())
    assert found == pytest.approx(rise, abs=5e-4)
    assert abs(found - printed) > 0.008
    stated(f"+{printed:.3f}".replace("+0", "+"), f"+{rise:.3f}".replace("+0", "+"))


def test_the_mark_of_99_percent(campaign):
    protocol = SimulationProtocol.of("CG@5", explore=0, until=0.68, refresh=7000, batch=100, checkpoints=(), stop="")
    found = replay(HeldOut.of(campaign, depth=5), FallbackModel([Uniform()]), protocol, policy="mtc", name="uniform")
    assert found.reaches(0.99) == 4200
    stated("4,254", "4,200")


def test_the_corrected_threshold_holds_before_any_judgment(campaign):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        card = load_card("mirex-out-fine")
        relevance = card.model.predict(
            replace(campaign, judgments=None).problem(depth=5, scale=campaign.judgments.scale())
        )
    scores = evaluate(campaign.runs.top(5), relevance, "CG@5")
    mean = float(np.sqrt((scores.standard_deviation**2).mean()))
    assert mean == pytest.approx(0.0107, abs=5e-5)
    assert mean < 0.011
    stated("539", "0:", ".0107")
