"""Fixtures that several tests share: real campaigns where they are at hand, a small synthetic one, files to read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Collection
from probeval.relevance import synthetic_campaign


def _folder(variable: str) -> Path:
    """The folder that an environment variable names, or a skip that says why."""
    name = os.environ.get(variable)
    if not name:
        pytest.skip(f"{variable} is not set: it names the folder of the real campaigns or oracles")
    if not Path(name).is_dir():
        pytest.skip(f"{variable} names {name}, which is no folder here")
    return Path(name)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real campaigns."""
    return _folder("PROBEVAL_DATA")


@pytest.fixture(scope="session")
def oracles() -> Path:
    """The folder of published values."""
    return _folder("PROBEVAL_ORACLES")


@pytest.fixture(scope="session")
def small() -> Collection:
    """A synthetic campaign: 6 systems, 5 queries, 8 ranks, every pair judged on 0-2."""
    return synthetic_campaign(np.random.default_rng(7), systems=6, queries=5, depth=8, docs=20, groups=3)


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's own folder: ``put("a/b.txt", "text")`` is its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
