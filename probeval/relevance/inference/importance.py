r"""A check of Laplace's method: the importance weights of its draws, and Pareto's k of their tail.

The weight of a draw is the posterior density over the normal that it was drawn from. If no weight stands out, the
normal covers the posterior; a heavy tail of weights shows that it does not. With :math:`M` draws in the tail, whose
excesses over the rest follow a generalised Pareto distribution, k is its shape: weights have a finite variance where
k < 1/2, and the approximation is good where k < .7 (Vehtari et al. 2024, Yao et al. 2018).

All parameters are weighed at once, several hundred of them, so k is a strict check: scores, which are means over
queries, can be good with a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.effects.cutpoints import log_probability

if TYPE_CHECKING:
    from probeval.relevance.inference.blocks import JudgedPairs
    from probeval.relevance.inference.laplace import LaplacePosterior
    from probeval.relevance.inference.newton import Mode
    from probeval.relevance.inference.posterior import Draws
    from probeval.relevance.inference.sampling import LaplaceDraws

__all__ = ["ImportanceCheck", "judged_predictors", "log_weights", "pareto_k"]

HIGHEST = 0.7  # the largest k of an approximation that is good
LEAST_TAIL = 5  # draws in the tail, to fit its shape
EQUAL = 1e-10  # difference of two weights, relative to the largest, that is rounding
NUMBERS = 2_000_000  # in any one array


@dataclass(frozen=True)
class ImportanceCheck:
    """The importance weights of Laplace's draws: Pareto's k, and the number of draws that they are worth.

    >>> ImportanceCheck(pareto_k=0.83, ess=41.2).problems
    ('Pareto k of 0.83 (more than 0.7)',)
    """

    pareto_k: Annotated[float, "The shape of the tail of the weights; more than .7 is a poor approximation."]
    ess: Annotated[float, "The effective sample size of the weighted draws."]

    def __str__(self) -> str:
        if self.pareto_k == float("-inf"):
            return "all importance weights are equal"
        return f"Pareto k {self.pareto_k:.2f} of importance weights, worth {self.ess:.0f} draws"

    @property
    def problems(self) -> tuple[str, ...]:
        """Descriptions of the failed checks; empty if all pass."""
        if self.pareto_k <= HIGHEST:
            return ()
        return (f"Pareto k of {self.pareto_k:.2f} (more than {HIGHEST:g})",)

    @classmethod
    def of(cls, log_weight: Floats) -> ImportanceCheck:
        """Return the check of some draws' log weights."""
        weight = np.exp(log_weight - log_weight.max())
        return cls(pareto_k(log_weight), float(weight.sum() ** 2 / (weight**2).sum()))


def pareto_k(log_weight: Floats) -> float:
    r"""Return the shape of the generalised Pareto distribution of the largest weights.

    The tail has :math:`M = \min(n/5, 3\sqrt n)` of the :math:`n` weights. Its shape is that of Zhang and Stephens
    (2009): the mean over a grid of :math:`\theta` of :math:`\hat k(\theta) = \text{mean} \log(1 - \theta x)`, weighted
    by the profile likelihood; then shrunk towards .5 as if by ten more draws (Vehtari et al. 2024). NaN with fewer than
    five draws in the tail.
    """
    n = len(log_weight)
    size = int(np.ceil(min(n / 5, 3 * np.sqrt(n))))
    ordered = np.sort(log_weight - log_weight.max())
    if size < LEAST_TAIL:
        return float("nan")
    excess = np.exp(ordered[-size:]) - np.exp(ordered[-size - 1])
    quartile = excess[int(size / 4 + 0.5) - 1]
    if quartile <= EQUAL:
        return float("-inf")  # weights are equal, but for rounding: nothing is judged, or many draws are the same
    grid = 30 + int(np.sqrt(size))
    theta = 1 / excess[-1] + (1 - np.sqrt(grid / (np.arange(grid) + 0.5))) / (3 * quartile)
    shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
    profile = size * (np.log(-theta / shape) - shape - 1)
    weight = np.exp(profile - profile.max())
    mean = float(weight @ theta / weight.sum())
    k = float(np.log1p(-mean * excess).mean())
    return (size * k + 10 * 0.5) / (size + 10)


