"""Time and memory of the command line as campaigns grow. ``make bench`` runs the small sizes.

Long campaigns are synthetic: 4 systems, top 10, exactly 21 pairs per query, grades 0-3, nothing or one pair in a
hundred judged. Every command runs in a process of its own. The exponent of a row is b where time grows as
queries ** b from the size before: 1 is linear.

    python tests/bench/growth.py --sizes 1000 10000 100000
    python tests/bench/growth.py --sizes --two 10000  # two systems with labels and fifty judgments, compared
    python tests/bench/growth.py --sizes --wide       # real campaigns of many systems, in $PROBEVAL_DATA
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer

import numpy as np

from probeval.data import Collection, Judgments, read_campaign
from probeval.relevance import choose_model
from probeval.selection import Judging

SYSTEMS, DEPTH, PAIRS = 4, 10, 21
CANDIDATES = 40  # documents of a query that a system can retrieve
QUALITY = np.linspace(1.3, 0.8, SYSTEMS)  # weight of relevance in each system's scores; about 21 pairs in the union
CHUNK = 20_000  # queries drawn at a time
CUTS = np.array([0.5, 1.5, 2.5])  # of the latent relevance, between grades
METRIC = "DCG@10"
NEXT = "20"
JUDGED = 50  # pairs of two systems
WIDE = 1000  # judgments of the wide campaign
BATCH, BATCHES = 10, 50
REFITS, BEFORE = 7, 200  # refits that are timed, and judgments before the first
PROBEVAL = "import resource; resource.setrlimit(resource.RLIMIT_AS, ({0}, {0})); from probeval.cli import main; main()"


@dataclass(frozen=True)
class Cost:
    """What a process took, and why it did not end well where it did not."""

    seconds: float
    megabytes: float
    trouble: str = ""

    def __str__(self) -> str:
        return f"{self.seconds:>10.2f}{self.megabytes:>11,.0f}" + (f"  {self.trouble}" if self.trouble else "")


@dataclass(frozen=True)
class Limits:
    """What a command may take, so that one that wants too much fails and the machine goes on."""

    seconds: float
    gigabytes: float


def main() -> int:
    """Measure, print, and say by the exit status whether every command ended well."""
    if len(sys.argv) > 1 and sys.argv[1] in TASKS:
        print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
        return 0
    asked = options()
    limits, found = Limits(asked.seconds, asked.memory), []
    with tempfile.TemporaryDirectory() as folder:
        if asked.sizes:
            found += long(Path(folder), sorted(asked.sizes), asked.shares, limits)
        for queries in asked.two:
            found.append(compared(Path(folder), queries, limits))
        if asked.wide:
            found += wide(Path(folder), Path(asked.wide), limits)
    return int(any(cost.trouble for cost in found))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time and memory of the command line as campaigns grow.")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000], help="queries of the long campaigns")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.01], help="shares of pairs that are judged")
    parser.add_argument("--two", type=int, nargs="*", default=[], help="queries of two systems that are compared")
    parser.add_argument(
        "--wide",
        nargs="?",
        const=os.environ.get("PROBEVAL_DATA"),
        metavar="FOLDER",
        help="the real campaigns too: the folder that holds them, $PROBEVAL_DATA when not given",
    )
    parser.add_argument("--seconds", type=float, default=1800.0, help="the most that a command may take, %(default)g")
    parser.add_argument("--memory", type=float, default=12.0, help="the most gigabytes that it may take, %(default)g")
    asked = parser.parse_args()
    if "--wide" in sys.argv and not asked.wide:
        parser.error("--wide needs a folder, or PROBEVAL_DATA in the environment")
    return asked


# ---- processes ----


def probeval(limits: Limits, *arguments: str | Path) -> Cost:
    """The cost of a command in a process of its own; the package is the one that this process imports."""
    code = PROBEVAL.format(int(limits.gigabytes * 2**30))
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        command = [sys.executable, "-c", code, *map(str, arguments), "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        timer = Timer(limits.seconds, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode().strip().splitlines()
    trouble = ""
    if process.returncode:
        trouble = "took too long" if seconds >= limits.seconds else said[-1] if said else f"exit {process.returncode}"
    return Cost(seconds, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10), trouble)


def task(name: str, *arguments: str | Path) -> dict[str, float]:
    """What a task of this file finds, in a process of its own: the parent stays small, or its size would count."""
    command = [sys.executable, __file__, name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout)


# ---- long campaigns ----


def long(folder: Path, sizes: list[int], shares: list[float], limits: Limits) -> list[Cost]:
    """A table of commands by the number of queries and the share judged."""
    print(f"{METRIC}, {SYSTEMS} systems, {PAIRS} pairs per query")
    print(f"{'command':<12}{'queries':>9}{'pairs':>11}{'judged':>9}{'exponent':>10}{'seconds':>10}{'megabytes':>11}")
    found: dict[tuple[str, float, int], Cost] = {}
    for smaller, queries in zip([0, *sizes], sizes, strict=False):
        files = folder / str(queries)
        task("write", files, str(queries), *map(str, shares))
        common = [files / "runs", "--metric", METRIC, "--scale", "graded:3"]
        for share in shares:
            judged = round(queries * PAIRS * share)
            qrels = ["--qrels", files / f"qrels-{share}.txt"] if judged else []
            for command, more in (("evaluate", []), ("next", ["-n", NEXT])):
                now = found[command, share, queries] = probeval(limits, command, *common, *qrels, *more)
                rise = exponent(found.get((command, share, smaller)), now, queries / max(smaller, 1))
                print(f"{command:<12}{queries:>9,}{queries * PAIRS:>11,}{judged:>9,}{rise:>10}{now}", flush=True)
    return list(found.values())


def exponent(before: Cost | None, now: Cost, ratio: float) -> str:
    """How time rises from one size to one that is larger by a ratio; empty where it is not known."""
    if before is None or before.trouble or now.trouble:
        return ""
    return f"{math.log(now.seconds / before.seconds) / math.log(ratio):.2f}"


def write(folder: str, queries: str, *shares: str) -> dict[str, float]:
    """Draw a campaign, seeded by its number of queries; write ``runs/`` and, by share, ``qrels-0.01.txt``."""
    n = int(queries)
    rng = np.random.default_rng(n)
    relevance, lists, scores = draw(rng, n)
    home = Path(folder)
    (home / "runs").mkdir(parents=True)
    query = [f"q{q:07d}" for q in range(n)]
    for system in range(SYSTEMS):
        rows = zip(lists[system].tolist(), scores[system].tolist(), strict=True)
        text = "".join(
            f"{name} Q0 {name}-{doc:02d} {rank} {score:.6f} s{system}\n"
            for name, (docs, values) in zip(query, rows, strict=True)
            for rank, (doc, score) in enumerate(zip(docs, values, strict=True), start=1)
        )
        (home / "runs" / f"s{system}.txt").write_text(text)
    pooled = np.flatnonzero(union(lists))
    grade = np.searchsorted(CUTS, relevance.ravel()[pooled] + rng.normal(size=len(pooled)))
    for share in shares:
        judged = np.sort(rng.permutation(len(pooled))[: round(len(pooled) * float(share))])
        at, doc = np.divmod(pooled[judged], CANDIDATES)
        rows = zip(at.tolist(), doc.tolist(), grade[judged].tolist(), strict=True)
        text = "".join(f"{query[q]} 0 {query[q]}-{d:02d} {g}\n" for q, d, g in rows)
        (home / f"qrels-{share}.txt").write_text(text)
    return {"pairs": len(pooled)}


def draw(rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Relevance, shape (query, candidate); lists and their scores, shape (system, query, rank).

    Queries are drawn until enough of them have the wanted number of pairs in the union of their lists.
    """
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    missing = queries
    while missing:
        relevance = rng.normal(size=(CHUNK, CANDIDATES))
        score = QUALITY[:, None, None] * relevance + rng.normal(size=(SYSTEMS, CHUNK, CANDIDATES))
        lists = np.argsort(-score, axis=-1)[..., :DEPTH]
        right = np.flatnonzero(union(lists).sum(axis=1) == PAIRS)[:missing]
        score = np.take_along_axis(score, lists, axis=-1)
        kept.append((relevance[right], lists[:, right], score[:, right]))
        missing -= len(right)
    relevances, documents, scores = zip(*kept, strict=True)
    return np.concatenate(relevances), np.concatenate(documents, axis=1), np.concatenate(scores, axis=1)


