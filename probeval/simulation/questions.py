"""Collections judged again with questions about single documents and about two, answered from the true grades."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import expit

from probeval.arrays import Floats, frozen, objects
from probeval.data.answers import NO_ANSWER, PairAnswers
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.display import Record
from probeval.errors import ProbevalWarning, SelectionError
from probeval.metrics import AnyMetric
from probeval.relevance.models.base import Predicts
from probeval.results import frame
from probeval.selection import Judging, Questions
from probeval.simulation.heldout import HeldOut
from probeval.simulation.points import tau_and_accuracy
from probeval.simulation.replay import SimulatedAssessor
from probeval.simulation.trajectory import TrajectoryStep, lasting
from probeval.streams import Purpose, stream

__all__ = ["QuestionStep", "QuestionTrajectory", "SimulatedComparer", "replay_questions"]

EQUAL = np.log(3)  # the tie at which half of the answers about documents of one grade are "equal"


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedComparer(Record):
    r"""An assessor who compares two documents by their true grades, with errors.

    .. math:: P(l) = F(\lambda (g_l - g_r) - \tau), \quad P(r) = F(\lambda (g_r - g_l) - \tau),

    with :math:`F` the logistic function; otherwise the answer is "equal".

    Parameters
    ----------
    grades
        The true grade of each pair of the pool, shape (pair,).
    slope
        :math:`\lambda`: 0 answers at random, and the larger the fewer errors.
    tie
        :math:`\tau`; by default half of the answers about documents of one grade are "equal".
    name
        The name of the assessor.
    seed
        The seed of the answers.

    Examples
    --------
    >>> from probeval.data import Pool
    >>> pool = Pool.of(["q", "q"], ["d1", "d2"])
    >>> asked = Questions(("preference",), np.array([0]), np.array([1]), *np.full((3, 1), 18.0))
    >>> SimulatedComparer(np.array([3.0, 0.0]), slope=4.0).answer(pool, asked).to_frame()["choice"].tolist()
    ['left']
    """

    grades: Floats
    slope: float
    tie: float = EQUAL
    name: str = "simulated"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "grades", frozen(self.grades))
        if not (np.isfinite(self.slope) and self.tie >= 0):
            raise SelectionError(
                f"A simulated comparer needs a finite slope, and a tie from 0; got {self.slope:g} and {self.tie:g}."
            )

    @classmethod
    def of(cls, held: HeldOut, *, slope: float, tie: float = EQUAL, seed: int = 0) -> SimulatedComparer:
        """Build from the true grades of a collection."""
        return cls(held.scale.values[held.codes.astype(np.int64)], slope, tie, seed=seed)

    def answer(self, pool: Pool, questions: Questions, *, asked: int = 0) -> PairAnswers:
        """Return the answers to the questions about two documents, in order.

        ``asked`` is the number of questions before: each has its own random number.
        """
        at = np.flatnonzero(questions.compares)
        left, right = questions.left[at], questions.right[at]
        apart = self.slope * (self.grades[left] - self.grades[right])
        uniform = np.array([stream(self.seed, asked + int(i), Purpose.ANSWERS).random() for i in at])
        p_left, p_right = expit(apart - self.tie), expit(-apart - self.tie)
        choice = np.where(uniform < p_left, 1, np.where(uniform > 1 - p_right, -1, 0))
        n, labels = len(at), [(*pool.label(int(a)), pool.label(int(b))[1]) for a, b in zip(left, right, strict=True)]
        query, one, other = (objects([label[i] for label in labels]) for i in range(3))
        return PairAnswers(
            query,
            one,
            other,
            choice.astype(np.int64),
            np.full(n, NO_ANSWER),
            np.full((n, 2), np.nan),
            objects([self.name] * n),
            questions.seconds[at],
        )


@dataclass(frozen=True)
class QuestionStep:
    """Confidence and tau after some answers.

    Parameters
    ----------
    seconds
        The time that all answers took.
    grades, comparisons
        The numbers of answers about one document and about two.
    confidence, accuracy, tau
        The mean confidence of the comparisons of systems, the share of them in the true order, and Kendall's tau.
    """

    seconds: float
    grades: int
    comparisons: int
    confidence: float
    accuracy: float
    tau: float

    @property
    def answers(self) -> int:
        """The number of answers."""
        return self.grades + self.comparisons


@dataclass(frozen=True, repr=False)
class QuestionTrajectory(Record):
    """One collection judged again by questions of one kind or of several.

    Parameters
    ----------
    ask, policy, slope, seed
        The questions, the policy that chose them, the slope of the simulated comparer, and the seed.
    steps
        One per batch.
    """

    ask: str
    policy: str
    slope: float
    seed: int
    steps: tuple[QuestionStep, ...]

    @property
    def reached(self) -> QuestionStep | None:
        """The first step from which tau stays at least .9 for 100 more answers; None if it never does."""
        along = [TrajectoryStep(step.answers, step.confidence, step.accuracy, step.tau) for step in self.steps]
        at = lasting(along)
        return next((step for step in self.steps if step.answers == at), None)

    def after(self, hours: float) -> QuestionStep:
        """Return the last step within this time of answers."""
        return [step for step in self.steps if step.seconds <= 3600 * hours][-1]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per batch: seconds, grades, comparisons, confidence, accuracy, tau."""
        return frame(self.steps, QuestionStep)


