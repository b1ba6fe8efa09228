from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probeval.data import Collection, Scale
from probeval.errors import SatisfactionError
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.satisfaction import Satisfaction, SatMapping, load_agreement, load_mapping, satisfied_users
from probeval.scores import evaluate

MAPPING, AGREEMENT = load_mapping("DCGl@5/broad"), load_agreement("DCGl@5/broad")
IDENTITY = SatMapping((0.0, 1.0, 0.0, 0.0), "identity")
SCORES = np.random.default_rng(4).beta(2, 2, size=(3, 40))
USERS = Satisfaction(SCORES, MAPPING, ("a", "b", "c"), AGREEMENT)


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=1, systems=4, queries=12, depth=5)


@pytest.fixture(scope="module")
def unsure(campaign):
    """Scores of unjudged lists: all grades as likely."""
    scale = Scale.graded(2)
    relevance = FallbackModel([Uniform()]).predict(Collection("", campaign.runs).problem(depth=5, scale=scale))
    return evaluate(campaign.runs, relevance, "DCG@5", method="draws", per_query=True, n=2000)


@given(st.floats(0, 1), st.integers(1, 40))
def test_the_number_of_satisfied_users_is_binomial(p, n):
    pmf = satisfied_users(p, n)
    assert pmf.sum() == pytest.approx(1)
    assert pmf @ np.arange(n + 1) == pytest.approx(n * p, abs=1e-9)


def test_known_scores_give_the_t_interval_of_the_mean():
    from scipy import stats

    sat = MAPPING(SCORES[0])
    low, high = stats.t.interval(0.95, 39, sat.mean(), stats.sem(sat))
    found = USERS.p_sat("a")
    assert [found.mean, found.lower, found.upper] == pytest.approx([sat.mean(), low, high])


def test_success_is_the_share_of_queries_beyond_the_threshold_with_wilsons_interval():
    from scipy import stats

    hits = int((MAPPING(SCORES[1]) > 0.5).sum())
    peer = stats.binomtest(hits, 40).proportion_ci(method="wilson")
    found = USERS.p_success("b")
    assert [found.mean, found.lower, found.upper] == pytest.approx([hits / 40, peer.low, peer.high])
    none = Satisfaction(np.zeros((1, 40)), MAPPING, ("a",)).p_success("a")
    assert none.mean == 0
    assert none.upper > 0.05  # forty failures do not prove that it never succeeds


def test_these_queries_are_certain_where_all_is_judged():
    users = Satisfaction(SCORES, MAPPING, ("a", "b", "c"), AGREEMENT, target="collection")
    sat = users.p_sat("a")
    assert sat.lower == sat.mean == sat.upper
    noticed = users.compare("a", "b")
    assert noticed.p_better in (0.0, 1.0)
    assert users.compare("a", "a").p_better == 0.5


def test_a_new_query_under_the_identity_is_the_distribution_of_scores():
    users = Satisfaction(SCORES, IDENTITY, ("a", "b", "c"))
    new = users.new_query("a", family="empirical", level=0.9)
    np.testing.assert_allclose([new.lower, new.upper], np.quantile(SCORES[0], [0.05, 0.95]))
    for family in ("normal", "truncated", "beta"):
        close = users.new_query("a", family=family, level=0.9)
        assert [close.lower, close.upper] == pytest.approx([new.lower, new.upper], abs=0.08)


def test_a_mapping_that_falls_is_mapped_point_by_point():
    # sat = 4x(1 - x): scores spread evenly over [0, 1] have P(sat <= s) = 1 - sqrt(1 - s).
    hill = SatMapping((0.0, 4.0, -4.0, 0.0))
    users = Satisfaction(np.linspace(0, 1, 2001)[None], hill, ("a",))
    new = users.new_query("a", level=0.8)
    assert [new.lower, new.upper] == pytest.approx([1 - 0.9**2, 1 - 0.1**2], abs=0.002)


def test_coverage_of_a_new_query():
    # Of new queries, 80% must fall in the interval: 300 trials of 40 queries and one more, 3.1 sd of the share is .07.
    rng = np.random.default_rng(8)
    inside = []
    for _ in range(300):
        scores = rng.beta(2, 2, size=41)
        new = Satisfaction(scores[None, :40], MAPPING, ("a",)).new_query("a", family="beta", level=0.8)
        inside.append(new.lower <= MAPPING(scores[40]) <= new.upper)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.07)


def test_two_systems_from_both_sides():
    one, other = USERS.compare("a", "b"), USERS.compare("b", "a")
    assert one.sat.mean == pytest.approx(-other.sat.mean)
    assert one.p_better == pytest.approx(1 - other.p_better)
    assert one.prefer_a is not None
    assert one.neither is not None
    assert one.prefer_b is not None
    assert one.prefer_a == other.prefer_b
    assert one.prefer_a.mean + one.neither.mean + one.prefer_b.mean == pytest.approx(1)
    assert one.noticed == (one.prefer_a if one.sat.mean > 0 else one.prefer_b)
    assert one.noticed == other.noticed


def test_identical_systems_are_not_noticed():
    users = Satisfaction(np.stack([SCORES[0], SCORES[0]]), MAPPING, ("a", "b"), AGREEMENT)
    noticed = users.compare("a", "b")
    assert noticed.sat.mean == 0
    assert noticed.p_better == 0.5
    assert noticed.neither is not None
    assert noticed.neither.mean == 1


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 0.15))
def test_a_larger_difference_is_noticed_more(step):
    base = np.linspace(0.1, 0.5, 20)
    small = Satisfaction(np.stack([base + step, base]), MAPPING, ("new", "old"), AGREEMENT).compare("new", "old")
    large = Satisfaction(np.stack([base + step + 0.3, base]), MAPPING, ("new", "old"), AGREEMENT).compare("new", "old")
    assert small.noticed is not None
    assert large.noticed is not None
    assert large.noticed.mean > small.noticed.mean


