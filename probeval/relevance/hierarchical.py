r"""The hierarchical model: what it says. [hier]

.. math:: \text{logit}\,P(R_d \ge \ell) = \alpha_{q\ell} + x_d\beta + u_q + t_q\,\text{pop}_d
          + \frac{1}{\sqrt{n_d}} \sum_{s \ni d} (a_s + c_{sq} + m_{\text{team}(s)}) + w_{q,\text{group}(d)},\quad
          \alpha_{q\ell} = \bar\alpha + e^{v_q} (\alpha_\ell - \bar\alpha)

A query can be hard throughout (u) and follow popularity more or less (t); a system can be better than it is popular
(a), its team too (m), and differently so on each query (c); a group of documents can suit a query (w); the grades of a
query can lie closer together or farther apart than those of others (v). System and team effects sum to zero. The
:math:`n_d` systems that retrieved a document count by the root of their number: that a good system has it says much,
whoever else has it too. Past campaigns give the prior of everything, variances included, for a campaign not yet seen;
the judgments at hand go on from there. :mod:`probeval.relevance.laplace` and :mod:`probeval.relevance.nuts` compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.features import compute_features, feature_names
from probeval.features.external import groups_in_queries

__all__ = ["Design", "HierarchicalPrior", "LabelWorth", "Normal", "stretched"]

POPULARITY = "log(fSYS)"
LOGISTIC = np.pi**2 / 3  # the variance of the logistic
RIDGE = 0.05  # on the correlations of labels: sources repeat one another
DOUBT, LEAST, UNKNOWN = 0.35, 0.6, 1.0  # of a source's worth: relative and least sd, and that of one never seen
CUT, GAP = 0.5, 0.25  # how far cutpoints given labels differ between campaigns: sd of the first, relative sd of gaps
GLOBAL, STRETCH = ("team", "system"), "stretch"


@dataclass(frozen=True)
class Normal:
    """A normal prior: its mean and standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not self.sd > 0:
            raise ModelError(f"A prior needs a positive standard deviation, got {self.sd:g}.")

    @property
    def square(self) -> float:
        """The mean of exp(2x): of a variance, where this is the prior of a log standard deviation."""
        return float(np.exp(2 * self.mean + 2 * self.sd**2))

    def times(self, factor: float) -> Normal:
        """The prior of so many times the value."""
        return Normal(factor * self.mean, factor * self.sd)


