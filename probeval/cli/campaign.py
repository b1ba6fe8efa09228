"""``probeval campaign``: judging by one person or a team, kept in a durable store."""

from __future__ import annotations

import shlex
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer

from probeval.api.evidence import Evidence, as_scale, note_texts, select_model
from probeval.api.settings import QueryTexts, Scoring, Work
from probeval.cli.adjudicate import adjudicate
from probeval.cli.answers import judge_here, record
from probeval.cli.assessor_texts import guideline, guideline_text, queries, texts_known
from probeval.cli.assessors import BASE_URL, BaseUrl, Expires, check_links, invite, read_people, write_links
from probeval.cli.backups import backup, check, restore
from probeval.cli.campaign_settings import CampaignSettings, setup_of
from probeval.cli.changes import change, close, pause, reopen, resume, set_aside, show_log
from probeval.cli.commands import Output
from probeval.cli.exchange import export, import_file
from probeval.cli.gold import gold
from probeval.cli.options import OutFolder, ToolName
from probeval.cli.output import check_tool
from probeval.cli.statement import statement
from probeval.cli.stores import AssessorName, By, CampaignPlace, Refresh, StorePlace
from probeval.cli.topics import topics as topics_command
from probeval.data import read_texts, read_topics
from probeval.display import Table, counted, dated
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.results import Named, Result, frame
from probeval.scores.evaluate import as_metric

if TYPE_CHECKING:
    from probeval.campaign import Status, Task

__all__ = ["campaign"]

campaign = typer.Typer(help="Judge alone or in a team: create a campaign, get pairs, record grades, export.")


@dataclass(frozen=True, eq=False, repr=False)
class CampaignInputs(Work, CampaignSettings, Scoring, Evidence):
    """The evidence and the settings of a new campaign."""

    _: KW_ONLY
    queries: QueryTexts = None
    guideline: Annotated[Path | None, About("Instructions for assessors: a text file.", metavar="FILE")] = None
    name: Annotated[str, About("The name of the campaign.", metavar="NAME")] = "campaign"
    invite: Annotated[
        Path | None,
        About("Invite people: a table of assessor and optionally role, or a name in each line.", metavar="FILE"),
    ] = None
    links: Annotated[Path, About("The table in which their links are written.", metavar="FILE")] = Path("links.csv")
    expires: Expires = "30d"
    base_url: BaseUrl = BASE_URL


@campaign.command()
def create(store: StorePlace, given: CampaignInputs, output: Output, by: By = "owner") -> Status:
    """Create a campaign in a store, with its runs, measure, model, policy and stopping rule.

    Example: probeval campaign create mine.db runs/ --metric nDCG@10 --scale graded:3
    """
    from probeval.campaign import Campaign
    from probeval.campaign.statement import rule_advice
    from probeval.relevance import Hierarchical

    messages, model = output.messages, given.model
    given.refuse("campaign")
    if model == "none":
        raise ProbevalError("A campaign needs a model: uniform, empirical, independent, hierarchical or a card.")
    collection = messages.warned(lambda: given.collection(given.runs, scale=as_scale(given.scale), reporter=messages))
    choice = select_model(collection, model, scale=given.scale, gain=given.gain, reporter=messages)
    chosen = {field.name: getattr(given, field.name) for field in fields(CampaignSettings)}
    setup = setup_of(chosen, metric=given.metric, goal=given.goal, scale=choice.scale, reporter=messages)
    deep = given.depth or as_metric(setup["metric"]).cutoff or collection.runs.depth
    note_texts(collection, given.docs, depth=deep, model=choice.model, reporter=messages)
    queries, notes = (None, None) if given.queries is None else read_topics(given.queries)
    invited = () if given.invite is None else read_people(given.invite)
    if invited:
        check_links(given.links, base_url=given.base_url, expires=given.expires)
    with Campaign.create(
        store,
        collection,
        name=given.name,
        scale=choice.scale,
        model=model if isinstance(model, str) and Path(model).exists() else choice.name,
        guideline="" if given.guideline is None else guideline_text(given.guideline),
        queries=queries,
        query_guidelines=notes,
        by=by,
        seed=given.seed,
        **setup,
    ) as made:
        found, texts, registered = made.status(), made.queries, made.digest(1)
        if invited:
            write_links(given.links, invite(made, by, invited, base_url=given.base_url, expires=given.expires))
            output.hints.append(f"{counted(len(invited), 'link')} in {given.links}: give each to that person alone.")
    advice = rule_advice(found.setup.stopping, found.setup.goal, len(collection.runs.systems))
    if advice:
        output.hints.append(advice)
    output.hints.append(f"The rule {found.setup.stopping} is registered as event 1, with the hash {registered}")
    if given.ask != "grades" and not isinstance(choice.model, Hierarchical):
        output.hints.append(
            f"The model {choice.name} does not use answers about two documents: they will change no score."
        )
    output.hints.append(texts_known(texts, store))
    place = shlex.quote(store)
    if given.gold_share:
        output.hints.append(f"No gold pairs yet: probeval campaign gold {place} FILE")
    output.hints.append(
        f"Next: probeval judge {place} --docs FILE (on a page), or probeval campaign next {place} --assessor YOU"
    )
    return found


