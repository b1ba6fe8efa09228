"""``probeval schema``: every verb's real JSON is what its schema says, no more and no less."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from probeval.cli.app import GROUPS
from probeval.cli.commands import VERBS
from probeval.cli.schema import outputs, schema_of
from probeval.data import write_campaign
from probeval.data.trec import write_qrels
from probeval.relevance import synthetic_campaign
from tests.cli.conftest import Said

Run = Callable[..., Said]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small campaigns, and a part of the judgments of the first."""
    place = tmp_path_factory.mktemp("schema")
    for name, seed in (("first", 1), ("second", 2)):
        campaign = synthetic_campaign(seed=seed, systems=4, queries=6, depth=5)
        write_campaign(campaign, place / name)
        if name == "first":
            assert campaign.judgments is not None
            write_qrels(place / "part.txt", campaign.judgments.take(np.arange(len(campaign.judgments)) % 3 == 0))
    (place / "later").write_text("q1 Q0 d001 1 2 x\nq1 Q0 new 2 1 x\n")
    (place / "plan.toml").write_text(
        '[campaigns]\nfirst = 5\nsecond = 5\n[[part]]\nstudy = "calibration"\nmeasures = ["P"]\n'
        'policies = ["uniform"]\nsettings = { checkpoints = [0], draws = 20 }\n'
    )
    (place / "scores.csv").write_text("system,q1,q2,q3\na,.5,.6,.9\nb,.2,.4,.5\nc,.3,.2,.1\n")
    (place / "votes.csv").write_text("query,doc,worker,label,gold\nq,a,v,1,1\nq,a,w,1,1\nq,b,v,0,\nq,b,w,-2,\n")
    (place / "answers.csv").write_text("query,left,right,left_number,right_number\nq,a,b,2,1\n")
    (place / "docs.tsv").write_text("doc\ttext\nd002\ttwo\n")
    (place / "queries.tsv").write_text("query\ttext\nq1\tone\n")
    return place


def runs(place: Path, name: str = "first", *, qrels: str | None = None) -> list[object]:
    judged = next((place / name).glob("qrels.txt*")) if qrels is None else place / qrels
    return [place / name / "runs", "--qrels", judged]


def two(place: Path) -> list[object]:
    new, baseline, *_ = sorted((place / "first" / "runs").iterdir())
    return [new, baseline, "--qrels", place / "part.txt"]


