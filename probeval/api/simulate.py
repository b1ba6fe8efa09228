"""Policies, models and seeds compared on a finished campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.api.evidence import Evidence, as_scale, note_outside, note_texts, read_labelled, with_observers
from probeval.api.settings import (
    MEASURE,
    Checkpoints,
    ChoosingByErrors,
    Depth,
    Draws,
    Family,
    Jobs,
    LabelsFrom,
    Mapping,
    Method,
    Rope,
    Scoring,
    Sharing,
    Systems,
    WorkOnParts,
)
from probeval.api.users import as_goal_metric, as_rope
from probeval.data import Collection, read_campaign, with_reference
from probeval.errors import DataError
from probeval.metrics import AnyMetric
from probeval.records import About, task
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.scores import labels_used
from probeval.selection import POLICIES

if TYPE_CHECKING:
    from probeval.simulation import Simulation

__all__ = ["SimulationInputs", "simulate"]

ALLOCATIONS = ("gain", "people", "labels", "square-root")  # of probeval.simulation, slow to import
TESTS = ("t", "wilcoxon", "sign", "tukey", "friedman")  # of probeval.reliability.SIGNIFICANCE, slow to import


@dataclass(frozen=True, eq=False, repr=False)
class SimulationInputs(WorkOnParts, Sharing, ChoosingByErrors, Scoring, Evidence):
    """Judge a finished campaign again by several policies: its judgments answer, and are the truth.

    Policies of one's own are functions or objects. The built-in models are used unless there are campaigns to fit on.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=5, queries=6, depth=5)
    >>> found = probeval.simulate(campaign, "DCG@5", ["mtc:uniform", "random:uniform"], batch=5)
    >>> found.stops()["ending"].tolist()
    ['stopped', 'stopped']
    """

    metric: Annotated[AnyMetric, MEASURE]
    policies: Annotated[
        Sequence[Any],
        About(
            f"A policy ({', '.join(POLICIES)}) and its model, with a column where it uses labels. Default: gain.",
            metavar="POLICY[:MODEL[:COLUMN]]",
            option="--policy",
            kind=str,
            many=True,
        ),
    ] = ("gain",)
    _: KW_ONLY
    model: Annotated[
        str | Card | Predicts | None, About("The model of policies without one.", metavar="NAME", kind=str)
    ] = None
    fit: Annotated[
        Sequence[Any], About("A campaign to refit the models on.", metavar="CAMPAIGN", kind=Path, many=True)
    ] = ()
    labels_from: LabelsFrom = None
    depth: Depth = None
    rope: Rope = 0.0
    mapping: Mapping = None
    batch: Annotated[int, About("The number of judgments per batch.", least=1)] = 1
    late_batch: Annotated[
        float | None, About("The share of the pool per batch, once a tenth of it is judged.", option="")
    ] = None
    checkpoints: Checkpoints = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
    until: Annotated[float, About("The share of the pool at the end of a trajectory.")] = 1.0
    refresh: Annotated[
        int | None, About("The number of judgments between updates of the model; default: the batch size.", least=1)
    ] = None
    pilot: Annotated[float, About("The share of the pool to judge at random before the policy starts.")] = 0.0
    noise: Annotated[float, About("The probability that the assessor's grade is wrong.")] = 0.0
    assessors: Annotated[int, About("The number of assessors, who judge in parallel.", least=1)] = 1
    method: Method = None
    family: Family = None
    draws: Draws = 1000
    test: Annotated[str, About('The test behind "significant" true differences.', choices=TESTS)] = "t"
    rules: Annotated[
        Any,
        About(
            "Show which differences the rules for incomplete judgments take as significant, and how rightly: the least "
            "confidence (gate), the threshold or the sd behind it. Default: gate=.95, sd from the campaign.",
            metavar="gate=.95,sd=.248",
            kind=str,
        ),
    ] = None
    allocations: Annotated[
        Sequence[str],
        About(
            "With --prices, how the cost is shared between people and machines.",
            option="--allocation", many=True, choices=ALLOCATIONS,
        ),
    ] = ("gain",)  # fmt: skip
    systems: Systems = "judged"
    seeds: Annotated[int, About("The number of seeds, starting at --seed.", least=1)] = 1
    jobs: Jobs = 1

    def run(self) -> Simulation:
        """The simulation."""
        from probeval.simulation import SimulationProtocol
        from probeval.simulation import simulate as judge_again

        self.refuse("simulation")
        reporter, measure = self.reporter, as_goal_metric(self.metric, self.goal, mapping=self.mapping, rope=self.rope)
        names = {field.name for field in fields(SimulationProtocol)} - {"metric", "rope"} | {"model"}
        settings = SimulationProtocol.of(
            measure,
            **{name: getattr(self, name) for name in names} | {"stop": self.stopping},
        )
        past = [c if isinstance(c, Collection) else read_campaign(c) for c in self.fit]
        collection = replace(self, observers=None).collection(self.runs, scale=as_scale(self.scale), reporter=reporter)
        depth = settings.depth or settings.metric.cutoff or collection.runs.depth
        note_texts(collection, self.docs, depth=depth, reporter=reporter)
        note_outside(collection, reporter)
        described, labelled = with_observers([collection, *past], self.observers, read_labelled(self.labels_from))
        collection, *past = described
        collection = with_reference(collection, self.reference)
        if collection.judgments is None:
            raise DataError("A simulation needs the judgments of a finished campaign: give qrels.")
        scale = collection.scale(settings.scale)
        scale = scale if settings.gain is None else scale.with_gain(settings.gain)
        for sentence in labels_used(collection.problem(depth=depth, scale=scale)).sentences():
            reporter.say(sentence)
        rope = as_rope(self.rope, settings.metric, scale, mapping=self.mapping, reporter=reporter)
        return judge_again(
            collection,
            replace(settings, rope=rope),
            fit=past,
            labelled=labelled,
            n_jobs=self.jobs,
            scheduler=self.scheduler,
            reporter=reporter,
        )


simulate = task(SimulationInputs, "simulate")
