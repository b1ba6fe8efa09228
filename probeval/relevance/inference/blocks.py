r"""The layout of judged pairs in blocks of queries: the parameters of the campaign, and those of each query.

A query's parameters are in its own block, so that the campaign's block does not grow with the number of queries:

- the *campaign's parameters* :math:`g`: first cutpoint, gaps, coefficients of terms, effects of the campaign;
- the *local parameters* :math:`x` of each query with judgments: the sum of its effects at each judged pair, a Gaussian
  process with covariance :math:`\sum_k \sigma_k^2 F_k F_k'`, and its cutpoint scale, as an additional coordinate.

Labels change the prior of both (:mod:`probeval.relevance.inference.measured`), and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.expected_loglik import ExpectedLogLikelihood, Parameters, Spread
from probeval.relevance.inference.measured import MeasuredPrior

__all__ = [
    "Arrow",
    "Block",
    "JudgedPairs",
    "Layout",
    "LocalPosterior",
    "LocalPrior",
    "ParameterPoint",
    "Prior",
    "Start",
]


@dataclass(frozen=True)
class Layout:
    """The blocks of the campaign's parameters by name.

    ``first_cut``, ``gaps``, ``coefficients``, each effect of the campaign and, given labels, the parameters of each
    family of observers.
    """

    blocks: Mapping[str, slice]

    @classmethod
    def of(cls, design: ModelDesign) -> Layout:
        """Return the layout of a design, with consecutive blocks."""
        sizes = {"first_cut": 1, "gaps": len(design.cuts) - 1, "coefficients": design.terms.shape[1]}
        sizes |= {c.name: c.columns.n_columns for c in design.campaign_columns}
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return cls({name: slice(a, b) for name, (a, b) in zip(sizes, pairwise(ends), strict=True)})

    def __getitem__(self, name: str) -> slice:
        return self.blocks[name]

    @cached_property
    def size(self) -> int:
        """The number of parameters."""
        return int(max(block.stop for block in self.blocks.values()))

    @cached_property
    def cuts(self) -> slice:
        """The first cutpoint and the gaps."""
        return slice(self["first_cut"].start, self["gaps"].stop)

    @cached_property
    def columns(self) -> slice:
        """The parameters that are linear in the pairs' predictors: coefficients and effects."""
        return slice(self["coefficients"].start, self.size)


@dataclass(frozen=True, eq=False)
class Arrow:
    """Symmetric matrices with entries only on the diagonal and in the last row and column.

    The information on a query's local parameters has this structure: pairs interact only through the cutpoint scale,
    the last coordinate.

    Parameters
    ----------
    diagonal, arm
        Shape (query, coordinate); the arm is 0 at its end, and None without cutpoint scales.
    """

    diagonal: Floats
    arm: Floats | None

    def times(self, x: Floats) -> Floats:
        """Return each matrix times another, shape (query, coordinate, column)."""
        out = self.diagonal[..., None] * x
        if self.arm is not None:
            out += self.arm[..., None] * x[:, -1:, :]
            out[:, -1, :] += np.einsum("qi,qic->qc", self.arm, x)
        return out

    def dense(self) -> Floats:
        """Return full matrices, shape (query, coordinate, coordinate)."""
        n_queries, width = self.diagonal.shape
        return self.times(np.broadcast_to(np.eye(width), (n_queries, width, width)))


@dataclass(frozen=True, eq=False)
class Block:
    """Queries with about as many judged pairs: their place in the local parameters, as a stack of matrices.

    A query with fewer judged pairs than others of its block has coordinates without prior variance or information.

    Parameters
    ----------
    where
        The slice of their local parameters.
    queries
        Positions in the pool.
    width
        The number of local parameters of each query: its judged pairs, padding, and its cutpoint scale.
    factors
        :math:`F` of each effect within queries, shape (query, coordinate, column).
    seen
        The covariance of the part of relevance that labels measure, shape (query, coordinate, coordinate); 0 without
        labels.
    """

    where: slice
    queries: Ints
    width: int
    factors: Mapping[str, Floats]
    seen: Floats | float = 0.0

    def stack(self, values: Floats) -> Floats:
        """Return values of local parameters stacked by query, shape (query, coordinate, ..)."""
        return values[self.where].reshape(len(self.queries), self.width, *values.shape[1:])

    def prior(self, variances: Mapping[str, float]) -> LocalPrior:
        """Return :math:`K` given the effects' variances."""
        columns = [np.sqrt(variances[name]) * f for name, f in self.factors.items()]
        none = np.zeros((len(self.queries), self.width, 0))
        return LocalPrior(np.concatenate([none, *columns], axis=2), self.seen)


