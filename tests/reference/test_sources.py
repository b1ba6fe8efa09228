"""Every item of docs/evidence-sources.md: our figure is as near to the printed one as it says, and is the page's."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("source_evidence", ROOT / "examples" / "source_evidence.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    if not hasattr(module, "ITEMS"):
        spec.loader.exec_module(module)
    return module


SOURCES = script()


@pytest.mark.parametrize("item", SOURCES.ITEMS, ids=lambda one: one.name)
def test_our_figure_is_near_the_printed_one(item, request):
    data = Path()
    if item.needs:
        data = request.getfixturevalue("data")
        if not (data / item.needs).exists():
            pytest.skip(f"{item.needs} is not in the data folder")
    ours = item.ours(data)
    assert ours == pytest.approx(item.printed, abs=item.within)
    assert item.row(ours) in SOURCES.PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_these_items_alone():
    rows = [row for row in SOURCES.PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    assert len(rows) - sum(row.startswith("| where ") for row in rows) == len(SOURCES.ITEMS)
    names = [one.name for one in SOURCES.ITEMS]
    assert len(set(names)) == len(names)
