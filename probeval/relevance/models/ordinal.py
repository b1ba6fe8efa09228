"""Ordinal logit models of relevance: fitted on past campaigns, applied to new ones.

See docs/theory/relevance-models.md#ord.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from probeval.arrays import Bools, Codes, Floats, Ints
from probeval.data.collection import Collection
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import FeatureError, ModelError, ProbevalWarning
from probeval.features import FeatureName, compute_features, feature_names, judged_features, needs
from probeval.features.spec import shrinkage
from probeval.features.table import mean_columns
from probeval.relevance.effects.cutpoints import level_probabilities
from probeval.relevance.models.base import Finding
from probeval.relevance.models.checkpoints import SHARES, judging_checkpoints
from probeval.relevance.models.cumulative import Observations, SeparationError, fit_cumulative

__all__ = ["FittedOrdinal", "OrdinalModel", "TrainingData", "training_data"]

RIDGE = 1.0  # the ridge for separated data, on standardised terms
COLUMNS = ("x", "number", "level", "n_levels", "relevance", "campaign", "query")  # of training data, one row per pair


@dataclass(frozen=True, eq=False, repr=False)
class TrainingData(Record):
    """The judged pairs of several campaigns, with complete terms.

    Parameters
    ----------
    terms
        The model's terms.
    x, number
        Their values, and the number of judged documents in each (infinite if it is not a mean over judgments), shape
        (observation, term).
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
    number: Floats
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
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def without(self, term: int) -> TrainingData:
        """Return the same pairs without one term."""
        terms = tuple(t for i, t in enumerate(self.terms) if i != term)
        return replace(
            self, terms=terms, x=np.delete(self.x, term, axis=1), number=np.delete(self.number, term, axis=1)
        )


def training_data(
    collections: Sequence[Collection],
    terms: Sequence[str],
    *,
    depth: int,
    shares: Sequence[float] | None = SHARES,
) -> TrainingData:
    """Return the judged pairs in the top ``depth`` of each campaign with their terms, each without its own judgment.

    Parameters
    ----------
    collections
        Campaigns with judgments.
    terms
        The terms of the model. Without features from judgments, every judged pair is one row.
    depth
        The depth of the pools.
    shares
        The judged shares of the pool at which features from judgments are computed
        (:func:`~probeval.relevance.models.checkpoints.judging_checkpoints`); None: all other pairs are judged.
    """
    parts: list[TrainingData] = []
    n_queries = 0
    names = feature_names(terms)
    from_judgments = "judgments" in needs(names)
    shrunk_terms = np.array([shrinkage(term) > 0 for term in terms])
    for number, collection in enumerate(collections):
        if collection.judgments is None:
            raise ModelError(f"{collection.name}: there are no judgments to learn from.")
        scale = collection.judgments.scale()
        problem = collection.problem(depth=depth, scale=scale).in_teams()
        runs, codes = problem.runs, problem.grades.codes
        known = codes >= 0
        checkpoints: Iterable[tuple[Bools, Bools]] = [(known, known)]
        so_far = None
        if from_judgments:
            columns = mean_columns(map(FeatureName.parse, names))
            so_far = judged_features(problem, columns)
            if shares is not None:
                checkpoints = judging_checkpoints(runs, known, name=collection.name, shares=shares)
        lacking = np.zeros(len(codes), dtype=bool)
        found: list[tuple[Ints, Floats, Floats]] = []
        for judged, wanted in checkpoints:
            totals = None if so_far is None else so_far.among(judged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProbevalWarning)  # missing terms are counted below
                table = compute_features(problem, names, judged=totals)
            x, n = table.design(terms), table.numbers_of(terms)
            complete = (np.isfinite(x) | (shrunk_terms & (n == 0))).all(axis=1)
            lacking |= wanted & ~complete
            at = np.flatnonzero(wanted & complete)
            found.append((at, x[at], n[at]))
        rows = np.concatenate([at for at, _, _ in found])
        parts.append(
            TrainingData(
                terms=tuple(terms),
                x=np.concatenate([x for _, x, _ in found]),
                number=np.concatenate([n for _, _, n in found]),
                level=scale.level_of(codes[rows]).astype(np.int64),
                n_levels=np.full(len(rows), len(scale.levels)),
                relevance=scale.values[codes[rows]] / scale.values[-1],
                campaign=np.full(len(rows), number),
                query=n_queries + runs.pool.query[rows],
                campaigns=(collection.name,),
                values={len(scale.levels): scale.values[scale.levels] / scale.values[-1]},
                dropped=int(lacking.sum()),
            )
        )
        n_queries += len(runs.pool.queries)
    if not parts:
        raise ModelError("No campaign was given to learn from.")
    return _stacked(parts)


