"""Stores that are damaged in every way: used, or refused in one line."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from probeval.errors import StoreError
from tests.attack.cases import check_apart, check_some
from tests.campaign.hostile_stores import STORES, make_stores, use_store


@pytest.fixture(scope="session")
def stores(shared_folder: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    return shared_folder("stores to damage", make_stores)


@pytest.mark.slow
def test_a_store_that_is_whole_is_used(stores: Path, tmp_path: Path):
    """What is damaged is used as it is."""
    for name in ("grades.db", "lists.db", "campaign.sqlite"):
        place = Path(shutil.copy(stores / name, tmp_path / "store.db"))
        assert not [error for error in use_store(place, tmp_path) if isinstance(error, StoreError)]
        place.unlink()


@pytest.mark.slow
def test_fifteen_damaged_stores():
    """The first of the 10,000 of make attack."""
    check_some(STORES, 15)


@pytest.mark.validation
def test_a_thousand_damaged_stores():
    check_apart("stores", 1000)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("grades.db", 'event SET body = replace(body, \'"documents":[\', \'"documents":["x","y",\')', "cannot be read"),
        ("grades.db", 'event SET body = \'{"query":"q","documents":[]}\' WHERE kind = \'judged\'', "cannot be read"),
        ("grades.db", "event SET body = replace(body, 'half a text', 'half \\ud83d')", "cannot be read"),
        ("grades.db", 'event SET body = replace(body, \'"left"\', \'"up"\')', "cannot be read"),
        ("lists.db", 'event SET body = replace(body, \'"documents":["\', \'"documents":["x\')', "cannot be read"),
        ("loose-grades.db", "event SET time = 'noon'", "cannot be read"),
        ("loose-grades.db", "campaign SET name = NULL", "the name of campaign 1 is no text"),
        ("loose-grades.db", "event SET by = NULL", "cannot be read"),
        ("loose-grades.db", "version SET version = NULL", "not a store of campaigns"),
        ("loose-grades.db", "outlook SET time = 1e999", "the file is damaged"),
        ("loose-grades.db", "part SET content = 'text'", "is damaged"),
        ("grades.db", "part SET content = x'ff' WHERE name = 'page-secret'", "is damaged"),
        ("schema1.sqlite", "part SET content = 'text'", "is damaged"),
    ],
)  # fmt: skip
def test_wrong_values_are_a_store_error(stores: Path, tmp_path: Path, name: str, change: str, says: str):
    place = Path(shutil.copy(stores / name, tmp_path / "store.db"))
    with closing(sqlite3.connect(place)) as base, base:
        assert base.execute(f"UPDATE probeval_{change}").rowcount
    refused = [str(error) for error in use_store(place, tmp_path) if isinstance(error, StoreError)]
    assert any(says in each for each in refused), refused


@pytest.mark.parametrize("row", ["version", "event", "part"])
def test_a_row_that_is_there_twice_is_a_store_error(stores: Path, tmp_path: Path, row: str):
    place = Path(shutil.copy(stores / "loose-grades.db", tmp_path / "store.db"))
    with closing(sqlite3.connect(place)) as base, base:
        base.execute(f"INSERT INTO probeval_{row} SELECT * FROM probeval_{row} LIMIT 1")
    assert use_store(place, tmp_path)


@pytest.mark.parametrize(
    "questions", ["{}", "[{}]", '[{"query":"q","a":["d"],"b":7,"score_a":0,"score_b":1,"trap":""}]', "[1", '"x"']
)
def test_questions_about_lists_that_cannot_be_read(stores: Path, tmp_path: Path, questions: str):
    from probeval.campaign.archive import digest_of

    place = Path(shutil.copy(stores / "lists.db", tmp_path / "store.db"))
    with closing(sqlite3.connect(place)) as base, base:
        given = [questions.encode(), digest_of(questions.encode())]
        base.execute("UPDATE probeval_part SET content = ?, digest = ? WHERE name = 'questions'", given)
    with Campaign.open(place) as campaign, pytest.raises(StoreError, match="A part of the store is damaged"):
        campaign.status()
