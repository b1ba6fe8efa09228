"""G-studies: the shares of systems, queries, assessors and the rest in the variance of scores (Brennan 2001).

See docs/theory/reliability.md#components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats, frozen
from probeval.bayes import NutsDiagnostics
from probeval.display import Table
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.anova import MeanSquares, mean_squares
from probeval.reliability.bayesian import VariancePosterior, sample_components
from probeval.reliability.bootstrap import bootstrap
from probeval.reliability.coefficients import (
    COEFFICIENTS,
    Estimate,
    analytic_ratios,
    coefficient,
    count_text,
    queries_needed,
)
from probeval.reliability.designs import Design
from probeval.reliability.estimation import clipped, decompose, decompose_again
from probeval.reliability.observed import CROSSED, Observed, observe
from probeval.results import UNSET, Result, UnsetType, key

__all__ = ["INTERVALS", "METHODS", "GStudies", "GStudy", "StudiesByMeasure", "gstudy", "whole"]

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


@dataclass(frozen=True, eq=False, repr=False)
class GStudy(Result):
    """Variance components of scores, and the reliability that follows."""

    design: Design
    sizes: Annotated[Mapping[str, float], "The levels of each facet; for a nested one with gaps, the harmonic mean."]
    method: Annotated[str, "How components were estimated: one of ``METHODS``."]
    interval: Annotated[str, "Where intervals come from: one of ``INTERVALS``."]
    uncertainty: Annotated[
        tuple[str, ...],
        "What the intervals are for: ``sampling`` of systems, queries and assessors, ``judging``, both or nothing.",
    ]
    components: Annotated[Mapping[str, float], "The variance of each effect: the estimate, or the median of the draws."]
    draws: Floats | None = None  # of the components, shape (draw, effect), if the interval is based on draws
    squares: MeanSquares | None = None  # if scores are complete and known
    posterior: VariancePosterior | None = None  # of method bayes
    missing: Annotated[int, "The number of cells without a score."] = 0
    level: Annotated[float, "The probability of intervals."] = 0.95
    target: Annotated[float, "The reliability to reach, for the number of queries."] = 0.95
    metric: Annotated[str | UnsetType, "The measure, where the scores come from runs."] = UNSET

    def __post_init__(self) -> None:
        if self.draws is not None:
            object.__setattr__(self, "draws", frozen(self.draws))

    def _headline(self) -> str:
        parts = ", ".join(f"{name} {share:.1%}" for name, share in self.share.items())
        return f"{self.design} by {self.method}, {parts}"

    @key.named("design")
    def design_text(self) -> str:
        """The design of the study."""
        return str(self.design)

    @key
    def share(self) -> dict[str, float]:
        """The share of each component in their sum."""
        total = sum(self.components.values())
        return {name: value / total for name, value in self.components.items()}

    @key
    def erho2(self) -> Estimate:
        """The reliability of differences between systems, of mean scores as studied."""
        return self.coefficient("erho2")

    @key
    def phi(self) -> Estimate:
        """The reliability of scores, of mean scores as studied."""
        return self.coefficient("phi")

    @key.named("queries_for")
    def queries_for_target(self) -> dict[str, int | None]:
        """The queries that bring each coefficient to the target; null where no number will do."""
        return {name: whole(self.queries_for(name).value) for name in COEFFICIENTS}

    @key.named("queries_for_interval")
    def queries_for_ends(self) -> dict[str, list[int | None]]:
        """The ends of the intervals of these numbers of queries, at least 1; null where no number will do."""
        return {name: list(map(whole, self.queries_for(name).ends)) for name in COEFFICIENTS}

    @key.named("component_interval")
    def component_ends(self) -> dict[str, list[float]] | UnsetType:
        """The ends of the intervals of components, where there are draws."""
        return UNSET if self.draws is None else {name: self.component(name).ends for name in self.design.names}

    @key.named("share_interval")
    def share_ends(self) -> dict[str, list[float]] | UnsetType:
        """The ends of the intervals of shares, where there are draws."""
        return UNSET if self.draws is None else {name: self.share_interval(name).ends for name in self.design.names}

    @key
    def diagnostics(self) -> NutsDiagnostics | UnsetType:
        """Method ``bayes``: R-hat, bulk ESS and the share of divergences of the sampler."""
        return UNSET if self.posterior is None else self.posterior.diagnostics

    def to_arviz(self, *, rng: np.random.Generator | None = None) -> Any:
        """Return ArviZ data of method ``bayes``: see :meth:`VariancePosterior.to_arviz`.

        ``rng`` draws effects given their standard deviations, and predictions; seed 0 by default.
        """
        if self.posterior is None:
            raise ReliabilityError(f"Method {self.method} has no posterior. Use method='bayes'.")
        return self.posterior.to_arviz(rng=rng)

    def share_interval(self, name: str) -> Estimate:
        """Return the share of a component and its interval: quantiles of the draws, each between 0 and 1."""
        draws = self.draws
        if draws is not None:
            total = draws.sum(axis=1, keepdims=True)  # 0 if all scores of a draw are equal
            draws = np.divide(draws, total, out=np.zeros_like(draws), where=total > 0)
        return self._estimate(name, self.share, draws)

    def component(self, name: str) -> Estimate:
        """Return a component and its interval: quantiles of the draws, in which negative variances are 0."""
        return self._estimate(name, self.components, self.draws)

    def _estimate(self, name: str, values: Mapping[str, float], draws: Floats | None) -> Estimate:
        if name not in values:
            raise ReliabilityError(f"No component {name!r}: {', '.join(values)}.{did_you_mean(name, values)}")
        return self._between(values[name], None if draws is None else draws[:, self.design.names.index(name)])

    def coefficient(self, name: str, **sizes: float) -> Estimate:
        """Return ``"erho2"`` or ``"phi"`` of mean scores over the given (by default the studied) sizes.

        Both ends of the interval are between 0 and 1, as the coefficients of all draws are, and those of analytic
        ratios that are at least 0 (:func:`~probeval.reliability.coefficients.analytic_ratios`).

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
            low, high = (sizes["query"] * r for r in analytic_ratios(self.squares, name, self.level))
            return Estimate(value, 1 - 1 / (1 + low), 1 - 1 / (1 + high))
        draws = None if self.draws is None else coefficient(self.design, self.draws, name, sizes)
        return self._between(value, draws)

    def queries_for(self, name: str, target: float | None = None, **sizes: float) -> Estimate:
        """Return the number of queries at which a coefficient reaches a target; infinite if it never does.

        The target is by default that of the study. The ends of the interval are whole numbers from 1 on, or infinite.
        """
        sizes, target = self.at(**sizes), self.target if target is None else target
        value = float(queries_needed(self.design, self._values, name, target, sizes))
        if self.interval == "analytic":
            assert self.squares is not None
            odds = target / (1 - target)
            low, high = analytic_ratios(self.squares, name, self.level)
            ends = (max(np.ceil(odds / r - 1e-9), 1.0) if r > 0 else np.inf for r in (high, low))
            return Estimate(value, *map(float, ends))
        draws = None if self.draws is None else queries_needed(self.design, self.draws, name, target, sizes)
        return self._between(value, draws, how="higher")

    def _between(self, value: float, draws: Floats | None, *, how: str = "linear") -> Estimate:
        """Return a value with the interval of draws; with ``higher``, its ends are among the draws."""
        if draws is None:
            return Estimate(value, np.nan, np.nan)
        ends = (1 - self.level) / 2, (1 + self.level) / 2
        low, high = np.quantile(draws, ends, method=how)  # type: ignore[call-overload]
        return Estimate(value, float(low), float(high))

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

    def to_frame(self) -> pd.DataFrame:
        """One row per component: its variance, its share, their intervals where there are draws, else mean squares."""
        names = self.design.names
        variances, shares = ([values[name] for name in names] for values in (self.components, self.share))
        table = pd.DataFrame({"component": names, "variance": variances, "share": shares})
        if self.draws is not None:
            for what, find in (("variance", self.component), ("share", self.share_interval)):
                table[f"{what}_lower"], table[f"{what}_upper"] = zip(*(find(name).ends for name in names), strict=True)
        elif self.squares is not None:
            table["mean_square"], table["degrees"] = self.squares.values[0], self.squares.degrees.astype(int)
        return table

    def tables(self) -> tuple[Table, ...]:
        """One row per component; one row per coefficient, with the queries that bring it to the target."""
        table = self.to_frame()
        small = [str(name) for name in table.columns if str(name).startswith(("variance", "mean_square"))]
        drawn = None if self.draws is None else ("share", "share_lower", "share_upper")
        rows = []
        for name in COEFFICIENTS:
            now, needed = self.coefficient(name), self.queries_for(name)
            queries = {f"queries for {self.target:g}": needed.value, "from": needed.lower, "to": needed.upper}
            rows.append(
                {"coefficient": name, "value": now.value, "lower": now.lower, "upper": now.upper}
                | {column: count_text(n) for column, n in queries.items()}
            )
        of = "" if self.metric is UNSET else f", {self.metric}"
        of += "" if self.interval == "none" else f", {self.level:.0%} intervals: {self.interval}"
        return (
            Table(table, f"Components of variance{of}", dict.fromkeys(small, 6), intervals=drawn),
            Table(pd.DataFrame(rows), f"Reliability{of}", intervals=("value", "lower", "upper")),
        )

    def sentences(self) -> tuple[str, ...]:
        """The design of the study, and the target of the intervals."""
        sizes = ", ".join(f"{facet} {n:g}" for facet, n in self.sizes.items())
        gaps = f"; {self.missing:,} scores missing" if self.missing else ""
        sampled = "" if self.posterior is None else f" NUTS: {self.posterior.diagnostics}."
        studied = f"{self.design} by {self.method}: {sizes}{gaps}.{sampled}"
        if not self.uncertainty:
            return (studied,)
        return studied, f"{self.level:.0%} intervals ({self.interval}) are for {' and '.join(self.uncertainty)}."


