r"""What an effect of the hierarchical model is: the columns, the scope and the prior of some of its coefficients.

A pair's linear predictor is :math:`\eta_d = x_d\beta + \sum_k C_k[d] \cdot b_k`, one summand per effect :math:`k`, with
coefficients :math:`b_k \sim N(0, \sigma_k^2 I)`. An effect of the campaign has one vector of coefficients; an effect
within queries has one per query. Inference, learning, synthetic campaigns and ArviZ go through the list of effects
(:func:`probeval.relevance.effects.model_effects`) and know none of them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.features import compute_features, feature_names
from probeval.relevance.normal import Normal

__all__ = ["CampaignView", "Columns", "Effect", "Scope", "Target"]

Scope = Literal["campaign", "query"]
Target = Literal["predictor", "cutpoints"]
POPULARITY = "log(fSYS)"


@dataclass(frozen=True, eq=False)
class Columns:
    r"""What each coefficient of an effect adds to each pair's logit, shape (pair, column).

    The matrix is :math:`W - r s'`: a sparse one, as a pair is in few systems and groups, less one of rank one that
    centres it.

    Parameters
    ----------
    weights
        :math:`W`, shape (pair, column).
    offset, share
        :math:`r` and :math:`s`, shapes (pair,) and (column,).

    Examples
    --------
    >>> columns = Columns(csr_array(np.eye(2)), np.ones(2), np.full(2, 0.5))
    >>> columns.rows(np.arange(2))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    >>> columns.times(np.array([[3.0], [1.0]])).T
    array([[ 1., -1.]])
    """

    weights: csr_array
    offset: Floats
    share: Floats

    @classmethod
    def of(cls, weights: csr_array) -> Columns:
        """Columns that need no centring."""
        return cls(weights, np.zeros(weights.shape[0]), np.zeros(weights.shape[1]))

    @property
    def n_columns(self) -> int:
        """How many coefficients there are, per campaign or per query."""
        return int(self.weights.shape[1])

    def rows(self, pairs: Ints) -> Floats:
        """Some of the pairs as a dense matrix, shape (n, column)."""
        return np.asarray(self.weights[pairs].toarray() - np.outer(self.offset[pairs], self.share))

    def take(self, pairs: slice) -> Columns:
        """Some of the pairs."""
        return Columns(self.weights[pairs], self.offset[pairs], self.share)

    def times(self, coefficients: Floats) -> Floats:
        """What coefficients of the campaign, shape (column, draw), add to each pair, shape (pair, draw)."""
        out = self.weights @ coefficients
        if self.share.any():
            out -= np.multiply.outer(self.offset, self.share @ coefficients)
        return np.asarray(out)

    def transposed_times(self, values: Floats) -> Floats:
        """The transpose times what the pairs have, shape (column, n)."""
        out = self.weights.T @ values
        if self.share.any():
            out -= np.multiply.outer(self.share, self.offset @ values)
        return np.asarray(out)

    def times_by_query(self, coefficients: Floats, query: Ints) -> Floats:
        """What coefficients of queries, shape (query, column, draw), add to each pair, shape (pair, draw).

        ``query`` is the position of each pair's query among them, rising, shape (pair,).
        """
        n_queries, _, n_draws = coefficients.shape
        out = self._wide(query, n_queries) @ coefficients.reshape(n_queries * self.n_columns, n_draws)
        if self.share.any():
            out -= self._offsets(query, n_queries) @ np.einsum("c,qcn->qn", self.share, coefficients)
        return np.asarray(out)

    def gram_by_query(self, values: Floats, query: Ints, n_queries: int) -> Floats:
        """Within each query, these columns times their transpose times what the pairs have, shape (pair, n)."""
        inner = (self._wide(query, n_queries).T @ values).reshape(n_queries, self.n_columns, values.shape[1])
        if self.share.any():
            inner -= self.share[:, None] * (self._offsets(query, n_queries).T @ values)[:, None, :]
        return self.times_by_query(inner, query)

    def _wide(self, query: Ints, n_queries: int) -> csr_array:
        """The sparse part with columns of its own for each query, shape (pair, query and column)."""
        at = self.weights.indices + np.repeat(query * self.n_columns, np.diff(self.weights.indptr))
        shape = (len(query), n_queries * self.n_columns)
        return csr_array((self.weights.data, at, self.weights.indptr), shape=shape)

    def _offsets(self, query: Ints, n_queries: int) -> csr_array:
        """The offset of each pair in the column of its query, shape (pair, query)."""
        return csr_array((self.offset, query, np.arange(len(query) + 1)), shape=(len(query), n_queries))

    @cached_property
    def squares(self) -> Floats:
        """The sum of each pair's squares: its variance for coefficients of variance 1, shape (pair,)."""
        own = np.asarray(self.weights.power(2).sum(axis=1)).ravel()
        cross = self.weights @ self.share
        return np.asarray(own - 2 * self.offset * cross + self.offset**2 * float(self.share @ self.share))


