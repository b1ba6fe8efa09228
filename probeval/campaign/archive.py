"""Runs, metadata, labels and vectors as parts of a store: arrays and JSON, never pickle."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable, Metadata, Vectors
from probeval.data.observers import ObserverSpec
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.errors import ProbevalError, StoreError

__all__ = [
    "digest_of",
    "join_labels",
    "pack",
    "pack_labels",
    "pack_runs",
    "reading_part",
    "unpack",
    "unpack_labels",
    "unpack_runs",
]

PARTS = "probabilities "  # an array of a source's probabilities, by the position of the source
OBSERVER = "observer "  # the description of a source, by its name


@contextmanager
def reading_part() -> Iterator[None]:
    """Around code that reads a part: whatever is wrong in it is an error of one line."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, LookupError, ValueError, TypeError, ArithmeticError, AttributeError,
            EOFError, OSError, NotImplementedError, RecursionError, MemoryError, ProbevalError):  # fmt: skip
        raise StoreError("A part of the store is damaged. Restore the store from a backup.") from None


def pack(collection: Collection) -> dict[str, bytes]:
    """The parts of a collection, by name: everything but its judgments."""
    parts = {"runs": pack_runs(collection.runs)}
    if collection.metadata is not None:
        groups = {f"group {name}": values for name, values in collection.metadata.groups.items()}
        parts["metadata"] = _bundle({"docs": collection.metadata.docs, **groups}, {})
    if collection.labels is not None:
        parts["labels"] = pack_labels(collection.labels)
    if collection.vectors is not None:
        parts["vectors"] = _bundle({"docs": collection.vectors.docs}, _matrix(collection.vectors.values))
    return parts


def unpack(
    name: str, part: Callable[[str], bytes | None], *, labels: Sequence[str] = (), late: Sequence[str] = ()
) -> Collection:
    """The collection of a campaign.

    Parameters
    ----------
    name
        Its name.
    part
        Returns a part of the store by its name.
    labels, late
        The names of the parts with further label tables and with late runs, in the order in which they came.
    """
    packed = [part(each) for each in ("runs", *late)]
    if None in packed:
        raise StoreError(f"campaign {name!r} lacks runs: the store is damaged. Restore it from a backup.")
    tables = [table for table in map(part, ["labels", *labels]) if table is not None]
    metadata, vectors = part("metadata"), part("vectors")
    with reading_part():
        return Collection(
            name=name,
            runs=reduce(Runs.joined, (unpack_runs(each) for each in packed if each is not None)),
            metadata=None if metadata is None else _metadata(metadata),
            labels=join_labels([*map(unpack_labels, tables)]) if tables else None,
            vectors=None if vectors is None else _vectors(vectors),
        )


def pack_runs(runs: Runs) -> bytes:
    """Runs as a part."""
    teams = {} if runs.teams is None else {"teams": runs.teams}
    lists: dict[str, NDArray[Any]] = {"pairs": runs.pairs.astype(np.int32), "scores": runs.scores}
    return _bundle({"systems": runs.systems, **teams, **_ids(runs.pool)}, {**lists, **_positions(runs.pool)})


def unpack_runs(packed: bytes) -> Runs:
    """The runs in a part."""
    texts, arrays = _open(packed)
    pool = _pool(texts, arrays)
    return Runs(
        tuple(texts["systems"]),
        pool,
        _places(arrays["pairs"], -1, len(pool)),
        _reals(arrays["scores"]),
        tuple(texts["teams"]) if "teams" in texts else None,
    )


def pack_labels(table: LabelTable) -> bytes:
    """A table of labels as a part."""
    parts = {f"{PARTS}{table.sources.index(s)}": p for s, p in table.probabilities.items()}
    observers = {f"{OBSERVER}{s}": astuple(observer) for s, observer in table.descriptions.items()}
    return _bundle(
        {"sources": table.sources, **_ids(table.pool), **observers},
        {"values": table.values, **_positions(table.pool), **parts},
    )


def unpack_labels(packed: bytes) -> LabelTable:
    """The table of labels in a part."""
    texts, arrays = _open(packed)
    sources = tuple(texts["sources"])
    parts = {sources[int(name.removeprefix(PARTS))]: p for name, p in arrays.items() if name.startswith(PARTS)}
    observers = {s: ObserverSpec(*texts[f"{OBSERVER}{s}"]) for s in sources if f"{OBSERVER}{s}" in texts}
    return LabelTable(_pool(texts, arrays), sources, _reals(arrays["values"]), parts, observers)


