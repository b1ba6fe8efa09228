"""A real browser: a report of 60 systems on a desktop and on a phone, with its long tables folded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import probeval
from probeval.reports import report_simulation, write_report
from probeval.satisfaction import load_mapping
from probeval.simulation import SimulationProtocol, simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow
OUTSIDE = """[...document.querySelectorAll('body *')]
    .filter(e => !e.parentElement.closest('.wide, svg') && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName)"""
ROWS = "[...document.querySelectorAll('#ranking tbody tr')].filter(row => row.offsetHeight).length"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 60 systems with long names, 100 pairs judged."""
    made = probeval.synthetic_campaign(seed=3, systems=60, queries=8, depth=5)
    names = tuple(f"{name}-of-a-team-with-a-long-name" for name in made.runs.systems)
    assert made.judgments is not None
    few = made.judgments.take(np.random.default_rng(1).permutation(len(made.judgments))[:100])
    campaign = replace(made, runs=replace(made.runs, systems=names, teams=None), metadata=None, judgments=few)
    evaluation = probeval.evaluate(campaign, "DCG@5", model="uniform")
    page = evaluation.page(command="probeval report runs/", mapping=load_mapping("DCGl@5/broad"))
    return write_report(page, tmp_path_factory.mktemp("reports") / "many.html")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = probeval.synthetic_campaign(seed=7, systems=5, queries=5, depth=5)
    policies = [
        f"{policy}:{model}" for policy in ("mtc", "random", "gain", "variance") for model in ("uniform", "independent")
    ]
    protocol = SimulationProtocol.of("DCG@5", policies=policies, seeds=2, batch=10, stop="confidence=.9")
    page = report_simulation(simulate(made, protocol))
    return write_report(page, tmp_path_factory.mktemp("reports") / "simulated.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
@pytest.mark.parametrize("name", ["many", "simulated"])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(request.getfixturevalue(name).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUTSIDE) == []
    page.close()


def test_a_long_table_unfolds_and_is_whole_on_paper(browser: Browser, many: Path) -> None:
    page = browser.new_page()
    page.goto(many.as_uri())
    assert page.evaluate(ROWS) == 20
    page.locator("#ranking summary").click()
    assert page.evaluate(ROWS) == 60
    page.locator("#ranking summary").click()
    assert page.evaluate(ROWS) == 20
    page.emulate_media(media="print")
    assert page.evaluate(ROWS) == 60
    assert not page.locator("#ranking summary").is_visible()
    page.close()
