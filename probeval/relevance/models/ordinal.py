"""Ordinal logit models of relevance: fitted on past campaigns, applied to new ones.

See docs/theory/relevance-models.md#ord.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.data.collection import Collection
from probeval.data.scale import Scale
from probeval.errors import FeatureError, ModelError, ProbevalWarning
from probeval.features import compute_features, feature_names, needs
from probeval.relevance.effects.cutpoints import level_probabilities
from probeval.relevance.models.base import Finding
from probeval.relevance.models.cumulative import Observations, SeparationError, fit_cumulative

__all__ = ["FittedOrdinal", "OrdinalModel", "TrainingData", "training_data"]

RIDGE = 1.0  # the ridge for separated data, on standardised terms


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The judged pairs of several campaigns, with complete terms.

    Parameters
    ----------
    terms
        The model's terms.
    x
        Their values, shape (observation, term).
    level, n_levels
        The level of each pair, and the number of levels of its scale, shape (observation,).
    relevance
        The judged grade over the top grade, shape (observation,).
    values
        For each number of levels, the relevance of each level.
    campaign, query
        The campaign and the query (numbered over all campaigns) of each pair, shape (observation,).
    campaigns
        Names of the campaigns.
    dropped
        The number of judged pairs left out because a term is missing.
    """

    terms: tuple[str, ...]
    x: Floats
    level: Ints
    n_levels: Ints
    relevance: Floats
    campaign: Ints
    query: Ints
    campaigns: tuple[str, ...]
    values: Mapping[int, Floats]
    dropped: int

    def __len__(self) -> int:
        return len(self.level)

    def take(self, rows: Any) -> TrainingData:
        """Return some of the pairs, by position or mask."""
        columns = ("x", "level", "n_levels", "relevance", "campaign", "query")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


def training_data(collections: Iterable[Collection], terms: Sequence[str], *, depth: int) -> TrainingData:
    """Return the judged pairs in the top ``depth`` of each campaign with their terms, each without its own judgment."""
    parts: list[TrainingData] = []
    n_queries = 0
    for number, collection in enumerate(collections):
        if collection.judgments is None:
            raise ModelError(f"{collection.name}: there are no judgments to learn from.")
        scale = collection.judgments.scale()
        if collection.runs.teams is None:  # every system is a team of its own
            collection = replace(collection, runs=collection.runs.with_teams({}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)  # missing terms are counted below
            table = compute_features(collection, feature_names(terms), depth=depth, scale=scale)
        codes = collection.codes_on(table.pool, scale)
        x = table.design(terms)
        rows = np.flatnonzero((codes >= 0) & np.isfinite(x).all(axis=1))
        parts.append(
            TrainingData(
                terms=tuple(terms),
                x=x[rows],
                level=scale.level_of(codes[rows]).astype(np.int64),
                n_levels=np.full(len(rows), len(scale.levels)),
                relevance=scale.values[codes[rows]] / scale.values[-1],
                campaign=np.full(len(rows), number),
                query=n_queries + table.pool.query[rows],
                campaigns=(collection.name,),
                values={len(scale.levels): scale.values[scale.levels] / scale.values[-1]},
                dropped=int((codes >= 0).sum()) - len(rows),
            )
        )
        n_queries += len(table.pool.queries)
    if not parts:
        raise ModelError("No campaign was given to learn from.")
    return _stacked(parts)


def _stacked(parts: Sequence[TrainingData]) -> TrainingData:
    columns = ("x", "level", "n_levels", "relevance", "campaign", "query")
    stacked: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in columns}
    campaigns = tuple(name for part in parts for name in part.campaigns)
    values: dict[int, Floats] = {}
    for part in parts:
        for n, known in part.values.items():
            if not np.array_equal(values.setdefault(n, known), known):
                raise ModelError(f"Two scales have {n} levels that mean different things. Fit them apart.")
    dropped = sum(part.dropped for part in parts)
    return TrainingData(terms=parts[0].terms, **stacked, campaigns=campaigns, values=values, dropped=dropped)


