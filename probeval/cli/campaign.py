"""``probeval campaign``: judging by one person or a team, kept in a durable store."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from probeval.api.inputs import as_collection, as_scale, note_texts, select_model
from probeval.api.users import as_goal_metric, as_rope
from probeval.cli.assessor_texts import guideline, guideline_text, queries, texts_known
from probeval.cli.completion import complete_export, complete_import
from probeval.cli.documents import (
    DisagreementDocument,
    DisagreementsDocument,
    EventDocument,
    ImportDocument,
    TaskDocument,
    TasksDocument,
)
from probeval.cli.options import (
    Depth,
    DocsFile,
    Explore,
    Format,
    Gain,
    GoalName,
    Labels,
    MappingName,
    MetadataFile,
    Metric,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    PolicyName,
    Qrels,
    Quiet,
    Rope,
    RunPaths,
    ScaleName,
    Seed,
    Stop,
)
from probeval.cli.output import Talk, write, write_csv, write_json, write_table
from probeval.cli.stores import By, Name, StorePlace, opened_campaign
from probeval.data import read_texts
from probeval.data.files import write_bytes
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.campaign import Campaign, Status

__all__ = ["campaign"]

campaign = typer.Typer(help="Judge alone or in a team: create a campaign, get pairs, record grades, export.")


AssessorName = Annotated[str, typer.Option("--assessor", metavar="NAME", help="The name of the assessor.")]
QueryId = Annotated[str | None, typer.Argument(metavar="[QUERY]", help="The id of the query.")]
DocId = Annotated[str | None, typer.Argument(metavar="[DOC]", help="The id of the document.")]
Grade = Annotated[float | None, typer.Argument(metavar="[GRADE]", help="A grade of the campaign's scale.")]
Token = Annotated[
    str | None, typer.Option("--token", metavar="TEXT", help="A name for this request: sent twice, it counts once.")
]


@campaign.command()
def create(
    store: StorePlace,
    runs: RunPaths,
    metric: Metric,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    docs: DocsFile = None,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="FILE", help="Query texts: a table of query and text."),
    ] = None,
    guideline: Annotated[
        Path | None, typer.Option("--guideline", metavar="FILE", help="Instructions for assessors: a text file.")
    ] = None,
    scale: ScaleName = None,
    gain: Gain = None,
    model: ModelName = None,
    depth: Depth = None,
    policy: PolicyName = "gain",
    goal: GoalName = "ranking",
    stop: Stop = "confidence=.95",
    rope: Rope = "0",
    mapping: MappingName = None,
    explore: Explore = None,
    overlap: Annotated[
        float, typer.Option("--overlap", min=0, max=1, help="The share of pairs that several assessors judge.")
    ] = 0.0,
    opinions: Annotated[int, typer.Option("--opinions", min=2, help="The number of assessors for these pairs.")] = 2,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="The grade of a pair that has several: unanimous, median, majority, min, max, latest.",
        ),
    ] = "unanimous",
    lease: Annotated[float, typer.Option("--lease", min=0.1, help="Minutes that an assessor may hold a pair.")] = 15.0,
    order: Order = OrderName.trec_eval,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the campaign.")] = "campaign",
    by: By = "owner",
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Create a campaign in a store, with its runs, measure, model, policy and stopping rule.

    Example: probeval campaign create mine.db runs/ --metric nDCG@10 --scale graded:3
    """
    from probeval.campaign import Campaign

    talk = Talk(quiet=quiet)
    if model == "none":
        raise ProbevalError("A campaign needs a model: uniform, empirical, independent, hierarchical or a card.")
    collection = talk.warned(
        lambda: as_collection(
            runs, qrels=qrels, metadata=metadata, labels=labels, observers=observers, docs=docs,
            scale=as_scale(scale), order=order.value, progress=talk.progress,
        )
    )  # fmt: skip
    choice = select_model(collection, model, scale=scale, gain=gain and gain.value, say=talk)
    measure = as_goal_metric(metric, goal, mapping=mapping, rope=rope)
    deep = depth or measure.cutoff or collection.runs.depth
    note_texts(collection, docs, depth=deep, model=choice.model, say=talk)
    with Campaign.create(
        store,
        collection,
        metric=str(measure),
        scale=choice.scale,
        model=model if model is not None and Path(model).exists() else choice.name,
        depth=depth,
        name=name,
        guideline="" if guideline is None else guideline_text(guideline),
        queries=None if queries is None else read_texts(queries, "query"),
        by=by,
        policy=policy,
        goal=goal,
        stopping=stop,
        rope=as_rope(rope, measure, choice.scale, mapping=mapping, say=talk),
        explore=explore,
        overlap=overlap,
        opinions=opinions,
        rule=rule,
        lease=lease * 60,
        seed=seed,
    ) as made:
        _write_status(made.status(), output_format)
        texts = made.queries
    talk(texts_known(texts, store))
    place = shlex.quote(store)
    talk(f"Next: probeval judge {place} --docs FILE (on a page), or probeval campaign next {place} --assessor YOU")


