"""The campaign object: the interface for people, the judging page and programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from collections.abc import Collection as Names
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from probeval.campaign.archive import unpack
from probeval.campaign.creation import checked_settings, prepare_creation
from probeval.campaign.decisions import Comment, Flag, Judge, LeaseNext, Release, Skip, Withdraw
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Commented,
    Event,
    Flagged,
    GuidelineChanged,
    Judged,
    Labelled,
    Pair,
    QueriesChanged,
    Released,
    Skipped,
    Withdrawn,
)
from probeval.campaign.exchange import Incoming, export_format, read_incoming
from probeval.campaign.leases import Task
from probeval.campaign.log import Log
from probeval.campaign.owner_decisions import Adjudicate, ChangeGuideline, ChangeQueries, ChangeSettings, Import
from probeval.campaign.parsing import as_grade, as_name, as_texts
from probeval.campaign.runner import ModelRunner
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import FOR_MODELS, State
from probeval.campaign.status import Status, status_of
from probeval.campaign.store import Store
from probeval.data.collection import Collection
from probeval.data.files import read_bytes
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.display import Described, View
from probeval.errors import CampaignError, did_you_mean
from probeval.scores import Ranking
from probeval.selection import AuditReport, JudgingState

__all__ = ["Campaign"]

OWNER = "owner"


class Campaign(Described):
    """A judging campaign: a log of events in a store, and the runs under evaluation.

    Any number of threads and processes may use one campaign. ``next``, ``record`` and the other steps run no model:
    pairs come from the queue of the latest :class:`ModelSnapshot`, which :meth:`refresh` computes separately.

    :meth:`create` makes a new campaign, :meth:`open` opens an existing one.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._snapshot: ModelSnapshot | None = None
        self._runner: tuple[tuple[Labelled, ...], ModelRunner] | None = None

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
    def state(self) -> State:
        """The current state, with the events that other processes added."""
        return self._log.state

    @property
    def setup(self) -> Setup:
        """The current settings."""
        return self.state.settings

    @property
    def address(self) -> tuple[str, str]:
        """The store and the name with which another process can open the campaign."""
        return self._log.store.url, self.setup.name

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The latest results of the model, from this or another process; None before the first."""
        last = self._snapshot
        row = self._log.store.snapshot(self._log.key, after=-1 if last is None else last.number)
        if row is not None:
            self._snapshot = ModelSnapshot.from_row(row)
        return self._snapshot

    @property
    def queries(self) -> Mapping[str, str]:
        """The text of every query; empty if unknown."""
        texts = self.state.texts
        return {query: texts.get(query, "") for query in self._collection.runs.queries}

    @cached_property
    def scale(self) -> Scale:
        """The scale that assessors judge on; it never changes."""
        return self.setup.scale

    @cached_property
    def pool(self) -> Pool:
        """The pairs to judge."""
        return self._collection.runs.top(self.setup.depth).pool

    @property
    def collection(self) -> Collection:
        """Runs, evidence and the judgments so far, one grade per pair."""
        state = self.state
        labels = [event.part for event in state.labels]
        collection = unpack(state.settings.name, self._part, labels) if labels else self._collection
        return replace(collection, judgments=state.judgments)

    def status(self) -> Status:
        """Progress, assessors, agreement and the remaining work. Runs no model."""
        state, snapshot = self.state, self.snapshot
        return status_of(
            state,
            pool=self._popular,
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
        return self._model_runner().judging_state(self.state)

    def evaluate(self) -> Ranking:
        """The ranking given the judgments so far. Runs the model."""
        return self.judging_state().ranking

    def audit(self) -> AuditReport:
        """The model against the pairs that were drawn at random, given the judgments so far. Runs the model."""
        return self._model_runner().audit(self.state)

    def refresh(self) -> ModelSnapshot:
        """Run the model on the judgments so far and keep the results in the store.

        This is slow: run it in a process of its own. While the campaign stays open, each fit starts from the last one.
        """
        snapshot = self._model_runner().snapshot(self.state, now=self._log.clock(), last=self.snapshot)
        self._log.store.add_snapshot(self._log.key, snapshot.to_row())
        return snapshot

    @property
    def is_behind(self) -> bool:
        """Whether there are judgments that the latest snapshot does not include, or no snapshot at all."""
        snapshot = self.snapshot
        return snapshot is None or snapshot.number < self.state.changed

    def next(self, assessor: str, *, n: int = 1) -> list[Task]:
        """Up to ``n`` pairs for this assessor to judge now.

        Pairs that they already hold come first. New ones are then leased to them: pairs that need another opinion,
        then those that the model proposes, then those that most systems retrieve. Empty if nothing is left for them.
        """
        who = as_name(assessor, "an assessor")
        tasks = self._tasks(self.state, who, n)
        return tasks if len(tasks) == n else self._tasks(self._log.advance(self._lease_next(who, n)).state, who, n)

    def record(self, assessor: str, query: str, doc: str, grade: float, *, token: str | None = None) -> Judged:
        """Judge a pair; the judgment is on disk when this returns.

        Judgments are accepted even if another assessor holds the pair, so no work is lost when a lease runs out. A
        second judgment by the same assessor replaces the first.

        Parameters
        ----------
        token
            Any text that names this request: a request sent twice counts once. All steps take a token.
        """
        return self._log.advance(self._judge(assessor, query, doc, grade, token)).event

    def record_and_next(
        self, assessor: str, query: str, doc: str, grade: float, *, n: int = 1, token: str | None = None
    ) -> tuple[Judged, list[Task]]:
        """Judge a pair and get the next ones, as :meth:`record` and :meth:`next` do, in one write to disk."""
        judge = self._judge(assessor, query, doc, grade, token)
        outcome = self._log.advance(replace(judge, next=self._lease_next(judge.by, n)))
        return outcome.event, self._tasks(outcome.state, judge.by, n)

    def withdraw(self, assessor: str, number: int | None = None, *, token: str | None = None) -> Withdrawn:
        """Withdraw a judgment made here, by its number, or the assessor's latest; they get the pair again."""
        return self._log.advance(Withdraw(by=assessor, judgment=number, token=token)).event

    def skip(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Skipped:
        """Leave a pair to others: this assessor does not get it again."""
        return self._log.advance(Skip(by=assessor, pair=self._pair(query, doc), reason=reason, token=token)).event

    def flag(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Flagged:
        """Report a problem with a pair."""
        return self._log.advance(Flag(by=assessor, pair=self._pair(query, doc), reason=reason, token=token)).event

    def comment(self, assessor: str, query: str, doc: str, text: str, *, token: str | None = None) -> Commented:
        """Comment on a pair."""
        return self._log.advance(Comment(by=assessor, pair=self._pair(query, doc), text=text, token=token)).event

    def release(self, assessor: str, query: str, doc: str, *, token: str | None = None) -> Released:
        """Give a pair back before its lease runs out."""
        return self._log.advance(Release(by=assessor, pair=self._pair(query, doc), token=token)).event

    def adjudicate(
        self, by: str, query: str, doc: str, grade: float, *, reason: str = "", token: str | None = None
    ) -> Adjudicated:
        """Settle the grade of a pair; it overrides all judgments, earlier and later."""
        pair, value = self._pair(query, doc), as_grade(self.scale, grade)
        return self._log.advance(Adjudicate(by=by, pair=pair, grade=value, reason=reason, token=token)).event

    def change_guideline(self, by: str, text: str, *, token: str | None = None) -> GuidelineChanged:
        """Give assessors a new guideline; earlier judgments keep the version that they were made under."""
        return self._log.advance(ChangeGuideline(by=by, text=text, token=token)).event

    def change_queries(self, by: str, texts: Mapping[str, str], *, token: str | None = None) -> QueriesChanged:
        """Add or replace query texts, by id; texts of queries that the campaign does not have are ignored."""
        ours = as_texts(texts, self._collection.runs.queries)
        return self._log.advance(ChangeQueries(by=by, texts=ours, token=token)).event

    def change(self, by: str, **settings: Any) -> Changed:
        """Change settings from now on: policy, goal, stopping rule, exploration, overlap, the length of leases."""
        setup = checked_settings(self.setup.changed(**settings), self._collection)
        return self._log.advance(ChangeSettings(by=by, setup=setup)).event

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
            file,
            file_format,
            queries=self.queries,
            scale=self.scale,
            assessor=assessor,
            machines=machines,
            docs=docs,
        )
        digest = hashlib.sha256(read_bytes(file)).hexdigest()
        self._log.advance(Import(by=who, incoming=incoming, path=str(file), source=file.name, digest=digest))
        return incoming

    def export(self, file_format: str = "qrels") -> str:
        """The judgments, or the whole log, as text in one of :func:`probeval.campaign.export_formats`."""
        export = export_format(file_format)
        return export.text(self.state, self.log() if export.needs_log else ())

    def serving(self) -> AbstractContextManager[None]:
        """Hold the server lock of an SQLite store for the duration of the block; a second server is refused."""
        return self._log.store.serving()

    def _judge(self, assessor: str, query: str, doc: str, grade: float, token: str | None) -> Judge:
        return Judge(by=assessor, pair=self._pair(query, doc), grade=as_grade(self.scale, grade), token=token)

    def _lease_next(self, assessor: str, n: int) -> LeaseNext:
        snapshot = self.snapshot
        queue = () if snapshot is None else snapshot.queue
        picks = {} if snapshot is None else dict(zip(queue, snapshot.picks, strict=False))  # older ones have no picks
        return LeaseNext(assessor=assessor, n=n, proposed=[*queue, *self._popular], picks=picks)

    def _tasks(self, state: State, assessor: str, n: int) -> list[Task]:
        held = state.held_by(assessor, self._log.clock())[:n]
        return [Task(e.query, e.doc, state.texts.get(e.query, ""), e.until) for e in held]

    def _behind(self, snapshot: ModelSnapshot) -> int:
        """The number of events after a snapshot that affect the model."""
        return sum(isinstance(event, FOR_MODELS) for event in self.log(snapshot.number))

    def _model_runner(self) -> ModelRunner:
        labels = self.state.labels
        if self._runner is None or self._runner[0] != labels:
            self._runner = labels, ModelRunner(self.collection, card=self._part("card"))
        return self._runner[1]

    def _pair(self, query: str, doc: str) -> Pair:
        if (query, doc) not in self._retrieved:
            known = self._collection.runs.queries
            if query not in known:
                raise CampaignError(f"No query {query!r} in this campaign.{did_you_mean(str(query), known)}")
            raise CampaignError(f"Query {query!r}: no run retrieves document {doc!r}.")
        return query, doc

    def _part(self, name: str) -> bytes | None:
        return self._log.store.part(self._log.key, name)

    @cached_property
    def _collection(self) -> Collection:
        """Runs and evidence from the creation of the campaign."""
        return unpack(self.setup.name, self._part, [])

    @cached_property
    def _popular(self) -> list[Pair]:
        """The pairs of the pool, by descending number of systems that retrieve them."""
        runs = self._collection.runs.top(self.setup.depth)
        retrieved = np.bincount(runs.pairs[runs.pairs >= 0], minlength=len(runs.pool))
        return [runs.pool.label(int(pair)) for pair in np.argsort(-retrieved, kind="stable")]

    @cached_property
    def _retrieved(self) -> frozenset[Pair]:
        """Every pair that some run has, at any rank."""
        pool = self._collection.runs.pool
        return frozenset(zip(pool.queries[pool.query], pool.docs[pool.doc], strict=True))
