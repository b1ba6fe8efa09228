r"""The next questions: single documents to grade and pairs of documents to compare, by their gain per second.

A comparison observes :math:`\Delta = \theta_l - \theta_r`. With :math:`h_a = \text{Cov}(\Delta, \text{score}_a)` and
:math:`J` the information of its answer (:mod:`probeval.selection.comparisons`), its value is :math:`h' M h\, J`, as
that of a grade is :math:`g' M g / \text{Var}[G]`, with the same matrix :math:`M` of the goal. See
docs/theory/judging.md#question-gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.display import Record
from probeval.errors import SelectionError, did_you_mean
from probeval.relevance.dependence import Linearised
from probeval.selection.batch import draw_pair, draw_probability, exploratory, in_turn
from probeval.selection.comparisons import PairQuestion, typical_answers
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.policies import Policy, PolicyFunction, as_policy, gain, score_value
from probeval.streams import Purpose, stream

__all__ = ["ASK", "SECONDS", "Questions", "check_ask", "next_questions"]

ASK = {
    "grades": "a grade of one document",
    "preferences": "which of two documents is better",
    "magnitudes": "how many times as relevant one of two documents is",
    "mixed": "grades and preferences, whichever tell more per second",
}
KINDS = {
    "grades": ("grade",),
    "preferences": ("preference",),
    "magnitudes": ("magnitude",),
    "mixed": ("grade", "preference"),
}
SECONDS = {"grade": 25.0, "preference": 18.0, "magnitude": 25.0}  # per answer, until a log shows others
PROMISING = 16  # documents of a query that are compared with one another, by what each alone would tell
KNOWN = 4  # and those whose relevance is known best, to compare them with
SHORT = 300  # questions among which a batch is chosen, or five times those wanted
PER_DOCUMENT = 2  # comparisons of one document among these: others tell much the same
TRIES = 50  # to draw two documents at random that have not been taken


@dataclass(frozen=True, eq=False, repr=False)
class Questions(Record):
    """Questions to ask next, the best first.

    Parameters
    ----------
    kind
        ``"grade"``, ``"preference"`` or ``"magnitude"``, for each question.
    left, right
        The positions of its documents in the pool, the right one negative for a grade, shape (n,).
    value
        What its answer is worth per second, once those before it are known, shape (n,); NaN for questions drawn at
        random.
    seconds
        What its answer takes, shape (n,).
    probability
        The probability of a document to grade that was drawn at random, for the audit, shape (n,); NaN for others.

    Examples
    --------
    >>> asked = Questions(("grade",), np.array([3]), np.array([-1]), *np.full((3, 1), np.nan))
    >>> len(asked), asked.keys
    (1, [(3, -1)])
    """

    kind: tuple[str, ...]
    left: Ints
    right: Ints
    value: Floats
    seconds: Floats
    probability: Floats

    def __post_init__(self) -> None:
        for name in ("left", "right", "value", "seconds", "probability"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def compares(self) -> Bools:
        """Whether each question is about two documents, shape (n,)."""
        return np.asarray(self.right >= 0)

    @property
    def keys(self) -> list[tuple[int, int]]:
        """The documents of each question, as positions in the pool; the second is negative for a grade."""
        return list(zip(self.left.tolist(), self.right.tolist(), strict=True))


def check_ask(ask: str) -> None:
    """Raise an error unless this is one of the things to ask."""
    if ask not in ASK:
        raise SelectionError(f"Ask for {', '.join(ASK)}; got {ask!r}.{did_you_mean(ask, ASK)}")


def next_questions(
    context: SelectionContext,
    n: int,
    *,
    ask: str = "mixed",
    goal: Goal,
    offered: Bools,
    policy: str | Policy | PolicyFunction = "gain",
    explore: float = 0.0,
    answering: Mapping[str, PairQuestion] | None = None,
    seconds: Mapping[str, float] | None = None,
    asked: int = 0,
    taken: Iterable[tuple[int, int]] = (),
) -> Questions:
    """Return the next ``n`` questions, or all that are left, in the order of their gain per second.

    A batch is chosen jointly: each question is valued as if those before it were answered.

    Parameters
    ----------
    context
        The current state: lists, judgments, prediction and scores.
    n
        The number of questions.
    ask
        One of :data:`ASK`.
    goal, offered
        The goal of the judging, and the documents that may be shown, shape (pair,). Judged ones are not graded again,
        but others are compared with them.
    policy
        ``"gain"``, or ``"random"`` for questions drawn at random.
    explore
        The share of questions drawn at random: grades as in :func:`probeval.selection.choose`; if grades are not asked,
        a document drawn in the same way and another of its query.
    answering
        How assessors answer, by kind of question (:class:`Preference`, :class:`Ratio`), where it is not to be learned
        from their answers so far.
    seconds
        The seconds of an answer by kind, where they differ from :data:`SECONDS`.
    asked
        The answers so far, judgments included: they spread exploration evenly.
    taken
        Questions that must not be asked, as :attr:`Questions.keys`; the order of two documents does not matter.
    """
    check_ask(ask)
    if n < 0:
        raise SelectionError(f"The number of questions must not be negative, got {n}.")
    chosen = as_policy(policy)
    if not chosen.at_random and chosen.joint_value is None:
        raise SelectionError(f"The policy {chosen} orders single documents, not questions: use gain or random.")
    if not goal.about_scores and ask != "grades":
        raise SelectionError(f"The goal {goal} needs grades: comparisons find no relevant documents. Ask for grades.")
    posterior = context.prediction.posterior
    asking = _Asking(
        context,
        goal,
        KINDS[ask],
        offered,
        offered & ~context.judged,
        {**typical_answers(None if posterior is None else posterior.design.answers), **(answering or {})},
        _prices(seconds),
        {_key(*each) for each in taken},
    )
    drawn = asking.draw(exploratory(asked, n, 1.0 if chosen.at_random else explore), asked, uniform=chosen.at_random)
    best = iter(asking.best(n - len(drawn)) if not chosen.at_random else ())
    order = [drawn[at] if at in drawn else next(best, None) for at in range(n)]
    return asking.questions([each for each in order if each is not None], asked)


class _Question(NamedTuple):
    kind: str
    left: int
    right: int = -1
    value: float = np.nan
    probability: float = np.nan


@dataclass(frozen=True, eq=False)
class _Asking:
    """One request for questions; ``free`` and ``taken`` follow what is chosen."""

    context: SelectionContext
    goal: Goal
    kinds: tuple[str, ...]
    offered: Bools
    free: Bools  # the documents that may be graded, shape (pair,)
    answering: Mapping[str, PairQuestion]
    seconds: Mapping[str, float]
    taken: set[tuple[int, int]]

    def __post_init__(self) -> None:
        self.free[[left for left, right in self.taken if right < 0]] = False

    def draw(self, positions: Ints, asked: int, *, uniform: bool) -> dict[int, _Question]:
        """Return the questions drawn at random, by their positions in the batch."""
        out = {}
        for at in positions.tolist():
            rng = stream(self.context.seed, asked + at, Purpose.QUESTIONS)
            kind = self.kinds[int(rng.integers(len(self.kinds)))] if uniform else self.kinds[0]
            found = self._grade(asked + at, uniform) if kind == "grade" else self._two(kind, rng, uniform)
            if found is not None:
                out[at] = found
                self.taken.add(_key(found.left, found.right))
        return out

    def _grade(self, number: int, uniform: bool) -> _Question | None:
        if not self.free.any():
            return None
        if uniform:
            open_ = np.flatnonzero(self.free)
            left = int(stream(self.context.seed, number, Purpose.EXPLORATION).choice(open_))
            probability = 1 / len(open_)
        else:
            left, probability = draw_pair(self.context, self.goal, self.free, number)
        self.free[left] = False
        return _Question("grade", left, probability=probability)

    def _two(self, kind: str, rng: np.random.Generator, uniform: bool) -> _Question | None:
        """Draw a document that is not judged, and another of its query."""
        query = self.context.runs.pool.query
        shown = np.bincount(query[self.offered], minlength=len(self.context.runs.queries))
        open_ = self.offered & ~self.context.judged & (shown[query] > 1)
        if not open_.any():
            return None
        weight = open_ / open_.sum() if uniform else draw_probability(self.context, self.goal, open_)
        for _ in range(TRIES):
            left = int(rng.choice(len(query), p=weight / weight.sum()))
            mine = self.context.runs.pool.pairs_of(int(query[left]))
            others = np.arange(mine.start, mine.stop)[self.offered[mine]]
            right = int(rng.choice(others[others != left]))
            if _key(left, right) not in self.taken:
                return _Question(kind, left, right)
        return None

    def best(self, n: int) -> list[_Question]:
        """Return the questions with the highest gain per second, chosen jointly."""
        if n <= 0:
            return []
        if not self.goal.about_scores:
            value = np.where(self.free, gain(self.context, self.goal), -np.inf)
            order = np.argsort(-value, kind="stable")[: min(n, int(self.free.sum()))]
            return [_Question("grade", int(d), value=value[d] / self.seconds["grade"]) for d in order]
        parts = [self._grades() if kind == "grade" else self._compared(kind) for kind in self.kinds]
        kind, left, right, variance, value = (np.concatenate(part) for part in zip(*parts, strict=True))
        short = self._shortlist(left, right, value, n)
        kind, left, right, variance = kind[short], left[short], right[short], variance[short]
        cost = np.array([self.seconds[str(k)] for k in kind])
        covariance, between = self._joint(left, right)
        at, values = in_turn(covariance, variance, between, n, score_value(self.context, self.goal), cost=cost)
        return [_Question(str(kind[i]), int(left[i]), int(right[i]), float(v)) for i, v in zip(at, values, strict=True)]

    def _grades(self) -> _Part:
        left = np.flatnonzero(self.free)
        variance = self.context.gain_variance[left]
        value = gain(self.context, self.goal)[left] / self.seconds["grade"]
        return np.full(len(left), "grade"), left, np.full(len(left), -1), variance, value

    def _compared(self, kind: str) -> _Part:
        """Return the comparisons of promising documents, query by query."""
        latent, answer = self._gains.latent, self.answering[kind]
        towards = self._towards @ score_value(self.context, self.goal)
        alone = (towards * self._towards).sum(axis=1) * answer.information(np.zeros(len(towards)), latent.variance)
        judged, parts = self.context.judged, []
        for q in range(len(self.context.runs.queries)):
            mine = self.context.runs.pool.pairs_of(q)
            docs = np.arange(mine.start, mine.stop)[self.offered[mine]]
            docs = _some(docs, alone, latent.variance)
            if len(docs) < 2:
                continue
            a, b = np.triu_indices(len(docs), k=1)
            two = self._fresh(docs[a], docs[b]) & ~(judged[docs[a]] & judged[docs[b]])
            a, b = a[two], b[two]
            matrix, products = latent.between(docs), towards[docs] @ self._towards[docs].T
            variance = np.maximum(_apart(matrix, a, b), 0.0)
            information = answer.information(self._centre[docs[a]] - self._centre[docs[b]], variance)
            observed = np.divide(1.0, information, out=np.full(len(information), np.inf), where=information > 0)
            parts.append((docs[a], docs[b], observed, np.maximum(_apart(products, a, b), 0.0) * information))
        if not parts:
            return np.empty(0, dtype="<U10"), *(np.empty(0, dtype=int),) * 2, np.empty(0), np.empty(0)
        left, right, observed, value = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.full(len(left), kind), left, right, observed, value / self.seconds[kind]

    def _fresh(self, left: Ints, right: Ints) -> Bools:
        """Whether each two documents have not been taken, shape (question,)."""
        if not self.taken:
            return np.ones(len(left), dtype=bool)
        return np.array([_key(*each) not in self.taken for each in zip(left.tolist(), right.tolist(), strict=True)])

    def _shortlist(self, left: Ints, right: Ints, value: Floats, n: int) -> Ints:
        """Return the questions among which a batch is chosen: the best, with few comparisons of each document first."""
        used: Counter[int] = Counter()
        first, later = [], []
        for at in np.argsort(-value, kind="stable").tolist():
            two = (int(left[at]), int(right[at])) if right[at] >= 0 else ()
            if all(used[doc] < PER_DOCUMENT for doc in two):
                used.update(two)
                first.append(at)
            else:
                later.append(at)
        return np.sort(np.array([*first, *later], dtype=np.int64)[: max(SHORT, 5 * n)])

    def _joint(self, left: Ints, right: Ints) -> tuple[Floats, Floats]:
        """Return the covariances of what questions observe: with the scores, and with one another."""
        compares = right >= 0
        docs = np.unique(np.concatenate([left, right[compares]]))
        n, at = len(docs), np.arange(len(left))
        # Columns: gains of the documents, then their latent relevance.
        row = np.concatenate([at, at[compares]])
        column = np.searchsorted(docs, np.concatenate([left, right[compares]])) + n * np.append(
            compares, np.ones(compares.sum(), dtype=bool)
        )
        sign = np.append(np.ones(len(left)), -np.ones(compares.sum()))
        chosen = csr_array((sign, (row, column)), shape=(len(left), 2 * n))
        whole = np.zeros((2 * n, 2 * n))
        whole[:n, :n] = self.context.dependence.between(docs)
        covariance = self.context.covariance[left]
        if compares.any():
            gains, latent = self._gains, self._gains.latent
            whole[n:, n:] = latent.between(docs)
            whole[n:, :n] = gains.between_across(latent, docs)
            whole[:n, n:] = whole[n:, :n].T
            covariance[compares] = self._towards[left[compares]] - self._towards[right[compares]]
        return covariance, np.asarray(chosen @ (chosen @ whole).T)

    @cached_property
    def _gains(self) -> Linearised:
        found = self.context.dependence
        if not isinstance(found, Linearised):
            raise SelectionError(
                "Pairs of documents are chosen by the posterior of the hierarchical model (inference laplace), whose "
                "grades are those of one reference. Use --model hierarchical, or ask for grades."
            )
        return found

    @cached_property
    def _towards(self) -> Floats:
        """The covariance of each document's latent relevance with the scores, shape (pair, system)."""
        return self._gains.times_across(self._gains.latent, self.context.weights)

    @cached_property
    def _centre(self) -> Floats:
        return self._gains.centre

    def questions(self, found: Sequence[_Question], asked: int) -> Questions:
        """Return questions with the sides of their documents drawn at random."""
        out = []
        for at, each in enumerate(found):
            turned = each.right >= 0 and stream(self.context.seed, asked + at, Purpose.SIDES).random() < 0.5
            out.append(each._replace(left=each.right, right=each.left) if turned else each)
        return Questions(
            tuple(each.kind for each in out),
            np.array([each.left for each in out], dtype=np.int64),
            np.array([each.right for each in out], dtype=np.int64),
            np.array([each.value for each in out], dtype=float),
            np.array([self.seconds[each.kind] for each in out], dtype=float),
            np.array([each.probability for each in out], dtype=float),
        )


