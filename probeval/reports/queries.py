"""The section of a report on single queries: the hardest, where two systems differ, scores, and judged pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.display import Table
from probeval.reports.page import Part, Prose, Section, between, percent
from probeval.reports.results import ReportResults
from probeval.scores.two_systems import probability

__all__ = ["queries"]

MOST_QUERIES = 100  # rows of a table of queries
MOST_SYSTEMS = 8  # columns of scores
MOST_DIFFERENT = 10  # queries where two systems differ most
TINY = 5e-4  # the width of an interval that three decimals do not show
ALL = "probeval evaluate --per-query --format csv has all."


def queries(found: ReportResults) -> Section:
    """Return the section on single queries; long campaigns are cut, with a note."""
    names, judged, pool = _judged_pairs(found)
    mean, low, high = _scores(found)
    hardest = np.argsort(mean.mean(axis=0), kind="stable")
    order = [found.scores.systems.index(system) for system in found.ranking.order]
    parts: list[Part] = [Prose(_lead(found, names, mean, hardest, judged, pool))]
    if len(order) > 1:
        parts.append(_differences(found, names, order[0], order[1], judged, pool))
    parts.append(_each(found, names, hardest, mean, judged, pool))
    parts.append(_table(found, names, hardest, order, (mean, low, high)))
    return Section("queries", "Queries", tuple(parts))


def _scores(found: ReportResults) -> tuple[Floats, Floats, Floats]:
    """Return the mean and the ends of the interval of each system on each query, shapes (system, query)."""
    draws = found.by_query.joint.query_draws
    assert draws is not None
    tail = (1 - found.level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return np.asarray(found.by_query.joint.query_mean), low, high


def _judged_pairs(found: ReportResults) -> tuple[list[str], Ints, Ints]:
    """Return the queries, and the number of judged and of all pairs of each."""
    relevance, names = found.state.prediction.relevance, list(found.scores.queries)
    pairs = relevance.pool
    at = {query: i for i, query in enumerate(names)}
    row = np.array([at.get(query, -1) for query in pairs.queries], dtype=np.int64)[pairs.query]
    known, inside = relevance.certain, row >= 0
    count = len(names)
    return names, np.bincount(row[inside & known], minlength=count), np.bincount(row[inside], minlength=count)


def _lead(found: ReportResults, names: list[str], mean: Floats, hardest: Ints, judged: Ints, pool: Ints) -> str:
    n = len(names)
    level = mean.mean(axis=0)
    first, last = int(hardest[0]), int(hardest[-1])
    none = int((judged == 0).sum())
    text = f"The mean {found.scores.metric} over systems is lowest on query {names[first]} ({level[first]:.3f})"
    text += f" and highest on {names[last]} ({level[last]:.3f}). " if n > 1 else ". "
    if none:
        return f"{text}{none:,} of {n:,} queries have no judged pair."
    low, high = int((judged / np.maximum(pool, 1)).argmin()), int((judged / np.maximum(pool, 1)).argmax())
    if (judged == pool).all():
        return f"{text}Every pair of every query is judged."
    return (
        f"{text}The judged share of a query is from {percent(int(judged[low]), int(pool[low]))} ({names[low]}) to "
        f"{percent(int(judged[high]), int(pool[high]))} ({names[high]})."
    )


def _differences(found: ReportResults, names: list[str], first: int, second: int, judged: Ints, pool: Ints) -> Table:
    """Return the queries where the first two systems of the ranking differ most."""
    draws = found.by_query.joint.query_draws
    assert draws is not None
    difference = draws[:, first] - draws[:, second]
    tail = (1 - found.level) / 2
    low, high = np.quantile(difference, [tail, 1 - tail], axis=0)
    mean, rope = difference.mean(axis=0), found.ranking.rope
    better = (difference > max(rope, 0.0)).mean(axis=0)
    most = np.argsort(-np.abs(mean), kind="stable")[:MOST_DIFFERENT]
    a, b = (found.scores.systems[i] for i in (first, second))
    rows = [
        {
            "query": names[q],
            "difference": f"{mean[q]:+.4f}",
            f"{found.level:.0%} interval": between(low[q], high[q], "+.4f"),
            f"P(better by more than {rope:g})" if rope else "P(better)": probability(float(better[q])),
            "judged": f"{judged[q]:,} of {pool[q]:,}",
        }
        for q in most
    ]
    shown = f"the {len(rows)} queries" if len(names) > len(rows) else "queries"
    return Table(pd.DataFrame(rows), f"{a} minus {b}: {shown} where they differ most, by the expected difference.")


def _each(found: ReportResults, names: list[str], hardest: Ints, mean: Floats, judged: Ints, pool: Ints) -> Table:
    """Return the queries, the hardest first: the level of the systems, the best of them, and the judged share."""
    rows = [
        {
            "query": names[q],
            "mean": float(mean[:, q].mean()),
            "sd over systems": float(mean[:, q].std()),
            "best system": found.scores.systems[int(mean[:, q].argmax())],
            "its score": float(mean[:, q].max()),
            "judged": f"{judged[q]:,} of {pool[q]:,}",
            "share": percent(int(judged[q]), int(pool[q])),
        }
        for q in hardest[:MOST_QUERIES]
    ]
    table = pd.DataFrame(rows)
    if mean.shape[0] == 1:
        table = table.drop(columns=["sd over systems", "best system", "its score"])
    caption = f"Queries by the mean {found.scores.metric} over systems, the hardest first, and their judged pairs."
    return Table(table, caption + _cut(len(names), len(rows), "queries"))


def _table(
    found: ReportResults, names: list[str], hardest: Ints, order: list[int], scores: tuple[Floats, Floats, Floats]
) -> Table:
    """Return the score of each system on each query, with its interval; the hardest query first."""
    mean, low, high = scores
    shown = order[:MOST_SYSTEMS]
    rows = [
        [names[q]]
        + [
            f"{mean[s, q]:.3f}" + ("" if high[s, q] - low[s, q] < TINY else f" {between(low[s, q], high[s, q], '.2f')}")
            for s in shown
        ]
        for q in hardest[:MOST_QUERIES]
    ]
    caption = (
        f"{found.scores.metric} of each system on each query, the hardest query first, the best system on the left"
    )
    caption += f"; {found.level:.0%} intervals, none where every pair that counts is judged."
    return Table(
        pd.DataFrame(rows, columns=["query", *(found.scores.systems[s] for s in shown)]),
        caption + _cut(len(order), len(shown), "systems") + _cut(len(names), len(rows), "queries"),
    )


def _cut(all_: int, shown: int, what: str) -> str:
    """Return a note on the omitted rows or columns; empty if there are none."""
    return "" if shown == all_ else f" Here are {shown:,} of {all_:,} {what}; {ALL}"
