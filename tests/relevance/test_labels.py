"""Machine labels as grades, and calibrated on the judged pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, LabelTable, Runs, Scale
from probeval.errors import ModelError
from probeval.relevance import CalibratedLabels, Empirical, FallbackModel, LabelsAsGrades, Uniform, choose_model

DOCS = [f"d{i}" for i in range(6)]
RUNS = Runs.rows(["a"] * 6, ["q"] * 6, DOCS)
SCALE = Scale.graded(3)


def labelled(*columns, judgments=None, names=None):
    names = names or [f"llm{i}" for i in range(len(columns))]
    table = LabelTable(RUNS.pool, tuple(names), np.array(columns, dtype=float).T)
    return Collection("labelled", RUNS, judgments, labels=table)


def expected(model, collection, scale=SCALE):
    """The expected grade of every pair, NaN without a label."""
    return model.probabilities(collection.problem(depth=6, scale=scale)) @ scale.values[model.levels(scale)]


def test_labels_on_the_scale_are_grades():
    chance = LabelsAsGrades().probabilities(labelled([0, 1, 2, 3, 1, 0]).problem(depth=6, scale=SCALE))
    np.testing.assert_array_equal(chance, np.eye(4)[[0, 1, 2, 3, 1, 0]])


def test_labels_of_another_range_are_rescaled():
    found = expected(LabelsAsGrades(), labelled([0, 1, 2, 3, 4, 5]))
    np.testing.assert_allclose(found, [0, 0.6, 1.2, 1.8, 2.4, 3])
    np.testing.assert_allclose(expected(LabelsAsGrades(), labelled([-1, 1, 1, -1, 0, 0])), [0, 3, 3, 0, 1.5, 1.5])
    # A label between two grades is shared between these two alone.
    chance = LabelsAsGrades().probabilities(labelled([0, 1, 2, 3, 4, 5]).problem(depth=6, scale=SCALE))
    np.testing.assert_allclose(chance[2], [0, 0.8, 0.2, 0], atol=1e-12)


def test_a_column_with_one_value_is_cut_to_the_scale():
    np.testing.assert_array_equal(expected(LabelsAsGrades(), labelled([7] * 6)), [3] * 6)
    np.testing.assert_array_equal(expected(LabelsAsGrades(), labelled([2] * 6)), [2] * 6)


def test_the_range_is_that_of_all_labels_and_not_of_the_pool():
    pool = Runs.rows(["a"] * 7, ["q"] * 7, [*DOCS, "elsewhere"]).pool
    table = LabelTable(pool, ("llm",), np.array([[0.0], [1], [1], [0], [0], [1], [3]]))
    assert expected(LabelsAsGrades(), Collection("", RUNS, labels=table)).tolist() == [0, 1, 1, 0, 0, 1]


def test_several_columns_count_alike_and_missing_ones_do_not():
    nan = np.nan
    collection = labelled([0, 1, 2, 3, nan, nan], [0, 10, nan, 10, 10, nan], [nan] * 6)
    np.testing.assert_allclose(expected(LabelsAsGrades(), collection), [0, 2, 2, 3, 3, nan])
    np.testing.assert_allclose(expected(LabelsAsGrades("llm1"), collection), [0, 3, nan, 3, 3, nan])


def test_fine_labels_keep_their_grade():
    fine = Scale.fine()
    np.testing.assert_allclose(
        expected(LabelsAsGrades(), labelled([0, 13, 14.5, 50, 99, 100]), fine), [0, 13, 14.5, 50, 99, 100]
    )
    # Calibration is by bins, each with the grade in its middle.
    binned = expected(CalibratedLabels(), labelled([0, 13, 17, 50, 99, 100]), fine)
    np.testing.assert_allclose(binned, fine.values[fine.levels][[0, 1, 1, 4, 9, 9]])


def test_calibration_is_the_table_of_judged_pairs():
    rng = np.random.default_rng(4)
    label, grade = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
    label[:2] = 0, 3
    for judged in range(7):
        judgments = Judgments.rows(["q"] * judged, DOCS[:judged], grade[:judged]) if judged else None
        found = CalibratedLabels().probabilities(labelled(label, judgments=judgments).problem(depth=6, scale=SCALE))
        for pair in range(6):
            alike = [g for lab, g in zip(label[:judged], grade[:judged], strict=True) if lab == label[pair]]
            count = [alike.count(g) + (g == label[pair]) for g in range(4)]  # one agreeing judgment is added
            np.testing.assert_allclose(found[pair], np.array(count) / sum(count))


def test_with_nothing_judged_calibrated_labels_are_the_labels():
    for columns in ([[0, 1, 2, 3, 1, 0]], [[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 3, 1, 0], [0, 0, 1, 1, 0, 1]]):
        collection = labelled(*columns)
        as_is, calibrated = (m.probabilities(collection.problem(depth=6, scale=SCALE)) for m in MODELS)
        np.testing.assert_allclose(calibrated, as_is, atol=1e-15)


MODELS = (LabelsAsGrades(), CalibratedLabels())


@pytest.mark.parametrize("name", ["labels", "calibrated", "labels:llm", "calibrated:llm"])
def test_with_everything_judged_all_is_exact(small, name):
    pool = small.runs.pool
    noise = np.random.default_rng(1).integers(0, 3, len(pool)).astype(float)
    collection = replace(small, labels=LabelTable(pool, ("llm",), noise[:, None]))
    relevance = choose_model(name, collection).model.predict(collection.problem(depth=8))
    mean, variance = relevance.moments(relevance.scale.gains)
    np.testing.assert_array_equal(mean, small.judgments.on(relevance.pool).grades())
    assert not variance.any()


def test_labels_equal_to_grades_are_exact_with_nothing_judged(small):
    pool, scale = small.runs.pool, small.scale()
    grades = small.judgments.on(pool).grades()
    collection = replace(small, judgments=None, labels=LabelTable(pool, ("llm",), grades[:, None]))
    relevance = choose_model("labels", collection, scale=scale).model.predict(collection.problem(depth=8, scale=scale))
    mean, variance = relevance.moments(scale.gains)
    np.testing.assert_array_equal(mean, small.judgments.on(relevance.pool).grades())
    assert not variance.any()
    assert not relevance.certain.any()  # labels are no judgments: every pair may still be judged


def test_pairs_without_a_label_have_past_shares():
    collection = labelled([0, 1, 2, 3, np.nan, 0])
    relevance = choose_model("labels", collection, scale=SCALE).model.predict(collection.problem(depth=6, scale=SCALE))
    past = choose_model("empirical", collection, scale=SCALE).model.predict(collection.problem(depth=6, scale=SCALE))
    np.testing.assert_allclose(relevance.probability[4], past.probability[4])
    assert relevance.probability[4].min() > 0


def test_judged_pairs_without_a_label_teach_nothing():
    collection = labelled([0, 1, 2, 3, np.nan, 0], judgments=Judgments.rows(["q", "p"], ["d4", "x"], [3, 2]))
    np.testing.assert_array_equal(CalibratedLabels().table(collection, SCALE), np.eye(4))


@pytest.mark.parametrize(
    ("name", "columns", "why"),
    [
        ("labels:llm0", [[0, 1, 2, 3, 1, 0]], "labels of llm0 are read as grades 0 to 3."),
        ("labels", [[0, 1, 2, 3, 4, 5]], "labels of llm0, 0 to 5, are rescaled to grades 0 to 3."),
        ("calibrated", [[0, 1, 2, 3, 1, 0], [0, 1, 0, 1, 1, 0]],
         "the mean of 2 columns of labels, each rescaled from its own range to grades 0 to 3."),
    ],
)  # fmt: skip
def test_the_reading_of_labels_is_stated(name, columns, why):
    choice = choose_model(name, labelled(*columns), scale=SCALE)
    assert (choice.name, choice.why, choice.card) == (name, why, None)


def test_labels_suggest_a_scale_where_nothing_else_does():
    nan = np.nan
    for values, scale in (
        ([0, 1, 2, 3, 1, nan], "graded:3"),
        ([0, 1, 1, 0, 0, 0], "binary"),
        ([0, 0.5, 1, 2, 3, 3], "binary"),
    ):
        choice = choose_model("labels", labelled(values))
        assert (str(choice.scale), choice.scale_from) == (scale, "that of the labels")
    judged = labelled([0, 1, 2, 3, 1, 0], judgments=Judgments.rows(["q", "q"], ["d0", "d1"], [0, 2]))
    assert choose_model("labels", judged).scale_from == "inferred from the judgments"


def test_errors_name_the_remedy():
    with pytest.raises(
        ModelError, match="model calibrated needs labels by machines, and there are none: give --labels"
    ):
        choose_model("calibrated:llm", Collection("", RUNS), scale=SCALE)
    collection = labelled([0] * 6, [np.nan] * 6, names=["gpt4o_umbrela", "empty"])
    with pytest.raises(ModelError) as error:
        choose_model("labels:gpt4o_umbrella", collection, scale=SCALE)
    assert str(error.value) == (
        "No column 'gpt4o_umbrella' in the labels: gpt4o_umbrela, empty. Did you mean 'gpt4o_umbrela'?"
    )
    with pytest.raises(ModelError, match="The labels of empty are all empty"):
        choose_model("labels:empty", collection, scale=SCALE)
    with pytest.raises(ModelError, match="use --model labels --method ppi"):
        choose_model("ppi", collection, scale=SCALE)
    with pytest.raises(ModelError, match="Only a hierarchical model has a posterior"):
        choose_model("labels", collection, scale=SCALE, inference="nuts")


def test_models_have_plain_data_and_findings():
    assert LabelsAsGrades("x").to_dict() == {"kind": "labels", "column": "x"}
    assert CalibratedLabels().to_dict() == {"kind": "calibrated", "column": None}
    assert "certain" in str(LabelsAsGrades().check()[0])
    assert "independent" in str(CalibratedLabels().check()[0])
    none = Collection("", RUNS)  # without labels, the next model applies
    for model in MODELS:
        relevance = FallbackModel([model, Uniform()]).predict(none.problem(depth=6, scale=SCALE))
        np.testing.assert_allclose(relevance.probability, 0.25)
    assert isinstance(choose_model("labels", labelled([0] * 6), scale=SCALE).model.models[1], Empirical)
