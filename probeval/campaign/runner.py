"""The model of a campaign, run on its judgments. This is the slow part, so it runs apart from judging."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probeval.campaign.archive import reading_part
from probeval.campaign.assessors import tendencies
from probeval.campaign.candidates import seconds_per_answer
from probeval.campaign.questions import COMPARISON, Pair, Question, graded, kind_of
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import (
    ForecastPoint,
    ModelSnapshot,
    RankingFigures,
    TargetForecast,
    Tendency,
    forecast_target,
)
from probeval.campaign.state import State
from probeval.campaign.verdicts import Surprise, answer_errors, grade_levels, surprise_of
from probeval.data.answers import PairAnswers
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.relevance import Card, Hierarchical, choose_model
from probeval.relevance.surprise import LeftOut, SurprisingGrades, surprising_grades
from probeval.selection import Goal, Pick
from probeval.selection.pairs import ASK
from probeval.selection.topics import PER_TOPIC
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.arrays import Bools, Floats
    from probeval.relevance import RelevanceDistribution
    from probeval.relevance.models.base import Predicts
    from probeval.selection import AuditReport, Judging, JudgingState, Questions

__all__ = ["AHEAD", "ModelRunner", "forecast_is_due", "forecast_is_moot"]

AHEAD = 200  # pairs proposed in advance
EXAMINE = 40  # judgments after which labels are examined again: it takes a second or two per source
LEVEL = 0.95
DOUBTED = 0.5  # by consensus the model is fitted to the grades that are right with this probability
PATHS = 4  # trajectories of a forecast, for a few seconds of work each
LOOK_AHEAD = 1000  # judgments that a forecast simulates
MOST_SURPRISING = 10  # judgments that the owner is shown
FORECAST_FROM, FORECAST_AGAIN = 20, 0.2  # judged pairs before the first forecast; growth before the next


class ModelRunner:
    """Runs a campaign's model on its judgments.

    Each fit starts from the last one. Not safe for concurrent threads.

    Parameters
    ----------
    collection
        Runs and evidence, without judgments.
    card
        The model card as JSON, for a model that does not ship with probeval.
    """

    def __init__(self, collection: Collection, *, card: bytes | None = None) -> None:
        self._collection, self._card = collection, card
        self._judging_state: JudgingState | None = None
        self._setup: Setup | None = None
        self._changed = -1  # the last event that the fit knows
        self._fresh = False  # whether the fit began anew, and not with the one before it
        self._assessors: tuple[int, tuple[Tendency, ...]] | None = None  # by the last change

    def judging_state(self, state: State, *, fresh: bool = False) -> JudgingState:
        """Scores, ranking and the next pairs, given the judgments of this state.

        A ``fresh`` fit does not begin with the one before it, so its figures depend on the judgments alone.
        """
        last, same = self._judging_state, self._setup == state.settings
        if last is not None and same and self._changed == state.changed and (self._fresh or not fresh):
            return last
        judgments, answers = state.evidence, _answers(state)
        follows = last is not None and same and not fresh
        if last is not None and follows and _grew(last.judgments, judgments) and _more(last.answers, answers):
            last, self._fresh = last.after(judgments, answers=answers), False
        else:
            last, self._fresh = self._judging(state).begin(), True
        self._judging_state, self._setup, self._changed = last, state.settings, state.changed
        return last

    def figures_state(self, state: State, surprises: Sequence[Surprise] = ()) -> JudgingState:
        """What the figures of the campaign come from, by its setting: answers as certain, or by consensus."""
        judged = self.judging_state(state)
        return judged if state.settings.answers_as == "certain" else self._figures(state, judged, surprises)[0]

    def by_consensus(self, state: State, judged: JudgingState, surprises: Sequence[Surprise]) -> JudgingState | None:
        """The same with the errors of assessors: no grade is certain that was not settled; None without a check.

        The model is fitted to the grades that are more probably right than wrong. Each pair then has the probabilities
        of the model times the likelihood of its answers.
        """
        errors = answer_errors(state, surprises)
        relevance = judged.prediction.relevance
        pairs = [pair for pair in state.judged if pair not in state.adjudicated]
        at = relevance.pool.locate([query for query, _ in pairs], [doc for _, doc in pairs])
        inside = np.flatnonzero(at >= 0)
        if not errors.checks or not len(inside):
            return None
        n, scale = len(relevance.levels), state.settings.scale
        rows = []
        for i in inside.tolist():
            latest = {judgment.by: judgment.grade for judgment in state.judged[pairs[i]]}
            levels = grade_levels(scale, [*latest.values()]).tolist()
            rows.append(errors.likelihood(dict(zip(latest, levels, strict=True)), n))
        told = relevance.told(at[inside], np.array(rows))
        doubted = _doubted(told, judged.judgments)
        if doubted.any():
            judged = judged.judging.state(judged.judgments.take(~doubted), answers=judged.answers)
            told = judged.prediction.relevance.told(at[inside], np.array(rows))
        prediction = replace(judged.prediction, relevance=told)
        return replace(judged, estimate=replace(judged.estimate, prediction=prediction))

    def snapshot(
        self,
        state: State,
        *,
        now: float,
        last: ModelSnapshot | None = None,
        ahead: int = AHEAD,
        fresh: bool = False,
    ) -> ModelSnapshot:
        """The results of the model on this state, with up to ``ahead`` pairs to judge next.

        The trust in labels is taken from the ``last`` snapshot if few judgments came since, and the forecast always.
        The stopping rule is met by a fresh fit, or not at all.
        """
        judged, rule = self.judging_state(state, fresh=fresh), state.settings.rule_to_stop
        surprises = () if last is None else last.surprise
        figures, consensus = self._figures(state, judged, surprises)
        check = rule.check(figures)
        if check.reached and not self._fresh:
            judged = self.judging_state(state, fresh=True)
            figures, consensus = self._figures(state, judged, surprises)
            check = rule.check(figures)
        pool, ranking = judged.judging.pool, figures.ranking
        surprising, surprise = _surprising(state, judged, last)
        asked = _questions(state, judged, ahead)
        if state.settings.ask == "mixed" and asked is not None:
            proposed = _grades(judged, asked)
        else:
            proposed = _propose(state, judged, min(ahead, len(pool) - judged.scores.judged), last=last, now=now)
        compared = _compared(judged, asked)
        return ModelSnapshot(
            number=state.number,
            time=now,
            fresh=self._fresh,
            judged=judged.scores.judged + len(state.counted_answers),
            confidence=figures.confidence,
            expected_tau=ranking.expected_tau,
            reached=check.reached,
            reasons=tuple(check.reasons),
            progress=check.progress,
            figures=check.figures,
            systems=ranking.at(LEVEL).systems,
            labels=_trusted(judged, last),
            surprising=surprising,
            surprise=surprise,
            as_certain=_sure(judged),
            by_consensus=None if consensus is None else _sure(consensus),
            audit=self.audit(state),
            queue=tuple(pool.label(pair) for pair in proposed.pairs),
            picks=proposed.picks,
            values=proposed.values,
            due=proposed.due,
            comparisons=tuple(compared),
            comparison_values=tuple(compared.values()),
            forecast=None if last is None else last.forecast,
            uncertainty=_uncertainty(judged),
            tendencies=self._tendencies(state),
            answering=judged.estimate.answers_used.assessors,
            uses_answers=isinstance(judged.judging.model, Hierarchical),
            independent=judged.scores.independent,
        )

    def _figures(
        self, state: State, judged: JudgingState, surprises: Sequence[Surprise]
    ) -> tuple[JudgingState, JudgingState | None]:
        """What the figures come from by the setting, and what they are by consensus."""
        consensus = self.by_consensus(state, judged, surprises)
        return judged if consensus is None or state.settings.answers_as == "certain" else consensus, consensus

    def forecast(self, state: State) -> TargetForecast | None:
        """The expected rise of the goal's confidence by grades until the rule's target; None if it has no such target.

        It takes from seconds to a minute.
        """
        from probeval.simulation.forecast import forecast

        judged, target = self.judging_state(state), forecast_target(state.settings.rule_to_stop)
        if target is None or state.settings.ask != "grades" or judged.goal.about_labels:
            return None
        goal = judged.goal.confidence
        rng = stream(state.settings.seed, Purpose.FORECAST)
        ahead = forecast(
            judged, target=max(0.5, target), paths=PATHS, lasts=0, most=LOOK_AHEAD, confidence=goal, rng=rng
        )
        needed = ahead.needed(target, lasts=0)
        return TargetForecast(
            target=target,
            judged=judged.scores.judged,
            needed=needed["judgments"],
            lower=needed["lower"],
            upper=needed["upper"],
            points=tuple(ForecastPoint(p.judged, p.confidence, p.lower, p.upper) for p in ahead.steps),
            number=state.number,
        )

    def _tendencies(self, state: State) -> tuple[Tendency, ...]:
        if self._assessors is None or self._assessors[0] != state.changed:
            self._assessors = state.changed, tendencies(state)
        return self._assessors[1]

    def audit(self, state: State) -> AuditReport:
        """The model against the pairs that were drawn at random, given the judgments of this state."""
        from probeval.selection import audit

        judged = self.judging_state(state)
        leases = sorted(state.picks.values(), key=lambda lease: lease.number)
        at = judged.judging.pool.locate([lease.query for lease in leases], [lease.documents[0] for lease in leases])
        chosen = [(int(pair), lease.pick) for pair, lease in zip(at, leases, strict=True) if pair >= 0 and lease.pick]
        return audit(judged, chosen)

    def _judging(self, state: State) -> Judging:
        from probeval.selection import Judging

        setup = state.settings
        collection = replace(self._collection, judgments=state.evidence, answers=_answers(state))
        return Judging.of(
            collection,
            model=self._model(setup, collection),
            metric=setup.metric,
            policy=setup.policy,
            goal=setup.goal,
            explore=setup.explore,
            scale=setup.scale,
            depth=setup.depth,
            rope=setup.rope,
            seed=setup.seed,
        )

    def _model(self, setup: Setup, collection: Collection) -> Predicts:
        if self._card is None:
            return choose_model(setup.model, collection, scale=setup.scale).model
        with reading_part():
            return Card.from_dict(json.loads(self._card)).model


class _Proposed(NamedTuple):
    """Pairs of the pool to judge next, their predictions, values, and when draws are due."""

    pairs: Sequence[int]
    picks: tuple[Pick, ...]
    values: tuple[float, ...]
    due: tuple[int | None, ...]


def _propose(state: State, judged: JudgingState, ahead: int, *, last: ModelSnapshot | None, now: float) -> _Proposed:
    """Up to ``ahead`` pairs to judge next; by topic at least some of every query, and the draws that still wait."""
    from probeval.selection import Batch, foresee

    setup = state.settings
    if setup.topics == "free" and setup.stay == 0:
        batch = judged.next(ahead)
        at_random = judged.judging.policy.at_random
        due = tuple(at if drawn and not at_random else None for at, drawn in enumerate(batch.drawn.tolist()))
        return _Proposed(batch.pairs.tolist(), foresee(judged, batch), (), due)
    waiting = {} if last is None else _waiting(state, judged, last)
    per_topic = max(PER_TOPIC, ceil(ahead / max(len(judged.judging.runs.queries), 1)))
    queries = judged.judging.pool.queries
    current = np.flatnonzero(np.isin(queries, [held.query for held in state.topics.values() if held.until > now]))
    queue, draws = judged.by_topic(ahead, per_topic=per_topic, waiting=waiting, current=current.tolist())
    chosen = np.array(queue.pairs[len(waiting) + len(draws) :], dtype=np.int64)
    foreseen = foresee(judged, Batch(chosen, np.full(len(chosen), np.nan)))
    picks = (*waiting.values(), *foresee(judged, draws), *foreseen)
    return _Proposed(queue.pairs, picks, tuple(queue.values), tuple(queue.due))


def _answers(state: State) -> PairAnswers | None:
    """The answers about two documents that count; none at all only if they are not asked for."""
    found = state.pair_answers
    return PairAnswers.none() if found is None and state.settings.ask != "grades" else found


def _questions(state: State, judged: JudgingState, ahead: int) -> Questions | None:
    """The next questions by their gain per second, where comparisons are asked for and can be chosen by it."""
    setup, pool = state.settings, judged.judging.pool
    if setup.ask == "grades" or setup.ask not in ASK or not judged.chooses_comparisons:
        return None
    asked = [question for question in state.answers if question.kind == COMPARISON]
    queries = [question.query for question in asked]
    left, right = (pool.locate(queries, [question.documents[at] for question in asked]).tolist() for at in (0, 1))
    taken = [key for key in zip(left, right, strict=True) if min(key) >= 0]
    return judged.questions(ahead, ask=setup.ask, seconds=seconds_per_answer(state), taken=taken)


def _grades(judged: JudgingState, asked: Questions) -> _Proposed:
    """The documents to grade among these questions, with their predictions."""
    from probeval.selection import Batch, foresee

    at = np.flatnonzero(~asked.compares)
    batch = Batch(asked.left[at], asked.probability[at])
    due = tuple(int(i) if drawn else None for i, drawn in zip(at, batch.drawn, strict=True))
    return _Proposed(batch.pairs.tolist(), foresee(judged, batch), tuple(_worth(asked)[at].tolist()), due)


def _compared(judged: JudgingState, asked: Questions | None) -> dict[Question, float]:
    """The documents to compare among these questions, and the value of each answer per second."""
    if asked is None:
        return {}
    pool, worth = judged.judging.pool, _worth(asked)
    out: dict[Question, float] = {}
    for at in np.flatnonzero(asked.compares).tolist():
        query, left = pool.label(int(asked.left[at]))
        both = left, pool.label(int(asked.right[at]))[1]
        out[kind_of(COMPARISON).question(query, both)] = float(worth[at])
    return out


def _worth(asked: Questions) -> Floats:
    """The value of each question, those drawn at random as much as the one before them, shape (n,)."""
    known = np.flatnonzero(~np.isnan(asked.value))
    if not len(known):
        return np.zeros(len(asked))
    at = known[np.maximum(np.searchsorted(known, np.arange(len(asked)), "right") - 1, 0)]
    return np.asarray(asked.value[at])


def _waiting(state: State, judged: JudgingState, last: ModelSnapshot) -> dict[int, Pick]:
    """The draws of the last snapshot in whose place other pairs were judged, with their predictions."""
    taken = sum(pair in state.judged for pair in last.queue)
    due = [graded(*pair) for pair, after in last.draws.items() if after < taken]
    due = [question for question in due if question in last.pick_of]
    at = judged.judging.pool.locate([each.query for each in due], [each.documents[0] for each in due])
    return {int(p): last.pick_of[each] for p, each in zip(at, due, strict=True) if p >= 0 and judged.open[p]}


def _trusted(judged: JudgingState, last: ModelSnapshot | None) -> tuple[Mapping[str, Any], ...]:
    """The trust in each source of labels, one row each; none without labels."""
    from probeval.scores.trust import examined

    if judged.judging.collection.labels is None or not isinstance(judged.judging.model, Hierarchical):
        return ()
    n, labels = judged.scores.judged, judged.estimate.problem.labels
    missing = {} if labels is None else dict(zip(labels.sources, np.isnan(labels.values).mean(axis=0), strict=True))
    known = () if last is None else last.labels
    if known and 0 <= n - known[0]["judged"] < EXAMINE and {each["source"] for each in known} == set(missing):
        return tuple({**each, "missing": float(missing[each["source"]])} for each in known)
    return tuple(
        {
            "source": o.observer.name,
            "slope": o.slope,
            "lower": o.slope_lower,
            "upper": o.slope_upper,
            "missing": 1 - o.labelled,
            "judged": n,
            "finding": o.finding,
        }
        for o in examined(judged.estimate)
    )


def _surprising(
    state: State, judged: JudgingState, last: ModelSnapshot | None
) -> tuple[SurprisingGrades | None, tuple[Surprise, ...]]:
    """The least expected judgments, None without a posterior; and the surprise of each assessor's."""
    if not isinstance(judged.judging.model, Hierarchical):
        return None, ()
    n, before = judged.scores.judged, None if last is None else last.surprising
    if last is not None and before is not None and 0 <= n - before.judged < EXAMINE:
        return before, last.surprise
    relevance = judged.prediction.relevance
    left_out = LeftOut.of(relevance)
    of_each = _surprise(state, relevance.pool.label, left_out)
    aside = (each for each in (() if last is None else last.surprise) if state.is_set_aside(each.assessor))
    return surprising_grades(relevance, n=MOST_SURPRISING, out=left_out), (*of_each, *aside)


