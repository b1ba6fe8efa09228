"""Every pair of systems compared: the results of :func:`probeval.compare`, by a model, by tests or by a posterior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from probeval.api.evaluation import Evaluation, NextPair, NextPairs
from probeval.api.users import agreement_of
from probeval.arrays import Floats
from probeval.data import Scale
from probeval.display import Table
from probeval.errors import SatisfactionError
from probeval.metrics import Measured, Metric
from probeval.reliability import Pairwise, ScorePosterior, TargetTests
from probeval.reliability.one_sided import TargetVerdict
from probeval.reliability.posterior import ModelledPair
from probeval.reliability.significance import ComparedPair, ComparedSystem
from probeval.results import FLAT, UNSET, Result, UnsetType, frame, key
from probeval.satisfaction import Noticed, Satisfaction, load_mapping, mapping_for, predict_query
from probeval.scores import LabelsUsed, ScoreEstimate, Scores, TwoSystems, decide, without_labels
from probeval.scores.compare import RankedSystem
from probeval.scores.two_systems import DecidedPair
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.satisfaction import Agreement
    from probeval.scores import Ranking

__all__ = [
    "Comparisons",
    "FurtherTests",
    "ModelComparisons",
    "NewQuerySystem",
    "PairwiseComparisons",
    "PosteriorComparisons",
    "SystemComparisons",
    "UserEffects",
    "expect_new_query",
    "satisfaction_with",
]

P = TypeVar("P", bound=DecidedPair | ComparedPair | ModelledPair)

MAX_NEXT = 5  # pairs to judge next that are shown
READ_BY_MODEL = [
    "a", "b", "difference", "lower", "upper", "p_better", "p_equal", "p_worse", "verdict", "p_better_new",
    "verdict_new", "p_better_unlabelled",
]  # fmt: skip
READ_BY_TESTS = [
    "adjusted", "verdict", "d", "won", "p_tost", "p_noninferior", "noninferior", "when_judged", "p_significant"
]  # fmt: skip


@dataclass(frozen=True)
class UserEffects:
    """What the difference of two systems means for users; unset where satisfaction is not known for the measure."""

    sat: Annotated[float | UnsetType, "The change in the share of satisfied users."] = UNSET
    sat_lower: float | UnsetType = UNSET
    sat_upper: float | UnsetType = UNSET
    p_sat: Annotated[float | UnsetType, "The probability that this change is for the better."] = UNSET
    success: Annotated[float | UnsetType, "The change in the share of queries that satisfy most users."] = UNSET
    success_lower: float | UnsetType = UNSET
    success_upper: float | UnsetType = UNSET
    noticed: Annotated[float | UnsetType, "The share of users who notice the difference on a query."] = UNSET

    @classmethod
    def of(cls, effect: Noticed) -> UserEffects:
        """The effect as keys of a pair."""
        sat, success = effect.sat, effect.success
        return cls(
            sat=sat.mean,
            sat_lower=sat.lower,
            sat_upper=sat.upper,
            p_sat=effect.p_better,
            success=success.mean,
            success_lower=success.lower,
            success_upper=success.upper,
            noticed=UNSET if effect.noticed is None else effect.noticed.mean,
        )


@dataclass(frozen=True)
class NewQuerySystem:
    """What to expect of a system on one new query."""

    system: str
    mean: Annotated[float, "The expected score."]
    lower: Annotated[float, "The lower end of its two-sided interval."]
    upper: float
    above: Annotated[float, "One-sided: the value that it reaches with the probability of the level."]
    below: Annotated[float, "One-sided: the value that it does not exceed with that probability."]
    sat: Annotated[float | UnsetType, "The share of satisfied users, where satisfaction is known for the measure."] = (
        UNSET
    )
    sat_lower: float | UnsetType = UNSET
    sat_upper: float | UnsetType = UNSET
    sat_above: float | UnsetType = UNSET
    sat_below: float | UnsetType = UNSET


@dataclass(frozen=True)
class ModelPair:
    """A pair of systems compared by a relevance model, and its effect on users."""

    decided: Annotated[DecidedPair, FLAT]
    users: Annotated[UserEffects, FLAT]


@dataclass(frozen=True)
class FurtherTests:
    """What is known of a pair beside its test, where it was asked for."""

    p_noninferior: Annotated[
        float | UnsetType,
        "With a margin: the p-value of the test that the other system is not inferior to the baseline by more than the "
        "margin, corrected for the number of systems; null for other pairs.",
    ] = UNSET
    noninferior: Annotated[
        Literal["yes", "undecided"] | UnsetType | None, "Whether that is shown; null for other pairs."
    ] = UNSET
    when_judged: Annotated[
        Literal["yes", "no", "undecided"] | UnsetType,
        "Whether the difference will be significant when everything is judged.",
    ] = UNSET
    p_significant: Annotated[float | UnsetType, "The probability that it will be, with a model."] = UNSET


@dataclass(frozen=True)
class PairwisePair:
    """A pair of systems tested, and its effect on users."""

    tested: Annotated[ComparedPair, FLAT]
    more: Annotated[FurtherTests, FLAT]
    users: Annotated[UserEffects, FLAT]


@dataclass(frozen=True)
class PosteriorPair:
    """A pair of systems by the posterior, and its effect on users."""

    modelled: Annotated[ModelledPair, FLAT]
    more: Annotated[FurtherTests, FLAT]
    users: Annotated[UserEffects, FLAT]


@dataclass(frozen=True)
class PairwiseSystem:
    """A system and its mean score, tested against the target if there is one."""

    compared: Annotated[ComparedSystem, FLAT]
    p_target: Annotated[float | UnsetType, "The p-value of the test of the mean against the target."] = UNSET
    adjusted_target: Annotated[float | UnsetType, "The same, corrected for the number of systems."] = UNSET
    verdict_target: TargetVerdict | UnsetType = UNSET


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SystemComparisons(Result):
    """Every pair of systems compared.

    Parameters
    ----------
    against
        Only pairs with this system are shown.
    notes, notes_said
        Remarks on the data and the model, and whether they have been shown already, while they were found.
    agreement
        The preferences of users by the difference in score, where they are known.
    effects
        Each pair in the eyes of users, where satisfaction is known for the measure.
    """

    metric: Annotated[str | UnsetType, "The measure, where the scores come from runs."] = UNSET
    new_query: Annotated[
        tuple[NewQuerySystem, ...] | UnsetType, "What to expect of each system on one new query, if asked for."
    ] = UNSET
    against: str | None = None
    notes: tuple[str, ...] = ()
    notes_said: bool = False
    agreement: Agreement | None = None
    effects: tuple[Noticed, ...] = ()

    @key
    def noticeable(self) -> float | UnsetType:
        """The least difference in score that half of the users notice, where it is known for the measure."""
        return UNSET if self.agreement is None else self.agreement.noticeable()

    @abstractmethod
    def systems_frame(self) -> pd.DataFrame:
        """One row per system."""

    @abstractmethod
    def outcome(self) -> list[str]:
        """The test or the decision, the meaning of the intervals, and how many differences half of the users notice."""

    def sentences(self) -> tuple[str, ...]:
        """The outcome, then notes on the data and the model."""
        return (*self.outcome(), *(() if self.notes_said else self.notes))

    def _users(self, pairs: Sequence[P]) -> list[UserEffects]:
        """The effect on users of each pair."""
        return [UserEffects.of(effect) for effect in self.effects] or [UserEffects()] * len(pairs)

    def _is_shown(self, pair: DecidedPair | ComparedPair | ModelledPair) -> bool:
        return self.against in (None, pair.a, pair.b)

    def _new_query_tables(self) -> tuple[Table, ...]:
        if self.new_query is UNSET:
            return ()
        table = frame(self.new_query, NewQuerySystem)
        shown = table[[column for column in table.columns if not column.endswith("below")]]
        return (Table(shown, "One new query", intervals=("mean", "lower", "upper")),)

    def _of_users(self, level: float) -> list[str]:
        """How many differences users notice, and the meaning of the prediction for one new query."""
        lines = []
        if self.agreement is not None:
            size, noticeable = self.to_frame()["difference"].abs(), self.agreement.noticeable()
            words = self.agreement.noticeable_in_words()
            count = f"{int((size >= noticeable - TIE).sum()):,} of {len(size):,} pairs differ by as much on average."
            lines.append(count if words in self.notes else f"{words} {count}")
        if self.new_query is not UNSET:
            lines.append(
                f"One new query of the same kind: lower and upper are a two-sided {level:.0%} interval; one-sided, "
                f"{level:.0%} of new queries reach the value of the column above."
            )
        return lines


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparisons(SystemComparisons):
    """Every pair of systems, or those with one system, compared by a relevance model.

    Systems stand by falling expected score, so the first of a pair is the better-looking one.
    """

    evaluation: Evaluation  # that the comparisons rest on

    @key
    def method(self) -> Literal["model"]:
        """``model``, where tests have the name of the test."""
        return "model"

    @key
    def model(self) -> str:
        """The model that predicts unjudged pairs."""
        return self.evaluation.choice.name

    @key
    def level(self) -> float:
        """The probability that a verdict needs, and that of intervals."""
        return self.evaluation.level

    @key
    def rope(self) -> float:
        """The largest difference that does not matter."""
        return self.evaluation.estimate.estimation.rope

    @key
    def pool(self) -> int:
        """The number of pairs of query and document."""
        return self.evaluation.scores.pool

    @key
    def judged(self) -> int:
        """The number of these that is judged."""
        return self.evaluation.scores.judged

    @key
    def pairs(self) -> tuple[ModelPair, ...]:
        """One entry per pair of systems."""
        found = [decision.pair for decision in self.decisions]
        return tuple(map(ModelPair, found, self._users(found)))

    @key.named("systems")
    def system_rows(self) -> tuple[RankedSystem, ...]:
        """One entry per system, by falling expected score."""
        return self.evaluation.ranking.systems

    @key
    def labels(self) -> LabelsUsed | UnsetType:
        """The sources of labels, where there are any."""
        return self.evaluation.labels if self.evaluation.labels.sources else UNSET

    @key.named("goal")
    def next_goal(self) -> str | UnsetType:
        """If a pair of systems is undecided: the goal of further judging."""
        return UNSET if self.to_judge is None else self.goal

    @key
    def next(self) -> tuple[NextPair, ...] | UnsetType:
        """If a pair of systems is undecided: the next pairs to judge."""
        return UNSET if self.to_judge is None else self.to_judge.chosen

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems by falling expected score."""
        return tuple(self.ranking.order)

    @property
    def ranking(self) -> Ranking:
        """The ranking of all systems."""
        return self.evaluation.ranking

    @cached_property
    def unlabelled(self) -> ScoreEstimate | None:
        """The scores without labels; None if there are none, or the model needs them."""
        return without_labels(self.evaluation.estimate)

    @cached_property
    def decisions(self) -> tuple[TwoSystems, ...]:
        """One decision per pair."""
        return tuple(
            decide(self.evaluation.estimate, a, b, level=self.level, unlabelled=self.unlabelled)
            for a, b in combinations(self.systems, 2)
            if self.against in (None, a, b)
        )

    @cached_property
    def to_judge(self) -> NextPairs | None:
        """The next pairs to judge, for the one pair of systems that is shown or for all; None if all is decided."""
        if not any(pair.is_undecided for pair in self.decisions) or not self.evaluation.judging().open.any():
            return None
        return self.evaluation.next(MAX_NEXT, goal=self.goal)

    @property
    def goal(self) -> str:
        """The goal of further judging: that of the pair if there is one, else the ranking."""
        names = [self.decisions[0].here.a, self.decisions[0].here.b] if len(self.decisions) == 1 else []
        return f"pair:{','.join(names)}" if names and not any("," in name for name in names) else "ranking"

    @property
    def _decided(self) -> str:
        n = sum(not pair.is_undecided for pair in self.decisions)
        return f"{n:,} of {len(self.decisions):,} pairs"

    def _headline(self) -> str:
        return f"{self._decided} of {len(self.systems)} systems decided at {self.level:g} by {self.metric}"

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling expected score."""
        return self.evaluation.to_frame()

    def readable(self) -> pd.DataFrame:
        """One row per pair with the columns that people read; for one pair, a row per kind of queries."""
        if len(self.decisions) == 1:
            return self.decisions[0].to_frame()
        pairs = self.to_frame()
        kept = [c for c in READ_BY_MODEL if c in pairs.columns and (c != "p_equal" or self.rope)]
        return pairs[kept].join(_readable_effects(pairs))

    def tables(self) -> tuple[Table, ...]:
        """The systems; one new query, if asked for; the pairs of systems; the pairs to judge next."""
        one = self.decisions[0].here if len(self.decisions) == 1 else None
        title = "Pairs" if one is None else f"{one.a} minus {one.b}"
        shown = (
            Table(self.systems_frame(), self.evaluation.scores.title, intervals=("mean", "lower", "upper")),
            *self._new_query_tables(),
            Table(self.readable(), title, intervals=("difference", "lower", "upper")),
        )
        if self.to_judge is None:
            return shown
        return (*shown, Table(self.to_judge.to_frame()[["query", "doc", "grade", "sd"]], "Judge next"))

    def outcome(self) -> list[str]:
        """What is judged; for one pair the decision; how to get more pairs to judge; what users notice."""
        scores = self.evaluation.scores
        known = f"{scores.judged:,} of {scores.pool:,} pairs judged; the model {self.model} predicts the others"
        lines = [f"{known}{scores.caveat}."]
        if scores.ideal is not None:
            lines.append(scores.ideal.sentence)
        if len(self.decisions) == 1:
            lines += self.decisions[0].sentences()
        else:
            lines.append(f"{self._decided} of systems are decided at {self.level:g} on these queries.")
        if self.to_judge is not None:
            lines.append(f"Not all is decided: judge more pairs. probeval next gives them with --goal {self.goal}.")
        if len(self.effects) == 1:
            lines.append(f"{self.effects[0]}.")
        return [*lines, *self._of_users(self.level)]


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseComparisons(SystemComparisons, Pairwise):
    """Every pair of systems, tested, with what is known of it beside the test."""

    more: tuple[FurtherTests, ...] = ()  # of each pair
    means: TargetTests | None = None  # the tests of means against a target, if there is one
    margin: Annotated[float | UnsetType, "The margin of non-inferiority, where given."] = UNSET
    noticed_share: Annotated[
        float | UnsetType,
        "The share of differences of two systems on a query that half of the users notice, where it is known.",
    ] = UNSET

    @key
    def target(self) -> float | UnsetType:
        """The score that means are tested against, where given."""
        return UNSET if self.means is None else self.means.target

    @key
    def pairs(self) -> tuple[PairwisePair, ...]:  # type: ignore[override]
        """One entry per pair of systems."""
        found = super().pairs
        every = zip(found, self.more, self._users(found), strict=True)
        return tuple(PairwisePair(*parts) for parts in every if self._is_shown(parts[0]))

    @key.named("systems")
    def system_rows(self) -> tuple[PairwiseSystem, ...]:  # type: ignore[override]
        """One entry per system, by falling mean."""
        found = super().system_rows
        if self.means is None:
            return tuple(map(PairwiseSystem, found))
        tested = {one.system: one for one in self.means.systems}
        targets = [tested[row.system] for row in found]
        return tuple(
            PairwiseSystem(row, one.p, one.adjusted, one.verdict) for row, one in zip(found, targets, strict=True)
        )

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling mean."""
        return frame(self.system_rows, PairwiseSystem)

    def readable(self) -> pd.DataFrame:
        """One row per pair with the columns that people read."""
        pairs = self.to_frame()
        left = pairs[["a", "b"]].assign(difference=[pair.tested.report for pair in self.pairs])
        return left.join(pairs[[c for c in READ_BY_TESTS if c in pairs.columns]]).join(_readable_effects(pairs))

    def tables(self) -> tuple[Table, ...]:
        """The systems; one new query, if asked for; the pairs."""
        systems = Table(self.systems_frame(), self.metric or None, intervals=("mean", "lower", "upper"))
        return systems, *self._new_query_tables(), Table(self.readable(), "Pairs")

    def outcome(self) -> list[str]:
        """The tests, the meaning of the intervals, and what users notice."""
        lines = [*Pairwise.sentences(self), *(() if self.means is None else self.means.sentences())]
        if self.margin is not UNSET:
            shown = [pair.more.noninferior for pair in self.pairs]
            lines.append(
                f"{shown.count('yes')} of {len(shown) - shown.count(None)} systems are shown to have more than "
                f"{1 - self.margin:g} of the score of {self.against}."
            )
        lines += self._of_users(self.level)
        if self.noticed_share is not UNSET:
            lines.append(f"Half of the users notice {self.noticed_share:.1%} of the differences on single queries.")
        return lines


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorComparisons(SystemComparisons, ScorePosterior):
    """Every pair of systems by the hierarchical model of scores."""

    more: tuple[FurtherTests, ...] = ()  # of each pair

    @key
    def pairs(self) -> tuple[PosteriorPair, ...]:  # type: ignore[override]
        """One entry per pair of systems."""
        found = super().pairs
        every = zip(found, self.more, self._users(found), strict=True)
        return tuple(PosteriorPair(*parts) for parts in every if self._is_shown(parts[0]))

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling mean score."""
        return ScorePosterior.systems_frame(self)

    def tables(self) -> tuple[Table, ...]:
        """The systems; one new query, if asked for; the pairs."""
        systems, pairs = ScorePosterior.tables(self)
        return systems, *self._new_query_tables(), pairs

    def outcome(self) -> list[str]:
        """The diagnostics of the sampler, the meaning of the intervals, and what users notice."""
        return [*ScorePosterior.sentences(self), *self._of_users(self.level)]


Comparisons = ModelComparisons | PairwiseComparisons | PosteriorComparisons


def _readable_effects(pairs: pd.DataFrame) -> pd.DataFrame:
    """The effects on users that people read, each change with its interval in one text."""
    shown: dict[str, Any] = {}
    for name in ("sat", "success"):
        if name in pairs.columns:
            ends = zip(pairs[name], pairs[f"{name}_lower"], pairs[f"{name}_upper"], strict=True)
            shown[name] = [f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" for mean, low, high in ends]
    shown |= {name: pairs[name].tolist() for name in ("p_sat", "noticed") if name in pairs.columns}
    return pd.DataFrame(shown, index=pairs.index)


def satisfaction_with(
    scores: Measured | Scores, metric: Metric, scale: Scale, mapping: str | None
) -> Satisfaction | None:
    """Return users' satisfaction by the named mapping, or the published one of the measure.

    None without a mapping, and for a single query.
    """
    if len(scores.queries) < 2:
        return None
    try:
        mapped = mapping_for(metric, scale) if mapping is None else load_mapping(mapping)
        return Satisfaction.of(scores, mapped, agreement=agreement_of(metric, scale, mapping))
    except SatisfactionError:
        if mapping is not None:
            raise
        return None


def expect_new_query(
    systems: Sequence[str],
    scores: Floats,
    *,
    users: Satisfaction | None,
    level: float,
    limits: tuple[float, float],
) -> tuple[NewQuerySystem, ...]:
    """Return the prediction for one new query by each system.

    Parameters
    ----------
    systems
        The systems, in the order of the rows.
    scores
        Their scores on the queries, NaN if missing, shape (system, query), or draws, shape (draw, system, query).
    users
        Users' satisfaction with the same systems, if it is known.
    level, limits
        The probability, and the lowest and highest possible score.
    """
    draws = scores[None] if scores.ndim == 2 else scores
    found = []
    for i, system in enumerate(systems):
        known = draws[:, i, ~np.isnan(draws[:, i]).any(axis=0)]
        score = predict_query(known, level=level, limits=limits)
        figures = [score.mean, score.lower, score.upper, score.above, score.below]
        if users is not None:
            sat = users.new_query(system, level=level)
            figures += [sat.mean, sat.lower, sat.upper, sat.above, sat.below]
        found.append(NewQuerySystem(system, *figures))
    return tuple(found)
