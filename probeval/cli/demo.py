"""``probeval demo``: a campaign that never happened, evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from probeval.cli.options import Format, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write_csv, write_json, write_table
from probeval.data import synthetic_campaign, write_campaign
from probeval.metrics import measure, parse

__all__ = ["demo"]

METRIC = "nDCG@10"
SHARE = 0.2


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the campaign is written.")] = Path("probeval-demo"),
    form: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Make a synthetic campaign, evaluate it with all judgments and with a fifth of them, and say what to type next."""
    talk = Talk(quiet=quiet)
    rng = np.random.default_rng(seed)
    campaign = synthetic_campaign(rng)
    assert campaign.judgments is not None
    write_campaign(campaign, folder)
    talk(
        f"A synthetic campaign (no real systems, queries or documents) is in {folder}/: {len(campaign.runs.systems)} "
        f"systems, {len(campaign.runs.queries)} queries, {len(campaign.runs.pool):,} pairs."
    )
    few = campaign.judgments.take(rng.permutation(len(campaign.judgments))[: int(SHARE * len(campaign.judgments))])
    metric = parse(METRIC)
    full, partial = (measure(campaign.runs, judged, metric) for judged in (campaign.judgments, few))
    if form is OutputFormat.csv:
        tables = {"full": full.table(), "partial": partial.table()}
        write_csv(pd.concat([t.reset_index().assign(judgments=name) for name, t in tables.items()]))
        return
    if form is OutputFormat.json:
        write_json({"full": full.document(), "partial": partial.document()})
        return
    write_table(full.table().reset_index(), title=f"\n{METRIC}, every pair judged: the bounds meet.")
    title = f"\n{METRIC}, {SHARE:.0%} of the pairs judged: the unjudged could move every score from lower to upper."
    write_table(partial.table().reset_index(), title=title)
    talk("\nTry it with your own runs (TREC format, one file a system) and judgments:")
    talk("  probeval evaluate RUNS/ --qrels qrels.txt --metric nDCG@10 --metric AP")
    talk(f"  probeval evaluate {folder}/runs --qrels {folder}/qrels.txt --metric 'RBP(p=0.8)' --format json")
