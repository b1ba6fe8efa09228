"""Answers about two documents as people type them: create, next, record, judge on the terminal, settle, gold, files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probeval.data import Collection, read_answers, write_campaign
from tests.cli.conftest import Said
from tests.cli.test_schema import check

Run = Callable[..., Said]


@pytest.fixture
def runs(small: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_campaign(small, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "runs"


@pytest.fixture
def create(probeval: Run, runs: Path) -> Callable[..., str]:
    def make(*options: object, store: str = "mine.db") -> str:
        made = probeval(
            "campaign", "create", store, runs, "--metric", "nDCG@5", "--scale", "graded:2", "--model", "uniform",
            *options,
        )  # fmt: skip
        assert made.code == 0, made.err
        return store

    return make


def _next(probeval: Run, store: str, who: str, n: int = 1) -> list[dict[str, str]]:
    said = probeval("campaign", "next", store, "--assessor", who, "-n", n, "--no-refresh", "--format", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)["next"]


def test_a_preference_is_asked_answered_contested_and_settled(probeval: Run, create: Callable[..., str]):
    store = create("--ask", "preferences", "--overlap", 1)
    (task,) = _next(probeval, store, "ann")
    assert task["asks"] == "preference"
    about = (store, task["query"], *task["documents"])
    said = probeval("campaign", "record", *about, "left", "both", "--assessor", "ann", "--format", "json")
    assert json.loads(said.out)["answer"] == "left is better, both relevant"
    assert probeval("campaign", "record", *about, "right", "--assessor", "bob", "--comment", "newer").code == 0
    listed = json.loads(probeval("campaign", "adjudicate", store, "--format", "json").out)
    (contested,) = listed["disagreements"]
    ann, bob = ("left", "right") if contested["documents"] == task["documents"] else ("right", "left")
    assert contested["answers"] == f"ann {ann} is better, both relevant, bob {bob} is better"
    assert (contested["asks"], contested["comments"]) == ("preference", "bob: newer")
    assert "1 questions in dispute" in probeval("campaign", "adjudicate", store).out
    settled = probeval("campaign", "adjudicate", *about, "equal", "--by", "eve")
    assert settled.code == 0, settled.err
    assert "0 comparisons in dispute, 1 settled." in probeval("campaign", "status", store).err
    for wrong, why in (
        ("30 10", "are choice, relevant; got 'numbers'"),
        ("up", "left, equal, right; got 'up'"),
        ("left up", "both, chosen, neither may be relevant; got 'up'"),
    ):
        said = probeval("campaign", "adjudicate", *about, *wrong.split())
        assert said.code == 1
        assert why in said.err
    log = probeval("campaign", "log", store, "--all").out
    assert f"{task['query']} {task['doc']} {task['other']} choice right comment newer" in log


def test_judging_on_the_terminal_by_keys(
    probeval: Run, create: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = create("--ask", "preferences")
    first = _next(probeval, store, "ann")[0]
    docs = tmp_path / "docs.csv"
    docs.write_text(f"doc,text\n{first['doc']},About \x1b[31mtrains\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("x\nl\nr\n=\nb\nu\nr\ns\nq\n"))
    said = probeval("campaign", "judge", store, "--assessor", "ann", "--docs", docs, "--no-refresh")
    assert said.code == 0, said.err
    assert "The better of two documents is left, equal, right; got 'x'." in said.err
    assert "trains" in said.err
    assert "\x1b" not in said.err
    assert said.out.splitlines()[-1].split() == ["ann", "5", "1", "1"]
    exported = probeval("campaign", "export", store, "--format", "answers", "-o", "answers.csv")
    assert exported.code == 0, exported.err
    assert read_answers("answers.csv").to_frame()["choice"].tolist() == ["left", "right", "equal", "right"]


def test_magnitudes_and_grades_on_the_terminal(
    probeval: Run, create: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    store = create("--ask", "magnitudes")
    monkeypatch.setattr("sys.stdin", io.StringIO("30\n30 ten\n30 10\n"))
    said = probeval("campaign", "judge", store, "--assessor", "ann", "--no-refresh", "--format", "json")
    assert "The number of the right document must be above 0, got ''." in said.err
    assert "The number of the right document must be above 0, got 'ten'." in said.err
    changed = probeval("campaign", "change", store, "--ask", "grades", "--format", "csv")
    assert changed.out.splitlines()[1] == "ask,magnitudes,grades"
    monkeypatch.setattr("sys.stdin", io.StringIO("7\n2\n"))
    said = probeval("campaign", "judge", store, "--assessor", "bob", "--no-refresh")
    assert "The grades of the scale graded:2 are 0, 1, 2; got 7.0." in said.err
    assert said.out.splitlines()[-1].split() == ["bob", "1", "0", "0"]
    status = json.loads(probeval("campaign", "status", store, "--format", "json").out)
    assert (status["answers"], status["magnitudes"], status["judged"], status["ask"]) == (1, 1, 1, "grades")


def test_gold_comparisons_and_answers_as_files(probeval: Run, create: Callable[..., str], tmp_path: Path):
    store = create("--ask", "preferences", "--gold-share", 0.5)
    tasks = _next(probeval, store, "ann", 3)
    orders = tmp_path / "orders.csv"
    orders.write_text("query,better,worse\n" + "".join(f"{t['query']},{t['doc']},{t['other']}\n" for t in tasks))
    shown = json.loads(probeval("campaign", "gold", store, orders, "--format", "json").out)
    assert [order["answers"] for order in shown["orders"]] == [0, 0, 0]
    assert "Gold comparisons" in probeval("campaign", "gold", store).out
    file = tmp_path / "given.csv"
    rows = [f"{t['query']},{t['doc']},{t['other']},left,bob" for t in tasks]
    file.write_text("query,left,right,choice,assessor\n" + "\n".join(rows) + "\n")
    imported = json.loads(probeval("campaign", "import", store, file, "--format", "json").out)
    assert (imported["answers"], imported["judgments"], imported["assessors"]) == (3, 0, "bob")
    again = probeval("campaign", "import", store, file)
    assert (again.code, "already imported" in again.err) == (1, True)
    assert probeval("campaign", "check", store).code == 0
    tool = probeval("campaign", "next", store, "--assessor", "cy", "--for", "label-studio", "--out", "out")
    assert (tool.code, "takes single documents" in tool.err) == (1, True)


def test_what_is_asked_must_be_known(probeval: Run, runs: Path):
    said = probeval("campaign", "create", "a.db", runs, "--metric", "nDCG@5", "--ask", "stars")
    assert said.code == 1
    assert "Assessors are asked for preferences, magnitudes, mixed, grades, lists; got 'stars'." in said.err
    said = probeval("campaign", "create", "a.db", runs, "--metric", "nDCG@5", "--ask", "lists")
    assert (said.code, "probeval users create makes a study" in said.err) == (1, True)
    assert not Path("a.db").exists()


def test_answers_print_what_the_schemas_say(
    probeval: Run, create: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = create("--ask", "preferences", "--overlap", 1)

    def asked(verb: str, *arguments: object) -> Any:
        printed = probeval("campaign", verb, store, *arguments, "--format", "json")
        assert printed.code == 0, printed.err
        document = json.loads(printed.out)
        check(f"campaign {verb}", document)
        return document

    (task,) = asked("next", "--assessor", "ann", "--no-refresh")["next"]
    about = (task["query"], *task["documents"])
    asked("record", *about, "left", "--assessor", "ann")
    asked("record", *about, "right", "--assessor", "bob")
    asked("record", *about, "--assessor", "cy", "--skip", "--reason", "too long")
    assert len(asked("adjudicate")["disagreements"]) == 1
    asked("adjudicate", *about, "left")
    monkeypatch.setattr("sys.stdin", io.StringIO("l\n"))
    assert asked("judge", "--assessor", "dee", "--no-refresh")["answered"] == 1
    (tmp_path / "orders.csv").write_text("query,better,worse\n" + ",".join(about) + "\n")
    assert len(asked("gold", tmp_path / "orders.csv")["orders"]) == 1
    assert {row["assessor"] for row in asked("status")["comparers"]} == {"ann", "bob", "dee"}
