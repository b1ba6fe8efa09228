"""What past campaigns teach the hierarchical model: a lesson from each, and the predictive over them for the next.

Coefficients, cutpoints and variances differ from campaign to campaign far beyond their standard errors, so the prior of
the next campaign is not their mean but the predictive: between-campaign spread included, itself uncertain as campaigns
are few.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import ModelError, ProbevalWarning
from probeval.relevance.effects.labels import LabelWorth
from probeval.relevance.effects.normal import Normal
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import STRETCH, Design
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.inference.likelihood import Observations, fit_cumulative

__all__ = ["CampaignEstimate", "ModelSpec", "learn", "learn_labels", "predictive"]

# Half-normal scales of the between-campaign standard deviations.
BETWEEN = {"coefficient": 0.5, "cut": 1.0, "gap": 0.5, "log_sd": 0.4}
UNSEEN = Normal(-1.0, 0.5)  # the log sd of stretches where all past campaigns had two levels
GRID = np.linspace(0.0, 4.0, 81)  # of between-campaign sds, in units of their scale


@dataclass(frozen=True)
class ModelSpec:
    """What the model looks at: terms with the centre and spread that standardise them, and groupings of documents."""

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    groups: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of effects that have a variance."""
        return ("query", "slope", "interaction", *(f"group:{g}" for g in self.groups), "team", "system", STRETCH)

    def vague(self) -> HierarchicalPrior:
        """A prior that says little, for learning from a whole campaign."""
        return HierarchicalPrior(
            terms=self.terms,
            centre=self.centre,
            spread=self.spread,
            coefficients=(Normal(0.0, 2.0),) * len(self.terms),
            first_cut=Normal(0.0, 4.0),
            gaps={},
            gap=Normal(1.0, 2.0),
            log_sds={kind: Normal(-0.5, 1.0) for kind in self.kinds},
        )


@dataclass(frozen=True)
class CampaignEstimate:
    """What one finished campaign says, each with its standard error.

    Parameters
    ----------
    name
        The campaign.
    n_levels
        How many levels its scale has.
    coefficients, first_cut, gaps, log_sds
        Estimates as normals: mean and standard error.
    """

    name: str
    n_levels: int
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: tuple[Normal, ...]
    log_sds: Mapping[str, Normal]


@lru_cache(maxsize=32)
def learn(collection: Collection, vocabulary: ModelSpec, *, depth: int) -> CampaignEstimate:
    """The lesson of a campaign with judgments, under a vague prior; kept, as it takes a while."""
    if collection.judgments is None:
        raise ModelError(f"{collection.name}: there are no judgments to learn from.")
    scale = collection.judgments.scale()
    prior = vocabulary.vague()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # a missing term counts as average here
        design = Design.of(prior, collection, depth=depth, scale=scale)
    judged = collection.judgments.on(design.pool).codes(scale)
    fit = fit_laplace(design, judged, points=1)
    mode, problem = fit.best, fit.problem
    inverse = np.linalg.inv(mode.schur)
    error = np.sqrt((inverse**2).sum(axis=0))
    effects = [Normal(float(m), float(s)) for m, s in zip(mode.effects, error, strict=True)]
    cuts = effects[problem.cut]
    return CampaignEstimate(
        name=collection.name,
        n_levels=design.n_levels,
        coefficients=tuple(effects[problem.term]),
        first_cut=cuts[0],
        gaps=tuple(cuts[1:]),
        log_sds={k: Normal(float(m), float(s)) for k, m, s in zip(problem.kinds, mode.log_sd, fit.spread, strict=True)},
    )


def predictive(lessons: Sequence[CampaignEstimate], vocabulary: ModelSpec) -> HierarchicalPrior:
    """The prior for a campaign not yet seen."""
    if not lessons:
        raise ModelError("No campaign was given to learn from.")
    sizes = sorted({lesson.n_levels for lesson in lessons if lesson.n_levels > 2})
    gaps = {
        n: tuple(_next([at[i] for at in _gaps(lessons, n)], BETWEEN["gap"], positive=True) for i in range(n - 2))
        for n in sizes
    }
    every = [gap for lesson in lessons if lesson.n_levels < MANY for gap in lesson.gaps]
    return HierarchicalPrior(
        terms=vocabulary.terms,
        centre=vocabulary.centre,
        spread=vocabulary.spread,
        coefficients=tuple(
            _next([lesson.coefficients[i] for lesson in lessons], BETWEEN["coefficient"])
            for i in range(len(vocabulary.terms))
        ),
        first_cut=_next([lesson.first_cut for lesson in lessons], BETWEEN["cut"]),
        gaps=gaps,
        gap=_next(every, BETWEEN["gap"], positive=True) if every else Normal(1.5, 0.75),
        log_sds={
            kind: _next([x.log_sds[kind] for x in lessons if kind in x.log_sds] or [UNSEEN], BETWEEN["log_sd"])
            for kind in vocabulary.kinds
        },
    )


def learn_labels(labels: LabelTable, judgments: Judgments, *, complete: float = 0.9) -> LabelWorth:
    """What labels are worth, from pairs with both labels and grades.

    Sources that label less than ``complete`` of the pairs are left out: what they say of so few cannot be told from
    what made them speak.
    """
    scale = judgments.scale()
    codes = judgments.on(labels.pool).codes(scale)
    values = labels.values[codes >= 0]
    kept = [
        i
        for i in range(len(labels.sources))
        if np.mean(~np.isnan(values[:, i])) >= complete and np.nanstd(values[:, i])
    ]
    if not kept:
        raise ModelError(f"No source labels {complete:.0%} of the judged pairs: there is nothing to learn of labels.")
    centre, spread = np.nanmean(values[:, kept], axis=0), np.nanstd(values[:, kept], axis=0)
    x = np.nan_to_num((values[:, kept] - centre) / spread)
    level = scale.level_of(codes[codes >= 0]).astype(np.int64)
    rows = Observations(x, level, np.full(len(level), len(scale.levels)), np.ones(len(level)))
    fit = fit_cumulative(rows, ridge=len(level) / 1000)
    beta = fit.beta
    correlation = x.T @ x / len(x)
    return LabelWorth(
        sources=tuple(labels.sources[i] for i in kept),
        centre=tuple(map(float, centre)),
        spread=tuple(map(float, spread)),
        correlation=tuple(tuple(map(float, row)) for row in correlation),
        signal=tuple(map(float, correlation @ beta)),
        variance=float(beta @ correlation @ beta),
        cuts=tuple(map(float, fit.cuts[len(scale.levels)])),
    )


MANY = 10  # scales of so many levels have narrower gaps, which say nothing of short scales


def _gaps(lessons: Sequence[CampaignEstimate], n_levels: int) -> list[tuple[Normal, ...]]:
    return [lesson.gaps for lesson in lessons if lesson.n_levels == n_levels]


def _next(seen: Sequence[Normal], scale: float, *, positive: bool = False) -> Normal:
    r"""The predictive of one more campaign's value, in normal form.

    Values are normal around a mean with between-campaign sd :math:`\tau`, which has a half-normal prior of the given
    scale; the mean has a flat one. :math:`\tau` is integrated over a grid.
    """
    value, error = np.array([n.mean for n in seen]), np.array([n.sd for n in seen])
    tau = GRID[1:] * scale
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
