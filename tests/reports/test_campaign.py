"""The report of a campaign in a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sqlalchemy")

from probeval.campaign import Campaign
from probeval.data import Collection
from probeval.display import Table
from probeval.reports import Page, render, report_campaign
from probeval.reports.page import Prose, TableText
from probeval.reports.pages import _name
from tests.heard import Heard


@pytest.fixture(scope="module")
def campaign(small: Collection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """Twenty judgments by two people, two of them on the same pair."""
    assert small.judgments is not None
    store = tmp_path_factory.mktemp("store") / "mine.db"
    seconds = iter(range(1_000_000_000, 2_000_000_000, 7))
    blind = replace(small, judgments=None)
    made = Campaign.create(
        store, blind, metric="DCG@5", scale=small.judgments.scale(), overlap=0.0, clock=lambda: next(seconds)
    )
    with made as opened:
        grades = small.judgments.grades()
        pool = small.judgments.pool
        for i in range(18):
            query, doc = pool.label(3 * i)
            opened.answer("ann" if i % 2 else "ben", (query, doc), grade=float(grades[3 * i]))
        query, doc = pool.label(0)
        opened.answer("ann", (query, doc), grade=2.0)
        yield opened


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> Page:
    return report_campaign(campaign, command="probeval report mine.db")


def test_it_has_what_was_judged_who_did_it_and_how_it_was_made(page: Page) -> None:
    assert page.title == "Campaign mine"  # nobody named it, so after its store
    keys = [section.key for section in page.sections]
    at = keys.index("judging")
    assert keys[at : at + 3] == ["judging", "audit", "people"]
    people, verdicts = (TableText.of(part) for part in page["people"].parts if isinstance(part, Table))
    assert {(row[0], row[1]) for row in people.rows} == {("ann", "10"), ("ben", "9")}
    assert {row[0] for row in verdicts.rows} == {"ann", "ben"}
    assert page.figures[1][1] == "14"  # two people do not agree on one of them
    assert page["people"].parts[0] == Prose(
        "14 of 56 pairs judged from 19 judgments (1 further judgment of the same pairs; 3 judgments of pairs outside "
        "the pool; 1 pair not counted, as assessors differ)."
    )
    assert page["judging"].parts[0] == Prose(
        "14 of 56 pairs of query and document that systems retrieved to depth 5 (25.0%) are judged from 19 judgments "
        "(1 further judgment of the same pairs; 3 judgments of pairs outside the pool; 1 pair not counted, as "
        "assessors differ)."
    )
    facts = dict(page["made"].parts[0].rows)  # type: ignore[union-attr]
    assert facts["policy and goal"] == "gain, ranking"
    assert facts["events in the log"].startswith("20, the last 2001-09-09")
    assert "Campaign mine" in render(page)
    assert page["model"].parts[0] == Prose(
        "text-hierarchical: it was chosen when the campaign was created. Scale graded:2 (of the campaign)."
    )


def test_the_ranking_is_the_campaigns(campaign: Campaign, page: Page) -> None:
    assert page.figures[0][1] == campaign.evaluate().order[0]
    assert page.figures[1][1] == str(campaign.evaluate().scores.judged)


def test_a_campaign_without_a_judgment_has_a_report(small: Collection, tmp_path: Path) -> None:
    blind = replace(small, judgments=None)
    with Campaign.create(tmp_path / "new.db", blind, metric="P@5", model="uniform") as opened:
        page = report_campaign(opened)
    assert page.figures[1][1] == "0"
    assert "Assessors" in [section.title for section in page.sections]


@pytest.mark.slow
def test_progress_goes_over_milestones_and_sections(campaign: Campaign, page: Page) -> None:
    heard = Heard()
    made = report_campaign(campaign, command="probeval report mine.db", reporter=heard)
    assert render(made) == render(page)
    assert [n for _, n in heard.work] == [5, 11]


@pytest.mark.parametrize(
    ("store", "name", "shown"),
    [
        ("folder/mine.db", "campaign", "mine"),
        ("folder/mine.db", "pilot", "pilot"),
        ("postgresql://ann:secret@host/lab?sslmode=require", "campaign", "lab"),
        ("postgresql://ann:secret@host", "campaign", "campaign"),
    ],
)
def test_the_title_is_the_name_or_that_of_the_store(store: str, name: str, shown: str) -> None:
    assert _name(SimpleNamespace(address=(store, name))) == shown  # type: ignore[arg-type]
