"""Stores of both kinds, a campaign to judge in them, and a clock that moves when told."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from probeval.campaign import Campaign
from probeval.data import Collection, Scale

NUMBERS = count()


@dataclass
class Clock:
    """Time that moves by a second at every look, and further when told."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def _as_user() -> dict[str, object]:
    """The server does not run as root: it runs as its own user there."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of our own, by the URL of its database; it listens on a socket in its own folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL's server is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    programs, data = found[-1].parent, folder / "data"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs / program, *arguments], cwd=folder, capture_output=True, text=True, check=False, **_as_user()
        )
        assert done.returncode == 0, done.stdout + done.stderr

    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    try:
        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        run("pg_ctl", "-D", str(data), "-w", "-s", "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgresql://postgres@/postgres?host={quote(str(folder))}"
        run("pg_ctl", "-D", str(data), "-w", "-s", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made: a file, or a schema of its own on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    import psycopg

    url, name = request.getfixturevalue("postgres"), f"s{next(NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"


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
