"""``probeval schema``: the JSON Schema of a verb's output with ``--format json``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from probeval.api.documents import (
    EvaluationDocument,
    GateDocument,
    ModelComparisonsDocument,
    NextDocument,
    ReuseDocument,
)
from probeval.cli.commands import Printed, verb
from probeval.cli.output import write_json
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About
from probeval.results import json_schema, return_type

__all__ = ["outputs", "schema", "schema_of"]


@dataclass(frozen=True)
class VerbOutput:
    """A verb with data on stdout."""

    verb: Annotated[str, "The verb."]
    output: Annotated[str, "What it prints."]


@verb("Print the JSON Schema of a verb's output.")
def schema(
    output: Printed,
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
) -> tuple[VerbOutput, ...] | None:
    """Print the JSON Schema (draft 2020-12) of a verb's output with --format json, or list the verbs with a schema.

    Example: probeval schema evaluate
    """
    if verb:
        write_json(schema_of(" ".join(verb)))
        return None
    return tuple(VerbOutput(name, _described(kind)) for name, kind in outputs().items())


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema of a verb's output, by the name of the verb: ``evaluate``, ``campaign status``."""
    known = outputs()
    if verb not in known:
        raise ProbevalError(f"No schema for {verb!r}: {', '.join(known)}.{did_you_mean(verb, known)}")
    return json_schema(known[verb], title=f"probeval {verb}")


def outputs() -> dict[str, Any]:
    """The type of each verb's JSON: what its function returns."""
    from probeval.cli.app import app

    old = {name: kind for name, (_, kind) in documents().items()}
    return old | {name: kind for name, function in _verbs(app) if (kind := return_type(function)) is not None}


def _verbs(group: typer.Typer, before: str = "") -> Iterator[tuple[str, Any]]:
    """The verbs of a group and of the groups in it, by name, and their functions."""
    for one in group.registered_commands:
        function = one.callback.verb  # type: ignore[union-attr]
        yield before + (one.name or function.__name__.replace("_", "-")), function
    for inner in group.registered_groups:
        name, entry = f"{before}{inner.name}", inner.typer_instance.registered_callback  # type: ignore[union-attr]
        if entry is not None:
            yield name, entry.callback.verb  # type: ignore[union-attr]
        yield from _verbs(inner.typer_instance, f"{name} ")  # type: ignore[arg-type]


def _described(kind: Any) -> str:
    """What a type is, by the docstrings of its records."""
    parts = get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)
    classes = [get_args(part)[0] if get_args(part) else part for part in parts]
    lines = [(inspect.getdoc(one) or "").partition("\n")[0].removesuffix(".") for one in classes]
    return "; or ".join(line[:1].lower() + line[1:] for line in lines)


def documents() -> dict[str, tuple[str, Any]]:
    """The JSON output of each verb: a description and a type."""
    from probeval.campaign.gold import GoldDocument
    from probeval.campaign.status import StatusDocument
    from probeval.campaign.topics import TopicsDocument
    from probeval.cli import campaign_documents as campaigns
    from probeval.cli import documents as printed
    from probeval.metrics.classical import MeasuredDocument
    from probeval.reliability.banding import BandStudyDocument
    from probeval.reliability.documents import PairwiseDocument
    from probeval.reliability.dstudy import DStudies, DStudyDocument
    from probeval.reliability.gstudy import GStudies, GStudyDocument
    from probeval.reliability.posterior import ScorePosteriorDocument
    from probeval.satisfaction.questions import ListQuestions
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
        "demo": ("the results of the demo", object),
        "evaluate": (
            "a ranking, or several; with bands a study of them",
            EvaluationDocument | MeasuredDocument | printed.Evaluations | BandStudyDocument,
        ),
        "plan": ("the options for a target", PlanDocument),
        "next": ("the pairs to judge next", NextDocument | printed.FairnessDocument),
        "simulate": ("trajectories of policies", SimulationDocument),
        "judge": ("the address of the judging page", campaigns.AddressDocument),
        "users create": ("the questions of a study", ListQuestions),
        "users serve": ("the address of the page of a study", campaigns.AddressDocument),
        "users report": ("the results of a study", UserStudyDocument),
        "aggregate": ("aggregated votes and their workers, or scores", object),
        "convert": ("the written judgments", object),
        "report": ("a written report", object),
        "reuse": ("later systems, or every team left out", ReuseDocument | ReuseStudyDocument),
        "gate": ("the verdict on a new system", GateDocument),
        "compare": ("every pair of systems", ModelComparisonsDocument | PairwiseDocument | ScorePosteriorDocument),
        "curves": ("precision-recall and ROC curves, and counts", CurvesDocument),
        "gstudy": ("components of variance", GStudyDocument | GStudies),
        "dstudy": ("the reliability of other sizes", DStudyDocument | DStudies),
        "meta": ("measures, scales and tests compared", MetaStudyDocument),
        "pool": ("pools compared, by campaign", PoolStudyDocument),
        "fit": ("a fitted model", object),
        "models": ("the built-in models", object),
        "models show": ("a fitted model", object),
        "features": (
            "the features of every pair, or relevance by multiplicity",
            list[dict[str, str | float]] | MultiplicityDocument,
        ),
        "validate": ("calibration on held-out campaigns", ValidationDocument),
        "doctor": ("the state of the installation", object),
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
