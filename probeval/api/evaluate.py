"""Rank systems with few judgments or none, and choose the pairs to judge next."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

from probeval.api.estimates import evaluation_estimate
from probeval.api.evaluation import RANKING_DRAWS, Evaluation, NextPairs
from probeval.api.evidence import (
    IN_PARTITIONS,
    Evidence,
    Remarks,
    as_scale,
    note_outside,
    note_texts,
    select_model,
    unanswered,
    unjudged,
)
from probeval.api.partitioned import estimate_in_parts, note_unjudged
from probeval.api.settings import MEASURE, ChoosingByErrors, Distribution, Level, Policy, Systems, WorkOnParts
from probeval.api.users import as_goal_metric, as_rope
from probeval.data import Collection, Partitions, Scale, as_judgments, with_reference
from probeval.data.collection import JUDGED
from probeval.data.partitions import as_partitions
from probeval.errors import DataError, ModelError
from probeval.metrics import AnyMetric, Metric
from probeval.metrics.aggregates import check_aggregate
from probeval.partitioned import Engine, PartitionedEstimate, fit_parts, look, stored_parts
from probeval.partitioned.scores import check_scoring
from probeval.records import About, part, task
from probeval.relevance import Choice, Hierarchical
from probeval.relevance.outside import MOST_GRADES, OutsideModel, load_outside
from probeval.reporting import Reporter
from probeval.scores import ScoreEstimate, ScoreEstimation
from probeval.scores.evaluate import as_metric

__all__ = ["EvaluationInputs", "NextInputs", "evaluate", "next_pairs"]


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationInputs(WorkOnParts, Distribution, Evidence):
    """Rank systems: with no judgments, with some, or with all; every score with its uncertainty.

    The runs may be the folder of a campaign in partitions, which has its own labels and judgments and is worked on in
    parts. See docs/theory/scores.md for the computation of scores.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=5, depth=5)
    >>> evaluation = probeval.evaluate(campaign.runs, "nDCG@5", scale="graded:2")
    >>> evaluation
    <Evaluation: nDCG@5 of 4 systems on 5 queries, 0 of 56 pairs judged, confidence 0.6...>
    """

    metric: Annotated[AnyMetric, MEASURE]
    _: KW_ONLY
    level: Level = 0.95
    systems: Systems = "all"

    def run(self) -> Evaluation:
        """The evaluation."""
        remarks = Remarks(self.reporter)
        stored = as_partitions(self.runs)
        estimate, choice = self._in_memory(remarks) if stored is None else self._in_partitions(stored, remarks)
        evaluation = Evaluation(estimate, choice, self.level)
        for sentence in (*evaluation.labels.sentences(), *evaluation.answers.sentences()):
            remarks.say(sentence)
        return replace(evaluation, notes=tuple(remarks.notes))

    def _in_memory(self, remarks: Remarks) -> tuple[ScoreEstimate, Choice]:
        """The scores of runs, and the model."""
        measured, grades = as_metric(self.metric), as_scale(self.scale)
        collection = self.collection(self.runs, scale=grades, reporter=self.reporter)
        deep = self.depth or measured.cutoff or collection.runs.depth
        if self.systems == "judged":
            collection = judged_systems(collection, deep, remarks)
        choice = select_model(
            collection, self.model, scale=grades, gain=self.gain, inference=self.inference, reporter=remarks
        )
        note_texts(collection, self.docs, depth=deep, model=choice.model, reporter=remarks)
        note_outside(collection, remarks)
        _note_queries(collection, remarks)
        collection = with_reference(collection, self.reference)
        _note_disagreements(collection, choice.scale, remarks)
        if collection.consensus and not isinstance(choice.model, Hierarchical):
            raise ModelError("Only the hierarchical model has a consensus. Use --model hierarchical.")
        check_aggregate(self.aggregate)
        self.reporter.expect(
            evaluation_estimate(collection, measured, depth=deep, method=self.method, draws=self.draws)
        )
        settings = self._settings(measured, choice.scale, remarks)
        settings["outside"] = self._outside(choice.scale)
        if self.jobs is None and self.scheduler is None:
            return ScoreEstimation.of(
                collection, choice.model, measured, depth=deep, scale=choice.scale, **settings
            ).first(), choice
        return estimate_in_parts(
            collection, choice, measured, depth=deep, engine=self._engine, reporter=remarks, settings=settings
        ), choice

    def _in_partitions(self, stored: Partitions, remarks: Remarks) -> tuple[ScoreEstimate, Choice]:
        """The scores of a campaign in partitions, and the model."""
        self.refuse("partitions")
        for name, given in (("outside", self.outside), ("systems", self.systems == "judged")):
            if given:
                raise DataError(f"--{name} {IN_PARTITIONS}")
        measured, grades = as_metric(self.metric), as_scale(self.scale)
        check_scoring(measured, method=self.method, aggregate=self.aggregate, draws=self.draws)
        judgments = stored.read_judgments() if self.qrels is None else as_judgments(self.qrels, scale=grades)
        engine = self._engine
        with engine.start() as run:
            surveyed = look(
                stored_parts(stored),
                judgments,
                n_queries=stored.n_queries,
                depth=self.depth or measured.cutoff or stored.depth,
                longest=stored.depth,
                run=run,
                reporter=engine.reporter,
            )
            choice = select_model(
                surveyed.collection,
                self.model,
                scale=grades,
                gain=self.gain,
                inference=self.inference,
                reporter=remarks,
            )
            note_unjudged(surveyed, remarks)
            fit = fit_parts(surveyed, choice.model, scale=choice.scale, run=run, reporter=engine.reporter)
            settings = self._settings(measured, choice.scale, remarks)
            return PartitionedEstimate.of(fit, measured, engine, run, **settings), choice

    @property
    def _engine(self) -> Engine:
        return Engine(self.jobs, self.scheduler, self.reporter)

    def _outside(self, scale: Scale) -> OutsideModel | None:
        """The model of relevant documents outside the pool; by default for measures that count all of them."""
        if self.outside is not None:
            return load_outside() if self.outside is True else self.outside or None
        drawn = self.method in (None, "draws") and len(scale) <= MOST_GRADES
        return replace(load_outside(), only_bases=True) if drawn else None

    def _settings(self, metric: Metric, scale: Scale, reporter: Reporter) -> dict[str, Any]:
        """How scores are estimated, beside the model and the measure."""
        return {
            "method": self.method,
            "target": self.target,
            "family": self.family,
            "draws": self.draws,
            "rope": as_rope(self.rope, metric, scale, mapping=self.mapping, reporter=reporter),
            "aggregate": self.aggregate,
            "ranking_draws": RANKING_DRAWS,
            "seed": self.seed,
        }


@dataclass(frozen=True, eq=False, repr=False)
class NextInputs(WorkOnParts, ChoosingByErrors, Distribution, Evidence):
    """Choose the next pairs to judge, given the judgments so far, and say whether judging may stop.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=5, depth=5)
    >>> probeval.next_pairs(campaign.runs, "DCG@5", n=3, scale="graded:2").to_frame().columns.tolist()
    ['query', 'doc', 'grade', 'sd', 'systems', 'best_rank', 'probability']
    """

    metric: Annotated[AnyMetric, MEASURE]
    n: Annotated[int, About("The number of pairs.", option="-n, --number", least=0)] = 20
    _: KW_ONLY
    policy: Policy = "gain"
    systems: Systems = "all"
    labeller: Annotated[
        str | None,
        About("Choose pairs for this labeller, not for people: those that its labels lack most.", metavar="NAME"),
    ] = None

    def run(self) -> NextPairs:
        """The pairs."""
        rules = self.stopping  # wrong ones are refused before any work
        measure = as_goal_metric(self.metric, self.goal, mapping=self.mapping, rope=self.rope)
        where: dict[str, Any] = {}
        if (self.jobs, self.scheduler) != (None, None) and as_partitions(self.runs) is None:
            self.reporter.say("The next pairs are chosen among all pairs at once: in one process.")
            where = {"jobs": None, "scheduler": None}
        evaluation = part(self, EvaluationInputs, metric=measure, **where).run()
        return evaluation.next(
            self.n,
            policy=self.policy,
            goal=self.goal,
            stop=rules,
            explore=self.explore,
            labeller=self.labeller,
            prices=self.prices,
        )


def judged_systems(collection: Collection, depth: int, reporter: Reporter) -> Collection:
    """The collection with its fully judged systems alone."""
    kept = collection.judged_systems(depth)
    n, everything = len(kept.runs.systems), len(collection.runs.systems)
    reporter.say(f"{n} of {everything} systems have more than {JUDGED:g} of their documents judged.")
    return kept


def _note_disagreements(collection: Collection, scale: Scale, reporter: Reporter) -> None:
    """Pairs whose assessors differ are not certain."""
    if collection.judgments is None:
        return
    here = collection.judgments.on(collection.runs.pool, collection.judged_places)
    n = int((here.limits(scale)[1] >= 0).sum())
    if n:
        reporter.say(
            f"Assessors differ on {n:,} pairs: their grades are uncertain, between the lowest and the highest given."
        )


def _note_queries(collection: Collection, reporter: Reporter) -> None:
    """Report queries that only the runs or only the judgments have."""
    if collection.judgments is None:
        return
    alone, missing = unjudged(collection), unanswered(collection)
    if alone:
        reporter.say(f"{len(alone)} queries of the runs have no judgment: their scores rest on the model alone.")
    if missing:
        reporter.say(f"{len(missing)} judged queries are answered by no run and are left out.")


evaluate = task(EvaluationInputs, "evaluate")
next_pairs = task(NextInputs, "next_pairs")
