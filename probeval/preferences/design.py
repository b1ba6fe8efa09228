r"""Which pairs of documents to ask about: random regular groups with a gold pair, in several partitions.

See docs/theory/preferences.md#design.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probeval.display import Record
from probeval.errors import DataError

__all__ = ["GroupDesign", "design_groups", "pair_list", "pair_list_faults"]

TRIES = 200
DocPair = tuple[str, str]


def pair_list(
    docs: Sequence[str], degree: int, rng: np.random.Generator, *, gold: DocPair | None = None
) -> list[DocPair]:
    """A random list of pairs in which every document meets ``degree`` others, and one stays from pair to pair.

    An assessor reads one new document at a time: the document that stays keeps its side.

    Parameters
    ----------
    docs
        The documents of one group.
    degree
        How many others each document meets; the number of documents times the degree is even.
    rng
        The source of randomness.
    gold
        Two documents whose order is known, which the list compares.

    Examples
    --------
    >>> pairs = pair_list("ABCDEFGH", 3, np.random.default_rng(1), gold=("A", "B"))
    >>> len(pairs), pair_list_faults(pairs, "ABCDEFGH", 3, gold=("A", "B"))
    (12, [])
    """
    n = len(docs)
    if len(set(docs)) < n:
        raise DataError("the documents of a group must be distinct.")
    if not 0 < degree < n or n * degree % 2:
        raise DataError(
            f"{n} documents cannot each meet {degree} others: the degree must be from 1 to {n - 1}, "
            "and documents times degree even."
        )
    if degree == 1 and n > 2:
        raise DataError("with degree 1 no document can stay from pair to pair: the degree must be 2 or more.")
    if gold is not None and not set(gold) <= set(docs):
        raise DataError(f"the gold pair {gold[0]!r}, {gold[1]!r} must be two documents of the group.")
    for _ in range(TRIES):
        found = _walk([docs[i] for i in rng.permutation(n)], degree, rng)
        if found is not None and (gold is None or any(set(pair) == set(gold) for pair in found)):
            return found
    raise DataError(f"no list of pairs was found for {n} documents of degree {degree} in {TRIES} tries.")


def _walk(docs: Sequence[str], degree: int, rng: np.random.Generator) -> list[DocPair] | None:
    """A list of pairs by depth-first search; None if this order of the documents has none within its steps."""
    left = dict.fromkeys(docs, degree)
    pairs: list[DocPair] = []
    seen: set[frozenset[str]] = set()
    steps = 50 * len(docs) * degree

    def extend(stays: str, side: int) -> bool:
        nonlocal steps
        steps -= 1
        if not any(left.values()):
            return True
        if steps < 0 or not left[stays]:
            return False
        others = [d for d in docs if d != stays and left[d] and frozenset((stays, d)) not in seen]
        for at in rng.permutation(len(others)):
            other = others[at]
            pair = (stays, other) if side == 0 else (other, stays)
            key = frozenset(pair)
            pairs.append(pair)
            seen.add(key)
            left[stays] -= 1
            left[other] -= 1
            sides = [0, 1] if rng.random() < 0.5 else [1, 0]
            if any(extend(pair[s], s) for s in sides):
                return True
            left[stays] += 1
            left[other] += 1
            seen.discard(key)
            pairs.pop()
        return False

    return pairs if extend(docs[0], int(rng.integers(2))) else None


def pair_list_faults(
    pairs: Sequence[DocPair], docs: Sequence[str], degree: int, *, gold: DocPair | None = None
) -> list[str]:
    """What is wrong with a list of pairs, in sentences; empty if it is a list as :func:`pair_list` makes them.

    >>> pair_list_faults([("A", "C"), ("A", "B"), ("D", "B"), ("D", "C")], "ABCD", 2, gold=("A", "B"))
    []
    >>> pair_list_faults([("A", "B"), ("C", "D")], "ABCD", 1)
    ['No document of pair 1 stays on its side in pair 2: A, B and C, D.']
    """
    faults = [f"Pair {at} has {doc!r} twice." for at, (doc, other) in enumerate(pairs, 1) if doc == other]
    met = Counter(doc for pair in pairs for doc in pair)
    faults += [f"{doc!r} is not a document of the group." for doc in sorted(met.keys() - set(docs))]
    faults += [f"{doc!r} meets {met[doc]} documents: {degree} expected." for doc in docs if met[doc] != degree]
    often = Counter(frozenset(pair) for pair in pairs)
    faults += [f"The pair {', '.join(sorted(pair))} is there {n} times." for pair, n in often.items() if n > 1]
    for at, ((a, b), (c, d)) in enumerate(itertools.pairwise(pairs), 1):
        if a != c and b != d:
            faults.append(f"No document of pair {at} stays on its side in pair {at + 1}: {a}, {b} and {c}, {d}.")
    if gold is not None and frozenset(gold) not in often:
        faults.append(f"The gold pair {gold[0]}, {gold[1]} is missing.")
    return faults


@dataclass(frozen=True, repr=False)
class GroupDesign(Record):
    """Groups of documents with their lists of pairs, and how much judging they ask for.

    Parameters
    ----------
    groups
        The list of pairs of each group, partition after partition.
    documents
        The number of documents.
    size, degree
        Documents per group, and how many others each meets in it.
    partitions, assessors
        How often the documents are divided into groups, and how many assessors judge each group.

    Examples
    --------
    The published design for topic 405: 216 documents in groups of eight.

    >>> docs = [f"d{i:03}" for i in range(216)]
    >>> design = design_groups(docs, docs[:27], docs[27:54], partitions=11, rng=np.random.default_rng(0))
    >>> len(design.groups), design.partners, design.judgments_per_document
    (297, 33, 99)
    """

    groups: tuple[tuple[DocPair, ...], ...]
    documents: int
    size: int
    degree: int
    partitions: int
    assessors: int

    @property
    def partners(self) -> int:
        """How many comparisons each document has, repeated pairs of several partitions included."""
        return self.degree * self.partitions

    @property
    def judgments_per_document(self) -> int:
        """The number of answers about each document."""
        return self.partners * self.assessors

    @property
    def answers(self) -> int:
        """The number of answers in all."""
        return sum(map(len, self.groups)) * self.assessors


def design_groups(
    docs: Sequence[str],
    high: Sequence[str],
    low: Sequence[str],
    *,
    partitions: int,
    rng: np.random.Generator,
    size: int = 8,
    degree: int = 3,
    assessors: int = 3,
) -> GroupDesign:
    """Divide the documents into groups at random, several times, each with a gold pair and a list of pairs.

    Parameters
    ----------
    docs
        The documents of one query; their number is a multiple of ``size``.
    high, low
        Documents known to be relevant and not relevant, one of each for every group of a partition.
    partitions
        X: how often the documents are divided.
    rng
        The source of randomness.
    size, degree, assessors
        Documents per group; K, the others that each meets; Y, the assessors per group. As published by default.
    """
    count, rest = divmod(len(docs), size)
    if rest or not count:
        raise DataError(f"{len(docs)} documents cannot be divided into groups of {size}.")
    if set(high) & set(low):
        raise DataError(f"{min(set(high) & set(low))!r} cannot be both relevant and not relevant.")
    if len(high) < count or len(low) < count:
        raise DataError(f"{count} groups need {count} gold documents of each kind, got {len(high)} and {len(low)}.")
    strange = sorted({*high, *low} - set(docs))
    if strange:
        raise DataError(f"the gold document {strange[0]!r} is not one of the documents.")
    groups: list[tuple[DocPair, ...]] = []
    for _ in range(partitions):
        tops = [high[i] for i in rng.permutation(len(high))[:count]]
        bottoms = [low[i] for i in rng.permutation(len(low))[:count]]
        others = [doc for doc in docs if doc not in {*tops, *bottoms}]
        order = rng.permutation(len(others)).reshape(count, size - 2)
        for top, bottom, places in zip(tops, bottoms, order, strict=True):
            group = [top, bottom, *(others[i] for i in places)]
            groups.append(tuple(pair_list(group, degree, rng, gold=(top, bottom))))
    return GroupDesign(tuple(groups), len(docs), size, degree, partitions, assessors)
