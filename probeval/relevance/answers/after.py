r"""The prior of a campaign's judgments once answers are seen, as labels leave one.

Given sites, with :math:`S = Q - QCQ` and :math:`D` the documents with answers, relevance of a whole query is
:math:`\theta = m'' + (R + B'')g + x''` with

.. math:: K'' = K - K_{\cdot D}\,S\,K_{D\cdot},\qquad m'' = m + K_{\cdot D}(I - QC)(q - Qm_D),\qquad
          B'' = B - K_{\cdot D}\,S\,(R + B)_D.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.arrays import Floats
from probeval.data.pool import Pool
from probeval.relevance.answers.field import Field, Sites
from probeval.relevance.covariances import Covariances
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack

__all__ = ["relevance_after"]


def relevance_after(field: Field, campaign_rows: Floats, pool: Pool, sites: Sites, weight: float) -> MeasuredPrior:
    """Return the prior given answers, of which each query with some becomes a dense stack of its own."""
    before = field.prior
    used = np.flatnonzero(campaign_rows.any(axis=0))
    width = before.basis.shape[1]
    offset, basis = before.offset.copy(), np.pad(before.basis, ((0, 0), (0, len(used))))
    information, right = before.precision.copy(), before.precision @ before.mean
    answered = {one.query for one in field.queries}
    stacks, queries = [], []
    for stack, mine in zip(before.stacks, before.queries, strict=True):
        kept = np.flatnonzero(~np.isin(mine, list(answered)))
        if len(kept):
            stacks.append(SeenStack(stack.pairs[kept], stack.covariances.take(kept)))
            queries.append(mine[kept])
    for i, one in enumerate(field.queries):
        q, linear = field.sums(i, sites, None)
        found = field.query_posterior(i, q, linear)
        information[field.columns, field.columns] += found.information
        right[field.columns] += found.right
        pairs = pool.pairs_of(one.query)
        whole = before.covariance(one.query)
        toward = whole[:, one.docs]
        resolvent = q - q @ found.covariance @ q
        at = field.pairs[i]
        left = linear - q @ field.relevance[i].offset
        offset[pairs] += toward @ (left - q @ (found.covariance @ left))
        basis[pairs, :width] -= toward @ (resolvent @ before.basis[at])
        basis[pairs, width:] = -toward @ (resolvent @ campaign_rows[np.ix_(at, used)])
        moved = whole - toward @ resolvent @ toward.T
        stacks.append(
            SeenStack(np.arange(pairs.start, pairs.stop)[None], Covariances.whole((moved + moved.T)[None] / 2))
        )
        queries.append(np.array([one.query]))
    return replace(
        before,
        weight=weight,
        mean=np.asarray(np.linalg.solve(information, right)),
        precision=information,
        offset=offset,
        basis=basis,
        directions=np.concatenate([before.directions, np.eye(campaign_rows.shape[1])[used]]),
        stacks=tuple(stacks),
        queries=tuple(queries),
    )
