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
from probeval.metrics import measure
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


@pytest.mark.parametrize(("batch", "judgments"), [(100, 4200), pytest.param(20, 4240, marks=pytest.mark.slow)])
def test_the_mark_of_99_percent(campaign, batch, judgments):
    protocol = SimulationProtocol.of("CG@5", explore=0, until=0.68, refresh=7000, batch=batch, checkpoints=(), stop="")
    found = replay(HeldOut.of(campaign, depth=5), FallbackModel([Uniform()]), protocol, policy="mtc", name="uniform")
    assert found.reaches(0.99) == judgments
    stated("4,254", f"{judgments:,}")


# Table 3.2, on the Broad scale: the scores of the later study, and the endpoint bias printed and by Eq 3.11.
ENDPOINTS = {
    "DCGln": (0.1159, 0.1655),
    "DCGe2n": (0.1175, 0.1637),
    "DCGll2": (0.1202, 0.1693),
    "DCGe2l2": (0.1226, 0.1708),
}


@pytest.mark.parametrize("column", ENDPOINTS)
def test_endpoint_bias_is_printed_with_half_outside_the_root(data, column):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    said = pd.read_csv(data / "mirex2011" / "preferences_4115.csv.gz")
    said = said[said["answer"].isin(["good", "bad"])]
    good = np.tile(said["answer"] == "good", 2)
    score = np.concatenate([said[f"{column}A"], said[f"{column}B"]])
    low, high = good[score < 0.1].mean(), 1 - good[score >= 0.9].mean()
    printed, ours = ENDPOINTS[column]
    assert ((low**2 + high**2) / 2) ** 0.5 == pytest.approx(ours, abs=5e-5)
    assert (low**2 + high**2) ** 0.5 / 2 == pytest.approx(printed, abs=0.002)
    stated(f"{printed:.4f}"[1:], f"{ours:.4f}"[1:])


# Table 8.1, MIREX 2011, Fine: accuracy with nothing judged by the coefficients of the appendix, and by those that Table
# 7.1 implies for the model without 2011.
UNJUDGED = {
    "CGl@5": ("CG@5", None, 0.908, 0.902),
    "DCGl@5": ("DCG@5", None, 0.889, 0.876),
    "nDCGl@5": ("nDCG@5", "taylor", 0.889, 0.889),
    "RBPl@5": ('RBP(norm="ideal")@5', "taylor", 0.889, 0.882),
}
JUDGED = {"2007": 4832, "2009": 6732, "2010": 2737, "2011": 6322}  # Table 1.1
TERMS = ("fSYS", "OV", "fSYS:OV", "fART", "sGEN", "fGEN", "sGEN:fGEN")


@pytest.mark.filterwarnings("ignore:Missing for some")
def test_accuracies_without_judgments(campaign, oracles):
    model = load_card("mirex-out-fine").models[0]
    fit = pd.read_csv(oracles / "relevance_model_fit.csv").query("model == 'out' and scale == 'fine'")
    chi = fit.pivot_table(index="statistic", columns="held_out_year", values="value").loc[list(TERMS)]
    # A likelihood ratio is about the squared coefficient times its information, which grows with the judgments.
    rest = 1 - JUDGED["2011"] / sum(JUDGED.values())
    implied = np.sqrt(chi["2011"] / chi["all"] / rest).to_numpy() * np.array(model.coefficients)
    blind = replace(campaign, judgments=None).problem(depth=5, scale=campaign.judgments.scale())
    upper = np.triu_indices(len(campaign.runs.systems), k=1)
    table = pd.read_csv(oracles / "nojudgment_ranking.csv").query("year == 2011 and scale == 'fine'")
    published = table.set_index("measure")["accuracy"]
    for name, (metric, method, ours, without) in UNJUDGED.items():
        truth = measure(campaign.runs, campaign.judgments, metric, scale=campaign.judgments.scale()).values.mean(axis=1)
        for one, accuracy in ((model, ours), (replace(model, coefficients=tuple(implied)), without)):
            relevance = FallbackModel([one, *load_card("mirex-out-fine").models[1:]]).predict(blind)
            mean = evaluate(campaign.runs.top(5), relevance, metric, method=method).mean
            right = np.sign(mean[:, None] - mean)[upper] == np.sign(truth[:, None] - truth)[upper]
            assert right.mean() == pytest.approx(accuracy, abs=5e-4)
        stated("accuracy with nothing judged, published", f"{published[name]:.3f}"[1:])
        stated("coefficients of the appendix", f"{ours:.3f}"[1:])
        stated("coefficients without 2011", f"{without:.3f}"[1:])


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