UNIFORM = ("--model", "uniform")
CASES: dict[str, tuple[str, Callable[[Path], list[object]]]] = {
    "meta": (
        "meta",
        lambda f: [f / "first", f / "second", "--metric", "CG@5", "--splits", 3, "--samples", 50, "--jobs", 1],
    ),
    "evaluate": ("evaluate", lambda f: [*runs(f, qrels="part.txt"), "--metric", "nDCG@5", *UNIFORM]),
    "evaluate for the population": (
        "evaluate",
        lambda f: [*runs(f), "--metric", "P@5", "--target", "population", "--per-query", *UNIFORM],
    ),
    "evaluate without a model": (
        "evaluate",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "P@5", "--model", "none", "--per-query"],
    ),
    "evaluate by two measures": (
        "evaluate",
        lambda f: [*runs(f), "--metric", "P@5", "--metric", "AP", "--model", "none"],
    ),
    "plan": (
        "plan",
        lambda f: [
            *runs(f, qrels="part.txt"), "--metric", "DCG@5", "--target", "confidence=.8,erho2=.5", "--jobs", 1,
            *UNIFORM,
        ],
    ),
    "label": (
        "label",
        lambda f: [
            f / "first" / "runs", "--base-url", "http://127.0.0.1:9/v1", "--model", "llm",
            "--queries", f / "queries.tsv", "--docs", f / "docs.tsv", "--cache", ":memory:", "--dry-run",
        ],
    ),
    "next for a labeller": (
        "next",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "-n", 3, "--labeller", "llm"],
    ),
    "next": ("next", lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "-n", 3, *UNIFORM]),
    "next, fairness": (
        "next",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "--fairness", *UNIFORM],
    ),
    "pool": ("pool", lambda f: [f / "first", f / "second", "--metric", "AP", "--depth", "1,2,5", "--condensed"]),
    "reuse, systems left out": (  # without systems.tsv
        "reuse",
        lambda f: [f / "first" / "runs" / "*", *runs(f)[1:], "--metric", "DCG@5", *UNIFORM],
    ),
    "reuse, systems left out without a model": (
        "reuse",
        lambda f: [f / "first" / "runs" / "*", *runs(f)[1:], "--metric", "AP", "--model", "none"],
    ),
    "reuse, a later system": (
        "reuse",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "--later", f / "later", *UNIFORM],
    ),
    "reuse, a later system without a model": (
        "reuse",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "--later", f / "later", "--model", "none"],
    ),
    "simulate": (
        "simulate",
        lambda f: [*runs(f), "--metric", "DCG@5", "--policy", "random:uniform", "--batch", 10, "--jobs", 1],
    ),
    "aggregate": ("aggregate", lambda f: [f / "votes.csv"]),
    "aggregate by the majority": ("aggregate", lambda f: [f / "votes.csv", "--method", "majority"]),
    "report": (
        "report",
        lambda f: [*runs(f), "--metric", "DCG@5", "--draws", 50, "-o", f / "report.html", *UNIFORM],
    ),
    "gate": ("gate", lambda f: [*two(f), "--metric", "P@5", "--not-worse", "--rope", 1]),
    "aggregate answers": (
        "aggregate",
        lambda f: [f / "answers.csv", "--method", "ratios", "--grades-by-shares", ".5,.5"],
    ),
    "agree": (
        "agree",
        lambda f: [
            f / "part.txt", next((f / "first").glob("qrels.txt*")), "--runs", f / "first" / "runs", "--metric", "P@5",
        ],
    ),
    "agree on scores": ("agree", lambda f: [f / "scores.csv", f / "scores.csv"]),
    "evaluate ties": ("evaluate", lambda f: [*runs(f), "--metric", "AP", "--model", "none", "--ties"]),
    "evaluate bands": ("evaluate", lambda f: [*runs(f), "--metric", "AP", "--model", "none", "--bands", 2]),
    "persistence": ("persistence", lambda f: [*runs(f), "--metric", "P@5", "--step", 0.1]),
    "curves": ("curves", lambda f: [*runs(f, qrels="part.txt")]),
    "compare": ("compare", lambda f: [*runs(f), "--metric", "P@5", "--rope", 0.01]),
    "compare some judgments": ("compare", lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5"]),
    "compare with a model": (
        "compare",
        lambda f: [*runs(f, qrels="part.txt"), "--metric", "DCG@5", "--draws", 50, *UNIFORM],
    ),
    "predict": ("predict", lambda f: [*runs(f, qrels="part.txt"), "--depth", 5, *UNIFORM]),
    "cite": ("cite", lambda f: []),
    "gstudy": ("gstudy", lambda f: [*runs(f), "--metric", "P@5"]),
    "gstudy by two measures": (
        "gstudy",
        lambda f: [*runs(f), "--metric", "P@5", "--metric", "AP", "--interval", "bootstrap"],
    ),
    "gstudy of a table": ("gstudy", lambda f: [f / "scores.csv"]),
    "dstudy": ("dstudy", lambda f: [*runs(f), "--metric", "P@5", "--target", "tau=.9"]),
    "dstudy by two measures": ("dstudy", lambda f: [*runs(f), "--metric", "P@5", "--metric", "AP"]),
    "fit": (
        "fit",
        lambda f: [f / "first", f / "second", "--kind", "ordinal", "--terms", "fSYS", "-o", f / "card"],
    ),
    "models": ("models", lambda f: []),
    "models show": ("models show", lambda f: ["text-hierarchical"]),
    "features": ("features", lambda f: [f / "first" / "runs", "--feature", "fSYS"]),
    "validate": (
        "validate",
        lambda f: [
            f / "first", f / "second", "--metric", "P@5", "--model", "independent", "--seeds", 1, "--jobs", 1,
            "--checkpoints", "0,.1", "--depth", 5,
        ],
    ),
    "evidence": ("evidence", lambda f: [f / "plan.toml", "--most", 1, "--jobs", 1]),
    "doctor": ("doctor", lambda f: []),
    "schema": ("schema", lambda f: []),
}  # fmt: skip


def problems(verb: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema_of(verb)).iter_errors(document)]


