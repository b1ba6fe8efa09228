"""The sections of a report on an evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from probeval.display import Table
from probeval.errors import ProbevalError, ProbevalWarning
from probeval.plots import (
    plot_components,
    plot_dstudy,
    plot_milestones,
    plot_pairs,
    plot_ranking,
)
from probeval.relevance import Card, Choice
from probeval.reliability import Estimate
from probeval.reports.milestones import Milestone, milestone_table
from probeval.reports.page import Part, Prose, Section, between, percent
from probeval.reports.pictures import draw
from probeval.reports.results import AHEAD, TARGET, EffectSize, ReportResults
from probeval.reports.teams import team_of
from probeval.scores.trust import VERDICTS

__all__ = ["judging", "labels", "model", "more_judgments", "pairs", "ranking", "reliability"]

MOST_PAIRS = 60  # systems whose pairs fit a figure
THREE = 0.0005  # the smallest value that three decimals show
NOISE = 0.01  # of a probability estimated from draws
UPSETS = " P(best) can be higher for a lower rank with a less certain score."


def ranking(found: ReportResults) -> Section:
    """Return the section on the ranking: scores with intervals for these and other queries, and groups."""
    table, by_system = found.ranking.at(found.level).to_frame(), team_of(found)
    shown = pd.DataFrame(
        {
            "rank": table["rank"],
            "system": table["system"].astype(str),
            **({"team": [by_system[system] for system in table["system"]]} if by_system else {}),
            "score": table["mean"],
            f"{found.level:.0%} interval": [between(a, b) for a, b in zip(table["lower"], table["upper"], strict=True)],
        }
    )
    population = found.population
    if population is not None:
        ends = [population[s].interval(found.level) for s in table["system"]]
        shown["± other queries"] = [(high - low) / 2 for low, high in ends]
    shown["P(best)"] = table["p_best"]
    rope = found.ranking.rope
    if rope:
        shown[f"P(within {rope:g} of the best)"] = table["p_near_best"]
    shown["group"] = table["group"]
    n, groups = len(table), int(table["group"].max())
    parts: list[Part] = [
        draw(
            plot_ranking(found.ranking, level=found.level),
            key="ranking-picture",
            alt=f"Mean {found.scores.metric} of {n} systems with {found.level:.0%} intervals, the best on top: "
            + "; ".join(f"{s} {m:.3f}" for s, m in zip(table["system"][:3], table["mean"][:3], strict=True)),
            caption="Scores with intervals for these queries. Systems in a band are not distinguishable from its best; "
            "neighbours in different bands need not differ either.",
        ),
        Prose(
            f"{groups} {'group' if groups == 1 else 'groups'}: a new one starts at the first system that is worse than "
            f"the best of its group{f' by more than {rope:g}' if rope else ''} with probability {found.level:g}. The "
            "order within a group may be due to chance."
            + "".join(f" {sentence}" for sentence in found.ranking.at(found.level).ties())
            + (UPSETS if (np.diff(table["p_best"]) > NOISE).any() else "")
        ),
        Table(
            shown,
            "The interval is for these queries; its width comes from unjudged pairs. ± is the half-width for other "
            f"queries of the same kind, from unjudged pairs and sampling of queries{found.scores.caveat}."
            + ("" if found.scores.ideal is None else f" {found.scores.ideal.fact}"),
        ),
    ]
    return Section("ranking", "Ranking", tuple(parts))


def pairs(found: ReportResults) -> Section:
    """Return the section on pairwise comparisons: their state, P(better) and differences."""
    order, parts = found.ranking.order, list[Part]()
    parts.append(Prose(f"{found.verdict}"))
    if 1 < len(order) <= MOST_PAIRS:
        parts.append(
            draw(
                plot_pairs(found.ranking),
                key="pairs-picture",
                alt=f"Heat map of P(row better than column) for {len(order)} systems in ranking order",
                caption=f"P(the row's system is better than the column's) on these queries; ties{_within(found)} count "
                "half.",
            )
        )
    if len(order) > 1:
        parts.append(Table(_neighbours(found, order), _neighbours_caption(found)))
    return Section("pairs", "Pairwise comparisons", tuple(parts))


def _within(found: ReportResults) -> str:
    return f" within {found.ranking.rope:g}" if found.ranking.rope else ""


def _neighbours(found: ReportResults, order: list[str]) -> pd.DataFrame:
    """Return each system against the next, and the first against the rest; P(tie) if any is not 0."""
    at, better = {s: i for i, s in enumerate(found.scores.systems)}, found.ranking.p_better
    wanted = [(order[i], order[i + 1]) for i in range(len(order) - 1)]
    wanted += [(order[0], other) for other in order[2:]]
    rows = []
    for a, b in wanted:
        i, j = at[a], at[b]
        states = ("tied", "decided", "undecided")
        state = next(name for name in states if getattr(found.verdict, name)[i, j])
        enough = "too few" if found.verdict.beyond[i, j] else "enough queries"
        if found.population is None or (state == "tied" and not found.ranking.rope):
            enough = "-"
        rows.append(
            {
                "system": a,
                "other": b,
                "difference": _together(found.effect(a, b)),
                "P(better)": _probability(better[i, j]),
                "P(worse)": _probability(better[j, i]),
                "P(tie)": _probability(max(1 - better[i, j] - better[j, i], 0.0)),
                "on these queries": state,
                "on new queries, all judged": enough,
            }
        )
    table = pd.DataFrame(rows)
    return table if (table["P(tie)"] != _probability(0.0)).any() else table.drop(columns="P(tie)")


def _probability(p: float) -> str:
    """Return a probability with the precision of a thousand draws."""
    return "<0.001" if p < THREE else ">0.999" if p > 1 - THREE else f"{p:.3f}"


def _together(effect: EffectSize) -> str:
    """Return text that can break only before its p."""
    value, p = str(effect).split(" (")
    return " (".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in (value, p))


def _neighbours_caption(found: ReportResults) -> str:
    kind = "other queries of the same kind" if found.population is not None else "these queries"
    rope = found.ranking.rope
    tied = f", tied if they differ by no more than {rope:g} with that probability" if rope else ""
    return (
        f"Each system against the next, then the first against the rest. Difference ± half-width (two-sided p) for "
        f"{kind}; probabilities for these queries. On these queries a pair is decided if the first is not worse with "
        f"probability {found.level:g}{tied}, else undecided: more judgments will decide. On new queries, with all "
        "pairs judged and the difference as expected now, the queries are enough if p would be below "
        f"{1 - found.level:.3g}{', or a tie that probable' if rope else ''}; else they are too few."
    )


def judging(found: ReportResults) -> Section:
    """Return the section on judgments and their effect on confidence and reliability."""
    scores, marks = found.scores, found.milestones
    share = percent(scores.judged, scores.pool)
    if found.stated is None:
        others = ", ".join(f"{what} ({n:,})" for what, n in found.not_counted.items() if n)
        given = f". Not counted: {others}." if others else "."
    else:
        given = f" {found.stated.given}".rstrip() + "."
    parts: list[Part] = [
        Prose(
            f"{scores.judged:,} of {scores.pool:,} pairs of query and document that systems retrieved to depth "
            f"{found.state.judging.depth} ({share}) are judged{given}"
            + ("" if scores.ideal is None else f" {scores.metric} is relative to an ideal list; {scores.ideal}.")
        )
    ]
    if scores.judged:
        parts.append(
            Table(_grades(found), "Grades of the judged pairs, and grades that the model expects for the others.")
        )
    table = milestone_table(marks)
    if len(marks) > 1:
        first, last = marks[0], marks[-1]
        parts.append(
            Prose(
                f"Before any judgment the model alone gave a mean confidence{found.compared} of "
                f"{first.confidence:.3f} and an expected tau of {first.expected_tau:.3f}. Now they are "
                f"{last.confidence:.3f} and {last.expected_tau:.3f}, and the mean half-width of the scores went from "
                f"{first.half_width:.4f} to {last.half_width:.4f}." + _fell(first, last)
            )
        )
        parts.append(
            draw(
                plot_milestones(table),
                key="judging-picture",
                alt=f"Mean confidence from {first.confidence:.2f} to {last.confidence:.2f}, E rho squared from "
                f"{first.erho2:.2f} to {last.erho2:.2f} and Phi from {first.phi:.2f} to {last.phi:.2f} "
                f"as judged pairs grow from {first.judged} to {last.judged}",
                caption="Confidence and reliability "
                + ("in the order of judging." if found.ordered else "before any judgment, and now."),
            )
        )
    shown = table[["judged", "confidence", "expected_tau", "half_width"]].assign(
        **{f"{name} as judged": [_estimate(row, name) for _, row in table.iterrows()] for name in ("erho2", "phi")}
    )
    parts.append(
        Table(
            shown.rename(columns={"expected_tau": "expected tau", "half_width": "mean ±", "erho2 as judged": "E ρ²",
                                  "phi as judged": "Φ"}),
            "E ρ² and Φ, from 0 to 1: stability of differences between systems and of scores over new queries. Here "
            "unjudged pairs count as a source of error besides queries; the 95% intervals are for unjudged pairs.",
        )
    )  # fmt: skip
    return Section("judging", "Judgments and progress", tuple(parts))


def _fell(first: Milestone, last: Milestone) -> str:
    """Return an explanation if confidence fell."""
    names = {"confidence": "mean confidence", "expected_tau": "expected tau"}
    fell = [f"the {name}" for key, name in names.items() if getattr(first, key) - getattr(last, key) > THREE]
    if not fell:
        return ""
    shrank = "; the half-widths did shrink" if last.half_width < first.half_width else ""
    return (
        f" {' and '.join(fell).capitalize()} fell: judgments can differ from what the model learned from the past, "
        f"which lowers its confidence until there are more judgments{shrank}."
    )


def _estimate(row: pd.Series, name: str) -> str:
    if np.isnan(row[name]):
        return "-"
    return f"{row[name]:.3f} {between(row[f'{name}_lower'], row[f'{name}_upper'], '.3f')}"


def _grades(found: ReportResults) -> pd.DataFrame:
    """Return the number of judged pairs per grade, and the number expected of the others; means for fine grades."""
    relevance = found.state.prediction.relevance
    scale, judged, levels = relevance.scale, relevance.judged, relevance.levels
    known, table = relevance.certain, relevance.to_frame()
    if len(levels) == len(scale):
        expected = [table.loc[~known, f"p{scale.values[c]:g}"].sum() for c in levels]
        counts = np.bincount(judged[known], minlength=len(scale))
        return pd.DataFrame(
            {
                "grade": [f"{g:g}" for g in scale.values],
                "judged pairs": counts,
                "expected of the others": np.rint(expected).astype(int),
            }
        )
    groups = table.groupby(np.where(known, "judged", "others"))["mean"]
    return pd.DataFrame({"pairs": groups.size().index, "n": groups.size().to_numpy(), "mean grade": groups.mean()})


def reliability(found: ReportResults) -> Section:
    """Return the section on reliability: variance components, coefficients, and queries and judgments needed."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ProbevalWarning)
            study, plan = found.study, found.plan
    except ProbevalError as error:
        return Section("reliability", "Reliability", (Prose(f"Unknown. {error}"), *more_judgments(found)))
    n = len(found.scores.queries)
    erho2, phi = (study.coefficient(name) for name in ("erho2", "phi"))
    parts: list[Part] = [
        Prose(
            f"With all pairs judged, {n} queries would give E ρ² = {_interval(erho2)} (stability of differences) and "
            f"Φ = {_interval(phi)} (stability of scores), by a G-study of {len(found.scores.systems)} systems, "
            f"which splits the variance of scores into systems, queries and residual; {found.level:.0%} intervals for "
            f"{' and '.join(study.uncertainty) or 'nothing'}."
        ),
        *(Prose(str(warning.message)) for warning in caught),
        draw(
            plot_components(study),
            key="reliability-components",
            alt="Shares of variance: " + ", ".join(f"{name} {share:.0%}" for name, share in study.share.items()),
            caption="Variance components of the scores. The component of systems is the signal.",
        ),
        draw(
            plot_dstudy(plan),
            key="reliability-queries",
            alt="Reliability against the number of queries: "
            + "; ".join(f"{p.query:g} queries E rho squared {p.erho2.value:.2f}" for p in plan.points),
            caption=f"Reliability against the number of queries, with all pairs judged. Dashed: {TARGET:g}.",
        ),
        Table(_needed(found), "Queries needed for a target, with all pairs judged, and how many more than now."),
        *more_judgments(found),
    ]
    return Section("reliability", "Reliability and sample size", tuple(parts))


