"""Every pair of systems compared by a relevance model: the result of :func:`probeval.compare` on few judgments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import pandas as pd

from probeval.api.documents import ModelComparisonsDocument
from probeval.api.evaluation import Evaluation, NextPairs
from probeval.display import Table
from probeval.results import Result
from probeval.scores import ScoreEstimate, TwoSystems, decide, without_labels
from probeval.scores.two_systems import DecidedPair

if TYPE_CHECKING:
    from probeval.scores import Ranking

__all__ = ["ModelComparisons"]

FEW = 5  # pairs to judge next that are shown
READ = [
    "a", "b", "difference", "lower", "upper", "p_better", "p_equal", "p_worse", "verdict", "p_better_new",
    "verdict_new", "p_better_unlabelled",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparisons(Result):
    """Every pair of systems, or those with one system, compared by a relevance model.

    Systems stand by falling expected score, so the first of a pair is the better-looking one.

    Parameters
    ----------
    evaluation
        The evaluation that the comparisons rest on.
    against
        Only pairs with this system.
    """

    evaluation: Evaluation
    against: str | None = None

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
    def pairs(self) -> tuple[TwoSystems, ...]:
        """One decision per pair."""
        estimate, level = self.evaluation.estimate, self.evaluation.level
        return tuple(
            decide(estimate, a, b, level=level, unlabelled=self.unlabelled)
            for a, b in combinations(self.systems, 2)
            if self.against in (None, a, b)
        )

    @cached_property
    def next(self) -> NextPairs | None:
        """The next pairs to judge, for the one pair of systems that is shown or for all; None if nothing is open."""
        if not any(pair.is_open for pair in self.pairs) or not self.evaluation.judging().open.any():
            return None
        return self.evaluation.next(FEW, goal=self.goal)

    @property
    def goal(self) -> str:
        """The goal of further judging: that of the pair if there is one, else the ranking."""
        names = [self.pairs[0].here.a, self.pairs[0].here.b] if len(self.pairs) == 1 else []
        return f"pair:{','.join(names)}" if names and not any("," in name for name in names) else "ranking"

    def _headline(self) -> str:
        n = sum(not pair.is_open for pair in self.pairs)
        return f"{n:,} of {len(self.pairs):,} pairs of {len(self.systems)} systems decided at {self.evaluation.level:g}"

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling expected score."""
        return self.evaluation.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, with the keys of :class:`~probeval.scores.two_systems.DecidedPair` as columns."""
        rows = [pair.to_dict() for pair in self.pairs]
        return pd.DataFrame(rows, columns=None if rows else list(DecidedPair.__annotations__))

    def readable(self) -> pd.DataFrame:
        """One row per pair with the columns that people read; for one pair, a row per kind of queries."""
        if len(self.pairs) == 1:
            return self.pairs[0].to_frame()
        frame = self.to_frame()
        kept = [c for c in READ if c in frame.columns and (c != "p_equal" or self.evaluation.estimate.estimation.rope)]
        return frame[kept]

    def to_dict(self) -> ModelComparisonsDocument:
        """The comparisons as plain data, as ``probeval compare --format json`` prints them."""
        evaluated = self.evaluation.to_dict()
        document: ModelComparisonsDocument = {
            "method": "model",
            "model": evaluated["model"],
            "level": self.evaluation.level,
            "rope": self.evaluation.estimate.estimation.rope,
            "pool": evaluated["pool"],
            "judged": evaluated["judged"],
            "systems": evaluated["systems"],
            "pairs": [pair.to_dict() for pair in self.pairs],
        }
        if "labels" in evaluated:
            document["labels"] = evaluated["labels"]
        if self.next is not None:
            document["goal"] = self.goal
            document["next"] = self.next.to_dict()["next"]
        return document

    def tables(self) -> tuple[Table, ...]:
        """The systems; their pairs; the pairs to judge next."""
        systems = Table(self.systems_frame(), str(self.evaluation.scores.metric), intervals=("mean", "lower", "upper"))
        shown = (systems, Table(self.readable(), self.title, intervals=("difference", "lower", "upper")))
        return shown if self.next is None else (*shown, Table(self.next_frame(), "Judge next"))

    @property
    def title(self) -> str:
        """The title of the table of pairs."""
        return f"{self.pairs[0].here.a} less {self.pairs[0].here.b}" if len(self.pairs) == 1 else "Pairs"

    def next_frame(self) -> pd.DataFrame:
        """The pairs to judge next: query, doc, expected grade and its sd."""
        assert self.next is not None
        return self.next.to_frame()[["query", "doc", "grade", "sd"]]

    def sentences(self) -> tuple[str, ...]:
        """What the intervals and probabilities are for; for one pair the decision; how to get more pairs to judge."""
        scores, level = self.evaluation.scores, self.evaluation.level
        known = (
            f"{scores.judged:,} of {scores.pool:,} pairs judged; the model {self.evaluation.choice.name} predicts the "
            "others."
        )
        ideal = () if scores.ideal is None else (scores.ideal.sentence,)
        if len(self.pairs) == 1:
            outcome = self.pairs[0].sentences()
        else:
            n = sum(not pair.is_open for pair in self.pairs)
            outcome = (f"{n:,} of {len(self.pairs):,} pairs of systems are decided at {level:g} on these queries.",)
        more = () if self.next is None else (
            f"Not all is decided: judge more pairs. probeval next gives them with --goal {self.goal}.",
        )  # fmt: skip
        return (known, *ideal, *outcome, *more)
