"""Verdicts on the assessors behind answers: slope, side, and the kind of assessor that each is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.display import Table
from probeval.relevance.answers.assessors import SIGNS, OwnAnswers, fitted, others_say
from probeval.relevance.answers.observations import AnswerRows
from probeval.relevance.answers.questions import LOG_SLOPE, SHIFT
from probeval.results import Result, key

if TYPE_CHECKING:
    from probeval.relevance.answers.fit import AnswerEvidence

__all__ = ["AnsweringAssessor", "AnswersUsed", "answers_used"]

NAMED = 0.5  # P(careless) or P(reversed) above which an assessor is named
SURE = 0.95  # P(attentive) from which an assessor is called attentive
LEVEL = 0.9  # of the intervals
STEPS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 3.0, 4.5])  # closer near 0
GRID = np.concatenate([-STEPS[::-1], [0.0], STEPS])  # slopes, as multiples of a typical one
WIDE = 2.0  # sd of the prior of these multiples
APART = 0.2  # of two shifts, to measure the curvature of the evidence
FEW = 5  # assessors that are listed by name


@dataclass(frozen=True)
class AnsweringAssessor:
    """An assessor who answered about documents."""

    assessor: Annotated[str, "The name; empty if unknown."]
    answers: Annotated[int, "The number of answers that count."]
    question: Annotated[
        str,
        "The question that most of them are about: ``choice``, ``relevant``, ``ratio``, ``magnitude`` or ``s100``.",
    ]
    slope: Annotated[
        float,
        "The change of the answer per logit of relevance, 0 if it does not depend on relevance, with an interval "
        "of .9.",
    ]
    slope_lower: float
    slope_upper: float
    side: Annotated[
        float | None,
        "The shift towards the left document, in the same unit as the answers, with an interval of .9; null for "
        "questions about single documents.",
    ]
    side_lower: float | None
    side_upper: float | None
    attentive: Annotated[float, "The probability of each kind of assessor."]
    careless: float
    reversed: float
    verdict: Annotated[
        str,
        "``careless`` or ``reversed`` if its probability is above .5; ``attentive`` if that is at least .95; else "
        "``unclear``.",
    ]

    @property
    def is_bad(self) -> bool:
        """Whether the answers do not depend on relevance, or are reversed."""
        return self.verdict in ("careless", "reversed")

    def __str__(self) -> str:
        name = self.assessor or "An unnamed assessor"
        if self.verdict == "careless":
            return (
                f"{name} is careless (P {self.careless:.2f}): {self.answers:,} answers do not depend on relevance, and "
                "count for little"
            )
        if self.verdict == "reversed":
            return f"{name} is reversed (P {self.reversed:.2f}): {self.answers:,} answers count the other way round"
        return f"{name} is {self.verdict}: {self.answers:,} answers, slope {self.slope:.2f}"


@dataclass(frozen=True, eq=False, repr=False)
class AnswersUsed(Result):
    """The answers of a campaign, and the assessors who gave them."""

    assessors: Annotated[tuple[AnsweringAssessor, ...], "One entry per assessor."] = ()
    outside: Annotated[int, "The number of answers outside the pool, which do not count."] = 0
    used: bool = True  # whether the model uses answers

    def _headline(self) -> str:
        return f"{self.answers:,} answers by {len(self.assessors)} assessors"

    @key
    def answers(self) -> int:
        """The number of answers that count."""
        return sum(one.answers for one in self.assessors)

    @property
    def bad(self) -> tuple[AnsweringAssessor, ...]:
        """The assessors who are careless or reversed."""
        return tuple(one for one in self.assessors if one.is_bad)

    def tables(self) -> tuple[Table]:
        """One row per assessor."""
        return (Table(self.to_frame(), "Assessors who answered", intervals=("slope", "slope_lower", "slope_upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The number of answers and by whom, then a sentence on each assessor who is careless or reversed."""
        if not self.used:
            return ("The model does not use answers about documents: they change nothing here.",)
        if not self.assessors:
            return ()
        many = len(self.assessors)
        if many <= FEW:
            names = ", ".join(f"{one.assessor or 'unnamed'} ({one.answers:,})" for one in self.assessors)
        else:
            names = f"{many:,} assessors"
        return (f"{self.answers:,} answers about documents by {names}.", *(f"{one}." for one in self.bad))


