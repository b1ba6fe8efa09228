r"""Relevance before and after its answers, as normal priors of a campaign's judgments.

An assessor who answers sees what a grade sees: the part of relevance that labels measure, the reference's own views
within queries, and most of what is the pair's own. So before answers all of these are one covariance per query,

.. math:: K = K' + \sum_k \sigma_k^2 F_k F_k' + \sigma_e^2 I,

and the rest of a grade's noise is logistic. With the share :math:`s` of a grade's noise variance that answers see,
all logits are larger by :math:`1/\sqrt{1-s}`.

Given sites (:mod:`.field`), with :math:`S = Q - QCQ` and :math:`D` the documents with answers, relevance of a whole
query is :math:`\theta = m'' + (R + B'')g + x''` with

.. math:: K'' = K - K_{\cdot D}\,S\,K_{D\cdot},\qquad m'' = m + K_{\cdot D}(I - QC)(q - Qm_D),\qquad
          B'' = B - K_{\cdot D}\,S\,(R + B)_D.

See docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from probeval.arrays import Floats
from probeval.data.pool import Pool
from probeval.relevance.answers.field import Field, Sites
from probeval.relevance.covariances import Covariances
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack
from probeval.relevance.observers.levels import Stacks
from probeval.relevance.observers.prior import PAIR
from probeval.relevance.observers.worth import LOGISTIC

__all__ = ["answered_design", "relevance_after", "relevance_before", "rescaled"]

# The share of the variance of a grade's noise that is the pair's own, and seen again in an answer. Of .3, .5, .8 and .9
# it had the highest tau on DL 2019 and CLEF 2018, .9 a slightly better log score (docs/theory/preferences.md#answers).
OWN_SHARE = 0.8


def rescaled(design: ModelDesign) -> tuple[float, float]:
    """Return the factor of all logits of a design, and the variance of the pair's own effect that answers see beyond.

    With labels, a part of the pair's own effect is in the design already.
    """
    # The noise of a grade is the share 1 - s of what is particular to a pair, in place of 1 - rho with labels or 1
    # without. Its variance is pi^2/3 by definition, so all logits grow (docs/theory/preferences.md#answers).
    known = 0.0 if design.evidence is None else design.evidence.priors.share(PAIR)
    share = max(OWN_SHARE, known)
    return float(np.sqrt((1 - known) / (1 - share))), float((share - known) * LOGISTIC / (1 - share))


def answered_design(design: ModelDesign, measured: tuple[MeasuredPrior, ...]) -> ModelDesign:
    """Return the design of grades given answers: effects on predictors are part of the prior of relevance."""
    scale, _ = rescaled(design)
    return replace(
        design,
        coefficients=tuple(c.times(scale) for c in design.coefficients),
        cuts=tuple(c.times(scale) for c in design.cuts),
        effects=tuple(e for e in design.effects if e.effect.acts_on == "cutpoints"),
        common=tuple(design.campaign_columns),
        measured=measured,
    )


def relevance_before(stacks: Stacks, measured: MeasuredPrior | None, sds: Mapping[str, float]) -> MeasuredPrior:
    """Return the prior of a campaign's parameters and of all that answers see, before the answers.

    Parameters
    ----------
    stacks
        The queries of the design, with their effects.
    measured
        The prior given labels, if there are any.
    sds
        The standard deviations of the design's effects.
    """
    design = stacks.design
    scale, own = rescaled(design)
    if measured is None:
        measured = _unmeasured(stacks, sds)
    seen = []
    for stack, before in zip(stacks.stacks, measured.stacks, strict=True):
        # K = K' + sum_k sigma_k^2 F_k F_k' + sigma_e^2 I. Those who answer are the campaign's own assessors: they also
        # see the reference's views of a query, which labels do not.
        k = before.covariances
        factor = stack.factor({name: scale * sds[name] for name in stack.factors})
        seen.append(SeenStack(stack.pairs, Covariances.of(scale**2 * k.diagonal + own, scale * k.factor, factor)))
    return replace(
        measured,
        mean=scale * measured.mean,
        precision=measured.precision / scale**2,
        offset=scale * measured.offset,
        stacks=tuple(seen),
    )


def _unmeasured(stacks: Stacks, sds: Mapping[str, float]) -> MeasuredPrior:
    # Without labels K' is 0, and the campaign's parameters have independent priors.
    design = stacks.design
    layout, n = Layout.of(design), len(design.pool)
    mean, precision = np.zeros(layout.size), np.zeros(layout.size)
    for where, known in ((layout.cuts, design.cuts), (layout["coefficients"], design.coefficients)):
        mean[where] = [p.mean for p in known]
        precision[where] = [p.sd**-2.0 for p in known]
    for effect in design.of_campaign:
        precision[layout[effect.name]] = sds[effect.name] ** -2.0
    nothing = tuple(
        SeenStack(stack.pairs, Covariances(np.zeros(stack.pairs.shape), np.zeros((*stack.pairs.shape, 0))))
        for stack in stacks.stacks
    )
    return MeasuredPrior(
        1.0,
        mean,
        np.diag(precision),
        np.zeros(n),
        np.zeros((n, 0)),
        np.zeros((0, layout.size - layout.columns.start)),
        nothing,
        tuple(design.pool.query[stack.pairs[:, 0]] for stack in stacks.stacks),
    )


def relevance_after(field: Field, campaign_rows: Floats, pool: Pool, sites: Sites, weight: float) -> MeasuredPrior:
    """Return the prior given answers, of which each query with some becomes a dense stack of its own."""
    # B'' = B - K S (R + B), so the response to g gets the columns of R as well: of the parameters that any pair uses.
    before = field.prior
    used = np.flatnonzero(campaign_rows.any(axis=0))
    width = before.basis.shape[1]
    offset, basis = before.offset.copy(), np.pad(before.basis, ((0, 0), (0, len(used))))
    information, right = before.precision.copy(), before.precision @ before.mean
    # Queries without answers are as before; given g, answers of other queries say nothing of them.
    answered = {one.query for one in field.queries}
    stacks, queries = [], []
    for stack, mine in zip(before.stacks, before.queries, strict=True):
        kept = np.flatnonzero(~np.isin(mine, list(answered)))
        if len(kept):
            stacks.append(SeenStack(stack.pairs[kept], stack.covariances.take(kept)))
            queries.append(mine[kept])
    for i, one in enumerate(field.queries):
        # Without the judgments: these are fitted with the result as prior, and must not count twice.
        q, linear = field.sums(i, sites, None)
        found = field.query_posterior(i, q, linear)
        information[field.columns, field.columns] += found.information
        right[field.columns] += found.right
        # The other documents of the query follow by K_.D: S, m'' and B'' as in the module's formulas.
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
