"""The report of two systems, on one page: their difference, the decision, labels, the pairs to judge next."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from probeval.display import Table
from probeval.plots import plot_difference
from probeval.reports.page import Part, Prose, Section, percent
from probeval.reports.pictures import draw
from probeval.reports.results import ReportResults
from probeval.reports.sections import more_judgments
from probeval.scores import Comparison, TwoSystems
from probeval.scores.two_systems import probability
from probeval.selection import Judging

__all__ = ["difference", "figures", "labels", "lead", "next_pairs"]

MAX_PAIRS = 10  # to judge next, in the report


def lead(found: ReportResults) -> str:
    """Return the decision in a sentence or two."""
    decision = found.decision
    return decision.on_these if decision.new is None else f"{decision.on_these} {decision.on_new}"


def figures(found: ReportResults) -> tuple[tuple[str, str, str], ...]:
    """Return the key figures: the difference, the probabilities on these and on new queries, the judgments."""
    decision, scores = found.decision, found.scores
    here, new = decision.here, decision.new
    low, high = here.difference.interval(found.level)
    shown = [
        (
            f"{scores.metric}, {here.a} minus {here.b}",
            f"{here.difference.mean():+.4f}",
            f"{found.level:.0%} interval [{low:+.4f}, {high:+.4f}] on these queries",
        ),
        (_better(here), probability(here.p_better), f"on these {len(scores.queries)} queries{_rest(here)}"),
    ]
    if new is not None:
        shown.append((_better(new), probability(new.p_better), f"on new queries{_rest(new)}"))
    shown.append(("judged", f"{scores.judged:,}", f"{percent(scores.judged, scores.pool)} of {scores.pool:,} pairs"))
    return tuple(shown)


def _rest(comparison: Comparison) -> str:
    """Return the other probabilities, where there is a rope."""
    if not comparison.rope:
        return ""
    equal, worse = probability(comparison.p_equal), probability(comparison.p_worse)
    return f"; within that {equal}, worse {worse}"


def _better(comparison: Comparison) -> str:
    by = f" by more than {comparison.rope:g}" if comparison.rope else ""
    return f"P({comparison.a} is better{by})"


def difference(decision: TwoSystems, *, title: str = "The difference") -> Section:
    """Return the section on the difference: a picture, a table, and what labels contributed."""
    here, table, level = decision.here, decision.to_frame(), decision.level
    scores = here.difference.scores
    shown = pd.DataFrame(
        {
            "queries": table["queries"],
            "difference": [f"{value:+.4f}" for value in table["difference"]],
            f"{level:.0%} interval": [
                f"[{low:+.4f},\N{NO-BREAK SPACE}{high:+.4f}]"
                for low, high in zip(table["lower"], table["upper"], strict=True)
            ],
            f"P(better by more than {here.rope:g})" if here.rope else "P(better)": [
                probability(p) for p in table["p_better"]
            ],
            **({f"P(within {here.rope:g})": [probability(p) for p in table["p_equal"]]} if here.rope else {}),
            "P(worse)": [probability(p) for p in table["p_worse"]],
            "verdict": table["verdict"],
        }
    )
    each = ", ".join(f"{s} {scores[s].mean():.4f}" for s in (here.a, here.b))
    parts: list[Part] = [
        draw(
            plot_difference(decision),
            key="difference-picture",
            alt="; ".join(
                f"{row.queries}: {row.difference:+.4f} from {row.lower:+.4f} to {row.upper:+.4f}"
                for row in table.itertuples()
            ),
            caption=f"The difference with its {level:.0%} interval. Right of 0, {here.a} is better."
            + (f" Differences in the band, up to {here.rope:g}, do not matter." if here.rope else ""),
        ),
        Table(
            shown,
            f"{here.a} minus {here.b}. On these queries, unjudged pairs are what is uncertain; on new queries of the "
            f"same kind, the choice of queries as well. A verdict needs a probability of {level:g}{scores.caveat}.",
        ),
        Prose(
            f"Expected {scores.metric} on these queries: {each}."
            + ("" if scores.ideal is None else f" {scores.ideal.sentence}")
        ),
    ]
    contributed = [sentence for sentence in decision.sentences() if sentence.startswith("Without labels")]
    parts += [Prose(sentence) for sentence in contributed]
    return Section("difference", title, tuple(parts))


def labels(found: ReportResults) -> tuple[Section, ...]:
    """Return the section on the sources of labels; none without labels."""
    used = found.labels
    if not used.sources:
        return ()
    table = used.to_frame().assign(labelled=[f"{share:.0%}" for share in used.to_frame()["labelled"]])
    shown = table[["source", "known", "labelled", "judged", "correlation", "lower", "upper", "slope"]]
    caption = (
        "known: whether the model learned from this source, or from its family, before. labelled: the share of the "
        "pool. judged: labelled pairs that people judged too. correlation: that of labels and grades over all labelled "
        "pairs, with its 95% interval; grades of unjudged pairs are expected ones. slope: the weight of the labels, in "
        "standard deviations per logit of relevance."
    )
    parts: list[Part] = [Prose(sentence) for sentence in used.sentences()]
    if used.used:
        parts.append(Table(shown.fillna({"known": "-"}), caption))
    collection = found.state.judging.collection
    made = {} if collection.labels is None else collection.labels.provenance
    parts += [Prose(f"How the labels of {source} were made: {text}.") for source, text in made.items()]
    return (Section("labels", "Labels", tuple(parts)),)


def next_pairs(found: ReportResults) -> Section:
    """Return the section on what to do next: pairs to judge if it is undecided, more queries if those are too few."""
    decision, state = found.decision, found.state
    parts: list[Part] = []
    if not state.open.any():
        parts.append(Prose("Every pair is judged: only more queries can change the decision."))
    elif decision.is_undecided:
        names = (decision.here.a, decision.here.b)
        goal = "ranking" if any("," in name for name in names) else f"pair:{names[0]},{names[1]}"
        parts += more_judgments(found)
        pairs = replace(state, judging=Judging.choosing(state.judging, "gain", goal=goal)).next(MAX_PAIRS).pairs
        known = state.prediction.relevance.take(pairs).to_frame().iloc[pairs.argsort().argsort()]
        table = known[["query", "doc", "mean", "sd"]].rename(columns={"mean": "expected grade"})
        parts.append(
            Table(
                table.astype({"query": str, "doc": str}),
                f"The next pairs to judge, the most informative first; probeval next RUNS --goal {goal} gives more.",
            )
        )
    else:
        parts.append(Prose("On these queries it is decided."))
    if found.verdict.beyond.any():
        parts.append(
            Prose(
                f"{len(found.scores.queries)} queries are too few to decide for new ones, even with all pairs judged "
                "and the difference as expected now: add queries."
            )
        )
    elif decision.new is not None and decision.new.verdict(level=found.level) == "undecided" and state.open.any():
        parts.append(Prose("On new queries it is undecided: more judgments are likely to decide it there."))
    return Section("next", "What next", tuple(parts))
