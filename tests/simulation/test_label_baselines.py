"""What machine labels give without a model of relevance: the baselines in simulations, synthetic and real."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import LabelTable, Pool, read_campaign
from probeval.errors import ModelError, ScoreError, SelectionError
from probeval.simulation import Contender, SimulationProtocol, label_baselines, simulate

QUICK = {"metric": "DCG@5", "batch": 10, "checkpoints": (0.0, 0.2, 1.0), "stop": "budget=5"}
EVERY = ("random:labels:llm", "random:calibrated:llm", "random:ppi:llm", "lara:calibrated:llm")


def with_labels(collection, noise=0.0, seed=0):
    """The campaign with a column of its own grades, with noise, and one of numbers that say nothing."""
    rng = np.random.default_rng(seed)
    pool = collection.judgments.pool
    grades = collection.judgments.grades()
    guess = np.where(rng.random(len(pool)) < noise, rng.integers(0, 3, len(pool)), grades)
    return replace(
        collection, labels=LabelTable(pool, ("llm", "dice"), np.stack([guess, rng.random(len(pool))], axis=1))
    )


def run(collection, **options):
    return simulate(collection, SimulationProtocol.of(**{**QUICK, **options}))


def points(result):
    return {t.label: t.points for t in result.trajectories}


def test_labels_equal_to_grades_need_no_judgments(three):
    found = points(run(with_labels(three[0]), policies=EVERY))
    for name in EVERY:
        first = found[name][0]
        assert (first.judged, first.accuracy) == (0, 1.0)
        assert first.mae < 1e-12
    assert found["random:labels:llm"][0].confidence == 1.0  # certain by decree
    assert found["random:ppi:llm"][0].confidence < 1.0  # nothing judged tells of errors


def test_everything_judged_is_exact(three):
    for name, course in points(run(with_labels(three[0], noise=0.9), policies=EVERY)).items():
        assert course[0].mae > 0.01, name
        assert course[-1].mae < 1e-12, name
        assert (course[-1].accuracy, course[-1].confidence) == (1.0, 1.0), name


def test_with_nothing_judged_calibrated_labels_rank_as_labels(three):
    found = points(run(with_labels(three[0], noise=0.5), policies=EVERY[:3]))
    assert len({(course[0].tau, round(course[0].mae, 12)) for course in found.values()}) == 1


def test_a_wrong_label_is_corrected_by_calibration_and_by_ppi(three):
    reversed_ = with_labels(three[0])
    reversed_ = replace(reversed_, labels=replace(reversed_.labels, values=2 - reversed_.labels.values))
    found = points(run(reversed_, policies=EVERY[:3], checkpoints=(0.5,)))
    labels, calibrated, ppi = (found[name][0].mae for name in EVERY[:3])
    assert calibrated < 0.5 * labels
    assert ppi < 0.6 * labels


def test_policies_share_the_random_order_and_models_are_named(three):
    result = run(with_labels(three[0]), policies=[*EVERY[:3], "lara:calibrated"])
    assert [t.model for t in result.trajectories] == ["labels:llm", "calibrated:llm", "ppi:llm", "calibrated"]
    orders = [t.order for t in result.trajectories[:3]]
    assert orders[0] == orders[1] == orders[2]
    assert result.trajectories[3].order != orders[0]


def test_shares_of_unlabelled_pairs_are_those_of_the_campaigns_to_fit_on(three):
    other = replace(three[0], labels=LabelTable(Pool.of(["q1"], ["elsewhere"]), ("llm",), np.array([[1.0]])))
    protocol = SimulationProtocol.of(**{**QUICK, "policies": ["random:labels:llm", "random:empirical"]})
    fitted, past = simulate(other, protocol, fit=three[1:]).trajectories
    shipped = simulate(other, protocol).trajectories[0]
    assert fitted.points[0].mae == pytest.approx(past.points[0].mae, abs=1e-12)
    assert abs(fitted.points[0].mae - shipped.points[0].mae) > 1e-6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policies": ["random:ppi"], "metric": "nDCG@5"}, ScoreError, "weighted sums of gains.*; nDCG@5 is none"),
        ({"policies": ["gain:ppi:llm"]}, SelectionError, "random order: random:ppi:llm, not gain:ppi:llm"),
        ({"policies": ["random:labels:lm"]}, ModelError, "No column 'lm' in the labels: llm, dice. Did you mean 'llm'"),
    ],
)  # fmt: skip
def test_bad_requests(three, options, error, message):
    with pytest.raises(error, match=message):
        run(with_labels(three[0]), **options)


def test_labels_must_be_given(three):
    for name in ("random:labels", "random:calibrated", "random:ppi", "lara:calibrated"):
        with pytest.raises(ModelError, match="needs labels by machines, and there are none: give --labels FILE"):
            run(three[0], policies=[name])


def test_the_list_of_baselines():
    assert label_baselines("DCG@10") == ("random:labels", "random:calibrated", "random:ppi", "lara:calibrated")
    assert label_baselines("DCG@5", column="llm") == EVERY
    assert "random:ppi" not in label_baselines("nDCG@10")
    assert Contender.parse("random:ppi").relevance_model == "labels"
    assert Contender.parse("random:labels:a:b").relevance_model == "labels:a:b"
    assert Contender.parse("random:labels").method is None


# Tau with the full judgments, DCG@10 of the systems judged to depth 10, with nothing judged: labels as judgments. First
# where pairs without a label count as 0, as pairs without a judgment do in the truth, then with past shares of grades.
# The two differ on DL 2020, where 63 pairs of the pool have neither a judgment nor a label.
REAL = [
    ("trec-dl2019-passage", "gpt4o_umbrela", 0.913, 0.913),
    ("trec-dl2019-passage", "llama32_umbrela", 0.832, 0.832),
    ("trec-dl2020-passage", "gpt4o_umbrela", 0.942, 0.933),
    ("trec-dl2020-passage", "llama32_umbrela", 0.827, 0.824),
    ("trec-dl2020-passage", "flant5_Thomas", 0.741, 0.705),
]


@pytest.mark.parametrize(("name", "column", "as_zero", "as_past"), REAL)
def test_labels_of_language_models_as_judgments(data, name, column, as_zero, as_past):
    if not (data / name).is_dir():
        pytest.skip(f"{name} is not among the real campaigns here")
    campaign = read_campaign(data / name)
    pool = campaign.runs.top(10).pool
    column_at = campaign.labels.sources.index(column)
    filled = LabelTable(pool, (column,), np.nan_to_num(campaign.labels.on(pool).values[:, [column_at]]))
    settings = {"metric": "DCG@10", "checkpoints": (0.0,), "until": 1e-6}
    for labels, tau in ((filled, as_zero), (campaign.labels, as_past)):
        result = run(
            replace(campaign, labels=labels), policies=[f"random:labels:{column}", f"random:ppi:{column}"], **settings
        )
        assert [t.points[0].tau for t in result.trajectories] == pytest.approx([tau, tau], abs=0.002)
