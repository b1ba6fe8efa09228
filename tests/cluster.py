"""A Dask cluster on this machine: a scheduler and workers, each a process started by Dask's own command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

LOOPBACK = "127.0.0.1"
STARTED = 60.0  # seconds that a process may take to start
STOPPED = 10.0  # seconds that a process may take to end by itself


@dataclass
class Cluster:
    """A scheduler and its workers; use :func:`cluster`, which stops them.

    Parameters
    ----------
    folder
        For logs and the workers' files.
    memory
        The memory limit of a worker, as ``dask worker`` takes it.
    nanny
        Whether each worker has a nanny, which restarts it where it takes too much memory.
    """

    folder: Path
    memory: str = "2GB"
    nanny: bool = True
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""

    def start(self) -> None:
        """Start the scheduler on a free port."""
        file = self.folder / "scheduler.json"
        options = ("--host", LOOPBACK, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._launch("scheduler", *options)
        self._wait(lambda: file.is_file() and file.stat().st_size > 0, "the scheduler", self.scheduler)
        self.address = json.loads(file.read_text())["address"]

    def add_worker(self, *options: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start one more worker with one thread; return its process, whose group the worker is in."""
        name = f"worker-{len(self.workers)}"
        common = ("--name", name, "--host", LOOPBACK, "--nthreads", "1", "--memory-limit", self.memory)
        more = ("--no-dashboard", "--local-directory", str(self.folder / name), "--death-timeout", "30")
        kind = "--nanny" if self.nanny else "--no-nanny"
        worker = self._launch("worker", self.address, *common, *more, kind, *options, environment=environment)
        self.workers.append(worker)
        return worker

    def wait_for(self, n: int) -> None:
        """Wait until the scheduler has ``n`` workers."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(n, timeout=STARTED)

    def peak_memory(self) -> dict[str, float]:
        """The largest resident set of each worker so far, in megabytes, by name."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            found = client.run(_peak)
            names = {address: w["id"] for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
        return {str(names[address]): peak for address, peak in sorted(found.items(), key=lambda item: names[item[0]])}

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker, and its nanny, in the midst of what they do."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """End all processes: by a signal, and by force where that is not enough."""
        started = [*self.workers, *([self.scheduler] if self.scheduler is not None else [])]
        running = [process for process in started if process.poll() is None]
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + STOPPED
        for process in running:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _launch(
        self, kind: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        # A session of its own, so that a signal to the group reaches the worker below its nanny.
        with self._log(kind) as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            )

    def _log(self, kind: str) -> IO[bytes]:
        return (self.folder / f"{kind}-{len(self.workers)}.log").open("wb")

    def _wait(self, ready: Callable[[], bool], what: str, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + STARTED
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                logs = "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))
                raise RuntimeError(f"{what} did not start:\n{logs}")
            time.sleep(0.05)


@contextmanager
def cluster(workers: int = 2, *, memory: str = "2GB", nanny: bool = True) -> Iterator[Cluster]:
    """A scheduler with so many workers, stopped at the end whatever happens."""
    with tempfile.TemporaryDirectory(prefix="probeval-dask-") as folder:
        started = Cluster(Path(folder), memory, nanny)
        try:
            started.start()
            for _ in range(workers):
                started.add_worker()
            started.wait_for(workers)
            yield started
        finally:
            started.stop()


def _peak() -> float:
    """The largest resident set of this process, in megabytes."""
    import resource
    import sys

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
