"""Attacks: many cases, each of which is used or refused in one line; anything else is a fault.

A case of most attacks is made from the seed and its number alone, so a fault comes back by ``--first NUMBER``.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import category

from probeval.errors import ProbevalError, ProbevalWarning

UNSEEN = ("Cc", "Cs", "Zl", "Zp")  # Unicode's categories of control characters, surrogates and line breaks
MOST_CHARACTERS = 2500  # of an error
MOST_MEMORY = 1 << 30  # bytes that a process takes at most, whatever small files it reads

Tally = Counter[str]
Attempt = Callable[[random.Random, Path, Tally], object]


@dataclass(frozen=True)
class Attack:
    """An attack on one part of the package.

    Parameters
    ----------
    cases
        What its cases are called.
    full
        The number of cases at full size.
    attempts
        Given the number of cases, prepares what they attack. An attempt gets a random generator of the case, a folder,
        and a tally of what was attacked; it raises an error of probeval where the case was refused.
    harm, promise
        What is done, and what holds nevertheless; for the table.
    """

    cases: str
    full: int
    attempts: Callable[[int], AbstractContextManager[Attempt]]
    harm: str
    promise: str


@dataclass
class Outcome:
    """What happened to the cases of an attack.

    Parameters
    ----------
    used, refused
        The numbers of cases that were used like any other, and that were refused in one line.
    faults, examples
        How often each fault was seen, and the first case with it.
    tally
        What was attacked, or seen meanwhile, and how often.
    """

    used: int = 0
    refused: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    tally: Tally = field(default_factory=Counter)
    memory: int = 0

    @property
    def total(self) -> int:
        """The number of cases."""
        return self.used + self.refused + sum(self.faults.values())

    @property
    def text(self) -> str:
        """The counts, in lines."""
        lines = [f"{self.total:,} cases: {self.used:,} used, {self.refused:,} refused in one line, "
                 f"{sum(self.faults.values()):,} faults; {self.memory >> 20:,} MB at most"]  # fmt: skip
        lines += [f"{n} x {what}\n   --first {self.examples[what]}" for what, n in self.faults.most_common()]
        return "\n".join([*lines, *(f"{n:,} {what}" for what, n in sorted(self.tally.items()))])


def memory() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run_attack(attack: Attack, number: int, *, seed: int = 1, first: int = 0) -> Outcome:
    """Try so many cases of an attack."""
    outcome = Outcome()
    apart = tempfile.TemporaryDirectory(dir=in_memory())
    with apart as folder, warnings.catch_warnings(), attack.attempts(number) as attempt:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ProbevalWarning)
        for case in range(first, first + number):
            try:
                attempt(random.Random(f"{seed} {case}"), Path(folder), outcome.tally)
                outcome.used += 1
            except ProbevalError as error:
                if is_one_line(str(error)):
                    outcome.refused += 1
                else:
                    _add_fault(outcome, f"not one line: {str(error)[:200]!r}", case)
            except Exception as error:
                _add_fault(outcome, _where(error), case)
    outcome.memory = memory()
    return outcome


def in_memory() -> Path | None:
    """A folder in memory, if there is one: a store waits for its disk at every step."""
    place = Path("/dev/shm")
    return place if place.is_dir() else None


def is_one_line(text: str) -> bool:
    """Whether a terminal shows a text as it is, in one line that is not endless."""
    return len(text) <= MOST_CHARACTERS and not any(category(c) in UNSEEN for c in text)


def _add_fault(outcome: Outcome, what: str, case: int) -> None:
    outcome.faults[what] += 1
    outcome.examples.setdefault(what, case)


def _where(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/probeval/" in frame.filename]
    place = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {str(error)[:100]!r}"


def check_some(attack: Attack, number: int) -> Outcome:
    """Try the first cases of an attack here; none may have a fault, and some must be used."""
    outcome = run_attack(attack, number)
    print(outcome.text)
    assert not outcome.faults, outcome.text
    assert outcome.used > number / 50, outcome.text  # not all are refused
    return outcome


def check_apart(name: str, number: int) -> None:
    """Try so many cases of an attack in a process of its own, which fails if there is a fault or it takes too much."""
    words = [sys.executable, "-m", "tests.attack", name, "--number", str(number)]
    told = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    print(told.stdout)
    assert told.returncode == 0, told.stdout + told.stderr