@campaign.command()
def status(
    store: StorePlace,
    name: Name = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Run the model first if there are new judgments.")] = False,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show progress: judgments, assessors, agreement, confidence in the ranking, remaining work.

    Example: probeval campaign status mine.db --refresh
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name, read_only=not refresh) as opened:
        if refresh and opened.is_behind:
            talk.warned(opened.refresh)
        _write_status(opened.status(), output_format)


@campaign.command("next")
def next_tasks(
    store: StorePlace,
    assessor: AssessorName,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="The number of pairs.")] = 1,
    name: Name = None,
    refresh: Annotated[
        bool, typer.Option("--refresh/--no-refresh", help="Run the model first if there are new judgments.")
    ] = True,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Lease pairs to an assessor for judging.

    Example: probeval campaign next mine.db --assessor ann -n 10 --format csv
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name) as opened:
        if refresh and opened.is_behind:
            talk.warned(opened.refresh)
        snapshot = opened.snapshot
        if snapshot is not None and snapshot.reached:
            talk(f"The target is met ({'; '.join(snapshot.reasons)}): no more judgments are needed.")
        tasks = opened.next(assessor, n=n)
        if not tasks:
            talk(f"No pairs are left for {assessor}.")
        rows: list[TaskDocument] = [{"query": t.query, "doc": t.doc, "text": t.text, "until": t.until} for t in tasks]
        document: TasksDocument = {"assessor": assessor, "next": rows}
        frame = pd.DataFrame(rows, columns=["query", "doc", "text", "until"])
        shown = frame.assign(until=pd.to_datetime(frame["until"].round(), unit="s").astype(str))
        write(frame if output_format is OutputFormat.csv else shown, document, output_format)


@campaign.command()
def record(
    store: StorePlace,
    assessor: AssessorName,
    query: QueryId = None,
    doc: DocId = None,
    grade: Grade = None,
    withdraw: Annotated[
        int | None, typer.Option("--withdraw", metavar="NUMBER", help="Withdraw this judgment (0: the latest).")
    ] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Leave the pair to others.")] = False,
    flag: Annotated[str | None, typer.Option("--flag", metavar="TEXT", help="Report a problem with the pair.")] = None,
    comment: Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="Comment on the pair.")] = None,
    token: Token = None,
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Record a grade for a pair, or skip it, flag it, comment on it; or withdraw a judgment.

    Example: probeval campaign record mine.db q01 d0007 2 --assessor ann
    """
    with opened_campaign(store, name) as opened:
        if withdraw is not None:
            done: list[Any] = [opened.withdraw(assessor, withdraw or None, token=token)]
        else:
            if query is None or doc is None or (grade is None and not skip and flag is None and comment is None):
                raise ProbevalError("Give QUERY, DOC and GRADE; or QUERY and DOC with --skip, --flag or --comment.")
            done = [] if comment is None else [opened.comment(assessor, query, doc, comment)]
            done += [] if flag is None else [opened.flag(assessor, query, doc, reason=flag)]
            if grade is not None:
                done.append(opened.record(assessor, query, doc, grade, token=token))
            elif skip:
                done.append(opened.skip(assessor, query, doc, token=token))
        rows = [_event(event) for event in done]
        write(pd.DataFrame(rows), rows[0] if len(rows) == 1 else rows, output_format)


@campaign.command()
def adjudicate(
    store: StorePlace,
    query: QueryId = None,
    doc: DocId = None,
    grade: Grade = None,
    by: By = "owner",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason.")] = "",
    token: Token = None,
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Settle the grade of a pair; without QUERY, DOC and GRADE list the disagreements.

    Example: probeval campaign adjudicate mine.db q01 d0007 1 --by eve
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name, read_only=query is None) as opened:
        if query is None:
            rows = _disagreements(opened)
            waiting: DisagreementsDocument = {"disagreements": rows}
            if not rows:
                talk("No open disagreements.")
            write(
                pd.DataFrame(rows, columns=["query", "doc", "grades", "comments"]),
                waiting,
                output_format,
            )
            return
        if doc is None or grade is None:
            raise ProbevalError("Give QUERY, DOC and GRADE, or none of them to list the disagreements.")
        row = _event(opened.adjudicate(by, query, doc, grade, reason=reason, token=token))
        write(pd.DataFrame([row]), row, output_format)


campaign.command()(guideline)
campaign.command()(queries)


@campaign.command()
def export(
    store: StorePlace,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="The output file; stdout by default.")
    ] = None,
    name: Name = None,
    export_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="qrels: one grade per pair; csv, jsonl: one row per judgment; log: every event.",
            autocompletion=complete_export,
        ),
    ] = "qrels",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write the judgments; adjudicated grades replace the others and are marked.

    Example: probeval campaign export mine.db -o qrels.txt
    """
    with opened_campaign(store, name, read_only=True) as opened:
        text = opened.export(export_format)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write_bytes(out, text.encode())
            scale = opened.scale  # not in the file
            Talk(quiet=quiet)(f"{text.count(chr(10)):,} lines in {out}. Read them elsewhere with --scale {scale}.")


