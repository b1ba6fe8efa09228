"""Validation of stated confidence on held-out collections, judged in part and compared with their truth."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Annotated, Literal, Protocol

import numpy as np
import pandas as pd

from probeval.data.collection import Collection
from probeval.display import Record, Table
from probeval.errors import DataError, ModelError, ProbevalWarning, ScoreError
from probeval.metrics import AnyMetric, Metric
from probeval.parallel import parallel
from probeval.relevance.cards.added import ADDED_MODELS, as_predicting, find_added, fit_model, model_name
from probeval.relevance.cards.card import Card, load_card
from probeval.relevance.models.base import Predicts
from probeval.reporting import SILENT, Reporter
from probeval.results import HIDDEN, Named, Result, frame, key, plain, rows
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.simulation.heldout import HeldOut, split
from probeval.simulation.points import Point, measure_point
from probeval.simulation.trajectory import CheckpointStop
from probeval.streams import Purpose, stream

__all__ = [
    "CHECKPOINTS",
    "MARKS",
    "MODELS",
    "FitFunction",
    "HeldOutResults",
    "Mark",
    "ReliabilityBin",
    "Validation",
    "ValidationRun",
    "validate",
]

METRICS = ("DCG", "nDCG")  # at the depth of the pool
CHECKPOINTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # of the pool
DEPTH = 10
DRAWS = 1000  # of scores, and of truths for the null: with at least 1,000, p can be below .001


EARLY = 0.02  # checkpoints up to here have few judgments
STOP, TAU = 0.95, 0.9  # the mean confidence to stop at; the tau that is good enough
TABLE_COLUMNS = (
    "campaign", "model", "metric", "checkpoint", "confidence", "accuracy", "tau", "tau_top15",
    "calibration_error", "calibration_excess", "calibration_p", "coverage", "centred_coverage", "level_z",
)  # fmt: skip

# Criteria: the share of points with p of at least .01, the excess early and later, centred coverage, the level.
MARKS = {
    "calibration_p >= .01": 0.95,
    "smallest calibration_p": 0.001,
    "calibration_excess to 2%": 0.03,
    "calibration_excess from 5%": 0.02,
    "centred_coverage": 0.85,
    "centred_coverage over null": 0.0,
    "|level_z| <= 2.6": 0.95,
    "largest |level_z|": 4.0,
}
AT_MOST = ("calibration_excess to 2%", "calibration_excess from 5%", "largest |level_z|")


@dataclass(frozen=True, repr=False)
class ValidationRun(Record):
    """A held-out collection judged in one random order."""

    collection: Annotated[str, HIDDEN]
    model: Annotated[str, "The model."]
    metric: Annotated[str, HIDDEN]
    seed: Annotated[int, "The order of judging."]
    systems: Annotated[int, HIDDEN]  # the number of systems
    pool: Annotated[int, "The number of pairs."]
    depth: Annotated[int, HIDDEN]  # of the pool
    points: Annotated[tuple[Point, ...], "One entry per checkpoint."]

    @key
    def policy(self) -> Literal["random"]:
        """The policy: pairs are judged in random order."""
        return "random"

    @key
    def judgments_to_tau90(self) -> int | None:
        """The first checkpoint from which tau stays at least .9, in judgments; null if none."""
        good = [p.tau >= TAU for p in self.points]
        return next((p.judged for i, p in enumerate(self.points) if all(good[i:])), None)

    @key
    def stop(self) -> CheckpointStop:
        """The first checkpoint with mean confidence of at least .95; if none, the last one with ``reached`` false."""
        stop = next((p for p in self.points if p.confidence >= STOP), None)
        at = stop or self.points[-1]
        return CheckpointStop(stop is not None, at.judged, at.fraction, at.confidence, at.accuracy, at.tau)

    @property
    def labels(self) -> dict[str, str | int]:
        """The labels of this run in tables."""
        return {"campaign": self.collection, "model": self.model, "metric": self.metric, "seed": self.seed}


@dataclass(frozen=True)
class HeldOutResults:
    """A held-out collection by one measure."""

    collection: Annotated[str, "Its name.", Named("campaign")]
    metric: Annotated[str, "The measure."]
    depth: Annotated[int, "The depth of the pool."]
    pool: Annotated[int, "The number of pairs in the pool."]
    systems: Annotated[int, "The number of systems."]
    policies: Annotated[tuple[ValidationRun, ...], "One entry per model and order of judging."]


@dataclass(frozen=True)
class ReliabilityBin:
    """Stated confidence against accuracy in one bin."""

    model: str
    low: Annotated[float, "The lower edge of the bin of stated confidence."]
    high: Annotated[float, "The upper edge of the bin."]
    pairs: Annotated[int, "The number of pairs of systems in it."]
    confidence: Annotated[float, "Their mean confidence."]
    accuracy: Annotated[float, "The share of them in the true order."]


@dataclass(frozen=True)
class Mark:
    """A figure and its criterion."""

    model: str
    figure: str
    value: float
    mark: float
    holds: bool


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """The results of a validation.

    Parameters
    ----------
    validation_runs
        In the order of the collections, models, measures and seeds.
    """

    checkpoints: Annotated[tuple[float, ...], "The judged shares of the pools."]
    validation_runs: tuple[ValidationRun, ...]

    @key.named("campaigns")
    def collections(self) -> tuple[HeldOutResults, ...]:
        """One entry per held-out collection and measure."""
        cells: dict[tuple[str, str], list[ValidationRun]] = {}
        for one in self.validation_runs:
            cells.setdefault((one.collection, one.metric), []).append(one)
        return tuple(
            HeldOutResults(collection, metric, same[0].depth, same[0].pool, same[0].systems, tuple(same))
            for (collection, metric), same in cells.items()
        )

    @key.named("reliability")
    def bins(self) -> tuple[ReliabilityBin, ...]:
        """Stated confidence against accuracy, bin by bin."""
        return rows(ReliabilityBin, **self.reliability())

    @key.named("summary")
    def criteria(self) -> tuple[Mark, ...]:
        """Every figure and its criterion."""
        found = []
        for model, points in self.to_frame(by_seed=True).groupby("model", sort=False):
            for figure, value in _figures(points).items():
                mark = MARKS[figure]
                holds = value <= mark if figure in AT_MOST else value >= mark
                found.append(Mark(str(model), figure, value, mark, holds))
        return tuple(found)

    def __add__(self, other: Validation) -> Validation:
        """Combine two validations, such as of collections with different depths and measures."""
        if self.checkpoints != other.checkpoints:
            raise ScoreError("Only validations with the same checkpoints can be combined.")
        return Validation(self.checkpoints, self.validation_runs + other.validation_runs)

    def to_frame(self, *, by_seed: bool = False) -> pd.DataFrame:
        """Return one row per collection, model, metric and checkpoint, with all figures as means over seeds.

        With ``by_seed``, one row per seed as well.
        """
        found = pd.DataFrame(
            [
                {**t.labels, "checkpoint": at, **plain(p)}
                for t in self.validation_runs
                for at, p in zip(self.checkpoints, t.points, strict=True)
            ]
        )
        if by_seed:
            return found
        same = ["campaign", "model", "metric", "checkpoint"]
        return found.drop(columns="seed").groupby(same, sort=False).mean().reset_index()

    def reliability(self, *, by: Sequence[str] = ("model",)) -> pd.DataFrame:
        """Return stated confidence and accuracy per non-empty bin, pooled over everything but ``by``.

        Parameters
        ----------
        by
            Any of ``campaign``, ``model``, ``metric``, ``seed``, ``checkpoint``.
        """
        found = [
            p.bins.to_frame().assign(**t.labels, checkpoint=at)
            for t in self.validation_runs
            for at, p in zip(self.checkpoints, t.points, strict=True)
        ]
        sums = pd.concat(found).groupby([*by, "low", "high"], sort=False)[["pairs", "confidence", "accuracy"]].sum()
        sums = sums[sums["pairs"] > 0]
        means = sums[["confidence", "accuracy"]].div(sums["pairs"], axis=0)
        return sums[["pairs"]].astype(int).join(means).reset_index()

    def marks(self) -> pd.DataFrame:
        """Return one row per model and figure: its value, its criterion, and whether it holds.

        Shares and extremes are over single seeds.
        """
        return frame(self.criteria, Mark)

    def _headline(self) -> str:
        collections, models = ({getattr(t, name) for t in self.validation_runs} for name in ("collection", "model"))
        return f"{len(collections)} collections, {len(models)} models, {len(self.checkpoints)} checkpoints"

    def tables(self) -> tuple[Table, ...]:
        """Return means over seeds, stated confidence and accuracy, and figures against criteria."""
        seeds = len({t.seed for t in self.validation_runs})
        return (
            Table(self.to_frame()[list(TABLE_COLUMNS)], f"Means over {seeds} order{'s' * (seeds > 1)} of judging"),
            Table(self.reliability(), "Reliability: stated confidence and accuracy of pairs of systems"),
            Table(self.marks(), "Criteria"),
        )


def _figures(points: pd.DataFrame) -> dict[str, float]:
    """Return the figures of :data:`MARKS` over the points of one model."""
    p, z, early = points["calibration_p"].dropna(), points["level_z"].abs(), points["checkpoint"] <= EARLY
    by_collection = points.groupby("campaign")[["centred_coverage", "centred_coverage_null05"]].mean()
    figures = (
        (p >= 0.01).mean(),
        p.min(),
        points.loc[early, "calibration_excess"].mean(),
        points.loc[~early, "calibration_excess"].mean(),
        points["centred_coverage"].mean(),
        (by_collection["centred_coverage"] - by_collection["centred_coverage_null05"]).min(),
        (z <= 2.6).mean(),
        z.max(),
    )
    return {name: float(value) for name, value in zip(MARKS, figures, strict=True)}


class FitFunction(Protocol):
    """A function that fits a model on past collections."""

    def __call__(self, collections: Sequence[Collection], *, depth: int) -> Predicts:
        """Return the fitted model."""


def _uniform(collections: Sequence[Collection], *, depth: int) -> Predicts:
    from probeval.relevance import FallbackModel, Uniform

    return FallbackModel([Uniform()])


def _empirical(collections: Sequence[Collection], *, depth: int) -> Predicts:
    from probeval.relevance import Empirical, FallbackModel

    return FallbackModel([Empirical.fit(collections, depth=depth)])


def _independent(collections: Sequence[Collection], *, depth: int) -> Predicts:
    """Fit independent pairs: the fallback models for texts, preceded by models with groups of documents if any."""
    from probeval.relevance import Empirical, FallbackModel, OrdinalModel
    from probeval.relevance.learning.fit import TEXT_JUD

    known = [c.metadata.groups if c.metadata is not None else {} for c in collections]
    groups = [g for g in known[0] if all(g in each for each in known)]
    groups.sort(key=lambda g: -len(set(known[0][g])))  # the finest first: the most informative, if available
    terms: list[tuple[str, ...]] = [
        ("fSYS", "aSYS", *(f"a[{g}]" for g in groups[i:]), "aDOC") for i in range(len(groups))
    ]
    if groups:
        same = [f"s[{g}]" for g in groups if all(_queries_have(c, g) for c in collections)]
        terms.append(("log(fSYS)", *(f"f[{g}]" for g in groups), *same))
    teams = all(c.runs.teams is not None for c in collections)
    terms += [t for t in TEXT_JUD if teams or "fTEAM" not in t]
    fitted = (OrdinalModel(t, balanced=True).fit(collections, depth=depth) for t in terms)
    return FallbackModel([*fitted, Empirical.fit(collections, depth=depth)])


def _queries_have(collection: Collection, grouping: str) -> bool:
    """Return whether queries are in the metadata too, as when queries are documents."""
    metadata = collection.metadata
    return metadata is not None and bool(np.any(metadata.codes(grouping, collection.runs.queries) >= 0))


def _hierarchical(collections: Sequence[Collection], *, depth: int) -> Predicts:
    from probeval.relevance.learning.fit import fit_hierarchical

    return fit_hierarchical(collections, depth=depth)


MODELS: Mapping[str, FitFunction] = {
    "uniform": _uniform,
    "empirical": _empirical,
    "independent": _independent,
    "hierarchical": _hierarchical,
}


def validate(
    collections: Sequence[Collection],
    *,
    metrics: Sequence[AnyMetric] | None = None,
    models: Mapping[str, FitFunction | Card | Predicts] | Sequence[str | Card | Predicts] = (
        "independent",
        "hierarchical",
    ),
    depth: int | None = None,
    checkpoints: Sequence[float] = CHECKPOINTS,
    seeds: int = 5,
    seed: int = 0,
    draws: int = DRAWS,
    n_jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
) -> Validation:
    """Leave each collection out: fit on the others, judge it in part, and compare estimates with its truth.

    A collection without a fully judged system is used for training only. If all models are taken as they are, such as
    cards, nothing is fitted, and one collection is enough. One with groups of documents and fine grades
    is unlike the others: models are fitted on half of its queries and tested on the other half. Two successive seeds
    share the halves, swapped.

    Parameters
    ----------
    collections
        Collections with judgments.
    metrics
        The measures or their names; by default DCG and nDCG at the depth of the pools.
    models
        Names from :data:`MODELS` or of registered models, names or paths of cards, cards or models; or, by name, models
        and functions that fit one. A model with ``fit(collections, *, depth)`` is fitted, any other is taken as it is.
    depth
        The depth of the pools; by default the first metric's cutoff, or 10 without one.
    checkpoints
        The judged shares of the pool, in random order; within a seed each checkpoint extends the previous one.
    seeds, seed
        The number of orders of judging, and the seed.
    draws
        The number of draws of scores, and of truths for the null distribution.
    n_jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from probeval.relevance import synthetic_campaign
    >>> past = [
    ...     replace(synthetic_campaign(seed=i, systems=4, queries=6, depth=5), name=f"past-{i}")
    ...     for i in range(2)
    ... ]
    >>> result = validate(past, metrics=["DCG@5"], models=["independent"], checkpoints=[0, 0.5], seeds=1, draws=50)
    >>> result.to_frame()[["campaign", "judged"]].to_numpy().tolist()
    [['past-0', 0.0], ['past-0', 35.0], ['past-1', 0.0], ['past-1', 42.0]]
    """
    named = [f"{m}@{depth or DEPTH}" for m in METRICS] if metrics is None else metrics
    parsed = [as_metric(m) for m in named]
    if not parsed or not checkpoints or seeds < 1:
        raise DataError("Validation needs at least one metric, one checkpoint and one seed.")
    if any(not 0 <= s <= 1 for s in checkpoints) or list(checkpoints) != sorted(set(checkpoints)):
        raise DataError(f"Checkpoints are rising shares of the pool, from 0 to 1; got {list(checkpoints)}.")
    named_models = models if isinstance(models, Mapping) else _named(models)
    for model in named_models.values():
        if isinstance(model, Card):
            _warn_of_seen(model, collections, reporter)
    fits = {name: _fit(model) for name, model in named_models.items()}
    depth = depth or parsed[0].cutoff or DEPTH
    fitted_here = any(_is_fitted(model) for model in named_models.values())
    splits = split(collections, depth, seeds, seed, reporter, fitted=fitted_here)
    training = {s.key: s.training for s in splits}
    tasks = [(key, name) for key in training for name in fits]
    # Fitted in this process, so that splits with the same training collections share the fit.
    fitted = {
        (key, name): _quiet(fits[name], training[key], depth=depth) for key, name in reporter.track(tasks, "Validating")
    }
    with parallel(min(n_jobs, len(splits)), scheduler) as run:
        made = run(
            partial(
                _judge, s.held, {name: fitted[s.key, name] for name in fits}, parsed, tuple(checkpoints), s.seed, seed,
                draws,
            )
            for s in splits
        )  # fmt: skip
        work = reporter.track([(s.held.collection.name, s.seed) for s in splits], "Validating")
        validation_runs = [validation_run for _, found in zip(work, made, strict=True) for validation_run in found]
    order, names, measured = [c.name for c in collections], list(fits), list(map(str, parsed))
    validation_runs.sort(key=lambda t: (order.index(t.collection), names.index(t.model), measured.index(t.metric)))
    return Validation(tuple(map(float, checkpoints)), tuple(validation_runs))


def _named(models: Sequence[str | Card | Predicts]) -> dict[str, FitFunction | Card | Predicts]:
    """Return models by their names: those of the package, from outside, and cards by their names or paths."""
    found: dict[str, FitFunction | Card | Predicts] = {}
    for given in models:
        name, model = _find(given) if isinstance(given, str) else (model_name(given), given)
        if name in found:
            raise ModelError(f"Two models are named {name}. Give one of them another name.")
        found[name] = model
    return found


def _find(name: str) -> tuple[str, FitFunction | Card | Predicts]:
    if name in MODELS:
        return name, MODELS[name]
    added = find_added(name)
    if added is not None:
        return name, added
    card = load_card(name, others=[*MODELS, *ADDED_MODELS])
    return card.name, card


def _warn_of_seen(card: Card, collections: Sequence[Collection], reporter: Reporter) -> None:
    seen = [collection.name for collection in collections if card.fitted_on(collection) is not None]
    if seen:
        reporter.say(f"{card.name} was fitted on the judgments of {', '.join(seen)}: its confidence is too high there.")


def _is_fitted(model: FitFunction | Card | Predicts) -> bool:
    """Whether a model is fitted on the other collections, not taken as it is."""
    return not isinstance(model, Card) and (callable(model) or hasattr(model, "fit"))


def _fit(model: FitFunction | Card | Predicts) -> FitFunction:
    """Return the function that fits a model."""
    if isinstance(model, Card):
        return partial(fit_model, model.model)
    if isinstance(model, type) or not _is_fitted(model):
        model = as_predicting(model)
    return model if callable(model) else partial(fit_model, model)


def _quiet(fit: FitFunction, collections: Sequence[Collection], *, depth: int) -> Predicts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # readers of files have already warned
        return fit(collections, depth=depth)


def _judge(
    held: HeldOut,
    models: Mapping[str, Predicts],
    metrics: Sequence[Metric],
    checkpoints: tuple[float, ...],
    number: int,
    seed: int,
    draws: int,
) -> list[ValidationRun]:
    """Judge in one order, with every model and measure."""
    name, runs = held.collection.name, held.collection.runs.top(held.depth)
    order = stream(seed, name, number, Purpose.ORDER).permutation(held.known)
    truths = {metric: held.truth(metric) for metric in metrics}
    points: dict[tuple[str, Metric], list[Point]] = {}
    for at, checkpoint in enumerate(checkpoints):
        so_far = held.after(order[: ceil(checkpoint * len(runs.pool) - 1e-9)])
        for model, fitted in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProbevalWarning)
                scored = score_collection(
                    fitted, so_far, metrics, depth=held.depth, scale=held.scale, seed=seed, keys=(name, number, at),
                    n=draws,
                )  # fmt: skip
            for scores, (metric, truth) in zip(scored, truths.items(), strict=True):
                rng = stream(seed, name, number, at, Purpose.RANKING)
                drawn = scores.sample(draws, rng) if scores.joint.draws is None else scores.joint.draws
                point = measure_point(scores, truth.mean(axis=1), draws=drawn, query_truth=truth)
                points.setdefault((model, metric), []).append(point)
    return [
        ValidationRun(name, model, str(metric), number, len(runs.systems), len(runs.pool), held.depth, tuple(found))
        for (model, metric), found in points.items()
    ]