def union(lists: np.ndarray) -> np.ndarray:
    """Which candidates some system retrieved, shape (query, candidate); lists have shape (system, query, rank)."""
    found = np.zeros((lists.shape[1], CANDIDATES), dtype=bool)
    for documents in lists:
        np.put_along_axis(found, documents, True, axis=1)
    return found


# ---- two systems ----


def compared(folder: Path, queries: int, limits: Limits) -> Cost:
    """The cost of comparing two systems by nDCG@10, with labels and few judgments."""
    files = folder / f"two-{queries}"
    pairs = task("write_two", files, str(queries))["pairs"]
    cost = probeval(
        limits, "compare", files / "runs", "--labels", files / "labels.tsv", "--qrels", files / "qrels.txt",
        "--metric", "nDCG@10", "--scale", "graded:3",
    )  # fmt: skip
    print(f"{f'compare two systems, {queries:,} queries, {pairs:,.0f} pairs':<62}{cost}", flush=True)
    return cost


def write_two(folder: str, queries: str) -> dict[str, float]:
    """Draw two systems with labels of all pairs and a few judgments; write ``runs/``, labels and judgments."""
    n = int(queries)
    rng = np.random.default_rng(n)
    relevance = rng.normal(size=(n, CANDIDATES))
    score = np.array([1.3, 0.95])[:, None, None] * relevance + rng.normal(size=(2, n, CANDIDATES))
    lists = np.argsort(-score, axis=-1)[..., :DEPTH]
    home = Path(folder)
    (home / "runs").mkdir(parents=True)
    for name, mine in zip(("new", "old"), lists.tolist(), strict=True):
        text = "".join(
            f"q{q:07d} Q0 q{q:07d}-{doc:02d} {rank} {DEPTH - rank} {name}\n"
            for q, docs in enumerate(mine)
            for rank, doc in enumerate(docs, start=1)
        )
        (home / "runs" / f"{name}.txt").write_text(text)
    query, doc = np.nonzero(union(lists))
    grade, label = (np.searchsorted(CUTS, relevance[query, doc] + 0.7 * rng.normal(size=len(query))) for _ in range(2))
    rows = [f"q{q:07d}\tq{q:07d}-{d:02d}" for q, d in zip(query.tolist(), doc.tolist(), strict=True)]
    table = "".join(f"{row}\t{value}\n" for row, value in zip(rows, label.tolist(), strict=True))
    (home / "labels.tsv").write_text(f"query\tdoc\tmy_llm\n{table}")
    some = rng.permutation(len(rows))[:JUDGED].tolist()
    (home / "qrels.txt").write_text("".join("{} 0 {} {}\n".format(*rows[i].split("\t"), grade[i]) for i in some))
    return {"pairs": len(rows)}


