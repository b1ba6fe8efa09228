r"""Variance components by analysis of variance: by mean squares, or by Henderson's method I if scores are missing.

Scores have shape (draw, \*facets); every draw is decomposed separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from probeval.arrays import Floats, frozen
from probeval.errors import ReliabilityError
from probeval.reliability.designs import Design, FacetSet

__all__ = ["MeanSquares", "henderson", "mean_squares"]


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """The mean squares of the effects of a balanced design: sufficient statistics of a normal likelihood.

    Parameters
    ----------
    design
        The facets.
    sizes
        The number of levels of each facet.
    values
        The mean squares, shape (draw, effect).
    """

    design: Design
    sizes: tuple[int, ...]
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))

    @property
    def degrees(self) -> Floats:
        """The degrees of freedom of each effect, shape (effect,)."""
        found: dict[FacetSet, int] = {}
        for effect in self.design.effects:
            below = sum(df for other, df in found.items() if other < effect)
            found[effect] = self._levels(effect) - below - 1
        return np.array(list(found.values()), dtype=float)

    @property
    def weights(self) -> Floats:
        r"""The weight of each component in each expected mean square, shape (effect, effect).

        .. math:: E[MS_\alpha] = \sum_{\beta \supseteq \alpha} k_\beta \sigma^2_\beta, \quad
            k_\beta = \prod_{f \notin \beta} n_f
        """
        effects, cells = self.design.effects, prod(self.sizes)
        return np.array([[(a <= b) * cells / self._levels(b) for b in effects] for a in effects])

    def components(self) -> Floats:
        """Return the components whose expected mean squares are those observed, perhaps negative, shape (draw, effect).

        For s x q: var_e = MS_e, var_s = (MS_s - MS_e)/n_q, var_q = (MS_q - MS_e)/n_s; for s x (h:q) Eqs 6.8 of
        Urbano (2013). See docs/theory/reliability.md#anova.
        """
        return np.asarray(np.linalg.solve(self.weights, self.values.T).T)

    def _levels(self, effect: FacetSet) -> int:
        return prod(n for f, n in zip(self.design.facets, self.sizes, strict=True) if f in effect)


def mean_squares(design: Design, values: Floats) -> MeanSquares:
    """Return the mean squares of complete scores, shape (draw, *facets).

    An effect is the mean over the other facets minus all effects that it contains.

    Examples
    --------
    >>> squares = mean_squares(Design.parse("s x q"), np.array([[[0.1, 0.4, 0.3], [0.3, 0.5, 0.7]]]))
    >>> squares.values.round(4), squares.degrees
    (array([[0.0817, 0.0517, 0.0117]]), array([1., 2., 2.]))
    """
    sizes = values.shape[1:]
    parts = effects(design, values)
    sums = MeanSquares(design, sizes, np.stack(sums_of_squares(parts, sizes), axis=1))
    return replace(sums, values=sums.values / sums.degrees)


def sums_of_squares(parts: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Return the sum of squares over all cells of each effect, shapes (draw,), of arrays or of PyTensor's tensors."""
    return [(part**2).mean(axis=tuple(range(1, part.ndim))) * prod(sizes) for part in parts]


def effects(design: Design, values: Any) -> list[Any]:
    """Return the estimates of all levels of every effect, shape (draw, *facets) with 1 for facets not in the effect.

    Tensors of PyTensor, which have no missing scores, give tensors.
    """
    means = _mean_over_others if isinstance(values, np.ndarray) else _mean_of_complete
    mean = means(design, values, frozenset())
    found: dict[FacetSet, Any] = {}
    for effect in design.effects:
        part = means(design, values, effect) - mean
        for other, below in found.items():
            if other < effect:
                part = part - below
        found[effect] = part
    return list(found.values())


def henderson(design: Design, values: Floats) -> Floats:
    r"""Return unbiased components for scores with gaps (NaN), perhaps negative, shape (draw, effect).

    Method I of Henderson (1953): with :math:`S_\alpha = \sum_a n_a (\bar y_a - \bar y)^2` over the levels of an effect,

    .. math:: E[S_\alpha] = \sum_\beta \sigma^2_\beta \Big[\sum_a \frac{1}{n_a} \sum_b n_{ab}^2
        - \frac1N \sum_b n_b^2\Big].

    Without gaps it is :meth:`MeanSquares.components`.
    """
    known = np.isfinite(values)
    if (known != known[:1]).any():
        raise ReliabilityError("Every draw must have its scores in the same cells.")
    count = known[0].astype(float)
    total = count.sum()
    centred = values - np.nanmean(values, axis=tuple(range(1, values.ndim)), keepdims=True)
    sums, weights = [], []
    for a in design.effects:
        n_a = _sum_over_others(design, count[None], a)
        y_a = _sum_over_others(design, np.where(known, centred, 0.0), a)
        shares = np.divide(y_a**2, n_a, out=np.zeros_like(y_a), where=n_a > 0)
        sums.append(shares.reshape(len(values), -1).sum(axis=1))
        weights.append([_expected(design, count[None], a, b) - _expected(design, count[None], frozenset(), b)
                        for b in design.effects])  # fmt: skip
    matrix = np.array(weights) / total
    if np.linalg.cond(matrix) > 1e10:
        raise ReliabilityError(
            "The missing scores leave components that cannot be told apart. Leave out systems or queries with gaps."
        )
    return np.asarray(np.linalg.solve(matrix, np.stack(sums) / total).T)


def _expected(design: Design, count: Floats, a: FacetSet, b: FacetSet) -> float:
    """Return the sum over the levels of ``a`` of the squared counts with ``b``, over the counts of ``a``."""
    n_ab = _sum_over_others(design, count, a | b)
    n_a = _sum_over_others(design, count, a)
    squares = _sum_over_others(design, n_ab**2, a)
    return float(np.divide(squares, n_a, out=np.zeros_like(squares), where=n_a > 0).sum())


def _others(design: Design, effect: FacetSet) -> tuple[int, ...]:
    return tuple(i + 1 for i, f in enumerate(design.facets) if f not in effect)


def _sum_over_others(design: Design, values: Floats, effect: FacetSet) -> Floats:
    return np.asarray(values.sum(axis=_others(design, effect), keepdims=True))


def _mean_over_others(design: Design, values: Floats, effect: FacetSet) -> Floats:
    """Return means over the existing scores, NaN for a level without any."""
    known = np.isfinite(values)
    count = _sum_over_others(design, known.astype(float), effect)
    total = _sum_over_others(design, np.where(known, values, 0.0), effect)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _mean_of_complete(design: Design, values: Any, effect: FacetSet) -> Any:
    return values.mean(axis=_others(design, effect), keepdims=True)
