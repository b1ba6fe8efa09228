"""``probeval fit``: fit a relevance model on past campaigns."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from probeval import api
from probeval.api.campaigns import CampaignFolders
from probeval.api.evidence import Observers
from probeval.api.fit import DEPTH
from probeval.api.settings import Depth, LabelsFrom
from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Talk, write, write_table
from probeval.data import read_campaign
from probeval.errors import DataError, ModelError, did_you_mean
from probeval.records import About
from probeval.relevance import Hierarchical

__all__ = ["fit"]


class Kind(StrEnum):
    """The kind of model."""

    hierarchical = "hierarchical"
    ordinal = "ordinal"


def fit(
    campaigns: CampaignFolders,
    out: Annotated[
        Path, About("The output folder of the card, such as models/NAME.", metavar="DIR", option="-o, --out")
    ],
    without: Annotated[list[str] | None, About("Leave this campaign out.", metavar="NAME", kind=str, many=True)] = None,
    kind: Annotated[
        Kind | None,
        About("The kind of model; default: ordinal with --terms, --select or --assessors, otherwise hierarchical."),
    ] = None,
    labels_from: LabelsFrom = None,
    observers: Observers = None,
    terms: Annotated[
        list[str] | None,
        About(
            "Terms of an ordinal model, comma-separated. Several are fallbacks, the most informative first.",
            metavar="T,T,..",
            kind=str,
            many=True,
        ),
    ] = None,
    select: Annotated[
        float | None,
        About(
            "Drop terms of ordinal models, one after another, until all are significant at this level (.0001).",
            metavar="ALPHA",
        ),
    ] = None,
    assessors: Annotated[
        Path | None,
        About(
            "Judgments by several assessors, whose disagreement is the yardstick of an ordinal model's error.",
            metavar="FILE",
        ),
    ] = None,
    depth: Depth = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Fit a relevance model on past campaigns and write it as a card: hierarchical, or ordinal with fallbacks.

    Example: probeval fit campaigns/* --without trec8-adhoc -o models/mine
    """
    talk = Talk(quiet=quiet)
    names = [path.resolve().name for path in campaigns]
    for name in without or []:
        if name not in names:
            raise DataError(f"no campaign {name!r} to leave out.{did_you_mean(name, names)}")
    kept = [path for path, name in zip(campaigns, names, strict=True) if name not in (without or [])]
    if not kept:
        raise DataError("no campaign is left to fit on.")
    kind = kind or (Kind.ordinal if terms or select is not None or assessors else Kind.hierarchical)
    if kind is Kind.hierarchical and terms:
        raise ModelError("--terms are for --kind ordinal; the hierarchical model has its own effects.")
    if kind is Kind.ordinal and labels_from:
        raise ModelError("--labels-from is for --kind hierarchical; an ordinal model takes label[column] in --terms.")
    card = talk.warned(
        lambda: api.fit(
            [read_campaign(path, reporter=talk) for path in talk.track(kept, "Reading campaigns")],
            kind=kind.value,
            terms=[text.split(",") for text in terms] if terms else None,
            depth=depth or DEPTH,
            labels_from=labels_from,
            observers=observers,
            select=select,
            assessors=assessors,
            out=out,
            made="`probeval fit`",
            reporter=talk,
        )
    )
    for finding in card.model.check():
        talk.say(str(finding))
    talk.say(f"Written to {out}/card.json; use it with --model {out}.")
    if isinstance(card.model, Hierarchical):
        rows = [
            {"effect": k, "median sd": float(np.exp(n.mean)), "log sd": n.sd}
            for k, n in card.model.prior.log_sds.items()
        ]
        write(pd.DataFrame(rows), card.to_dict(), output_format)
        return
    rows = [
        {"model": model, "held out by": by.removeprefix("held out by "), "campaign": campaign, **figures}
        for model, parts in card.evaluation.items()
        for by, campaigns_ in parts.items()
        if by.startswith("held out")
        for campaign, figures in campaigns_.items()
    ]
    for model, parts in card.evaluation.items():
        if select is not None and output_format not in (OutputFormat.csv, OutputFormat.json):
            table = pd.DataFrame(parts["elimination"]["terms"])
            write_table(table, output_format, title=f"Terms, down to {model}", decimals={"chi2": 1, "dropped": 0})
            talk.say("")
    write(pd.DataFrame(rows), card.to_dict(), output_format)
