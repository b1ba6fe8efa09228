"""What scripts of evidence share. `python examples/evidence.py DATA` lists the campaigns and their pools."""

import fcntl
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data import Collection, read_campaign
from probeval.simulation import HeldOut

DOCS = Path(__file__).parents[1] / "docs"

# Campaigns of texts and the depths to which they are judged, the ones that are quickest to simulate first.
CAMPAIGNS = {
    "clef-tar2019-task2": 10,
    "touche2022-task2": 5,
    "trec-dl2019-passage": 10,
    "clef-ehealth2018-irtask1": 10,
    "clef-ehealth2015": 10,
    "trec-dl2020-passage": 10,
    "clef-ehealth2014": 10,
    "trec-covid-round2": 5,
    "trec-covid-round1": 5,
    "trec8-adhoc": 10,
}
LEARNED = {"wikitables-keyword": 10, "acordar1": 10}  # only learned from
COVID = ("trec-covid-round1", "trec-covid-round2")  # the same topics: left out together
WAIT = 20  # seconds, where another process does the work that is needed


class BusyError(Exception):
    """Another process is doing this piece of work."""


class Keep:
    """Finished work in a folder: each piece is made once, by one of the processes that share the folder.

    A process holds a lock on the piece that it makes. The lock ends with the process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Any] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, name: str) -> bool:
        return self._path(name).exists()

    def __call__(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` made, now or in an earlier run; raise BusyError if another process is making it."""
        if name not in self.made:
            if name not in self:
                self._make(name, make)
            self.made[name] = pickle.loads(self._path(name).read_bytes())
        return self.made[name]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.pkl"

    def _make(self, name: str, make: Callable[[], Any]) -> None:
        path = self._path(name)
        lock = path.with_name(f"{path.name}.lock")
        with lock.open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(name) from None
            try:
                if not path.exists():
                    self._write(path, make)
            finally:
                lock.unlink(missing_ok=True)

    @staticmethod
    def _write(path: Path, make: Callable[[], Any]) -> None:
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make()
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(pickle.dumps(made))
        part.rename(path)
        print(f"{path.stem}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def do_all(pieces: list[Callable[[], Any]]) -> list[Any]:
    """Do all pieces of work, in order except that those another process is doing come last; return their results."""
    done: dict[int, Any] = {}
    while len(done) < len(pieces):
        before = len(done)
        for i, piece in enumerate(pieces):
            if i not in done:
                try:
                    done[i] = piece()
                except BusyError:
                    continue
        if len(done) == before:
            time.sleep(WAIT)
    return [done[i] for i in range(len(pieces))]


def others(name: str) -> dict[str, int]:
    """Return the campaigns to learn from where this one is left out, and their depths."""
    out = COVID if name in COVID else (name,)
    return {n: depth for n, depth in (CAMPAIGNS | LEARNED).items() if n not in out}


def past_campaigns(data: Path, name: str | None = None, *, labels: bool = True) -> list[Collection]:
    """Return the campaigns to learn from: all, or those that are left when one is taken out; each is read once."""
    past = CAMPAIGNS | LEARNED if name is None else others(name)
    return [_past(data / n, depth, labels) for n, depth in past.items()]


@cache
def _past(folder: Path, depth: int, labels: bool) -> Collection:
    part = read_campaign(folder).judged_part(depth)
    return part if labels else replace(part, labels=None)


class Targets:
    """Stated targets, and whether they are met."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def least(self, what: str, value: float, target: float) -> None:
        self._add(what, value, f"at least {short(target)}", value >= target - 5e-4)

    def most(self, what: str, value: float, target: float) -> None:
        self._add(what, value, f"at most {short(target)}", value <= target + 5e-4)

    def _add(self, what: str, value: float, target: str, met: bool) -> None:
        found = "-" if np.isnan(value) else "yes" if met else "**no**"
        self.rows.append({"figure": what, "value": value, "target": target, "met": found})

    def __str__(self) -> str:
        met = sum(row["met"] == "yes" for row in self.rows)
        return f"{met} of {len(self.rows)} targets are met.\n\n" + table(pd.DataFrame(self.rows))


def short(value: float) -> str:
    """Return a number in three digits or fewer."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def count_of(n: int, thing: str) -> str:
    """Return a number and its noun."""
    return f"One {thing}" if n == 1 else f"{n} {thing}s"


def table(frame: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    rows = [[_cell(v) for v in row] for row in frame.itertuples(index=False)]
    head = list(map(str, frame.columns))
    return "\n".join("| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.3f}" if abs(value) < 10 else f"{value:.0f}"
    return "-" if value is None else str(value).replace("|", "\\|")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/evidence.py DATA")
    for campaign, k in CAMPAIGNS.items():
        print(HeldOut.of(read_campaign(Path(sys.argv[1]) / campaign), depth=k))
