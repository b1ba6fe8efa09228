"""Synthetic campaigns, drawn from the hierarchical model (docs/theory/hierarchical.md#hier).

The lists are drawn first (systems of one team are correlated), then the grades: the logit of each pair's grade is the
sum of its popularity and of the model's effects, with new random coefficients. Labels of observers, if any, measure the
part of relevance that observers see (docs/theory/observers.md#latent). With the prior of a card, the effects have the
sizes that the campaigns behind the card showed, and some systems agree more with the others, as in these campaigns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from scipy.special import expit

from probeval.arrays import Codes, Floats, Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable, Metadata, Vectors
from probeval.data.judgments import Judgments
from probeval.data.observers import ObserverSpec
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ModelError, did_you_mean
from probeval.records import About, task
from probeval.relevance.effects import model_effects, stated_effects
from probeval.relevance.effects.cutpoints import cutpoints
from probeval.relevance.effects.effect import CampaignView, Effect
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.normal import Normal
from probeval.relevance.observers.conditioning import pair_scale
from probeval.relevance.observers.prior import PAIR, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC
from probeval.streams import stream

__all__ = ["SyntheticCampaign", "SyntheticObserver", "synthetic_campaign"]

SOURCE = "source"  # the column of the metadata that groups documents
SPAN = 6.0  # most logits between the first cutpoint and the last
GAP = 1.0  # most logits between two cutpoints
POPULARITY = 0.9  # logits per standard deviation of popularity
RELEVANT = 0.35  # the share of pairs above the lowest grade
APART = 0.7  # the weight of what a team and a system have of their own in the order of a list, 1 for what all share
UNEQUAL = (
    1.0  # the sd of its log over systems with a prior, so that systems agree with the others as unequally as real ones
)
SPREAD = 2.0  # logits per standard deviation of labels, so that graded ones use their whole scale
OWN = {"query": 0.6, "slope": 0.2, "interaction": 0.6, "team": 0.2, "system": 0.2, PAIR: 1.5}


@dataclass(frozen=True, repr=False)
class SyntheticObserver(Record):
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

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, prior: HierarchicalPrior, *, name: str = "machine", grades: int | None = None
    ) -> SyntheticObserver:
        """Draw an observer from a card's prior of observers of its name or kind: its worth is that of real labels.

        Parameters
        ----------
        rng
            The source of randomness.
        prior
            The prior of a card: ``load_card("text-hierarchical").model.prior``.
        name
            The name of the observer; one that is not on the card is like the others of its kind.
        grades
            The highest of its integer labels; None for numbers.
        """
        kind = ObserverSpec(name, scale="number" if grades is None else f"graded:{grades}")
        about = prior.observers.possible(kind)[0].prior

        def size(log_size: Normal) -> float:
            return float(np.exp(rng.normal(log_size.mean, log_size.sd)))

        slope = SPREAD * size(about.log_slope)
        own = {PAIR: SPREAD * size(about.own(PAIR))}
        for effect in prior.effects:
            if effect.acts_on == "predictor":
                of_campaign = effect.scope == "campaign"
                unit = _sd(prior, effect.name) if of_campaign else 1.0
                own[effect.name] = SPREAD * unit * size(about.log_bias if of_campaign else about.own(effect.name))
        liking = float(rng.normal(about.popularity.mean, about.popularity.sd))
        return cls(slope=slope, liking=liking, own=own, noise=0.0, grades=grades)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SyntheticCampaign(Record):
    """The settings of a synthetic campaign; :func:`synthetic_campaign` draws one from a seed.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> SyntheticCampaign(systems=4, queries=3, depth=5).draw(rng).runs
    <Runs: 4 systems, 3 queries, depth 5, 35 pairs>
    """

    systems: Annotated[int, About("The number of systems, in teams of two to four, mostly two or three.")] = 12
    queries: Annotated[int, About("The number of queries.")] = 30
    depth: Annotated[int, About("The number of ranks per list.")] = 20
    docs: Annotated[int, About("The number of candidate documents per query.")] = 80
    groups: Annotated[int, About("The number of document sources.")] = 6
    scale: Annotated[Scale | None, About("The grades; 0-2 by default.")] = None
    popularity: Annotated[
        float | None,
        About("The slope of the standardised log share of systems that retrieved the document; 0.9 by default."),
    ] = None
    relevant: Annotated[
        float | None,
        About("The approximate share of an average query's pairs above the lowest grade; 0.35 by default."),
    ] = None
    sds: Annotated[
        Mapping[str, float] | None,
        About('Standard deviations of effects by name, to replace the typical ones: ``{"team": 1.5}``.'),
    ] = None
    prior: Annotated[
        HierarchicalPrior | None,
        About(
            'The prior of a card, such as ``load_card("text-hierarchical").model.prior``: effects, coefficients, '
            "cutpoints and standard deviations are those in the middle of past campaigns, in place of ``popularity`` "
            "and ``relevant``."
        ),
    ] = None
    observers: Annotated[
        Mapping[str, SyntheticObserver] | int,
        About(
            "Observers that label every pair, by name (the part before ``_`` or ``-`` is their family), or the number "
            "of typical ones (with ``prior``: drawn from it), each of a family of its own. Relevance then has a part "
            "that they see."
        ),
    ] = 0
    dimensions: Annotated[
        int,
        About(
            "The number of dimensions of documents' vectors, if they have vectors: similar documents are then "
            "relevant alike."
        ),
    ] = 0

    def draw(self, rng: np.random.Generator) -> Collection:
        """Draw a campaign; the same state of the generator gives the same one."""
        sizes = (self.systems, self.queries, self.depth, self.docs, self.groups)
        if min(sizes) < 1 or not (self.relevant is None or 0 < self.relevant < 1):
            raise ModelError(
                "A campaign has at least one system, query, rank, document and group, and 0 < relevant < 1."
            )
        prior = self.prior
        if prior is not None and (self.popularity is not None or self.relevant is not None):
            raise ModelError(
                "A prior has its own slope of popularity and share of relevant pairs: leave these two out."
            )
        scale = Scale.graded(2) if self.scale is None else self.scale
        collection = self._lists(rng)
        view = CampaignView.of(collection.problem(depth=max(collection.runs.depth, 1), scale=scale))
        observers = self._observers(rng)
        if prior is None:
            popularity = POPULARITY if self.popularity is None else self.popularity
            expected = _typical(view, popularity, self.relevant or RELEVANT)
        else:
            expected = _like_past(view, prior)
        _refuse_strangers(self.sds or {}, list(expected.sds))
        expected = replace(expected, sds={**expected.sds, **(self.sds or {})})
        grade, seen = _grades(rng, view, expected, labelled=bool(observers))
        pool = collection.runs.pool
        judgments = Judgments.coded(pool, np.arange(len(pool)), scale.judged_values[grade])
        labels = _labels(rng, view, expected, seen, observers) if observers else None
        return replace(collection, judgments=judgments, labels=labels)

    def _lists(self, rng: np.random.Generator) -> Collection:
        """Draw the lists of systems in teams, and the sources and the vectors of documents."""
        n = self.systems
        names = tuple(f"system-{i + 1:02d}" for i in range(n))
        team = np.minimum(np.arange(n) * 2 // 5, max(n * 2 // 5 - 1, 0))
        apart = np.full(n, APART) * (1.0 if self.prior is None else np.exp(UNEQUAL * rng.normal(size=n)))
        runs = _runs(rng, names, team, apart, self.queries, min(self.depth, self.docs), self.docs)
        docs = runs.pool.docs
        source = rng.integers(self.groups, size=len(docs))
        metadata = Metadata(docs, {SOURCE: objects([f"source-{g + 1}" for g in source])})
        teams = {name: f"team-{t + 1}" for name, t in zip(names, team, strict=True)}
        vectors = Vectors(docs, rng.normal(size=(len(docs), self.dimensions))) if self.dimensions else None
        return Collection("synthetic", runs.with_teams(teams), metadata=metadata, vectors=vectors)

    def _observers(self, rng: np.random.Generator) -> Mapping[str, SyntheticObserver]:
        """The observers that are given, or so many typical ones."""
        if not isinstance(self.observers, int):
            return self.observers
        prior, names = self.prior, [f"machine{i + 1}" for i in range(self.observers)]
        return {n: SyntheticObserver() if prior is None else SyntheticObserver.drawn(rng, prior) for n in names}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SyntheticInputs(SyntheticCampaign):
    """Draw a campaign: runs, teams, document groups, and a judgment for every pair.

    Examples
    --------
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> campaign.runs
    <Runs: 4 systems, 3 queries, depth 5, 35 pairs>
    """

    seed: Annotated[int, About("The random seed; the same seed gives the same campaign.")] = 0

    def run(self) -> Collection:
        """The campaign."""
        return self.draw(stream(self.seed))


synthetic_campaign = task(SyntheticInputs, "synthetic_campaign")


@dataclass(frozen=True, eq=False)
class ExpectedRelevance:
    """The parameters of relevance that are not drawn.

    Parameters
    ----------
    popular
        The part of relevance that is popularity, shape (pair,).
    first, gaps
        The first cutpoint, and the gaps after it, shape (gap,).
    grades
        The positions on the scale of the grades between the cutpoints, shape (level,).
    effects, sds
        The effects, and the standard deviation of each by name.
    observers
        The shares of variances that observers see.
    """

    popular: Floats
    first: float
    gaps: Floats
    grades: Codes
    effects: tuple[Effect, ...]
    sds: Mapping[str, float]
    observers: ObserverPriors


def _typical(view: CampaignView, popularity: float, relevant: float) -> ExpectedRelevance:
    n_grades = len(view.problem.scale)
    effects = (*model_effects([SOURCE]), *_stated(view))
    return ExpectedRelevance(
        popular=np.asarray(popularity * view.popularity / (view.popularity.std() or 1.0)),
        first=float(np.log(relevant / (1 - relevant))),
        gaps=np.full(n_grades - 2, min(GAP, SPAN / (n_grades - 1))),
        grades=np.arange(n_grades, dtype=np.int16),
        effects=effects,
        sds={effect.name: effect.typical for effect in effects},
        observers=ObserverPriors(),
    )


def _like_past(view: CampaignView, prior: HierarchicalPrior) -> ExpectedRelevance:
    """Return the centres of a card's prior."""
    design, scale = ModelDesign.of(prior, view.problem), view.problem.scale
    first, *gaps = (cut.mean for cut in design.cuts)
    own, stated = tuple(effect for effect in prior.effects if effect.exists(scale)), _stated(view)
    return ExpectedRelevance(
        popular=design.terms @ np.array([coefficient.mean for coefficient in design.coefficients]),
        first=first,
        gaps=np.array(gaps),
        grades=scale.levels,
        effects=(*own, *stated),
        sds={e.name: _sd(prior, e.name) for e in own} | {e.name: e.typical for e in stated},
        observers=prior.observers,
    )


