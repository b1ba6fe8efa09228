"""The questions of a study with users: pairs of lists whose differences in score cover [0, 1], and traps.

See docs/theory/satisfaction.md#choosing-lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ids, Ints
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record, Table
from probeval.errors import SatisfactionError
from probeval.metrics import AnyMetric, measure
from probeval.metrics.convert import metric_of
from probeval.metrics.mapping import EDGE, TENTHS, tenths
from probeval.results import Result, key, rows

__all__ = ["ListQuestion", "ListQuestions", "choose_lists"]

PAIRS_PER_TRAP = 5
FEWEST_TRAPS, MOST_TRAPS = 4, 20  # twenty in the published studies


@dataclass(frozen=True, repr=False)
class ListQuestion(Record):
    """Two lists of one query, for the question which is better.

    Parameters
    ----------
    query
        The query.
    a, b
        The documents of the two lists, best first.
    score_a, score_b
        Their scores, from 0 to 1.
    trap
        The right answer of a trap question: ``a`` if the first list is clearly better, ``same`` if they are
        identical; empty for other questions.
    """

    query: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    score_a: float
    score_b: float
    trap: str = ""


@dataclass(frozen=True)
class ChosenTenth:
    """The questions with a difference in score in one tenth."""

    lower: float
    upper: float
    available: Annotated[int, "The number of pairs of lists that the runs have."]
    chosen: Annotated[int, "The number of those that are asked about."]


@dataclass(frozen=True, eq=False, repr=False)
class ListQuestions(Result):
    """The questions of a study with users, counted.

    Parameters
    ----------
    questions
        Pairs of lists and traps, in a random order.
    available
        The number of pairs of lists in each tenth of the difference in score, shape (10,).
    wanted
        The number of pairs asked for.
    """

    questions: tuple[ListQuestion, ...]
    metric: Annotated[str, "The measure of the lists."]
    scale: Annotated[str, "The scale of the grades."]
    depth: Annotated[int, "The length of the lists."]
    available: Ints = field(repr=False)
    wanted: int

    @property
    def pairs(self) -> tuple[ListQuestion, ...]:
        """The questions that are no traps."""
        return tuple(question for question in self.questions if not question.trap)

    @property
    def chosen(self) -> Ints:
        """The number of pairs in each tenth of the difference in score, shape (10,)."""
        return np.bincount(tenths([abs(q.score_a - q.score_b) for q in self.pairs]), minlength=TENTHS)

    @key.named("pairs")
    def n_pairs(self) -> int:
        """The number of questions that are no traps."""
        return len(self.pairs)

    @key
    def traps(self) -> int:
        """The number of trap questions."""
        return len(self.questions) - self.n_pairs

    @key
    def queries(self) -> int:
        """The number of queries that they are about."""
        return len({question.query for question in self.questions})

    @key
    def tenths(self) -> tuple[ChosenTenth, ...]:
        """The questions by tenths of the difference in score."""
        edges = np.arange(TENTHS + 1) / TENTHS
        return rows(ChosenTenth, lower=edges[:-1], upper=edges[1:], available=self.available, chosen=self.chosen)

    def to_frame(self) -> pd.DataFrame:
        """One row per tenth of the difference: from, to, available, chosen."""
        return super().to_frame().rename(columns={"lower": "from", "upper": "to"})

    def _headline(self) -> str:
        return f"{self.n_pairs:,} pairs of lists and {self.traps:,} traps, {self.metric} on {self.scale}"

    def tables(self) -> tuple[Table, ...]:
        """One row per tenth of the difference."""
        return (Table(self.to_frame(), f"{self._headline()}, by the difference in score", {"from": 1, "to": 1}),)

    def sentences(self) -> tuple[str, ...]:
        """The tenths that are short of pairs."""
        found, even = [], self.wanted // TENTHS
        if self.n_pairs < self.wanted:
            found.append(f"The runs have only {self.n_pairs:,} of the {self.wanted:,} pairs of lists asked for.")
        short = [f"{t / TENTHS:g} to {(t + 1) / TENTHS:g} ({n})" for t, n in enumerate(self.chosen) if n < even]
        if short:
            found.append(f"Differences with fewer than {even} pairs of lists, all taken: {', '.join(short)}.")
        return tuple(found)


def choose_lists(
    runs: Runs,
    judgments: Judgments,
    metric: AnyMetric,
    *,
    pairs: int,
    rng: np.random.Generator,
    traps: int | None = None,
    depth: int | None = None,
    scale: Scale | None = None,
) -> ListQuestions:
    """Choose pairs of lists to show to users: their differences in score are spread over [0, 1] as evenly as possible.

    Each tenth of the difference gets as many pairs as the others, if the runs have them, and queries take turns. Only
    lists whose documents are all judged are shown. Half of the traps show one list twice; the others show a good list
    beside documents of other queries.

    Parameters
    ----------
    runs, judgments, metric
        The runs, the judgments, and the measure or its name; its scores must be from 0 to 1.
    pairs
        The number of pairs of lists.
    rng
        The generator.
    traps
        The number of trap questions; by default one for five pairs, from 4 to 20.
    depth
        The length of the lists; by default the cutoff of the measure.
    scale
        The scale of the grades; inferred by default.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=0, systems=6, queries=20)
    >>> chosen = choose_lists(campaign.runs, campaign.judgments, "P@5", pairs=30, rng=np.random.default_rng(0))
    >>> chosen
    <ListQuestions: 30 pairs of lists and 6 traps, P@5 on graded:2>
    >>> chosen.chosen.tolist()
    [7, 0, 7, 0, 7, 0, 7, 0, 2, 0]
    """
    metric = metric_of(metric)
    depth = depth or metric.cutoff
    if depth is None:
        raise SatisfactionError(f"{metric} has no cutoff: give the length of the lists (depth), such as 10.")
    if pairs < 1:
        raise SatisfactionError(f"The number of pairs of lists must be 1 or more, got {pairs}.")
    traps = min(max(-(-pairs // PAIRS_PER_TRAP), FEWEST_TRAPS), MOST_TRAPS) if traps is None else traps
    if traps < 0:
        raise SatisfactionError(f"The number of traps must be 0 or more, got {traps}.")
    measured = measure(runs, judgments, metric, scale=scale, depth=depth)
    lists = _judged_lists(runs.top(depth), judgments, measured.scale, measured.queries, measured.values)
    candidates = [(query, i, j) for query, own in lists.items() for i, j in combinations(range(len(own)), 2)]
    if not candidates:
        raise SatisfactionError(
            f"No query has two different lists of {depth} documents that are all judged. "
            "Judge more documents, or show shorter lists."
        )
    gaps = tenths([abs(lists[q][i][1] - lists[q][j][1]) for q, i, j in candidates])
    available = np.bincount(gaps, minlength=TENTHS)
    chosen: list[tuple[str, int, int]] = []
    for tenth, n in _quotas(available, pairs):
        inside = [candidates[at] for at in np.flatnonzero(gaps == tenth)]
        chosen += _in_turn([inside[at] for at in rng.permutation(len(inside))], n, [q for q, _, _ in chosen])
    asked = [_question(query, lists[query][i], lists[query][j]) for query, i, j in chosen]
    trapped = _identical(lists, traps - traps // 2, rng) + _clear(lists, runs.top(depth), traps // 2, rng)
    mixed = [*asked, *trapped]
    order = rng.permutation(len(mixed))  # the number of a question does not tell whether it is a trap
    return ListQuestions(tuple(mixed[at] for at in order), str(metric), str(measured.scale), depth, available, pairs)


Listed = tuple[tuple[str, ...], float]  # the documents of a list, and its score


def _judged_lists(
    runs: Runs, judgments: Judgments, scale: Scale, queries: Ids, values: Floats
) -> dict[str, list[Listed]]:
    """The different lists of each query whose documents are all judged, with their scores, in the order of systems."""
    is_judged = judgments.codes_on(runs.pool, scale, rule="median") >= 0
    position = {query: at for at, query in enumerate(runs.queries)}
    found = {}
    for column, query in enumerate(queries):
        own: dict[tuple[str, ...], float] = {}
        for row, ranked in enumerate(runs.pairs[:, position[query]]):
            shown = ranked[ranked >= 0]
            if len(shown) and is_judged[shown].all():
                own.setdefault(tuple(runs.pool.label(int(pair))[1] for pair in shown), float(values[row, column]))
        if own:
            found[str(query)] = list(own.items())
    return found


def _quotas(available: Ints, wanted: int) -> list[tuple[int, int]]:
    """The number of pairs to choose in each tenth, as even as possible; the scarcest tenth comes first."""
    left, quotas = wanted, []
    order = np.argsort(available, kind="stable")
    for rank, tenth in enumerate(order):
        n = min(int(available[tenth]), left // (TENTHS - rank))
        left -= n
        quotas.append((int(tenth), n))
    return quotas


def _in_turn(shuffled: list[tuple[str, int, int]], n: int, before: list[str]) -> list[tuple[str, int, int]]:
    """Choose ``n`` of these pairs, each from a query that was chosen the fewest times, also before."""
    used = {query: before.count(query) for query, _, _ in shuffled}
    taken = []
    left = list(shuffled)
    for _ in range(n):
        at = min(range(len(left)), key=lambda i: used[left[i][0]])
        used[left[at][0]] += 1
        taken.append(left.pop(at))
    return taken


def _question(query: str, a: Listed, b: Listed, trap: str = "") -> ListQuestion:
    return ListQuestion(query, a[0], b[0], a[1], b[1], trap)


def _identical(lists: dict[str, list[Listed]], n: int, rng: np.random.Generator) -> list[ListQuestion]:
    """Traps with the same list on both sides, of different queries as far as there are any."""
    turns = [list(lists)[at] for at in rng.permutation(len(lists))]
    traps = []
    for i in range(n):
        own = lists[turns[i % len(turns)]]
        one = own[int(rng.integers(len(own)))]
        traps.append(_question(turns[i % len(turns)], one, one, "same"))
    return traps


def _clear(lists: dict[str, list[Listed]], runs: Runs, n: int, rng: np.random.Generator) -> list[ListQuestion]:
    """Traps with a good list beside documents of other queries, none of which a run retrieves for this query."""
    best = sorted(((max(own, key=lambda each: each[1]), query) for query, own in lists.items()), key=_by_score)
    others = sorted({doc for own in lists.values() for docs, _ in own for doc in docs})
    traps = []
    for i in range(n):
        one, query = best[i % len(best)]
        retrieved = runs.pool.pairs_of(int(runs.pool.query_positions([query])[0]))
        known = {runs.pool.label(pair)[1] for pair in range(retrieved.start, retrieved.stop)}
        foreign = [doc for doc in others if doc not in known]
        if one[1] <= EDGE or len(foreign) < len(one[0]):
            raise SatisfactionError(
                "Traps with a clearly bad list need a list with a score above 0, and documents of other queries. "
                "Use more runs or queries, or no traps (traps=0)."
            )
        bad = tuple(foreign[at] for at in rng.choice(len(foreign), len(one[0]), replace=False))
        traps.append(_question(query, one, (bad, 0.0), "a"))
    return traps


def _by_score(each: tuple[Listed, str]) -> tuple[float, str]:
    return -each[0][1], each[1]
