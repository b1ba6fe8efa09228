r"""Learn priors over observers from labels of pairs with known grades.

Grades and labels, each in units of their standard deviation, are mixed models with the same levels
(:mod:`probeval.relevance.observers.levels`). Their covariance at a level follows from the variances of both and of
their sum. Divided by the part of the grades' variance that others see, it is the slope :math:`\lambda` at this level;
what the labels' variance exceeds :math:`\lambda^2` times that part is the observer's own. Biases towards systems are
what labels minus :math:`\lambda` times grades vary between systems. Tables without runs have two levels only, queries
and pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from probeval.relevance.observers.prior import PAIR, SEEN, UNSEEN, LabelConstants, ObserverPrior, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC
from probeval.threads import one_thread

__all__ = ["ObserverEstimate", "learn_observers"]

FEWEST = 200  # pairs with label and grade that an observer needs to be learned from
WEAKEST = 0.05  # the least slope, in sds of labels per sd of grades: weaker observers are taken as this weak
LEAST_OWN = 0.03  # the least share of a level's variance that is the observer's own
LEAST_OWN_SD = 0.03  # the least sd of an own effect, in sds of the labels
SYSTEM = "system"  # the level of biases: teams are merged into it
AGAIN = 0.33  # sd of the log slope of one observer between campaigns
AGAIN_OWN = 0.5  # the same of the log sd of an own effect
AGAIN_LEVEL = 0.25  # the same of the level, in logits
LEAST_KIND = 0.35  # least sd of log slopes within a kind
LEAST_LEVEL = 0.5  # least sd of levels within a kind, in logits
LEAST_OWN_KIND = 0.5  # least sd of the log sds of own effects within a kind
AGAIN_BIAS = 0.43  # the same of the log bias towards systems: .31 of its own, .3 of all observers of a campaign
LEAST_BIAS = 0.55  # least sd of log biases within a kind
ALIKE = 10.0  # the number of machines, or people, that halves the probability that another one is reversed
SAME = 0.1  # the same of campaigns with the same observer: a name rarely changes its direction
TURNED = -0.1  # the correlation with grades below which an observer is reversed
FEWEST_KIND = 3  # observers of a kind that have a bias, or a liking, for it to be the kind's own
SHRUNK = 0.5  # the weight of an observer's own effects against those of its kind: one campaign says little of them


@dataclass(frozen=True)
class ObserverEstimate:
    """Estimates of one observer from one table of labels beside grades.

    Parameters
    ----------
    spec, campaign
        The observer, and the campaign or table.
    log_slope, log_own, log_bias, popularity, level
        As in :class:`ObserverPrior`, the bias with its standard error; biases and popularity need runs.
    reversed
        Whether its labels fall as grades rise.
    """

    spec: ObserverSpec
    campaign: str
    log_slope: float
    log_own: Mapping[str, float]
    log_bias: Normal | None
    popularity: float | None
    level: float | None
    reversed: bool


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
    problem = replace(collection, labels=labels).problem(depth=depth, scale=scale)
    design = ModelDesign.of(spec.vague(), problem)
    codes = problem.grades.codes
    assert problem.labels is not None
    of_systems = tuple(e for e in design.effects if e.effect.scope != "campaign" or e.name == SYSTEM)
    stacks, merged = Stacks(design), Stacks(replace(design, effects=of_systems))
    # The fits of grades, by the pairs that an observer labelled: mostly all of them.
    of_grades: dict[bytes, tuple[LevelVariances, LevelVariances]] = {}
    out = []
    with one_thread():
        for observer, column in zip(labels.observers, problem.labels.values.T, strict=True):
            both = (codes >= 0) & ~np.isnan(column)
            if both.sum() < FEWEST or not np.std(column[both]):
                continue
            extra = np.where(both, 0.0, np.inf)
            grade, label = _standard(scale.values[np.maximum(codes, 0)], both), _standard(column, both)
            key = both.tobytes()
            if key not in of_grades:
                of_grades[key] = level_variances(stacks, grade, extra), level_variances(merged, grade, extra)
            whole, by_system = of_grades[key]
            fits = [whole, *(level_variances(stacks, y, extra) for y in (label, grade + label))]
            variance = [_by_level(fit) for fit in fits]
            covariance = {k: (variance[2][k] - variance[0][k] - variance[1][k]) / 2 for k in fits[0].names}
            slope = _slope(variance[0], covariance)
            residual = level_variances(merged, label - slope * grade, extra)
            at, true = residual.names.index(SYSTEM), _by_level(by_system)
            bias = (residual.log_variance[at] + np.log(true[PAIR] / true[SYSTEM] / LOGISTIC)) / 2
            terms = np.cov(design.terms[both].T)
            along = [float(fits[0].slopes @ terms @ fit.slopes) for fit in fits[:2]]
            level = _level(observer, scale.values[codes[both]] / scale.values.max(), column[both], design.counts[both])
            found = _estimate(observer, collection.name, variance[0], variance[1], covariance, level)
            out.append(
                replace(
                    found,
                    log_bias=Normal(float(bias), float(residual.error[at]) / 2),
                    popularity=along[1] / along[0] / slope - 1,
                )
            )
    return tuple(out)


def _by_level(fit: LevelVariances) -> dict[str, float]:
    return dict(zip(fit.names, np.exp(fit.log_variance).tolist(), strict=True))


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
        out.append(_estimate(observer, grades.fingerprint(), parts[0], parts[1], parts[2], level))
    return out


def _two_levels(y: Floats, query: Ints) -> tuple[Floats, Floats]:
    """Return the covariance matrices of queries and of pairs within them, by moments, shapes (2, 2)."""
    names, at = np.unique(query, return_inverse=True)
    count = np.bincount(at).astype(float)
    means = np.stack([np.bincount(at, row) / count for row in y])
    within = (y - means[:, at]) @ (y - means[:, at]).T / max(y.shape[1] - len(names), 1)
    between = np.cov(means, aweights=count) if len(names) > 1 else np.zeros((2, 2))
    return between - within * float(np.mean(1 / count)), within


def _slope(grade: Mapping[str, float], covariance: Mapping[str, float]) -> float:
    """Return the slope in standard deviations of labels per one of grades.

    It is the geometric mean over the levels that order the documents of a query: to see which queries are easy is
    worth nothing to a ranking.
    """
    used = [k for k in ("interaction", SYSTEM, PAIR) if k in grade]
    ratios = [max(covariance[k] / max(SEEN.get(k, 1.0) * grade[k], 1e-9), WEAKEST) for k in used]
    return float(np.exp(np.mean(np.log(ratios))))


def _estimate(
    observer: ObserverSpec,
    campaign: str,
    grade: Mapping[str, float],
    label: Mapping[str, float],
    covariance: Mapping[str, float],
    level: float | None,
) -> ObserverEstimate:
    """Return the slope and the own variance of each level within queries."""
    slope = _slope(grade, covariance)
    own = {
        k: max(label[k] - slope**2 * SEEN[k] * grade[k], LEAST_OWN * label[k], LEAST_OWN_SD**2)
        for k in SEEN.keys() & label.keys()
    }
    unit = np.sqrt(grade[PAIR] / LOGISTIC)  # sds of grades per logit
    return ObserverEstimate(
        spec=observer,
        campaign=campaign,
        log_slope=float(np.log(slope * unit)),
        log_own={k: float(np.log(v) / 2) for k, v in sorted(own.items())},
        log_bias=None,
        popularity=None,
        level=level,
        reversed=bool(covariance[PAIR] < TURNED * np.sqrt(grade[PAIR] * label[PAIR])),
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
    levels = sorted({k for e in every for k in e.log_own})
    own = {
        k: [e.log_own[k] for e in some if k in e.log_own] or [e.log_own[k] for e in every if k in e.log_own]
        for k in levels
    }
    biases = _of_kind(some, every, lambda e: None if e.log_bias is None else e.log_bias.mean)
    likings = _of_kind(some, every, lambda e: e.popularity)
    heights = [e.level for e in some if e.level is not None]
    alike = [e for e in every if e.spec.kind == some[0].spec.kind]  # directions do not depend on scales
    names = {e.spec.name for e in alike}
    turned = {e.spec.name for e in alike if e.reversed}
    return ObserverPrior(
        log_slope=_spread([e.log_slope for e in some], LEAST_KIND),
        log_own={k: _spread(values, LEAST_OWN_KIND) for k, values in own.items()},
        log_bias=_spread(biases, LEAST_BIAS) if biases else UNSEEN.log_bias,
        popularity=_spread(likings, UNSEEN.popularity.sd) if likings else UNSEEN.popularity,
        level=_spread(heights, LEAST_LEVEL) if heights else None,
        reversed=_counted(LabelConstants().reversed, ALIKE, len(turned), len(names)),
    )


def _of_kind(
    some: Sequence[ObserverEstimate],
    every: Sequence[ObserverEstimate],
    value: Callable[[ObserverEstimate], float | None],
) -> list[float]:
    """Return the values of the observers of a kind, or of all observers if too few of the kind have one."""
    mine, others = ([v for v in map(value, group) if v is not None] for group in (some, every))
    return mine if len(mine) >= FEWEST_KIND else others


def _name(some: Sequence[ObserverEstimate], kind: ObserverPrior) -> ObserverPrior:
    """Return the prior of an observer seen before."""
    n = len(some)
    heights = [e.level for e in some if e.level is not None]
    biases = [e.log_bias for e in some if e.log_bias is not None]
    own = {}
    for k, normal in kind.log_own.items():
        mean = float(np.mean([e.log_own.get(k, normal.mean) for e in some]))
        own[k] = Normal(SHRUNK * mean + (1 - SHRUNK) * normal.mean, AGAIN_OWN)
    return ObserverPrior(
        log_slope=Normal(float(np.mean([e.log_slope for e in some])), float(AGAIN * np.sqrt(1 + 1 / n) / np.sqrt(2))),
        log_own=own,
        log_bias=_own_bias(biases, kind.log_bias),
        popularity=kind.popularity,
        level=_combined(Normal(float(np.mean(heights)), AGAIN_LEVEL), kind.level) if heights else kind.level,
        reversed=_counted(kind.reversed, SAME, sum(e.reversed for e in some), n),
    )


def _own_bias(found: Sequence[Normal], kind: Normal) -> Normal:
    """Return the bias of an observer in the next campaign: its own, drawn towards those of its kind by their errors."""
    known = [kind, *(Normal(n.mean, float(np.hypot(n.sd, AGAIN_BIAS))) for n in found)]
    precision = np.array([n.sd**-2.0 for n in known])
    mean = float(precision @ [n.mean for n in known] / precision.sum())
    return Normal(mean, float(min(np.sqrt(1 / precision.sum() + AGAIN_BIAS**2), kind.sd)))


def _counted(prior: float, worth: float, turned: int, n: int) -> float:
    """Return the probability that the next one is reversed: a share before, worth so many cases, and those counted."""
    return (prior * worth + turned) / (worth + n)


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
