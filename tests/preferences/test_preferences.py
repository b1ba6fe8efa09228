"""Answers about two documents, the published scores from them, designs and quality.

Published figures are of Yang (2019), chapter 5: TREC-8 topics judged in pairs by a crowd. Derived ones were
computed from its formulas.
"""

from __future__ import annotations

from dataclasses import astuple
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.data import PairAnswers, as_answers, read_answers
from probeval.errors import DataError
from probeval.preferences import (
    answer_quality,
    combine_questions,
    contradictions,
    design_groups,
    grades_by_shares,
    normalised_magnitudes,
    pair_list,
    pair_list_faults,
    ratio_scores,
    relevance_shares,
    side_share,
    wilson_interval,
    win_shares,
)

PUBLISHED = """\
LA101589-0180 FR940728-2-00132
LA101589-0180 FT943-2257
LA102389-0075 FT943-2257
LA102389-0075 FR940803-2-00061
LA102389-0075 FT911-124
FR940803-2-00061 FT911-124
FR940803-2-00061 LA031190-0095
LA101589-0180 LA031190-0095
FR940728-2-00132 LA031190-0095
FR940728-2-00132 LA072990-0060
FT943-2257 LA072990-0060
FT911-124 LA072990-0060
"""


def answered(rows: list[tuple[str, str, str]], **columns) -> PairAnswers:
    left, right, choice = zip(*rows, strict=True)
    return as_answers(pd.DataFrame({"query": "q", "left": left, "right": right, "choice": choice, **columns}))


def test_a_document_preferred_6_of_99_times():
    """Section 5.3.1: a document of topic 405."""
    rows = [("d", f"e{i}", "left" if i < 6 else "right") for i in range(99)]
    shares = win_shares(answered(rows)).set_index("doc")
    assert shares.loc["d", "share"] == pytest.approx(6 / 99)
    assert shares.loc["d", "answers"] == 99
    assert win_shares(answered(rows), bias=0.04).set_index("doc").loc["d", "share"] == pytest.approx(
        (6 * 0.96 + 93 * 0.04) / 99
    )


def test_relevance_shares_count_the_chosen():
    answers = answered(
        [("a", "b", "left"), ("b", "a", "left"), ("a", "c", "right")], relevant=["both", "chosen", "neither"]
    )
    assert relevance_shares(answers).set_index("doc")["share"].to_dict() == pytest.approx({"a": 1 / 3, "b": 1, "c": 0})
    with pytest.raises(DataError, match="prefers neither"):
        relevance_shares(answered([("a", "b", "equal")], relevant=["chosen"]))


def test_ratios_by_the_published_iteration():
    """The rows' geometric means, missing ratios filled in, converge to the least squares (derived oracle D6)."""
    pairs = {(0, 1): 2.0, (1, 2): 3.0, (2, 3): 2.0, (0, 2): 5.0}
    known = np.full((4, 4), np.nan)
    np.fill_diagonal(known, 1.0)
    for (i, j), ratio in pairs.items():
        known[i, j], known[j, i] = ratio, 1 / ratio
    scores = np.ones(4)
    for _ in range(200):
        filled = np.where(np.isnan(known), scores[:, None] / scores, known)
        scores = np.exp(np.log(filled).mean(axis=1))
    table = pd.DataFrame(
        {
            "query": "q",
            "left": [str(i) for i, _ in pairs],
            "right": [str(j) for _, j in pairs],
            "left_number": list(pairs.values()),
            "right_number": 1,
        }
    )
    found = ratio_scores(as_answers(table), eps=0)
    assert found.score == pytest.approx(scores / scores.max(), abs=1e-9)
    assert found.score == pytest.approx([1, 0.531329, 0.188207, 0.094104], abs=5e-7)


