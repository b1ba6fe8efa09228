"""D-studies: the reliability of collections of other sizes, and the sizes for a target (Brennan 2001).

See docs/theory/reliability.md#coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import NotRequired, TypedDict, cast

import pandas as pd

from probeval.display import Record, Table
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.coefficients import COEFFICIENTS, Estimate, EstimateDocument
from probeval.reliability.gstudy import GStudy
from probeval.results import Result

__all__ = ["MAPPINGS", "QUERIES", "DStudies", "DStudy", "DStudyDocument", "Needed", "StudyPoint", "dstudy"]

# Figures that correspond to E rho^2 on TREC data, as powers of it: Urbano, Marrero and Martin (SIGIR 2013). A rough
# guide.
MAPPINGS = {"tau": 2.84729794, "tau_ap": 3.98652984, "power": 4.77902510}
QUERIES = (10, 25, 50, 100, 200, 400)
SHOWN = ("query", "assessor", "judgments", "erho2", "erho2_lower", "erho2_upper", "phi", "phi_lower", "phi_upper",
         "tau", "tau_ap", "power")  # fmt: skip
WHOLE = ("query", "assessor", "judgments", "queries", "lower", "upper")  # columns that count things


class Sizes(TypedDict):
    """The size of a collection."""

    query: float
    assessor: NotRequired[float]
    judgments: NotRequired[float]


class StudyPointDocument(Sizes):
    """The reliability of a collection of one size.

    Parameters
    ----------
    query, assessor
        How many queries, and assessors where there are such.
    judgments
        How many judgments that takes, where the pool of a query is known.
    erho2, phi
        The coefficients.
    tau, tau_ap, power
        What such an E rho^2 went with on past TREC collections: a rough guide.
    """

    erho2: EstimateDocument
    phi: EstimateDocument
    tau: EstimateDocument
    tau_ap: EstimateDocument
    power: EstimateDocument


class WholeEstimate(TypedDict):
    """A number of queries and the ends of its interval, null where no number will do."""

    value: int | None
    lower: int | None
    upper: int | None


class NeededDocument(TypedDict):
    """The queries that a target takes.

    Parameters
    ----------
    measure, target
        What is to be reached.
    assessor
        How many assessors, where there are such.
    """

    measure: str
    target: float
    assessor: NotRequired[float]
    queries: WholeEstimate


class DStudyDocument(TypedDict):
    """A D-study.

    Parameters
    ----------
    metric
        The measure, where the scores come from runs.
    design, method, interval, uncertainty
        Of the G-study that it rests on.
    level
        The probability that intervals hold.
    components
        The variance of each effect.
    points, needed
        One entry per size of the collection, and one per target.
    """

    metric: NotRequired[str]
    design: str
    method: str
    interval: str
    uncertainty: list[str]
    level: float
    components: dict[str, float]
    points: list[StudyPointDocument]
    needed: list[NeededDocument]


class DStudies(TypedDict):
    """Several D-studies, one per measure."""

    results: list[DStudyDocument]


@dataclass(frozen=True, repr=False)
class StudyPoint(Record):
    """The reliability of a collection of one size.

    Parameters
    ----------
    sizes
        The number of queries, and of assessors if any.
    erho2, phi
        The coefficients.
    judgments
        The number of judgments, if the pool size per query is known.
    """

    sizes: Mapping[str, float]
    erho2: Estimate
    phi: Estimate
    judgments: float | None = None

    @property
    def mapped(self) -> dict[str, Estimate]:
        """Kendall's tau, tau_AP and power that correspond to E rho^2 (:data:`MAPPINGS`)."""
        return {name: self.erho2.map(lambda x, k=k: x**k) for name, k in MAPPINGS.items()}  # type: ignore[misc]

    def to_dict(self) -> StudyPointDocument:
        """The point as plain data for JSON."""
        sizes = cast("Sizes", dict(self.sizes))  # the facets that are averaged over: queries, perhaps assessors
        if self.judgments is not None:
            sizes["judgments"] = self.judgments
        mapped = {name: estimate.to_dict() for name, estimate in self.mapped.items()}
        return {
            **sizes,
            "erho2": self.erho2.to_dict(),
            "phi": self.phi.to_dict(),
            "tau": mapped["tau"],
            "tau_ap": mapped["tau_ap"],
            "power": mapped["power"],
        }


@dataclass(frozen=True, repr=False)
class Needed(Record):
    """The number of queries needed for a target.

    Parameters
    ----------
    measure, target
        ``"erho2"``, ``"phi"`` or one of :data:`MAPPINGS`, and the value to reach.
    sizes
        The number of assessors, if any.
    queries
        The number of queries, infinite if no number suffices; its interval is wide if reliability is uncertain.
    """

    measure: str
    target: float
    sizes: Mapping[str, float]
    queries: Estimate

    def to_dict(self) -> NeededDocument:
        """The answer as plain data for JSON; null where no number of queries will do."""
        queries: WholeEstimate = {
            "value": _whole(self.queries.value),
            "lower": _whole(self.queries.lower),
            "upper": _whole(self.queries.upper),
        }
        if "assessor" in self.sizes:
            return {
                "measure": self.measure,
                "target": self.target,
                "assessor": self.sizes["assessor"],
                "queries": queries,
            }
        return {"measure": self.measure, "target": self.target, "queries": queries}


