r"""The expected log-likelihood of judged pairs under uncertain logits.

A pair at level :math:`\ell` has the log-likelihood :math:`\log(F(h) - F(l))`, with :math:`h` and :math:`l` its logits
of reaching this level and the next, and :math:`F` the logistic function. The mean is over the normal spread of the
pair's linear predictor and of its query's cutpoint scale, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.effects.cutpoints import gap_columns, logistic

__all__ = ["Derivatives", "ExpectedLogLikelihood", "Logits", "Parameters", "Spread"]


class Rule(NamedTuple):
    """Nodes and weights of a quadrature under the standard normal."""

    nodes: Floats
    weights: Floats

    @classmethod
    def of(cls, n: int) -> Rule:
        """Return Gauss-Hermite quadrature with ``n`` nodes."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(n)
        return cls(nodes, weights / weights.sum())


PREDICTOR = Rule.of(5)  # over a predictor: more nodes change no score in the third digit
SCALE = Rule.of(3)  # over a cutpoint scale, which is less uncertain than predictors
KNOWN = Rule.of(1)  # without cutpoint scales
MIN_PROBABILITY = 1e-150  # the least probability whose inverse can be squared


@dataclass(frozen=True, eq=False)
class Parameters:
    """The arguments of the log-likelihood.

    Parameters
    ----------
    first, gaps
        The first cutpoint, and the gaps after it, shape (gap,).
    log_scale
        The cutpoint scale of each judged query, shape (query,).
    predictor
        The linear predictor of each judged pair, shape (judged,).
    """

    first: float
    gaps: Floats
    log_scale: Floats
    predictor: Floats


@dataclass(frozen=True, eq=False)
class Spread:
    """Posterior standard deviations of each judged pair's linear predictor and each judged query's cutpoint scale.

    ``tied`` is the part of a predictor's spread that is shared with its query's scale: its change per sd of the scale.
    """

    predictor: Floats
    tied: Floats
    scale: Floats

    @classmethod
    def none(cls, n_pairs: int, n_queries: int) -> Spread:
        """Return zero spreads."""
        return cls(np.zeros(n_pairs), np.zeros(n_pairs), np.zeros(n_queries))

    def towards(self, other: Spread, share: float) -> Spread:
        """Interpolate between these spreads and others."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Spread(*(a + share * (b - a) for a, b in pairs))

    def differs(self, other: Spread) -> float:
        """Return the largest difference from other spreads."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)


class Logits(NamedTuple):
    """Quantities shared by the value and its derivatives, by scale node, predictor node and judged pair."""

    factor: Floats  # of each pair's cutpoints, shape (scale node, judged)
    high: Floats  # logits of reaching the level, shape (scale node, predictor node, judged)
    low: Floats  # and the next
    p: Floats  # F(high) - F(low)


@dataclass(frozen=True, eq=False)
class Derivatives:
    r"""Derivatives of the expected log-likelihood. Second derivatives have reversed sign: they are information.

    Cutpoints are not linear in gaps and scales, so this is the Gauss-Newton approximation; ``bend`` is its error for
    each scale: as :math:`\partial^2 \alpha_{q\ell} / \partial v_q^2 = \partial \alpha_{q\ell} / \partial
    v_q`, that is the slope itself.
    """

    predictor: Floats  # shape (judged,)
    scale: Floats  # shape (query,)
    cuts: Floats  # in the first cutpoint and the gaps, shape (cut,)
    predictor_twice: Floats  # shape (judged,)
    scale_twice: Floats  # shape (query,)
    cuts_twice: Floats  # shape (cut, cut)
    predictor_scale: Floats  # shape (judged,)
    predictor_cuts: Floats  # shape (judged, cut)
    scale_cuts: Floats  # shape (query, cut)

    @property
    def bend(self) -> Floats:
        """The excess of the information on each scale, shape (query,)."""
        return self.scale


