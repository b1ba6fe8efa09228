"""Damaged campaigns in partitions: a manifest that is wrong, files of another kind, ids that are no text."""

from __future__ import annotations

import io
import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import numpy as np

from probeval.data import Collection, LabelTable, open_partitions, split, write_partitions
from probeval.relevance import synthetic_campaign
from tests.attack.cases import Attack, Attempt, Tally, in_memory
from tests.data.hostile_files import VALUES, WORDS, frame_of, json_places, spoiled_bytes

MANIFEST = "partitions.json"


def damage(folder: Path, rng: random.Random) -> str:
    """Damage a campaign in partitions; the kind of file."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    file = folder / MANIFEST if rng.random() < 0.5 else rng.choice(files)
    way, content = rng.random(), file.read_bytes()
    if way < 0.05:
        file.unlink()
    elif way < 0.1:
        shutil.copy(rng.choice([other for other in files if other != file]), file)
    elif way < 0.25:
        file.write_bytes(spoiled_bytes(content, rng))
    elif file.name == MANIFEST:
        file.write_text(_spoiled(content, rng))
    elif way < 0.5:
        file.write_bytes(_bytes_as_ids(content, rng))
    else:
        file.write_bytes(frame_of(content, [], rng))
    return "manifest" if file.name == MANIFEST else file.parent.name


def _spoiled(content: bytes, rng: random.Random) -> str:
    tree = json.loads(content)
    for _ in range(rng.choice((1, 1, 2))):
        places = list(json_places(tree))
        holder, key = rng.choice(places)
        if rng.random() < 0.8:
            holder[key] = deepcopy(rng.choice((*VALUES, *WORDS)))
        elif isinstance(holder, list) or rng.random() < 0.5:
            del holder[key]
        else:
            holder[rng.choice(WORDS)] = holder.pop(key)
    return json.dumps(tree)


def _bytes_as_ids(content: bytes, rng: random.Random) -> bytes:
    """A parquet file with ids that are not UTF-8, though it calls them text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    texts = [i for i, column in enumerate(table.columns) if pa.types.is_large_string(column.type)]
    if texts and table.num_rows:
        at = rng.choice(texts)
        ids = [(text or "").encode() for text in table.column(at).to_pylist()]
        ids[rng.randrange(len(ids))] = rng.choice((b"\xff\xfe", b"d\xed\xa0\xbd", b"\xc3"))
        lengths = np.cumsum([0, *map(len, ids)]).astype(np.int64)
        buffers = [None, pa.py_buffer(lengths), pa.py_buffer(b"".join(ids))]
        wrong = pa.Array.from_buffers(pa.large_string(), len(ids), buffers)
        table = table.set_column(at, table.column_names[at], wrong)
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def use(folder: Path) -> None:
    """Read everything of a campaign in partitions."""
    found = open_partitions(folder)
    assert repr(found)
    assert found._repr_html_()
    for i, part in enumerate(found.read_all()):
        assert repr(part.runs)
        assert len(found.read_queries(i)) == len(part.runs.queries)
        found.read(i, 2, sources=())
    found.read_judgments()


def made() -> Collection:
    """A campaign with labels of two kinds and judgments."""
    given = synthetic_campaign(seed=3, systems=3, queries=4, depth=4, docs=8)
    assert given.judgments is not None
    pool, rng = given.runs.pool, np.random.default_rng(0)
    parts = rng.dirichlet([1, 1, 1], len(pool))
    values = np.column_stack([rng.integers(0, 3, len(pool)), parts @ np.arange(3)])
    labels = LabelTable(pool, ("gpt", "crowd"), values, {"crowd": parts})
    return Collection("mine", given.runs, given.judgments, labels=labels)


@contextmanager
def hostile_partitions(number: int) -> Iterator[Attempt]:
    """Attempts to read a damaged campaign in partitions each."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as place:
        whole = Path(place) / "whole"
        write_partitions(split(made(), 2), whole)

        def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
            copy = folder / "mine"
            shutil.copytree(whole, copy)
            try:
                tally[f"in the {damage(copy, rng)}"] += 1
                use(copy)
            finally:
                shutil.rmtree(copy)

        yield attempt


PARTITIONS = Attack(
    "campaigns",
    10_000,
    hostile_partitions,
    "the manifest and the files of campaigns in partitions are damaged",
    "each is read, or refused in one line",
)
