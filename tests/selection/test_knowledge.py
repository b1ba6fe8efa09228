"""What a policy looks at: weights of measures, linear or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Scale
from probeval.metrics import parse
from probeval.relevance import FallbackModel, RelevanceDistribution, Uniform
from probeval.scores.draws import drawn_lists, sums_of_gains
from probeval.selection.context import RIDGE, _ridge, effective_weights
from probeval.streams import Purpose, query_streams


def uniform(full, scale, judged=0):
    few = replace(full, judgments=full.judgments.take(np.arange(judged)) if judged else None)
    return FallbackModel([Uniform()]).predict(few.problem(depth=5, scale=scale))


def test_weights_of_a_linear_measure_are_its_own(full):
    relevance = uniform(full, Scale.graded(2), judged=6)
    metric, runs = parse("DCG@3"), full.runs.top(5)
    found = effective_weights(runs, relevance, metric, metric.gains(relevance.scale), np.random.default_rng(0))
    # One more grade of one document: how each mean score moves.
    nothing = np.zeros((1, len(runs.pool)), dtype=np.int16)
    np.testing.assert_allclose(found, steps(runs, relevance, metric, nothing), atol=1e-12)


def steps(runs, relevance, metric, drawn):
    """What a document's first step of grade adds to each mean score, over draws of the others, shape (pair, system)."""
    out = []
    for d in range(drawn.shape[1]):
        low, high = drawn.copy(), drawn.copy()
        low[:, d], high[:, d] = 0, 1
        without, with_ = (metric.scores(drawn_lists(runs, relevance, codes)) for codes in (low, high))
        out.append((with_ - without).mean(axis=(0, 2)))
    return np.array(out)


@pytest.mark.parametrize("metric", ["nDCG@5", "AP@5", "RR@5"])
def test_weights_of_other_measures_are_how_they_move(full, metric):
    scale, metric, runs = Scale.binary(), parse(metric), full.runs.top(5)
    p = np.random.default_rng(3).uniform(0.2, 0.8, size=len(runs.pool))
    relevance = RelevanceDistribution.of(runs.pool, scale, np.column_stack([1 - p, p]))
    found = effective_weights(runs, relevance, metric, scale.gains, np.random.default_rng(0))
    expected = steps(runs, relevance, metric, relevance.sample(300, np.random.default_rng(1)))
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.97
    assert np.abs(found - expected).max() < 0.35 * np.abs(expected).max()


@pytest.mark.parametrize("metric", ["nDCG@3", "DCG@3", "RBP(norm='ideal')@5"])
@pytest.mark.parametrize("judged", [0, 9, 36])
def test_sums_of_gains_are_the_scores_of_the_lists(full, metric, judged):
    relevance, metric, runs = uniform(full, Scale.graded(2), judged), parse(metric), full.runs.top(5)
    queries = slice(0, len(runs.queries))
    codes = relevance.sample_from(query_streams(0, queries), 20)
    found = [drawn.scores for drawn in sums_of_gains(runs, relevance, metric, query_streams(0, queries), 20)]
    np.testing.assert_allclose(np.stack(found, axis=-1), metric.scores(drawn_lists(runs, relevance, codes)), atol=1e-12)
    if judged == 36:  # all
        assert all((scores == scores[0]).all() for scores in found)


def test_what_is_judged_or_never_varies_has_no_weight(full):
    relevance = uniform(full, Scale.graded(2), judged=9)
    metric = parse("nDCG@5")
    args = (full.runs.top(5), relevance, metric, metric.gains(relevance.scale))
    found = effective_weights(*args, np.random.default_rng(0))
    assert not found[relevance.certain].any()
    np.testing.assert_array_equal(found, effective_weights(*args, np.random.default_rng(0)))
    assert np.abs(found - effective_weights(*args, np.random.default_rng(1))).max() > 0


def test_known_things(state):
    context = state(12, model="text-hierarchical").context
    assert context.judged.sum() == 12
    assert context.relevance.has_posterior
    mean, variance = context.gain_moments
    assert variance[context.judged].max() == 0
    frame = context.relevance.to_frame()
    np.testing.assert_allclose(mean, frame["mean"])
    assert context.best_rank.min() == 0
    assert (context.gain_variance >= variance).all()
    a, b = (context.stream(Purpose.RANKING).random() for _ in range(2))
    assert a == b != context.stream(Purpose.WEIGHTS).random()


def test_both_forms_of_the_ridge_are_one():
    rng = np.random.default_rng(0)
    for rows, columns in ((12, 7), (7, 12), (9, 9)):
        x, y = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 3))
        level = RIDGE * (x**2).sum() / rows
        padded = np.concatenate([x, np.sqrt(level) * np.eye(columns)])  # ridge is least squares with these rows beside
        expected = np.linalg.lstsq(padded, np.concatenate([y, np.zeros((columns, 3))]))[0]
        np.testing.assert_allclose(_ridge(x, y), expected, atol=1e-10)
    assert not _ridge(np.zeros((4, 2)), np.ones((4, 3))).any()
