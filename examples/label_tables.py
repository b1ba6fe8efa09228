"""What priors of observers are learned from: `python examples/label_tables.py DATA` lists tables of labels and grades.

Some columns are made here from texts: labellers that are poor, as similarities and lengths are.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import svds

from probeval.arrays import Floats, Ints
from probeval.data import Judgments, LabelTable, Pool, read_campaign, read_graded_labels
from probeval.data.evidence import read_label_table

# Tables with a grade of their own, and the campaign whose pairs they have.
GRADED = {"labels-dl2019-more": "trec-dl2019-passage", "labels-dl2020": "trec-dl2020-passage", "labels-dl2023": ""}
# Labels of the judged pairs of a campaign.
OF_CAMPAIGNS = {
    "labels-trec-dl2019-passage-rerankers": "trec-dl2019-passage",
    "labels-trec-dl2020-passage-rerankers": "trec-dl2020-passage",
    "labels-trec-dl2019-passage-needs": "trec-dl2019-passage",
    "labels-trec-dl2020-passage-needs": "trec-dl2020-passage",
    "labels-trec-dl2020-passage-prompts": "trec-dl2020-passage",
}
TEXTS = ("trec-dl2019-passage", "trec-dl2020-passage")
EVERY = 6  # of the prompts, one in so many is learned from: they are near copies of one another
INVERTED = "_inverted"  # prompts that ask for 0 if relevant: not learned from
FACTORS = 100  # of the truncated decomposition
K1, B = 0.9, 0.4  # of BM25
WORD = re.compile(r"[a-z0-9]+")


def labelled_tables(data: Path, *, without: str | None = None) -> list[tuple[LabelTable, Judgments]]:
    """Return labels beside grades, those of one campaign left out.

    The columns person1 to person8 are of people. Scores of similarity and lengths are made from the texts.
    """
    tables = [antique(data)]
    for name, campaign in GRADED.items():
        if campaign != without:
            labels, grades = read_graded_labels(data / f"{name}.tsv.gz")
            people = {source: {"kind": "person"} for source in labels.sources if source.startswith("person")}
            tables.append((labels.described(people), grades))
    for name, campaign in OF_CAMPAIGNS.items():
        if campaign != without:
            labels = read_label_table(data / f"{name}.tsv.gz")
            sources = [source for source in labels.sources if not source.endswith(INVERTED)]
            kept = sources[::EVERY] if name.endswith("prompts") else sources
            tables.append((labels.take(kept), grades_of(data, campaign)))
    for campaign in TEXTS:
        if campaign != without:
            tables.append((text_labels(data, campaign), grades_of(data, campaign)))
    return tables


def antique(data: Path) -> tuple[LabelTable, Judgments]:
    """Return the labels of questions without runs; their human grades are 1 to 4."""
    labels = read_label_table(data / "labels-antique.tsv.gz")
    grades = labels.given_by("human") - 1
    rest = labels.take([source for source in labels.sources if source != "human"])
    rest = rest.joined([text_labels(data, "antique", labels.pool)])
    return rest, Judgments.coded(labels.pool, np.arange(len(grades)), grades)


def grades_of(data: Path, campaign: str) -> Judgments:
    """Return the judgments of a campaign."""
    judgments = read_campaign(data / campaign).judgments
    assert judgments is not None
    return judgments


def text_labels(data: Path, campaign: str, pool: Pool | None = None) -> LabelTable:
    """Return scores of the judged pairs of a campaign by their texts alone: similarities to the query, and length."""
    pool = grades_of(data, campaign).pool if pool is None else pool
    with gzip.open(data / f"docs-{campaign}.jsonl.gz", "rt", encoding="utf-8") as lines:
        docs = {row["doc_id"]: row["text"] for row in map(json.loads, lines)}
    queries = dict(pd.read_csv(data / f"queries-{campaign}.tsv", sep="\t", dtype=str).itertuples(index=False))
    names = {
        "svdcosine": svd_cosine,
        "tfidfcosine": tfidf_cosine,
        "bm25score": bm25,
        "wordshare": word_share,
        "jaccardscore": jaccard,
        "textlength": length,
    }
    words, size = _counts([*(docs[d] for d in pool.docs), *(queries[q] for q in pool.queries)]), len(pool.docs)
    values = [made(words, pool.doc, size + pool.query, size) for made in names.values()]
    table = LabelTable(pool, tuple(names), np.stack(values, axis=1))
    return table.described({name: {"kind": "similarity", "scale": "number"} for name in names})


def _counts(texts: Iterable[str]) -> csr_array:
    """Return the number of times that each text has each word, shape (text, word)."""
    words: dict[str, int] = {}
    rows, columns = [], []
    for row, text in enumerate(texts):
        for word in WORD.findall(text.lower()):
            rows.append(row)
            columns.append(words.setdefault(word, len(words)))
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(row + 1, len(words)))


def _tfidf(counts: csr_array, size: int) -> csr_array:
    """Return unit rows of (1 + log tf) idf, with the frequencies of the first ``size`` texts."""
    weights = counts.copy()
    weights.data = 1 + np.log(weights.data)
    frequency = np.asarray((counts[:size] > 0).sum(axis=0)).ravel()
    weights = weights @ diags_array(np.log((size + 1) / (frequency + 0.5)))
    return diags_array(1 / np.maximum(np.sqrt(weights.multiply(weights).sum(axis=1)), 1e-12)) @ weights


def tfidf_cosine(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    unit = csr_array(_tfidf(counts, size))
    return np.asarray(unit[doc].multiply(unit[query]).sum(axis=1)).ravel()


def svd_cosine(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    """Return the cosine of query and document in the leading factors, in place of an embedding's."""
    unit = csr_array(_tfidf(counts, size))
    _, _, factors = svds(unit[:size], k=FACTORS, rng=np.random.default_rng(0))
    rows = unit @ factors.T
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray((rows[doc] * rows[query]).sum(axis=1))


def bm25(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    docs = csr_array(counts[:size])
    frequency = np.asarray((docs > 0).sum(axis=0)).ravel()
    idf = np.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
    lengths = np.asarray(docs.sum(axis=1)).ravel()
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    coo = docs.tocoo()
    weights = csr_array(
        (coo.data * (K1 + 1) / (coo.data + norm[coo.row]) * idf[coo.col], (coo.row, coo.col)), shape=docs.shape
    )
    return np.asarray(weights[doc].multiply(counts[query] > 0).sum(axis=1)).ravel()


def word_share(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    """Return the share of the query's words that the document has."""
    has = csr_array((counts > 0).astype(float))
    return np.asarray(has[doc].multiply(has[query]).sum(axis=1)).ravel() / np.maximum(has[query].sum(axis=1), 1)


def jaccard(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    """Return the share of the words of query or document that both have."""
    has = csr_array((counts > 0).astype(float))
    both = np.asarray(has[doc].multiply(has[query]).sum(axis=1)).ravel()
    return both / np.maximum(has[doc].sum(axis=1) + has[query].sum(axis=1) - both, 1)


def length(counts: csr_array, doc: Ints, query: Ints, size: int) -> Floats:
    return np.asarray(counts[:size].sum(axis=1)).ravel()[doc]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/label_tables.py DATA")
    for found, judged in labelled_tables(Path(sys.argv[1])):
        print(f"{len(judged):,} graded pairs: {', '.join(found.sources)}")
