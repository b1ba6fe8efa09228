"""Features of the systems' outputs on lists small enough to count by hand, and on a real campaign."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Collection, Runs, Scale, read_campaign
from probeval.errors import FeatureError
from probeval.features import compute_features

SCALE = Scale.binary()  # features of outputs do not depend on it

# Query q: a = d1 d2 d3, b = d2 d4, c = d2 d1; query r: only a answers, with e1. Teams: a and b are x, c is y.
ROWS = [
    ("a", "q", "d1", 9.0),
    ("a", "q", "d2", 6.0),
    ("a", "q", "d3", 3.0),
    ("b", "q", "d2", 1.0),
    ("b", "q", "d4", 0.5),
    ("c", "q", "d2", 2.0),
    ("c", "q", "d1", 2.0 - 1e-3),
    ("a", "r", "e1", 5.0),
]


@pytest.fixture
def lists() -> Collection:
    systems, queries, docs, scores = zip(*ROWS, strict=True)
    runs = Runs.rows(systems, queries, docs, scores).with_teams({"a": "x", "b": "x", "c": "y"})
    return Collection("small", runs)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Top 2: q has d1 (a1, c2), d2 (a2, b1, c1), d4 (b2); r has e1 (a1).
        ("fSYS", [2 / 3, 1, 1 / 3, 1 / 3]),
        ("fTEAM", [1, 1, 1 / 2, 1 / 2]),
        ("OV", [4 / (2 * 3 * 2)] * 4),
        ("aRANK", [1.5, 4 / 3, 2, 1]),
        ("bRANK", [1, 1, 2, 1]),
        ("rSUM", [(1 + 1 / 2) / 3, (1 / 2 + 1 + 1) / 3, (1 / 2) / 3, 1 / 3]),
        ("rRF", [(1 + 61 / 62) / 3, (61 / 62 + 2) / 3, (61 / 62) / 3, 1 / 3]),
        ("pRANK", [2 / 3, 1, 1 / 3, 1]),
        # a: 9 6 3 has mean 6 and standard deviation sqrt(6), over the whole list; two scores are 1 and -1; one is 0.
        ("zSCORE", [(3 / np.sqrt(6) - 1) / 2, (0 + 1 + 1) / 3, -1, 0]),
    ],
)
def test_by_hand(lists, name, expected):
    np.testing.assert_allclose(compute_features(lists.problem(depth=2, scale=SCALE), [name])[name], expected, atol=1e-9)


def test_another_depth_looks_further_down_for_the_same_pairs(lists):
    table = compute_features(lists.problem(depth=1, scale=SCALE), ["fSYS", "fSYS@3", "rSUM@3"])
    # Top 1: q has d1 (a) and d2 (b, c); to depth 3 a has d2 as well, and c has d1.
    assert [table.pool.label(i)[1] for i in range(3)] == ["d1", "d2", "e1"]
    np.testing.assert_allclose(table["fSYS"], [1 / 3, 2 / 3, 1 / 3])
    np.testing.assert_allclose(table["fSYS@3"], [2 / 3, 1, 1 / 3])
    np.testing.assert_allclose(table["rSUM@3"], [1.5 / 3, 2.5 / 3, 1 / 3])


def test_a_depth_past_the_lists_is_their_whole(lists):
    problem = lists.problem(depth=2, scale=SCALE)
    whole = compute_features(problem, ["fSYS@100", "rRF@100"]).values
    np.testing.assert_array_equal(whole, compute_features(problem, ["fSYS@3", "rRF@3"]).values)


def test_lists_without_scores_have_no_standard_score(lists):
    systems, queries, docs, _ = zip(*ROWS, strict=True)
    bare = Collection("bare", Runs.rows(systems, queries, docs))
    assert np.isnan(compute_features(bare.problem(depth=2, scale=SCALE), ["zSCORE"]).values).all()


def test_equal_scores_are_average(lists):
    runs = Runs.rows(["a", "a"], ["q", "q"], ["d1", "d2"], [4.0, 4.0])
    np.testing.assert_array_equal(
        compute_features(Collection("flat", runs).problem(depth=2, scale=SCALE), ["zSCORE"])["zSCORE"], [0, 0]
    )


def test_the_same_ranks_by_other_systems_tie_in_the_percentile():
    # d1 is at ranks 1, 2, 6 and d2 at 2, 6, 1: the same sum, which floating point adds up to two different numbers.
    assert 1 + 1 / 2 + 1 / 6 != 1 / 2 + 1 / 6 + 1
    tops = {"a": "d1 d2 x y z w", "b": "x d1 y z w d2", "c": "d2 x y z w d1"}
    rows = [(s, "q", d) for s, docs in tops.items() for d in docs.split()]
    ties = Collection("ties", Runs.rows(*zip(*rows, strict=True)))
    table = compute_features(ties.problem(depth=6, scale=SCALE), ["pRANK"])
    assert table["pRANK"][0] == table["pRANK"][1]


def test_teams_are_needed_for_their_share(lists):
    teamless = Collection("teamless", Runs.rows(*zip(*[(s, q, d) for s, q, d, _ in ROWS], strict=True)))
    with pytest.raises(FeatureError, match=r"systems\.tsv"):
        compute_features(teamless.problem(depth=2, scale=SCALE), ["fTEAM"])


def test_authority_is_the_leading_eigenvector_of_the_systems_cosines(lists):
    # Top 2 as a matrix of pairs by systems: d1 (a, c), d2 (a, b, c), d4 (b), e1 (a).
    has = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0]])
    root = np.sqrt(has.sum(axis=0))
    weight = np.abs(np.linalg.eigh(has.T @ has / np.outer(root, root))[1][:, -1])
    weight = 0.9 * weight / weight.sum() + 0.1 / 3
    found = compute_features(lists.problem(depth=2, scale=SCALE), ["wSYS"])["wSYS"]
    np.testing.assert_allclose(found, has @ weight, atol=1e-9)


def test_a_long_list_is_no_better_voter():
    # Two systems agree on two documents; a third returns five of its own beside one of them.
    docs = {"a": "d1 d2", "b": "d1 d2", "long": "d1 x1 x2 x3 x4 x5"}
    rows = [(s, "q", d) for s, listed in docs.items() for d in listed.split()]
    long = Collection("long", Runs.rows(*zip(*rows, strict=True)))
    table = compute_features(long.problem(depth=6, scale=SCALE), ["wSYS"])
    value = {table.pool.label(i)[1]: v for i, v in enumerate(table["wSYS"])}
    assert value["x1"] < value["d2"] / 2


def test_a_system_that_agrees_with_no_other_has_little_authority():
    docs = {"a": "d1 d2 d3", "b": "d1 d2 d4", "c": "d1 d3 d2", "odd": "x y z"}
    rows = [(s, "q", d) for s, listed in docs.items() for d in listed.split()]
    alone = Collection("odd", Runs.rows(*zip(*rows, strict=True)))
    table = compute_features(alone.problem(depth=3, scale=SCALE), ["fSYS", "wSYS"])
    odd = [table.pool.label(i)[1] in "xyz" for i in range(len(table.pool))]
    np.testing.assert_allclose(table["wSYS"][odd], 0.1 / 4, atol=1e-9)  # its part of the equal weights
    assert table["wSYS"].max() == pytest.approx(0.9 + 0.1 * 3 / 4)


def test_overlap_of_a_music_campaign(data):
    # MIREX 2011: 6,322 distinct pairs of 5 ranks, 18 systems and 100 queries, 0.7024.
    found = compute_features(read_campaign(data / "mirex2011").problem(depth=5), ["OV"])["OV"]
    assert len(found) == 6322
    assert np.unique(found) == pytest.approx(0.7024, abs=5e-5)