def test_the_covariance_of_log_scores_covers():
    """Simulated answers: differences of log scores lie within their intervals at the rate of Student's t."""
    from scipy.stats import t

    rng = np.random.default_rng(3)
    truth = np.array([0.0, 0.5, 1.0, -0.4, 0.2])
    i, j = np.triu_indices(5, 1)
    hits = []
    for _ in range(200):
        log = np.log(2) + truth[i] - truth[j] + rng.normal(0, 0.3, len(i))
        table = pd.DataFrame(
            {"query": "q", "left": i.astype(str), "right": j.astype(str), "left_number": np.exp(log), "right_number": 2}
        )
        found = ratio_scores(as_answers(table), eps=0)
        c = found.covariance
        sd = np.sqrt(c[0, 0] + c[1, 1] - 2 * c[0, 1])
        error = found.log_score[0] - found.log_score[1] - (truth[0] - truth[1])
        hits.append(abs(error) <= t.ppf(0.95, len(i) - 4) * sd)
    assert 0.85 <= np.mean(hits) <= 0.95


def test_a_graph_in_two_parts_is_named():
    table = pd.DataFrame(
        {"query": "q", "left": ["a", "c"], "right": ["b", "d"], "left_number": [1, 2], "right_number": [2, 2]}
    )
    with pytest.raises(DataError, match=r"2 parts that no answer connects \(a, b; c, d\)"):
        ratio_scores(as_answers(table))


def test_a_ratio_of_zero_is_defined_with_a_shift_only():
    table = pd.DataFrame({"query": ["q"], "left": ["a"], "right": ["b"], "left_number": [0], "right_number": [3]})
    assert ratio_scores(as_answers(table)).score == pytest.approx([0.25, 1])
    with pytest.raises(DataError, match="a ratio with 0 is undefined"):
        ratio_scores(as_answers(table), eps=0)


def test_magnitudes_do_not_depend_on_a_units_size_of_numbers():
    rows = pd.DataFrame(
        {"query": "q", "doc": list("abcabc"), "unit": [1] * 3 + [2] * 3, "number": [10, 20, 40, 1, 2, 8]}
    )
    ours = normalised_magnitudes(rows)["magnitude"]
    assert ours.tolist() == pytest.approx([3.5495, 7.0991, 14.1981, 2.8173, 5.6345, 22.5382], abs=5e-5)  # derived: D7
    other = normalised_magnitudes(rows.assign(number=rows["number"] * np.where(rows["unit"] == 1, 7, 1)))["magnitude"]
    assert (other / other[0]).tolist() == pytest.approx((ours / ours[0]).tolist())
    with pytest.raises(DataError, match="row 2 must be above 0"):
        normalised_magnitudes(rows.assign(number=[1, 0, 1, 1, 1, 1]))


def test_combination_of_questions():
    assert combine_questions([[0.2], [0.5], [0.9]]) == pytest.approx([0.506637], abs=5e-7)  # derived: D7


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 4), st.randoms())
def test_grades_have_their_shares_and_follow_the_scores(scores, levels, random):
    shares = np.array([random.random() + 0.01 for _ in range(levels)])
    shares /= shares.sum()
    grades = grades_by_shares(scores, shares)
    for a, b in permutations(range(len(scores)), 2):
        assert scores[a] <= scores[b] or grades[a] >= grades[b]
    for level in range(levels):
        assert abs((grades >= level).sum() - len(scores) * shares[level:].sum()) <= 0.5 + 1e-9


def test_the_published_list_of_pairs_is_valid():
    """Section 5.1.1, topic 408 (oracle O19), and the example of K = 2."""
    pairs = [tuple(line.split()) for line in PUBLISHED.splitlines()]
    assert pair_list_faults(pairs, sorted({d for pair in pairs for d in pair}), 3) == []
    assert pair_list_faults([*pairs[:-1], pairs[0]], sorted({d for pair in pairs for d in pair}), 3)


@given(st.integers(0, 2**32), st.sampled_from([(4, 2), (6, 3), (8, 3), (8, 4), (10, 3), (5, 4)]))
def test_lists_of_pairs_are_valid(seed, shape):
    n, degree = shape
    docs = [f"d{i}" for i in range(n)]
    pairs = pair_list(docs, degree, np.random.default_rng(seed), gold=(docs[0], docs[-1]))
    assert pair_list_faults(pairs, docs, degree, gold=(docs[0], docs[-1])) == []


