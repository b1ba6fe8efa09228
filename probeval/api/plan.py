"""The judgments, queries and assessors that a target takes, and the cheapest mix of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from probeval.api.estimates import plan_estimate
from probeval.api.evidence import Evidence, as_scale, note_ideal, note_outside, note_texts, select_model
from probeval.api.settings import MEASURE, Checks, Clusters, Jobs, Mapping, Rope, Scoring, WorkOnParts
from probeval.api.users import as_rope
from probeval.data import with_reference
from probeval.metrics import AnyMetric
from probeval.records import About, parse_counts, part, task
from probeval.scores import labels_used
from probeval.scores.evaluate import as_metric

if TYPE_CHECKING:
    from probeval.simulation import Plan

__all__ = ["PlanInputs", "plan"]


@dataclass(frozen=True, eq=False, repr=False)
class PlanInputs(WorkOnParts, Checks, Scoring, Evidence):
    """Forecast how many judgments a target takes, for every mix of queries, depth, assessors and labels.

    The judgments, if any, are those of a pilot.
    """

    metric: Annotated[AnyMetric, MEASURE]
    target: Annotated[
        str | dict[str, float],
        About("confidence= halfwidth= erho2= phi= power=; all must hold.", metavar="TARGETS", kind=str),
    ] = "confidence=.95"
    _: KW_ONLY
    queries: Annotated[
        Sequence[int] | None,
        About("Numbers of queries; default: that of the runs.", metavar="N,N,..", kind=str, parse=parse_counts),
    ] = None
    depths: Annotated[
        Sequence[int] | None,
        About("Depths of the pool; default: that of the metric.", metavar="K,K,..", kind=str, parse=parse_counts),
    ] = None
    assessors: Annotated[
        Sequence[int],
        About("Numbers of assessors per pair.", metavar="N,N,..", kind=str, parse=parse_counts, default="1"),
    ] = (1,)
    disagreement: Annotated[float, About("The probability that an assessor's grade is wrong.")] = 0.0
    difference: Annotated[float, About("The difference between two systems, for power.")] = 0.05
    clusters: Clusters = None
    rope: Rope = 0.0
    mapping: Mapping = None
    labeller: Annotated[
        str | None,
        About(
            "A machine, by its column of labels or the name that it will have: state the cheapest mix of its labels "
            "and judgments.",
            metavar="NAME",
        ),
    ] = None
    prices: Annotated[
        Any, About("What judgments, queries and labels cost: see :class:`probeval.simulation.Prices`.", option="")
    ] = None
    jobs: Jobs = 1

    def run(self) -> Plan:
        """The plan."""
        from probeval.simulation import Prices, Variants
        from probeval.simulation import plan as make_plan
        from probeval.simulation.forecast import PATHS

        reporter = self.reporter
        collection = self.collection(self.runs, scale=as_scale(self.scale), reporter=reporter)
        choice = select_model(collection, self.model, scale=self.scale, gain=self.gain, reporter=reporter)
        deep = max(self.depths) if self.depths else as_metric(self.metric).cutoff or collection.runs.depth
        note_texts(collection, self.docs, depth=deep, model=choice.model, reporter=reporter)
        note_ideal(collection, self.metric, choice.scale, depth=deep, reporter=reporter)
        note_outside(collection, reporter)
        collection = with_reference(collection, self.reference)
        problem = collection.problem(depth=deep, scale=choice.scale)
        for sentence in labels_used(problem, model=choice.model).sentences():
            reporter.say(sentence)
        reporter.expect(
            plan_estimate(
                collection,
                queries=self.queries or [len(collection.runs.queries)],
                depths=self.depths or [deep],
                options=len(self.assessors) * (1 + (collection.labels is not None)),
                paths=PATHS,
                jobs=self.jobs,
            )
        )
        return make_plan(
            collection,
            choice.model,
            self.metric,
            targets=self.target,
            clusters=self.clusters,
            labeller=self.labeller,
            variants=part(self, Variants, prices=Prices() if self.prices is None else self.prices),
            scale=choice.scale,
            n_jobs=self.jobs,
            scheduler=self.scheduler,
            seed=self.seed,
            rope=as_rope(self.rope, self.metric, choice.scale, mapping=self.mapping, reporter=reporter),
            reporter=reporter,
        )


plan = task(PlanInputs, "plan")
