"""Time and memory of an evaluation in partitions: the local engine, and Dask with one worker and with two.

The campaigns are those of long_campaign.py: a machine labels all pairs, people judged 2,000. The scheduler and the
workers (one thread each) are processes started by Dask's own command line; every evaluation is one more. Megabytes are
the largest resident set of the client and of each worker.

    python -m tests.bench.on_dask --sizes 10000 100000
    python -m tests.bench.on_dask --folder FOLDER     # of partitions that are there already
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

from probeval.data import Partitions, open_partitions
from tests.bench import growth, long_campaign
from tests.bench.growth import Cost, Limits
from tests.cluster import cluster

PER_PARTITION = 6250  # queries; 16 partitions of 100,000
LEAST = 4  # partitions, so that two workers have something to share


def main() -> int:
    """Measure, print, and say by the exit status whether every evaluation ended well."""
    asked = options()
    limits, found = Limits(asked.seconds, asked.gigabytes), []
    print(f"{growth.METRIC}, memory limit of a worker {asked.memory}")
    print(f"{'engine':<16}{'queries':>10}{'pairs':>12}{'partitions':>11}{'seconds':>10}{'client':>10}  workers, MB")
    with tempfile.TemporaryDirectory() as home:
        for folder in [Path(folder) for folder in asked.folder] or [written(Path(home), n) for n in asked.sizes]:
            found += measured(open_partitions(folder), asked.workers, asked.memory, limits, local=not asked.no_local)
    return int(any(cost.trouble for cost in found))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time and memory of an evaluation in partitions, here and on Dask.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000], help="queries of the campaigns")
    parser.add_argument("--folder", nargs="+", default=[], help="campaigns in partitions, in place of synthetic ones")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers, %(default)s")
    parser.add_argument("--memory", default="2GB", help="the memory limit of a worker, %(default)s")
    parser.add_argument("--no-local", action="store_true", help="leave out the local engine")
    parser.add_argument("--seconds", type=float, default=7200.0, help="the most that a command may take, %(default)g")
    parser.add_argument("--gigabytes", type=float, default=12.0, help="the most that a client may take, %(default)g")
    return parser.parse_args()


def written(home: Path, queries: int) -> Path:
    """A synthetic campaign, written by a process of its own."""
    folder, n = home / str(queries), max(-(-queries // PER_PARTITION), LEAST)
    subprocess.run([sys.executable, "-m", long_campaign.__name__, str(folder), str(queries), str(n)], check=True)
    return folder


def measured(campaign: Partitions, workers: list[int], memory: str, limits: Limits, *, local: bool) -> list[Cost]:
    """A table of engines, and their ratios."""
    command = ["evaluate", campaign.path, "--metric", growth.METRIC, "--scale", "graded:3"]
    found: dict[str, Cost] = {}

    def show(engine: str, cost: Cost, peaks: dict[str, float]) -> None:
        found[engine] = cost
        sizes = f"{campaign.n_queries:>10,}{campaign.n_pairs:>12,}{len(campaign):>11}"
        peak = " ".join(f"{megabytes:,.0f}" for megabytes in peaks.values())
        times = f"{cost.seconds:>10.1f}{cost.megabytes:>10,.0f}"
        print(f"{engine:<16}{sizes}{times}  {peak}{'  ' * bool(cost.trouble)}{cost.trouble}", flush=True)

    if local:
        show("local", growth.probeval(limits, *command), {})
    for n in workers:
        with cluster(n, memory=memory) as started:
            cost = growth.probeval(limits, *command, "--scheduler", started.address)
            show(f"Dask, {n} worker{'s' * (n > 1)}", cost, started.peak_memory())
    for before, after in combinations(found, 2):
        if not found[before].trouble and not found[after].trouble:
            print(f"  {after} / {before}: {found[after].seconds / found[before].seconds:.2f}", flush=True)
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
