"""Systems that had no part in a campaign, evaluated with its judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

import pandas as pd

from probeval.api.classical import judged_scores, required_judgments
from probeval.api.evidence import (
    Evidence,
    Remarks,
    as_collection,
    as_scale,
    note_ideal,
    note_texts,
    select_model,
    unanswered,
)
from probeval.api.settings import MEASURE, Level, Scoring, Work
from probeval.data import Collection, Scale, with_reference
from probeval.display import Table
from probeval.errors import DataError, ModelError, did_you_mean
from probeval.metrics import AnyMetric
from probeval.records import About, task
from probeval.relevance import Choice, Hierarchical
from probeval.reporting import Reporter
from probeval.results import FLAT, Result, frame, key, rows
from probeval.scores.evaluate import as_metric
from probeval.selection import Judging, LaterSystem, ModelScore, judge_later, measure_later
from probeval.simulation import ReuseStudy, leave_teams_out, restrict
from probeval.ties import TIE

__all__ = [
    "LaterFigures",
    "NeededPair",
    "Reuse",
    "ReuseInputs",
    "ReuseStudyInputs",
    "ReusedSystem",
    "Together",
    "reuse",
    "reuse_study",
]

Together = Annotated[bool, About("The later systems arrived as a group: all join the campaign at once.")]
PoolDepth = Annotated[
    int | None,
    About("The depth of the pool that systems contributed to; default: the measure's cutoff.", least=1),
]


@dataclass(frozen=True)
class NeededPair:
    """A pair to judge for a later system."""

    query: str
    doc: str
    rank: Annotated[float, "The rank of the document in the system's list; null outside it."]
    grade: Annotated[float, "The grade that is expected."]
    sd: float
    halfwidth: Annotated[
        float, "The expected half-width of the system's interval, once this pair and those above it are judged."
    ]


@dataclass(frozen=True)
class LaterFigures:
    """A later system: its score, its rank, and the judgments that it needs."""

    system: str
    mean: Annotated[float | None, "Its expected score by the model; null without one, as all figures by the model."]
    lower: float | None
    upper: float | None
    rank: Annotated[int | None, "Its rank among the first systems, itself included."]
    rank_lower: int | None
    rank_upper: int | None
    p_better: Annotated[float | None, "The probability that it is better than the best of the first systems."]
    needed: Annotated[
        int | None,
        "The number of judgments until its interval is as narrow as those of the first systems; null if more than the "
        "listed pairs are needed.",
    ]
    judged: Annotated[float, "The share of its retrieved documents that is judged."]
    classical: Annotated[float, "Its score with unjudged documents as not relevant."]
    classical_rank: Annotated[int, "Its rank by this score."]
    bound_lower: Annotated[float, "The bounds that its unjudged documents leave; null where they are not known."]
    bound_upper: float

    @classmethod
    def of(cls, later: LaterSystem) -> LaterFigures:
        """The figures of a later system."""
        classical = later.classical
        names = ("mean", "lower", "upper", "rank", "rank_lower", "rank_upper", "p_better", "needed")
        return cls(
            system=later.system,
            **{name: getattr(later.model, name, None) for name in names},
            judged=classical.judged,
            classical=classical.score,
            classical_rank=classical.rank,
            bound_lower=classical.lower,
            bound_upper=classical.upper,
        )


@dataclass(frozen=True)
class ReusedSystem:
    """A later system, evaluated with the judgments of a collection, and the pairs that it needs."""

    figures: Annotated[LaterFigures, FLAT]
    best: Annotated[str | None, "The best of the first systems."]
    target: Annotated[float | None, "The median half-width of the intervals of the first systems."]
    pairs: Annotated[tuple[NeededPair, ...], "The pairs that it needs, the most informative first."]


@dataclass(frozen=True, eq=False, repr=False)
class Reuse(Result):
    """Later systems, evaluated with the judgments of a collection in which they had no part.

    Examples
    --------
    >>> import probeval
    >>> runs = {"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}, "dense": {"q1": {"d2": 2.0, "d3": 1.0}}}
    >>> later = {"llm": {"q1": {"d1": 2.0, "d4": 1.0}}}
    >>> found = probeval.reuse(runs, later, "P@2", qrels={"q1": {"d1": 1, "d2": 0, "d3": 0}}, scale="binary")
    >>> found.to_frame()[["system", "judged", "classical", "bound_upper"]].values.tolist()
    [['llm', 0.5, 0.5, 1.0]]
    >>> found.next("llm")["doc"].tolist()
    ['d4']
    """

    metric: Annotated[str, "The measure."]
    depth: Annotated[int, "The depth of the pool."]
    model: Annotated[str, "The model; ``none`` for classical scores alone."]
    first: tuple[str, ...]  # the systems of the collection
    later: tuple[LaterSystem, ...]
    together: Annotated[bool, "Whether the later systems joined together; else each one alone."] = False
    level: Annotated[float, "The probability of intervals."] = 0.95
    notes: tuple[str, ...] = ()  # remarks on the data and the model

    @key.named("first")
    def n_first(self) -> int:
        """The number of systems of the collection."""
        return len(self.first)

    @key
    def systems(self) -> tuple[ReusedSystem, ...]:
        """One entry per later system, best first."""
        return tuple(
            ReusedSystem(LaterFigures.of(one), None, None, ())
            if one.model is None
            else ReusedSystem(LaterFigures.of(one), one.model.best, one.model.target, self._needed(one.system))
            for one in self._best_first
        )

    def _needed(self, system: str) -> tuple[NeededPair, ...]:
        table = self.next(system)
        return rows(NeededPair, **{str(name): table[name].to_numpy() for name in table.columns})

    @property
    def _best_first(self) -> list[LaterSystem]:
        return sorted(self.later, key=lambda one: -(one.classical.score if one.model is None else one.model.mean))

    def _headline(self) -> str:
        n = len(self.later)
        return f"{self.metric} of {n} later system{'s' * (n != 1)}, with the judgments of {len(self.first)} systems"

    def __getitem__(self, system: str) -> LaterSystem:
        names = [one.system for one in self.later]
        if system not in names:
            raise DataError(f"No later system {system!r}.{did_you_mean(system, names)}")
        return self.later[names.index(system)]

    def next(self, system: str, n: int | None = None) -> pd.DataFrame:
        """The pairs to judge for a later system, the most informative first.

        Parameters
        ----------
        system
            Its name.
        n
            The number of pairs; by default as many as it needs.

        Returns
        -------
        pairs
            Query, doc, its rank in the system's list (NaN outside it), expected grade and its sd, and the half-width
            of the system's interval that is expected once this pair and those above it are judged.
        """
        found = self[system].model
        if found is None:
            raise ModelError("Pairs are chosen by a model, and there is none. Name a model.")
        asked = found.needed if n is None else n
        return found.pairs if asked is None else found.pairs.head(asked)

    def to_frame(self) -> pd.DataFrame:
        """One row per later system, best first.

        By the model: mean, lower, upper, rank among the first systems with its interval (rank_lower, rank_upper),
        p_better than the best of them, and needed: the number of judgments for an interval as narrow as theirs. By the
        judgments alone: the judged share, the classical score with its rank, and its bounds. Unknown values are NaN.
        """
        return frame(map(LaterFigures.of, self._best_first), LaterFigures)

    def pairs(self) -> pd.DataFrame:
        """The needed pairs of every later system, best system first: system, and the columns of :meth:`next`."""
        tables = [self.next(one.system).assign(system=one.system) for one in self._best_first]
        table = pd.concat(tables, ignore_index=True)
        return table[["system", *(c for c in table.columns if c != "system")]]

    def tables(self) -> tuple[Table, ...]:
        """One row per later system; the lower bound only where it is not the classical score."""
        table = self.to_frame()
        if (table["bound_lower"] - table["classical"]).abs().max() <= TIE:
            table = table.drop(columns="bound_lower")
        shown = table.dropna(axis=1, how="all")
        whole = dict.fromkeys(("rank", "rank_lower", "rank_upper", "needed"), 0)
        intervals = ("mean", "lower", "upper") if "mean" in shown else None
        return (Table(shown, self.metric, {**whole, "p_better": 3, "judged": 3}, intervals),)

    def sentences(self) -> list[str]:
        """What the figures mean, then notes on the data and the model."""
        return [*self.findings(), *self.notes]

    def findings(self) -> list[str]:
        """What the figures mean."""
        n = len(self.later)
        how = "together" if self.together else "each alone"
        joined = f"{n} later systems joined {len(self.first)}, {how}." if n > 1 else f"One joined {len(self.first)}."
        lines = [f"{joined} Judged: the share of its top {self.depth} that is judged."]
        models = [one.model for one in self.later if one.model is not None]
        if models:
            best = " or ".join(dict.fromkeys(model.best for model in models))
            lines.append(f"Ranks are among the first systems; p_better is the probability of being better than {best}.")
            lines.append(_meaning_of_needed(models[0].target))
            many = [one.system for one in self.later if one.model is not None and one.model.needed is None]
            if many:
                lines.append(f"More than the listed pairs are needed for {', '.join(many)}.")
        return lines


@dataclass(frozen=True, eq=False, repr=False)
class ReuseStudyInputs(Work, Scoring, Evidence):
    """Say how well the judgments of a campaign would serve later systems: each team is left out in turn.

    The judgments that only a team contributed are taken away, and its systems are evaluated as if they had come later:
    with unjudged documents as not relevant, and by the model. A pair is contributed by the teams that have it in their
    top ``depth``. Only queries with judgments count; without teams each system is its own. The model ``"none"`` is the
    classical route alone, which takes seconds.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=6, queries=5, depth=5)
    >>> study = probeval.reuse_study(campaign, "DCG@5", model="none")
    >>> [(route.route, round(route.accuracy, 3)) for route in study.routes]
    [('classical', 0.778)]
    """

    metric: Annotated[AnyMetric, MEASURE]
    _: KW_ONLY
    depth: PoolDepth = None
    level: Level = 0.95

    def run(self) -> ReuseStudy:
        """The study."""
        self.refuse("reuse")
        measured, scale, reporter = as_metric(self.metric), as_scale(self.scale), self.reporter
        collection = self.collection(self.runs, scale=scale, reporter=reporter)
        choice, exact = _choose(collection, self, reporter)
        collection = _on_judged_queries(with_reference(collection, self.reference), reporter)
        pooled = self.depth or measured.cutoff or collection.runs.depth
        note_ideal(collection, measured, exact, depth=pooled, reporter=reporter)
        state = None
        if choice is not None:
            deep = measured.cutoff or pooled
            note_texts(collection, self.docs, depth=deep, model=choice.model, reporter=reporter)
            state = Judging.of(collection, choice.model, measured, scale=exact, depth=deep, seed=self.seed).begin()
        return leave_teams_out(
            collection,
            measured,
            scale=exact,
            depth=pooled,
            state=state,
            model="none" if choice is None else choice.name,
            level=self.level,
            reporter=reporter,
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReuseInputs(Work, Scoring, Evidence):
    """Evaluate systems that arrive after the judging of a campaign, with its judgments.

    The lists of a later system join the pool, and the judgments stay. Each later system joins alone, as it would in
    life, so that a score depends on no other newcomer; ``together`` is for systems that arrive as a group. Only queries
    with judgments count. The model ``"none"`` gives classical scores alone.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=5, queries=6, depth=5)
    >>> first, late = campaign.runs.select(campaign.runs.systems[:4]), campaign.runs.select(campaign.runs.systems[4:])
    >>> probeval.reuse(first, late, "DCG@5", qrels=campaign.judgments)
    <Reuse: DCG@5 of 1 later system, with the judgments of 4 systems>
    """

    later: Annotated[Any, About("The later systems: anything that runs can be.")]
    metric: Annotated[AnyMetric, MEASURE]
    _: KW_ONLY
    together: Together = False
    depth: PoolDepth = None
    level: Level = 0.95

    def run(self) -> Reuse:
        """The later systems."""
        self.refuse("reuse")
        measured, remarks = as_metric(self.metric), Remarks(self.reporter)
        campaign = as_collection(self.runs, order=self.order, reporter=self.reporter)
        new = as_collection(self.later, order=self.order, reporter=self.reporter).runs
        _check_names(campaign, new.systems)
        both = replace(campaign, runs=campaign.runs.joined(new))
        whole = self.collection(both, scale=as_scale(self.scale), reporter=self.reporter)
        choice, exact = _choose(whole, self, remarks)
        whole = with_reference(whole, self.reference)
        whole = _on_judged_queries(whole, remarks) if choice is None else _on_all_queries(whole, remarks)
        first, deep = campaign.runs.systems, self.depth or measured.cutoff or whole.runs.depth
        _note_answers(whole, new.systems, remarks)
        note_ideal(replace(whole, runs=whole.runs.select(first)), measured, exact, depth=deep, reporter=remarks)
        if choice is not None:
            note_texts(whole, self.docs, depth=deep, model=choice.model, reporter=remarks)
        groups = [new.systems] if self.together else [(system,) for system in new.systems]
        found: list[LaterSystem] = []
        for group in self.reporter.track(groups, "Later systems"):
            joined = replace(whole, runs=whole.runs.select([*first, *group]))
            classical = measure_later(judged_scores(joined, measured, scale=exact, depth=deep), first, group)
            by_model: Sequence[ModelScore | None] = [None] * len(group)
            if choice is not None:
                model = replace(choice.model, later=group) if isinstance(choice.model, Hierarchical) else choice.model
                judging = Judging.of(joined, model, measured, scale=exact, depth=deep, seed=self.seed)
                by_model = judge_later(judging.begin(), first, group, level=self.level)
            found += [LaterSystem(*parts) for parts in zip(group, classical, by_model, strict=True)]
        return Reuse(
            metric=str(measured),
            depth=deep,
            model="none" if choice is None else choice.name,
            first=first,
            later=tuple(found),
            together=self.together,
            level=self.level,
            notes=tuple(remarks.notes),
        )


def _meaning_of_needed(target: float) -> str:
    """What the number of needed judgments is for."""
    if target <= TIE:
        return "Needed: all of its unjudged documents, as the first systems are judged completely."
    return (
        "Needed: judgments until its interval is as narrow as those of the first systems, "
        f"+-{target:.3f} in the median."
    )


def _check_names(campaign: Collection, later: Sequence[str]) -> None:
    """A later system must have another name than the first ones."""
    both = next((s for s in later if s in campaign.runs.systems), None)
    if both is not None:
        raise DataError(f"System {both!r} is among the first systems and among the later ones. Rename it or drop it.")


def _choose(collection: Collection, given: Scoring, reporter: Reporter) -> tuple[Choice | None, Scale]:
    """The model, None for classical scores alone, and the scale of the grades."""
    scale = as_scale(given.scale)
    grades = required_judgments(collection).scale(scale)
    if given.model == "none":
        return None, grades if given.gain is None else grades.with_gain(given.gain)
    choice = select_model(collection, given.model, scale=scale, gain=given.gain, reporter=reporter)
    return choice, choice.scale


def _on_judged_queries(collection: Collection, reporter: Reporter) -> Collection:
    """The collection on the queries that have judgments."""
    judgments, judged = required_judgments(collection), _judged_queries(collection)
    kept = [query for query in collection.runs.queries if query in judged]
    missing = unanswered(collection)
    if not kept:
        raise DataError(
            f"no query in common: the runs answer {collection.runs.queries[0]!r} and others, the judgments "
            f"{judgments.pool.queries[0]!r} and others."
        )
    if len(kept) < len(collection.runs.queries):
        reporter.say(
            f"{len(collection.runs.queries) - len(kept)} queries of the runs have no judgment and are left out."
        )
    if missing:
        reporter.say(f"{len(missing)} judged queries are answered by no run and are left out.")
    return restrict(collection, kept)


def _on_all_queries(collection: Collection, reporter: Reporter) -> Collection:
    """The collection as it is: a model predicts queries without judgments too, as in an evaluation."""
    if set(collection.runs.queries).isdisjoint(judged := _judged_queries(collection)):
        return _on_judged_queries(collection, reporter)  # which says what is wrong
    alone = len(set(collection.runs.queries) - judged)
    if alone:
        reporter.say(
            f"{alone} queries of the runs have no judgment: their scores rest on the model alone, and scores by the "
            "judgments leave them out."
        )
    missing = unanswered(collection)
    if missing:
        reporter.say(f"{len(missing)} judged queries are answered by no run and are left out.")
    return collection


def _judged_queries(collection: Collection) -> set[str]:
    judgments = required_judgments(collection)
    return set(judgments.pool.queries[judgments.pool.query[judgments.pair]])


def _note_answers(collection: Collection, later: Sequence[str], reporter: Reporter) -> None:
    """Report later systems that lack an answer to some queries."""
    runs = collection.runs
    for system in later:
        answered = int(runs.retrieved[runs.systems.index(system)].any(axis=1).sum())
        if not answered:
            raise DataError(f"System {system!r} answers none of the queries of the campaign.")
        if answered < len(runs.queries):
            reporter.say(f"{system} answers {answered} of {len(runs.queries)} queries: it scores 0 on the others.")


reuse = task(ReuseInputs, "reuse")
reuse_study = task(ReuseStudyInputs, "reuse_study")
