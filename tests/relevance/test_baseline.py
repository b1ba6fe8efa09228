"""Models that look at nothing but the scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Runs, Scale
from probeval.errors import ModelError
from probeval.relevance import Empirical, FallbackModel, Uniform

RUNS = Runs.rows(["a", "a", "a"], ["q", "q", "q"], ["d1", "d2", "d3"])
UNJUDGED = Collection("unjudged", RUNS)


def moments(model, scale: Scale, collection: Collection = UNJUDGED) -> tuple[float, float]:
    """Mean and variance of the grade of an unjudged pair."""
    mean, variance = FallbackModel([model]).predict(collection.problem(depth=3, scale=scale)).moments(scale.values)
    assert np.ptp(mean) < 1e-12
    return float(mean[0]), float(variance[0])


def test_uniform_moments():
    # docs/theory/relevance-models.md#baselines: Broad E 1, Var 2/3; Fine over its 101 grades E 50, Var 850.
    assert moments(Uniform(), Scale.graded(2)) == pytest.approx((1, 2 / 3), abs=1e-12)
    assert moments(Uniform(), Scale.fine()) == pytest.approx((50, 850), abs=1e-9)


def test_uniform_over_ten_bins_would_be_narrower():
    # Over the ten bins it would be 825.
    scale = Scale.fine()
    assert np.var(scale.values[scale.levels]) == pytest.approx(825)


def test_historical_moments():
    # Urbano (2013), past MIREX on the Broad scale: E .8959, Var .6338.
    mean, variance = moments(Empirical({3: (0.3744, 0.3554, 0.2703)}), Scale.graded(2))
    assert mean == pytest.approx(0.8959, abs=5e-5)
    assert variance == pytest.approx(0.6338, abs=5e-5)


def test_shares_of_past_judgments():
    judged = replace(UNJUDGED, judgments=Judgments.rows(["q", "q", "x"], ["d1", "d2", "d9"], [0, 2, 2]))
    # In the pool: one 0, no 1, one 2; half a judgment is added to each.
    assert Empirical.fit([judged], depth=3).shares == {3: pytest.approx((1.5 / 3.5, 0.5 / 3.5, 1.5 / 3.5))}
    # To depth 1 only d1 is in the pool; the scale is still that of the judgments.
    assert Empirical.fit([judged], depth=1).shares == {3: pytest.approx((0.6, 0.2, 0.2))}


def test_campaigns_of_one_scale_count_alike():
    few = replace(UNJUDGED, judgments=Judgments.rows(["q"], ["d1"], [1]))
    many = replace(UNJUDGED, judgments=Judgments.rows(["q"] * 3, ["d1", "d2", "d3"], [0, 0, 0]))
    found = Empirical.fit([few, many], depth=3).shares[2]
    assert found == pytest.approx(np.mean([[0.5 / 2, 1.5 / 2], [3.5 / 4, 0.5 / 4]], axis=0))


def test_a_scale_never_seen_keeps_the_share_of_the_lowest():
    model = Empirical({2: (0.8, 0.2), 3: (3, 1, 1)})
    np.testing.assert_allclose(model.share(4), [0.7, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(model.share(3), [0.6, 0.2, 0.2])


def test_shares_speak_in_bins_on_a_fine_scale():
    model = Empirical({10: tuple([0.1] * 10)})
    assert moments(model, Scale.fine()) == pytest.approx((50, 825), abs=1e-9)


def test_no_judgments_to_learn_from():
    with pytest.raises(ModelError, match="unjudged: there are no judgments"):
        Empirical.fit([UNJUDGED], depth=3)


def test_rare_levels_are_found():
    assert [str(f) for f in Empirical({3: (0.9, 0.0995, 0.0005)}).check()] == [
        "Scales of 3 levels: level 2 was hardly ever seen. Its share is a guess of half a judgment."
    ]
    assert not Empirical({2: (0.5, 0.5)}).check()
    assert not Uniform().check()
