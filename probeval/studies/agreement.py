r"""Agreement of two sources: of grades on the order of documents, of scores on the order of systems.

See docs/theory/significance.md#two-sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.data.judgments import Judgments
from probeval.display import Record, Table
from probeval.errors import ReliabilityError
from probeval.reliability.agreement import weighted_kappa
from probeval.reliability.correlation import agreements, ap_correlation, kendall, rank_biased_overlap, spearman
from probeval.reliability.paired import pair_index
from probeval.reliability.twoway import TwoWay, signed, two_way
from probeval.results import HIDDEN, Result, frame, key, rows

__all__ = [
    "AgreementFigure",
    "DocumentAgreement",
    "GradeAgreement",
    "PairPValues",
    "QueryAgreement",
    "RankingAgreement",
    "SourceAgreement",
    "SystemScores",
    "document_agreement",
    "ranking_agreement",
]

SAMPLES = 500
FEW_GRADES = 12  # with more, kappa is of little use, and grades have no rows of their own
SIGNED = ("tau", "tau_b", "rho", "tau_ap", "tau_top", "kappa")  # from -1 on, all others from 0


@dataclass(frozen=True)
class AgreementFigure:
    """A figure of agreement."""

    figure: str
    value: float
    lower: Annotated[float, "The end of its interval over queries; null where there are no queries."]
    upper: float


@dataclass(frozen=True)
class QueryAgreement:
    """The agreement on the documents of a query (Yang 2019, Tables 5.5 and 5.7)."""

    query: str
    documents: Annotated[int, "The documents that both graded."]
    pairs: Annotated[int, "The pairs of these documents."]
    agree: Annotated[float, "The share of the pairs that both put in the same order."]
    disagree: Annotated[float, "The share that they put in opposite orders."]
    tied: Annotated[float, "The share that is tied in one of them at least."]
    separated: Annotated[int, "The pairs that the first puts in an order."]
    confirmed: Annotated[float, "The share of these that the second puts in the same order."]
    contradicted: Annotated[float, "The share that it puts in the opposite order."]
    left_tied: Annotated[float, "The share that it leaves tied."]
    tau: Annotated[float, "Kendall's tau, where a tie counts as half right."]
    tau_b: Annotated[float, "Kendall's tau without ties; null if all are tied."]
    rho: Annotated[float, "Spearman's rho; null if all are tied."]


@dataclass(frozen=True)
class GradeAgreement:
    """Pairs of documents with one grade by the first, which it cannot separate (Yang 2019, Table 5.6)."""

    grade: float
    pairs: Annotated[int, "Such pairs, over all queries."]
    separable: Annotated[float, "The share that the second separates, as a mean over queries."]
    tied: Annotated[float, "The share that is tied in both."]


@dataclass(frozen=True)
class PairPValues:
    """A pair of systems by both sources: differences, first minus second, and p-values of the paired t-test."""

    first: str
    second: str
    difference_a: float
    difference_b: float
    p_a: float
    p_b: float


@dataclass(frozen=True, eq=False, repr=False)
class DocumentAgreement(Record):
    """How far two sets of grades agree on the order of documents."""

    queries: Annotated[int, "The queries with two documents or more that both graded."]
    documents: Annotated[int, "The pairs of query and document that both graded."]
    figures: Annotated[tuple[AgreementFigure, ...], "Means over queries; kappa is over all documents."]
    by_query: Annotated[tuple[QueryAgreement, ...], "One entry per query."]
    by_grade: Annotated[tuple[GradeAgreement, ...], "One entry per grade of the first, if there are at most 12."]


@dataclass(frozen=True, eq=False, repr=False)
class RankingAgreement(Record):
    """How far two sets of scores agree on the order of systems, and on which differences are significant."""

    systems: Annotated[int, "The systems that both scored."]
    queries: Annotated[int, "The queries that both scored; 0 for rankings."]
    top: Annotated[int, "How many of the best systems by the first tau_top is about."]
    persistence: Annotated[float, "The persistence of rank-biased overlap."]
    alpha: Annotated[float, "The level of significance."]
    figures: Annotated[
        tuple[AgreementFigure, ...],
        "Shares of pairs, correlations, and counts of significant pairs: tp by both, fp by the second alone, fn by the "
        "first alone, tn by neither.",
    ]
    pairs: Annotated[tuple[PairPValues, ...], "One entry per pair of systems; empty for rankings."]
    names: Annotated[tuple[str, ...], HIDDEN] = ()
    means: Annotated[Floats | None, HIDDEN] = None  # shape (source, system)

    @property
    def counts(self) -> TwoWay:
        """The counts of significant pairs, the first source as the reference."""
        found = {one.figure: one.value for one in self.figures}
        return TwoWay(*(int(found[name]) for name in ("tp", "fp", "fn", "tn")))


@dataclass(frozen=True, eq=False, repr=False)
class SourceAgreement(Result):
    """How far two sources agree: grades on documents, scores on systems."""

    a: Annotated[str, "The first source, which is the reference where there is one."]
    b: Annotated[str, "The second source."]
    documents: Annotated[DocumentAgreement | None, "The agreement on documents, if both are grades."]
    systems: Annotated[RankingAgreement | None, "The agreement on systems, if there are scores."]
    level: Annotated[float, "The probability of intervals."]
    samples: Annotated[int, "The number of samples of queries behind them."]
    per_query: bool = False

    def _headline(self) -> str:
        of = [
            *([f"{self.documents.documents:,} documents"] if self.documents else []),
            *([f"{self.systems.systems} systems"] if self.systems else []),
        ]
        return f"{self.a} and {self.b} on {' and '.join(of)}"

    @key
    def figures(self) -> tuple[AgreementFigure, ...]:
        """All figures, those of documents before those of systems."""
        parts = (self.documents, self.systems)
        return tuple(figure for one in parts if one is not None for figure in one.figures)

    def to_frame(self) -> pd.DataFrame:
        """One row per figure: of, figure, value, lower, upper; or one per query, if asked for."""
        if self.per_query and self.documents is not None:
            return frame(self.documents.by_query, QueryAgreement)
        parts = {"documents": self.documents, "systems": self.systems}
        tables = [frame(one.figures, AgreementFigure).assign(of=of) for of, one in parts.items() if one is not None]
        found = pd.concat(tables, ignore_index=True)
        return found[["of", *found.columns.drop("of")]]

    def tables(self) -> tuple[Table, ...]:
        """The agreement on documents, over all queries and by grade, and that on systems."""
        bar, found = ("value", "lower", "upper"), []
        if self.documents is not None:
            figures = frame(self.documents.figures, AgreementFigure)
            found.append(Table(figures, "Agreement on the order of documents", intervals=bar))
            if self.per_query:
                found.append(Table(frame(self.documents.by_query, QueryAgreement), "By query"))
            if self.documents.by_grade:
                grades = frame(self.documents.by_grade, GradeAgreement)
                found.append(Table(grades, f"Pairs of documents that {self.a} leaves tied"))
        if self.systems is not None:
            figures = frame(self.systems.figures, AgreementFigure)
            found.append(Table(figures, "Agreement on the order of systems", intervals=bar))
        return tuple(found)

    def sentences(self) -> tuple[str, ...]:
        """The numbers of queries, documents and systems, and the meaning of intervals and counts."""
        found = []
        if self.documents is not None:
            d = self.documents
            found.append(f"{d.documents:,} documents on {d.queries} queries have a grade by {self.a} and by {self.b}.")
        if self.systems is not None:
            s = self.systems
            on = f" on {s.queries} queries" if s.queries else ""
            found.append(
                f"{s.systems} systems{on}; tau_top is about the {s.top} best by {self.a}, "
                f"rbo has persistence {s.persistence:g}."
            )
            if s.pairs:
                found.append(
                    f"Significant at {s.alpha:g} by paired t-tests: tp by both, fp by {self.b} alone (or with the "
                    f"other winner), fn by {self.a} alone, tn by neither."
                )
        if any(one.queries for one in (self.documents, self.systems) if one is not None):
            found.append(f"Intervals are at {self.level:g}, for other samples of queries.")
        return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores(Record):
    """Scores of systems, shape (system, query); a ranking has one column and no queries."""

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    values: Floats


def _intervals(
    names: Sequence[str], value: Floats, sampled: Floats | None, level: float, most: Floats
) -> tuple[AgreementFigure, ...]:
    """Figures with intervals of the size that deviations of samples from them have, within their limits.

    Resampled queries add noise of their own, which lowers every correlation: the ends of the resampled values lie too
    low, and those mirrored at the value too high. The size of the deviations, on both sides, errs least.
    """
    half = np.full(len(value), np.nan)
    if sampled is not None:
        gap = np.abs(sampled - value)
        known = ~np.isnan(gap).all(axis=0)
        half[known] = np.nanquantile(gap[:, known], level, axis=0)
    least = np.array([-1.0 if name in SIGNED else 0.0 for name in names])
    return rows(
        AgreementFigure,
        figure=list(names), value=value, lower=np.maximum(value - half, least), upper=np.minimum(value + half, most),
    )  # fmt: skip


def document_agreement(
    a: Judgments, b: Judgments, *, level: float = 0.95, samples: int = SAMPLES, rng: np.random.Generator
) -> DocumentAgreement:
    """Return how far two sets of grades agree on the order of the documents that both graded.

    Parameters
    ----------
    a, b
        Grades on any two scales: only their order counts, but for kappa.
    level, samples, rng
        The probability of intervals, and the number of samples of queries behind them.

    Examples
    --------
    >>> binary = Judgments.rows(["q"] * 4, list("wxyz"), [1, 1, 0, 0])
    >>> graded = Judgments.rows(["q"] * 4, list("wxyz"), [3, 1, 2, 0])
    >>> found = document_agreement(binary, graded, rng=np.random.default_rng(1)).by_query[0]
    >>> found.separated, found.confirmed, found.contradicted
    (4, 0.75, 0.25)
    """
    table = _both_graded(a, b)
    by_query, graded = [], []
    for query, part in table.groupby("query", sort=False):
        if len(part) > 1:
            x, y = part["a"].to_numpy(), part["b"].to_numpy()
            by_query.append(_of_query(str(query), x, y))
            graded.append((x, y))
    if not by_query:
        raise ReliabilityError("No query has two documents that both sources graded: there is no order to compare.")
    names = ["agree", "disagree", "tied", "confirmed", "contradicted", "left_tied", "tau", "tau_b", "rho"]
    each = np.array([[getattr(one, name) for name in names] for one in by_query])
    grades = np.unique(table["a"])
    few = len(grades) <= FEW_GRADES
    shared = np.union1d(grades, table["b"])
    kappa = len(shared) <= FEW_GRADES and np.isin(table["b"], grades).all()
    drawn = rng.integers(len(each), size=(samples, len(each)))

    def figures(chosen: Ints) -> Floats:
        found = _mean(each[chosen])
        if not kappa:
            return found
        pooled = [np.concatenate([graded[i][k] for i in chosen]) for k in (0, 1)]
        return np.append(found, weighted_kappa(*pooled))

    names += ["kappa"] if kappa else []
    sampled = np.array([figures(chosen) for chosen in drawn]) if len(each) > 1 else None
    value = figures(np.arange(len(each)))
    return DocumentAgreement(
        queries=len(by_query),
        documents=sum(one.documents for one in by_query),
        figures=_intervals(names, value, sampled, level, np.ones(len(names))),
        by_query=tuple(by_query),
        by_grade=tuple(_of_grade(grade, graded) for grade in grades) if few else (),
    )


def _both_graded(a: Judgments, b: Judgments) -> pd.DataFrame:
    """Query, document and the two grades of every pair that both graded."""
    tables = []
    for name, source in (("a", a), ("b", b)):
        grades = source.grades()
        known = np.flatnonzero(~np.isnan(grades))
        labels = [source.pool.label(int(pair)) for pair in known]
        tables.append(pd.DataFrame(labels, columns=["query", "doc"]).assign(**{name: grades[known]}))
    return tables[0].merge(tables[1], on=["query", "doc"])


def _of_query(query: str, x: Floats, y: Floats) -> QueryAgreement:
    """The agreement on one query: counts of pairs from the table of both grades, without a list of the pairs."""
    cells = _cells(x, y)
    pairs = len(x) * (len(x) - 1) // 2
    below = np.cumsum(np.cumsum(cells, axis=0), axis=1)  # both grades at most these
    padded = np.pad(below, ((1, 0), (1, 0)))[:-1, :-1]  # both grades lower
    lower_a = np.pad(np.cumsum(cells, axis=0), ((1, 0), (0, 0)))[:-1]
    higher_b = lower_a.sum(axis=1, keepdims=True) - np.cumsum(lower_a, axis=1)
    same, opposite = int((cells * padded).sum()), int((cells * higher_b).sum())
    tied_a, tied_b = (_couples(cells.sum(axis=axis)) for axis in (1, 0))
    separated = pairs - tied_a
    possible = np.sqrt(float(separated) * float(pairs - tied_b))
    return QueryAgreement(
        query, len(x), pairs, same / pairs, opposite / pairs, 1 - (same + opposite) / pairs,
        separated, _part(same, separated), _part(opposite, separated),
        _part(separated - same - opposite, separated),
        (same - opposite) / pairs, _part(same - opposite, possible), spearman(x, y),
    )  # fmt: skip


def _of_grade(grade: float, graded: Sequence[tuple[Floats, Floats]]) -> GradeAgreement:
    """The pairs that have one grade in the first source, over the queries with such pairs."""
    counts = np.array(
        [(_couples(np.array([len(y)])), _couples(np.unique(y, return_counts=True)[1]))
         for y in (second[first == grade] for first, second in graded)]
    )  # fmt: skip
    counts = counts[counts[:, 0] > 0]
    tied = float((counts[:, 1] / counts[:, 0]).mean()) if len(counts) else float("nan")
    return GradeAgreement(float(grade), int(counts[:, 0].sum()), 1 - tied, tied)


def _cells(x: Floats, y: Floats) -> Ints:
    """The number of documents by grade in both sources, shape (grade, grade), grades in rising order."""
    (first, i), (second, j) = (np.unique(v, return_inverse=True) for v in (x, y))
    cells = np.bincount(i * len(second) + j, minlength=len(first) * len(second))
    return np.asarray(cells.reshape(len(first), len(second)), dtype=np.int64)


def _couples(counts: Ints) -> int:
    """The number of pairs within groups of these sizes."""
    return int((counts * (counts - 1) // 2).sum())


def _part(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: Floats) -> Floats:
    """The means of columns over what is known, NaN where nothing is."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


