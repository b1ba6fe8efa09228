r"""The hierarchical model by NUTS (PyMC), for the final analysis: slow, and free of Laplace's normal approximation.

Only what the judgments speak of is sampled. The effects of one kind within one query enter its judged pairs as
:math:`F b` with :math:`b \sim N(0, \sigma^2 I)`; with :math:`F = U S V'` that is :math:`\sigma U S z`, as many standard
normal :math:`z` as :math:`F` has rank. The other directions of :math:`b`, and the effects of queries without judgments,
keep their prior given :math:`\sigma`, and are drawn from it afterwards. Team and system effects go the same way, with
all pairs as one block; their columns sum to zero, so the direction that is aliased with the cutpoints is never sampled.
Query effects are sampled as their mean, which joins the first cutpoint, and zero-sum differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from probeval.arrays import Codes, Floats, Ints
from probeval.bayes import NutsDiagnostics, arviz_data, diagnose, load, sample
from probeval.errors import ModelError
from probeval.relevance.effects.normal import Normal
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import GLOBAL, STRETCH, Design, stretched

__all__ = ["NutsDiagnostics", "NutsFit", "fit_nuts"]

FLAT = 1e-9  # a singular value below this share of the largest is none


@dataclass(frozen=True, eq=False)
class Layout:
    """The judged pairs in the directions that they can tell apart.

    Parameters
    ----------
    design, prior
        The campaign with the priors of all parts of the model, and what the past teaches, for the names of terms.
    kinds
        The kinds of effects, in the order of their log standard deviations.
    pairs, level
        The judged pairs, and their levels, shape (judged,).
    bases
        For each kind and block (query, or all pairs at once for global effects) the directions that are sampled, as
        orthonormal columns, shape (column, direction), and where their coordinates begin.
    coordinate_kind
        The kind of each sampled coordinate, shape (coordinate,).
    weight, place
        What coordinates add to each judged pair's logit, and which ones these are, shape (judged, slot).
    queries
        The queries with judged pairs: their effects are the last coordinates.
    """

    design: Design
    prior: HierarchicalPrior
    kinds: tuple[str, ...]
    pairs: Ints
    level: Ints
    bases: Mapping[str, tuple[tuple[Floats, int], ...]]
    coordinate_kind: Ints
    weight: Floats
    place: Ints
    queries: Ints

    @classmethod
    def of(cls, design: Design, prior: HierarchicalPrior, judged: Codes) -> Layout:
        """Lay out the judged pairs (grades as positions on the scale, negative where there is none)."""
        kinds = design.kinds
        pairs = np.flatnonzero(judged >= 0)
        query = design.pool.query[pairs]
        queries = np.unique(query)
        bases: dict[str, tuple[tuple[Floats, int], ...]] = {}
        coordinate_kind: list[int] = []
        weights, places = [], []
        for i, kind in enumerate(kinds):
            if kind in ("query", STRETCH):
                continue
            columns = _columns(design, kind)[pairs]
            block = np.zeros(len(pairs), dtype=np.int64) if kind in GLOBAL else query
            mine, parts = [], []
            for b in range(1 if kind in GLOBAL else len(design.pool.queries)):
                rows = np.flatnonzero(block == b)
                scores, basis = _directions(columns[rows])
                mine.append((basis, len(coordinate_kind)))
                parts.append((rows, scores, len(coordinate_kind)))
                coordinate_kind += [i] * basis.shape[1]
            width = max((scores.shape[1] for _, scores, _ in parts), default=0)
            weight, place = np.zeros((len(pairs), width)), np.full((len(pairs), width), -1)
            for rows, scores, first in parts:
                weight[rows, : scores.shape[1]] = scores
                place[rows, : scores.shape[1]] = first + np.arange(scores.shape[1])
            bases[kind] = tuple(mine)
            weights.append(weight)
            places.append(place)
        weights.append(np.ones((len(pairs), 1)))
        places.append(len(coordinate_kind) + np.searchsorted(queries, query)[:, None])
        place = np.concatenate(places, axis=1)
        last = len(coordinate_kind) + len(queries)  # stands for the coordinate that is always 0
        return cls(
            design=design,
            prior=prior,
            kinds=kinds,
            pairs=pairs,
            level=design.scale.level_of(judged)[pairs].astype(np.int64),
            bases=bases,
            coordinate_kind=np.array(coordinate_kind, dtype=np.int64),
            weight=np.concatenate(weights, axis=1),
            place=np.where(place < 0, last, place),
            queries=queries,
        )

    @property
    def cuts(self) -> tuple[Normal, ...]:
        """The priors of the first cutpoint and of the gaps after it."""
        return self.design.cuts

    @property
    def query_kind(self) -> int:
        """Where the queries are among the kinds."""
        return self.kinds.index("query")

    @property
    def query(self) -> Ints:
        """Where each judged pair's query is among the queries with judged pairs, shape (judged,)."""
        return np.searchsorted(self.queries, self.design.pool.query[self.pairs])


