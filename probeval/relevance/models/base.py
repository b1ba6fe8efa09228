"""Protocols of relevance models, and the fallback to the first applicable model of each pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ModelError
from probeval.relevance.distribution import RelevanceDistribution

__all__ = ["FallbackModel", "Finding", "FittedModel", "Predicts"]


@dataclass(frozen=True, repr=False)
class Finding(Record):
    """A problem found by a model's check, and its remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class Predicts(Protocol):
    """A model that predicts every pair of a campaign: a fallback model, or one with a posterior."""

    def predict(self, problem: Problem, *, rng: np.random.Generator | None = None) -> RelevanceDistribution:
        """Return P(grade) of every pair; judged pairs are certain."""

    def check(self) -> list[Finding]:
        """Return problems of the model and their remedies."""


class FittedModel(Protocol):
    """A fitted model of the relevance of pairs."""

    kind: str

    def levels(self, scale: Scale) -> Codes:
        """Return the representative grade of each level, shape (level,)."""

    def probabilities(self, problem: Problem) -> Floats:
        """Return P(level) of every pair, NaN rows if not applicable, shape (pair, level)."""

    def check(self) -> list[Finding]:
        """Return problems of the model and their remedies."""

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""


@dataclass(frozen=True, repr=False)
class FallbackModel(Record):
    """Models from the most to the least informed: each pair is predicted by the first applicable model.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> FallbackModel([Uniform()]).predict(campaign.problem(depth=5))
    <RelevanceDistribution: 35 pairs, 35 judged, graded:2>
    """

    models: Sequence[FittedModel]

    def predict(self, problem: Problem, *, rng: np.random.Generator | None = None) -> RelevanceDistribution:
        """Return P(grade) of every pair; judged pairs are certain.

        Parameters
        ----------
        problem
            Runs, and the judgments, metadata and labels that the models use.
        rng
            Not used: there is no posterior to draw from.
        """
        probability, levels, _ = self.probabilities(problem)
        return RelevanceDistribution.of(
            problem.pool, problem.scale, probability, levels=levels, judgments=problem.grades
        )

    def probabilities(self, problem: Problem) -> tuple[Floats, Codes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Return P(level) of every pair, the grades of the levels, and the position of the model of each pair."""
        found: list[tuple[Floats, Codes]] = []
        chosen: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
        for i, model in enumerate(self.models):
            given = model.probabilities(problem)
            found.append((given, model.levels(problem.scale)))
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
        """Return problems of the models and their remedies."""
        return [finding for model in self.models for finding in model.check()]

    @property
    def terms(self) -> list[str]:
        """The distinct terms of all models."""
        return list(dict.fromkeys(term for model in self.models for term in getattr(model, "terms", ())))


def as_model(model: FallbackModel | FittedModel | Iterable[FittedModel]) -> FallbackModel:
    """Combine one or more models into one."""
    if isinstance(model, FallbackModel):
        return model
    return FallbackModel(list(model)) if isinstance(model, Iterable) else FallbackModel([model])
