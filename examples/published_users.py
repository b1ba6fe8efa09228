"""The published users that are part of the package, from their answers: ``published_users.py DATA``.

The answers are those of Urbano and others (2012, 2,200 answers) and Urbano (2013, 4,115 answers), in the folder
mirex2011 of the data. It prints the rows of probeval/satisfaction/agreement.csv, and the row of nDCG@5 in
probeval/metrics/cubic.csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from probeval.satisfaction import Preferences, read_preferences

FIRST = "Urbano and others 2012, music similarity, 2,200 answers"
LATER = "Urbano 2013, music similarity, 4,115 answers"
WORDS = {
    "Service A": "a",
    "Service B": "b",
    "They are both equally good": "good",
    "They are both equally bad": "bad",
}
# Name, columns of the scores, study. The ideal of the nDCG columns has five top grades: on Fine that is DCG@5.
AGREEMENTS = [
    ("CGl@5/broad", "DCGln", LATER),
    ("CGe@5/broad", "DCGe2n", LATER),
    ("DCGl@5/broad", "DCGll2", LATER),
    ("DCGe@5/broad", "DCGe2l2", LATER),
    ("CGl@5/fine", "agf", FIRST),
    ("nDCG@5/broad", "ndcgb", FIRST),
    ("DCGl@5/fine", "ndcgf", FIRST),
]


def answers(folder: Path, column: str, study: str) -> Preferences:
    """The answers of a study, with the scores of one measure."""
    if study == LATER:
        return read_preferences(folder / "preferences_4115.csv.gz", a=f"{column}A", b=f"{column}B")
    path = folder / "preferences.csv.gz"
    return read_preferences(path, a=f"{column}a", b=f"{column}b", answer="preference", words=WORDS)


def agreement_rows(folder: Path) -> list[list[str]]:
    """The rows of agreement.csv."""
    rows = [["name", "tenth", "better", "neither", "worse", "origin"]]
    for name, column, study in AGREEMENTS:
        found = answers(folder, column, study).agreement()
        counts = zip(found.better, found.neither, found.worse, strict=True)
        rows += [[name, str(t), *map(str, each), study] for t, each in enumerate(counts)]
    return rows


def mapping_row(folder: Path) -> list[str]:
    """The row of nDCG@5 in cubic.csv."""
    found = answers(folder, "ndcgb", FIRST).mapping()
    values = [f"{value:.4f}".rstrip("0") for value in (*found.coefficients, found.residual)]
    return ["nDCG@5", "broad", *values, "Urbano and others 2012, music similarity, lists of 5"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the campaigns, with mirex2011")
    place = parser.parse_args().data / "mirex2011"
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows(agreement_rows(place))
    writer.writerow(mapping_row(place))
