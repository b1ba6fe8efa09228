"""D-studies: the reliability of collections of other sizes, and the sizes for a target (Brennan 2001).

See docs/theory/reliability.md#coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from probeval.display import Record, Table
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.coefficients import COEFFICIENTS, Estimate, count_text
from probeval.reliability.gstudy import GStudy, StudiesByMeasure, whole
from probeval.results import HIDDEN, UNSET, Result, UnsetType, key

__all__ = ["MAPPINGS", "QUERIES", "DStudies", "DStudy", "Needed", "QueriesNeeded", "StudyPoint", "dstudy"]

# Figures that correspond to E rho^2 on TREC data, as powers of it: Urbano, Marrero and Martin (SIGIR 2013). A rough
# guide.
MAPPINGS = {"tau": 2.84729794, "tau_ap": 3.98652984, "power": 4.77902510}
QUERIES = (10, 25, 50, 100, 200, 400)
TABLE_COLUMNS = (
    *("query", "assessor", "judgments", "erho2", "erho2_lower", "erho2_upper", "phi", "phi_lower", "phi_upper"),
    *MAPPINGS,
)
COUNTS = ("query", "assessor", "judgments", "queries", "lower", "upper")  # columns that count things


@dataclass(frozen=True, repr=False)
class StudyPoint(Record):
    """The reliability of a collection of one size."""

    query: Annotated[float, "The number of queries."]
    assessor: Annotated[float | UnsetType, "The number of assessors, where there are such."]
    judgments: Annotated[float | UnsetType, "The number of judgments, where the pool of a query is known."]
    erho2: Annotated[Estimate, "The reliability of differences between systems."]
    phi: Annotated[Estimate, "The reliability of scores."]

    @key
    def tau(self) -> Estimate:
        """The Kendall's tau that went with such an E rho^2 on past TREC collections: a rough guide."""
        return self._mapped("tau")

    @key
    def tau_ap(self) -> Estimate:
        """The tau_AP that went with it, likewise."""
        return self._mapped("tau_ap")

    @key
    def power(self) -> Estimate:
        """The power that went with it, likewise."""
        return self._mapped("power")

    def _mapped(self, name: str) -> Estimate:
        return self.erho2.map(lambda erho2: erho2 ** MAPPINGS[name])


@dataclass(frozen=True)
class QueriesNeeded:
    """A number of queries and the ends of its interval, null where no number will do."""

    value: int | None
    lower: int | None
    upper: int | None


@dataclass(frozen=True, repr=False)
class Needed(Record):
    """The number of queries needed for a target."""

    measure: Annotated[str, "``erho2``, ``phi``, ``tau``, ``tau_ap`` or ``power``."]
    target: Annotated[float, "The value to reach."]
    assessor: Annotated[float | UnsetType, "The number of assessors, where there are such."]
    # Infinite if no number suffices; the interval is wide if reliability is uncertain.
    queries: Annotated[Estimate, HIDDEN]

    @key.named("queries")
    def whole_queries(self) -> QueriesNeeded:
        """The number of queries."""
        return QueriesNeeded(whole(self.queries.value), whole(self.queries.lower), whole(self.queries.upper))


@dataclass(frozen=True, repr=False)
class DStudy(Result):
    """The reliability of collections of other sizes."""

    study: GStudy
    points: Annotated[tuple[StudyPoint, ...], "One entry per size of the collection."]
    needed: Annotated[tuple[Needed, ...], "One entry per target."]

    @key
    def metric(self) -> str | UnsetType:
        """The measure, where the scores come from runs."""
        return self.study.metric

    @key
    def design(self) -> str:
        """The design of the G-study that it rests on."""
        return str(self.study.design)

    @key
    def method(self) -> str:
        """How components were estimated."""
        return self.study.method

    @key
    def interval(self) -> str:
        """Where intervals come from."""
        return self.study.interval

    @key
    def uncertainty(self) -> tuple[str, ...]:
        """What the intervals are for: ``sampling``, ``judging``, both or nothing."""
        return self.study.uncertainty

    @key
    def level(self) -> float:
        """The probability of intervals."""
        return self.study.level

    @key
    def components(self) -> Mapping[str, float]:
        """The variance of each effect."""
        return self.study.components

    def to_frame(self) -> pd.DataFrame:
        """One row per size: query, assessor where there are such, and every coefficient with its interval."""
        estimates = ("erho2", "phi", *MAPPINGS)
        rows = []
        for point in self.points:
            row = _known(query=point.query, assessor=point.assessor, judgments=point.judgments)
            for name in estimates:
                row |= getattr(point, name).columns(name)
            rows.append(row)
        return pd.DataFrame(rows)

    def targets_frame(self) -> pd.DataFrame:
        """One row per target: measure, target, assessor where there are such, queries, lower, upper."""
        return pd.DataFrame(
            [
                {
                    "measure": needed.measure,
                    "target": needed.target,
                    **_known(assessor=needed.assessor),
                    "queries": needed.queries.value,
                    "lower": needed.queries.lower,
                    "upper": needed.queries.upper,
                }
                for needed in self.needed
            ]
        )

    def _headline(self) -> str:
        return f"{self.design}, {len(self.points)} sizes, {len(self.needed)} targets"

    def tables(self) -> tuple[Table, ...]:
        """One row per size; one row per target."""
        table, of = self.to_frame(), "" if self.metric is UNSET else f", {self.metric}"
        sizes = _counted(table[[c for c in TABLE_COLUMNS if c in table.columns]])
        return (
            Table(sizes, f"Reliability by size{of}", intervals=("erho2", "erho2_lower", "erho2_upper")),
            Table(_counted(self.targets_frame()), f"Queries needed{of}"),
        )

    def sentences(self) -> tuple[str, ...]:
        """The target of the intervals."""
        if not self.uncertainty:
            return ()
        return (f"{self.level:.0%} intervals ({self.interval}) are for {' and '.join(self.uncertainty)}.",)


