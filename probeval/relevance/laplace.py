r"""The hierarchical model by Laplace's method: Newton with one block a query against a small global block.

Effects within a query make a Gaussian process over its pairs, with covariance
:math:`K_q = \sum_k \sigma_k^2 F_k F_k'`. Given the variances, the mode over the global effects (cutpoints,
coefficients, teams, systems) and over the processes at the judged pairs is found by Newton's method. With :math:`D` the
curvature of the log-likelihood there, only :math:`B = I + D^{1/2} K D^{1/2}` of each query and the Schur complement of
the global block are factored. The log-likelihood is averaged over each judged pair's own posterior, which mends the
shrinkage of the plain mode. The variances are optimised, and then integrated over a few points around their best,
weighted by their marginal likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from probeval.arrays import Codes, Floats, Ints
from probeval.errors import ModelError
from probeval.relevance.hierarchical import GLOBAL, Design, Normal

__all__ = ["LaplaceFit", "Problem", "Start", "fit_laplace"]

NEWTON, TOLERANCE = 50, 1e-7
STEPS, STEP, SETTLED = 25, 0.7, 0.02  # of the search for the variances, on the log scale
POINTS = 8  # at which the variances are integrated
ROUNDS = 2  # of finding each judged pair's spread
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()

State = tuple[Floats, Floats, Floats]  # the two logits and the probability of each judged pair


@dataclass(frozen=True, eq=False)
class Start:
    """Where a refit starts from: log standard deviations, global effects, and each pair's weight (K^-1 f)."""

    log_sd: Floats
    effects: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode given the variances, with what sampling around it needs."""

    log_sd: Floats
    effects: Floats  # global: cutpoint and gaps, coefficients, teams, systems
    weight: Floats  # K^-1 f at the judged pairs, shape (query, judged)
    root: Floats  # sqrt of the curvature there
    resolvent: Floats  # (K + D^-1)^-1 there, shape (query, judged, judged)
    cross: Floats  # how the global effects move the judged pairs' gradient, shape (query, judged, effect)
    schur: Floats  # Cholesky factor of the global information
    log_evidence: float
    used: Floats  # how many effects of each kind the data determine
    information: Floats  # what the data say of each log standard deviation, as a precision
    pull: Floats  # gradient of the log evidence in the log standard deviations


class Problem:
    """A campaign's judged pairs, laid out query by query."""

    def __init__(self, design: Design, judged: Codes) -> None:
        self.design = design
        self.kinds = (*design.local, *GLOBAL)
        missing = [kind for kind in self.kinds if kind not in design.log_sds]
        if missing:
            raise ModelError(f"The prior has no variance for {', '.join(missing)}.")
        self.cuts = design.cuts
        level = design.scale.level_of(judged)
        self.index = _by_query(design.pool.query, np.flatnonzero(judged >= 0), len(design.pool.queries))
        self.real = self.index >= 0
        self.level = np.where(self.real, level[self.index], 0).astype(np.int64)
        self.global_columns = np.concatenate([design.terms, design.team, design.system], axis=1)
        self.rows = np.where(self.real[..., None], self.global_columns[self.index], 0.0)
        self.factors = {k: np.where(self.real[..., None], f[self.index], 0.0) for k, f in design.local.items()}
        self.grams = {k: f @ f.transpose(0, 2, 1) for k, f in self.factors.items()}
        n_cuts, n_terms = len(self.cuts), design.terms.shape[1]
        ends = np.cumsum([0, n_cuts, n_terms, design.team.shape[1], design.system.shape[1]])
        self.cut, self.term, self.team, self.system = (slice(int(a), int(b)) for a, b in pairwise(ends))
        self.n_effects = int(ends[-1])
        # Each cutpoint is the first one less the gaps before it.
        self.gap_matrix = np.concatenate([np.ones((n_cuts, 1)), -np.tri(n_cuts)[:, 1:]], axis=1)
        # The cutpoints above and below each judged pair, as sums of the first one and gaps; the ends have none.
        padded = np.concatenate([np.zeros((1, n_cuts)), self.gap_matrix, np.zeros((1, n_cuts))])
        self.above, self.below = padded[self.level], padded[self.level + 1]

    @property
    def log_sd_priors(self) -> list[Normal]:
        """The prior of each kind's log standard deviation."""
        return [self.design.log_sds[kind] for kind in self.kinds]

    def global_prior(self, log_sd: Floats) -> tuple[Floats, Floats]:
        """Mean and precision of the global effects."""
        mean, precision = np.zeros(self.n_effects), np.empty(self.n_effects)
        for where, priors in ((self.cut, self.cuts), (self.term, self.design.coefficients)):
            mean[where] = [p.mean for p in priors]
            precision[where] = [p.sd**-2.0 for p in priors]
        sd = dict(zip(self.kinds, np.exp(log_sd), strict=True))
        precision[self.team], precision[self.system] = sd["team"] ** -2, sd["system"] ** -2
        return mean, precision

    def covariance(self, log_sd: Floats) -> Floats:
        """K of the judged pairs of each query, shape (query, judged, judged)."""
        parts = zip(self.kinds, log_sd, strict=True)
        return np.asarray(sum(np.exp(2 * s) * self.grams[k] for k, s in parts if k in self.grams))

    def likelihood(self, effects: Floats, process: Floats) -> tuple[float, State]:
        """The log-likelihood, and the two logits and the probability of each judged pair."""
        eta = self.rows @ effects[self.cut.stop :] + process
        high = np.where(self.level == 0, np.inf, self.above @ effects[self.cut] + eta)
        low = np.where(self.level == len(self.cuts), -np.inf, self.below @ effects[self.cut] + eta)
        p = np.maximum(np.where(low > 0, expit(-low) - expit(-high), expit(high) - expit(low)), 1e-300)
        return float(np.log(p)[self.real].sum()), (high, low, p)

    def start(self, mode: Mode) -> Start:
        """A mode as the start of another fit, of more judgments perhaps."""
        weight = np.zeros(len(self.design.pool))
        weight[self.index[self.real]] = mode.weight[self.real]
        return Start(mode.log_sd, mode.effects, weight)

    def mode(self, log_sd: Floats, start: Start | None = None) -> Mode:
        """The centre of the posterior given the variances.

        The mode of the posterior shrinks what it says of pairs that are judged once. So the log-likelihood is taken in
        the mean over each judged pair's own posterior (a Gaussian variational approximation), whose spread is found in
        a few rounds from the mode.
        """
        mode = self._newton(log_sd, start, None)
        if not self.real.any():
            return mode
        for _ in range(ROUNDS):
            mode = self._newton(log_sd, self.start(mode), self._spread(mode))
        traced = float((mode.root**2 * self._spread(mode) ** 2).sum()) / 2
        return replace(mode, log_evidence=mode.log_evidence + traced)

    def _newton(self, log_sd: Floats, start: Start | None, blur: Floats | None) -> Mode:
        """Newton's method for the mode, the log-likelihood averaged over ``blur`` in each judged pair's logit."""
        mean, precision = self.global_prior(log_sd)
        k = self.covariance(log_sd)
        effects, weight = mean.copy(), np.zeros(self.level.shape)
        if start is not None:
            effects, weight = start.effects, np.where(self.real, start.weight[self.index], 0.0)
        process = _times(k, weight)
        value, state = self._objective(effects, weight, process, mean, precision, blur)
        for _ in range(NEWTON):
            slope, curve, cross, cut_gradient, information = self._derivatives(state)
            root = np.sqrt(curve)
            b = np.eye(k.shape[1]) + root[..., None] * k * root[:, None, :]
            factor = np.linalg.cholesky(b)
            resolvent = root[..., None] * np.linalg.inv(b) * root[:, None, :]  # R = D^1/2 B^-1 D^1/2
            information[np.diag_indices(self.n_effects)] += precision
            smoothed = k @ cross
            smoothed -= k @ (resolvent @ smoothed)  # (K^-1 + D)^-1 M
            flat = cross.reshape(-1, self.n_effects)
            schur = np.asarray(np.linalg.cholesky(information - flat.T @ smoothed.reshape(-1, self.n_effects)))
            target = slope + curve * process
            rest = _times(k, target - _times(resolvent, _times(k, target)))
            gradient = np.concatenate([cut_gradient, np.tensordot(self.rows, slope, axes=([0, 1], [0, 1]))])
            gradient -= precision * (effects - mean)
            step = _solve(schur, gradient - flat.T @ (rest - process).ravel())
            right = target - cross @ step
            new_weight = right - _times(resolvent, _times(k, right))
            new_process = _times(k, new_weight)
            decrement = float(gradient @ step + (slope - weight).ravel() @ (new_process - process).ravel())
            if decrement < TOLERANCE:
                break
            size = 1.0
            while True:
                trial = effects + size * step
                trial_weight, trial_process = (
                    a + size * (b - a) for a, b in ((weight, new_weight), (process, new_process))
                )
                if np.all(trial[self.cut][1:] > 0):
                    trial_value, trial_state = self._objective(
                        trial, trial_weight, trial_process, mean, precision, blur
                    )
                    if trial_value >= value + 1e-4 * size * decrement or size < 1e-6:
                        break
                size /= 2
            effects, weight, process, value, state = trial, trial_weight, trial_process, trial_value, trial_state
        else:
            raise ModelError(f"Newton's method did not settle in {NEWTON} steps.")
        evidence = value - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum() - np.log(np.diag(schur)).sum()
        evidence += np.log(precision).sum() / 2
        said = self._influence(log_sd, effects, weight, curve, resolvent, cross, schur)
        return Mode(log_sd, effects, weight, root, resolvent, cross, schur, float(evidence), *said)

    def _objective(
        self,
        effects: Floats,
        weight: Floats,
        process: Floats,
        mean: Floats,
        precision: Floats,
        blur: Floats | None,
    ) -> tuple[float, list[tuple[float, State]]]:
        """The penalised log-likelihood, and the weight and state of each node that it is averaged over."""
        nodes = [(1.0, 0.0)] if blur is None else list(zip(WEIGHTS, NODES, strict=True))
        said = [(w, self.likelihood(effects, process if blur is None else process + x * blur)) for w, x in nodes]
        penalty = precision @ (effects - mean) ** 2 + float(weight.ravel() @ process.ravel())
        return sum(w * value for w, (value, _) in said) - float(penalty) / 2, [(w, state) for w, (_, state) in said]

    def _spread(self, mode: Mode) -> Floats:
        """The posterior standard deviation of each judged pair's logit, shape (query, judged)."""
        k = self.covariance(mode.log_sd)
        own = k - k @ (mode.resolvent @ k)
        moved = k @ mode.cross
        moved -= k @ (mode.resolvent @ moved)
        columns = np.concatenate([np.zeros((*self.level.shape, self.cut.stop)), self.rows], axis=2)
        columns[..., 0] = 1.0
        shared = solve_triangular(mode.schur, (columns - moved).reshape(-1, self.n_effects).T, lower=True)
        variance = (shared**2).sum(axis=0).reshape(self.level.shape) + np.diagonal(own, axis1=1, axis2=2)
        return np.where(self.real, np.sqrt(np.maximum(variance, 0.0)), 0.0)

    def _derivatives(self, states: list[tuple[float, State]]) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Slope and curvature in the logit, its cross terms, and gradient and information of the global effects."""
        averaged = np.sum([w * np.where(self.real, _pointwise(*state), 0.0) for w, state in states], axis=0)
        slope, curve, cross_high, cross_low, high, low, both, a, b = averaged
        curve = np.maximum(curve, 0.0)
        cut_cross = cross_high[..., None] * self.above + cross_low[..., None] * self.below
        cross = np.concatenate([cut_cross, self.rows * curve[..., None]], axis=2)
        n, k = self.n_effects, self.cut.stop
        information = np.zeros((n, n))
        information[k:, :] = self.rows.reshape(-1, n - k).T @ cross.reshape(-1, n)
        information[:k, k:] = information[k:, :k].T
        above, below = self.above.reshape(-1, k), self.below.reshape(-1, k)
        shared = above.T @ (below * both.reshape(-1, 1))
        information[:k, :k] = above.T @ (above * high.reshape(-1, 1)) - shared - shared.T
        information[:k, :k] += below.T @ (below * low.reshape(-1, 1))
        return slope, curve, cross, above.T @ a.ravel() - below.T @ b.ravel(), information

    def _influence(
        self,
        log_sd: Floats,
        effects: Floats,
        weight: Floats,
        curve: Floats,
        resolvent: Floats,
        cross: Floats,
        schur: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        r"""For each kind, how many effects the data determine, the information on its log sd, and the evidence's slope.

        With :math:`\rho` the share of an effect that the data determine, the number is :math:`\sum \rho` and the
        information :math:`2 \sum \rho^2`.
        """
        # The uncertainty of the global effects takes back part of what the judged pairs say of the local ones.
        moved = resolvent @ (cross * np.where(curve > 0, 1 / np.maximum(curve, 1e-300), 0.0)[..., None])
        spread = solve_triangular(schur, moved.reshape(-1, self.n_effects).T, lower=True).T.reshape(moved.shape)
        inverse = solve_triangular(schur, np.eye(self.n_effects), lower=True)
        covariance = inverse.T @ inverse
        used, information, pull = [], [], []
        for kind, s in zip(self.kinds, log_sd, strict=True):
            v = np.exp(2 * s)
            if kind in self.grams:
                columns = self.factors[kind].transpose(0, 2, 1)
                trace = float((resolvent * self.grams[kind]).sum()) - float(((columns @ spread) ** 2).sum())
                norm = float(((columns @ weight[..., None]) ** 2).sum())
                used.append(max(v * trace, 0.0))
                information.append(2 * v**2 * float(((columns @ resolvent @ self.factors[kind]) ** 2).sum()))
                pull.append(v * (norm - trace))
            else:
                where = self.team if kind == "team" else self.system
                share = np.eye(where.stop - where.start) - covariance[where, where] / v
                used.append(max(float(np.trace(share)), 0.0))
                information.append(2 * float((share**2).sum()))
                pull.append(float(np.sum(effects[where] ** 2) / v) - float(np.trace(share)))
        return np.array(used), np.array(information), np.array(pull)

    def draw(self, mode: Mode, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mode: the linear predictor of every pair and the cutpoints, shapes (n, pair) and (n, cut)."""
        moved = solve_triangular(mode.schur.T, rng.standard_normal((self.n_effects, n)), lower=False)
        effects = mode.effects[:, None] + moved
        eta = self.global_columns @ effects[self.cut.stop :]
        k = self.covariance(mode.log_sd)
        sds = dict(zip(self.kinds, np.exp(mode.log_sd), strict=True))
        prior = {kind: rng.standard_normal((len(k), f.shape[2], n)) * sds[kind] for kind, f in self.factors.items()}
        at_judged = sum(self.factors[kind] @ b for kind, b in prior.items())
        noise = rng.standard_normal((*self.level.shape, n))
        # Observations of the process with precision D: noise over sqrt(D), and nothing where nothing is judged.
        seen = at_judged + noise * np.where(mode.root > 0, 1 / np.maximum(mode.root, 1e-150), 0.0)[..., None]
        shift = mode.cross @ moved
        shift = shift - mode.resolvent @ (k @ shift)
        weight = mode.weight[..., None] - shift - mode.resolvent @ seen
        query = self.design.pool.query
        edges = np.searchsorted(query, np.arange(len(k) + 1))
        for q in range(len(k)):
            mine = slice(edges[q], edges[q + 1])
            for kind, columns in self.design.local.items():
                effect = prior[kind][q] + sds[kind] ** 2 * self.factors[kind][q].T @ weight[q]
                eta[mine] += columns[mine] @ effect
        return eta.T, (self.gap_matrix @ effects[self.cut]).T


