r"""The hierarchical model given answers: assessors, sites and variances together, then judgments as usual.

1. Judgments alone give the variances of the effects, with their uncertainty, and a normal site for each judged pair.
2. Sites of answers (:mod:`.sites`), the parameters of assessors and the variances are updated in turn until they
   settle; kinds of assessors now and then.
3. At several points around these variances the answers give a normal prior of relevance (:mod:`.priors`), weighed by
   their evidence, with which judgments are fitted as they are given labels.

As judgments and answers arrive, the points and the prior before answers stay as they are until the evidence has grown
by half. See docs/theory/preferences.md#answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import softmax

from probeval.arrays import Codes, Floats
from probeval.relevance.answers.assessors import Assessors, with_kinds
from probeval.relevance.answers.field import Field, FieldPosterior, JudgedSites, QueryAnswers, Sites, by_query
from probeval.relevance.answers.observations import AnswerRows
from probeval.relevance.answers.priors import answered_design, relevance_after, relevance_before, rescaled
from probeval.relevance.answers.sites import no_sites, updated_assessors, updated_sites
from probeval.relevance.inference.blocks import JudgedPairs, Layout, ParameterPoint
from probeval.relevance.inference.design import DesignedEffect, ModelDesign
from probeval.relevance.inference.laplace import LaplacePosterior, fit_laplace, spread_points
from probeval.relevance.inference.measured import MeasuredPrior
from probeval.relevance.inference.newton import find_mode
from probeval.relevance.observers.levels import Stacks

__all__ = ["AnswerEvidence", "fit_with_answers"]

STEPS = 60  # of sites and assessors, at most
DAMPED = 0.5  # share of an update of sites: all at once, they would overshoot
SETTLED = 0.05  # the largest change of a site at the end, in sds of the relevance in question
SAME = 0.03  # the largest step of an assessor's parameter at the end
KINDS_AT = 15  # the step at which the kinds of assessors are found, if they have not settled before
FEW = 6  # steps of sites and assessors between two of the variances
VARIANCES = 8  # steps of the variances, at most
LONGEST = 0.5  # the longest step of a log sd, against divergence
STILL = 0.05  # the largest such step at the end
LEAST_USED = 0.1  # least curvature: an effect without data stays at its prior
CERTAIN = 0.1  # the largest change of the probability of a kind at the end
GROWN = 1.5  # times the judgments and answers, at which variances are found anew


class VariancePoint(NamedTuple):
    """A point of the variances."""

    log_weight: float  # the log of prior over proposal
    before: MeasuredPrior  # relevance before answers


@dataclass(frozen=True, eq=False)
class AnswerEvidence:
    """The answers of a campaign, the estimates of their assessors, and the parts that a refit starts from."""

    observations: AnswerRows  # the answers about the pool
    assessors: Assessors
    field: Field  # relevance before answers
    sites: Sites  # of the answers
    found: FieldPosterior  # relevance given them
    judged: JudgedSites | None  # judgments as sites
    centre: VariancePoint  # the variances
    points: tuple[VariancePoint, ...]  # around them, over which they are integrated
    size: int  # the number of judgments and answers with which they were found
    plain: LaplacePosterior  # the fit to judgments alone


def fit_with_answers(
    design: ModelDesign, judged: Codes, observations: AnswerRows, *, last: LaplacePosterior | None = None
) -> LaplacePosterior:
    """Return the posterior given judgments and answers; ``last`` is that with fewer of them.

    Parameters
    ----------
    design
        The campaign before its answers, with its labels if it has any.
    judged
        Grades as positions on the scale, negative where unjudged, shape (pair,).
    observations
        The answers.
    """
    before = None if last is None else last.design.answers
    size = len(observations) + int((judged >= 0).sum())
    campaign = AnsweredCampaign.of(design, judged, observations)
    assessors, sites = _begin(observations, before)
    if before is None or size > GROWN * before.size:
        start = last if before is None else before.plain
        plain = fit_laplace(design, judged, start=None if start is None else start.start)
        centre, points, assessors, sites = find_settings(campaign, plain, assessors, sites)
    else:
        plain, centre, points, size = before.plain, before.centre, before.points, before.size
    # Assessors and sites are found at the central variances, with the judgments as sites.
    given = judged_sites(design, judged, centre.before)
    field = campaign.field(centre.before)
    fit = settle(field, observations, given, assessors, sites, kinds=True)
    # At each point the sites settle again, with the same kinds of assessors. Its weight is prior over proposal, times
    # the evidence of answers alone: that of judgments comes with their fit (docs/theory/hierarchical.md#variances).
    found, log_weight = [], []
    for point in points:
        there = campaign.field(point.before)
        its = settle(there, observations, given, fit.assessors, fit.sites, kinds=False).sites
        found.append((there, its))
        log_evidence = there.log_integral(its, there.posterior(its)) + float(its.log_size.sum())
        log_weight.append(point.log_weight + log_evidence)
    weights = softmax(log_weight)
    measured = tuple(
        relevance_after(there, campaign.rows, design.pool, its, float(weight))
        for (there, its), weight in zip(found, weights, strict=True)
    )
    evidence = AnswerEvidence(
        observations, fit.assessors, field, fit.sites, fit.found, given, centre, points, size, plain
    )
    answered = replace(answered_design(design, measured), answers=evidence)
    return fit_laplace(answered, judged, start=None if before is None or last is None else last.start)


@dataclass(frozen=True, eq=False)
class AnsweredCampaign:
    """A campaign before its answers, and the answers by query."""

    stacks: Stacks  # the queries of the design
    rows: Floats  # the columns of the campaign's parameters, shape (pair, parameter)
    judged: Codes  # the grades
    observations: AnswerRows
    queries: list[QueryAnswers]  # the answers of each query

    @classmethod
    def of(cls, design: ModelDesign, judged: Codes, observations: AnswerRows) -> AnsweredCampaign:
        """Return the campaign of a design."""
        queries = by_query(design.pool, observations, np.flatnonzero(judged >= 0))
        return cls(Stacks(design), design.campaign_rows(np.arange(len(design.pool))), judged, observations, queries)

    @property
    def design(self) -> ModelDesign:
        """The campaign before its answers."""
        return self.stacks.design

    def field(self, before: MeasuredPrior) -> Field:
        """Return relevance before its answers at one setting."""
        return Field(before, self.rows, self.design.pool, self.queries)

    @cached_property
    def effects(self) -> tuple[DesignedEffect, ...]:
        """The effects on predictors, whose variances answers tell of."""
        return tuple(e for e in self.design.effects if e.effect.acts_on == "predictor")

    def before(self, measured: MeasuredPrior | None, log_sd: Floats) -> MeasuredPrior:
        """Return relevance before its answers at some log standard deviations of the effects."""
        sds = {e.name: float(np.exp(value)) for e, value in zip(self.effects, log_sd, strict=True)}
        return relevance_before(self.stacks, measured, sds)


def _begin(observations: AnswerRows, before: AnswerEvidence | None) -> tuple[Assessors, Sites]:
    # A warm start: answers that were there before keep their sites, and assessors their estimates.
    assessors, sites = Assessors.typical(observations), no_sites(len(observations))
    if before is None:
        return assessors, sites
    known = {key: i for i, key in enumerate(before.observations.identities())}
    place = np.array([known.get(key, -1) for key in observations.identities()], dtype=np.int64)
    for new, old in zip(sites, before.sites, strict=True):
        new[place >= 0] = old[place[place >= 0]]
    return assessors.joined(before.assessors, observations.assessors, before.observations.assessors), sites


def judged_sites(design: ModelDesign, judged: Codes, before: MeasuredPrior) -> JudgedSites | None:
    """Return judgments as sites of relevance, to second order at the centre of the fit to them alone."""
    if not (judged >= 0).any():
        return None
    # The log-likelihood of a grade to second order at the mode is the site exp(h eta - w eta^2/2), with w the
    # information and h = slope + w eta. At the mode the slope is K^-1 x, the mode's weight.
    answered = answered_design(design, (before,))
    problem = JudgedPairs(answered, judged, before)
    mode = find_mode(problem, np.array([e.log_sd.mean for e in answered.effects]))
    predictor = problem.parameters(ParameterPoint(mode.campaign, mode.local, mode.weight)).predictor
    curve = np.concatenate([arrow.diagonal.ravel() for arrow in mode.arrows])[problem.at_pair]
    precision, linear = np.zeros((2, len(design.pool)))
    precision[problem.pairs] = curve
    linear[problem.pairs] = mode.weight[problem.at_pair] + curve * predictor
    return JudgedSites(precision, linear)


@dataclass(frozen=True, eq=False)
class SettledSites:
    """Sites and assessors that fit one another, and relevance given them."""

    sites: Sites
    assessors: Assessors
    found: FieldPosterior


def settle(
    field: Field,
    observations: AnswerRows,
    judged: JudgedSites | None,
    assessors: Assessors,
    sites: Sites,
    *,
    kinds: bool,
    steps: int = STEPS,
) -> SettledSites:
    """Update sites and assessors in turn until they settle; with ``kinds``, the kinds of assessors as well."""
    # In turn: sites given assessors, the field given sites, assessors given the field. Kinds are costly, with a fit for
    # each assessor and kind, so they wait until the rest has settled, or for a while.
    found = field.posterior(sites, judged)
    for step in range(1, steps + 1):
        sites, moved = updated_sites(observations, assessors, sites, found, share=DAMPED)
        found = field.posterior(sites, judged)
        assessors, stepped = updated_assessors(observations, assessors, sites, found)
        done = moved < SETTLED and stepped < SAME
        if kinds and (done or step in (KINDS_AT, steps)):
            before = assessors
            assessors, complete = with_kinds(field, sites, judged, found, observations, assessors)
            done = done and complete and float(np.abs(assessors.kinds - before.kinds).max(initial=0.0)) < CERTAIN
        if done:
            break
    return SettledSites(sites, assessors, found)


def find_settings(
    campaign: AnsweredCampaign, plain: LaplacePosterior, assessors: Assessors, sites: Sites
) -> tuple[VariancePoint, tuple[VariancePoint, ...], Assessors, Sites]:
    """Return the variances that answers and judgments suggest, the points around them, and assessors and sites there.

    Parameters
    ----------
    plain
        The fit to judgments alone, whose variances answers move.
    """
    # The prior of the log sds is their posterior given judgments, from which the evidence of answers moves them.
    design, known = campaign.design, plain.log_sds
    mean, sd = (np.array([getattr(known[e.name], part) for e in campaign.effects]) for part in ("mean", "sd"))
    best = plain.problem.measured
    log_sd, before = mean, campaign.before(best, mean)
    given = judged_sites(design, campaign.judged, before)
    information = np.zeros(len(mean))
    for step_number in range(VARIANCES):
        field, first = campaign.field(before), step_number == 0
        steps = STEPS if first else FEW
        fit = settle(field, campaign.observations, given, assessors, sites, kinds=first, steps=steps)
        assessors, sites = fit.assessors, fit.sites
        # A step as for judgments alone: a curvature above the information makes it short (laplace.fit_laplace).
        slope, used, information = variance_slopes(campaign, field, sites, log_sd)
        step = (slope - (log_sd - mean) / sd**2) / (1 / sd**2 + np.maximum(2 * used, LEAST_USED))
        step = np.clip(step, -LONGEST, LONGEST)
        log_sd = log_sd + step
        before = campaign.before(best, log_sd)
        if np.abs(step).max(initial=0.0) < STILL:
            break
    # Points log sd + error z. Importance weights: the prior before judgments, as these are fitted again at each point,
    # over the normal density of z. With labels each point has one of the settings of their worth, and its weight.
    errors = 1 / np.sqrt(1 / sd**2 + information)
    settings = [problem.measured for problem in plain.problems]
    points = []
    for measured, z in zip(settings, spread_points(len(settings), len(mean)), strict=True):
        at = log_sd + errors * z
        off = [(value - e.log_sd.mean) / e.log_sd.sd for value, e in zip(at, campaign.effects, strict=True)]
        log_weight = float((z @ z - np.square(off).sum()) / 2) + (0.0 if measured is None else np.log(measured.weight))
        points.append(VariancePoint(log_weight, campaign.before(measured, at)))
    return VariancePoint(0.0, before), tuple(points), assessors, sites


def variance_slopes(
    campaign: AnsweredCampaign, field: Field, sites: Sites, log_sd: Floats
) -> tuple[Floats, Floats, Floats]:
    r"""Return the slope of the log evidence in each log standard deviation, and two measures of its information.

    As for judgments (:func:`probeval.relevance.inference.laplace.influence`): with :math:`a = q - Q\hat\theta` and
    :math:`R = S - SR_g\Lambda^{-1}R_g'S`, the slope of an effect within queries is :math:`\sigma^2(|F'a|^2 -
    \text{tr}\,F'RF)`, and :math:`\rho = \sigma^2 F'RF`. Shapes (effect,): the slope, :math:`\text{tr}\,\rho`, and
    :math:`2\,\text{tr}\,\rho^2`.
    """
    found = field.posterior(sites)
    scale, _ = rescaled(campaign.design)
    layout = Layout.of(campaign.design)
    slope, used, information = np.zeros((3, len(log_sd)))
    covariance = cho_solve((found.root, True), np.eye(len(found.root)))
    # Of each query R = S - S R_g Lambda^-1 R_g' S, where S R_g = Q (I - CQ) R_g, and a = q - Q theta.
    resolvents = []
    for i, one in enumerate(found.queries):
        q, linear = field.sums(i, sites, None)
        toward = solve_triangular(found.root, (q @ one.followed).T, lower=True)
        resolvents.append((q - q @ one.covariance @ q - toward.T @ toward, linear - q @ found.relevance[i]))
    for k, effect in enumerate(campaign.effects):
        variance = float((scale * np.exp(log_sd[k])) ** 2)
        # Effects of the campaign: rho = I - Cov[b]/sigma^2 and slope b'b/sigma^2 - tr rho, by Fisher's identity
        # (docs/theory/hierarchical.md#variances).
        if effect.effect.scope == "campaign":
            where = slice(*(at - field.columns.start for at in (layout[effect.name].start, layout[effect.name].stop)))
            share = np.eye(where.stop - where.start) - covariance[where, where] / variance
            used[k] = max(float(np.trace(share)), 0.0)
            information[k] = 2 * float((share**2).sum())
            slope[k] = float((found.mean[where] ** 2).sum() / variance - np.trace(share))
            continue
        for pairs, (resolvent, score) in zip(field.pairs, resolvents, strict=True):
            factor = effect.columns.rows(pairs)
            factor = factor[:, factor.any(axis=0)]
            reached = variance * factor.T @ resolvent @ factor
            slope[k] += variance * float(((factor.T @ score) ** 2).sum()) - float(np.trace(reached))
            used[k] += float(np.trace(reached))
            information[k] += 2 * float((reached**2).sum())
    return slope, used, information
