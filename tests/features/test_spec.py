"""Names of features, terms of models, and tables."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Pool
from probeval.errors import FeatureError
from probeval.features import DEFINITIONS, FeatureName, FeatureTable, compute_features, feature_names, needs


@pytest.mark.parametrize("text", ["fSYS", "fSYS@100", "f[domain]", "a[dc:type]", "label[gpt 4, exam]", "aSIM"])
def test_a_name_reads_back(text):
    assert str(FeatureName.parse(text)) == text


@pytest.mark.parametrize("key", sorted(DEFINITIONS))
def test_every_feature_can_be_named(key):
    definition = DEFINITIONS[key]
    assert FeatureName.parse(definition.name).definition is definition
    assert (definition.name != key) == definition.takes_column


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fSIS", "Did you mean 'fSYS'"),
        ("f", "Unknown feature 'f'"),
        ("aSYS[genre]", "Unknown feature"),
        ("aRANK@100", "takes no depth"),
        ("fSYS@0", "whole number from 1"),
        ("f[]", "Cannot read"),
        ("", "Cannot read"),
        ("fSYS@", "Cannot read"),
        ("fSYS OV", "Cannot read"),
    ],
)
def test_what_cannot_be_named(text, said):
    with pytest.raises(FeatureError, match=r"^[^\n]*$") as error:
        FeatureName.parse(text)
    assert said in str(error.value)


def test_what_features_need():
    assert needs(["fSYS", "a[genre]", "label[x]", "fTEAM", "aSIM"]) == {
        "outputs",
        "judgments",
        "metadata",
        "labels",
        "teams",
        "vectors",
    }


def test_terms_are_made_of_features():
    terms = ["log(fSYS)", "fSYS:OV", "s[dc:type]:log(f[dc:type])", "log(fSYS@100):OV:aDOC"]
    assert feature_names(terms) == ("fSYS", "OV", "s[dc:type]", "f[dc:type]", "fSYS@100", "aDOC")


def test_terms_as_columns():
    pool = Pool.of(["q", "q", "q"], ["1", "2", "3"])
    table = FeatureTable(pool, ("fSYS", "OV"), np.array([[0.5, 2.0], [0.0, 3.0], [np.nan, 4.0]]))
    found = table.design(["OV", "log(fSYS)", "fSYS:OV", "log(fSYS):log(OV)"])
    log = np.log
    # The logarithm of 0 is missing, not minus infinity: a model would be certain of it.
    np.testing.assert_allclose(
        found,
        [[2, log(0.5), 1, log(0.5) * log(2)], [3, np.nan, 0, np.nan], [4, np.nan, np.nan, np.nan]],
    )
    assert table.design([]).shape == (3, 0)


def test_a_table_says_what_it_lacks():
    pool = Pool.of(["q", "q"], ["1", "2"])
    table = FeatureTable(pool, ("fSYS", "OV"), np.array([[0.5, np.nan], [0.1, 1.0]]))
    assert table.missing == {"OV": 1}
    assert table.complete.tolist() == [False, True]
    with pytest.raises(FeatureError, match="Did you mean 'OV'"):
        table["Ov"]
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 0


def test_a_table_with_ids(small):
    frame = compute_features(small.problem(depth=3), ["fSYS", "bRANK"]).to_frame()
    assert list(frame.columns) == ["query", "doc", "fSYS", "bRANK"]
    assert frame["bRANK"].between(1, 3).all()
    assert frame[["query", "doc"]].apply(tuple, axis=1).is_monotonic_increasing


def test_no_feature_is_an_error(small):
    with pytest.raises(FeatureError, match="No feature was named"):
        compute_features(small.problem(depth=3), [])
