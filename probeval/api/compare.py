"""Every pair of systems compared: by a relevance model on few judgments, by tests on complete ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd

from probeval.api.classical import judged_scores, note_left_out
from probeval.api.effects import effect_columns, new_query_table, readable_effects, satisfaction_with
from probeval.api.evaluate import EvaluationInputs
from probeval.api.evidence import Evidence, Remarks, ScoresOrRuns, as_scale, note_outside, note_texts, select_model
from probeval.api.model_comparisons import ModelComparisons
from probeval.api.settings import Estimating, Level, MeasureOfRuns, WorkOnParts
from probeval.api.studies import is_score_table
from probeval.api.tested import ComparisonTests, check_system, significant_by_bounds, significant_by_draws, tested
from probeval.api.users import agreement_of, as_rope
from probeval.data import Collection, Scale, with_reference
from probeval.data.partitions import as_partitions
from probeval.display import Table
from probeval.errors import ReliabilityError, SatisfactionError
from probeval.metrics import AnyMetric, Measured, Metric
from probeval.records import About, part, task
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.reports.milestones import draw_queries
from probeval.results import Result
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.reliability import Observed, Pairwise, ScorePosterior, TargetTests
    from probeval.satisfaction import Agreement, Noticed, Satisfaction

__all__ = ["ComparisonInputs", "SystemComparisons", "compare"]

READ = ["adjusted", "verdict", "d", "won", "p_tost", "p_noninferior", "noninferior", "when_judged", "p_significant"]


@dataclass(frozen=True, eq=False, repr=False)
class SystemComparisons(Result):
    """Every pair of systems compared.

    Parameters
    ----------
    result
        The comparisons by a relevance model, the tests, or the posterior of the Bayesian model of scores.
    metric
        The measure; None for a table of scores.
    extra
        More columns of each pair: significance once all is judged, and the effect on users.
    against
        Only pairs with this system are shown.
    notes
        Remarks on the data and the model.
    agreement
        The preferences of users by the difference in score, where they are known.
    effects
        Each pair in the eyes of users, where satisfaction is known for the measure.
    new_query
        What to expect of each system on one new query, if asked for.
    means
        The tests of means against a target, if there is one.
    margin
        The margin of non-inferiority, if there is one.
    """

    result: ModelComparisons | Pairwise | ScorePosterior
    metric: str | None
    extra: pd.DataFrame
    against: str | None = None
    notes: tuple[str, ...] = ()
    agreement: Agreement | None = None
    effects: tuple[Noticed, ...] = ()
    new_query: pd.DataFrame | None = None
    means: TargetTests | None = None
    margin: float | None = None

    def _headline(self) -> str:
        return f"{len(self.result.systems)} systems{f' by {self.metric}' if self.metric else ''}"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of systems."""
        pairs = pd.concat([self.result.to_frame(), self.extra], axis=1)
        if self.against is None:
            return pairs
        return pairs[(pairs["a"] == self.against) | (pairs["b"] == self.against)]

    def systems_frame(self) -> pd.DataFrame:
        """One row per system."""
        frame = self.result.systems_frame()
        if self.means is None:
            return frame
        found = self.means.to_frame().set_index("system").loc[frame["system"]]
        columns = {"p_target": "p", "adjusted_target": "adjusted", "verdict_target": "verdict"}
        return frame.assign(**{name: found[column].to_numpy() for name, column in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """The comparisons as plain data, as ``probeval compare --format json`` prints them."""
        document: dict[str, Any] = dict(self.result.to_dict())
        pairs = self.to_frame()
        reports = self._reports()
        rows = pairs if reports is None else pairs.assign(report=reports[pairs.index])
        document["pairs"] = rows.to_dict(orient="records")
        if self.agreement is not None:
            document["noticeable"] = self.agreement.noticeable()
        if self.means is not None:
            document |= {"target": self.means.target, "systems": self.systems_frame().to_dict(orient="records")}
        if self.margin is not None:
            document["margin"] = self.margin
        if self.new_query is not None:
            document["new_query"] = self.new_query.to_dict(orient="records")
        return document if self.metric is None else {"metric": self.metric, **document}

    def readable(self) -> pd.DataFrame:
        """One row per pair, with the columns that people read; for one pair by a model, one per kind of queries."""
        pairs, reports = self.to_frame(), self._reports()
        if isinstance(self.result, ModelComparisons):
            table = self.result.readable()
            return table if len(self.result.pairs) == 1 else table.join(readable_effects(pairs))
        if reports is None:
            return pairs
        left = pairs[["a", "b"]].assign(difference=reports[pairs.index])
        return left.join(pairs[[c for c in READ if c in pairs.columns]]).join(readable_effects(pairs))

    def _reports(self) -> Any:
        from probeval.reliability import Pairwise

        return np.array(self.result.report(), dtype=object) if isinstance(self.result, Pairwise) else None

    def tables(self) -> tuple[Table, ...]:
        """The systems, their pairs with the columns that people read, and by a model the pairs to judge next."""
        new = () if self.new_query is None else (self._new_query_view(self.new_query),)
        if isinstance(self.result, ModelComparisons):
            systems, pairs, *judge = self.result.tables()
            return systems, *new, replace(pairs, frame=self.readable()), *judge
        systems = Table(self.systems_frame(), self.metric, intervals=("mean", "lower", "upper"))
        return systems, *new, Table(self.readable(), "Pairs")

    def _new_query_view(self, table: pd.DataFrame) -> Table:
        shown = table[[c for c in table.columns if not c.endswith("below")]]
        return Table(shown, "One new query", intervals=("mean", "lower", "upper"))

    def sentences(self) -> list[str]:
        """The outcome, then notes on the data and the model."""
        return [*self.outcome(), *self.notes]

    def outcome(self) -> list[str]:
        """The test or the decision, the meaning of the intervals, and how many differences half of the users notice."""
        seen = [f"{self.effects[0]}."] if isinstance(self.result, ModelComparisons) and len(self.effects) == 1 else []
        means = () if self.means is None else self.means.sentences()
        return [
            *self.result.sentences(), *means, *self._noninferior(), *seen, *self._noticed(), *self._on_a_new_query()
        ]  # fmt: skip

    def _noninferior(self) -> list[str]:
        if self.margin is None:
            return []
        shown = self.to_frame()["noninferior"]
        return [
            f"{int((shown == 'yes').sum())} of {int(shown.notna().sum())} systems are shown to have more than "
            f"{1 - self.margin:g} of the score of {self.against}."
        ]

    def _on_a_new_query(self) -> list[str]:
        if self.new_query is None:
            return []
        level = self.result.evaluation.level if isinstance(self.result, ModelComparisons) else self.result.level
        return [
            f"One new query of the same kind: lower and upper are a two-sided {level:.0%} interval; one-sided, "
            f"{level:.0%} of new queries reach the value of the column above."
        ]

    def _noticed(self) -> list[str]:
        if self.agreement is None:
            return []
        size, noticeable = self.to_frame()["difference"].abs(), self.agreement.noticeable()
        words = self.agreement.noticeable_in_words()
        count = f"{int((size >= noticeable - TIE).sum()):,} of {len(size):,} pairs differ by as much on average."
        return [count if words in self.notes else f"{words} {count}"]


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonInputs(WorkOnParts, Estimating, Evidence):
    """Compare every pair of systems: which is better, by how much, and how sure that is.

    If a retrieved document within the depth of the measure is not judged, a relevance model predicts it: the result is
    the probability that each system is better, on these queries and on new ones. Complete judgments and tables of
    scores are tested. A method, a correction, ``bayes`` or the model ``"none"`` asks for tests on incomplete judgments
    too; unjudged documents then count as not relevant. With a method of tests, a model adds P(significant once all is
    judged).

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=3, queries=20, depth=5)
    >>> probeval.compare(campaign, "DCG@5").to_frame()[["a", "b"]].to_numpy().tolist()
    [['system-03', 'system-02'], ['system-03', 'system-01'], ['system-02', 'system-01']]
    >>> few = campaign.judgments.take(np.arange(40))
    >>> probeval.compare(campaign.runs, "DCG@5", qrels=few, against="system-01").to_frame()["verdict"].tolist()
    ['open', 'open']
    """

    runs: ScoresOrRuns
    metric: MeasureOfRuns = None
    _: KW_ONLY
    method: Annotated[
        str | None,
        About(
            "Test each pair, or all by Tukey's test; default: t, if all is judged.",
            choices=("t", "wilcoxon", "sign", "bootstrap", "permutation", "tukey", "randomised-tukey"),
        ),
    ] = None
    correction: Annotated[
        str | None,
        About("The correction for multiple comparisons; default: Holm's.", choices=("none", "holm", "bh")),
    ] = None
    bayes: Annotated[bool, About("Use a hierarchical model of the scores (PyMC) instead of tests.")] = False
    against: Annotated[str | None, About("Show only the pairs with this system.", metavar="SYSTEM")] = None
    level: Level = 0.95
    samples: Annotated[int, About("The number of resamples of bootstrap and randomisation tests.", least=1)] = 100_000
    alternative: Annotated[
        str,
        About(
            "One-tailed: are systems better, or worse, than --against or --target.",
            choices=("two-sided", "greater", "less"),
        ),
    ] = "two-sided"
    target: Annotated[float | None, About("Test the mean of each system against this score.", metavar="SCORE")] = None
    noninferior: Annotated[
        float | None,
        About("Test whether systems lose less than this share of the score of --against.", metavar="SHARE", least=0),
    ] = None
    model: Annotated[
        str | Card | Predicts | None,
        About(
            "The model that predicts unjudged pairs; none: tests in which they count as not relevant.",
            metavar="NAME",
            kind=str,
        ),
    ] = None
    draws: Annotated[int, About("The number of joint draws by a model; with --bayes, of each chain.", least=2)] = 1000
    target_accept: Annotated[
        float | None, About("With --bayes: the sampler's target acceptance rate.", metavar="RATE")
    ] = None
    new_query: Annotated[bool, About("Predict also the score and the satisfaction of users on one new query.")] = False

    @property
    def by_tests(self) -> bool:
        """Whether tests are asked for, rather than a model."""
        return self._tests.asked or self.bayes or self.model == "none"

    @property
    def _tests(self) -> ComparisonTests:
        return part(self, ComparisonTests, margin=self.noninferior, rope=0.0)

    def run(self) -> SystemComparisons:
        """The comparisons."""
        if self.target_accept is not None and not self.bayes:
            raise ReliabilityError("target_accept is for the sampler of bayes. Leave it out, or ask for bayes.")
        remarks = Remarks(self.reporter)
        tests = self._tests
        tests.check(bayes=self.bayes)
        if self.metric is None:
            if not is_score_table(self.runs):
                raise ReliabilityError("Runs need a measure, such as nDCG@10; a single table (.csv) is read as scores.")
            return self._of_scores(tests, remarks)
        if as_partitions(self.runs) is not None:
            if self.by_tests:
                raise ReliabilityError(
                    "Tests need the scores of all queries, and a campaign in partitions is compared by a model. Name "
                    "the runs that it was made from, or no test."
                )
            return self._by_model(self.runs, remarks)
        if self.by_tests:
            self.refuse("tests")
            if self.outside:
                raise ReliabilityError("outside is for a comparison by a model, and tests have none. Leave out one.")
        scale, measure = as_scale(self.scale), as_metric(self.metric)
        collection = self.collection(self.runs, scale=scale, reporter=self.reporter)
        known = with_reference(collection, self.reference)
        wider = self.pool is not None or bool(self.outside)
        complete = not wider and self.model is None and _is_complete(known, measure, scale, self.depth)
        if not self.by_tests and not complete:
            return self._by_model(collection, remarks)
        if self.jobs is not None or self.scheduler is not None:
            remarks.say("Tests are computed in one process.")
        return self._by_tests(known, measure, tests, remarks)

    def _by_model(self, runs: Any, remarks: Remarks) -> SystemComparisons:
        """By a relevance model, with the effect on users and the prediction for a new query."""
        in_parts = as_partitions(runs) is not None
        evidence = part(self if in_parts else self.read_as(runs), Evidence)
        scoring = {f.name: getattr(self, f.name) for f in fields(Estimating)}
        assert self.metric is not None
        evaluation = EvaluationInputs(
            evidence, self.metric, **scoring, level=self.level, jobs=self.jobs, scheduler=self.scheduler,
            reporter=remarks,
        ).run()  # fmt: skip
        if not in_parts:
            depth, model = evaluation.estimate.estimation.depth, evaluation.choice.model
            note_texts(runs, self.docs, depth=depth, model=model, reporter=remarks)
        check_system(self.against, evaluation.scores.systems)
        result = ModelComparisons(evaluation, self.against)
        return _by_model(result, self.mapping, tuple(remarks.notes), new_query=self.new_query)

    def _of_scores(self, tests: ComparisonTests, remarks: Remarks) -> SystemComparisons:
        """By tests of a table of scores."""
        from probeval.reliability import read_scores

        source = self.runs[0] if isinstance(self.runs, (list, tuple)) else self.runs
        rope = as_rope(self.rope, mapping=self.mapping, reporter=remarks)
        agreement = agreement_of(None, None, self.mapping)
        return self._tested(read_scores(source), replace(tests, rope=rope), remarks, agreement, pd.DataFrame())

    def _by_tests(
        self, collection: Collection, metric: Metric, tests: ComparisonTests, remarks: Remarks
    ) -> SystemComparisons:
        """By tests of the scores of runs."""
        scale, level, extra = as_scale(self.scale), self.level, pd.DataFrame()
        found = judged_scores(collection, metric, scale=scale, gain=self.gain, depth=self.depth)
        rope = as_rope(self.rope, found.metric, found.scale, mapping=self.mapping, reporter=remarks)
        note_left_out(collection, found, remarks)
        note_outside(collection, remarks)
        if self.model in (None, "none"):
            unused = {
                "Labels": collection.labels,
                "Answers about documents": collection.has_answers or None,
                "Groups of documents": self.metadata,
                "Texts of documents": self.docs,
                "Teams": self.teams,
            }
            for what in (name for name, given in unused.items() if given is not None):
                remarks.say(f"{what} are not used: tests need grades.")
        if found.judged_pairs < found.pool:
            remarks.say(f"{found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged: they count as 0.")
        systems = [found.systems[i] for i in np.argsort(-np.round(found.values.mean(axis=1), 12), kind="stable")]
        if found.judged_pairs < found.pool and not self.bayes:
            extra["when_judged"] = significant_by_bounds(collection, found, systems, level)
        if self.model not in (None, "none"):
            choice = select_model(collection, self.model, scale=scale, gain=self.gain, reporter=remarks)
            (drawn,) = score_collection(
                choice.model, collection, [found.metric], depth=self.depth, scale=choice.scale, seed=self.seed,
                method="draws", per_query=True, n=self.draws,
            )  # fmt: skip
            extra["p_significant"] = significant_by_draws(drawn.joint.query_draws, drawn.systems, systems, level)
        users = satisfaction_with(found, found.metric, found.scale, self.mapping)
        effects: tuple[Noticed, ...] = ()
        if users is not None:
            effects = tuple(users.compare(a, b, level=level) for a, b in combinations(systems, 2))
            extra = pd.concat([extra, effect_columns(effects)], axis=1)
        agreement = agreement_of(found.metric, found.scale, self.mapping)
        return self._tested(found, replace(tests, rope=rope), remarks, agreement, extra, users, effects)

    def _tested(
        self,
        scores: Observed | Measured,
        tests: ComparisonTests,
        remarks: Remarks,
        agreement: Agreement | None,
        extra: pd.DataFrame,
        users: Satisfaction | None = None,
        effects: tuple[Noticed, ...] = (),
    ) -> SystemComparisons:
        """The tests of scores, with what users notice of the differences."""
        result = tested(scores, tests, bayes=self.bayes, draws=self.draws, target_accept=self.target_accept)
        return SystemComparisons(
            result,
            None if self.metric is None else str(as_metric(self.metric)),
            pd.concat([tests.noninferior(scores, result.to_frame()), extra], axis=1),
            self.against,
            tuple(remarks.notes),
            agreement,
            effects,
            _new_query(scores, result.systems, users, self.level) if self.new_query else None,
            tests.means(scores),
            self.noninferior,
        )


def _by_model(
    result: ModelComparisons, mapping: str | None, notes: tuple[str, ...], *, new_query: bool
) -> SystemComparisons:
    """Return the comparisons by a model, with their effect on users and the prediction for a new query."""
    evaluation = result.evaluation
    metric, scale, level = evaluation.scores.metric, evaluation.choice.scale, evaluation.level
    effects: tuple[Noticed, ...] = ()
    ahead = None
    if new_query or mapping is not None or _is_mapped(metric, scale):
        drawn = draw_queries(evaluation.estimate.with_all_pairs)
        users = satisfaction_with(drawn, metric, scale, mapping)
        if users is not None:
            effects = tuple(users.compare(pair.here.a, pair.here.b, level=level) for pair in result.pairs)
        if new_query:
            values = drawn.joint.query_draws
            assert values is not None
            at = [drawn.systems.index(system) for system in result.systems]
            ahead = new_query_table(result.systems, values[:, at], users=users, level=level, limits=metric.limits)
    agreement = agreement_of(metric, scale, mapping)
    return SystemComparisons(
        result, str(metric), effect_columns(effects), result.against, notes, agreement, effects, ahead
    )


def _new_query(
    scores: Observed | Measured, systems: Sequence[str], users: Satisfaction | None, level: float
) -> pd.DataFrame:
    """Return the prediction for one new query by the scores of the tests."""
    from probeval.reliability.significance import as_scores

    values, names, _ = as_scores(scores)
    ordered = values[[names.index(system) for system in systems]]
    unit = bool(np.nanmin(ordered) >= 0 and np.nanmax(ordered) <= 1)
    limits = scores.metric.limits if isinstance(scores, Measured) else (0.0, 1.0) if unit else (-np.inf, np.inf)
    return new_query_table(systems, ordered, users=users, level=level, limits=limits)


def _is_mapped(metric: Metric, scale: Scale) -> bool:
    """Whether a mapping to satisfaction is published for the measure on this scale."""
    from probeval.satisfaction import mapping_for

    try:
        mapping_for(metric, scale)
    except SatisfactionError:
        return False
    return True


def _is_complete(collection: Collection, metric: AnyMetric, scale: Scale | None, depth: int | None) -> bool:
    """Whether every document that the measure counts is judged, on the queries with judgments."""
    if collection.judgments is None or not len(collection.judgments):
        return False
    found = judged_scores(collection, as_metric(metric), scale=scale, depth=depth)
    return found.judged_pairs == found.pool


compare = task(ComparisonInputs, "compare")
