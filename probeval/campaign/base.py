"""What a campaign is at a moment, and how its owner changes it: settings, phase, late runs, people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from probeval.campaign.archive import unpack
from probeval.campaign.candidates import Candidates
from probeval.campaign.comparison_decisions import ChangeGoldOrders
from probeval.campaign.comparison_events import GoldOrdersChanged
from probeval.campaign.events import (
    Changed,
    GoldChanged,
    GuidelineChanged,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    RunsAdded,
    TopicsAssigned,
)
from probeval.campaign.gold import GoldList, checked_gold, checked_orders, gold_of, read_gold, read_gold_orders
from probeval.campaign.log import Log
from probeval.campaign.opened import Opened
from probeval.campaign.owner_decisions import (
    AddRuns,
    AssignTopics,
    ChangeGold,
    ChangeGuideline,
    ChangePhase,
    ChangeQueries,
    ChangeQueryGuidelines,
    ChangeSettings,
)
from probeval.campaign.parsing import as_name, as_owners, as_texts
from probeval.campaign.setup import Setup
from probeval.campaign.state import State
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale

__all__ = ["CampaignBase"]


class CampaignBase(Opened):
    """The state of a campaign, and its changes by the owner.

    Parameters
    ----------
    log
        The open log.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._pairs: tuple[tuple[tuple[RunsAdded, ...], int], Candidates] | None = None

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
        """The documents that assessors may see: those of the pool and of gold pairs."""
        state = self.state
        gold = (doc for question in (*state.gold, *state.gold_orders) for doc in question[1:])
        return frozenset(map(str, self._candidates(state).pool.docs)).union(gold)

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

    def add_runs(self, by: str, runs: Runs, *, source: str = "") -> RunsAdded:
        """Add late runs: the pool grows, and all judgments stay.

        Lists of queries that the campaign does not have are ignored. New pairs can be judged at once, the model and the
        queue use them from the next update.
        """
        who, state = as_name(by, "the person who adds runs"), self.state
        before, depth = self._candidates(state).collection.runs, state.settings.depth
        gained = len(before.joined(runs).top(depth).pool) - len(before.top(depth).pool)
        return self._log.advance(AddRuns(by=who, before=before, runs=runs, source=source, pairs=gained)).event

    def change_gold(
        self, by: str, grades: Mapping[str, Mapping[str, float]] | str | Path, *, token: str | None = None
    ) -> GoldChanged:
        """Replace the gold pairs, whose grades are known: by a file of judgments, or grades by query and document.

        Their queries must be those of the campaign; their documents need not be in a run. If a run retrieves the pair,
        its known grade is settled: it counts as if it were adjudicated.
        """
        known = self._candidates(self.state)
        given = read_gold(Path(grades), self.scale) if isinstance(grades, (str, Path)) else grades
        gold = checked_gold(given, known.collection.runs.queries, self.scale)
        return self._log.advance(ChangeGold(by=by, grades=gold, retrieved=known.retrieved, token=token)).event

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

    def change_gold_orders(
        self, by: str, orders: Mapping[str, Iterable[tuple[str, str]]] | str | Path, *, token: str | None = None
    ) -> GoldOrdersChanged:
        """Replace the gold comparisons: by a table of query, better and worse, or such documents by query.

        Their queries must be those of the campaign; their documents need not be in a run. The known answers check the
        work of assessors, and are not evidence.
        """
        queries = self._candidates(self.state).collection.runs.queries
        given = read_gold_orders(Path(orders)) if isinstance(orders, (str, Path)) else orders
        return self._log.advance(ChangeGoldOrders(by=by, orders=checked_orders(given, queries), token=token)).event

    def gold(self) -> GoldList:
        """The gold pairs and comparisons, and how assessors answered them."""
        state = self.state
        return gold_of(state, self._candidates(state).retrieved)

    def _candidates(self, state: State) -> Candidates:
        key = state.runs, state.settings.depth
        kept = self._pairs
        if kept is None or kept[0] != key:
            late = [event.part for event in state.runs]
            kept = key, Candidates(unpack(state.settings.name, self._part, late=late), state.settings.depth)
            self._pairs = kept
        return kept[1]

    def _part(self, name: str) -> bytes | None:
        return self._log.store.part(self._log.key, name)
