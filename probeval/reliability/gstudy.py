"""G-studies: the shares of systems, queries, assessors and the rest in the variance of scores (Brennan 2001).

See docs/theory/reliability.md#components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NotRequired, TypedDict

import numpy as np
import pandas as pd

from probeval.arrays import Floats, frozen
from probeval.display import Table
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.anova import MeanSquares, mean_squares
from probeval.reliability.bootstrap import bootstrap
from probeval.reliability.coefficients import Estimate, EstimateDocument, analytic_ratios, coefficient, queries_needed
from probeval.reliability.designs import Design
from probeval.reliability.estimation import clipped, decompose, decompose_again, posterior
from probeval.reliability.observed import CROSSED, Observed, observe
from probeval.results import Result

__all__ = ["INTERVALS", "METHODS", "GStudies", "GStudy", "GStudyDocument", "gstudy"]

METHODS = {
    "anova": "analysis of variance; Henderson's method I if scores are missing",
    "reml": "restricted maximum likelihood; equal to anova if nothing is missing or negative",
    "bayes": "the posterior, by PyMC",
}
INTERVALS = {
    "analytic": "Feldt's and Arteaga's, for s x q without gaps",
    "bootstrap": "from effects drawn again",
    "draws": "from joint draws of the scores: uncertainty of judging, not of sampling",
    "posterior": "from the posterior of the components",
    "none": "no interval",
}
SAMPLING, JUDGING = "sampling", "judging"


class GStudyDocument(TypedDict):
    """A G-study.

    Parameters
    ----------
    metric
        The measure, where the scores come from runs.
    design, method, interval
        The design; how components were estimated; where intervals come from.
    uncertainty
        What the intervals are for: ``sampling``, ``judging``, both or nothing.
    level
        The probability that intervals hold.
    sizes, missing
        The levels of each facet, and how many cells have no score.
    components, share
        The variance of each effect, and its share in their sum.
    erho2, phi
        The coefficients of mean scores as studied.
    target, queries_for, queries_for_interval
        The reliability to reach, and the queries that bring each coefficient to it; null where no number will do.
    component_interval, share_interval
        The ends of the intervals of components and shares, where there are draws.
    """

    metric: NotRequired[str]
    design: str
    method: str
    interval: str
    uncertainty: list[str]
    level: float
    sizes: dict[str, float]
    missing: int
    components: dict[str, float]
    share: dict[str, float]
    erho2: EstimateDocument
    phi: EstimateDocument
    target: float
    queries_for: dict[str, int | None]
    queries_for_interval: dict[str, list[int | None]]
    component_interval: NotRequired[dict[str, list[float]]]
    share_interval: NotRequired[dict[str, list[float]]]


class GStudies(TypedDict):
    """Several G-studies, one per measure."""

    results: list[GStudyDocument]


@dataclass(frozen=True, eq=False, repr=False)
class GStudy(Result):
    """Variance components of scores, and the reliability that follows.

    Parameters
    ----------
    design, sizes
        The facets, and the number of levels of each (for a nested one with gaps, the harmonic mean).
    method, interval
        One of :data:`METHODS` and of :data:`INTERVALS`.
    uncertainty
        The sources of uncertainty in the interval: ``"sampling"`` of systems, queries and assessors; ``"judging"``;
        both; none.
    components
        The variance of each effect: the estimate, or the median of the draws.
    draws
        Draws of the components, shape (draw, effect), if the interval is based on draws.
    squares
        The mean squares, if scores are complete and known.
    missing
        The number of cells without a score.
    """

    design: Design
    sizes: Mapping[str, float]
    method: str
    interval: str
    uncertainty: tuple[str, ...]
    components: Mapping[str, float]
    draws: Floats | None = None
    squares: MeanSquares | None = None
    missing: int = 0

    def __post_init__(self) -> None:
        if self.draws is not None:
            object.__setattr__(self, "draws", frozen(self.draws))

    def _headline(self) -> str:
        parts = ", ".join(f"{name} {share:.1%}" for name, share in self.share.items())
        return f"{self.design} by {self.method}, {parts}"

    @property
    def share(self) -> dict[str, float]:
        """The share of each component in their sum."""
        total = sum(self.components.values())
        return {name: value / total for name, value in self.components.items()}

    def share_interval(self, name: str, *, level: float = 0.95) -> Estimate:
        """Return the share of a component and its interval."""
        draws = self.draws
        if draws is not None:
            total = draws.sum(axis=1, keepdims=True)  # 0 if all scores of a draw are equal
            draws = np.divide(draws, total, out=np.zeros_like(draws), where=total > 0)
        return self._estimate(name, self.share, draws, level)

    def component(self, name: str, *, level: float = 0.95) -> Estimate:
        """Return a component and its interval."""
        return self._estimate(name, self.components, self.draws, level)

    def _estimate(self, name: str, values: Mapping[str, float], draws: Floats | None, level: float) -> Estimate:
        if name not in values:
            raise ReliabilityError(f"No component {name!r}: {', '.join(values)}.{did_you_mean(name, values)}")
        return _between(values[name], None if draws is None else draws[:, self.design.names.index(name)], level)

    def coefficient(self, name: str, *, level: float = 0.95, **sizes: float) -> Estimate:
        """Return ``"erho2"`` or ``"phi"`` of mean scores over the given (by default the studied) sizes.

        Examples
        --------
        >>> scores = np.random.default_rng(1).normal(size=(8, 20)) + np.arange(8)[:, None] / 4
        >>> study = gstudy(Observed.matrix(scores))
        >>> study.coefficient("erho2", query=100).value > study.coefficient("erho2").value
        True
        """
        sizes = self.at(**sizes)
        value = float(coefficient(self.design, self._values, name, sizes))
        if self.interval == "analytic":
            assert self.squares is not None
            low, high = (sizes["query"] * r for r in analytic_ratios(self.squares, name, level))
            return Estimate(value, 1 - 1 / (1 + low), 1 - 1 / (1 + high))
        draws = None if self.draws is None else coefficient(self.design, self.draws, name, sizes)
        return _between(value, draws, level)

    def queries_for(self, name: str, target: float = 0.95, *, level: float = 0.95, **sizes: float) -> Estimate:
        """Return the number of queries at which a coefficient reaches ``target``; infinite if it never does."""
        sizes = self.at(**sizes)
        value = float(queries_needed(self.design, self._values, name, target, sizes))
        if self.interval == "analytic":
            assert self.squares is not None
            odds = target / (1 - target)
            low, high = analytic_ratios(self.squares, name, level)
            ends = (max(np.ceil(odds / r - 1e-9), 1.0) if r > 0 else np.inf for r in (high, low))
            return Estimate(value, *map(float, ends))
        draws = None if self.draws is None else queries_needed(self.design, self.draws, name, target, sizes)
        return _between(value, draws, level, whole=True)

    def at(self, **sizes: float) -> dict[str, float]:
        """Return the sizes of the conditions: the given ones, else those of the study."""
        known = {f: self.sizes[f] for f in self.design.conditions}
        for facet, n in sizes.items():
            if facet not in known:
                raise ReliabilityError(f"{self.design} has no {facet} to average over: {', '.join(known)}.")
            if not n >= 1:
                raise ReliabilityError(f"At least one {facet} is needed, got {n:g}.")
        return known | sizes

    @property
    def _values(self) -> Floats:
        return np.array(list(self.components.values()))

    def to_frame(self, *, level: float = 0.95) -> pd.DataFrame:
        """One row per component: its variance, its share, their intervals where there are draws, else mean squares."""
        names, share = self.design.names, self.share
        variances = [self.components[name] for name in names]
        frame = pd.DataFrame({"component": names, "variance": variances, "share": [share[name] for name in names]})
        if self.draws is not None:
            for what, find in (("variance", self.component), ("share", self.share_interval)):
                ends = [find(name, level=level) for name in self.design.names]
                frame[f"{what}_lower"] = [e.lower for e in ends]
                frame[f"{what}_upper"] = [e.upper for e in ends]
            return frame
        if self.squares is not None:
            frame["mean_square"], frame["degrees"] = self.squares.values[0], self.squares.degrees.astype(int)
        return frame

    def to_dict(self, *, target: float = 0.95, level: float = 0.95) -> GStudyDocument:
        """The study as plain data for JSON."""
        needed = {name: self.queries_for(name, target, level=level) for name in ("erho2", "phi")}
        found: GStudyDocument = {
            "design": str(self.design),
            "method": self.method,
            "interval": self.interval,
            "uncertainty": list(self.uncertainty),
            "level": level,
            "sizes": dict(self.sizes),
            "missing": self.missing,
            "components": dict(self.components),
            "share": self.share,
            "erho2": self.coefficient("erho2", level=level).to_dict(),
            "phi": self.coefficient("phi", level=level).to_dict(),
            "target": target,
            "queries_for": {name: _whole(e.value) for name, e in needed.items()},
            "queries_for_interval": {name: [_whole(e.lower), _whole(e.upper)] for name, e in needed.items()},
        }
        if self.draws is not None:
            names = self.design.names
            found["component_interval"] = {name: self.component(name, level=level).ends for name in names}
            found["share_interval"] = {name: self.share_interval(name, level=level).ends for name in names}
        return found

    def tables(self, *, target: float = 0.95, level: float = 0.95) -> tuple[Table, ...]:
        """One row per component; one row per coefficient, with the queries that bring it to the target."""
        frame = self.to_frame(level=level)
        small = {str(name): 6 for name in frame.columns if str(name).startswith(("variance", "mean_square"))}
        shown = frame.assign(**{name: [f"{v:.{n}f}" for v in frame[name]] for name, n in small.items()})
        drawn = None if self.draws is None else ("share", "share_lower", "share_upper")
        rows = []
        for name in ("erho2", "phi"):
            now, needed = self.coefficient(name, level=level), self.queries_for(name, target, level=level)
            ends = ["-" if np.isnan(x) else f"{x:g}" for x in (needed.value, needed.lower, needed.upper)]
            rows.append(
                {"coefficient": name, "value": now.value, "lower": now.lower, "upper": now.upper,
                 f"queries for {target:g}": ends[0], "from": ends[1], "to": ends[2]}
            )  # fmt: skip
        reliability = Table(pd.DataFrame(rows), "Reliability", intervals=("value", "lower", "upper"))
        return Table(shown, "Components of variance", intervals=drawn), reliability

    def sentences(self, *, level: float = 0.95) -> tuple[str, ...]:
        """The design of the study, and the target of the intervals."""
        sizes = ", ".join(f"{facet} {n:g}" for facet, n in self.sizes.items())
        gaps = f"; {self.missing:,} scores missing" if self.missing else ""
        studied = f"{self.design} by {self.method}: {sizes}{gaps}."
        if not self.uncertainty:
            return (studied,)
        return studied, f"{level:.0%} intervals ({self.interval}) are for {' and '.join(self.uncertainty)}."


def gstudy(
    scores: object,
    *,
    method: str = "anova",
    interval: str | None = None,
    drop: float = 0.0,
    n: int = 1000,
    prior: float | None = None,
    rng: np.random.Generator | None = None,
) -> GStudy:
    """Estimate the variance components of scores and the reliability of mean scores.

    Parameters
    ----------
    scores
        The input of :func:`~probeval.reliability.observe`: judged scores, uncertain scores, or a table. Uncertain
        scores are decomposed per joint draw, so that unjudged pairs add uncertainty to the components.
    method
        One of :data:`METHODS`.
    interval
        One of :data:`INTERVALS`; by default analytic if applicable, else from the draws or the posterior, else by
        bootstrap. For uncertain scores, bootstrap and posterior include both judging and sampling.
    drop
        The share of systems with the lowest means to leave out.
    n
        The number of bootstrap samples.
    prior
        The scale of the half-normal prior of standard deviations; by default twice that of all scores.
    rng
        The generator for the bootstrap and the posterior (seed 0 by default).

    Examples
    --------
    >>> scores = [[0.1, 0.4, 0.3, 0.5], [0.3, 0.5, 0.7, 0.6], [0.4, 0.5, 0.8, 0.9]]
    >>> study = gstudy(Observed.matrix(scores, ["a", "b", "c"]))
    >>> study
    <GStudy: s x q by anova, system 38.7%, query 44.0%, residual 17.3%>
    >>> study.queries_for("erho2").value
    9.0
    """
    observed = observe(scores)
    observed = observed.drop(drop) if drop else observed
    observed.check()
    rng = np.random.default_rng(0) if rng is None else rng
    interval = _interval(observed, method, interval)
    squares = None if observed.missing else mean_squares(observed.design, observed.values)
    if method == "bayes":
        found = posterior(observed, squares, prior, rng)
    else:
        found = clipped(observed, decompose(observed, squares, method))
    draws = found if interval in ("draws", "posterior") else None
    if interval == "bootstrap":
        again = partial(decompose_again, observed.design, balanced=squares is not None, method=method)
        draws = bootstrap(observed, found, again, n=n, rng=rng)
    return GStudy(
        design=observed.design,
        sizes=observed.averaged,
        method=method,
        interval=interval,
        uncertainty=_uncertainty(observed, interval),
        components=dict(zip(observed.design.names, map(float, np.median(found, axis=0)), strict=True)),
        draws=draws,
        squares=None if observed.is_uncertain else squares,
        missing=observed.missing,
    )


def _interval(observed: Observed, method: str, interval: str | None) -> str:
    """Return the requested kind of interval, or the best applicable one."""
    for name, known in ((method, METHODS), (interval, INTERVALS)):
        if name is not None and name not in known:
            raise ReliabilityError(f"No {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    analytic = observed.design == CROSSED and not observed.missing and not observed.is_uncertain and method != "bayes"
    if interval is None:
        if method == "bayes":
            return "posterior"
        return "draws" if observed.is_uncertain else "analytic" if analytic else "bootstrap"
    wrong = {
        "analytic": not analytic,
        "draws": not observed.is_uncertain or method == "bayes",
        "posterior": method != "bayes",
        "bootstrap": method == "bayes",
        "none": False,
    }
    if wrong[interval]:
        raise ReliabilityError(
            f"An interval by {interval} ({INTERVALS[interval]}) does not go with {observed.design} by {method}"
            f"{', scores missing' * (observed.missing > 0)}{', scores uncertain' * observed.is_uncertain}."
        )
    return interval


def _uncertainty(observed: Observed, interval: str) -> tuple[str, ...]:
    if interval == "none":
        return ()
    judging = (JUDGING,) if observed.is_uncertain else ()
    return judging if interval == "draws" else (*judging, SAMPLING)


def _between(value: float, draws: Floats | None, level: float, *, whole: bool = False) -> Estimate:
    """Return a value with the interval of draws; with ``whole``, in whole numbers."""
    if draws is None:
        return Estimate(value, np.nan, np.nan)
    how = "higher" if whole else "linear"
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], method=how)  # type: ignore[call-overload]
    return Estimate(value, float(low), float(high))


def _whole(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None
