"""From past campaigns to a card: fit the chain, cross-validate it, keep the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import ModelError
from probeval.relevance.cards.card import Card
from probeval.relevance.learning.campaign import ModelSpec, estimate_campaign
from probeval.relevance.learning.diagnostics import cross_validate, diagnose, likelihood_ratios, proportional_odds
from probeval.relevance.learning.labels import learn_labels
from probeval.relevance.learning.prior import pooled_prior
from probeval.relevance.models.base import FittedModel
from probeval.relevance.models.baseline import Empirical
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.models.ordinal import OrdinalModel, TrainingData, training_data

__all__ = ["TEXT_JUD", "TEXT_OUT", "fit_card", "fit_hierarchical", "hierarchical_card", "text_chain"]

# How many systems, and teams, agree on a document; with judgments, how good its systems and its query are so far.
# Where teams are not known, the same without them.
TEXT_OUT = (("log(fSYS)", "fTEAM"), ("log(fSYS)",))
TEXT_JUD = tuple((*terms, "dSYS", "aDOC") for terms in TEXT_OUT) + TEXT_OUT

TEXT_SPEC = ModelSpec(("log(fSYS)", "fTEAM"), centre=(-3.5, 0.1), spread=(1.25, 0.1))
MUSIC_SPEC = ModelSpec(
    ("log(fSYS)", "f[artist]", "s[genre]", "f[genre]"),
    centre=(-2.3, 0.03, 0.4, 0.25),
    spread=(0.7, 0.05, 0.5, 0.2),
    groups=("artist", "genre"),
)

T = TypeVar("T")


def spec_of(collection: Collection) -> ModelSpec:
    """What the hierarchical model looks at in a campaign: groups of documents where there are any."""
    return MUSIC_SPEC if set(MUSIC_SPEC.groups) <= set(collection.has.get("metadata", ())) else TEXT_SPEC


def fit_hierarchical(
    collections: Sequence[Collection],
    *,
    depth: int,
    labelled: tuple[LabelTable, Judgments] | None = None,
    progress: Callable[[Sequence[Collection]], Iterable[Collection]] = iter,
) -> Hierarchical:
    """The hierarchical model with the prior that these campaigns teach.

    Parameters
    ----------
    collections
        Past campaigns.
    depth
        The depth of their pools.
    labelled
        Labels by machines with the grades that people gave the same pairs, from which their worth is learned.
    progress
        Wraps the campaigns while they are learned from.
    """
    if not collections:
        raise ModelError("No campaign was given to learn from.")
    spec = spec_of(collections[0])
    prior = pooled_prior([estimate_campaign(c, spec, depth=depth) for c in progress(collections)], spec)
    return Hierarchical(prior if labelled is None else replace(prior, labels=learn_labels(*labelled)))


def hierarchical_card(
    collections: Sequence[Collection],
    *,
    name: str,
    title: str,
    depth: int,
    labelled: tuple[LabelTable, Judgments] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    limits: tuple[str, ...] = (),
    made: str = "",
    progress: Callable[[Sequence[Collection]], Iterable[Collection]] = iter,
) -> Card:
    """The hierarchical model as a card; its ``evaluation`` comes from ``probeval validate``."""
    judged = {c.name: c.judgments for c in collections if c.judgments is not None}
    scales = {str(j.scale()) for j in judged.values()}
    return Card(
        name=name,
        title=title,
        models=[fit_hierarchical(collections, depth=depth, labelled=labelled, progress=progress)],
        scale=scales.pop() if len(scales) == 1 else "any",
        depth=depth,
        training={
            "campaigns": {c: len(j) for c, j in judged.items()},
            "fingerprints": {c: j.fingerprint() for c, j in judged.items()},
        },
        evaluation={} if evaluation is None else evaluation,
        limits=limits,
        made=made,
    )


def text_chain(collections: Sequence[Collection], *, depth: int) -> list[FittedModel]:
    """The chain for campaigns of texts, fitted on these: judgments and outputs, outputs alone, past shares."""
    return [
        *(OrdinalModel(terms, balanced=True).fit(collections, depth=depth) for terms in TEXT_JUD),
        Empirical.fit(collections, depth=depth),
    ]


def fit_card(
    collections: Sequence[Collection],
    *,
    name: str,
    title: str,
    terms: Sequence[tuple[str, ...]] = TEXT_JUD,
    depth: int,
    limits: tuple[str, ...] = (),
    made: str = "",
    progress: Callable[[Sequence[T]], Iterable[T]] = iter,
) -> Card:
    """Fit a chain of ordinal models, the past shares at its end, and cross-validate each.

    Parameters
    ----------
    collections
        Past campaigns; judged pairs in their top ``depth`` count.
    name, title, limits, made
        What the card says of itself.
    terms
        The terms of each model, the most informed first.
    depth
        The depth of the pools.
    progress
        Wraps the models while they are fitted.
    """
    judged = {c.name: c.judgments.fingerprint() for c in collections if c.judgments is not None}
    if len(judged) < len(collections):
        raise ModelError("Every campaign to learn from needs judgments and a name of its own.")
    models: list[FittedModel] = []
    evaluation: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for each in progress(list(terms)):  # type: ignore[arg-type]
        model = OrdinalModel(tuple(each), balanced=True)  # type: ignore[arg-type]
        data = training_data(collections, model.terms, depth=depth)
        models.append(model.fit_data(data))
        evaluation[" + ".join(model.terms)] = _evaluation(model, data)
        for number, campaign in enumerate(data.campaigns):
            counts.setdefault(campaign, int((data.campaign == number).sum()))
    models.append(Empirical.fit(collections, depth=depth))
    scales = {str(c.judgments.scale()) for c in collections if c.judgments is not None}
    return Card(
        name=name,
        title=title,
        models=models,
        scale=scales.pop() if len(scales) == 1 else "any",
        depth=depth,
        training={"campaigns": counts, "fingerprints": judged},
        evaluation=evaluation,
        limits=limits,
        made=made,
    )


def _evaluation(model: OrdinalModel, data: TrainingData) -> dict[str, Any]:
    """Cross-validated by query, and by campaign where there are several; what each term adds; what looks wrong."""
    out: dict[str, Any] = {}
    for by in ("query", "campaign") if len(data.campaigns) > 1 else ("query",):
        held_out = cross_validate(model, data, by=by)
        for number, campaign in enumerate(data.campaigns):
            mine = data.campaign == number
            if mine.any():
                found = diagnose(held_out[mine], data.take(mine))
                out.setdefault(f"held out by {by}", {})[campaign] = {**asdict(found), "ratio": found.ratio}
        found = diagnose(held_out, data)
        out[f"held out by {by}"]["all"] = {**asdict(found), "ratio": found.ratio}
    out["likelihood ratio chi-squared"] = likelihood_ratios(model, data)
    findings = [str(f) for f in proportional_odds(model, data)]
    return {**out, "findings": findings} if findings else out
