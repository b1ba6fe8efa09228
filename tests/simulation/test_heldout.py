"""Campaigns held out: which systems, which pairs, which truth, which halves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Scale, as_judgments, as_runs, read_campaign
from probeval.errors import DataError
from probeval.metrics import measure, parse
from probeval.reporting import SILENT
from probeval.simulation import HeldOut, restrict
from probeval.simulation.heldout import split
from tests.heard import Heard


def test_restricting_to_queries_leaves_their_scores_as_they_were(small):
    kept = restrict(small, ["q2", "q4"])
    assert list(kept.runs.queries) == ["q2", "q4"]
    whole, part = (measure(c.runs, c.judgments, "nDCG@5").to_frame(per_query=True) for c in (small, kept))
    expected = whole[whole["query"].isin(["q2", "q4"])]["value"].to_numpy()
    np.testing.assert_array_equal(part["value"].to_numpy(), expected)
    assert kept.runs.teams == small.runs.teams
    assert set(kept.judgments.pool.queries) == {"q2", "q4"}
    assert len(kept.judgments) == int(np.isin(small.runs.pool.query, [1, 3]).sum())
    np.testing.assert_array_equal(kept.runs.scores, small.runs.scores[:, [1, 3]])


def test_restricting_to_an_unknown_query(small):
    with pytest.raises(DataError, match=r"synthetic: no query 'q44'\. Did you mean 'q4'\?"):
        restrict(small, ["q1", "q44"])


def test_restricting_without_judgments(small):
    assert restrict(replace(small, judgments=None), ["q1"]).judgments is None


@pytest.fixture(scope="module")
def gappy() -> Collection:
    """Systems a and b are judged but for one document in 202; c is not; of query q3 nobody judged anything."""
    docs = [f"d{i:03d}" for i in range(102)]
    runs = {
        "a": {"q1": {d: 200.0 - i for i, d in enumerate(docs[:101])}, "q2": {"e1": 2, "e2": 1}, "q3": {"f": 1}},
        "b": {"q1": {d: 200.0 - i for i, d in enumerate(docs[1:])}, "q2": {"e2": 2, "e1": 1}, "q3": {"f": 1}},
        "c": {"q1": {"other": 1}, "q2": {"e1": 1}, "q3": {"g": 1}},
    }
    grades = {
        "q1": {d: 1 + i % 2 for i, d in enumerate(docs) if d != "d050"} | {"unseen": 2},
        "q2": {"e1": 2, "e2": -2},
    }
    return Collection("gappy", as_runs(runs), as_judgments(grades))


def test_only_judged_systems_and_queries_take_part(gappy):
    held = HeldOut.of(gappy, depth=101)
    assert held.collection.runs.systems == ("a", "b")
    assert list(held.collection.runs.queries) == ["q1", "q2"]
    assert str(held) == (
        "gappy: 2 of 3 systems are judged to depth 101; 2 queries, 104 pairs, 1 of them without a judgment: grade 0, "
        "never offered."
    )
    assert str(held.scale) == "graded:2"


def test_the_unjudged_count_as_grade_0_and_are_never_offered(gappy):
    held = HeldOut.of(gappy, depth=101)
    pool = held.collection.runs.top(101).pool
    missing = int(pool.locate(["q1"], ["d050"])[0])
    assert missing not in held.known
    assert len(held.known) == len(pool) - 1
    assert held.codes[missing] == 0
    assert held.codes[pool.locate(["q2"], ["e2"])[0]] == 0  # junk is judged, and worth nothing
    assert pool.locate(["q2"], ["e2"])[0] in held.known


def test_the_truth_by_hand(gappy):
    held = HeldOut.of(gappy, depth=101)
    np.testing.assert_allclose(held.truth(parse("P@2"))[:, 1], [0.5, 0.5])
    # nDCG@2 of q2: the list of a is ideal, that of b has its 2 second.
    np.testing.assert_allclose(held.truth(parse("nDCG@2"))[:, 1], [1.0, 1 / np.log2(3)])
    # P@101 of q1: the first 101 documents but d050.
    np.testing.assert_allclose(held.truth(parse("P@101"))[:, 0], 100 / 101)
    # 'unseen' was judged and nobody retrieved it: it is not in the ideal list, which has 51 twos, not 52.
    ideal = (2 / np.log2(np.arange(51) + 2)).sum() + (1 / np.log2(np.arange(51, 101) + 2)).sum()
    assert np.sum(held.codes[held.collection.runs.pool.query[: len(held.codes)] == 0] == 2) == 50 + 1
    grades = np.array([1 + i % 2 if i != 50 else 0 for i in range(101)])
    expected = (grades / np.log2(np.arange(101) + 2)).sum() / ideal
    assert held.truth(parse("nDCG@101"))[0, 0] == pytest.approx(expected)


def test_after_some_judgments(gappy):
    held = HeldOut.of(gappy, depth=101)
    assert held.after(held.known[:0]).judgments is None
    some = held.after(held.known[[0, 5, 100]]).judgments
    assert sorted(some.pair) == held.known[[0, 5, 100]].tolist()
    np.testing.assert_array_equal(some.codes(held.scale)[some.pair], held.codes[some.pair])


def test_every_event_of_a_pair_comes_along(campaign):
    base = campaign("two assessors", 4)
    pairs = np.arange(len(base.runs.pool))
    both = Judgments.coded(
        base.runs.pool,
        np.concatenate([pairs, pairs]),
        np.concatenate([base.judgments.grade, 2 - base.judgments.grade]),
        assessors=["ann"] * len(pairs) + ["bob"] * len(pairs),
    )
    held = HeldOut.of(replace(base, judgments=both), depth=8)
    assert sorted(held.after(np.array([3, 4])).judgments.pair) == [3, 3, 4, 4]


def test_no_judged_system(gappy):
    alone = replace(gappy, runs=gappy.runs.select(["c"]))
    with pytest.raises(DataError, match=r"no system has more than 0\.99"):
        HeldOut.of(alone, depth=1)


# ---- splits ----


def test_one_is_left_out_and_the_others_are_learned_from(three):
    splits = split(three, 8, 2, 0, SILENT)
    assert [(s.held.collection.name, s.seed, [c.name for c in s.training]) for s in splits] == [
        (out, seed, [n for n in ("one", "two", "three") if n != out])
        for out in ("one", "two", "three")
        for seed in (0, 1)
    ]
    assert len({s.key for s in splits}) == 3  # seeds share what was learned


def test_without_a_judged_system_a_campaign_is_only_learned_from(three):
    half = replace(three[2], judgments=three[2].judgments.take(np.arange(0, len(three[2].judgments), 2)))
    heard = Heard()
    splits = split([*three[:2], half], 8, 1, 0, heard)
    assert {s.held.collection.name: [c.name for c in s.training] for s in splits} == {
        "one": ["two", "three"],
        "two": ["one", "three"],
    }
    assert heard.said[-1] == "three: no system is judged to depth 8; used for training only."
    assert len(splits[0].training[1].runs.systems) == 5  # with all of its systems


def test_fine_grades_and_groups_go_by_halves(three, campaign):
    music = campaign("music", 9, scale=Scale.fine(), metadata=True, queries=9)
    heard = Heard()
    splits = split([three[0], music, three[1]], 8, 4, 0, heard)
    assert "music: fitted on half of its queries, tested on the other half." in heard.said
    halves = [s for s in splits if s.held.collection.name == "music"]
    others = [s for s in splits if s.held.collection.name != "music"]
    assert all("music" not in [c.name for c in s.training] for s in others)
    sides = []
    for s in halves:
        (train,) = s.training
        learned, tried = set(train.runs.queries), set(s.held.collection.runs.queries)
        assert not learned & tried
        assert learned | tried == set(music.runs.queries)
        assert set(train.judgments.pool.queries) == learned
        sides.append((learned, tried))
    assert sides[0] == sides[1][::-1]  # the halves change places ..
    assert sides[2] == sides[3][::-1]
    assert sides[0] not in (sides[2], sides[3])  # .. and are drawn anew
    assert len({s.key for s in halves}) == 4


def test_fine_grades_without_groups_are_left_out_like_others(three, campaign):
    plain = campaign("plain", 9, scale=Scale.fine())
    splits = split([plain, three[0]], 8, 1, 0, SILENT)
    assert [c.name for c in splits[0].training] == ["one"]


def test_what_cannot_be_split(three):
    with pytest.raises(DataError, match="Two campaigns are named 'one'"):
        split([three[0], three[1], three[0]], 8, 1, 0, SILENT)
    with pytest.raises(DataError, match="one: there is no other campaign to fit on"):
        split(three[:1], 8, 1, 0, SILENT)
    with pytest.raises(DataError, match="one: without judgments no system is judged"):
        split([replace(three[0], judgments=None), three[1]], 8, 1, 0, SILENT)
    partly = [replace(c, judgments=c.judgments.take(np.arange(0, len(c.judgments), 2))) for c in three]
    with pytest.raises(DataError, match="no campaign has a system that is judged to depth 8"):
        split(partly, 8, 1, 0, SILENT)


@pytest.mark.slow
# What the README of the campaigns says: systems, pairs of their top 10, and those without a judgment.
@pytest.mark.parametrize(
    ("name", "systems", "pairs", "missing"),
    [
        ("trec8-adhoc", 108, 11_035, 31),
        ("trec-dl2019-passage", 37, 2_495, 1),
        ("clef-ehealth2018-irtask1", 22, 3_919, 4),
    ],
)
def test_the_counts_of_real_campaigns(data, name, systems, pairs, missing):
    held = HeldOut.of(read_campaign(data / name), depth=10)
    assert (len(held.collection.runs.systems), len(held.codes), len(held.codes) - len(held.known)) == (
        systems,
        pairs,
        missing,
    )
