r"""Relevance given sites: the normal algebra of answers, one block per query.

An answer about :math:`u = P\theta` is approximated by a *site* :math:`\exp(h u - \frac12 w u^2)`. With the sites of a
query summed over its documents, :math:`Q = P'WP` and :math:`q = P'h`, and its relevance :math:`\theta = m + Rg + x`,
:math:`x \sim N(0, K)`:

.. math:: C = (K^{-1} + Q)^{-1},\qquad \theta \mid g \sim N\big(m + Rg + C(q - Q(m + Rg)),\; C\big),

and the information on the campaign's parameters :math:`g` is :math:`R'(Q - QCQ)R`. The cost of a query grows with its
documents, however many answers they have. See docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from probeval.arrays import Floats, Ints
from probeval.data.pool import Pool
from probeval.relevance.answers.observations import AnswerRows
from probeval.relevance.covariances import JITTER
from probeval.relevance.inference.measured import MeasuredPrior

__all__ = [
    "Field",
    "FieldPosterior",
    "JudgedSites",
    "QueryAnswers",
    "QueryPosterior",
    "QueryRelevance",
    "Sites",
    "by_query",
]


class QueryAnswers(NamedTuple):
    """The observations of one query."""

    query: int  # its position in the pool
    at: Ints  # the positions of the observations, shape (n,)
    docs: Ints  # the pairs with answers or judgments, as positions among the query's pairs, shape (doc,)
    rows: Floats  # P, shape (n, doc)


class Sites(NamedTuple):
    r"""The normal approximation of each answer, :math:`\exp(s + hu - \frac12 wu^2)`."""

    precision: Floats  # w
    linear: Floats  # h
    log_size: Floats  # s


class JudgedSites(NamedTuple):
    """Judgments as sites of relevance, to second order: precision and linear term of each pair, 0 where unjudged."""

    precision: Floats
    linear: Floats


class QueryRelevance(NamedTuple):
    """The prior of one query's relevance."""

    root: Floats  # of K
    rows: Floats  # R: the response to the campaign's parameters
    offset: Floats  # m


@dataclass(frozen=True, eq=False)
class QueryPosterior:
    """A query given its sites; names as in the module's formulas."""

    covariance: Floats  # C
    followed: Floats  # (I - CQ)R: the response of relevance to g
    information: Floats  # on g
    right: Floats  # of g's normal equations
    centre: Floats  # relevance at g = 0
    log_determinant: float  # log|I + KQ|


@dataclass(frozen=True, eq=False)
class FieldPosterior:
    """All queries given their sites."""

    mean: Floats  # of the campaign's parameters without cutpoints
    root: Floats  # the Cholesky factor of their precision
    queries: Sequence[QueryPosterior]
    relevance: Sequence[Floats]  # the mean of each query's relevance, shapes (doc,)
    u: Floats  # the mean of the relevance in question, shape (observation,)
    variance: Floats  # its variance

    def covariance(self, number: int) -> Floats:
        """Return the covariance of one query's relevance, the campaign's parameters integrated out."""
        # Cov[theta] = C + Y Cov[g] Y', with Y the response to g and LL' the precision of g.
        one = self.queries[number]
        moved = solve_triangular(self.root, one.followed.T, lower=True)
        return np.asarray(one.covariance + moved.T @ moved)


def by_query(pool: Pool, observations: AnswerRows, judged: Ints) -> list[QueryAnswers]:
    """Return the observations of each query that has answers; its judged pairs are among its documents."""
    out = []
    for query in np.unique(observations.query).tolist():
        at = np.flatnonzero(observations.query == query)
        pairs = pool.pairs_of(query)
        # Judged pairs without answers are among the documents too: their judgments inform the others.
        rows = observations.rows[at][:, pairs].tocsc()
        used = np.flatnonzero(np.diff(rows.indptr))
        mine = judged[(judged >= pairs.start) & (judged < pairs.stop)] - pairs.start
        docs = np.union1d(used, mine)
        out.append(QueryAnswers(query, at, docs, rows[:, docs].toarray()))
    return out


