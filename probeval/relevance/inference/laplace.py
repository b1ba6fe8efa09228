r"""The hierarchical model by Laplace's method: Newton with one block a query against a small global block.

Effects within a query make a Gaussian process over its pairs, with covariance
:math:`K_q = \sum_k \sigma_k^2 F_k F_k'`. Given the variances, the centre over the global effects (cutpoints, stretches,
coefficients, teams, systems) and over the processes at the judged pairs is found by Newton's method. With :math:`D` the
curvature of the log-likelihood there, only :math:`I + K D` of each query and the Schur complement of the global block
are factored. The log-likelihood is averaged over each judged pair's own posterior (a Gaussian variational
approximation), which mends the shrinkage of the plain mode. The variances are optimised, and then integrated over a few
points around their best, weighted by their marginal likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Codes, Floats, Ints
from probeval.errors import ModelError
from probeval.relevance.effects.normal import Normal
from probeval.relevance.inference.design import STRETCH, Design
from probeval.relevance.inference.expected_loglik import Averaged, Slopes, Spread, State
from probeval.relevance.inference.sampling import Effects, Normals, draw_effects, predictors

__all__ = ["LaplaceFit", "Problem", "Start", "fit_laplace"]

# Of Newton's method: steps, those in which spreads follow at once, and half way, before they are held; the share of the
# promised gain that a step must bring, and what may be left to gain, and to change in any spread, at the end.
NEWTON, EAGER, FOLLOWING, ENOUGH, TOLERANCE, BLUR = 60, 2, 20, 0.25, 0.05, 0.06
STEPS, STEP, SETTLED = 25, 0.7, 0.02  # of the search for the variances, on the log scale
LEAST_GAP, KNOWN = 0.02, 1e6  # between cutpoints; and the precision of what is held
POINTS = 6  # at which the variances are integrated


@dataclass(frozen=True, eq=False)
class Start:
    """Where a refit starts from: log standard deviations, effects, and each pair's weight (K^-1 f), with spreads.

    Stretches are those of all queries, weights those of all pairs; ``points`` are where the variances were integrated.
    """

    log_sd: Floats
    effects: Floats
    stretch: Floats
    weight: Floats
    spread: Spread
    points: tuple[Start, ...] = ()


@dataclass(frozen=True, eq=False)
class Block:
    """Queries with as many judged pairs as one another: their place among all judged pairs, as a stack of matrices."""

    where: slice
    queries: Ints
    size: int
    factors: Mapping[str, Floats]  # F of each kind, shape (query, judged, column)
    grams: Mapping[str, Floats] = field(init=False)  # F F', shape (query, judged, judged)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grams", {k: f @ f.transpose(0, 2, 1) for k, f in self.factors.items()})

    def stack(self, values: Floats) -> Floats:
        """What judged pairs have, query by query, shape (query, judged, ..)."""
        return values[self.where].reshape(len(self.queries), self.size, *values.shape[1:])


@dataclass(frozen=True, eq=False)
class Mode:
    """The centre given the variances, with what sampling around it needs; one matrix a block, (query, judged, judged).

    Judged pairs stand in the order of :attr:`Problem.pairs`.
    """

    log_sd: Floats
    effects: Floats  # global: cutpoint and gaps, stretches, coefficients, teams, systems
    weight: Floats  # K^-1 f at the judged pairs, shape (judged,)
    spread: Spread
    curve: Floats  # D, the curvature there
    local: Sequence[Floats]  # (K^-1 + D)^-1, the covariance of the process given the global effects
    pushed: Floats  # how the global effects move the weights, shape (judged, effect)
    schur: Floats  # Cholesky factor of the global information
    log_evidence: float


class Problem:
    """A campaign's judged pairs, laid out query by query."""

    def __init__(self, design: Design, judged: Codes) -> None:
        self.design, self.kinds, self.cuts = design, design.kinds, design.cuts
        rows = np.flatnonzero(judged >= 0)
        query = design.pool.query[rows]
        count = np.bincount(query, minlength=len(design.pool.queries))
        self.pairs = rows[np.lexsort((rows, query, count[query]))]
        self.blocks = tuple(self._blocks(count))
        self.level = design.scale.level_of(judged[self.pairs]).astype(np.int64)
        self.queries, self.place = np.unique(design.pool.query[self.pairs], return_inverse=True)
        self.rows = design.global_columns[self.pairs]
        n_cuts = len(self.cuts)
        sizes = [n_cuts, len(self.queries) * (STRETCH in self.kinds), design.terms.shape[1]]
        ends = np.cumsum([0, *sizes, design.team.shape[1], design.system.shape[1]])
        self.cut, self.stretch, self.term, team, system = (slice(int(a), int(b)) for a, b in pairwise(ends))
        self.shared = {"team": team, "system": system, STRETCH: self.stretch}
        self.n_effects = int(ends[-1])
        self.judged = Averaged(self.level, self.place, n_cuts=n_cuts, n_stretches=sizes[1])

    def _blocks(self, count: Ints) -> list[Block]:
        out, first = [], 0
        for size in np.unique(count[count > 0]):
            queries = np.flatnonzero(count == size)
            where = slice(first, first + int(size) * len(queries))
            mine = self.pairs[where].reshape(len(queries), size)
            out.append(Block(where, queries, int(size), {k: f[mine] for k, f in self.design.local.items()}))
            first = where.stop
        return out

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
        for kind, s in zip(self.kinds, log_sd, strict=True):
            if kind in self.shared:
                precision[self.shared[kind]] = np.exp(-2 * s)
        return mean, precision

    def covariance(self, log_sd: Floats) -> list[Floats]:
        """K of the judged pairs of each query, one stack a block, shape (query, judged, judged)."""
        variance = dict(zip(self.kinds, np.exp(2 * log_sd), strict=True))
        return [np.asarray(sum(variance[k] * g for k, g in block.grams.items())) for block in self.blocks]

    def times(self, matrices: Sequence[Floats], values: Floats) -> Floats:
        """Each query's matrix times what its judged pairs have, shape as ``values``."""
        wide = values if values.ndim == 2 else values[:, None]
        out = np.empty_like(wide)
        for block, matrix in zip(self.blocks, matrices, strict=True):
            out[block.where] = (matrix @ block.stack(wide)).reshape(-1, wide.shape[1])
        return out.reshape(values.shape)

    def start(self, mode: Mode) -> Start:
        """A mode as the start of another fit, of more judgments perhaps."""
        stretch, tilt = np.zeros((2, len(self.design.pool.queries)))
        weight, blur, tied = np.zeros((3, len(self.design.pool)))
        own = self.queries[: self.judged.n_stretches]
        stretch[own], tilt[own] = mode.effects[self.stretch], mode.spread.stretch
        weight[self.pairs], blur[self.pairs], tied[self.pairs] = mode.weight, mode.spread.predictor, mode.spread.tied
        return Start(mode.log_sd, np.delete(mode.effects, self.stretch), stretch, weight, Spread(blur, tied, tilt))

    def mode(self, log_sd: Floats, start: Start | None = None, *, averaged: bool = True) -> Mode:
        """The centre of the posterior given the variances.

        The mode of the posterior shrinks what it says of pairs that are judged once. So the log-likelihood is taken in
        the mean over each judged pair's own posterior, whose spread is found along with the centre; the plain mode
        where not ``averaged``.
        """
        mean, precision = self.global_prior(log_sd)
        k = self.covariance(log_sd)
        effects, weight = mean.copy(), np.zeros(len(self.pairs))
        spread = Spread(np.zeros(len(self.pairs)), np.zeros(len(self.pairs)), np.zeros(self.judged.n_stretches))
        if start is not None:
            own = self.queries[: self.judged.n_stretches]
            effects, weight = np.insert(start.effects, self.stretch.start, start.stretch[own]), start.weight[self.pairs]
            blur = start.spread.predictor[self.pairs]
            blur = np.where(blur > 0, blur, blur.sum() / max(np.count_nonzero(blur), 1))  # judged since: as the others
            spread = Spread(
                blur * averaged, start.spread.tied[self.pairs] * averaged, start.spread.stretch[own] * averaged
            )
        process = self.times(k, weight)

        def objective(effects: Floats, weight: Floats, process: Floats) -> tuple[float, State]:
            predictor = self.rows @ effects[self.stretch.stop :] + process
            value, state = self.judged.value(effects[: self.stretch.stop], predictor, spread)
            penalty = precision @ (effects - mean) ** 2 + weight @ process
            return value - float(penalty) / 2, state

        for number in range(NEWTON):
            value, state = objective(effects, weight, process)
            seen = self.judged.slopes(effects[: self.stretch.stop], state)
            opened = [np.eye(b.size) + m * b.stack(seen.curve)[:, None, :] for b, m in zip(self.blocks, k, strict=True)]
            local = [np.asarray(np.linalg.solve(o, m), dtype=np.float64) for o, m in zip(opened, k, strict=True)]
            cross = np.concatenate([seen.cross, self.rows * seen.curve[:, None]], axis=1)
            followed = self.times(local, cross)  # how the process gives way to the global effects
            pushed = cross - seen.curve[:, None] * followed
            schur = self._schur(seen, followed, pushed, precision)
            gradient = np.concatenate([seen.gradient, self.rows.T @ seen.slope]) - precision * (effects - mean)
            target = seen.slope + seen.curve * process
            step = _solve(schur, gradient - cross.T @ (self.times(local, target) - process))
            right = target - cross @ step
            ahead = self.times(local, right)
            move = step, right - seen.curve * ahead - weight, ahead - process
            decrement = float(gradient @ step + (seen.slope - weight) @ move[2])
            wider = self._spread(schur, followed, local) if averaged else spread
            held = number >= FOLLOWING  # centre and spread can chase one another: then the centre alone moves on
            settled = decrement < TOLERANCE and (held or wider.differs(spread) < BLUR)
            size = 1.0
            shut = self._shut(effects, step, precision)
            if len(shut):
                mean[shut], precision[shut], effects[shut] = LEAST_GAP, KNOWN, LEAST_GAP
                continue
            while True:
                trial = effects + size * step
                if np.all(trial[self.cut][1:] > 0):
                    if settled or size < 1e-6:
                        break
                    found, _ = objective(trial, weight + size * move[1], process + size * move[2])
                    if found >= value + ENOUGH * size * decrement:
                        break
                size /= 2
            effects, weight, process = (x + size * m for x, m in zip((effects, weight, process), move, strict=True))
            spread = spread.towards(wider, 1.0 if settled or number < EAGER else 0.0 if held else 0.5)
            if settled:
                break
        else:
            raise ModelError(f"Newton's method did not settle in {NEWTON} steps.")
        stretches = np.diag(seen.information)[self.stretch] - seen.bend
        traced = seen.curve @ spread.predictor**2 + stretches @ spread.stretch**2
        if len(stretches):
            mixed = np.take_along_axis(seen.cross, (self.stretch.start + self.place)[:, None], axis=1)[:, 0]
            traced += 2 * mixed @ (spread.tied * spread.stretch[self.place])
        log_det = sum(float(np.linalg.slogdet(o)[1].sum()) for o in opened)
        evidence = value + (decrement + np.log(precision).sum() - log_det + traced) / 2 - np.log(np.diag(schur)).sum()
        return Mode(log_sd, effects, weight, spread, seen.curve, local, pushed, schur, float(evidence))

    def _shut(self, effects: Floats, step: Floats, precision: Floats) -> Ints:
        """The gaps that a step would close for good: where a grade was never seen, the best gap can be none at all.

        Such a gap is then held at the least there can be.
        """
        gaps = np.arange(self.cut.start + 1, self.cut.stop)
        small = (effects[gaps] < 2 * LEAST_GAP) & (precision[gaps] < KNOWN)
        return gaps[small & ((effects + step)[gaps] < LEAST_GAP)]

    def _schur(self, seen: Slopes, followed: Floats, pushed: Floats, precision: Floats) -> Floats:
        """The Cholesky factor of the global information, the processes integrated out."""
        k = self.stretch.stop
        out = np.zeros((self.n_effects, self.n_effects))
        out[:k, :k] = seen.information - seen.cross.T @ followed[:, :k]
        out[k:] = self.rows.T @ pushed  # the lower triangle is enough
        out[np.diag_indices(self.n_effects)] += precision
        own = np.arange(self.stretch.start, self.stretch.stop)
        out[own, own] -= np.minimum(seen.bend, precision[own] / 2)  # never so much that the peak is lost
        return np.asarray(np.linalg.cholesky(out))

    def _spread(self, schur: Floats, followed: Floats, local: Sequence[Floats]) -> Spread:
        """The posterior standard deviations of what the log-likelihood is averaged over; gaps are taken as known."""
        moved = -followed
        moved[:, 0] += 1.0
        moved[:, self.stretch.stop :] += self.rows
        inverse = solve_triangular(schur, np.eye(self.n_effects), lower=True, check_finite=False)
        moved = moved @ inverse.T
        variance = (moved**2).sum(axis=1)
        for block, covariance in zip(self.blocks, local, strict=True):
            variance[block.where] += np.diagonal(covariance, axis1=1, axis2=2).ravel()
        stretch, tied = np.sqrt((inverse[:, self.stretch] ** 2).sum(axis=0)), np.zeros(len(variance))
        if len(stretch):
            tied = (moved * (inverse[:, self.stretch] / stretch).T[self.place]).sum(axis=1)
        return Spread(np.sqrt(variance), tied, stretch)

    def influence(self, mode: Mode) -> tuple[Floats, Floats, Floats]:
        r"""For each kind, how many effects the data determine, the information on its log sd, and the evidence's slope.

        With :math:`\rho` the share of an effect that the data determine, the number is :math:`\sum \rho` and the
        information :math:`2 \sum \rho^2`.
        """
        # The uncertainty of the global effects takes back part of what the judged pairs say of the local ones.
        back = solve_triangular(mode.schur, mode.pushed.T, lower=True).T
        inverse = solve_triangular(mode.schur, np.eye(self.n_effects), lower=True)
        covariance = inverse.T @ inverse
        resolvents = self.resolvents(mode)
        used, information, pull = [], [], []
        for kind, s in zip(self.kinds, mode.log_sd, strict=True):
            v = np.exp(2 * s)
            if kind in self.shared:
                where = self.shared[kind]
                share = np.eye(where.stop - where.start) - covariance[where, where] / v
                used.append(max(float(np.trace(share)), 0.0))
                information.append(2 * float((share**2).sum()))
                pull.append(float(np.sum(mode.effects[where] ** 2) / v) - float(np.trace(share)))
                continue
            trace = norm = square = 0.0
            for block, resolvent in zip(self.blocks, resolvents, strict=True):
                gram, weight, mine = block.grams[kind], block.stack(mode.weight), block.stack(back)
                trace += float((resolvent * gram).sum()) - float((mine * (gram @ mine)).sum())
                norm += float((weight[:, None, :] @ gram @ weight[..., None]).sum())
                reached = resolvent @ gram
                square += float((reached * reached.transpose(0, 2, 1)).sum())
            used.append(max(v * trace, 0.0))
            information.append(2 * v**2 * square)
            pull.append(v * (norm - trace))
        return np.array(used), np.array(information), np.array(pull)

    def resolvents(self, mode: Mode) -> list[Floats]:
        """(K + D^-1)^-1 = D - D (K^-1 + D)^-1 D of each query."""
        out = []
        for block, local in zip(self.blocks, mode.local, strict=True):
            curve = block.stack(mode.curve)
            out.append(np.eye(block.size) * curve[..., None] - curve[..., None] * local * curve[:, None, :])
        return out

    def cut_slopes(self, by_cut: Floats, mode: Mode) -> tuple[Floats, Floats]:
        """What has these slopes in its own cutpoints, shape (pair, cut), has these in the cut effects.

        Returns the slopes in the first cutpoint, the gaps and the judged queries' stretches, shape (pair, cut effect),
        and those in the other queries' stretches, in units of their standard deviation, shape (pair, query).
        """
        query, n_queries = self.design.pool.query, len(self.design.pool.queries)
        stretch = np.zeros(n_queries)
        own = self.queries[: self.judged.n_stretches]
        stretch[own] = mode.effects[self.stretch]
        apart = np.exp(stretch)[query, None] * (by_cut @ self.judged.scale)
        first = by_cut.sum(axis=1, keepdims=True)
        bent = (apart @ mode.effects[1 : self.cut.stop])[:, None]
        loose = np.setdiff1d(np.arange(n_queries), own) if STRETCH in self.kinds else own
        sd = np.exp(mode.log_sd[-1])
        known, unknown = (bent * (query[:, None] == some) for some in (own, loose))
        return np.concatenate([first, first * self.judged.middle + apart, known], axis=1), sd * unknown


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
        return replace(self.problem.start(self.best), points=tuple(map(self.problem.start, self.modes)))

    @property
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each kind's log standard deviation, in normal form."""
        mean = self.weights @ np.array([m.log_sd for m in self.modes])
        return {k: Normal(float(m), float(s)) for k, m, s in zip(self.problem.kinds, mean, self.spread, strict=True)}

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws of every pair's linear predictor and every query's cutpoints, shapes (n, pair) and (n, query, cut)."""
        ends = np.round(np.cumsum(self.weights) * n).astype(np.int64)  # of each point's draws, as its weight says
        ends[-1] = n
        normals = Normals.of(self.problem, n, rng)
        parts = [
            draw_effects(self.problem, mode, normals[begin:end])
            for mode, begin, end in zip(self.modes, [0, *ends], ends, strict=False)
        ]
        return predictors(self.problem, Effects.joined(parts)[rng.permutation(n)])


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
        The campaign with the priors of all parts of the model, and what is judged, shape (pair,). The design of one
        collection serves any judgments.
    start
        Where an earlier fit ended: a few steps then suffice.
    steps, points
        How many steps to search for the variances, and at how many points to integrate over them.
    """
    problem = Problem(design, judged)
    mean = np.array([p.mean for p in problem.log_sd_priors])
    sd = np.array([p.sd for p in problem.log_sd_priors])
    mode = problem.mode(mean if start is None else start.log_sd, start)
    used, information, pull = problem.influence(mode)
    for _ in range(steps if len(problem.pairs) else 0):
        curve = 1 / sd**2 + np.maximum(2 * used, 0.1)  # more than the information: small steps settle
        step = np.clip((pull - (mode.log_sd - mean) / sd**2) / curve, -STEP, STEP)
        if np.abs(step).max() < SETTLED:
            break
        mode = problem.mode(mode.log_sd + step, problem.start(mode))
        used, information, pull = problem.influence(mode)
    spread = 1 / np.sqrt(1 / sd**2 + information)
    if points < 2:
        return LaplaceFit(problem, mode, (mode,), np.ones(1), spread)
    offsets = _spread_points(points, len(mean))
    starts = (problem.start(mode),) * points if start is None or len(start.points) != points else start.points
    modes = tuple(problem.mode(mode.log_sd + spread * z, s) for z, s in zip(offsets, starts, strict=True))
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


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(solve_triangular(factor.T, solve_triangular(factor, right, lower=True), lower=False))