def ranking_agreement(
    a: SystemScores,
    b: SystemScores,
    *,
    top: int = 10,
    persistence: float = 0.9,
    alpha: float = 0.05,
    level: float = 0.95,
    samples: int = SAMPLES,
    rng: np.random.Generator,
) -> RankingAgreement:
    """Return how far two sets of scores agree on the order of systems, and on which differences are significant.

    Parameters
    ----------
    a, b
        Scores on the same systems; of two tables, on the queries that both have. The first is the reference.
    top
        How many of the best systems by the first the correlation of the top is about.
    persistence
        The persistence of rank-biased overlap.
    alpha
        The level of significance of paired t-tests, without a correction for several pairs.
    level, samples, rng
        The probability of intervals, and the number of samples of queries behind them.

    Examples
    --------
    >>> a = SystemScores(("x", "y", "z"), (), np.array([[0.3], [0.2], [0.1]]))
    >>> b = SystemScores(("x", "y", "z"), (), np.array([[0.3], [0.1], [0.2]]))
    >>> found = ranking_agreement(a, b, rng=np.random.default_rng(1))
    >>> [(one.figure, round(one.value, 2)) for one in found.figures][:2]
    [('agree', 0.67), ('disagree', 0.33)]
    """
    systems = [name for name in a.systems if name in set(b.systems)]
    if len(systems) < 2:
        raise ReliabilityError(
            f"Two systems or more must be in both sources, and there {'is' if systems else 'are'} {len(systems)}: the "
            f"first has {a.systems[0]!r} and {len(a.systems) - 1} more, the second {b.systems[0]!r} and "
            f"{len(b.systems) - 1} more."
        )
    ranking = not (a.queries and b.queries)
    queries = [] if ranking else [name for name in a.queries if name in set(b.queries)]
    if not ranking and not queries:
        raise ReliabilityError(
            f"No query is in both sources: the first has {a.queries[0]!r} and others, the second {b.queries[0]!r}."
        )
    x, y = (_aligned(one, systems, queries) for one in (a, b))
    n = len(queries)
    tested = n > 1
    names = ["agree", "disagree", "tied", "tau", "tau_b", "rho", "tau_ap", "tau_top", "rbo"]
    names += ["tp", "fp", "fn", "tn"] if tested else []

    def figures(weight: Floats) -> Floats:
        found = _correlations(systems, x @ weight, y @ weight, top, persistence)
        if tested:
            (d_x, p_x), (d_y, p_y) = (_t_tests(v, weight) for v in (x, y))
            counts = two_way(signed(d_y, p_y, alpha=alpha), signed(d_x, p_x, alpha=alpha))
            found += [counts.tp, counts.fp, counts.fn, counts.tn]
        return np.array(found, dtype=float)

    even = np.full(max(n, 1), 1 / max(n, 1))
    sampled = np.array([figures(w) for w in rng.multinomial(n, even, size=samples) / n]) if tested else None
    pairs = len(systems) * (len(systems) - 1) / 2
    most = np.array([pairs if name in ("tp", "fp", "fn", "tn") else 1.0 for name in names])
    return RankingAgreement(
        systems=len(systems),
        queries=n,
        top=min(top, len(systems)),
        persistence=persistence,
        alpha=alpha,
        figures=_intervals(names, figures(even), sampled, level, most),
        pairs=_pairs(systems, x, y, even) if tested else (),
        names=tuple(systems),
        means=np.array([x @ even, y @ even]),
    )


