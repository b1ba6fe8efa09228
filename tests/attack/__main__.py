"""``make attack``: attacks on all parts of the package, and the table of what they found in ``docs/security.md``.

``python -m tests.attack files --number 100000`` is one attack, and prints what happened. A fault comes back by
``--first CASE --number 1``. Without a name, all attacks run, one after another, each in a process of its own, at
``--scale``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from probeval import __version__
from tests.attack.attacks import ATTACKS, run_named
from tests.attack.cases import MOST_MEMORY, Attack, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- begin of the table of make attack -->\n", "<!-- end of the table of make attack -->\n"
MOST_LISTED = 4  # kinds of what was attacked in the table; more are told below it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=ATTACKS)
    parser.add_argument("--number", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    if given.name is not None:
        number = given.number or _size(ATTACKS[given.name], given.scale)
        outcome = run_named(given.name, number, seed=given.seed, first=given.first)
        print(outcome.text)
        return int(_failed(outcome))
    found = {}
    for name, attack in ATTACKS.items():
        apart = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=apart) as alone:
            found[name] = alone.submit(run_named, name, _size(attack, given.scale), seed=given.seed).result()
        print(f"{name}: {found[name].text}", flush=True)
    write_table(PAGE, table(found, given.scale))
    return int(any(map(_failed, found.values())))


def _size(attack: Attack, scale: float) -> int:
    return max(1, round(attack.full * scale))


def _failed(outcome: Outcome) -> bool:
    return bool(outcome.faults) or outcome.memory > MOST_MEMORY


def table(found: dict[str, Outcome], scale: float) -> str:
    """The table of the page."""
    lines = [
        f"`make attack SCALE={scale:g}` on version {__version__}, with Python {sys.version.split()[0]}:",
        "",
        "| attack | what must hold | cases | of full size | outcome | faults | memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, outcome in found.items():
        attack = ATTACKS[name]
        used = f"{outcome.used:,} used, {outcome.refused:,} refused" if outcome.refused else "all used"
        lines.append(
            f"| {attack.harm} | {attack.promise} | {outcome.total:,} {attack.cases} | {attack.full:,} | "
            f"{'; '.join([used, *_told(outcome)])} | {sum(outcome.faults.values()):,} | {outcome.memory >> 20:,} MB |"
        )
    kinds = {name: outcome.tally.most_common() for name, outcome in found.items() if len(outcome.tally) > MOST_LISTED}
    lines += ["", *(f"- *{name}*: {', '.join(f'{n:,} {what}' for what, n in seen)}." for name, seen in kinds.items())]
    return "\n".join(lines) + "\n"


def _told(outcome: Outcome) -> list[str]:
    """What was attacked or seen; many kinds are told below the table."""
    return [f"{n:,} {what}" for what, n in outcome.tally.items()] if len(outcome.tally) <= MOST_LISTED else []


def write_table(page: Path, new: str) -> None:
    """Put a table in the place of the one on the page, between its marks."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(before + BEGIN + new + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
