"""The steps of assessors and adjudicators: get questions, answer, withdraw, skip, flag, settle. None runs a model."""

from __future__ import annotations

from dataclasses import replace

from probeval.campaign.base import CampaignBase
from probeval.campaign.comparison_decisions import AdjudicateComparison, Answer
from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated
from probeval.campaign.decisions import Comment, Flag, Judge, LeaseNext, Release, Skip, Withdraw
from probeval.campaign.events import (
    Adjudicated,
    Commented,
    Flagged,
    Judged,
    Pair,
    Phase,
    Question,
    Released,
    Skipped,
    Withdrawn,
    comparison,
)
from probeval.campaign.leases import Task, tasks_of
from probeval.campaign.log import Log
from probeval.campaign.owner_decisions import Adjudicate
from probeval.campaign.parsing import as_grade, as_name
from probeval.campaign.questions import next_questions
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State
from probeval.errors import CampaignError

__all__ = ["AssessorSteps"]


class AssessorSteps(CampaignBase):
    """The steps of people who judge.

    Parameters
    ----------
    log
        The open log.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._snapshot: ModelSnapshot | None = None

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The latest results of the model, from this or another process; None before the first.

        Results that cannot be read count as none: they are computed again.
        """
        last = self._snapshot
        row = self._log.store.snapshot(self._log.key, other_than=None if last is None else (last.number, last.time))
        if row is not None:
            self._snapshot = ModelSnapshot.read(row)
        return self._snapshot

    def next(self, assessor: str, *, n: int = 1) -> list[Task]:
        """Up to ``n`` questions for this assessor to answer now: a document to grade, or two to compare.

        Questions that they already hold come first. New ones are then leased to them: those that need another opinion,
        then those that are worth most (``campaign/questions.py``). Empty if nothing is left for them, or if the
        campaign is paused or closed.
        """
        who = as_name(assessor, "an assessor")
        tasks = self._tasks(self.state, who, n)
        return tasks if len(tasks) == n else self._tasks(self._log.advance(self._lease_next(who, n)).state, who, n)

    def record(
        self,
        assessor: str,
        query: str,
        doc: str,
        grade: float,
        *,
        seconds: float | None = None,
        token: str | None = None,
    ) -> Judged:
        """Judge a pair; the judgment is on disk when this returns.

        Judgments are accepted even if another assessor holds the pair, so no work is lost when a lease runs out. A
        second judgment by the same assessor replaces the first. An answer to a gold or a repeated pair is kept, but is
        not a judgment of the campaign.

        Parameters
        ----------
        seconds
            The time spent on it, without breaks; it counts up to the time since the pair was leased.
        token
            Any text that names this request: a request sent twice counts once. All steps take a token.
        """
        judge = self._judge(assessor, query, doc, grade)
        return self._log.advance(replace(judge, seconds=seconds, token=token)).event

    def record_and_next(
        self,
        assessor: str,
        query: str,
        doc: str,
        grade: float,
        *,
        n: int = 1,
        seconds: float | None = None,
        token: str | None = None,
    ) -> tuple[Judged, list[Task]]:
        """Judge a pair and get the next ones, as :meth:`record` and :meth:`next` do, in one write to disk."""
        judge = self._judge(assessor, query, doc, grade)
        following = self._lease_next(judge.by, n)
        outcome = self._log.advance(replace(judge, next=following, seconds=seconds, token=token))
        return outcome.event, self._tasks(outcome.state, judge.by, n)

    def answer(
        self,
        assessor: str,
        query: str,
        left: str,
        right: str,
        choice: str = "",
        *,
        relevant: str = "",
        numbers: tuple[float, float] | None = None,
        comment: str = "",
        seconds: float | None = None,
        token: str | None = None,
    ) -> Compared:
        """Compare two documents of a query; the answer is on disk when this returns.

        As with :meth:`record`, answers are accepted without a lease, a second answer by the same assessor replaces the
        first, and an answer to a gold or a repeated question is not evidence.

        Parameters
        ----------
        left, right
            The documents, on the sides where they were shown.
        choice
            The better one: ``"left"``, ``"right"`` or ``"equal"``; empty if only numbers are given.
        relevant
            ``"both"``, ``"chosen"`` or ``"neither"``; empty if not asked. Neither is any good: ``"equal"`` and
            ``"neither"``.
        numbers
            The numbers of the left and the right document, from 0.
        comment
            A remark.
        seconds, token
            As in :meth:`record`.
        """
        answer = self._answer(assessor, query, left, right, choice, relevant, numbers, comment)
        return self._log.advance(replace(answer, seconds=seconds, token=token)).event

    def answer_and_next(
        self,
        assessor: str,
        query: str,
        left: str,
        right: str,
        choice: str = "",
        *,
        relevant: str = "",
        numbers: tuple[float, float] | None = None,
        comment: str = "",
        n: int = 1,
        seconds: float | None = None,
        token: str | None = None,
    ) -> tuple[Compared, list[Task]]:
        """Compare two documents and get the next questions, as :meth:`answer` and :meth:`next` do, in one write."""
        answer = self._answer(assessor, query, left, right, choice, relevant, numbers, comment)
        following = self._lease_next(answer.by, n)
        outcome = self._log.advance(replace(answer, next=following, seconds=seconds, token=token))
        return outcome.event, self._tasks(outcome.state, answer.by, n)

    def withdraw(self, assessor: str, number: int | None = None, *, token: str | None = None) -> Withdrawn:
        """Withdraw a judgment or an answer made here, by its number, or the assessor's latest; they get it again."""
        return self._log.advance(Withdraw(by=assessor, judgment=number, token=token)).event

    def skip(
        self, assessor: str, query: str, doc: str, other: str = "", *, reason: str = "", token: str | None = None
    ) -> Skipped:
        """Leave a question to others, about one document or two: this assessor does not get it again."""
        question = self._question(query, doc, other)
        return self._log.advance(Skip(by=assessor, question=question, reason=reason, token=token)).event

    def flag(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Flagged:
        """Report a problem with a pair."""
        return self._log.advance(Flag(by=assessor, pair=self._shown_pair(query, doc), reason=reason, token=token)).event

    def comment(self, assessor: str, query: str, doc: str, text: str, *, token: str | None = None) -> Commented:
        """Comment on a pair."""
        return self._log.advance(Comment(by=assessor, pair=self._shown_pair(query, doc), text=text, token=token)).event

    def release(self, assessor: str, query: str, doc: str, other: str = "", *, token: str | None = None) -> Released:
        """Give a question back before its lease runs out."""
        return self._log.advance(Release(by=assessor, question=self._question(query, doc, other), token=token)).event

    def adjudicate(
        self, by: str, query: str, doc: str, grade: float, *, reason: str = "", token: str | None = None
    ) -> Adjudicated:
        """Settle the grade of a pair; it overrides all judgments, earlier and later."""
        pair, value = self._pair(query, doc), as_grade(self.scale, grade)
        return self._log.advance(Adjudicate(by=by, pair=pair, grade=value, reason=reason, token=token)).event

    def adjudicate_comparison(
        self,
        by: str,
        query: str,
        left: str,
        right: str,
        choice: str,
        *,
        relevant: str = "",
        reason: str = "",
        token: str | None = None,
    ) -> ComparisonAdjudicated:
        """Settle which of two documents is better; it overrides all answers about them, earlier and later."""
        self._question(query, left, right)
        settle = AdjudicateComparison(by=by, query=query, left=left, right=right, choice=choice, relevant=relevant)
        return self._log.advance(replace(settle, reason=reason, token=token)).event

    def _judge(self, assessor: str, query: str, doc: str, grade: float) -> Judge:
        return Judge(by=assessor, pair=self._task_pair(query, doc), grade=as_grade(self.scale, grade))

    def _answer(
        self,
        assessor: str,
        query: str,
        left: str,
        right: str,
        choice: str,
        relevant: str,
        numbers: tuple[float, float] | None,
        comment: str,
    ) -> Answer:
        self._question(query, left, right)
        left_number, right_number = numbers or (None, None)
        return Answer(
            by=assessor,
            query=query,
            left=left,
            right=right,
            choice=choice,
            relevant=relevant,
            left_number=left_number,
            right_number=right_number,
            comment=comment,
        )

    def _lease_next(self, assessor: str, n: int) -> LeaseNext:
        snapshot, state = self.snapshot, self._log.known
        questions = next_questions(state, self._candidates(state), snapshot)
        current = snapshot is not None and snapshot.number >= state.pooled
        return LeaseNext(
            assessor=assessor, n=n, questions=questions, picks=snapshot.pick_of if snapshot and current else {}
        )

    def _tasks(self, state: State, assessor: str, n: int) -> list[Task]:
        if state.phase is not Phase.open:
            return []
        queue = None
        if self._snapshot is not None:
            asked = next_questions(state, self._candidates(state), self._snapshot)
            queue = next(iter(asked.queues), None)
        return tasks_of(state, assessor, self._log.clock(), n=n, queue=queue)

    def _question(self, query: str, doc: str, other: str = "") -> Question:
        """The question, if an assessor may get it: some run retrieves its documents, or it is gold."""
        if not other:
            return self._task_pair(query, doc)
        if doc == other:
            raise CampaignError(
                f"Query {query!r}: document {doc!r} cannot be compared with itself. Give two documents."
            )
        question = comparison(query, doc, other)
        if question not in self._log.known.gold_orders:
            self._task_pair(query, doc)
            self._task_pair(query, other)
        return question

    def _shown_pair(self, query: str, doc: str) -> Pair:
        """The pair, if an assessor may see it: they may get it, or the document is in a gold comparison."""
        known = self._log.known.gold_orders
        is_gold = any(question[0] == query and doc in question[1:] for question in known)
        return (query, doc) if is_gold else self._task_pair(query, doc)

    def _task_pair(self, query: str, doc: str) -> Pair:
        """The pair, if an assessor may get it: some run retrieves it, or it is gold."""
        pair = query, doc
        return pair if pair in self._log.known.gold else self._pair(query, doc)

    def _pair(self, query: str, doc: str) -> Pair:
        known = self._candidates(self._log.known)
        if (query, doc) in known.retrieved:
            return query, doc
        return self._candidates(self.state).check(query, doc)  # another process may have added runs