@dataclass(frozen=True, eq=False)
class LaplaceFit:
    """The posterior: the best setting of the variances, others around it with their weights, and each log sd's sd."""

    problem: Problem
    best: Mode
    modes: tuple[Mode, ...]
    weights: Floats
    spread: Floats

    @property
    def start(self) -> Start:
        """Where the next refit can start from."""
        return self.problem.start(self.best)

    @property
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each kind's log standard deviation, in normal form."""
        mean = self.weights @ np.array([m.log_sd for m in self.modes])
        return {k: Normal(float(m), float(s)) for k, m, s in zip(self.problem.kinds, mean, self.spread, strict=True)}

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws of every pair's linear predictor and of the cutpoints, shapes (n, pair) and (n, cut)."""
        counts = _shared_out(self.weights, n)
        parts = [self.problem.draw(mode, int(c), rng) for mode, c in zip(self.modes, counts, strict=True) if c]
        eta, cuts = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
        order = rng.permutation(n)
        return eta[order], cuts[order]


def fit_laplace(
    design: Design,
    judged: Codes,
    *,
    start: Start | None = None,
    steps: int = STEPS,
    points: int = POINTS,
) -> LaplaceFit:
    """Fit the model to the judged pairs (grades as positions on the scale, negative where there is none).

    Parameters
    ----------
    design, judged
        The campaign with the priors of all parts of the model, and what is judged, shape (pair,).
    start
        Where an earlier fit ended: a few steps then suffice.
    steps, points
        How many steps to search for the variances, and at how many points to integrate over them.
    """
    problem = Problem(design, judged)
    mean = np.array([p.mean for p in problem.log_sd_priors])
    sd = np.array([p.sd for p in problem.log_sd_priors])
    log_sd = mean if start is None else start.log_sd
    mode = problem.mode(log_sd, start)
    for _ in range(steps if problem.real.any() else 0):
        curve = 1 / sd**2 + np.maximum(2 * mode.used, 0.1)  # more than the information: small steps settle
        step = np.clip((mode.pull - (log_sd - mean) / sd**2) / curve, -STEP, STEP)
        if np.abs(step).max() < SETTLED:
            break
        log_sd = log_sd + step
        mode = problem.mode(log_sd, problem.start(mode))
    spread = 1 / np.sqrt(1 / sd**2 + mode.information)
    if points < 2:
        return LaplaceFit(problem, mode, (mode,), np.ones(1), spread)
    offsets = _spread_points(points, len(mean))
    modes = tuple(problem.mode(mode.log_sd + spread * z, problem.start(mode)) for z in offsets)
    # Importance weights: the posterior over the normal that the points were drawn from.
    log_weight = np.array([m.log_evidence - np.sum(((m.log_sd - mean) / sd) ** 2) / 2 for m in modes])
    log_weight += (offsets**2).sum(axis=1) / 2
    weight = np.exp(log_weight - log_weight.max()) + 1e-12
    return LaplaceFit(problem, mode, modes, weight / weight.sum(), spread)


