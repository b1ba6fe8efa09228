"""What holds of the data layer whatever the ids, the scores and the order of the rows."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probeval.data import (
    Judgments,
    Pool,
    Runs,
    Scale,
    as_judgments,
    as_runs,
    read_judgments,
    read_runs,
    write_qrels,
    write_run,
)
from probeval.data.pool import is_text
from probeval.errors import ProbevalError

ODD = ["27003e", "00afd2", "1e5", "NaN", "nan", "007", "7", "null", "None", "NA", "inf", "-1", "1_0", "0x1f", "é", "文"]
ANY_ID = st.one_of(st.sampled_from([*ODD, ""]), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
FILE_ID = st.one_of(
    st.sampled_from(ODD),
    st.text(
        st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="#\N{ZERO WIDTH NO-BREAK SPACE}"),
        min_size=1,
        max_size=4,
    ),
)
PAIRS = st.lists(st.tuples(ANY_ID, ANY_ID), max_size=20)
# Few values, so that ties are common; some differ only beyond 32 bits.
SCORE = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-9, 2.5, 1e30, -1e300]), st.floats(allow_nan=False))


def columns(rows: list[tuple]) -> tuple[list, ...]:
    return tuple(map(list, zip(*rows, strict=True))) if rows else ([], [])


def labels(pool: Pool) -> list[tuple[str, str]]:
    return [pool.label(i) for i in range(len(pool))]


@given(PAIRS)
def test_a_pool_is_the_sorted_set_of_its_pairs(pairs):
    pool = Pool.of(*columns(pairs))
    assert labels(pool) == sorted(set(pairs))
    assert pool.sizes.sum() == len(pool)


@given(PAIRS, PAIRS)
def test_locate_within_and_union_are_those_of_sets(left, right):
    a, b = Pool.of(*columns(left)), Pool.of(*columns(right))
    place = {pair: i for i, pair in enumerate(labels(b))}
    expected = [place.get(pair, -1) for pair in labels(a)]
    assert a.within(b).tolist() == expected
    assert b.locate(*columns(labels(a))).tolist() == expected
    assert labels(a.union(b)) == sorted(set(left) | set(right))
    assert a.union(b) == b.union(a)


@given(PAIRS, st.data())
def test_take_is_a_filter(pairs, data):
    pool = Pool.of(*columns(pairs))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(pool), max_size=len(pool))), dtype=bool)
    taken = pool.take(keep)
    assert labels(taken) == [pair for pair, kept in zip(labels(pool), keep, strict=True) if kept]
    assert taken.queries.tolist() == pool.queries.tolist()


@given(st.lists(st.tuples(st.sampled_from("xyz"), FILE_ID, FILE_ID, SCORE), max_size=25, unique_by=lambda r: r[:3]))
def test_lists_are_in_the_order_of_trec_eval(rows):
    runs = Runs.rows(*(columns(rows) if rows else ([], [], [], [])))
    with np.errstate(over="ignore"):
        key = {row[:3]: (np.float32(row[3]) + np.float32(0), row[2].encode()) for row in rows}
    for s, system in enumerate(runs.systems):
        for q, query in enumerate(runs.queries):
            docs = [runs.pool.label(p)[1] for p in runs.pairs[s, q] if p >= 0]
            mine = [d for t, r, d, _ in rows if (t, r) == (system, query)]
            assert docs == sorted(mine, key=lambda d: key[system, query, d], reverse=True)


@given(
    st.lists(
        st.tuples(st.sampled_from("xy"), FILE_ID, FILE_ID, SCORE), min_size=1, max_size=15, unique_by=lambda r: r[:3]
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    one, other = Runs.rows(*columns(rows)), Runs.rows(*columns(shuffled))
    assert one.pool == other.pool
    assert one.to_frame().equals(other.select(one.systems).to_frame())


@given(st.lists(st.tuples(FILE_ID, FILE_ID, SCORE), min_size=1, max_size=15, unique_by=lambda r: r[:2]))
def test_a_run_survives_its_file(rows):
    runs = Runs.rows(["run"] * len(rows), *columns(rows))
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder) / "run", runs, "run")
        again = read_runs(Path(folder) / "run")
    assert again.pool == runs.pool
    assert np.array_equal(again.pairs, runs.pairs)
    assert np.array_equal(again.scores, runs.scores, equal_nan=True)


GRADE = st.one_of(st.integers(-2, 100), st.floats(0, 1e9))


@given(
    st.lists(
        st.tuples(FILE_ID, FILE_ID, GRADE, FILE_ID), min_size=1, max_size=15, unique_by=lambda r: (r[0], r[1], r[3])
    )
)
def test_judgments_survive_their_file(rows):
    queries, docs, grades, who = columns(rows)
    judged = Judgments.rows(queries, docs, grades, assessors=who)
    with tempfile.TemporaryDirectory() as folder:
        write_qrels(Path(folder) / "qrels.gz", judged)
        again = read_judgments(Path(folder) / "qrels.gz")
    assert again.pool == judged.pool
    for rule in ("median", "majority", "min", "max", "latest"):
        assert np.array_equal(again.grades(rule), judged.grades(rule))


@given(st.dictionaries(FILE_ID, st.dictionaries(FILE_ID, st.integers(0, 3), min_size=1), min_size=1, max_size=5))
def test_dicts_come_back_as_they_went(content):
    judged = as_judgments(content)
    back: dict[str, dict[str, int]] = {}
    for query, doc, grade in judged.to_frame()[["query", "doc", "grade"]].itertuples(index=False):
        back.setdefault(query, {})[doc] = grade
    assert back == content
    runs = as_runs({"s": content})
    assert runs.pool == judged.pool
    assert {(q, d): s for q, d, s in runs.to_frame()[["query", "doc", "score"]].itertuples(index=False)} == {
        (q, d): g for q, docs in content.items() for d, g in docs.items()
    }


@given(st.lists(st.integers(-3, 4), min_size=1), st.integers(4, 9))
def test_codes_look_up_the_grade(grades, top):
    scale = Scale.graded(top)
    codes = scale.codes(grades)
    assert [max(g, 0) for g in grades] == scale.lookup(scale.values)[codes].tolist()
    assert [c >= 0 for c in codes] == [g != -1 for g in grades]


@given(st.lists(st.tuples(st.sampled_from("de"), st.integers(-2, 3), st.sampled_from("abc")), min_size=1, max_size=12))
def test_rules_against_plain_python(rows):
    docs, grades, who = columns(rows)
    judged = Judgments.rows(["q"] * len(rows), docs, grades, assessors=who)
    for place, doc in enumerate(sorted(set(docs))):
        last = {a: g for d, g, a in rows if d == doc}
        votes = sorted(g for g in last.values() if g != -1) or [-1]
        expected = {
            "median": votes[(len(votes) - 1) // 2],
            "majority": min(votes, key=lambda g: (-votes.count(g), g)),
            "min": votes[0],
            "max": votes[-1],
            "latest": [g for d, g, _ in rows if d == doc][-1],
        }
        assert {rule: judged.grades(rule)[place] for rule in expected} == expected


# Pieces that readers stumble over, put in anywhere.
PIECES = [
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"#",
    b"\n#",
    b'"',
    b",",
    b"\0",
    b"\x01",
    b"\x1c",
    b"\xff",
    b"\xef\xbb\xbf",
]
PIECES += [
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"1_0",
    b"{",
    b"[",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\x1f\x8b",
    b"\n\n",
    b"x" * 99,
]
SEEDS = {
    "run": b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\nq2 Q0 d1 1 .5 t\n",
    "qrels": b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n",
    "prels": b"q1 d1 1 0 .5\nq1 d2 0 0 .5\n",
    "table.csv": b"query,doc,grade,score\nq1,d1,1,2\nq1,d2,0,1\n",
    "triples.tsv": b"s\tq1\td1\ns\tq1\td2\nt\tq1\td1\n",
    "table.jsonl": b'{"query": "q1", "doc": "d1", "grade": 1}\n{"query": "q1", "doc": "d2", "grade": 0}\n',
}


def attempt(read, path: Path) -> tuple[Runs | Judgments | None, str]:
    """What was read, or why not."""
    try:
        return read(path), ""
    except ProbevalError as error:
        return None, str(error)


@given(
    st.sampled_from(sorted(SEEDS)),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 3), st.sampled_from(PIECES)), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_spoilt_file_is_read_or_refused_in_one_line(name, edits, squeeze):
    content = SEEDS[name]
    for at, cut, piece in edits:
        content = content[:at] + piece + content[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(gzip.compress(content) if squeeze else content)
        for read in (read_runs, read_judgments):
            result, refusal = attempt(read, path)
            if result is None:
                assert len(refusal.splitlines()) == 1
                assert refusal.startswith(str(path))
            else:
                assert len(result.to_frame()) > 0
                assert all(is_text(label) and label for label in result.pool.docs)


@given(st.binary(max_size=60), st.sampled_from(["", ".csv", ".tsv", ".jsonl", ".parquet"]))
def test_any_bytes_are_read_or_refused(content, ending):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(content)
        for read in (read_runs, read_judgments):
            with contextlib.suppress(ProbevalError):
                assert len(read(path).to_frame()) > 0
