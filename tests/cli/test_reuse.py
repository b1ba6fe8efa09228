"""``reuse``: later systems and left-out teams, what is written and said, and how it fails."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import probeval as package
from probeval.data import write_campaign, write_qrels
from probeval.data.trec import write_run
from probeval.relevance import synthetic_campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A campaign of four systems, half judged, and two later systems."""
    path = tmp_path_factory.mktemp("campaign")
    made = synthetic_campaign(seed=5, systems=6, queries=6, depth=6, docs=15)
    first, later = made.runs.systems[:4], made.runs.systems[4:]
    write_campaign(replace(made, runs=made.runs.select(first)), path)
    write_qrels(path / "half.qrels", made.judgments.take(np.arange(len(made.judgments)) % 2 == 0))
    for system in later:
        write_run(path / "later" / f"{system}.gz", made.runs, system)
    return path


@pytest.fixture
def asked(probeval, folder):
    def run(*more, later=True, qrels="half.qrels", metric="DCG@5"):
        new = ("--later", folder / "later") if later else ()
        judged = ("--qrels", folder / qrels) if qrels else ()
        return probeval("reuse", folder / "runs", *new, *judged, "--metric", metric, *more)

    return run


def rows(said):
    assert said.code == 0, said.err
    return list(csv.DictReader(io.StringIO(said.out)))


def test_later_systems_best_first_with_their_pairs(asked, folder, tmp_path):
    found = rows(asked("--format", "csv", "--pairs", tmp_path / "pairs.csv"))
    assert len(found) == 2
    means = [float(r["mean"]) for r in found]
    assert means == sorted(means, reverse=True)
    for row in found:
        assert float(row["lower"]) < float(row["mean"]) < float(row["upper"])
        assert float(row["bound_lower"]) <= float(row["classical"]) <= float(row["bound_upper"])
        assert 1 <= int(row["rank_lower"]) <= int(row["rank_upper"]) <= 5
    pairs = list(csv.DictReader(io.StringIO((tmp_path / "pairs.csv").read_text())))
    assert [sum(p["system"] == r["system"] for p in pairs) for r in found] == [int(r["needed"]) for r in found]


def test_queries_without_judgments_count_as_in_an_evaluation(asked, probeval, folder, tmp_path):
    lines = (folder / "half.qrels").read_text().splitlines(keepends=True)
    first = lines[0].split()[0]
    (folder / "one-query-less.qrels").write_text("".join(line for line in lines if line.split()[0] != first))
    (later, *_) = sorted((folder / "later").iterdir())
    said = asked("--format", "json", "--pairs", tmp_path / "pairs.csv", qrels="one-query-less.qrels")
    assert first in {row["query"] for row in csv.DictReader(io.StringIO((tmp_path / "pairs.csv").read_text()))}
    assert "1 queries of the runs have no judgment: their scores rest on the model alone" in said.err
    found = {one["system"]: one for one in json.loads(said.out)["systems"]}[later.name.removesuffix(".gz")]
    runs = [folder / "runs", later]
    both = probeval(
        "evaluate", *runs, "--qrels", folder / "one-query-less.qrels", "--metric", "DCG@5", "--format", "json"
    )
    means = {one["system"]: one["mean"] for one in json.loads(both.out)["systems"]}
    assert found["mean"] == pytest.approx(means[found["system"]], abs=0.01)
    plain = asked("--format", "json", "--model", "none", qrels="one-query-less.qrels")
    assert "1 queries of the runs have no judgment and are left out." in plain.err
    of_judged = {one["system"]: one["classical"] for one in json.loads(plain.out)["systems"]}
    assert found["classical"] == of_judged[found["system"]]


def test_one_at_a_time_does_not_depend_on_the_others(asked, probeval, folder):
    whole = {r["system"]: r for r in rows(asked("--format", "csv"))}
    for path in sorted((folder / "later").iterdir()):
        said = probeval(
            "reuse", folder / "runs", "--later", path, "--qrels", folder / "half.qrels", "--metric", "DCG@5",
            "--format", "csv",
        )  # fmt: skip
        (alone,) = rows(said)
        assert alone == whole[alone["system"]]
    together = {r["system"]: r for r in rows(asked("--format", "csv", "--together"))}
    assert together != whole


