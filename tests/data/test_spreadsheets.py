"""CSV for spreadsheets: no cell is a formula, and tables read back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from probeval.data import Collection, LabelTable, as_runs, read_campaign, read_judgments, write_campaign
from probeval.data.spreadsheets import as_text, csv_text, restored_cell

FORMULAS = ('=HYPERLINK("x")', "+d1", "-d1", "@SUM(1)", "'=x", "''-y")


@given(st.text(alphabet="'=+-@\t\r15e.ax\uff1d"))
def test_every_cell_reads_back(cell: str):
    safe = as_text(cell)
    assert restored_cell(safe) == cell
    assert len(safe) == 1 or safe[:1] not in "=+-@\t\r\uff1d" or _number(safe)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True


def test_numbers_stay_numbers():
    frame = pd.DataFrame({"doc": [*FORMULAS, "-7"], "value": [-0.1, float("nan"), 1e-300, 2, 3, 4, 5], "n": range(7)})
    lines = csv_text(frame).splitlines()
    assert lines[0] == "doc,value,n"
    assert lines[2] == "'+d1,,1"
    assert lines[-1] == "-7,5.0,6"
    assert csv_text(frame[["n"]].rename(columns={"n": "=n"})).startswith("'=n\n")
    assert frame["doc"].tolist() == [*FORMULAS, "-7"]  # the table itself is as it was


def test_judgments_read_back_with_their_ids(tmp_path: Path):
    table = pd.DataFrame({"query": "=q1", "doc": FORMULAS, "grade": [0, 1, 2, 0, 1, 2]})
    path = tmp_path / "judged.csv"
    path.write_text(csv_text(table), encoding="utf-8")
    found = read_judgments(path).to_frame().sort_values("doc", ignore_index=True)
    assert found["doc"].tolist() == sorted(table["doc"])
    assert set(found["query"]) == {"=q1"}
    assert found["grade"].tolist() == table.sort_values("doc")["grade"].tolist()


def test_a_campaign_reads_back_with_its_names(tmp_path: Path):
    runs = as_runs({"=bm25": {"-q": dict.fromkeys(FORMULAS, 1.0)}, "'+x": {"-q": {"d": 1.0}}})
    runs = runs.with_teams({"=bm25": "@team", "'+x": "-team"})
    labels = LabelTable(runs.pool, ("=judge", "other"), np.ones((len(runs.pool), 2)))
    write_campaign(Collection(name="formulas", runs=runs, labels=labels), tmp_path / "formulas")
    written = (tmp_path / "formulas" / "labels.tsv").read_text(encoding="utf-8")
    assert "\t'+d1\t" in written
    assert written.startswith("query\tdoc\t'=judge\tother\n")
    found = read_campaign(tmp_path / "formulas")
    assert dict(zip(found.runs.systems, found.runs.teams or (), strict=True)) == {"=bm25": "@team", "'+x": "-team"}
    assert found.labels is not None
    assert found.labels.sources == ("=judge", "other")
    assert found.labels.to_frame()["doc"].tolist() == labels.to_frame()["doc"].tolist()