def join_labels(tables: Sequence[LabelTable]) -> LabelTable:
    """Join tables of labels; if two have the same source and pair, the later one counts.

    A source has probabilities where all of its tables do; else its expected grades are its labels.
    """
    pool = tables[0].pool
    for table in tables[1:]:
        pool = pool.union(table.pool)
    sources = tuple(dict.fromkeys(source for table in tables for source in table.sources))
    values = np.full((len(pool), len(sources)), np.nan)
    for table in tables:
        rows = table.pool.within(pool)
        for column, source in zip(table.values.T, table.sources, strict=True):
            given = ~np.isnan(column)
            values[rows[given], sources.index(source)] = column[given]
    parts = {s: _join_probabilities(pool, [t for t in tables if s in t.sources], s) for s in sources}
    probabilities = {source: part for source, part in parts.items() if part is not None}
    described = {s: d for t in tables for s, d in t.descriptions.items()}
    observers = {s: d for s, d in described.items() if (d.scale == "probabilities") == (s in probabilities)}
    return LabelTable(pool, sources, values, probabilities, observers)


def _join_probabilities(pool: Pool, tables: Sequence[LabelTable], source: str) -> Floats | None:
    """The probabilities of a source in these tables, shape (pair, level); None if one table has labels instead."""
    if any(source not in table.probabilities for table in tables):
        return None
    parts = np.full((len(pool), max(table.probabilities[source].shape[1] for table in tables)), np.nan)
    for table in tables:
        own, rows = table.probabilities[source], table.pool.within(pool)
        given = ~np.isnan(own).any(axis=1)
        parts[rows[given]] = 0.0
        parts[rows[given], : own.shape[1]] = own[given]
    return parts


def _metadata(packed: bytes) -> Metadata:
    texts, _ = _open(packed)
    if len({*map(len, texts.values())}) != 1:
        raise ValueError("each document has a group")
    groups = {name.removeprefix("group "): values for name, values in texts.items() if name != "docs"}
    return Metadata(texts["docs"], groups)


def _vectors(packed: bytes) -> Vectors:
    texts, arrays = _open(packed)
    if "values" in arrays:
        return Vectors(texts["docs"], arrays["values"])
    shape = (len(texts["docs"]), int(arrays["dimensions"]))
    return Vectors(texts["docs"], csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape))


def _matrix(values: Floats | csr_array) -> dict[str, NDArray[Any]]:
    """The arrays of a dense or a sparse matrix."""
    if not isinstance(values, csr_array):
        return {"values": values}
    dimensions = np.array(values.shape[1])
    return {"data": values.data, "indices": values.indices, "indptr": values.indptr, "dimensions": dimensions}


def _ids(pool: Pool) -> dict[str, Ids]:
    return {"pool queries": pool.queries, "pool docs": pool.docs}


def _positions(pool: Pool) -> dict[str, NDArray[Any]]:
    return {"query": pool.query.astype(np.int32), "doc": pool.doc.astype(np.int32)}


def _pool(texts: Mapping[str, Ids], arrays: Mapping[str, NDArray[Any]]) -> Pool:
    queries, docs = texts["pool queries"], texts["pool docs"]
    query, doc = _places(arrays["query"], 0, len(queries)), _places(arrays["doc"], 0, len(docs))
    pool = Pool(queries, docs, query, doc)
    if np.any(np.diff(pool.key) <= 0) or any(np.any(ids[1:] <= ids[:-1]) for ids in (queries, docs)):
        raise ValueError("pairs and ids are in rising order")
    return pool


def _places(given: NDArray[Any], lowest: int, end: int) -> Ints:
    """Positions from the lowest to before the end."""
    places = given.astype(np.int64)
    if np.any((places < lowest) | (places >= end)) or np.any(places != given):
        raise ValueError("positions of nothing")
    return places


def _reals(given: NDArray[Any]) -> Floats:
    """Real numbers."""
    if given.dtype.kind not in "fiu":
        raise ValueError("expected real numbers")
    return given.astype(np.float64)


def _bundle(texts: Mapping[str, Iterable[str]], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Lists of text and arrays in one zip: JSON and npy files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bundle:
        bundle.writestr("texts.json", json.dumps({name: list(values) for name, values in texts.items()}))
        for name, array in arrays.items():
            with bundle.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return out.getvalue()


def _open(packed: bytes) -> tuple[dict[str, Ids], dict[str, NDArray[Any]]]:
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(packed)) as bundle:
        texts = {name: objects(values) for name, values in json.loads(bundle.read("texts.json")).items()}
        for name in bundle.namelist():
            if name.endswith(".npy"):
                with bundle.open(name) as file:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    if not all(isinstance(text, str) for name, ids in texts.items() if not name.startswith(OBSERVER) for text in ids):
        raise TypeError("ids are text")
    return texts, arrays


def digest_of(content: bytes) -> str:
    """The digest of a part."""
    return hashlib.sha256(content).hexdigest()