@dataclass(frozen=True, eq=False)
class CampaignView:
    """A campaign as effects see it: its lists to a depth, whose systems all have a team.

    Parameters
    ----------
    collection
        Runs with teams, and whatever metadata there are.
    depth, scale
        The depth of the pool, and the grades.
    """

    collection: Collection
    depth: int
    scale: Scale

    @classmethod
    def of(cls, collection: Collection, *, depth: int, scale: Scale) -> CampaignView:
        """The view of a collection; a system without a team is one of its own."""
        if collection.runs.teams is None:
            collection = replace(collection, runs=collection.runs.with_teams({}))
        return cls(collection, depth, scale)

    @cached_property
    def runs(self) -> Runs:
        """The lists, on the pool of their pairs."""
        return self.collection.runs.top(self.depth)

    @property
    def teams(self) -> list[str]:
        """The teams, in the order of their first system."""
        return list(dict.fromkeys(self.runs.teams or ()))

    @cached_property
    def popularity(self) -> Floats:
        """The log share of systems that retrieved each pair, centred, shape (pair,)."""
        values = compute_features(self.collection, feature_names((POPULARITY,)), depth=self.depth, scale=self.scale)
        popular = values.design([POPULARITY])[:, 0]
        return frozen(np.asarray(popular - (popular.mean() if len(popular) else 0.0)))

    @cached_property
    def membership(self) -> Columns:
        r"""What each system weighs in each pair: :math:`1/\sqrt{n_d}` if it is one of the n that have it, centred."""
        runs = self.runs
        system, query, rank = np.nonzero(runs.retrieved)
        pair = runs.pairs[system, query, rank]
        count = np.bincount(pair, minlength=len(runs.pool))
        weights = csr_array((1 / np.sqrt(count[pair]), (pair, system)), shape=(len(runs.pool), len(runs.systems)))
        return Columns(weights, np.sqrt(count), np.full(len(runs.systems), 1 / max(len(runs.systems), 1)))


class Effect(ABC):
    """Coefficients that share a standard deviation: what they are of, what they act on, what is known of them.

    Attributes
    ----------
    name
        As cards, diagnostics and tables call it.
    scope
        ``"campaign"``: one vector of coefficients; ``"query"``: one per query.
    acts_on
        ``"predictor"``: adds to the pairs' logits; ``"cutpoints"``: the logarithm by which a query's cutpoints are
        drawn apart.
    constant
        Whether it adds the same to every pair of a query: its mean over queries is then the first cutpoint's too.
    dims
        The axes of the coefficients, by name, the query's left out.
    vague
        The prior of the log standard deviation before any campaign is known.
    unseen
        The same for a new campaign where no past one could tell.
    typical
        The standard deviation that synthetic campaigns have.
    """

    name: str
    scope: ClassVar[Scope]
    acts_on: ClassVar[Target] = "predictor"
    constant: ClassVar[bool] = False
    dims: tuple[str, ...] = ()
    vague: ClassVar[Normal] = Normal(-0.5, 1.0)
    unseen: ClassVar[Normal] = Normal(-1.0, 0.5)
    typical: ClassVar[float]

    @abstractmethod
    def columns(self, view: CampaignView) -> Columns:
        """What each coefficient adds to each pair's logit."""

    def exists(self, scale: Scale) -> bool:
        """Whether grades on this scale can show it."""
        return True

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """The names along each of its dims."""
        return {}
