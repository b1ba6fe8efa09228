r"""The cumulative logit model: probabilities, likelihood and Newton fit, for scales of several sizes at once.

:math:`\text{logit}\,P(R \ge \ell) = \alpha_\ell + \eta` with falling :math:`\alpha_1 > \alpha_2 > ..`. The
log-likelihood is jointly concave in the cutpoints and the coefficients, so Newton's method finds the maximum.
See McCullagh (1980), Pratt (1981) and docs/theory/relevance-models.md#fitting-ordinal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from probeval.arrays import Floats, Ints
from probeval.errors import ModelError

__all__ = ["CumulativeFit", "Observations", "SeparationError", "fit_cumulative"]

ITERATIONS = 100
TOLERANCE = 1e-10  # on Newton's decrement, in units of log-likelihood
PSEUDO = 0.5  # pseudo-observations of each level, added if one is unobserved
LOOSE = 1e3  # standard error, in logits per standard deviation of the term, above which it is undetermined
FAR = 35.0  # logit beyond which a probability is numerically 0 or 1
SAME = 1e-12  # residual share of a term's square given the others, below which the term is redundant


class SeparationError(ModelError):
    """The levels are separated, so the likelihood has no maximum."""

    def __init__(self) -> None:
        super().__init__(
            "A term (or several together) separates the levels, so no fit is best. Drop it, or give a ridge."
        )


@dataclass(frozen=True, eq=False)
class Observations:
    """Graded pairs: their terms, their level, and the number of levels of their scale.

    Parameters
    ----------
    x
        Shape (observation, term).
    level, n_levels, weight
        Shape (observation,).
    """

    x: Floats
    level: Ints
    n_levels: Ints
    weight: Floats

    def take(
        self, rows: np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> Observations:
        """Return some of the observations, by position or mask."""
        return Observations(self.x[rows], self.level[rows], self.n_levels[rows], self.weight[rows])

    def without(self, term: int) -> Observations:
        """Return the observations without one term."""
        return Observations(np.delete(self.x, term, axis=1), self.level, self.n_levels, self.weight)


@dataclass(frozen=True, eq=False)
class CumulativeFit:
    """A fit: cutpoints by number of levels, coefficients, and diagnostics.

    ``covariance`` is of the cutpoints (by increasing number of levels), then the coefficients. ``unseen`` lists the
    levels without observations; their cutpoints rest on half a pseudo-observation per level.
    """

    cuts: Mapping[int, Floats]
    beta: Floats
    covariance: Floats
    log_likelihood: float
    iterations: int
    unseen: tuple[tuple[int, int], ...]


def fit_cumulative(data: Observations, *, ridge: float = 0.0) -> CumulativeFit:
    """Maximise the log-likelihood minus ``ridge`` times half the squared length of the coefficients.

    Raises
    ------
    ModelError
        If there is no maximum (a term separates the levels) and no ridge.
    """
    sizes = [int(n) for n in np.unique(data.n_levels)]
    if not sizes:
        raise ModelError("There is no judged pair to fit a model on.")
    unseen = tuple((n, lev) for n in sizes for lev in range(n) if not np.any(data.level[data.n_levels == n] == lev))
    if unseen:
        data = _with_pseudo(data, [n for n in sizes if any(m == n for m, _ in unseen)])
    problem = _Problem(data, sizes, ridge)
    theta = problem.start()
    value, gradient, information = problem(theta)
    for iteration in range(1, ITERATIONS + 1):  # noqa: B007 (kept as the count)
        step = _solve(information, gradient)
        decrement = float(gradient @ step)
        if decrement < TOLERANCE:
            break
        size = 1.0
        while True:
            candidate = theta + size * step
            if problem.ordered(candidate):
                new = problem(candidate)
                if new[0] >= value + 1e-4 * size * decrement or size < 1e-8:
                    break
            size /= 2
        theta, (value, gradient, information) = candidate, new
        if ridge == 0 and problem.separated(theta):
            raise SeparationError
    else:
        raise ModelError(f"The fit did not converge in {ITERATIONS} steps. Drop a term, or give a ridge.")
    cuts, beta = problem.split(theta)
    penalty = ridge * float(beta @ beta) / 2
    covariance = _solve(information, np.eye(len(theta)))
    if ridge == 0 and problem.loose(covariance):
        raise SeparationError
    return CumulativeFit(cuts, beta, covariance, value + penalty, iteration, unseen)


def _solve(information: Floats, right: Floats) -> Floats:
    size = np.sqrt(np.diag(information))
    try:
        factor = cho_factor(information / np.outer(size, size))
        if (np.diag(factor[0]) ** 2).min(initial=1.0) < SAME:
            raise np.linalg.LinAlgError
    except (np.linalg.LinAlgError, ValueError):  # singular, or a constant term
        raise ModelError(
            "Two terms say the same (or one is constant), so no fit is best. Drop one, or give a ridge."
        ) from None
    return np.asarray((cho_solve(factor, (right.T / size).T).T / size).T)


def _with_pseudo(data: Observations, sizes: list[int]) -> Observations:
    level = np.concatenate([np.arange(n) for n in sizes])
    n_levels = np.repeat(sizes, sizes)
    return Observations(
        np.concatenate([data.x, np.zeros((len(level), data.x.shape[1]))]),
        np.concatenate([data.level, level]),
        np.concatenate([data.n_levels, n_levels]),
        np.concatenate([data.weight, np.full(len(level), PSEUDO)]),
    )


class _Problem:
    """The penalised log-likelihood with its gradient and information, over stacked cutpoints and coefficients."""

    def __init__(self, data: Observations, sizes: list[int], ridge: float) -> None:
        self.data, self.sizes, self.ridge = data, sizes, ridge
        self.starts = dict(zip(sizes, np.cumsum([0] + [n - 1 for n in sizes]).tolist(), strict=False))
        self.n_cuts = sum(n - 1 for n in sizes)
        start = np.array([self.starts[int(n)] for n in sizes])[np.searchsorted(sizes, data.n_levels)]
        # Positions of the cutpoints above and below each observation; the ends have none.
        self.top, self.bottom = data.level == 0, data.level == data.n_levels - 1
        self.upper = np.where(self.top, 0, start + data.level - 1)
        self.lower = np.where(self.bottom, 0, start + data.level)

    def start(self) -> Floats:
        """Return the starting point: cutpoints from the shares of the levels, coefficients 0."""
        cuts = []
        for n in self.sizes:
            mine = self.data.n_levels == n
            count = np.bincount(self.data.level[mine], self.data.weight[mine], minlength=n)
            above = np.cumsum(count[::-1])[::-1][1:] / count.sum()
            cuts.append(np.log(above / (1 - above)))
        return np.concatenate([*cuts, np.zeros(self.data.x.shape[1])])

    def split(self, theta: Floats) -> tuple[dict[int, Floats], Floats]:
        """Return the cutpoints by number of levels, and the coefficients."""
        cuts = {n: theta[self.starts[n] : self.starts[n] + n - 1] for n in self.sizes}
        return cuts, theta[self.n_cuts :]

    def ordered(self, theta: Floats) -> bool:
        """Whether every scale's cutpoints are decreasing."""
        return all(np.all(np.diff(cut) < 0) for cut in self.split(theta)[0].values())

    def separated(self, theta: Floats) -> bool:
        """Whether a coefficient diverges: one standard deviation of its term moves the logit beyond numeric range."""
        return bool(np.any(np.abs(theta[self.n_cuts :]) * self.data.x.std(axis=0) > FAR))

    def loose(self, covariance: Floats) -> bool:
        """Whether a coefficient is undetermined: the likelihood is flat in it."""
        error = np.sqrt(np.diag(covariance)[self.n_cuts :])
        return bool(np.any(error * self.data.x.std(axis=0) > LOOSE))

    def __call__(self, theta: Floats) -> tuple[float, Floats, Floats]:
        data, weight = self.data, self.data.weight
        eta = data.x @ theta[self.n_cuts :]
        u = np.where(self.top, np.inf, theta[self.upper] + eta)
        v = np.where(self.bottom, -np.inf, theta[self.lower] + eta)
        fu, fv = expit(u), expit(v)
        # F(u) - F(v) without cancellation if both are near 1.
        p = np.maximum(np.where(v > 0, expit(-v) - expit(-u), fu - fv), 1e-300)
        du, dv = fu * expit(-u), fv * expit(-v)
        a, b = du / p, dv / p
        slope = a - b
        cu, cv = du * (1 - 2 * fu) / p, dv * (1 - 2 * fv) / p  # f'(u)/P, f'(v)/P
        value = float(weight @ np.log(p))
        beta = theta[self.n_cuts :]
        k, n = self.n_cuts, len(theta)
        gradient = np.zeros(n)
        gradient[:k] = np.bincount(self.upper, weight * a, minlength=k) - np.bincount(
            self.lower, weight * b, minlength=k
        )
        gradient[k:] = data.x.T @ (weight * slope) - self.ridge * beta
        information = np.zeros((n, n))
        diagonal = np.bincount(self.upper, weight * (a**2 - cu), minlength=k)
        diagonal += np.bincount(self.lower, weight * (b**2 + cv), minlength=k)
        information[np.arange(k), np.arange(k)] = diagonal
        np.add.at(information, (self.upper, self.lower), -weight * a * b)
        np.add.at(information, (self.lower, self.upper), -weight * a * b)
        cross_u, cross_v = weight * (a * slope - cu), weight * (cv - b * slope)
        for j in range(data.x.shape[1]):
            column = np.bincount(self.upper, cross_u * data.x[:, j], minlength=k)
            column += np.bincount(self.lower, cross_v * data.x[:, j], minlength=k)
            information[:k, k + j] = information[k + j, :k] = column
        curve = weight * (slope**2 - cu + cv)
        information[k:, k:] = (data.x * curve[:, None]).T @ data.x + self.ridge * np.eye(n - k)
        return value - self.ridge * float(beta @ beta) / 2, gradient, information
