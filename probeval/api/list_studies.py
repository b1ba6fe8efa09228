"""Studies with users about two lists: which lists they see, the table of their answers, and its analysis."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.classical import required_judgments
from probeval.api.evidence import JudgedRuns, as_scale
from probeval.api.settings import MEASURE, Grading, Level, QueryTexts, Seed
from probeval.display import Record
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.reporting import Reporter
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.satisfaction import ListAnswers, ListQuestions
    from probeval.studies import UserStudy

__all__ = ["AnswerAnalysis", "AnswerTable", "UserStudyInputs"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UserStudyInputs(Grading, JudgedRuns):
    """The lists of a new study with users, and what users are told."""

    metric: Annotated[str, MEASURE]
    pairs: Annotated[int, About("The number of pairs of lists.", least=1)] = 100
    traps: Annotated[
        int | None, About("The number of trap questions; default: one for 5 pairs, from 4 to 20.", least=0)
    ] = None
    most: Annotated[int | None, About("The most questions that one user answers; default: all.", least=1)] = None
    queries: QueryTexts = None
    guideline: Annotated[Path | None, About("Instructions for users: a text file.", metavar="FILE")] = None
    depth: Annotated[int | None, About("The length of the lists; default: the metric's cutoff.", least=1)] = None
    name: Annotated[str, About("The name of the study.", metavar="NAME")] = "study"
    seed: Seed = 0

    def choose(self, reporter: Reporter) -> ListQuestions:
        """The pairs of lists."""
        from probeval.satisfaction import choose_lists

        scale = as_scale(self.scale)
        collection = self.collection(scale=scale, reporter=reporter)
        judgments = required_judgments(collection)
        grades = judgments.scale(scale)
        return choose_lists(
            collection.runs,
            judgments,
            self.metric,
            pairs=self.pairs,
            traps=self.traps,
            depth=self.depth,
            scale=grades if self.gain is None else grades.with_gain(self.gain),
            rng=stream(self.seed, Purpose.LISTS),
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class AnswerTable(Record):
    """A table of users' answers about two lists, and its columns."""

    answers: Annotated[Path | None, About("A table of answers, such as an exported study.", metavar="FILE")] = None
    score_a: Annotated[str, About("The score of the first list in --answers.", metavar="COLUMN")] = "score_a"
    score_b: Annotated[str, About("The score of the second list in --answers.", metavar="COLUMN")] = "score_b"
    answer: Annotated[str, About("The answer in --answers.", metavar="COLUMN")] = "answer"
    words: Annotated[
        str | None,
        About("The words for the four answers in --answers, separated by commas.", metavar="A,B,GOOD,BAD"),
    ] = None
    docs_a: Annotated[
        str, About("The documents of the first list; # is the rank, one column each: d#a.", metavar="COLUMN")
    ] = "docs_a"
    docs_b: Annotated[str, About("The documents of the second list, likewise.", metavar="COLUMN")] = "docs_b"

    def read(self, path: Path) -> ListAnswers:
        """The answers of a table."""
        from probeval.satisfaction import read_list_answers

        return read_list_answers(
            path,
            a=self.score_a,
            b=self.score_b,
            answer=self.answer,
            words=_words(self.words),
            docs_a=self.docs_a,
            docs_b=self.docs_b,
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class AnswerAnalysis(Record):
    """How answers about two lists are analysed."""

    shape: Annotated[
        str, About("The mapping: the cubic as published, or one that never falls.", choices=("cubic", "monotone"))
    ] = "cubic"
    least_right: Annotated[float, About("The share of traps that a user must answer right.", least=0, most=1)] = 0.7
    leave_out: Annotated[bool, About("Leave out users who answer fewer traps right.")] = False
    level: Level = 0.95

    def of(self, given: ListAnswers) -> UserStudy:
        """The results of a study."""
        from probeval.studies import UserStudy

        return UserStudy(
            given,
            mapping_shape=self.shape,
            least_right=self.least_right,
            leave_out=self.leave_out,
            level=self.level,
        )


def _words(text: str | None) -> dict[str, str] | None:
    """The words of a table for the four answers."""
    if text is None:
        return None
    from probeval.satisfaction import ANSWERS

    words = [word.strip() for word in text.split(",")]
    if len(set(words)) != len(ANSWERS) or "" in words:
        raise ProbevalError(
            f"--words takes the {len(ANSWERS)} words for: the first list is better, the second is, both are good, both "
            f"are bad; separated by commas. Got {text!r}."
        )
    return dict(zip(words, ANSWERS, strict=True))
