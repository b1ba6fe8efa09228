r"""Effects of the hierarchical model: the columns, scope and prior of groups of coefficients.

A pair's linear predictor is :math:`\eta_d = x_d\beta + \sum_k C_k[d] \cdot b_k`, one summand per effect :math:`k`, with
coefficients :math:`b_k \sim N(0, \sigma_k^2 I)`. An effect of the campaign has one vector of coefficients; an effect
within queries has one per query. Inference, learning, synthetic campaigns and ArviZ export iterate over the list of
effects (:func:`probeval.relevance.effects.model_effects`) and depend on no particular one.
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
from probeval.data.problem import Problem
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.features import FeatureTable, compute_features, feature_names
from probeval.features.standards import Standards
from probeval.relevance.normal import Normal

__all__ = ["CampaignView", "Columns", "Effect", "Scope", "Target"]

Scope = Literal["campaign", "query"]
Target = Literal["predictor", "cutpoints"]
POPULARITY, AUTHORITY = "log(fSYS)", "log(wSYS)"
LEAST_APART = 0.05  # one minus the mean cosine of systems, at least: identical runs have no differences


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Record):
    r"""The design matrix of an effect: the contribution of each coefficient to each pair's logit, shape (pair, column).

    The matrix is :math:`(W - r s') M`: a sparse one, as a pair has few systems and groups, minus one of rank one that
    centres it, times one that correlates the coefficients: :math:`M z` has the covariance :math:`M M'`.

    Parameters
    ----------
    weights
        :math:`W`, shape (pair, column).
    offset, share
        :math:`r` and :math:`s`, shapes (pair,) and (column,).
    mix
        :math:`M`, shape (column, column); None for independent coefficients.

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
    mix: Floats | None = None

    @classmethod
    def of(cls, weights: csr_array) -> Columns:
        """Return columns without centring."""
        return cls(weights, np.zeros(weights.shape[0]), np.zeros(weights.shape[1]))

    @property
    def n_columns(self) -> int:
        """The number of coefficients, per campaign or per query."""
        return int(self.weights.shape[1])

    def rows(self, pairs: Ints) -> Floats:
        """Return the rows of some pairs as a dense matrix, shape (n, column)."""
        out = self.weights[pairs].toarray() - np.outer(self.offset[pairs], self.share)
        return np.asarray(out if self.mix is None else out @ self.mix)

    def take(self, pairs: slice) -> Columns:
        """Return the columns of some pairs."""
        return replace(self, weights=self.weights[pairs], offset=self.offset[pairs])

    def mixed(self, coefficients: Floats) -> Floats:
        """Return :math:`M z`: coefficients as they add to pairs, shape (.., column, draw) as given."""
        return coefficients if self.mix is None else self.mix @ coefficients

    def times(self, coefficients: Floats) -> Floats:
        """Return the contribution of campaign coefficients, shape (column, draw), to each pair, shape (pair, draw)."""
        coefficients = self.mixed(coefficients)
        out = self.weights @ coefficients
        if self.share.any():
            out -= np.multiply.outer(self.offset, self.share @ coefficients)
        return np.asarray(out)

    def transposed_times(self, values: Floats) -> Floats:
        """Return the transpose times values of the pairs, shape (column, n)."""
        out = self.weights.T @ values
        if self.share.any():
            out -= np.multiply.outer(self.share, self.offset @ values)
        return np.asarray(out if self.mix is None else self.mix.T @ out)

    def times_by_query(self, coefficients: Floats, query: Ints) -> Floats:
        """Return the contribution of query coefficients, shape (query, column, draw), to each pair, shape (pair, draw).

        ``query`` is the position of each pair's query among them, in increasing order, shape (pair,).
        """
        coefficients = self.mixed(coefficients)
        n_queries, _, n_draws = coefficients.shape
        out = self._wide(query, n_queries) @ coefficients.reshape(n_queries * self.n_columns, n_draws)
        if self.share.any():
            out -= self._offsets(query, n_queries) @ np.einsum("c,qcn->qn", self.share, coefficients)
        return np.asarray(out)

    def gram_by_query(self, values: Floats, query: Ints, n_queries: int) -> Floats:
        """Return, within each query, the columns times their transpose times values of the pairs, shape (pair, n)."""
        inner = (self._wide(query, n_queries).T @ values).reshape(n_queries, self.n_columns, values.shape[1])
        if self.share.any():
            inner -= self.share[:, None] * (self._offsets(query, n_queries).T @ values)[:, None, :]
        return self.times_by_query(inner if self.mix is None else self.mix.T @ inner, query)

    def _wide(self, query: Ints, n_queries: int) -> csr_array:
        """Return the sparse part with separate columns for each query, shape (pair, query and column)."""
        at = self.weights.indices + np.repeat(query * self.n_columns, np.diff(self.weights.indptr))
        shape = (len(query), n_queries * self.n_columns)
        return csr_array((self.weights.data, at, self.weights.indptr), shape=shape)

    def _offsets(self, query: Ints, n_queries: int) -> csr_array:
        """Return the offset of each pair in the column of its query, shape (pair, query)."""
        return csr_array((self.offset, query, np.arange(len(query) + 1)), shape=(len(query), n_queries))

    @cached_property
    def squares(self) -> Floats:
        """Return the sum of squares of each row: its variance for coefficients of variance 1, shape (pair,)."""
        if self.mix is not None:
            return np.asarray((self.rows(np.arange(self.weights.shape[0])) ** 2).sum(axis=1))
        own = np.asarray(self.weights.power(2).sum(axis=1)).ravel()
        cross = self.weights @ self.share
        return np.asarray(own - 2 * self.offset * cross + self.offset**2 * float(self.share @ self.share))


