"""One small evaluation that several tests look at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection
from probeval.relevance import Choice, choose_model, synthetic_campaign
from probeval.reports import Page, ReportResults, report_evaluation
from probeval.selection import Judging


def results_of(collection: Collection, choice: Choice, metric: str, *, draws: int) -> ReportResults:
    """The results of a report on a collection."""
    judging = Judging.of(collection, choice.model, metric, scale=choice.scale, draws=draws)
    return ReportResults.of(judging.begin(), choice)


@pytest.fixture(scope="session")
def small() -> Collection:
    """A synthetic campaign whose systems differ: 6 systems, 5 queries, 8 ranks, every pair judged on 0-2."""
    sds = {"team": 1.5, "system": 1.5}
    return synthetic_campaign(seed=7, systems=6, queries=5, depth=8, docs=20, groups=3, sds=sds)


@pytest.fixture(scope="session")
def choice(small: Collection) -> Choice:
    return choose_model("text-hierarchical", small)


@pytest.fixture(scope="session")
def partial(small: Collection, choice: Choice) -> ReportResults:
    """Twelve of the pairs judged."""
    assert small.judgments is not None
    few = small.judgments.take(np.random.default_rng(1).permutation(len(small.judgments))[:12])
    return results_of(replace(small, judgments=few), choice, "CG@5", draws=200)


@pytest.fixture(scope="session")
def full(small: Collection, choice: Choice) -> ReportResults:
    """Every pair judged."""
    return results_of(small, choice, "CG@5", draws=200)


@pytest.fixture(scope="session")
def page(partial: ReportResults) -> Page:
    return report_evaluation(partial, title="A <b>small</b> campaign", command="probeval report runs/")
