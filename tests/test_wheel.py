"""What people install: an sdist and a wheel built from it, unpacked elsewhere, at work outside the checkout."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from probeval import __version__
from probeval.cli import demo
from probeval.reports import results
from tests.cli.conftest import Said, probeval  # noqa: F401
from tests.cli.test_demo import content

ROOT = Path(__file__).parents[1]
TOP_LEVEL = (
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "pyproject.toml",
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel made from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (found,) = built.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


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


def test_sdist_holds_what_a_contributor_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert set(TOP_LEVEL) <= held
    assert {"probeval/__init__.py", "tests/test_wheel.py", "docs/install.md", ".ci/matrix.py"} <= held
    assert not [name for name in held if "__pycache__" in name or name.startswith((".venv", "docs/_build"))]


def test_both_pass_the_checks_of_the_index(built: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(built.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_both_have_the_version_of_the_package(wheel: Path, sdist: Path, metadata: Message) -> None:
    assert metadata["Version"] == __version__
    assert wheel.name == f"probeval-{__version__}-py3-none-any.whl"
    assert sdist.name == f"probeval-{__version__}.tar.gz"


def test_the_readme_renders_and_its_links_work_away_from_the_checkout(metadata: Message) -> None:
    from readme_renderer import markdown  # twine accepts any Markdown; this is the renderer of PyPI

    page = markdown.render(metadata.get_payload())
    assert page is not None
    assert re.search(r"<h1[^>]*>probeval<", page)
    links = re.findall(r'(?:href|src)="([^"#]+)"', page)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert any(link.endswith(f"/raw/v{__version__}/docs/_static/story.png") for link in links)


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


def test_the_demo_outside_the_checkout_is_the_demo_here(
    installed: Path,
    tmp_path: Path,
    probeval: Callable[..., Said],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process, another installation: the same files to the byte, and tables show what CSV has."""
    monkeypatch.setattr(demo, "QUERIES", 10)
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    here = probeval("demo", "--judgments", 4)
    code = "import sys; from probeval.cli import demo, main; from probeval.reports import results; demo.QUERIES = 10; "
    code += f"results.PATHS, results.AHEAD = {results.PATHS}, {results.AHEAD}; "
    code += "sys.argv = ['probeval', 'demo', '--judgments', '4', '--format', 'csv']; main()"
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    there = _python(installed, tmp_path / "there", code)
    assert (here.code, there.returncode, here.err) == (0, 0, there.stderr)
    files = content(tmp_path / "here")
    assert files == content(tmp_path / "there")
    assert len([name for name in files if name.startswith("probeval-demo/runs/")]) == 12
    assert len(files["probeval-demo/report.html"]) > 100_000
    assert "synthetic" in here.err
    rows = list(csv.DictReader(io.StringIO(there.stdout)))
    assert [row["judged"] for row in rows] == ["0", "4"]
    for row in rows:
        assert f"{float(row['confidence']):.3f}" in here.out
    for title in ("nothing judged", "with the true order", "Source of labels", "worth something else", "minus system-"):
        assert here.out.count(title) == 1
    assert "Agreement with the grades" not in here.out  # four judgments are too few for it
    assert "correlation with the grades" not in here.err
    assert max(map(len, here.out.splitlines())) <= demo.WIDTH