class ExpectedLogLikelihood:
    """The expected log-likelihood of judged pairs, given their levels and queries.

    Parameters
    ----------
    level, place
        The level of each judged pair, and the position of its query among the judged ones, shape (judged,).
    n_cuts, n_scales
        The number of cutpoints, and of judged queries with a cutpoint scale (all or none).
    """

    def __init__(self, level: Ints, place: Ints, *, n_cuts: int, n_scales: int) -> None:
        self.level, self.place, self.n_cuts, self.n_scales = level, place, n_cuts, n_scales
        self.middle, apart = gap_columns(n_cuts)
        ends = np.pad(apart, ((1, 1), (0, 0)))  # the ends of the scale have no cutpoint
        self.apart_high, self.apart_low = ends[level], ends[level + 1]
        self.rule = SCALE if n_scales else KNOWN

    def value(self, at: Parameters, spread: Spread) -> tuple[float, Logits]:
        """Return the expected log-likelihood, and the quantities for its derivatives."""
        factor = np.ones((1, len(self.level)))
        if self.n_scales:
            factor = np.exp(at.log_scale + self.rule.nodes[:, None] * spread.scale)[:, self.place]
        own = np.sqrt(np.maximum(spread.predictor**2 - spread.tied**2, 0.0))
        eta = at.first + self.middle @ at.gaps + at.predictor + PREDICTOR.nodes[:, None] * own
        tied = self.rule.nodes[:, None] * spread.tied
        above, below = (eta + (tied + factor * (a @ at.gaps))[:, None, :] for a in (self.apart_high, self.apart_low))
        high = np.where(self.level == 0, np.inf, above)
        low = np.where(self.level == self.n_cuts, -np.inf, below)
        # F(high) - F(low), without cancellation.
        p = np.maximum(logistic(high) * logistic(-low) * -np.expm1(low - high), MIN_PROBABILITY)
        value = float(self.rule.weights @ np.log(p).sum(axis=2) @ PREDICTOR.weights)
        return value, Logits(factor, high, low, p)

    def derivatives(self, at: Parameters, logits: Logits) -> Derivatives:
        """Return the derivatives at this point."""
        weight = self.rule.weights[:, None]
        parts = np.einsum("iyxn,x->iyn", _pointwise(logits), PREDICTOR.weights)
        slope, curve, cross_high, cross_low, twice_high, twice_low, both, a, b = weight * parts
        # The slopes of both logits in the first cutpoint and the gaps, shape (node, judged, cut), and in the scale.
        high, low = (self._in_cuts(logits.factor, apart) for apart in (self.apart_high, self.apart_low))
        high_scale, low_scale = (logits.factor * (apart @ at.gaps) for apart in (self.apart_high, self.apart_low))
        # Information in the logits times their slopes in the cuts.
        from_high = twice_high[..., None] * high - both[..., None] * low
        from_low = twice_low[..., None] * low - both[..., None] * high
        scale_twice = high_scale * (twice_high * high_scale - 2 * both * low_scale) + twice_low * low_scale**2
        scale_cuts = high_scale[..., None] * from_high + low_scale[..., None] * from_low
        return Derivatives(
            predictor=slope.sum(axis=0),
            scale=self._by_query((high_scale * a - low_scale * b).sum(axis=0)),
            cuts=np.einsum("ync,yn->c", high, a) - np.einsum("ync,yn->c", low, b),
            predictor_twice=np.maximum(curve.sum(axis=0), 0.0),
            scale_twice=self._by_query(scale_twice.sum(axis=0)),
            cuts_twice=np.einsum("ync,ynd->cd", high, from_high) + np.einsum("ync,ynd->cd", low, from_low),
            predictor_scale=(cross_high * high_scale + cross_low * low_scale).sum(axis=0) * (self.n_scales > 0),
            predictor_cuts=(cross_high[..., None] * high + cross_low[..., None] * low).sum(axis=0),
            scale_cuts=np.stack([self._by_query(c) for c in scale_cuts.sum(axis=0).T], axis=1),
        )

    def _in_cuts(self, factor: Floats, apart: Floats) -> Floats:
        """Return the slopes of a logit in the first cutpoint and the gaps, shape (node, judged, cut)."""
        out = np.empty((*factor.shape, self.n_cuts))
        out[..., 0] = 1.0
        out[..., 1:] = self.middle + factor[..., None] * apart
        return out

    def _by_query(self, values: Floats) -> Floats:
        """Return the sums over each query's judged pairs, shape (query,); empty without cutpoint scales."""
        return np.bincount(self.place, values, minlength=self.n_scales).astype(float) if self.n_scales else np.empty(0)


def _pointwise(logits: Logits) -> Floats:
    """Return the quantities to average for the derivatives, shape (9, ..)."""
    high, low, p = logits.high, logits.low, logits.p
    f_high, f_low = logistic(high), logistic(low)
    a, b = f_high * logistic(-high) / p, f_low * logistic(-low) / p
    c_high, c_low = a * (1 - 2 * f_high), b * (1 - 2 * f_low)
    slope = a - b
    curve = slope**2 - c_high + c_low
    return np.stack([slope, curve, a * slope - c_high, c_low - b * slope, a**2 - c_high, b**2 + c_low, a * b, a, b])
