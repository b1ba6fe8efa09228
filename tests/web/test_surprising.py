"""A grade that the model did not expect: the owner's page asks to look at it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, ModelSnapshot
from probeval.data import Scale
from probeval.relevance import SyntheticCampaign
from probeval.web import Board, Roster, application
from tests.web.asking import Client
from tests.web.conftest import HOST


@pytest.mark.slow
def test_a_surprising_grade_is_on_the_owners_page(memory: Path):
    collection = SyntheticCampaign(queries=6, systems=8, depth=10).draw(np.random.default_rng(3))
    given = collection.judgments
    assert given is not None
    table = given.to_frame()
    with Campaign.create(
        memory / "odd.db",
        replace(collection, judgments=None),
        metric="nDCG@10",
        scale=Scale.graded(2),
        model="text-hierarchical",
    ) as made:
        systems = made.collection.runs.top(10)
        retrieved = np.bincount(systems.pairs[systems.pairs >= 0], minlength=len(systems.pool))
        worst = min(
            (row for row in table.itertuples() if row.grade == 0),
            key=lambda row: retrieved[systems.pool.locate([row.query], [row.doc])[0]],
        )
        for row in table.itertuples():
            odd = (row.query, row.doc) == (worst.query, worst.doc)
            made.answer("ann", (row.query, row.doc), grade=2 if odd else row.grade)
        snapshot = made.refresh()
        assert snapshot.surprising is not None
        (found,) = [each for each in snapshot.surprising.grades if (each.query, each.doc) == (worst.query, worst.doc)]
        assert (found.grade, found.direction) == (2, "higher")
        assert found.tail < 0.02
        assert ModelSnapshot.from_row(snapshot.to_row()).surprising.to_dict() == snapshot.surprising.to_dict()
        site = application(made, roster=Roster(made, alone="eve"), board=Board(made), hosts=[HOST])
        page = Client(site, HOST).get("/overview").text
        assert "Judgments to look at again" in page
        assert f"<code>{worst.query}</code> <code>{worst.doc}</code>" in page.partition("Judgments to look at again")[2]
        assert made.refresh().surprising == snapshot.surprising  # few judgments later it is not made again