@dataclass(frozen=True)
class OrdinalModel:
    """The specification of an ordinal model: its terms and fitting options.

    Parameters
    ----------
    terms
        Features, their logarithms and products, as in ``("log(fSYS)", "aDOC", "fSYS:OV")``.
    ridge
        The weight of a penalty on the standardised coefficients; 0 for maximum likelihood.
    balanced
        Whether every campaign has equal weight, regardless of its number of pairs.
    """

    terms: tuple[str, ...]
    ridge: float = 0.0
    balanced: bool = False

    def fit(self, collections: Iterable[Collection], *, depth: int) -> FittedOrdinal:
        """Fit on the judged pairs of past campaigns, of any scales."""
        return self.fit_data(training_data(collections, self.terms, depth=depth))

    def fit_data(self, data: TrainingData) -> FittedOrdinal:
        """Fit on judged pairs with computed terms."""
        if len(data) == 0:
            raise ModelError(f"No judged pair has all of {', '.join(self.terms)}: there is nothing to learn from.")
        centre, spread = data.x.mean(axis=0), data.x.std(axis=0)
        notes = []
        constant = [t for t, s in zip(self.terms, spread, strict=True) if s < 1e-12]
        if constant:
            notes.append(f"{', '.join(constant)} is the same for every pair: its coefficient is 0.")
        spread = np.where(spread < 1e-12, 1.0, spread)
        weight = np.ones(len(data))
        if self.balanced:
            count = np.bincount(data.campaign)
            weight = (len(data) / np.count_nonzero(count) / np.maximum(count, 1))[data.campaign]
        live = [i for i, t in enumerate(self.terms) if t not in constant]
        rows = Observations(((data.x - centre) / spread)[:, live], data.level, data.n_levels, weight)
        try:
            fit = fit_cumulative(rows, ridge=self.ridge)
        except SeparationError:
            notes.append(f"The terms separate the levels: fitted with a ridge of {RIDGE:g}.")
            fit = fit_cumulative(rows, ridge=RIDGE)
        notes += [f"Level {lev} of {n} was never seen: its cutpoint rests on half a judgment." for n, lev in fit.unseen]
        if len(np.unique(data.query)) == 1:
            notes.append("All pairs are of one query: what the model says of other queries is a guess.")
        beta, n_cuts = np.zeros(len(self.terms)), sum(len(c) for c in fit.cuts.values())
        beta[live] = fit.beta
        covariance = np.zeros((n_cuts + len(beta),) * 2)
        at = [*range(n_cuts), *(n_cuts + i for i in live)]
        covariance[np.ix_(at, at)] = fit.covariance
        return FittedOrdinal(
            terms=self.terms,
            centre=tuple(map(float, centre)),
            spread=tuple(map(float, spread)),
            coefficients=tuple(map(float, beta)),
            cutpoints={n: tuple(map(float, c)) for n, c in fit.cuts.items()},
            covariance=tuple(tuple(map(float, row)) for row in covariance),
            log_likelihood=fit.log_likelihood,
            notes=tuple(notes),
        )


@dataclass(frozen=True)
class FittedOrdinal:
    """A fitted ordinal logit model.

    Parameters
    ----------
    terms
        The terms of the model.
    centre, spread
        The mean and standard deviation that standardise each term.
    coefficients
        The coefficients of the standardised terms.
    cutpoints
        For each number of levels, the decreasing cutpoints.
    covariance
        The covariance of the cutpoints (by increasing number of levels) and the coefficients; empty if unknown.
    log_likelihood, notes
        The log-likelihood and remarks on the fit.
    """

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: tuple[float, ...]
    cutpoints: Mapping[int, tuple[float, ...]]
    covariance: tuple[tuple[float, ...], ...] = ()
    log_likelihood: float = float("nan")
    notes: tuple[str, ...] = ()
    kind = "ordinal"

    def levels(self, scale: Scale) -> Codes:
        """Return the levels of the scale."""
        return scale.levels

    def linear_predictor(self, x: Floats) -> Floats:
        """Return the linear predictor for terms of shape (.., term)."""
        return np.asarray((x - np.array(self.centre)) / np.array(self.spread) @ np.array(self.coefficients))

    def cuts(self, n_levels: int) -> Floats:
        """Return the cutpoints of a scale: its own, or those of the nearest size, with the same span divided evenly."""
        if n_levels in self.cutpoints:
            return np.array(self.cutpoints[n_levels])
        nearest = min(self.cutpoints, key=lambda n: (abs(n - n_levels), n))
        known = np.array(self.cutpoints[nearest])
        last = known[-1] if len(known) > 1 else known[0] - 1.0
        return np.linspace(known[0], last, n_levels - 1)

    def probabilities(self, collection: Collection, *, depth: int, scale: Scale) -> Floats:
        """Return P(level) of every pair with complete terms, NaN rows elsewhere, shape (pair, level)."""
        missing = needs(feature_names(self.terms)) - set(collection.has)
        if missing:
            return np.full((len(collection.runs.top(depth).pool), len(scale.levels)), np.nan)
        try:
            table = compute_features(collection, feature_names(self.terms), depth=depth, scale=scale)
        except FeatureError:  # a column that this campaign does not have
            return np.full((len(collection.runs.top(depth).pool), len(scale.levels)), np.nan)
        return level_probabilities(self.cuts(len(scale.levels)), self.linear_predictor(table.design(self.terms)))

    def check(self) -> list[Finding]:
        """Return problems of the fit, and terms whose sign is uncertain."""
        findings = [Finding(note, "") for note in self.notes]
        if self.covariance:
            n_cuts = sum(len(c) for c in self.cutpoints.values())
            error = np.sqrt(np.diag(np.array(self.covariance))[n_cuts:])
            for term, b, se in zip(self.terms, self.coefficients, error, strict=True):
                if se > 0 and abs(b) < 2 * se:
                    findings.append(
                        Finding(f"{term}: {b:.3f} (se {se:.3f}) may be nothing.", "Drop it, or fit on more campaigns.")
                    )
        return findings

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {
            "kind": self.kind,
            "terms": list(self.terms),
            "centre": list(self.centre),
            "spread": list(self.spread),
            "coefficients": list(self.coefficients),
            "cutpoints": {str(n): list(c) for n, c in self.cutpoints.items()},
            "covariance": [list(row) for row in self.covariance],
            "log_likelihood": None if np.isnan(self.log_likelihood) else self.log_likelihood,
            "notes": list(self.notes),
        }
