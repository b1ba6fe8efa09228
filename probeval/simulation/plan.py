"""Plans: the cheapest design (queries, depth, assessors, labels) that is expected to reach a target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.arrays import Ints
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record, Table
from probeval.errors import SelectionError, did_you_mean
from probeval.metrics import AnyMetric, Metric
from probeval.relevance.models.base import Predicts
from probeval.reliability import GStudy, gstudy, observe, power_of
from probeval.reporting import SILENT, Reporter
from probeval.results import UNSET, Result, UnsetType, frame, key
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.scores.scores import INDEPENDENT
from probeval.selection import AnswerPrices, Judging, JudgingState
from probeval.simulation.forecast import LASTS, PATHS, Forecast, ForecastStep, forecast
from probeval.simulation.mix import Mix, forecast_mix
from probeval.streams import Purpose, stream

__all__ = ["TARGETS", "Plan", "Planned", "Prices", "Variants", "parse_targets", "plan", "resize"]

TARGETS = {
    "confidence": "mean confidence over all pairs of systems, on these queries",
    "halfwidth": "the widest 95% half-width of a system's score, on these queries",
    "erho2": "E rho^2: stability of differences between systems over other queries",
    "phi": "Phi: stability of scores over other queries",
    "power": "P(a true difference of `difference` is found significant at .05)",
}
JUDGED = ("confidence", "halfwidth")  # targets that judgments can meet; the others depend on queries
ABOUT_QUERIES = ("erho2", "phi", "power")
STUDY_DRAWS = 200
PILOT, PILOT_SHARE = 50, 0.03  # the minimum number of pairs in a pilot, and its share of a large pool
DECIMALS = {"judgments": 0, "lower": 0, "upper": 0, "tasks": 0, "a_query": 1, "hours": 1, "cost": 2}  # in tables


def parse_targets(text: str) -> dict[str, float]:
    """Parse targets that must all hold, such as ``confidence=.95,erho2=.9``.

    >>> parse_targets("confidence=.95, phi=.8")
    {'confidence': 0.95, 'phi': 0.8}
    """
    out = {}
    for part in text.split(","):
        name, _, value = (s.strip() for s in part.partition("="))
        if re.fullmatch(r"[\d.]+", name) and not value:
            raise SelectionError(f"A target needs a name: write confidence={name}, got {part.strip()!r}.")
        if name not in TARGETS:
            raise SelectionError(f"No target {name!r}: {', '.join(TARGETS)}.{did_you_mean(name, TARGETS)}")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not 0 < number < 1:
            raise SelectionError(f"A target is {name}=NUMBER between 0 and 1, got {part.strip()!r}.")
        out[name] = number
    return out


@dataclass(frozen=True)
class Prices:
    """The prices of judgments, queries and labels.

    Parameters
    ----------
    judgment, seconds
        The price of a judgment, and its time in seconds.
    query
        The price of creating a query.
    label
        The price of a machine label of a pair.
    """

    judgment: float = 1.0
    seconds: float = 30.0
    query: float = 0.0
    label: float = 0.0


@dataclass(frozen=True, repr=False)
class Variants(Record):
    """The variants of a collection that a plan compares, and its assessors.

    Parameters
    ----------
    queries, depths
        Numbers of queries, and depths of the pool; by default those of the runs and of the measure.
    assessors, disagreement
        Numbers of assessors per pair, and the probability that an assessor gives a wrong grade.
    overlap, opinions
        The share of pairs that several assessors judge, and how many do.
    gold_share, repeat_share
        The shares of tasks that are pairs with a known grade, and pairs that come a second time.
    difference
        The difference between two systems for the target power.
    prices
        The prices.

    Examples
    --------
    >>> noisy = Variants(disagreement=0.1, overlap=0.2, gold_share=0.1, repeat_share=0.1)
    >>> round(noisy.tasks(100, assessors=1, grades=3), 1)  # 120 judgments, 30 checks, 3.7 pairs to adjudicate
    153.7
    """

    queries: Sequence[int] | None = None
    depths: Sequence[int] | None = None
    assessors: Sequence[int] = (1,)
    disagreement: float = 0.0
    overlap: float = 0.0
    opinions: int = 2
    gold_share: float = 0.0
    repeat_share: float = 0.0
    difference: float = 0.05
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        if min(self.assessors, default=0) < 1 or not 0 <= self.disagreement <= 1:
            raise SelectionError("A plan needs at least one assessor, and a disagreement between 0 and 1.")
        if not 0 <= self.overlap <= 1 or self.opinions < 2:
            raise SelectionError("The overlap is a share of pairs that two assessors or more judge.")
        if min(self.gold_share, self.repeat_share) < 0 or self.gold_share + self.repeat_share >= 1:
            raise SelectionError("Gold and repeated pairs together must be fewer than all tasks, and no share below 0.")

    def opinions_of(self, assessors: int) -> dict[int, float]:
        """The numbers of judgments that pairs get, with the share of pairs that get each."""
        many = max(assessors, self.opinions)
        return {assessors: 1.0} if many == assessors else {assessors: 1 - self.overlap, many: self.overlap}

    def tasks(self, pairs: float, *, assessors: int, grades: int) -> float:
        r"""The tasks that it takes to judge some pairs: judgments, gold and repeated pairs, and adjudication.

        .. math:: \frac{n \sum_m s_m m}{1 - g - r} + n \sum_m s_m (1 - a_m)

        With :math:`s_m` of the pairs judged by *m* assessors, and *g* and *r* of the tasks gold and repeated. All *m*
        give one grade with :math:`a_m = (1-d)^m + (L-1)^{1-m} d^m`, where *d* is the probability of a wrong grade, any
        of the other :math:`L - 1`; a pair with different grades is adjudicated once.
        """
        wrong, others = self.disagreement, max(grades - 1, 1)
        shares = self.opinions_of(assessors)
        judged = pairs * sum(share * m for m, share in shares.items())
        agreed = sum(
            share * ((1 - wrong) ** m + float(others) ** (1 - m) * wrong**m) for m, share in shares.items() if m > 1
        )
        several = sum(share for m, share in shares.items() if m > 1)
        return judged / (1 - self.gold_share - self.repeat_share) + pairs * (several - agreed)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Planned(Result):
    """An option of a plan and its expected outcome.

    Parameters
    ----------
    ahead
        The expected trajectory of judging.
    """

    queries: Annotated[int, "The number of queries."]
    depth: Annotated[int, "The number of pooled ranks."]
    assessors: Annotated[int, "The number of assessors per pair."]
    labels: Annotated[bool, "Whether the pool has machine labels."]
    judgments: Annotated[float, "The number of judgments needed, including those already made: the median."]
    lower: Annotated[float, "The lower end of its 90% interval."]
    upper: Annotated[float, "The upper end of its 90% interval."]
    a_query: Annotated[float, "The judgments per query."]
    pool: Annotated[int, "The number of pairs in the pool."]
    confidence: Annotated[float | UnsetType, "The expected mean confidence, if it is a target."] = UNSET
    halfwidth: Annotated[float | UnsetType, "The expected widest half-width, if it is a target."] = UNSET
    erho2: Annotated[float | UnsetType, "The expected E rho^2, if it is a target."] = UNSET
    phi: Annotated[float | UnsetType, "The expected Phi, if it is a target."] = UNSET
    power: Annotated[float | UnsetType, "The expected power, if it is a target."] = UNSET
    tasks: Annotated[
        float, "The tasks still to be done: judgments, overlap included, gold and repeated pairs, and adjudication."
    ]
    hours: Annotated[float, "The time that they take."]
    cost: Annotated[float, "Their cost, and that of queries and labels."]
    meets: Annotated[bool, "Whether all targets are met."]
    ahead: Forecast

    def to_frame(self) -> pd.DataFrame:
        """Return one row."""
        return frame([self], Planned)

    def _headline(self) -> str:
        return (
            f"{self.queries} queries to depth {self.depth}, about {self.judgments:,.0f} judgments "
            f"({self.lower:,.0f} to {self.upper:,.0f}) of {self.pool:,} pairs"
        )

    def tables(self) -> tuple[Table, ...]:
        """Return one row."""
        return (Table(self.to_frame(), self._headline(), DECIMALS, ("judgments", "lower", "upper")),)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """A plan: its options, the cheapest that meets the targets first."""

    targets: Annotated[dict[str, float], "The targets."]
    options: Annotated[tuple[Planned, ...], "The options that meet the targets by rising cost, then the others."]
    independent: Annotated[bool, "Whether the model takes pairs as independent: the plan is then not calibrated."]
    mix: Annotated[
        Mix | UnsetType, "The machine labels and the judgments that the target takes, if a labeller is named."
    ] = UNSET

    @key
    def reached(self) -> bool:
        """Whether any option meets the targets."""
        return self.best is not None

    @key
    def curve(self) -> tuple[ForecastStep, ...]:
        """The expected trajectory of judging with the first option."""
        return self.options[0].ahead.steps

    @property
    def best(self) -> Planned | None:
        """The cheapest option that meets the targets, or None."""
        first = self.options[0]
        return first if first.meets else None

    def _headline(self) -> str:
        wanted = ", ".join(f"{name} {value:g}" for name, value in self.targets.items())
        return f"{len(self.options)} options for {wanted}"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per option."""
        title = f"Options, cheapest first{f'; {INDEPENDENT}' if self.independent else ''}"
        return (Table(self.to_frame(), title, DECIMALS, ("judgments", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """Return the cheapest option, the meaning of the columns, and without judgments the advice to make some."""
        best, first = self.best, self.options[0]
        found = "No option reaches the target. Try more queries (--queries), or a lower target."
        if best is not None:
            found = f"Cheapest: {best._headline()}, {best.hours:,.1f} hours, cost {best.cost:,.2f}."
        columns = (
            "judgments, lower, upper: the total, with its 90% interval; a_query: per query; pool: pairs in the pool."
        )
        mix = () if isinstance(self.mix, UnsetType) else self.mix.sentences()
        if first.ahead.judged[0]:
            return found, *mix, columns
        pilot = max(PILOT, round(first.pool * PILOT_SHARE, -1))
        return (
            found,
            *mix,
            columns,
            f"Judge about {pilot:.0f} pairs at random (probeval next RUNS --policy random) and plan again with "
            "--qrels, for a narrower forecast.",
        )


def resize(collection: Collection, n: int, rng: np.random.Generator) -> Collection:
    """Return the collection with another number of queries.

    With fewer, a random sample; with more, all of them plus copies of random ones under new names, with the same lists
    and without judgments.

    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> [len(resize(campaign, n, np.random.default_rng(0)).runs.queries) for n in (2, 3, 5)]
    [2, 3, 5]
    """
    runs = collection.runs
    there = len(runs.queries)
    if n < 1:
        raise SelectionError(f"A plan needs at least one query, got {n}.")
    if n == there:
        return collection
    source = np.sort(rng.permutation(there)[:n]) if n < there else np.arange(there)
    more = rng.integers(there, size=max(n - there, 0))
    picked = np.concatenate([source, more])
    names = [str(runs.queries[q]) for q in source] + [f"{runs.queries[q]}~{i + 1}" for i, q in enumerate(more)]
    system, at, rank = np.nonzero(runs.retrieved[:, picked])
    old = runs.pairs[:, picked][system, at, rank]
    pool, pair = Pool.coded(names, runs.pool.docs, at, runs.pool.doc[old])
    lists = Runs.coded(
        runs.systems,
        pool,
        system,
        pair,
        runs.scores[:, picked][system, at, rank],
        ranks=rank.astype(float),
        order="rank",
    )
    if runs.teams is not None:
        lists = replace(lists, teams=runs.teams)
    return replace(
        collection,
        runs=lists,
        judgments=_of_queries(collection.judgments, names),
        labels=_copied(collection.labels, runs, picked, names),
    )


def _of_queries(judgments: Judgments | None, names: Sequence[str]) -> Judgments | None:
    if judgments is None:
        return None
    kept = np.isin(judgments.pool.queries[judgments.pool.query[judgments.pair]], names)
    return judgments.take(kept)


def _copied(labels: LabelTable | None, runs: Runs, picked: Ints, names: Sequence[str]) -> LabelTable | None:
    """Return the labels under the new names of the queries."""
    if labels is None:
        return None
    place = {str(q): i for i, q in enumerate(labels.pool.queries)}
    parts = [
        (np.flatnonzero(labels.pool.query == place[str(runs.queries[q])]), i)
        for i, q in enumerate(picked)
        if str(runs.queries[q]) in place
    ]
    rows = np.concatenate([r for r, _ in parts])
    query = np.concatenate([np.full(len(r), i) for r, i in parts])
    pool, pair = Pool.coded(list(names), labels.pool.docs, query, labels.pool.doc[rows])
    return labels.rearranged(pool, rows[np.argsort(pair)])


def plan(
    collection: Collection,
    model: Predicts,
    metric: AnyMetric,
    *,
    targets: str | dict[str, float] = "confidence=.95",
    variants: Variants | None = None,
    scale: Scale | None = None,
    clusters: Any = None,
    rope: float = 0.0,
    labeller: str | None = None,
    paths: int = PATHS,
    n_jobs: int = 1,
    scheduler: str | None = None,
    seed: int = 0,
    reporter: Reporter = SILENT,
) -> Plan:
    """Forecast the judgments and cost of every combination of queries, depth, assessors and labels.

    Parameters
    ----------
    collection
        Runs, with the judgments of a pilot and machine labels if available.
    model
        The relevance model.
    metric, scale
        The measure, and the grades.
    targets
        The targets to meet, all of them: see :data:`TARGETS`.
    variants
        The numbers of queries, depths and assessors to compare, and the prices; by default the collection as it is.
    clusters
        A table of queries and clusters that are not independent, such as users: the targets about other queries then
        count clusters, as many per query as here.
    rope
        The largest difference that does not matter, for the target confidence.
    labeller
        A machine, by its column of labels or the name that it will have: the plan then has the mix of its labels and
        judgments for the first option, by the target confidence.
    paths, n_jobs, scheduler, seed
        Truths per forecast, processes or the address of a Dask scheduler, and the seed.
    reporter
        Receives progress and remarks.
    """
    measured = as_metric(metric)
    wanted = parse_targets(targets) if isinstance(targets, str) else targets
    variants = Variants() if variants is None else variants
    counts = list(variants.queries or [len(collection.runs.queries)])
    ranks = list(variants.depths or [measured.cutoff or collection.runs.depth])
    labelled = [True, False] if collection.labels is not None else [False]
    if labeller is not None and (set(wanted) != {"confidence"} or not variants.prices.label > 0):
        raise SelectionError(
            "A mix of labels and judgments needs the price of a label (--label-price), and confidence= as its only "
            "target."
        )
    work = list(product(counts, ranks, variants.assessors, labelled))
    study = (
        _study(collection, model, measured, scale, ranks[0], seed, clusters)
        if set(wanted) & set(ABOUT_QUERIES)
        else None
    )
    trajectories = iter(reporter.track(range(len(work) * paths), "Planning"))
    options = []
    for n, depth, k, with_labels in work:
        sized = resize(collection, n, stream(seed, n))
        sized = sized if with_labels else replace(sized, labels=None)
        judging = Judging.of(sized, model, measured, scale=scale, depth=depth, explore=0.0, rope=rope, seed=seed)
        state = judging.begin()
        noise = _noise(judging.scale, measured, variants.disagreement) * sum(
            share / m for m, share in variants.opinions_of(k).items()
        )
        ahead = forecast(
            state,
            target=wanted.get("confidence", 0.5),
            halfwidth=wanted.get("halfwidth"),
            lasts=LASTS if "confidence" in wanted else 0,
            paths=paths,
            noise=noise,
            n_jobs=n_jobs,
            scheduler=scheduler,
            rng=stream(seed, n, depth),
            reporter=_Continued(trajectories),
        )
        options.append(_planned(ahead, wanted, study, variants, n, depth, k, with_labels, state=state))
    next(trajectories, None)  # exhaust it, to finish the progress
    options.sort(key=lambda o: (not o.meets, o.cost, o.judgments))
    found = Plan(wanted, tuple(options), state.scores.independent)
    if labeller is None:
        return found
    first = next(option for option in options if not option.labels)
    sized = resize(collection, first.queries, stream(seed, first.queries))
    judging = Judging.of(sized, model, measured, scale=scale, depth=first.depth, explore=0.0, rope=rope, seed=seed)
    each = variants.tasks(1.0, assessors=first.assessors, grades=len(judging.scale.grades))
    mix = forecast_mix(
        judging.begin(),
        AnswerPrices(variants.prices.judgment * each, {labeller: variants.prices.label}),
        target=wanted["confidence"],
        alone=max(first.judgments - first.ahead.judged[0], 0.0),
        n_jobs=n_jobs,
        scheduler=scheduler,
        rng=stream(seed, first.queries, first.depth),
        reporter=reporter,
    )
    return replace(found, mix=mix)


class _Continued(Reporter):
    """Passes the progress of one forecast on to that of the plan."""

    def __init__(self, trajectories: Iterator[int]) -> None:
        self.trajectories = trajectories

    def track(self, work: Sequence[Any], title: str) -> Iterable[Any]:
        """Return as many trajectories of the plan."""
        return islice(self.trajectories, len(work))


def _planned(
    ahead: Forecast,
    wanted: dict[str, float],
    study: tuple[GStudy, float] | None,
    variants: Variants,
    n: int,
    depth: int,
    k: int,
    with_labels: bool,
    *,
    state: JudgingState,
) -> Planned:
    """Return the expected outcome of one option, from the state of its judging now."""
    prices, made, grades = variants.prices, state.scores.judged, len(state.judging.scale.grades)
    needed = {"judgments": float(ahead.judged[0]), "lower": float(ahead.judged[0]), "upper": float(ahead.judged[0])}
    expected: dict[str, float] = {}
    if "confidence" in wanted:
        needed = ahead.needed(wanted["confidence"])
    if "halfwidth" in wanted:
        narrow = ahead.needed_halfwidth(wanted["halfwidth"])
        needed = {name: max(value, narrow[name]) for name, value in needed.items()}
    at = min(int(np.searchsorted(ahead.judged, needed["judgments"])), len(ahead.judged) - 1)
    if "confidence" in wanted:
        expected["confidence"] = float(np.median(ahead.confidence[:, at]))
    if "halfwidth" in wanted:
        expected["halfwidth"] = float(np.median(ahead.halfwidth[:, at]))
    if study is not None:
        found, independent = study[0], max(round(study[1] * n), 1)
        for name in ("erho2", "phi"):
            if name in wanted:
                expected[name] = found.coefficient(name, query=independent).value
        if "power" in wanted:
            sd = float(np.sqrt(2 * found.components["residual"]))
            expected["power"] = float(power_of(variants.difference, sd=sd, n=independent)) if independent > 1 else 0.0
    arrives = needed["judgments"] < ahead.pool  # then the targets of judging are met, by definition of `needed`
    meets = all(
        (arrives and name in JUDGED)
        or (expected[name] <= target + 1e-9 if name == "halfwidth" else expected[name] >= target - 1e-9)
        for name, target in wanted.items()
    )
    tasks = variants.tasks(max(needed["judgments"] - made, 0.0), assessors=k, grades=grades)
    cost = tasks * prices.judgment + n * prices.query + (ahead.pool * prices.label if with_labels else 0.0)
    return Planned(
        queries=n, depth=depth, assessors=k, labels=with_labels, **needed, a_query=needed["judgments"] / max(n, 1),
        pool=ahead.pool, **expected, tasks=tasks, hours=tasks * prices.seconds / 3600, cost=cost, meets=meets,
        ahead=ahead,
    )  # fmt: skip


def _study(
    collection: Collection,
    model: Predicts,
    metric: Metric,
    scale: Scale | None,
    depth: int,
    seed: int,
    clusters: Any,
) -> tuple[GStudy, float]:
    """Return the variance components of the current scores, one decomposition per joint draw; clusters per query."""
    (scores,) = score_collection(
        model, collection, [metric], depth=depth, scale=scale, seed=seed, method="draws", n=STUDY_DRAWS, per_query=True
    )
    each = observe(scores)
    grouped = each.clustered(clusters)
    return gstudy(grouped, rng=stream(seed, Purpose.STUDY)), grouped.sizes["query"] / each.sizes["query"]


def _noise(scale: Scale, metric: Metric, disagreement: float) -> float:
    """Return the variance that an assessor adds to a gain: with some probability any other grade is given."""
    gains = metric.gains(scale) if metric.definition.gains is not None else scale.gains
    n = len(gains)
    if n < 2:
        return 0.0
    gaps = (gains[:, None] - gains) ** 2
    return float(disagreement * gaps.sum() / (n * (n - 1)))
