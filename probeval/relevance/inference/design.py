r"""The hierarchical model: what it says. [hier]

.. math:: \text{logit}\,P(R_d \ge \ell) = \alpha_{q\ell} + x_d\beta + u_q + t_q\,\text{pop}_d
          + \frac{1}{\sqrt{n_d}} \sum_{s \ni d} (a_s + c_{sq} + m_{\text{team}(s)}) + w_{q,\text{group}(d)},\quad
          \alpha_{q\ell} = \bar\alpha + e^{v_q} (\alpha_\ell - \bar\alpha)

A query can be hard throughout (u) and follow popularity more or less (t); a system can be better than it is popular
(a), its team too (m), and differently so on each query (c); a group of documents can suit a query (w); the grades of a
query can lie closer together or farther apart than those of others (v). System and team effects sum to zero. The
:math:`n_d` systems that retrieved a document count by the root of their number: that a good system has it says much,
whoever else has it too. Past campaigns give the prior of everything, variances included, for a campaign not yet seen;
the judgments at hand go on from there. The modules of :mod:`probeval.relevance.inference` compute it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints, frozen
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.data.scale import Scale
from probeval.errors import ModelError
from probeval.features import compute_features, feature_names
from probeval.features.external import groups_in_queries
from probeval.relevance.effects.labels import LOGISTIC
from probeval.relevance.effects.normal import Normal
from probeval.relevance.effects.prior import HierarchicalPrior

__all__ = ["Design", "stretched"]

POPULARITY = "log(fSYS)"
GLOBAL, STRETCH = ("team", "system"), "stretch"


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
