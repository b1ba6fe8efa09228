"""Precision-recall and ROC curves of systems, and the counts behind them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from probeval.data import Judgments, Scale, as_judgments, as_runs
from probeval.metrics import Lists, measure
from probeval.plots import plot_precision_recall, plot_roc
from probeval.relevance import synthetic_campaign
from probeval.studies import Curves, confusion, measure_curves


@pytest.fixture(scope="module")
def found() -> Curves:
    campaign = synthetic_campaign(seed=5, systems=9, queries=12, depth=10)
    assert campaign.judgments is not None
    return measure_curves(campaign.runs, campaign.judgments, rel=2, depth=6)


def test_rates_of_a_confusion_matrix() -> None:
    # Of 10 judged documents 4 are relevant; 3 of the first 5 are.
    lists = Lists.of_grades([[1, 0, 1, 0, 1, 0, 0, 1, 0, 0]], Scale.binary())
    counts = confusion(lists, depth=5)
    rates = [getattr(counts, name).item() for name in ("precision", "recall", "specificity", "accuracy")]
    assert rates == [3 / 5, 3 / 4, 4 / 6, 7 / 10]
    none = confusion(Lists.of_grades([[0, 0]], Scale.binary()), depth=1)
    assert np.isnan(none.recall).all()
    assert none.specificity.item() == 0.5


def test_the_area_is_the_probability_of_the_right_order() -> None:
    rng = np.random.default_rng(2)
    docs = [f"d{i}" for i in range(30)]
    judged = {doc: int(rng.random() < 0.4) for doc in docs}
    ranked = rng.permutation(docs)[:18].tolist()
    runs = as_runs({"a": {"q": {doc: 100.0 - i for i, doc in enumerate(ranked)}}})
    curves = measure_curves(runs, as_judgments({"q": judged}))
    place = {doc: i for i, doc in enumerate(ranked)}
    good, bad = ([place.get(d, 99) for d in docs if judged[d] == grade] for grade in (1, 0))
    wins = [(g < b) + 0.5 * (g == b) for g, b in product(good, bad)]
    assert curves.area.item() == pytest.approx(float(np.mean(wins)))


def test_curves_and_counts_agree(found: Curves) -> None:
    counts, roc = found.to_frame(), found.roc_frame()
    last = roc[roc["rank"] == 6].set_index("system")
    defined = ~np.isnan(found.true_rate[0, :, 0])
    np.testing.assert_allclose(last["true_positive_rate"], found.counts.recall[:, defined].mean(axis=1))
    np.testing.assert_allclose(1 - last["false_positive_rate"], found.counts.specificity[:, defined].mean(axis=1))
    total = counts[["true_positives", "false_positives", "false_negatives", "true_negatives"]].sum(axis=1)
    assert total.nunique() == 1  # every system is held against the same judged documents
    assert np.all(np.diff(found.interpolated, axis=-1) <= 0)


def test_means_of_relevant_documents_are_those_of_the_measures() -> None:
    campaign = synthetic_campaign(seed=5, systems=3, queries=6, depth=5)
    assert campaign.judgments is not None
    found = measure_curves(campaign.runs, campaign.judgments, depth=5)
    p = measure(campaign.runs, campaign.judgments, "P@5").values.mean(axis=1)
    np.testing.assert_allclose(found.to_frame()["precision"], p)


def test_queries_without_both_kinds_of_documents_have_no_roc() -> None:
    runs = as_runs({"a": {"q1": {"d": 1.0}, "q2": {"d": 2.0, "e": 1.0}}})
    found = measure_curves(runs, Judgments.rows(["q1", "q2", "q2"], ["d", "d", "e"], [1, 1, 0]))
    assert found.to_frame()["area"].tolist() == [1.0]
    alone = measure_curves(runs, Judgments.rows(["q1"], ["d"], [1]))
    assert np.isnan(alone.to_frame()["area"]).all()
    assert alone.to_dict()["systems"][0]["recall"] == 1


def test_pictures_show_the_tables(found: Curves) -> None:
    ax = plot_precision_recall(found)
    named = {line.get_label(): line for line in ax.lines if not str(line.get_label()).startswith("_")}
    assert len(named) == 7  # six systems, and the other three
    assert "3 others" in named
    table = found.precision_frame()
    best = max(named.keys() - {"3 others"}, key=lambda name: np.mean(named[name].get_ydata()))
    expected = table[table["system"] == best]
    np.testing.assert_allclose(named[best].get_ydata(), expected["precision"])
    assert table.groupby("system")["precision"].mean().idxmax() == best
    roc = plot_roc(found)
    assert len(roc.lines) == 10  # with the line of chance
    assert "ROC to rank 6" in roc.get_title(loc="left")
