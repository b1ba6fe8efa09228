"""The protocols of relevance models, and the fallback to the first of several that applies to a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.collection import Collection
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.relevance.distribution import RelevanceDistribution

__all__ = ["FallbackModel", "Finding", "FittedModel", "Predicts"]


@dataclass(frozen=True)
class Finding:
    """Something that a model's check found, and what to do about it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class Predicts(Protocol):
    """What gives every pair of a campaign its distribution: a fallback model, or one with a posterior."""

    def predict(
        self,
        collection: Collection,
        *,
        depth: int,
        scale: Scale | None = None,
        rng: np.random.Generator | None = None,
    ) -> RelevanceDistribution:
        """P(grade) of every pair in the top ``depth``; judged pairs are certain."""

    def check(self) -> list[Finding]:
        """What is wrong with it, and what to do."""


class FittedModel(Protocol):
    """What speaks about the relevance of pairs."""

    kind: str

    def levels(self, scale: Scale) -> Codes:
        """The grade that each level it distinguishes stands for, shape (level,)."""

    def probabilities(self, collection: Collection, *, depth: int, scale: Scale) -> Floats:
        """P(level) of every pair in the top ``depth``, NaN rows where it cannot say, shape (pair, level)."""

    def check(self) -> list[Finding]:
        """What is wrong with it, and what to do."""

    def to_dict(self) -> dict[str, Any]:
        """Its numbers as plain data."""


@dataclass(frozen=True)
class FallbackModel:
    """Models from the most to the least informed: each pair is predicted by the first that can.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5)
    >>> FallbackModel([Uniform()]).predict(campaign, depth=5)
    <RelevanceDistribution: 35 pairs, 35 judged, graded:2>
    """

    models: Sequence[FittedModel]

    def predict(
        self,
        collection: Collection,
        *,
        depth: int,
        scale: Scale | None = None,
        rng: np.random.Generator | None = None,
    ) -> RelevanceDistribution:
        """P(grade) of every pair in the top ``depth``; judged pairs are certain.

        Parameters
        ----------
        collection
            Runs, and whatever judgments, metadata and labels the models use.
        depth
            The depth of the pool.
        scale
            The scale of the grades; inferred from the judgments when not given.
        rng
            Not used: there is no posterior to draw from.
        """
        scale = collection.scale(scale)
        pool = collection.runs.top(depth).pool
        probability, levels, _ = self.probabilities(collection, depth=depth, scale=scale)
        return RelevanceDistribution.of(pool, scale, probability, levels=levels, judgments=collection.judgments)

    def probabilities(
        self, collection: Collection, *, depth: int, scale: Scale
    ) -> tuple[Floats, Codes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """P(level) of every pair, what the levels stand for, and which model each pair has it from."""
        found: list[tuple[Floats, Codes]] = []
        chosen: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
        for i, model in enumerate(self.models):
            given = model.probabilities(collection, depth=depth, scale=scale)
            found.append((given, model.levels(scale)))
            can = ~np.isnan(given).any(axis=-1)
            chosen = np.where(can, i, -1) if chosen is None else np.where((chosen < 0) & can, i, chosen)
            if np.all(chosen >= 0):
                break
        if chosen is None or np.any(chosen < 0):
            n = 0 if chosen is None else int((chosen < 0).sum())
            raise ModelError(f"No model applies to {n:,} pairs. End the list of models with Uniform().")
        levels = np.unique(np.concatenate([at for i, (_, at) in enumerate(found) if np.any(chosen == i)]))
        out = np.zeros((len(chosen), len(levels)))
        for i, (given, at) in enumerate(found):
            rows = np.flatnonzero(chosen == i)
            out[np.ix_(rows, np.searchsorted(levels, at))] = given[rows] if len(rows) else 0.0
        return out, levels.astype(np.int16), chosen

    def check(self) -> list[Finding]:
        """What is wrong with its models, and what to do."""
        return [finding for model in self.models for finding in model.check()]

    @property
    def terms(self) -> list[str]:
        """The terms of all its models, each once."""
        return list(dict.fromkeys(term for model in self.models for term in getattr(model, "terms", ())))


def as_model(model: FallbackModel | FittedModel | Iterable[FittedModel]) -> FallbackModel:
    """One or more models as one."""
    if isinstance(model, FallbackModel):
        return model
    return FallbackModel(list(model)) if isinstance(model, Iterable) else FallbackModel([model])
