"""Campaigns in partitions: the same campaign in any number of them, and one clear line for a folder that is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probeval.data import (
    Collection,
    Judgments,
    LabelTable,
    Pool,
    Runs,
    is_partitioned,
    open_partitions,
    split,
    write_partitions,
)
from probeval.errors import DataError
from tests.attack.cases import check_apart, check_some
from tests.data import hostile_partitions

pytest.importorskip("pyarrow")

CUT = 4


def campaign(seed: int = 0, *, queries: int = 70, systems: int = 3, teams: bool = True) -> Collection:
    """Lists of different lengths, shared documents, labels of three kinds, and judgments of pairs not retrieved too."""
    rng = np.random.default_rng(seed)
    names = [f"q{i}" for i in range(queries)]  # q10 comes before q2
    docs = ["d", "é", "\U0001f600", "\uffff", *(f"d{i}" for i in range(20))]
    rows = []
    for system in range(systems):
        for query in names:
            found = rng.permutation(len(docs))[: rng.integers(0 if system else 1, 7)]
            rows += [(f"s{system}", query, docs[d], score) for d, score in zip(found, rng.normal(size=9), strict=False)]
    runs = Runs.rows(*map(list, zip(*rows, strict=True)))
    labelled = Pool.of(*zip(*{(q, docs[d]) for q in [*names, "p", "z"] for d in rng.permutation(24)[:3]}, strict=True))
    n = len(labelled)
    grades = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n))
    parts = rng.dirichlet([1, 1, 1], n)
    labels = LabelTable(
        labelled,
        ("gpt", "ann", "crowd"),
        np.column_stack([grades, rng.normal(size=n), parts @ np.arange(3)]),
        {"crowd": parts},
    ).described({"ann": {"kind": "person"}})
    at = rng.integers(0, n, 50)
    judgments = Judgments.rows(
        labelled.queries[labelled.query[at]],
        labelled.docs[labelled.doc[at]],
        rng.integers(-1, 3, 50),
        assessors=rng.choice(["ann", "bob"], 50).tolist(),
        times=np.where(rng.random(50) < 0.5, np.nan, 1.7e9 + np.arange(50)),
    )
    runs = runs.with_teams({"s0": "us", "s1": "us"}) if teams else runs
    return Collection("mine", runs, judgments, labels=labels)


def rows_of(collections: Iterator[Collection]) -> dict[str, pd.DataFrame]:
    """The rows of all parts, in order: runs by system and query, labels by pair, judgments by query."""
    parts = list(collections)
    tables = {
        "runs": [part.runs.to_frame() for part in parts],
        "labels": [part.labels.to_frame() for part in parts],
        "judgments": [part.judgments.to_frame() for part in parts],
    }
    joined = {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}
    by = {"runs": ["system", "query", "rank"], "labels": ["query", "doc"], "judgments": ["query"]}
    return {name: frame.sort_values(by[name], kind="stable", ignore_index=True) for name, frame in joined.items()}


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 10)
@given(
    n=st.sampled_from([1, 2, 7]),
    seed=st.integers(0, 10**6),
    queries=st.integers(7, 40),
    systems=st.integers(1, 3),
    teams=st.booleans(),
)
@example(n=1, seed=1, queries=70, systems=3, teams=True)
@example(n=7, seed=1, queries=70, systems=3, teams=True)
@example(n=64, seed=1, queries=70, systems=3, teams=True)
def test_the_union_of_the_partitions_is_the_campaign(tmp_path_factory, n, seed, queries, systems, teams):
    whole = campaign(seed, queries=queries, systems=systems, teams=teams)
    folder = tmp_path_factory.mktemp("campaign") / "mine"
    write_partitions(split(whole, n), folder)
    found = open_partitions(folder)
    parts = list(found.read_all())
    assert len(found) == len(parts) == n
    assert (found.name, found.systems, found.teams) == ("mine", whole.runs.systems, whole.runs.teams)
    assert (found.n_queries, found.n_pairs) == (len(whole.runs.queries), len(whole.runs.pool))
    assert found.sources == whole.labels.sources
    assert np.concatenate([part.runs.queries for part in parts]).tolist() == whole.runs.queries.tolist()
    for start, i in zip(found.starts, range(n), strict=True):
        part = parts[i]
        here = slice(int(start), int(start) + len(part.runs.queries))
        np.testing.assert_array_equal(part.runs.scores, whole.runs.scores[:, here])
        assert found.read_queries(i).tolist() == part.runs.queries.tolist()
    mine, expected = rows_of(iter(parts)), rows_of(iter([whole]))
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(mine[name], frame, rtol=0, atol=0, check_dtype=False)
    for part in parts:
        assert part.labels.observers == whole.labels.observers
        np.testing.assert_allclose(part.labels.values, part.labels.on(replace(part.labels.pool)).values)
    together = found.read_judgments()
    assert together.assessors == whole.judgments.assessors
    assert together.fingerprint() == whole.judgments.fingerprint()
    pd.testing.assert_frame_equal(together.to_frame(), expected["judgments"], check_dtype=False)


def test_a_part_is_read_to_a_depth_and_with_the_labels_asked_for(tmp_path):
    whole = campaign()
    write_partitions(split(whole, 3), tmp_path / "mine")
    found = open_partitions(tmp_path / "mine")
    assert is_partitioned(tmp_path / "mine")
    assert not is_partitioned(tmp_path)
    for whole_part, i in zip(split(whole, 3), range(3), strict=True):
        part = found.read(i, CUT, sources=("crowd", "gpt"))
        top = whole_part.runs.top(CUT)
        assert part.runs.pool == top.pool
        np.testing.assert_array_equal(part.runs.pairs, top.pairs)
        assert part.labels.sources == ("crowd", "gpt")
        np.testing.assert_array_equal(part.labels.probabilities["crowd"], whole_part.labels.probabilities["crowd"])
        assert found.read(i, sources=()).labels is None
    with pytest.raises(DataError, match=r"no labels by 'gtp'. Did you mean 'gpt'\?"):
        found.read(0, sources=["gtp"])
    with pytest.raises(DataError, match=r"numbered from 0 to 2, got 3"):
        found.read(3)
    with pytest.raises(DataError, match=r"whole number from 1, got 0"):
        found.read(0, 0)


def test_labels_of_the_pairs_retrieved_share_their_pool(tmp_path):
    runs = campaign().runs
    labels = LabelTable(runs.pool, ("gpt",), np.zeros((len(runs.pool), 1)))
    write_partitions(split(Collection("mine", runs, labels=labels), 2), tmp_path / "mine")
    part = open_partitions(tmp_path / "mine").read(1)
    assert part.labels.pool is part.runs.pool
    assert part.judgments is None
    assert open_partitions(tmp_path / "mine").read_judgments() is None


def test_queries_without_a_document_and_lists_without_scores_stay(tmp_path):
    runs = Runs.rows(["a", "a", "b"], ["q1", "q2", "q3"], ["x", "y", "z"]).select(["a"])
    assert runs.queries.tolist() == ["q1", "q2", "q3"]
    write_partitions(split(Collection("mine", runs), 2), tmp_path / "mine")
    parts = list(open_partitions(tmp_path / "mine").read_all())
    assert [part.runs.queries.tolist() for part in parts] == [["q1"], ["q2", "q3"]]
    assert all(np.isnan(part.runs.scores).all() for part in parts)


def test_the_scale_of_an_observer_is_that_of_all_labels(tmp_path):
    # The first partition alone looks binary, the second has no label of the second source.
    pool = Pool.of(["q1", "q2"], ["d", "d"])
    labels = LabelTable(pool, ("gpt", "llama"), np.array([[1.0, 0.5], [3.0, np.nan]]))
    whole = Collection("mine", Runs.rows(["a", "a"], ["q1", "q2"], ["d", "d"]), labels=labels)
    write_partitions(split(whole, 2), tmp_path / "mine")
    found = open_partitions(tmp_path / "mine")
    assert [observer.scale for observer in found.observers] == ["graded:3", "number"]
    assert all(part.labels.observers == labels.observers for part in found.read_all())


def one(query: str, system: str = "a") -> Collection:
    return Collection("mine", Runs.rows([system], [query], ["d"]))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([one("q2"), one("q10")], r"partition 2 has the query 'q10', which must come after 'q2' .*in rising order"),
        ([one("q1"), one("q1")], r"partition 2 has the query 'q1', which must come after 'q1'"),
        ([one("q1"), one("q2", "b")], r"partition 2 has the systems \('b',\), those before \('a',\)"),
        ([one("q1"), replace(one("q2"), labels=campaign().labels)], r"partition 2 has the query 'p'"),
        (
            [one("a"), replace(one("q2"), labels=campaign().labels)],
            r"partition 2 has the columns of labels \('gpt', 'ann', 'crowd:0'.*those before \(\)",
        ),
        ([], r"nothing to write: no partition"),
        ([replace(one("q1"), consensus=True)], r"all systems are evaluated by its judgments"),
    ],
)
def test_parts_that_do_not_fit_are_refused_and_leave_nothing(tmp_path, parts, expected):
    with pytest.raises(DataError, match=expected):
        write_partitions(iter(parts), tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


def test_what_partitions_do_not_hold_is_refused(tmp_path, small):
    assert small.metadata is not None
    with pytest.raises(DataError, match=r"the campaign has metadata. Name its runs, judgments and labels one by one"):
        write_partitions(split(small, 2), tmp_path / "mine")


@pytest.mark.parametrize("n", [0, 71])
def test_the_number_of_partitions(n):
    with pytest.raises(DataError, match=f"from 1 to the number of queries, 70; got {n}"):
        next(split(campaign(), n))


def test_a_folder_with_files_is_left_alone(put, tmp_path):
    put("mine/notes.txt", "mine")
    with pytest.raises(DataError, match=r"exists already and is not empty. Name a new folder"):
        write_partitions([one("q1")], tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    write_partitions([one("q1")], tmp_path / "empty")
    assert len(open_partitions(tmp_path / "empty")) == 1


def test_a_damaged_folder_is_named(put, tmp_path):
    with pytest.raises(DataError, match=r"not a campaign in partitions: it has no partitions.json"):
        open_partitions(tmp_path)
    folder = tmp_path / "mine"
    write_partitions(split(campaign(), 2), folder)
    manifest = json.loads((folder / "partitions.json").read_text())
    found = open_partitions(folder)
    put("mine/runs/part-00000.parquet", "text")
    with pytest.raises(DataError, match=r"runs/part-00000.parquet: cannot be read: .*convert the campaign again"):
        found.read(0)
    (folder / "queries" / "part-00001.parquet").replace(folder / "queries" / "part-00000.parquet")
    with pytest.raises(DataError, match=r"queries/part-00001.parquet: a file is missing"):
        found.read(1)
    for change, expected in (
        ({"version": 2}, r"are of version 2, this probeval reads 1. Update"),
        ({"format": "other"}, r"expected a manifest with the format 'probeval partitions'"),
        ({"partitions": [{"queries": 1}]}, r"not a whole manifest"),
    ):
        put("mine/partitions.json", json.dumps(manifest | change))
        with pytest.raises(DataError, match=expected):
            open_partitions(folder)
    write_partitions(split(campaign(), 1), tmp_path / "other")
    put("other/partitions.json", (tmp_path / "other" / "partitions.json").read_text().replace('"s1"', '"s7"'))
    with pytest.raises(DataError, match=r"the files name systems that partitions.json does not list"):
        open_partitions(tmp_path / "other").read(0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"depth": -1}, "the depth is a number of ranks, got -1"),
        ({"depth": float("inf")}, "cannot convert float infinity"),
        ({"depth": 1}, "ranks must be from 1 to 1"),
        ({"depth": 10**12}, "nearly all empty"),
        ({"systems": ["a", "a"], "teams": None}, "systems need names of their own"),
        ({"systems": ["a", "b"], "teams": ["x"]}, "2 systems need as many teams, got 1"),
        ({"partitions": []}, "its partitions need numbers from 0"),
    ],
)
def test_a_hostile_manifest_is_refused_before_it_takes_memory(put, tmp_path, change, expected):
    write_partitions(split(campaign(), 1), tmp_path / "mine")
    manifest = json.loads((tmp_path / "mine" / "partitions.json").read_text())
    put("mine/partitions.json", json.dumps(manifest | change))
    with pytest.raises(DataError, match=expected):
        open_partitions(tmp_path / "mine").read(0)


@pytest.mark.parametrize(
    ("kind", "column", "value", "expected"),
    [
        ("runs", "rank", 0, "ranks must be from 1 to"),
        ("runs", "rank", None, "the column 'rank' has empty cells"),
        ("runs", "rank", "first", "cannot be read: "),
        ("runs", "query", "q99", "expected each query once, in rising order, and those of its runs"),
        ("judgments", "grade", "good", "cannot be read: "),
    ],
)
def test_hostile_cells_are_refused_in_one_line(tmp_path, kind, column, value, expected):
    write_partitions(split(campaign(), 1), tmp_path / "mine")
    file = tmp_path / "mine" / kind / "part-00000.parquet"
    pd.read_parquet(file).assign(**{column: value}).to_parquet(file)
    with pytest.raises(DataError, match=expected) as refused:
        open_partitions(tmp_path / "mine").read(0)
    assert len(str(refused.value).splitlines()) == 1


def test_ids_that_are_not_utf_8_are_refused(tmp_path):
    folder = tmp_path / "mine"
    write_partitions(split(hostile_partitions.made(), 1), folder)
    file = folder / "runs" / "part-00000.parquet"
    file.write_bytes(hostile_partitions._bytes_as_ids(file.read_bytes(), random.Random(1)))
    with pytest.raises(DataError, match=r"part-00000.parquet: cannot be read: .*UTF8"):
        hostile_partitions.use(folder)


def test_damaged_partitions_are_read_or_refused_in_one_line():
    """The first of the 10,000 of make attack."""
    check_some(hostile_partitions.PARTITIONS, 60)


@pytest.mark.validation
def test_ten_thousand_damaged_partitions():
    check_apart("partitions", hostile_partitions.PARTITIONS.full)