@dataclass(frozen=True, eq=False, repr=False)
class StudiesByMeasure(Result):
    """Several studies of reliability, one per measure."""

    results: tuple[Any, ...]

    def _headline(self) -> str:
        return ", ".join(str(study.metric) for study in self.results)

    def to_frame(self) -> pd.DataFrame:
        """The rows of each study, with its measure in the last column."""
        tables: list[pd.DataFrame] = [study.to_frame().assign(metric=study.metric) for study in self.results]
        return pd.concat(tables, ignore_index=True)

    def tables(self) -> tuple[Table, ...]:
        """Those of each study."""
        return tuple(table for study in self.results for table in study.tables())

    def sentences(self) -> tuple[str, ...]:
        """Those of the studies, each once."""
        return tuple(dict.fromkeys(sentence for study in self.results for sentence in study.sentences()))


@dataclass(frozen=True, eq=False, repr=False)
class GStudies(StudiesByMeasure):
    """Several G-studies, one per measure."""

    results: Annotated[tuple[GStudy, ...], "One entry per measure."]


def gstudy(
    scores: object,
    *,
    method: str = "anova",
    interval: str | None = None,
    drop: float = 0.0,
    n: int = 1000,
    prior: float | None = None,
    rng: np.random.Generator | None = None,
    level: float = 0.95,
    target: float = 0.95,
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
    level, target
        The probability of intervals, and the reliability to reach.

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
    posterior = sample_components(observed, prior, rng=rng) if method == "bayes" else None
    found = clipped(observed, decompose(observed, squares, method)) if posterior is None else posterior.draws
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
        posterior=posterior,
        missing=observed.missing,
        level=level,
        target=target,
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


def whole(value: float) -> int | None:
    """A whole number, None for one that is not finite."""
    return int(value) if np.isfinite(value) else None
