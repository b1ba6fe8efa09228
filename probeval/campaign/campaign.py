"""The campaign object: the interface for people, the judging page and programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Names
from pathlib import Path
from typing import Any

from probeval.campaign.creation import prepare_creation
from probeval.campaign.events import (
    Event,
)
from probeval.campaign.exchange import Incoming, export_format, read_incoming
from probeval.campaign.folding import concerns_models
from probeval.campaign.leases import Task, open_pairs
from probeval.campaign.log import Log
from probeval.campaign.owner_decisions import Import
from probeval.campaign.parsing import as_name
from probeval.campaign.runner import ModelRunner
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State
from probeval.campaign.status import Status, status_of
from probeval.campaign.steps import AssessorSteps
from probeval.campaign.store import Store
from probeval.campaign.topics import TopicList, topics_of
from probeval.data.collection import Collection
from probeval.data.files import read_bytes
from probeval.data.formats import write_tasks
from probeval.data.irds import is_dataset
from probeval.data.scale import Scale
from probeval.data.tasks import WriteOptions
from probeval.display import Described, Table, counted
from probeval.scores import Ranking
from probeval.selection import AuditReport, JudgingState

__all__ = ["Campaign"]

OWNER = "owner"


class Campaign(AssessorSteps, Described):
    """A judging campaign: a log of events in a store, and the runs under evaluation.

    Any number of threads and processes may use one campaign. ``next``, ``record`` and the other steps run no model:
    pairs come from the queue of the latest :class:`ModelSnapshot`, which :meth:`refresh` computes separately.

    :meth:`create` makes a new campaign, :meth:`open` opens an existing one.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
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

    def _headline(self) -> str:
        state = self.state
        answers = f", {counted(len(state.counted_answers), 'answer')}" if state.counted_answers else ""
        return f"{state.settings.name}, {len(state.judged):,} pairs judged{answers}"

    def tables(self) -> tuple[Table, ...]:
        """The settings, the progress and the assessors."""
        return self.status().tables()

    @property
    def address(self) -> tuple[str, str]:
        """The store and the name with which another process can open the campaign."""
        return self._log.store.url, self.setup.name

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
            pool=self._candidates(state).pairs,
            now=self._log.clock(),
            snapshot=snapshot,
            behind=0 if snapshot is None else self._behind(snapshot),
            curve=[(point["judged"], point["progress"]) for point in self.curve()],
        )

    def curve(self) -> list[dict[str, Any]]:
        """Time, judged pairs, confidence and progress of every snapshot, in order."""
        return self._log.store.curve(self._log.key)

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

    def _behind(self, snapshot: ModelSnapshot) -> int:
        """The number of events after a snapshot that affect the model."""
        return sum(map(concerns_models, self.log(snapshot.number)))

    def _model_runner(self, state: State) -> ModelRunner:
        inputs: tuple[Event, ...] = (*state.labels, *state.runs)
        if self._runner is None or self._runner[0] != inputs:
            self._runner = inputs, ModelRunner(self._collection(state), card=self._part("card"))
        return self._runner[1]
