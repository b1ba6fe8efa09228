"""The reference of a study, and the cuts of its judgments."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Runs
from probeval.errors import DataError
from probeval.studies.pools import choose_pool, depth_cuts, first_unjudged, share_cuts, team_cuts
from probeval.studies.pools.cuts import default_depths


def campaign(*, judged: int = 4, systems: int = 4, queries: int = 3, depth: int = 4) -> Collection:
    """Systems of two teams whose lists overlap in part; the first ranks of all but the last system are judged."""
    rows = [
        (f"s{s}", f"q{q}", f"d{q}-{s // 2 + r * 2:03}")
        for s in range(systems)
        for q in range(queries)
        for r in range(depth)
    ]
    runs = Runs.rows(*map(list, zip(*rows, strict=True))).with_teams(
        {f"s{s}": "one" if s < 2 else "two" for s in range(systems)}
    )
    known = [(q, d) for s, q, d in rows if s != f"s{systems - 1}" or int(d[-3:]) < 2 * judged]
    known = sorted(set(known))
    judgments = Judgments.rows([q for q, _ in known], [d for _, d in known], [int(d[-1]) % 2 for _, d in known])
    return Collection("small", runs, judgments)


def test_the_first_unjudged_rank_counts_the_end_of_a_list():
    judged = np.array([[[True, False, True], [True, True, True], [False, False, False]]])
    assert first_unjudged(judged).tolist() == [[2, 4, 1]]


def test_deeply_judged_systems_have_every_list_judged_to_the_depth():
    runs = Runs.rows(["a"] * 3 + ["b"] * 3 + ["c"] * 2, ["q"] * 8, ["1", "2", "3", "1", "2", "4", "1", "2"])
    judgments = Judgments.rows(["q"] * 3, ["1", "2", "3"], [1, 0, 1])
    two = choose_pool(Collection("c", runs, judgments), depth=2)
    assert (two.deep, two.runs.systems) == (True, ("a", "b", "c"))
    assert two.judged.sum() == 2  # the third document is past the depth
    three = choose_pool(Collection("c", runs, judgments), depth=3)
    assert (three.deep, three.runs.systems) == (False, ("a", "b", "c"))  # one system alone: all count
    every = choose_pool(Collection("c", runs, judgments), depth=2, every_system=True)
    assert not every.deep


def test_the_depth_of_the_reference_is_the_first_to_which_a_quarter_is_judged():
    assert choose_pool(campaign(depth=12, judged=12)).depth == 10
    assert default_depths(10) == (1, 2, 3, 4, 5, 10)


def test_queries_without_judgments_are_left_out():
    whole = campaign()
    some = whole.judgments.take(whole.judgments.pool.query[whole.judgments.pair] > 0)
    pool = choose_pool(Collection("part", whole.runs, some), depth=4)
    assert list(pool.runs.queries) == ["q1", "q2"]


def test_a_cut_to_a_depth_keeps_the_judgments_of_the_top_ranks():
    pool = choose_pool(campaign(), depth=4)
    cuts = depth_cuts(pool, [1, 2])
    assert [cut.name for cut in cuts] == ["depth 1", "depth 2", "depth 4"]
    for cut in cuts:
        top = pool.runs.pairs[:, :, : int(cut.value)]
        expected = set(top[top >= 0].tolist()) & set(np.flatnonzero(pool.judged).tolist())
        assert set(np.flatnonzero(cut.kept).tolist()) == expected
    assert (cuts[-1].kept == pool.judged).all()
    with pytest.raises(DataError, match="from 1 to that of the reference, 4"):
        depth_cuts(pool, [5])


def test_shares_are_of_each_query_nested_and_the_same_for_a_seed():
    pool = choose_pool(campaign(depth=10, judged=10), depth=10)
    small, large = share_cuts(pool, [0.5, 0.1], seed=3)
    query = pool.runs.pool.query
    known = np.bincount(query, pool.judged)
    assert (np.bincount(query, large.kept) == np.rint(0.5 * known)).all()
    assert (np.bincount(query, small.kept) == np.maximum(np.rint(0.1 * known), 1)).all()
    assert not (small.kept & ~large.kept).any()
    again, other = (share_cuts(pool, [0.5], seed=seed)[0] for seed in (3, 4))
    assert (again.kept == large.kept).all()
    assert (other.kept != large.kept).any()
    with pytest.raises(DataError, match="between 0 and 1"):
        share_cuts(pool, [1.5])


def test_without_a_team_the_judgments_that_it_alone_contributed_are_gone():
    pool = choose_pool(campaign(), depth=4)
    one, two = team_cuts(pool)
    assert (one.name, two.name) == ("without one", "without two")
    assert one.systems.tolist() == [True, True, False, False]
    pairs = pool.runs.pairs
    alone = set(pairs[:2].ravel().tolist()) - set(pairs[2:].ravel().tolist())
    assert set(np.flatnonzero(pool.judged & ~one.kept).tolist()) == alone & set(np.flatnonzero(pool.judged).tolist())


def test_what_cannot_be_studied_is_refused():
    whole = campaign()
    with pytest.raises(DataError, match="needs judgments"):
        choose_pool(Collection("bare", whole.runs))
    with pytest.raises(DataError, match="one alone"):
        choose_pool(Collection("single", whole.runs.select(["s0"]), whole.judgments))
    with pytest.raises(DataError, match="number of ranks from 1"):
        choose_pool(whole, depth=0)
    alike = Collection("alike", whole.runs.with_teams(dict.fromkeys(whole.runs.systems, "one")), whole.judgments)
    with pytest.raises(DataError, match="all systems are of one team"):
        team_cuts(choose_pool(alike, depth=4))
