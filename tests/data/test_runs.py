from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Pool, Runs, read_runs
from probeval.data.runs import ORDERS
from probeval.errors import DataError


def listed(runs: Runs, system: int = 0, query: int = 0) -> list[str]:
    return [runs.pool.label(p)[1] for p in runs.pairs[system, query] if p >= 0]


# Yang (2019), Figures 3.1 to 3.3, run bbn1 on topic 355: the file's last line has rank 304.
BBN1 = """\
355 Q0 FBIS3-303 303 0.005601 bbn1
355 Q0 FBIS3-305 305 -0.0006148 bbn1
355 Q0 FBIS4-4125 955 -1.33 bbn1
355 Q0 FBIS3-27456 956 -1.33 bbn1
355 Q0 FBIS3-33460 957 -1.33 bbn1
355 Q0 FBIS4-45831 958 -1.33 bbn1
355 Q0 FBIS3-304 304 -7.763e-05 bbn1
"""


def test_o21_score_then_rank(put):
    runs = read_runs(put("bbn1", BBN1), order="score")
    ties = ["FBIS4-4125", "FBIS3-27456", "FBIS3-33460", "FBIS4-45831"]
    assert listed(runs) == ["FBIS3-303", "FBIS3-304", "FBIS3-305", *ties]


def test_o21_trec_eval(put):
    runs = read_runs(put("bbn1", BBN1))
    ties = ["FBIS4-45831", "FBIS4-4125", "FBIS3-33460", "FBIS3-27456"]
    assert listed(runs) == ["FBIS3-303", "FBIS3-304", "FBIS3-305", *ties]


def test_ranks_are_numbers_not_text(put):
    # The sort command that Yang (2019) prints compares ranks as text, which puts 10 before 9.
    path = put("r", "q Q0 a 10 1 t\nq Q0 b 9 1 t\nq Q0 c 100 1 t\n")
    assert listed(read_runs(path, order="score")) == ["b", "a", "c"]
    assert listed(read_runs(path, order="rank")) == ["b", "a", "c"]


MIXED = {"docs": ["a", "b", "c", "d"], "scores": [1.0, 3.0, 2.0, 3.0], "ranks": [1, 4, 2, 3]}


@pytest.mark.parametrize(
    ("order", "expected"), [("trec_eval", "dbca"), ("score", "dbca"), ("rank", "acdb"), ("file", "abcd")]
)
def test_each_order_rule(order, expected):
    runs = Runs.rows(["s"] * 4, ["q"] * 4, MIXED["docs"], MIXED["scores"], ranks=MIXED["ranks"], order=order)
    assert "".join(listed(runs)) == expected
    assert [MIXED["scores"]["abcd".index(d)] for d in expected] == runs.scores[0, 0].tolist()


def test_the_rule_of_score_breaks_ties_by_rank_and_trec_eval_by_document():
    rows = (["s"] * 3, ["q"] * 3, ["a", "c", "b"], [1.0, 1.0, 1.0])
    assert listed(Runs.rows(*rows, ranks=[2, 1, 3], order="score")) == ["c", "a", "b"]
    assert listed(Runs.rows(*rows, ranks=[2, 1, 3])) == ["c", "b", "a"]


def test_every_rule_is_known_and_no_other():
    assert list(ORDERS) == ["trec_eval", "score", "rank", "file"]
    with pytest.raises(DataError, match=r"No order 'scores'.*Did you mean 'score'"):
        Runs.rows(["s"], ["q"], ["d"], [1.0], ranks=[1], order="scores")
    with pytest.raises(DataError, match="needs the submitted ranks"):
        Runs.rows(["s"], ["q"], ["d"], [1.0], order="rank")


def test_scores_that_differ_only_beyond_32_bits_tie():
    near = 1.0 + 1e-9
    assert np.float32(near) == np.float32(1.0)
    runs = Runs.rows(["s"] * 2, ["q"] * 2, ["a", "b"], [near, 1.0])
    assert listed(runs) == ["b", "a"]  # a tie: the document id falls
    assert runs.ties().docs == 1
    exact = Runs.rows(["s"] * 2, ["q"] * 2, ["a", "b"], [near, 1.0], ranks=[1, 2], order="score")
    assert listed(exact) == ["a", "b"]
    assert runs.scores[0, 0].tolist() == [1.0, near]  # kept in full


