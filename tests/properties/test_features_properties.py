"""Every feature against a slow, plain reading of its definition, on campaigns drawn by hypothesis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.arrays import objects
from probeval.data import Collection, Judgments, Metadata, Pool, Runs, Scale
from probeval.data.evidence import LabelTable, Vectors
from probeval.errors import ProbevalWarning
from probeval.features import JudgedFeatures, compute_features, judged_features

# Ids that look like numbers, like nothing, or like another id; the first two are queries and documents at once.
DOCS = ["q 1", "1e5", "1E5", "007", "7", "NaN", "-0", "é", "e\u0301", "文書", "a:b", "[x]", "Q0", " "]
QUERIES = ["q 1", "1e5", "None"]
SCALE = Scale.graded(3)
COLUMN = "dc:type"
OUTPUT = ["fSYS", "fTEAM", "OV", "aRANK", "bRANK", "rSUM", "rRF", "pRANK", "zSCORE"]
DEEP = ["fSYS@100", "fTEAM@100", "rSUM@100", "rRF@100", "pRANK@100"]
GIVEN = [f"s[{COLUMN}]", f"f[{COLUMN}]", "label[m]"]
JUDGED = ["aSYS", "dSYS", "aDOC", "nDOC", f"a[{COLUMN}]", "aSIM"]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Plain:
    """A campaign as plain dictionaries: what the slow definitions read."""

    lists: dict[tuple[str, str], list[str]]  # (system, query) -> documents by rank
    scores: dict[tuple[str, str], list[float]]
    teams: dict[str, str]
    grades: dict[Pair, int]
    groups: dict[str, str]
    labels: dict[Pair, float]
    vectors: dict[str, np.ndarray]

    @property
    def systems(self) -> list[str]:
        return list(self.teams)

    @property
    def queries(self) -> list[str]:
        return sorted({query for _, query in self.lists})

    def collection(self) -> Collection:
        rows = [
            (s, q, d, x) for (s, q), docs in self.lists.items() for d, x in zip(docs, self.scores[s, q], strict=True)
        ]
        systems, queries, docs, scores = map(list, zip(*rows, strict=True))
        pool = Pool.of([q for q, _ in self.labels], [d for _, d in self.labels])
        labels = np.full((len(pool), 1), np.nan)
        for (q, d), label in self.labels.items():
            labels[pool.locate([q], [d])[0]] = label
        judged = list(self.grades)
        return Collection(
            "drawn",
            Runs.rows(systems, queries, docs, scores).with_teams(self.teams),
            Judgments.rows([q for q, _ in judged], [d for _, d in judged], [self.grades[p] for p in judged]),
            Metadata(objects(list(self.groups)), {COLUMN: objects(list(self.groups.values()))}),
            LabelTable(pool, ("m",), labels),
            Vectors(objects(list(self.vectors)), np.array(list(self.vectors.values())).reshape(-1, 3)),
        )


@st.composite
def campaigns(draw: st.DrawFn) -> Plain:
    teams = {f"s{i}": draw(st.sampled_from(["x", "y", "z"])) for i in range(draw(st.integers(1, 5)))}
    queries = QUERIES[: draw(st.integers(1, 3))]
    lists, scores = {}, {}
    for system in teams:
        for query in queries:
            docs = draw(st.lists(st.sampled_from(DOCS), unique=True, min_size=1 if query == "q 1" else 0, max_size=7))
            if docs:
                lists[system, query] = docs
                steps = draw(st.lists(st.integers(1, 9), min_size=len(docs), max_size=len(docs)))
                scores[system, query] = [float(x) for x in np.cumsum(steps)[::-1] - 12]
    retrieved = sorted({(q, d) for (_, q), docs in lists.items() for d in docs})
    some = st.lists(st.sampled_from(retrieved), unique=True)
    known = draw(st.lists(st.sampled_from(DOCS), unique=True))
    near = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Plain(
        lists,
        scores,
        teams,
        {pair: draw(st.integers(0, 3)) for pair in draw(some)},
        {doc: draw(st.sampled_from(["", "g", "h"])) for doc in draw(st.permutations(DOCS))[:9]},
        {pair: draw(st.floats(-5, 5)) for pair in draw(some)},
        {doc: near.normal(size=3) for doc in known},
    )


# ---- the definitions, as docs/theory/relevance-models.md#features has them ----


def ranks_of(plain: Plain, pair: Pair, depth: int) -> dict[str, int]:
    """The rank of a pair in each system that has it in its top."""
    query, doc = pair
    tops = {s: plain.lists.get((s, query), [])[:depth] for s in plain.systems}
    return {s: top.index(doc) + 1 for s, top in tops.items() if doc in top}


def pool_of(plain: Plain, depth: int) -> list[Pair]:
    return sorted({(q, d) for (_, q), docs in plain.lists.items() for d in docs[:depth]})


def reciprocal(plain: Plain, pair: Pair, depth: int, c: int, over: int) -> Fraction:
    ranks = ranks_of(plain, pair, depth).values()
    return sum((Fraction(over, c + rank) for rank in ranks), Fraction(0)) / len(plain.systems)


def percentile(plain: Plain, pair: Pair, depth: int, pool: list[Pair]) -> float:
    mine = reciprocal(plain, pair, depth, 0, 1)
    others = [reciprocal(plain, p, depth, 0, 1) for p in pool if p[0] == pair[0]]
    return float((sum(x < mine for x in others) + Fraction(sum(x == mine for x in others) + 1, 2)) / len(others))


def standard(plain: Plain, pair: Pair, depth: int) -> float:
    found = []
    for system, rank in ranks_of(plain, pair, depth).items():
        scores = plain.scores[system, pair[0]]
        spread = np.std(scores)
        found.append((scores[rank - 1] - np.mean(scores)) / spread if spread > 0 else 0.0)
    return float(np.mean(found))


def slow_output(plain: Plain, name: str, pair: Pair, depth: int) -> float:
    stem, _, at = name.partition("@")
    pool = pool_of(plain, depth)
    k = int(at) if at else depth
    ranks = ranks_of(plain, pair, k)
    if stem == "fSYS":
        return len(ranks) / len(plain.systems)
    if stem == "fTEAM":
        return len({plain.teams[s] for s in ranks}) / len(set(plain.teams.values()))
    if stem == "OV":
        return len(pool) / (depth * len(plain.systems) * len(plain.queries))
    if stem == "aRANK":
        return float(np.mean(list(ranks.values())))
    if stem == "bRANK":
        return min(ranks.values())
    if stem == "rSUM":
        return float(reciprocal(plain, pair, k, 0, 1))
    if stem == "rRF":
        return float(reciprocal(plain, pair, k, 60, 61))
    if stem == "pRANK":
        return percentile(plain, pair, k, pool)
    assert stem == "zSCORE"
    return standard(plain, pair, depth)


def slow_given(plain: Plain, name: str, pair: Pair, depth: int) -> float:
    query, doc = pair
    group, own = plain.groups.get(doc, ""), plain.groups.get(query, "")
    if name.startswith("label"):
        return plain.labels.get(pair, np.nan)
    if name.startswith("s["):
        return np.nan if not group or not own else float(group == own)
    docs = [d for q, d in pool_of(plain, depth) if q == query]
    return np.nan if not group else sum(plain.groups.get(d, "") == group for d in docs) / len(docs)


def slow_judged(plain: Plain, name: str, pair: Pair, depth: int) -> float:
    query, doc = pair
    others = {p: plain.grades[p] / 3 for p in pool_of(plain, depth) if p in plain.grades and p != pair}
    of_query = {d: r for (q, d), r in others.items() if q == query}
    if name == "nDOC":
        return float(np.log(1 + len(of_query)))
    if name == "aSIM":
        return slow_similar(plain, doc, of_query)
    mine = set(ranks_of(plain, pair, depth))
    of_systems = [r for p, r in others.items() if mine & set(ranks_of(plain, p, depth))]
    group = plain.groups.get(doc, "")
    over = {
        "aSYS": of_systems,
        "dSYS": of_systems,
        "aDOC": list(of_query.values()),
        f"a[{COLUMN}]": [r for d, r in of_query.items() if group and plain.groups.get(d, "") == group],
    }[name]
    if not over:
        return np.nan
    return float(np.mean(over)) - (float(np.mean(list(others.values()))) if name == "dSYS" else 0.0)


def slow_similar(plain: Plain, doc: str, of_query: dict[str, float]) -> float:
    if doc not in plain.vectors:
        return np.nan

    def cosine(other: str) -> float:
        a, b = plain.vectors[doc], plain.vectors[other]
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    near = {
        r: np.mean([cosine(d) for d, s in of_query.items() if s == r and d in plain.vectors])
        for r in {s for d, s in of_query.items() if d in plain.vectors}
    }
    return max(near, key=near.__getitem__) if near else np.nan


# ---- the comparison ----


def fast(plain: Plain, names: list[str], depth: int) -> dict[Pair, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        table = compute_features(plain.collection().problem(depth=depth, scale=SCALE), names)
    return {table.pool.label(i): row for i, row in enumerate(table.values)}


@pytest.mark.parametrize(
    ("names", "slow"),
    [(OUTPUT + DEEP, slow_output), (GIVEN, slow_given), (JUDGED, slow_judged)],
    ids=["outputs", "given", "judged"],
)
@given(plain=campaigns(), depth=st.integers(1, 7))
def test_features_are_what_their_definitions_say(names, slow, plain, depth):
    found = fast(plain, names, depth)
    assert list(found) == pool_of(plain, depth)
    for pair, row in found.items():
        expected = [slow(plain, name, pair, depth) for name in names]
        np.testing.assert_allclose(row, expected, atol=1e-12, err_msg=f"{names} of {pair}")


@given(plain=campaigns(), depth=st.integers(1, 7))
def test_missing_is_counted_where_files_lack_it(plain, depth):
    pool = pool_of(plain, depth)
    lost = {
        f"f[{COLUMN}]": sum(not plain.groups.get(d, "") for _, d in pool),
        f"a[{COLUMN}]": sum(not plain.groups.get(d, "") for _, d in pool),
        "label[m]": sum(p not in plain.labels for p in pool),
        "aSIM": sum(d not in plain.vectors for _, d in pool),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compute_features(plain.collection().problem(depth=depth, scale=SCALE), list(lost))
    said = ", ".join(f"{name} for {n}" for name, n in lost.items() if n)
    expected = [f"Missing for some of {len(pool)} pairs (missing is not zero): {said}."] if said else []
    assert [str(w.message) for w in caught] == expected


def totals(judged: JudgedFeatures) -> np.ndarray:
    """Every feature of judgments, side by side."""
    return np.stack(
        [
            judged.system_mean(),
            judged.system_difference(),
            judged.query_mean(),
            judged.query_count(),
            judged.group_mean(COLUMN),
            judged.most_similar(),
        ]
    )


@given(plain=campaigns(), depth=st.integers(1, 7), data=st.data())
def test_judgments_one_by_one_in_any_order_are_judgments_at_once(plain, depth, data):
    batch = judged_features(plain.collection().problem(depth=depth, scale=SCALE), [COLUMN])
    running = judged_features(replace(plain, grades={}).collection().problem(depth=depth, scale=SCALE), [COLUMN])
    judged = np.flatnonzero(~np.isnan(batch.relevance)).tolist()
    first = data.draw(st.lists(st.sampled_from(judged), unique=True)) if judged else []
    for pair in first:  # a judgment that is changed later
        running = running.with_judgment(pair, data.draw(st.integers(0, 3)) / 3)
    for pair in data.draw(st.permutations(judged)):
        running = running.with_judgment(pair, batch.relevance[pair])
    np.testing.assert_array_equal(running.relevance, batch.relevance)
    np.testing.assert_allclose(totals(running), totals(batch), atol=1e-12)


@given(plain=campaigns(), depth=st.integers(1, 7), grade=st.integers(0, 3), data=st.data())
def test_a_pairs_own_judgment_leaves_its_own_features_alone(plain, depth, grade, data):
    judged = judged_features(plain.collection().problem(depth=depth, scale=SCALE), [COLUMN])
    pair = data.draw(st.integers(0, len(judged.relevance) - 1))
    after = totals(judged.with_judgment(pair, grade / 3))
    np.testing.assert_allclose(after[:, pair], totals(judged)[:, pair], atol=1e-12)


@given(plain=campaigns(), depth=st.integers(1, 7), data=st.data())
def test_names_do_not_matter(plain, depth, data):
    system = dict(zip(plain.systems, data.draw(st.permutations([f"t{i}" for i in plain.systems])), strict=True))
    query = dict(zip(QUERIES, data.draw(st.permutations(["z", "\u0000", "0"])), strict=True))
    doc = dict(zip(DOCS, data.draw(st.permutations([f"{i}é" for i in range(len(DOCS))])), strict=True))
    # What is both a query and a document keeps its group through two rows.
    groups = {doc[d]: g for d, g in plain.groups.items()} | {query[d]: g for d, g in plain.groups.items() if d in query}
    other = Plain(
        {(system[s], query[q]): [doc[d] for d in docs] for (s, q), docs in plain.lists.items()},
        {(system[s], query[q]): scores for (s, q), scores in plain.scores.items()},
        {system[s]: plain.teams[s] for s in sorted(plain.teams, key=system.__getitem__)},
        {(query[q], doc[d]): g for (q, d), g in plain.grades.items()},
        groups,
        {(query[q], doc[d]): x for (q, d), x in plain.labels.items()},
        {doc[d]: v for d, v in plain.vectors.items()},
    )
    names = OUTPUT + DEEP + GIVEN + JUDGED
    renamed = fast(other, names, depth)
    for (q, d), row in fast(plain, names, depth).items():
        np.testing.assert_allclose(renamed[query[q], doc[d]], row, atol=1e-12)
