"""Groups, labels and vectors: by hand, and where they are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.arrays import objects
from probeval.data import Collection, Judgments, Metadata, Pool, Runs, Scale, read_campaign
from probeval.data.evidence import LabelTable, Vectors
from probeval.errors import FeatureError, ProbevalWarning
from probeval.features import compute_features, judged_features

SCALE = Scale.binary()  # where nothing is judged; the features do not depend on it


@pytest.fixture
def music() -> Collection:
    """Query q is itself a document of genre rock; d1 d2 are rock, d3 is jazz, d4 has no genre and d5 no row."""
    docs = ["d1", "d2", "d3", "d4", "d5"]
    return Collection(
        "music",
        Runs.rows(["a"] * 5, ["q"] * 5, docs),
        metadata=Metadata(
            objects(["q", "d1", "d2", "d3", "d4"]),
            {
                "genre": objects(["rock", "rock", "rock", "jazz", ""]),
                "artist": objects(["x", "y", "y", "z", "z"]),
            },
        ),
    )


def test_groups_by_hand(music):
    with pytest.warns(ProbevalWarning, match=r"5 pairs .*: s\[genre\] for 2, f\[genre\] for 2, f\[artist\] for 1\."):
        table = compute_features(music.problem(depth=5, scale=SCALE), ["s[genre]", "f[genre]", "f[artist]"])
    nan = np.nan
    np.testing.assert_array_equal(table["s[genre]"], [1, 1, 0, nan, nan])
    np.testing.assert_array_equal(table["f[genre]"], [2 / 5, 2 / 5, 1 / 5, nan, nan])
    np.testing.assert_array_equal(table["f[artist]"], [2 / 5, 2 / 5, 2 / 5, 2 / 5, nan])


def test_a_query_without_metadata_has_no_group_of_its_own(music):
    known = replace(music, metadata=Metadata(objects(["d1"]), {"genre": objects(["rock"])}))
    with pytest.warns(ProbevalWarning, match=r"s\[genre\] for 5"):
        assert np.isnan(compute_features(known.problem(depth=5, scale=SCALE), ["s[genre]"])["s[genre]"]).all()


def test_labels_by_hand(music):
    labels = LabelTable(Pool.of(["q", "q"], ["d2", "d3"]), ("m", "n"), np.array([[0.0, 1.0], [2.0, np.nan]]))
    with pytest.warns(ProbevalWarning, match=r"label\[m\] for 3, label\[n\] for 4"):
        table = compute_features(replace(music, labels=labels).problem(depth=5, scale=SCALE), ["label[m]", "label[n]"])
    nan = np.nan
    np.testing.assert_array_equal(table["label[m]"], [nan, 0, 2, nan, nan])
    np.testing.assert_array_equal(table["label[n]"], [nan, 1, nan, nan, nan])


def test_no_label_at_all(music):
    empty = LabelTable(Pool.of([], []), ("m",), np.empty((0, 1)))
    with pytest.warns(ProbevalWarning, match=r"label\[m\] for 5"):
        table = compute_features(replace(music, labels=empty).problem(depth=5, scale=SCALE), ["label[m]"])
    assert np.isnan(table.values).all()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("f[gnre]", "No column 'gnre' in the metadata. Did you mean 'genre'?"),
        ("a[year]", "No column 'year' in the metadata."),
        ("label[m]", "needs a table of labels"),
        ("aSIM", "needs a vector"),
    ],
)
def test_what_is_not_there_is_said(music, name, said):
    judged = replace(music, judgments=Judgments.rows(["q"], ["d1"], [1]))
    with pytest.raises(FeatureError) as error:
        compute_features(judged.problem(depth=5), [name])
    assert said in str(error.value)
    with pytest.raises(FeatureError, match="need metadata"):
        compute_features(replace(judged, metadata=None).problem(depth=5), ["s[genre]"])


def test_nothing_missing_is_nothing_said(music, recwarn):
    compute_features(music.problem(depth=5, scale=SCALE), ["fSYS"])
    assert not recwarn.list


def test_what_is_not_judged_yet_is_not_missing_from_the_files(music, recwarn):
    known = replace(music, runs=music.runs.top(3), judgments=Judgments.none(music.runs.pool))
    assert np.isnan(compute_features(known.problem(depth=3, scale=SCALE), ["a[genre]", "aDOC"]).values).all()
    assert not recwarn.list


def test_nearest_grade_by_hand(music):
    # d1 lies with d2 (grade 2) and across from d3 (grade 0); d4 lies with d3; d5 has no vector.
    vectors = Vectors(objects(["d1", "d2", "d3", "d4"]), np.array([[9.0, 1], [1, 0], [0, 2], [1, 5]]))
    judgments = Judgments.rows(["q", "q", "q"], ["d2", "d3", "d5"], [2, 0, 1])
    judged = replace(music, judgments=judgments, vectors=vectors)
    with pytest.warns(ProbevalWarning, match="aSIM for 1"):
        found = compute_features(judged.problem(depth=5), ["aSIM"])["aSIM"]
    # d2 is left out of its own: only d3's grade is left, and the other way round. d5's own judgment has no place.
    np.testing.assert_array_equal(found, [1, 0, 1, 0, np.nan])


def test_the_nearest_grade_is_by_mean_not_by_the_nearest_document(music):
    vectors = Vectors(objects(["d1", "d2", "d3", "d4"]), np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]]))
    judgments = Judgments.rows(["q"] * 3, ["d2", "d3", "d4"], [1, 1, 0])
    judged = judged_features(replace(music, judgments=judgments, vectors=vectors).problem(depth=4))
    # Of d1: grade 1 has cosines 1 and 0, mean .5; grade 0 has .707.
    assert judged.most_similar()[0] == 0


def test_music_metadata_missing_for_43_pairs(data):
    # 23 retrieved clips have neither artist nor genre: 43 of the 6,322 pairs.
    with pytest.warns(ProbevalWarning, match=r"6,322 pairs .*: f\[artist\] for 43, s\[genre\] for 43\."):
        table = compute_features(read_campaign(data / "mirex2011").problem(depth=5), ["f[artist]", "s[genre]"])
    assert table.missing == {"f[artist]": 43, "s[genre]": 43}
