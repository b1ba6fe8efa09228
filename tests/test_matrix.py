"""``make matrix``: which interpreters it takes, and when it fails."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "matrix.py"
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("matrix", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "matrix", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    """A program with the name of an interpreter that fails, as one of pyenv does for a version that is not selected."""
    path = tmp_path / f"python{HERE}"
    path.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_shim_that_fails_is_passed_over(
    matrix: ModuleType, shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / f"python{HERE}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{shim.parent}:{real}")
    assert shutil.which(f"python{HERE}") == str(shim)
    assert matrix.interpreters([], [HERE]) == {HERE: str(real / f"python{HERE}")}


def test_a_named_interpreter_must_run(matrix: ModuleType, shim: Path) -> None:
    assert matrix.interpreters([sys.executable], [HERE]) == {HERE: sys.executable}
    with pytest.raises(SystemExit, match="is not a Python that runs and is supported"):
        matrix.interpreters([str(shim)], [HERE])


@pytest.mark.parametrize(
    ("versions", "failed", "message"),
    [
        (["3.11"], 0, "Only 1 interpreter"),
        ([], 0, "Only 0 interpreter"),
        (["3.11", "3.12"], 1, "Some tests failed"),
        (["3.11", "3.12"], 0, None),
    ],
)
def test_one_interpreter_or_one_failure_fails(
    matrix: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    versions: list[str],
    failed: int,
    message: str | None,
) -> None:
    def rows_of(version: str, _: str) -> list[object]:
        packages = ("6.1.0", "1.2.0", "-")
        return [matrix.Row(version, packages, "quick", 10, 1, failed, ok=not failed)]

    monkeypatch.setattr(matrix, "rows_of", rows_of)
    monkeypatch.setattr(matrix, "interpreters", lambda *_: dict.fromkeys(versions, "python"))
    monkeypatch.setattr(sys, "argv", ["matrix.py"])
    if message is None:
        matrix.main()
    else:
        with pytest.raises(SystemExit, match=message):
            matrix.main()
    said = capsys.readouterr().out.split()
    assert said.count("quick") == len(versions)
    assert ("FAILED" in said) == (failed > 0)