@campaign.command()
def status(place: CampaignPlace, output: Output, refresh: Refresh = False) -> Status:
    """Show progress: judgments, assessors, agreement, confidence in the ranking, remaining work.

    Example: probeval campaign status mine.db --refresh
    """
    with place.open(read_only=not refresh) as opened:
        if refresh and opened.is_behind:
            output.messages.warned(opened.refresh)
        if refresh and opened.forecast_is_due:
            output.messages.say("Forecasting the judgments that the target takes: up to a minute.")
            output.messages.warned(opened.forecast)
        return opened.status()


@dataclass(frozen=True, repr=False)
class TaskList(Result):
    """Questions for an assessor."""

    assessor: Annotated[str, "The name of the assessor."]
    tasks: Annotated[tuple[Task, ...], "The questions, in order.", Named("next")]

    def to_frame(self) -> pd.DataFrame:
        """One row per question, with its documents in their places, and what is asked if some have several."""
        from probeval.campaign import KINDS, Task

        placed = [dict(zip(KINDS[task.question.kind].places, task.documents, strict=True)) for task in self.tasks] or [
            {"doc": ""}
        ]
        places = list(dict.fromkeys(place for each in placed for place in each))
        table = frame(self.tasks, Task).assign(**{place: [each.get(place, "") for each in placed] for place in places})
        return table[["query", *places, *(["asks"] if len(places) > 1 else []), "text", "until"]]

    def _headline(self) -> str:
        return f"{counted(len(self.tasks), 'question')} for {self.assessor}"

    def tables(self) -> tuple[Table]:
        """One row per question."""
        from probeval.campaign import Task

        return (Table(dated(self.to_frame(), Task), self._headline()),)


@campaign.command("next")
def next_tasks(
    place: CampaignPlace,
    assessor: AssessorName,
    output: Output,
    n: Annotated[int, About("The number of questions.", option="-n, --number", least=1)] = 1,
    refresh: Refresh = True,
    tool: ToolName = None,
    out: OutFolder = None,
    docs: Annotated[Path | None, About("Document texts for --for: a table of doc and text.", metavar="FILE")] = None,
) -> TaskList:
    """Lease questions to an assessor: documents to grade, or two to compare.

    Example: probeval campaign next mine.db --assessor ann -n 10 --format csv
    """
    messages = output.messages
    folder = check_tool(tool, out)
    texts = None if docs is None else read_texts(docs, "doc")
    with place.open() as opened:
        if refresh and opened.is_behind:
            messages.warned(opened.refresh)
        snapshot = opened.snapshot
        if snapshot is not None and snapshot.reached and not opened.is_behind:
            messages.say(f"The target is met ({'; '.join(snapshot.reasons)}): no more judgments are needed.")
        elif snapshot is not None:
            for sentence in opened.status().standing():
                messages.say(sentence)
        tasks = opened.next(assessor, n=n)
        if not tasks:
            phase = opened.state.phase
            waits = f"The campaign is {phase}: no pairs are given out."
            messages.say(f"No questions are left for {assessor}." if phase == "open" else waits)
        elif tool is not None and folder is not None:
            if any(len(task.documents) > 1 for task in tasks):
                raise ProbevalError(f"{tool} takes single documents, and this campaign asks to compare two.")
            files = messages.warned(lambda: opened.hand_out(tasks, tool, folder, docs=texts))
            messages.say(f"For {tool}: {', '.join(map(str, files))}.")
        return TaskList(assessor, tuple(tasks))


campaign.command()(record)
campaign.command("judge")(judge_here)
campaign.command()(adjudicate)
campaign.command()(guideline)
campaign.command()(queries)
campaign.command()(export)
campaign.command("import")(import_file)
campaign.command()(change)
campaign.command()(pause)
campaign.command()(resume)
campaign.command()(close)
campaign.command()(reopen)
campaign.command("set-aside")(set_aside)
campaign.command("log")(show_log)
campaign.command()(backup)
campaign.command()(restore)
campaign.command()(check)
campaign.command("topics")(topics_command)
campaign.command()(gold)
campaign.command()(statement)