_Part = tuple[Any, Ints, Ints, Floats, Floats]  # kinds, documents, the variance of what is observed, gain per second


def _some(docs: Ints, alone: Floats, variance: Floats) -> Ints:
    """Return the documents of a query that are compared: promising ones, and those known best."""
    promising = docs[np.argsort(-alone[docs], kind="stable")[:PROMISING]]
    known = docs[np.argsort(variance[docs], kind="stable")[:KNOWN]]
    return np.union1d(promising, known)


def _apart(matrix: Floats, a: Ints, b: Ints) -> Floats:
    """Return the quadratic form of the differences of two rows, given that of the rows, shape (question,)."""
    own = np.diag(matrix)
    return np.asarray(own[a] + own[b] - 2 * matrix[a, b])


def _key(left: int, right: int) -> tuple[int, int]:
    """Return the documents of a question, in one order; a grade has one."""
    return (left, right) if right < 0 else (min(left, right), max(left, right))


def _prices(seconds: Mapping[str, float] | None) -> dict[str, float]:
    """Return the seconds of an answer by kind."""
    for kind, value in (seconds or {}).items():
        if kind not in SECONDS:
            raise SelectionError(
                f"Seconds are those of {', '.join(SECONDS)}; got {kind!r}.{did_you_mean(kind, SECONDS)}"
            )
        if not value > 0 or not np.isfinite(value):
            raise SelectionError(f"The seconds of a {kind} must be above 0, got {value:g}.")
    return {**SECONDS, **(seconds or {})}
