r"""The log-likelihood of judged pairs, averaged over what is not known of their logits.

A pair at level :math:`\ell` has the log-likelihood :math:`\log(F(h) - F(l))`, with :math:`h` and :math:`l` its logits
of reaching this level and the next, and :math:`F` the logistic function. It is averaged over the normal spread of the
pair's linear predictor and of its query's stretch by Gauss and Hermite's rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from probeval.arrays import Floats, Ints

__all__ = ["Averaged", "Slopes", "Spread", "State"]

State = tuple[Floats, Floats, Floats, Floats]  # stretch factors, logits above and below, probabilities


def _rule(n: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


PREDICTOR, STRETCHED, KNOWN = _rule(5), _rule(3), _rule(1)  # nodes and weights
LEAST = 1e-150  # a probability whose inverse can still be squared


@dataclass(frozen=True, eq=False)
class Spread:
    """Posterior standard deviations, of each judged pair's linear predictor and of each judged query's stretch.

    ``tied`` is what of a pair's predictor moves with its query's stretch, as the predictor's change for one sd of it.
    """

    predictor: Floats
    tied: Floats
    stretch: Floats

    def towards(self, other: Spread, share: float) -> Spread:
        """What lies between this and another."""
        parts = ((self.predictor, other.predictor), (self.tied, other.tied), (self.stretch, other.stretch))
        return Spread(*(a + share * (b - a) for a, b in parts))

    def differs(self, other: Spread) -> float:
        """The largest difference from another."""
        parts = ((self.predictor, other.predictor), (self.tied, other.tied), (self.stretch, other.stretch))
        return max(float(np.abs(a - b).max(initial=0.0)) for a, b in parts)


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the mean log-likelihood; "cut" effects are the first cutpoint, the gaps and the stretches.

    Cutpoints are not linear in gaps and stretches, so the information is Gauss and Newton's; ``bend`` is what it lacks
    for each stretch.
    """

    slope: Floats  # in each pair's predictor, shape (judged,)
    curve: Floats  # the negative second derivative
    cross: Floats  # the same, mixed with the cut effects, shape (judged, cut effect)
    gradient: Floats  # in the cut effects
    information: Floats  # in the cut effects, shape (cut effect, cut effect)
    bend: Floats  # shape (stretch,)


class Averaged:
    """Judged pairs at their levels, each with the place of its query among the judged ones."""

    def __init__(self, level: Ints, place: Ints, *, n_cuts: int, n_stretches: int) -> None:
        self.level, self.place, self.n_cuts, self.n_stretches = level, place, n_cuts, n_stretches
        # Each cutpoint is the first one less the gaps before it; the ends of the scale have none.
        below = -np.tri(n_cuts)[:, 1:]
        self.middle = below.mean(axis=0)
        self.scale = below - self.middle  # each cutpoint's distance from their middle, as a sum of gaps
        ends = np.pad(self.scale, ((1, 1), (0, 0)))
        self.apart = ends[level], ends[level + 1]  # those of the cutpoints above and below each pair
        self.rule = STRETCHED if n_stretches else KNOWN

    def value(self, cuts: Floats, predictor: Floats, spread: Spread) -> tuple[float, State]:
        """The mean log-likelihood given the cut effects and the pairs' predictors, and what the slopes are made of."""
        first, gaps, stretch = cuts[0], cuts[1 : self.n_cuts], cuts[self.n_cuts :]
        factor = np.ones((1, len(self.level)))
        if self.n_stretches:
            factor = np.exp(stretch + self.rule[0][:, None] * spread.stretch)[:, self.place]
        own = np.sqrt(np.maximum(spread.predictor**2 - spread.tied**2, 0.0))
        eta = first + self.middle @ gaps + predictor + PREDICTOR[0][:, None] * own
        tied = self.rule[0][:, None] * spread.tied
        above, below = (eta + (tied + factor * (a @ gaps))[:, None, :] for a in self.apart)
        high = np.where(self.level == 0, np.inf, above)
        low = np.where(self.level == self.n_cuts, -np.inf, below)
        p = np.maximum(expit(high) * expit(-low) * -np.expm1(low - high), LEAST)  # F(high) - F(low), without cancelling
        return float(self.rule[1] @ np.log(p).sum(axis=2) @ PREDICTOR[1]), (factor, high, low, p)

    def slopes(self, cuts: Floats, state: State) -> Slopes:
        """The derivatives there."""
        factor, high, low, p = state
        parts = np.einsum("iyxn,x->yin", _pointwise(high, low, p), PREDICTOR[1])
        slope, curve = self.rule[1] @ parts[:, 0], self.rule[1] @ parts[:, 1]
        # One row a node and pair: all that the cut effects' derivatives are summed over.
        rows = (self.rule[1][:, None, None] * parts[:, 2:]).transpose(1, 0, 2).reshape(7, factor.size, 1)
        cross_high, cross_low, twice_high, twice_low, both, a, b = rows
        above, below = (self._columns(factor, apart, cuts) for apart in self.apart)
        cross = (cross_high * above + cross_low * below).reshape(*factor.shape, above.shape[1]).sum(axis=0)
        information = above.T @ (twice_high * above - both * below) + below.T @ (twice_low * below - both * above)
        gradient = (above.T @ a - below.T @ b)[:, 0]
        return Slopes(slope, np.maximum(curve, 0.0), cross, gradient, information, gradient[self.n_cuts :].copy())

    def _columns(self, factor: Floats, apart: Floats, cuts: Floats) -> Floats:
        """The slopes of logits in the cut effects, node by node, shape (node and pair, cut effect)."""
        out = np.zeros((*factor.shape, self.n_cuts + self.n_stretches))
        out[..., 0] = 1.0
        out[..., 1 : self.n_cuts] = self.middle + factor[..., None] * apart
        if self.n_stretches:
            out[:, np.arange(len(self.level)), self.n_cuts + self.place] = factor * (apart @ cuts[1 : self.n_cuts])
        return out.reshape(factor.size, out.shape[2])


def _pointwise(high: Floats, low: Floats, p: Floats) -> Floats:
    """What the derivatives are made of: all that must be averaged, shape (9, ..)."""
    f_high, f_low = expit(high), expit(low)
    a, b = f_high * expit(-high) / p, f_low * expit(-low) / p
    c_high, c_low = a * (1 - 2 * f_high), b * (1 - 2 * f_low)
    slope = a - b
    curve = slope**2 - c_high + c_low
    return np.stack([slope, curve, a * slope - c_high, c_low - b * slope, a**2 - c_high, b**2 + c_low, a * b, a, b])