def answers_used(evidence: AnswerEvidence | None) -> AnswersUsed:
    """Return the answers behind a posterior and their assessors; none without answers."""
    if evidence is None:
        return AnswersUsed()
    observations = evidence.observations
    found = [_assessor(evidence, observations, j) for j in range(len(observations.assessors))]
    return AnswersUsed(tuple(found), observations.outside)


def _assessor(evidence: AnswerEvidence, observations: AnswerRows, j: int) -> AnsweringAssessor:
    # Slope and side are found given what all others say, so that no assessor confirms itself.
    own = others_say(evidence.field, evidence.sites, evidence.judged, evidence.found, observations, j)
    kinds = evidence.assessors.kinds[:, j]
    numbers = Counter(observations.question[observations.assessor == j].tolist())
    most = numbers.most_common(1)[0][0] if numbers else 0
    question = observations.questions[most]
    likely = int(np.argmax(kinds))
    parameters = evidence.assessors.parameters[likely, j]
    slope = _slope(observations, own, parameters, most) if len(own.at) else (0.0, float(-np.inf), float(np.inf))
    side: tuple[float | None, float | None, float | None] = (None, None, None)
    if question.name in ("choice", "ratio"):
        side = _side(observations, own, parameters, most, SIGNS[likely])
    attentive, careless, reverse = kinds.tolist()
    verdict = "attentive" if attentive >= SURE else "unclear"
    if max(careless, reverse) > NAMED:
        verdict = "careless" if careless > reverse else "reversed"
    return AnsweringAssessor(
        observations.assessors[j],
        int(observations.given[j]),
        question.name,
        *slope,
        *side,
        attentive,
        careless,
        reverse,
        verdict,
    )


def _slope(observations: AnswerRows, own: OwnAnswers, parameters: Floats, question: int) -> tuple[float, float, float]:
    """Return the slope of a question and its interval, of either sign, with a wide prior around 0.

    Slopes of the other questions are the same multiples of typical ones.
    """
    # On a grid through 0, which a log slope could not cross. The posterior is piecewise linear between its points, and
    # the median and the ends of the interval are where its integral reaches .5 and the tails.
    typical = np.array([q.log_slope.mean for q in observations.questions])
    log = np.empty(len(GRID))
    for i, times in enumerate(GRID):
        there = parameters.copy()
        there[:, LOG_SLOPE] = typical + (np.log(abs(times)) if times else 0.0)
        log[i] = fitted(observations, own, there, float(np.sign(times))).log_evidence - (times / WIDE) ** 2 / 2
    weight = np.exp(log - log.max())
    steps = np.diff(GRID) * (weight[1:] + weight[:-1]) / 2
    share = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    ends = np.interp([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], share, GRID) * np.exp(typical[question])
    return float(ends[1]), float(ends[0]), float(ends[2])


def _side(
    observations: AnswerRows, own: OwnAnswers, parameters: Floats, question: int, sign: float
) -> tuple[float, float, float]:
    # The estimate, with the sd 1/sqrt(-d^2 log Z/db^2 + 1/sd[prior]^2): the curvature by a central difference.
    values = []
    for off in (-APART, 0.0, APART):
        there = parameters.copy()
        there[question, SHIFT] += off
        values.append(fitted(observations, own, there, sign).log_evidence)
    curve = max((2 * values[1] - values[0] - values[2]) / APART**2, 0.0)
    sd = 1 / np.sqrt(curve + observations.questions[question].shift.sd ** -2.0)
    centre, width = float(parameters[question, SHIFT]), float(NormalDist().inv_cdf((1 + LEVEL) / 2) * sd)
    return centre, centre - width, centre + width