@dataclass(frozen=True, eq=False)
class NutsFit:
    """The posterior as draws of NUTS.

    Parameters
    ----------
    layout
        The judged pairs as they were sampled.
    chains
        The sampled parameters, each of shape (chain, draw, ..): ``log_sd`` of each kind, ``intercept`` (the first
        cutpoint and the mean of the judged queries' effects), ``gaps``, ``coefficients``, ``z`` (coordinates of effects
        in units of their standard deviation), ``query`` (zero-sum) and ``stretch`` (of the judged queries, likewise).
    statistics
        What the sampler said of each draw, each of shape (chain, draw).
    """

    layout: Layout
    chains: Mapping[str, Floats]
    statistics: Mapping[str, Floats]

    def __repr__(self) -> str:
        n_chains, n_draws = self.chains["log_sd"].shape[:2]
        return f"<NutsFit: {n_chains} chains of {n_draws:,} draws, {len(self.layout.pairs):,} judged pairs>"

    @property
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each kind's log standard deviation, in normal form."""
        values = self._flat("log_sd")
        moments = zip(values.mean(axis=0), values.std(axis=0), strict=True)
        return {k: Normal(float(m), float(s)) for k, (m, s) in zip(self.layout.kinds, moments, strict=True)}

    def diagnostics(self) -> NutsDiagnostics:
        """R-hat, bulk ESS and divergences; warns where they say that the draws are not to be trusted."""
        return diagnose(self.chains, self.statistics)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws of every pair's linear predictor and every query's cutpoints, shapes (n, pair) and (n, query, cut).

        Each draw of the chains is used once before any is used again.
        """
        total = len(self._flat("log_sd"))
        rounds = [rng.permutation(total) for _ in range(-(-n // total))]
        eta, cuts, _ = self._complete(np.concatenate(rounds)[:n] if n else np.empty(0, dtype=np.int64), rng)
        return eta, cuts

    def to_arviz(self, *, rng: np.random.Generator | None = None) -> Any:
        """ArviZ's form: posterior, posterior predictive, log-likelihood, sampler statistics, observed data.

        ``rng`` draws what was not sampled (effects that no judgment speaks of, predictions); seed 0 when not given.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        layout, design = self.layout, self.layout.design
        shape = self.chains["log_sd"].shape[:2]
        eta, cuts, effects = self._complete(np.arange(shape[0] * shape[1]), rng)
        eta = eta[:, layout.pairs]
        cuts = cuts[:, design.pool.query[layout.pairs]]
        log_likelihood = _log_likelihood(eta, cuts, layout.level)
        reach = expit(eta[..., None] + cuts)
        predicted = (rng.random(eta.shape)[..., None] < reach).sum(axis=-1)
        n_labels = design.terms.shape[1] - len(layout.prior.terms)
        posterior = {
            "cutpoint": effects["cutpoint"],
            "coefficient": self._flat("coefficients"),
            "sd": np.exp(self._flat("log_sd")),
            "query_effect": effects["query"],
            "slope_effect": effects["slope"],
            "stretch_effect": effects["stretch"],
            "team_effect": effects["team"],
            "system_effect": effects["system"],
        }
        groups = {
            "posterior": {k: v.reshape(*shape, *v.shape[1:]) for k, v in posterior.items()},
            "posterior_predictive": {"level": predicted.reshape(*shape, -1)},
            "log_likelihood": {"level": log_likelihood.reshape(*shape, -1)},
            "sample_stats": dict(self.statistics),
            "observed_data": {"level": layout.level},
        }
        pair = [f"{q} {d}" for q, d in _names(design, layout.pairs)]
        coords = {
            "cut": np.arange(1, len(layout.cuts) + 1),
            "term": [*layout.prior.terms, *(f"label {i + 1}" for i in range(n_labels))],
            "kind": list(layout.kinds),
            "query": [str(q) for q in design.pool.queries],
            "team": np.arange(design.team.shape[1]),
            "system": np.arange(design.system.shape[1]),
            "pair": pair,
        }
        dims = {
            "cutpoint": ["cut"],
            "coefficient": ["term"],
            "sd": ["kind"],
            "query_effect": ["query"],
            "slope_effect": ["query"],
            "stretch_effect": ["query"],
            "team_effect": ["team"],
            "system_effect": ["system"],
            "level": ["pair"],
        }
        return arviz_data(groups, coords, dims)

    def _flat(self, name: str) -> Floats:
        """A sampled parameter with the chains end to end, shape (draw, ..)."""
        values = self.chains[name]
        return np.asarray(values.reshape(values.shape[0] * values.shape[1], *values.shape[2:]))

    def _complete(self, rows: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, dict[str, Floats]]:
        """The linear predictors, cutpoints and effects of some draws, with what was not sampled drawn from its prior.

        Effects have shape (draw, query) for queries, slopes and stretches, (draw, column) for teams and systems.
        """
        layout, design = self.layout, self.layout.design
        sds = dict(zip(layout.kinds, np.exp(self._flat("log_sd")[rows]).T, strict=True))
        z = self._flat("z")[rows]
        first = self._first_cut(rows, sds["query"], rng)
        eta = self._flat("coefficients")[rows] @ design.terms.T
        hard = rng.standard_normal((len(rows), len(design.pool.queries))) * sds["query"][:, None]
        if len(layout.queries):
            rest = self._flat("intercept")[rows] - first
            hard[:, layout.queries] = self._flat("query")[rows] * sds["query"][:, None] + rest[:, None]
        eta += hard[:, design.pool.query]
        stretch = rng.standard_normal(hard.shape)
        stretch[:, layout.queries] = self._flat("stretch")[rows]
        stretch *= sds.get(STRETCH, np.zeros(len(rows)))[:, None]
        gaps = self._flat("gaps")[rows]
        effects = {
            "query": hard,
            "slope": np.zeros_like(hard),
            "stretch": stretch,
            "cutpoint": stretched(first, gaps, np.zeros((len(rows), 1)))[:, 0],
        }
        edges = np.searchsorted(design.pool.query, np.arange(len(design.pool.queries) + 1))
        for kind, bases in layout.bases.items():
            columns = _columns(design, kind)
            for b, (basis, start) in enumerate(bases):
                mine = slice(None) if kind in GLOBAL else slice(edges[b], edges[b + 1])
                effect = rng.standard_normal((len(rows), columns.shape[1]))
                effect += (z[:, start : start + basis.shape[1]] - effect @ basis) @ basis.T
                effect *= sds[kind][:, None]
                eta[:, mine] += effect @ columns[mine].T
                if kind == "slope":
                    effects["slope"][:, b] = effect[:, 0]
                elif kind in GLOBAL:
                    effects[kind] = effect - effect.mean(axis=1, keepdims=True)
        return eta, stretched(first, gaps, stretch), effects

    def _first_cut(self, rows: Ints, sd: Floats, rng: np.random.Generator) -> Floats:
        """The first cutpoint given its sum with the mean effect of the judged queries, both normal, shape (draw,)."""
        intercept, n = self._flat("intercept")[rows], len(self.layout.queries)
        if n == 0:
            return intercept
        first = self.layout.cuts[0]
        own, others = first.sd**2, sd**2 / n
        mean = first.mean + own / (own + others) * (intercept - first.mean)
        return np.asarray(mean + np.sqrt(own * others / (own + others)) * rng.standard_normal(len(rows)))