@dataclass(frozen=True, repr=False)
class DStudy(Result):
    """The reliability of collections of other sizes.

    Parameters
    ----------
    study
        The underlying G-study.
    points
        One per size.
    needed
        The number of queries for each target.
    level
        The probability of intervals.
    """

    study: GStudy
    points: tuple[StudyPoint, ...]
    needed: tuple[Needed, ...]
    level: float

    def to_frame(self) -> pd.DataFrame:
        """One row per size: query, assessor where there are such, and every coefficient with its interval."""
        rows = []
        for point in self.points:
            row = dict(point.sizes) | ({} if point.judgments is None else {"judgments": point.judgments})
            for name, e in {"erho2": point.erho2, "phi": point.phi, **point.mapped}.items():
                row |= {name: e.value, f"{name}_lower": e.lower, f"{name}_upper": e.upper}
            rows.append(row)
        return pd.DataFrame(rows)

    def targets_frame(self) -> pd.DataFrame:
        """One row per target: measure, target, assessor where there are such, queries, lower, upper."""
        rows = []
        for needed in self.needed:
            found = needed.queries
            ends = {"queries": found.value, "lower": found.lower, "upper": found.upper}
            rows.append({"measure": needed.measure, "target": needed.target, **needed.sizes, **ends})
        return pd.DataFrame(rows)

    def to_dict(self) -> DStudyDocument:
        """The study as plain data for JSON."""
        return {
            "design": str(self.study.design),
            "method": self.study.method,
            "interval": self.study.interval,
            "uncertainty": list(self.study.uncertainty),
            "level": self.level,
            "components": dict(self.study.components),
            "points": [point.to_dict() for point in self.points],
            "needed": [needed.to_dict() for needed in self.needed],
        }

    def _headline(self) -> str:
        return f"{self.study.design}, {len(self.points)} sizes, {len(self.needed)} targets"

    def tables(self) -> tuple[Table, ...]:
        """One row per size; one row per target."""
        frame = self.to_frame()
        sizes = Table(_counted(frame[[c for c in SHOWN if c in frame.columns]]), "Reliability by size",
                     intervals=("erho2", "erho2_lower", "erho2_upper"))  # fmt: skip
        return sizes, Table(_counted(self.targets_frame()), "Queries needed")

    def sentences(self) -> tuple[str, ...]:
        """The target of the intervals."""
        if not self.study.uncertainty:
            return ()
        kind = f"{self.level:.0%} intervals ({self.study.interval})"
        return (f"{kind} are for {' and '.join(self.study.uncertainty)}.",)


def _counted(table: pd.DataFrame) -> pd.DataFrame:
    """Counts without decimals, ``-`` for missing values, ``never`` for infinite ones."""
    whole = [c for c in WHOLE if c in table.columns]
    shown = {c: ["-" if isnan(v) else f"{v:.0f}" if isfinite(v) else "never" for v in table[c]] for c in whole}
    return table.assign(**shown)


def _whole(value: float) -> int | None:
    return int(value) if isfinite(value) else None


def dstudy(
    study: GStudy,
    *,
    queries: Sequence[int] = QUERIES,
    assessors: Sequence[int] | None = None,
    targets: Sequence[tuple[str, float]] = (("erho2", 0.95), ("phi", 0.95)),
    pool: float | None = None,
    level: float = 0.95,
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
        The probability of intervals.

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
    others: list[dict[str, int]] = [{}] if assessors is None else [{"assessor": n} for n in assessors]
    points = [_point(study, n, other, pool, level) for other in others for n in queries]
    needed = [_needed(study, name, target, other, level) for other in others for name, target in targets]
    return DStudy(study, tuple(points), tuple(needed), level)


def _point(study: GStudy, n: int, other: Mapping[str, int], pool: float | None, level: float) -> StudyPoint:
    sizes = study.at(query=n, **other)
    erho2, phi = (study.coefficient(name, level=level, **sizes) for name in COEFFICIENTS)
    judgments = None if pool is None else pool * n * sizes.get("assessor", 1)
    return StudyPoint(sizes, erho2, phi, judgments)


def _needed(study: GStudy, name: str, target: float, other: Mapping[str, int], level: float) -> Needed:
    if name not in COEFFICIENTS and name not in MAPPINGS:
        known = (*COEFFICIENTS, *MAPPINGS)
        raise ReliabilityError(f"No target {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    through = target ** (1 / MAPPINGS[name]) if name in MAPPINGS else target
    coefficient = "erho2" if name in MAPPINGS else name
    found = study.queries_for(coefficient, through, level=level, **other)
    rest = {facet: n for facet, n in study.at(**other).items() if facet != "query"}
    return Needed(name, target, rest, found)