def test_ties_go_by_the_document_id_as_text():
    ids = ["9", "10", "Z", "a", "é", "007"]
    runs = Runs.rows(["s"] * 6, ["q"] * 6, ids, [0.0] * 6)
    assert listed(runs) == sorted(ids, key=lambda d: d.encode(), reverse=True)  # trec_eval compares bytes


def test_extreme_scores_keep_their_order_without_a_warning():
    runs = Runs.rows(["s"] * 4, ["q"] * 4, ["a", "b", "c", "d"], [1e300, float("inf"), -1e300, 0.0])
    assert listed(runs) == ["b", "a", "d", "c"]  # 1e300 is infinite in 32 bits, as in trec_eval
    assert runs.tie_starts[0, 0].tolist() == [0, 0, 2, 3]


def test_lists_of_different_length_end_in_minus_one():
    runs = Runs.rows(["a", "a", "b"], ["q1", "q1", "q2"], ["x", "y", "z"], [2, 1, 1])
    assert runs.pairs.shape == (2, 2, 2)
    assert runs.retrieved.tolist() == [[[True, True], [False, False]], [[False, False], [True, False]]]
    assert np.isnan(runs.scores[1, 0]).all()
    assert repr(runs) == "<Runs: 2 systems, 2 queries, depth 2, 3 pairs>"


def test_without_scores_rows_stand_in_order():
    assert listed(Runs.rows(["s"] * 3, ["q"] * 3, ["b", "c", "a"])) == ["b", "c", "a"]
    assert listed(Runs.rows(["s"] * 3, ["q"] * 3, ["b", "c", "a"], ranks=[3, 1, 2])) == ["c", "a", "b"]


def test_top_cuts_the_pool_too(small):
    top = small.runs.top(2)
    assert top.depth == 2
    assert np.unique(top.pairs).tolist() == list(range(len(top.pool)))
    assert top.to_frame().equals(small.runs.to_frame().query("rank <= 2").reset_index(drop=True))
    assert small.runs.top(99).to_frame().equals(small.runs.to_frame())


@pytest.mark.parametrize("depth", [0, -1])
def test_top_needs_a_depth(small, depth):
    with pytest.raises(DataError, match="whole number from 1"):
        small.runs.top(depth)


def test_select_keeps_order_teams_and_queries(small):
    wanted = ["system-05", "system-02"]
    chosen = small.runs.select(wanted)
    assert chosen.systems == tuple(wanted)
    assert chosen.teams == tuple(small.runs.teams[small.runs.systems.index(s)] for s in wanted)
    assert chosen.queries.tolist() == small.runs.queries.tolist()
    frame = small.runs.to_frame()
    for system in wanted:
        of, before = (f[f["system"] == system].reset_index(drop=True) for f in (chosen.to_frame(), frame))
        assert of.equals(before)
    assert set(np.unique(chosen.pairs)) == set(range(len(chosen.pool)))
    with pytest.raises(DataError, match=r"No system 'system-5'.*Did you mean 'system-05'"):
        small.runs.select(["system-5"])


def test_on_a_larger_pool_the_lists_are_the_same(small):
    larger = small.runs.pool.union(Pool.of(["a0", "q1"], ["x", "x"]))
    moved = small.runs.on(larger)
    assert moved.pool is larger
    assert moved.to_frame().equals(small.runs.to_frame())
    assert not moved.retrieved[:, 0].any()  # a query that no system answers
    assert small.runs.on(small.runs.pool) is small.runs
    with pytest.raises(DataError, match="has all of their pairs"):
        small.runs.on(Pool.of(["q1"], ["x"]))


def test_on_a_pool_that_lacks_a_query_without_pairs():
    runs = Runs.rows(["a", "b"], ["q1", "q2"], ["x", "y"], [1, 1]).select(["a"])
    moved = runs.on(Pool.of(["q1"], ["x"]))
    assert moved.to_frame().equals(runs.to_frame())


def test_teams(small):
    assert small.runs.with_teams({"system-01": "x"}).teams == ("x", *small.runs.systems[1:])


