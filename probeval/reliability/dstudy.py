"""D-studies: the reliability of collections of other sizes, and the sizes for a target (Brennan 2001).

See docs/theory/reliability.md#coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pandas as pd

from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.coefficients import COEFFICIENTS, Estimate
from probeval.reliability.gstudy import GStudy

__all__ = ["MAPPINGS", "QUERIES", "DStudy", "Needed", "StudyPoint", "dstudy"]

# Figures that correspond to E rho^2 on TREC data, as powers of it: Urbano, Marrero and Martin (SIGIR 2013). A rough
# guide.
MAPPINGS = {"tau": 2.84729794, "tau_ap": 3.98652984, "power": 4.77902510}
QUERIES = (10, 25, 50, 100, 200, 400)


@dataclass(frozen=True)
class StudyPoint:
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

    @property
    def _estimates(self) -> dict[str, Estimate]:
        return {"erho2": self.erho2, "phi": self.phi, **self.mapped}

    def row(self) -> dict[str, float]:
        """The point as a row of a table."""
        found = dict(self.sizes) | ({} if self.judgments is None else {"judgments": self.judgments})
        for name, e in self._estimates.items():
            found |= {name: e.value, f"{name}_lower": e.lower, f"{name}_upper": e.upper}
        return found

    def to_dict(self) -> dict[str, Any]:
        """The point as plain data for JSON."""
        found: dict[str, Any] = dict(self.sizes) | ({} if self.judgments is None else {"judgments": self.judgments})
        return found | {name: e.to_dict() for name, e in self._estimates.items()}


@dataclass(frozen=True)
class Needed:
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

    def row(self) -> dict[str, float | str]:
        """The answer as a row of a table."""
        ends = {"queries": self.queries.value, "lower": self.queries.lower, "upper": self.queries.upper}
        return {"measure": self.measure, "target": self.target, **self.sizes, **ends}

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON; null if no number of queries suffices."""
        whole = {name: None if not isfinite(x) else int(x) for name, x in self.queries.to_dict().items()}
        return {"measure": self.measure, "target": self.target, **self.sizes, "queries": whole}


@dataclass(frozen=True)
class DStudy:
    """The reliability of collections of other sizes.

    Parameters
    ----------
    study
        The underlying G-study.
    points
        One point per size.
    needed
        The number of queries for each target.
    level
        The probability of intervals.
    """

    study: GStudy
    points: tuple[StudyPoint, ...]
    needed: tuple[Needed, ...]
    level: float

    def table(self) -> pd.DataFrame:
        """Return one row per size: query, assessor if any, and every coefficient with its interval."""
        return pd.DataFrame([point.row() for point in self.points])

    def needed_table(self) -> pd.DataFrame:
        """Return one row per target: measure, target, assessor if any, queries, lower, upper."""
        return pd.DataFrame([needed.row() for needed in self.needed])

    def to_dict(self) -> dict[str, Any]:
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
    >>> plan.table()[["query", "erho2", "tau"]].round(3)
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
