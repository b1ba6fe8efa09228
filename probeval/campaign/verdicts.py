r"""One verdict on each assessor, from all that tells of their care: how many of their answers are given at random.

An assessor gives a share :math:`\lambda` of their answers at random, from the shares that their answers have, and the
others with care, wrong with the probability :math:`\epsilon` that is typical of the assessors of the campaign. With
:math:`E_\epsilon(y \mid g)` the probability of a careful answer to a document of grade :math:`g`, and :math:`q(y)` that
of an answer at random, an answer has the likelihood

.. math:: (1 - \lambda) \, p(y) + \lambda \, q(y),

where :math:`p(y)` is :math:`E_\epsilon(y \mid g)` where the grade is known (gold and adjudicated pairs), its mean over
:math:`g` given the answer of another assessor (overlap) or their own first answer (repeats), and what the model expects
of the pair without this answer (surprise). The posterior of :math:`\lambda` is the product of all, and *careless* is
:math:`P(\lambda > 1/3)`. See docs/theory/assessors.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.campaign.events import Answered, TaskPurpose
from probeval.campaign.questions import GRADE
from probeval.campaign.state import MADE, State
from probeval.data.scale import Scale
from probeval.display import counted

if TYPE_CHECKING:
    from probeval.campaign.assessors import CheckedWork, Comparer, Respondent, Share
    from probeval.campaign.kinds.grade import Adjudicated, Judged

__all__ = [
    "ALARM",
    "RANDOM",
    "AnswerErrors",
    "AssessorVerdict",
    "CheckedAnswers",
    "Surprise",
    "answer_errors",
    "surprise_of",
    "verdicts_of",
]

ALARM = 0.95  # P(careless) from which on an assessor is named
DOUBTFUL = 0.5  # what the model says of comparisons is shown from here on
CLEAR = 0.05  # P(careless) up to which an assessor is called careful
CARELESS = 0.1  # the share of careless assessors before any answer: as of crowd workers
N = 24
RANDOM: Floats = (np.arange(N) + 0.5) / N  # grid of the share of answers at random
IS_CARELESS = RANDOM > 1 / 3  # who gives more than a third of their answers so is careless
ERRORS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])  # grid of careful errors
MISFIT = 0.1  # the share of what the model expects that is worth nothing: no single answer tells more than log(1 / .1)
LAPSES = 19  # a careful assessor lapses in one of twenty answers: Beta(1, 19)
FARTHER = 0.5  # a careful error by one more grade is half as likely
SHIFTS = (-1, 0, 1)  # a careful assessor may be strict or generous by a grade
SHIFTED = 0.1  # the share of either
REVERSED = 0.02  # with two answers instead, the share of assessors who mean the opposite: as of crowd workers
SMOOTHING = 4.0  # the shares of all answers count as much as so many of the assessor's own
TAIL = 0.05  # tail probability up to which an answer is surprising
ROUNDS = 6  # the answers of an assessor are worth less to others the more of them are at random


def _density(grid: Floats, a: float, b: float) -> Floats:
    """The shares of a Beta distribution at the points of a grid."""
    weight = grid ** (a - 1) * (1 - grid) ** (b - 1)
    return np.asarray(weight / weight.sum())


def _prior() -> Floats:
    careful = np.where(IS_CARELESS, 0.0, _density(RANDOM, 1, LAPSES))
    return np.asarray((1 - CARELESS) * careful / careful.sum() + CARELESS * IS_CARELESS / IS_CARELESS.sum())


PRIOR = _prior()
ERROR_PRIOR = _density(ERRORS, 2, 6) * np.gradient(ERRORS)
ERROR_PRIOR /= ERROR_PRIOR.sum()


@dataclass(frozen=True)
class Surprise:
    """What the model expected of the answers of an assessor that nothing else checks."""

    assessor: str
    answers: Annotated[int, "The number of such answers."]
    surprising: Annotated[int, "Those with a tail probability of at most .05."]
    by_chance: Annotated[float, "The number of them that chance alone gives."]
    # Their log likelihood, shape (shift, share at random, error), flat; empty for none.
    log_likelihood: tuple[float, ...] = ()


@dataclass(frozen=True)
class AssessorVerdict:
    """How probable it is that many answers of an assessor are given at random, and the evidence."""

    assessor: str
    careless: Annotated[float, "The probability that more than a third of their answers do not depend on the document."]
    random: Annotated[float, "The expected share of their answers that do not."]
    verdict: Annotated[
        str, "``careless`` if that probability is at least .95, ``careful`` if it is at most .05, else ``unclear``."
    ]
    manner: Annotated[
        str,
        "``generous`` or ``strict`` if they see documents a grade higher or lower with probability .95; else empty.",
    ]
    set_aside: Annotated[bool, "Whether their answers are set aside."]
    gold: Annotated[int, "The number of their answers to questions whose answer is known."]
    gold_wrong: Annotated[int, "The number of wrong ones."]
    repeats: Annotated[int, "The number of questions that they answered again."]
    repeats_same: Annotated[int, "The number of these with the same answer."]
    shared: Annotated[int, "The number of their pairs that others judged too."]
    alpha: Annotated[float, "Krippendorff's alpha over these; null if undefined."]
    overruled: Annotated[int, "The number of their answers that an adjudicator overruled."]
    adjudicated: Annotated[int, "The number of their answers to pairs that an adjudicator settled."]
    surprising: Annotated[int, "The number of their other answers that the model did not expect."]
    by_chance: Annotated[float, "The number of these that chance alone gives."]
    comparisons: Annotated[
        float,
        "The probability by the model that their answers about two documents are careless or reversed; null if "
        "unknown.",
    ]

    @property
    def is_careless(self) -> bool:
        """Whether they are named."""
        return self.verdict == "careless"

    @property
    def evidence(self) -> str:
        """What the verdict rests on, in words; empty for nothing."""
        return ", ".join(self._found())

    def _found(self) -> Iterator[str]:
        if self.gold:
            yield f"{self.gold_wrong:,} of {self.gold:,} gold questions wrong"
        if self.repeats:
            yield f"{self.repeats_same:,} of {self.repeats:,} repeated questions answered as before"
        if self.shared and self.alpha == self.alpha:
            yield f"alpha {self.alpha:.2f} over {counted(self.shared, 'shared pair')}"
        if self.adjudicated:
            yield f"{self.overruled:,} of {self.adjudicated:,} overruled by an adjudicator"
        if self.comparisons > DOUBTFUL:
            yield f"comparisons that do not follow relevance (P {self.comparisons:.2f} by the model)"
        if self.surprising:
            yield f"{counted(self.surprising, 'grade')} that the model did not expect ({self.by_chance:.1f} by chance)"

    def __str__(self) -> str:
        what = "more than a third of their answers do not depend on the document"
        known = f": {self.evidence}" if self.evidence else ""
        manner = f" and {self.manner} by a grade" if self.manner else ""
        return f"{self.assessor} is {self.verdict}{manner}{known}. P {self.careless:.2f} that {what}."


@dataclass(frozen=True)
class Care:
    """What is known of an assessor.

    Parameters
    ----------
    weight
        The probability of each share of answers at random, shape (share at random,).
    shift
        The probability of each number of grades by which they see documents higher.
    """

    weight: Floats
    shift: Mapping[int, float]

    @property
    def random(self) -> float:
        """The expected share of answers at random."""
        return float(self.weight @ RANDOM)

    @property
    def careless(self) -> float:
        """The probability that more than a third of the answers are at random."""
        return float(self.weight[IS_CARELESS].sum())

    def halfway(self, later: Care) -> Care:
        """The mean of this and another."""
        shift = {s: (p + later.shift[s]) / 2 for s, p in self.shift.items()}
        return Care((self.weight + later.weight) / 2, shift)


@dataclass
class CheckedAnswers:
    """The answers to questions of one kind that tell of the care of assessors, as counts.

    Parameters
    ----------
    shares
        The shares of the answers of all, shape (level,).
    given
        The answers of each assessor, by assessor, shape (level,).
    known
        Those where the answer is known, shape (known level, level).
    again
        Those to repeated questions, shape (first level, level).
    with_others
        Those where another assessor answered too, by the other one, shape (their level, level).
    expected
        The log likelihood of those that the model has expectations of alone, shape (shift, share at random, error).
    """

    shares: Floats
    given: dict[str, Floats] = field(default_factory=dict)
    known: dict[str, Floats] = field(default_factory=dict)
    again: dict[str, Floats] = field(default_factory=dict)
    with_others: dict[str, dict[str, Floats]] = field(default_factory=dict)
    expected: dict[str, Floats] = field(default_factory=dict)

    def habits(self, who: str) -> Floats:
        """The probability of each answer at random of an assessor, shape (level,)."""
        return habits(self.given.get(who, np.zeros(len(self.shares))), self.shares)

    def log_likelihood(self, who: str, others: Mapping[str, Care]) -> Floats:
        """The log likelihood of the answers of an assessor, with the prior of the shift, by what is known of others.

        Its shape is (shift, share at random, error).
        """
        levels = len(self.shares)
        careful, q, total = careful_answers(levels), self.habits(who), []
        for at, (shift, weight) in enumerate(shifts_of(levels).items()):
            own = shifted(careful, shift)
            log = np.full((N, len(ERRORS)), np.log(weight))
            if who in self.expected:
                log += self.expected[who][at]
            if who in self.known:
                log += _log_mixed(own, q, RANDOM, self.known[who])
            if who in self.again:
                log += _log_mixed(_given_answer(own, self.shares) @ own, q, 1 - (1 - RANDOM) ** 2, self.again[who])
            for other, counts in self.with_others.get(who, {}).items():
                known = others[other]
                view = sum((w * shifted(careful, s) for s, w in known.shift.items()), np.zeros_like(careful))
                seen = (1 - known.random) * view + known.random * self.habits(other)
                log += _log_mixed(_given_answer(seen, self.shares) @ own, q, RANDOM, counts)
            total.append(log)
        return np.asarray(total)


def habits(given: Floats, shares: Floats) -> Floats:
    """The probability of each answer at random of an assessor, shape (level,).

    Half of them have the shares of the assessor's answers, drawn towards those of all, and half are uniform: who
    rightly gives the same answer to all documents so far does not look careless.
    """
    own = (given + SMOOTHING * shares) / (given.sum() + SMOOTHING)
    return np.asarray((own + 1 / len(shares)) / 2)


def shifts_of(levels: int) -> dict[int, float]:
    """How many grades higher a careful assessor may see all documents, with the share of such assessors.

    With two answers instead, -1 is for those who mean the opposite.
    """
    if levels < len(SHIFTS):
        return {0: 1 - REVERSED, -1: REVERSED}
    return {s: SHIFTED if s else 1 - 2 * SHIFTED for s in SHIFTS}


def shifted(careful: Floats, shift: int) -> Floats:
    """The answers of an assessor who sees documents so many grades higher, shape (error, grade, answer)."""
    levels = careful.shape[-1]
    if levels < len(SHIFTS) and shift:
        return careful[:, ::-1]
    return np.asarray(careful[:, np.clip(np.arange(levels) + shift, 0, levels - 1)])


def careful_answers(levels: int) -> Floats:
    """The probability of a careful answer to a document of each grade, shape (error, grade, answer).

    >>> careful_answers(3)[3].round(3).tolist()
    [[0.9, 0.067, 0.033], [0.05, 0.9, 0.05], [0.033, 0.067, 0.9]]
    """
    apart = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
    wrong = np.where(apart == 0, 0.0, FARTHER**apart)
    wrong /= wrong.sum(axis=1, keepdims=True)
    return np.asarray(np.where(apart == 0, 1 - ERRORS[:, None, None], ERRORS[:, None, None] * wrong))


def _given_answer(answers: Floats, shares: Floats) -> Floats:
    """P(grade given an answer) from P(answer given the grade), shape (error, answer, grade)."""
    joint = np.swapaxes(answers * shares[:, None], -1, -2)
    return np.asarray(joint / joint.sum(axis=-1, keepdims=True))


def _log_mixed(careful: Floats, at_random: Floats, random: Floats, counts: Floats) -> Floats:
    """The log likelihood of counted answers, shape (share at random, error).

    Parameters
    ----------
    careful, at_random
        The probability of each careful answer, shape (error, what is known, answer), and of one at random.
    random
        The share of answers at random, shape (share at random,).
    counts
        The number of answers, shape (what is known, answer).
    """
    k, y = np.nonzero(counts)
    p = careful[:, k, y]  # (error, cell)
    mixed = (1 - random)[:, None, None] * p + random[:, None, None] * at_random[y]
    return np.asarray(np.log(np.maximum(mixed, 1e-300)) @ counts[k, y])


def surprise_of(assessor: str, expected: Floats, given: Ints, shares: Floats) -> Surprise:
    """The surprise of the answers of an assessor, by what the model expects of each without it.

    Parameters
    ----------
    expected
        P(level) of each pair without the answer, shape (answer, level).
    given
        The level of each answer, shape (answer,).
    shares
        The shares of the answers of all, shape (level,).
    """
    at = np.arange(len(given))
    q = habits(np.bincount(given, minlength=len(shares)).astype(float), shares)
    logs = []
    for shift in shifts_of(len(shares)):
        own = (expected @ shifted(careful_answers(len(shares)), shift))[:, at, given]  # (error, answer)
        seen = (1 - MISFIT) * own + MISFIT * q[given]
        mixed = (1 - RANDOM)[:, None, None] * seen + RANDOM[:, None, None] * q[given]
        logs.append(np.log(mixed).sum(axis=-1))
    up_to = np.cumsum(expected, axis=1)
    tails = np.minimum(up_to, 1 - up_to + expected)
    return Surprise(
        assessor,
        len(given),
        int((tails[at, given] <= TAIL).sum()),
        float(np.where(tails <= TAIL, expected, 0.0).sum()),
        tuple(np.round(np.ravel(logs), 3).tolist()),
    )


def posterior_of(
    people: Sequence[str], kinds: Sequence[CheckedAnswers], favours: Mapping[str, float]
) -> dict[str, Care]:
    """What is known of each assessor.

    Parameters
    ----------
    people
        The assessors.
    kinds
        Their answers, by kind of question.
    favours
        How many times as probable what else is known makes it that they are careless.
    """
    levels = max((len(kind.shares) for kind in kinds), default=1)
    found = dict.fromkeys(people, Care(PRIOR, shifts_of(levels)))
    for turn in range(ROUNDS):
        logs = {name: np.log(PRIOR) + np.log(favours.get(name, 1.0)) * IS_CARELESS for name in people}
        shifts = {name: dict(shifts_of(levels)) for name in people}
        for kind in kinds:
            by_person = {name: kind.log_likelihood(name, found) for name in people}
            for name, log in _typical_integrated(by_person).items():
                total = np.logaddexp.reduce(log + np.log(PRIOR), axis=1)
                if len(log) < len(SHIFTS):  # who means the opposite is no better than who answers at random
                    opposite = np.where(IS_CARELESS, total[1] - np.log(CARELESS), -np.inf)
                    logs[name] = logs[name] + np.logaddexp(log[0], opposite)
                else:
                    logs[name] = logs[name] + np.logaddexp.reduce(log, axis=0)
                    shifts[name] = dict(zip(SHIFTS, np.exp(total - np.logaddexp.reduce(total)).tolist(), strict=True))
        after = {name: Care(np.exp(log - np.logaddexp.reduce(log)), shifts[name]) for name, log in logs.items()}
        found = after if turn == ROUNDS - 1 else {name: found[name].halfway(after[name]) for name in people}
    return found


@dataclass(frozen=True)
class AnswerErrors:
    """How assessors of a campaign err, by all checks together.

    Parameters
    ----------
    checks
        The number of checked answers.
    answers
        The probability of each answer of an assessor to a document of each grade, by assessor, shape (level, level).
    """

    checks: int
    answers: Mapping[str, Floats]

    def likelihood(self, told: Mapping[str, int], levels: int) -> Floats:
        """The likelihood of the answers to one pair under each level, by assessor, shape (level,)."""
        found = np.ones(levels)
        for name, level in told.items():
            found = found * self.answers[name][:, level]
        return np.asarray(found / found.max())


def answer_errors(state: State, surprises: Sequence[Surprise]) -> AnswerErrors:
    """How the assessors who gave grades err.

    A careful answer errs with the typical error and shift that the checks tell of; the expected share of answers at
    random of an assessor tells nothing.
    """
    found = grade_evidence(state, surprises)
    tables = (found.known, found.again, *found.with_others.values())
    checks = int(sum(counts.sum() for table in tables for counts in table.values()))
    people, levels = sorted(found.given), len(found.shares)
    care = posterior_of(people, [found], {})
    by_person = {name: found.log_likelihood(name, care) + np.log(PRIOR)[:, None] for name in people}
    log = np.log(ERROR_PRIOR) + sum(
        (np.logaddexp.reduce(each.reshape(-1, len(ERRORS)), axis=0) for each in by_person.values()),
        np.zeros(len(ERRORS)),
    )
    typical = np.exp(log - np.logaddexp.reduce(log))
    careful = np.einsum("e,egy->gy", typical, careful_answers(levels))[None]
    answers = {}
    for name in people:
        known = care[name]
        seen = sum((w * shifted(careful, s)[0] for s, w in known.shift.items()), np.zeros((levels, levels)))
        answers[name] = (1 - known.random) * seen + known.random * found.habits(name)
    return AnswerErrors(checks, answers)


def _typical_integrated(by_person: Mapping[str, Floats]) -> dict[str, Floats]:
    """The log likelihood of each assessor without the typical error, which the other assessors tell of.

    The others' answers are averaged over their own shares at random and shifts; shapes (shift, share at random, error)
    to (shift, share at random).
    """
    alone = {
        name: np.logaddexp.reduce(np.logaddexp.reduce(log + np.log(PRIOR)[:, None], axis=1), axis=0)
        for name, log in by_person.items()
    }
    everyone = np.log(ERROR_PRIOR) + sum(alone.values(), np.zeros(len(ERRORS)))
    out = {}
    for name, log in by_person.items():
        typical = everyone - alone[name]
        out[name] = np.logaddexp.reduce(log + typical - np.logaddexp.reduce(typical), axis=-1)
    return out


def grade_levels(scale: Scale, grades: Sequence[float]) -> Ints:
    """The levels of grades; junk has the lowest."""
    lowest = scale.grades[0]
    return scale.level_of(scale.codes([max(grade, lowest) for grade in grades])).astype(np.int64)


def grade_evidence(state: State, surprises: Sequence[Surprise]) -> CheckedAnswers:
    """What the grades of a campaign tell of the care of assessors, and the surprise of each by the model."""
    scale = state.settings.scale
    n = len(scale.levels)
    known: list[tuple[str, float, float]] = []
    again: list[tuple[str, float, float]] = []
    both: list[tuple[str, str, float, float]] = []
    given: list[tuple[str, float]] = []
    for question, answers in state.answers.items():
        if question.kind != GRADE:
            continue
        first, gold = state.made(question), state.gold.get(question)
        settled = cast("Adjudicated | None", state.settled.get(question))
        for answer in {(a.by, a.purpose): a for a in answers if a.purpose not in MADE}.values():
            if answer.purpose is TaskPurpose.gold and gold is not None:
                known.append((answer.by, gold, _grade(answer)))
            elif answer.purpose is TaskPurpose.repeat and answer.by in first:
                again.append((answer.by, _grade(first[answer.by]), _grade(answer)))
        given += ((name, _grade(answer)) for name, answer in first.items())
        if settled is not None and not settled.is_gold:
            known += ((name, settled.grade, _grade(answer)) for name, answer in first.items())
        elif len(first) > 1:
            both += ((a, b, _grade(first[b]), _grade(first[a])) for a in first for b in first if a != b)
    own = dict.fromkeys((name for name, _ in given), 0)
    counted_answers = {name: np.zeros(n) for name in own}
    for (name, _), level in zip(given, grade_levels(scale, [grade for _, grade in given]), strict=True):
        counted_answers[name][level] += 1
    total = sum(counted_answers.values(), np.ones(n) / n)
    shape = (len(shifts_of(n)), N, len(ERRORS))
    expected = {each.assessor: np.reshape(each.log_likelihood, shape) for each in surprises if each.log_likelihood}
    found = CheckedAnswers(total / total.sum(), counted_answers, expected=expected)
    for rows, table in ((known, found.known), (again, found.again)):
        for name, k, y in _levelled(scale, rows):
            table.setdefault(name, np.zeros((n, n)))[k, y] += 1
    for (a, b, _, _), (_, k, y) in zip(both, _levelled(scale, [(a, k, y) for a, _, k, y in both]), strict=True):
        found.with_others.setdefault(a, {}).setdefault(b, np.zeros((n, n)))[k, y] += 1
    return found


def _levelled(scale: Scale, rows: Sequence[tuple[str, float, float]]) -> list[tuple[str, int, int]]:
    """The rows with levels for grades."""
    before, after = (
        grade_levels(scale, grades).tolist() for grades in ([k for _, k, _ in rows], [y for *_, y in rows])
    )
    return [(name, k, y) for (name, _, _), k, y in zip(rows, before, after, strict=True)]


def _grade(answer: Answered) -> float:
    return cast("Judged", answer).grade


def answer_evidence(work: Sequence[CheckedWork]) -> CheckedAnswers:
    """What answers to other questions tell, of which it is only known whether they are right, or the same as before.

    An answer at random is so half of the time.
    """
    found = CheckedAnswers(np.array([0.5, 0.5]))
    for each in work:
        wrong, changed = each.gold - each.gold_right, each.repeats - each.repeats_same
        found.known[each.assessor] = np.array([[0.0, 0.0], [wrong, each.gold_right]])
        found.again[each.assessor] = np.array([[0.0, 0.0], [changed, each.repeats_same]])
    return found


def verdicts_of(
    state: State,
    graders: Sequence[Share],
    comparers: Sequence[Comparer],
    users: Sequence[Respondent],
    surprises: Sequence[Surprise],
) -> tuple[AssessorVerdict, ...]:
    """The verdict on each assessor, by name, from their work of all kinds and what the model did not expect of it."""
    people = sorted({each.assessor for each in (*graders, *comparers, *users)})
    known = {each.assessor: each for each in surprises}
    kinds = [answer_evidence(work) for work in (comparers, users) if work]
    if graders:
        kinds.append(grade_evidence(state, surprises))
    compared = {each.assessor: each.careless + each.reversed for each in comparers if each.verdict}
    favours = {name: _odds(careless) for name, careless in compared.items()}
    found = posterior_of(people, kinds, favours)
    return tuple(
        _verdict(
            name,
            found[name],
            [each for each in (*graders, *comparers, *users) if each.assessor == name],
            next((each for each in graders if each.assessor == name), None),
            known.get(name, Surprise(name, 0, 0, 0.0)),
            compared.get(name, float("nan")),
            state.is_set_aside(name),
        )
        for name in people
    )


def _odds(careless: float) -> float:
    """How many times as probable the model of answers makes it that an assessor is careless or reversed."""
    at = min(max(careless, 1e-6), 1 - 1e-6)
    return at / (1 - at) / (CARELESS / (1 - CARELESS))


def _verdict(
    name: str,
    care: Care,
    work: Sequence[CheckedWork],
    grader: Share | None,
    surprise: Surprise,
    comparisons: float,
    is_set_aside: bool,
) -> AssessorVerdict:
    careless, manner = care.careless, {1: "generous", -1: "strict"}
    return AssessorVerdict(
        assessor=name,
        careless=careless,
        random=care.random,
        manner=next((manner[s] for s, p in care.shift.items() if s and p >= ALARM), ""),
        verdict="careless" if careless >= ALARM else "careful" if careless <= CLEAR else "unclear",
        set_aside=is_set_aside,
        gold=sum(each.gold for each in work),
        gold_wrong=sum(each.gold - each.gold_right for each in work),
        repeats=sum(each.repeats for each in work),
        repeats_same=sum(each.repeats_same for each in work),
        shared=0 if grader is None else grader.shared,
        alpha=float("nan") if grader is None else grader.alpha,
        adjudicated=0 if grader is None else grader.adjudicated,
        overruled=0 if grader is None else grader.overruled,
        surprising=surprise.surprising,
        by_chance=surprise.by_chance,
        comparisons=comparisons,
    )
