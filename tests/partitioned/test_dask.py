"""The same numbers whatever the engine and the partitions, on a real scheduler and two real workers.

The small case runs in CI, the large one in ``make validate``.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probeval
from probeval import parallel as workers
from probeval.data import open_partitions, write_partitions
from probeval.features import standards
from probeval.parallel import parallel
from tests.bench.long_campaign import partitions
from tests.cluster import Cluster
from tests.heard import Heard

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")]

SMALL, LARGE = (200, 50), (10_000, 2000)  # queries and judgments
KEPT = 30  # queries of the small campaign in memory: the workers have the others
PARTS = (1, 7, 24)
TOLERANCE = 1e-9
OTHER = "import probeval\nprobeval.__version__ = '0.0.1'\n"


@pytest.fixture(scope="module", params=[SMALL, pytest.param(LARGE, marks=pytest.mark.validation)], ids=["200", "10000"])
def folders(request, tmp_path_factory) -> Iterator[dict[int, Path]]:
    """One campaign in several numbers of partitions."""
    queries, judgments = request.param
    home = tmp_path_factory.mktemp("campaign")
    for n in PARTS:
        write_partitions(partitions(queries, n, judgments=judgments), home / str(n) / "long")
    with pytest.MonkeyPatch.context() as patch:
        if queries == SMALL[0]:
            patch.setattr(standards, "SAMPLE", KEPT)
        yield {n: home / str(n) / "long" for n in PARTS}


@pytest.fixture(scope="module")
def local(folders) -> dict[str, Any]:
    """The evaluation of one partition by the local engine."""
    return evaluated(folders[1])


def evaluated(folder: Path, scheduler: str | None = None) -> dict[str, Any]:
    return probeval.evaluate(folder, metric="DCG@10", scale="graded:3", scheduler=scheduler).to_dict()


def assert_agree(got: Any, expected: Any, where: str = "") -> None:
    """Plain data is the same, numbers to the tolerance."""
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_agree(got[key], value, f"{where}/{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), where
        for i, value in enumerate(expected):
            assert_agree(got[i], value, f"{where}/{i}")
    elif isinstance(expected, float):
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE, err_msg=where)
    else:
        assert got == expected, where


def test_partitions_give_the_same_numbers(folders, local):
    assert_agree(evaluated(folders[7]), local)


def test_the_life_of_a_cluster(folders, local, tmp_path):
    """One scheduler, since processes take long to start: without workers, with two of them, with one killed."""
    started = Cluster(tmp_path, nanny=False)
    try:
        started.start()
        with pytest.raises(probeval.ProbevalError, match=r"has no workers\. Start some: dask worker"):
            evaluated(folders[1], started.address)
        for _ in range(2):
            started.add_worker()
        started.wait_for(2)
        expect_the_same(folders[7], started, local)
        plain = open_partitions(folders[1]).read(0)  # in memory: the workers get its queries, not a folder
        there = probeval.evaluate(plain, "DCG@10", scale="graded:3", scheduler=started.address)
        assert len(there.estimate.estimation.pool.queries) < len(plain.runs.queries)
        assert_agree(there.to_dict(), local)
        expect_that_waiting_work_is_cancelled(started)
        assert_agree(evaluated_while_a_worker_is_killed(folders[24], started), local)
        expect_that_another_version_is_refused(folders[7], started, tmp_path)
    finally:
        started.stop()


def expect_the_same(folder: Path, started: Cluster, local: dict[str, Any]) -> None:
    """As the local engine has it: the numbers and the next pairs; partitions are followed."""
    heard = Heard()
    there, here = (
        probeval.evaluate(folder, "DCG@10", scale="graded:3", **engine)
        for engine in ({"scheduler": started.address, "reporter": heard}, {"jobs": 1})
    )
    assert_agree(there.to_dict(), local)
    assert [title for title, _ in heard.work] == ["Queries", "Labels", "Scores"]
    assert there.next(3).pairs == here.next(3).pairs


def expect_that_waiting_work_is_cancelled(started: Cluster) -> None:
    """Without that, 40 pieces of a fifth of a second keep two workers for four seconds."""
    from distributed import Client

    with parallel(1, started.address) as run:
        results = run([lambda: time.sleep(0.2)] * 40)
        next(results)
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
    with Client(started.address, set_as_default=False) as client:
        end = time.monotonic() + 20
        while any(client.processing().values()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(client.processing().values())


def evaluated_while_a_worker_is_killed(folder: Path, started: Cluster) -> dict[str, Any]:
    from distributed import Client

    found: list[dict[str, Any]] = []
    with Client(started.address, set_as_default=False) as client:
        work = threading.Thread(target=lambda: found.append(evaluated(folder, started.address)))
        work.start()
        names = {w["id"]: address for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
        end = time.monotonic() + 60
        while not client.processing()[names["worker-0"]]:
            assert time.monotonic() < end, "the worker has nothing to do"
            time.sleep(0.01)
        started.kill(started.workers[0])
        assert work.is_alive(), "the work was done before the worker was killed"
        work.join()
        assert list(client.scheduler_info(n_workers=-1)["workers"]) == [names["worker-1"]]
    return found[0]


def expect_that_another_version_is_refused(folder: Path, started: Cluster, place: Path) -> None:
    """Before any work is done."""
    preload = place / "other_version.py"
    preload.write_text(OTHER)
    started.add_worker("--preload", str(preload))
    started.wait_for(2)
    with pytest.raises(
        probeval.ProbevalError, match=rf"0\.0\.1.*{probeval.__version__}|{probeval.__version__}.*0\.0\.1"
    ):
        evaluated(folder, started.address)


def _work_there(started: Cluster, *work: Callable[[], object]) -> list[object]:
    with parallel(1, started.address) as run:
        return list(run(work))


def test_workers_that_are_attacked(tmp_path, monkeypatch):
    """Work that ends its worker, workers and a scheduler that go while it lasts: nobody waits for ever."""
    monkeypatch.setattr(workers, "ALONE", 2.0)
    started = Cluster(tmp_path, nanny=False)
    try:
        started.start()
        started.add_worker()
        started.wait_for(1)
        with pytest.raises(TimeoutError, match="mine"):
            _work_there(started, partial(_raise, TimeoutError("mine")))
        with pytest.raises(TypeError, match="serialize"):
            _work_there(started, threading.Lock)
        assert _work_there(started, lambda: 7) == [7]  # the worker goes on
        with pytest.raises(probeval.ProbevalError, match=r"All workers of the Dask scheduler have ended"):
            _work_there(started, partial(os._exit, 1))
        started.add_worker()
        started.wait_for(1)
        assert started.scheduler is not None
        end = threading.Timer(1.0, started.scheduler.kill)
        end.start()
        with pytest.raises(probeval.ProbevalError, match=r"The Dask scheduler has ended, or dropped the work"):
            _work_there(started, *[lambda: time.sleep(20)] * 4)
    finally:
        started.stop()


def _raise(error: Exception) -> None:
    raise error


def test_addresses_that_are_none(folders):
    with pytest.raises(probeval.ProbevalError, match=r"has a host and a port, .*; got 'nonsense'"):
        evaluated(folders[1], "nonsense")
    with pytest.raises(probeval.ProbevalError, match=r"tls://127\.0\.0\.1:9 needs certificates"):
        evaluated(folders[1], "tls://127.0.0.1:9")