def _stated(view: CampaignView) -> tuple[Effect, ...]:
    """Return the effects that no card has, if the campaign has their evidence."""
    return tuple(effect for effect in stated_effects() if effect.applies(view))


def _sd(prior: HierarchicalPrior, effect: str) -> float:
    """Return the standard deviation of an effect in the middle of past campaigns."""
    return float(np.exp(prior.log_sds[effect].mean))


def _runs(
    rng: np.random.Generator,
    names: tuple[str, ...],
    team: Ints,
    apart: Floats,
    queries: int,
    depth: int,
    docs: int,
) -> Runs:
    """Return lists by scores with a part common to all systems, a part of each team, and a part of each system."""
    shared = rng.normal(size=(queries, docs))
    by_team = rng.normal(size=(int(team.max(initial=0)) + 1, queries, docs))
    own = rng.normal(size=(len(names), queries, docs))
    weight = apart[:, None, None]
    score = np.round(1.0 * shared + weight * by_team[team] + weight * own, 4)
    best = np.argsort(-score, axis=-1, kind="stable")[..., :depth]
    system, query, _ = np.indices(best.shape)
    query_ids, doc_ids = _ids("q", queries), _ids("d", queries * docs)
    pool, pair = Pool.coded(query_ids, doc_ids, query.ravel(), (query * docs + best).ravel())
    return Runs.coded(names, pool, system.ravel(), pair, np.take_along_axis(score, best, axis=-1).ravel())


