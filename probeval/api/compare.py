"""Every pair of systems compared: by a relevance model on few judgments, by tests on complete ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from probeval.api.classical import judged_scores, note_left_out
from probeval.api.effects import effect_columns, new_query_table, readable_effects, satisfaction_with
from probeval.api.estimates import Expect, unannounced
from probeval.api.evaluate import evaluate
from probeval.api.inputs import (
    Note,
    Progress,
    as_collection,
    as_scale,
    collect_notes,
    note_outside,
    note_texts,
    select_model,
    silent,
)
from probeval.api.model_comparisons import ModelComparisons
from probeval.api.partitioned import as_partitions, check_engine
from probeval.api.studies import is_score_table
from probeval.api.tested import ComparisonTests, check_system, significant_by_bounds, significant_by_draws, tested
from probeval.api.users import agreement_of, as_rope
from probeval.data import Collection, Scale
from probeval.data.scale import Gain
from probeval.display import Shown, View
from probeval.errors import ReliabilityError, SatisfactionError
from probeval.metrics import AnyMetric, Measured, Metric
from probeval.partitioned.fit import Follow
from probeval.partitioned.state import unfollowed
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.relevance.outside import OutsideModel
from probeval.reports.milestones import draw_queries
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.reliability import Observed, Pairwise, ScorePosterior, TargetTests
    from probeval.satisfaction import Agreement, Noticed, Satisfaction

__all__ = ["SystemComparisons", "compare"]

READ = ["adjusted", "verdict", "d", "won", "p_tost", "p_noninferior", "noninferior", "when_judged", "p_significant"]


@dataclass(frozen=True, eq=False, repr=False)
class SystemComparisons(Shown):
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

    def views(self) -> tuple[View, ...]:
        """The systems, their pairs with the columns that people read, and by a model the pairs to judge next."""
        new = () if self.new_query is None else (self._new_query_view(self.new_query),)
        if isinstance(self.result, ModelComparisons):
            systems, pairs, *judge = self.result.views()
            return systems, *new, replace(pairs, frame=self.readable()), *judge
        systems = View(self.systems_frame(), self.metric, intervals=("mean", "lower", "upper"))
        return systems, *new, View(self.readable(), "Pairs")

    def _new_query_view(self, table: pd.DataFrame) -> View:
        shown = table[[c for c in table.columns if not c.endswith("below")]]
        return View(shown, "One new query", intervals=("mean", "lower", "upper"))

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


def compare(
    source: Any,
    metric: AnyMetric | None = None,
    *,
    qrels: Any = None,
    method: str | None = None,
    correction: str | None = None,
    bayes: bool = False,
    rope: float | str = 0.0,
    against: str | None = None,
    level: float = 0.95,
    samples: int = 100_000,
    alternative: str = "two-sided",
    target: float | None = None,
    noninferior: float | None = None,
    model: str | Card | Predicts | None = None,
    draws: int = 1000,
    mapping: str | None = None,
    new_query: bool = False,
    metadata: Any = None,
    labels: Any = None,
    observers: Any = None,
    preferences: Any = None,
    magnitudes: Any = None,
    docs: Any = None,
    pool: Any = None,
    outside: bool | OutsideModel = False,
    scale: Scale | str | None = None,
    gain: Gain | None = None,
    depth: int | None = None,
    order: str = "trec_eval",
    target_accept: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress = iter,
    follow: Follow = unfollowed,
    say: Note = silent,
    expect: Expect = unannounced,
) -> SystemComparisons:
    """Compare every pair of systems: which is better, by how much, and how sure that is.

    If a retrieved document within the depth of the measure is not judged, a relevance model predicts it: the result is
    the probability that each system is better, on these queries and on new ones. Complete judgments and tables of
    scores are tested. A method, a correction, ``bayes`` or the model ``"none"`` asks for tests on incomplete judgments
    too; unjudged documents then count as not relevant.

    Parameters
    ----------
    source, qrels, metadata, labels, observers, preferences, magnitudes, docs, pool, outside, order
        Runs and judgments (see :func:`probeval.as_collection`), or a table of scores without a measure.
    metric, scale, gain, depth
        The measure, the grades and their gains, and how many ranks count.
    method, correction, samples
        As in :func:`probeval.reliability.compare`; any of the first two asks for tests, Student's t by default.
    alternative, target, noninferior
        Tests too: ``"greater"`` or ``"less"`` for one-tailed tests against the system ``against`` and against the
        target; a score to test means against; the share of the score of ``against`` that a system may lose and still
        count as not inferior.
    bayes, target_accept
        A hierarchical model of the scores (PyMC) in place of tests, and the target acceptance rate of its sampler: see
        :func:`probeval.reliability.compare_bayes`.
    rope
        Differences up to this size count as ties: a number, or ``"users=.5"`` for the difference that half of the users
        notice.
    against
        Show only the pairs with this system.
    level
        The probability of intervals.
    model, draws
        The relevance model, and its number of joint draws; by default the best available one. With a method of tests it
        adds P(significant once all is judged). With ``bayes``, the number of draws of each chain.
    mapping
        The users, by the published name of their mapping or a file of your own (``users.json``); by default those of
        the measure.
    new_query
        Predict also the score on one new query, and users' satisfaction with it where that is known: two-sided and
        one-sided limits.
    seed, jobs, scheduler, progress, follow, say, expect
        As in :func:`probeval.evaluate`. A campaign in partitions is compared by a model.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=3, queries=20, depth=5)
    >>> probeval.compare(campaign, "DCG@5").to_frame()[["a", "b"]].to_numpy().tolist()
    [['system-03', 'system-02'], ['system-03', 'system-01'], ['system-02', 'system-01']]
    >>> few = campaign.judgments.take(np.arange(40))
    >>> probeval.compare(campaign.runs, "DCG@5", qrels=few, against="system-01").to_frame()["verdict"].tolist()
    ['open', 'open']
    """
    if target_accept is not None and not bayes:
        raise ReliabilityError("target_accept is for the sampler of bayes. Leave it out, or ask for bayes.")
    notes, note = collect_notes(say)
    scores: Observed | Measured
    extra = pd.DataFrame()
    settings = ComparisonTests(
        method, correction, samples, alternative, against, target, noninferior, level, rope=0.0, seed=seed
    )
    settings.check(bayes=bayes)
    if metric is None and is_score_table(source):
        from probeval.reliability import read_scores

        scores, name = read_scores(source[0] if isinstance(source, (list, tuple)) else source), None
        ties_up_to = as_rope(rope, mapping=mapping, say=note)
    elif metric is None:
        raise ReliabilityError("Runs need a measure, such as nDCG@10; a single table (.csv) is read as scores.")
    elif (parts := as_partitions(source)) is not None:
        if settings.asked or bayes or model == "none":
            raise ReliabilityError(
                "Tests need the scores of all queries, and a campaign in partitions is compared by a model. Name the "
                "runs that it was made from, or no test."
            )
        evaluation = evaluate(
            parts, metric, qrels=qrels, metadata=metadata, labels=labels, observers=observers, preferences=preferences,
            magnitudes=magnitudes, docs=docs, pool=pool, outside=outside, model=model, scale=scale, gain=gain,
            depth=depth, draws=draws, level=level, rope=rope, mapping=mapping, seed=seed, jobs=jobs,
            scheduler=scheduler, follow=follow, say=note,
        )  # fmt: skip
        check_system(against, evaluation.scores.systems)
        return _by_model(ModelComparisons(evaluation, against), mapping, tuple(notes), new_query=new_query)
    else:
        check_engine(scheduler)
        collection = as_collection(
            source, qrels=qrels, metadata=metadata, labels=labels, observers=observers, preferences=preferences,
            magnitudes=magnitudes, docs=docs, scale=as_scale(scale), order=order, progress=progress,
        )  # fmt: skip
        name = str(as_metric(metric))
        by_tests = settings.asked or bayes or model == "none"
        wider = pool is not None or bool(outside)
        if by_tests and wider:
            raise ReliabilityError("A wider pool is for a comparison by a model, and tests have none. Leave out one.")
        complete = not wider and model is None and _is_complete(collection, metric, as_scale(scale), depth)
        if not by_tests and not complete:
            evaluation = evaluate(
                collection, metric, pool=pool, outside=outside, model=model, scale=scale, gain=gain, depth=depth,
                draws=draws, level=level, rope=rope, mapping=mapping, seed=seed, say=note, expect=expect,
            )  # fmt: skip
            note_texts(collection, docs, depth=evaluation.state.judging.depth, model=evaluation.choice.model, say=note)
            check_system(against, evaluation.scores.systems)
            return _by_model(ModelComparisons(evaluation, against), mapping, tuple(notes), new_query=new_query)
        found = judged_scores(collection, as_metric(metric), scale=as_scale(scale), gain=gain, depth=depth)
        ties_up_to = as_rope(rope, found.metric, found.scale, mapping=mapping, say=note)
        note_left_out(collection, found, note)
        note_outside(collection, note)
        if collection.labels is not None and model in (None, "none"):
            note("Labels are not used: tests need grades.")
        if collection.has_answers and model in (None, "none"):
            note("Answers about documents are not used: tests need grades.")
        if found.judged_pairs < found.pool:
            note(f"{found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged: they count as 0.")
        systems = [found.systems[i] for i in np.argsort(-np.round(found.values.mean(axis=1), 12), kind="stable")]
        if found.judged_pairs < found.pool and not bayes:
            extra["when_judged"] = significant_by_bounds(collection, found, systems, level)
        if model not in (None, "none"):
            choice = select_model(collection, model, scale=scale, gain=gain, say=note)
            (drawn,) = score_collection(
                choice.model, collection, [found.metric], depth=depth, scale=choice.scale, seed=seed,
                method="draws", per_query=True, n=draws,
            )  # fmt: skip
            extra["p_significant"] = significant_by_draws(drawn.joint.query_draws, drawn.systems, systems, level)
        scores = found
    users: Satisfaction | None = None
    effects: tuple[Noticed, ...] = ()
    if isinstance(scores, Measured):
        agreement = agreement_of(scores.metric, scores.scale, mapping)
        users = satisfaction_with(scores, scores.metric, scores.scale, mapping)
        if users is not None:
            effects = tuple(users.compare(a, b, level=level) for a, b in combinations(systems, 2))
            extra = pd.concat([extra, effect_columns(effects)], axis=1)
    else:
        agreement = agreement_of(None, None, mapping)
    settings = replace(settings, rope=ties_up_to)
    result = tested(scores, settings, bayes=bayes, draws=draws, target_accept=target_accept)
    extra = pd.concat([settings.noninferior(scores, result.to_frame()), extra], axis=1)
    ahead = _new_query(scores, result.systems, users, level) if new_query else None
    means = settings.means(scores)
    return SystemComparisons(result, name, extra, against, tuple(notes), agreement, effects, ahead, means, noninferior)


def _by_model(
    result: ModelComparisons, mapping: str | None, notes: tuple[str, ...], *, new_query: bool
) -> SystemComparisons:
    """Return the comparisons by a model, with their effect on users and the prediction for a new query."""
    evaluation = result.evaluation
    metric, scale, level = evaluation.scores.metric, evaluation.choice.scale, evaluation.level
    effects: tuple[Noticed, ...] = ()
    ahead = None
    if new_query or mapping is not None or _is_mapped(metric, scale):
        drawn = draw_queries(evaluation.state)
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
