"""``probeval fit``: learn a relevance model from past campaigns."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from probeval.cli.options import Depth, Format, LabelsFrom, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write
from probeval.data import Collection, read_campaign, read_graded_labels
from probeval.errors import DataError, ModelError, did_you_mean
from probeval.relevance import Hierarchical, fit_card, write_card
from probeval.relevance.learning.fit import TEXT_JUD, hierarchical_card

__all__ = ["fit"]

DEPTH = 10


class Kind(StrEnum):
    """The kind of model."""

    hierarchical = "hierarchical"
    ordinal = "ordinal"


def fit(
    campaigns: Annotated[list[Path], typer.Argument(metavar="CAMPAIGN...", help="Folders with runs/ and qrels.txt.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where the card is written: models/NAME.")],
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="NAME", help="Leave this campaign out; may be repeated.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="hierarchical when not given; ordinal where --terms are.")
    ] = None,
    labels_from: LabelsFrom = None,
    terms: Annotated[
        list[str] | None,
        typer.Option(
            "--terms",
            metavar="T,T,..",
            help="Terms of an ordinal model, commas between them; repeat for a chain, the most informed first.",
        ),
    ] = None,
    depth: Depth = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Learn a relevance model from past campaigns and write it as a card: hierarchical, or a chain of ordinal models.

    Example: probeval fit campaigns/* --without trec8-adhoc -o models/mine
    """
    talk = Talk(quiet=quiet)
    names = [path.resolve().name for path in campaigns]
    for name in without or []:
        if name not in names:
            raise DataError(f"no campaign {name!r} to leave out.{did_you_mean(name, names)}")
    kept = [path for path, name in zip(campaigns, names, strict=True) if name not in (without or [])]
    if not kept:
        raise DataError("no campaign is left to learn from.")
    kind = kind or (Kind.ordinal if terms else Kind.hierarchical)
    if kind is Kind.hierarchical and terms:
        raise ModelError("--terms are for --kind ordinal; the hierarchical model has its own.")
    if kind is Kind.ordinal and labels_from is not None:
        raise ModelError("--labels-from is for --kind hierarchical; an ordinal model takes label[column] in --terms.")
    collections = [_read(path, depth or DEPTH, talk) for path in talk.track(kept, "Reading campaigns")]
    name, title = out.resolve().name, f"Relevance learned from {', '.join(c.name for c in collections)}."
    if kind is Kind.hierarchical:
        card = hierarchical_card(
            collections,
            name=name,
            title=title,
            depth=depth or DEPTH,
            labelled=None if labels_from is None else read_graded_labels(labels_from),
            made="`probeval fit`",
            progress=lambda work: talk.track(work, "Learning"),
        )
    else:
        card = fit_card(
            collections,
            name=name,
            title=title,
            terms=[tuple(t.split(",")) for t in terms] if terms else TEXT_JUD,
            depth=depth or DEPTH,
            made="`probeval fit`",
            progress=lambda models: talk.track(models, "Fitting"),
        )
    write_card(card, out)
    for finding in card.model.check():
        talk(str(finding))
    talk(f"Written to {out}/card.json; use it with --model {out}.")
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
    write(pd.DataFrame(rows), card.to_dict(), output_format)


def _read(path: Path, depth: int, talk: Talk) -> Collection:
    """A campaign with its fully judged systems, or with all where none is."""
    collection = read_campaign(path, progress=talk.progress)
    try:
        kept = collection.judged_systems(depth)
    except DataError:
        talk(f"{collection.name}: no system is fully judged to depth {depth}; all of them count.")
        return collection
    talk(f"{collection.name}: {len(kept.runs.systems)} of {len(collection.runs.systems)} systems are fully judged.")
    return kept
