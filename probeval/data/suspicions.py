"""What looks wrong about input that can be read: each in one line, with the ids and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from probeval.arrays import Floats, Ids, Ints
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import ScaleError

__all__ = ["suspicious_ids", "suspicious_judgments", "suspicious_labels"]

FAR = 4.0  # the ratio of two neighbouring values beyond which they are not on one scale
SHARE = 0.02  # of a column, from which its values on a second scale are no accident
STRAY = 2  # how often a grade occurs that may be a slip
ENOUGH, MANY = 30, 200  # judgments, from which such a grade is an exception: far from the others, and next to them
SPELLINGS: dict[str, Callable[[str], str]] = {  # what ids that should be equal differ by
    "upper and lower case": str.lower,
    "leading zeros": lambda name: name.lstrip("0"),
    "the end '.0'": lambda name: name.removesuffix(".0"),
    "quotes": lambda name: name.strip("'\""),
    "what stands before the last '/' or ':'": lambda name: re.split(r"[/:]", name)[-1],
    "the end after the last '.'": lambda name: name.rpartition(".")[0] or name,
}


def suspicious_labels(labels: LabelTable) -> Iterator[str]:
    """What looks wrong about labels: failed replies as numbers, and two scales in one column.

    >>> table = LabelTable(Pool.of(["q"] * 4, ["a", "b", "c", "d"]), ("llm",), np.array([[0.0], [3.0], [-1.0], [2.0]]))
    >>> print(*suspicious_labels(table))
    Labels by llm: 1 of 4 is -1, the others are from 0 to 3. If that is a reply that could not be read, empty the cell.
    """
    for source, values in zip(labels.sources, labels.values.T, strict=True):
        if source in labels.probabilities:
            continue
        said = values[~np.isnan(values)]
        below = said[said < 0]
        if len(below) and len(below) < len(said) / 2 and len(np.unique(below)) == 1 and np.all(said == np.round(said)):
            rest = said[said >= 0]
            several = len(below) > 1
            yield (
                f"Labels by {source}: {len(below):,} of {len(said):,} {'are' if several else 'is'} {below[0]:g}, the "
                f"others are from {rest.min():g} to {rest.max():g}. If that is a reply that could not be read, empty "
                f"the cell{'s' * several}."
            )
        two = _two_scales(said[said >= 0])
        if two is not None:
            yield f"Labels by {source} are on two scales: {two}. Bring them to one, or make two columns of them."


def suspicious_judgments(judgments: Judgments) -> Iterator[str]:
    """What looks wrong about judgments: a stray grade that changes the scale, two scales, contradictory rows.

    >>> docs = [f"d{i}" for i in range(40)]
    >>> print(*suspicious_judgments(Judgments.rows(["q"] * 40, docs, [0, 1, 2, 3] * 9 + [0, 1, 2, 30])))
    The grade 30 occurs once (query 'q', document 'd39') and makes the scale fine; without it, it is graded:3.
    """
    grades = judgments.grade[judgments.grade >= 0]
    values, counts = np.unique(grades, return_counts=True)
    two = _two_scales(grades)
    if two is not None:
        yield f"Judgments are on two scales: {two}. Bring them to one, or name it with --scale."
    elif len(grades) >= ENOUGH and len(values) > 2:
        for value in values[counts <= STRAY]:
            whole, without = (_scale_name(some) for some in (grades, grades[grades != value]))
            is_next = np.abs(np.delete(values, np.searchsorted(values, value)) - value).min() == 1
            if whole != without and len(grades) >= (MANY if is_next else ENOUGH):
                rows = np.flatnonzero(judgments.grade == value)
                where = ", ".join(_pair(judgments.pool, int(judgments.pair[row])) for row in rows)
                often = "once" if len(rows) == 1 else "twice"
                yield (
                    f"The grade {value:g} occurs {often} ({where}) and makes the scale {whole}; without it, it is "
                    f"{without}."
                )
    yield from _contradictions(judgments)


def _contradictions(judgments: Judgments) -> Iterator[str]:
    """Rows without a time in which one assessor gives one pair two grades."""
    who = judgments.pair * max(len(judgments.assessors), 1) + judgments.assessor
    order = np.argsort(who, kind="stable")
    first, second = order[:-1], order[1:]
    again = (who[first] == who[second]) & (judgments.grade[first] != judgments.grade[second])
    again &= np.isnan(judgments.time[first]) & np.isnan(judgments.time[second])
    rows = np.flatnonzero(again)
    if len(rows):
        a, b = int(first[rows[0]]), int(second[rows[0]])
        n = len(np.unique(who[first[rows]]))
        yield (
            f"{n:,} pair{'s have' if n > 1 else ' has'} two grades by one assessor, of which the later counts: "
            f"{_pair(judgments.pool, int(judgments.pair[a]))} has {judgments.grade[a]:g} in row {a + 1} and "
            f"{judgments.grade[b]:g} in row {b + 1}."
        )


def _pair(pool: Pool, pair: int) -> str:
    query, doc = pool.label(pair)
    return f"query {query!r}, document {doc!r}"


def suspicious_ids(what: str, pool: Pool, runs: Pool) -> Iterator[str]:
    """Queries and documents of ``what`` that the runs lack, and would not if they were spelled alike.

    >>> mine, runs = Pool.of(["q1", "Q2"], ["d1", "d2"]), Pool.of(["q1", "q2"], ["d1", "d2"])
    >>> print(*suspicious_ids("labels", mine, runs))
    1 of 2 queries of the labels is not in the runs but for upper and lower case: 'Q2' there, 'q2' here.
    """
    yield from _spelled("queries", what, pool.queries, runs.queries)
    shared = [query for query in pool.queries if query in set(runs.queries)]
    mine, theirs = (some.docs[np.unique(some.doc[_of(some, shared)])] for some in (pool, runs))
    yield from _spelled("documents", what, mine, theirs)


def _of(pool: Pool, queries: Iterable[str]) -> Ints:
    """The pairs of some queries."""
    return np.flatnonzero(np.isin(pool.query, np.flatnonzero(np.isin(pool.queries, list(queries)))))


def _spelled(kind: str, what: str, mine: Ids, theirs: Ids) -> Iterator[str]:
    """The ids that would match those of the runs under another spelling: the first that explains most of them."""
    alone, free = sorted(set(mine) - set(theirs)), sorted(set(theirs) - set(mine))
    if not alone or not free:
        return
    found: list[tuple[int, str, str, str]] = []
    for name, spell in SPELLINGS.items():
        of = {spell(one): one for one in reversed(free)}
        alike = [(one, of[spell(one)]) for one in alone if spell(one) in of]
        if alike:
            found.append((len(alike), name, *alike[0]))
    if found:
        n, name, one, other = max(found, key=lambda each: each[0])
        yield (
            f"{n:,} of {len(mine):,} {kind} of the {what} {'are' if n > 1 else 'is'} not in the runs but for {name}: "
            f"{one!r} there, {other!r} here."
        )


def _two_scales(values: Floats) -> str | None:
    """The two scales of a column of numbers from 0, if it has two: whole numbers far apart, or fractions and grades."""
    seen, counts = np.unique(values, return_counts=True)
    if len(seen) < 3:
        return None
    whole = seen == np.round(seen)
    if whole.all():
        gap = np.flatnonzero((seen[1:] > FAR * np.maximum(seen[:-1], 1.0)) & (seen[:-1] >= 1))
        for at in gap.tolist():
            low, high = int(counts[: at + 1].sum()), int(counts[at + 1 :].sum())
            if min(low, high) >= max(SHARE * len(values), STRAY + 1):
                return f"{low:,} are from {seen[0]:g} to {seen[at]:g}, {high:,} from {seen[at + 1]:g} to {seen[-1]:g}"
        return None
    fractions, grades = (seen < 1) & ~whole, (seen > 1) & whole
    low, high = int(counts[fractions].sum()), int(counts[grades].sum())
    if np.any((seen > 1) & ~whole) or min(low, high) < max(SHARE * len(values), STRAY + 1):
        return None
    return f"{low:,} are fractions below 1, {high:,} whole numbers from {seen[grades][0]:g} to {seen[grades][-1]:g}"


def _scale_name(grades: Floats) -> str:
    """The scale that is inferred from grades."""
    try:
        return str(Scale.infer(grades))
    except ScaleError:
        return "unknown"
