"""Numbers for single documents: what is read, what is refused, and campaign folders that hold answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probeval.data import as_answers, as_magnitudes, read_campaign, read_magnitudes, write_campaign
from probeval.errors import DataError
from probeval.relevance.synthetic import synthetic_campaign

ROWS = pd.DataFrame({"query": ["q"] * 3, "doc": ["a", "b", "a"], "number": [10, 40, 7]})


def test_defaults_are_magnitudes_of_one_unit_and_nobody() -> None:
    got = as_magnitudes(ROWS)
    assert repr(got) == "<Magnitudes: 3 numbers by 1 assessor on 2 documents of 1 query>"
    assert not got.is_bounded.any()
    assert set(got.unit) == set(got.assessor) == {""}
    assert np.isnan(got.seconds).all()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_every_table_reads_back(tmp_path: Path, suffix: str) -> None:
    numbers = as_magnitudes(
        ROWS.assign(kind=["s100", "", "magnitude"], unit=["1", "2", "2"], assessor=list("xyx"), seconds=[3.5, None, 9])
    )
    frame, path = numbers.to_frame(), tmp_path / f"numbers.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    pd.testing.assert_frame_equal(read_magnitudes(path).to_frame(), frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": [1, 0, 2]}, r"the number in row 2 must be above 0, got 0\."),
        ({"kind": "s100", "number": [0, 100, 101]}, r"the number in row 3 must be from 0 to 100, got 101\."),
        ({"kind": ["", "s10", ""]}, r"the kind in row 2 must be one of magnitude, s100, or empty, got 's10'\."),
        ({"number": ["1", "x", "2"]}, r"the number in row 2 must be a number, got 'x'\."),
    ],
)
def test_bad_numbers_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_magnitudes(ROWS.assign(**change))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match=r"no column 'doc': expected query, doc, number\. Did you mean 'docs'\?"):
        as_magnitudes(ROWS.rename(columns={"doc": "docs"}))


def test_campaign_folders_hold_answers(tmp_path: Path) -> None:
    campaign = synthetic_campaign(seed=1, systems=3, queries=2, depth=3)
    doc = [campaign.runs.pool.label(i)[1] for i in range(2)]
    answers = as_answers(pd.DataFrame({"query": ["q1"], "left": doc[:1], "right": doc[1:], "choice": ["left"]}))
    numbers = as_magnitudes(pd.DataFrame({"query": ["q1"], "doc": doc[:1], "number": [12.5]}))
    write_campaign(replace(campaign, answers=answers, magnitudes=numbers, metadata=None), tmp_path)
    back = read_campaign(tmp_path)
    assert back.answers is not None
    assert back.magnitudes is not None
    pd.testing.assert_frame_equal(back.answers.to_frame(), answers.to_frame())
    pd.testing.assert_frame_equal(back.magnitudes.to_frame(), numbers.to_frame())
    assert "magnitudes" in repr(back)
