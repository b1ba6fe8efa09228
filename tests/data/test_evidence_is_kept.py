"""Every piece of evidence of a collection is kept wherever collections are kept, or refused there by name."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probeval.campaign.archive import pack, unpack
from probeval.data import Collection, LabelTable, as_answers, as_magnitudes, read_campaign, split, write_campaign
from probeval.data.partitioning import LEFT_OUT
from probeval.relevance import synthetic_campaign

ABOUT = {"name", "consensus", "ranked"}  # of a collection, but no evidence
EVIDENCE = sorted({field.name for field in fields(Collection)} - ABOUT)
NOT_IN_FOLDERS = {"vectors"}  # a folder has texts of documents, not vectors
EVENTS = {"judgments", "answers", "magnitudes"}  # in the log of a campaign, not beside it


@pytest.fixture(scope="module")
def whole() -> Collection:
    """A collection with every piece of evidence."""
    made = synthetic_campaign(seed=1, systems=3, queries=4, depth=3, dimensions=2)
    pool = made.runs.pool
    (query, left), (_, right) = pool.label(0), pool.label(1)
    about = {"query": [query], "assessor": ["ann"]}
    answers = as_answers(pd.DataFrame({**about, "left": [left], "right": [right], "choice": ["left"]}))
    numbers = as_magnitudes(pd.DataFrame({**about, "doc": [left], "number": [40.0], "kind": ["s100"]}))
    labels = LabelTable(pool, ("bot",), np.arange(len(pool), dtype=float)[:, None] % 3)
    return replace(made, labels=labels, answers=answers, magnitudes=numbers)


def test_the_collection_has_everything(whole):
    assert [name for name in EVIDENCE if getattr(whole, name) is None] == []


@pytest.mark.parametrize("name", sorted(set(EVIDENCE) - NOT_IN_FOLDERS))
def test_a_folder_keeps_it(whole, name, tmp_path: Path):
    write_campaign(replace(whole, vectors=None), tmp_path / "folder")
    assert getattr(read_campaign(tmp_path / "folder"), name) is not None


@pytest.mark.parametrize("name", sorted(set(EVIDENCE) - EVENTS))
def test_the_store_of_a_campaign_keeps_it(whole, name):
    assert getattr(unpack("kept", pack(whole).get), name) is not None


@pytest.mark.parametrize("name", EVIDENCE)
def test_partitions_keep_it_or_refuse_it(whole, name):
    if name in LEFT_OUT:
        return
    assert all(getattr(part, name) is not None for part in split(whole, 2))
