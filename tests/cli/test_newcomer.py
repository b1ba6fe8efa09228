"""A newcomer's hour, as typed: the README's commands on Deep Learning 2020, with labels under a new name."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

import probeval as package

ROOT = Path(__file__).parents[2]
NEW, OLD, LABELLER = "bcai_bertl_pass", "TUW-TK-2Layer", "gpt4o_umbrela"
JUDGED, BATCH = 50, 20


@pytest.fixture
def clone(data, tmp_path, monkeypatch) -> Path:
    """A folder with two runs, labels under a name that no card has, and nothing else."""
    campaign = data / "trec-dl2020-passage"
    for name, system in (("new.txt", NEW), ("old.txt", OLD)):
        (tmp_path / name).write_bytes(gzip.decompress((campaign / "runs" / f"{system}.gz").read_bytes()))
    with gzip.open(campaign / "labels.tsv.gz", "rt") as file, (tmp_path / "labels.tsv").open("w") as out:
        rows = csv.DictReader(file, delimiter="\t")
        out.write("query_id\tdoc_id\tour_llm\n")
        out.writelines(f"{row['query_id']}\t{row['doc_id']}\t{row[LABELLER]}\n" for row in rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def readme(start: str) -> list[str]:
    """The words of a command of the README after ``probeval``, without where its output goes."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith(f"probeval {start}"))
    return shlex.split(re.sub(r" > \S+", "", line), comments=True)[1:]


@pytest.mark.slow
def test_the_hour(probeval, clone, data):
    grades = package.read_judgments(data / "trec-dl2020-passage" / "qrels.txt.gz")
    truth = package.measure(["new.txt", "old.txt"], grades, "nDCG@10").to_frame().set_index("system")["mean"]

    examined = json.loads(probeval("doctor", "new.txt", "old.txt", "labels.tsv", "--format", "json").out)
    assert [file["taken_for"] for file in examined["files"]] == ["runs", "runs", "labels"]
    assert examined["suspicious"] == []
    assert probeval(*shlex.split(examined["next"])[1:]).code == 0  # what it says to type next, as it says it

    first = probeval(*readme("compare new.txt"), "--format", "json")
    (pair,) = json.loads(first.out)["pairs"]
    assert "our_llm (new to the model)" in first.err
    before = pair["upper"] - pair["lower"]

    known, lines, asked = grades.to_frame().set_index(["query", "doc"])["grade"], [], readme("next new.txt")
    while len(lines) < JUDGED:
        more = ["--qrels", "judged.txt"] if lines else []
        batch = [
            *asked[: asked.index("-n")],
            "-n",
            str(min(BATCH, JUDGED - len(lines))),
            *asked[asked.index("-n") + 2 :],
        ]
        # The verdict may be there before the fiftieth judgment: a newcomer with time left asks for more all the same.
        said = probeval(*batch, "--stop", "budget=10000", *more)
        rows = list(csv.DictReader(said.out.splitlines()))
        assert len(rows) == min(BATCH, JUDGED - len(lines))
        lines += [f"{row['query']} 0 {row['doc']} {known.get((row['query'], row['doc']), 0):g}\n" for row in rows]
        Path("judged.txt").write_text("".join(lines))
    assert len(set(lines)) == JUDGED

    judged = [*readme("compare new.txt old.txt --metric nDCG@10 --labels"), "--format", "json"]
    second = probeval(*judged)
    (pair,) = json.loads(second.out)["pairs"]
    difference = truth[pair["a"]] - truth[pair["b"]]
    assert pair["upper"] - pair["lower"] < before  # judgments narrow it
    assert pair["lower"] - 0.05 < difference < pair["upper"] + 0.05  # by all judgments, not by the pool of two runs
    assert pair["verdict"] == "undecided" or (pair["verdict"] == "better") == (difference > 0)

    gate = [word if word != "qrels.txt" else "judged.txt" for word in readme("gate new.txt")]
    decided = probeval(*gate, "--labels", "labels.tsv", "--format", "json")
    verdict = json.loads(decided.out)
    assert decided.code == verdict["exit_code"] == {"better": 0, "worse": 4, "undecided": 3}[verdict["verdict"]]
    assert verdict["reason"] in Path("comment.md").read_text().replace("\\$", "$")
    assert (decided.code == 3) == (len(Path("next.csv").read_text().splitlines()) > 1)

    # In a notebook the same comparison shows itself.
    compared = package.compare(["new.txt", "old.txt"], "nDCG@10", labels="labels.tsv", qrels="judged.txt")
    assert "<table" in compared._repr_html_()
    assert compared.to_frame()["difference"].tolist() == pytest.approx([pair["difference"]])

    report = probeval(*readme("report new.txt"))
    assert report.code == 0
    page = Path("decision.html").read_text()
    assert "our_llm" in page
    assert len(page) > 10_000
