"""The pairs that a campaign may judge, given its runs and its depth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from probeval.campaign.events import Pair, Question
from probeval.campaign.questions import ComparisonDesign
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.errors import CampaignError, did_you_mean
from probeval.selection.topics import Queue

if TYPE_CHECKING:
    from probeval.campaign.state import State

__all__ = ["Candidates"]

AGAIN = 200  # judgments after which the pairs without a grade are looked for again


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pairs that a campaign may judge.

    Parameters
    ----------
    collection
        Runs and evidence.
    depth
        The depth of the pool.
    """

    collection: Collection
    depth: int

    @cached_property
    def pool(self) -> Pool:
        """The pairs to judge."""
        return self.collection.runs.top(self.depth).pool

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of the pool."""
        return [self.pool.label(pair) for pair in range(len(self.pool))]

    @cached_property
    def popular(self) -> Queue[Question, str]:
        """The pairs of the pool, by descending number of systems that retrieve them: what a pair is then worth."""
        runs = self.collection.runs.top(self.depth)
        retrieved = np.bincount(runs.pairs[runs.pairs >= 0], minlength=len(runs.pool))
        order = np.argsort(-retrieved, kind="stable")
        pairs: list[Question] = [self.pairs[pair] for pair in order]
        return Queue(pairs, [pair[0] for pair in pairs], retrieved[order].tolist(), [None] * len(pairs))

    def without_grade(self, state: State) -> Queue[Question, str]:
        """The popular pairs that had no grade lately: some may have one by now, so the caller looks.

        Made again after many judgments, or a withdrawal, so that no step goes through everything that is judged.
        """
        kept = self._open.get(state.withdrawn)
        if kept is None or not 0 <= len(state.judged) - kept[0] < AGAIN:
            popular = self.popular
            at = [i for i, pair in enumerate(popular.pairs) if not state.has_grade((pair[0], pair[1]))]
            pairs, values = [popular.pairs[i] for i in at], [popular.values[i] for i in at]
            kept = len(state.judged), Queue(pairs, [pair[0] for pair in pairs], values, [None] * len(pairs))
            self._open.clear()
            self._open[state.withdrawn] = kept
        return kept[1]

    @cached_property
    def _open(self) -> dict[int, tuple[int, Queue[Question, str]]]:
        """By the last withdrawal: the number of judged pairs, and the queue."""
        return {}

    def design(self, seed: int) -> ComparisonDesign:
        """The pairs of documents of the pool to compare."""
        kept = self._designs.get(seed)
        if kept is None:
            docs: dict[str, list[str]] = {}
            for query, doc in self.pairs:
                docs.setdefault(query, []).append(doc)
            kept = self._designs[seed] = ComparisonDesign(docs, seed)
        return kept

    @cached_property
    def _designs(self) -> dict[int, ComparisonDesign]:
        return {}

    @cached_property
    def retrieved(self) -> frozenset[Pair]:
        """Every pair that some run has, at any rank."""
        pool = self.collection.runs.pool
        return frozenset(zip(pool.queries[pool.query], pool.docs[pool.doc], strict=True))

    def check(self, query: str, doc: str) -> Pair:
        """The pair, if some run retrieves it; otherwise an error."""
        if (query, doc) not in self.retrieved:
            known = self.collection.runs.queries
            if query not in known:
                raise CampaignError(f"No query {query!r} in this campaign.{did_you_mean(str(query), known)}")
            raise CampaignError(f"Query {query!r}: no run retrieves document {doc!r}.")
        return query, doc
