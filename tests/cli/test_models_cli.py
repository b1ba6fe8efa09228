"""``features``, ``fit``, ``models``: what they write, and how they fail."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Scale, write_campaign
from probeval.features import DEFINITIONS, compute_features
from probeval.relevance import card_names, load_card, read_card, synthetic_campaign


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """Three small campaigns in one folder: first and third on 0-2, second on 0-1."""
    root = tmp_path_factory.mktemp("campaigns")
    for i, (name, scale) in enumerate(
        (("first", Scale.graded(2)), ("second", Scale.binary()), ("third", Scale.graded(2)))
    ):
        campaign = synthetic_campaign(seed=i, systems=6, queries=8, depth=12, docs=30, groups=3, scale=scale)
        write_campaign(replace(campaign, name=name), root / name)
    return root


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# ---- features ----


def test_features_as_csv(probeval, folders):
    first = folders / "first"
    said = probeval("features", first / "runs", "--feature", "fSYS", "--feature", "fSYS@12", "--depth", 5)
    assert (said.code, said.err) == (0, "")
    rows = records(said.out)
    assert list(rows[0]) == ["query", "doc", "fSYS", "fSYS@12"]
    campaign = synthetic_campaign(seed=0, systems=6, queries=8, depth=12, docs=30, groups=3)
    expected = compute_features(campaign.problem(depth=5), ["fSYS", "fSYS@12"])
    assert [(r["query"], r["doc"]) for r in rows] == [expected.pool.label(i) for i in range(len(expected.pool))]
    np.testing.assert_allclose([[float(r["fSYS"]), float(r["fSYS@12"])] for r in rows], expected.values)


def test_features_reach_to_depth_ten_unless_told(probeval, folders):
    first = folders / "first"
    ten = probeval("features", first / "runs", "--feature", "bRANK")
    assert ten.out == probeval("features", first / "runs", "--feature", "bRANK", "--depth", 10).out
    assert max(float(row["bRANK"]) for row in records(ten.out)) == 10


def test_without_names_all_that_the_files_allow(probeval, folders):
    first = folders / "first"
    bare = records(probeval("features", first / "runs").out)
    # systems.tsv stands beside runs/, so teams are known.
    outputs = [d.name for d in DEFINITIONS.values() if set(d.needs) <= {"outputs", "teams"}]
    assert list(bare[0]) == ["query", "doc", *outputs]
    full = probeval("features", first / "runs", "--qrels", first / "qrels.txt", "--metadata", first / "metadata.tsv")
    names = set(records(full.out)[0])
    assert {"aSYS", "dSYS", "aDOC", "nDOC", "a[source]", "s[source]", "f[source]"} <= names
    assert not names & {"aSIM", "label[source]"}


def test_missing_features_are_empty_and_counted(probeval, folders):
    first = folders / "first"
    arguments = ("features", first / "runs", "--metadata", first / "metadata.tsv", "--feature", "s[source]")
    said = probeval(*arguments)
    rows = records(said.out)
    assert {row["s[source]"] for row in rows} == {""}  # queries are not in the metadata
    assert said.err == f"Missing for some of {len(rows):,} pairs (missing is not zero): s[source] for {len(rows):,}.\n"
    assert probeval(*arguments, "--quiet").err == ""
    as_json = json.loads(probeval(*arguments, "--format", "json").out)
    assert as_json[0].keys() == {"query", "doc", "s[source]"}
    assert as_json[0]["s[source]"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--feature", "fSIS"], "Did you mean 'fSYS'"),
        (["--feature", "aRANK@5"], "takes no depth"),
        (["--feature", "f[source]"], "need metadata"),
        (["--feature", "label[x]"], "needs a table of labels"),
        (["--feature", "aSIM"], "needs a vector"),
        (["--metadata", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_features_that_cannot_be_computed(probeval, folders, arguments, said):
    found = probeval("features", folders / "first" / "runs", *arguments)
    assert (found.code, found.out) == (1, "")
    assert found.err.startswith("Error: ")
    assert found.err.count("\n") == 1
    assert said in found.err


# ---- fit ----


def test_fit_writes_a_card_and_says_how_good_it_is(probeval, folders, tmp_path):
    out = tmp_path / "models" / "mine"
    names = [folders / n for n in ("first", "second", "third")]
    said = probeval("fit", *names, "--without", "third", "--kind", "ordinal", "-o", out, "--format", "csv")
    assert said.code == 0, said.err
    card = read_card(out)
    assert card.name == "mine"
    assert (card.kind, card.scale, card.depth) == ("ordinal", "any", 10)
    assert set(card.fingerprints) == {"first", "second"}
    assert (out / "README.md").read_text(encoding="utf-8") == card.readme()
    rows = records(said.out)
    assert {row["campaign"] for row in rows} == {"first", "second", "all"}
    assert {row["held out by"] for row in rows} == {"query", "campaign"}
    assert {"n", "rmse", "ratio", "log_score"} <= set(rows[0])
    assert "first: 6 of 6 systems are fully judged." in said.err
    assert f"Written to {out}/card.json" in said.err
    again = probeval("models", "show", out, "--format", "json")
    assert json.loads(again.out)["name"] == "mine"


def test_fit_takes_a_chain_of_terms(probeval, folders, tmp_path):
    out = tmp_path / "own"
    chain = ("--terms", "log(fSYS),aDOC,f[source]", "--terms", "log(fSYS)")
    said = probeval("fit", folders / "first", *chain, "--depth", 6, "-o", out, "--quiet", "--format", "json")
    assert (said.code, said.err) == (0, "")
    card = read_card(out)
    assert [getattr(m, "terms", None) for m in card.models] == [
        ("log(fSYS)", "aDOC", "f[source]"),
        ("log(fSYS)",),
        None,
    ]
    assert (card.scale, card.depth) == ("graded:2", 6)
    assert json.loads(said.out) == json.loads((out / "card.json").read_text(encoding="utf-8"))


def test_fit_selects_terms_and_shows_how(probeval, folders, tmp_path):
    arguments = ["fit", folders / "first", "--terms", "OV,log(fSYS)", "--select", ".05", "-o", tmp_path / "m"]
    said = probeval(*arguments)
    title, header, *rows = said.out.splitlines()
    assert title == "Terms, down to log(fSYS)"
    assert header.split() == ["term", "chi2", "p", "dropped", "rmse"]
    assert rows[0].split()[:4] == ["OV", "0.0", "1.0000", "1"]  # one number per campaign says nothing of its pairs
    assert rows[1].split()[0] == "log(fSYS)"
    found = json.loads(probeval(*arguments, "--format", "json").out)
    assert found["models"][0]["terms"] == ["log(fSYS)"]
    assert found["evaluation"]["log(fSYS)"]["elimination"]["terms"][0]["term"] == "OV"


def test_fit_says_what_its_check_found(probeval, folders, tmp_path):
    said = probeval("fit", folders / "first", "--terms", "OV,log(fSYS)", "-o", tmp_path / "m")
    assert said.code == 0
    assert "OV is the same for every pair: its coefficient is 0." in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--without", "frist"], "no campaign 'frist' to leave out. Did you mean 'first'?"),
        (["--without", "first", "--without", "second"], "no campaign is left"),
        (["--terms", "fSIS"], "Did you mean 'fSYS'"),
        (["--terms", "label[m]"], "needs a table of labels"),
    ],
)
def test_fits_that_cannot_be(probeval, folders, tmp_path, arguments, said):
    found = probeval("fit", folders / "first", folders / "second", *arguments, "-o", tmp_path / "m")
    assert (found.code, found.out) == (1, "")
    last = found.err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert said in last
    assert not (tmp_path / "m").exists()


def test_fit_without_judgments_or_runs(probeval, folders, tmp_path, put):
    bare = put("bare/runs/a", "q Q0 d 1 1 t\n").parents[1]
    for folder, said in ((bare, "judgments"), (tmp_path / "nowhere", "runs")):
        found = probeval("fit", folder, "--kind", "ordinal", "-o", tmp_path / "m", "--quiet")
        assert found.code == 1
        assert found.err.startswith("Error: ")
        assert found.err.count("\n") == 1
        assert said in found.err


def test_fit_on_a_single_query(probeval, put, tmp_path):
    runs = {s: "".join(f"q Q0 d{(i * k) % 11} {i + 1} {9 - i} t\n" for i in range(8)) for s, k in (("a", 1), ("b", 3))}
    for system, text in runs.items():
        folder = put(f"one/runs/{system}", text).parents[1]
    put("one/qrels.txt", "".join(f"q 0 d{i} {int(i % 3 == 0)}\n" for i in range(11)))
    found = probeval("fit", folder, "--terms", "fSYS", "-o", tmp_path / "m", "--quiet")
    assert found.code == 1
    assert found.err == "Error: Cross-validation by query needs at least two of them.\n"


# ---- models ----


def test_models_as_json(probeval):
    said = probeval("models", "--format", "json")
    assert (said.code, said.err) == (0, "")
    rows = json.loads(said.out)
    assert [row["name"] for row in rows] == card_names()
    for row in rows:
        card = load_card(row["name"])
        assert row["kind"] == card.kind
        assert row["scale"] == card.scale
        assert row["depth"] == card.depth


def test_models_as_a_table_and_as_csv(probeval):
    table = probeval("models").out.splitlines()
    assert table[0].split()[:4] == ["name", "kind", "scale", "depth"]
    assert [line.split()[0] for line in table[1:]] == card_names()
    assert [row["name"] for row in records(probeval("models", "--format", "csv").out)] == card_names()


def test_a_model_for_people_and_as_json(probeval):
    said = probeval("models", "show", "text-jud")
    assert (said.code, said.err) == (0, "")
    tables = said.out.rstrip("\n").split("\n\n")
    assert tables == [table.text() for table in load_card("text-jud").tables()]
    assert [table.splitlines()[0] for table in tables] == [
        "text-jud, ordinal, scale any",
        "Features",
        "Model 1: ordinal",
        "Model 1: ordinal, cutpoints by the number of levels",
        "Model 2: ordinal",
        "Model 2: ordinal, cutpoints by the number of levels",
        "Model 3: empirical",
        "Training",
        "Evaluation",
    ]
    assert tables[2].splitlines()[2].split() == ["log(fSYS)", "1.0516", "-2.8726", "1.3117", "0"]
    assert json.loads(probeval("models", "show", "text-jud", "--format", "json").out) == load_card("text-jud").to_dict()


def test_models_that_are_not_there(probeval, put, tmp_path):
    damaged = put("bad/card.json", "{")
    for name, said in (
        ("text-jd", "No model 'text-jd'. Did you mean 'text-jud'?"),
        (damaged.parent, f"{damaged}: not a model card"),
        (tmp_path, "cannot be read"),
    ):
        found = probeval("models", "show", name)
        assert (found.code, found.out) == (1, "")
        assert found.err.startswith("Error: ")
        assert found.err.count("\n") == 1
        assert said in found.err


def test_usage_is_two(probeval, folders):
    assert probeval("fit", folders / "first").code == 2  # no -o
    assert probeval("models", "show").code == 2
    assert probeval("features").code == 2


def test_fit_learns_the_hierarchical_model_unless_told_otherwise(probeval, folders, tmp_path):
    said = probeval(
        "fit", folders / "first", folders / "third", "-o", tmp_path / "mine", "--depth", "5", "--format", "json"
    )
    assert said.code == 0, said.err
    card = read_card(tmp_path / "mine")
    assert card.kind == "hierarchical" == json.loads(said.out)["kind"]
    assert set(card.fingerprints) == {"first", "third"}
    ranked = probeval(
        "evaluate", folders / "second", "--metric", "DCG@5", "--model", tmp_path / "mine", "--format", "json"
    )
    assert ranked.code == 0, ranked.err
    assert 0.5 < json.loads(ranked.out)["confidence"] < 1


def test_fit_refuses_what_a_kind_does_not_take(probeval, folders, tmp_path):
    for wrong in (
        ("--kind", "hierarchical", "--terms", "fSYS"),
        ("--kind", "ordinal", "--labels-from", tmp_path / "x.tsv"),
    ):
        found = probeval("fit", folders / "first", *wrong, "-o", tmp_path / "m")
        assert found.code == 1
        assert found.out == ""
        assert len(found.err.splitlines()) == 1