@dataclass(frozen=True, eq=False, repr=False)
class CampaignView(Record):
    """The inputs of effects: a campaign's lists to a depth, with a team for every system.

    Parameters
    ----------
    problem
        Runs with teams, and optionally metadata.
    correlated
        Whether systems that retrieve the same documents have like effects.
    standards
        The constants of the design; None if they are to be taken from these lists.
    """

    problem: Problem
    correlated: bool = True
    standards: Standards | None = None

    @classmethod
    def of(cls, problem: Problem, *, correlated: bool = True, standards: Standards | None = None) -> CampaignView:
        """Return the view of a problem; a system without a team is a team of its own."""
        return cls(problem.in_teams(), correlated, standards)

    @property
    def runs(self) -> Runs:
        """The lists, on the pool of their pairs."""
        return self.problem.runs

    @property
    def teams(self) -> list[str]:
        """The teams, in the order of their first system."""
        return list(dict.fromkeys(self.runs.teams or ()))

    @cached_property
    def popularity(self) -> Floats:
        """The log share of systems that retrieved each pair, centred, shape (pair,)."""
        return frozen(np.asarray(self._term(POPULARITY) - self.mean_popularity))

    @cached_property
    def mean_popularity(self) -> float:
        """The mean log share of systems that retrieved a pair."""
        if self.standards is not None:
            return self.standards.popularity
        popular = self._term(POPULARITY)
        return float(popular.mean()) if len(popular) else 0.0

    @cached_property
    def membership(self) -> Columns:
        r"""The weight of each system in each pair: :math:`1/\sqrt{n_d}` if it is one of its n systems, centred."""
        runs = self.runs
        system, query, rank = np.nonzero(runs.retrieved)
        pair = runs.pairs[system, query, rank]
        count = np.bincount(pair, minlength=len(runs.pool))
        weights = csr_array((1 / np.sqrt(count[pair]), (pair, system)), shape=(len(runs.pool), len(runs.systems)))
        return Columns(weights, np.sqrt(count), np.full(len(runs.systems), 1 / max(len(runs.systems), 1)))

    @cached_property
    def overlap(self) -> Floats | None:
        r"""A root :math:`M` of the systems' covariance: the cosine of the sets of pairs that they retrieve.

        It is divided by one minus the mean cosine, so that differences between systems keep their mean variance. In
        the direction of the systems' mean authority, which is that of its coefficient too, the variance is 1 at most.
        None if systems are independent.
        """
        if self.standards is not None:
            return self.standards.overlap
        if not self.correlated:
            return None
        runs = self.runs
        system, query, rank = np.nonzero(runs.retrieved)
        pair = runs.pairs[system, query, rank]
        has = np.zeros((len(runs.systems), len(runs.pool)))
        has[system, pair] = 1.0
        size = np.maximum(has.sum(axis=1), 1.0)
        cosine = has @ has.T / np.sqrt(np.outer(size, size))
        n = len(cosine)
        alike = (cosine.sum() - np.trace(cosine)) / max(n * (n - 1), 1)
        value, vector = np.linalg.eigh(cosine / max(1 - alike, LEAST_APART))
        root = (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T
        mean = has @ self._term(AUTHORITY) / size
        along = mean - mean.mean()
        along /= max(float(np.linalg.norm(along)), LEAST_APART)
        sd = float(np.linalg.norm(along @ root))
        return np.asarray(root - max(1 - 1 / max(sd, LEAST_APART), 0.0) * np.outer(along, along @ root))

    @cached_property
    def selectivity(self) -> Floats:
        """The log of the longest mean length of the systems' lists over that of each system, shape (system,)."""
        if self.standards is not None:
            return self.standards.selectivity
        length = np.maximum(self.runs.retrieved.sum(axis=(1, 2)), 1)
        return frozen(np.log(length.max(initial=1) / length))

    def _term(self, term: str) -> Floats:
        return self.features((term,)).design([term])[:, 0]

    def features(self, terms: Sequence[str]) -> FeatureTable:
        """Return the features of some terms."""
        common = None if self.standards is None else self.standards.agreements
        names = feature_names(terms)
        return compute_features(self.problem, names, common=common)


class Effect(ABC):
    r"""An effect: coefficients with a common standard deviation, their scope, their design and their prior.

    Attributes
    ----------
    name
        The name in cards, diagnostics and tables.
    scope
        ``"campaign"``: one vector of coefficients; ``"query"``: one per query.
    acts_on
        ``"predictor"``: adds to the pairs' logits; ``"cutpoints"``: the log scale of a query's cutpoint distances.
    constant
        Whether it adds the same to every pair of a query: its mean over queries is then confounded with the first
        cutpoint.
    dims
        The names of the coefficients' axes, without the query axis.
    vague
        The prior of the log standard deviation without data of any campaign.
    unseen
        The prior for a new campaign if no past campaign was informative.
    widened
        Whether the standard deviation is larger with few systems, by the factor of the prior.
    stated
        The prior in every campaign, for an effect of evidence that past campaigns lack: it is not learned, and no card
        has it. None if the prior is learned.
    typical
        The standard deviation in synthetic campaigns.
    """

    name: str
    scope: ClassVar[Scope]
    acts_on: ClassVar[Target] = "predictor"
    constant: ClassVar[bool] = False
    dims: tuple[str, ...] = ()
    vague: ClassVar[Normal] = Normal(-0.5, 1.0)
    unseen: ClassVar[Normal] = Normal(-1.0, 0.5)
    widened: ClassVar[bool] = False
    stated: ClassVar[Normal | None] = None
    typical: ClassVar[float]

    @abstractmethod
    def columns(self, view: CampaignView) -> Columns:
        """Return the contribution of each coefficient to each pair's logit."""

    def exists(self, scale: Scale) -> bool:
        """Whether the effect is identifiable on this scale."""
        return True

    def applies(self, view: CampaignView) -> bool:
        """Whether the campaign has the evidence that the effect needs."""
        return True

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """Return the names along each axis of the coefficients."""
        return {}