def _spread_points(n: int, dimension: int) -> Floats:
    """The same points every time, in pairs around zero and of mean square 1 in each dimension, shape (n, dimension)."""
    half = np.random.default_rng(0).standard_normal(((n + 1) // 2, dimension))
    half /= np.sqrt((half**2).mean(axis=0))
    return np.concatenate([half, -half])[:n]


def _pointwise(high: Floats, low: Floats, p: Floats) -> Floats:
    """What the derivatives are made of at each judged pair: all that must be averaged, shape (9, query, judged)."""
    f_high, f_low = expit(high), expit(low)
    a, b = f_high * expit(-high) / p, f_low * expit(-low) / p
    c_high, c_low = a * (1 - 2 * f_high), b * (1 - 2 * f_low)
    slope = a - b
    curve = slope**2 - c_high + c_low
    return np.stack([slope, curve, a * slope - c_high, c_low - b * slope, a**2 - c_high, b**2 + c_low, a * b, a, b])


def _by_query(query: Ints, rows: Ints, n_queries: int) -> Ints:
    """The rows of each query side by side, -1 past the end, shape (query, judged)."""
    count = np.bincount(query[rows], minlength=n_queries)
    out = np.full((n_queries, max(int(count.max(initial=0)), 1)), -1)
    out[query[rows], np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)] = rows
    return out


def _times(matrix: Floats, vector: Floats) -> Floats:
    """A stack of matrices times a stack of vectors."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(solve_triangular(factor.T, solve_triangular(factor, right, lower=True), lower=False))


def _shared_out(weights: Floats, n: int) -> Ints:
    """How many of ``n`` draws each point gets: as its weight says, rounded so that they sum to ``n``."""
    edges = np.round(np.cumsum(weights) * n).astype(np.int64)
    edges[-1] = n
    return np.diff(edges, prepend=0)
