"""The campaign object: the interface for people, the judging page and programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Container, Mapping, Sequence
from collections.abc import Collection as Names
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from probeval.campaign.archive import pack_labels, unpack
from probeval.campaign.candidates import Candidates, Material
from probeval.campaign.changes import (
    AddRuns,
    AssignTopics,
    ChangeGold,
    ChangeGuideline,
    ChangePhase,
    ChangeQueries,
    ChangeQueryGuidelines,
    ChangeSettings,
    Import,
    PutAside,
    Restore,
)
from probeval.campaign.creation import prepare_creation, prepare_lists
from probeval.campaign.decisions import Answer, Comment, Flag, LeaseNext, Release, Settle, Skip, Withdraw
from probeval.campaign.events import (
    Answered,
    Changed,
    Commented,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Restored,
    RunsAdded,
    SetAside,
    Settled,
    Skipped,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.exchange import Incoming, export_format, list_answers, read_incoming
from probeval.campaign.gold import GoldList, checked_gold, gold_of
from probeval.campaign.leases import Task, open_pairs, tasks_of
from probeval.campaign.log import Log, Store
from probeval.campaign.parsing import as_name, as_owners, as_texts
from probeval.campaign.people import People
from probeval.campaign.questions import GRADE, Question, as_question, kind_of
from probeval.campaign.runner import ModelRunner, forecast_is_due
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot, TargetForecast
from probeval.campaign.state import State, concerns_models
from probeval.campaign.statement import Statement, statement_of
from probeval.campaign.status import Status, status_of
from probeval.campaign.topics import TopicList, topics_of
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.files import read_bytes
from probeval.data.formats import write_tasks
from probeval.data.irds import is_dataset
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.tasks import WriteOptions
from probeval.display import Described, Table, counted
from probeval.errors import CampaignError
from probeval.satisfaction import ListAnswers, ListQuestions
from probeval.scores import Ranking
from probeval.selection import AnswerPrices, AuditReport, JudgingState, next_request

__all__ = ["Campaign"]

OWNER = "owner"


class Campaign(Described):
    """A judging campaign: a log of events in a store, and what it asks about.

    Any number of threads and processes may use one campaign. ``next``, ``answer`` and the other steps run no model:
    questions come from the queue of the latest :class:`ModelSnapshot`, which :meth:`refresh` computes separately.

    :meth:`create` makes a new campaign, :meth:`create_lists` one that asks users about lists, :meth:`open` opens an
    existing one.

    Parameters
    ----------
    log
        The open log.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._kept: tuple[object, Material] | None = None
        self._runner: tuple[tuple[Event, ...], ModelRunner] | None = None

    @classmethod
    def create(
        cls,
        store: str | Path,
        collection: Collection,
        *,
        metric: str,
        scale: Scale | None = None,
        model: str | None = None,
        depth: int | None = None,
        name: str = "campaign",
        guideline: str = "",
        queries: Mapping[str, str] | None = None,
        query_guidelines: Mapping[str, str] | None = None,
        by: str = OWNER,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Campaign:
        """Create a campaign in a store; the store is created if it does not exist.

        Parameters
        ----------
        store
            The path of an SQLite file, or a PostgreSQL URL.
        collection
            The runs and the evidence for models. Its judgments become judgments of the campaign, and so do its answers
            about two documents.
        metric
            The measure.
        scale
            The grades; by default the scale of the judgments or the model.
        model
            The relevance model; by default the best that fits the collection.
        depth
            The depth of the pool; by default the cutoff of the measure.
        name
            The name of the campaign; a store may hold several.
        guideline
            Instructions for assessors.
        queries
            Query texts, by id.
        query_guidelines
            Guidelines for single queries, such as the narratives of topics, by id.
        by
            The creator's name.
        clock
            Gives the time in seconds since 1970.
        settings
            Other settings of :class:`Setup`.
        """
        creation = prepare_creation(
            collection,
            metric=metric,
            scale=scale,
            model=model,
            depth=depth,
            name=name,
            guideline=guideline,
            queries=queries,
            query_guidelines=query_guidelines,
            by=by,
            now=clock(),
            settings=settings,
        )
        return cls(Log.create(Store(store, create=True), creation, clock))

    @classmethod
    def create_lists(
        cls,
        store: str | Path,
        chosen: ListQuestions,
        *,
        name: str = "study",
        guideline: str = "",
        queries: Mapping[str, str] | None = None,
        by: str = OWNER,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Campaign:
        """Create a campaign that asks users which of two lists is better: a study with users.

        Parameters
        ----------
        store
            The path of an SQLite file, or a PostgreSQL URL.
        chosen
            The questions: see :func:`probeval.satisfaction.choose_lists`.
        name, guideline, queries, by, clock
            As in :meth:`create`.
        settings
            Other settings of :class:`Setup`, such as ``most`` and ``seed``.
        """
        creation = prepare_lists(
            chosen, name=name, guideline=guideline, queries=queries, by=by, now=clock(), settings=settings
        )
        return cls(Log.create(Store(store, create=True), creation, clock))

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        name: str | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Campaign:
        """Open the campaign with this name, or the only one of the store."""
        return cls(Log.open(Store(store, read_only=read_only), name, clock))

    def close(self) -> None:
        """Close the store."""
        self._log.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The state

    def _headline(self) -> str:
        state = self.state
        answers = f", {counted(len(state.counted_answers), 'answer')}" if state.counted_answers else ""
        return f"{state.settings.name}, {len(state.judged):,} pairs judged{answers}"

    def tables(self) -> tuple[Table, ...]:
        """The settings, the progress and the assessors."""
        return self.status().tables()

    @property
    def state(self) -> State:
        """The current state, with the events that other processes added."""
        return self._log.state

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The latest results of the model, from this or another process; None before the first."""
        return None if not self._log.state.number else self._log.snapshot

    @property
    def known_state(self) -> State:
        """The state as this process read it last, without a look at the store."""
        return self._log.known

    @property
    def people(self) -> People:
        """Those who may sign in to the page."""
        return People(self._log)

    def log(self, after: int = 0) -> list[Event]:
        """The events after this number."""
        return self._log.store.events(self._log.key, after)

    def page_secret(self) -> str:
        """The secret of the page of a person who needs no session; it lasts as long as the store."""
        return self._log.store.page_secret(self._log.key)

    def serving(self) -> AbstractContextManager[None]:
        """Hold the server lock of an SQLite store for the duration of the block; a second server is refused."""
        return self._log.store.serving()

    @property
    def setup(self) -> Setup:
        """The current settings."""
        return self.state.settings

    @cached_property
    def scale(self) -> Scale:
        """The scale that assessors judge on; it never changes."""
        return self.setup.scale

    @property
    def pool(self) -> Pool:
        """The pairs to judge. It grows with late runs and with the depth."""
        return self._candidates(self.state).pool

    @property
    def docs(self) -> frozenset[str]:
        """The documents that assessors may see: those that it asks about, and of gold questions."""
        state = self.state
        return self._material(state).docs.union(doc for question in state.gold for doc in question.documents)

    @property
    def material(self) -> Material:
        """What is asked about."""
        return self._material(self.state)

    @property
    def known_material(self) -> Material:
        """What is asked about, by the state as this process read it last."""
        return self._material(self._log.known)

    @property
    def has_runs(self) -> bool:
        """Whether it asks about documents of runs, which a model evaluates."""
        return isinstance(self.known_material, Candidates)

    @property
    def collection(self) -> Collection:
        """Runs, evidence, the judgments so far, one grade per pair, and the answers about two documents."""
        return self._collection(self.state)

    def _collection(self, state: State) -> Collection:
        labels, late = [event.part for event in state.labels], [event.part for event in state.runs]
        collection = self._candidates(state).collection
        if labels:
            collection = unpack(state.settings.name, self._part, labels=labels, late=late)
        return replace(collection, judgments=state.judgments, answers=state.pair_answers)

    def _material(self, state: State) -> Material:
        """What is asked about, which changes with late runs, the depth, and what is asked for."""
        setup = state.settings
        known = state.runs, setup.depth, setup.ask
        if self._kept is None or self._kept[0] != known:
            own = (kind.material(self._part) for kind in setup.kinds)
            late = [event.part for event in state.runs]
            found = next((material for material in own if material is not None), None)
            self._kept = known, found or Candidates(unpack(setup.name, self._part, late=late), setup.depth)
        return self._kept[1]

    def _candidates(self, state: State) -> Candidates:
        """The documents of the runs; an error if it asks about something else."""
        found = self._material(state)
        if not isinstance(found, Candidates):
            raise CampaignError(f"{state.settings.name!r} asks about {state.settings.ask}: it has no runs to evaluate.")
        return found

    def _part(self, name: str) -> bytes | None:
        return self._log.store.part(self._log.key, name)

    # Steps of assessors and adjudicators

    def next(self, assessor: str, *, n: int = 1) -> list[Task]:
        """Up to ``n`` questions for this assessor to answer now: a document to grade, two to compare, or others.

        Questions that they already hold come first. New ones are then leased to them: those that need another opinion,
        then those that are worth most (``campaign/candidates.py``). Empty if nothing is left for them, or if the
        campaign is paused or closed.
        """
        who = as_name(assessor, "an assessor")
        tasks = self._tasks(self.state, who, n)
        return tasks if len(tasks) == n else self._tasks(self._log.advance(self._lease_next(who, n)).state, who, n)

    def answer(
        self,
        assessor: str,
        question: Question | Sequence[str],
        *,
        shown: Sequence[str] | None = None,
        comment: str = "",
        seconds: float | None = None,
        token: str | None = None,
        **values: Any,
    ) -> Answered:
        """Answer a question; the answer is on disk when this returns.

        Answers are accepted even if another assessor holds the question, so no work is lost when a lease runs out. A
        second answer by the same assessor replaces the first. An answer to a gold or a repeated question is kept, but
        is not evidence.

        Parameters
        ----------
        assessor
            Their name.
        question
            The question of a task; or a query and a document to grade, or a query and two documents to compare.
        shown
            The documents in the places where they were shown. By default those of a query and documents are as given,
            and those of a task's question as the assessor holds it.
        comment
            A remark.
        seconds
            The time spent on it, without breaks; it counts up to the time since the question was leased.
        token
            Any text that names this request: a request sent twice counts once. All steps take a token.
        values
            The answer. Of a document, its ``grade``. Of two documents, the ``choice`` (``"left"``, ``"right"`` or
            ``"equal"``), and perhaps which are ``relevant`` (``"both"``, ``"chosen"`` or ``"neither"``), or the
            ``numbers`` of both. Of two lists, the ``choice`` (or ``"same"``), and whether it is ``good``.
        """
        step = self._answer(assessor, question, shown, values)
        return self._log.advance(replace(step, comment=comment, seconds=seconds, token=token)).event

    def answer_and_next(
        self,
        assessor: str,
        question: Question | Sequence[str],
        *,
        n: int = 1,
        shown: Sequence[str] | None = None,
        comment: str = "",
        seconds: float | None = None,
        token: str | None = None,
        **values: Any,
    ) -> tuple[Answered, list[Task]]:
        """Answer a question and get the next ones, as :meth:`answer` and :meth:`next` do, in one write to disk."""
        step = self._answer(assessor, question, shown, values)
        following = self._lease_next(step.by, n)
        outcome = self._log.advance(replace(step, next=following, comment=comment, seconds=seconds, token=token))
        return outcome.event, self._tasks(outcome.state, step.by, n)

    def settle(
        self,
        by: str,
        question: Question | Sequence[str],
        *,
        shown: Sequence[str] | None = None,
        reason: str = "",
        token: str | None = None,
        **values: Any,
    ) -> Settled:
        """Settle the answer to a question; it overrides all answers, earlier and later.

        The parameters are those of :meth:`answer`.
        """
        asked = self._question(question)
        kind = kind_of(asked.kind)
        if kind.gold_counts:  # what no run retrieves has no answer to settle, even if it is known
            self._material(self._log.known).check(asked)
        given = kind.settled_values(values, self._log.known.settings)
        settle = Settle(by=by, question=asked, **self._place(asked, question, shown), values=given, reason=reason)
        return self._log.advance(replace(settle, token=token)).event

    def withdraw(self, assessor: str, number: int | None = None, *, token: str | None = None) -> Withdrawn:
        """Withdraw an answer given here, by its number, or the assessor's latest; they get the question again."""
        return self._log.advance(Withdraw(by=assessor, judgment=number, token=token)).event

    def skip(
        self, assessor: str, question: Question | Sequence[str], *, reason: str = "", token: str | None = None
    ) -> Skipped:
        """Leave a question to others: this assessor does not get it again."""
        asked = self._question(question)
        return self._log.advance(Skip(by=assessor, question=asked, reason=reason, token=token)).event

    def release(self, assessor: str, question: Question | Sequence[str], *, token: str | None = None) -> Released:
        """Give a question back before its lease runs out."""
        return self._log.advance(Release(by=assessor, question=self._question(question), token=token)).event

    def flag(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Flagged:
        """Report a problem with a document."""
        self._check_shown(query, doc)
        return self._log.advance(Flag(by=assessor, pair=(query, doc), reason=reason, token=token)).event

    def comment(self, assessor: str, query: str, doc: str, text: str, *, token: str | None = None) -> Commented:
        """Comment on a document."""
        self._check_shown(query, doc)
        return self._log.advance(Comment(by=assessor, pair=(query, doc), text=text, token=token)).event

    def _answer(
        self, assessor: str, question: Question | Sequence[str], shown: Sequence[str] | None, values: Mapping[str, Any]
    ) -> Answer:
        asked = self._question(question)
        given = kind_of(asked.kind).values(values, self._log.known.settings)
        return Answer(by=assessor, question=asked, **self._place(asked, question, shown), values=given)

    def _place(self, asked: Question, given: Question | Sequence[str], shown: Sequence[str] | None) -> dict[str, Any]:
        """The query of a question, and its documents as they were shown; none if this is not given."""
        documents = tuple(shown or (() if isinstance(given, Question) else given[1:]))
        if documents and sorted(documents) != sorted(asked.documents):
            raise CampaignError(f"The documents of this question are {', '.join(asked.documents)}.")
        return {"query": self._material(self._log.known).query_of(asked), "documents": documents}

    def _question(self, given: Question | Sequence[str]) -> Question:
        """The question, if an assessor may get it: it is about the campaign's documents, or gold."""
        question = as_question(given)
        if question in self._log.known.gold:
            return question
        try:
            return self._material(self._log.known).check(question)
        except CampaignError:
            return self._material(self.state).check(question)  # another process may have added runs

    def _check_shown(self, query: str, doc: str) -> None:
        """Raise an error unless an assessor may see the document: that of some run, or of a gold question."""
        if not any(query == gold.query and doc in gold.documents for gold in self._log.known.gold):
            self._question((query, doc))

    def _lease_next(self, assessor: str, n: int) -> LeaseNext:
        snapshot = self._log.snapshot
        current = snapshot is not None and snapshot.number >= self._log.known.pooled
        return LeaseNext(
            assessor=assessor,
            n=n,
            questions=lambda state: self._material(state).queues(state, snapshot, assessor),
            picks=snapshot.pick_of if snapshot and current else {},
        )

    def _tasks(self, state: State, assessor: str, n: int) -> list[Task]:
        if state.phase is not Phase.open:
            return []
        material, queue = self._material(state), None
        if self._log.snapshot is not None:
            queue = next(iter(material.queues(state, self._log.snapshot, assessor).queues), None)
        return tasks_of(state, assessor, self._log.clock(), n=n, queue=queue, query_of=material.query_of)

    # Changes by the owner

    def change(self, by: str, **settings: Any) -> Changed:
        """Change settings from now on: measure, depth, policy, goal, stopping rule, exploration, overlap, leases.

        The name and the scale stay. The model uses the new settings at its next update, also in a running server.
        """
        collection = self._candidates(self.state).collection
        return self._log.advance(ChangeSettings(by=by, settings=settings, collection=collection)).event

    def change_phase(self, by: str, phase: Phase | str, *, reason: str = "", token: str | None = None) -> PhaseChanged:
        """Pause (``"paused"``), close (``"closed"``), resume or reopen (``"open"``) the campaign.

        A paused campaign gives assessors no pairs and takes nothing from them. A closed one does not change at all,
        except for its guideline, query texts and people, until it is reopened.
        """
        return self._log.advance(ChangePhase(by=by, phase=Phase(phase), reason=reason, token=token)).event

    def set_aside(self, by: str, assessor: str, *, reason: str = "", token: str | None = None) -> SetAside:
        """Set all answers of a person aside: none counts, earlier or later ones, and their questions open again.

        They get no more questions. Their answers stay in the log, and in exports with the purpose ``aside``.
        """
        return self._log.advance(PutAside(by=by, assessor=assessor, reason=reason, token=token)).event

    def restore(self, by: str, assessor: str, *, reason: str = "", token: str | None = None) -> Restored:
        """Let the answers of a person, which were set aside, count again."""
        return self._log.advance(Restore(by=by, assessor=assessor, reason=reason, token=token)).event

    def add_runs(self, by: str, runs: Runs, *, source: str = "") -> RunsAdded:
        """Add late runs: the pool grows, and all judgments stay.

        Lists of queries that the campaign does not have are ignored. New pairs can be judged at once, the model and the
        queue use them from the next update.
        """
        who, state = as_name(by, "the person who adds runs"), self.state
        before, depth = self._candidates(state).collection.runs, state.settings.depth
        gained = len(before.joined(runs).top(depth).pool) - len(before.top(depth).pool)
        return self._log.advance(AddRuns(by=who, before=before, runs=runs, source=source, pairs=gained)).event

    def change_gold(self, by: str, known: Any, *, kind: str = GRADE, token: str | None = None) -> GoldChanged:
        """Replace the gold questions of a kind, whose answers are known: by those of a file, or of data.

        The queries must be those of the campaign; documents need not be in a run. If a run retrieves a pair with a
        known grade, the grade is settled: it counts as if it were adjudicated. Known answers to other questions check
        the work of assessors, and are not evidence.

        Parameters
        ----------
        by
            The owner.
        known
            A file of judgments, or grades by query and document. Of comparisons, a table of query, better and worse, or
            the better and the worse document of each, by query.
        kind
            The kind of question: ``grade`` or ``comparison``.
        token
            As in :meth:`answer`.
        """
        state = self.state
        values = checked_gold(kind_of(kind).as_gold(known, state.settings), self._material(state).queries)
        retrieved = self._candidates(state).retrieved
        return self._log.advance(ChangeGold(by=by, asks=kind, values=values, retrieved=retrieved, token=token)).event

    def change_guideline(self, by: str, text: str, *, token: str | None = None) -> GuidelineChanged:
        """Give assessors a new guideline; earlier judgments keep the version that they were made under."""
        return self._log.advance(ChangeGuideline(by=by, text=text, token=token)).event

    def change_query_guidelines(
        self, by: str, texts: Mapping[str, str], *, token: str | None = None
    ) -> QueryGuidelinesChanged:
        """Give assessors guidelines for single queries, by id; an empty text removes one."""
        ours = as_texts(texts, self._material(self.state).queries, may_be_empty=True)
        return self._log.advance(ChangeQueryGuidelines(by=by, texts=ours, token=token)).event

    def change_queries(self, by: str, texts: Mapping[str, str], *, token: str | None = None) -> QueriesChanged:
        """Add or replace query texts, by id; texts of queries that the campaign does not have are ignored."""
        ours = as_texts(texts, self._material(self.state).queries)
        return self._log.advance(ChangeQueries(by=by, texts=ours, token=token)).event

    def assign_topics(self, by: str, owners: Mapping[str, str], *, token: str | None = None) -> TopicsAssigned:
        """Give topics to assessors, by query; an empty name leaves a topic to all, other topics stay as they are."""
        ours = as_owners(owners, self._material(self.state).queries)
        return self._log.advance(AssignTopics(by=by, owners=ours, token=token)).event

    # Results, files

    @property
    def address(self) -> tuple[str, str]:
        """The store and the name with which another process can open the campaign."""
        return self._log.store.url, self.setup.name

    @property
    def queries(self) -> Mapping[str, str]:
        """The text of every query; empty if unknown."""
        state = self.state
        return {query: state.texts.get(query, "") for query in self._material(state).queries}

    def gold(self) -> GoldList:
        """The gold questions, and how assessors answered them."""
        state = self.state
        return gold_of(state, self._candidates(state).retrieved)

    def list_answers(self) -> ListAnswers:
        """All answers about lists, in the order in which they were given."""
        state = self.state
        return list_answers(state, self._material(state))

    def status(self) -> Status:
        """Progress, assessors, agreement and the remaining work. Runs no model."""
        state = self.state
        snapshot = self._log.snapshot
        return status_of(
            state,
            material=self._material(state),
            now=self._log.clock(),
            snapshot=snapshot,
            missing=[] if snapshot is None else self._missing(snapshot),
            curve=[(point["judged"], point["progress"]) for point in self.curve() if point["number"] >= state.ruled],
        )

    def curve(self) -> list[dict[str, Any]]:
        """Time, judged pairs, confidence and progress of every snapshot since the goal or the runs last changed."""
        aimed = self.state.aimed
        return [point for point in self._log.store.curve(self._log.key) if point["number"] >= aimed]

    def judging_state(self) -> JudgingState:
        """Relevance, scores and ranking given the judgments so far. Runs the model."""
        return self._figures_state(self.state)

    def _figures_state(self, state: State) -> JudgingState:
        snapshot = self._log.snapshot
        surprises = () if snapshot is None else snapshot.surprise
        return self._model_runner(state).figures_state(state, surprises)

    def evaluate(self) -> Ranking:
        """The ranking given the judgments so far. Runs the model."""
        return self.judging_state().ranking

    def audit(self) -> AuditReport:
        """The model against the pairs that were drawn at random, given the judgments so far. Runs the model."""
        state = self.state
        return self._model_runner(state).audit(state)

    def digest(self, number: int) -> str:
        """The digest of an event, by its number. It depends on all events before it: published, it commits to them."""
        return self._log.store.digest(self._log.key, number)

    def statement(self, *, appeal: str = "", level: float = 0.95) -> Statement:
        """What to publish for participants: the rule as registered, changes, the stop, what is decided. Runs the model.

        Parameters
        ----------
        appeal
            How participants appeal; by default a general text.
        level
            The confidence from which on a comparison is decided.
        """
        state = self.state
        if not self.has_runs:
            raise CampaignError(f"{self.setup.name!r} compares no systems: there is nothing to state.")
        events = [event for event in self.log() if event.number <= state.number]
        runner = self._model_runner(state)
        return statement_of(
            self.status(),
            self._figures_state(state),
            events,
            audit=runner.audit(state),
            digests=(self.digest(1), self.digest(state.number)),
            appeal=appeal,
            level=level,
        )

    def refresh(self, *, fresh: bool = False) -> ModelSnapshot:
        """Run the model on the judgments so far and keep the results in the store.

        This is slow: run it in a process of its own. While the campaign stays open, each fit starts from the last one
        unless it is to be ``fresh``: the results are then those of a new process, to the last decimal.
        """
        state, now = self.state, self._log.clock()
        snapshot = self._model_runner(state).snapshot(state, now=now, last=self._log.snapshot, fresh=fresh)
        latest = self.snapshot  # another process may have made a forecast in the meantime
        self._log.add_snapshot(snapshot if latest is None else replace(snapshot, forecast=latest.forecast))
        return self._log.snapshot or snapshot

    def forecast(self) -> TargetForecast | None:
        """Simulate judging up to the target confidence of the stopping rule, and keep the result with the snapshot.

        It takes up to a minute. None without a target confidence, and where more than grades are asked for.
        """
        state = self.state
        found = self._model_runner(state).forecast(state)
        latest = self.snapshot or self.refresh()
        if found is not None:
            self._log.add_snapshot(replace(latest, time=self._log.clock(), forecast=found))
        return found

    @property
    def forecast_is_due(self) -> bool:
        """Whether a forecast is worth making: there is none for this target, or many judgments came since."""
        state, snapshot = self.state, self._log.snapshot
        return self.has_runs and snapshot is not None and forecast_is_due(snapshot, state)

    @property
    def is_behind(self) -> bool:
        """Whether the model has not run on all judgments; false if what is asked about has no model."""
        state = self.state
        snapshot = self._log.snapshot
        return self.has_runs and (snapshot is None or snapshot.number < state.changed)

    def hand_out(
        self, tasks: Sequence[Task], tool: str, folder: str | Path, *, docs: Mapping[str, str] | None = None
    ) -> list[Path]:
        """Write leased pairs as the files that a judging tool takes; return their paths. Runs the model.

        Parameters
        ----------
        tasks
            Pairs from :meth:`next`. Their judgments are imported under the names of assessors in the tool.
        tool
            One of :func:`probeval.data.task_formats`: ``label-studio`` or ``quepid``.
        folder
            Where the files are written.
        docs
            Document texts by id; without them, assessors see ids.
        """
        options = WriteOptions(queries=self.queries, docs=docs, scale=self.scale, name=self.setup.name)
        return write_tasks(Path(folder), tool, open_pairs(tasks, self.judging_state()), options)

    def topics(self) -> TopicList:
        """Every topic: its owner, who judges it now, and how much of it is judged."""
        return topics_of(self.state, self.pool, self._log.clock())

    def import_file(
        self,
        by: str,
        path: str | Path,
        *,
        file_format: str | None = None,
        assessor: str | None = None,
        machines: Names[str] = (),
        docs: Mapping[str, str] | None = None,
    ) -> Incoming:
        """Import a file of judgments or labels, all of it or nothing; the same file cannot be imported twice.

        The parameters are those of :func:`probeval.campaign.read_incoming`.
        """
        file, who = Path(path), as_name(by, "the importer of a file")
        self._candidates(self.state)
        incoming = read_incoming(
            file, file_format, queries=self.queries, scale=self.scale, assessor=assessor, machines=machines, docs=docs
        )
        content, source = (str(file).encode(), str(file)) if is_dataset(file) else (read_bytes(file), file.name)
        digest = hashlib.sha256(content).hexdigest()
        self._log.advance(Import(by=who, incoming=incoming, path=str(file), source=source, digest=digest))
        return incoming

    def request_labels(
        self, prices: AnswerPrices, machine: str, *, n: int, without: Container[tuple[str, str]] = ()
    ) -> tuple[list[tuple[str, str]], str]:
        """Return the pairs that a machine should label now, and why; none if people are worth more for their price.

        Parameters
        ----------
        prices
            What a judgment and a label of the machine cost.
        machine
            The machine, by the name of its column of labels.
        n
            The judgments that the labels may cost as much as.
        without
            Pairs that it cannot label.
        """
        state = self.state
        judged = self._model_runner(state).judging_state(state)
        pool = judged.judging.pool
        pairs = [pool.label(pair) for pair in range(len(pool))]
        can = np.array([pair not in without for pair in pairs], dtype=bool)
        request = next_request(judged, prices, n, available={machine: can})
        chosen = [] if request.is_for_people else [pairs[at] for at in request.batch.pairs]
        return chosen, " ".join(request.sentences())

    def add_labels(self, by: str, labels: LabelTable, *, source: str) -> None:
        """Add labels by a machine; ``source`` says where they are from. The same table cannot be added twice."""
        who, digest = as_name(by, "who adds labels"), hashlib.sha256(pack_labels(labels)).hexdigest()
        self._log.advance(Import(by=who, incoming=Incoming(labels=labels), path=source, source=source, digest=digest))

    def export(self, file_format: str = "qrels") -> str:
        """The judgments, or the whole log, as text in one of :func:`probeval.campaign.export_formats`."""
        export, state = export_format(file_format), self.state
        return export.text(state, self.log() if export.needs_log else (), self._material(state))

    def _missing(self, snapshot: ModelSnapshot) -> list[Event]:
        """The events after a snapshot that affect the model."""
        return [event for event in self.log(snapshot.number) if concerns_models(event)]

    def _model_runner(self, state: State) -> ModelRunner:
        inputs: tuple[Event, ...] = (*state.labels, *state.runs)
        if self._runner is None or self._runner[0] != inputs:
            self._runner = inputs, ModelRunner(self._collection(state), card=self._part("card"))
        return self._runner[1]
