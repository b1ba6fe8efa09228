"""Grades that the model did not expect: the owner's page asks to look at them again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, ModelSnapshot
from probeval.data import Scale
from probeval.relevance import SyntheticCampaign, surprising_grades
from probeval.web import Board, Roster, application
from tests.web.asking import Client
from tests.web.conftest import HOST


@pytest.mark.slow
def test_surprising_grades_are_on_the_owners_page(memory: Path):
    collection = SyntheticCampaign(queries=6, systems=8, depth=10).draw(np.random.default_rng(3))
    given = collection.judgments
    assert given is not None
    bare, scale = replace(collection, judgments=None), Scale.graded(2)
    with Campaign.create(memory / "odd.db", bare, metric="nDCG@10", scale=scale, model="text-hierarchical") as made:
        for row in given.to_frame().itertuples():
            made.answer("ann", (row.query, row.doc), grade=row.grade)
        snapshot = made.refresh()
        found = snapshot.surprising
        assert found is not None
        again = surprising_grades(made.judging_state().prediction.relevance, n=len(found.grades))
        assert found.to_dict() == again.to_dict()
        assert ModelSnapshot.from_row(snapshot.to_row()).surprising.to_dict() == found.to_dict()
        assert made.refresh().surprising.to_dict() == found.to_dict()  # few judgments later it is not made again
        site = application(made, roster=Roster(made, alone="eve"), board=Board(made), hosts=[HOST])
        listed = Client(site, HOST).get("/overview").text.partition("Judgments to look at again")[2]
        first, last = found.grades[0], found.grades[-1]
        assert first.tail <= 0.05 < last.tail
        assert f"<code>{first.query}</code> <code>{first.doc}</code></a>" in listed
        assert f"<code>{last.query}</code> <code>{last.doc}</code></a>" not in listed