@dataclass(frozen=True, eq=False, repr=False)
class DStudies(StudiesByMeasure):
    """Several D-studies, one per measure."""

    results: Annotated[tuple[DStudy, ...], "One entry per measure."]


def _known(**columns: float | UnsetType) -> dict[str, float]:
    """The columns that are set."""
    return {name: value for name, value in columns.items() if value is not UNSET}


def _counted(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its counts as text, without decimals."""
    return table.assign(**{c: [count_text(n) for n in table[c]] for c in COUNTS if c in table.columns})


def dstudy(
    study: GStudy,
    *,
    queries: Sequence[int] = QUERIES,
    assessors: Sequence[int] | None = None,
    targets: Sequence[tuple[str, float]] = (("erho2", 0.95), ("phi", 0.95)),
    pool: float | None = None,
    level: float | None = None,
) -> DStudy:
    """Return the reliability for other numbers of queries and assessors, and the number of queries for targets.

    Parameters
    ----------
    study
        The G-study.
    queries, assessors
        The numbers to evaluate, in every combination; by default the number of assessors of the study.
    targets
        The targets: ``"erho2"``, ``"phi"``, or through :data:`MAPPINGS` ``"tau"``, ``"tau_ap"``, ``"power"``.
    pool
        The number of retrieved pairs per query, each to be judged by every assessor, to count judgments.
    level
        The probability of intervals; by default that of the study.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.reliability.gstudy import gstudy
    >>> from probeval.reliability.observed import Observed
    >>> scores = np.random.default_rng(1).normal(size=(8, 20)) + np.arange(8)[:, None] / 4
    >>> plan = dstudy(gstudy(Observed.matrix(scores)), queries=[20, 50], targets=[("tau", 0.9)])
    >>> plan.to_frame()[["query", "erho2", "tau"]].round(3)
       query  erho2    tau
    0     20  0.869  0.671
    1     50  0.943  0.847
    >>> plan.needed[0].queries.value
    80.0
    """
    study = study if level is None else replace(study, level=level)
    others: list[dict[str, int]] = [{}] if assessors is None else [{"assessor": n} for n in assessors]
    points = [_point(study, n, other, pool) for other in others for n in queries]
    needed = [_needed(study, name, target, other) for other in others for name, target in targets]
    return DStudy(study, tuple(points), tuple(needed))


def _point(study: GStudy, n: int, other: Mapping[str, int], pool: float | None) -> StudyPoint:
    sizes = study.at(query=n, **other)
    erho2, phi = (study.coefficient(name, **sizes) for name in COEFFICIENTS)
    judgments = UNSET if pool is None else pool * n * sizes.get("assessor", 1)
    return StudyPoint(sizes["query"], sizes.get("assessor", UNSET), judgments, erho2, phi)


def _needed(study: GStudy, name: str, target: float, other: Mapping[str, int]) -> Needed:
    if name not in COEFFICIENTS and name not in MAPPINGS:
        known = (*COEFFICIENTS, *MAPPINGS)
        raise ReliabilityError(f"No target {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    through = target ** (1 / MAPPINGS[name]) if name in MAPPINGS else target
    coefficient = "erho2" if name in MAPPINGS else name
    found = study.queries_for(coefficient, through, **other)
    return Needed(name, target, study.at(**other).get("assessor", UNSET), found)
