"""The command line through its real entry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from probeval.cli import main


@dataclass(frozen=True)
class Said:
    """What a command wrote and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def probeval(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run ``probeval`` with these arguments, in this process, as the installed command does."""

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["probeval", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
        return Said(code, *capsys.readouterr())

    return run
