from __future__ import annotations

import numpy as np
import pytest

from probeval.arrays import objects
from probeval.data import Pool
from probeval.errors import DataError

ODD = ["27003e", "00afd2", "1e5", "NaN", "007", "7", "null", "", "nan", "None", "10", "9"]


def pairs(pool: Pool) -> list[tuple[str, str]]:
    return [pool.label(i) for i in range(len(pool))]


def test_ids_stay_strings_and_sort_as_strings():
    pool = Pool.of(["q"] * len(ODD), ODD)
    assert [doc for _, doc in pairs(pool)] == sorted(ODD)
    assert all(type(doc) is str for doc in pool.docs)


def test_pairs_sort_by_query_then_document_and_fold():
    pool = Pool.of(["q10", "q9", "q10", "q9", "q9"], ["b", "z", "a", "y", "z"])
    assert pairs(pool) == [("q10", "a"), ("q10", "b"), ("q9", "y"), ("q9", "z")]
    assert pool.sizes.tolist() == [2, 2]
    assert repr(pool) == "<Pool: 4 pairs, 2 queries>"


def test_coded_says_the_pair_of_each_row():
    pool, row = Pool.coded(["b", "a"], ["y", "x"], np.array([0, 1, 0, 0]), np.array([0, 1, 1, 0]))
    assert [pool.label(r) for r in row] == [("b", "y"), ("a", "x"), ("b", "x"), ("b", "y")]


def test_coded_keeps_a_query_without_pairs():
    pool, _ = Pool.coded(["b", "a"], ["x"], np.array([0]), np.array([0]))
    assert pool.queries.tolist() == ["a", "b"]
    assert pool.sizes.tolist() == [0, 1]


def test_locate_finds_what_is_there_and_no_more():
    pool = Pool.of(["a", "a", "b"], ["1", "01", "1"])
    found = pool.locate(["b", "a", "a", "b", "c", "a"], ["1", "01", "1", "01", "1", "1.0"])
    assert found.tolist() == [2, 0, 1, -1, -1, -1]
    assert Pool.of([], []).locate(["a"], ["1"]).tolist() == [-1]


def test_within_and_union():
    left, right = Pool.of(["a", "b"], ["1", "2"]), Pool.of(["b", "c"], ["2", "1"])
    both = left.union(right)
    assert pairs(both) == [("a", "1"), ("b", "2"), ("c", "1")]
    assert left.within(right).tolist() == [-1, 0]
    assert right.within(both).tolist() == [1, 2]
    assert left.union(left) is left
    assert left.within(left).tolist() == [0, 1]


def test_take_keeps_the_queries_and_drops_unused_documents():
    pool = Pool.of(["a", "b", "b"], ["1", "1", "2"])
    taken = pool.take(np.array([False, False, True]))
    assert pairs(taken) == [("b", "2")]
    assert taken.queries.tolist() == ["a", "b"]
    assert taken.docs.tolist() == ["2"]


def test_frame():
    frame = Pool.of(["a", "b"], ["007", "NaN"]).to_frame()
    assert frame.to_dict("list") == {"query": ["a", "b"], "doc": ["007", "NaN"]}


def test_equality_is_of_content():
    assert Pool.of(["a", "b"], ["1", "2"]) == Pool.of(["b", "a", "a"], ["2", "1", "1"])
    assert Pool.of(["a"], ["1"]) != Pool.of(["a"], ["2"])


def test_a_pool_is_read_only():
    pool = Pool.of(["a"], ["1"])
    for array in (pool.queries, pool.docs, pool.query, pool.doc):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


@pytest.mark.parametrize(("query", "doc"), [([0, 0], [1, 0]), ([0, 0], [0, 0]), ([1, 0], [0, 0]), ([0], [0, 1])])
def test_unsorted_or_repeated_pairs_are_refused(query, doc):
    with pytest.raises((DataError, ValueError)):
        Pool(objects(["a", "b"]), objects(["1", "2"]), np.array(query), np.array(doc))


@pytest.mark.parametrize("bad", [None, 7, 1.5, float("nan"), "\ud800"])
def test_an_id_that_is_no_string_is_refused(bad):
    with pytest.raises(DataError, match="Ids are strings"):
        Pool.of(["q", "q"], ["d", bad])


def test_columns_of_different_length_are_refused():
    with pytest.raises(DataError, match="2 queries need as many docs, got 1"):
        Pool.of(["q", "q"], ["d"])


def test_blocks_hold_whole_queries_and_no_more_pairs_than_asked():
    rng = np.random.default_rng(0)
    query = [f"q{i:02d}" for i in range(12) for _ in range(int(rng.integers(1, 9)))]
    pool = Pool.of(query, [f"d{i}" for i in range(len(query))])
    for most in (1, 5, 11, 1000):
        blocks = pool.blocks(most)
        assert [b.queries.start for b in blocks[1:]] == [b.queries.stop for b in blocks[:-1]]
        assert (blocks[0].pairs.start, blocks[-1].pairs.stop) == (0, len(pool))
        for block in blocks:
            n = block.pairs.stop - block.pairs.start
            assert n <= most or block.queries.stop - block.queries.start == 1
            assert set(pool.query[block.pairs]) == set(range(block.queries.start, block.queries.stop))
            part = pool.part(block)
            assert [part.label(i) for i in range(n)] == [
                pool.label(i) for i in range(block.pairs.start, block.pairs.stop)
            ]
    assert Pool.of([], []).blocks(3) == []
    assert pool.label(pool.pairs_of(3).start)[0] == "q03"