def replay_questions(
    held: HeldOut,
    model: Predicts,
    metric: AnyMetric,
    *,
    ask: str,
    slope: float,
    policy: str = "gain",
    explore: float | None = None,
    batch: int = 10,
    hours: float,
    seconds: Mapping[str, float] | None = None,
    seed: int = 0,
) -> QuestionTrajectory:
    """Judge a collection again by questions, and compare the ranking with the true one.

    Grades are the true ones; comparisons are those of :class:`SimulatedComparer`. The replay ends when tau has stayed
    at .9 for 100 answers, or after ``hours`` of answers.

    Parameters
    ----------
    held
        The collection, with known truth, depth and scale.
    model, metric
        The relevance model and the measure.
    ask, policy, explore, seconds
        As in :func:`probeval.selection.next_questions`.
    slope
        That of the simulated comparer.
    batch
        The number of questions between two fits of the model.
    hours
        The time of answers at which the replay ends.
    seed
        The seed of everything: the same seed gives the same trajectory.
    """
    if batch < 1:
        raise SelectionError(f"A batch has at least one question, got {batch}.")
    offered = np.zeros(len(held.pool), dtype=bool)
    offered[held.known] = True
    judging = Judging.of(
        replace(held.collection, judgments=None),
        model,
        metric,
        policy=policy,
        scale=held.scale,
        depth=held.depth,
        explore=explore,
        offered=offered,
        seed=seed,
    )
    true = held.truth(judging.metric).mean(axis=1)
    grader, comparer = SimulatedAssessor.of(held), SimulatedComparer.of(held, slope=slope, tie=EQUAL, seed=seed)
    steps: list[QuestionStep] = []
    judged: list[int] = []
    given = PairAnswers.none()
    spent, asked = 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # readers of files have already warned
        state = judging.state(Judgments.none(judging.pool), answers=None if ask == "grades" else given)
        while True:
            tau, accuracy = tau_and_accuracy(state.scores.mean, true)
            steps.append(QuestionStep(spent, len(judged), len(given), state.ranking.confidence, accuracy, tau))
            done = QuestionTrajectory(ask, policy, slope, seed, tuple(steps))
            if spent >= 3600 * hours or done.reached is not None:
                return done
            found = state.questions(batch, ask=ask, seconds=seconds)
            if not len(found):
                return done
            judged += found.left[~found.compares].tolist()
            given = given.with_more(comparer.answer(held.pool, found, asked=asked))
            asked, spent = asked + len(found), spent + float(found.seconds.sum())
            state = state.after(grader.judge(held, judged), answers=None if ask == "grades" else given)
