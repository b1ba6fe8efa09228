r"""Learn priors over observers from labels of pairs with known grades.

Grades and labels, each in units of their standard deviation, are mixed models with the same levels
(:mod:`probeval.relevance.observers.levels`). Their covariance at a level follows from the variances of both and of
their sum. Divided by the part of the grades' variance that others see, it is the slope :math:`\lambda` at this level;
what the labels' variance exceeds :math:`\lambda^2` times that part is the observer's own. Tables without runs have two
levels only, queries and pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logit

from probeval.arrays import Floats, Ints
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.observers import ObserverSpec
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.learning.campaign import ModelSpec
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import ENDS, highest_label
from probeval.relevance.observers.levels import LevelVariances, Stacks, level_variances
from probeval.relevance.observers.prior import PAIR, SEEN, UNSEEN, ObserverPrior, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC
from probeval.threads import one_thread

__all__ = ["ObserverEstimate", "learn_observers"]

FEWEST = 200  # pairs with label and grade that an observer needs to be learned from
WEAKEST = 0.1  # the least slope, in sds of labels per sd of grades: weaker observers are taken as this weak
LEAST_OWN = 0.03  # the least share of a level's variance that is the observer's own
LEAST_OWN_SD = 0.03  # the least sd of an own effect, in sds of the labels
BIASES = frozenset({"system", "team"})  # levels whose own effects are relative to those of relevance
LEAST_BIAS = 0.05  # the least share of a bias in the variance of systems, and of relevance
AGAIN = 0.33  # sd of the log slope of one observer between campaigns
AGAIN_OWN = 0.5  # the same of the log sd of an own effect
AGAIN_LEVEL = 0.25  # the same of the level, in logits
LEAST_KIND = 0.35  # least sd of log slopes within a kind
LEAST_LEVEL = 0.5  # least sd of levels within a kind, in logits
LEAST_OWN_KIND = 0.5  # least sd of the log sds of own effects within a kind
DOUBT = 3.0  # the number of campaigns from which biases towards systems are as well known as they were before
SHRUNK = 0.5  # the weight of an observer's own effects against those of its kind: one campaign says little of them


@dataclass(frozen=True)
class ObserverEstimate:
    """Estimates of one observer from one table of labels beside grades.

    Parameters
    ----------
    spec, campaign
        The observer, and the campaign or table.
    log_slope, log_own, popularity, level
        As in :class:`ObserverPrior`; levels and popularity need runs.
    """

    spec: ObserverSpec
    campaign: str
    log_slope: float
    log_own: Mapping[str, float]
    popularity: float | None
    level: float | None


def learn_observers(
    collections: Sequence[Collection], labelled: Sequence[tuple[LabelTable, Judgments]], spec: ModelSpec, *, depth: int
) -> ObserverPriors:
    """Return priors over observers from campaigns with labels, and from tables of labels beside grades.

    A table whose graded pairs are those of a campaign is used with its runs.
    """
    found: list[ObserverEstimate] = []
    for collection in collections:
        tables = [t for t, grades in labelled if _same(collection, grades)]
        if collection.labels is not None:
            known = {s for t in tables for s in t.sources}
            tables.insert(0, collection.labels.take([s for s in collection.labels.sources if s not in known]))
        for table in tables:
            found += _with_runs(collection, table, spec, depth=depth)
    for table, grades in labelled:
        if not any(_same(collection, grades) for collection in collections):
            found += _without_runs(table, grades)
    return _pooled(found)


def _same(collection: Collection, grades: Judgments) -> bool:
    """Whether most of the graded pairs are pairs that the campaign judged."""
    return collection.judgments is not None and float(np.mean(grades.pool.within(collection.judgments.pool) >= 0)) > 0.5


@lru_cache(maxsize=32)
def _with_runs(
    collection: Collection, labels: LabelTable, spec: ModelSpec, *, depth: int
) -> tuple[ObserverEstimate, ...]:
    """Return estimates from a campaign with runs; cached, as they are slow."""
    assert collection.judgments is not None
    scale = collection.judgments.scale()
    design = ModelDesign.of(spec.vague(), collection, depth=depth, scale=scale)
    codes = collection.codes_on(design.pool, scale)
    values = labels.on(design.pool)
    stacks = Stacks(design)
    of_grades: dict[bytes, LevelVariances] = {}  # by the pairs that an observer labelled: mostly all of them
    out = []
    with one_thread():
        for observer, column in zip(labels.observers, values.T, strict=True):
            both = (codes >= 0) & ~np.isnan(column)
            if both.sum() < FEWEST or not np.std(column[both]):
                continue
            extra = np.where(both, 0.0, np.inf)
            grade, label = _standard(scale.values[np.maximum(codes, 0)], both), _standard(column, both)
            key = both.tobytes()
            of_grades[key] = of_grades[key] if key in of_grades else level_variances(stacks, grade, extra)
            fits = [of_grades[key], *(level_variances(stacks, y, extra) for y in (label, grade + label))]
            variance = {i: dict(zip(f.names, np.exp(f.log_variance), strict=True)) for i, f in enumerate(fits)}
            covariance = {k: (variance[2][k] - variance[0][k] - variance[1][k]) / 2 for k in fits[0].names}
            terms = np.cov(design.terms[both].T)
            along = [float(fits[0].slopes @ terms @ fit.slopes) for fit in fits[:2]]
            level = _level(observer, scale.values[codes[both]] / scale.values.max(), column[both], design.counts[both])
            out.append(
                _estimate(observer, collection.name, variance[0], variance[1], covariance, along[1] / along[0], level)
            )
    return tuple(out)


def _without_runs(labels: LabelTable, grades: Judgments) -> list[ObserverEstimate]:
    """Return estimates from labels and grades alone: of queries and pairs."""
    scale = grades.scale()
    codes = grades.codes_on(labels.pool, scale)
    out = []
    for observer, column in zip(labels.observers, labels.values.T, strict=True):
        both = (codes >= 0) & ~np.isnan(column)
        if both.sum() < FEWEST or not np.std(column[both]):
            continue
        y = np.stack([_standard(scale.values[np.maximum(codes, 0)], both), _standard(column, both)])[:, both]
        query, pair = _two_levels(y, labels.pool.query[both])
        matrices = {"query": query, PAIR: pair}
        grade = scale.values[codes[both]] / scale.values.max()
        level = _level(observer, grade, column[both], np.ones(len(grade)))
        parts = [{k: float(m[i, j]) for k, m in matrices.items()} for i, j in ((0, 0), (1, 1), (0, 1))]
        out.append(_estimate(observer, grades.fingerprint(), parts[0], parts[1], parts[2], None, level))
    return out


def _two_levels(y: Floats, query: Ints) -> tuple[Floats, Floats]:
    """Return the covariance matrices of queries and of pairs within them, by moments, shapes (2, 2)."""
    names, at = np.unique(query, return_inverse=True)
    count = np.bincount(at).astype(float)
    means = np.stack([np.bincount(at, row) / count for row in y])
    within = (y - means[:, at]) @ (y - means[:, at]).T / max(y.shape[1] - len(names), 1)
    between = np.cov(means, aweights=count) if len(names) > 1 else np.zeros((2, 2))
    return between - within * float(np.mean(1 / count)), within


def _estimate(
    observer: ObserverSpec,
    campaign: str,
    grade: Mapping[str, float],
    label: Mapping[str, float],
    covariance: Mapping[str, float],
    popularity: float | None,
    level: float | None,
) -> ObserverEstimate:
    """Return the slope as the geometric mean over levels, and the own variance of each level.

    ``popularity`` is the slope of the labels' predictions by the terms on those of the grades.
    """
    used = [k for k in ("query", "interaction", "system", PAIR) if k in grade]
    seen = {k: SEEN.get(k, 1.0) * grade[k] for k in grade}
    ratios = [max(covariance[k] / max(seen[k], 1e-9), WEAKEST) for k in used]
    slope = float(np.exp(np.mean(np.log(ratios))))
    own = {k: max(label[k] - slope**2 * seen[k], LEAST_OWN * label[k], LEAST_OWN_SD**2) for k in label}
    for k in BIASES & own.keys():  # the share of the systems' variance that is not relevance, as a ratio
        bias = 1 - min(max(covariance[k], 0.0) ** 2 / (seen[k] * label[k]), 1.0)
        bias = min(max(bias, LEAST_BIAS), 1 - LEAST_BIAS)
        own[k] = bias / (1 - bias)
    unit = np.sqrt(grade[PAIR] / LOGISTIC)  # sds of grades per logit
    return ObserverEstimate(
        spec=observer,
        campaign=campaign,
        log_slope=float(np.log(slope * unit)),
        log_own={k: float(np.log(v) / 2) for k, v in own.items()},
        popularity=None if popularity is None else popularity / slope - 1,
        level=level,
    )


def _level(observer: ObserverSpec, grade: Floats, label: Floats, counts: Floats) -> float | None:
    """Return the logit of the mean grade less that of the mean label, each as a share of its maximum.

    A pair counts once for each system that retrieved it.
    """
    top = highest_label(observer, label)
    if top is None:
        return None
    weight = counts / counts.sum()
    shares = np.clip([weight @ grade, weight @ label / top], ENDS, 1 - ENDS)
    return float(logit(shares[0]) - logit(shares[1]))


def _standard(values: Floats, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """Return values in units of their standard deviation over some rows, 0 elsewhere."""
    return np.where(rows, (values - values[rows].mean()) / values[rows].std(), 0.0)


def _pooled(found: Sequence[ObserverEstimate]) -> ObserverPriors:
    """Return priors by kind, over all observers of the kind, and by name."""
    kinds: dict[str, list[ObserverEstimate]] = {}
    names: dict[str, list[ObserverEstimate]] = {}
    for estimate in found:
        kinds.setdefault(ObserverPriors.kind_of(estimate.spec), []).append(estimate)
        names.setdefault(estimate.spec.name, []).append(estimate)
    by_kind = {kind: _kind(some, found) for kind, some in kinds.items()}
    by_name = {name: _name(some, by_kind[ObserverPriors.kind_of(some[0].spec)]) for name, some in names.items()}
    return ObserverPriors(by_kind, by_name)


def _kind(some: Sequence[ObserverEstimate], every: Sequence[ObserverEstimate]) -> ObserverPrior:
    """Return the prior of a kind; what its observers cannot show is taken from all observers."""
    levels = {k for e in every for k in e.log_own}
    own = {
        k: [e.log_own[k] for e in some if k in e.log_own] or [e.log_own[k] for e in every if k in e.log_own]
        for k in levels
    }
    likings = [e.popularity for e in every if e.popularity is not None]
    heights = [e.level for e in some if e.level is not None]
    spread = {k: _spread(values, LEAST_OWN_KIND) for k, values in own.items()}
    for k in BIASES & spread.keys():
        campaigns = len({e.campaign for e in every if k in e.log_own})
        spread[k] = _towards(UNSEEN.own(k), spread[k].mean, campaigns)
    return ObserverPrior(
        log_slope=_spread([e.log_slope for e in some], LEAST_KIND),
        log_own=spread,
        popularity=_spread(likings, UNSEEN.popularity.sd) if likings else UNSEEN.popularity,
        level=_spread(heights, LEAST_LEVEL) if heights else None,
    )


def _name(some: Sequence[ObserverEstimate], kind: ObserverPrior) -> ObserverPrior:
    """Return the prior of an observer seen before."""
    n = len(some)
    heights = [e.level for e in some if e.level is not None]
    own = {}
    for k, normal in kind.log_own.items():
        mean = float(np.mean([e.log_own.get(k, normal.mean) for e in some]))
        own[k] = Normal(SHRUNK * mean + (1 - SHRUNK) * normal.mean, AGAIN_OWN)
        if k in BIASES:
            own[k] = _towards(normal, mean, len({e.campaign for e in some if k in e.log_own}))
    return ObserverPrior(
        log_slope=Normal(float(np.mean([e.log_slope for e in some])), float(AGAIN * np.sqrt(1 + 1 / n) / np.sqrt(2))),
        log_own=own,
        popularity=kind.popularity,
        level=_combined(Normal(float(np.mean(heights)), AGAIN_LEVEL), kind.level) if heights else kind.level,
    )


def _towards(prior: Normal, found: float, campaigns: int) -> Normal:
    """Return a prior of biases moved towards what some campaigns showed: each is one sample of systems."""
    weight = campaigns / (campaigns + DOUBT)
    return Normal(weight * found + (1 - weight) * prior.mean, prior.sd)


def _combined(own: Normal, kind: Normal | None) -> Normal:
    """Return an observer's own value, drawn towards its kind's."""
    if kind is None:
        return own
    weight = own.sd**-2.0 / (own.sd**-2.0 + kind.sd**-2.0)
    return Normal(weight * own.mean + (1 - weight) * kind.mean, own.sd)


def _spread(values: Sequence[float], least: float) -> Normal:
    """Return the distribution of the next value: the robust centre, and a spread of at least the stated size."""
    middle = float(np.median(values))
    spread = float(np.median(np.abs(np.array(values) - middle))) * 1.4826 if len(values) > 2 else 0.0
    return Normal(middle, max(spread, least))
