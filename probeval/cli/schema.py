"""``probeval schema``: the JSON Schema of a verb's output with ``--format json``."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd

from probeval.api.documents import (
    EvaluationDocument,
    GateDocument,
    ModelComparisonsDocument,
    NextDocument,
    ReuseDocument,
)
from probeval.cli.commands import verb
from probeval.cli.options import Format, OutputFormat
from probeval.cli.output import write, write_json
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About

__all__ = ["documents", "schema", "schema_of"]


@verb("Print the JSON Schema of a verb's output.")
def schema(
    verb: Annotated[
        list[str] | None,
        About(
            "A verb such as evaluate or campaign status; without it, list all.",
            metavar="[VERB]",
            argument=True,
            kind=str,
            many=True,
        ),
    ] = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Print the JSON Schema (draft 2020-12) of a verb's output with --format json, or list the verbs with a schema.

    Example: probeval schema evaluate
    """
    if verb:
        write_json(schema_of(" ".join(verb)))
        return
    from probeval.cli.documents import VerbDocument

    rows: list[VerbDocument] = [{"verb": name, "output": what} for name, (what, _) in documents().items()]
    write(pd.DataFrame(rows), rows, output_format)


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema of a verb's output, by the name of the verb: ``evaluate``, ``campaign status``."""
    from probeval.schema import json_schema

    known = documents()
    if verb not in known:
        raise ProbevalError(f"No schema for {verb!r}: {', '.join(known)}.{did_you_mean(verb, known)}")
    what, kind = known[verb]
    return json_schema(kind, title=f"probeval {verb}: {what}")


def documents() -> dict[str, tuple[str, Any]]:
    """The JSON output of each verb: a description and a type."""
    from probeval.campaign.gold import GoldDocument
    from probeval.campaign.status import StatusDocument
    from probeval.campaign.topics import TopicsDocument
    from probeval.cli import campaign_documents as campaigns
    from probeval.cli import documents as printed
    from probeval.metrics.classical import MeasuredDocument
    from probeval.preferences.scoring import DocumentScoresDocument
    from probeval.relevance.aggregation.result import AggregationDocument
    from probeval.relevance.cards.card import CardDocument
    from probeval.reliability.banding import BandStudyDocument
    from probeval.reliability.documents import PairwiseDocument
    from probeval.reliability.dstudy import DStudies, DStudyDocument
    from probeval.reliability.gstudy import GStudies, GStudyDocument
    from probeval.reliability.posterior import ScorePosteriorDocument
    from probeval.satisfaction.questions import ListQuestionsDocument
    from probeval.simulation.documents import SimulationDocument
    from probeval.simulation.planned import PlanDocument
    from probeval.simulation.reuse import ReuseStudyDocument
    from probeval.simulation.validation import ValidationDocument
    from probeval.studies.curves import CurvesDocument
    from probeval.studies.meta import MetaStudyDocument
    from probeval.studies.multiplicity import MultiplicityDocument
    from probeval.studies.pools.documents import PoolStudyDocument
    from probeval.studies.satisfaction_documents import UserStudyDocument

    return {
        "demo": ("the results of the demo", printed.DemoDocument),
        "evaluate": (
            "a ranking, or several; with bands a study of them",
            EvaluationDocument | MeasuredDocument | printed.Evaluations | BandStudyDocument,
        ),
        "plan": ("the options for a target", PlanDocument),
        "next": ("the pairs to judge next", NextDocument | printed.FairnessDocument),
        "simulate": ("trajectories of policies", SimulationDocument),
        "judge": ("the address of the judging page", campaigns.AddressDocument),
        "users create": ("the questions of a study", ListQuestionsDocument),
        "users serve": ("the address of the page of a study", campaigns.AddressDocument),
        "users report": ("the results of a study", UserStudyDocument),
        "aggregate": ("aggregated votes and their workers, or scores", AggregationDocument | DocumentScoresDocument),
        "convert": ("the written judgments", printed.ConvertDocument),
        "report": ("a written report", printed.ReportDocument),
        "reuse": ("later systems, or every team left out", ReuseDocument | ReuseStudyDocument),
        "gate": ("the verdict on a new system", GateDocument),
        "compare": ("every pair of systems", ModelComparisonsDocument | PairwiseDocument | ScorePosteriorDocument),
        "curves": ("precision-recall and ROC curves, and counts", CurvesDocument),
        "gstudy": ("components of variance", GStudyDocument | GStudies),
        "dstudy": ("the reliability of other sizes", DStudyDocument | DStudies),
        "meta": ("measures, scales and tests compared", MetaStudyDocument),
        "pool": ("pools compared, by campaign", PoolStudyDocument),
        "fit": ("a fitted model", CardDocument),
        "models": ("the built-in models", list[printed.ModelDocument]),
        "models show": ("a fitted model", CardDocument),
        "features": (
            "the features of every pair, or relevance by multiplicity",
            list[dict[str, str | float]] | MultiplicityDocument,
        ),
        "validate": ("calibration on held-out campaigns", ValidationDocument),
        "doctor": ("the state of the installation", printed.DoctorDocument),
        "schema": ("the verbs whose output has a schema", list[printed.VerbDocument]),
        "campaign create": ("the status of the campaign", StatusDocument),
        "campaign status": ("the status of the campaign", StatusDocument),
        "campaign next": ("questions for an assessor", campaigns.TasksDocument),
        "campaign record": ("the recorded events", campaigns.EventDocument | list[campaigns.EventDocument]),
        "campaign answer": ("the recorded event", campaigns.EventDocument),
        "campaign judge": ("what was judged on the terminal", campaigns.AnsweredDocument),
        "campaign adjudicate": (
            "the settled grade or order, or the open disagreements",
            campaigns.EventDocument | campaigns.DisagreementsDocument,
        ),
        "campaign guideline": (
            "the guideline for assessors, or those of single queries",
            campaigns.GuidelineDocument | campaigns.QueryGuidelinesDocument,
        ),
        "campaign queries": ("the texts of the queries", campaigns.QueriesDocument),
        "campaign topics": ("the topics and their assessors", TopicsDocument),
        "campaign gold": ("the gold pairs and their answers", GoldDocument),
        "campaign import": ("the imported judgments, answers and labels", campaigns.ImportDocument),
        "campaign change": ("the changed settings", campaigns.ChangeDocument),
        "campaign pause": ("the phase of the campaign", campaigns.PhaseDocument),
        "campaign resume": ("the phase of the campaign", campaigns.PhaseDocument),
        "campaign close": ("the phase of the campaign", campaigns.PhaseDocument),
        "campaign reopen": ("the phase of the campaign", campaigns.PhaseDocument),
        "campaign log": ("the changes of the campaign", list[campaigns.HistoryDocument]),
        "campaign runs add": ("the late runs", campaigns.RunsAddedDocument),
        "campaign assessors add": ("the link of an assessor", campaigns.InvitationDocument),
        "campaign assessors list": ("those who may sign in", list[campaigns.PersonDocument]),
        "campaign assessors revoke": ("the revoked invitation", campaigns.RevokedDocument),
        "campaign backup": ("the checked copy", campaigns.StoreCheckDocument),
        "campaign restore": ("the checked copy", campaigns.StoreCheckDocument),
        "campaign check": ("the integrity of the store", campaigns.StoreCheckDocument),
    }
