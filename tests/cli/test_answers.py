"""Answers about documents on the command line: --preferences and --magnitudes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from probeval.data import write_campaign
from tests.relevance.answer_campaigns import draw_choices, draw_numbers, draw_truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign without judgments, with choices and numbers of two assessors."""
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("answers")
    truth = draw_truth(rng, queries=6, systems=3, docs=6)
    write_campaign(truth.collection, path / "campaign")
    people = {"ann": 0.6, "bob": 0.6}
    draw_choices(rng, truth, people, 30).to_frame().to_csv(path / "preferences.csv", index=False)
    noise = dict.fromkeys(people, 0.3)
    draw_numbers(rng, truth, people, noise, 20).to_frame().to_csv(path / "magnitudes.csv", index=False)
    return path


def asked(folder, *more):
    return "evaluate", folder / "campaign" / "runs", "--metric", "nDCG@5", "--scale", "graded:2", *more


def test_evaluate_counts_answers_and_gives_verdicts(probeval, folder):
    files = ("--preferences", folder / "preferences.csv", "--magnitudes", folder / "magnitudes.csv")
    said = probeval(*asked(folder, *files, "--format", "json"))
    assert said.code == 0, said.err
    assert "100 answers about documents by ann (50), bob (50)." in said.err
    answers = json.loads(said.out)["answers"]
    assert (answers["answers"], answers["outside"]) == (100, 0)
    assert [one["assessor"] for one in answers["assessors"]] == ["ann", "bob"]
    assert {one["verdict"] for one in answers["assessors"]} <= {"attentive", "unclear"}
    assert all(one["slope_lower"] < one["slope"] < one["slope_upper"] for one in answers["assessors"])


def test_a_model_without_answers_says_so(probeval, folder):
    said = probeval(*asked(folder, "--preferences", folder / "preferences.csv", "--model", "uniform"))
    assert said.code == 0, said.err
    assert "The model does not use answers about documents" in said.err


def test_the_schema_has_the_answers(probeval):
    found = json.loads(probeval("schema", "evaluate").out)
    assert "AnsweringAssessor" in json.dumps(found)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "none"), "--preferences is for a model"),
        (("--inference", "nuts"), "Answers about documents are fitted by inference='laplace' only"),
    ],
)
def test_what_does_not_go_together(probeval, folder, more, message):
    said = probeval(*asked(folder, "--preferences", folder / "preferences.csv", *more))
    assert said.code != 0
    assert message in said.err


def test_a_report_of_a_simulation_takes_no_answers(probeval, folder, put):
    qrels = put("qrels.txt", "q1 0 d01 1\n")
    said = probeval(
        "report", folder / "campaign" / "runs", "--metric", "nDCG@5", "--qrels", qrels, "--policy", "gain",
        "--preferences", folder / "preferences.csv",
    )  # fmt: skip
    assert said.code != 0
    assert "--preferences is not for a simulation" in said.err


def test_bad_answers_are_refused_with_their_place(probeval, folder, put):
    wrong = put("wrong.csv", "query,left,right,choice\nq1,d1,d1,left\n")
    said = probeval(*asked(folder, "--preferences", wrong))
    assert said.code != 0
    assert "compares document 'd1' of query 'q1' with itself" in said.err
