"""Synthetic campaigns of any number of queries, written partition by partition.

4 systems, top 10, exactly 21 pairs per query as in growth.py; a machine labels all pairs, and people judged some pairs
of queries drawn at random. A seed gives the same campaign in any number of partitions, and memory holds one partition.

    python -m tests.bench.long_campaign FOLDER QUERIES PARTITIONS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from probeval.data import Collection, Judgments, LabelTable, Pool, Runs, write_partitions
from tests.bench.growth import CANDIDATES, CUTS, PAIRS, SYSTEMS, draw, union

JUDGMENTS = 2000
PER_QUERY = 5  # judgments of a judged query
BLOCK = 2000  # queries that share a random stream, whatever the partitions
SEED = 25


@dataclass(frozen=True)
class Drawn:
    """Consecutive queries: the first axis of every array, or the second after systems."""

    lists: np.ndarray  # the candidate at each system, query and rank
    scores: np.ndarray
    pooled: np.ndarray  # the retrieved candidates, shape (query, pair)
    grades: np.ndarray  # by people, the same shape
    labels: np.ndarray  # by the machine, the same shape
    judged: np.ndarray  # positions among the pairs of the query that people judge first, shape (query, judgment)

    def part(self, start: int, stop: int) -> Drawn:
        """Some of the queries."""
        taken = {f.name: getattr(self, f.name) for f in fields(self)}
        return Drawn(**{n: a[:, start:stop] if n in ("lists", "scores") else a[start:stop] for n, a in taken.items()})


def partitions(queries: int, n: int, *, judgments: int = JUDGMENTS, seed: int = SEED) -> Iterator[Collection]:
    """A campaign in ``n`` parts, one after another."""
    chosen = np.random.default_rng([seed, queries]).permutation(queries)[: judgments // PER_QUERY]
    people = np.zeros(queries, dtype=bool)
    people[chosen] = True
    cuts = [queries * i // n for i in range(n + 1)]
    for start, stop in pairwise(cuts):
        blocks = []
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            first = block * BLOCK
            blocks.append(_block(block, seed).part(max(start - first, 0), min(stop - first, BLOCK)))
        yield _collection(start, blocks, people[start:stop])


@lru_cache(maxsize=1)  # the next partition may begin within it
def _block(block: int, seed: int) -> Drawn:
    """The queries of one random stream."""
    rng = np.random.default_rng([seed, 1, block])
    relevance, lists, scores = draw(rng, BLOCK)
    pooled = np.nonzero(union(lists))[1].reshape(BLOCK, PAIRS)
    latent = np.take_along_axis(relevance, pooled, axis=1)
    grades, labels = (np.searchsorted(CUTS, latent + rng.normal(size=latent.shape)) for _ in range(2))
    judged = np.argsort(rng.random((BLOCK, PAIRS)), axis=1)[:, :PER_QUERY]
    return Drawn(lists, scores, pooled, grades, labels, judged)


def _collection(start: int, blocks: list[Drawn], people: np.ndarray) -> Collection:
    drawn = Drawn(
        *(
            np.concatenate([getattr(block, f.name) for block in blocks], axis=int(f.name in ("lists", "scores")))
            for f in fields(Drawn)
        )
    )
    n = len(drawn.pooled)
    names = np.empty(n, dtype=object)
    names[:] = [f"q{start + i:07d}" for i in range(n)]
    docs = np.empty(n * PAIRS, dtype=object)
    docs[:] = [f"{q}-{d:02d}" for q, found in zip(names, drawn.pooled.tolist(), strict=True) for d in found]
    pool = Pool(names, docs, np.repeat(np.arange(n), PAIRS), np.arange(n * PAIRS))
    place = np.zeros((n, CANDIDATES), dtype=np.int64)
    np.put_along_axis(place, drawn.pooled, np.arange(n * PAIRS).reshape(n, PAIRS), axis=1)
    pairs = np.stack([np.take_along_axis(place, found, axis=1) for found in drawn.lists])
    runs = Runs(tuple(f"s{system}" for system in range(SYSTEMS)), pool, pairs, drawn.scores)
    at = (np.flatnonzero(people)[:, None] * PAIRS + drawn.judged[people]).ravel()
    judgments = Judgments.coded(pool, at, drawn.grades.ravel()[at].astype(float))
    labels = LabelTable(pool, ("machine",), drawn.labels.reshape(-1, 1).astype(float))
    return Collection("long", runs, judgments, labels=labels)


if __name__ == "__main__":
    folder, size, parts = sys.argv[1:]
    write_partitions(partitions(int(size), int(parts)), Path(folder))