def _interval(e: Estimate) -> str:
    return f"{e.value:.3f} {between(e.lower, e.upper, '.3f')}" if np.isfinite(e.lower) else f"{e.value:.3f}"


def _needed(found: ReportResults) -> pd.DataFrame:
    names = {"erho2": "E ρ²", "phi": "Φ", "tau": "tau with the true order (a rough guide)"}
    n = len(found.scores.queries)

    def whole(x: float) -> str:
        return "never" if np.isinf(x) else "-" if np.isnan(x) else f"{x:,.0f}"

    return pd.DataFrame(
        [
            {
                "target": f"{names[need.measure]} = {need.target:g}",
                "queries": whole(need.queries.value),
                f"{found.level:.0%} interval": f"[{whole(need.queries.lower)}, {whole(need.queries.upper)}]",
                "more": whole(max(need.queries.value - n, 0)),
            }
            for need in found.plan.needed
        ]
    )


def more_judgments(found: ReportResults) -> list[Part]:
    """Return a paragraph on the judgments that a target takes: of a campaign, as its status states them."""
    if found.stated is not None:
        return [Prose(" ".join(found.stated.standing))]
    if found.ahead is None:
        return [Prose("All pairs of the pool are judged: only more queries can reduce the uncertainty.")]
    need, judged = found.ahead.needed(TARGET), found.scores.judged
    low, middle, high = (_ahead(need[name] - judged) for name in ("lower", "judgments", "upper"))
    between = f" (90% interval {low} to {high})" if low != high else ""
    return [
        Prose(
            f"For a mean confidence of {TARGET:g} on these queries the model expects {middle} more judgments{between} "
            f"if pairs are chosen by the policy {found.state.judging.policy.name}; {found.scores.pool - judged:,} are "
            f"open. The forecast changes with the model: repeat it after a batch."
        )
    ]


