"""Relevance by multiplicity against Yang (2019), Table 4.4."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Collection, as_judgments, as_runs
from probeval.errors import FeatureError
from probeval.studies import fit_multiplicity, multiplicity
from probeval.studies.multiplicity import middle

LEAST, MOST = np.array([1, 2, 3, 5, 9, 17, 33]), [1, 2, 4, 8, 16, 32]
# Counts and percent relevant by multiplicity; systems; the total, its percentage, and the regression. The regressions
# are derived from the table, with the geometric middle of each band; the totals are printed.
TABLE = {
    "TREC-7, 20": ([6988, 2791, 1651, 1178, 780, 567, 375], [7.8, 9.5, 17.4, 23.1, 29.5, 44.3, 65.1], 65,
                   (14330, 14.6, -2.565, 0.520)),
    "TREC-8, 20": ([10266, 2538, 1548, 1017, 732, 544, 416], [5.3, 11.7, 16.3, 26.6, 34.0, 43.6, 61.3], 67,
                   (17061, 12.3, -2.779, 0.595)),
    "TREC-13, 20": ([2329, 1147, 1132, 1010, 654, 552, 369], [4.7, 8.0, 9.2, 14.2, 25.5, 38.9, 61.8], 52,
                    (7193, 14.7, -3.234, 0.625)),
    "TREC-7, 50": ([10905, 3860, 2978, 2315, 1770, 1266, 809], [5.6, 9.3, 13.7, 16.3, 21.7, 32.0, 54.5], 65,
                   (23903, 12.5, -2.825, 0.483)),
    "TREC-8, 50": ([22685, 5510, 3587, 2406, 1724, 1317, 1123], [3.1, 6.2, 10.7, 15.5, 20.6, 30.9, 49.6], 67,
                   (38352, 8.1, -3.369, 0.594)),
    "TREC-13, 50": ([5610, 2628, 2922, 2466, 1612, 1278, 1001], [2.6, 3.7, 5.1, 7.7, 13.1, 22.9, 48.8], 52,
                    (17517, 9.0, -4.027, 0.665)),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_published_table(name):
    pairs, percent, systems, (total, share, intercept, slope) = TABLE[name]
    relevant = np.array(pairs) * np.array(percent) / 100
    assert sum(pairs) == total
    assert 100 * relevant.sum() / total == pytest.approx(share, abs=0.07)
    found = fit_multiplicity(middle(LEAST, np.array([*MOST, systems])), pairs, relevant)
    assert found == pytest.approx((intercept, slope), abs=0.0011)


def test_bands_count_the_systems_of_each_judged_document():
    lists = {f"s{i}": {"q": {"all": 9.0, **({"two": 8.0} if i < 2 else {}), f"own{i}": 1.0}} for i in range(5)}
    judged = {"all": 1, "two": 1, "own0": 0, "own1": 1, "own2": 0}  # two of the own documents are not judged
    found = multiplicity(Collection("", as_runs(lists), as_judgments({"q": judged})), depth=3)
    assert found.to_frame()[["least", "most", "pairs"]].to_numpy().tolist() == [
        [1, 1, 3],
        [2, 2, 1],
        [3, 4, 0],
        [5, 5, 1],
    ]
    assert found.to_frame()["relevant"].tolist() == pytest.approx([1 / 3, 1, np.nan, 1], nan_ok=True)
    assert found.to_dict()["pairs"] == 5
    shallow = multiplicity(Collection("", as_runs(lists), as_judgments({"q": {"all": 1, "two": 0}})), depth=2)
    assert shallow.pairs == 2


def test_bad_input_is_refused():
    runs = as_runs({"a": {"q": {"d": 1.0}}})
    with pytest.raises(FeatureError, match="needs judgments"):
        multiplicity(Collection("", runs), depth=10)
    with pytest.raises(FeatureError, match="No judged document"):
        multiplicity(Collection("", runs, as_judgments({"q": {"e": 1}})), depth=10)
    with pytest.raises(FeatureError, match="cannot be fitted"):
        fit_multiplicity([1, 1], [4, 4], [1, 2])