@dataclass(frozen=True, eq=False)
class LocalPrior:
    r"""The prior covariance :math:`K = AA' + S` of the local parameters of a block's queries.

    Without labels :math:`S = 0`, and with fewer columns of :math:`A` than parameters all follows from the smaller
    matrix :math:`I + A'HA`.

    Parameters
    ----------
    factor
        :math:`A`, the columns of all effects times their standard deviations, shape (query, coordinate, column).
    seen
        :math:`S`, the covariance of the part of relevance that labels measure, shape (query, coordinate, coordinate); 0
        without labels.
    """

    factor: Floats
    seen: Floats | float

    @cached_property
    def _narrow(self) -> bool:
        return isinstance(self.seen, float) and self.factor.shape[2] < self.factor.shape[1]

    @cached_property
    def _whole(self) -> Floats:
        return np.asarray(self.seen + self.factor @ self.factor.transpose(0, 2, 1))

    def times(self, values: Floats) -> Floats:
        """Return :math:`K` of each query times values of its local parameters, shape (query, coordinate, column)."""
        if self._narrow:
            return np.asarray(self.factor @ (self.factor.transpose(0, 2, 1) @ values))
        return self._whole @ values

    def _opened(self, information: Arrow) -> Floats:
        """Return :math:`I + A'HA`, or :math:`I + KH`: their determinants are the same."""
        if self._narrow:
            inner = self.factor.transpose(0, 2, 1) @ information.times(self.factor)
        else:
            inner = information.times(self._whole).transpose(0, 2, 1)
        return np.asarray(np.eye(inner.shape[1]) + inner)

    def posterior(self, information: Arrow) -> LocalPosterior:
        """Return :math:`L = (I + KH)^{-1}K = A(I + A'HA)^{-1}A'`."""
        opened = self._opened(information)
        if self._narrow:
            right = np.linalg.solve(opened, self.factor.transpose(0, 2, 1))
            return LocalPosterior(self.factor, np.asarray(right))
        return LocalPosterior(np.asarray(np.linalg.solve(opened, self._whole)), None)

    def log_determinant(self, information: Arrow) -> float:
        r"""Return :math:`\log|I + KH|`, summed over queries."""
        return float(np.linalg.slogdet(self._opened(information))[1].sum())


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """The posterior covariance :math:`L` of the local parameters of a block's queries given the campaign's.

    Parameters
    ----------
    left, right
        Matrices whose product it is, shapes (query, coordinate, column) and (query, column, coordinate); without a
        right one the left one is :math:`L` itself.
    """

    left: Floats
    right: Floats | None

    def times(self, values: Floats) -> Floats:
        """Return :math:`L` times values of the local parameters, shape (query, coordinate, column)."""
        return np.asarray(self.left @ (values if self.right is None else self.right @ values))

    def take(self, queries: slice) -> LocalPosterior:
        """Return the covariance of some queries."""
        return LocalPosterior(self.left[queries], None if self.right is None else self.right[queries])

    @property
    def matrices(self) -> Floats:
        """:math:`L` as full matrices, shape (query, coordinate, coordinate)."""
        return self.left if self.right is None else np.asarray(self.left @ self.right)

    @property
    def diagonals(self) -> Floats:
        """The variances, shape (query, coordinate)."""
        if self.right is None:
            return np.diagonal(self.left, axis1=1, axis2=2)
        return np.asarray(np.einsum("qic,qci->qi", self.left, self.right))

    @property
    def with_last(self) -> Floats:
        """The covariances with the last coordinate, shape (query, coordinate)."""
        if self.right is None:
            return self.left[:, :, -1]
        return np.asarray(self.left @ self.right[:, :, -1:])[..., 0]


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior given the variances: of the campaign's parameters, and of the local ones by block."""

    mean: Floats
    precision: Floats  # shape (parameter, parameter)
    local: Sequence[LocalPrior]  # K
    scale_precision: float  # of a cutpoint scale


@dataclass(frozen=True, eq=False)
class ParameterPoint:
    """The current point of Newton's method."""

    campaign: Floats
    local: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Start:
    """The starting point of a refit, for all pairs and queries, judged or not, with ``points`` of the variances."""

    log_sd: Floats
    campaign: Floats
    weight: Floats  # of each pair, shape (pair,)
    log_scale: Floats  # shape (query,)
    spread: Spread  # shapes (pair,), (pair,), (query,)
    points: tuple[Start, ...] = ()