def check(verb: str, document: Any) -> None:
    """The document is valid, and would not be with another key or without one that is required."""
    assert problems(verb, document) == []
    one = document[0] if isinstance(document, list) else document
    if verb == "features":
        return
    extra = copy.deepcopy(document)
    (extra[0] if isinstance(extra, list) else extra)["more"] = 1
    assert problems(verb, extra)
    schema = schema_of(verb)
    always = {key for part in schema["$defs"].values() for key in part["required"]}
    for key in one.keys() & always:
        less = copy.deepcopy(document)
        del (less[0] if isinstance(less, list) else less)[key]
        assert problems(verb, less), key


@pytest.mark.parametrize("case", CASES)
def test_what_a_verb_prints_is_what_its_schema_says(case: str, folder: Path, probeval: Run) -> None:
    verb, arguments = CASES[case]
    said = probeval(*verb.split(), *arguments(folder), "--format", "json")
    assert said.code == 0, said.err
    check(verb, json.loads(said.out))


@pytest.mark.slow
def test_a_campaign_prints_what_its_schemas_say(
    folder: Path, probeval: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def asked(verb: str, *arguments: object) -> Any:
        said = probeval("campaign", *verb.split(), "mine.db", *arguments, "--format", "json")
        assert said.code == 0, said.err
        document = json.loads(said.out)
        check(f"campaign {verb}", document)
        return document

    asked("create", folder / "first" / "runs", "--metric", "nDCG@5", "--scale", "graded:2", *UNIFORM, "--overlap", 1)
    for who, grade in (("ann", 0), ("bob", 2)):
        for task in asked("next", "--assessor", who, "-n", 3)["next"]:
            asked("record", task["query"], task["doc"], grade, "--assessor", who)
    asked("record", task["query"], task["doc"], "--assessor", "bob", "--flag", "odd", "--comment", "well")
    waiting = asked("adjudicate")["disagreements"][0]
    asked("adjudicate", waiting["query"], *waiting["documents"], 1)
    assert asked("status", "--refresh")["snapshot"]["systems"]
    asked("queries", folder / "queries.tsv")
    asked("guideline", folder / "queries.tsv")
    asked("import", folder / "part.txt", "--assessor", "trec")
    asked("change", "--stop", "confidence=.9", "--lease", 5)
    for verb in ("pause", "resume", "close", "reopen"):
        asked(verb)
    assert asked("runs add", folder / "later")["systems"] == ["later"]
    asked("assessors add", "ann", "--expires", "never")
    asked("assessors add", "eve", "--role", "owner")
    assert len(asked("assessors list")) == 2
    asked("assessors revoke", "ann")
    assert {entry["event"] for entry in asked("log")} >= {"created", "changed", "phase", "runs", "invited", "revoked"}
    asked("log", "--all")
    asked("statement")
    asked("check")
    asked("backup", "copy.db")
    said = probeval("campaign", "restore", "copy.db", "again.db", "--format", "json")
    check("campaign restore", json.loads(said.out))


def test_the_verbs_of_users(probeval: Run, folder: Path, tmp_path: Path) -> None:
    said = probeval(
        "users", "create", tmp_path / "s.db", *runs(folder), "--metric", "P@5", "--pairs", 5, "--format", "json", "-q"
    )
    check("users create", json.loads(said.out))
    for rows in ("p,.1,.2,a,,\nq,.4,.4,good,same,2\n", "".join(f"p,.{i},.{i},bad,,\n" for i in range(1, 9))):
        (tmp_path / "answers.csv").write_text(f"user,score_a,score_b,answer,trap,seconds\n{rows}")
        said = probeval("users", "report", "--answers", tmp_path / "answers.csv", "--format", "json")
        check("users report", json.loads(said.out))


@pytest.mark.parametrize("verb", outputs())
def test_every_schema_is_valid_and_says_what_it_is(verb: str, probeval: Run) -> None:
    schema = json.loads(probeval("schema", *verb.split()).out)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"probeval {verb}"
    assert schema["x-version"] == 2
    assert all(part["description"] for part in schema.get("$defs", {}).values())


def test_every_verb_has_a_schema(probeval: Run) -> None:
    assert {*VERBS, *GROUPS} - {"campaign", "users", "skill"} <= outputs().keys()
    listed = probeval("schema", "--format", "csv").out.splitlines()
    assert [line.split(",")[0] for line in listed[1:]] == list(outputs())


def test_an_unknown_verb(probeval: Run) -> None:
    said = probeval("schema", "evalute")
    assert said.code == 1
    assert "Did you mean 'evaluate'?" in said.err
