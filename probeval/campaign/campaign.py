"""A campaign, as people, the page and programs use it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Names
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from probeval.campaign.archive import pack_labels, unpack
from probeval.campaign.creation import check_settings, found
from probeval.campaign.decisions import Task, as_events, as_grade, as_name, as_text, as_texts, lease, lease_new
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
from probeval.campaign.log import Log
from probeval.campaign.setup import Setup
from probeval.campaign.snapshot import ModelRunner, ModelSnapshot
from probeval.campaign.state import FOR_MODELS, State
from probeval.campaign.status import Status, status_of
from probeval.campaign.store import Store
from probeval.data.collection import Collection
from probeval.data.files import read_bytes
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import CampaignError, did_you_mean
from probeval.scores import Ranking
from probeval.selection import JudgingState

__all__ = ["Campaign"]

OWNER = "owner"


class Campaign:
    """A judging campaign: a log of events in a store, and the runs that it is about.

    Any number of threads and processes may use one campaign. ``next``, ``record`` and the other steps run no model:
    pairs come from the queue of the last :class:`ModelSnapshot`, which :meth:`refresh` makes, apart.

    :meth:`create` makes one, :meth:`open` opens one.
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
        """A new campaign in a store, which is made where there is none.

        Parameters
        ----------
        store
            The path of an SQLite file, or a PostgreSQL URL.
        collection
            The runs, and what else models use. Judgments in it become judgments of the campaign.
        metric, scale, model, depth
            The measure; the grades, else those of the judgments or the model; the model, else the best that fits;
            the depth of the pool, else as deep as the measure looks.
        name
            A store may hold several campaigns.
        guideline
            What assessors are told.
        queries
            Texts of queries, by id.
        by
            Who creates it.
        clock
            Gives the time in seconds since 1970.
        settings
            Whatever else :class:`Setup` takes.
        """
        foundation = found(
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
        return cls(Log.of(Store(store, create=True), lambda made: made.add(foundation), clock))

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        name: str | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Campaign:
        """A campaign of a store: the only one, or the one of this name."""
        return cls(Log.of(Store(store, read_only=read_only), lambda opened: opened.find(name), clock))

    def close(self) -> None:
        """Let go of the store."""
        self._log.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self.state
        return f"<Campaign {state.settings.name}: {len(state.judged):,} pairs judged>"

    @property
    def state(self) -> State:
        """What the log amounts to now, with what other processes added."""
        return self._log.state

    @property
    def setup(self) -> Setup:
        """The settings that hold."""
        return self.state.settings

    @property
    def address(self) -> tuple[str, str]:
        """The store and the name by which another process can open it."""
        return self._log.store.url, self.setup.name

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """What the model said last, here or in another process; None before the first time."""
        known = self._snapshot
        row = self._log.store.snapshot(self._log.key, after=-1 if known is None else known.number)
        if row is not None:
            self._snapshot = ModelSnapshot.from_row(row)
        return self._snapshot

    @property
    def queries(self) -> Mapping[str, str]:
        """The text of every query, empty where unknown."""
        texts = self.state.texts
        return {query: texts.get(query, "") for query in self._collection.runs.queries}

    @cached_property
    def scale(self) -> Scale:
        """What assessors judge on; it never changes."""
        return self.setup.scale

    @cached_property
    def pool(self) -> Pool:
        """The pairs that the campaign is about."""
        return self._collection.runs.top(self.setup.depth).pool

    @property
    def collection(self) -> Collection:
        """Runs, evidence and the judgments so far, one grade a pair."""
        state = self.state
        labels = [event.part for event in state.labels]
        collection = unpack(state.settings.name, self._part, labels) if labels else self._collection
        return replace(collection, judgments=state.judgments)

    def status(self) -> Status:
        """How it goes: what is done, who did it, how far they agree, what is left. Runs no model."""
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
        """Time, judged pairs, confidence and progress of every snapshot so far."""
        return self._log.store.curve(self._log.key)

    def log(self, after: int = 0) -> list[Event]:
        """The events after a number."""
        return self._log.store.events(self._log.key, after)

    def judging_state(self) -> JudgingState:
        """The judging as it stands: what is believed, how the scores stand. Runs the model."""
        return self._model_runner().judging_state(self.state)

    def evaluate(self) -> Ranking:
        """The ranking as it stands. Runs the model."""
        return self.judging_state().ranking

    def refresh(self) -> ModelSnapshot:
        """Run the model on the judgments so far, and keep what it says for everybody. Slow: do it apart.

        A campaign that stays open starts from its last fit.
        """
        snapshot = self._model_runner().snapshot(self.state, now=self._log.clock())
        self._log.store.add_snapshot(self._log.key, snapshot.to_row())
        return snapshot

    @property
    def is_behind(self) -> bool:
        """Whether the last snapshot does not know of all judgments, or there is none."""
        snapshot = self.snapshot
        return snapshot is None or snapshot.number < self.state.changed

    def next(self, assessor: str, *, n: int = 1) -> list[Task]:
        """The pairs that are this assessor's to judge now, up to ``n``.

        Those that they hold come first; then new ones, which are leased to them: pairs that want another opinion, then
        what the model proposes, then those that most systems retrieve. Empty where nothing is left for them.
        """
        who = as_name(assessor, "an assessor")
        tasks = self._tasks(self.state, who, n)
        if len(tasks) == n:
            return tasks
        proposed = self._proposed()
        state, _ = self._log.advance(lambda state: lease_new(state, who, n, self._log.clock(), proposed))
        return self._tasks(state, who, n)

    def record(self, assessor: str, query: str, doc: str, grade: float, *, token: str | None = None) -> Judged:
        """Judge a pair; it is on disk when this returns.

        A judgment is taken whoever holds the pair: a lease that has run out loses nobody's work. A second one by the
        same assessor replaces their first.

        Parameters
        ----------
        token
            Any text that names this request: sent twice, it counts once. All steps take it.
        """
        return self._judge(assessor, query, doc, grade, token, lambda _, __: [])[0]

    def record_and_next(
        self, assessor: str, query: str, doc: str, grade: float, *, n: int = 1, token: str | None = None
    ) -> tuple[Judged, list[Task]]:
        """Judge a pair and get the next ones, as :meth:`record` and :meth:`next` do, in one write to disk."""
        who, proposed = as_name(assessor, "an assessor"), self._proposed()
        judged, state = self._judge(
            who, query, doc, grade, token, lambda state, _: lease_new(state, who, n, self._log.clock(), proposed)
        )
        return judged, self._tasks(state, who, n)

    def withdraw(self, assessor: str, number: int | None = None, *, token: str | None = None) -> Withdrawn:
        """Take back a judgment made here, by its number, or one's latest; the pair is one's own to judge again."""
        who = as_name(assessor, "an assessor")

        def found(state: State) -> dict[str, Any]:
            mine = [j for said in state.judged.values() for j in said if j.by == who and not j.source]
            fits = [j for j in mine if number in (None, j.number)]
            if not fits:
                raise CampaignError(f"{who!r} has no judgment{'' if number is None else f' {number}'} to take back.")
            last = max(fits, key=lambda judgment: judgment.number)
            return {"query": last.query, "doc": last.doc, "judgment": last.number}

        def again(state: State, event: Withdrawn) -> Sequence[Event]:
            now = self._log.clock()
            if not state.is_open(event.pair, who, now):
                return []
            rest = [held.pair for held in state.held_by(who, now)]  # leased anew, so that the pair comes before them
            return [lease(state, pair, who, now) for pair in (event.pair, *rest)]

        return self._log.step(Withdrawn, who, {}, token=token, more=found, then=again)[0]

    def skip(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Skipped:
        """Leave a pair to others: this assessor does not get it again."""
        said = self._pair(query, doc) | {"reason": as_text(reason, "A reason")}
        return self._log.step(Skipped, assessor, said, token=token)[0]

    def flag(self, assessor: str, query: str, doc: str, *, reason: str = "", token: str | None = None) -> Flagged:
        """Say that something is wrong with a pair."""
        said = self._pair(query, doc) | {"reason": as_text(reason, "A reason")}
        return self._log.step(Flagged, assessor, said, token=token)[0]

    def comment(self, assessor: str, query: str, doc: str, text: str, *, token: str | None = None) -> Commented:
        """Leave a remark on a pair."""
        said = self._pair(query, doc) | {"text": as_text(text, "A comment")}
        return self._log.step(Commented, assessor, said, token=token)[0]

    def release(self, assessor: str, query: str, doc: str, *, token: str | None = None) -> Released:
        """Give a pair back before its lease runs out."""
        return self._log.step(Released, assessor, self._pair(query, doc), token=token)[0]

    def adjudicate(
        self, by: str, query: str, doc: str, grade: float, *, reason: str = "", token: str | None = None
    ) -> Adjudicated:
        """Settle the grade of a pair, whatever assessors said or will say."""
        said = {"grade": as_grade(self.scale, grade), "reason": as_text(reason, "A reason")}
        return self._log.step(Adjudicated, by, self._pair(query, doc) | said, token=token)[0]

    def change_guideline(self, by: str, text: str, *, token: str | None = None) -> GuidelineChanged:
        """Tell assessors something else from now on; judgments keep the version that they were made under."""
        said = {"text": as_text(text, "A guideline")}
        return self._log.step(GuidelineChanged, by, said, token=token, more=lambda s: {"version": _version(s) + 1})[0]

    def change_queries(self, by: str, texts: Mapping[str, str], *, token: str | None = None) -> QueriesChanged:
        """Give texts of queries, by id: new ones, or others than before. Those of other queries are left out."""
        said = {"texts": as_texts(texts, self._collection.runs.queries)}
        return self._log.step(QueriesChanged, by, said, token=token)[0]

    def change(self, by: str, **settings: Any) -> Changed:
        """Change settings from now on: the policy, the goal, the stopping rule, overlap, the length of leases."""
        setup = self.setup.changed(**settings)
        check_settings(setup, self._collection)
        return self._log.step(Changed, by, {"setup": setup})[0]

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
        """Take in a file of judgments or labels, whole or not at all; the same file counts once.

        The parameters are those of :func:`probeval.campaign.read_incoming`.
        """
        file, who, now = Path(path), as_name(by, "whoever imports a file"), self._log.clock()
        found = read_incoming(
            file,
            file_format,
            queries=self.queries,
            scale=self.scale,
            assessor=assessor,
            machines=machines,
            docs=docs,
        )
        token = f"import {hashlib.sha256(read_bytes(file)).hexdigest()}"
        part = f"labels of {token}"
        events = as_events(found, who, now, source=file.name, part=part)

        def decide(state: State) -> Sequence[Event]:
            if token in state.tokens:
                raise CampaignError(f"{file}: imported already, as event {state.tokens[token].number}.")
            return [replace(event, token=token if i == 0 else None) for i, event in enumerate(events)]

        self._log.advance(decide, parts={} if found.labels is None else {part: pack_labels(found.labels)})
        return found

    def export(self, file_format: str = "qrels") -> str:
        """Judgments, or the whole log, as a file's text: one of :func:`probeval.campaign.export_formats`."""
        export = export_format(file_format)
        return export.text(self.state, self.log() if export.needs_log else ())

    def serving(self) -> AbstractContextManager[None]:
        """Be the only server of an SQLite store while the block runs; another is refused."""
        return self._log.store.serving()

    def _judge(
        self,
        who: str,
        query: str,
        doc: str,
        grade: float,
        token: str | None,
        then: Callable[[State, Judged], Sequence[Event]],
    ) -> tuple[Judged, State]:
        said = self._pair(query, doc) | {"grade": as_grade(self.scale, grade)}
        return self._log.step(Judged, who, said, token=token, more=lambda s: {"guideline": _version(s)}, then=then)

    def _tasks(self, state: State, assessor: str, n: int) -> list[Task]:
        held = state.held_by(assessor, self._log.clock())[:n]
        return [Task(e.query, e.doc, state.texts.get(e.query, ""), e.until) for e in held]

    def _proposed(self) -> list[Pair]:
        snapshot = self.snapshot
        return list(chain(() if snapshot is None else snapshot.queue, self._popular))

    def _behind(self, snapshot: ModelSnapshot) -> int:
        """How many events an snapshot should have known of."""
        new = self.log(snapshot.number)
        return sum(isinstance(event, FOR_MODELS) for event in new)

    def _model_runner(self) -> ModelRunner:
        labels = self.state.labels
        if self._runner is None or self._runner[0] != labels:
            self._runner = labels, ModelRunner(self.collection, card=self._part("card"))
        return self._runner[1]

    def _pair(self, query: str, doc: str) -> dict[str, str]:
        if (query, doc) not in self._retrieved:
            known = self._collection.runs.queries
            if query not in known:
                raise CampaignError(f"No query {query!r} in this campaign.{did_you_mean(str(query), known)}")
            raise CampaignError(f"Query {query!r}: no run retrieves document {doc!r}.")
        return {"query": query, "doc": doc}

    def _part(self, name: str) -> bytes | None:
        return self._log.store.part(self._log.key, name)

    @cached_property
    def _collection(self) -> Collection:
        """Runs and evidence as they were at the start."""
        return unpack(self.setup.name, self._part, [])

    @cached_property
    def _popular(self) -> list[Pair]:
        """The pairs of the pool, those that most systems retrieve first."""
        runs = self._collection.runs.top(self.setup.depth)
        retrieved = np.bincount(runs.pairs[runs.pairs >= 0], minlength=len(runs.pool))
        return [runs.pool.label(int(pair)) for pair in np.argsort(-retrieved, kind="stable")]

    @cached_property
    def _retrieved(self) -> frozenset[Pair]:
        """Every pair that some run has, at whatever rank."""
        pool = self._collection.runs.pool
        return frozenset(zip(pool.queries[pool.query], pool.docs[pool.doc], strict=True))


def _version(state: State) -> int:
    return 0 if state.guideline is None else state.guideline.version
