"""``probeval next``: the pairs to judge next."""

from __future__ import annotations

from typing import Annotated

import typer

from probeval import api
from probeval.cli.options import (
    Depth,
    DocsFile,
    Errors,
    Explore,
    Format,
    Gain,
    GoalName,
    Labels,
    MagnitudesFile,
    MappingName,
    MetadataFile,
    Metric,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutFolder,
    OutputFormat,
    Outside,
    PartJobs,
    PolicyName,
    PoolPaths,
    PreferencesFile,
    Qrels,
    QueriesFile,
    Quiet,
    Reference,
    Rope,
    RunPathsOrPartitions,
    ScaleName,
    Scheduler,
    Seed,
    Stop,
    ToolName,
    parse_stop,
)
from probeval.cli.output import Talk, check_tool, write
from probeval.data import read_texts
from probeval.selection import fairness

__all__ = ["next_pairs"]


def next_pairs(
    runs: RunPathsOrPartitions,
    metric: Metric,
    n: Annotated[int, typer.Option("-n", "--number", min=0, help="The number of pairs.")] = 20,
    policy: PolicyName = "gain",
    goal: GoalName = "ranking",
    stop: Stop = "confidence=.95",
    errors: Errors = None,
    rope: Rope = "0",
    mapping: MappingName = None,
    explore: Explore = None,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    preferences: PreferencesFile = None,
    magnitudes: MagnitudesFile = None,
    docs: DocsFile = None,
    pool: PoolPaths = None,
    outside: Outside = False,
    reference: Reference = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    fair: Annotated[
        bool, typer.Option("--fairness", help="Show instead how much of each team's documents was judged.")
    ] = False,
    tool: ToolName = None,
    out: OutFolder = None,
    queries: QueriesFile = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    jobs: PartJobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Choose the pairs of query and document to judge next, given the judgments so far; show whether to stop.

    Example: probeval next runs/ --qrels judged.txt --metric nDCG@10 -n 20
    """
    talk = Talk(quiet=quiet)
    folder = check_tool(tool, out)
    texts = None if queries is None else read_texts(queries, "query")
    found = talk.warned(
        lambda: api.next_pairs(
            runs,
            metric,
            n,
            policy=policy,
            goal=goal,
            stop=parse_stop(stop, errors),
            rope=rope,
            mapping=mapping,
            explore=explore,
            qrels=qrels,
            metadata=metadata,
            labels=labels,
            observers=observers,
            preferences=preferences,
            magnitudes=magnitudes,
            docs=docs,
            pool=pool,
            outside=outside,
            reference=reference,
            model=model,
            scale=scale,
            gain=gain,
            depth=depth,
            order=order.value,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            progress=talk.progress,
            follow=talk.track,
            say=talk,
        )
    )
    for sentence in talk.warned(found.status):
        talk(sentence)
    if fair:
        teams = fairness(found.state, progress=lambda work: talk.track(work, "Leaving teams out"))
        write(teams, {"teams": teams.to_dict("records")}, output_format)
        return
    if found.check.reached:
        talk("Set another target with --stop.")
    elif tool is not None and folder is not None and found.pairs:
        files = found.hand_out(tool, folder, queries=texts, docs=docs)
        talk(f"For {tool}: {', '.join(map(str, files))}.")
    write(found.to_frame(), found.to_dict(), output_format)
