"""Mutated files for every reader and every format: each is read, or refused in one line."""

from __future__ import annotations

import gzip
import inspect
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from probeval.api.convert import _search
from probeval.campaign import KINDS, Setup
from probeval.cli.assessor_texts import guideline_text
from probeval.cli.topics import _read_owners
from probeval.data import (
    as_query_weights,
    as_segments,
    read_answers,
    read_judgments,
    read_label_studio,
    read_labels,
    read_magnitudes,
    read_metadata,
    read_mteb,
    read_observers,
    read_opensearch,
    read_quepid,
    read_ragelo,
    read_rank_eval_ratings,
    read_rank_eval_runs,
    read_runs,
    read_teams,
    read_texts,
    read_umbrela,
    read_votes,
)
from probeval.data.evidence import read_graded_labels
from probeval.data.scale import Scale
from probeval.metrics.users_file import read_users_file
from probeval.preferences import score_documents
from probeval.reliability import read_scores
from probeval.reports.simulations import read_simulation
from probeval.satisfaction import read_list_answers, read_preferences
from probeval.selection.errors import read_corrections
from probeval.web.documents import read_documents
from probeval.web.entry import read_assessors
from tests.attack.cases import Attack, Attempt, Tally

PAYLOADS = Path(__file__).parent / "payloads"
TEXTS = {"q1": "star wars", "q2": "dogs", "q3": "space films", "q4": "=sum"}

