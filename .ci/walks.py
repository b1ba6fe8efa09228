"""The size of the package, and the modules and functions that three common tasks enter: growth is seen here.

Lines of code are counted by tokens: docstrings, comments and blank lines are none. A function counts once, however
often it is called. ``python .ci/walks.py --calls`` lists the functions that run most often, too.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import probeval
from probeval import api
from probeval.data import LabelTable, Scale

PACKAGE = Path(probeval.__file__).parent
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
LONG = 12  # parameters of a signature, the first of a method aside
MOST_CALLED = 15


def code_lines(path: Path) -> int:
    """Lines with a token that is neither comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                docs |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def signatures() -> list[tuple[int, str]]:
    """Functions with more parameters than a reader keeps in mind, the longest first."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = node.args
                names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                n = len(names) - (bool(names) and names[0] in ("self", "cls"))
                if n > LONG:
                    found.append((n, f"{path.relative_to(PACKAGE)}:{node.name}"))
    return sorted(found, reverse=True)


def walk(work: Callable[[], Any]) -> Counter[str]:
    """How often each function of the package is entered by some work."""
    entered: Counter[str] = Counter()
    inside = f"{PACKAGE}/"

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside) and not code.co_name.startswith("<"):
            entered[f"{code.co_filename.removeprefix(inside)}:{code.co_qualname}"] += 1

    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered


def tasks(folder: Path) -> dict[str, Callable[[], Any]]:
    """Three tasks on a small synthetic campaign: an evaluation with labels, a simulation, a judgment and the next."""
    from probeval.campaign import Campaign

    campaign = probeval.synthetic_campaign(seed=1, systems=6, queries=8, depth=10)
    judgments = campaign.judgments
    assert judgments is not None
    some = judgments.take(np.arange(0, len(judgments), 8))
    pool = campaign.runs.pool
    labels = LabelTable(pool, ("judge",), np.random.default_rng(2).integers(0, 3, (len(pool), 1)).astype(float))
    store = str(folder / "walk.db")
    opened = Campaign.create(store, replace(campaign, judgments=None), metric="nDCG@10", scale=Scale.graded(2))
    opened.refresh()
    (task,) = opened.next("ann")
    for _ in range(3):  # what the first steps make is kept
        _, (task,) = opened.answer_and_next("ann", task.question, grade=1)
    return {
        "evaluate": lambda: api.evaluate(campaign.runs, "nDCG@10", qrels=some, labels=labels).to_dict(),
        "simulate": lambda: api.simulate(campaign, "DCG@10", ["gain"], batch=20, until=0.3).to_dict(),
        "judgment": lambda: opened.answer_and_next("ann", task.question, grade=1),
    }


def main() -> None:
    """Print the size, the longest signatures and the walks."""
    files = sorted(PACKAGE.rglob("*.py"))
    parts: Counter[str] = Counter()
    for path in files:
        inner = path.relative_to(PACKAGE).parts
        parts[inner[0] if len(inner) > 1 else "(top)"] += code_lines(path)
    print(f"{parts.total():,} lines of code in {len(files)} files")
    print("  " + ", ".join(f"{name} {n:,}" for name, n in parts.most_common()))
    long = signatures()
    print(f"{len(long)} signatures with more than {LONG} parameters: {', '.join(f'{at} {n}' for n, at in long[:8])}")
    with tempfile.TemporaryDirectory() as folder:
        for name, work in tasks(Path(folder)).items():
            entered = walk(work)
            modules = {at.partition(":")[0] for at in entered}
            print(f"{name}: {len(modules)} modules, {len(entered)} functions, {entered.total():,} calls")
            if "--calls" in sys.argv:
                print("".join(f"  {n:7,} {at}\n" for at, n in entered.most_common(MOST_CALLED)), end="")


if __name__ == "__main__":
    main()
