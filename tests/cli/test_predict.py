"""``probeval predict`` and ``probeval cite``."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import probeval as package
from probeval.cli.cite import citations
from probeval.data import write_campaign, write_qrels
from probeval.relevance import synthetic_campaign

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign folder, with a fourth of the judgments in few.txt beside."""
    campaign = synthetic_campaign(seed=5, systems=4, queries=6, depth=8)
    path = tmp_path_factory.mktemp("campaign")
    write_campaign(campaign, path)
    write_qrels(path / "few.txt", campaign.judgments.take(np.arange(0, len(campaign.judgments), 4)))
    return path


def test_judged_pairs_are_certain_in_every_column(probeval, folder):
    given = (folder / "runs", "--qrels", folder / "few.txt", "--scale", "graded:2", "--depth", 8)
    said = probeval("predict", *given, "--format", "csv")
    assert said.code == 0, said.err
    table = pd.read_csv(StringIO(said.out))
    p = table[["p0", "p1", "p2"]].to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        p @ [0, 1, 2], table["mean"]
    )  # the mean is that of the probabilities: of judged pairs too
    known = table["judged"].to_numpy()
    assert 0 < known.sum() < len(table)
    assert set(np.unique(p[known])) == {0.0, 1.0}
    assert (table["sd"][known] == 0).all()
    assert p[~known].max() < 1
    document = json.loads(probeval("predict", *given, "--format", "json").out)
    assert document["model"] == "text-hierarchical"
    assert document["pairs"][0] == pytest.approx(table.to_dict("records")[0])


def test_scores_from_the_table_are_those_of_evaluate(folder):
    """What is computed from P(grade) by hand is what evaluate computes, judged pairs included."""
    given = {"qrels": folder / "few.txt", "scale": "graded:2", "gain": "linear", "model": "hierarchical"}
    table = package.predict(folder / "runs", depth=8, **given).to_frame()
    gain = {(q, d): g for q, d, g in zip(table["query"], table["doc"], table["p1"] / 2 + table["p2"], strict=True)}
    want = package.evaluate(folder / "runs", "P@8", **given, depth=8)
    found = package.evaluate(folder / "runs", "CG@8", **given, depth=8).to_frame().set_index("system")["mean"]
    runs = want.estimate.collection.runs.to_frame()
    runs = runs[runs["rank"] <= 8]
    sums = runs.assign(gain=[gain[key] for key in zip(runs["query"], runs["doc"], strict=True)])
    by_hand = sums.groupby("system")["gain"].sum() / (6 * 8)
    np.testing.assert_allclose(by_hand[found.index], found, rtol=1e-9)


def test_judged_bins_of_a_fine_scale_are_certain():
    runs = {"a": {"q": {"d1": 2.0, "d2": 1.0}}, "b": {"q": {"d2": 2.0, "d3": 1.0}}}
    table = package.predict(runs, qrels={"q": {"d1": 43, "d2": 100}}, scale="fine", model="hierarchical").to_frame()
    bins = table.filter(regex=r"^p\d").to_numpy()
    np.testing.assert_array_equal(bins.sum(axis=1)[:2], 1.0)
    assert bins[0, 4] == 1.0  # 40 to 49
    assert bins[1, 9] == 1.0
    assert table["mean"][:2].tolist() == [43.0, 100.0]


def test_bibtex_has_all_works_and_the_citation_file_agrees(probeval):
    said = probeval("cite", "--bibtex")
    works = citations(package.__version__).works
    assert said.out.count("@") == len(works)
    assert "version = {" + package.__version__ + "}" in said.out
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (works[0].title, works[0].venue, works[0].year) == (
        cited["title"],
        cited["url"],
        cited["date-released"].year,
    )
    by_title = {work.title: work for work in works}
    for reference in cited["references"]:
        work = by_title[reference["title"]]
        assert (work.year, work.doi) == (reference["year"], reference.get("doi", ""))
        families = [author.split(",")[0] for author in work.authors.split(" and ")]
        assert families == [author["family-names"] for author in reference["authors"]]


def test_the_table_names_what_each_work_is_for(probeval):
    said = probeval("cite")
    assert "any result" in said.out
    assert "Carterette et al. (2006)" in said.out
    assert "--bibtex" in said.err
