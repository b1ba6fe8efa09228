"""Reports of evaluations and campaigns."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from probeval.display import Table, moment
from probeval.errors import ModelError, ProbevalError, ProbevalWarning
from probeval.relevance import Choice, Hierarchical, choose_model
from probeval.reporting import SILENT, Reporter
from probeval.reports import queries, satisfaction, sections, teams, two
from probeval.reports.page import Facts, Page, Part, Prose, Quote, Section, percent
from probeval.reports.results import TWO, WRITING, ReportResults, StatedProgress

if TYPE_CHECKING:
    from probeval.campaign import Campaign, Status
    from probeval.satisfaction import Agreement, SatMapping
    from probeval.selection import AuditReport

__all__ = ["paragraph", "report_campaign", "report_evaluation", "reproduction"]

HALF = 0.5  # who leads is more likely than not to be the best
UNNAMED = "campaign"  # the default name of a campaign
ROUTES = {
    "draws": "joint draws of grades; intervals are quantiles of the draws",
    "moments": "means and covariances of grades, without draws",
}
PACKAGES = ("probeval", "numpy", "scipy", "pandas", "matplotlib")


def report_evaluation(
    found: ReportResults,
    *,
    title: str = "Evaluation",
    command: str = "",
    seen: str | None = None,
    more: tuple[Section, ...] = (),
    made: Mapping[str, str] | None = None,
    reporter: Reporter = SILENT,
) -> Page:
    """Return the report of an evaluation.

    Parameters
    ----------
    found
        The results.
    title
        The title.
    command
        The command that reproduces it.
    seen
        The campaign of these judgments, if the model was fitted on it.
    more
        Sections to insert after the judgments.
    made
        Further facts for the section on reproduction.
    reporter
        Receives progress and remarks.
    """
    facts = {
        "measure": str(found.scores.metric),
        "scale": str(found.state.prediction.relevance.scale),
        "depth of the pool": str(found.state.judging.depth),
        "model": found.choice.name,
        "differences that count as ties": f"up to {found.ranking.rope:g}"
        if found.ranking.rope
        else "none but exact ties",
        "route": f"{found.scores.method}, {found.scores.family}: {ROUTES[found.scores.method]}",
        "seed": str(found.state.judging.seed),
        **(made or {}),
    }
    closing: list[Callable[[], tuple[Section, ...]]] = [
        lambda: (Section("paper", "Summary for a paper", (Quote(paragraph(found)),)), reproduction(facts, command)),
    ]
    if len(found.scores.systems) == TWO:
        return _page_of_two(found, title, seen, more, closing, reporter)
    work: list[Callable[[], tuple[Section, ...]]] = [
        lambda: (sections.ranking(found),),
        _optional("teams", "Teams", lambda: teams.teams(found)),
        _optional("pairs", "Pairwise comparisons", lambda: (sections.pairs(found),)),
        _optional("queries", "Queries", lambda: (queries.queries(found),)),
        lambda: (sections.judging(found), *more),
        _optional("labels", "The sources of labels", lambda: sections.labels(found)),
        lambda: (sections.model(found.choice, seen),),
        _optional("reliability", "Reliability and sample size", lambda: (sections.reliability(found),)),
        _optional("users", "User satisfaction", lambda: (satisfaction.users(found),)),
        _optional("new-query", "One new query", lambda: satisfaction.new_query(found)),
        *closing,
    ]
    done = tuple(section for make in reporter.track(work, WRITING) for section in make())
    return Page(title=title, lead=_lead(found), figures=_figures(found), sections=done)


def _page_of_two(
    found: ReportResults,
    title: str,
    seen: str | None,
    more: tuple[Section, ...],
    closing: Sequence[Callable[[], tuple[Section, ...]]],
    reporter: Reporter,
) -> Page:
    """Return the report of two systems: their difference in place of rankings and reliability."""
    of_users = _optional("users", "User satisfaction", lambda: (satisfaction.users(found),))
    work: list[Callable[[], tuple[Section, ...]]] = [
        lambda: (two.difference(found.decision),),
        _optional("queries", "Queries", lambda: (queries.queries(found),)),
        _optional("labels", "Labels", lambda: two.labels(found)),
        lambda: (two.next_pairs(found), *more),
        *([] if found.mapping is None else [of_users]),
        _optional("new-query", "One new query", lambda: satisfaction.new_query(found)),
        lambda: (Section("model", "The model", sections.model(found.choice, seen).parts[: 2 if seen else 1]),),
        *closing,
    ]
    done = tuple(section for make in reporter.track(work, WRITING) for section in make())
    return Page(title=title, lead=two.lead(found), figures=two.figures(found), sections=done)


def _optional(key: str, title: str, make: Callable[[], tuple[Section, ...]]) -> Callable[[], tuple[Section, ...]]:
    """Return the making of a section that a report can do without: if it fails, the reason stands in its place."""

    def made() -> tuple[Section, ...]:
        try:
            return make()
        except Exception as error:  # whatever it is, the other sections are right
            why = str(error) if isinstance(error, ProbevalError) else f"{type(error).__name__}: {error}"
            return (Section(key, title, (Prose(f"This section could not be made. {why}"),)),)

    return made


def _lead(found: ReportResults) -> str:
    scores, order, verdict = found.scores, found.ranking.order, found.verdict
    first, where = order[0], f"{scores.metric} on {len(scores.queries)} queries"
    if len(order) == 1:
        return f"One system, {first}: {where}, {scores[first].mean():.4f}."
    if not (verdict.decided | verdict.undecided).any():
        return f"All {len(order)} systems are tied by {where}."
    likely, p = _likeliest(found)
    highest = f"{first} has the highest expected score"
    if not verdict.decided.any():
        text = f"No two systems can be distinguished yet ({scores.judged:,} of {scores.pool:,} pairs judged). "
        text += f"{highest} by {where}, {scores[first].mean():.3f}{', and' if likely == first else f'; {likely}'} is "
        return f"{text}most likely to be the best ({p:.0%}).{_beyond(found)}"
    if likely == first and p > HALF:
        text = f"{first} leads {len(order)} systems by {where}, and is the best on these queries with "
    elif likely == first:
        text = f"{highest} of {len(order)} systems by {where}, and is the most likely to be the best, with "
    else:
        text = f"{highest} of {len(order)} systems by {where}; {likely} is most likely to be the best, with "
    near = int((~verdict.decided[scores.order[0]]).sum()) - 1
    others = f"{near} more cannot be distinguished from {first}" if near else "All others can be distinguished from it"
    return f"{text}probability {p:.3f}. {others} on these queries.{_beyond(found)}"


def _beyond(found: ReportResults) -> str:
    """Return a sentence on the systems not distinguishable from the first on new queries."""
    scores = found.scores
    doubt = int(found.verdict.beyond[scores.order[0]].sum())
    if not doubt:
        return ""
    n = f"{len(scores.queries)} queries"
    few = f"{n} are" if scores.judged == scores.pool else f"Even with all pairs judged, {n} would be"
    return f" {few} too few to distinguish {doubt} of the others from {found.ranking.order[0]} on new queries."


def _likeliest(found: ReportResults) -> tuple[str, float]:
    """Return the system with the highest P(best), the first of the ranking if tied, and its P(best)."""
    p = found.ranking.p_best[found.scores.order]
    return found.ranking.order[int(p.argmax())], float(p.max())


def _figures(found: ReportResults) -> tuple[tuple[str, str, str], ...]:
    scores, ranking = found.scores, found.ranking
    first = ranking.order[0]
    low, high = scores[first].interval(found.level)
    likely, p = _likeliest(found)
    leads = len(ranking.order) == 1 or (found.verdict.decided.any() and likely == first and p > HALF)
    figures = [
        (
            "leader" if leads else "highest expected score",
            first,
            f"{scores[first].mean():.4f} ± {(high - low) / 2:.4f} on these queries",
        ),
        ("judged", f"{scores.judged:,}", f"{percent(scores.judged, scores.pool)} of {scores.pool:,} pairs"),
        *_tested(found),
    ]
    if not np.isnan(found.milestones[-1].erho2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)  # the section on reliability has them
            erho2, phi = found.reliability["erho2"], found.reliability["phi"]
        note = f"[{erho2.lower:.2f}, {erho2.upper:.2f}] for {' and '.join(found.study.uncertainty)}; of scores Φ "
        note += f"{phi.value:.3f} [{phi.lower:.2f}, {phi.upper:.2f}]"
        figures.append(("reliability of differences E ρ²", f"{erho2.value:.3f}", note))
    return tuple(figures)


def _tested(found: ReportResults) -> list[tuple[str, str, str]]:
    """Return what the stopping rule of a campaign tests, beside its targets; the mean confidence of an evaluation."""
    note = f"expected tau {found.ranking.expected_tau:.3f}{found.scores.caveat}"
    if not found.tested:
        return [(f"mean confidence{found.compared}", f"{found.state.confidence:.3f}", note)]
    return [(one.title, f"{one.value:.3f}", f"target {one.target:g}{found.compared}; {note}") for one in found.tested]


def paragraph(found: ReportResults) -> str:
    """Return a paragraph for a paper: method, and results as value ± half-width (p)."""
    scores, order, card = found.scores, found.ranking.order, found.choice.card
    n = len(order)
    text = f"We compared {n} systems by {scores.metric} on {len(scores.queries)} queries. "
    text += f"Of the {scores.pool:,} pairs of query and document in their pool (depth {found.state.judging.depth}), "
    if scores.judged == scores.pool:
        text += f"all were judged on the scale {found.state.prediction.relevance.scale}. "
    else:
        learned = "" if card is None else f", learned from {len(card.training.get('campaigns', {}))} campaigns"
        text += (
            f"{scores.judged:,} ({percent(scores.judged, scores.pool)}) were judged on the scale "
            f"{found.state.prediction.relevance.scale}; the relevance of the others was estimated (model "
            f"{found.choice.name}{learned}), and scores are expectations with their uncertainty. "
        )
        text += _of_the_model(found)
    used = found.labels.for_paper()
    text += f"{used} " if used else ""
    if scores.ideal is not None:
        text += f"{scores.metric} is relative to an ideal list ({scores.ideal}). "
    wide = found.population or scores
    low, high = wide[order[0]].interval(found.level)
    text += f"{order[0]} {'scored highest' if scores.judged == scores.pool else 'has the highest expected score'}, "
    text += f"{wide[order[0]].mean():.4f} ± {(high - low) / 2:.4f} "
    text += "on these queries" if found.population is None else "for the population of queries"
    if n > 1:
        text += f"; it differs from {order[1]} by {found.effect(order[0], order[1])}"
        if n > 2:
            text += f" and from {order[-1]}, the lowest, by {found.effect(order[0], order[-1])}"
    sources = "judging" if found.population is None else "sampling of queries" if scores.judged == scores.pool else (
        "judging and sampling of queries"
    )  # fmt: skip
    text += f" (half-widths of {found.level:.0%} intervals and two-sided p, for {sources}). "
    compared = found.compared or " in the order of two systems"
    text += f"The mean confidence{compared} on these queries is {found.state.confidence:.3f}{scores.caveat}. "
    return text + f"Computed with probeval {metadata.version('probeval')}."


def _of_the_model(found: ReportResults) -> str:
    """The inference and the priors of a hierarchical model, for a methods section; empty for another model."""
    model, prediction = found.choice.model, found.state.prediction
    if not isinstance(model, Hierarchical):
        return ""
    if prediction.diagnostics is not None:
        how = f"NUTS ({prediction.diagnostics})"
    elif prediction.posterior is not None:
        how = f"Laplace's method ({prediction.posterior.diagnostics()})"
    else:
        how = "Laplace's method"
    return f"Inference is by {how}. {model.prior.for_paper(len(found.choice.scale.levels))} "


def reproduction(facts: Mapping[str, str], command: str) -> Section:
    """Return the section on settings, versions and command."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    rows = [*facts.items(), ("versions", f"{versions}, Python {platform.python_version()}")]
    if command:
        rows.append(("made by", command))
    return Section("made", "Reproduction", (Facts(tuple(rows)),))


