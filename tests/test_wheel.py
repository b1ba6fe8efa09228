"""What people install: a wheel built from the tree, unpacked elsewhere, at work outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--no-index", "--target", str(target), str(wheel)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


def _python(installed: Path, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    # The target goes before everything, so that an editable install of the checkout cannot answer instead.
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    code, models = (
        [p.relative_to(ROOT) for p in (ROOT / top).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        for top in ("probeval", "models")
    )
    assert "probeval/py.typed" in held
    assert held == {path.as_posix() for path in code} | {f"probeval/{path.as_posix()}" for path in models}


def test_wheel_carries_licence_readme_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = {name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist() if "info/" in name}
    assert "probeval = probeval.cli:main" in text["entry_points.txt"]
    assert "License-Expression: BSD-3-Clause" in text["METADATA"]
    assert "Description-Content-Type: text/markdown" in text["METADATA"]
    assert text["LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_installed_package_is_the_wheels_own(installed: Path, tmp_path: Path) -> None:
    code = (
        "import probeval; print(probeval.__file__); "
        "r = probeval.as_runs({'a': {'q': {'d1': 2, 'd2': 1}}}); "
        "print(probeval.measure(r, probeval.as_judgments({'q': {'d1': 0, 'd2': 1}}), 'RR').values[0, 0])"
    )
    done = _python(installed, tmp_path, code)
    assert done.returncode == 0, done.stderr
    where, score = done.stdout.split()
    assert Path(where).is_relative_to(installed)
    assert score == "0.5"


def test_demo_runs_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = "import sys; from probeval.cli import main; sys.argv = ['probeval', 'demo', '--judgments', '10']; main()"
    done = _python(installed, tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("system-01") == 2  # with no judgment, and with ten
    assert len(list((tmp_path / "probeval-demo" / "runs").iterdir())) == 12
    assert (tmp_path / "probeval-demo" / "report.html").stat().st_size > 100_000
    assert "synthetic" in done.stderr
