#!/usr/bin/env python3
"""Run the quick and the Bayesian tests on every supported Python found here: make matrix.

Each Python has its own environment, .venv-3.xx. The Bayesian tests run twice: with PyMC's own sampler, then with
nutpie.
Interpreters are looked for on the PATH and in pyenv, unless they are named:

    make matrix PYTHONS="python3.11 python3.13"

Exits with 1 if a test fails, an environment cannot be made, or fewer than two interpreters ran.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST = 2  # interpreters: with one alone nothing is compared
QUICK, BAYESIAN = "not slow and not pages and not validation", "bayes and not validation"
PACKAGES = ("pymc", "arviz", "nutpie")
HEADINGS = ("Python", "PyMC", "ArviZ", "nutpie", "tests", "passed", "skipped", "failed", "")

# A name on the PATH may be a shim that fails, or an interpreter that cannot make environments.
PROBE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
VERSIONS = f"""
import platform
from importlib.metadata import PackageNotFoundError, version
def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"
print(platform.python_version(), *map(found, {PACKAGES}))
"""


@dataclass(frozen=True)
class Row:
    """One run of tests: the interpreter, the versions of PACKAGES, which tests, and how many ended how."""

    python: str
    packages: tuple[str, ...]
    tests: str
    passed: int
    skipped: int
    failed: int
    ok: bool

    def cells(self) -> tuple[str, ...]:
        verdict = "" if self.ok else "FAILED"
        return (self.python, *self.packages, self.tests, *map(str, (self.passed, self.skipped, self.failed)), verdict)


def supported() -> list[str]:
    """The versions of Python in the classifiers of the project: 3.11, 3.12, ..."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    return [c.rpartition(" ")[2] for c in project["classifiers"] if c.startswith(prefix)]


def probe(python: str) -> str | None:
    """The version of an interpreter, or None if it does not run."""
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def candidates(versions: list[str]) -> Iterator[str]:
    """Interpreters that may run: on the PATH, folder by folder, then those of pyenv."""
    for version in versions:
        for folder in os.get_exec_path():
            if found := shutil.which(f"python{version}", path=folder):
                yield found
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        for python in sorted(Path(root, "versions").glob("*/bin/python")):
            yield str(python)


def interpreters(named: list[str], versions: list[str]) -> dict[str, str]:
    """One interpreter that runs for each version, by version."""
    found: dict[str, str] = {}
    for python in named or candidates(versions):
        version = probe(python)
        if version in versions:
            found.setdefault(version, python)
        elif named:
            sys.exit(f"{python} is not a Python that runs and is supported ({', '.join(versions)}).")
    return {version: found[version] for version in versions if version in found}


def environment(version: str, python: str) -> str:
    """The interpreter of .venv-3.xx, made if it is not there."""
    folder = ROOT / f".venv-{version}"
    own = str(folder / "bin" / "python")
    if probe(own) != version:
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    return own


def pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], cwd=ROOT, check=True)


def run(python: str, name: str, marker: str) -> Row:
    """Run the tests that a marker expression selects."""
    version, *packages = subprocess.run(
        [python, "-c", VERSIONS], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"\n== Python {version}, nutpie {packages[-1]}: {name} tests", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        command = [python, "-m", "pytest", "-n", "auto", "-m", marker, f"--junitxml={report}"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        suite = ET.parse(report).getroot().find("testsuite") if report.exists() else None
    count = {} if suite is None else suite.attrib
    total, skipped, failures, errors = (int(count.get(k, 0)) for k in ("tests", "skipped", "failures", "errors"))
    failed = failures + errors
    return Row(version, tuple(packages), name, total - skipped - failed, skipped, failed, done.returncode == 0)


def rows_of(version: str, python: str) -> Iterator[Row]:
    """All runs on one interpreter."""
    try:
        own = environment(version, python)
        pip(own, "install", "--editable", ".[dev]")
        pip(own, "uninstall", "--yes", "nutpie")  # of an earlier matrix
        yield run(own, "quick", QUICK)
        yield run(own, "Bayesian", BAYESIAN)
        pip(own, "install", "--editable", ".[dev,fast]")
        yield run(own, "Bayesian", BAYESIAN)
    except subprocess.CalledProcessError as error:
        print(f"Python {version}: {error}", file=sys.stderr)
        yield Row(version, ("-",) * len(PACKAGES), "not run", 0, 0, 0, ok=False)


def table(rows: list[Row]) -> str:
    cells = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    versions = supported()
    found = interpreters(sys.argv[1:], versions)
    missing = [version for version in versions if version not in found]
    if missing:
        print(f"No interpreter that runs: {', '.join(missing)}", file=sys.stderr)
    rows = [row for version, python in found.items() for row in rows_of(version, python)]
    ran = {row.python for row in rows if row.tests != "not run"}
    print(f"\n{table(rows)}" if rows else "")
    if len(ran) < LEAST:
        sys.exit(f"Only {len(ran)} interpreter(s) ran; a matrix needs {LEAST}. Name others: make matrix PYTHONS=...")
    if not all(row.ok for row in rows):
        sys.exit("Some tests failed.")


if __name__ == "__main__":
    main()