@dataclass(frozen=True)
class LabelWorth:
    r"""What labels by machines are worth, learned where labels and grades are both known.

    Labels are evidence about relevance, never relevance: each source is a term whose coefficient has a prior and goes
    on learning, so that a bad source is found out. The prior depends on which other sources there are, as they repeat
    one another: from the correlations :math:`C` of the standardised labels and their covariances :math:`s` with the
    signal in relevance (in logits), the sources at hand have the coefficients :math:`C^{-1}s`, less what the missing
    ones leave to noise.

    Parameters
    ----------
    sources
        Names of the label columns.
    centre, spread
        What standardises each.
    correlation
        Of the standardised labels, shape (source, source).
    signal
        The covariance of each with the signal.
    variance
        The variance of the signal, all sources known.
    cuts
        The cutpoints given the labels, for the number of levels they were learned on: labels tell the level too.
    """

    sources: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...]
    signal: tuple[float, ...]
    variance: float
    cuts: tuple[float, ...]

    def weights(self, sources: Sequence[str]) -> tuple[dict[str, float], float]:
        """The coefficients of those of the sources that are known, and the share of relevance that they explain."""
        known = [s for s in sources if s in self.sources]
        at = [self.sources.index(s) for s in known]
        inside = np.array(self.correlation)[np.ix_(at, at)] + RIDGE * np.eye(len(at))
        signal = np.array(self.signal)[at]
        weights = np.linalg.solve(inside, signal) if at else signal
        seen = min(float(weights @ signal), self.variance)
        weights = weights / np.sqrt(1 + (self.variance - seen) / LOGISTIC)  # what is lost is noise to the rest
        return {s: float(w) for s, w in zip(known, weights, strict=True)}, seen / (self.variance + LOGISTIC)

    def cut_priors(self, n_levels: int, explained: float) -> tuple[Normal, ...] | None:
        """The priors of the first cutpoint and the gaps given labels, or None where labels say nothing of them."""
        if n_levels != len(self.cuts) + 1 or explained == 0:
            return None
        full = self.variance / (self.variance + LOGISTIC)
        sharpness = np.sqrt((1 - full) / (1 - explained))  # of what is left to noise, against all sources known
        first, gaps = self.cuts[0] * sharpness, -np.diff(self.cuts) * sharpness
        return (Normal(float(first), CUT), *(Normal(float(g), GAP * float(g)) for g in gaps))

    def coefficients(self, sources: Sequence[str]) -> tuple[Normal, ...]:
        """The priors of these sources' standardised coefficients; one never seen may be worth something or not."""
        worth, _ = self.weights(sources)
        share = float(np.sqrt(max(len(sources), 1)))
        return tuple(
            Normal(worth[s], DOUBT * abs(worth[s]) + LEAST / share) if s in worth else Normal(0.0, UNKNOWN / share)
            for s in sources
        )

    def standardised(self, labels: LabelTable, pool: Pool) -> Floats:
        """The labels of a pool's pairs, standardised, 0 where missing, shape (pair, source)."""
        values = labels.on(pool)
        out = np.zeros(values.shape)
        for i, source in enumerate(labels.sources):
            column = values[:, i]
            if source in self.sources:
                at = self.sources.index(source)
                centre, spread = self.centre[at], self.spread[at]
            elif np.isnan(column).all():
                continue
            else:
                centre, spread = float(np.nanmean(column)), float(np.nanstd(column)) or 1.0
            out[:, i] = (column - centre) / spread
        return np.nan_to_num(out)

    def to_dict(self) -> dict[str, Any]:
        """The worth as plain data."""
        return {
            "sources": list(self.sources),
            "centre": list(self.centre),
            "spread": list(self.spread),
            "correlation": [list(row) for row in self.correlation],
            "signal": list(self.signal),
            "variance": self.variance,
            "cuts": list(self.cuts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelWorth:
        """The worth from plain data."""
        return cls(
            sources=tuple(data["sources"]),
            centre=tuple(map(float, data["centre"])),
            spread=tuple(map(float, data["spread"])),
            correlation=tuple(tuple(map(float, row)) for row in data["correlation"]),
            signal=tuple(map(float, data["signal"])),
            variance=float(data["variance"]),
            cuts=tuple(map(float, data["cuts"])),
        )


@dataclass(frozen=True)
class HierarchicalPrior:
    """What past campaigns teach about the next one.

    Parameters
    ----------
    terms
        The model's terms, each standardised by ``centre`` and ``spread``; a missing term counts as average.
    coefficients
        The prior of each standardised term's coefficient.
    first_cut, gaps, gap
        The priors of the first cutpoint, of the gaps between cutpoints by number of levels, and of a gap of a number of
        levels never seen.
    log_sds
        The prior of the log standard deviation of each effect: ``query``, ``slope``, ``team``, ``system``,
        ``interaction``, ``stretch``, and ``group:COLUMN`` for groupings of documents.
    labels
        What labels by machines are worth; None where that was not learned, and labels are then not looked at.
    """

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: Mapping[int, tuple[Normal, ...]]
    gap: Normal
    log_sds: Mapping[str, Normal] = field(default_factory=dict)
    labels: LabelWorth | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groupings of documents that have effects."""
        return tuple(name.removeprefix("group:") for name in self.log_sds if name.startswith("group:"))

    def cut_priors(self, n_levels: int) -> tuple[Normal, ...]:
        """The priors of the first cutpoint and of the gaps after it."""
        return (self.first_cut, *self.gaps.get(n_levels, (self.gap,) * (n_levels - 2)))

    def to_dict(self) -> dict[str, Any]:
        """The prior as plain data."""
        return {
            "terms": list(self.terms),
            "centre": list(self.centre),
            "spread": list(self.spread),
            "coefficients": [_pair(c) for c in self.coefficients],
            "first_cut": _pair(self.first_cut),
            "gaps": {str(n): [_pair(g) for g in gaps] for n, gaps in self.gaps.items()},
            "gap": _pair(self.gap),
            "log_sds": {name: _pair(n) for name, n in self.log_sds.items()},
            "labels": None if self.labels is None else self.labels.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HierarchicalPrior:
        """The prior from plain data."""
        return cls(
            terms=tuple(data["terms"]),
            centre=tuple(map(float, data["centre"])),
            spread=tuple(map(float, data["spread"])),
            coefficients=tuple(Normal(*map(float, c)) for c in data["coefficients"]),
            first_cut=Normal(*map(float, data["first_cut"])),
            gaps={int(n): tuple(Normal(*map(float, g)) for g in gaps) for n, gaps in data["gaps"].items()},
            gap=Normal(*map(float, data["gap"])),
            log_sds={name: Normal(*map(float, n)) for name, n in data["log_sds"].items()},
            labels=None if data["labels"] is None else LabelWorth.from_dict(data["labels"]),
        )


def _pair(normal: Normal) -> list[float]:
    return [normal.mean, normal.sd]


@dataclass(frozen=True, eq=False)
class Design:
    """A campaign as the model sees it: what each effect adds to each pair's logit.

    Parameters
    ----------
    pool, scale
        The pairs, and their grades.
    terms, coefficients
        Standardised terms, shape (pair, term), labels at their end; and the prior of each one's coefficient.
    cuts, log_sds
        The priors of the first cutpoint and the gaps, and of the effects' log standard deviations.
    team, system
        What each team and system weighs in each pair, centred so that effects sum to zero, shapes (pair, team) and
        (pair, system).
    local
        For each effect that lives within one query, its columns, shape (pair, column).
    """

    pool: Pool
    scale: Scale
    terms: Floats
    coefficients: tuple[Normal, ...]
    cuts: tuple[Normal, ...]
    log_sds: Mapping[str, Normal]
    team: Floats
    system: Floats
    local: Mapping[str, Floats]

    def __post_init__(self) -> None:
        for name in ("terms", "team", "system"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def of(cls, prior: HierarchicalPrior, collection: Collection, *, depth: int, scale: Scale) -> Design:
        """The design of a campaign's pairs in the top ``depth``; without teams, every system is one of its own."""
        if collection.runs.teams is None:
            collection = replace(collection, runs=collection.runs.with_teams({}))
        table = compute_features(collection, feature_names((*prior.terms, POPULARITY)), depth=depth, scale=scale)
        runs = collection.runs.top(depth)
        standard = (table.design(prior.terms) - np.array(prior.centre)) / np.array(prior.spread)
        popular = table.design([POPULARITY])
        system, query, rank = np.nonzero(runs.retrieved)
        weight = np.zeros((len(runs.pool), len(runs.systems)))
        weight[runs.pairs[system, query, rank], system] = 1.0
        weight /= np.sqrt(weight.sum(axis=1, keepdims=True))
        weight -= weight.mean(axis=1, keepdims=True)
        team = pd.factorize(np.array(runs.teams, dtype=object))[0]
        teams = weight @ np.eye(int(team.max(initial=0)) + 1)[team]
        local = {
            "query": np.ones((len(runs.pool), 1)),
            "slope": popular - popular.mean(),
            "interaction": weight,
            **{f"group:{column}": _members(collection, column, runs.pool) for column in prior.groups},
        }
        terms, coefficients, log_sds = np.nan_to_num(standard), prior.coefficients, prior.log_sds
        cuts = prior.cut_priors(len(scale.levels))
        if prior.labels is not None and collection.labels is not None:
            sources = collection.labels.sources
            terms = np.concatenate([terms, prior.labels.standardised(collection.labels, runs.pool)], axis=1)
            # What labels explain is no longer there for the other terms and the effects to explain.
            explained = prior.labels.weights(sources)[1]
            coefficients = tuple(Normal(c.mean * (1 - explained), c.sd) for c in coefficients)
            log_sds = {
                k: n if k == STRETCH else Normal(n.mean + np.log(1 - explained) / 2, n.sd) for k, n in log_sds.items()
            }
            # Labels were learned without the effects, which are noise to them: with the effects they are sharper.
            columns = {**local, "team": teams, "system": weight}
            noise = sum(log_sds[k].square * float((f**2).sum(axis=1).mean()) for k, f in columns.items())
            sharper = float(np.sqrt(1 + noise / LOGISTIC))
            coefficients += tuple(c.times(sharper) for c in prior.labels.coefficients(sources))
            known = prior.labels.cut_priors(len(scale.levels), explained)
            cuts = cuts if known is None else tuple(c.times(sharper) for c in known)
        return cls(runs.pool, scale, terms, coefficients, cuts, log_sds, teams, weight, local)

    @property
    def n_levels(self) -> int:
        """How many levels the scale has for the model."""
        return len(self.scale.levels)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of effects, each with a variance; a scale of two levels has nothing to stretch."""
        kinds = (*self.local, *GLOBAL, *((STRETCH,) if self.n_levels > 2 else ()))
        missing = [kind for kind in kinds if kind not in self.log_sds]
        if missing:
            raise ModelError(f"The prior has no variance for {', '.join(missing)}.")
        return kinds

    @cached_property
    def global_columns(self) -> Floats:
        """Terms, teams and systems side by side, shape (pair, column)."""
        return frozen(np.concatenate([self.terms, self.team, self.system], axis=1))


def _members(collection: Collection, column: str, pool: Pool) -> Floats:
    """Which of its query's groups each pair is in, one column a group, numbered within each query."""
    number = groups_in_queries(collection.metadata, column, pool)
    first = np.full(len(pool.queries), np.iinfo(np.int64).max)
    known = number >= 0
    np.minimum.at(first, pool.query[known], number[known])
    within: Ints = np.where(known, number - first[pool.query], -1)
    return np.equal(within[:, None], np.arange(int(within.max(initial=0)) + 1)).astype(float)


def stretched(first: Floats, gaps: Floats, stretch: Floats) -> Floats:
    """Every query's cutpoints: the campaign's, drawn apart or together around their middle.

    Parameters
    ----------
    first, gaps
        The first cutpoint and the gaps after it, shapes (draw,) and (draw, gap).
    stretch
        By how much, as a logarithm, shape (draw, query).

    Returns
    -------
    The cutpoints, shape (draw, query, cut).

    Examples
    --------
    >>> stretched(np.array([1.0]), np.array([[2.0]]), np.log([[1.0, 1.5]]))
    array([[[ 1. , -1. ],
            [ 1.5, -1.5]]])
    """
    below = -np.cumsum(np.pad(gaps, ((0, 0), (1, 0))), axis=1)
    middle = below.mean(axis=1, keepdims=True)
    apart = np.exp(stretch)[..., None] * (below - middle)[:, None, :]
    return np.asarray((first[:, None] + middle)[:, None, :] + apart)
