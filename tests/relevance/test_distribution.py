"""P(grade) of every pair: moments, draws, judged pairs, the posterior axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from probeval.data import Judgments, Pool, Scale
from probeval.errors import ModelError
from probeval.relevance import RelevanceDistribution, distribution, synthetic_campaign
from probeval.scores import evaluate

POOL = Pool.of(["q", "q", "r", "r"], ["1", "2", "1", "3"])
BROAD = Scale.graded(2)
P = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
DRAWS = 40_000


def test_moments_by_hand():
    mean, variance = RelevanceDistribution.of(POOL, BROAD, P).moments(BROAD.gains_as("exp"))
    # Gains 0, 1, 3: .2 + 2.1 = 2.3 and .2 + 6.3 - 2.3^2; .5 + .75 = 1.25 and .5 + 2.25 - 1.25^2.
    np.testing.assert_allclose(mean, [2.3, 0, 1.25, 3])
    np.testing.assert_allclose(variance, [6.5 - 2.3**2, 0, 2.75 - 1.25**2, 0], atol=1e-12)


def test_judged_pairs_are_certain():
    judgments = Judgments.rows(["q", "r", "z"], ["1", "1", "1"], [0, 2, 1])
    known = RelevanceDistribution.of(POOL, BROAD, P, judgments=judgments)
    assert known.certain.tolist() == [True, False, True, False]
    mean, variance = known.moments(BROAD.values)
    np.testing.assert_allclose(mean, [0, 0, 2, 2])
    np.testing.assert_array_equal(variance, 0)
    np.testing.assert_array_equal(known.sample(5, np.random.default_rng(0)), [[0, 0, 2, 2]] * 5)


def test_a_fine_judgment_is_exact_though_the_model_has_bins():
    scale = Scale.fine()
    known = RelevanceDistribution.of(POOL, scale, np.full((4, 10), 0.1), judgments=Judgments.rows(["q"], ["1"], [37]))
    mean, variance = known.moments(scale.values)
    np.testing.assert_allclose(mean, [37, 50, 50, 50])
    np.testing.assert_allclose(variance, [0, 825, 825, 825])
    drawn = known.sample(200, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {37}
    assert set(drawn[:, 1]) == set(range(5, 100, 10))


def test_drawn_but_not_judged_stays_uncertain():
    known = RelevanceDistribution.of(POOL, BROAD, P, judgments=Judgments.rows(["q"], ["1"], [-1]))
    assert not known.certain.any()


def within(share: np.ndarray, p: np.ndarray, n: int) -> np.ndarray:
    """Whether shares of n draws are within five standard errors of their probabilities."""
    return np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12


def test_draws_come_as_often_as_their_probabilities_say():
    drawn = RelevanceDistribution.of(POOL, BROAD, P).sample(DRAWS, np.random.default_rng(11))
    assert drawn.shape == (DRAWS, 4)
    share = np.stack([(drawn == level).mean(axis=0) for level in range(3)], axis=1)
    assert within(share, P, DRAWS).all()


def test_moments_are_those_of_the_draws():
    gains = BROAD.gains_as("exp")
    known = RelevanceDistribution.of(POOL, BROAD, P)
    mean, variance = known.moments(gains)
    drawn = gains[known.sample(DRAWS, np.random.default_rng(12))]
    assert np.all(np.abs(drawn.mean(axis=0) - mean) <= 5 * np.sqrt(variance / DRAWS) + 1e-12)
    # The variance of a sample variance is at most (fourth moment)/n, and gains are within 0..3.
    assert np.all(np.abs(drawn.var(axis=0) - variance) <= 5 * 9 / np.sqrt(DRAWS))


def test_pairs_are_drawn_independently():
    p = np.full((4, 2), 0.5)
    drawn = RelevanceDistribution.of(POOL, Scale.binary(), p).sample(DRAWS, np.random.default_rng(13))
    off = np.corrcoef(drawn.T)[np.triu_indices(4, 1)]
    assert np.all(np.abs(off) < 5 / np.sqrt(DRAWS))


def test_the_same_seed_draws_the_same():
    known = RelevanceDistribution.of(POOL, BROAD, P)
    first, again = (known.sample(20, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_posterior_axis():
    scale = Scale.binary()
    p = np.array([[0.9, 0.1], [0.2, 0.8]])  # two draws of the parameters: all pairs low, or all high
    posterior = np.repeat(p[:, None, :], 4, axis=1)
    known = RelevanceDistribution.of(POOL, scale, posterior, judgments=Judgments.rows(["q"], ["1"], [1]))
    assert known.has_posterior
    mean, variance = known.moments(scale.values)
    np.testing.assert_allclose(mean, [[1, 0.1, 0.1, 0.1], [1, 0.8, 0.8, 0.8]])
    np.testing.assert_allclose(variance, [0, 0.125, 0.125, 0.125])  # given the parameters: of .09 and .16 the mean
    drawn = known.sample(DRAWS, np.random.default_rng(3))
    assert drawn.shape == (DRAWS, 4)
    # Draws of grades take the draws of the parameters in turn.
    share = np.stack([drawn[0::2].mean(axis=0), drawn[1::2].mean(axis=0)])
    assert within(share, mean, DRAWS // 2).all()
    # Over draws pairs hang together: covariance of the means, (.8 - .1)^2 / 4.
    off = np.cov(drawn[:, 1:].T)[np.triu_indices(3, 1)]
    assert off == pytest.approx([0.35**2] * 3, abs=5 * 0.25 / np.sqrt(DRAWS))
    table = known.to_frame()
    np.testing.assert_allclose(table["mean"], [1, 0.45, 0.45, 0.45])
    np.testing.assert_allclose(table["sd"] ** 2, [0] + [0.125 + 0.35**2] * 3, atol=1e-12)
    np.testing.assert_allclose(table["p1"], [1, 0.45, 0.45, 0.45])


def test_a_table():
    table = RelevanceDistribution.of(POOL, BROAD, P).to_frame()
    assert list(table.columns) == ["query", "doc", "judged", "mean", "sd", "p0", "p1", "p2"]
    np.testing.assert_allclose(table["mean"], P @ [0, 1, 2])


def test_wrong_shapes_are_refused():
    with pytest.raises(ModelError, match=r"4 pairs and 3 levels .* got shape \(4, 2\)"):
        RelevanceDistribution.of(POOL, BROAD, P[:, :2])


@dataclass(frozen=True, eq=False)
class Counted:
    """Probabilities that are made when they are asked for, and how many at the most at once."""

    values: np.ndarray
    sizes: list[int]

    @property
    def n(self) -> int:
        return len(self.values)

    def probabilities(self, block):
        self.sizes.append(block.pairs.stop - block.pairs.start)
        return self.values[:, block.pairs]


def test_a_large_pool_is_never_held_at_once_and_gives_the_same_numbers(monkeypatch):
    campaign = synthetic_campaign(seed=1, systems=5, queries=20, depth=5, docs=15)
    runs, scale = campaign.runs, Scale.graded(2)
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1, 1, 1], size=(6, len(runs.pool)))
    few = campaign.judgments.take(np.arange(0, len(campaign.judgments), 7))
    kept = RelevanceDistribution.of(runs.pool, scale, p, judgments=few)
    monkeypatch.setattr(distribution, "KEPT", 10)
    monkeypatch.setattr(distribution, "BLOCK", 600)
    source = Counted(p, [])
    lazy = RelevanceDistribution.of(runs.pool, scale, source, judgments=few)
    assert lazy.source is source
    for name in ("DCG@5", "nDCG@5"):
        a, b = (evaluate(runs, one, name, n=40, rng=np.random.default_rng(3)) for one in (kept, lazy))
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-14)
        np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-14)
        np.testing.assert_allclose(a.joint.between, b.joint.between, atol=1e-14)
    for a, b in zip(kept.gain_summary(scale.gains), lazy.gain_summary(scale.gains), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)
    some = np.array([3, 40, 41])
    np.testing.assert_allclose(lazy.take(some).probability, kept.take(some).probability)
    assert lazy.take(np.empty(0, dtype=np.int64)).probability.shape == (6, 0, 3)
    assert max(source.sizes) <= 40 < len(runs.pool)


def test_the_summary_is_that_of_the_moments():
    campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=4)
    pool, scale = campaign.runs.pool, Scale.graded(2)
    p = np.random.default_rng(2).dirichlet([1, 1, 1], size=(5, len(pool)))
    relevance = RelevanceDistribution.of(pool, scale, p, judgments=campaign.judgments.take(np.arange(4)))
    mean, variance = relevance.moments(scale.gains)
    summary = relevance.gain_summary(scale.gains)
    np.testing.assert_allclose(summary.mean, mean.mean(axis=0))
    np.testing.assert_allclose(summary.variance, variance)
    reach = np.stack(
        [p[..., 1] + p[..., 2], p[..., 2]], axis=-1
    )  # P(at least 1), P(at least 2); gains are a unit apart
    expected = np.where(relevance.certain[:, None], 0.0, (reach * (1 - reach)).mean(axis=0))
    np.testing.assert_allclose(summary.steepness, expected, atol=1e-15)


@pytest.mark.parametrize(("start", "n"), [(0, 0), (0, 3), (2, 4), (3, 11), (9, 5)])
def test_draws_of_grades_take_the_draws_of_the_parameters_in_turn(start, n):
    """Under draw t of the parameters every grade is t, so a draw of grades shows which one it took."""
    pool, scale, draws = Pool.of(["q"] * 2, ["a", "b"]), Scale.graded(3), 4
    certain = np.broadcast_to(np.eye(draws)[:, None], (draws, len(pool), len(scale)))
    found = RelevanceDistribution.of(pool, scale, certain).sample(n, np.random.default_rng(0), start=start)
    np.testing.assert_array_equal(found, np.repeat((start + np.arange(n))[:, None] % draws, len(pool), axis=1))
