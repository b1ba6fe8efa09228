"""Pictures of meta-evaluations show the figures of the study."""

from __future__ import annotations

import numpy as np
import pytest

import probeval
from probeval.plots import plot_measures, plot_meta, plot_rates


@pytest.fixture(scope="module")
def study():
    campaign = probeval.synthetic_campaign(seed=2, systems=8, queries=24, depth=5)
    return probeval.meta_study(campaign, ["CG@5", "P@5"], tests=["t", "sign"], splits=30, alphas=[0.05, 0.1, 0.2])


def test_rates_are_lines_by_alpha(study):
    part = study.campaigns[0]
    ax = plot_rates(part, "discrimination")
    table = part.levels_frame("discrimination")
    for line, test in zip(ax.lines, ("t", "sign"), strict=True):
        np.testing.assert_array_equal(line.get_data(), (table["alpha"], table[test]))
    assert ax.get_xlabel() == "alpha"


def test_conflicts_have_the_diagonal_beside_them(study):
    ax = plot_rates(study.campaigns[0], "conflict")
    x, y = ax.lines[-1].get_data()
    assert list(x) == list(y) == [0.05, 0.1, 0.2]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.05", "0.1", "0.2"]


def test_measures_have_both_coefficients(study):
    part = study.campaigns[0]
    ax = plot_measures(part)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["CG@5", "P@5"]
    erho2, phi = (line.get_xdata() for line in ax.lines)
    assert list(erho2) == [m.erho2.value for m in part.measures]
    assert list(phi) == [m.phi.value for m in part.measures]


def test_one_row_of_panels_per_campaign(study):
    assert len(plot_meta(study).figure.axes) == 3