def fit_nuts(
    design: Design,
    prior: HierarchicalPrior,
    judged: Codes,
    *,
    rng: np.random.Generator,
    draws: int = 2000,
    tune: int = 1000,
    chains: int = 2,
    target_accept: float = 0.9,
    progress: bool = False,
) -> NutsFit:
    """Sample the model given the judged pairs (grades as positions on the scale, negative where there is none).

    Warns where R-hat, the effective sample size or divergences say that the draws are not to be trusted.

    Parameters
    ----------
    design, prior, judged
        The campaign, what the past teaches, and what is judged, shape (pair,).
    rng
        Where the sampler's seed comes from.
    draws, tune, chains, target_accept
        Draws a chain to keep and, before them, to tune on; how many chains; how careful the steps are. Twice 2,000
        draws are what R-hat below 1.01 takes where hundreds of effects are sampled.
    progress
        Whether to show a progress bar.
    """
    if draws < 4 or chains < 1 or tune < 0:
        raise ModelError(f"NUTS needs at least a chain of 4 draws, got {chains} of {draws} after {tune}.")
    layout = Layout.of(design, prior, judged)
    parameters, statistics = sample(
        _model(layout),
        draws=draws,
        tune=tune,
        chains=chains,
        target_accept=target_accept,
        random_seed=int(rng.integers(2**31)),
        progressbar=progress,
    )
    shape = parameters["log_sd"].shape[:2]
    empty = {
        "gaps": len(layout.cuts) - 1,
        "coefficients": design.terms.shape[1],
        "z": len(layout.coordinate_kind),
        "query": len(layout.queries),
        "stretch": len(layout.queries),
    }
    for name, size in empty.items():
        parameters.setdefault(name, np.zeros((*shape, size)))
    fit = NutsFit(layout, parameters, statistics)
    fit.diagnostics()
    return fit


