"""The creation of a campaign: its settings, its parts in the store, its first events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from probeval.campaign.archive import pack
from probeval.campaign.events import Created, Event, GuidelineChanged, QueriesChanged, QueryGuidelinesChanged
from probeval.campaign.exchange import Incoming, incoming_events
from probeval.campaign.kinds.lists import pack_questions
from probeval.campaign.parsing import as_id, as_name, as_text, as_texts
from probeval.campaign.setup import Setup
from probeval.characters import CONTROL
from probeval.data.collection import Collection
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.errors import CampaignError, did_you_mean
from probeval.relevance import card_names, choose_model
from probeval.satisfaction import ListQuestions
from probeval.scores.compare import check_rope
from probeval.scores.evaluate import as_metric
from probeval.selection import Goal
from probeval.selection.batch import check_exploration
from probeval.selection.policies import find_policy

__all__ = ["Creation", "check_ids", "checked_settings", "prepare_creation", "prepare_lists"]


@dataclass(frozen=True)
class Creation:
    """A campaign, ready to be added to a store.

    Parameters
    ----------
    setup
        Its settings.
    parts
        Runs, metadata, labels, vectors and a custom model card, or the questions about lists, by name.
    events
        The first events of its log, not yet numbered.
    """

    setup: Setup
    parts: Mapping[str, bytes]
    events: tuple[Event, ...]


def prepare_creation(
    collection: Collection,
    *,
    metric: str,
    scale: Scale | None,
    model: str | None,
    depth: int | None,
    name: str,
    guideline: str,
    queries: Mapping[str, str] | None,
    query_guidelines: Mapping[str, str] | None,
    by: str,
    now: float,
    settings: Mapping[str, Any],
) -> Creation:
    """Check the settings of a new campaign and prepare its parts and first events.

    The parameters are those of :meth:`probeval.campaign.Campaign.create`; ``now`` is the time of creation.
    """
    measure = as_metric(metric)
    choice = choose_model(model, collection, scale=scale)
    setup = Setup(
        name=as_name(name, "a campaign"),
        metric=str(measure),
        scale=choice.scale,
        model=choice.name,
        depth=depth or measure.cutoff or collection.runs.depth,
        **settings,
    )
    setup = checked_settings(setup, collection)
    check_ids(collection.runs)
    parts = pack(collection)
    if choice.card is not None and choice.name not in card_names():
        parts["card"] = json.dumps(choice.card.to_dict()).encode()
    who = as_name(by, "the creator of a campaign")
    asked = list(collection.runs.queries)
    events = _first_events(setup, guideline, queries, asked, who, now)
    if query_guidelines:
        texts = as_texts(query_guidelines, asked)
        version = 1 + any(isinstance(event, GuidelineChanged) for event in events)
        events.append(QueryGuidelinesChanged(by=who, time=now, version=version, texts=texts))
    if collection.judgments is not None:
        events += incoming_events(Incoming(collection.judgments), who, now, source="collection")
    if collection.answers is not None:
        events += incoming_events(Incoming(answers=collection.answers), who, now, source="collection")
    return Creation(setup, parts, tuple(events))


def prepare_lists(
    chosen: ListQuestions,
    *,
    name: str,
    guideline: str,
    queries: Mapping[str, str] | None,
    by: str,
    now: float,
    settings: Mapping[str, Any],
) -> Creation:
    """Check the settings of a new campaign that asks about lists, and prepare its part and first events.

    The parameters are those of :meth:`probeval.campaign.Campaign.create_lists`; ``now`` is the time of creation.
    """
    if chosen.depth < 1:
        raise CampaignError(f"The length of lists must be 1 or more, got {chosen.depth}.")
    setup = Setup(
        name=as_name(name, "a study"),
        metric=chosen.metric,
        scale=Scale.parse(chosen.scale),
        model="none",
        depth=chosen.depth,
        ask="lists",
        **settings,
    )
    asked = list(dict.fromkeys(question.query for question in chosen.questions))
    events = _first_events(setup, guideline, queries, asked, as_name(by, "the creator of a study"), now)
    return Creation(setup, pack_questions(chosen.questions), tuple(events))


def _first_events(
    setup: Setup, guideline: str, queries: Mapping[str, str] | None, asked: Sequence[str], by: str, now: float
) -> list[Event]:
    """The creation, the guideline and the texts of these queries."""
    events: list[Event] = [Created(by=by, time=now, setup=setup)]
    if guideline.strip():
        events.append(GuidelineChanged(by=by, time=now, version=1, text=as_text(guideline, "A guideline")))
    if queries:
        events.append(QueriesChanged(by=by, time=now, texts=as_texts(queries, asked)))
    return events


def check_ids(runs: Runs) -> None:
    """Raise an error if an id of these runs is too long for a page, or has white space or control characters."""
    for what, known in (("query", runs.queries), ("document", runs.pool.docs)):
        for each_id in known:
            as_id(each_id, what)
    broken = next((system for system in runs.systems if CONTROL.search(system)), None)
    if broken is not None:
        raise CampaignError(f"The name of a system must be one line of text, got {broken!r}. Rename its run.")


def checked_settings(setup: Setup, collection: Collection) -> Setup:
    """Return the settings, with the measure that the goal is about.

    Raise an error if they name an unknown metric, policy, stopping rule or system.
    """
    if not all(kind.of_runs for kind in setup.kinds):
        raise CampaignError(f"A campaign with runs does not ask for {setup.ask}: probeval users create makes a study.")
    goal = Goal.parse(setup.goal)
    metric = goal.metric(as_metric(setup.metric), setup.scale)
    find_policy(setup.policy)
    if setup.explore is not None:
        check_exploration(setup.explore)
    setup.rule_to_stop  # noqa: B018 - an unknown rule is refused here
    check_rope(setup.rope)
    for system in goal.systems:
        if system not in collection.runs.systems:
            raise CampaignError(f"No system {system!r} among the runs.{did_you_mean(system, collection.runs.systems)}")
    return replace(setup, metric=str(metric))
