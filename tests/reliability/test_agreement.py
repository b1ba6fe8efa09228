"""Agreement of assessors: by hand, by other routes, and in its corners."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.errors import ReliabilityError
from probeval.reliability.agreement import LEVELS, WEIGHTS, krippendorff_alpha, pair_labels, weighted_kappa

NAN = np.nan
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", example C: four observers, twelve units, gaps.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


@pytest.mark.parametrize(
    ("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_of_krippendorffs_example(level, value):
    assert krippendorff_alpha(OBSERVERS, level=level) == pytest.approx(value, abs=5e-4)


def by_definition(values, level):
    """Alpha from all pairs of values within units and among all, without coincidences."""
    units = [[v for v in unit if not np.isnan(v)] for unit in np.transpose(values)]
    units = [u for u in units if len(u) > 1]
    pooled = [v for u in units for v in u]

    def distance(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        if level == "ratio":
            return ((a - b) / (a + b)) ** 2 if a + b else 0.0
        low, high = min(a, b), max(a, b)
        return (sum(low <= v <= high for v in pooled) - (pooled.count(a) + pooled.count(b)) / 2) ** 2

    n = len(pooled)
    observed = sum(distance(a, b) / (len(u) - 1) for u in units for a in u for b in u) / n
    expected = sum(distance(a, b) for a in pooled for b in pooled) / (n * (n - 1))
    return 1 - observed / expected


@pytest.mark.parametrize("level", LEVELS)
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, NAN]), min_size=6, max_size=6), min_size=2, max_size=4))
def test_alpha_is_its_definition(level, rows):
    values = np.array([[0, 1, 2, 0, 1, 2], *rows], dtype=float)
    found = krippendorff_alpha(values, level=level)
    if np.isnan(found):
        return
    assert found == pytest.approx(by_definition(values, level))


def test_alpha_at_its_ends():
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]]) == 1
    assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]]))
    assert np.isnan(krippendorff_alpha([[1, NAN], [NAN, 2]]))
    assert krippendorff_alpha([[0, 1], [1, 0]]) < 0


def test_kappa_is_that_of_the_table():
    x, y = np.random.default_rng(1).integers(0, 4, size=(2, 80))
    table = np.zeros((4, 4))
    np.add.at(table, (x, y), 1 / 80)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    gap = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    for weights, w in (("none", gap > 0), ("linear", gap), ("quadratic", gap**2)):
        want = 1 - (w * table).sum() / (w * expected).sum()
        assert weighted_kappa(x, y, weights=weights) == pytest.approx(want)


def kappa_by_definition(x, y, weights):
    """Kappa from every grade of one assessor beside every grade of the other."""
    both = ~np.isnan(x) & ~np.isnan(y)
    gap = np.abs(x[both, None] - y[both])
    gap = {"none": gap > 0, "linear": gap, "quadratic": gap**2}[weights]
    return 1 - np.diag(gap).mean() / gap.mean() if gap.any() else NAN


@pytest.mark.parametrize("weights", WEIGHTS)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 1.0, 2.0, 100.0, NAN])] * 2), min_size=1, max_size=12))
def test_kappa_is_its_definition(weights, grades):
    x, y = np.transpose(grades)
    found = weighted_kappa(x, y, weights=weights)
    assert found == pytest.approx(kappa_by_definition(x, y, weights), rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("values", [4, 10_000])
def test_agreement_takes_memory_by_the_number_of_units(values):
    """All pairs of 10,000 units, or of 10,000 values, would take 800 MB."""
    grades = np.random.default_rng(1).integers(0, values, size=(2, 10_000)).astype(float)
    tracemalloc.start()
    for weights in WEIGHTS:
        weighted_kappa(*grades, weights=weights)
    for level in ("nominal", "ordinal", "interval"):
        krippendorff_alpha(grades, level=level)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * grades.shape[1]


def test_kappa_leaves_units_with_one_grade_out():
    assert weighted_kappa([0, 1, NAN, 2], [0, 1, 2, NAN]) == weighted_kappa([0, 1], [0, 1]) == 1
    assert np.isnan(weighted_kappa([1, 1], [1, 1]))
    assert np.isnan(weighted_kappa([NAN], [1]))


def test_pair_labels():
    labels = pair_labels([[3, 1, 1], [NAN, 2, 1]])
    np.testing.assert_array_equal(labels, [[1, 1, 0], [NAN, NAN, 1]])
    np.testing.assert_array_equal(pair_labels([[3, 1, 1]], ties=False), [[1, 1, NAN]])
    assert pair_labels([[1.0]]).shape == (1, 0)


def test_what_is_refused():
    with pytest.raises(ReliabilityError, match="Did you mean 'ordinal'"):
        krippendorff_alpha([[1, 2]], level="ordinl")
    with pytest.raises(ReliabilityError, match="ratio level needs values from 0, got -1"):
        krippendorff_alpha([[-1, 2], [1, 2]], level="ratio")
    with pytest.raises(ReliabilityError, match="assessors by units"):
        krippendorff_alpha([1, 2, 3])
    with pytest.raises(ReliabilityError, match="two grades for each unit"):
        weighted_kappa([1, 2], [1])