def test_uncertain_scores_widen_every_interval(campaign, unsure):
    users = Satisfaction.of(unsure, MAPPING, agreement=AGREEMENT)
    system = unsure.systems[0]
    draws = np.stack([MAPPING(draw) for draw in unsure.joint.query_draws[:, 0]])
    found = users.p_sat(system)
    assert found.mean == pytest.approx(draws.mean())
    # The mapping of the mean is not the mean of the mapping: the spread of draws counts.
    assert abs(found.mean - MAPPING(unsure.joint.query_mean[0]).mean()) > 0.005
    one = Satisfaction(unsure.joint.query_draws[0], MAPPING, unsure.systems)
    assert found.upper - found.lower > 0.9 * (one.p_sat(system).upper - one.p_sat(system).lower)
    here = Satisfaction.of(unsure, MAPPING, target="collection").p_sat(system)
    assert here.lower < here.mean < here.upper
    assert here.upper - here.lower == pytest.approx(2 * 1.96 * draws.mean(axis=1).std(), rel=0.1)


def test_pairs_of_uncertain_scores_share_their_draws(unsure):
    users = Satisfaction.of(unsure, MAPPING, agreement=AGREEMENT, target="collection")
    a, b, *_ = unsure.systems
    difference = users.values[:, 0].mean(axis=1) - users.values[:, 1].mean(axis=1)
    assert users.compare(a, b).p_better == pytest.approx((difference > 0).mean())


def test_users_of_uncertain_scores_are_a_mixture(unsure):
    users = Satisfaction.of(unsure, MAPPING)
    pmf = users.p_satisfied(unsure.systems[0], 0, 10)
    assert pmf.sum() == pytest.approx(1)
    p = users.values[:, 0, 0].mean()
    spread = pmf @ np.arange(11) ** 2 - (pmf @ np.arange(11)) ** 2
    assert pmf @ np.arange(11) == pytest.approx(10 * p)
    assert spread > 10 * p * (1 - p)  # wider than binomial: the score is not known


def test_measured_scores_are_known_or_refused(campaign):
    known = measure(campaign.runs, campaign.judgments, "DCG@5")
    users = Satisfaction.of(known, MAPPING)
    np.testing.assert_array_equal(users.scores[0], known.values)
    partly = measure(campaign.runs, campaign.judgments.take(np.arange(5)), "DCG@5")
    with pytest.raises(SatisfactionError, match="Unjudged documents can change these scores"):
        Satisfaction.of(partly, MAPPING)


def test_moments_alone_are_refused(campaign):
    relevance = FallbackModel([Uniform()]).predict(campaign.problem(depth=5))
    with pytest.raises(SatisfactionError, match="method='draws', per_query=True"):
        Satisfaction.of(evaluate(campaign.runs, relevance, "DCG@5"), MAPPING)


def test_the_table_and_the_document_say_the_same():
    table, document = USERS.to_frame(), USERS.to_dict()
    assert table["system"].tolist() == [row["system"] for row in document["systems"]]
    assert table["p_sat"].is_monotonic_decreasing
    assert document["mapping"] == "DCGl@5/broad"
    json.dumps([document, USERS.compare("a", "b").to_dict()])


@pytest.mark.parametrize("target", ["population", "collection"])
def test_intervals_stay_in_the_range_of_their_figure(target):
    # Few queries near an end of the range: t intervals alone would pass it.
    scores = np.array([[1.0, 1.0, 0.7], [0.0, 0.3, 0.0]])
    users = Satisfaction(scores, IDENTITY, ("best", "worst"), AGREEMENT, target)
    ends = users.to_frame().drop(columns="system")
    assert ((ends >= 0) & (ends <= 1)).all(axis=None)
    noticed = users.compare("best", "worst")
    for estimate, least in ((noticed.sat, -1), (noticed.success, -1), (noticed.prefer_a, 0), (noticed.neither, 0)):
        assert least <= estimate.lower <= estimate.mean <= estimate.upper <= 1
    if target == "population":
        assert (users.p_sat("best").upper, users.p_sat("worst").lower, noticed.sat.upper) == (1.0, 0.0, 1.0)
        assert users.compare("worst", "best").sat.lower == -1.0


@pytest.mark.parametrize(
    ("scores", "target", "expected"),
    [
        (np.zeros((2, 4)), "population", "1 systems need scores of shape"),
        (np.zeros((1, 1)), "population", "One query says nothing of the population"),
        (np.zeros((1, 4)), "everyone", "A target is 'collection' or 'population', got 'everyone'"),
    ],
)
def test_bad_input_says_what_to_do(scores, target, expected):
    with pytest.raises(SatisfactionError, match=expected):
        Satisfaction(scores, MAPPING, ("a",), target=target)


def test_unknown_systems_get_a_hint():
    users = Satisfaction(SCORES[:1], MAPPING, ("bm25",))
    with pytest.raises(SatisfactionError, match=r"No system 'bm52'. Did you mean 'bm25'\?"):
        users.p_sat("bm52")


@pytest.mark.parametrize("ask", [USERS.p_sat, USERS.p_success, USERS.new_query])
def test_a_level_is_a_probability(ask):
    with pytest.raises(SatisfactionError, match="between 0 and 1, got 95"):
        ask("a", level=95)