def judged_predictors(draws: Draws, pairs: Ints) -> tuple[Floats, Floats]:
    """Return the linear predictors of some pairs, in increasing order, and their cutpoints under each draw.

    Shapes (n, pair) and (n, pair, cut).
    """
    pool = draws.design.pool
    eta, cuts = [], []
    for block in pool.blocks(max(NUMBERS // max(draws.n, 1), 1)):
        mine = pairs[slice(*np.searchsorted(pairs, [block.pairs.start, block.pairs.stop]))]
        whole_eta, whole_cuts = draws.block(block)
        eta.append(whole_eta[:, mine - block.pairs.start])
        cuts.append(whole_cuts[:, pool.query[mine] - block.queries.start])
    return np.concatenate(eta, axis=1), np.concatenate(cuts, axis=1)


def log_weights(posterior: LaplacePosterior, draws: LaplaceDraws) -> Floats:
    r"""Return the log of each draw's posterior density over that of the normal it came from, shape (n,).

    Around a centre with prior precision :math:`P` of the campaign's deviation :math:`\delta g` and :math:`K^{-1}` of
    the local one :math:`\delta x`, the normal has the precision of the prior plus the information :math:`I` on both, so
    that the prior's quadratic terms cancel:

    .. math:: \log w = \ell(g, x) - \hat w'\delta x - (\hat g - \mu)'P\,\delta g + \tfrac12 \delta'I\delta + c

    with :math:`\hat w = K^{-1}\hat x`. The constant :math:`c` of each centre has its share in the draws, the
    determinants of both normals, and the prior's density at the centre.
    """
    problem = posterior.problem
    order = np.argsort(problem.pairs)
    eta, cuts = judged_predictors(draws, problem.pairs[order])
    level = problem.level[order]
    out = log_probability(eta, cuts, level).sum(axis=1)
    back = np.argsort(order)
    predictors, scales = eta[:, back].T, np.empty((0, draws.n))
    if problem.design.cutpoint_scale is not None:
        scales = draws.local(problem.design.pool.whole)[problem.design.cutpoint_scale.name][problem.queries, 0]
    moved = draws.moved[:, draws.order]
    for i, (given, mode) in enumerate(zip(draws.problems, draws.modes, strict=True)):
        at = np.flatnonzero(draws.centre == i)
        if len(at):
            out[at] += _over_normal(given, mode, moved[:, at], predictors[:, at], scales[:, at])
            gaps = mode.campaign[problem.layout["gaps"], None] + moved[problem.layout["gaps"]][:, at]
            out[at[(gaps <= 0).any(axis=0)]] = -np.inf  # cutpoints out of order have no density
    return np.asarray(out)


def _over_normal(problem: JudgedPairs, mode: Mode, moved: Floats, predictors: Floats, scales: Floats) -> Floats:
    """Return the log of the prior's density over that of the normal around a centre, shape (n,)."""
    prior = problem.given(mode.log_sd)
    campaign = mode.campaign[problem.layout.columns, None] + moved[problem.layout.columns]
    local = np.zeros((problem.n_local, moved.shape[1]))
    local[problem.at_pair] = predictors - (np.reshape(problem.offset, (-1, 1)) + problem.rows @ campaign)
    local[problem.at_scale] = scales
    shift = local - mode.local[:, None]
    seen = np.empty_like(shift)  # H times the shift
    for block, arrow in zip(problem.blocks, mode.arrows, strict=True):
        seen[block.where] = arrow.times(block.stack(shift)).reshape(-1, shift.shape[1])
    # The Schur complement is G + P - C'LC.
    information = mode.schur @ mode.schur.T + mode.cross.T @ mode.followed - prior.precision
    squares = (shift * (seen + 2 * mode.cross @ moved)).sum(axis=0) + (moved * (information @ moved)).sum(axis=0)
    off = mode.campaign - prior.mean
    determinants = float(np.linalg.slogdet(prior.precision)[1]) / 2 - float(np.log(np.diag(mode.schur)).sum())
    determinants -= sum(k.log_determinant(a) for k, a in zip(prior.local, mode.arrows, strict=True)) / 2
    at_centre = float(off @ prior.precision @ off + mode.weight @ mode.local) / 2
    constant = determinants - at_centre - mode.log_evidence
    return np.asarray(constant - mode.weight @ shift - (prior.precision @ off) @ moved + squares / 2)
