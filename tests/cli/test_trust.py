"""Labels examined on the command line: evaluate --trust and --surprising, next --goal trust, gate --trust."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from probeval.data import LabelTable, write_campaign
from probeval.data.trec import write_qrels
from probeval.relevance import synthetic_campaign
from tests.cli.conftest import Said
from tests.cli.test_schema import check

Run = Callable[..., Said]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with labels by two machines, and by earlier versions; some judgments; texts."""
    place = tmp_path_factory.mktemp("trust")
    campaign = synthetic_campaign(seed=3, systems=4, queries=20, depth=6)
    pool, rng = campaign.runs.top(6).pool, np.random.default_rng(0)
    assert campaign.judgments is not None
    grades = campaign.judgments.on(pool).grades()
    for name, seed in (("now", 0), ("earlier", 1)):
        noise = np.random.default_rng(seed).normal(size=(len(pool), 2)) * [0.4, 3]
        labels = LabelTable(pool, ("good", "poor"), np.clip(np.round(grades[:, None] + noise), 0, 2))
        write_campaign(replace(campaign, labels=labels), place / name)
    write_qrels(place / "some.txt", campaign.judgments.take(rng.permutation(len(campaign.judgments))[:120]))
    words = ["one"] * 9
    (place / "docs.tsv").write_text(
        "doc\ttext\n" + "".join(f"{doc}\t{' '.join(words[: 1 + i % 9])}\n" for i, doc in enumerate(pool.docs))
    )
    (place / "queries.tsv").write_text("query\ttext\n" + "".join(f"{query}\tone two\n" for query in pool.queries))
    return place


def evidence(place: Path) -> list[object]:
    labels = place / "now" / "labels.tsv"
    return ["--qrels", place / "some.txt", "--labels", labels, "--metric", "DCG@6", "--scale", "graded:2"]


@pytest.mark.slow
def test_all_that_trust_shows_is_in_its_json(folder: Path, probeval: Run) -> None:
    said = probeval(
        "evaluate", folder / "now" / "runs", *evidence(folder), "--trust",
        "--earlier", folder / "earlier" / "labels.tsv",
        "--docs", folder / "docs.tsv", "--queries", folder / "queries.tsv", "--surprising", 3, "--format", "json",
    )  # fmt: skip
    assert said.code == 0, said.err
    document: dict[str, Any] = json.loads(said.out)
    check("evaluate", document)
    found = {one["source"]: one for one in document["trust"]["agreements"]}
    assert found["good"]["kappa_lower"] > found["poor"]["kappa_upper"]
    assert sum(cell["judged"] for cell in found["good"]["confusion"]) == found["good"]["judged"]
    assert document["trust"]["panel"]["columns"] == 2
    assert [one["source"] for one in document["trust"]["drift"]] == ["good", "poor"]
    assert {one["what"] for one in document["trust"]["texts"]} == {
        "length"
    }  # all texts have half of each query's words
    assert len(document["surprising"]["grades"]) == 3
    assert "Panel: the errors of 2 columns" in said.err


def test_what_is_for_trust_alone_is_refused_without_it(folder: Path, probeval: Run) -> None:
    here = [folder / "now" / "runs", *evidence(folder)]
    said = probeval("evaluate", *here, "--earlier", folder / "earlier" / "labels.tsv")
    assert (said.code, "Add --trust" in said.err) == (1, True)
    said = probeval("evaluate", *here, "--surprising", 2, "--format", "csv")
    assert (said.code, "--surprising prints several tables" in said.err) == (1, True)
    said = probeval("evaluate", *here[:3], "--metric", "DCG@6", "--model", "none", "--surprising", 2)
    assert (said.code, "--surprising rests on a model" in said.err) == (1, True)


def test_pairs_that_decide_whether_labels_may_be_used(folder: Path, probeval: Run) -> None:
    runs = folder / "now" / "runs"
    said = probeval(
        "next", runs, *evidence(folder), "--goal", "trust:.8", "--stop", "budget=500", "-n", 6, "--format", "json"
    )
    assert said.code == 0, said.err
    document = json.loads(said.out)
    check("next", document)
    assert document["goal"] == "trust:0.8"
    assert len(document["next"]) == 6
    assert "poor: kappa with the grades" in said.err
    said = probeval("next", runs, "--metric", "DCG@6", "--scale", "graded:2", "--goal", "trust", "--stop", "budget=5")
    assert (said.code, "there are none. Give --labels FILE." in said.err) == (1, True)


@pytest.mark.slow
def test_a_gate_refuses_labels(folder: Path, probeval: Run, tmp_path: Path) -> None:
    new, baseline, *_ = sorted((folder / "now" / "runs").iterdir())
    here = ["gate", new, baseline, *evidence(folder), "--not-worse", "--rope", 5, "--format", "json"]
    passed = probeval(*here)
    assert (passed.code, json.loads(passed.out)["verdict"]) == (0, "not worse")
    files = {name: tmp_path / name for name in ("pairs.csv", "junit.xml")}
    refused = probeval(*here, "--trust", 0.6, "--pairs", files["pairs.csv"], "--junit", files["junit.xml"])
    document = json.loads(refused.out)
    check("gate", document)
    assert (refused.code, document["verdict"], document["passed"]) == (3, "undecided", False)
    assert document["reason"].startswith("Undecided, as labels are refused. ")
    assert "poor: kappa with the grades" in document["reason"]
    assert not {one["source"]: one["trusted"] for one in document["trust"]}["poor"]
    assert len(files["pairs.csv"].read_text().splitlines()) == 31
    cases = ElementTree.parse(files["junit.xml"]).getroot().findall("testsuite/testcase")
    assert "labels poor" in [case.get("name") for case in cases if case.find("skipped") is not None]


def test_a_gate_that_trusts_its_labels_says_so(folder: Path, probeval: Run, tmp_path: Path) -> None:
    new, baseline, *_ = sorted((folder / "now" / "runs").iterdir())
    lines = (folder / "now" / "labels.tsv").read_text().splitlines()
    (tmp_path / "good.tsv").write_text("\n".join("\t".join(line.split("\t")[:3]) for line in lines))
    given = evidence(folder)
    given[3] = tmp_path / "good.tsv"
    said = probeval("gate", new, baseline, *given, "--not-worse", "--rope", 5, "--trust", 0.4)
    assert said.code == 0, said.err
    assert "Labels may be used: good: kappa with the grades" in said.err
