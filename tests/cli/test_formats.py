"""``--format markdown`` and ``--format latex`` of every verb that prints tables."""

from __future__ import annotations

import csv
import io
import re

import pytest

from probeval.cli.options import OutputFormat
from probeval.cli.output import TABLES
from probeval.data import read_judgments, write_campaign
from probeval.relevance import synthetic_campaign

NAMES = (r"$\foo$", "a|b", "=run_1")  # of systems


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Runs with names that Markdown, LaTeX and spreadsheets read in their own way, and their judgments."""
    folder = tmp_path_factory.mktemp("formats")
    made = synthetic_campaign(seed=4, systems=3, queries=5, depth=5)
    write_campaign(made, folder / "campaign")
    for name, path in zip(NAMES, sorted((folder / "campaign" / "runs").iterdir()), strict=True):
        path.rename(path.with_name(f"{name}.gz"))
    (folder / "campaign" / "systems.tsv").unlink()
    (folder / "votes.csv").write_text("query,doc,grade,worker\nq1,-d1,1,ann\nq1,-d1,0,bob\nq1,d2,1,ann\n")
    return folder


RUNS, QRELS = "campaign/runs", ("--qrels", "campaign/qrels.txt")
EVALUATE = ("evaluate", RUNS, *QRELS, "--metric", "P@5")
VERBS = {
    "classical": (*EVALUATE, "--metric", "DCG@5", "--model", "none"),
    "evaluate": (*EVALUATE, "--metric", "DCG@5", "--model", "uniform"),
    "per query": (*EVALUATE, "--model", "uniform", "--per-query"),
    "compare": ("compare", RUNS, *QRELS, "--metric", "P@5"),
    "gstudy": ("gstudy", RUNS, *QRELS, "--metric", "P@5"),
    "dstudy": ("dstudy", RUNS, *QRELS, "--metric", "P@5"),
    "next": ("next", RUNS, "--metric", "P@5", "--model", "uniform", "--scale", "graded:2"),
    "features": ("features", RUNS, "--feature", "fSYS"),
    "aggregate": ("aggregate", "votes.csv"),
    "models": ("models",),
    "models show": ("models", "show", "text-jud"),
    "schema": ("schema",),
    "doctor": ("doctor",),
    "create": ("campaign", "create", "FRESH.db", RUNS, "--metric", "P@5", "--model", "uniform", "--scale", "graded:2"),
}


def test_every_format_has_a_writer():
    assert {*TABLES, OutputFormat.csv, OutputFormat.json} == set(OutputFormat)


@pytest.mark.parametrize("verb", VERBS)
def test_tables_are_markdown_and_latex(probeval, place, monkeypatch, verb):
    monkeypatch.chdir(place)
    for name in ("markdown", "latex"):
        (place / "FRESH.db").unlink(missing_ok=True)
        said = probeval(*VERBS[verb], "--format", name)
        assert said.code == 0, said.err
        if name == "latex":
            assert said.out.startswith("% \\usepackage{booktabs}\n")
            assert said.out.count("\\begin{tabular}") == said.out.count("\\bottomrule") > 0
            outside = re.sub(r"% \\usepackage\{booktabs\}\n(\\begin\{table\}.*?\\end\{table\}|\\begin\{tabular\}.*?"
                             r"\\end\{tabular\})", "", said.out, flags=re.DOTALL)  # fmt: skip
            assert not outside.strip()
        else:
            assert re.search(r"^\|( :?-+:? \|)+$|^(\|---)+\|$", said.out, flags=re.MULTILINE)


def test_names_are_escaped_and_csv_is_no_formula(probeval, place, monkeypatch):
    monkeypatch.chdir(place)
    ask = (*EVALUATE, "--model", "uniform", "--quiet", "--format")
    out = {name: probeval(*ask, name).out for name in ("markdown", "latex", "csv", "table")}
    assert all(text in out["markdown"] for text in (r"| \$\\foo\$ ", r"| a\|b ", "| =run_1 "))
    assert all(text in out["latex"] for text in (r"\$\textbackslash{}foo\$ &", r"a\textbar{}b", r"=run\_1"))
    assert all(name in out["table"] for name in NAMES)
    assert {row["system"] for row in csv.DictReader(io.StringIO(out["csv"]))} == {NAMES[0], NAMES[1], f"'{NAMES[2]}"}


def test_an_export_reads_back(probeval, place, monkeypatch, tmp_path):
    monkeypatch.chdir(place)
    (place / "FRESH.db").unlink(missing_ok=True)
    probeval(*VERBS["create"])
    (tmp_path / "grades.csv").write_text("query,doc,grade,assessor\nq1,-d1,1,=ann\nq1,d2,2,bob\n")
    query = read_judgments("campaign/qrels.txt").to_frame()["query"].iloc[0]
    text = (tmp_path / "grades.csv").read_text().replace("q1", query)
    (tmp_path / "grades.csv").write_text(text)
    assert probeval("campaign", "import", "FRESH.db", tmp_path / "grades.csv").code == 0
    out = probeval("campaign", "export", "FRESH.db", "--format", "csv").out
    assert f"{query},'-d1,1.0,'=ann," in out
    (tmp_path / "back.csv").write_text(out)
    found = read_judgments(tmp_path / "back.csv")
    assert set(found.to_frame()["doc"]) == {"-d1", "d2"}
    assert set(found.assessors) >= {"=ann", "bob"}
