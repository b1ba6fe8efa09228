"""Fit models on past campaigns, cross-validate them, and save them as cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import isnan
from typing import Any, TypeVar

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import ModelError
from probeval.relevance.cards.card import Card
from probeval.relevance.learning.campaign import ModelSpec, estimate_campaign
from probeval.relevance.learning.diagnostics import (
    assessor_rmse,
    cross_validate,
    diagnose,
    likelihood_ratios,
    proportional_odds,
)
from probeval.relevance.learning.elimination import eliminate_terms
from probeval.relevance.learning.observers import learn_observers
from probeval.relevance.learning.prior import pooled_prior
from probeval.relevance.models.base import FittedModel
from probeval.relevance.models.baseline import Empirical
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.models.ordinal import FittedOrdinal, OrdinalModel, TrainingData, training_data
from probeval.reporting import SILENT, Reporter

__all__ = ["TEXT_JUD", "TEXT_OUT", "fit_card", "fit_hierarchical", "hierarchical_card", "text_models"]

# The shares of systems and teams that retrieved a document; with judgments, the means of its systems and its query.
# If teams are unknown, the same without them.
TEXT_OUT = (("log(fSYS)", "fTEAM"), ("log(fSYS)",))
TEXT_JUD = tuple((*terms, "dSYS", "aDOC") for terms in TEXT_OUT)

TEXT_SPEC = ModelSpec(("log(wSYS)", "wSYS"))
MUSIC_SPEC = ModelSpec(("log(fSYS)", "f[artist]", "s[genre]", "f[genre]"), groups=("artist", "genre"))

T = TypeVar("T")


def spec_of(collection: Collection) -> ModelSpec:
    """Return the specification of the hierarchical model for a campaign, with its groups of documents if any."""
    return MUSIC_SPEC if set(MUSIC_SPEC.groups) <= set(collection.has.get("metadata", ())) else TEXT_SPEC


def fit_hierarchical(
    collections: Sequence[Collection],
    *,
    depth: int,
    labelled: Sequence[tuple[LabelTable, Judgments]] = (),
    reporter: Reporter = SILENT,
) -> Hierarchical:
    """Return the hierarchical model with a prior learned from campaigns.

    Parameters
    ----------
    collections
        Past campaigns.
    depth
        The depth of their pools.
    labelled
        Labels and grades of the same pairs, to learn what labels are worth, beside the campaigns' own labels.
    reporter
        Receives progress and remarks.
    """
    if not collections:
        raise ModelError("No campaign was given to learn from.")
    spec = spec_of(collections[0])
    prior = pooled_prior(
        [estimate_campaign(c, spec, depth=depth) for c in reporter.track(collections, "Fitting")], spec
    )
    return Hierarchical(replace(prior, observers=learn_observers(collections, labelled, spec, depth=depth)))


def hierarchical_card(
    collections: Sequence[Collection],
    *,
    name: str,
    title: str,
    depth: int,
    labelled: Sequence[tuple[LabelTable, Judgments]] = (),
    evaluation: Mapping[str, Any] | None = None,
    limits: tuple[str, ...] = (),
    made: str = "",
    reporter: Reporter = SILENT,
) -> Card:
    """Return the hierarchical model as a card; its ``evaluation`` comes from ``probeval validate``."""
    judged = {c.name: c.judgments for c in collections if c.judgments is not None}
    scales = {str(j.scale()) for j in judged.values()}
    return Card(
        name=name,
        title=title,
        models=[fit_hierarchical(collections, depth=depth, labelled=labelled, reporter=reporter)],
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


def text_models(collections: Sequence[Collection], *, depth: int) -> list[FittedModel]:
    """Fit the models for text campaigns: outputs and the judgments so far, and past shares."""
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
    base: FittedOrdinal | None = None,
    depth: int,
    select: float | None = None,
    assessors: Judgments | None = None,
    limits: tuple[str, ...] = (),
    made: str = "",
    reporter: Reporter = SILENT,
) -> Card:
    """Fit ordinal models with past shares as the last fallback, and cross-validate each.

    Models with features from judgments are fitted at checkpoints of judging
    (:func:`~probeval.relevance.models.checkpoints.judging_checkpoints`), with nothing judged among them.

    Parameters
    ----------
    collections
        Past campaigns; judged pairs in their top ``depth`` count.
    name, title, limits, made
        The description on the card.
    terms, base
        The terms of each model, the most informed first; and a fitted model of some of the terms, whose coefficients
        keep their ratios.
    depth
        The depth of the pools.
    select
        The level of significance at which terms are dropped (:func:`eliminate_terms`); None: all stay.
    assessors
        Judgments of the same pairs by several assessors, whose disagreement is the yardstick of the error; by default
        those of each campaign.
    reporter
        Receives progress and remarks.
    """
    judged = {c.name: c.judgments.fingerprint() for c in collections if c.judgments is not None}
    if len(judged) < len(collections):
        raise ModelError("Every campaign to learn from needs judgments and a name of its own.")
    models: list[FittedModel] = []
    known = {c.name: c.judgments if assessors is None else assessors for c in collections}
    yardsticks = {campaign: assessor_rmse(given) for campaign, given in known.items() if given is not None}
    evaluation: dict[str, Any] = {}
    for each in reporter.track(list(terms), "Fitting"):
        model = OrdinalModel(tuple(each), balanced=True, base=base)
        data = training_data(collections, model.terms, depth=depth)
        dropped: dict[str, Any] = {}
        if select is not None:
            found = eliminate_terms(model, data, alpha=select)
            dropped = {"elimination": found.to_dict()}
            model = replace(model, terms=found.terms)
            data = training_data(collections, model.terms, depth=depth)
        models.append(model.fit_data(data))
        evaluation[" + ".join(model.terms)] = {**_evaluation(model, data, yardsticks), **dropped}
    models.append(Empirical.fit(collections, depth=depth))
    scales = {str(c.judgments.scale()) for c in collections if c.judgments is not None}
    counts = {c.name: int((c.problem(depth=depth).grades.codes >= 0).sum()) for c in collections}
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


def _evaluation(model: OrdinalModel, data: TrainingData, yardsticks: Mapping[str, float]) -> dict[str, Any]:
    """Return cross-validation by query, and by campaign if several, likelihood ratios of terms, and problems.

    Beside the error of a campaign stands that between its assessors, where pairs have several.
    """
    out: dict[str, Any] = {}
    for by in ("query", "campaign") if len(data.campaigns) > 1 else ("query",):
        held_out = cross_validate(model, data, by=by)
        for number, campaign in enumerate(data.campaigns):
            mine = data.campaign == number
            if mine.any():
                fit = diagnose(held_out[mine], data.take(mine))
                between = yardsticks.get(campaign, float("nan"))
                known = {} if isnan(between) else {"assessor_rmse": between}
                out.setdefault(f"held out by {by}", {})[campaign] = {**asdict(fit), "ratio": fit.ratio, **known}
        fit = diagnose(held_out, data)
        out[f"held out by {by}"]["all"] = {**asdict(fit), "ratio": fit.ratio}
    out["likelihood ratio chi-squared"] = likelihood_ratios(model, data)
    findings = [str(f) for f in proportional_odds(model, data)]
    return {**out, "findings": findings} if findings else out
