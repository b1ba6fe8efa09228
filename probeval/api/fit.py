"""Relevance models learned from past campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from probeval.api.evidence import read_labelled, with_observers
from probeval.data import Collection, Judgments, as_judgments, read_campaign
from probeval.data.collection import JUDGED, judged_share
from probeval.errors import DataError, ModelError
from probeval.relevance import Card, assessor_rmse, fit_card, write_card
from probeval.relevance.learning.fit import TEXT_JUD, hierarchical_card
from probeval.reporting import SILENT, Reporter

__all__ = ["KINDS", "fit"]

DEPTH = 10
KINDS = {
    "hierarchical": "effects of queries, systems and teams, with variances learned from past campaigns",
    "ordinal": "ordinal logit models of features, with fallbacks",
}


def fit(
    campaigns: Sequence[Collection | str | PathLike[str]],
    *,
    kind: str = "hierarchical",
    terms: Sequence[Sequence[str]] | None = None,
    depth: int = DEPTH,
    labels_from: Any = None,
    observers: Any = None,
    select: float | None = None,
    assessors: Any = None,
    name: str = "mine",
    out: str | PathLike[str] | None = None,
    made: str = "`probeval.fit`",
    reporter: Reporter = SILENT,
) -> Card:
    """Fit a relevance model on past campaigns.

    Parameters
    ----------
    campaigns
        Folders with ``runs/`` and ``qrels.txt``, or collections with judgments.
    kind
        One of :data:`KINDS`.
    terms
        Terms of each ordinal model, the most informative first; by default those for texts.
    depth
        The depth of the pools.
    labels_from
        A table of labels beside grades (see :func:`probeval.data.read_graded_labels`), or several, to learn how
        reliable those are who gave them.
    observers
        Who gave the labels: see :func:`probeval.as_collection`.
    select
        Of ordinal models: the level of significance at which terms are dropped, one after another, by their likelihood
        ratios; None: all stay.
    assessors
        Of ordinal models: judgments of the same pairs by several assessors, a path or anything that
        :func:`~probeval.data.as_judgments` takes. Their disagreement is the yardstick of the model's error; by default
        that of each campaign's own assessors.
    name, out
        The name of the model; and the folder to write it to, whose name it then takes.
    made
        The origin of the model, for the card.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> from dataclasses import replace
    >>> past = [probeval.synthetic_campaign(np.random.default_rng(i), systems=4, queries=10) for i in range(2)]
    >>> card = probeval.fit([replace(c, name=f"past-{i}") for i, c in enumerate(past)])
    >>> probeval.evaluate(past[0].runs, "nDCG@10", model=card, scale="graded:2").choice.name
    'mine'
    """
    if kind not in KINDS:
        raise ModelError(f"No kind of model {kind!r}: {', '.join(KINDS)}.")
    if kind == "hierarchical" and terms:
        raise ModelError("Terms belong to ordinal models; the hierarchical model has effects of its own.")
    if kind == "ordinal" and labels_from:
        raise ModelError("Graded labels belong to the hierarchical model; an ordinal model takes a term label[column].")
    if kind == "hierarchical" and (select is not None or assessors is not None):
        raise ModelError("Terms are selected, and errors compared with assessors', in ordinal models: kind='ordinal'.")
    if not campaigns:
        raise DataError("no campaign is left to fit on.")
    collections, labelled = with_observers(
        [_judged_part(c, depth, reporter) for c in campaigns], observers, read_labelled(labels_from)
    )
    folder = None if out is None else Path(out)
    name = name if folder is None else folder.resolve().name
    title = f"Relevance learned from {', '.join(c.name for c in collections)}."
    if kind == "hierarchical":
        card = hierarchical_card(
            collections, name=name, title=title, depth=depth, labelled=labelled, made=made, reporter=reporter
        )
    else:
        chosen = TEXT_JUD if terms is None else [tuple(t) for t in terms]
        card = fit_card(
            collections, name=name, title=title, terms=chosen, depth=depth, select=select,
            assessors=_several(assessors), made=made, reporter=reporter,
        )  # fmt: skip
    if folder is not None:
        write_card(card, folder)
    return card


def _several(assessors: Any) -> Judgments | None:
    """Judgments by several assessors of some pairs."""
    if assessors is None:
        return None
    found = as_judgments(assessors)
    if np.isnan(assessor_rmse(found)):
        raise DataError("no pair has judgments by several assessors: their disagreement needs two of each.")
    return found


def _judged_part(campaign: Collection | str | PathLike[str], depth: int, reporter: Reporter) -> Collection:
    """The part of a campaign to learn from; says which."""
    collection = campaign if isinstance(campaign, Collection) else read_campaign(campaign)
    kept = collection.judged_part(depth)
    assert kept.judgments is not None
    fully = int(np.sum(judged_share(kept.runs, kept.judgments, kept.runs.depth) > JUDGED))
    found = f"{collection.name}: {fully} of {len(collection.runs.systems)} systems are fully judged"
    if fully < len(kept.runs.systems):
        reporter.say(f"{found}; all of them count.")
    elif kept.runs.depth < min(depth, collection.runs.depth):
        reporter.say(f"{found} to depth {kept.runs.depth}; their lists are cut there.")
    else:
        reporter.say(f"{found}.")
    return kept
