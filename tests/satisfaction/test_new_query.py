"""Predictions for one new query."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import SatisfactionError
from probeval.results import plain
from probeval.satisfaction import SatMapping, load_mapping, predict_query

RNG = np.random.default_rng(3)


def test_one_sided_limits_lie_inside_the_interval():
    new = predict_query(RNG.beta(2, 3, size=80))
    assert new.lower < new.above < new.mean < new.below < new.upper
    assert str(new).endswith(f"95% above {new.above:.4f}")
    assert set(plain(new)) == {"mean", "lower", "upper", "above", "below"}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["empirical", "beta", None])
def test_a_share_of_new_queries_is_above(family):
    # 400 samples of 60 queries and one more: the share above has an sd of .015, plus the error of the fit.
    rng = np.random.default_rng(11)
    scores = rng.beta(2, 2, size=(400, 61))
    new = [predict_query(row[:60], family=family, level=0.9) for row in scores]
    assert np.mean([x > p.above for x, p in zip(scores[:, 60], new, strict=True)]) == pytest.approx(0.9, abs=0.045)
    assert np.mean([x < p.below for x, p in zip(scores[:, 60], new, strict=True)]) == pytest.approx(0.9, abs=0.045)


def test_limits_of_the_measure_shift_the_family():
    scores = RNG.beta(2, 2, size=30)
    unit, wide = predict_query(scores), predict_query(10 * scores - 5, limits=(-5.0, 5.0))
    assert [wide.lower, wide.above] == pytest.approx([10 * unit.lower - 5, 10 * unit.above - 5])


def test_draws_are_mixed():
    # Two certain draws far apart: the prediction covers both.
    draws = np.stack([np.full(60, 0.2), np.full(60, 0.8)])
    new = predict_query(draws)
    assert (new.lower, new.upper, new.mean) == (0.2, 0.8, pytest.approx(0.5))


def test_satisfaction_is_mapped_point_by_point():
    mapping = load_mapping("CGl@5/fine")  # it falls near 0, so its minimum is not at the lowest score
    scores = np.linspace(0, 1, 1001)
    new = predict_query(scores, mapping=mapping, level=0.99)
    assert new.lower == pytest.approx(np.quantile(mapping(scores), 0.005))
    assert predict_query(scores, mapping=SatMapping((0.0, 1.0, 0.0, 0.0))) == predict_query(scores)


def test_bad_input_is_refused():
    with pytest.raises(SatisfactionError, match="A level is a probability"):
        predict_query(np.array([0.1, 0.2]), level=1.5)
    with pytest.raises(SatisfactionError, match="beta needs scores with limits"):
        predict_query(np.array([3.0, 20.0]), family="beta", limits=(-np.inf, np.inf))
    with pytest.raises(SatisfactionError, match="at least two queries"):
        predict_query(np.array([0.3]))