def _doubted(told: RelevanceDistribution, judgments: Judgments) -> Bools:
    """The judgments that are more probably wrong than right, shape (event,)."""
    place = judgments.pool.within(told.pool)[judgments.pair]
    level = grade_levels(told.scale, judgments.grade.tolist())
    probability = told.probability.mean(axis=0) if told.has_posterior else told.probability
    return np.asarray((place >= 0) & (told.judged[place] < 0) & (probability[place, level] < DOUBTED))


def _sure(judged: JudgingState) -> RankingFigures:
    return RankingFigures(judged.confidence, judged.ranking.expected_tau)


def _surprise(state: State, label: Callable[[int], Pair], out: LeftOut) -> Iterator[Surprise]:
    """The surprise of each assessor's grades of pairs that nobody else judged and no known grade settles."""
    own: dict[str, list[int]] = {}
    for at, pair in enumerate(out.pairs.tolist()):
        judgments = state.judged.get(label(pair), ())
        people = {judgment.by for judgment in judgments}
        if len(people) == 1 and label(pair) not in state.adjudicated:
            own.setdefault(people.pop(), []).append(at)
    shares = np.bincount(out.level, minlength=out.probability.shape[1]) + 1 / out.probability.shape[1]
    for name, rows in sorted(own.items()):
        yield surprise_of(name, out.probability[rows], out.level[rows], shares / shares.sum())


