r"""Answers of assessors as observations of the relevance of a pool's pairs: :math:`u = P\theta`, one row per answer.

- A *choice* observes the difference of the two documents; with two numbers the answer is their *ratio*, as published
  :math:`\log((s_l + 1)/(s_r + 1))`, and the choice, which follows from it, does not count again.
- *Relevant* or not is an answer about each of the two documents.
- *Magnitudes* :math:`\log s_d` of one unit have a level of their own. Orthonormal contrasts within the unit are free of
  it, with independent errors as before.
- Numbers from 0 to 100 observe single documents.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert
from scipy.sparse import csr_array, vstack

from probeval.arrays import Bools, Floats, Ids, Ints
from probeval.data.answers import NO_ANSWER, PairAnswers
from probeval.data.magnitudes import Magnitudes
from probeval.data.pool import Pool
from probeval.errors import DataError, ProbevalWarning
from probeval.relevance.answers.questions import CHOICE, LOG_WIDTH, NARROW, QUESTIONS, ModelledQuestion, OrdinalQuestion
from probeval.relevance.normal import Normal

__all__ = ["AnswerRows", "observe"]

MIDDLE = 50.0  # subtracted from numbers from 0 to 100, to have a mean of about 0
SPREAD = 30.0  # and then divides them, to have an sd of about 1
SHIFTED = 1.0  # added to both numbers of a ratio, as published: a number may be 0


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Answers on one pool; an answer may be several observations."""

    assessors: tuple[str, ...]  # their names
    questions: tuple[ModelledQuestion, ...]  # "equal" is a possible answer only if one is
    question: Ints  # the position of each observation's question in these, shape (n,)
    assessor: Ints  # the same of its assessor
    query: Ints  # the position of its query in the pool
    answer: Floats  # 1, 0 or -1 for ordinal questions, else a number
    rows: csr_array  # P, shape (n, pair)
    given: Ints  # the number of answers of each assessor, as they gave them, shape (assessor,)
    outside: int  # answers about documents or queries outside the pool, which do not count

    def __len__(self) -> int:
        return len(self.answer)

    def identities(self) -> list[tuple[int, str, bytes, int]]:
        """What tells each observation from the others: question, assessor, documents, and which repetition it is."""
        seen: Counter[tuple[int, str, bytes]] = Counter()
        out = []
        for i, (question, who) in enumerate(zip(self.question.tolist(), self.assessor.tolist(), strict=True)):
            columns = self.rows.indices[self.rows.indptr[i] : self.rows.indptr[i + 1]]
            key = (question, self.assessors[who], columns.tobytes())
            out.append((*key, seen[key]))
            seen[key] += 1
        return out


@dataclass(frozen=True, eq=False)
class Part:
    """The observations of one question, assessors by name."""

    question: int
    assessor: Ids
    answer: Floats
    rows: csr_array
    query: Ints


def observe(pool: Pool, answers: PairAnswers | None, magnitudes: Magnitudes | None) -> AnswerRows:
    """Return the answers about a pool's pairs as observations of their relevance.

    Answers about documents or queries outside the pool are counted, with a warning, and left out.
    """
    parts: list[Part] = []
    names: list[str] = []
    inside: list[str] = []
    if answers is not None:
        left, right = pool.locate(answers.query, answers.left), pool.locate(answers.query, answers.right)
        known = (left >= 0) & (right >= 0)
        names += answers.assessor.tolist()
        inside += answers.assessor[known].tolist()
        parts += _of_pairs(pool, answers.take(known), left[known], right[known])
    if magnitudes is not None:
        pair = pool.locate(magnitudes.query, magnitudes.doc)
        names += magnitudes.assessor.tolist()
        inside += magnitudes.assessor[pair >= 0].tolist()
        parts += _of_numbers(pool, magnitudes.take(pair >= 0), pair[pair >= 0])
    outside = len(names) - len(inside)
    if outside:
        warnings.warn(
            f"{outside:,} of {len(names):,} answers are about queries or documents outside the pool, and do not count.",
            ProbevalWarning,
            stacklevel=2,
        )
    assessors = tuple(sorted(set(inside)))
    place, count = {name: i for i, name in enumerate(assessors)}, Counter(inside)
    parts = [part for part in parts if len(part.answer)]
    answer = np.concatenate([np.empty(0), *(part.answer for part in parts)])
    question = np.concatenate([np.empty(0, dtype=np.int64), *(np.full(len(p.answer), p.question) for p in parts)])
    # Without any answer "equal" the width of ties is 0 (docs/theory/preferences.md#answers).
    ties = bool(((question == QUESTIONS.index(CHOICE)) & (answer == 0)).any())
    return AnswerRows(
        assessors=assessors,
        questions=QUESTIONS if ties else tuple(_without_ties(q) if q is CHOICE else q for q in QUESTIONS),
        question=question,
        assessor=np.array([place[name] for part in parts for name in part.assessor], dtype=np.int64),
        query=np.concatenate([np.empty(0, dtype=np.int64), *(part.query for part in parts)]),
        answer=answer,
        rows=csr_array(vstack([csr_array((0, len(pool))), *(part.rows for part in parts)], format="csr")),
        given=np.array([count[name] for name in assessors], dtype=np.int64),
        outside=outside,
    )


