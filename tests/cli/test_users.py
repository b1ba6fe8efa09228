"""Studies with users as people type them: lists, the verbs of campaigns, the report; and their mapping elsewhere."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probeval.data import Collection, write_campaign
from probeval.satisfaction import ListAnswers, Preferences
from probeval.studies import UserStudy
from tests.cli.conftest import Said
from tests.cli.test_schema import check

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
    assert "Next: probeval judge s.db --docs FILE" in made.err
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
        (("report", "none.db"), "none.db: no such store. Create one first"),
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
    assert probeval("users", "report", "s.db").err.startswith("Error: No answers yet")
    assert probeval("campaign", "export", "s.db").out.count("\n") == 1  # the names of the columns
    status = probeval("campaign", "status", "s.db", "--refresh")
    assert "study, CG@5, 0 of 9 questions answered" in status.out
    assert "0 of 9 questions answered: 0 answers." in status.err


@pytest.mark.slow
def test_a_study_has_the_verbs_of_a_campaign(
    probeval: Run, runs: Path, qrels: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "docs.csv").write_text("doc,text\n" + "".join(f"d{i:03},About trains\n" for i in range(200)))
    made = probeval("users", "create", "s.db", runs, "--qrels", qrels, "--metric", "CG@5", "--pairs", 6, "--most", 4)
    assert made.code == 0, made.err

    def asked(verb: str, *arguments: object) -> Any:
        said = probeval("campaign", *verb.split(), "s.db", *arguments, "--format", "json")
        assert said.code == 0, said.err
        found = json.loads(said.out)
        check(f"campaign {verb}", found)
        return found

    listed = probeval("campaign", "next", "s.db", "--assessor", "ann", "--format", "csv").out
    assert listed.startswith("query,left,right,asks,text,until\n")
    (task,) = asked("next", "--assessor", "ann")["next"]
    about = (task["query"], *task["documents"])
    given = asked("record", *about, "left", "yes", "--assessor", "ann", "--comment", "short")
    assert (given["event"], given["documents"], given["answer"]) == (
        "lists compared", task["documents"], "left is better, good",
    )  # fmt: skip
    asked("record", "--assessor", "ann", "--withdraw", 0)
    assert asked("next", "--assessor", "ann")["next"][0]["documents"] == task["documents"]
    monkeypatch.setattr("sys.stdin", io.StringIO("left\nl y\n= n\ns\nu\nq\n"))
    said = probeval("campaign", "judge", "s.db", "--assessor", "ann", "--docs", "docs.csv")
    assert said.out.splitlines()[-1].split() == ["ann", "2", "1", "1"]
    assert "Whether a list is good must be yes or no" in said.err
    assert re.search(r"^  d\d+: About trains$", said.err, re.MULTILINE)
    for user in ("bob", "cy"):
        while tasks := asked("next", "--assessor", user)["next"]:
            asked("record", tasks[0]["query"], *tasks[0]["documents"], "right", "no", "--assessor", user)
    status = asked("status", "--refresh")
    assert (status["ask"], status["answers"], status["snapshot"]) == ("lists", 9, None)
    assert {user["assessor"]: user["answers"] for user in status["users"]} == {"ann": 1, "bob": 4, "cy": 4}
    exported = probeval("campaign", "export", "s.db", "-o", "answers.csv")
    assert exported.err.endswith(
        "lines in answers.csv. Report them with probeval users report --answers answers.csv.\n"
    )
    reports = [
        json.loads(probeval("users", "report", *source, "--shape", "monotone", "--format", "json").out)
        for source in (("s.db",), ("--answers", "answers.csv"))
    ]
    assert reports[0] == reports[1]
    asked("pause", "--reason", "lunch")
    assert "paused (lunch)" in probeval("campaign", "record", "s.db", *about, "left", "yes", "--assessor", "dee").err
    asked("resume")
    (tmp_path / "q.tsv").write_text(f"query\ttext\n{task['query']}\tbirds\n")
    asked("queries", "q.tsv")
    asked("guideline", "q.tsv")
    asked("assessors add", "ann")
    assert asked("assessors list")[0]["assessor"] == "ann"
    assert {"created", "phase", "queries", "guideline", "invited"} <= {entry["event"] for entry in asked("log")}
    assert asked("check")["faults"] == []
    asked("backup", "copy.db")
    assert probeval("campaign", "check", "copy.db").err == "No faults.\n"
    assert asked("adjudicate")["disagreements"] == []  # users may differ


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("campaign", "record", "s.db", "q1", "0a", "0b", "up", "yes", "--assessor", "x"),
            "must be one of left, right",
        ),
        (
            ("campaign", "record", "s.db", "q1", "0a", "1b", "left", "yes", "--assessor", "x"),
            "Two lists of one question",
        ),
        (
            ("campaign", "record", "s.db", "q1", "99a", "99b", "left", "no", "--assessor", "x"),
            "Questions go from 0 to 8",
        ),
        (("campaign", "record", "s.db", "q1", "0a", "2", "--assessor", "x"), "asked about two lists, not for a grade"),
        (("campaign", "adjudicate", "s.db", "q1", "0a", "0b", "left", "yes"), "are not settled"),
        (("campaign", "import", "s.db", "data/qrels.txt"), "asks about lists: it has no runs to evaluate"),
        (("campaign", "change", "s.db", "--lease", "5"), "asks about lists: it has no runs to evaluate"),
        (("campaign", "runs", "add", "s.db", "data/runs"), "asks about lists: it has no runs to evaluate"),
        (("campaign", "topics", "s.db"), "asks about lists: it has no runs to evaluate"),
        (("campaign", "gold", "s.db"), "asks about lists: it has no runs to evaluate"),
        (("report", "s.db", "-o", "r.html"), "asks about lists: it has no runs to evaluate"),
    ],
)
def test_what_a_study_cannot_do_is_one_line(
    probeval: Run, runs: Path, qrels: Path, words: tuple[str, ...], message: str
):
    probeval("users", "create", "s.db", runs, "--qrels", qrels, "--metric", "CG@5", "--pairs", 5)
    found = probeval(*words)
    assert found.code == 1
    assert message in found.err
    assert found.err.count("\n") == 1


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
