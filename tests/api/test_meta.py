"""``meta_study``: its defaults, the users of measures, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.api.meta import _tell, default_measures
from probeval.errors import DataError, MetricError, ReliabilityError
from probeval.reliability import Estimate
from probeval.satisfaction import load_agreement
from probeval.studies import StudiedMeasure
from tests.heard import Heard

QUICK = {"splits": 3, "samples": 20}


@pytest.fixture(scope="module")
def campaign():
    return probeval.synthetic_campaign(seed=1, systems=5, queries=10, depth=5)


def test_users_are_those_that_are_published(campaign):
    found = probeval.meta_study(campaign, ["CG@5", "nDCG@5", "P@5"], tests=["t"], **QUICK)["synthetic"]
    cg, ndcg, p = found.measures
    assert cg.preference_distance == load_agreement("CGl@5/broad").distance_from_ideal
    assert cg.satisfaction_distance == pytest.approx(0.067, abs=0.001)
    assert ndcg.preference_distance == load_agreement("nDCG@5/broad").distance_from_ideal
    assert np.isnan(p.preference_distance)
    assert np.isnan(p.satisfaction_distance)


def test_scales_cut_the_grades_of_all_campaigns(campaign):
    binary = probeval.synthetic_campaign(seed=2, systems=5, queries=10, depth=5, scale=probeval.Scale.binary())
    found = probeval.meta_study(
        [campaign, replace(binary, name="binary")], ["P@5"], scales=["binary:1"], tests=["sign"], **QUICK
    )
    assert found.names == ("synthetic", "binary")
    assert [m.scale for part in found.campaigns for m in part.measures] == ["binary:1", "binary:1"]


def test_measures_by_default_fit_the_scale():
    assert str(default_measures(probeval.Scale.graded(3), 1000)[-1]) == "AP@10"
    assert "CG@5" not in map(str, default_measures(probeval.Scale.binary(), 5))


def test_unjudged_documents_are_announced(campaign):
    heard = Heard()
    partly = replace(campaign, judgments=campaign.judgments.take(np.arange(0, len(campaign.judgments), 2)))
    probeval.meta_study(partly, ["P@5"], tests=["t"], reporter=heard, **QUICK)
    assert heard.said[0].startswith("synthetic: ")
    assert heard.said[0].endswith("pairs are not judged: they count as not relevant.")


def test_notes_are_said_once_with_their_measures():
    def studied(metric, *notes):
        none = Estimate(0.0, 0.0, 0.0)
        return StudiedMeasure(metric, "binary", 2, 4, none, none, (), notes=notes)

    heard = Heard()
    _tell("made", [studied("P@5", "alike", "odd"), studied("AP@5", "alike")], heard)
    assert heard.said == ["made: alike", "made, P@5 on binary: odd"]


def test_what_is_refused(campaign):
    with pytest.raises(ReliabilityError, match="No test 'wilcox'"):
        probeval.meta_study(campaign, tests=["wilcox"])
    with pytest.raises(ReliabilityError, match="at least one measure, one scale and one test"):
        probeval.meta_study(campaign, tests=[])
    with pytest.raises(DataError, match="synthetic: has no judgments"):
        probeval.meta_study(replace(campaign, judgments=None))
    with pytest.raises(MetricError, match="synthetic: ERR"):
        probeval.meta_study(campaign, ["ERR(max=1)@5"], **QUICK)