@campaign.command("import")
def import_file(
    store: StorePlace,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Judgments or labels.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="The format: qrels, table, quepid, umbrela, ragelo, opensearch or labels; by default detected.",
            autocompletion=complete_import,
        ),
    ] = None,
    assessor: Annotated[
        str | None, typer.Option("--assessor", metavar="NAME", help="The assessor, if the file names none.")
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            "--machine", metavar="NAME", help="An assessor that is a machine: its grades are labels; may be repeated."
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", help="Document texts, for UMBRELA output without ids."),
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Import judgments (qrels, a table, a Quepid book) or machine labels, all of a file or nothing.

    Labels are evidence about relevance, never judgments. The same file cannot be imported twice.

    Example: probeval campaign import mine.db qrels.txt --assessor trec
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name) as opened:
        incoming = talk.warned(
            lambda: opened.import_file(
                by,
                file,
                file_format=kind,
                assessor=assessor,
                machines=machine or [],
                docs=None if docs is None else read_texts(docs, "doc"),
            )
        )
    for what in incoming.left_out:
        talk(f"Left out: {what}.")
    row: ImportDocument = {
        "judgments": len(incoming.judgments),
        "assessors": ", ".join(sorted({incoming.judgments.assessors[i] for i in incoming.judgments.assessor})),
        "labelled": 0 if incoming.labels is None else len(incoming.labels.pool),
        "machines": "" if incoming.labels is None else ", ".join(incoming.labels.sources),
    }
    write(pd.DataFrame([row]), row, output_format)


def _write_status(status: Status, output_format: OutputFormat) -> None:
    table = status.to_frame()
    if output_format is OutputFormat.json:
        write_json(status.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(table)
    elif output_format is not OutputFormat.table:
        for view in status.views():
            write_table(view.frame, output_format, title=view.title)
    else:
        typer.echo(str(status))
        if len(table):
            write_table(table, output_format)


def _disagreements(opened: Campaign) -> list[DisagreementDocument]:
    state = opened.state
    rows: list[DisagreementDocument] = []
    for pair in state.disagreements:
        grades = ", ".join(f"{who} {judgment.grade:g}" for who, judgment in sorted(state.latest(pair).items()))
        comments = "; ".join(f"{comment.by}: {comment.text}" for comment in state.comments.get(pair, ()))
        rows.append({"query": pair[0], "doc": pair[1], "grades": grades, "comments": comments})
    return rows


def _event(event: Any) -> EventDocument:
    """An event as a row of output."""
    row: EventDocument = {
        "number": event.number,
        "event": event.kind,
        "query": event.query,
        "doc": event.doc,
        "by": event.by,
    }
    if hasattr(event, "grade"):
        row["grade"] = event.grade
    return row
