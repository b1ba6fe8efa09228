r"""Relevance before its answers: what the reference's grades see, as one normal prior per setting of the variances.

An assessor who answers sees what a grade sees: the part of relevance that labels measure, the reference's own views
within queries, and most of what is the pair's own. So all of these are one covariance per query,

.. math:: K = K' + \sum_k \sigma_k^2 F_k F_k' + \sigma_e^2 I,

and what is left of a grade's noise is logistic. With the share :math:`s` of a grade's noise variance that answers see,
all logits are larger by :math:`1/\sqrt{1-s}`. See docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from probeval.relevance.covariances import Covariances
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack
from probeval.relevance.observers.levels import Stacks
from probeval.relevance.observers.prior import PAIR
from probeval.relevance.observers.worth import LOGISTIC

__all__ = ["answered_design", "relevance_before", "rescaled"]

OWN_SHARE = 0.8  # of the variance of a grade's noise: what is the pair's own, and seen again by whoever answers


def rescaled(design: ModelDesign) -> tuple[float, float]:
    """Return the factor of all logits of a design, and the variance of the pair's own effect that answers see beyond.

    With labels, a part of the pair's own effect is in the design already.
    """
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
    """Return the prior of a design without labels, in which nothing within queries is measured."""
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