class Field:
    """Relevance before its answers, at one setting.

    Parameters
    ----------
    prior
        The prior of the campaign's parameters and of relevance (:func:`relevance_before`).
    campaign_rows
        The columns of the campaign's parameters without cutpoints, shape (pair, parameter).
    pool, queries
        The pool, and the queries with answers.
    """

    def __init__(
        self, prior: MeasuredPrior, campaign_rows: Floats, pool: Pool, queries: Sequence[QueryAnswers]
    ) -> None:
        self.prior, self.queries = prior, queries
        self.columns = slice(len(prior.mean) - campaign_rows.shape[1], len(prior.mean))
        # Answers do not depend on cutpoints, which are integrated out of the prior of the other parameters.
        covariance = np.linalg.inv(prior.precision)[self.columns, self.columns]
        self.precision = np.linalg.inv(covariance)  # of the parameters that are not cutpoints
        self.mean = prior.mean[self.columns]
        self.pairs = [pool.pairs_of(one.query).start + one.docs for one in queries]
        self.relevance = []
        for one, pairs in zip(queries, self.pairs, strict=True):
            k = prior.covariance(one.query, one.docs, one.docs)
            k[np.diag_indices(len(k))] *= 1 + JITTER
            rows = campaign_rows[pairs] + prior.response(pairs)
            self.relevance.append(QueryRelevance(np.asarray(np.linalg.cholesky(k)), rows, prior.offset[pairs]))

    def query_posterior(self, number: int, information: Floats, linear: Floats) -> QueryPosterior:
        """Return one query given the sum of its sites, :math:`Q` and :math:`q`."""
        # With K = LL', C = L (I + L'QL)^-1 L': neither K nor Q needs an inverse, and Q may be singular.
        root, rows, offset = self.relevance[number]
        inner = root.T @ information @ root
        inner[np.diag_indices(len(inner))] += 1.0
        small = np.linalg.cholesky(inner)
        half = solve_triangular(small, root.T, lower=True)
        covariance = half.T @ half
        followed = rows - covariance @ (information @ rows)
        left = linear - information @ offset
        centre = offset + covariance @ left
        return QueryPosterior(
            covariance=covariance,
            followed=followed,
            information=rows.T @ (information @ followed),
            right=followed.T @ left,
            centre=centre,
            log_determinant=2 * float(np.log(np.diag(small)).sum()),
        )

    def sums(self, number: int, sites: Sites, judged: JudgedSites | None) -> tuple[Floats, Floats]:
        """Return :math:`Q` and :math:`q` of one query from its sites, shapes (doc, doc) and (doc,)."""
        # Q = P'WP and q = P'h; a judgment is a site of one document, on the diagonal.
        one = self.queries[number]
        information = one.rows.T @ (sites.precision[one.at, None] * one.rows)
        toward = one.rows.T @ sites.linear[one.at]
        if judged is not None:
            information[np.diag_indices(len(information))] += judged.precision[self.pairs[number]]
            toward = toward + judged.linear[self.pairs[number]]
        return information, toward

    def posterior(self, sites: Sites, judged: JudgedSites | None = None) -> FieldPosterior:
        """Return relevance given all sites."""
        # Queries tell of one another through g alone: its normal equations are sums over queries.
        queries = [self.query_posterior(i, *self.sums(i, sites, judged)) for i in range(len(self.queries))]
        information = self.precision + sum(one.information for one in queries)
        right = self.precision @ self.mean + sum(one.right for one in queries)
        return self.joined(sites, queries, np.asarray(information), np.asarray(right))

    def joined(
        self, sites: Sites, queries: Sequence[QueryPosterior], information: Floats, right: Floats
    ) -> FieldPosterior:
        """Return relevance from its queries and the normal equations of the campaign's parameters."""
        root = np.asarray(np.linalg.cholesky(information))
        mean = cho_solve((root, True), right)
        relevance = [one.centre + one.followed @ mean for one in queries]
        u, variance = np.zeros(len(sites.precision)), np.zeros(len(sites.precision))
        found = FieldPosterior(mean, root, queries, relevance, u, variance)
        for i, one in enumerate(self.queries):
            u[one.at] = one.rows @ relevance[i]
            variance[one.at] = np.einsum("nd,nd->n", one.rows @ found.covariance(i), one.rows)
        return found

    def log_integral(self, sites: Sites, found: FieldPosterior) -> float:
        r"""Return the log of the prior mean of all sites, :math:`\log\int p(\theta)\prod\exp(hu - \frac12wu^2)`.

        ``found`` is relevance given these sites alone.
        """
        # The integrand is normal, so its integral is the value at its maximum times a ratio of determinants:
        # h'u - u'Wu/2 - (g - mu)'Lambda(g - mu)/2 - x'K^-1 x/2 - log|I + KQ|/2 + log|Lambda|/2 - log|Lambda + R'SR|/2.
        off = found.mean - self.mean
        value = sites.linear @ found.u - sites.precision @ found.u**2 / 2 - off @ self.precision @ off / 2
        for i, one in enumerate(found.queries):
            information, toward = self.sums(i, sites, None)
            score = toward - information @ found.relevance[i]  # K^-1 x, as the maximum has it: no inverse of K
            x = found.relevance[i] - self.relevance[i].offset - self.relevance[i].rows @ found.mean
            value -= x @ score / 2 + one.log_determinant / 2
        before = np.linalg.slogdet(self.precision)[1] / 2
        return float(value + before - np.log(np.diag(found.root)).sum())
