"""``probeval users``: the lists of a study with users, and its report; the rest is that of any campaign."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.api.list_studies import AnswerAnalysis, AnswerTable, UserStudyInputs
from probeval.cli.assessor_texts import guideline_text
from probeval.cli.commands import Output
from probeval.cli.stores import By, CampaignPlace, Name, StorePlace
from probeval.data import read_texts
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.satisfaction import ListQuestions
    from probeval.studies import UserStudy

__all__ = ["users"]

users = typer.Typer(help="Ask users which of two lists is better: choose the lists, report the answers.")


@users.command()
def create(store: StorePlace, given: UserStudyInputs, output: Output, by: By = "owner") -> ListQuestions:
    """Create a study: pairs of lists from judged runs, whose differences in score cover 0 to 1, and traps.

    Example: probeval users create study.db runs/ --qrels qrels.txt --metric nDCG@5 --pairs 100
    """
    from probeval.campaign import Campaign

    if given.qrels is None:
        raise ProbevalError("Lists are chosen by their scores: give --qrels FILE.")
    messages = output.messages
    chosen = messages.warned(lambda: given.choose(messages))
    texts = None if given.queries is None else read_texts(given.queries, "query")
    Campaign.create_lists(
        store,
        chosen,
        name=given.name,
        queries=texts,
        guideline="" if given.guideline is None else guideline_text(given.guideline),
        most=given.most,
        seed=given.seed,
        by=by,
    ).close()
    if texts is None:
        output.hints.append("No query texts: users will see ids only. Add them with --queries FILE")
    output.hints.append(f"Next: probeval judge {shlex.quote(store)} --docs FILE")
    return chosen


@users.command()
def report(
    table: AnswerTable,
    analysis: AnswerAnalysis,
    output: Output,
    store: Annotated[
        str | None, About("The store of the study; or give --answers FILE.", metavar="[STORE]", argument=True)
    ] = None,
    save: Annotated[
        Path | None, About("Write the mapping (.json) for --mapping of other verbs.", metavar="FILE")
    ] = None,
    name: Name = None,
) -> UserStudy:
    """Report a study: satisfied users by score, what users notice, side and endpoint bias, traps by user.

    Example: probeval users report study.db --save users.json
    """
    from probeval.metrics.users_file import is_users_file

    if (store is None) == (table.answers is None):
        raise ProbevalError("Give the store of a study, or --answers FILE; one of the two.")
    if save is not None and not is_users_file(save):
        raise ProbevalError(f"--save writes a file whose name ends in .json, got {save}.")
    if store is not None:
        with CampaignPlace(store=store, name=name).open(read_only=True) as study:
            given = study.list_answers()
    elif table.answers is not None:
        given = table.read(table.answers)
    if not len(given):
        raise ProbevalError("No answers yet: users answer on the page of 'probeval judge'.")
    found = analysis.of(given)
    if save is not None:
        found.save(save)
        output.messages.say(f"Saved. Use it with --mapping {shlex.quote(str(save))}")
    return found
