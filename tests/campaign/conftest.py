"""Stores of both kinds, a campaign to judge in them, and a clock that moves when told."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from probeval.data import Collection, Scale
from tests.postgres import new_schema


@dataclass
class Clock:
    """Time that moves by a second at every look, and further when told."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


# The contract of a store holds on both databases; a campaign in it is tried on one.
on_both_databases = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder that is in memory where possible: a store waits for its disk at every step."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def store(request: pytest.FixtureRequest, memory: Path) -> str:
    """Where a store can be made: a file, or a schema of its own on the server."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return str(memory / "store.db")
    return new_schema(request.getfixturevalue("postgres"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(store: str, small: Collection, clock: Clock) -> Iterator[Callable[..., Campaign]]:
    """Create a campaign on the small collection, nothing judged; it is closed at the end."""
    made: list[Campaign] = []

    def create(**settings: object) -> Campaign:
        settings = {"metric": "nDCG@5", "scale": Scale.graded(2), "model": "uniform", "clock": clock, **settings}
        made.append(Campaign.create(store, replace(small, judgments=None), **settings))  # type: ignore[arg-type]
        return made[-1]

    yield create
    for campaign in made:
        campaign.close()


@pytest.fixture
def campaign(make: Callable[..., Campaign]) -> Campaign:
    return make()
