"""The RBP nearest to a measure: against RBP by the package, persistence by persistence."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import MetricError
from probeval.metrics import Lists, measure
from probeval.relevance import synthetic_campaign
from probeval.reliability import kendall
from probeval.studies import persistence_study
from probeval.studies.pools.outcomes import residuals


@pytest.fixture(scope="module")
def campaign():
    made = synthetic_campaign(seed=2, systems=9, queries=12, depth=15)
    judged = made.judgments
    return made.runs, judged.take(np.arange(len(judged)) % 3 > 0)


def test_every_point_is_that_of_rbp(campaign):
    runs, judged = campaign
    study = persistence_study(runs, judged, ["AP"], step=0.2)
    assert [one.persistence for one in study.curve] == [0.5, 0.7]
    reference = measure(runs, judged, "AP").values
    lists, queries = Lists.judged(runs, judged, judged.scale(None))
    for point in study.curve:
        values = measure(runs, judged, f"RBP(p={point.persistence})").values
        assert point.score == pytest.approx(values.mean())
        assert point.residual == pytest.approx(residuals(lists, point.persistence).mean())
        assert point.tau == pytest.approx(kendall(values.mean(axis=1), reference.mean(axis=1)))
        found = [one for one in study.queries if one.persistence == point.persistence]
        for one in found:
            at = list(map(str, queries)).index(one.query)
            assert one.tau == pytest.approx(kendall(values[:, at], reference[:, at]))
    best = max(study.curve, key=lambda one: one.tau)
    assert study.closest[0].tau == best.tau


def test_rbp_is_nearest_to_itself(campaign):
    (closest,) = persistence_study(*campaign, ["RBP(p=0.8)"], step=0.1).closest
    assert (closest.persistence, closest.depth) == (0.8, pytest.approx(5))
    assert closest.tau == pytest.approx(1)


def test_what_cannot_be_studied(campaign):
    with pytest.raises(MetricError, match="step"):
        persistence_study(*campaign, ["AP"], step=0.6)
    with pytest.raises(MetricError, match="two systems"):
        persistence_study(*campaign, [])
