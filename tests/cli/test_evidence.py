"""``evidence``: cells are done and kept, pages are written, and stale pages are named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from probeval.data import LabelTable, read_campaign, write_campaign
from probeval.relevance import synthetic_campaign

PLAN = """
[campaigns]
first = 5
second = 5

[[part]]
study = "judging"
measures = ["DCG"]
policies = ["gain", "random"]
labels = ["", "{campaign}/labels:judge"]
[part.settings]
batch = 10
checkpoints = [0, 0.1, 0.2]
until = 0.2
draws = 50
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("plan")
    for seed, name in enumerate(("first", "second")):
        write_campaign(replace(synthetic_campaign(seed=seed, systems=4, queries=6, depth=5), name=name), root / name)
        judged = read_campaign(root / name).judgments
        assert judged is not None
        labels = LabelTable(judged.pool, ("judge",), np.minimum(judged.grades(), 1)[:, None])
        (root / name / "labels.csv").write_text(labels.to_csv())
    (root / "plan.toml").write_text(PLAN)
    return root


@pytest.mark.slow
def test_pages_are_of_the_cells_and_checked(probeval, place):
    pages = place / "pages"
    some = probeval("evidence", place / "plan.toml", "--pages", pages, "--most", 5, "--jobs", 1)
    assert some.code == 0, some.err
    assert "judging first DCG@5 gain 0: " in some.err
    assert "5 of 8 cells are done, 5 with the mathematics of now" in some.out
    assert "*3 of 4 replays are finished (2 of 2 campaigns), all of them" in (pages / "cost.md").read_text()
    rest = probeval("evidence", place / "plan.toml", "--pages", pages, "--jobs", 1, "--quiet", "--format", "json")
    assert {c["done"] == c["cells"] == 4 for c in json.loads(rest.out)["coverage"]} == {True}
    names = ["absolute-scores.md", "before-judging.md", "cost.md", "to-the-stop.md", "with-labels.md"]
    assert sorted(p.name for p in pages.glob("*.md")) == names
    assert sorted(p.stem for p in pages.glob("*.png")) == [name.removesuffix(".md") for name in names]
    for page in pages.glob("*.md"):
        text = page.read_text()
        assert text.startswith("# ")
        assert "## What failed" in text
        assert "nan" not in text
    assert "`gain` takes" in (pages / "cost.md").read_text()
    assert "| judge" in (pages / "with-labels.md").read_text()

    fresh = probeval("evidence", place / "plan.toml", "--pages", pages, "--check")
    assert (fresh.code, fresh.err) == (0, "")
    (pages / "cost.md").write_text("# Cost\n")
    file = place / "cells" / "judging-first.jsonl"
    was = file.read_text()
    old = json.loads(was.splitlines()[0])["mathematics"]
    file.write_text(was.replace(old, "0" * 12, 1))
    stale = probeval("evidence", place / "plan.toml", "--pages", pages, "--check")
    assert stale.code == 1
    assert f"Stale: {pages / 'cost.md'}: the cells or the mathematics have changed since it was written." in stale.err
    assert "Stale: 1 of 8 finished cells are of earlier mathematics or settings." in stale.err
    again = probeval("evidence", place / "plan.toml", "--pages", pages, "--jobs", 1)
    assert again.err.count("judging ") == 1
    assert file.read_text() == was


@pytest.mark.slow
def test_a_cell_has_the_figures_of_simulate(probeval, place):
    run = probeval("evidence", place / "plan.toml", "--jobs", 1, "--cells", place / "more", "--most", 1, "--quiet")
    assert run.code == 0, run.err
    line = json.loads((place / "more" / "judging-first.jsonl").read_text())
    qrels = next((place / "first").glob("qrels.txt*"))
    said = probeval(
        "simulate", place / "first" / "runs", "--qrels", qrels, "--fit", place / "second", "--metric", "DCG@5",
        "--policy", "gain", "--batch", 10, "--checkpoints", "0,.1,.2", "--until", 0.2, "--draws", 50, "--jobs", 1,
        "--format", "json", "--quiet",
    )  # fmt: skip
    assert said.code == 0, said.err
    (found,) = json.loads(said.out)["policies"]
    for name, values in line["figures"]["points"].items():
        assert values == [round(point[name], 6) for point in found["points"]], name
    assert line["figures"]["stop"]["accuracy"] == round(found["stop"]["accuracy"], 6)


def test_a_plan_is_needed(probeval, tmp_path):
    assert probeval("evidence").code == 2
    said = probeval("evidence", tmp_path / "none.toml")
    assert (said.code, said.out) == (1, "")
    assert said.err == f"Error: {tmp_path / 'none.toml'}: cannot be read: No such file or directory.\n"
    (tmp_path / "plan.toml").write_text(PLAN)
    said = probeval("evidence", tmp_path / "plan.toml", "--jobs", 1)
    assert said.err.startswith("Error: ")
    assert said.err.count("\n") == 1