def report_campaign(
    campaign: Campaign,
    *,
    level: float = 0.95,
    command: str = "",
    mapping: SatMapping | None = None,
    agreement: Agreement | None = None,
    reporter: Reporter = SILENT,
) -> Page:
    """Return the report of a campaign. Fits the model at several milestones.

    ``reporter`` receives the progress of the milestones, and then of the sections.
    """
    state, setup, status = campaign.judging_state(), campaign.setup, campaign.status()
    collection = state.judging.collection
    try:
        choice = choose_model(setup.model, collection, scale=setup.scale)
        choice = replace(choice, why="it was chosen when the campaign was created.", scale_from="of the campaign")
    except ModelError:  # the campaign has a card of its own
        choice = Choice(setup.model, state.judging.model, "it is the campaign's own.", setup.scale, "of the campaign")
    audited = campaign.audit()
    found = ReportResults.along(
        state, choice, _in_order(campaign), level=level, mapping=mapping, agreement=agreement, reporter=reporter
    )
    found = replace(found, stated=StatedProgress(setup.rule_to_stop, status.given, tuple(status.standing())))
    last = max((event.time for event in campaign.log()[-1:]), default=0.0)
    page = report_evaluation(
        found,
        title=f"Campaign {_name(campaign)}",
        command=command,
        seen=choice.fitted_on(collection),
        more=(_audit(audited), _people(status)),
        made={
            "policy and goal": f"{setup.policy}, {setup.goal}",
            "stopping rule": setup.stopping,
            "one grade of several": setup.rule,
            "events in the log": f"{status.events:,}, the last {moment(last)}",
        },
        reporter=reporter,
    )
    return replace(page, kind="campaign")