def _columns(design: Design, kind: str) -> Floats:
    """What each effect of a kind adds to each pair's logit, shape (pair, column)."""
    return np.asarray(design.local[kind] if kind in design.local else getattr(design, kind))


def _directions(columns: Floats) -> tuple[Floats, Floats]:
    """The directions of the effects that reach some rows: what each adds to each row, and the orthonormal directions.

    >>> scores, basis = _directions(np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> scores.T, abs(basis.T)
    (array([[2., 1.]]), array([[1., 0., 0.]]))
    """
    if not columns.size:
        return np.zeros((len(columns), 0)), np.zeros((columns.shape[1], 0))
    _, size, turned = np.linalg.svd(columns, full_matrices=False)
    basis = turned[size > FLAT * max(float(size[0]), FLAT)].T
    basis = basis * np.where(basis.sum(axis=0) < 0, -1.0, 1.0)
    return columns @ basis, basis


def _log_likelihood(eta: Floats, cuts: Floats, level: Ints) -> Floats:
    """The log probability of each judged level, shape (draw, judged), its cutpoints of shape (draw, judged, cut).

    With u and v the logits of reaching the level and the next, F(u) - F(v) = F(u) F(-v) (1 - exp(v - u)), which does
    not cancel.
    """
    top, pair = cuts.shape[2], np.arange(len(level))
    out = np.where(level > 0, log_expit(eta + cuts[:, pair, np.maximum(level - 1, 0)]), 0.0)
    out = out + np.where(level < top, log_expit(-eta - cuts[:, pair, np.minimum(level, top - 1)]), 0.0)
    between = np.flatnonzero((level > 0) & (level < top))
    gap = cuts[:, between, level[between] - 1] - cuts[:, between, level[between]]
    out[:, between] += np.log(-np.expm1(-gap))
    return np.asarray(out)


