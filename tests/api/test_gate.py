"""The gate: verdicts by the rule, several measures, weights and segments against means by hand, and its exits."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.special import ndtri

import probeval
from probeval.api.gate import GateRule
from probeval.errors import DataError, SatisfactionError, ScoreError
from probeval.metrics import parse
from probeval.scores import Joint, Scores
from tests.heard import Heard


def two_systems(mean: float, sd: float) -> Scores:
    """Scores whose difference is normal."""
    covariance = np.diag([sd**2, 0.0])
    joint = Joint(np.array([mean, 0.0]), covariance, covariance, np.zeros((2, 3)), np.zeros((2, 3)))
    return Scores(
        parse("DCG@5"), ("new", "old"), np.array(["a", "b", "c"]), joint, "moments", "collection", "normal", 9, 0
    )


# With an sd of .1, P(D > 1.645 sd) is .95.
@pytest.mark.parametrize(
    ("mean", "rope", "not_worse", "verdict"),
    [
        (0.17, 0.0, False, "better"),
        (0.16, 0.0, False, "undecided"),
        (-0.17, 0.0, False, "worse"),
        (-0.17, 0.0, True, "worse"),
        (0.17, 0.0, True, "not worse"),
        (0.17, 0.1, False, "undecided"),
        (0.27, 0.1, False, "better"),
        (0.07, 0.1, True, "not worse"),
        (0.06, 0.1, True, "undecided"),
        (-0.17, 0.1, True, "undecided"),
        (-0.27, 0.1, True, "worse"),
        (0.0, 0.3, False, "tied"),
        (0.0, 0.3, True, "not worse"),
    ],
)
def test_the_rule(mean, rope, not_worse, verdict):
    rule, scores = GateRule(0.95, rope, not_worse), two_systems(mean, 0.1)
    comparison = scores.compare("new", "old", rope=rope)
    assert rule.verdict(comparison) == verdict
    confidence = rule.confidence(scores.ranking(rope=rope))
    assert (confidence >= 0.95) == (verdict != "undecided")
    low, high = comparison.difference.interval(2 * 0.95 - 1)  # a verdict is one-sided
    if not rope:
        assert (low > 0 or high < 0) == (verdict != "undecided")


def test_a_level_is_above_a_half():
    with pytest.raises(ScoreError, match=r"between \.5 and 1, got 0\.5"):
        probeval.gate({}, {}, "P@5", level=0.5)


def one(campaign, number: int) -> probeval.Runs:
    return campaign.runs.select([campaign.runs.systems[number]])


@pytest.fixture(scope="module")
def scores(campaign):
    """The score of every system on every query, by all judgments."""
    measured = probeval.measure(campaign.runs, campaign.judgments, "P@10")
    table = measured.to_frame(per_query=True).pivot(index="system", columns="query", values="value")
    return table.loc[list(campaign.runs.systems)]


def test_complete_judgments_are_certain(campaign, scores):
    means = scores.mean(axis=1).to_numpy()
    best, worst = int(means.argmax()), int(means.argmin())
    good = probeval.gate(one(campaign, best), one(campaign, worst), "P@10", qrels=campaign.judgments)
    bad = probeval.gate(one(campaign, worst), one(campaign, best), "P@10", qrels=campaign.judgments)
    assert (good.verdict, good.exit_code, good.passed) == ("better", 0, True)
    assert (bad.verdict, bad.exit_code, bad.passed) == ("worse", 4, False)
    assert good.checks[0].comparison.difference.mean() == pytest.approx(means[best] - means[worst])
    assert "Every pair is judged" in good.summary()


@pytest.mark.parametrize(
    ("metrics", "verdict", "passing"),
    [
        (["RR@3", "P@1"], "better", 2),
        (["RR@3", "P@4"], "tied", 1),
        (["RR@3", "P@4", "P@3"], "worse", 1),
    ],
)
def test_the_measure_furthest_from_passing_decides(metrics, verdict, passing):
    relevant = {"q": {"d1": 1, "d2": 1, "d3": 1, "d4": 0}}
    new = {"new": {"q": {"d1": 4, "d4": 3, "d5": 2, "d2": 1}}}
    old = {"old": {"q": {"d4": 4, "d2": 3, "d3": 2, "d5": 1}}}
    found = probeval.gate(new, old, metrics, qrels={"q": relevant["q"] | {"d5": 0}}, scale="binary")
    assert found.verdict == verdict
    assert found.reason.startswith(f"{passing} of {len(metrics)} measures pass. ")


def test_the_same_run_is_tied_and_not_worse(campaign):
    same = one(campaign, 0)
    found = probeval.gate(same, same, "nDCG@10", scale="graded:2")
    assert (found.verdict, found.exit_code) == ("tied", 3)
    assert (found.new, found.baseline) == (f"{same.systems[0]}-new", f"{same.systems[0]}-baseline")
    assert probeval.gate(same, same, "nDCG@10", scale="graded:2", not_worse=True).verdict == "not worse"
    assert found.pairs(5).empty


def test_weights_and_segments(campaign, scores):
    names = list(campaign.runs.systems)
    weights = {query: i % 4 for i, query in enumerate(scores.columns)}
    segments = {query: "odd" if i % 2 else "even" for i, query in enumerate(scores.columns)}
    found = probeval.gate(
        one(campaign, 0), one(campaign, 1), "P@10", qrels=campaign.judgments, query_weights=weights, segments=segments
    )
    share = np.array(list(weights.values())) / sum(weights.values())
    difference = (scores.loc[names[0]] - scores.loc[names[1]]).to_numpy()
    whole, even, odd = (*found.checks, *found.segments)
    assert whole.comparison.difference.mean() == pytest.approx(difference @ share)
    for check, start in ((even, 0), (odd, 1)):
        part, its = difference[start::2], share[start::2]
        assert check.comparison.difference.mean() == pytest.approx(part @ its / its.sum())
    assert (whole.queries, even.queries, odd.queries) == (10, 5, 5)
    assert f"By their weights, 10 queries count as much as {1 / (share**2).sum():.1f} equal ones." in found.sentences()
    assert even.judged + odd.judged == whole.judged == even.pool + odd.pool
    assert found.to_frame()["segment"].fillna("").tolist() == ["", "even", "odd"]


def test_pairs_and_a_forecast_if_undecided(campaign):
    found = probeval.gate(
        one(campaign, 0), one(campaign, 1), ["P@5", "DCG@5"], scale="graded:2", model="uniform", forecast=True
    )
    assert found.verdict == "undecided"
    ahead = found.forecast
    assert 1 <= ahead.lower <= ahead.judgments <= ahead.upper <= found.checks[0].pool
    pairs = found.pairs(6)
    assert len(pairs) == len(pairs.drop_duplicates(["query", "doc"])) == 6
    assert "more judgments are likely to settle it" in found.markdown()
    judged = campaign.judgments.to_frame().merge(found.pairs(found.checks[0].pool)[["query", "doc"]])
    assert probeval.gate(one(campaign, 0), one(campaign, 1), ["P@5", "DCG@5"], qrels=judged).verdict != "undecided"


def test_markdown_and_junit(campaign):
    renamed = probeval.as_runs({"a|b<new>": one(campaign, 0).to_frame().drop(columns="system")})
    segments = dict.fromkeys(campaign.runs.queries[:4], "head")
    heard = Heard()
    found = probeval.gate(renamed, one(campaign, 1), "P@10", scale="graded:2", segments=segments, reporter=heard)
    assert "6 of 10 queries are in no segment." in heard.said
    text = re.sub(" +", " ", found.markdown())
    assert text.startswith("### Gate not passed: undecided\n\n| measure | queries |")
    assert "| a\\|b\\<new\\> |" in text
    assert "| P@10 | head (4) |" in text
    assert "Model text-hierarchical" in text
    suite = ElementTree.fromstring(found.junit()).find("testsuite")
    assert suite is not None
    assert suite.attrib | {"name": ""} == {"name": "", "tests": "2", "errors": "0", "failures": "0", "skipped": "2"}
    assert [case.attrib["name"] for case in suite] == ["P@10", "P@10, head"]
    skipped = suite[0].find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == found.checks[0].reason


def test_wrong_input(campaign):
    with pytest.raises(DataError, match="NEW must be one run, got 5 systems"):
        probeval.gate(campaign.runs, one(campaign, 1), "P@5")
    other = probeval.as_runs({"new": {"x": {"d1": 1.0}}})
    with pytest.raises(DataError, match=r"have no query in common: 'x', 'q01'"):
        probeval.gate(other, one(campaign, 1), "P@5")
    with pytest.raises(SatisfactionError, match="Give one measure, or a number"):
        probeval.gate(one(campaign, 0), one(campaign, 1), ["P@5", "AP"], rope="users=.5")
    with pytest.raises(DataError, match="no measure was named"):
        probeval.gate(one(campaign, 0), one(campaign, 1), [])


def test_queries_of_one_run_alone(campaign):
    frame = one(campaign, 0).to_frame()
    fewer = probeval.as_runs({"fewer": frame[frame["query"] != "q01"].drop(columns="system")})
    heard = Heard()
    found = probeval.gate(fewer, one(campaign, 1), "P@5", scale="graded:2", reporter=heard)
    assert heard.said[0] == "fewer has no documents for 1 queries, on which it scores 0."
    assert found.checks[0].queries == 10


def test_pairs_of_queries_without_weight_are_not_asked_for(campaign):
    weights = {query: float(i < 3) for i, query in enumerate(campaign.runs.queries)}
    for metric in ("P@5", "nDCG@5"):
        found = probeval.gate(
            one(campaign, 0), one(campaign, 1), metric, scale="graded:2", model="uniform", query_weights=weights
        )
        assert set(found.pairs(8)["query"]) <= {"q01", "q02", "q03"}


def mixed(n: int = 30) -> tuple[dict, dict, dict, dict]:
    """Two runs, judgments and segments: the new run is better on all queries but the last fifth of them."""
    better, worse = {"good": 2.0, "bad": 1.0}, {"good": 1.0, "bad": 2.0}
    queries = [f"q{i:02}" for i in range(n)]
    bad = set(queries[-n // 5 :])
    new = {"new": {q: worse if q in bad else better for q in queries}}
    old = {"old": {q: better if q in bad else worse for q in queries}}
    qrels = {q: {"good": 1, "bad": 0} for q in queries}
    return new, old, qrels, {q: "rare" if q in bad else "usual" for q in queries}


def test_a_segment_that_is_worse_fails_the_gate_where_it_may():
    new, old, qrels, segments = mixed()
    shown = probeval.gate(new, old, "RR@2", qrels=qrels, scale="binary", segments=segments)
    assert (shown.verdict, [s.verdict for s in shown.segments], shown.rule.n_checks) == (
        "better",
        ["better", "worse"],
        1,
    )
    failing = probeval.gate(new, old, "RR@2", qrels=qrels, scale="binary", segments=segments, segment_fails="worse")
    assert (failing.verdict, failing.exit_code, failing.rule.n_checks) == ("worse", 4, 3)
    assert "RR@2, rare" in failing.reason
    assert any("worse needs a probability of 0.9833 (Bonferroni)" in line for line in failing.sentences())
    assert failing.to_dict()["segment_fails"] == "worse"
    with pytest.raises(DataError, match="Give --segments"):
        probeval.gate(new, old, "RR@2", qrels=qrels, scale="binary", segment_fails="worse")


def test_verdicts_of_worse_are_corrected_for_their_number():
    def rule(n: int, correction: str = "bonferroni") -> GateRule:
        return GateRule(n_checks=n, correction=correction)

    # With independent truths at the level that worse needs, the chance of any wrong verdict stays within 1 - level.
    for n in (1, 2, 5, 20):
        assert 1 - rule(n).level_worse ** n <= 0.05 + 1e-12
        assert rule(n, "none").level_worse == 0.95
    for p_worse, n, verdict in ((0.96, 1, "worse"), (0.96, 2, "undecided"), (0.98, 2, "worse"), (0.98, 3, "undecided")):
        comparison = two_systems(-0.1 * float(ndtri(p_worse)), 0.1).compare("new", "old")
        assert rule(n).verdict(comparison) == verdict
        assert rule(n, "none").verdict(comparison) == "worse"


def test_clusters_widen_what_is_said_of_new_queries_alone():
    campaign = probeval.synthetic_campaign(seed=3, systems=2, queries=30, depth=5)
    runs = campaign.runs
    sides = [runs.select([system]) for system in runs.systems]
    queries = [str(q) for q in runs.queries]
    given = {"qrels": campaign.judgments, "target": "population"}
    plain = probeval.gate(*sides, "DCG@5", **given).checks[0]
    alone = probeval.gate(*sides, "DCG@5", **given, clusters={q: q for q in queries}).checks[0]
    assert (alone.lower, alone.upper) == pytest.approx((plain.lower, plain.upper))
    found = probeval.gate(*sides, "DCG@5", **given, clusters={q: str(i // 6) for i, q in enumerate(queries)})
    assert found.checks[0].difference == pytest.approx(plain.difference)
    assert found.checks[0].lower != pytest.approx(plain.lower)
    assert any("30 queries are in 5 clusters" in line for line in found.sentences())
    here = probeval.gate(*sides, "DCG@5", qrels=campaign.judgments.take(np.arange(40)))
    there = probeval.gate(
        *sides, "DCG@5", qrels=campaign.judgments.take(np.arange(40)), clusters=dict.fromkeys(queries[:20], "one")
    )
    assert (here.checks[0].lower, here.checks[0].p_better) == (there.checks[0].lower, there.checks[0].p_better)
