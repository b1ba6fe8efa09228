"""The result of :func:`probeval.evaluate`: scores, ranking, comparisons, pairs to judge next, a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd

from probeval.arrays import Ints
from probeval.bayes import NutsDiagnostics
from probeval.data import OpenPair, WriteOptions, as_labels, write_tasks
from probeval.data.texts import as_text_mapping, document_texts
from probeval.display import Table
from probeval.errors import ModelError, SelectionError
from probeval.metrics import AnyMetric
from probeval.relevance import Choice, Hierarchical
from probeval.relevance.answers.verdicts import AnswersUsed
from probeval.relevance.inference.posterior import Posterior
from probeval.relevance.models.hierarchical import Inference
from probeval.relevance.surprise import SurprisingGrades, surprising_grades
from probeval.reporting import SILENT, Reporter
from probeval.results import UNSET, Named, Result, UnsetType, changed, key, plain, rows
from probeval.scores import (
    Comparison,
    LabelsUsed,
    Ranking,
    ScoreEstimate,
    Scores,
    TrustReport,
    Verdict,
    labels_of,
    trust,
)
from probeval.scores.evaluate import as_metric
from probeval.scores.trust import MARGIN, agreements
from probeval.streams import Purpose, stream
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.reports import Page
    from probeval.satisfaction import Agreement, SatMapping
    from probeval.selection import AnswerPrices, Batch, Fairness, JudgingState, Request, Stopping, StoppingCheck

__all__ = ["RANKING_DRAWS", "CheckedStop", "Evaluation", "Evaluations", "NextPair", "NextPairs"]

RANKING_DRAWS = 10_000  # of scores, for the probabilities of ranks of one evaluation


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """A ranking, and the model that it rests on.

    Systems are evaluated by one measure, with the judgments so far and a model for the rest.

    Parameters
    ----------
    estimate
        The judgments, the prediction of relevance, and the scores that follow.
    choice
        The model, and why it was chosen.
    level
        The probability of intervals.
    notes
        Remarks on the data and the model.
    per_query
        Whether the JSON and the table have one row per system and query.

    Examples
    --------
    >>> import probeval
    >>> runs = {"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}, "dense": {"q1": {"d2": 2.0, "d3": 1.0}}}
    >>> evaluation = probeval.evaluate(runs, "P@2", qrels={"q1": {"d1": 1, "d3": 0}}, scale="binary")
    >>> evaluation.ranking.order[0]
    'bm25'
    >>> evaluation.compare("bm25", "dense").p_better > 0.5
    True
    """

    estimate: ScoreEstimate
    choice: Choice
    level: float = 0.95
    notes: tuple[str, ...] = ()
    per_query: bool = False
    trust_report: Annotated[
        TrustReport | UnsetType, "How reliable each source of labels is, if asked for.", Named("trust")
    ] = UNSET
    surprises: Annotated[
        SurprisingGrades | UnsetType, "The least expected judgments, if asked for.", Named("surprising")
    ] = UNSET

    def _headline(self) -> str:
        scores = self.scores
        return (
            f"{scores.metric} of {len(scores.systems)} systems on {len(scores.queries)} queries, "
            f"{scores.judged:,} of {scores.pool:,} pairs judged, confidence {self.ranking.confidence:.3f}"
        )

    @property
    def scores(self) -> Scores:
        """The joint distribution of all systems' mean scores."""
        return self.ranking.scores

    @key.flat
    def ranking(self) -> Ranking:
        """The systems by falling mean score, with rank probabilities."""
        ranking = self.estimate.ranking.at(self.level)
        more = {"per_query": self.per_query, "outside": self.estimate.scores_with_outside}
        return changed(ranking, scores=changed(ranking.scores, **more)) if any(more.values()) else ranking

    @key.named("model")
    def model_name(self) -> str:
        """The name of the model."""
        return self.choice.name

    @key
    def diagnostics(self) -> NutsDiagnostics | UnsetType:
        """R-hat, bulk ESS and the share of divergences, where the model was sampled."""
        return self.estimate.prediction.diagnostics or UNSET

    @cached_property
    def verdict(self) -> Verdict:
        """The comparisons that are decided, open, tied, or beyond these queries."""
        return Verdict.of(self.ranking, level=self.level)

    @cached_property
    def labels(self) -> LabelsUsed:
        """The sources of labels: known to the model or new, their share of the pool, their agreement with people."""
        return labels_of(self.estimate)

    @cached_property
    def answers(self) -> AnswersUsed:
        """The answers of assessors about documents, and whether each assessor is attentive, careless or reversed."""
        return self.estimate.answers_used

    @key.named("labels")
    def labels_shown(self) -> LabelsUsed | UnsetType:
        """The sources of labels, where there are any."""
        return self.labels if self.labels.sources else UNSET

    @key.named("answers")
    def answers_shown(self) -> AnswersUsed | UnsetType:
        """The answers about documents and their assessors, where there are any."""
        return self.answers if self.answers.assessors else UNSET

    def by(self, metric: AnyMetric, *, depth: int | None = None) -> Evaluation:
        """The same collection evaluated by another measure; measures of one depth share one prediction.

        ``depth`` is the depth of the pool; by default the measure's cutoff, or the whole runs.
        """
        measure = as_metric(metric)
        wanted = depth or measure.cutoff or self.estimate.longest
        return replace(self, estimate=self.estimate.by(measure, depth=wanted))

    def clustered(self, clusters: Ints | None) -> Evaluation:
        """The same where the queries of a cluster are not independent, shape (query,)."""
        if clusters is None:
            return self
        how = replace(self.estimate.estimation, clusters=clusters)
        return replace(self, estimate=replace(self.estimate, estimation=how))

    def compare(self, a: str, b: str, *, rope: float | None = None) -> Comparison:
        """System ``a`` against system ``b``; differences up to ``rope``, by default that of the ranking, are ties."""
        return self.scores.compare(a, b, rope=self.estimate.estimation.rope if rope is None else rope)

    def next(
        self,
        n: int = 20,
        *,
        policy: str = "gain",
        goal: str = "ranking",
        stop: Stopping | str | None = None,
        explore: float | None = None,
        labeller: str | None = None,
        prices: AnswerPrices | str | Mapping[str, float] | None = None,
    ) -> NextPairs:
        """The next ``n`` pairs to judge, best first; none once the stopping rule holds.

        Parameters
        ----------
        n
            The number of pairs.
        policy, goal
            The selection policy (:data:`probeval.selection.POLICIES`) and its goal (:data:`probeval.selection.GOALS`).
        stop
            A stopping rule such as ``confidence=.95,budget=500``.
        explore
            The share of judgments spent on random pairs; by default that of the policy for the goal.
        labeller
            Choose pairs for this labeller, by its column of labels or the name that it will have: those whose label,
            with its errors, is expected to tell most, among those that it has not labelled.
        prices
            What a judgment costs, and a label of each machine, such as ``person=1,gpt4o=.01``: the pairs are then for
            whoever is expected to tell more for the price, ``n`` for people, or for a machine about as many as cost the
            same.
        """
        from probeval.selection import AnswerPrices, Stopping, next_request

        state, stopping = self.judging(policy, goal=goal, explore=explore), Stopping.parse(stop)
        if prices is None:
            return NextPairs(self, state, n, stopping, UNSET if labeller is None else labeller)
        if labeller is not None:
            raise SelectionError("--labeller names who is asked, and --prices choose it. Leave out one of them.")
        left = stopping.left(len(state.judgments))
        request = next_request(state, AnswerPrices.parse(prices), n if left is None else min(n, left))
        return NextPairs(self, state, n, stopping, UNSET if request.is_for_people else request.observer, request)

    def judging(self, policy: str = "gain", *, goal: str = "ranking", explore: float | None = None) -> JudgingState:
        """The state of a judging from here on; the parameters are those of :meth:`next`."""
        from probeval.selection import Judging, JudgingState  # scores need no policy

        now = self.estimate.with_all_pairs
        judging = Judging.choosing(now.estimation, policy, goal=goal, explore=explore)
        if judging.metric != now.estimation.metric:  # the goal has a measure of its own
            now = now.by(judging.metric, depth=judging.depth)
        return JudgingState(judging, now, now.answered)

    def posterior(self, *, inference: Inference = "laplace", **options: Any) -> Posterior:
        """The posterior of the hierarchical model, with ``diagnostics()`` and ``to_arviz()``.

        Parameters
        ----------
        inference
            ``"laplace"`` or ``"nuts"``.
        options
            As in :meth:`probeval.relevance.Hierarchical.infer`: ``draws``, ``tune``, ``chains`` and others.
        """
        self.estimate.check_whole("A posterior of all effects needs")
        now, how = self.estimate.with_all_pairs, self.estimate.estimation
        if not isinstance(how.model, Hierarchical):
            raise ModelError(f"Only a hierarchical model has a posterior, and {self.choice.name} is none.")
        rng = stream(how.seed, Purpose.PREDICTION)
        return how.model.infer(now.problem, inference=inference, rng=rng, **options)

    def fairness(self) -> Fairness:
        """The judged share of each team's documents, and its effect on scores."""
        from probeval.selection import fairness

        return fairness(self.estimate.with_all_pairs)

    def trust(
        self,
        *,
        margin: float = MARGIN,
        earlier: Any = None,
        docs: Any = None,
        queries: Any = None,
        reporter: Reporter = SILENT,
    ) -> TrustReport:
        """How reliable each source of labels is, whom it favours, and what the ranking owes to it.

        Parameters
        ----------
        margin
            The shift of labels that counts as none, as a share of their range.
        earlier
            Labels of earlier versions of the same sources, in any form: whether they drifted.
        docs, queries
            Texts, in any form: whether labels follow the length of a text, or the words that it shares with the query.
        reporter
            Receives the progress of the alternative rankings.
        """
        now = self.estimate.with_all_pairs
        pool = now.estimation.pool
        return trust(
            now,
            margin=margin,
            earlier=None if earlier is None else as_labels(earlier),
            docs=None if docs is None else document_texts(docs, only=frozenset(pool.docs)),
            queries=as_text_mapping(queries, "query", only=frozenset(pool.queries)),
            reporter=reporter,
        )

    def surprising(self, n: int = 20) -> SurprisingGrades:
        """The judgments that are the least expected given all other evidence, for review.

        Parameters
        ----------
        n
            The number of judgments.
        """
        return surprising_grades(self.estimate.with_all_pairs.prediction.relevance, n=n)

    def page(
        self,
        *,
        title: str | None = None,
        command: str = "",
        mapping: SatMapping | None = None,
        agreement: Agreement | None = None,
        reporter: Reporter = SILENT,
    ) -> Page:
        """The report of the evaluation as plain data.

        Parameters
        ----------
        title
            The title; the collection and the measure when not given.
        command
            The command that makes the report again.
        mapping
            A mapping to users' satisfaction; the published one of the measure when not given.
        agreement
            The preferences of its users; the published ones of its name when not given.
        reporter
            Receives the progress of the sections.
        """
        from probeval.reports import ReportResults, report_evaluation

        self.estimate.check_whole("A report needs")
        collection = self.estimate.estimation.collection
        return report_evaluation(
            ReportResults.of(self.judging(), self.choice, level=self.level, mapping=mapping, agreement=agreement),
            title=title or self._title(),
            command=command,
            seen=self.choice.fitted_on(collection),
            reporter=reporter,
        )

    def _title(self) -> str:
        order, name = self.ranking.order, self.estimate.collection.name
        return f"{' against '.join(order) if len(order) == 2 else name}: {self.scores.metric}"

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write an HTML report, and return its path."""
        from probeval.reports import write_report

        return write_report(self.page(title=title), Path(path))

    @property
    def headline(self) -> str:
        """Judgments, the meaning of the intervals, and the confidence of the ranking, in one sentence."""
        return self.ranking.sentences()[0]

    def identical_systems(self) -> list[list[str]]:
        """Groups of systems that retrieved the same documents and certainly have the same score."""
        scores = self.scores
        runs = self.estimate.lists
        top = runs.pairs[:, :, : min(runs.depth, scores.metric.cutoff or runs.depth)]
        mean, sd = scores.difference_moments()
        groups: dict[bytes, list[int]] = {}
        for system, docs in enumerate(np.sort(top, axis=2)):
            groups.setdefault(docs.tobytes(), []).append(system)
        alike = [
            [s for s in group if sd[group[0], s] == 0 and abs(mean[group[0], s]) <= TIE] for group in groups.values()
        ]
        return [[scores.systems[s] for s in group] for group in alike if len(group) > 1]

    def to_frame(self, *, per_query: bool = False) -> pd.DataFrame:
        """One row per system, best first; or one row per system and query."""
        if per_query or self.per_query:
            return self.scores.to_frame(per_query=True)
        return self.ranking.to_frame()

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The evaluation as plain data, as ``probeval evaluate --format json`` prints it."""
        return dict(plain(changed(self, per_query=per_query or self.per_query)))

    def tables(self) -> tuple[Table, ...]:
        """The ranking with its intervals, or every query; the trust report and surprising judgments, if asked for."""
        shown = None if self.per_query else ("mean", "lower", "upper")
        asked = (report for report in (self.trust_report, self.surprises) if report is not UNSET)
        more = (table for report in asked for table in report.tables())
        return (Table(self.to_frame(), self.scores.title, intervals=shown), *more)

    def sentences(self) -> list[str]:
        """The headline, the ideal list, the ties, labels and surprises if asked for, the sampler, then notes."""
        asked = (report for report in (self.trust_report, self.surprises) if report is not UNSET)
        more = (sentence for report in asked for sentence in report.sentences())
        sampled = () if self.diagnostics is UNSET else (f"The posterior is sampled by NUTS: {self.diagnostics}.",)
        return [*self.ranking.sentences(), *more, *sampled, *self.notes]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluations(Result):
    """Several evaluations, one per measure."""

    results: Annotated[tuple[Evaluation, ...], "One entry per measure."]

    def _headline(self) -> str:
        return f"{len(self.results)} measures"

    def to_frame(self) -> pd.DataFrame:
        """The rows of every evaluation, with the measure in the last column."""
        return pd.concat([one.to_frame().assign(metric=str(one.scores.metric)) for one in self.results])

    def tables(self) -> tuple[Table, ...]:
        """Those of every evaluation."""
        return tuple(table for one in self.results for table in one.tables())

    def sentences(self) -> list[str]:
        """Those of every evaluation; the first names its measure."""
        found: list[str] = []
        for one in self.results:
            first, *others = one.sentences()
            found += [f"{one.scores.metric}: {first}", *others]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class NextPair:
    """A pair to judge."""

    query: str
    doc: str
    grade: Annotated[float, "The grade that is expected."]
    sd: Annotated[float, "Its standard deviation."]
    systems: Annotated[int, "The number of systems that retrieved the document."]
    best_rank: Annotated[int, "The best rank of the document."]
    probability: Annotated[
        float | None, "The probability with which exploration drew the pair; null if the policy chose it."
    ]


@dataclass(frozen=True)
class CheckedStop:
    """Whether the stopping rule says stop."""

    reached: bool
    reasons: Annotated[tuple[str, ...], "Why it does."]
    values: Annotated[Mapping[str, float], "The value of each of its figures."]


@dataclass(frozen=True, eq=False, repr=False)
class NextPairs(Result):
    """Pairs to judge next, best first, and whether judging may stop."""

    evaluation: Evaluation  # so far
    state: JudgingState  # that the pairs are chosen from, with its policy and goal
    asked: int  # the number of pairs asked for
    stopping: Stopping
    labeller: Annotated[str | UnsetType, "The labeller that the pairs are for, if they are not for people."] = UNSET
    request: Request | None = None  # the pairs, where prices choose who is asked

    def _headline(self) -> str:
        what = "judge" if self.labeller is UNSET else "label"
        return f"{len(self.chosen)} pairs to {what} next, by {self.policy}"

    @key
    def metric(self) -> str:
        """The measure."""
        return str(self.state.judging.metric)

    @key
    def model(self) -> str:
        """The name of the model."""
        return self.evaluation.choice.name

    @key
    def policy(self) -> str:
        """The policy."""
        return str(self.state.judging.policy)

    @key
    def goal(self) -> str:
        """The goal of judging."""
        return str(self.state.judging.goal)

    @key
    def pool(self) -> int:
        """The number of pairs."""
        return self.state.scores.pool

    @key
    def judged(self) -> int:
        """The number of judged pairs."""
        return self.state.scores.judged

    @key
    def rope(self) -> float:
        """The largest difference that does not matter."""
        return self.state.judging.rope

    @key
    def confidence(self) -> float:
        """The mean confidence over the comparisons of the goal: all pairs of systems, for a ranking."""
        return self.state.confidence

    @key
    def stop(self) -> CheckedStop:
        """Whether the stopping rule says stop."""
        return CheckedStop(self.check.reached, tuple(self.check.reasons), self.check.values)

    @key
    def comparisons(self) -> Verdict:
        """The number of comparisons of systems in each state."""
        return Verdict.of(self.state.ranking)

    @key
    def gains(self) -> Mapping[str, float] | UnsetType:
        """The expected gain per cost of people and of each machine, where answers have prices and these decide."""
        return UNSET if self.request is None or not self.request.gains else self.request.gains

    @key.named("labels")
    def labels_shown(self) -> LabelsUsed | UnsetType:
        """The sources of labels, where there are any."""
        return self.evaluation.labels_shown

    @key.named("answers")
    def answers_shown(self) -> AnswersUsed | UnsetType:
        """The answers about documents and their assessors, where there are any."""
        return self.evaluation.answers_shown

    @cached_property
    def check(self) -> StoppingCheck:
        """Whether the stopping rule holds, and how far it is."""
        return self.stopping.check(self.state)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Query and document of each pair."""
        return [(one.query, one.doc) for one in self.chosen]

    @key.named("next")
    def chosen(self) -> tuple[NextPair, ...]:
        """The pairs, the best first."""
        batch = self._batch()
        places, context = batch.pairs, self.state.context
        known = self.state.prediction.relevance.take(places).to_frame().iloc[places.argsort().argsort()]
        return rows(
            NextPair,
            query=known["query"],
            doc=known["doc"],
            grade=known["mean"],
            sd=known["sd"],
            systems=context.retrieved[:, places].sum(axis=0).astype(int),
            best_rank=context.best_rank[places] + 1,
            probability=[None if np.isnan(p) else p for p in batch.probability.tolist()],
        )

    def _batch(self) -> Batch:
        """The pairs by position; a budget of judgments is not for labels."""
        n = 0 if self.check.reached else self.asked
        if self.request is not None:
            return self.request.batch if n else self.state.next(0)
        if isinstance(self.labeller, str):
            from probeval.selection import choose_for_labeller

            return choose_for_labeller(self.state, self.labeller, n)
        left = self.stopping.left(len(self.state.judgments))
        return self.state.next(n if left is None else min(n, left))

    def hand_out(self, tool: str, folder: str | PathLike[str], *, queries: Any = None, docs: Any = None) -> list[Path]:
        """Write the pairs as the files that a judging tool takes; return their paths.

        Parameters
        ----------
        tool
            One of :func:`probeval.data.task_formats`: ``label-studio`` or ``quepid``.
        folder
            Where the files are written.
        queries, docs
            Texts that assessors see: a path, a data frame, or a mapping from ids to texts. Without them, they see ids.
        """
        pairs = [OpenPair(one.query, one.doc, one.grade) for one in self.chosen]
        options = WriteOptions(
            queries=as_text_mapping(queries, "query"),
            docs=as_text_mapping(docs, "doc"),
            scale=self.evaluation.choice.scale,
        )
        return write_tasks(Path(folder), tool, pairs, options)

    def sentences(self) -> list[str]:
        """The status of the judging, then notes on the data and the model."""
        return [*self.status(), *self.evaluation.notes]

    def status(self) -> list[str]:
        """Judgments so far, the ideal list, the comparisons, and whether to stop."""
        from probeval.selection.stopping import stated

        state, check = self.state, self.check
        scores = state.scores
        lines = [
            f"{scores.judged:,} of {scores.pool:,} pairs judged, {stated(check.figures, state.confidence)}"
            f"{scores.caveat}.",
            *(() if scores.ideal is None else (scores.ideal.sentence,)),
            str(self.comparisons),
            *state.ranking.ties(),
        ]
        if state.goal.kind == "success":
            lines.insert(
                0, f"Systems are compared by P(success), the share of queries that satisfy most users: {scores.metric}."
            )
        if state.goal.about_labels:
            lines.insert(0, f"Of labels, an agreement of at least {state.goal.least:g} with people is asked for.")
            lines[1:1] = [f"{one.against(state.goal.least or 0.0)}." for one in agreements(state.estimate)]
        if check.reached:
            lines.append(f"The target is met ({'; '.join(check.reasons)}): no more judgments are needed.")
        elif not state.open.any():
            lines.append("Every pair is judged.")
        elif isinstance(self.labeller, str):
            from probeval.selection import label_correlation

            r = label_correlation(state, self.labeller)
            lines.append(f"The labels of {self.labeller} have an expected correlation of {r:.2f} with relevance.")
            if self.request is None and len(self.chosen) < self.asked:
                lines.append(f"{self.labeller} has labelled all other pairs that are not judged.")
        elif state.goal.about_labels:
            lines.append(
                f"{state.judging.explore:.0%} of the pairs are drawn at random, those that may change the agreement "
                f"most more "
                "often, with the probability shown."
            )
        elif state.draws_from_sides:
            lines.append(
                f"{state.judging.explore:.0%} of the pairs are drawn at random from both sides of the comparison, with "
                "the probability shown."
            )
        if self.request is not None and not check.reached:
            lines += self.request.sentences()
        return lines