# ---- wide campaigns ----


def wide(folder: Path, data: Path, limits: Limits) -> list[Cost]:
    """A table of commands on real campaigns of many systems."""
    print(f"{'real campaigns':<62}{'seconds':>10}{'megabytes':>11}")
    syndl, trec8, dl2019 = (data / name for name in ("syndl2022-gpt4", "trec8-adhoc", "trec-dl2019-passage"))
    found = []

    def measure(what: str, command: str, *arguments: str | Path) -> None:
        found.append(probeval(limits, command, *arguments))
        print(f"{f'{command} {what}':<62}{found[-1]}", flush=True)

    if here(syndl):
        pairs = task("sample", syndl, folder / "sample.txt")["pairs"]
        common = [syndl / "runs", "--metric", METRIC, "--scale", "graded:3"]
        some = ["--qrels", folder / "sample.txt"]
        replay = ["--qrels", syndl / "qrels.txt.gz", "--policy", "gain", "--jobs", "1"]
        # A trajectory goes on to its last checkpoint, and may end 100 judgments past its stop.
        batches = ["--batch", str(BATCH), "--until", repr(BATCH * BATCHES / pairs), "--checkpoints", "0"]
        batches += ["--stop", f"budget={BATCH * BATCHES}"]
        measure(f"{syndl.name}, {WIDE:,} judgments", "evaluate", *common, *some)
        measure(f"{syndl.name}, {WIDE:,} judgments", "next", *common, *some, "-n", NEXT)
        measure(f"{syndl.name}, {BATCHES} batches of {BATCH}", "simulate", *common, *replay, *batches)
    if here(trec8):
        deep = ["--metric", "DCG@100", "--depth", "100", "--scale", "binary", "-n", NEXT]
        measure(f"{trec8.name}, top 100, nothing judged", "next", trec8 / "runs", *deep)
    for campaign in (dl2019, trec8):
        if here(campaign):
            warm = task("refit", campaign)
            what = f"warm refit {campaign.name}, {warm['pairs']:,} pairs, median of {REFITS}"
            print(f"{what:<62}{warm['seconds']:>10.3f}", flush=True)
    return found


