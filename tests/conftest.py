"""Fixtures that tests share: real campaigns where they are at hand, a synthetic one, files, a database, a browser."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import cloudpickle
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from probeval.data import Collection
from probeval.relevance import synthetic_campaign
from tests.postgres import is_installed, postgres_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

T = TypeVar("T")

# A few examples, always the same, for make test; many, other ones each time, for make validate.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", CALM, max_examples=50, derandomize=True, database=None)
settings.register_profile("many", CALM, max_examples=1000)
settings.load_profile("few")

# The dataset below.
DOCS = {"d1": "Cats and dogs", "d2": "Dogs bark", "d3": "A tax on cats"}
QUERIES = {"q1": "pets", "q2": "tax"}
QRELS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 2}}


def pytest_configure() -> None:
    """Files of tests are in memory where there is room: a store waits for its disk at every step."""
    place = Path("/dev/shm")
    if place.is_dir() and shutil.disk_usage(place).free > 4e9:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quick tests first and the pages of the documentation last; those that sample come before other slow ones.

    A long test at the very end would leave the other workers idle.
    """
    later = {"pages": 3, "slow": 2, "bayes": -1}
    items.sort(key=lambda item: sum(n for name, n in later.items() if item.get_closest_marker(name)))


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
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A folder made once per run of pytest, for all workers: ``shared_folder("a store", make)`` after ``make(folder)``.

    The workers of a run share it, so tests read it, and copy what they change. A maker that fails or skips is tried
    again by the next test.
    """
    run = tmp_path_factory.getbasetemp()
    place = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "shared"
    place.mkdir(exist_ok=True)

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made = place / re.sub(r"\W+", "-", name)
        with FileLock(f"{made}.lock"):
            if not made.exists():
                unfinished = Path(f"{made}.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                make(unfinished)
                unfinished.rename(made)
        return made

    return folder


@pytest.fixture(scope="session")
def shared(shared_folder: Callable[[str, Callable[[Path], object]], Path]) -> Callable[[str, Callable[[], T]], T]:
    """A value made once per run of pytest, for all workers: ``shared("a fitted model", make)`` is ``make()``, pickled.

    A name has one value, so a value that depends on something says so in its name.
    """
    here: dict[str, object] = {}

    def value(name: str, make: Callable[[], T]) -> T:
        if name not in here:
            place = shared_folder(name, lambda folder: (folder / "value").write_bytes(cloudpickle.dumps(make())))
            here[name] = pickle.loads((place / "value").read_bytes())
        return here[name]

    return value


@pytest.fixture(autouse=True, scope="session")
def short_forecasts() -> Iterator[None]:
    """Reports look ahead by one path of twenty judgments: most of their time would be the forecast."""
    from probeval.reports import results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "PATHS", 1)
        patch.setattr(results, "AHEAD", 20)
        yield


@pytest.fixture(scope="session")
def small() -> Collection:
    """A synthetic campaign: 6 systems, 5 queries, 8 ranks, every pair judged on 0-2."""
    return synthetic_campaign(seed=7, systems=6, queries=5, depth=8, docs=20, groups=3)


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of our own, by the URL of its database."""
    if not is_installed():
        pytest.skip("PostgreSQL's server is not installed")
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium, driven by Playwright: one per worker, so a test closes the pages that it opens.

    Playwright's event loop runs in this thread from here on: a test that needs a loop of its own runs it in a thread.
    """
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