def _ids(letter: str, n: int) -> Ids:
    width = len(str(n))
    return objects([f"{letter}{i + 1:0{width}d}" for i in range(n)])


def _grades(
    rng: np.random.Generator, view: CampaignView, expected: ExpectedRelevance, *, labelled: bool
) -> tuple[Codes, Floats]:
    """Draw grades from the model, as positions on the scale, and the relevance that observers see, shapes (pair,).

    With labels, a share of each variance is seen; of the logistic noise, that of the pairs' own seen effects. Effects
    that no card has are not seen.
    """
    pool, priors = view.runs.pool, expected.observers
    logit = expected.popular
    unseen, log_scale = np.zeros(len(pool)), np.zeros(len(pool.queries))
    for effect in expected.effects:
        sd = expected.sds[effect.name]
        if effect.acts_on == "cutpoints":
            log_scale = sd * rng.normal(size=len(pool.queries))
            continue
        seen = 0.0 if effect.stated is not None else priors.share(effect.name, effect.scope)
        share = seen if labelled else 1.0
        logit = logit + _drawn(rng, view, effect, np.sqrt(share) * sd)
        if share < 1:
            unseen += _drawn(rng, view, effect, np.sqrt(1 - share) * sd)
    cuts = cutpoints(np.array([expected.first]), expected.gaps[None], log_scale[None])[0, pool.query]
    noise = rng.logistic(size=len(pool))
    if labelled:
        logit = logit + np.sqrt(priors.share(PAIR) * LOGISTIC) * rng.normal(size=len(pool))
        noise /= pair_scale(priors)
    level = ((logit + unseen)[:, None] + cuts + noise[:, None] > 0).sum(axis=1)
    return expected.grades[level], logit + expected.first


