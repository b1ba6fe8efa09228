"""Fixtures that several tests share: real campaigns where they are at hand, a small synthetic one, files, a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from probeval.data import Collection
from probeval.relevance import synthetic_campaign

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The dataset below.
DOCS = {"d1": "Cats and dogs", "d2": "Dogs bark", "d3": "A tax on cats"}
QUERIES = {"q1": "pets", "q2": "tax"}
QRELS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 2}}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quick tests first."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


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


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small dataset of ir_datasets, by id: ``irds:mine`` has queries and documents, this one qrels too."""
    import ir_datasets

    folder = tmp_path_factory.mktemp("dataset")

    def tsv(name: str, rows: dict[str, str]) -> str:
        (folder / name).write_text("".join(f"{key}\t{text}\n" for key, text in rows.items()))
        return str(folder / name)

    (folder / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, docs in QRELS.items() for d, g in docs.items()))
    whole = ir_datasets.create_dataset(tsv("docs", DOCS), tsv("queries", QUERIES))
    judged = ir_datasets.create_dataset(qrels_trec=str(folder / "qrels"))
    ir_datasets.registry.register("mine", whole)
    ir_datasets.registry.register("mine/test", ir_datasets.Dataset(whole, judged))
    yield "irds:mine/test"
    for name in ("mine", "mine/test"):
        del ir_datasets.registry._registered[name]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's own folder: ``put("a/b.txt", "text")`` is its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium, driven by Playwright."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