def _aligned(scores: SystemScores, systems: Sequence[str], queries: Sequence[str]) -> Floats:
    """The scores of these systems on these queries; without queries their means, as one column."""
    values = scores.values[[scores.systems.index(name) for name in systems]]
    if queries:
        values = values[:, [scores.queries.index(name) for name in queries]]
    if np.isnan(values).any():
        raise ReliabilityError("Scores are missing: leave out the systems or the queries without them.")
    return values if queries else np.asarray(values.mean(axis=1, keepdims=True))


def _correlations(systems: Sequence[str], x: Floats, y: Floats, top: int, persistence: float) -> list[float]:
    """The figures of two orders of systems."""
    best = np.argsort(-x, kind="stable")[:top]
    lists = [[systems[i] for i in np.argsort(-v, kind="stable")] for v in (x, y)]
    return [
        *agreements(x, y),
        kendall(x, y, variant="a"),
        kendall(x, y),
        spearman(x, y),
        ap_correlation(x, y, variant="a"),
        kendall(x[best], y[best]),
        rank_biased_overlap(*lists, p=persistence).extrapolated,
    ]


def _t_tests(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Differences of all pairs of systems and the p-values of paired t-tests, with weights of queries that sum to 1."""
    from scipy.special import stdtr

    n = values.shape[1]
    first, second = pair_index(len(values))
    mean = values @ weight
    centred = values - mean[:, None]
    cross = (centred * weight) @ centred.T
    spread = np.diag(cross)[first] + np.diag(cross)[second] - 2 * cross[first, second]
    difference = mean[first] - mean[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(np.maximum(spread, 0) / (n - 1))
    p = np.where(np.isnan(t), 1.0, 2 * stdtr(n - 1, -np.abs(t)))
    return np.asarray(difference), np.asarray(p)


def _pairs(systems: Sequence[str], x: Floats, y: Floats, even: Floats) -> tuple[PairPValues, ...]:
    """One row per pair of systems."""
    first, second = pair_index(len(systems))
    (d_x, p_x), (d_y, p_y) = (_t_tests(v, even) for v in (x, y))
    named = [[systems[i] for i in index] for index in (first, second)]
    return rows(PairPValues, first=named[0], second=named[1], difference_a=d_x, difference_b=d_y, p_a=p_x, p_b=p_y)
