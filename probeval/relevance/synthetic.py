"""Synthetic campaigns, drawn from the hierarchical model (docs/theory/hierarchical.md#hier).

The lists are drawn first (systems of one team are correlated), then the grades: the logit of each pair's grade is the
sum of its popularity and of the model's effects, with new random coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from probeval.arrays import Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import Metadata
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.errors import ModelError, did_you_mean
from probeval.relevance.effects import model_effects
from probeval.relevance.effects.cutpoints import cutpoints
from probeval.relevance.effects.effect import CampaignView

__all__ = ["synthetic_campaign"]

SOURCE = "source"  # the column of the metadata that groups documents
SPAN = 6.0  # most logits between the first cutpoint and the last
GAP = 1.0  # most logits between two cutpoints


def synthetic_campaign(
    rng: np.random.Generator,
    *,
    systems: int = 12,
    queries: int = 30,
    depth: int = 20,
    docs: int = 80,
    groups: int = 6,
    scale: Scale | None = None,
    popularity: float = 0.9,
    relevant: float = 0.35,
    sds: Mapping[str, float] | None = None,
) -> Collection:
    """Draw a campaign: runs, teams, document groups, and a judgment for every pair.

    Parameters
    ----------
    rng
        The only source of randomness: the same generator state gives the same campaign.
    systems, queries, depth
        The number of systems (in teams of two to four, mostly two or three), queries, and ranks per list.
    docs
        The number of candidate documents per query.
    groups
        The number of document sources.
    scale
        The grades; 0-2 by default.
    popularity
        The slope of the standardised log share of systems that retrieved the document.
    relevant
        The approximate share of an average query's pairs above the lowest grade.
    sds
        Standard deviations of effects by name, to replace the typical ones: ``{"team": 1.5}``.

    Examples
    --------
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=3, depth=5)
    >>> campaign.runs
    <Runs: 4 systems, 3 queries, depth 5, 35 pairs>
    """
    if min(systems, queries, depth, docs, groups) < 1 or not 0 < relevant < 1:
        raise ModelError("A campaign has at least one system, query, rank, document and group, and 0 < relevant < 1.")
    scale = Scale.graded(2) if scale is None else scale
    names = tuple(f"system-{i + 1:02d}" for i in range(systems))
    team = np.minimum(np.arange(systems) * 2 // 5, max(systems * 2 // 5 - 1, 0))
    runs = _runs(rng, names, team, queries, min(depth, docs), docs)
    source = rng.integers(groups, size=len(runs.pool.docs))
    metadata = Metadata(runs.pool.docs, {SOURCE: objects([f"source-{g + 1}" for g in source])})
    teams = {name: f"team-{t + 1}" for name, t in zip(names, team, strict=True)}
    collection = Collection("synthetic", runs.with_teams(teams), metadata=metadata)
    view = CampaignView.of(collection, depth=max(runs.depth, 1), scale=scale)
    grade = _grades(rng, view, popularity, relevant, {} if sds is None else sds)
    judgments = Judgments.coded(runs.pool, np.arange(len(runs.pool)), scale.values[grade])
    return replace(collection, judgments=judgments)


def _runs(rng: np.random.Generator, names: tuple[str, ...], team: Ints, queries: int, depth: int, docs: int) -> Runs:
    """Return lists by scores with a part common to all systems, a part of each team, and a part of each system."""
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


def _grades(
    rng: np.random.Generator, view: CampaignView, popularity: float, relevant: float, sds: Mapping[str, float]
) -> Ints:
    """Draw grades from the model, as positions on the scale, shape (pair,)."""
    effects = model_effects([SOURCE])
    _refuse_strangers(sds, [effect.name for effect in effects])
    pool, n_grades = view.runs.pool, len(view.scale)
    n_queries = len(pool.queries)
    logit = popularity * view.popularity / (view.popularity.std() or 1.0)
    log_scale = np.zeros(n_queries)
    for effect in effects:
        sd, columns = sds.get(effect.name, effect.typical), effect.columns(view)
        if effect.scope == "campaign":
            logit = logit + columns.times(sd * rng.normal(size=(columns.n_columns, 1)))[:, 0]
            continue
        coefficients = sd * rng.normal(size=(n_queries, columns.n_columns, 1))
        if effect.acts_on == "cutpoints":
            log_scale = coefficients[:, 0, 0]
        else:
            logit = logit + columns.times_by_query(coefficients, pool.query)[:, 0]
    first = np.log(relevant / (1 - relevant))
    gaps = np.full((1, n_grades - 2), min(GAP, SPAN / (n_grades - 1)))
    cuts = cutpoints(np.array([first]), gaps, log_scale[None])[0, pool.query]
    noise = rng.logistic(size=len(pool))
    return np.asarray((logit[:, None] + cuts + noise[:, None] > 0).sum(axis=1))


def _refuse_strangers(sds: Mapping[str, float], names: Sequence[str]) -> None:
    for name in sds:
        if name not in names:
            raise ModelError(f"No effect {name!r}: {', '.join(names)}.{did_you_mean(name, names)}")
