"""Relevance models learned from past campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from probeval.api.campaigns import CampaignFolders, as_campaigns
from probeval.api.evidence import Observers, read_labelled, with_observers
from probeval.api.settings import LabelsFrom, Work
from probeval.data import Collection, Judgments, as_judgments
from probeval.data.collection import JUDGED, judged_share
from probeval.errors import DataError, ModelError
from probeval.records import About, task
from probeval.relevance import Card, assessor_rmse, fit_card, write_card
from probeval.relevance.learning.fit import TEXT_JUD, hierarchical_card
from probeval.reporting import Reporter

__all__ = ["KINDS", "CardFolder", "FitInputs", "fit"]

KINDS = {
    "hierarchical": "effects of queries, systems and teams, with variances learned from past campaigns",
    "ordinal": "ordinal logit models of features, with fallbacks",
}
CardFolder = Annotated[
    str | PathLike[str] | None,
    About("The output folder of the card, such as models/NAME.", metavar="DIR", option="-o, --out", kind=Path),
]


def parse_terms(_: str, text: str) -> list[str]:
    """The terms of a model."""
    return text.split(",")


@dataclass(frozen=True, eq=False, repr=False)
class FitInputs(Work):
    """Fit a relevance model on past campaigns.

    Graded labels (see :func:`probeval.data.read_graded_labels`) show how reliable those are who gave them. An ordinal
    model has fallbacks; its default terms are those for texts. Where its terms are selected, they are dropped one after
    another by their likelihood ratios. The yardstick of its error is how far assessors of the same pairs differ, by
    default those of each campaign.

    Examples
    --------
    >>> import probeval
    >>> from dataclasses import replace
    >>> past = [probeval.synthetic_campaign(seed=i, systems=4, queries=10) for i in range(2)]
    >>> card = probeval.fit([replace(c, name=f"past-{i}") for i, c in enumerate(past)])
    >>> probeval.evaluate(past[0].runs, "nDCG@10", model=card, scale="graded:2").choice.name
    'mine'
    """

    campaigns: CampaignFolders
    _: KW_ONLY
    out: CardFolder = None
    kind: Annotated[
        str | None,
        About(
            "The kind of model; default: ordinal with --terms, --select or --assessors, otherwise hierarchical.",
            choices=tuple(KINDS),
        ),
    ] = None
    labels_from: LabelsFrom = None
    observers: Observers = None
    terms: Annotated[
        Sequence[Sequence[str]] | None,
        About(
            "Terms of an ordinal model, comma-separated. Several are fallbacks, the most informative first.",
            metavar="T,T,..",
            kind=str,
            many=True,
            parse=parse_terms,
        ),
    ] = None
    select: Annotated[
        float | None,
        About(
            "Drop terms of ordinal models, one after another, until all are significant at this level (.0001).",
            metavar="ALPHA",
        ),
    ] = None
    assessors: Annotated[
        Any,
        About(
            "Judgments by several assessors, whose disagreement is the yardstick of an ordinal model's error.",
            metavar="FILE",
            kind=Path,
        ),
    ] = None
    depth: Annotated[int, About("The depth of the pools.", least=1)] = 10
    name: Annotated[str, About("The name of the model; one that is written has the name of its folder.", option="")] = (
        "mine"
    )
    made: Annotated[str, About("The origin of the model, for the card.", option="")] = "`probeval.fit`"

    def run(self) -> Card:
        """The fitted model."""
        depth, reporter, terms = self.depth, self.reporter, self.terms
        of_ordinal = self.select is not None or self.assessors is not None
        kind = self.kind or ("ordinal" if terms or of_ordinal else "hierarchical")
        if kind not in KINDS:
            raise ModelError(f"No kind of model {kind!r}: {', '.join(KINDS)}.")
        if kind == "hierarchical" and terms:
            raise ModelError("Terms belong to ordinal models; the hierarchical model has effects of its own.")
        if kind == "ordinal" and self.labels_from:
            raise ModelError(
                "Graded labels belong to the hierarchical model; an ordinal model takes a term label[column]."
            )
        if kind == "hierarchical" and of_ordinal:
            raise ModelError(
                "Terms are selected, and errors compared with assessors', in ordinal models: kind='ordinal'."
            )
        if not self.campaigns:
            raise DataError("no campaign is left to fit on.")
        read = as_campaigns(self.campaigns, reporter=reporter)
        collections, labelled = with_observers(
            [_judged_part(c, depth, reporter) for c in read], self.observers, read_labelled(self.labels_from)
        )
        folder = None if self.out is None else Path(self.out)
        name = self.name if folder is None else folder.resolve().name
        title = f"Relevance learned from {', '.join(c.name for c in collections)}."
        if kind == "hierarchical":
            card = hierarchical_card(
                collections, name=name, title=title, depth=depth, labelled=labelled, made=self.made, reporter=reporter
            )
        else:
            chosen = TEXT_JUD if terms is None else [tuple(t) for t in terms]
            card = fit_card(
                collections, name=name, title=title, terms=chosen, depth=depth, select=self.select,
                assessors=_several(self.assessors), made=self.made, reporter=reporter,
            )  # fmt: skip
        if folder is not None:
            write_card(card, folder)
        return card


fit = task(FitInputs, "fit")


def _several(assessors: Any) -> Judgments | None:
    """Judgments by several assessors of some pairs."""
    if assessors is None:
        return None
    found = as_judgments(assessors)
    if np.isnan(assessor_rmse(found)):
        raise DataError("no pair has judgments by several assessors: their disagreement needs two of each.")
    return found


def _judged_part(collection: Collection, depth: int, reporter: Reporter) -> Collection:
    """The part of a campaign to learn from; says which."""
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
