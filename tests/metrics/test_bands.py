"""Bands of ranks against Yang, Improving the Reliability and Robustness of IR Evaluation (2019), section 3.3."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from probeval.data import as_judgments, as_runs
from probeval.errors import MetricError
from probeval.metrics import Lists, band_starts, banded, parse, worst_case
from probeval.metrics.ties import expected
from probeval.reliability import band_study


def test_the_published_bands():
    # Section 3.3.1: [1][2-3][4-7] for 2, and lengths of the Fibonacci numbers for 1.62.
    assert band_starts(2, 8).tolist() == [1, 2, 4, 8]
    assert np.diff(band_starts(1.62, 88)).tolist() == [1, 2, 3, 5, 8, 13, 21, 34]
    assert 187 in band_starts(1.1, 200)  # exact: in binary it would be 188


@pytest.mark.parametrize(
    ("rho", "worst"),
    [
        (1.1, (0.0038, 0.0002, 0.0087)),
        (1.2, (0.0119, 0.0052, 0.0231)),
        (1.4, (0.0417, 0.0429, 0.0482)),
        (1.7, (0.0833, 0.0945, 0.0777)),
        (2.0, (0.0833, 0.1016, 0.0971)),
    ],
)
def test_the_published_worst_cases(rho, worst):
    # Table 3.3: RR, RBP(.5) and RBP(.85), all 15 cells.
    found = [worst_case(parse(name), rho) for name in ("RR", "RBP(p=.5)", "RBP(p=.85)")]
    assert found == pytest.approx(worst, abs=5.1e-5)


def test_no_list_loses_more_than_the_worst_case():
    docs = {f"d{i}": 7 - i for i in range(7)}
    runs = as_runs({"s": {f"q{k}": docs for k in range(128)}})
    grades = {f"q{k}": {f"d{i}": (k >> i) & 1 for i in range(7)} for k in range(128)}  # all binary lists of 7
    judgments = as_judgments(grades)
    for name in ("RR", "RBP(p=.85)@7"):
        study = band_study(runs, judgments, name, 2)
        loss = (study.original - study.banded).max()
        assert loss == pytest.approx(worst_case(parse(name), 2, depth=7))


def test_the_banded_score_is_the_mean_over_orders_within_bands():
    runs = as_runs({"s": {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}})
    judgments = as_judgments({"q": {"a": 0, "b": 1, "c": 0, "d": 1}})
    lists, _ = Lists.judged(runs, judgments, judgments.scale())
    metric = parse("AP")
    orders = []
    for second, third in permutations("bc"):
        order = as_runs({"s": {"q": {"a": 4, second: 3, third: 2, "d": 1}}})
        orders.append(metric.scores(Lists.judged(order, judgments, judgments.scale())[0])[0, 0])
    found = expected(metric, lists, banded(runs, 2).tie_starts)
    assert found[0, 0] == pytest.approx(np.mean(orders))


def test_which_systems_keep_their_score():
    rng = np.random.default_rng(2)
    runs = as_runs({"s": {f"q{q}": {f"d{i}": 9.0 - i for i in range(8)} for q in range(30)}})
    judgments = as_judgments(
        {f"q{q}": {f"d{i}": int(rng.random() < 0.7 / (1 + i)) for i in range(8)} for q in range(30)}
    )
    near, far = (band_study(runs, judgments, "RBP(p=.85)", rho) for rho in (1.1, 4.0))
    assert near.kept(0.05) == 1
    assert np.array_equal(near.original, near.banded)  # bands of one document
    assert far.kept(0.01) == 0
    assert far.to_frame().columns.tolist() == ["system", "mean", "banded", "loss", "p_99", "p_97", "p_95"]
    assert band_study(runs, judgments, "AP", 2).worst_case is None


def test_bad_input_is_refused():
    with pytest.raises(MetricError, match="a number above 1, got 1"):
        band_starts(1, 10)
    with pytest.raises(MetricError, match="AP has no worst case"):
        worst_case(parse("AP"), 2)
