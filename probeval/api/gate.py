"""Whether a new system may replace a baseline: a verdict at a level, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from probeval.api.documents import GateForecastDocument
from probeval.api.evaluate import EvaluationInputs
from probeval.api.evaluation import Evaluation
from probeval.api.evidence import Beside, as_collection
from probeval.api.gated import Gate, GateCheck, GateRule
from probeval.api.settings import MEASURE, Distribution, Work
from probeval.arrays import Bools, Floats
from probeval.data import Collection, Runs, as_query_weights, as_segments
from probeval.errors import DataError, SatisfactionError
from probeval.metrics import AnyMetric
from probeval.records import About, part, task
from probeval.reporting import Reporter
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import retrieved_pairs
from probeval.streams import Purpose, stream

__all__ = ["GateInputs", "gate"]

PATHS = 4  # simulated truths of a forecast: an estimate in seconds
LASTS = 20  # judgments for which a forecast verdict must hold


@dataclass(frozen=True, eq=False, repr=False)
class GateInputs(Work, Distribution, Beside):
    """Decide whether a new system is better than a baseline, or not worse, at a level, with few judgments or none.

    Each end of an interval leaves out 1 - level, so that one that excludes 0 is a verdict. With several measures all
    must pass. The verdict on all queries decides, segments are shown.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=20, depth=5)
    >>> runs, judgments = campaign.runs, campaign.judgments
    >>> new, old = (runs.select([runs.systems[i]]) for i in (0, 3))
    >>> print(probeval.gate(new, old, "nDCG@5", qrels=judgments, not_worse=True, rope=0.02).reason)
    system-01 is not worse than system-04 by more than 0.02: nDCG@5 ...
    """

    new: Annotated[Any, About("The run of the new system.", metavar="NEW", argument=True, kind=str)]
    baseline: Annotated[Any, About("The run of the baseline.", metavar="BASELINE", argument=True, kind=str)]
    metric: Annotated[AnyMetric | Sequence[AnyMetric], replace(MEASURE, many=True)]
    _: KW_ONLY
    level: Annotated[float, About("The probability that a verdict needs.", least=0.51, most=0.9999)] = 0.95
    not_worse: Annotated[bool, About("Pass a system that is not worse by more than the rope.")] = False
    query_weights: Annotated[
        Any, About("A table of queries and weights, such as their traffic.", metavar="FILE", kind=Path)
    ] = None
    segments: Annotated[
        Any, About("A table of queries and segments; each gets a verdict.", metavar="FILE", kind=Path)
    ] = None
    forecast: Annotated[
        bool, About("Whether to estimate how many judgments would settle an undecided gate.", option="")
    ] = False

    def run(self) -> Gate:
        """The verdict."""
        given = [self.metric] if isinstance(self.metric, AnyMetric) else self.metric
        measures = [as_metric(one) for one in given]
        if not measures:
            raise DataError("no measure was named. Give at least one, such as nDCG@10.")
        if len(measures) > 1 and str(self.rope).strip().startswith("users="):
            raise SatisfactionError("rope users=SHARE is a difference of one measure. Give one measure, or a number.")
        GateRule(level=self.level)  # before any work
        collection = _both(self.new, self.baseline, self.order, self.reporter)
        queries = [str(query) for query in collection.runs.queries]
        of_queries = None if self.query_weights is None else as_query_weights(self.query_weights, queries)
        parts = {} if self.segments is None else as_segments(self.segments, queries)
        first = part(self, EvaluationInputs, runs=collection, metric=measures[0]).run()
        rule = GateRule(self.level, first.estimate.estimation.rope, self.not_worse)
        plain = [first, *(first.by(one, depth=self.depth) for one in measures[1:])]
        evaluations = tuple(_weighted(one, of_queries) for one in plain)
        checks = tuple(_check(one, rule, None, np.ones(len(queries), dtype=bool)) for one in evaluations)
        base = np.ones(len(queries)) if of_queries is None else of_queries
        shown = tuple(
            _check(_weighted(one, base * mask), rule, name, mask)
            for one in plain
            for name, mask in parts.items()
            if (base * mask).any()
        )
        found = Gate(evaluations, checks, shown, rule)
        if parts and not np.any(list(parts.values()), axis=0).all():
            missing = int((~np.any(list(parts.values()), axis=0)).sum())
            self.reporter.say(f"{missing} of {len(queries)} queries are in no segment.")
        if not self.forecast or found.verdict != "undecided":
            return found
        return replace(found, ahead=_forecast(found, self.seed))


def _both(new: Any, baseline: Any, order: str, reporter: Reporter) -> Collection:
    """The two runs on one pool, under names that differ."""
    runs = [_one(given, what, order, reporter) for given, what in ((new, "NEW"), (baseline, "BASELINE"))]
    a, b = runs
    names = (a.systems[0], b.systems[0])
    if names[0] == names[1]:
        names = (f"{names[0]}-new", f"{names[1]}-baseline")
    for name, own, other in ((names[0], a, b), (names[1], b, a)):
        missing = set(other.queries) - set(own.queries)
        if missing == set(other.queries):
            raise DataError(f"{names[0]} and {names[1]} have no query in common: {a.queries[0]!r}, {b.queries[0]!r}.")
        if missing:
            reporter.say(f"{name} has no documents for {len(missing)} queries, on which it scores 0.")
    first, second = (replace(run, systems=(name,)) for run, name in zip(runs, names, strict=True))
    return Collection("gate", first.on(a.pool.union(b.pool)).joined(second))


def _one(given: Any, what: str, order: str, reporter: Reporter) -> Runs:
    found = as_collection(given, order=order, reporter=reporter).runs
    if len(found.systems) != 1:
        where = f" ({given})" if isinstance(given, (str, Path)) else ""
        raise DataError(f"{what}{where} must be one run, got {len(found.systems)} systems.")
    return found


def _weighted(evaluation: Evaluation, weights: Floats | None) -> Evaluation:
    """The evaluation with weights of the queries."""
    if weights is None:
        return evaluation
    estimate = evaluation.estimate
    weighted = replace(estimate, estimation=replace(estimate.estimation, query_weights=weights))
    return replace(evaluation, estimate=weighted)


def _check(evaluation: Evaluation, rule: GateRule, segment: str | None, queries: Bools) -> GateCheck:
    """The comparison of the two systems on some of the queries."""
    estimate = evaluation.estimate
    relevance = estimate.prediction.relevance
    mine = queries[relevance.pool.query] & retrieved_pairs(estimate.estimation.runs)
    return GateCheck(
        evaluation.compare(*evaluation.scores.systems),
        rule,
        segment,
        queries=int(queries.sum()),
        pool=int(mine.sum()),
        judged=int((relevance.certain & mine).sum()),
    )


def _forecast(found: Gate, seed: int) -> GateForecastDocument:
    """The further judgments that the slowest of the undecided measures is likely to need."""
    from probeval.simulation import forecast as forecast_judging

    slowest: GateForecastDocument | None = None
    for evaluation, check in zip(found.evaluations, found.checks, strict=True):
        if check.verdict != "undecided":
            continue
        state = evaluation.next(1).state
        ahead = forecast_judging(
            state,
            target=found.rule.level,
            paths=PATHS,
            lasts=LASTS,
            confidence=found.rule.confidence,
            rng=stream(seed, Purpose.FORECAST),
        )
        needed = ahead.needed(found.rule.level, lasts=LASTS)
        start = state.scores.judged
        judgments, low, high = (max(round(needed[name] - start), 1) for name in ("judgments", "lower", "upper"))
        one: GateForecastDocument = {
            "judgments": judgments,
            "lower": low,
            "upper": high,
            "settled": float((ahead.confidence[:, -1] >= found.rule.level).mean()),
        }
        if slowest is None or (one["settled"], -judgments) < (slowest["settled"], -slowest["judgments"]):
            slowest = one
    assert slowest is not None  # the gate is undecided
    return slowest


gate = task(GateInputs, "gate")
