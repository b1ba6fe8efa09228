r"""The hierarchical model: what it says. [hier]

.. math:: \text{logit}\,P(R_d \ge \ell) = \alpha_\ell + x_d\beta + u_q + t_q\,\text{pop}_d
          + \overline{(a_s + c_{sq})}_{s \ni d} + \overline{m_{\text{team}(s)}}_{s \ni d} + w_{q,\text{group}(d)}

A query can be hard throughout (u) and follow popularity more or less (t); a system can be better than it is popular
(a), its team too (m), and differently so on each query (c); a group of documents can suit a query (w). System and team
effects sum to zero. Past campaigns give the prior of everything, variances included, for a campaign not yet seen; the
judgments at hand go on from there. :mod:`probeval.relevance.laplace` and :mod:`probeval.relevance.nuts` compute it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.features import compute_features, feature_names
from probeval.features.external import groups_in_queries

__all__ = ["Design", "HierarchicalPrior", "Normal"]

POPULARITY = "log(fSYS)"
LOCAL = ("query", "slope", "interaction")  # effects that live within one query, with the group effects
GLOBAL = ("team", "system")


@dataclass(frozen=True)
class Normal:
    """A normal prior: its mean and standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not self.sd > 0:
            raise ModelError(f"A prior needs a positive standard deviation, got {self.sd:g}.")


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
        ``interaction``, and ``group:COLUMN`` for groupings of documents.
    """

    terms: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: tuple[Normal, ...]
    first_cut: Normal
    gaps: Mapping[int, tuple[Normal, ...]]
    gap: Normal
    log_sds: Mapping[str, Normal] = field(default_factory=dict)

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
    terms
        Standardised terms, shape (pair, term).
    team, system
        Shares of each pair's systems in each team and system, centred so that effects sum to zero, shapes (pair, team)
        and (pair, system).
    local
        For each effect that lives within one query, its columns, shape (pair, column).
    """

    pool: Pool
    scale: Scale
    terms: Floats
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
        share = np.zeros((len(runs.pool), len(runs.systems)))
        share[runs.pairs[system, query, rank], system] = 1.0
        share /= share.sum(axis=1, keepdims=True)
        team = pd.factorize(np.array(runs.teams, dtype=object))[0]
        teams = share @ np.eye(int(team.max(initial=0)) + 1)[team]
        centred = share - 1 / max(len(runs.systems), 1)
        local = {
            "query": np.ones((len(runs.pool), 1)),
            "slope": popular - popular.mean(),
            "interaction": centred,
            **{f"group:{column}": _members(collection, column, runs.pool) for column in prior.groups},
        }
        return cls(runs.pool, scale, np.nan_to_num(standard), teams - teams.mean(axis=0), centred, local)

    @property
    def n_levels(self) -> int:
        """How many levels the scale has for the model."""
        return len(self.scale.levels)


def _members(collection: Collection, column: str, pool: Pool) -> Floats:
    """Which of its query's groups each pair is in, one column a group, numbered within each query."""
    number = groups_in_queries(collection.metadata, column, pool)
    first = np.full(len(pool.queries), np.iinfo(np.int64).max)
    known = number >= 0
    np.minimum.at(first, pool.query[known], number[known])
    within: Ints = np.where(known, number - first[pool.query], -1)
    return np.equal(within[:, None], np.arange(int(within.max(initial=0)) + 1)).astype(float)
