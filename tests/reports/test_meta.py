"""The page of a meta-evaluation, of one campaign and of two."""

from __future__ import annotations

from dataclasses import replace

import pytest

import probeval
from probeval.display import Table
from probeval.reports import render, report_meta, report_study
from probeval.reports.page import TableText


@pytest.fixture(scope="module")
def study():
    made = [
        probeval.synthetic_campaign(seed=2, systems=5, queries=12, depth=5, scale=scale)
        for scale in (probeval.Scale.graded(2), probeval.Scale.binary())
    ]
    first, second = (replace(campaign, name=name) for campaign, name in zip(made, ("first", "second"), strict=True))
    return probeval.meta_study([first, second], ["CG@5", "P@5"], tests=["t", "sign"], splits=10, alphas=[0.05, 0.2])


@pytest.fixture(scope="module")
def page(study):
    return report_study(study, command="probeval meta first second")


def tables(section):
    return [TableText.of(part) for part in section.parts if isinstance(part, Table)]


def test_campaigns_stand_in_columns(study, page):
    discrimination, *_, exactness = tables(page["campaigns"])
    assert discrimination.columns == ("measure or test", "first", "second")
    assert [row[0] for row in discrimination.rows] == ["CG@5", "P@5", "t test", "sign test"]
    expected = study["second"].tests_frame(0.05)["discrimination"]
    assert [row[2] for row in discrimination.rows[2:]] == [f"{x:.4f}" for x in expected]
    assert [row[0] for row in exactness.rows] == ["t test", "sign test"]


def test_one_campaign_has_nothing_beside_it(study):
    alone = report_meta(replace(study, campaigns=study.campaigns[:1]))
    assert [section.key for section in alone.sections] == ["measures", "tests", "levels", "agreement", "paper", "made"]
    assert "first (5 systems, 12 queries), at alpha 0.05." in alone.lead


def test_measures_have_intervals_and_users_where_these_are_known(study, page):
    first, second = tables(page["measures"])
    assert "preference distance" in first.columns  # CG@5 on grades 0 to 2 is published, P@5 and two grades are not
    assert "preference distance" not in second.columns
    interval = first.rows[0][first.columns.index("E rho^2 interval")]
    assert interval.startswith(f"[{study['first'].measures[0].erho2.lower:.3f},")


def test_the_page_renders_with_its_settings(page):
    html = render(page)
    assert html.count("<svg") == 6
    assert "probeval meta first second" in html
    assert "halves of the queries" in html
    assert "nan" not in html.lower().replace("nano", "")
