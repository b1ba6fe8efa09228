"""Reports of meta-evaluations: measures, scales and tests compared on campaigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from probeval.plots import plot_measures, plot_rates
from probeval.reliability import MetaCampaign, MetaStudy, PairTests, StudiedMeasure
from probeval.reliability.paired import TESTS
from probeval.reports.page import Page, Part, Prose, Section, Table, between
from probeval.reports.pictures import draw
from probeval.reports.studies import report_study, study_page

__all__ = ["report_meta"]

MEASURES = (
    "All tests together at alpha {alpha:g}. Discrimination: share of pairs of systems that differ significantly on all "
    "queries. The next five are of random halves of the queries. Not sig.: pairs that do not differ significantly on "
    "the first half. Of those that do: success, the same system is significantly better on the second half; minor and "
    "major conflict, the other one is, not significantly or significantly; conflict, both together. E rho^2 and Phi: "
    "reliability of differences and of scores, with {level:.0%} intervals for other queries."
)
USERS = (
    " Preference distance: how far users are from always preferring the list with the higher score, 0 at best. "
    "Satisfaction distance: how far the share of satisfied users is from the score. Both are of published studies "
    "with lists of music."
)
TESTED = (
    "All measures and scales together at alpha {alpha:g}. Exactness: relative distance of conflicts from alpha over "
    "all levels, 0 at best, 1 for a test without conflicts. p rms: root mean square difference between the p-values "
    "of the same pair on two halves, less for a test that agrees with itself."
)
SHORT = {
    "nonsignificance": "not sig.",
    "lack_of_power": "lack of power",
    "minor_conflict": "minor conflict",
    "major_conflict": "major conflict",
    "p_rms": "p rms",
    "preference_distance": "preference distance",
    "satisfaction_distance": "satisfaction distance",
}


@report_study.register
def report_meta(study: MetaStudy, *, command: str = "") -> Page:
    """Return the report of a meta-evaluation."""
    sections = [
        *([_beside(study)] if len(study.campaigns) > 1 else []),
        Section("measures", "Measures and scales", (*_measure_figures(study), _measures(study))),
        Section("tests", "Tests", (*_test_figures(study), _tests(study))),
        Section("levels", "Levels of significance", _levels(study)),
        Section("agreement", "Self-agreement of tests", _stability(study)),
    ]
    tests = [TESTS[t.test] for t in study.campaigns[0].tests]
    return study_page(
        "Measures and tests compared",
        f"{_setting(study)} {' '.join(_findings(part, study.alpha) for part in study.campaigns)}",
        sections,
        figures=_figures(study),
        paragraph=_paragraph(study, tests),
        facts={
            "campaigns": ", ".join(study.names),
            "tests": "; ".join(tests),
            "levels": ", ".join(f"{alpha:g}" for alpha in study.alphas),
            "halves of the queries": f"{study.splits:,}",
            "resamples": f"{study.samples:,}",
            "seed": str(study.seed),
        },
        command=command,
    )


def _setting(study: MetaStudy) -> str:
    first = study.campaigns[0]
    measures = f"{len(first.measures)} combination{'s' * (len(first.measures) > 1)} of measure and scale"
    if len({len(part.measures) for part in study.campaigns}) > 1:
        measures = "Several combinations of measure and scale"
    where = " and ".join(
        f"{part.campaign} ({part.measures[0].systems} systems, {part.measures[0].queries} queries)"
        for part in study.campaigns
    )
    return f"{measures} and {len(first.tests)} test{'s' * (len(first.tests) > 1)} on {where}, at alpha {study.alpha:g}."


def _best_measure(part: MetaCampaign, alpha: float) -> tuple[StudiedMeasure, float]:
    """The measure by which most pairs differ, and their share."""
    at = part.measures[0].tests[0].alphas.index(alpha)
    best = max(part.measures, key=lambda m: m.together.discrimination[at])
    return best, float(best.together.discrimination[at])


def _most_exact(part: MetaCampaign) -> PairTests:
    """The test whose conflicts are nearest to the nominal level; the first one if there is none with conflicts."""
    return min(part.tests, key=lambda t: np.nan_to_num(t.exactness, nan=np.inf))


def _findings(part: MetaCampaign, alpha: float) -> str:
    best, share = _best_measure(part, alpha)
    reliable = max(part.measures, key=lambda m: m.erho2.value)
    exact = _most_exact(part)
    return (
        f"On {part.campaign}, {_name(best, part)} tells most pairs of systems apart ({share:.1%}), "
        f"{_name(reliable, part)} has the most reliable differences (E rho^2 {reliable.erho2.value:.3f}), and the "
        f"conflicts of {exact.test} are nearest to the nominal level."
    )


def _name(measure: StudiedMeasure, part: MetaCampaign) -> str:
    """The measure, with its scale where there are several."""
    several = len({m.scale for m in part.measures}) > 1
    return f"{measure.metric} on {measure.scale}" if several else measure.metric


def _figures(study: MetaStudy) -> list[tuple[str, str, str]]:
    figures = []
    for part in study.campaigns:
        best, share = _best_measure(part, study.alpha)
        figures.append((f"most pairs told apart, {part.campaign}", f"{share:.1%}", f"by {_name(best, part)}"))
    for part in study.campaigns:
        exact = _most_exact(part)
        conflict = exact.rates()["conflict"][exact.alphas.index(study.alpha)]
        figures.append(
            (
                f"conflicts of {exact.test}, {part.campaign}",
                f"{conflict:.2%}",
                f"the most exact test; alpha {study.alpha:g}",
            )
        )
    return figures


def _beside(study: MetaStudy) -> Section:
    """The campaigns side by side: measures and tests in rows, campaigns in columns."""
    measures = _pivot(
        study,
        lambda part: part.measures_frame(study.alpha),
        ["metric", "scale"],
        ["discrimination", "conflict", "erho2"],
    )
    tests = _pivot(
        study,
        lambda part: part.tests_frame(study.alpha),
        ["test"],
        ["discrimination", "conflict", "exactness", "p_rms"],
    )
    return Section(
        "campaigns",
        "Campaigns side by side",
        (
            Table.of(
                measures, f"Measures and scales at alpha {study.alpha:g}, by campaign; - where one was not studied."
            ),
            Table.of(tests, f"Tests at alpha {study.alpha:g}, by campaign."),
        ),
    )


def _pivot(
    study: MetaStudy, rows: Callable[[MetaCampaign], pd.DataFrame], labels: Sequence[str], shown: Sequence[str]
) -> pd.DataFrame:
    """One row per label and one column per figure and campaign, in the order in which labels first appear."""
    tables = {part.campaign: rows(part).set_index(list(labels))[list(shown)] for part in study.campaigns}
    index = pd.Index(list(dict.fromkeys(key for table in tables.values() for key in table.index)))
    columns = {
        f"{SHORT.get(name, name)}, {campaign}": table[name].reindex(index).to_numpy()
        for name in shown
        for campaign, table in tables.items()
    }
    keys = pd.DataFrame([key if isinstance(key, tuple) else (key,) for key in index], columns=list(labels))
    return keys.assign(**columns).rename(columns={"metric": "measure"})


def _measure_figures(study: MetaStudy) -> list[Part]:
    return [
        draw(
            plot_measures(part),
            key=f"measures-{i}",
            alt=f"Reliability of measures on {part.campaign}",
            caption=f"{part.campaign}: reliability of differences (E rho^2) and of scores (Phi), with "
            f"{study.level:.0%} intervals.",
        )
        for i, part in enumerate(study.campaigns)
    ]


def _measures(study: MetaStudy) -> Table:
    frame = study.side_by_side(lambda part: part.measures_frame(study.alpha))
    for name, title in (("erho2", "E rho^2"), ("phi", "Phi")):
        ends = zip(frame.pop(f"{name}_lower"), frame.pop(f"{name}_upper"), strict=True)
        frame.insert(list(frame.columns).index(name) + 1, f"{title} interval", [between(*pair, ".3f") for pair in ends])
        frame = frame.rename(columns={name: title})
    users = [name for name in ("preference_distance", "satisfaction_distance") if frame[name].notna().any()]
    frame = frame.drop(columns=[n for n in ("preference_distance", "satisfaction_distance") if n not in users])
    caption = MEASURES.format(alpha=study.alpha, level=study.level) + (USERS if users else "")
    return Table.of(_titled(study, frame), caption)


def _test_figures(study: MetaStudy) -> list[Part]:
    return [
        draw(
            plot_rates(part, rate),
            key=f"tests-{rate}-{i}",
            alt=f"{words} by alpha on {part.campaign}",
            caption=f"{part.campaign}: {caption}",
        )
        for i, part in enumerate(study.campaigns)
        for rate, words, caption in (
            ("discrimination", "Discrimination", "pairs of systems that differ significantly, by alpha."),
            ("conflict", "Conflicts", "significant results that the other half of the queries contradicts, by alpha."),
        )
    ]


def _tests(study: MetaStudy) -> Table:
    frame = study.side_by_side(lambda part: part.tests_frame(study.alpha))
    return Table.of(_titled(study, frame), TESTED.format(alpha=study.alpha))


def _levels(study: MetaStudy) -> tuple[Part, ...]:
    return tuple(
        Table.of(_titled(study, _levelled(study, rate)), caption)
        for rate, caption in (
            ("discrimination", "Discrimination of every test, all measures and scales together."),
            ("nonsignificance", "Pairs not significant on the first half of the queries."),
            ("success", "Significant results confirmed by the other half."),
            (
                "conflict",
                "Significant results contradicted by the other half, minor and major; a test is exact at alpha.",
            ),
        )
    )


def _levelled(study: MetaStudy, rate: str) -> pd.DataFrame:
    frame = study.side_by_side(lambda part: part.levels_frame(rate))
    return frame.assign(alpha=[f"{alpha:g}" for alpha in frame["alpha"]])


def _stability(study: MetaStudy) -> tuple[Part, ...]:
    frame = study.side_by_side(lambda part: part.stability_frame())
    shown = frame.assign(**{name: [f"{x:g}" for x in frame[name]] for name in ("p above", "up to")})
    return (
        Prose(
            "A test agrees with itself if the same pair of systems has similar p-values on both halves of the queries."
        ),
        Table.of(
            _titled(study, shown),
            "Root mean square difference between the p-values of two halves, by bins of the first; - in an empty bin.",
        ),
    )


def _titled(study: MetaStudy, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with column titles for people; a single campaign needs no column."""
    frame = frame.drop(columns="campaign") if len(study.campaigns) == 1 else frame
    return frame.rename(columns={**SHORT, "metric": "measure"})


def _paragraph(study: MetaStudy, tests: Sequence[str]) -> str:
    sizes = "; ".join(
        f"{part.campaign}, {part.measures[0].systems} systems and {part.measures[0].queries} queries"
        for part in study.campaigns
    )
    found = " ".join(_findings(part, study.alpha) for part in study.campaigns)
    return (
        f"We compared measures and tests ({'; '.join(tests)}) on {sizes}. All pairs of systems were tested without "
        f"correction at alpha from {study.alphas[0]:g} to {study.alphas[-1]:g}, on all queries and on both halves of "
        f"{study.splits:,} random splits of the queries, with {study.samples:,} resamples for bootstrap and "
        f"permutation. {found}"
    )