# What stands in the place of a value: too large, of no number, of no text, of another type.
WORDS = (
    "", " ", "nan", "inf", "-inf", "1e999", "9" * 5000, "-1", "0x10", "1_0", "٣", "1e-400", "True", "null", "None",
    "#q1", "=1+1", "'", '"', '""', "\\", "a,b", "a\tb", "{}", "[]", "{{7*7}}", "$\\foo$", "<script>", "\x00", "\x1b[2K",
    "\x85", "\u2028", "\u202e", "\ufeff", "\ud83d", "x" * 70, "y" * 5000, "graded:99999999999", "2026-13-45", "irds:",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, float("nan"), float("inf"), 10**400, 2**63, [], {}, [[]], [None], {"a": {}}, "x",
    "", "cut \ud83d", "\x1b[2K", [1, 2], {"": 0}, -0.0, 1e-320, "9" * 400,
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A good file of one format, and what reads it."""

    name: str
    content: bytes
    read: Callable[[Path], Any]

    @property
    def reader(self) -> str:
        """The name of what reads it."""
        return str(getattr(self.read, "func", self.read).__name__).lstrip("_")


def _rows(separator: str, *rows: tuple[object, ...]) -> bytes:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows).encode()


def _lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1).encode()


def _parquet(*records: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    table = pd.DataFrame(list(records))
    mixed = [name for name in table if len(set(map(type, table[name]))) > 1 or isinstance(table[name][0], dict)]
    table.astype(dict.fromkeys(mixed, str)).to_parquet(out)
    return out.getvalue()


def _one(read: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[Path], Any]:
    named = inspect.signature(read).parameters
    after_the_file = dict(zip([*named][1:], arguments, strict=False))
    return partial(read, **after_the_file, **options)


RUN = [("q1", "Q0", "d1", 1, 3.5, "t"), ("q1", "Q0", "d2", 2, 2, "t"), ("q2", "Q0", "d3", 1, "1e3", "t")]
GRADED = [{"query": q, "doc": d, "grade": g, "assessor": a} for q, d, g, a in
          [("q1", "007", 2, "ann"), ("q1", "7", 0, "bob"), ("q2", "1e5", 1, "ann")]]  # fmt: skip
RETRIEVED = [{"system": s, "query": "q1", "doc": d, "score": x, "rank": r} for s, d, x, r in
             [("a", "d1", 2.5, 1), ("a", "d2", 1.0, 2), ("b", "d2", 9.0, 1)]]  # fmt: skip
LABELS = [{"query": "q1", "doc": d, "gpt": g, "person": p, "llm:0": x, "llm:1": 1 - x, "why": "so"} for d, g, p, x in
          [("d1", 2, 1, 0.25), ("d2", 0, None, 0.5), ("d3", 1, 0, 1.0)]]  # fmt: skip
ANSWERS = [{"query": "q1", "left": "d1", "right": "d2", "choice": "left", "relevant": "both", "assessor": "ann"},
           {"query": "q1", "left": "d2", "right": "d3", "choice": "equal", "assessor": "bob"}]  # fmt: skip
NUMBERS = [{"query": "q1", "doc": d, "number": n, "unit": "u", "assessor": "ann", "seconds": 2.5} for d, n in
           [("d1", 30), ("d2", 10.5), ("d3", 1)]]  # fmt: skip
UMBRELA = [{"model": "gpt", "qid": "q1", "docid": d, "query": "star wars", "passage": t, "prediction": "..",
            "judgment": g, "result_status": 1} for d, t, g in [("d1", "one", 3), ("d2", "two", 0)]]  # fmt: skip
NAMELESS = [{k: v for k, v in row.items() if k not in ("qid", "docid")} for row in UMBRELA]
RAGELO = [{"qid": "q1", "did": d, "raw_answer": "..", "answer": a, "exception": None, "evaluator_name": "e"} for d, a in
          [("d1", 2), ("d2", {"score": 1}), ("d3", '{"overall": 0}')]]  # fmt: skip
OPENSEARCH = {"name": "list", "judgmentRatings": [
    {"query": "dogs", "ratings": [{"docId": "d1", "rating": "1.0"}, {"docId": "d2", "rating": 0}]}]}  # fmt: skip
MTEB = {"mteb_model_meta": {"model_name": "a/b"}, "default": {"test": {"q1": {"d1": 1.5, "d2": 1}, "q2": {"d3": 0.5}}}}
USERS = {"format": "probeval users", "version": 1, "name": "n", "origin": "o", "mapping": None,
         "agreement": {"better": [1] * 10, "neither": [1] * 10, "worse": [1] * 10}}  # fmt: skip
SIMULATION = {"metric": "P@5", "systems": 2, "pool": 9, "offered": 9, "stopping": "all", "until": "end", "noise": 0,
              "policies": [{"policy": "random", "independent": False, "ending": {}, "stop": {"accuracy_p": 1},
                            "points": []}]}  # fmt: skip
CORRECTIONS = [{"metric": "P@5", "model": "uniform", "campaigns": ["a"], "sd": [0.1, 0.2], "error": [0.1, 0.3]}]


def gold_orders(path: Path) -> Any:
    """Known comparisons, as a campaign reads them."""
    setup = Setup(name="a", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, ask="preferences")
    return KINDS["comparison"].as_gold(path, setup)


def _table_of(records: list[dict[str, Any]], end: str) -> bytes:
    if end == "jsonl":
        return _lines(*records)
    if end == "parquet":
        return _parquet(*records)
    names = list(dict.fromkeys(name for record in records for name in record))
    cells = [tuple("" if record.get(name) is None else record[name] for name in names) for record in records]
    return _rows("," if end == "csv" else "\t", tuple(names), *cells)


def sources() -> list[Source]:
    """One or more good files of every format, each with every reader that takes it."""
    found = [
        Source("run", _rows(" ", *RUN), read_runs),
        Source("run.txt", _rows("\t", *RUN), _one(read_runs, order="rank")),
        Source("qrels.txt", _rows(" ", *[("q1", 0, "d1", 2), ("q1", 0, "d2", 0), ("q2", 1, "d1", 1)]), read_judgments),
        Source("prels.txt", _rows(" ", *[("q1", "d1", 2, 1, 0.5), ("q1", "d2", 0, 1, 1)]), read_judgments),
        Source("labels.qrels", _rows(" ", *[("q1", 0, "d1", 2), ("q1", 0, "d2", 0)]), read_umbrela),
        Source("votes.txt", _rows("\t", ("topicID", "docID", "workerID", "label"), ("1", "d", "w", "2")), read_votes),
        Source("texts.tsv", b"q1\tstar wars\nq2\tdogs\n", _one(read_texts, "query")),
        Source("guideline.txt", b"Be fair.\n0 is not relevant.\n", guideline_text),
        Source("triples.csv", b"a,q1,d1\na,q1,d2\nb,q1,d3\n", read_runs),
        Source("a_predictions.json", _json(MTEB), read_runs),
        Source("b_predictions.json", _json(MTEB["default"]["test"]), read_mteb),
        Source("umbrela.json", _json(UMBRELA), read_umbrela),
        Source("umbrela.jsonl", _lines(*UMBRELA), read_labels),
        Source("texts.jsonl", _lines(*NAMELESS), _one(read_labels, queries=TEXTS, docs={"d1": "one", "d2": "two"})),
        Source("ragelo.json", _json(RAGELO), read_ragelo),
        Source("ragelo.jsonl", _lines(*({"retrieval": row} for row in RAGELO)), read_labels),
        Source("ragelo.csv", _table_of([{**row, "answer": 1} for row in RAGELO], "csv"), read_labels),
        Source("ratings.json", _json(OPENSEARCH), _one(read_labels, queries=TEXTS)),
        Source("ratings.json", _json(OPENSEARCH["judgmentRatings"]), _one(read_opensearch, queries=TEXTS)),
        Source("users.json", _json(USERS), read_users_file),
        Source("simulation.json", _json(SIMULATION), read_simulation),
        Source("corrections.json", _json(CORRECTIONS), read_corrections),
        Source("search.json", _json({"query": {"match": {"title": "{{query_string}}"}}}), _search),
    ]  # fmt: skip
    tables: list[tuple[str, list[dict[str, Any]], Callable[[Path], Any]]] = [
        ("runs", RETRIEVED, read_runs),
        ("judgments", GRADED, read_judgments),
        ("votes", [{**row, "gold": 1} for row in GRADED], read_votes),
        ("labels", LABELS, read_labels),
        ("graded", [{**row, "grade": 1} for row in LABELS], read_graded_labels),
        ("answers", ANSWERS, read_answers),
        ("answers", ANSWERS, _one(score_documents)),
        ("magnitudes", NUMBERS, read_magnitudes),
        ("metadata", [{"doc": "d1", "site": "a", "author": "x"}, {"doc": "d2", "site": ""}], read_metadata),
        ("observers", [{"name": "gpt", "kind": "machine", "family": "f", "scale": "graded:2"}], read_observers),
        ("systems", [{"run": "a", "team": "x"}, {"run": "b", "team": "y"}], read_teams),
        ("texts", [{"doc": "d1", "text": "one", "title": "One"}, {"doc": "d2", "text": "two", "title": ""}],
         _one(read_texts, "doc")),
        ("docs", [{"doc": "d1", "text": "one", "title": "One", "link": "https://x.org", "image": ""}], read_documents),
        ("people", [{"assessor": "ann", "token": "abcdefgh12345678", "role": "owner"}], read_assessors),
        ("owners", [{"query": "q1", "assessor": "ann"}], _read_owners),
        ("orders", [{"query": "q1", "better": "d1", "worse": "d2"}], gold_orders),
        ("weights", [{"query": "q1", "weight": 2}, {"query": "q2", "weight": 1}], _one(as_query_weights, ["q1", "q2"])),
        ("segments", [{"query": "q1", "segment": "head"}], _one(as_segments, ["q1", "q2"])),
        ("scores", [{"query": "q1", "a": 0.5, "b": 0.25}, {"query": "q2", "a": 0.1, "b": None}], read_scores),
        ("long", [{"system": s, "query": q, "score": 0.5} for s in "ab" for q in ("q1", "q2")], read_scores),
        ("preferences", [{"a": 0.5, "b": 0.25, "answer": "a"}, {"a": 0.5, "b": 0.5, "answer": "good"}],
         _one(read_preferences, a="a", b="b", answer="answer")),
        ("lists", [{"score_a": 0.5, "score_b": 0.25, "answer": "a", "query": "q1", "user": "u", "seconds": 1}],
         read_list_answers),
    ]  # fmt: skip
    for name, records, read in tables:
        found += [Source(f"{name}.{end}", _table_of(records, end), read) for end in ("csv", "tsv", "jsonl", "parquet")]
    known: dict[str, tuple[Callable[[Path], Any], ...]] = {
        "quepid": (_one(read_judgments, queries=TEXTS), _one(read_quepid, queries=TEXTS)),
        "label_studio.csv": (read_judgments,),
        "label_studio": (read_judgments, read_label_studio),
        "rank_eval_request": (read_judgments, read_rank_eval_ratings),
        "rank_eval_response": (read_runs, read_rank_eval_runs),
        "rank_eval_wrapped": (read_runs, read_rank_eval_runs),
    }
    for path in sorted(PAYLOADS.iterdir()):
        for read in next((known[start] for start in known if path.name.startswith(start)), ()):
            found.append(Source(path.name, path.read_bytes(), read))
    return found


def mutated(source: Source, others: list[Source], rng: random.Random) -> tuple[str, bytes]:
    """A file that is wrong in one or more ways, and its name."""
    name, content = source.name, source.content
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(WAYS)(content, others, rng)
    if rng.random() < 0.1:
        content = gzip.compress(content, mtime=0)
        name += ".gz" * rng.randrange(2)
        if rng.random() < 0.5:
            content = _flip(content, others, rng)
    return name, content


def _flip(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(rng.choice((1, 2, 8)) if out else 0):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _cut(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    a, b = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
    return rng.choice((content[:a], content[:a] + content[b:], content[:b] + content[a:]))


def _splice(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    other = rng.choice(others).content
    at, a = rng.randint(0, len(content)), rng.randint(0, len(other))
    return rng.choice((content[:at] + other[a:], other, content + other))


def _put(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    """Another word in the place of one, or before it."""
    word = rng.choice(WORDS).encode("utf-8", "surrogatepass")
    starts = [0, *(i + 1 for i, byte in enumerate(content) if byte in b' ,\t\n":'), len(content)]
    at = rng.randrange(len(starts) - 1)
    end = starts[at] if rng.random() < 0.3 else max(starts[at], starts[at + 1] - 1)
    return content[: starts[at]] + word + content[end:]


def _lines_of(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    way = rng.randrange(5)
    if way == 0:
        lines.insert(at, lines[at])
    elif way == 1:
        del lines[at]
    elif way == 2:
        rng.shuffle(lines)
    elif way == 3:
        lines[at] = rng.choice((b"\n", b"\r", b"#\n", b'"', b"\xff\n", lines[at].strip() * 3, lines[at] * 40))
    else:
        end = rng.choice((b"\r", b"\r\n", b"\x0b", b"\n\n"))
        lines = [line.rstrip(b"\n") + end for line in lines]
    return b"".join(lines)


def _encode(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return (
            rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\x1f\x8b", b"PAR1", b"SQLite format 3\x00")) + content
        )
    return content.decode("latin-1").encode(rng.choice(("utf-16", "utf-32", "utf-8")))


def _nested(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    return rng.choice((b"[", b'{"a":', b"[[],")) * rng.choice((10, 2000, 200_000)) + content


def _tree(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    """JSON, or one of its lines, with a value replaced, left out or under another name."""
    lines = [content] if content[:1] == b"[" or content.count(b"\n{") == 0 else content.splitlines()
    at = rng.randrange(len(lines))
    try:
        tree = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _put(content, others, rng)
    places = list(json_places(tree))
    if not places:
        return json.dumps(rng.choice(VALUES)).encode()
    holder, key = rng.choice(places)
    way = rng.random()
    if way < 0.7:
        holder[key] = deepcopy(rng.choice(VALUES))
    elif way < 0.85 or isinstance(holder, list):
        del holder[key]
    else:
        holder[rng.choice(WORDS)] = holder.pop(key)
    lines[at] = json.dumps(tree, indent=None if len(lines) > 1 else 1).encode()
    return b"\n".join(lines)


def spoiled_bytes(content: bytes, rng: random.Random) -> bytes:
    """The content with bytes changed, left out or repeated, whatever it is."""
    return rng.choice((_flip, _cut, _put, _encode))(content, [], rng)


def json_places(tree: Any) -> Iterator[tuple[Any, Any]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(inner):
        yield tree, key
        yield from json_places(value)


def frame_of(content: bytes, others: list[Source], rng: random.Random) -> bytes:
    """A parquet file with a column of another type, or none."""
    if content[:4] != b"PAR1":
        return _tree(content, others, rng)
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(content))
    except Exception:  # spoiled already
        return _flip(content, others, rng)
    at, n = rng.randrange(max(1, table.num_columns)), table.num_rows
    columns: tuple[Callable[[], Any], ...] = (
        lambda: pa.array([None] * n),
        lambda: pa.array([rng.choice((0, -1, 2**62)) for _ in range(n)]),
        lambda: pa.array([rng.choice((0.5, float("nan"), float("inf"), None)) for _ in range(n)]),
        lambda: pa.array([[1, 2]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([b"\xff\x00"] * n),
        lambda: pa.array([True] * n),
        lambda: pa.array([2**40] * n, type=pa.timestamp("ns")),
        lambda: pa.array(["x", None] * n)[:n].dictionary_encode(),
        lambda: pa.array([rng.choice([w for w in WORDS if "\ud83d" not in w]) for _ in range(n)]),
        lambda: pa.array([1] * n, type=pa.decimal128(38, 2)),
    )
    name = rng.choice((*table.column_names, "x", "\x1b[2K")) if rng.random() < 0.3 else None
    if rng.random() < 0.1 or not table.num_columns:
        table = table.slice(0, 0) if rng.random() < 0.5 else table.select([])
    else:
        table = table.set_column(at, name or table.column_names[at], rng.choice(columns)())
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


WAYS = (_flip, _cut, _splice, _put, _put, _put, _lines_of, _encode, _tree, _tree, _tree, frame_of, frame_of)
WAYS = (*WAYS, *WAYS, _nested)


@contextmanager
def mutated_files(number: int) -> Iterator[Attempt]:
    """Attempts to read a mutated file each, and to show what was read."""
    known = sources()

    def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
        source = rng.choice(known)
        name, content = mutated(source, known, rng)
        reader = source if rng.random() < 0.95 else rng.choice(known)
        tally[f"by {reader.reader}"] += 1
        path = folder / name
        path.write_bytes(content)
        try:
            repr(reader.read(path))
        finally:
            path.unlink()

    yield attempt


FILES = Attack(
    "files",
    100_000,
    mutated_files,
    "files of every format are mutated, and read by every reader",
    "each is read, or refused in one line",
)
