"""``--labels``, ``--labels-from`` and ``--observers``: several files, descriptions, and what is refused."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign
from probeval.cli.campaign import create
from probeval.cli.commands import command
from probeval.cli.compare import compare
from probeval.cli.dstudy import dstudy
from probeval.cli.evaluate import evaluate
from probeval.cli.features import features
from probeval.cli.fit import fit
from probeval.cli.gstudy import gstudy
from probeval.cli.next import next_pairs
from probeval.cli.plan import plan
from probeval.cli.report import report
from probeval.cli.simulate import simulate
from probeval.cli.validate import validate
from probeval.data import Collection, write_campaign
from probeval.relevance import read_card, synthetic_campaign

WITH_LABELS = (evaluate, next_pairs, simulate, compare, report, plan, features, gstudy, dstudy, create)


@pytest.fixture(scope="module")
def campaign() -> Collection:
    return synthetic_campaign(seed=5, systems=4, queries=6, depth=6, docs=20, groups=3)


@pytest.fixture
def files(campaign, tmp_path) -> Path:
    """The campaign, and labels of its pairs by two observers in two files; ``graded.tsv`` has grades too."""
    write_campaign(campaign, tmp_path / "campaign")
    grades = campaign.judgments.on(campaign.runs.pool).grades()
    frame = campaign.runs.pool.to_frame()
    one = frame.assign(gpt_x=np.minimum(grades + (np.arange(len(grades)) % 3 == 0), 2))
    two = frame.assign(ann=grades)
    one.to_csv(tmp_path / "one.tsv", sep="\t", index=False)
    two.to_csv(tmp_path / "two.csv", index=False)
    one.assign(grade=grades, why="so").to_csv(tmp_path / "graded.tsv", sep="\t", index=False)
    two.assign(nist2019=grades).to_csv(tmp_path / "people.tsv", sep="\t", index=False)
    (tmp_path / "observers.tsv").write_text("name\tkind\tscale\nann\tperson\tgraded:2\n")
    return tmp_path


@pytest.mark.parametrize("verb", [*WITH_LABELS, fit, validate], ids=lambda f: f.__name__)
def test_observers_go_with_labels_everywhere(verb):
    parameters = inspect.signature(command(verb)).parameters
    assert "observers" in parameters
    assert ("labels" in parameters) == (verb in WITH_LABELS)


def test_several_files_of_labels_and_their_observers(probeval, files):
    labels = ("--labels", files / "one.tsv", "--labels", files / "two.csv", "--observers", files / "observers.tsv")
    found = probeval("features", files / "campaign", "--feature", "label[ann]", "--feature", "label[gpt_x]", *labels)
    assert (found.code, found.err) == (0, "")
    ranked = probeval(
        "evaluate", files / "campaign", "--metric", "DCG@5", "--scale", "graded:2", *labels, "--format", "json"
    )
    assert ranked.code == 0, ranked.err
    one = probeval(
        "evaluate", files / "campaign", "--metric", "DCG@5", "--scale", "graded:2", *labels[:2], "--format", "json"
    )
    assert json.loads(one.out)["systems"] != json.loads(ranked.out)["systems"]


@pytest.mark.parametrize(
    ("table", "given", "expected"),
    [
        ("name\tscale\nann\tbinary\n", ("two.csv",), "observer 'ann': the label 2 of query"),
        ("name\tkind\nann\tcrowd\n", ("two.csv",), "observer 'ann': the kind must be machine, similarity or person"),
        ("name\tkind\nann\tperson\n", (), "observers describe labels, and there are none. Give labels too."),
        ("name\tkind\nann\tperson\n", ("two.csv", "two.csv"), "two columns of labels are called 'ann'. Rename one."),
    ],
)
def test_wrong_observers_are_one_clear_line(probeval, files, table, given, expected):
    (files / "observers.tsv").write_text(table)
    labels = [part for name in given for part in ("--labels", files / name)]
    for verb in (("evaluate",), ("next", "-n", "2"), ("plan",)):
        found = probeval(
            *verb, files / "campaign", "--metric", "DCG@5", "--model", "uniform", "--scale", "graded:2", *labels,
            "--observers", files / "observers.tsv",
        )  # fmt: skip
        assert (found.code, found.out) == (1, "")
        assert expected in found.err
        assert len(found.err.splitlines()) == 1


def test_what_is_passed_over_is_written_to_stderr(probeval, files):
    (files / "observers.tsv").write_text("name\tkind\tnote\nann\tperson\tx\nbob\tperson\t\n")
    found = probeval(
        "features", files / "campaign", "--feature", "label[gpt_x]", "--labels", files / "graded.tsv", "--labels",
        files / "two.csv", "--observers", files / "observers.tsv",
    )  # fmt: skip
    assert found.code == 0
    assert found.err.splitlines() == [
        f"{files / 'graded.tsv'}: columns of text are not labels: why.",
        f"{files / 'observers.tsv'}: columns that describe no observer are not used: note.",
        "Observers without labels: bob.",
    ]
    quiet = probeval("features", files / "campaign", "--labels", files / "graded.tsv", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")


def test_fit_takes_several_files_of_graded_labels(probeval, files):
    found = probeval(
        "fit", files / "campaign", "-o", files / "mine", "--depth", "5", "--labels-from", files / "graded.tsv",
        "--labels-from", files / "people.tsv", "--observers", files / "observers.tsv",
    )  # fmt: skip
    assert found.code == 0, found.err
    assert f"{files / 'graded.tsv'}: columns of text are not labels: why." in found.err
    assert read_card(files / "mine").kind == "hierarchical"
    (files / "observers.tsv").write_text("name\tscale\nann\tbinary\n")
    wrong = probeval(
        "fit", files / "campaign", "-o", files / "mine", "--labels-from", files / "graded.tsv", "--labels-from",
        files / "people.tsv", "--observers", files / "observers.tsv", "--quiet",
    )  # fmt: skip
    assert (wrong.code, wrong.out) == (1, "")
    assert "observer 'ann': the label 2 of query" in wrong.err


def test_validate_describes_the_labels_of_its_campaigns(probeval, files):
    without = probeval("validate", files / "campaign", "--observers", files / "observers.tsv")
    assert (without.code, without.out) == (1, "")
    assert "observers describe labels, and there are none" in without.err


def test_a_campaign_keeps_its_observers(probeval, files):
    store = files / "mine.db"
    made = probeval(
        "campaign", "create", store, files / "campaign", "--metric", "DCG@5", "--scale", "graded:2", "--model",
        "uniform", "--labels", files / "one.tsv", "--labels", files / "two.csv", "--observers", files / "observers.tsv",
    )  # fmt: skip
    assert made.code == 0, made.err
    with Campaign.open(str(store), read_only=True) as opened:
        labels = opened.collection.labels
    assert [(o.name, o.kind, o.scale) for o in labels.observers] == [
        ("gpt_x", "machine", "graded:2"),
        ("ann", "person", "graded:2"),
    ]