def _uncertainty(judged: JudgingState) -> dict[str, float]:
    """The standard deviation of a system's score on each query, root mean square over systems."""
    scores = judged.scores
    spread = np.sqrt(np.maximum(scores.joint.query_variance, 0.0).mean(axis=0))
    return {str(query): float(value) for query, value in zip(scores.queries, spread, strict=True)}


def forecast_is_due(snapshot: ModelSnapshot, state: State) -> bool:
    """Whether a forecast is worth making: none yet for this target, or many judgments since."""
    setup, target = state.settings, forecast_target(state.settings.rule_to_stop)
    if target is None or setup.ask != "grades" or Goal.parse(setup.goal).about_labels:
        return False
    if snapshot.reached or snapshot.judged < FORECAST_FROM or snapshot.number < state.aimed:
        return False
    last = snapshot.forecast_for(target, state.aimed)
    if last is None:
        return True
    return snapshot.judged - last.judged >= max(FORECAST_FROM, FORECAST_AGAIN * last.judged)


def forecast_is_moot(begun: State, now: State, snapshot: ModelSnapshot) -> bool:
    """Whether a forecast that began with an earlier state is worthless by now.

    It is if the settings or the runs have changed, if the target is reached, or if there are twice as many judgments.
    """
    before, after = (sum(state.asked.values()) for state in (begun, now))
    grown = after - before >= max(FORECAST_FROM, before)
    return grown or snapshot.reached or begun.settings != now.settings or begun.aimed != now.aimed


def _more(before: PairAnswers | None, after: PairAnswers | None) -> bool:
    """Whether answers were only added: none was withdrawn, changed or overruled."""
    if before is None or after is None:
        return before is after
    return len(after) >= len(before) and after.take(slice(len(before))).to_frame().equals(before.to_frame())


def _grew(before: Judgments, after: Judgments) -> bool:
    """Whether judgments were only added: no earlier grade was withdrawn, changed or overruled."""
    at = before.pool.within(after.pool)
    same = (np.array_equal(before.grades(r), after.grades(r)[at], equal_nan=True) for r in ("median", "unanimous"))
    return bool(np.all(at >= 0) and all(same))
