"""What a release says of itself: its version and date agree everywhere."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import probeval

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_written_once() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"] == {"path": "probeval/__init__.py"}
    source = (ROOT / "probeval" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [probeval.__version__]
    assert re.fullmatch(r"\d+\.\d+\.\d+", probeval.__version__)


def test_the_changelog_has_what_is_coming_first_and_then_dated_versions() -> None:
    coming, *past = re.findall(r"^## (.+)$", CHANGELOG, flags=re.MULTILINE)
    assert coming == "Unreleased"
    versions, dates = zip(*(heading.split(" - ") for heading in past), strict=True)
    assert versions[0] == probeval.__version__
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [date.fromisoformat(day) for day in dates]
    assert days == sorted(days, reverse=True)


def test_the_changelog_uses_the_usual_headings() -> None:
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
