"""The cumulative logit: its likelihood, its derivatives, and its fit against independent ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit

from probeval.errors import ModelError
from probeval.relevance.effects.cutpoints import level_probabilities
from probeval.relevance.models.cumulative import Observations, SeparationError, _Problem, fit_cumulative

CUTS = {2: [0.3], 3: [0.8, -0.9], 4: [1.5, 0.2, -1.0]}


def draw(n: int, sizes: tuple[int, ...], *, seed: int = 3, terms: int = 3) -> Observations:
    """Observations from a known cumulative logit, of scales of several sizes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, terms))
    n_levels = rng.choice(sizes, size=n)
    reach = x @ np.linspace(1, -0.5, terms) + rng.logistic(size=n)
    level = np.array([sum(r + c > 0 for c in CUTS[k]) for r, k in zip(reach, n_levels, strict=True)])
    return Observations(x, level, n_levels, np.ones(n))


def log_likelihood(theta: np.ndarray, data: Observations, *, ridge: float = 0.0) -> float:
    """The penalised log-likelihood, one observation at a time, as docs/theory/relevance-models.md#ord has it."""
    sizes = np.unique(data.n_levels)
    place, cuts = 0, {}
    for n in sizes:
        cuts[n] = theta[place : place + n - 1]
        place += n - 1
    beta, total = theta[place:], 0.0
    for x, level, n, weight in zip(data.x, data.level, data.n_levels, data.weight, strict=True):
        reach = [1.0, *expit(cuts[n] + x @ beta), 0.0]
        if reach[level] <= reach[level + 1]:
            return -1e10  # cutpoints out of order
        total += weight * np.log(reach[level] - reach[level + 1])
    return total - ridge / 2 * float(beta @ beta)


def stacked(fit) -> np.ndarray:
    return np.concatenate([*fit.cuts.values(), fit.beta])


# ---- probabilities ----


def test_probabilities_of_levels_by_hand():
    # logit P(>=1) = log 3 and logit P(>=2) = 0: P = (1/4, 1/4, 1/2).
    found = level_probabilities(np.array([np.log(3) - 2, -2.0]), np.array([2.0]))
    np.testing.assert_allclose(found, [[0.25, 0.25, 0.5]], atol=1e-15)


def test_probabilities_keep_the_shape_and_sum_to_one():
    found = level_probabilities(np.array([3.0, 0.0, -80.0]), np.linspace(-900, 900, 12).reshape(3, 4))
    assert found.shape == (3, 4, 4)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-15)
    assert found.min() >= 0


# ---- derivatives ----


@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_value_gradient_and_information(ridge):
    data = draw(60, (2, 3, 4))
    data = Observations(data.x, data.level, data.n_levels, np.random.default_rng(1).uniform(0.2, 3, size=60))
    problem = _Problem(data, [2, 3, 4], ridge)
    theta = np.concatenate([CUTS[2], CUTS[3], CUTS[4], [0.4, -0.3, 0.7]])
    value, gradient, information = problem(theta)
    assert value == pytest.approx(log_likelihood(theta, data, ridge=ridge), abs=1e-10)
    step = 1e-6
    numeric = approx_fprime(theta, lambda t: problem(t)[0], step)
    np.testing.assert_allclose(gradient, numeric, atol=2e-4)
    hessian = np.array(
        [(problem(theta + step * e)[1] - problem(theta - step * e)[1]) / (2 * step) for e in np.eye(len(theta))]
    )
    np.testing.assert_allclose(information, -hessian, atol=1e-6)
    np.testing.assert_allclose(information, information.T, atol=1e-12)


# ---- the fit ----


def test_agrees_with_statsmodels_on_one_scale():
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    data = draw(2000, (4,))
    fit = fit_cumulative(data)
    model = OrderedModel(data.level, data.x, distr="logit")
    theirs = model.fit(method="bfgs", disp=False, gtol=1e-9, maxiter=500)
    # Theirs is P(y <= j) = F(t_j - x b), the later t_j held as logarithms of their steps: t_j = -alpha_(j+1).
    np.testing.assert_allclose(fit.beta, theirs.params[:3], atol=1e-5)
    np.testing.assert_allclose(fit.cuts[4], -model.transform_threshold_params(theirs.params)[1:-1], atol=1e-5)
    assert fit.log_likelihood == pytest.approx(theirs.llf, abs=1e-7)
    step = np.exp(theirs.params[4:])
    delta = np.eye(6)[[3, 4, 5, 0, 1, 2]]
    delta[:3] = 0
    delta[:3, 3] = -1  # t_1
    delta[1:3, 4] = -step[0]  # t_2 = t_1 + e^s_1
    delta[2, 5] = -step[1]
    np.testing.assert_allclose(
        np.sqrt(np.diag(fit.covariance)), np.sqrt(np.diag(delta @ theirs.cov_params() @ delta.T)), atol=1e-5
    )


def test_agrees_with_a_binary_logit():
    from statsmodels.discrete.discrete_model import Logit

    data = draw(800, (2,))
    fit = fit_cumulative(data)
    theirs = Logit(data.level, np.column_stack([np.ones(800), data.x])).fit(disp=False, tol=1e-12)
    np.testing.assert_allclose(stacked(fit), theirs.params, atol=1e-7)
    np.testing.assert_allclose(fit.covariance, theirs.cov_params(), atol=1e-7)
    assert fit.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 4.0])