def here(campaign: Path) -> bool:
    """Whether a campaign is at hand; says so where it is not."""
    if campaign.is_dir():
        return True
    print(f"{campaign.name} is not in {campaign.parent}: skipped", flush=True)
    return False


def sample(folder: str, file: str) -> dict[str, float]:
    """Write judgments of the pool at random; and how many pairs the pool of the judged systems has."""
    campaign = read_campaign(folder)
    queries, docs, grades = judged_pairs(campaign, WIDE, depth=DEPTH)
    rows = zip(queries, docs, grades, strict=True)
    Path(file).write_text("".join(f"{query} 0 {doc} {grade:g}\n" for query, doc, grade in rows))
    return {"pairs": len(campaign.judged_systems(DEPTH).runs.top(DEPTH).pool)}


def judged_pairs(campaign: Collection, n: int, *, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, documents and grades of ``n`` judged pairs of the pool, in random order, the same every time."""
    pool = campaign.runs.top(depth).pool
    assert campaign.judgments is not None
    grades = campaign.judgments.on(pool).grades()
    pairs = np.random.default_rng(0).permutation(np.flatnonzero(grades >= 0))[:n]
    return pool.queries[pool.query[pairs]], pool.docs[pool.doc[pairs]], grades[pairs]


def refit(folder: str) -> dict[str, float]:
    """Seconds until the model has learned from ten more judgments, starting from its last fit."""
    campaign = read_campaign(folder).judged_systems(DEPTH)
    assert campaign.judgments is not None
    scale = campaign.judgments.scale()
    rows = judged_pairs(campaign, BEFORE + BATCH * REFITS, depth=DEPTH)
    first, *rest = (Judgments.rows(*(column[:n] for column in rows)) for n in range(BEFORE, len(rows[0]) + 1, BATCH))
    begun = replace(campaign, judgments=first)
    state = Judging.of(begun, choose_model(None, begun, scale=scale).model, METRIC, scale=scale).begin()
    taken = []
    for judgments in rest:
        start = time.perf_counter()
        state = state.after(judgments)
        taken.append(time.perf_counter() - start)
    return {"seconds": statistics.median(taken), "pairs": len(state.judging.pool)}


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "write": write, "write_two": write_two, "sample": sample, "refit": refit
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