def shrunk(x: Floats, number: Floats, centre: Floats, by: Floats) -> Floats:
    r"""Return :math:`(n x + n_0 c)/(n + n_0)`: means over few judged documents move to the centre :math:`c`.

    Terms with :math:`n_0 = 0` stay as they are; a mean over no document is missing without shrinkage.

    Parameters
    ----------
    x, number
        Terms, and the number of judged documents in each, shape (.., term).
    centre, by
        :math:`c` and :math:`n_0` of each term.

    Examples
    --------
    >>> shrunk(np.array([1.0, np.nan]), np.array([4.0, 0.0]), np.array([0.2, 0.2]), np.array([4.0, 4.0]))
    array([0.6, 0.2])
    """
    counted = (by > 0) & ~np.isinf(number)
    weight = np.where(counted, number / np.where(counted, number + by, 1.0), 1.0)
    return np.where(weight == 0, centre, centre + weight * (x - centre))


def _stacked(parts: Sequence[TrainingData]) -> TrainingData:
    stacked: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in COLUMNS}
    campaigns = tuple(name for part in parts for name in part.campaigns)
    values: dict[int, Floats] = {}
    for part in parts:
        for n, known in part.values.items():
            if not np.array_equal(values.setdefault(n, known), known):
                raise ModelError(f"Two scales have {n} levels that mean different things. Fit them apart.")
    dropped = sum(part.dropped for part in parts)
    return TrainingData(terms=parts[0].terms, **stacked, campaigns=campaigns, values=values, dropped=dropped)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Standardised terms, and the columns that are fitted.

    Parameters
    ----------
    centre, spread, shrinkage
        The mean and standard deviation of each term, and the number of documents by which it is shrunk.
    constant
        The terms without a coefficient, as they are the same for every pair.
    names, directions
        The name of each column, and the coefficient of each term in it, shape (term, column).
    columns
        Their values, shape (observation, column).
    """

    centre: Floats
    spread: Floats
    shrinkage: Floats
    constant: Bools
    names: tuple[str, ...]
    directions: Floats
    columns: Floats


@dataclass(frozen=True, repr=False)
class OrdinalModel(Record):
    """The specification of an ordinal model: its terms and fitting options.

    Parameters
    ----------
    terms
        Features, their logarithms and products, as in ``("log(fSYS)", "aDOC", "fSYS:OV")``.
    ridge
        The weight of a penalty on the standardised coefficients; 0 for maximum likelihood.
    balanced
        Whether every campaign has equal weight, regardless of its number of pairs.
    base
        A fitted model of some of the terms: the ratios of their coefficients are kept, and only their common scale is
        fitted.
    """

    terms: tuple[str, ...]
    ridge: float = 0.0
    balanced: bool = False
    base: FittedOrdinal | None = None

    def __post_init__(self) -> None:
        missing = set(() if self.base is None else self.base.terms) - set(self.terms)
        if missing:
            raise ModelError(f"The base has terms that the model lacks: {', '.join(sorted(missing))}.")

    def fit(self, collections: Sequence[Collection], *, depth: int) -> FittedOrdinal:
        """Fit on the judged pairs of past campaigns, of any scales, with judgments of other pairs in checkpoints."""
        return self.fit_data(training_data(collections, self.terms, depth=depth))

    def standardise(self, data: TrainingData) -> Standardised:
        """Return the terms shrunk and standardised, and the columns to fit."""
        by = np.array([shrinkage(term) for term in self.terms])
        known = np.where(np.isnan(data.x), 0.0, data.x)
        centre = known.sum(axis=0) / np.maximum((~np.isnan(data.x)).sum(axis=0), 1)
        x = shrunk(data.x, data.number, centre, by)
        spread = x.std(axis=0)
        constant = spread < 1e-12
        spread = np.where(constant, 1.0, spread)
        names = [t for t, c in zip(self.terms, constant, strict=True) if not c]
        directions = np.eye(len(self.terms))[:, ~constant]
        if self.base is not None:
            given = dict(zip(self.base.terms, np.array(self.base.coefficients) / self.base.spread, strict=True))
            own = [i for i, name in enumerate(names) if name not in given]
            slope = np.array([given.get(t, 0.0) for t in self.terms]) * spread
            names = ["base", *(names[i] for i in own)]
            directions = np.column_stack([slope, directions[:, own]])
            constant &= slope == 0
        return Standardised(centre, spread, by, constant, tuple(names), directions, (x - centre) / spread @ directions)

    def fit_data(self, data: TrainingData) -> FittedOrdinal:
        """Fit on judged pairs with computed terms."""
        if len(data) == 0:
            raise ModelError(f"No judged pair has all of {', '.join(self.terms)}: there is nothing to learn from.")
        to_fit = self.standardise(data)
        notes = []
        constant = [t for t, c in zip(self.terms, to_fit.constant, strict=True) if c]
        if constant:
            notes.append(f"{', '.join(constant)} is the same for every pair: its coefficient is 0.")
        weight = np.ones(len(data))
        if self.balanced:
            count = np.bincount(data.campaign)
            weight = (len(data) / np.count_nonzero(count) / np.maximum(count, 1))[data.campaign]
        rows = Observations(to_fit.columns, data.level, data.n_levels, weight)
        try:
            fit = fit_cumulative(rows, ridge=self.ridge)
        except SeparationError:
            notes.append(f"The terms separate the levels: fitted with a ridge of {RIDGE:g}.")
            fit = fit_cumulative(rows, ridge=RIDGE)
        notes += [f"Level {lev} of {n} was never seen: its cutpoint rests on half a judgment." for n, lev in fit.unseen]
        if len(np.unique(data.query)) == 1:
            notes.append("All pairs are of one query: what the model says of other queries is a guess.")
        expand = block_diag(np.eye(sum(len(c) for c in fit.cuts.values())), to_fit.directions)
        covariance = expand @ fit.covariance @ expand.T
        return FittedOrdinal(
            terms=self.terms,
            centre=tuple(map(float, to_fit.centre)),
            spread=tuple(map(float, to_fit.spread)),
            coefficients=tuple(map(float, to_fit.directions @ fit.beta)),
            cutpoints={n: tuple(map(float, c)) for n, c in fit.cuts.items()},
            covariance=tuple(tuple(map(float, row)) for row in covariance),
            log_likelihood=fit.log_likelihood,
            notes=tuple(notes),
            shrinkage=tuple(map(float, to_fit.shrinkage)) if to_fit.shrinkage.any() else (),
        )


@dataclass(frozen=True, repr=False)
class FittedOrdinal(Record):
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
    shrinkage
        The number of documents at its centre that are added to each mean over judgments; 0 for terms that are used as
        they are, and empty if all are. With shrinkage, a mean over no document is the centre; without, it is missing.
    """

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: tuple[float, ...]
    cutpoints: Mapping[int, tuple[float, ...]]
    covariance: tuple[tuple[float, ...], ...] = ()
    log_likelihood: float = float("nan")
    notes: tuple[str, ...] = ()
    shrinkage: tuple[float, ...] = ()
    kind = "ordinal"

    def levels(self, scale: Scale) -> Codes:
        """Return the levels of the scale."""
        return scale.levels

    def linear_predictor(self, x: Floats, number: Floats) -> Floats:
        """Return the linear predictor for terms, and the number of judged documents in each, of shape (.., term)."""
        centre = np.array(self.centre)
        if self.shrinkage:
            x = shrunk(x, number, centre, np.array(self.shrinkage))
        return np.asarray((x - centre) / np.array(self.spread) @ np.array(self.coefficients))

    def cuts(self, n_levels: int) -> Floats:
        """Return the cutpoints of a scale: its own, or those of the nearest size, with the same span divided evenly."""
        if n_levels in self.cutpoints:
            return np.array(self.cutpoints[n_levels])
        nearest = min(self.cutpoints, key=lambda n: (abs(n - n_levels), n))
        known = np.array(self.cutpoints[nearest])
        last = known[-1] if len(known) > 1 else known[0] - 1.0
        return np.linspace(known[0], last, n_levels - 1)

    def probabilities(self, problem: Problem) -> Floats:
        """Return P(level) of every pair with complete terms, NaN rows elsewhere, shape (pair, level)."""
        names, n_levels = feature_names(self.terms), len(problem.scale.levels)
        unknown = np.full((len(problem.pool), n_levels), np.nan)
        if not needs(names) - {"judgments"} <= set(problem.collection.has):
            return unknown
        try:
            table = compute_features(problem, names)
        except FeatureError:  # a column that this campaign does not have
            return unknown
        eta = self.linear_predictor(table.design(self.terms), table.numbers_of(self.terms))
        return level_probabilities(self.cuts(n_levels), eta)

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
            **({"shrinkage": list(self.shrinkage)} if self.shrinkage else {}),
        }
