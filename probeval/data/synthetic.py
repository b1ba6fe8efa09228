"""Campaigns that never happened, drawn from the hierarchical model. [hier]

The lists come first (systems of one team think alike), then the grades: the logit of each pair's grade is the sum of
its popularity, its query's difficulty, the quality of the systems that retrieved it and the worth of its source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import Metadata
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale

__all__ = ["Effects", "synthetic_campaign"]


@dataclass(frozen=True)
class Effects:
    """Standard deviations of the effects on the logit of relevance, and the weight of popularity.

    Parameters
    ----------
    popularity
        The slope of the standardised log share of systems that retrieved the document.
    query, slope
        Difficulty of queries, and how popularity's slope varies between them.
    team, system, interaction
        Quality of teams, of systems within teams, and of systems on single queries, beyond popularity.
    group
        Worth of a source (group of documents) on a single query.
    relevant
        The share of the pairs of an average query that reach the first grade above the lowest, about.
    """

    popularity: float = 0.9
    query: float = 0.9
    slope: float = 0.3
    team: float = 0.5
    system: float = 0.4
    interaction: float = 0.4
    group: float = 0.6
    relevant: float = 0.35


def synthetic_campaign(
    rng: np.random.Generator,
    *,
    systems: int = 12,
    queries: int = 30,
    depth: int = 20,
    docs: int = 80,
    groups: int = 6,
    scale: Scale | None = None,
    effects: Effects | None = None,
) -> Collection:
    """Draw a campaign: runs, teams, document groups, and a judgment for every pair.

    Parameters
    ----------
    rng
        The only source of randomness: the same generator state gives the same campaign.
    systems, queries, depth
        How many systems (in teams of two to four, most of two or three), queries, and ranks a list.
    docs
        Candidate documents of each query.
    groups
        Sources that documents come from.
    scale, effects
        The grades (0-2 by default) and the sizes of the effects.

    Examples
    --------
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5)
    >>> campaign.runs
    <Runs: 4 systems, 3 queries, depth 5, 35 pairs>
    """
    scale = Scale.graded(2) if scale is None else scale
    effects = Effects() if effects is None else effects
    names = tuple(f"system-{i + 1:02d}" for i in range(systems))
    team = np.minimum(np.arange(systems) * 2 // 5, max(systems * 2 // 5 - 1, 0))
    runs = _runs(rng, names, team, queries, min(depth, docs), docs)
    source = rng.integers(groups, size=len(runs.pool.docs))
    logit = _logits(rng, runs, team, source, groups, effects)
    grade = _grades(rng, logit, scale, effects.relevant)
    metadata = Metadata(runs.pool.docs, {"source": objects([f"source-{g + 1}" for g in source])})
    judgments = Judgments.coded(runs.pool, np.arange(len(runs.pool)), scale.values[grade])
    teams = {name: f"team-{t + 1}" for name, t in zip(names, team, strict=True)}
    return Collection("synthetic", runs.with_teams(teams), judgments, metadata)


def _runs(rng: np.random.Generator, names: tuple[str, ...], team: Ints, queries: int, depth: int, docs: int) -> Runs:
    """Lists by a score that all systems share in part, teams more, plus each system's own."""
    shared = rng.normal(size=(queries, docs))
    by_team = rng.normal(size=(int(team.max(initial=0)) + 1, queries, docs))
    own = rng.normal(size=(len(names), queries, docs))
    score = np.round(1.0 * shared + 0.7 * by_team[team] + 0.7 * own, 4)
    best = np.argsort(-score, axis=-1)[..., :depth]
    system, query, _ = np.indices(best.shape)
    query_ids, doc_ids = _ids("q", queries), _ids("d", queries * docs)
    pool, pair = Pool.coded(query_ids, doc_ids, query.ravel(), (query * docs + best).ravel())
    return Runs.coded(names, pool, system.ravel(), pair, np.take_along_axis(score, best, axis=-1).ravel())


def _ids(letter: str, n: int) -> Ids:
    width = len(str(n))
    return objects([f"{letter}{i + 1:0{width}d}" for i in range(n)])


def _logits(rng: np.random.Generator, runs: Runs, team: Ints, source: Ints, groups: int, effects: Effects) -> Floats:
    """Each pair's place on the logit scale, 0 for an average pair, shape (pair,)."""
    pool, n_queries = runs.pool, len(runs.queries)
    system, query, rank = np.nonzero(runs.retrieved)
    pair = runs.pairs[system, query, rank]
    count = np.bincount(pair, minlength=len(pool))
    popular = np.log(count)
    popular = (popular - popular.mean()) / (popular.std() or 1.0)
    quality = _centred(rng.normal(size=int(team.max(initial=0)) + 1) * effects.team)[team]
    quality = _centred(quality + rng.normal(size=len(runs.systems)) * effects.system)
    local = _centred(rng.normal(size=(len(runs.systems), n_queries)) * effects.interaction)
    retrieved_by = np.bincount(pair, quality[system] + local[system, query], minlength=len(pool)) / np.sqrt(count)
    difficulty, slope = rng.normal(size=(2, n_queries)) * [[effects.query], [effects.slope]]
    worth = rng.normal(size=(n_queries, groups)) * effects.group
    return np.asarray(
        (effects.popularity + slope[pool.query]) * popular
        + difficulty[pool.query]
        + retrieved_by
        + worth[pool.query, source[pool.doc]]
    )


def _centred(values: Floats) -> Floats:
    """The values with mean 0 over the first axis: system effects sum to zero."""
    return np.asarray(values - values.mean(axis=0))


def _grades(rng: np.random.Generator, logit: Floats, scale: Scale, relevant: float) -> Ints:
    """Positions on the scale by a cumulative logit whose cutpoints are a logit apart."""
    first = np.log(relevant / (1 - relevant))
    span = min(1.0, 6.0 / (len(scale) - 1))
    cut = first - span * np.arange(len(scale) - 1)
    noise = rng.logistic(size=len(logit))
    return np.asarray((logit[:, None] + cut + noise[:, None] > 0).sum(axis=1))
