"""Studies of several campaigns: their work, their exits and their reports, on a study made for the tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import pytest

import probeval
from probeval.api.campaigns import as_campaigns
from probeval.errors import DataError
from probeval.relevance import synthetic_campaign
from probeval.reports import Page, Prose, Section, report_study, study_page
from probeval.studies.collections import CollectionStudy, over_collections
from tests.heard import Heard


@dataclass(frozen=True)
class Count:
    """The number of systems of a campaign."""

    campaign: str
    systems: int

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame({"systems": [self.systems]})


class Counts(CollectionStudy[Count]):
    def _headline(self) -> str:
        return f"{len(self.names)} campaigns"


@pytest.fixture
def counts() -> Counts:
    return Counts((Count("a", 3), Count("b", 5)))


def test_results_stand_side_by_side(counts):
    assert counts.to_frame().to_dict("list") == {"campaign": ["a", "b"], "systems": [3, 5]}
    assert counts.to_dict() == {"campaigns": [{"campaign": "a", "systems": 3}, {"campaign": "b", "systems": 5}]}
    assert counts["b"].systems == 5
    assert repr(counts) == "<Counts: 2 campaigns>"
    assert "a" in counts.summary()
    assert "<table>" in counts._repr_html_()


@pytest.mark.parametrize(
    ("parts", "message"),
    [((), "at least one campaign"), ((Count("a", 3), Count("a", 5)), "two campaigns have the name 'a'")],
)
def test_campaigns_are_told_apart_by_name(parts, message):
    with pytest.raises(DataError, match=message):
        Counts(parts)


def test_an_unknown_campaign_is_refused(counts):
    with pytest.raises(DataError, match="no campaign 'c' in the study"):
        counts["c"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_pieces_of_all_campaigns_come_back_in_order(jobs):
    heard = Heard()
    found = over_collections([2, 0, 3], lambda n: [partial(pow, n, k) for k in range(n)], jobs=jobs, reporter=heard)
    assert found == [[1, 2], [], [1, 3, 9]]
    assert heard.work == [("Comparing", 5)]


def test_folders_and_collections_are_campaigns(tmp_path):
    campaign = synthetic_campaign(seed=1, systems=3, queries=4, depth=3)
    probeval.write_campaign(campaign, tmp_path / "written")
    read, given = as_campaigns([tmp_path / "written", campaign])
    assert (read.name, given) == ("written", campaign)
    assert as_campaigns(campaign) == [campaign]
    (tmp_path / "written" / "qrels.txt").unlink()
    with pytest.raises(DataError, match="written: has no judgments"):
        as_campaigns(tmp_path / "written")


def test_a_study_registers_its_page(counts, tmp_path):
    with pytest.raises(DataError, match="No report for Counts"):
        probeval.report(counts, tmp_path / "page.html")

    @report_study.register
    def _(study: Counts, *, command: str = "") -> Page:
        section = Section("counts", "Systems", (Prose("Three and five."),))
        return study_page(
            "Counts", "Two campaigns.", [section], figures=[("systems", "8", "in all")], paragraph="We counted.",
            facts={"seed": "0"}, command=command,
        )  # fmt: skip

    page = probeval.report(counts, tmp_path / "page.html", command="probeval count a b")
    assert (page.kind, [s.key for s in page.sections]) == ("study", ["counts", "paper", "made"])
    html = (tmp_path / "page.html").read_text()
    assert "Three and five." in html
    assert "probeval count a b" in html