def _without_ties(question: ModelledQuestion) -> ModelledQuestion:
    return OrdinalQuestion(
        question.name, question.log_slope, question.shift, Normal(NARROW, 1.0), (*question.fixed, LOG_WIDTH)
    )


def _of_pairs(pool: Pool, answers: PairAnswers, left: Ints, right: Ints) -> list[Part]:
    shape = (len(answers), len(pool))
    every = np.arange(len(answers))
    at_left = csr_array((np.ones(len(answers)), (every, left)), shape=shape)
    at_right = csr_array((np.ones(len(answers)), (every, right)), shape=shape)
    difference = csr_array(at_left - at_right)

    def part(name: str, which: Bools, answer: Floats, rows: csr_array) -> Part:
        number = next(i for i, question in enumerate(QUESTIONS) if question.name == name)
        return Part(number, answers.assessor[which], answer[which], rows[which], pool.query[left[which]])

    # An answer with two numbers counts by their ratio alone, as the choice follows from it.
    numbered = np.asarray(~np.isnan(answers.number).any(axis=1))
    logs = np.log(np.where(np.isnan(answers.number), 0.0, answers.number) + SHIFTED)
    chosen = np.asarray(answers.choice, dtype=float)
    asked = np.asarray(answers.relevant != NO_ANSWER)
    open_ = np.flatnonzero((answers.relevant == 1) & (np.abs(answers.choice) != 1))
    if open_.size:
        row = int(open_[0])
        raise DataError(
            f"query {answers.query[row]!r}: only the chosen one of {answers.left[row]!r} and {answers.right[row]!r} is "
            "relevant, but the answer prefers neither. Answer both or neither, or choose one."
        )
    both = answers.relevant == 2
    relevant = [both | ((answers.relevant == 1) & (answers.choice == side)) for side in (1, -1)]
    return [
        part("choice", np.asarray(answers.is_preference & ~numbered), chosen, difference),
        part("relevant", asked, np.where(relevant[0], 1.0, -1.0), at_left),
        part("relevant", asked, np.where(relevant[1], 1.0, -1.0), at_right),
        part("ratio", numbered, np.asarray(logs[:, 0] - logs[:, 1]), difference),
    ]


def _of_numbers(pool: Pool, numbers: Magnitudes, pair: Ints) -> list[Part]:
    bounded = numbers.is_bounded
    number = {question.name: i for i, question in enumerate(QUESTIONS)}
    out = [
        Part(
            number["s100"],
            numbers.assessor[bounded],
            (numbers.number[bounded] - MIDDLE) / SPREAD,
            csr_array((np.ones(bounded.sum()), (np.arange(bounded.sum()), pair[bounded])), (bounded.sum(), len(pool))),
            pool.query[pair[bounded]],
        )
    ]
    units: dict[tuple[str, str, str], list[int]] = {}
    for i in np.flatnonzero(~bounded).tolist():
        units.setdefault((numbers.assessor[i], numbers.query[i], numbers.unit[i]), []).append(i)
    for (assessor, _, _), mine in units.items():
        # log s = level + lambda theta + noise. The rows of Helmert's matrix are orthonormal and sum to 0: contrasts
        # without the level, with independent errors of the same variance. A single number has none.
        if len(mine) > 1:
            contrast = helmert(len(mine))
            entries = (np.ones(len(mine)), (np.arange(len(mine)), pair[mine]))
            rows = csr_array(contrast @ csr_array(entries, shape=(len(mine), len(pool))))
            name = np.full(len(contrast), assessor, dtype=object)
            query = np.full(len(contrast), pool.query[pair[mine[0]]])
            out.append(Part(number["magnitude"], name, contrast @ np.log(numbers.number[mine]), rows, query))
    return out