def test_scales_of_several_sizes_share_coefficients(ridge):
    data = draw(150, (2, 3, 4))
    fit = fit_cumulative(data, ridge=ridge)
    start = np.concatenate([CUTS[2], CUTS[3], CUTS[4], np.zeros(3)])
    brute = minimize(lambda t: -log_likelihood(t, data, ridge=ridge), start, method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(stacked(fit), brute.x, atol=1e-4)
    # The reported likelihood is without the penalty.
    penalty = ridge / 2 * float(fit.beta @ fit.beta)
    assert fit.log_likelihood - penalty == pytest.approx(-brute.fun, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(log_likelihood(stacked(fit), data), abs=1e-9)


def test_weights_are_repeated_rows():
    data = draw(200, (3, 4))
    times = np.random.default_rng(0).integers(1, 4, size=200)
    weighted = fit_cumulative(Observations(data.x, data.level, data.n_levels, times.astype(float)))
    repeated = fit_cumulative(data.take(np.repeat(np.arange(200), times)))
    np.testing.assert_allclose(stacked(weighted), stacked(repeated), atol=1e-8)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, atol=1e-8)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, abs=1e-8)


def test_a_ridge_shrinks():
    data = draw(200, (3,))
    lengths = [float(np.linalg.norm(fit_cumulative(data, ridge=r).beta)) for r in (0, 1, 10, 1000, 1e7)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < 1e-4


def test_without_a_term():
    data = draw(10, (2,))
    np.testing.assert_array_equal(data.without(1).x, data.x[:, [0, 2]])


def test_no_terms_gives_the_shares():
    data = draw(500, (4,), terms=0)
    shares = level_probabilities(fit_cumulative(data).cuts[4], np.zeros(1))[0]
    np.testing.assert_allclose(shares, np.bincount(data.level) / 500, atol=1e-9)


# ---- where there is no best fit ----


@pytest.mark.parametrize("n", [10, 100, 1000, 5000])
@pytest.mark.parametrize("levels", [2, 3])
def test_a_term_that_tells_the_level_separates(n, levels):
    level = np.arange(n) % levels
    x = ((level - level.mean()) / level.std())[:, None]
    data = Observations(x, level, np.full(n, levels), np.ones(n))
    with pytest.raises(SeparationError, match="separates the levels"):
        fit_cumulative(data)
    assert np.isfinite(fit_cumulative(data, ridge=1.0).beta).all()


def test_a_term_that_separates_a_part_is_seen_too():
    rng = np.random.default_rng(2)
    marked = rng.random(300) < 0.3
    level = np.where(marked, 1, rng.integers(0, 2, size=300))  # every marked pair is relevant
    x = np.column_stack([(marked - marked.mean()) / marked.std(), rng.normal(size=300)])
    with pytest.raises(SeparationError):
        fit_cumulative(Observations(x, level, np.full(300, 2), np.ones(300)))


def test_two_terms_that_separate_together():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 2))
    level = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    with pytest.raises(SeparationError):
        fit_cumulative(Observations(x, level, np.full(200, 2), np.ones(200)))


def test_a_strong_term_is_not_taken_for_a_separating_one():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 1))
    level = (12 * x[:, 0] + rng.logistic(size=3000) > 0).astype(np.int64)
    assert fit_cumulative(Observations(x, level, np.full(3000, 2), np.ones(3000))).beta[0] == pytest.approx(12, abs=1.5)


@pytest.mark.parametrize("again", [lambda x: x[:, 0], lambda x: 3 * x[:, 1] - 2, lambda x: x.sum(axis=1)])
def test_terms_that_say_the_same_are_refused(again):
    data = draw(300, (3,))
    both = np.column_stack([data.x, again(data.x)])
    both = (both - both.mean(axis=0)) / both.std(axis=0)
    with pytest.raises(ModelError, match="say the same"):
        fit_cumulative(Observations(both, data.level, data.n_levels, data.weight))


def test_a_level_never_seen_is_named_and_gets_half_a_judgment():
    data = draw(400, (4,))
    data = data.take(data.level != 2)
    fit = fit_cumulative(data)
    assert fit.unseen == ((4, 2),)
    assert np.all(np.diff(fit.cuts[4]) < 0)
    share = level_probabilities(fit.cuts[4], data.x @ fit.beta)[:, 2].mean()
    assert 0 < share < 2 * 0.5 / len(data.level)  # half a judgment at the average pair


def test_only_one_level_seen():
    x = np.repeat([[-1.0], [1.0]], 25, axis=0)
    fit = fit_cumulative(Observations(x, np.zeros(50, dtype=np.int64), np.full(50, 2), np.ones(50)))
    assert fit.unseen == ((2, 1),)
    # 50.5 of the lowest, half of the other, and nothing to learn from the term.
    assert fit.cuts[2][0] == pytest.approx(np.log(0.5 / 50.5), abs=1e-6)
    assert fit.beta[0] == pytest.approx(0, abs=1e-6)


def test_nothing_to_fit_on():
    with pytest.raises(ModelError, match="no judged pair"):
        fit_cumulative(draw(0, (2,)))
