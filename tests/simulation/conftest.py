"""Small campaigns to leave out, and a model that remembers what it was shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from probeval.data import Collection, Scale
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign


def _campaign(
    name: str,
    seed: int,
    *,
    scale: Scale | None = None,
    metadata: bool = False,
    sds: dict[str, float] | None = None,
    **sizes: int,
) -> Collection:
    """A synthetic campaign; without groups unless asked for."""
    sizes = {"systems": 5, "queries": 8, "depth": 8, "docs": 20, "groups": 3, **sizes}
    made = synthetic_campaign(seed=seed, scale=scale, sds=sds, **sizes)
    return replace(made, name=name, metadata=made.metadata if metadata else None)


@pytest.fixture(scope="session")
def campaign() -> Callable[..., Collection]:
    """Make a campaign: ``campaign("name", seed, systems=3)``."""
    return _campaign


@pytest.fixture(scope="session")
def three() -> list[Collection]:
    """Three campaigns, the second one binary."""
    return [_campaign("one", 1), _campaign("two", 2, scale=Scale.binary()), _campaign("three", 3)]


@dataclass
class Spy:
    """Says nothing new, and keeps what it was fitted on and asked about."""

    fitted: list[list[Collection]] = field(default_factory=list)
    asked: list[Collection] = field(default_factory=list)

    def __call__(self, collections, *, depth):
        self.fitted.append(list(collections))
        return self

    def predict(self, problem, *, rng=None):
        self.asked.append(problem.collection)
        return FallbackModel([Uniform()]).predict(problem)


@pytest.fixture
def spy() -> Spy:
    return Spy()
