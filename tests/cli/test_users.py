"""``probeval users`` as people type it: create, report, export; and their mapping in other verbs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Collection, write_campaign
from probeval.satisfaction import ListAnswers, Preferences
from probeval.studies import UserStudy
from tests.cli.conftest import Said

Run = Callable[..., Said]


@pytest.fixture
def runs(small: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_campaign(small, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "runs"


@pytest.fixture
def qrels(runs: Path) -> Path:
    return next(runs.parent.glob("qrels*"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Users who notice every difference from .2 on, and like what has a score above one half."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 500))
    given = np.where(np.abs(a - b) > 0.2, np.where(a > b, "a", "b"), np.where(a + b > 1, "good", "bad"))
    UserStudy(ListAnswers.of(Preferences(a, b, given, "CG@5/graded:2")), mapping_shape="monotone").save(
        tmp_path / "mine.json"
    )
    return tmp_path / "mine.json"


def test_a_study_is_created_from_runs(probeval: Run, runs: Path, qrels: Path):
    made = probeval("users", "create", "s.db", runs, "--qrels", qrels, "--metric", "CG@5", "--pairs", 12)
    assert made.code == 0, made.err
    assert made.out.startswith("12 pairs of lists and 4 traps, CG@5 on graded:2, by the difference in score\nfrom")
    assert "Next: probeval users serve s.db --docs FILE" in made.err
    assert "No query texts" in made.err
    again = probeval("users", "create", "s.db", runs, "--qrels", qrels, "--metric", "CG@5")
    assert "already has a campaign 'study'" in again.err
    document = json.loads(
        probeval(
            "users", "create", "t.db", runs, "--qrels", qrels, "--metric", "CG@3", "--pairs", 9, "--traps", 2,
            "--most", 5, "--format", "json",
        ).out
    )  # fmt: skip
    assert (document["pairs"], document["traps"], document["depth"]) == (9, 2, 3)
    assert sum(tenth["chosen"] for tenth in document["tenths"]) == 9
    link = probeval("campaign", "assessors", "add", "t.db", "ann")
    assert link.out.startswith("http://127.0.0.1:8517/join/")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create", "s.db", "data/runs", "--metric", "CG@5"), "Lists are chosen by their scores: give --qrels FILE."),
        (("report",), "Give the store of a study, or --answers FILE; one of the two."),
        (("report", "none.db"), "none.db: no such store. 'probeval users create' makes one."),
        (("export", "none.db"), "none.db: no such store."),
        (("serve", "none.db"), "none.db: no such store."),
        (("report", "x.db", "--save", "mine.txt"), "--save writes a file whose name ends in .json, got mine.txt."),
        (("report", "--answers", "a.csv", "--words", "x,y"), "--words takes the 4 words"),
    ],
)
def test_wrong_usage_is_one_line(probeval: Run, runs: Path, words: tuple[str, ...], message: str):
    found = probeval("users", *words)
    assert found.code == 1
    assert found.err.startswith(f"Error: {message}")
    assert found.err.count("\n") == 1


def test_a_study_without_answers(probeval: Run, runs: Path, qrels: Path):
    probeval("users", "create", "s.db", runs, "--qrels", qrels, "--metric", "CG@5", "--pairs", 5)
    for verb in ("report", "export"):
        assert probeval("users", verb, "s.db").err.startswith("Error: No answers yet")
    assert "'study' is a study with users." in probeval("campaign", "status", "s.db").err


def test_ones_own_users_serve_compare(probeval: Run, runs: Path, qrels: Path, mine: Path):
    words = ("compare", runs, "--qrels", qrels, "--metric", "CG@5", "--against", "system-01")
    theirs, ours = probeval(*words), probeval(*words, "--mapping", mine)
    assert "a difference of 0.5 (CGl@5/broad" in theirs.err
    assert "a difference of 0.2 (CG@5/graded:2; 500 answers)" in ours.err
    assert theirs.out != ours.out
    assert "noticed" in ours.out
    by_users = probeval(*words, "--mapping", mine, "--rope", "users=.5", "--format", "json")
    assert json.loads(by_users.out)["rope"] == 0.2
    other = probeval("compare", runs, "--qrels", qrels, "--metric", "nDCG@3", "--mapping", mine, "--rope", "users=.5")
    assert other.code == 0, other.err  # borrowed for another measure, and named


def test_a_file_is_no_mapping_of_the_goal_success(probeval: Run, runs: Path, mine: Path):
    found = probeval("next", runs, "--metric", "CG@5", "--goal", "success", "--mapping", mine)
    assert found.err.endswith("A mapping of your own is for compare, report and ropes of users.\n")


def test_a_missing_file_is_named(probeval: Run, runs: Path, qrels: Path):
    found = probeval("compare", runs, "--qrels", qrels, "--metric", "CG@5", "--mapping", "none.json")
    assert found.code == 1
    assert "none.json" in found.err
