"""Plans: campaigns of another size, and what options come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Scale
from probeval.data.evidence import LabelTable
from probeval.errors import SelectionError
from probeval.relevance import load_card, synthetic_campaign
from probeval.simulation import Prices, Variants, plan, resize
from probeval.simulation.plan import parse_targets
from tests.heard import Heard


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=3, systems=5, queries=8, depth=6)


@pytest.fixture(scope="module")
def pilot(campaign):
    known = campaign.judgments.on(campaign.runs.pool)
    return replace(campaign, judgments=known.take(np.arange(0, len(known), 9)))


@pytest.fixture(scope="module")
def model():
    return load_card("text-hierarchical").model


def test_fewer_queries_are_some_of_them(campaign):
    smaller = resize(campaign, 5, np.random.default_rng(1))
    assert set(smaller.runs.queries) < set(campaign.runs.queries)
    for query in smaller.runs.queries:
        for system in range(len(campaign.runs.systems)):
            old, new = (
                [c.runs.pool.label(p)[1] for p in c.runs.pairs[system, list(c.runs.queries).index(query)] if p >= 0]
                for c in (campaign, smaller)
            )
            assert old == new
    assert set(smaller.judgments.pool.queries[smaller.judgments.pool.query[smaller.judgments.pair]]) == set(
        smaller.runs.queries
    )


def test_more_queries_are_all_of_them_and_copies_that_nobody_judged(campaign):
    labels = LabelTable(campaign.runs.pool, ("m",), np.arange(float(len(campaign.runs.pool)))[:, None])
    larger = resize(replace(campaign, labels=labels), 11, np.random.default_rng(1))
    assert len(larger.runs.queries) == 11
    assert set(campaign.runs.queries) < set(larger.runs.queries)
    assert len(larger.judgments) == len(campaign.judgments)
    copy = next(q for q in larger.runs.queries if "~" in q)
    original = copy.split("~")[0]
    pairs = {q: larger.runs.pairs[0, list(larger.runs.queries).index(q)] for q in (copy, original)}
    docs = {q: [larger.runs.pool.label(p)[1] for p in pairs[q] if p >= 0] for q in pairs}
    assert docs[copy] == docs[original]
    said = larger.labels.on(larger.runs.pool).values[:, 0]
    np.testing.assert_array_equal(said[pairs[copy]], said[pairs[original]])


def test_the_cheapest_that_meets_the_target_comes_first(pilot, model):
    result = plan(
        pilot, model, "DCG@3", scale=Scale.graded(2), targets="confidence=.8,erho2=.5",
        variants=Variants(queries=[6, 8, 16], prices=Prices(judgment=1, query=10)), paths=3,
    )  # fmt: skip
    table = result.to_frame()
    assert table["meets"].is_monotonic_decreasing
    arrives = table["judgments"] < table["pool"]
    assert table["meets"].tolist() == (arrives & (table["erho2"] >= 0.5)).tolist()
    good = table[table["meets"]]
    assert good["cost"].is_monotonic_increasing
    by_queries = table.sort_values("queries")
    assert by_queries["erho2"].is_monotonic_increasing
    assert np.all(table["lower"] <= table["judgments"])
    assert np.all(table["judgments"] <= table["upper"])
    made = int((pilot.problem(depth=3, scale=Scale.graded(2)).grades.codes >= 0).sum())
    assert made < len(pilot.judgments)  # those below the depth of the pool are none that the plan needs
    at_hand = table[table["queries"] == 8].iloc[0]
    assert at_hand["cost"] == pytest.approx(at_hand["judgments"] - made + 80)
    assert at_hand["hours"] == pytest.approx((at_hand["judgments"] - made) * 30 / 3600)


def test_progress_goes_course_by_course(pilot):
    heard = Heard()
    plan(
        pilot, load_card("text-jud").model, "P@2", scale=Scale.graded(2), targets="confidence=.6",
        variants=Variants(queries=[2, 3]), paths=2, reporter=heard,
    )  # fmt: skip
    assert heard.done == [0, 1, 2, 3]


def test_what_cannot_be_reached_is_said(pilot, model):
    result = plan(
        pilot, model, "DCG@6", scale=Scale.graded(2), targets="power=.99", variants=Variants(difference=0.001), paths=2
    )
    assert result.best is None
    assert result.to_dict()["reached"] is False


def test_disagreement_takes_more_judgments_and_assessors_more_still(pilot, model):
    asked = {"metric": "DCG@4", "scale": Scale.graded(2), "targets": "halfwidth=.06", "paths": 2}
    sure, noisy = (plan(pilot, model, variants=Variants(disagreement=d), **asked).options[0] for d in (0.0, 0.2))
    assert noisy.judgments >= sure.judgments
    two = plan(pilot, model, variants=Variants(assessors=[1, 2]), **asked)
    cost = {o.assessors: o.cost for o in two.options}
    assert cost[2] == pytest.approx(2 * cost[1])


def test_hours_count_overlap_gold_repeats_and_adjudication(pilot, model):
    checked = Variants(overlap=0.25, opinions=3, gold_share=0.1, repeat_share=0.1, disagreement=0.2)
    (one,) = plan(
        pilot, model, "DCG@4", scale=Scale.graded(2), targets="halfwidth=.06", paths=2, variants=checked
    ).options
    made = int((pilot.problem(depth=4, scale=Scale.graded(2)).grades.codes >= 0).sum())
    pairs = one.judgments - made
    rng = np.random.default_rng(1)  # the same by chance: true grades, and wrong ones that are any other grade
    truth, wrong = rng.integers(3, size=20_000), rng.random((20_000, 3)) < 0.2
    given = np.where(wrong, (truth[:, None] + rng.integers(1, 3, size=(20_000, 3))) % 3, truth[:, None])
    differ = (given != given[:, :1]).any(1).mean()
    expected = pairs * (1 + 0.25 * 2) / 0.8 + pairs * 0.25 * differ
    assert one.tasks == pytest.approx(expected, rel=4 * np.sqrt(differ * (1 - differ) / 20_000))
    assert one.hours == pytest.approx(one.tasks * 30 / 3600)
    assert one.cost == pytest.approx(one.tasks)


def test_shares_that_leave_nothing_to_judge_are_refused():
    with pytest.raises(SelectionError, match="fewer than all tasks"):
        Variants(gold_share=0.5, repeat_share=0.5)


@pytest.mark.parametrize("text", ["confidence", "confidence=2", "erho=.9", "phi=high", ""])
def test_targets_that_are_none(text):
    with pytest.raises(SelectionError):
        parse_targets(text)
