"""Chapters 3, 5 and 6 of Urbano (2013) by ``meta_study``, on the one edition of MIREX that is stored.

Tables 5.3 and 5.4 are over four editions with 352 pairs of systems; that of 2011 has 153 of them and is the most
powerful one. So rates differ by up to .08, and what is compared is above all the order of tests and of measures.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest

import probeval
from probeval.metrics.mapping import published_mappings
from probeval.satisfaction import load_agreement
from probeval.studies import PairTests

# Table 5.4: the share of pairs that are not significant at alpha .05; and the names of Tables 6.2 and 6.3.
MEASURES = {
    "CG@5": (0.31743, ("fine", "CGl@5")),
    "GAP@5": (0.32614, ("fine", "GAP@5")),
    "DCG@5": (0.32768, ("fine", "DCGl@5")),
    'RBP(norm="ideal")@5': (0.32869, ("fine", "RBPl@5")),
    "nDCG@5": (0.32992, ("fine", "nDCGl@5")),
    'Q(norm="min")@5': (0.34365, ("fine", "Ql@5")),
    "P(rel=40)@5": (0.35502, ("lmin40", "P@5")),
    'AP(rel=40, norm="min")@5': (0.3588, ("lmin40", "AP@5")),
}
# Table 5.3 at alpha .05: not significant, success, minor and major conflict.
TESTS = {
    "t": (0.3219, 0.8982, 0.0118, 0.0003),
    "wilcoxon": (0.3298, 0.8899, 0.0117, 0.0002),
    "sign": (0.394, 0.8596, 0.0111, 0.0002),
    "bootstrap": (0.3131, 0.897, 0.013, 0.0004),
    "permutation": (0.3215, 0.8982, 0.0118, 0.0003),
}
RATES = ("nonsignificance", "success", "minor_conflict", "major_conflict")
# Table 5.3: global conflicts at these levels; section 5.5: the relative error, over 32 levels that include them.
LEVELS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
CONFLICTS = {
    "wilcoxon": ((0.0002, 0.0006, 0.0011, 0.0028, 0.0042, 0.0119, 0.0194, 0.064), 0.5836),
    "sign": ((0.0002, 0.0005, 0.0008, 0.002, 0.0036, 0.0113, 0.018, 0.0597), 0.6221),
    "t": ((0.0002, 0.0008, 0.0012, 0.003, 0.0044, 0.0121, 0.0195, 0.0629), 0.6668),
}


@pytest.fixture(scope="module")
def folder(data):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    return data / "mirex2011"


@pytest.fixture(scope="module")
def quick(folder):
    return probeval.meta_study(folder, list(MEASURES), tests=["t", "sign", "bootstrap"], splits=30, samples=500)


def test_tables_6_2_and_6_3_reliability(quick, oracles):
    for name in ("erho2", "phi"):
        with (oracles / f"dstudy_{name}.csv").open() as file:
            printed = {(r["scale"], r["measure"]): r for r in csv.DictReader(file) if r["year"] == "2011"}
        for studied, (_, key) in zip(quick["mirex2011"].measures, MEASURES.values(), strict=True):
            value = next(float(v) for k, v in printed[key].items() if k not in ("year", "scale", "measure"))
            assert getattr(studied, name).value == pytest.approx(value, abs=6e-5), key


def test_tables_5_3_and_5_4_in_short(quick):
    part = quick["mirex2011"]
    tests = part.tests_frame(0.05).set_index("test")
    for name in tests.index:
        quiet, success, minor, _ = TESTS[name]
        assert quiet - 0.08 < tests.loc[name, "nonsignificance"] < quiet
        assert success < tests.loc[name, "success"] < success + 0.05
        assert tests.loc[name, "minor_conflict"] == pytest.approx(minor, abs=0.006)
    assert tests["nonsignificance"].idxmin() == "bootstrap"
    assert tests["nonsignificance"].idxmax() == "sign"
    assert tests["conflict"].idxmax() == "bootstrap"
    power = part.measures_frame(0.05).set_index("metric")["nonsignificance"]
    assert list(power.nsmallest(2).index) == ["CG@5", "GAP@5"]
    assert set(power.nlargest(3).index) == set(list(MEASURES)[-3:])


@pytest.mark.validation
def test_tables_5_3_and_5_4_with_300_halves(folder):
    part = probeval.meta_study(folder, list(MEASURES), alphas=[0.05], splits=300)["mirex2011"]
    tests = part.tests_frame(0.05).set_index("test")
    for name, printed in TESTS.items():
        off = np.abs(tests.loc[name, list(RATES)].to_numpy(dtype=float) - printed)
        assert (off < (0.07, 0.04, 0.004, 0.0002)).all(), name
    assert tests["conflict"].idxmin() == "sign"
    power = part.measures_frame(0.05).set_index("metric")["nonsignificance"]
    assert list(power.sort_values().index) == list(MEASURES)  # as printed, all eight


def test_section_5_5_exactness_from_the_printed_conflicts():
    """Eight of the 32 levels: the errors are larger by .03 to .09, and in the same order."""
    found = {}
    for test, (conflicts, printed) in CONFLICTS.items():
        counts = np.round(np.array(conflicts) * 1e6).astype(int)
        nothing = np.zeros_like(counts)
        outcomes = np.column_stack([1_000_000 - counts, nothing, counts, nothing])
        whole = np.full(len(LEVELS), 1_000_000)
        found[test] = PairTests(
            test, LEVELS, np.zeros(len(LEVELS)), 1_000_000, whole, outcomes, nothing, np.zeros(len(LEVELS))
        ).exactness
        assert printed < found[test] < printed + 0.09
    assert sorted(found, key=found.get) == ["wilcoxon", "sign", "t"]  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", ["broad", "fine", "nl4", "nl5"])
def test_section_3_3_1_measures_nearest_to_satisfaction(scale):
    """CG, DCG and RBP with linear gains adhere best to the diagonal on every graded scale."""
    near = {name: m.distance_from_score for name, m in published_mappings().items() if name.endswith(f"/{scale}")}
    assert {name.partition("@")[0] for name in sorted(near, key=near.get)[:3]} == {"CGl", "DCGl", "RBPl"}  # type: ignore[arg-type]


def test_table_3_3_distance_from_preferring_the_better_list():
    printed = {"CGl": 0.5688, "CGe": 0.5309, "DCGl": 0.531, "DCGe": 0.5313}
    for name, distance in printed.items():
        assert load_agreement(f"{name}@5/broad").distance_from_ideal == pytest.approx(distance, abs=6e-5)
