"""The pooled prior for a new campaign, from estimates of past ones.

Coefficients, cutpoints and variances differ from campaign to campaign far beyond their standard errors, so the prior of
the next campaign is not their mean but the predictive distribution, with the between-campaign spread, which is itself
uncertain with few campaigns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probeval.errors import ModelError
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.learning.campaign import CampaignEstimate, ModelSpec
from probeval.relevance.normal import Normal

__all__ = ["pooled_prior"]

# Half-normal scales of the between-campaign standard deviations.
BETWEEN_COEFFICIENTS = 0.5  # logits per sd of the term
BETWEEN_CUTS = 1.0  # logits: campaigns differ most in their share of relevant pairs
BETWEEN_GAPS = 0.5  # logits
BETWEEN_LOG_SDS = 0.4  # a factor of 1.5 either way
GRID = np.linspace(0.05, 4.0, 80)  # of between-campaign sds, in units of their scale
DEFAULT_GAP = Normal(1.5, 0.75)  # the prior of a gap if all past campaigns had two levels
MANY = 10  # scales with this many levels have narrower gaps, uninformative for shorter scales


def pooled_prior(estimates: Sequence[CampaignEstimate], spec: ModelSpec) -> HierarchicalPrior:
    """Return the prior for a new campaign."""
    if not estimates:
        raise ModelError("No campaign was given to learn from.")
    every = [gap for estimate in estimates if estimate.n_levels < MANY for gap in estimate.gaps if gap is not None]
    any_gap = _next(every, BETWEEN_GAPS, positive=True) if every else DEFAULT_GAP
    sizes = sorted({estimate.n_levels for estimate in estimates if estimate.n_levels > 2})
    gaps = {n: tuple(_gap(estimates, n, i) or any_gap for i in range(n - 2)) for n in sizes}
    return HierarchicalPrior(
        terms=spec.terms,
        coefficients=tuple(
            _next([estimate.coefficients[i] for estimate in estimates], BETWEEN_COEFFICIENTS)
            for i in range(len(spec.terms))
        ),
        first_cut=_next([estimate.first_cut for estimate in estimates], BETWEEN_CUTS),
        gaps=gaps,
        gap=any_gap,
        log_sds={
            effect.name: _next(
                [e.log_sds[effect.name] for e in estimates if effect.name in e.log_sds] or [effect.unseen],
                BETWEEN_LOG_SDS,
            )
            for effect in spec.effects
        },
    )


def _gap(estimates: Sequence[CampaignEstimate], n_levels: int, place: int) -> Normal | None:
    """Return the prior of a gap on scales of this many levels; None if no campaign gave both of its grades."""
    seen = [gap for e in estimates if e.n_levels == n_levels and (gap := e.gaps[place]) is not None]
    return _next(seen, BETWEEN_GAPS, positive=True) if seen else None


def _next(seen: Sequence[Normal], scale: float, *, positive: bool = False) -> Normal:
    r"""Return the predictive distribution of a new campaign's value, as a normal.

    Values are normal around a mean with between-campaign sd :math:`\tau`, which has a half-normal prior of the given
    scale; the mean has a flat one. :math:`\tau` is integrated over a grid.
    """
    value, error = np.array([n.mean for n in seen]), np.array([n.sd for n in seen])
    tau = GRID * scale
    precision = 1 / (error**2 + tau[:, None] ** 2)
    mean = (precision * value).sum(axis=1) / precision.sum(axis=1)
    log_weight = np.log(precision).sum(axis=1) / 2 - np.log(precision.sum(axis=1)) / 2
    log_weight -= (precision * (value - mean[:, None]) ** 2).sum(axis=1) / 2 + (tau / scale) ** 2 / 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    centre = float(weight @ mean)
    variance = float(weight @ (tau**2 + 1 / precision.sum(axis=1) + (mean - centre) ** 2))
    sd = float(np.sqrt(variance))
    return Normal(centre, min(sd, centre / 2) if positive and centre > 0 else sd)
