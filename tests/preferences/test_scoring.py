"""Scores of documents from tables of answers, by the methods of Yang (2019, chapter 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from probeval.data import Judgments, as_answers
from probeval.errors import DataError
from probeval.preferences import (
    DocumentScores,
    combine_questions,
    ratio_scores,
    relevance_shares,
    score_documents,
    win_shares,
)

ANSWERS = pd.DataFrame(
    {
        "query": ["q1", "q1", "q1", "q1", "q2"],
        "left": ["d1", "d2", "d1", "d3", "d5"],
        "right": ["d2", "d3", "d3", "d4", "d6"],
        "choice": ["left", "left", "left", "equal", "right"],
        "relevant": ["both", "chosen", "chosen", "neither", "chosen"],
        "left_number": [50, 40, 60, 5, 0],
        "right_number": [40, 10, 5, 5, 30],
    }
)


def scores(found: DocumentScores) -> dict[str, float]:
    return found.to_frame().set_index("doc")["score"].to_dict()


def test_the_published_share_of_a_document_preferred_6_times_of_99() -> None:
    table = pd.DataFrame({"query": "405", "left": "d", "right": [f"e{i}" for i in range(99)], "choice": "right"})
    table.loc[:5, "choice"] = "left"
    row = score_documents(table).to_frame().set_index("doc").loc["d"]
    assert (round(row["score"], 3), row["answers"]) == (0.061, 99)


def test_methods_are_the_functions_of_their_names() -> None:
    answers = as_answers(ANSWERS)
    wins = win_shares(answers).set_index("doc")["share"].to_dict()
    assert scores(score_documents(ANSWERS, "win-shares")) == wins
    assert scores(score_documents(answers, "win-shares")) == wins
    assert (
        scores(score_documents(ANSWERS, "relevance-shares"))
        == relevance_shares(answers).set_index("doc")["share"].to_dict()
    )
    (_, first), _ = answers.by_query()
    ratios = score_documents(ANSWERS, "ratios").to_frame().query("query == 'q1'")
    expected = ratio_scores(first).to_frame()
    pd.testing.assert_frame_equal(ratios[["doc", "score", "sd"]], expected[["doc", "score", "sd"]])
    assert ratios["answers"].tolist() == [2, 2, 3, 1]


def test_several_methods_are_combined_by_the_shifted_geometric_mean() -> None:
    methods = ["win-shares", "relevance-shares", "ratios"]
    each = [scores(score_documents(ANSWERS, method)) for method in methods]
    for doc, combined in scores(score_documents(ANSWERS, methods)).items():
        assert combined == pytest.approx(float(combine_questions([one[doc] for one in each])))
    with pytest.raises(DataError, match=r"document 'd5' of query 'q2' has no answer for ratios"):
        score_documents(ANSWERS.assign(left_number=[1, 2, 3, 4, None], right_number=[1, 2, 3, 4, None]), methods)


def test_magnitudes_are_normalised_by_unit_and_averaged_on_the_log_scale() -> None:
    # Derived from Eq 2.1: units (10, 20, 40) and (1, 2, 8) give 3.5495, 7.0991, 14.1981 and 2.8173, 5.6345, 22.5382.
    table = pd.DataFrame(
        {"query": "q", "doc": list("abcabc"), "number": [10, 20, 40, 1, 2, 8], "assessor": list("xxxyyy")}
    )
    expected = np.sqrt(np.multiply([3.5495, 7.0991, 14.1981], [2.8173, 5.6345, 22.5382]))
    found = scores(score_documents(table, "magnitudes"))
    assert [found[doc] for doc in "abc"] == pytest.approx(expected.tolist(), rel=1e-4)
    units = table.rename(columns={"assessor": "unit"})
    assert scores(score_documents(units, "magnitudes")) == pytest.approx(found)


def test_means_of_numbers_and_of_labels() -> None:
    table = pd.DataFrame({"query": "q", "doc": list("aab"), "number": [90, 70, 5], "assessor": list("xyx")})
    assert scores(score_documents(table, "mean")) == {"a": 80, "b": 5}
    votes = pd.DataFrame({"query": "q", "doc": list("aaab"), "label": [2, 0, 1, 3], "worker": list("xxyx")})
    found = score_documents(votes, "mean")
    assert scores(found) == {"a": 0.5, "b": 3}  # the latest label of a worker counts
    judged = Judgments.rows(["q"] * 4, list("aaab"), [2, 0, 1, 3], assessors=list("xxyx"))
    assert found.to_judgments().grades().tolist() == judged.grades("mean").tolist()


def test_grades_have_their_shares_in_every_query() -> None:
    found = score_documents(ANSWERS, "ratios", shares=[0.5, 0.25, 0.25])
    table = found.to_frame().query("query == 'q1'")
    assert table["grade"].tolist() == [2, 1, 0, 0]
    assert found.to_judgments().scale().grades == (0, 1, 2)
    assert found.to_dict()["shares"] == [0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("table", "methods", "why"),
    [
        (ANSWERS, "wins", "No method 'wins'"),
        (ANSWERS, [], "No method"),
        (ANSWERS, ["mean", "ratios"], "mean cannot be combined with others"),
        (ANSWERS, "magnitudes", "no column 'doc': expected query, doc, number"),
        (ANSWERS.drop(columns="relevant"), "relevance-shares", "no answer gives relevance shares"),
        (ANSWERS.assign(right="d1"), "win-shares", "compares document 'd1' of query 'q1' with itself"),
        (ANSWERS.iloc[[0, 3]], "ratios", r"query 'q1': the comparisons are in 2 parts .*\(d1, d2; d3, d4\)"),
    ],
)
def test_answers_without_a_score(table: pd.DataFrame, methods: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        score_documents(table, methods)
