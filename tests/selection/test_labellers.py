"""Pairs for a labeller: what a label tells, by two routes, and which pairs are offered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import LabelTable
from probeval.errors import ModelError, SelectionError
from probeval.relevance import SyntheticObserver
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.prior import PAIR
from probeval.selection import choose_for_labeller, label_correlation, label_noise
from probeval.selection.labellers import LabellerContext, _correlation
from probeval.selection.policies import laplacian, quadratic_value

METRIC = "DCG@5"


@pytest.fixture(scope="module")
def campaign() -> probeval.Collection:
    return probeval.synthetic_campaign(seed=1, systems=4, queries=6, depth=5)


@pytest.fixture(scope="module")
def evaluation(campaign):
    few = campaign.judgments.take(np.arange(0, len(campaign.judgments), 9))
    return probeval.evaluate(campaign.runs, METRIC, qrels=few, scale="graded:2")


def labels_of(campaign, pairs) -> LabelTable:
    pool = campaign.runs.pool
    values = np.full((len(pool), 1), np.nan)
    values[pairs, 0] = campaign.judgments.on(pool).grades()[pairs]
    return LabelTable(pool, ("judge",), values)


def test_the_value_of_a_label_is_what_it_takes_from_the_variance_of_differences(evaluation):
    noise = 0.3
    context = LabellerContext(evaluation.judging().context.estimate, noise)
    weights = np.ones((4, 4)) - np.eye(4)
    value = quadratic_value(context.covariance, context.gain_variance, laplacian(weights))
    # The other route: the joint normal of all gains, conditioned on each label in turn.
    open_ = np.flatnonzero(~context.judged)
    gains = context.dependence.between(open_)
    np.fill_diagonal(gains, context.gain_variance[open_] - noise)
    to_scores = context.weights[open_]
    for at, pair in enumerate(open_):
        fall = np.outer(gains[:, at], gains[:, at]) / (gains[at, at] + noise)
        of_scores = to_scores.T @ fall @ to_scores
        of_pairs = sum(
            of_scores[a, a] + of_scores[b, b] - 2 * of_scores[a, b] for a in range(4) for b in range(a + 1, 4)
        )
        assert value[pair] == pytest.approx(of_pairs, rel=1e-6)


def test_a_batch_is_what_conditioning_on_each_label_gives(evaluation):
    state = evaluation.judging(explore=0.0)
    noise, goal = label_noise(state, "judge"), state.goal
    chosen = choose_for_labeller(state, "judge", 5).pairs
    context = LabellerContext(state.context.estimate, noise)
    joint = state.judging.policy.joint_value
    assert joint is not None
    matrix = joint(context, goal)
    open_ = np.flatnonzero(~context.judged)
    covariance, gains = context.covariance[open_].copy(), context.dependence.between(open_)
    np.fill_diagonal(gains, context.gain_variance[open_])
    for pair in chosen:
        worth = ((covariance @ matrix) * covariance).sum(axis=1) / np.diag(gains)
        worth[np.isin(open_, chosen[: list(chosen).index(pair)])] = -np.inf
        assert open_[worth.argmax()] == pair
        at = worth.argmax()
        slope = gains[at] / gains[at, at]
        slope[at] = 0.0  # its own label is known; its gain is not
        covariance = covariance - np.outer(slope, covariance[at])
        gains = gains - np.outer(slope, gains[at])


def test_without_errors_a_label_is_a_judgment(evaluation, monkeypatch):
    state = evaluation.judging(explore=0.0)
    monkeypatch.setattr("probeval.selection.labellers.label_correlation", lambda state, name: 1.0)
    assert label_noise(state, "judge") == 0
    assert choose_for_labeller(state, "judge", 12).pairs.tolist() == state.next(12).pairs.tolist()


def test_judged_and_labelled_pairs_are_not_offered(campaign):
    judged, labelled = np.arange(0, 40, 4), np.arange(1, 40, 4)
    evaluation = probeval.evaluate(
        campaign.runs, METRIC, qrels=campaign.judgments.take(judged), labels=labels_of(campaign, labelled),
        scale="graded:2",
    )  # fmt: skip
    state = evaluation.judging()
    everything = choose_for_labeller(state, "judge", 10_000).pairs
    pool = campaign.runs.pool
    there = {pool.label(int(p)) for p in labelled} | {pool.label(int(p)) for p in np.flatnonzero(state.context.judged)}
    assert len(everything) == len(pool) - len(there)
    assert not there & {pool.label(int(p)) for p in everything}
    assert len(choose_for_labeller(state, "another", 10_000)) == len(pool) - int(state.context.judged.sum())


def test_the_correlation_of_labels_and_relevance_is_that_of_draws(campaign):
    model = probeval.evaluate(campaign.runs, METRIC, scale="graded:2").choice.model
    assert isinstance(model, Hierarchical)
    design: ModelDesign = model.unlabelled(campaign.problem(depth=5))
    priors, rng, n = model.prior.observers, np.random.default_rng(0), 200_000
    slope, sds = 0.4, {e.name: float(np.exp(e.log_sd.mean)) for e in design.effects}
    within = [e for e in design.effects if e.effect.acts_on == "predictor" and not e.effect.constant]
    own = {e.name: 0.2 + 0.1 * i for i, e in enumerate(within)} | {PAIR: 0.5}
    relevance, label = np.zeros(n), np.zeros(n)
    parts = [(sds[e.name], priors.share(e.name, e.effect.scope), own[e.name]) for e in within]
    for sd, share, own_sd in [*parts, (np.pi / np.sqrt(3), priors.share(PAIR), own[PAIR])]:
        seen = rng.normal(0, sd * np.sqrt(share), n)
        relevance += seen + rng.normal(0, sd * np.sqrt(1 - share), n)
        label += slope * seen + rng.normal(0, own_sd, n)
    # The error of a correlation from n draws is below 1/sqrt(n); four of these are allowed.
    assert abs(_correlation(design, priors, sds, slope, own) - np.corrcoef(relevance, label)[0, 1]) < 4 / np.sqrt(n)


@pytest.mark.parametrize("seed", [1, 2])
def test_good_labels_raise_what_is_expected_of_the_labeller_and_poor_ones_lower_it(seed):
    good, poor = (
        probeval.synthetic_campaign(
            seed=seed, systems=8, queries=10, depth=5, observers={"judge": SyntheticObserver(slope=slope)}
        )
        for slope in (3.0, 0.3)
    )

    def expected(drawn: probeval.Collection, **given: object) -> float:
        return label_correlation(probeval.evaluate(drawn.runs, METRIC, scale="graded:2", **given).judging(), "judge")

    unknown = expected(good)
    assert 0.2 < unknown < 0.8
    assert expected(good, labels=good.labels, qrels=good.judgments) > unknown + 0.02
    assert expected(poor, labels=poor.labels, qrels=poor.judgments) < unknown - 0.1


def test_what_cannot_be_chosen_is_an_error(campaign, evaluation):
    for judging in (evaluation.judging("depth"), evaluation.judging(goal="relevant")):
        with pytest.raises(SelectionError, match="Leave out --labeller"):
            choose_for_labeller(judging, "judge", 3)
    uniform = probeval.evaluate(campaign.runs, METRIC, model="uniform", scale="graded:2")
    with pytest.raises(ModelError, match="Only the hierarchical model"):
        uniform.next(3, labeller="judge").to_frame()


def test_the_next_pairs_say_whom_they_are_for(evaluation):
    found = evaluation.next(3, labeller="judge")
    assert found.to_dict()["labeller"] == "judge"
    assert "labeller" not in evaluation.next(3).to_dict()
    assert repr(found).startswith("<NextPairs: 3 pairs to label next")
    assert replace(found, asked=0).pairs == []
    assert any("expected correlation" in line for line in found.sentences())
