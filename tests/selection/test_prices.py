"""Prices of observers: what a request is worth, by two routes, and who is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import probeval
from probeval.data import LabelTable
from probeval.errors import SelectionError
from probeval.selection import PERSON, AnswerPrices, next_request
from probeval.selection.labellers import label_correlations, label_errors
from probeval.selection.policies import score_value
from probeval.selection.prices import TESTED, expected_gain, labels_at_once

METRIC, NAME = "DCG@5", "judge"


@pytest.fixture(scope="module")
def campaign() -> probeval.Collection:
    return probeval.synthetic_campaign(seed=2, systems=4, queries=8, depth=5)


def state_of(campaign, *, judged=0, labels=None, **settings):
    few = campaign.judgments.take(np.arange(judged)) if judged else None
    given = {"scale": "graded:2", "qrels": few, "labels": labels}
    return probeval.evaluate(campaign.runs, METRIC, **given).judging(explore=0.0, **settings)


def labels_of(campaign, *, good: bool, n: int | None = None) -> LabelTable:
    """Labels that are the grades, or the grades in random order, of the first pairs."""
    pool = campaign.runs.pool
    grades = campaign.judgments.on(pool).grades()
    values = grades if good else np.random.default_rng(3).permutation(grades)
    values = np.where(np.arange(len(pool)) < (len(pool) if n is None else n), values, np.nan)
    return LabelTable(pool, (NAME,), values[:, None])


def test_the_gain_of_a_request_is_what_it_takes_from_the_variances_of_the_goal(campaign):
    state, pairs = state_of(campaign, judged=12), np.array([20, 25, 31, 40])
    context = state.context
    matrix = score_value(context, state.goal)
    for error in (0.0, 0.7):
        # The other route: the joint normal of all gains, conditioned on all answers at once.
        every = np.arange(len(state.judging.pool))
        gains = context.dependence.between(every)
        np.fill_diagonal(gains, context.gain_variance)
        seen = gains[np.ix_(pairs, pairs)] + error * np.eye(len(pairs))
        fall = gains[:, pairs] @ np.linalg.solve(seen, gains[pairs])
        of_scores = context.weights.T @ fall @ context.weights
        expected = np.trace(matrix @ of_scores)
        assert expected_gain(context, state.goal, pairs, np.ones(1), np.array([error])) == pytest.approx(expected)


def test_the_gain_of_labels_is_the_mean_over_their_worth_and_noise_tells_nothing(campaign):
    state, pairs = state_of(campaign, judged=12), np.array([20, 25, 31])
    gain = [expected_gain(state.context, state.goal, pairs, np.ones(1), np.array([v])) for v in (0.0, 2.0, np.inf)]
    assert gain[0] > gain[1] > gain[2] == 0
    both = expected_gain(state.context, state.goal, pairs, np.array([0.3, 0.7]), np.array([2.0, np.inf]))
    assert both == pytest.approx(0.3 * gain[1])
    weights, correlations = label_correlations(state, "a-machine-never-seen")
    assert weights.sum() == pytest.approx(1)
    assert correlations[-1] == 0 < weights[-1]
    assert np.isinf(label_errors(state, "a-machine-never-seen")[1][-1])


def test_cheap_labels_are_bought_and_dear_ones_are_not(campaign):
    state = state_of(campaign, judged=12)
    cheap = next_request(state, AnswerPrices.parse("person=1,new=.01"), 5)
    assert cheap.observer == "new"
    assert cheap.gains["new"] > cheap.gains[PERSON]
    assert len(cheap.batch) == 20  # no more than .1 of the pool or 20
    assert "For new" in cheap.sentences()[0]
    dear = next_request(state, AnswerPrices.parse("person=1,new=2"), 5)
    assert dear.observer == PERSON
    assert len(dear.batch) == 5
    assert labels_at_once(state, AnswerPrices.parse("person=1,new=.5"), "new", 5) == 10


def test_a_new_machine_is_tested_by_people_on_pairs_that_it_labelled(campaign):
    labels = labels_of(campaign, good=True, n=30)
    request = next_request(state_of(campaign, labels=labels), AnswerPrices.parse("judge=.01"), 40)
    assert (request.observer, request.tests, len(request.batch)) == (PERSON, NAME, TESTED)
    assert request.batch.pairs.max() < 30
    assert "labels of judge" in request.sentences()[0]


def test_labels_found_to_be_noise_are_not_bought_and_good_ones_are(campaign):
    prices = AnswerPrices.parse("judge=.05")
    for good in (True, False):
        labels = labels_of(campaign, good=good, n=60)
        request = next_request(state_of(campaign, judged=30, labels=labels), prices, 5)
        assert (request.observer == NAME) == good


def test_only_pairs_that_a_machine_can_label_are_asked_for(campaign):
    state = state_of(campaign, judged=12)
    there = np.arange(len(state.judging.pool)) % 7 == 0
    request = next_request(state, AnswerPrices.parse("new=.001"), 5, available={"new": there})
    assert request.observer == "new"
    assert there[request.batch.pairs].all()
    none = next_request(state, AnswerPrices.parse("new=.001"), 5, available={"new": np.zeros_like(there)})
    assert none.observer == PERSON


@given(st.dictionaries(st.sampled_from(["person", "a", "b_c"]), st.floats(1e-3, 1e3), max_size=3))
def test_prices_are_read_back_from_their_text(prices):
    made = AnswerPrices.parse(prices)
    assert AnswerPrices.parse(str(made)).all == pytest.approx(made.all, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("person=0", "price of person must be a number above 0, got 0"),
        ("gpt=-1", "price of gpt must be a number above 0"),
        ("gpt=cheap", "Prices are such as person=1,gpt4o=.01; got gpt=cheap"),
        ("gpt", "Prices are such as"),
    ],
)
def test_wrong_prices_are_refused(text, message):
    with pytest.raises(SelectionError, match=message):
        AnswerPrices.parse(text)


def test_next_says_who_is_asked_and_why(campaign):
    few = campaign.judgments.take(np.arange(12))
    evaluation = probeval.evaluate(campaign.runs, METRIC, scale="graded:2", qrels=few)
    found = evaluation.next(5, prices={"new": 0.01})
    assert found.labeller == "new"
    assert len(found.pairs) == 20
    assert found.to_dict()["gains"]["new"] > found.to_dict()["gains"]["person"]
    assert any(line.startswith("For new: for the price") for line in found.status())
    with pytest.raises(SelectionError, match="Leave out one of them"):
        evaluation.next(5, prices="new=.01", labeller="new")
    with pytest.raises(SelectionError, match="Leave out --labeller or --prices"):
        evaluation.next(5, policy="depth", prices="new=.01")
    assert replace(found, asked=0).pairs == []
