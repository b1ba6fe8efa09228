"""``probeval next``: which pairs to judge next."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer

from probeval.cli.options import (
    Depth,
    Explore,
    Format,
    Gain,
    GoalName,
    Labels,
    MetadataFile,
    Metric,
    ModelName,
    Order,
    OrderName,
    OutputFormat,
    PolicyName,
    Qrels,
    Quiet,
    RunPaths,
    ScaleName,
    Seed,
    Stop,
)
from probeval.cli.output import Talk, write
from probeval.cli.sources import collect
from probeval.data import Scale
from probeval.errors import ProbevalError
from probeval.relevance import choose_model
from probeval.selection import Judging, JudgingState, Stopping, Verdict, fairness

__all__ = ["next_pairs"]


def next_pairs(
    runs: RunPaths,
    metric: Metric,
    n: Annotated[int, typer.Option("-n", "--number", min=0, help="How many pairs.")] = 20,
    policy: PolicyName = "gain",
    goal: GoalName = "ranking",
    stop: Stop = "confidence=.95",
    explore: Explore = None,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    fair: Annotated[
        bool, typer.Option("--fairness", help="Say instead how much of each team's documents was judged.")
    ] = False,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say which pairs of query and document to judge next, given what is judged so far, and whether to stop.

    Example: probeval next runs/ --qrels judged.txt --metric nDCG@10 -n 20
    """
    talk = Talk(quiet=quiet)
    rule, named = Stopping.parse(stop), None if scale is None else Scale.parse(scale)
    collection = collect(runs, qrels=qrels, metadata=metadata, labels=labels, scale=named, order=order.value, talk=talk)
    if model == "none":
        raise ProbevalError("Choosing needs a model: uniform, empirical, independent, hierarchical or a card.")
    choice = choose_model(model, collection, scale=named)
    talk(f"Model {choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")
    judging = Judging.of(
        collection,
        choice.model,
        metric,
        policy=policy,
        goal=goal,
        scale=choice.scale if gain is None else choice.scale.with_gain(gain.value),
        depth=depth,
        explore=explore,
        seed=seed,
    )
    state = talk.warned(judging.begin)
    verdict = Verdict.of(state.ranking)
    check = rule.check(state)
    talk(f"{state.scores.judged:,} of {state.scores.pool:,} pairs judged, confidence {state.ranking.confidence:.3f}.")
    talk(str(verdict))
    if fair:
        report = fairness(state, progress=lambda teams: talk.track(teams, "Leaving teams out"))
        write(report, {"teams": report.to_dict("records")}, output_format)
        return
    if check.reached:
        talk(f"The target is met ({'; '.join(check.reasons)}): nothing needs to be judged. Set another with --stop.")
    elif not state.open.any():
        talk("Every pair is judged.")
    left = rule.left(len(state.judgments))
    table = _table(state, 0 if check.reached else n if left is None else min(n, left))
    document = {
        "metric": str(judging.metric),
        "model": choice.name,
        "policy": policy,
        "goal": str(judging.goal),
        "pool": state.scores.pool,
        "judged": state.scores.judged,
        "confidence": state.ranking.confidence,
        "stop": {"reached": check.reached, "reasons": list(check.reasons), "values": check.values},
        "comparisons": verdict.counts(),
        "next": table.to_dict("records"),
    }
    write(table, document, output_format)


def _table(state: JudgingState, n: int) -> pd.DataFrame:
    """One row per pair: query, doc, the expected grade and its sd, how many systems retrieved it, the best rank."""
    pairs = state.next(n)
    known = state.prediction.relevance.take(pairs).to_frame().iloc[pairs.argsort().argsort()]
    systems = state.context.retrieved[:, pairs].sum(axis=0).astype(int)
    return pd.DataFrame(
        {
            "query": known["query"].to_numpy(),
            "doc": known["doc"].to_numpy(),
            "grade": known["mean"].to_numpy(),
            "sd": known["sd"].to_numpy(),
            "systems": systems,
            "best_rank": state.context.best_rank[pairs] + 1,
        }
    )