def _ahead(n: float) -> str:
    """Return a number of judgments, up to the horizon of the forecast."""
    return f"{max(n, 0):,.0f}" if n <= AHEAD else f"more than {AHEAD:,}"


def labels(found: ReportResults) -> tuple[Section, ...]:
    """Return the section on the sources of labels; none without labels."""
    report = found.trust
    if report is None:
        return ()
    sources = report.to_frame().drop(columns=["p_noise"])
    biases = report.biases()
    named = biases[biases["verdict"] != VERDICTS["unbiased"]]
    parts: list[Part] = [
        Prose(
            "Labels measure relevance with errors. The slope is their change, in standard deviations, per logit of "
            "relevance; noise is the part of a single label that relevance does not explain."
        ),
        Table(sources, "Each source of labels"),
        Prose(" ".join(report.sentences())),
    ]
    if report.agreements:
        caption = "Agreement with the grades over all labelled pairs: grades of those not judged are expected ones"
        parts.append(Table(report.agreement(), caption))
    if any(one.confusion for one in report.agreements):
        parts.append(Table(report.confusion_table(), "Labels and grades: expected pairs, with 95% intervals"))
    if any(o.kin is not None for o in report.observers):
        parts.append(Table(report.kin(), "Shifts of labels towards systems with the name of the labeller's family"))
    if len(named):
        parts.append(Table(named, "Shifts of labels towards teams that are found, or cannot be ruled out"))
    parts.append(Table(report.rankings(), "The ranking, were labels worth something else"))
    return (Section("labels", "The sources of labels", tuple(parts)),)


