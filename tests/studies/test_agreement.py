"""Agreement of two sources: counts against lists of pairs, figures against the correlations of the package."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.data import Judgments
from probeval.errors import ReliabilityError
from probeval.metrics import measure
from probeval.relevance import synthetic_campaign
from probeval.reliability import kendall, observe, t_test, weighted_kappa
from probeval.reliability.correlation import agreements, spearman
from probeval.studies import SystemScores, document_agreement, ranking_agreement

GRADES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.3, 0.5, 2.0])), min_size=2, max_size=9)


def rng():
    return np.random.default_rng(1)


def judged(grades, query="q"):
    return Judgments.rows([query] * len(grades), [f"d{i}" for i in range(len(grades))], grades)


@given(GRADES)
def test_counts_of_pairs_are_those_of_all_pairs(grades):
    x, y = map(list, zip(*grades, strict=True))
    found = document_agreement(judged(x), judged(y), samples=10, rng=rng())
    (row,) = found.by_query
    assert (row.agree, row.disagree, row.tied) == pytest.approx(agreements(x, y))
    assert row.tau == pytest.approx(kendall(x, y, variant="a"))
    assert row.tau_b == pytest.approx(kendall(x, y), nan_ok=True)
    assert row.rho == pytest.approx(spearman(x, y), nan_ok=True)
    pairs = list(combinations(range(len(x)), 2))
    apart = [(i, j) for i, j in pairs if x[i] != x[j]]
    same = sum((x[i] - x[j]) * (y[i] - y[j]) > 0 for i, j in apart)
    assert row.separated == len(apart)
    assert row.confirmed == pytest.approx(same / len(apart) if apart else np.nan, nan_ok=True)
    for one in found.by_grade:
        alike = [(i, j) for i, j in pairs if x[i] == x[j] == one.grade]
        assert one.pairs == len(alike)
        if alike:
            assert one.separable == pytest.approx(sum(y[i] != y[j] for i, j in alike) / len(alike))


def test_queries_count_alike_and_only_documents_of_both():
    a = Judgments.rows(["q", "q", "q", "r", "r", "s"], ["x", "y", "z", "x", "y", "x"], [1, 0, 0, 1, 0, 1])
    b = Judgments.rows(["q", "q", "q", "r", "r", "s"], ["x", "y", "w", "x", "y", "x"], [2, 0, 0, 0, 2, 1])
    found = document_agreement(a, b, rng=rng())
    assert (found.queries, found.documents) == (2, 4)
    figures = {one.figure: one for one in found.figures}
    assert figures["confirmed"].value == 0.5
    assert (figures["confirmed"].lower, figures["confirmed"].upper) == (0, 1)  # one query of two agrees
    assert "kappa" not in figures  # other grades
    whole = document_agreement(a, a, rng=rng())
    assert {one.figure: one.value for one in whole.figures}["kappa"] == weighted_kappa([1, 0], [1, 0])


def test_systems_against_the_functions_of_the_package():
    first, second = (synthetic_campaign(seed=seed, systems=7, queries=12, depth=6) for seed in (1, 1))
    a, b = (measure(c.runs, c.judgments, m) for c, m in ((first, "AP"), (second, "P@3")))
    found = ranking_agreement(*(SystemScores(m.systems, tuple(m.queries), m.values) for m in (a, b)), rng=rng())
    figures = {one.figure: one for one in found.figures}
    assert figures["tau_b"].value == pytest.approx(kendall(a.values.mean(axis=1), b.values.mean(axis=1)))
    assert figures["rho"].lower < figures["rho"].value <= figures["rho"].upper <= 1
    x, y = observe(a).values[0], observe(b).values[0]
    for pair in found.pairs:
        i, j = a.systems.index(pair.first), a.systems.index(pair.second)
        assert pair.difference_a == pytest.approx((x[i] - x[j]).mean())
        assert pair.p_a == pytest.approx(t_test((x[i] - x[j])[None])[1][0])
        assert pair.p_b == pytest.approx(np.nan_to_num(t_test((y[i] - y[j])[None])[1][0], nan=1.0))
    both = [(one.p_a < 0.05, one.p_b < 0.05, one.difference_a * one.difference_b > 0) for one in found.pairs]
    assert found.counts.tp == sum(p and q and same for p, q, same in both)
    assert found.counts.fp == sum(q and not (p and same) for p, q, same in both)
    assert found.counts.pairs == 21


def test_rankings_have_no_intervals_and_no_tests():
    a, b = (SystemScores(tuple("xyz"), (), np.array(v, dtype=float)[:, None]) for v in ([3, 2, 1], [1, 2, 3]))
    found = ranking_agreement(a, b, rng=rng())
    assert {one.figure: one.value for one in found.figures}["tau"] == -1
    assert all(np.isnan(one.lower) for one in found.figures)
    assert found.pairs == ()


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (SystemScores(("x", "y"), (), np.ones((2, 1))), SystemScores(("v", "w"), (), np.ones((2, 1))), "Two systems"),
        (SystemScores(("x", "y"), ("q",), np.ones((2, 1))), SystemScores(("x", "y"), ("r",), np.ones((2, 1))), "query"),
    ],
)
def test_sources_without_anything_in_common(a, b, message):
    with pytest.raises(ReliabilityError, match=message):
        ranking_agreement(a, b, rng=rng())
    with pytest.raises(ReliabilityError, match="no order"):
        document_agreement(judged([1, 0]), judged([1, 0], "r"), rng=rng())


@pytest.mark.validation
def test_intervals_of_tau_cover():
    """25 systems whose scores by two sources share most of their noise, on 50 queries."""
    draw, hits, n = rng(), 0, 200
    names, queries = tuple(f"s{i}" for i in range(25)), tuple(f"q{i}" for i in range(50))
    for _ in range(n):
        mean = draw.normal(0, 0.06, 25)
        other = mean + draw.normal(0, 0.03, 25)
        shared, own = draw.normal(0, 0.15, (2, 25, 50))
        x, y = mean[:, None] + shared, other[:, None] + 0.8 * shared + 0.6 * own
        found = ranking_agreement(*(SystemScores(names, queries, v) for v in (x, y)), samples=200, rng=draw)
        tau = next(one for one in found.figures if one.figure == "tau")
        hits += tau.lower - 1e-9 <= kendall(mean, other) <= tau.upper + 1e-9
    assert 0.89 < hits / n <= 1  # .95 less four standard errors
