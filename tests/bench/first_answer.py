"""CPU time and memory of first answers on large campaigns: ``evaluate`` of a deep measure, and ``plan``.

The campaigns are synthetic. Deep: 17 runs, 20 queries, 1,000 documents per list, about 49,500 pairs; with nothing else,
with a machine label of every pair, and with the top 100 of all runs judged (about 13,000 judgments). Wide: 60 runs,
50 queries, top 10, about 8,200 pairs. Every command runs in a process of its own. A row states its limits and whether
they are met; a miss makes the exit status 1.

The figures before are those of commit 8f74e44 on the same machine, of two cores that other work shared, measured once:
the evaluation with labels was stopped before its end, and the plan has the figure reported for a real campaign of this
size;
``--before FOLDER`` measures them anew from that tree in the same run, with the ratio.

    python tests/bench/first_answer.py
    python tests/bench/first_answer.py --before ../probeval-8f74e44
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import probeval

TOP = 100  # ranks of all runs that are judged
PROBEVAL = "from probeval.cli import main; main()"


@dataclass(frozen=True)
class Shape:
    """The size of a campaign: the documents that a query could retrieve determine how much its lists overlap."""

    systems: int
    queries: int
    depth: int
    candidates: int


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Row:
    """A command, its limits, and its cost before."""

    what: str
    shape: Shape
    arguments: tuple[str, ...]
    limits: Cost
    before: str


DEEP, WIDE = Shape(17, 20, 1000, 2975), Shape(60, 50, 10, 735)
EVALUATE, PLAN = ("evaluate", "{}/runs", "--metric", "AP"), ("plan", "{}/runs", "--metric", "nDCG@10")
FIRST, LATER = Cost(30.0, 1024.0), Cost(90.0, 1024.0)
# The last entry: CPU seconds and megabytes of commit 8f74e44.
ROWS = (
    Row("evaluate AP, runs alone", DEEP, EVALUATE, FIRST, "9 s, 601 MB"),
    Row("evaluate AP, labels", DEEP, (*EVALUATE, "--labels", "{}/labels.tsv"), FIRST, "over 208 s, 4,318 MB"),
    Row("evaluate AP, top 100 judged", DEEP, (*EVALUATE, "--qrels", "{}/qrels.txt"), FIRST, "67 s, 1,545 MB"),
    Row("plan nDCG@10", WIDE, PLAN, LATER, "600 s, as reported"),
)


def main() -> int:
    """Measure, print, and say by the exit status whether every limit is met."""
    parser = argparse.ArgumentParser(description="CPU time and memory of first answers.")
    parser.add_argument("--before", metavar="FOLDER", help="a tree to measure in the same run")
    before = parser.parse_args().before
    print(f"{'':<30}{'pairs':>8}{'CPU s':>8}{'most':>6}{'MB':>7}{'most':>6}  {'commit 8f74e44':<22}")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            home = Path(folder) / f"{row.shape.systems}-{row.shape.depth}"
            pairs = write(home, row.shape)
            now = cost(home, row.arguments, Path(probeval.__file__).parents[1])
            fails = now.seconds > row.limits.seconds or now.megabytes > row.limits.megabytes
            missed |= fails
            then = row.before
            if before:
                old = cost(home, row.arguments, Path(before).resolve())
                then = f"{old.seconds:.0f} s, {old.megabytes:,.0f} MB, {old.seconds / now.seconds:.1f} times"
            print(
                f"{row.what:<30}{pairs:>8,}{now.seconds:>8.1f}{row.limits.seconds:>6.0f}{now.megabytes:>7.0f}"
                f"{row.limits.megabytes:>6.0f}  {then:<22}  {'FAIL' if fails else 'pass'}",
                flush=True,
            )
    return int(missed)


def cost(home: Path, arguments: tuple[str, ...], tree: Path) -> Cost:
    """The CPU time and the peak memory of a command by the package of a tree, its worker processes included."""
    command = [sys.executable, "-c", PROBEVAL, *(a.format(home) for a in arguments), "--quiet"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=os.environ | {"PYTHONPATH": str(tree)}
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{errors.read().decode()}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def write(home: Path, shape: Shape) -> int:
    """Draw a campaign and write its runs, judgments and labels, unless it is there; return its number of pairs.

    Scores have a part common to all systems, a part of each team and a part of each system; relevance follows the
    number of systems and the ranks.
    """
    done = home / "pairs.txt"
    if done.exists():
        return int(done.read_text())
    rng = np.random.default_rng(0)
    size = (shape.queries, shape.candidates)
    team = np.arange(shape.systems) * 2 // 5
    shared, by_team = rng.normal(size=size), rng.normal(size=(team[-1] + 1, *size))
    (home / "runs").mkdir(parents=True)
    popular, judged = np.zeros(size), np.zeros(size, dtype=bool)
    for system in range(shape.systems):
        score = np.round(shared + 0.7 * by_team[team[system]] + 0.7 * rng.normal(size=size), 4)
        best = np.argsort(-score, axis=1, kind="stable")[:, : shape.depth]
        weight = 1 / np.log2(np.arange(2, shape.depth + 2))
        np.put_along_axis(popular, best, np.take_along_axis(popular, best, axis=1) + weight, axis=1)
        np.put_along_axis(judged, best[:, :TOP], True, axis=1)
        lines = [
            f"{query} Q0 d{query}-{doc} {rank} {score[query, doc]:.4f} s{system}\n"
            for query in range(shape.queries)
            for rank, doc in enumerate(best[query].tolist(), start=1)
        ]
        (home / "runs" / f"team{team[system]}-{system:02d}").write_text("".join(lines))
    query, doc = np.nonzero(popular)
    logit = np.log(popular[query, doc])
    logit = 1.2 * (logit - logit.mean()) / logit.std() - 3 + 0.9 * rng.normal(size=shape.queries)[query]
    latent = logit + rng.logistic(size=len(logit))
    grade = np.searchsorted([0.0, 1.0, 2.0], latent)
    label = np.clip(np.rint(0.1 * logit + 0.3 * latent + 1.5 + 0.5 * rng.normal(size=len(logit))), 0, 3).astype(int)
    rows = list(zip(query.tolist(), doc.tolist(), grade.tolist(), label.tolist(), strict=True))
    (home / "qrels.txt").write_text("".join(f"{q} 0 d{q}-{d} {g}\n" for q, d, g, _ in rows if judged[q, d]))
    (home / "labels.tsv").write_text("query\tdoc\tllm\n" + "".join(f"{q}\td{q}-{d}\t{x}\n" for q, d, _, x in rows))
    done.write_text(str(len(rows)))
    return len(rows)


if __name__ == "__main__":
    sys.exit(main())