def model(choice: Choice, seen: str | None) -> Section:
    """Return the section on the model and its calibration."""
    card = choice.card
    parts: list[Part] = [Prose(f"{choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")]
    if seen:
        parts.append(Prose(f"The model was fitted on these judgments ({seen}): its confidence is too high here."))
    if card is None:
        parts.append(Prose("The model has no card: its calibration is unknown."))
        return Section("model", "The model and its calibration", tuple(parts))
    campaigns = dict(card.training.get("campaigns", {}))
    learned = ", ".join(f"{name} ({n:,} pairs)" if isinstance(n, int) else str(name) for name, n in campaigns.items())
    parts.append(Prose(f"{card.title} {f'Fitted on {learned}.' if learned else ''}".strip()))
    parts += _evidence(card)
    parts += [Prose(f"Limit: {limit}") for limit in card.limits]
    return Section("model", "The model and its calibration", tuple(parts))


def _evidence(card: Card) -> list[Part]:
    """Return the evaluation of the card: stated confidence and accuracy, stated and actual error."""
    stated = card.evaluation.get("stated confidence")
    parts: list[Part] = []
    if isinstance(stated, Mapping):
        rows = [{"stated confidence": name, **facts} for name, facts in stated.items() if isinstance(facts, Mapping)]
        parts.append(
            Table(pd.DataFrame(rows), "Pairs of systems of held-out campaigns: stated confidence and accuracy.")
        )
    rows = _held_out(card.evaluation)
    if rows:
        caption = (
            "Predictions for pairs of held-out campaigns. Ratio: stated variance over squared error; 1 is calibrated, "
            "less is overconfident."
        )
        parts.append(Table(pd.DataFrame(rows), caption))
    if not parts:
        parts.append(Prose("The card has no figures on held-out campaigns: probeval validate computes them."))
    return parts


def _held_out(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return figures of the first model of the card on held-out campaigns, or on held-out queries."""
    for how in ("held out by campaign", "held out by query"):
        for facts in evaluation.values():
            if isinstance(facts, Mapping) and how in facts:
                return [
                    {"campaign": name, "pairs": int(f["n"]), "rmse": f["rmse"], "R²": f["r2"], "ratio": f["ratio"]}
                    for name, f in facts[how].items()
                ]
    return []
