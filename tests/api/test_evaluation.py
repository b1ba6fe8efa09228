"""Evaluations: the same numbers as the command line, views of one posterior, and readable in every exit."""

from __future__ import annotations

import pandas as pd
import pytest

import probeval
from probeval.errors import DataError, MetricError, ModelError, ScoreError, SelectionError
from tests.heard import Heard

METRIC = "nDCG@10"


@pytest.fixture(scope="module")
def evaluation(folder):
    return probeval.evaluate(folder / "runs", METRIC, qrels=folder / "judged.txt")


def test_to_dict_is_what_the_command_line_prints(evaluation, folder, verb):
    runs, judged = folder / "runs", folder / "judged.txt"
    assert evaluation.to_dict() == verb("evaluate", runs, "--qrels", judged, "--metric", METRIC)
    by_query = verb("evaluate", runs, "--qrels", judged, "--metric", METRIC, "--per-query")
    assert evaluation.to_dict(per_query=True) == by_query


def test_several_measures_share_one_prediction(evaluation, folder, verb):
    other = evaluation.by("DCG@10")
    assert other.estimate.prediction is evaluation.estimate.prediction
    deeper = evaluation.by("P@5")
    assert deeper.estimate.estimation.depth == 5
    alone = probeval.evaluate(folder / "runs", "P@5", qrels=folder / "judged.txt")
    assert deeper.to_dict() == alone.to_dict()
    both = verb("evaluate", folder / "runs", "--qrels", folder / "judged.txt", "--metric", "P@5", "--metric", "DCG@10")
    assert both["results"] == [alone.to_dict(), other.to_dict()]


def test_next_pairs_are_those_of_the_command_line(evaluation, folder, verb):
    asked = {"policy": "mtc", "goal": "best", "stop": "budget=1000"}
    found = probeval.next_pairs(folder / "runs", METRIC, 7, qrels=folder / "judged.txt", **asked)
    printed = verb(
        "next", folder / "runs", "--qrels", folder / "judged.txt", "--metric", METRIC, "-n", 7, "--policy", "mtc",
        "--goal", "best", "--stop", "budget=1000",
    )  # fmt: skip
    assert found.to_dict() == printed
    assert evaluation.next(7, **asked).pairs == found.pairs
    assert len(found.pairs) == 7
    judged = {(q, d) for q, d in probeval.read_judgments(folder / "judged.txt").to_frame()[["query", "doc"]].to_numpy()}
    assert not judged & set(found.pairs)


def test_next_stops_at_its_target(evaluation):
    assert evaluation.next(5, stop="confidence=.5").pairs == []
    assert "no more judgments are needed" in evaluation.next(5, stop="confidence=.5").summary()
    assert len(evaluation.next(5, stop=f"budget={len(evaluation.estimate.judgments) + 2}").pairs) == 2


def test_choosing_pairs_refits_nothing(evaluation):
    found = evaluation.next(3, policy="random")
    assert found.state.prediction is evaluation.estimate.prediction
    assert evaluation.judging().judging.policy.name == "gain"


def test_comparisons_and_scores_are_views_of_one_distribution(evaluation):
    first, second = evaluation.ranking.order[:2]
    compared = evaluation.compare(first, second)
    assert compared.difference.mean() == pytest.approx(
        evaluation.scores[first].mean() - evaluation.scores[second].mean()
    )
    assert compared.p_better == pytest.approx(1 - evaluation.compare(second, first).p_better - compared.p_equal)
    with pytest.raises(ScoreError, match="Did you mean"):
        evaluation.compare(first, second + "x")


def test_a_report_is_written(evaluation, tmp_path):
    path = evaluation.report(tmp_path / "report.html", title="Mine")
    assert "<title>Mine" in path.read_text()


def test_exits(evaluation):
    frame = evaluation.to_frame()
    assert isinstance(frame.index, pd.RangeIndex)
    assert frame["system"].tolist() == evaluation.ranking.order
    assert len(evaluation.to_frame(per_query=True)) == 5 * 10
    assert repr(evaluation).startswith(f"<Evaluation: {METRIC} of 5 systems on 10 queries")
    assert "\n" not in repr(evaluation)
    text, html = evaluation.summary(), evaluation._repr_html_()
    for system in evaluation.ranking.order:
        assert system in text
        assert system in html
    assert "pairs judged; 95% intervals for these queries" in text
    assert html.count("<svg") == 5
    pairs = evaluation.next(2)
    assert pairs.pairs[0][1] in pairs.summary()
    assert pairs.pairs[0][1] in pairs._repr_html_()


def test_notes_reach_whoever_asks(folder):
    heard = Heard()
    found = probeval.evaluate(folder / "runs", METRIC, qrels=folder / "judged.txt", reporter=heard)
    assert list(found.notes) == heard.said
    assert heard.said[0].startswith("Model text-hierarchical:")


def test_targets_methods_and_systems(folder):
    runs, qrels = folder / "runs", folder / "qrels.txt"
    population = probeval.evaluate(runs, "DCG@10", qrels=qrels, target="population")
    assert {"sd_judging", "sd_sampling"} <= set(population.to_frame().columns)
    assert population.scores.standard_deviation.min() > 0
    judged = probeval.evaluate(runs, "DCG@10", qrels=qrels, systems="judged", method="draws", draws=20)
    assert judged.scores.method == "draws"
    assert judged.ranking.confidence == 1
    assert "5 of 5 systems have more than 0.99" in judged.notes[0]


def test_identical_systems_are_found():
    lists = {"q1": {"d1": 2.0, "d2": 1.0}}
    found = probeval.evaluate({"a": lists, "b": lists, "c": {"q1": {"d3": 1.0}}}, "P@2", scale="binary")
    assert found.identical_systems() == [["a", "b"]]


def test_mistakes_have_one_clear_line(folder):
    runs = folder / "runs"
    with pytest.raises(MetricError, match="nDCG"):
        probeval.evaluate(runs, "NDGC@10")
    with pytest.raises(ModelError, match="relevance model"):
        probeval.evaluate(runs, METRIC, model="none")
    with pytest.raises(DataError, match="no query in common"):
        probeval.evaluate(runs, METRIC, qrels={"other": {"d": 1}})
    with pytest.raises(SelectionError, match="No policy"):
        probeval.next_pairs(runs, METRIC, policy="gian", scale="graded:2")
