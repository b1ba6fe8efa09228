"""``probeval fit``: fit a relevance model on past campaigns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import pandas as pd

from probeval.api.fit import CardFolder, FitInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import write, write_table
from probeval.errors import DataError, did_you_mean
from probeval.records import About
from probeval.relevance import Hierarchical

__all__ = ["fit"]


@verb("Fit a relevance model on past campaigns.")
def fit(
    given: FitInputs,
    output: Output,
    out: CardFolder,
    without: Annotated[list[str] | None, About("Leave this campaign out.", metavar="NAME", kind=str, many=True)] = None,
) -> None:
    """Fit a relevance model on past campaigns and write it as a card: hierarchical, or ordinal with fallbacks.

    Example: probeval fit campaigns/* --without trec8-adhoc -o models/mine
    """
    messages, output_format, folders = output.messages, output.output_format, cast("list[Path]", given.campaigns)
    names = [path.resolve().name for path in folders]
    for name in without or []:
        if name not in names:
            raise DataError(f"no campaign {name!r} to leave out.{did_you_mean(name, names)}")
    kept = [path for path, name in zip(folders, names, strict=True) if name not in (without or [])]
    card = messages.warned(replace(given, campaigns=kept, made="`probeval fit`").run)
    for finding in card.model.check():
        messages.say(str(finding))
    messages.say(f"Written to {out}/card.json; use it with --model {out}.")
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
        if given.select is not None and output_format not in (OutputFormat.csv, OutputFormat.json):
            table = pd.DataFrame(parts["elimination"]["terms"])
            write_table(table, output_format, title=f"Terms, down to {model}", decimals={"chi2": 1, "dropped": 0})
            messages.say("")
    write(pd.DataFrame(rows), card.to_dict(), output_format)
