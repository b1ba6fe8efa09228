"""Scores as random variables on small generated campaigns: routes agree, names do not matter, the shared cancels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from probeval.data import Judgments, Runs, Scale, as_runs
from probeval.metrics import Lists, Metric, parse
from probeval.metrics.lists import gather
from probeval.relevance import RelevanceDistribution
from probeval.relevance.distribution import ProbabilityTable
from probeval.scores import evaluate
from probeval.scores.exact import enumerate_scores

CLOSE = 1e-12
SCALES = (Scale.binary(), Scale.graded(2), Scale((0, 2, 5)))
DOCS = tuple(f"d{i}" for i in range(4))


@st.composite
def campaigns(draw, max_systems: int = 3, scales=SCALES):
    """Runs as dicts, P(grade) by pair, and judgments, also of documents that nobody retrieved."""
    scale = draw(st.sampled_from(scales))
    queries = [f"q{i}" for i in range(draw(st.integers(1, 2)))]
    runs = {}
    for system in "abc"[: draw(st.integers(1, max_systems))]:
        answers = draw(st.lists(st.sampled_from(queries), min_size=1, unique=True))
        runs[system] = {
            q: {d: float(-i) for i, d in enumerate(draw(st.lists(st.sampled_from(DOCS), min_size=1, unique=True)))}
            for q in answers
        }
    weight = st.lists(st.integers(0, 5), min_size=len(scale), max_size=len(scale)).filter(any)
    chance = {(q, d): draw(weight) for q in queries for d in DOCS}
    judged = {(q, d): draw(st.integers(0, len(scale) - 1)) for q in queries for d in DOCS if draw(st.booleans())}
    judged |= {(q, "other"): len(scale) - 1 for q in queries if draw(st.booleans())}
    return scale, runs, chance, judged


def built(scale, runs, chance, judged) -> tuple[Runs, RelevanceDistribution]:
    lists = as_runs(runs)
    pool = lists.pool
    weight = np.array([chance[pool.label(i)] for i in range(len(pool))], dtype=float)
    told = [(q, d, scale.grades[g]) for (q, d), g in judged.items()]
    judgments = Judgments.rows(*map(list, zip(*told, strict=True))) if told else None
    probability = weight / weight.sum(axis=1, keepdims=True)
    return lists, RelevanceDistribution.of(pool, scale, probability, judgments=judgments)


def brute(runs: Runs, relevance: RelevanceDistribution, metric: Metric):
    """Mean and covariance of the mean scores over every grading of the pool."""
    open_pairs = np.flatnonzero(~relevance.certain)
    total, chances = [], []
    for grades in product(range(len(relevance.levels)), repeat=len(open_pairs)):
        chance = np.prod(relevance.probability[open_pairs, list(grades)]) if grades else 1.0
        if chance == 0:
            continue
        codes = relevance.judged.copy()
        codes[open_pairs] = grades
        relevant_counts = np.zeros((len(runs.queries), len(relevance.scale)), dtype=np.int64) + relevance.beyond
        for q, code in zip(runs.pool.query, codes, strict=True):
            relevant_counts[q, : code + 1] += 1
        total.append(metric.scores(Lists(relevance.scale, gather(codes, runs.pairs), relevant_counts)).mean(axis=1))
        chances.append(chance)
    score, p = np.array(total), np.array(chances)
    mean = p @ score
    return mean, ((score - mean) * p[:, None]).T @ (score - mean)


EXACT = ["AP", "AP@2", 'AP(norm="min")@2', 'AP(norm="perfect")@3', "AP(rel=2)", "RR", "RR@2", "ERR", "ERR@2",
         'ERR(norm="perfect")@3', "P@2", "P@5", "nDCG@3", "Rprec", "Success@2"]  # fmt: skip


@given(campaigns(), st.sampled_from(EXACT))
def test_the_exact_route_is_every_grading_weighed(case, name):
    runs, relevance = built(*case)
    assume(len(relevance.levels) ** int((~relevance.certain).sum()) <= 3**6)
    mean, covariance = brute(runs, relevance, parse(name))
    scores = evaluate(runs, relevance, name, method="exact")
    np.testing.assert_allclose(scores.mean, mean, atol=CLOSE)
    np.testing.assert_allclose(scores.covariance, covariance, atol=CLOSE)


@given(campaigns(), st.sampled_from([n for n in EXACT if n.startswith(("AP", "RR", "ERR"))]))
def test_closed_forms_are_the_enumeration(case, name):
    runs, relevance = built(*case)
    with patch("probeval.scores.exact.LIMIT", 0.5):
        closed = evaluate(runs, relevance, name, method="exact").joint
    listed = enumerate_scores(runs, relevance, parse(name))
    np.testing.assert_allclose(closed.query_mean, listed.query_mean, atol=CLOSE)
    np.testing.assert_allclose(closed.query_variance, listed.query_variance, atol=CLOSE)
    np.testing.assert_allclose(np.diag(closed.covariance), np.diag(listed.covariance), atol=CLOSE)
    np.testing.assert_allclose(np.diag(closed.between), np.diag(listed.between), atol=CLOSE)


LINEAR = ["P@2", "P(rel=2)@3", "CG@3", "DCG", 'DCG(gain="exp")@2', "RBP", 'RBP(norm="perfect")@3', "INSQ", "SDCG@3"]


@given(campaigns(), st.sampled_from(LINEAR))
def test_moments_are_the_enumeration(case, name):
    runs, relevance = built(*case)
    exact, listed = evaluate(runs, relevance, name).joint, enumerate_scores(runs, relevance, parse(name))
    for part in ("mean", "covariance", "between", "query_mean", "query_variance"):
        np.testing.assert_allclose(getattr(exact, part), getattr(listed, part), atol=CLOSE, equal_nan=True)


@given(campaigns(), st.sampled_from(["DCG@3", "nDCG@3", "AP", "ERR"]), st.sampled_from([None, "draws", "exact"]))
def test_a_score_less_itself_is_exactly_nothing(case, name, method):
    runs, relevance = built(*case)
    scores = evaluate(runs, relevance, name, method=method, n=20)
    for target in ("collection", "population")[: 1 + (len(runs.queries) > 1)]:
        one = scores.with_target(target)
        for system in runs.systems:
            nothing = one[system] - one[system]
            assert (nothing.mean(), nothing.variance()) == (0, 0)
            compared = one.compare(system, system)
            assert (compared.p_better, compared.p_equal, compared.p_worse) == (0, 1, 0)


@given(campaigns(max_systems=2), st.sampled_from(LINEAR), st.randoms(use_true_random=False))
def test_documents_at_the_same_rank_of_both_cancel_in_the_difference(case, name, random):
    runs, relevance = built(*case)
    assume(len(runs.systems) == 2)
    a, b = runs.pairs
    shared = np.unique(a[(a == b) & (a >= 0)])
    probability = relevance.probability.copy()
    for pair in shared:  # believe anything of them
        weight = np.array([random.random() + 1e-3 for _ in relevance.levels])
        probability[pair] = weight / weight.sum()
    before, after = (
        evaluate(runs, one, name) for one in (relevance, replace(relevance, source=ProbabilityTable(probability)))
    )
    first, second = (scores["a"] - scores["b"] for scores in (before, after))
    assert first.mean() == pytest.approx(second.mean(), abs=CLOSE)
    assert first.variance() == pytest.approx(second.variance(), abs=CLOSE)
    # Lists that are the same leave nothing at all.
    if np.array_equal(a, b):
        assert before.compare("a", "b").p_equal == 1


@given(campaigns(), st.sampled_from(LINEAR))
def test_the_variance_of_a_difference_is_that_of_the_documents_that_differ(case, name):
    runs, relevance = built(*case)
    assume(len(runs.systems) > 1)
    metric = parse(name)
    mean, variance = relevance.moments(metric.gains(relevance.scale))
    weights = metric.weights(relevance.scale, runs.depth)
    matrix = np.zeros((len(runs.systems), len(runs.pool)))
    for s, q, r in zip(*np.nonzero(runs.retrieved), strict=True):
        matrix[s, runs.pairs[s, q, r]] = weights[r] / len(runs.queries)
    gap = matrix[0] - matrix[1]
    difference = (scores := evaluate(runs, relevance, name))[runs.systems[0]] - scores[runs.systems[1]]
    assert difference.mean() == pytest.approx(float(gap @ mean), abs=CLOSE)
    assert difference.variance() == pytest.approx(float(gap**2 @ variance), abs=CLOSE)


@given(campaigns(), st.sampled_from(["DCG@3", "P@2", "nDCG@3", "AP", "ERR", "RR"]), st.randoms(use_true_random=False))
def test_neither_names_nor_the_order_of_the_input_matter(case, name, random):
    scale, runs, chance, judged = case
    to = dict(zip((*DOCS, "other"), random.sample([f"x{i}" for i in range(5)], 5), strict=True))
    asked = {q: f"t{i}" for i, q in enumerate(random.sample(["q0", "q1"], 2))}

    def shuffled(mapping: dict) -> dict:
        return dict(random.sample(sorted(mapping.items()), len(mapping)))

    renamed = {
        f"s{s}": shuffled({asked[q]: shuffled({to[d]: x for d, x in docs.items()}) for q, docs in answers.items()})
        for s, answers in shuffled(runs).items()
    }
    moved = [{(asked[q], to[d]): value for (q, d), value in table.items()} for table in (chance, judged)]
    old = evaluate(*built(scale, runs, chance, judged), name, method="exact")
    new = evaluate(*built(scale, renamed, *moved), name, method="exact")
    at = [new.systems.index(f"s{s}") for s in old.systems]
    np.testing.assert_allclose(new.mean[at], old.mean, atol=CLOSE)
    np.testing.assert_allclose(new.covariance[np.ix_(at, at)], old.covariance, atol=CLOSE)
    np.testing.assert_allclose(new.joint.between[np.ix_(at, at)], old.joint.between, atol=CLOSE, equal_nan=True)
    before, after = old.ranking(), new.ranking()
    np.testing.assert_allclose(after.pair_confidence[np.ix_(at, at)], before.pair_confidence, atol=1e-7)
    assert after.confidence == pytest.approx(before.confidence, abs=1e-7)


@given(campaigns(), st.sampled_from(["nDCG@3", "AP", "DCG@3"]), st.randoms(use_true_random=False))
def test_draws_do_not_depend_on_the_order_of_the_systems(case, name, random):
    scale, runs, chance, judged = case
    shuffled = dict(random.sample(sorted(runs.items()), len(runs)))
    old, new = (
        evaluate(*built(scale, lists, chance, judged), name, method="draws", n=30, rng=np.random.default_rng(1))
        for lists in (runs, shuffled)
    )
    at = [new.systems.index(s) for s in old.systems]
    np.testing.assert_allclose(new.joint.draws[:, at], old.joint.draws, atol=CLOSE)
    before, after = old.ranking(), new.ranking()
    np.testing.assert_allclose(after.p_rank[at], before.p_rank, atol=CLOSE)
    np.testing.assert_allclose(after.tau_draws, before.tau_draws, atol=CLOSE)


@given(campaigns(), st.sampled_from(["nDCG@3", "DCG@3", "AP"]), st.floats(0, 0.3))
def test_probabilities_are_probabilities(case, name, rope):
    runs, relevance = built(*case)
    scores = evaluate(runs, relevance, name, n=50)
    ranking = scores.ranking(n=200)
    assert np.all(ranking.p_rank >= -CLOSE)
    np.testing.assert_allclose(ranking.p_rank.sum(axis=0), 1, atol=CLOSE)
    np.testing.assert_allclose(ranking.p_rank.sum(axis=1), 1, atol=CLOSE)
    assert np.all(ranking.p_better + ranking.p_better.T <= 1 + CLOSE)
    assert np.all((ranking.pair_confidence >= 0.5 - CLOSE) & (ranking.pair_confidence <= 1))
    assert np.all(np.abs(ranking.tau_draws) <= 1 + CLOSE)
    for a, b in product(runs.systems, repeat=2):
        there, back = scores.compare(a, b, rope=rope), scores.compare(b, a, rope=rope)
        parts = (there.p_better, there.p_equal, there.p_worse)
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(1, abs=CLOSE)
        assert there.p_better == pytest.approx(back.p_worse, abs=1e-9)
        wider = scores.compare(a, b, rope=rope + 0.1)
        assert wider.p_equal >= there.p_equal - CLOSE


@given(campaigns(), st.sampled_from(["nDCG@3", "DCG@3", "AP", "ERR"]))
def test_one_more_judgment_takes_its_own_variance_away(case, name):
    runs, relevance = built(*case)
    open_pairs = np.flatnonzero(~relevance.certain)
    assume(len(open_pairs))
    before = enumerate_scores(runs, relevance, parse(name))
    # By the law of total variance, the mean over its grades of what is left is never more.
    left, mean = 0.0, 0.0
    for level, chance in enumerate(relevance.probability[open_pairs[0]]):
        told = relevance.judged.copy()
        told[open_pairs[0]] = relevance.levels[level]
        after = enumerate_scores(runs, replace(relevance, judged=told), parse(name))
        left, mean = left + chance * np.diag(after.covariance), mean + chance * after.mean
    assert np.all(left <= np.diag(before.covariance) + CLOSE)
    np.testing.assert_allclose(mean, before.mean, atol=CLOSE)
