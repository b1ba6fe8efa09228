"""The tutorial notebook runs, and prints what is stored in it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"-?\d+\.\d+")
SLACK = 0.02  # between machines and versions, of numbers with decimals


@pytest.fixture(scope="module")
def notebooks():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_every_cell_and_its_outputs(notebooks):
    stored = notebooks.read()
    page = notebooks.page(stored)
    assert page.count("```python") == sum(cell["cell_type"] == "code" for cell in stored["cells"])
    assert "<caption>nDCG@10</caption>" in page
    assert 'src="data:image/png;base64,' in page
    assert "/tmp/" not in page  # nothing of the machine that it ran on
    assert "Traceback" not in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Jupyter's packages, not of the cells: those are in another process
def test_the_notebook_prints_what_is_stored(notebooks):
    stored = notebooks.read()
    again = notebooks.run(stored)
    for cell, old, new in zip(stored["cells"], notebooks.outputs(stored), notebooks.outputs(again), strict=True):
        where = "".join(cell["source"])
        text, said = "\n".join(old), "\n".join(new)
        assert NUMBER.sub("#", text).split() == NUMBER.sub("#", said).split(), f"{where}\nRun docs/notebooks.py."
        assert [float(n) for n in NUMBER.findall(said)] == pytest.approx(
            [float(n) for n in NUMBER.findall(text)], abs=SLACK
        ), where
