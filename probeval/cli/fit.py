"""``probeval fit``: fit a relevance model on past campaigns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import pandas as pd

from probeval.api.fit import CardFolder, FitInputs
from probeval.cli.commands import Output, verb
from probeval.display import Table
from probeval.errors import DataError, did_you_mean
from probeval.records import About
from probeval.relevance import Card, Hierarchical
from probeval.results import FLAT, Result

__all__ = ["fit"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedCard(Result):
    """A fitted model, with its training data, its evaluation and its limits."""

    card: Annotated[Card, FLAT]

    def _headline(self) -> str:
        return self.card._headline()

    def to_frame(self) -> pd.DataFrame:
        """One row per effect of a hierarchical model; else one per model and campaign that was held out."""
        card = self.card
        if isinstance(card.model, Hierarchical):
            sds = card.model.prior.log_sds.items()
            return pd.DataFrame([{"effect": k, "median sd": float(np.exp(n.mean)), "log sd": n.sd} for k, n in sds])
        return pd.DataFrame(
            [
                {"model": model, "held out by": by.removeprefix("held out by "), "campaign": campaign, **figures}
                for model, parts in card.evaluation.items()
                for by, campaigns in parts.items()
                if by.startswith("held out")
                for campaign, figures in campaigns.items()
            ]
        )

    def tables(self) -> tuple[Table, ...]:
        """The terms in the order in which they left, if any did; then the rows."""
        decimals = {"chi2": 1, "dropped": 0}
        eliminated = (
            Table(pd.DataFrame(parts["elimination"]["terms"]), f"Terms, down to {model}", decimals)
            for model, parts in self.card.evaluation.items()
            if "elimination" in parts
        )
        effects = isinstance(self.card.model, Hierarchical)
        return (*eliminated, Table(self.to_frame(), "Effects" if effects else "On held-out queries and campaigns"))


@verb("Fit a relevance model on past campaigns.")
def fit(
    given: FitInputs,
    output: Output,
    out: CardFolder,
    without: Annotated[list[str] | None, About("Leave this campaign out.", metavar="NAME", kind=str, many=True)] = None,
) -> FittedCard:
    """Fit a relevance model on past campaigns and write it as a card: hierarchical, or ordinal with fallbacks.

    Example: probeval fit campaigns/* --without trec8-adhoc -o models/mine
    """
    messages, folders = output.messages, cast("list[Path]", given.campaigns)
    names = [path.resolve().name for path in folders]
    for name in without or []:
        if name not in names:
            raise DataError(f"no campaign {name!r} to leave out.{did_you_mean(name, names)}")
    kept = [path for path, name in zip(folders, names, strict=True) if name not in (without or [])]
    card = messages.warned(replace(given, campaigns=kept, made="`probeval fit`").run)
    for finding in card.model.check():
        messages.say(str(finding))
    messages.say(f"Written to {out}/card.json; use it with --model {out}.")
    return FittedCard(card)