def _drawn(rng: np.random.Generator, view: CampaignView, effect: Effect, sd: float) -> Floats:
    """Draw an effect on predictors, shape (pair,); zero if the campaign has no evidence for it."""
    if not effect.applies(view):
        return np.zeros(len(view.runs.pool))
    columns = effect.columns(view)
    if effect.scope == "campaign":
        return columns.times(sd * rng.normal(size=(columns.n_columns, 1)))[:, 0]
    pool = view.runs.pool
    coefficients = sd * rng.normal(size=(len(pool.queries), columns.n_columns, 1))
    return columns.times_by_query(coefficients, pool.query)[:, 0]


def _labels(
    rng: np.random.Generator,
    view: CampaignView,
    expected: ExpectedRelevance,
    seen: Floats,
    observers: Mapping[str, SyntheticObserver],
) -> LabelTable:
    """Draw labels of all pairs; observers of a family have its first one's own effects, and each its own noise."""
    effects = [e for e in expected.effects if e.acts_on == "predictor" and e.stated is None]
    shared: dict[str, Floats] = {}
    columns = []
    for name, observer in observers.items():
        _refuse_strangers(observer.own, [*(effect.name for effect in effects), PAIR])
        family = ObserverSpec(name).family
        if family not in shared:
            shared[family] = observer.own.get(PAIR, 0.0) * rng.normal(size=len(seen))
            for effect in effects:
                shared[family] += _drawn(rng, view, effect, observer.own.get(effect.name, 0.0))
        label = observer.slope * (seen + observer.liking * expected.popular) + shared[family]
        label += observer.noise * rng.normal(size=len(seen))
        columns.append(label if observer.grades is None else np.rint(observer.grades * expit(label)))
    return LabelTable(view.runs.pool, tuple(observers), np.column_stack(columns))


def _refuse_strangers(sds: Mapping[str, float], names: Sequence[str]) -> None:
    for name in sds:
        if name not in names:
            raise ModelError(f"No effect {name!r}: {', '.join(names)}.{did_you_mean(name, names)}")
