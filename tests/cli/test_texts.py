"""``--docs``: what it says, what it changes, what a store keeps, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign
from probeval.data import read_campaign, read_texts, text_vectors, write_campaign, write_qrels
from probeval.relevance import synthetic_campaign

WORDS = ("harbour", "violin", "glacier", "pepper")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A small campaign, a third of its judgments in few.qrels, and texts by the grade of each document."""
    path = tmp_path_factory.mktemp("campaign")
    made = synthetic_campaign(seed=5, systems=5, queries=8, depth=6, docs=15)
    write_campaign(made, path)
    order = np.random.default_rng(1).permutation(len(made.judgments))
    write_qrels(path / "few.qrels", made.judgments.take(order[: len(order) // 3]))
    pool, grade = made.judgments.pool, made.judgments.grade.astype(int)
    docs = pool.docs[pool.doc[made.judgments.pair]]
    lines = [f"{doc}\t{WORDS[g]} and {WORDS[-1]}" for doc, g in zip(docs, grade, strict=True)]
    (path / "docs.tsv").write_text("doc\ttext\n" + "\n".join(lines[:-3]) + "\n")
    return path


@pytest.fixture
def told(probeval, folder):
    def run(command, *more, docs="docs.tsv"):
        texts = ("--docs", folder / docs) if docs else ()
        options = ("--qrels", folder / "few.qrels", "--metric", "DCG@5", "--model", "text-hierarchical")
        return probeval(*command.split(), folder / "runs", *options, *texts, *more)

    return run


def documents(folder, depth):
    pool = read_campaign(folder).runs.top(depth).pool
    known = {line.split("\t")[0] for line in (folder / "docs.tsv").read_text().splitlines()}
    return f"{sum(d in known for d in pool.docs)} of {len(pool.docs)}"


@pytest.mark.parametrize("command", ["evaluate", "next"])
def test_the_texts_that_were_used_are_reported(told, folder, command):
    said = told(command)
    assert said.code == 0, said.err
    assert f"Texts of {documents(folder, 5)} documents." in said.err.splitlines()
    assert said.out != told(command, docs=None).out


def test_they_sharpen_scores(told, folder):
    sds = [
        np.mean([s["sd"] for s in json.loads(told("evaluate", "--format", "json", docs=docs).out)["systems"]])
        for docs in ("docs.tsv", None)
    ]
    assert sds[0] < sds[1]


def test_a_simulation_uses_them(probeval, folder):
    said = probeval(
        "simulate", folder / "runs", "--qrels", folder / "qrels.txt", "--metric", "DCG@5",
        "--docs", folder / "docs.tsv", "--policy", "random:hierarchical", "--batch", 30, "--until", 0.4,
        "--checkpoints", "0,.4", "--jobs", 1,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert f"Texts of {documents(folder, 5)} documents. Only the hierarchical model uses them." in said.err


def test_other_models_say_that_they_do_not_use_them(probeval, folder):
    said = probeval(
        "evaluate", folder / "runs", "--metric", "DCG@5", "--scale", "graded:2", "--model", "uniform",
        "--docs", folder / "docs.tsv",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert f"Texts of {documents(folder, 5)} documents. Only the hierarchical model uses them." in said.err


def test_a_campaign_keeps_them_for_its_model(told, probeval, folder, tmp_path):
    store = tmp_path / "mine.db"
    with_texts = ("--qrels", folder / "few.qrels", "--metric", "DCG@5", "--model", "text-hierarchical")
    said = probeval(
        "campaign", "create", store, folder / "runs", *with_texts, "--docs", folder / "docs.tsv", "--seed", 1
    )
    assert said.code == 0, said.err
    assert f"Texts of {documents(folder, 5)} documents." in said.err
    with Campaign.open(store) as opened:
        snapshot = opened.refresh()
    assert snapshot.confidence == pytest.approx(
        json.loads(told("evaluate", "--format", "json", "--seed", 1).out)["confidence"], abs=0.02
    )


def test_vectors_in_a_file_take_the_place_of_texts(told, folder):
    texts = read_texts(folder / "docs.tsv", "doc")
    vectors = text_vectors({doc: texts[doc] for doc in read_campaign(folder).runs.pool.docs if doc in texts})
    rows = [{"doc": d, "vector": v} for d, v in zip(vectors.docs, vectors.values.toarray().tolist(), strict=True)]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"doc": "x", "vector": [0]}]))
    said = told("evaluate", docs="own.jsonl")  # that of x has another length, but no run retrieved x
    assert said.code == 0, said.err
    assert f"Vectors of {documents(folder, 5)} documents." in said.err.splitlines()
    assert said.out == told("evaluate").out
    assert told("evaluate", docs=None).out != said.out


# file: (its content, what the line says after the path)
WRONG = {
    "none.tsv": (None, "No such file"),
    "other.csv": ("doc,topic\nd1,x\n", ": expected a column for the doc and one of text, title,"),
    "strange.tsv": ("doc\ttext\nx1\thello\n", ": no text is of a document that the runs retrieved: the runs have 'd"),
    "silent.tsv": ("doc\ttext\nd001\t...\n", ": no text is of a document that the runs retrieved"),
    "empty.tsv": ("", ": the file is empty"),
    "odd.jsonl": (
        "".join(f'{{"doc": "d{i:03}", "vector": {[1] * (i % 5)}}}\n' for i in range(120)),
        ": the column vector must have lists of numbers, all of one length.",
    ),
    "elsewhere.jsonl": ('{"doc": "x1", "vector": [1, 2]}\n', ": no vector is of a document that the runs retrieved"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_texts_are_one_line(told, folder, name):
    content, message = WRONG[name]
    if content is not None:
        (folder / name).write_text(content)
    said = told("evaluate", docs=name)
    (line,) = said.err.splitlines()
    assert (said.code, said.out) == (1, "")
    assert name in line
    assert message in line