def test_tie_report():
    # a: ranks 2-3 tie on q1, no tie on q2. b: ranks 1-2 tie on q1, none on q2. c has no tie.
    rows = [
        *[("a", "q1", d, s) for d, s in (("1", 5), ("2", 4), ("3", 4), ("4", 1))],
        *[("a", "q2", d, s) for d, s in (("1", 2), ("2", 1))],
        *[("b", "q1", d, s) for d, s in (("1", 3), ("2", 3))],
        ("c", "q1", "1", 1),
    ]
    report = Runs.rows(*zip(*rows, strict=True)).ties()
    assert report.docs == pytest.approx(4 / 9)
    assert report.lists == pytest.approx(2 / 4)
    assert report.systems == pytest.approx(2 / 3)
    assert report.first_rank == pytest.approx((2 * 1) ** 0.5)


def test_tie_report_without_ties():
    report = Runs.rows(["a", "a"], ["q", "q"], ["1", "2"], [2, 1]).ties()
    assert (report.docs, report.lists, report.systems) == (0, 0, 0)
    assert np.isnan(report.first_rank)
    assert Runs.rows(["a", "a"], ["q", "q"], ["1", "2"]).ties().docs == 0  # no scores, no ties


def test_ties_of_a_real_campaign(data):
    # 18 lists of five documents with the scores 5..1: nothing is left to the rule.
    assert read_runs(data / "mirex2011").ties().docs == 0


def test_a_document_twice_is_refused():
    with pytest.raises(DataError, match="System 's' retrieves document 'd' twice for query 'q'"):
        Runs.rows(["s"] * 3, ["q"] * 3, ["d", "e", "d"], [3, 2, 1])


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="1 rows need as many queries, got 2"):
        Runs.rows(["s"], ["q", "q"], ["a", "b"], [1, 0])
    with pytest.raises(DataError, match="2 rows need as many scores, got 1"):
        Runs.rows(["s", "s"], ["q", "q"], ["a", "b"], [1])
    with pytest.raises(DataError, match="Row 2 has no score"):
        Runs.rows(["s", "s"], ["q", "q"], ["a", "b"], [1, float("nan")])


def test_runs_are_checked_on_construction(small):
    runs = small.runs
    with pytest.raises(DataError, match="Two runs are named 'x'"):
        Runs(("x", "x"), runs.pool, runs.pairs[:2], runs.scores[:2])
    with pytest.raises(DataError, match="not UTF-8 text"):
        Runs(("x\udcff",), runs.pool, runs.pairs[:1], runs.scores[:1])
    with pytest.raises(DataError, match="shape"):
        Runs(("x",), runs.pool, runs.pairs, runs.scores)
    with pytest.raises(DataError, match="as many teams"):
        Runs(runs.systems, runs.pool, runs.pairs, runs.scores, teams=("t",))
    with pytest.raises(ValueError, match="read-only"):
        runs.pairs[0, 0, 0] = 1


def test_joined_systems_share_the_queries_of_the_first():
    first = Runs.rows(["a", "a"], ["q1", "q2"], ["d1", "d2"], [2.0, 1.0])
    later = Runs.rows(["b", "b", "b"], ["q2", "q2", "q3"], ["d3", "d2", "d4"], [2.0, 1.0, 1.0])
    both = first.joined(later)
    assert (both.systems, both.queries.tolist(), both.teams) == (("a", "b"), ["q1", "q2"], None)
    assert [listed(both, s, q) for s in (0, 1) for q in (0, 1)] == [["d1"], ["d2"], [], ["d3", "d2"]]
    assert both.scores[1, 1].tolist() == [2.0, 1.0]
    assert "d4" not in both.pool.docs
    assert first.with_teams({"a": "x"}).joined(later).teams == ("x", "b")
    assert later.joined(first.with_teams({"a": "x"})).teams == ("b", "x")
    assert first.joined(first).systems == ("a",)  # counted once


def test_an_empty_team_is_none():
    runs = Runs.rows(["a", "b"], ["q", "q"], ["d", "d"], [1.0, 1.0])
    assert runs.with_teams({"a": "", "b": ""}).teams == ("a", "b")