def test_the_published_design():
    """Section 5.1.1, topic 405 (oracle O17)."""
    docs = [f"d{i}" for i in range(216)]
    design = design_groups(docs, docs[:30], docs[100:127], partitions=11, rng=np.random.default_rng(5))
    assert (len(design.groups), design.partners, design.judgments_per_document) == (297, 33, 99)
    assert design.answers == 297 * 12 * 3
    for group in design.groups:
        members = {d for pair in group for d in pair}
        assert len(members) == 8
        assert pair_list_faults(group, sorted(members), 3) == []
    with pytest.raises(DataError, match="27 groups need 27 gold documents"):
        design_groups(docs, docs[:20], docs[100:127], partitions=1, rng=np.random.default_rng(5))


def test_a_circle_of_four_touches_half():
    """Section 5.3.4 (oracle O18)."""
    found = contradictions(["d1", "d2", "d3", "d4"], ["d2", "d3", "d4", "d1"])
    assert (found.violated, found.documents, found.exact) == (1, 0.5, True)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] != p[1]), max_size=14))
def test_contradictions_by_trying_all_orders(pairs):
    docs = sorted({d for pair in pairs for d in pair})

    def against(order):
        wrong = [(a, b) for a, b in pairs if order.index(a) > order.index(b)]
        return len(wrong), len({d for pair in wrong for d in pair})

    worst, touched = min((against(order) for order in permutations(docs)), default=(0, 0))
    found = contradictions([a for a, _ in pairs], [b for _, b in pairs])
    assert found.violated == worst
    assert found.documents * max(len(docs), 1) == pytest.approx(touched)


def test_a_large_knot_has_an_upper_bound():
    circle = list(range(12))
    found = contradictions(circle, [*circle[1:], 0])
    assert (found.violated, found.exact) == (1, False)


def test_side_bias_of_the_published_pairs():
    """Table 5.11, pooled (derived oracle D9)."""
    assert astuple(wilson_interval(25069, 48207)) == pytest.approx((0.5200, 0.5156, 0.5245, 48207), abs=5e-5)
    answers = answered([("a", "b", "left")] * 3 + [("b", "a", "right")] + [("a", "b", "equal")] * 5)
    assert astuple(side_share(answers))[0::3] == (0.75, 4)


def test_quality_of_assessors():
    answers = answered(
        [("a", "b", "left"), ("b", "c", "left"), ("c", "a", "left"), ("b", "a", "right"), ("a", "b", "right")],
        assessor=["ann", "ann", "ann", "ann", "bob"],
    )
    ann, bob = answer_quality(answers, gold={("q", "a", "b"): "a"}).to_dict("records")
    assert (ann["answers"], ann["repeated"], ann["consistent"], ann["gold"], ann["gold_right"]) == (4, 1, 1, 2, 1)
    assert ann["contradictions"] == pytest.approx(2 / 3)
    assert ann["left"] == 0.75
    assert (bob["gold_right"], bob["repeated"], bob["contradictions"]) == (0, 0, 0)


def test_answers_round_trip(tmp_path):
    answers = answered(
        [("007", "b", "left"), ("b", "c", "equal")],
        relevant=["both", ""],
        left_number=[2, None],
        right_number=[1, None],
    )
    for suffix in ("csv", "jsonl"):
        path = tmp_path / f"answers.{suffix}"
        frame = answers.to_frame()
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_json(path, orient="records", lines=True)
        pd.testing.assert_frame_equal(read_answers(path).to_frame(), frame)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"right": ["a"]}, "compares document 'a' of query 'q' with itself"),
        ({"choice": ["above"]}, "the choice in row 1 must be one of left, equal, right, or empty, got 'above'"),
        ({"choice": [""], "left_number": [1]}, r"row 1 must be two numbers from 0, got \[1.0, nan\]"),
        ({"left": [1.5]}, "Read ids as strings"),
    ],
)
def test_bad_answers_are_one_line(columns, message):
    table = pd.DataFrame({"query": ["q"], "left": ["a"], "right": ["b"], "choice": ["left"]} | columns)
    with pytest.raises(DataError, match=message):
        as_answers(table)


def test_a_table_without_answers_says_what_it_needs():
    with pytest.raises(DataError, match="no answers: expected one or more of the columns choice"):
        as_answers(pd.DataFrame({"query": ["q"], "left": ["a"], "right": ["b"]}))
    with pytest.raises(DataError, match="no column 'right'"):
        as_answers(pd.DataFrame({"query": ["q"], "left": ["a"], "choice": ["left"]}))
