"""Synthetic campaigns, drawn from the hierarchical model (docs/theory/hierarchical.md#hier).

The lists are drawn first (systems of one team are correlated), then the grades: the logit of each pair's grade is the
sum of its popularity and of the model's effects, with new random coefficients. Labels of observers, if any, measure the
part of relevance that observers see (docs/theory/observers.md#latent).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit

from probeval.arrays import Floats, Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable, Metadata, Vectors
from probeval.data.judgments import Judgments
from probeval.data.observers import ObserverSpec
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Brief
from probeval.errors import ModelError, did_you_mean
from probeval.relevance.effects import model_effects, stated_effects
from probeval.relevance.effects.cutpoints import cutpoints
from probeval.relevance.effects.effect import CampaignView, Effect
from probeval.relevance.observers.measure import pair_scale
from probeval.relevance.observers.prior import PAIR, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC

__all__ = ["SyntheticObserver", "synthetic_campaign"]

SOURCE = "source"  # the column of the metadata that groups documents
SPAN = 6.0  # most logits between the first cutpoint and the last
GAP = 1.0  # most logits between two cutpoints
OWN = {"query": 0.6, "slope": 0.2, "interaction": 0.6, "team": 0.2, "system": 0.2, PAIR: 1.5}


@dataclass(frozen=True, repr=False)
class SyntheticObserver(Brief):
    """An observer of a synthetic campaign: its labels are relevance times a slope, with errors of several kinds.

    Parameters
    ----------
    slope
        The slope of the labels, per logit of relevance: 0 for noise, negative if reversed.
    liking
        Its own liking for popular documents, as a multiple of its slope and of the campaign's ``popularity``.
    own
        The standard deviations of its own effects by name, and of ``pair``: biases for teams and systems, own views of
        queries, of systems on queries and of pairs. Observers of one family have these in common.
    noise
        The standard deviation of its errors that are not its family's.
    grades
        The highest of its integer labels; None for numbers.
    """

    slope: float = 1.0
    liking: float = 0.7
    own: Mapping[str, float] = field(default_factory=lambda: dict(OWN))
    noise: float = 0.7
    grades: int | None = None


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
    observers: Mapping[str, SyntheticObserver] | int = 0,
    dimensions: int = 0,
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
    observers
        Observers that label every pair, by name (the part before ``_`` or ``-`` is their family), or the number of
        typical ones, each of a family of its own. Relevance then has a part that they see.
    dimensions
        The number of dimensions of documents' vectors, if they have vectors: similar documents are then relevant alike.

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
    vectors = Vectors(runs.pool.docs, rng.normal(size=(len(runs.pool.docs), dimensions))) if dimensions else None
    collection = Collection("synthetic", runs.with_teams(teams), metadata=metadata, vectors=vectors)
    view = CampaignView.of(collection, depth=max(runs.depth, 1), scale=scale)
    if isinstance(observers, int):
        observers = {f"machine{i + 1}": SyntheticObserver() for i in range(observers)}
    grade, seen = _grades(rng, view, popularity, relevant, {} if sds is None else sds, labelled=bool(observers))
    judgments = Judgments.coded(runs.pool, np.arange(len(runs.pool)), scale.values[grade])
    labels = _labels(rng, view, popularity, seen, observers) if observers else None
    return replace(collection, judgments=judgments, labels=labels)


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
    rng: np.random.Generator,
    view: CampaignView,
    popularity: float,
    relevant: float,
    sds: Mapping[str, float],
    *,
    labelled: bool,
) -> tuple[Ints, Floats]:
    """Draw grades from the model, as positions on the scale, and the relevance that observers see, shapes (pair,).

    With labels, a share of each variance is seen; of the logistic noise, that of the pairs' own seen effects. Effects
    that no card has are not seen.
    """
    effects = (*model_effects([SOURCE]), *(effect for effect in stated_effects() if effect.applies(view)))
    _refuse_strangers(sds, [effect.name for effect in effects])
    pool, n_grades, priors = view.runs.pool, len(view.scale), ObserverPriors()
    logit = _popular(view, popularity)
    unseen, log_scale = np.zeros(len(pool)), np.zeros(len(pool.queries))
    for effect in effects:
        sd = sds.get(effect.name, effect.typical)
        if effect.acts_on == "cutpoints":
            log_scale = sd * rng.normal(size=len(pool.queries))
            continue
        seen = 0.0 if effect.stated is not None else priors.share(effect.name, effect.scope)
        share = seen if labelled else 1.0
        logit = logit + _drawn(rng, view, effect, np.sqrt(share) * sd)
        if share < 1:
            unseen += _drawn(rng, view, effect, np.sqrt(1 - share) * sd)
    first = np.log(relevant / (1 - relevant))
    gaps = np.full((1, n_grades - 2), min(GAP, SPAN / (n_grades - 1)))
    cuts = cutpoints(np.array([first]), gaps, log_scale[None])[0, pool.query]
    noise = rng.logistic(size=len(pool))
    if labelled:
        logit = logit + np.sqrt(priors.share(PAIR) * LOGISTIC) * rng.normal(size=len(pool))
        noise /= pair_scale(priors)
    return np.asarray(((logit + unseen)[:, None] + cuts + noise[:, None] > 0).sum(axis=1)), logit + first


def _popular(view: CampaignView, popularity: float) -> Floats:
    """Return the part of relevance that is popularity, shape (pair,)."""
    return np.asarray(popularity * view.popularity / (view.popularity.std() or 1.0))


def _drawn(rng: np.random.Generator, view: CampaignView, effect: Effect, sd: float) -> Floats:
    """Draw an effect on predictors, shape (pair,)."""
    columns = effect.columns(view)
    if effect.scope == "campaign":
        return columns.times(sd * rng.normal(size=(columns.n_columns, 1)))[:, 0]
    pool = view.runs.pool
    coefficients = sd * rng.normal(size=(len(pool.queries), columns.n_columns, 1))
    return columns.times_by_query(coefficients, pool.query)[:, 0]


def _labels(
    rng: np.random.Generator,
    view: CampaignView,
    popularity: float,
    seen: Floats,
    observers: Mapping[str, SyntheticObserver],
) -> LabelTable:
    """Draw labels of all pairs; observers of a family have its first one's own effects, and each its own noise."""
    effects = [effect for effect in model_effects([SOURCE]) if effect.acts_on == "predictor"]
    shared: dict[str, Floats] = {}
    columns = []
    for name, observer in observers.items():
        _refuse_strangers(observer.own, [*(effect.name for effect in effects), PAIR])
        family = ObserverSpec(name).family
        if family not in shared:
            shared[family] = observer.own.get(PAIR, 0.0) * rng.normal(size=len(seen))
            for effect in effects:
                shared[family] += _drawn(rng, view, effect, observer.own.get(effect.name, 0.0))
        label = observer.slope * (seen + observer.liking * _popular(view, popularity)) + shared[family]
        label += observer.noise * rng.normal(size=len(seen))
        columns.append(label if observer.grades is None else np.rint(observer.grades * expit(label)))
    return LabelTable(view.runs.pool, tuple(observers), np.column_stack(columns))


def _refuse_strangers(sds: Mapping[str, float], names: Sequence[str]) -> None:
    for name in sds:
        if name not in names:
            raise ModelError(f"No effect {name!r}: {', '.join(names)}.{did_you_mean(name, names)}")
