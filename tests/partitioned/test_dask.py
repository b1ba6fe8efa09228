"""The same evaluation on a real Dask scheduler with real workers, one of which dies."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import probeval
from probeval import parallel
from probeval.data import write_partitions
from probeval.errors import ProbevalError
from probeval.features import standards
from tests.bench.long_campaign import partitions
from tests.cluster import Cluster, cluster

pytestmark = pytest.mark.slow

QUERIES, PARTS, JUDGMENTS, KEPT = 600, 12, 50, 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign in partitions."""
    home = tmp_path_factory.mktemp("dask") / "long"
    write_partitions(partitions(QUERIES, PARTS, judgments=JUDGMENTS), home)
    return home


@pytest.fixture(scope="module", autouse=True)
def few_in_memory():
    """Constants are from few queries, as those of a long campaign are: the workers have the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standards, "SAMPLE", KEPT)
        yield


@pytest.fixture(scope="module")
def here(folder, few_in_memory) -> probeval.Evaluation:
    """The evaluation without Dask."""
    return probeval.evaluate(folder, "DCG@10", jobs=1)


@pytest.fixture(scope="module")
def dask():
    """A scheduler and two workers, each a process of its own."""
    with cluster(2, nanny=False) as started:
        yield started


def assert_same(one: probeval.Evaluation, other: probeval.Evaluation) -> None:
    for part in ("mean", "covariance", "between", "query_mean", "query_variance"):
        np.testing.assert_allclose(
            getattr(one.scores.joint, part), getattr(other.scores.joint, part), rtol=0, atol=1e-9
        )
    assert one.headline == other.headline


def test_dask_gives_what_one_process_gives(folder, here, dask):
    followed = []
    there = probeval.evaluate(
        folder, "DCG@10", scheduler=dask.address, follow=lambda work, title: followed.append(title) or work
    )
    assert_same(there, here)
    assert followed == ["Queries", "Labels", "Scores"]
    assert there.next(3).pairs == here.next(3).pairs


def test_workers_of_another_version_are_refused_before_any_work(folder, dask, monkeypatch):
    monkeypatch.setattr(parallel, "_version", lambda: "99.0")
    with pytest.raises(ProbevalError, match=rf"has probeval {probeval.__version__}, this is 99.0"):
        probeval.evaluate(folder, "DCG@10", scheduler=dask.address)


def test_a_worker_that_dies_changes_nothing(folder, here, dask):
    dask.add_worker()
    dask.wait_for(3)
    victim = dask.workers[-1]
    begun = threading.Event()

    def follow(work, title):
        if title == "Labels":
            begun.set()
        return work

    def strike():
        begun.wait()
        dask.kill(victim)

    killer = threading.Thread(target=strike)
    killer.start()
    assert_same(probeval.evaluate(folder, "DCG@10", scheduler=dask.address, follow=follow), here)
    killer.join()
    assert victim.poll() is not None


def test_work_that_waits_is_cancelled(dask):
    from distributed import Client

    with parallel.parallel(1, dask.address) as run:
        results = run([lambda: time.sleep(0.2)] * 40)
        next(results)
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
    with Client(dask.address, set_as_default=False) as client:
        end = time.monotonic() + 20
        while any(client.processing().values()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(client.processing().values())


def test_a_scheduler_without_workers_or_none_at_all(folder, tmp_path):
    empty = Cluster(tmp_path)
    try:
        empty.start()
        with pytest.raises(ProbevalError, match=r"has no workers\. Start some: dask worker"):
            probeval.evaluate(folder, "DCG@10", scheduler=empty.address)
    finally:
        empty.stop()
    with pytest.raises(ProbevalError, match="No Dask scheduler answers at nonsense"):
        probeval.evaluate(folder, "DCG@10", scheduler="nonsense")
