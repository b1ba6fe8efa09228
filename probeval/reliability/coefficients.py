r"""Reliability coefficients, the number of queries for a target, and the classical intervals of both.

With :math:`n'` conditions a mean score has the universe variance :math:`\sigma^2_\tau` of the systems, and error:

.. math:: E\rho^2 = \frac{\sigma^2_\tau}{\sigma^2_\tau + \sigma^2_\delta}, \quad
    \Phi = \frac{\sigma^2_\tau}{\sigma^2_\tau + \sigma^2_\Delta}, \quad
    \sigma^2_\delta = \sum_{\alpha\ \text{with systems}} \frac{\sigma^2_\alpha}{n'_\alpha}, \quad
    \sigma^2_\Delta = \sum_\alpha \frac{\sigma^2_\alpha}{n'_\alpha}

over the effects :math:`\alpha` of some condition, each divided by the number of its levels in a mean score.
See Brennan (2001) and docs/theory/reliability.md#erho2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan, prod

import numpy as np
from scipy.special import chdtri, fdtri

from probeval.arrays import Floats
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.anova import MeanSquares
from probeval.reliability.designs import Design

__all__ = ["COEFFICIENTS", "Estimate", "analytic_ratios", "coefficient", "count_text", "queries_needed"]

COEFFICIENTS = {"erho2": "stability of differences between systems", "phi": "stability of scores themselves"}


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its interval, null (NaN) where there is none."""

    value: float
    lower: float
    upper: float

    @property
    def ends(self) -> list[float]:
        """The ends of the interval."""
        return [self.lower, self.upper]

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate transformed by an increasing function."""
        return Estimate(function(self.value), function(self.lower), function(self.upper))

    def columns(self, name: str) -> dict[str, float]:
        """The estimate as three columns of a table: ``erho2``, ``erho2_lower``, ``erho2_upper``."""
        return {name: self.value, f"{name}_lower": self.lower, f"{name}_upper": self.upper}


def count_text(count: float) -> str:
    """A number of queries for people: ``never`` if none is enough, ``-`` if it is not known."""
    return "-" if isnan(count) else f"{count:.0f}" if isfinite(count) else "never"


def _parts(design: Design, components: Floats, name: str, sizes: Mapping[str, float]) -> tuple[Floats, Floats, Floats]:
    """Return universe variance, error reduced by queries (for one query), and other error, shapes (draw,)."""
    if name not in COEFFICIENTS:
        raise ReliabilityError(f"No coefficient {name!r}: erho2 or phi.{did_you_mean(name, COEFFICIENTS)}")
    universe, by_query, rest = np.zeros((3, *components.shape[:-1]))
    for i, effect in enumerate(design.effects):
        value = components[..., i]
        if design.is_universe(effect):
            universe = universe + value
        elif name == "phi" or design.is_relative(effect):
            value = value / prod(sizes[f] for f in design.conditions if f in effect and f != "query")
            by_query, rest = (by_query + value, rest) if "query" in effect else (by_query, rest + value)
    return universe, by_query, rest


def coefficient(design: Design, components: Floats, name: str, sizes: Mapping[str, float]) -> Floats:
    """Return E rho^2 or Phi of mean scores over these numbers of conditions, for components of shape (.., effect).

    0 if systems do not vary.

    Examples
    --------
    >>> trec3 = np.array([0.0028117, 0.0280934, 0.0101522])
    >>> coefficient(Design.parse("s x q"), trec3, "erho2", {"query": 50}).round(5)
    np.float64(0.93265)
    """
    universe, by_query, rest = _parts(design, components, name, sizes)
    total = universe + by_query / sizes["query"] + rest
    return np.divide(universe, total, out=np.zeros_like(total), where=total > 0)


def queries_needed(design: Design, components: Floats, name: str, target: float, sizes: Mapping[str, float]) -> Floats:
    """Return the number of queries at which a coefficient reaches ``target``; infinite if it never does.

    For s x q: ceil(target var_e / (var_s (1 - target))), and for Phi with var_q + var_e.

    Examples
    --------
    >>> trec3 = np.array([0.0028117, 0.0280934, 0.0101522])
    >>> queries_needed(Design.parse("s x q"), trec3, "phi", 0.95, {})
    np.float64(259.0)
    """
    if not 0 < target < 1:
        raise ReliabilityError(f"A target of reliability is between 0 and 1, got {target:g}.")
    universe, by_query, rest = _parts(design, components, name, sizes)
    room = (1 - target) * universe - target * rest
    needed = np.divide(target * by_query, room, out=np.full_like(room, inf), where=room > 0)
    return np.maximum(np.ceil(needed - 1e-9), 1.0)


def analytic_ratios(squares: MeanSquares, name: str, level: float) -> tuple[float, float]:
    r"""Return the interval of the ratio of universe variance to the error of one query, for s x q.

    Feldt (1965) for E rho^2, from :math:`MS_s/MS_e` as an F variable; Arteaga, Jeyaratnam and Franklin (1982) for Phi.
    With the ratio :math:`r` a coefficient is :math:`n r/(1 + n r)`,
    and a target :math:`\pi` needs :math:`\pi/((1 - \pi) r)` queries.
    See docs/theory/reliability.md#feldt.

    A ratio of variances is at least 0: an end that the formula puts below is 0, where the coefficient is 0 and no
    number of queries is enough. So the ends of a coefficient are between 0 and 1.
    """
    (n_s, n_q), (ms_s, ms_q, ms_e) = squares.sizes, squares.values[0]
    df_s, df_q, df_e = squares.degrees

    def ratio(p: float) -> float:
        if ms_s <= 0:
            return 0.0
        f_e = fdtri(df_s, df_e, p)
        if name == "erho2":
            return float((ms_s / (ms_e * f_e) - 1) / n_q) if ms_e > 0 else inf
        f_q, f_inf = fdtri(df_s, df_q, p), chdtri(df_s, 1 - p) / df_s
        top = ms_s**2 - f_inf * ms_s * ms_e + (f_inf - f_e) * f_e * ms_e**2
        bottom = df_s * f_inf * ms_s * ms_e + f_q * ms_s * ms_q
        return float(n_s / n_q * top / bottom) if bottom > 0 else inf

    return max(ratio((1 + level) / 2), 0.0), max(ratio((1 - level) / 2), 0.0)
