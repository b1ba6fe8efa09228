"""The level of grades that labels suggest, as an observation of the mean logit of retrieved documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from probeval.arrays import Floats
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior
from probeval.relevance.normal import Normal
from probeval.relevance.observers.conditioning import CampaignPrior
from probeval.relevance.observers.family import Family
from probeval.relevance.observers.worth import Worth

__all__ = ["LevelTarget", "suggested_level", "target_of", "with_level"]

FARTHEST = 12.0  # the largest shift of the level that is searched, in logits


def suggested_level(found: Sequence[Family], worth: Worth) -> Normal | None:
    """Return the most reliable of the levels that families with a positive slope suggest."""
    # The link of mean label and mean grade was learned from scales that rise with relevance.
    levels = [family.level for family, slope in zip(found, worth.slopes, strict=True) if family.level and slope > 0]
    return min(levels, key=lambda n: n.sd, default=None)


class LevelTarget(NamedTuple):
    """The level of grades that labels suggest, as an observation of the mean logit of retrieved documents."""

    logit: float
    sd: float


def target_of(prior: MeasuredPrior, reference: ModelDesign, level: Normal) -> LevelTarget:
    """Return the mean logit of retrieved documents at which grades have the suggested level."""
    return _level_target(prior, reference, level, *_mean_logit(prior, reference))


def _mean_logit(prior: MeasuredPrior, reference: ModelDesign) -> tuple[Floats, float]:
    # The mean logit is c'g + offset: the middle cutpoint, and the means over retrieved documents of Rg, with R the
    # columns of the campaign's parameters, and of x = m + Bg + x' given labels (docs/theory/observers.md#measured).
    layout = Layout.of(reference)
    share = reference.counts / reference.counts.sum()
    rows = reference.campaign_rows(np.arange(len(reference.pool)))
    functional = np.zeros(layout.size)
    functional[layout["first_cut"]] = 1.0
    functional[layout["gaps"]] = gap_columns(len(reference.cuts)).middle
    functional[layout.columns] = share @ rows + share @ prior.basis @ prior.directions
    return functional, float(share @ prior.offset)


def _level_target(
    prior: MeasuredPrior, reference: ModelDesign, level: Normal, functional: Floats, offset: float
) -> LevelTarget:
    r"""Return the mean logit at which grades have the suggested level, with its standard deviation.

    The mean grade of retrieved documents, as a share of its maximum, is :math:`f(t) = \text{mean}\,F((\alpha_\ell +
    \eta_d + t)/\sqrt{1 + \pi v_d/8})` for a shift :math:`t` of all logits, with a document counting once for each
    system; the shift at which it has the suggested logit is added to the mean logit.
    """
    layout = Layout.of(reference)
    rows = reference.campaign_rows(np.arange(len(reference.pool)))
    gaps = prior.mean[layout["gaps"]]
    columns = gap_columns(len(reference.cuts))
    # alpha and eta at the centre of the prior; v is the variance of x' and of the reference's own views. The campaign's
    # parameters are at their mean: one shift t of all logits stands for their common error.
    cuts = prior.mean[layout["first_cut"]] + columns.middle @ gaps + columns.apart @ gaps
    own = sum(e.log_sd.square * e.columns.squares for e in reference.of_query)
    eta = prior.offset + (rows + prior.response()) @ prior.mean[layout.columns]
    # A logistic is nearly a probit, so its mean over z ~ N(m, v) is about F(m / sqrt(1 + pi v / 8)).
    width = np.sqrt(1 + np.pi / 8 * (prior.variance + own))[:, None]
    share = reference.counts / reference.counts.sum()
    target = float(expit(level.mean))

    def excess(shift: float) -> float:
        return float(share @ expit((eta[:, None] + cuts + shift) / width).mean(axis=1)) - target

    # f rises with t, so there is one root, or none within the limits.
    within = excess(-FARTHEST) < 0 < excess(FARTHEST)
    shift = brentq(excess, -FARTHEST, FARTHEST, xtol=1e-12) if within else -np.copysign(FARTHEST, excess(0.0))
    # Delta method: an sd s of the logit of the mean grade p is s p (1 - p) of p itself, and that over f'(t) of the
    # shift. Where f is flat, labels say nothing of the level: the sd is large, but finite.
    reach = expit((eta[:, None] + cuts + shift) / width)
    steep = float(share @ (reach * (1 - reach) / width).mean(axis=1))
    spread = level.sd * target * (1 - target) / max(steep, 1e-6)
    return LevelTarget(float(functional @ prior.mean) + offset + shift, spread)


def with_level(prior: MeasuredPrior, reference: ModelDesign, level: Normal) -> CampaignPrior:
    """Return the prior of the campaign's parameters with the level of grades that labels suggest.

    It is an observation of the mean logit of the documents of ``reference``, whose queries may be a sample.
    """
    # One normal observation l of c'g + offset, with sd s: the precision grows by cc'/s^2, and the right side of the
    # normal equations by c (l - offset)/s^2.
    functional, offset = _mean_logit(prior, reference)
    target = _level_target(prior, reference, level, functional, offset)
    information = prior.precision + np.outer(functional, functional) / target.sd**2
    right = prior.precision @ prior.mean + functional * (target.logit - offset) / target.sd**2
    return CampaignPrior(np.asarray(np.linalg.solve(information, right)), information)
