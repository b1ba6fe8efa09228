"""The campaign object: the interface for people, the judging page and programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Names
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from probeval.campaign.base import CampaignBase
from probeval.campaign.creation import prepare_creation
from probeval.campaign.decisions import Comment, Flag, Judge, LeaseNext, Release, Skip, Withdraw
from probeval.campaign.events import (
    Adjudicated,
    Commented,
    Event,
    Flagged,
    GuidelineChanged,
    Judged,
    Pair,
    Phase,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Skipped,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.exchange import Incoming, export_format, read_incoming
from probeval.campaign.leases import Task, open_pairs, tasks_of
from probeval.campaign.log import Log
from probeval.campaign.owner_decisions import (
    Adjudicate,
    AssignTopics,
    ChangeGuideline,
    ChangeQueries,
    ChangeQueryGuidelines,
    Import,
)
from probeval.campaign.parsing import as_grade, as_name, as_owners, as_texts
from probeval.campaign.runner import ModelRunner
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, concerns_models
from probeval.campaign.status import Status, status_of
from probeval.campaign.store import Store
from probeval.campaign.topics import TopicList, topics_of
from probeval.data.collection import Collection
from probeval.data.files import read_bytes
from probeval.data.formats import write_tasks
from probeval.data.irds import is_dataset
from probeval.data.scale import Scale
from probeval.data.tasks import WriteOptions
from probeval.display import Described, View
from probeval.scores import Ranking
from probeval.selection import AuditReport, JudgingState

__all__ = ["Campaign"]

OWNER = "owner"


class Campaign(CampaignBase, Described):
    """A judging campaign: a log of events in a store, and the runs under evaluation.

    Any number of threads and processes may use one campaign. ``next``, ``record`` and the other steps run no model:
    pairs come from the queue of the latest :class:`ModelSnapshot`, which :meth:`refresh` computes separately.

    :meth:`create` makes a new campaign, :meth:`open` opens an existing one.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._snapshot: ModelSnapshot | None = None
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
            The runs and the evidence for models. Its judgments become judgments of the campaign.
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
            by=by,
            now=clock(),
            settings=settings,
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

    def _headline(self) -> str:
        state = self.state
        return f"{state.settings.name}, {len(state.judged):,} pairs judged"

    def views(self) -> tuple[View, ...]:
        """The settings, the progress and the assessors."""
        return self.status().views()

    @property
    def address(self) -> tuple[str, str]:
        """The store and the name with which another process can open the campaign."""
        return self._log.store.url, self.setup.name

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The latest results of the model, from this or another process; None before the first."""
        last = self._snapshot
        row = self._log.store.snapshot(self._log.key, other_than=None if last is None else (last.number, last.time))
        if row is not None:
            self._snapshot = ModelSnapshot.from_row(row)
        return self._snapshot

    @property
    def queries(self) -> Mapping[str, str]:
        """The text of every query; empty if unknown."""
        state = self.state
        return {query: state.texts.get(query, "") for query in self._candidates(state).collection.runs.queries}

    def status(self) -> Status:
        """Progress, assessors, agreement and the remaining work. Runs no model."""
        state, snapshot = self.state, self.snapshot
        return status_of(
            state,
            pool=self._candidates(state).popular.pairs,
            now=self._log.clock(),
            snapshot=snapshot,
            behind=0 if snapshot is None else self._behind(snapshot),
            curve=[(point["judged"], point["progress"]) for point in self.curve()],
        )

    def curve(self) -> list[dict[str, Any]]:
        """Time, judged pairs, confidence and progress of every snapshot, in order."""
        return self._log.store.curve(self._log.key)

    def log(self, after: int = 0) -> list[Event]:
        """The events after this number."""
        return self._log.store.events(self._log.key, after)

    def judging_state(self) -> JudgingState:
        """Relevance, scores and ranking given the judgments so far. Runs the model."""
        state = self.state
        return self._model_runner(state).judging_state(state)

    def evaluate(self) -> Ranking:
        """The ranking given the judgments so far. Runs the model."""
        return self.judging_state().ranking

    def audit(self) -> AuditReport:
        """The model against the pairs that were drawn at random, given the judgments so far. Runs the model."""
        state = self.state
        return self._model_runner(state).audit(state)

    def refresh(self, *, forecast: bool = False) -> ModelSnapshot:
        """Run the model on the judgments so far and keep the results in the store.

        This is slow: run it in a process of its own. While the campaign stays open, each fit starts from the last one.
        With ``forecast`` judging is simulated up to the target too, which takes up to a minute more.
        """
        state, now = self.state, self._log.clock()
        snapshot = self._model_runner(state).snapshot(state, now=now, last=self.snapshot, forecast=forecast)
        self._log.store.add_snapshot(self._log.key, snapshot.to_row())
        self._snapshot = snapshot
        return snapshot

    @property
    def is_behind(self) -> bool:
        """Whether there are judgments that the latest snapshot does not include, or no snapshot at all."""
        snapshot = self.snapshot
        return snapshot is None or snapshot.number < self.state.changed

    def next(self, assessor: str, *, n: int = 1) -> list[Task]:
        """Up to ``n`` pairs for this assessor to judge now.

        Pairs that they already hold come first. New ones are then leased to them: pairs that need another opinion,
        then those that the model proposes, then those that most systems retrieve. Empty if nothing is left for them, or
        if the campaign is paused or closed.
        """
        who = as_name(assessor, "an assessor")
        tasks = self._tasks(self.state, who, n)
        return tasks if len(tasks) == n else self._tasks(self._log.advance(self._lease_next(who, n)).state, who, n)

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

    def withdraw(self, assessor: str, number: int | None = None, *, token: str | None = None) -> Withdrawn:
        """Withdraw a judgment made here, by its number, or the assessor's latest; they get the pair again."""
        return self._log.advance(Withdraw(by=assessor, judgment=number, token=token)).event

    def skip(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Skipped:
        """Leave a pair to others: this assessor does not get it again."""
        return self._log.advance(Skip(by=assessor, pair=self._task_pair(query, doc), reason=reason, token=token)).event

    def flag(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Flagged:
        """Report a problem with a pair."""
        return self._log.advance(Flag(by=assessor, pair=self._task_pair(query, doc), reason=reason, token=token)).event

    def comment(self, assessor: str, query: str, doc: str, text: str, *, token: str | None = None) -> Commented:
        """Comment on a pair."""
        return self._log.advance(Comment(by=assessor, pair=self._task_pair(query, doc), text=text, token=token)).event

    def release(self, assessor: str, query: str, doc: str, *, token: str | None = None) -> Released:
        """Give a pair back before its lease runs out."""
        return self._log.advance(Release(by=assessor, pair=self._task_pair(query, doc), token=token)).event

    def adjudicate(
        self, by: str, query: str, doc: str, grade: float, *, reason: str = "", token: str | None = None
    ) -> Adjudicated:
        """Settle the grade of a pair; it overrides all judgments, earlier and later."""
        pair, value = self._pair(query, doc), as_grade(self.scale, grade)
        return self._log.advance(Adjudicate(by=by, pair=pair, grade=value, reason=reason, token=token)).event

    def change_guideline(self, by: str, text: str, *, token: str | None = None) -> GuidelineChanged:
        """Give assessors a new guideline; earlier judgments keep the version that they were made under."""
        return self._log.advance(ChangeGuideline(by=by, text=text, token=token)).event

    def change_query_guidelines(
        self, by: str, texts: Mapping[str, str], *, token: str | None = None
    ) -> QueryGuidelinesChanged:
        """Give assessors guidelines for single queries, by id; an empty text removes one."""
        ours = as_texts(texts, self._candidates(self.state).collection.runs.queries, may_be_empty=True)
        return self._log.advance(ChangeQueryGuidelines(by=by, texts=ours, token=token)).event

    def change_queries(self, by: str, texts: Mapping[str, str], *, token: str | None = None) -> QueriesChanged:
        """Add or replace query texts, by id; texts of queries that the campaign does not have are ignored."""
        ours = as_texts(texts, self._candidates(self.state).collection.runs.queries)
        return self._log.advance(ChangeQueries(by=by, texts=ours, token=token)).event

    def assign_topics(self, by: str, owners: Mapping[str, str], *, token: str | None = None) -> TopicsAssigned:
        """Give topics to assessors, by query; an empty name leaves a topic to all, other topics stay as they are."""
        ours = as_owners(owners, self._candidates(self.state).collection.runs.queries)
        return self._log.advance(AssignTopics(by=by, owners=ours, token=token)).event

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
        incoming = read_incoming(
            file, file_format, queries=self.queries, scale=self.scale, assessor=assessor, machines=machines, docs=docs
        )
        content, source = (str(file).encode(), str(file)) if is_dataset(file) else (read_bytes(file), file.name)
        digest = hashlib.sha256(content).hexdigest()
        self._log.advance(Import(by=who, incoming=incoming, path=str(file), source=source, digest=digest))
        return incoming

    def export(self, file_format: str = "qrels") -> str:
        """The judgments, or the whole log, as text in one of :func:`probeval.campaign.export_formats`."""
        export = export_format(file_format)
        return export.text(self.state, self.log() if export.needs_log else ())

    def serving(self) -> AbstractContextManager[None]:
        """Hold the server lock of an SQLite store for the duration of the block; a second server is refused."""
        return self._log.store.serving()

    def _judge(self, assessor: str, query: str, doc: str, grade: float) -> Judge:
        return Judge(by=assessor, pair=self._task_pair(query, doc), grade=as_grade(self.scale, grade))

    def _lease_next(self, assessor: str, n: int) -> LeaseNext:
        snapshot, state = self.snapshot, self._log.known
        popular = self._candidates(state).popular
        if snapshot is None:
            return LeaseNext(assessor=assessor, n=n, queues=[popular], picks={})
        picks = snapshot.pick_of if snapshot.number >= state.pooled else {}
        return LeaseNext(assessor=assessor, n=n, queues=[snapshot.topic_queue, popular], picks=picks)

    def _tasks(self, state: State, assessor: str, n: int) -> list[Task]:
        if state.phase is not Phase.open:
            return []
        queue = None if self._snapshot is None else self._snapshot.topic_queue
        return tasks_of(state, assessor, self._log.clock(), n=n, queue=queue)

    def _behind(self, snapshot: ModelSnapshot) -> int:
        """The number of events after a snapshot that affect the model."""
        return sum(map(concerns_models, self.log(snapshot.number)))

    def _model_runner(self, state: State) -> ModelRunner:
        inputs: tuple[Event, ...] = (*state.labels, *state.runs)
        if self._runner is None or self._runner[0] != inputs:
            self._runner = inputs, ModelRunner(self._collection(state), card=self._part("card"))
        return self._runner[1]

    def _task_pair(self, query: str, doc: str) -> Pair:
        """The pair, if an assessor may get it: some run retrieves it, or it is gold."""
        pair = query, doc
        return pair if pair in self._log.known.gold else self._pair(query, doc)

    def _pair(self, query: str, doc: str) -> Pair:
        known = self._candidates(self._log.known)
        if (query, doc) in known.retrieved:
            return query, doc
        return self._candidates(self.state).check(query, doc)  # another process may have added runs
