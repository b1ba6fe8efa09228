"""The eight system-oriented measures on MIREX 2011 give the published shares of variance."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from probeval.data import read_campaign
from probeval.metrics import measure

# Urbano, Evaluation in Audio Music Similarity (2013), Table 6.1: scale and measure there, and the measure here.
MEASURES = {
    ("fine", "CGl@5"): "CG@5",
    ("fine", "DCGl@5"): "DCG@5",
    ("fine", "nDCGl@5"): "nDCG@5",
    ("fine", "Ql@5"): 'Q(norm="min")@5',
    ("fine", "RBPl@5"): 'RBP(p=0.8, norm="ideal")@5',
    ("fine", "GAP@5"): "GAP@5",
    ("lmin40", "P@5"): "P(rel=40)@5",
    ("lmin40", "AP@5"): 'AP(rel=40, norm="min")@5',
}


@pytest.fixture(scope="module")
def campaign(data):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    return read_campaign(data / "mirex2011")


@pytest.fixture(scope="module")
def published(oracles) -> dict[tuple[str, str], list[float]]:
    with (oracles / "gstudy_components.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["year"] == "2011"]
    parts = ("var_system", "var_query", "var_residual")
    return {(row["scale"], row["measure"]): [float(row[part]) for part in parts] for row in rows}


def shares(scores: np.ndarray) -> np.ndarray:
    """The shares of variance of systems, queries and the rest, by a two-way analysis of variance."""
    n_systems, n_queries = scores.shape
    system, query, mean = scores.mean(axis=1), scores.mean(axis=0), scores.mean()
    ms_system = n_queries * ((system - mean) ** 2).sum() / (n_systems - 1)
    ms_query = n_systems * ((query - mean) ** 2).sum() / (n_queries - 1)
    rest = ((scores - system[:, None] - query + mean) ** 2).sum() / ((n_systems - 1) * (n_queries - 1))
    parts = np.array([(ms_system - rest) / n_queries, (ms_query - rest) / n_systems, rest])
    return parts / parts.sum()


@pytest.mark.parametrize(("row", "metric"), MEASURES.items(), ids=MEASURES.values())
def test_shares_of_variance(campaign, published, row, metric):
    found = measure(campaign.runs, campaign.judgments, metric)
    assert found.values.shape == (18, 100)
    # The table is printed to three digits.
    assert np.abs(shares(found.values) - published[row]).max() < 0.0006


def test_the_figures_quoted_for_one_system_and_one_pair(campaign):
    # Recomputed on the same data: 4954a8 scores .422, 2d3c5b - 3fd025 is .082.
    mean = measure(campaign.runs, campaign.judgments, "CG@5").to_frame().set_index("system")["mean"]
    assert mean["4954a8"] == pytest.approx(0.422, abs=0.00051)
    assert mean["2d3c5b"] - mean["3fd025"] == pytest.approx(0.082, abs=0.00051)
