"""Texts and ids that a page could not show: replaced when they are read, or refused when a campaign is created."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from probeval.campaign.parsing import LONGEST_ID
from probeval.data import Collection, Runs, Scale
from probeval.data.texts import as_text_mapping
from probeval.errors import CampaignError
from probeval.web import read_documents
from tests.web.asking import Client

Open = Callable[..., Client]
SETTINGS = {"metric": "P@2", "scale": Scale.graded(2), "model": "uniform"}
CUT, SHOWN = "cut \ud83d", "cut \N{REPLACEMENT CHARACTER}"  # in the middle of an emoji


def test_a_text_that_was_cut_in_a_character_is_judged_like_any_other(open_page: Open, campaign: Campaign, put):
    """JSON can hold half of a surrogate pair, and no page can be encoded with it."""
    lines = [{"doc": doc, "title": f"T {CUT}", "text": f"{doc} {CUT}"} for doc in campaign.pool.docs]
    documents = read_documents(put("docs.jsonl", "".join(json.dumps(line) + "\n" for line in lines)))
    campaign.change_queries("owner", dict.fromkeys(campaign.queries, CUT))
    client = open_page(documents=documents)
    page = client.get("/")
    for _ in range(3):
        assert page.status == 200
        assert page.text.count("\N{REPLACEMENT CHARACTER}") >= 3  # the query, the title and the text
        page = client.post("/judge", {**page.form("/judge"), "grade": "1"})
    assert len(campaign.state.judged) == 3
    assert client.post("/skip", page.form("/skip")).status == 200


def test_texts_from_python_are_replaced_too():
    assert as_text_mapping({"q1": CUT}, "query") == {"q1": SHOWN}


def test_an_id_that_no_form_could_send_is_refused_at_creation(tmp_path: Path, open_page: Open):
    longest, longer = "d" * LONGEST_ID, "d" * (LONGEST_ID + 1)
    for runs, what in (
        (Runs.rows(["a", "b"], ["q", "q"], [longer, "e"]), "document"),
        (Runs.rows(["a", "b"], [longer] * 2, ["d", "e"]), "query"),
    ):
        with pytest.raises(CampaignError, match=rf"The id of a {what} has at most 4,000 .* got 4,001"):
            Campaign.create(tmp_path / "long.db", Collection("long", runs), **SETTINGS)
    runs = Runs.rows(["a", "b"], [longest] * 2, [longest, "e"])
    with Campaign.create(tmp_path / "fits.db", Collection("fits", runs), **SETTINGS) as made:
        from probeval.web import Board, Roster, application
        from tests.web.conftest import HOST

        client = Client(application(made, roster=Roster(made, alone="ann"), board=Board(made), hosts=[HOST]), HOST)
        page = client.get("/")
        page = client.post("/judge", {**page.form("/judge"), "grade": "1"})
        assert client.post("/skip", page.form("/skip")).status == 200
        assert len(made.state.judged) == 1
        with pytest.raises(CampaignError, match="at most 4,000 characters"):  # late runs too
            made.add_runs("owner", Runs.rows(["c"], [longest], [longer]))
