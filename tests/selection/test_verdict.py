"""What is decided, open, tied, or beyond these queries; and who was judged how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from probeval.data import Collection, Judgments, Scale, as_judgments, as_runs
from probeval.metrics import measure, parse
from probeval.relevance import FallbackModel, Uniform
from probeval.scores import Joint, Scores, Verdict
from probeval.selection import Judging, fairness

MODEL = FallbackModel([Uniform()])


def ranking(mean, sd, between, twins=False, rope=0.0):
    """Systems a, b, .. with these means and spreads; with twins the last two are one."""
    n = len(mean)
    covariance = np.diag(np.asarray(sd, dtype=float) ** 2)
    if twins:
        covariance[-1, -2] = covariance[-2, -1] = covariance[-1, -1]
    by_query = np.repeat(np.asarray(mean, dtype=float)[:, None], 9, axis=1)
    joint = Joint(by_query[:, 0], covariance, np.eye(n) * between**2, by_query, by_query * 0)
    queries = np.array([f"q{i}" for i in range(9)], dtype=object)
    scores = Scores(parse("DCG@5"), tuple("abcd"[:n]), queries, joint, "moments", "collection", "normal", 10, 0)
    return scores.ranking(rope=rope)


def test_three_states_of_a_comparison():
    verdict = Verdict.of(ranking([0.6, 0.4, 0.38, 0.38], [0.01] * 4, 0.001, twins=True))
    assert verdict.to_dict() == {"decided": 3, "tied": 1, "open": 2, "beyond": 0}
    assert verdict.tied[2, 3]
    assert verdict.decided[0].tolist() == [False, True, True, True]
    assert verdict.undecided[1].tolist() == [False, False, True, True]
    total = verdict.decided.astype(int) + verdict.tied + verdict.undecided
    np.testing.assert_array_equal(total, 1 - np.eye(4))
    assert str(verdict) == (
        "3 of 6 comparisons are decided at 0.95, 2 are undecided, 1 are exact ties; "
        "on new queries, with the differences expected now, 0 would stay undecided even with all pairs judged."
    )


def test_without_a_rope_all_pairs_follow_the_rule_for_two_systems():
    # With a rope a direction that is sure counts as decided here, as it does for the stopping rule.
    ranked = ranking([0.6, 0.45, 0.43, 0.425], [0.005] * 4, 0.001)
    verdict, systems = Verdict.of(ranked), ranked.scores.systems
    for i, j in zip(*np.triu_indices(4, k=1), strict=True):
        word = ranked.scores.compare(systems[i], systems[j]).verdict()
        assert verdict.decided[i, j] == (word in ("better", "worse"))
        assert verdict.tied[i, j] == (word == "equal")
        assert verdict.undecided[i, j] == (word == "undecided")


def test_ties_within_the_rope_are_settled():
    verdict = Verdict.of(ranking([0.6, 0.4, 0.399], [0.002] * 3, 0.001, rope=0.02))
    assert verdict.to_dict() == {"decided": 2, "tied": 1, "open": 0, "beyond": 0}
    assert verdict.tied[1, 2]
    assert "0 are undecided, 1 are ties within 0.02; on new queries, with the differences expected now, 0 would" in str(
        verdict
    )
    # New queries vary by more than the rope: there the tie is in doubt.
    assert Verdict.of(ranking([0.6, 0.4, 0.399], [0.002] * 3, 0.03, rope=0.02)).to_dict()["beyond"] == 1


def test_the_level_is_the_confidence_asked_for():
    gap = norm.ppf(0.9) * 0.01 * np.sqrt(2)
    ranked = ranking([0.5 + gap, 0.5], [0.01, 0.01], 0.001)
    assert Verdict.of(ranked, level=0.899).to_dict()["decided"] == 1
    assert Verdict.of(ranked, level=0.901).to_dict() == {"decided": 0, "tied": 0, "open": 1, "beyond": 0}


def test_what_these_queries_are_too_few_for():
    # Sampling alone leaves a gap of 1.2 standard errors undecided, even with all pairs judged.
    gap = 1.2 * 0.05 * np.sqrt(2)
    assert Verdict.of(ranking([0.5 + gap, 0.5], [1e-6, 1e-6], 0.05)).to_dict() == {
        "decided": 1, "tied": 0, "open": 0, "beyond": 1,
    }  # fmt: skip
    assert Verdict.of(ranking([0.5 + 2 * gap, 0.5], [1e-6, 1e-6], 0.05)).to_dict()["beyond"] == 0


def test_queries_are_enough_where_a_two_sided_t_test_would_find_it():
    least = t.ppf(0.975, 8) * 0.05 * np.sqrt(2)  # nine queries
    for factor, beyond in ((0.99, 1), (1.01, 0)):
        assert Verdict.of(ranking([0.5 + factor * least, 0.5], [0.01, 0.01], 0.05)).to_dict()["beyond"] == beyond


def test_identical_systems_are_tied_from_the_start():
    lists = {"q": {"d1": 2.0, "d2": 1.0}, "r": {"d1": 2.0, "d3": 1.0}}
    runs = as_runs({"a": lists, "b": lists, "c": {"q": {"d9": 1.0}, "r": {"d8": 1.0}}})
    for metric in ("DCG@2", "nDCG@2"):
        state = Judging.of(Collection("twins", runs), MODEL, metric, scale=Scale.binary(), draws=200).begin()
        verdict = Verdict.of(state.ranking)
        assert verdict.to_dict()["tied"] == 1, metric
        assert verdict.tied[0, 1]
        assert not verdict.beyond[0, 1]


def test_one_query_says_nothing_of_others():
    runs = as_runs({"a": {"q": {"d1": 2.0}}, "b": {"q": {"d2": 1.0}}})
    state = Judging.of(Collection("one", runs), MODEL, "P@1", scale=Scale.binary()).begin()
    assert Verdict.of(state.ranking).to_dict() == {"decided": 0, "tied": 0, "open": 1, "beyond": 0}


def test_with_everything_judged_nothing_is_open(state, full):
    verdict = Verdict.of(state(len(full.judgments), collection=full).ranking)
    assert verdict.to_dict()["open"] == 0
    assert verdict.to_dict()["decided"] + verdict.to_dict()["tied"] == 10


@pytest.fixture
def teams():
    """Three systems of two teams on one query; d1 shared by all, d2 the first team's, d4 and d5 the second's."""
    runs = as_runs(
        {
            "a1": {"q": {"d1": 3.0, "d2": 2.0}},
            "a2": {"q": {"d2": 3.0, "d1": 2.0}},
            "b": {"q": {"d4": 3.0, "d5": 2.0, "d1": 1.0}},
        }
    ).with_teams({"a1": "team-a", "a2": "team-a", "b": "team-b"})
    return Collection("teams", runs, as_judgments({"q": {"d1": 1, "d2": 1, "d4": 1}}))


def test_fairness_by_hand(teams):
    state = Judging.of(teams, MODEL, "CG@2", scale=Scale.binary(), depth=3, policy="mtc").begin()
    table = fairness(state.estimate).to_frame()
    assert list(table.columns) == [
        "team", "systems", "pairs", "judged", "own", "own_judged", "score", "left_out", "shift",
    ]  # fmt: skip
    a, b = table.to_dict("records")
    # Of the first two ranks: team a has d1 and d2, both judged, both its own there; b has d4 (judged) and d5.
    assert (a["team"], a["systems"], a["pairs"], a["judged"], a["own"], a["own_judged"]) == ("team-a", 2, 2, 1, 2, 1)
    assert (b["team"], b["systems"], b["pairs"], b["judged"], b["own"], b["own_judged"]) == (
        "team-b",
        1,
        2,
        0.5,
        2,
        0.5,
    )
    assert a["score"] == pytest.approx(1.0)
    assert b["score"] == pytest.approx((1 + 0.5) / 2)
    # Left out, its own pairs are a coin each.
    assert a["left_out"] == pytest.approx(0.5)
    assert b["left_out"] == pytest.approx(0.5)
    assert a["shift"] == 1  # from the top to below b
    assert b["shift"] == 0


def test_without_teams_every_system_is_its_own(teams):
    lone = replace(teams, runs=replace(teams.runs, teams=None))
    table = fairness(Judging.of(lone, MODEL, "CG@2", scale=Scale.binary()).begin().estimate).to_frame()
    assert table["team"].tolist() == ["a1", "a2", "b"]
    assert table["own"].tolist() == [0, 0, 2]
    assert np.isnan(table["own_judged"][0])
    assert table["left_out"][0] == table["score"][0]


def test_fairness_of_a_full_campaign_is_the_classical_score(state, full):
    table = fairness(state(len(full.judgments), collection=full).estimate).to_frame()
    assert table["judged"].tolist() == [1.0, 1.0]
    scores = measure(full.runs, full.judgments, "DCG@5").values.mean(axis=1)
    of = np.array(full.runs.teams)
    assert table["score"].tolist() == pytest.approx([scores[of == t].mean() for t in table["team"]])
    assert (table["left_out"] != table["score"]).all()


def test_fairness_with_nothing_judged_changes_nothing(state):
    table = fairness(state(0).estimate).to_frame()
    assert (table["judged"] == 0).all()
    assert (table["left_out"] == table["score"]).all()
    assert (table["shift"] == 0).all()


def test_fairness_leaves_the_judgments_of_others(full):
    seen = []

    class Watching:
        def predict(self, problem, *, rng=None):
            seen.append(problem.collection.judgments)
            return MODEL.predict(problem)

    state = Judging.of(full, Watching(), "P@3", policy="depth").begin()
    fairness(state.estimate)
    first, *others = seen
    assert len(first) == len(full.judgments)
    assert len(others) == 2
    for left in others:
        assert isinstance(left, Judgments)
        assert 0 < len(left) < len(first)
