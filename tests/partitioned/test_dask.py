"""The same numbers whatever the engine and the partitions, on a real scheduler and two real workers.

The small case runs in CI, the large one in ``make validate``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probeval
from probeval.data import write_partitions
from probeval.features import standards
from probeval.parallel import parallel
from tests.bench.long_campaign import partitions
from tests.cluster import Cluster, cluster

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")]

SMALL, LARGE = (600, 50), (10_000, 2000)  # queries and judgments
KEPT = 60  # queries of the small campaign in memory: the workers have the others
PARTS = (1, 7, 64)
TOLERANCE = 1e-9
OTHER = "import probeval\nprobeval.__version__ = '0.0.1'\n"


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    """A scheduler and two workers with 2 GB each."""
    with cluster(2, nanny=False) as started:
        yield started


@pytest.fixture(scope="module", params=[SMALL, pytest.param(LARGE, marks=pytest.mark.validation)], ids=["600", "10000"])
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


def test_any_number_of_partitions_gives_the_same_numbers(folders, local):
    for n in PARTS[1:]:
        assert_agree(evaluated(folders[n]), local)


def test_dask_gives_the_same_numbers(folders, local, workers):
    for n in PARTS:
        assert_agree(evaluated(folders[n], workers.address), local)


def test_a_worker_that_is_killed_changes_nothing(folders, local):
    from distributed import Client

    found: list[dict[str, Any]] = []
    with cluster(2, nanny=False) as started, Client(started.address, set_as_default=False) as client:
        work = threading.Thread(target=lambda: found.append(evaluated(folders[64], started.address)))
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
    assert_agree(found[0], local)


def test_workers_of_another_version_are_refused_before_any_work(folders, tmp_path):
    preload = tmp_path / "other_version.py"
    preload.write_text(OTHER)
    with cluster(1, nanny=False) as started:
        started.add_worker("--preload", str(preload))
        started.wait_for(2)
        with pytest.raises(
            probeval.ProbevalError, match=rf"0\.0\.1.*{probeval.__version__}|{probeval.__version__}.*0\.0\.1"
        ):
            evaluated(folders[7], started.address)


def test_partitions_are_followed_and_the_next_pairs_are_the_same(folders, workers):
    followed: list[str] = []
    there = probeval.evaluate(
        folders[7], "DCG@10", scheduler=workers.address, follow=lambda work, title: followed.append(title) or work
    )
    assert followed == ["Queries", "Labels", "Scores"]
    assert there.next(3).pairs == probeval.evaluate(folders[7], "DCG@10", jobs=1).next(3).pairs


def test_work_that_waits_is_cancelled(workers):
    from distributed import Client

    with parallel(1, workers.address) as run:
        results = run([lambda: time.sleep(0.2)] * 40)
        next(results)
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
    with Client(workers.address, set_as_default=False) as client:
        end = time.monotonic() + 20
        while any(client.processing().values()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(client.processing().values())


def test_a_scheduler_without_workers_and_none_at_all(folders, tmp_path):
    empty = Cluster(tmp_path)
    try:
        empty.start()
        with pytest.raises(probeval.ProbevalError, match=r"has no workers\. Start some: dask worker"):
            evaluated(folders[1], empty.address)
    finally:
        empty.stop()
    with pytest.raises(probeval.ProbevalError, match=r"has a host and a port, .*; got 'nonsense'"):
        evaluated(folders[1], "nonsense")
    with pytest.raises(probeval.ProbevalError, match=r"tls://127\.0\.0\.1:9 needs certificates"):
        evaluated(folders[1], "tls://127.0.0.1:9")
