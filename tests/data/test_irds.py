"""Datasets of ir_datasets by id, on one that is registered here: nothing is downloaded."""

from __future__ import annotations

import sys
from pathlib import Path

import ir_datasets
import pytest

import probeval
from probeval.data import read_texts
from probeval.data.irds import read_dataset_texts
from probeval.errors import DataError
from probeval.web import read_documents
from tests.conftest import DOCS, QRELS, QUERIES

RUNS = {"a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, "b": {"q1": {"d3": 2.0}, "q2": {"d2": 1.0}}}


def test_judgments_are_those_of_the_dataset(dataset):
    assert probeval.read_judgments(dataset).to_frame().equals(probeval.as_judgments(QRELS).to_frame())
    by_id = probeval.evaluate(RUNS, "nDCG@2", qrels=dataset, docs=dataset, model="uniform")
    by_content = probeval.evaluate(RUNS, "nDCG@2", qrels=QRELS, docs=DOCS, model="uniform")
    assert by_id.to_dict() == by_content.to_dict()
    assert "Texts of 3 of 3 documents. Only the hierarchical model uses them." in by_id.notes


def test_texts_are_looked_up_by_id(dataset):
    assert read_texts(Path(dataset), "query") == QUERIES
    assert read_texts(Path(dataset), "doc") == DOCS
    assert read_texts(Path(dataset), "doc", only={"d2", "d9"}) == {"d2": DOCS["d2"]}
    document = read_documents(Path(dataset), only={"d3"})
    assert {doc: (shown.text, shown.link) for doc, shown in document.items()} == {"d3": (DOCS["d3"], "")}


def test_texts_of_any_kind_of_document(monkeypatch, dataset):
    url = ir_datasets.formats.TitleUrlTextDoc("d1", "Cats", "https://cats.org/1", "They purr.")
    code = ir_datasets.datasets.codesearchnet.CodeSearchNetDoc("d2", "repo", "path", "f", "x = 1", "python")
    monkeypatch.setattr(ir_datasets.formats.TsvDocs, "docs_iter", lambda self: iter([url, code]))
    table = read_dataset_texts(Path(dataset), "doc")
    assert table.to_numpy().tolist() == [
        ["d1", "Cats They purr.", "https://cats.org/1"],
        ["d2", "repo path f x = 1 python", ""],
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("irds:mine/tset", r"irds:mine/tset: ir_datasets has no dataset 'mine/tset'\. Did you mean 'mine/test'\?"),
        ("irds:mine", r"irds:mine: this dataset has no qrels\. Parts that do: irds:mine/test\."),
    ],
)
def test_an_id_that_does_not_serve_is_one_line(dataset, name, says):
    with pytest.raises(DataError, match=f"^{says}$"):
        probeval.read_judgments(name)


def test_without_a_text_in_common(dataset):
    with pytest.raises(
        DataError, match=r"irds:mine/test: no text is of a document .* 'x' and others, which it does not"
    ):
        probeval.evaluate({"a": {"q1": {"x": 1.0}}}, "P@1", docs=dataset, scale="binary")


def test_without_ir_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(DataError, match=r"irds:mine: datasets by id need ir_datasets: pip install 'probeval\[tools\]'"):
        probeval.read_judgments("irds:mine")


def test_a_download_that_fails_is_one_line(monkeypatch, dataset):
    def fail(self):
        raise RuntimeError("All download sources failed\nand more", ["one", "two"])

    monkeypatch.setattr(ir_datasets.formats.TrecQrels, "qrels_iter", fail)
    with pytest.raises(DataError, match=r"^irds:mine/test: ir_datasets cannot read it: All download sources failed\."):
        probeval.read_judgments(dataset)
