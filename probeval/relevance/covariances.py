r"""Covariances of the pairs of a query, as a diagonal and a factor with few columns.

Within a query pairs depend on one another through the coefficients of a few effects, so that a covariance is
:math:`D + UU'` with a diagonal :math:`D` and as many columns of :math:`U` as there are coefficients. By the Woodbury
identity its inverse is :math:`D^{-1} - ZZ'` with

.. math:: Z = D^{-1} U C^{-\prime},\qquad CC' = I + U'D^{-1}U,

in time linear in the number of pairs. A factor with as many columns as pairs saves nothing: the whole matrix is then
its Cholesky factor, and the diagonal is 0. See docs/theory/observers.md#low-rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probeval.arrays import Floats, Ints, frozen

__all__ = ["Covariances", "NoisyObservation", "Precisions"]

JITTER = 1e-12  # relative, added to the diagonal of a matrix before its root is taken
NULL = 1e-13  # the largest square, relative to the first, of a direction that is left out
ROOT_BLOCK = 64  # pairs that the root of a covariance takes at a time


@dataclass(frozen=True, eq=False)
class Precisions:
    """The inverses of covariances, shape (query, pair, pair): a diagonal plus or minus the square of a factor.

    Parameters
    ----------
    diagonal, factor
        Shapes (query, pair) and (query, pair, column).
    sign
        -1 for a diagonal minus the square, 1 for the square alone.
    log_determinants
        Of the covariances, shape (query,).
    """

    diagonal: Floats
    factor: Floats
    sign: float
    log_determinants: Floats

    def times(self, values: Floats) -> Floats:
        """Return the inverses times some columns, shape (query, pair, column)."""
        inner = self.factor.transpose(0, 2, 1) @ values
        return np.asarray(self.diagonal[..., None] * values + self.sign * (self.factor @ inner))

    @property
    def traces(self) -> Floats:
        """The trace of each inverse, shape (query,)."""
        return np.asarray(self.diagonal.sum(axis=1) + self.sign * (self.factor**2).sum(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class Covariances:
    """A stack of covariance matrices of shape (query, pair, pair): a diagonal plus the square of a factor.

    Parameters
    ----------
    diagonal, factor
        Shapes (query, pair) and (query, pair, column). With as many columns as pairs the factor is triangular and the
        diagonal 0.

    Examples
    --------
    >>> found = Covariances.of(np.ones((1, 3)), np.ones((1, 3, 1)))
    >>> found.matrix(0)
    array([[2., 1., 1.],
           [1., 2., 1.],
           [1., 1., 2.]])
    >>> found.inverse.times(np.eye(3)[None])[0].round(2)
    array([[ 0.75, -0.25, -0.25],
           [-0.25,  0.75, -0.25],
           [-0.25, -0.25,  0.75]])
    """

    diagonal: Floats
    factor: Floats

    @classmethod
    def of(cls, diagonal: Floats, *factors: Floats) -> Covariances:
        """Return a diagonal plus the squares of factors."""
        factor = np.concatenate(factors, axis=2)
        if factor.shape[2] < factor.shape[1]:
            return cls(diagonal, factor)
        whole = factor @ factor.transpose(0, 2, 1)
        at = np.arange(whole.shape[1])
        whole[:, at, at] += diagonal
        return cls.whole(whole)

    @classmethod
    def whole(cls, matrices: Floats) -> Covariances:
        """Return whole matrices, shape (query, pair, pair), by their Cholesky factors."""
        at = np.arange(matrices.shape[1])
        matrices[:, at, at] *= 1 + JITTER
        return cls(np.zeros(matrices.shape[:2]), np.asarray(np.linalg.cholesky(matrices)))

    @property
    def _narrow(self) -> bool:
        return bool(self.factor.shape[2] < self.factor.shape[1])

    @cached_property
    def _small_root(self) -> Floats:
        """:math:`C^{-1}` of a narrow factor, shape (query, column, column)."""
        square = self.factor.transpose(0, 2, 1) @ (self.factor / self.diagonal[..., None])
        return np.asarray(np.linalg.inv(np.linalg.cholesky(square + np.eye(square.shape[1]))))

    @cached_property
    def inverse(self) -> Precisions:
        """The inverse of each matrix."""
        if self._narrow:
            taken = (self.factor / self.diagonal[..., None]) @ self._small_root.transpose(0, 2, 1)
            roots = np.diagonal(self._small_root, axis1=1, axis2=2)
            log_determinants = np.log(self.diagonal).sum(axis=1) - 2 * np.log(roots).sum(axis=1)
            return Precisions(1 / self.diagonal, taken, -1.0, log_determinants)
        log_determinants = 2 * np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        root = np.asarray(np.linalg.inv(self.factor)).transpose(0, 2, 1)
        return Precisions(self.diagonal, root, 1.0, log_determinants)

    @cached_property
    def variances(self) -> Floats:
        """The diagonal of each matrix, shape (query, pair)."""
        return frozen(self.diagonal + np.einsum("qpc,qpc->qp", self.factor, self.factor))

    def take(self, queries: Ints) -> Covariances:
        """Return the matrices of some queries."""
        return Covariances(self.diagonal[queries], self.factor[queries])

    def times(self, values: Floats) -> Floats:
        """Return the matrices times some columns, shape (query, pair, column)."""
        inner = self.factor.transpose(0, 2, 1) @ values
        return np.asarray(self.diagonal[..., None] * values + self.factor @ inner)

    def matrix(self, query: int, rows: Ints | None = None, columns: Ints | None = None) -> Floats:
        """Return one matrix, or some of its rows and columns."""
        every = np.arange(self.diagonal.shape[1])
        rows, columns = every if rows is None else rows, every if columns is None else columns
        out = self.factor[query, rows] @ self.factor[query, columns].T
        row, column = np.nonzero(rows[:, None] == columns)
        out[row, column] += self.diagonal[query, rows[row]]
        return np.asarray(out)

    def observed(self, slope: float, diagonal: Floats, factor: Floats) -> NoisyObservation:
        r"""Return the observation :math:`y = \lambda x + \epsilon` of variables with these covariances.

        The covariance of :math:`\epsilon` is a diagonal, shape (query, pair), plus the square of a factor.
        """
        return NoisyObservation(self, slope, diagonal, factor)

    def root_times(self, queries: Ints, values: Floats) -> Floats:
        r"""Return the Cholesky factors of some matrices times some columns of each, shape (query, pair, column).

        With :math:`P_j` the covariance of the coefficients given the pairs before block :math:`j`, the factor has the
        blocks :math:`L_{jj}L_{jj}' = D_j + U_j P_j U_j'` and below them :math:`L_{ij} = U_i Q_j` with
        :math:`Q_j = P_j U_j' L_{jj}^{-\prime}`; then :math:`P_{j+1} = P_j - Q_j Q_j'`.
        """
        factor = self.factor[queries]
        if not self._narrow:
            return np.asarray(factor @ values)
        out = np.empty_like(values)
        n_pairs, n_columns = factor.shape[1:]
        diagonal = self.diagonal[queries] + JITTER * self.variances[queries]
        left = np.broadcast_to(np.eye(n_columns), (len(factor), n_columns, n_columns))
        before = np.zeros((len(factor), n_columns, values.shape[2]))
        for start in range(0, n_pairs, ROOT_BLOCK):
            mine = slice(start, min(start + ROOT_BLOCK, n_pairs))
            u = factor[:, mine]
            forward = u @ left
            square = forward @ u.transpose(0, 2, 1)
            at = np.arange(mine.stop - start)
            square[:, at, at] += diagonal[:, mine]
            root = np.asarray(np.linalg.cholesky(square))
            out[:, mine] = root @ values[:, mine]
            if start:
                out[:, mine] += u @ before
            if mine.stop < n_pairs:
                onward = np.linalg.solve(root, forward).transpose(0, 2, 1)
                before = before + onward @ values[:, mine]
                left = left - onward @ onward.transpose(0, 2, 1)
        return out


@dataclass(frozen=True, eq=False)
class NoisyObservation:
    r"""The observation :math:`y = \lambda x + \epsilon` of variables :math:`x` with some covariances :math:`K`."""

    prior: Covariances
    slope: float
    diagonal: Floats
    factor: Floats

    @cached_property
    def covariances(self) -> Covariances:
        r""":math:`V = \lambda^2 K + E` of the observation."""
        diagonal = self.slope**2 * self.prior.diagonal + self.diagonal
        return Covariances.of(diagonal, self.slope * self.prior.factor, self.factor)

    def gain_times(self, values: Floats) -> Floats:
        r"""Return :math:`\lambda K V^{-1}` times values of the observation, shape (query, pair, column)."""
        return self.slope * self.prior.times(self.covariances.inverse.times(values))

    def posterior(self, *, last: bool = False) -> Covariances:
        r"""Return the covariances :math:`K - \lambda^2 K V^{-1} K` of the variables given the observation.

        Before the last observation dependent columns are left out of the factor, which saves more than it costs.

        With :math:`x = Uz + e` and :math:`\epsilon = Fw + \delta`, the own parts :math:`e` given the coefficients have
        the share :math:`c = \lambda\,\text{Var}[e]\,/\,(\lambda^2\text{Var}[e] + \text{Var}[\delta])` of what the
        coefficients leave, so that the posterior has the factor
        :math:`[(1 - \lambda c)U,\ -cF]\,C^{-\prime}`.
        """
        v, k = self.covariances, self.prior
        if not v._narrow:
            at = np.eye(k.diagonal.shape[1])[None]
            whole = k.times(np.broadcast_to(at, (len(k.diagonal), *at.shape[1:])))
            taken = self.slope * (v.inverse.factor.transpose(0, 2, 1) @ whole)
            return Covariances.whole(whole - taken.transpose(0, 2, 1) @ taken)
        share = (self.slope * k.diagonal / v.diagonal)[..., None]
        moved = np.concatenate([(1 - self.slope * share) * k.factor, -share * self.factor], axis=2)
        factor = moved @ v._small_root.transpose(0, 2, 1)
        if not last or factor.shape[2] >= factor.shape[1]:
            factor = _without_null_directions(factor)
        return Covariances(k.diagonal * self.diagonal / v.diagonal, factor)


def _without_null_directions(factor: Floats) -> Floats:
    """Return a factor with the same square and fewer columns, if its columns are dependent in all queries."""
    value, vector = np.linalg.eigh(factor.transpose(0, 2, 1) @ factor)
    kept = int((value > NULL * value[:, -1:]).sum(axis=1).max(initial=0))
    return np.asarray(factor @ vector[:, :, value.shape[1] - kept :])