def rooms_for(count: Ints) -> Ints:
    """Return the room for so many judged pairs of each query, so that few blocks hold all queries.

    A few pairs of padding cost less than the calls for one more block.

    >>> rooms_for(np.array([0, 1, 9, 20, 70])).tolist()
    [0, 4, 12, 24, 80]
    """
    step = np.select([count <= 16, count <= 64], [4, 8], 16)
    return np.asarray(-(-count // step) * step)


class JudgedPairs:
    """A campaign's judged pairs, ordered by query, in blocks of queries with about as many judged pairs.

    Parameters
    ----------
    design
        The campaign with the priors of all parts of the model.
    judged
        Grades as positions on the scale, negative where unjudged, shape (pair,).
    measured
        The prior given labels, if there are any.
    """

    def __init__(self, design: ModelDesign, judged: Codes, measured: MeasuredPrior | None = None) -> None:
        self.design, self.layout, self.measured = design, Layout.of(design), measured
        rows = np.flatnonzero(judged >= 0)
        query = design.pool.query[rows]
        count = np.bincount(query, minlength=len(design.pool.queries))
        rooms = rooms_for(count)
        self.pairs: Ints = rows[np.lexsort((rows, query, rooms[query]))]
        self.level = design.scale.level_of(judged[self.pairs]).astype(np.int64)
        self.rows = design.campaign_rows(self.pairs)
        self.offset: Floats | float = 0.0
        if measured is not None:
            self.rows = self.rows + measured.response(self.pairs)
            self.offset = measured.offset[self.pairs]
        self.scaled = design.cutpoint_scale is not None
        # Each query's local parameters: its judged pairs, padding, then its cutpoint scale.
        self.queries: Ints = np.lexsort((np.arange(len(count)), rooms))[np.count_nonzero(count == 0) :]
        counts, widths = count[self.queries], rooms[self.queries] + self.scaled
        self.place: Ints = np.repeat(np.arange(len(self.queries)), counts)
        first = np.cumsum(widths) - widths
        self.at_pair: Ints = np.arange(len(self.pairs)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        self.at_scale: Ints = (first + widths - 1) if self.scaled else np.empty(0, dtype=np.int64)
        self.n_local = int(widths.sum())
        self.n_coordinates: Ints = np.where(count > 0, count + self.scaled, 0)  # of each query of the pool
        self.blocks = tuple(self._blocks(rooms))
        ends = np.cumsum([len(b.queries) for b in self.blocks]).tolist()
        self.places = [slice(a, b) for a, b in pairwise([0, *ends])]  # each block's queries among the judged ones
        self.likelihood = ExpectedLogLikelihood(
            self.level, self.place, n_cuts=len(design.cuts), n_scales=len(self.at_scale)
        )

    def _blocks(self, rooms: Ints) -> list[Block]:
        columns = {e.name: e.columns.rows(self.pairs) for e in self.design.of_query}
        factors = {name: np.zeros((self.n_local, rows.shape[1])) for name, rows in columns.items()}
        for name, rows in columns.items():
            factors[name][self.at_pair] = rows
        if self.design.cutpoint_scale is not None:
            scale = factors[self.design.cutpoint_scale.name] = np.zeros((self.n_local, 1))
            scale[self.at_scale] = 1.0
        out, local = [], 0
        for room in np.unique(rooms[self.queries]).tolist():
            queries, width = np.flatnonzero(rooms == room), room + self.scaled
            where = slice(local, local + width * len(queries))
            stacked = {name: f[where].reshape(len(queries), width, -1) for name, f in factors.items()}
            out.append(Block(where, queries, width, stacked, self._seen(queries, width)))
            local = where.stop
        return out

    def _seen(self, queries: Ints, width: int) -> Floats | float:
        """Return the covariance of the measured relevance of judged pairs, shape (query, coordinate, coordinate)."""
        if self.measured is None:
            return 0.0
        out = np.zeros((len(queries), width, width))
        for i, query in enumerate(queries.tolist()):
            at = self.judged_of(query) - self.design.pool.pairs_of(query).start
            out[i, : len(at), : len(at)] = self.measured.covariance(query, at, at)
        return out

    def given(self, log_sd: Floats) -> Prior:
        """Return the prior given the effects' log standard deviations."""
        design, layout = self.design, self.layout
        variances = design.variances(log_sd)
        if self.measured is None:
            mean, diagonal = np.zeros(layout.size), np.empty(layout.size)
            for where, priors in ((layout.cuts, design.cuts), (layout["coefficients"], design.coefficients)):
                mean[where] = [p.mean for p in priors]
                diagonal[where] = [p.sd**-2.0 for p in priors]
            for effect in design.of_campaign:
                diagonal[layout[effect.name]] = 1 / variances[effect.name]
            precision = np.diag(diagonal)
        else:
            mean, precision = self.measured.mean, self.measured.precision
        scale = design.cutpoint_scale
        return Prior(
            mean,
            precision,
            [block.prior(variances) for block in self.blocks],
            1.0 if scale is None else 1 / variances[scale.name],
        )

    def times(self, matrices: Sequence[LocalPrior | LocalPosterior], values: Floats) -> Floats:
        """Return each query's covariances times values of its local parameters, shape as ``values``."""
        wide = values if values.ndim == 2 else values[:, None]
        out = np.empty_like(wide)
        for block, matrix in zip(self.blocks, matrices, strict=True):
            out[block.where] = matrix.times(block.stack(wide)).reshape(-1, wide.shape[1])
        return out.reshape(values.shape)

    def information_times(self, diagonal: Floats, arm: Floats, values: Floats) -> Floats:
        """Return the information on local parameters, an arrow per query, times their values, shape as ``values``.

        ``diagonal`` is of all local parameters, ``arm`` of the judged pairs with their query's cutpoint scale.
        """
        wide = values if values.ndim == 2 else values[:, None]
        out = diagonal[:, None] * wide
        if self.scaled:
            out[self.at_pair] += arm[:, None] * wide[self.at_scale][self.place]
            out[self.at_scale] += self.by_query(arm[:, None] * wide[self.at_pair])
        return out.reshape(values.shape)

    def arrows(self, diagonal: Floats, arm: Floats) -> list[Arrow]:
        """Return the information on local parameters as a stack of matrices per block."""
        whole = np.zeros(self.n_local)
        whole[self.at_pair] = arm
        return [Arrow(block.stack(diagonal), block.stack(whole) if self.scaled else None) for block in self.blocks]

    def judged_of(self, query: int) -> Ints:
        """Return the judged pairs of a query, in the order of its local parameters."""
        at = self._judged_slices.get(query)
        return self.pairs[at] if at is not None else np.empty(0, dtype=np.int64)

    @cached_property
    def _judged_slices(self) -> dict[int, slice]:
        ends = np.append(self._first, len(self.pairs)).tolist()
        return {int(q): slice(a, b) for q, (a, b) in zip(self.queries, pairwise(ends), strict=True)}

    def by_query(self, values: Floats) -> Floats:
        """Return the sums over each query's judged pairs, shape (query, ..)."""
        return np.add.reduceat(values, self._first, axis=0) if len(self.queries) else values

    @property
    def scaled_queries(self) -> Ints:
        """The judged queries with a cutpoint scale: all of them, or none."""
        return self.queries if self.scaled else np.empty(0, dtype=np.int64)

    @cached_property
    def _first(self) -> Ints:
        """The first judged pair of each judged query."""
        return np.flatnonzero(np.diff(self.place, prepend=-1))

    def parameters(self, point: ParameterPoint) -> Parameters:
        """Return the arguments of the log-likelihood at a point."""
        layout = self.layout
        return Parameters(
            first=float(point.campaign[layout["first_cut"]][0]),
            gaps=point.campaign[layout["gaps"]],
            log_scale=point.local[self.at_scale],
            predictor=self.offset + self.rows @ point.campaign[layout.columns] + point.local[self.at_pair],
        )

    def begin(self, prior: Prior, start: Start | None, *, averaged: bool) -> tuple[ParameterPoint, Spread]:
        """Return the first point and its spreads: the prior's centre, or the end of an earlier fit."""
        spread = Spread.none(len(self.pairs), len(self.at_scale))
        if start is None:
            return ParameterPoint(prior.mean, np.zeros(self.n_local), np.zeros(self.n_local)), spread
        scales = self.scaled_queries
        weight = np.zeros(self.n_local)
        weight[self.at_pair] = start.weight[self.pairs]
        weight[self.at_scale] = start.log_scale[scales] * prior.scale_precision
        if averaged:
            blur = start.spread.predictor[self.pairs]
            known = max(np.count_nonzero(blur), 1)
            blur = np.where(blur > 0, blur, blur.sum() / known)  # pairs judged since then: the mean of the others
            spread = Spread(blur, start.spread.tied[self.pairs], start.spread.scale[scales])
        return ParameterPoint(start.campaign, self.times(prior.local, weight), weight), spread