def _name(campaign: Campaign) -> str:
    """Return the name of the campaign, or of its store if it has none."""
    store, name = campaign.address
    return (Path(urlsplit(store).path).stem or name) if name == UNNAMED else name


def _in_order(campaign: Campaign) -> Any:
    """Return the current judgments, in the order in which their pairs were first judged."""
    state = campaign.state
    first = {pair: events[0].number for pair, events in state.judged.items()}
    first |= {pair: event.number for pair, event in state.adjudicated.items() if pair not in first}
    judgments = state.judgments
    number = [first[judgments.pool.label(int(pair))] for pair in judgments.pair]
    return judgments.take(np.argsort(number, kind="stable"))


def _audit(audited: AuditReport) -> Section:
    """Return the section on the pairs drawn at random, and the alarm."""
    parts: list[Part] = [Prose(sentence) for sentence in audited.sentences()]
    if audited.sample is not None:
        caption = "The level of each system by the model and by the sample, with limits that hold at every look."
        parts.append(Table(audited.to_frame(), caption))
    return Section("audit", "Audit", tuple(parts))


def _people(status: Status) -> Section:
    """Return the section on assessors and their agreement."""
    from probeval.campaign.status import error_sentence

    table = status.to_frame()
    parts: list[Part] = [Prose(f"{status.count}.")]
    if status.shared:
        parts.append(
            Prose(
                f"{status.shared:,} pairs have several judgments; Krippendorff's alpha over them: {status.alpha:.3f}. "
                f"{status.disagreements:,} disagreements are undecided, {status.adjudicated:,} are adjudicated."
            )
        )
    else:
        parts.append(Prose("No pair was judged by several assessors, so their agreement is unknown."))
    if len(table):
        shown = table[["assessor", "judgments", "skipped", "flagged", "seconds"]].assign(
            bias=[_bias(b, e) for b, e in zip(table["bias"], table["bias_error"], strict=True)]
        )
        shown = shown.assign(seconds=[("-" if pd.isna(s) else f"{s:.1f}") for s in shown["seconds"]])
        parts.append(
            Table(
                shown.rename(columns={"seconds": "seconds each"}),
                "Bias: mean difference from the other assessors on shared pairs, in grades ± standard error.",
            )
        )
    if error_sentence(status):
        parts.append(Prose(error_sentence(status)))
    if status.verdicts:
        verdicts = pd.DataFrame(
            {
                "assessor": [each.assessor for each in status.verdicts],
                "verdict": [each.verdict + (", set aside" if each.set_aside else "") for each in status.verdicts],
                "P(careless)": [f"{each.careless:.2f}" for each in status.verdicts],
                "evidence": [each.evidence or "-" for each in status.verdicts],
            }
        )
        parts.append(
            Table(
                verdicts,
                "Careless: more than a third of the answers do not depend on the document, by gold and repeated "
                "questions, shared pairs, adjudication and what the model expects together.",
            )
        )
    return Section("people", "Assessors", tuple(parts))


def _bias(value: float, error: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.2f}" if np.isnan(error) else f"{value:+.2f} ± {error:.2f}"