def _names(design: Design, pairs: Ints) -> list[tuple[str, str]]:
    pool = design.pool
    return [(str(pool.queries[q]), str(pool.docs[d])) for q, d in zip(pool.query[pairs], pool.doc[pairs], strict=True)]


def _model(layout: Layout) -> Any:
    """The model of the judged pairs in PyMC."""
    pm, pt = load("pymc"), load("pytensor.tensor")
    design, kinds = layout.design, layout.kinds
    first, *gap_priors = layout.cuts
    n_queries, n_coordinates = len(layout.queries), len(layout.coordinate_kind)
    with pm.Model() as model:
        scales = [design.log_sds[kind] for kind in kinds]
        log_sd = pm.Normal("log_sd", np.array([p.mean for p in scales]), np.array([p.sd for p in scales]))
        sd = pt.exp(log_sd)
        mean_sd = pt.sqrt(first.sd**2 + sd[layout.query_kind] ** 2 / n_queries) if n_queries else first.sd
        intercept = pm.Normal("intercept", first.mean, mean_sd)
        gap = None
        if gap_priors:
            mean, spread = np.array([p.mean for p in gap_priors]), np.array([p.sd for p in gap_priors])
            gap = pm.TruncatedNormal("gaps", mean, spread, lower=0.0)
        eta = intercept
        if design.coefficients:
            mean, spread = (np.array([getattr(p, name) for p in design.coefficients]) for name in ("mean", "sd"))
            eta = eta + design.terms[layout.pairs] @ pm.Normal("coefficients", mean, spread)
        parts = []
        if n_coordinates:
            parts.append(pm.Normal("z", 0.0, 1.0, shape=n_coordinates) * sd[layout.coordinate_kind])
        if n_queries > 1:
            parts.append(pm.ZeroSumNormal("query", 1.0, shape=n_queries) * sd[layout.query_kind])
        elif n_queries == 1:
            parts.append(np.zeros(1))  # its effect is all in the intercept
        if n_queries:
            coordinates = pt.concatenate([*parts, np.zeros(1)])
            eta = eta + (layout.weight * coordinates[layout.place]).sum(axis=1)
            stretch = None
            if STRETCH in kinds:
                log_stretch = pm.Normal("stretch", 0.0, 1.0, shape=n_queries) * sd[kinds.index(STRETCH)]
                stretch = pt.exp(log_stretch)[layout.query]
            pm.Potential("judged", _log_probability(eta, gap, stretch, layout))
    return model


def _log_probability(eta: Any, gap: Any, stretch: Any, layout: Layout) -> Any:
    """As :func:`_log_likelihood`, in PyTensor and summed; ``eta`` holds the first cutpoint."""
    pt = load("pytensor.tensor")
    level, top = layout.level, len(layout.cuts)
    some, below = np.flatnonzero(level > 0), np.flatnonzero(level < top)
    total = pt.as_tensor(0.0)
    if gap is None:
        return total - pt.softplus(-eta[some]).sum() - pt.softplus(eta[below]).sum()
    cuts = pt.concatenate([np.zeros(1), -pt.cumsum(gap)])
    middle = cuts.mean()
    apart = cuts - middle
    if len(some):
        total -= pt.softplus(-(eta[some] + middle + stretch[some] * apart[level[some] - 1])).sum()
    if len(below):
        total -= pt.softplus(eta[below] + middle + stretch[below] * apart[level[below]]).sum()
    between = np.flatnonzero((level > 0) & (level < top))
    if len(between):
        total += pt.log1mexp(-gap[level[between] - 1] * stretch[between]).sum()
    return total