def test_sentences_say_how_they_joined(asked):
    said = asked("--model", "uniform")
    assert "2 later systems joined 4, each alone." in said.err
    assert "as narrow as those of the first systems" in said.err
    assert said.out.splitlines()[0] == "DCG@5"
    assert "together." in asked("--model", "uniform", "--together").err


def test_without_a_model_only_the_judgments_count(asked):
    said = asked("--model", "none", "--format", "json")
    document = json.loads(said.out)
    assert document["model"] == "none"
    assert all(s["mean"] is None and s["needed"] is None and s["pairs"] == [] for s in document["systems"])
    assert "mean" not in asked("--model", "none").out


def test_teams_left_out(asked):
    said = asked("--model", "uniform", later=False)
    assert said.code == 0, said.err
    assert "each team left out in turn" in said.out
    assert "Reuse accuracy 0." in said.err
    table = rows(asked("--model", "none", "--format", "csv", later=False))
    assert {r["route"] for r in table} == {"classical"}
    document = json.loads(asked("--model", "none", "--format", "json", "--depth", 3, later=False).out)
    assert document["depth"] == 3


@pytest.mark.parametrize(
    ("more", "options", "expected"),
    [
        (["--together"], {"later": False}, "--together and --pairs are for later systems: give --later RUNS."),
        ([], {"qrels": None}, "Reuse is of judgments: give --qrels FILE."),
        (["--model", "none", "--pairs", "p.csv"], {}, "--pairs are chosen by a model: name one, not none."),
    ],
)
def test_wrong_options_are_refused_in_one_line(asked, more, options, expected):
    said = asked(*more, **options)
    assert said.code == 1
    assert said.err.strip() == f"Error: {expected}"


def test_the_same_system_twice_is_refused(probeval, folder):
    said = probeval(
        "reuse", folder / "runs", "--later", folder / "runs", "--qrels", folder / "half.qrels", "--metric", "DCG@5"
    )
    assert said.code == 1
    assert "is among the first systems and among the later ones. Rename it or drop it." in said.err


def test_a_glob_that_the_shell_expanded_is_noticed(probeval, folder):
    new = sorted((folder / "later").iterdir())
    options = ("--qrels", folder / "half.qrels", "--metric", "DCG@5", "--model", "none")
    said = probeval("reuse", folder / "runs", "--later", *new, *options)
    assert f"{new[1]} counts as a first system: repeat --later for each later one" in said.err


def test_other_queries(probeval, folder, tmp_path):
    run = tmp_path / "new"
    run.write_text("elsewhere Q0 d001 1 2 x\n")
    options = ("--qrels", folder / "half.qrels", "--metric", "DCG@5", "--model", "uniform")
    said = probeval("reuse", folder / "runs", "--later", run, *options)
    assert said.code == 1
    assert "System 'new' answers none of the queries of the campaign." in said.err
    run.write_text("elsewhere Q0 d001 1 2 x\nq1 Q0 d001 1 2 x\n")
    said = probeval("reuse", folder / "runs", "--later", run, *options)
    assert "new answers 1 of 6 queries: it scores 0 on the others." in said.err


def test_in_python(folder):
    found = package.reuse(
        folder / "runs", folder / "later", "nDCG@5", qrels=folder / "half.qrels", model="text-hierarchical"
    )
    system = found.to_frame()["system"][0]
    assert len(found.next(system, 2)) == 2
    assert found.next(system)["halfwidth"].is_monotonic_decreasing
    assert "joined 4" in found.summary()
    alone = package.reuse(folder / "runs", folder / "later", "P@5", qrels=folder / "half.qrels", model="none")
    with pytest.raises(package.ModelError, match="Pairs are chosen by a model"):
        alone.next(system)
    with pytest.raises(package.DataError, match="No later system 'nothing'"):
        found.next("nothing")


def test_what_scores_are_relative_to_is_stated(asked):
    assert "pairs of these 4 runs" in asked("--model", "none", metric="nDCG@5").err
    assert "ideal" not in asked("--model", "none").err
