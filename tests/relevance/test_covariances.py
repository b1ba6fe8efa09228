"""Covariances with few columns against whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.relevance.covariances import ROOT_BLOCK, Covariances
from probeval.relevance.inference.blocks import Arrow, LocalPrior

MISSING = 1e9


def parts(pairs, columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 2.0, size=(2, pairs)), rng.normal(size=(2, pairs, columns))


def whole(diagonal, *factors):
    square = sum(f @ f.transpose(0, 2, 1) for f in factors)
    return square + diagonal[..., None] * np.eye(diagonal.shape[1])


# Few columns, more than fit a block of the root, and as many as pairs: the factor is then that of the whole matrix.
shapes = pytest.mark.parametrize(("pairs", "columns"), [(9, 3), (2 * ROOT_BLOCK + 5, 7), (8, 8), (5, 12)])


@shapes
def test_products_inverses_and_roots_are_those_of_the_whole_matrix(pairs, columns):
    diagonal, factor = parts(pairs, columns)
    found, expected = Covariances.of(diagonal, factor), whole(diagonal, factor)
    values = np.random.default_rng(1).normal(size=(2, pairs, 4))
    np.testing.assert_allclose(found.times(values), expected @ values, atol=1e-8)
    np.testing.assert_allclose(found.variances, np.diagonal(expected, axis1=1, axis2=2), rtol=1e-9)
    np.testing.assert_allclose(found.inverse.times(values), np.linalg.solve(expected, values), atol=1e-8)
    np.testing.assert_allclose(found.inverse.traces, np.trace(np.linalg.inv(expected), axis1=1, axis2=2), rtol=1e-8)
    np.testing.assert_allclose(found.inverse.log_determinants, np.linalg.slogdet(expected)[1], rtol=1e-8)
    for query in range(2):
        np.testing.assert_allclose(found.matrix(query), expected[query], atol=1e-9)
        rows, columns_ = np.array([4, 0]), np.array([0, 2, 4])
        np.testing.assert_allclose(
            found.matrix(query, rows, columns_), expected[query][np.ix_(rows, columns_)], atol=1e-9
        )
        root = np.linalg.cholesky(expected[query])
        np.testing.assert_allclose(
            found.root_times(np.array([query]), values[query][None])[0], root @ values[query], atol=1e-7
        )


@shapes
@pytest.mark.parametrize("slope", [0.7, -0.4, 0.0])
def test_an_observation_conditions_as_the_whole_matrix_does(pairs, columns, slope):
    diagonal, factor = parts(pairs, columns)
    noise, own = parts(pairs, 2, seed=2)
    noise[0, 1] = MISSING
    k, v = whole(diagonal, factor), slope**2 * whole(diagonal, factor) + whole(noise, own)
    observed = Covariances.of(diagonal, factor).observed(slope, noise, own)
    gain = slope * k @ np.linalg.inv(v)
    values = np.random.default_rng(3).normal(size=(2, pairs, 2))
    np.testing.assert_allclose(observed.gain_times(values), gain @ values, atol=1e-7)
    given = observed.posterior()
    for query in range(2):
        np.testing.assert_allclose(given.matrix(query), (k - slope * gain @ k)[query], atol=1e-8)


def test_directions_that_an_observation_repeats_are_left_out():
    _, factor = parts(30, 4)
    given = Covariances.of(np.ones((2, 30)), factor).observed(0.5, np.ones((2, 30)), factor).posterior()
    assert given.factor.shape == (2, 30, 4)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_posterior_of_judged_pairs_is_that_of_the_whole_matrix(scaled):
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(3, 12, 5))
    information = Arrow(rng.uniform(0.1, 0.3, size=(3, 12)), np.append(rng.uniform(0, 0.05, 11), 0) if scaled else None)
    if information.arm is not None:
        information = Arrow(information.diagonal, np.tile(information.arm, (3, 1)))
    narrow, wide = LocalPrior(factor, 0.0), LocalPrior(factor, np.zeros((3, 12, 12)))
    values = rng.normal(size=(3, 12, 2))
    np.testing.assert_allclose(narrow.times(values), wide.times(values), atol=1e-10)
    assert narrow.log_determinant(information) == pytest.approx(wide.log_determinant(information))
    one, other = narrow.posterior(information), wide.posterior(information)
    assert one.right is not None
    assert other.right is None
    np.testing.assert_allclose(one.matrices, other.matrices, atol=1e-10)
    np.testing.assert_allclose(one.diagonals, other.diagonals, atol=1e-10)
    np.testing.assert_allclose(one.with_last, other.with_last, atol=1e-10)
    np.testing.assert_allclose(one.take(slice(1, 2)).times(values[1:2]), other.times(values)[1:2], atol=1e-10)
