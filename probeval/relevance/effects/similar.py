r"""The effect of similar documents within a query, by the texts of documents or by vectors of them.

With :math:`S` the cosines between the documents of a query, documents are alike if they are similar to the same
documents:

.. math:: h \sim N(0, \sigma^2 S^2 / c),\qquad c = \text{mean of the diagonal over pairs with a text}

Only the leading directions of :math:`S^2` are kept: the others are nearly all on the diagonal, the documents' own,
which a single grade cannot tell from its noise, and leaving them out keeps large queries cheap. See
docs/theory/hierarchical.md#similar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from probeval.arrays import Floats
from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.normal import Normal
from probeval.threads import one_thread

__all__ = ["Similar"]

DIRECTIONS = 10  # of each query: with 20 or all of them, unjudged documents are not predicted better


class Similar(Effect):
    """The effect of the documents that a document is similar to: :math:`h_d`.

    Its prior is stated, as few past campaigns have texts. On two with web passages the log standard deviation is 1.31
    and 1.18. The prior is wider than they ask for: other texts, or poor vectors, may tell less.
    """

    name = "similar"
    scope = "query"
    dims = ("direction",)
    stated = Normal(1.0, 0.7)
    typical = 1.0

    def applies(self, view: CampaignView) -> bool:
        """Whether two documents of a query have texts, or vectors."""
        vectors = view.problem.vectors
        return vectors is not None and bool((np.bincount(view.runs.pool.query[vectors.known]) > 1).any())

    def columns(self, view: CampaignView) -> Columns:
        """Return the directions of each query's similarity; zero for documents without text or vector."""
        pool, vectors = view.runs.pool, view.problem.vectors
        assert vectors is not None
        rows = np.zeros((len(pool), DIRECTIONS))
        with one_thread():
            for query in range(len(pool.queries)):
                at = pool.pairs_of(query)
                pairs = at.start + np.flatnonzero(vectors.known[at])
                if len(pairs) > 1:
                    found = directions(vectors.cosine(pairs, pairs))
                    rows[pairs, : found.shape[1]] = found
        size = (rows**2).sum() / max(np.count_nonzero(vectors.known), 1)
        return Columns.of(csr_array(rows / np.sqrt(size or 1.0)))

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """Return the numbers of the directions."""
        return {"direction": [str(i + 1) for i in range(DIRECTIONS)]}


def directions(similarity: Floats) -> Floats:
    r"""Return the leading directions :math:`F` of similarities, :math:`F F' \approx S^2`, shape (doc, direction).

    >>> found = directions(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> np.abs(np.round(found @ found.T, 6))
    array([[2., 2., 0.],
           [2., 2., 0.],
           [0., 0., 1.]])
    """
    n = len(similarity)
    value, vector = eigh(similarity, subset_by_index=[max(n - DIRECTIONS, 0), n - 1])
    out = (vector * np.maximum(value, 0.0))[:, ::-1]
    return np.asarray(out * np.where(out.sum(axis=0) < 0, -1.0, 1.0))
