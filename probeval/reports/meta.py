"""Reports of meta-evaluations: measures, scales and tests compared on collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from probeval.display import Table
from probeval.plots import plot_measures, plot_rates
from probeval.reliability.paired import TESTS
from probeval.reports.page import Page, Part, Prose, Section, between
from probeval.reports.pictures import draw
from probeval.reports.studies import report_study, study_page
from probeval.studies import MetaCollection, MetaStudy, PairTests, StudiedMeasure

__all__ = ["report_meta"]

MEASURES = (
    "All tests together at alpha {alpha:g}. Discrimination: share of pairs of systems that differ significantly on all "
    "queries. The next five are of random halves of the queries. Not sig.: pairs that do not differ significantly on "
    "the first half. Of those that do: success, the same system is significantly better on the second half; minor and "
    "major conflict, the other one is, not significantly or significantly; conflict, both together. E rho^2 and Phi: "
    "reliability of differences and of scores, with {level:.0%} intervals for other queries."
)
USERS = (
    "Preference distance: how far users are from always preferring the list with the higher score, 0 at best. "
    "Satisfaction distance: how far the share of satisfied users is from the score. Both are of published studies "
    "with lists of music."
)
TESTED = (
    "All measures and scales together at alpha {alpha:g}. Exactness: relative distance of conflicts from alpha over "
    "all levels, 0 at best, 1 for a test without conflicts. p rms: root mean square difference between the p-values "
    "of the same pair on two halves, less for a test that agrees with itself."
)
TEST = " test"  # marks tests among measures
BESIDE = {
    "discrimination": "Discrimination: pairs of systems that differ significantly.",
    "conflict": "Conflicts: significant results on half of the queries that the other half contradicts.",
    "erho2": "E rho^2: reliability of differences between systems.",
    "exactness": "Exactness: relative distance of conflicts from alpha, over all levels; 0 at best.",
}
LEVELS = {
    "discrimination": "discrimination of every test, all measures and scales together.",
    "conflict": "significant results contradicted by the other half, minor and major; a test is exact at alpha.",
}
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
        Section("measures", "Measures and scales", _measures(study)),
        Section("tests", "Tests", _tests(study)),
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
        f"{part.campaign} ({part.systems} systems, {part.queries} queries)" for part in study.campaigns
    )
    return f"{measures} and {len(first.tests)} test{'s' * (len(first.tests) > 1)} on {where}, at alpha {study.alpha:g}."


def _best_measure(part: MetaCollection, alpha: float) -> tuple[StudiedMeasure, float]:
    """The measure by which most pairs differ, and their share."""
    shares = {m: m.together.at(alpha).discrimination for m in part.measures}
    best = max(shares, key=shares.__getitem__)
    return best, shares[best]


def _most_exact(part: MetaCollection) -> PairTests:
    """The test whose conflicts are nearest to the nominal level; the first one if there is none with conflicts."""
    return min(part.tests, key=lambda t: np.nan_to_num(t.exactness, nan=np.inf))


def _findings(part: MetaCollection, alpha: float) -> str:
    best, share = _best_measure(part, alpha)
    reliable = max(part.measures, key=lambda m: m.erho2.value)
    exact = _most_exact(part)
    return (
        f"On {part.campaign}, {_name(best, part)} tells most pairs of systems apart ({share:.1%}), "
        f"{_name(reliable, part)} has the most reliable differences (E rho^2 {reliable.erho2.value:.3f}), and the "
        f"conflicts of the {exact.test} test are nearest to the nominal level."
    )


def _name(measure: StudiedMeasure, part: MetaCollection) -> str:
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
        conflict = exact.at(study.alpha).conflict
        figures.append(
            (
                f"conflicts of the {exact.test} test, {part.campaign}",
                f"{conflict:.2%}",
                f"the most exact test; alpha {study.alpha:g}",
            )
        )
    return figures


def _beside(study: MetaStudy) -> Section:
    """One table per figure: measures and tests in rows, campaigns in columns."""
    several = any(len({m.scale for m in part.measures}) > 1 for part in study.campaigns)
    columns: dict[str, dict[str, pd.Series[float]]] = {figure: {} for figure in BESIDE}
    for part in study.campaigns:
        measures = part.measures_frame(study.alpha)
        names = [f"{m}, {s}" if several else m for m, s in zip(measures["metric"], measures["scale"], strict=True)]
        measures = measures.set_axis(names)
        tests = part.tests_frame(study.alpha)
        tests = tests.set_axis([f"{name}{TEST}" for name in tests["test"]])
        for figure in BESIDE:
            shown = [table[figure] for table in (measures, tests) if figure in table.columns]
            columns[figure][part.campaign] = pd.concat(shown)
    return Section(
        "campaigns",
        "Campaigns side by side",
        (
            Prose(
                f"At alpha {study.alpha:g}. Measures are with all tests together, and tests with all measures and "
                "scales together; - where a campaign has no such measure."
            ),
            *(Table(_aligned(found), BESIDE[figure]) for figure, found in columns.items()),
        ),
    )


def _aligned(columns: Mapping[str, pd.Series[float]]) -> pd.DataFrame:
    """One column per campaign and one row per label, in the order in which labels first appear."""
    labels = dict.fromkeys(label for column in columns.values() for label in column.index)
    order = sorted(labels, key=lambda label: str(label).endswith(TEST))
    frame = pd.DataFrame({name: column.reindex(order).to_numpy() for name, column in columns.items()})
    frame.insert(0, "measure or test", order)
    return frame


def _measures(study: MetaStudy) -> tuple[Part, ...]:
    tables = {part.campaign: _measure_table(part, study.alpha) for part in study.campaigns}
    users = any("preference_distance" in table.columns for table in tables.values())
    parts: list[Part] = [
        Prose(MEASURES.format(alpha=study.alpha, level=study.level)),
        *([Prose(USERS)] if users else []),
    ]
    for i, part in enumerate(study.campaigns):
        picture = draw(
            plot_measures(part),
            key=f"measures-{i}",
            alt=f"Reliability of measures on {part.campaign}",
            caption=f"{part.campaign}: reliability of differences (E rho^2) and of scores (Phi), with "
            f"{study.level:.0%} intervals.",
        )
        parts += [picture, Table(_titled(tables[part.campaign]), f"{part.campaign}: measures and scales.")]
    return tuple(parts)


def _measure_table(part: MetaCollection, alpha: float) -> pd.DataFrame:
    """The measures of a campaign, with intervals as text and without columns of users that are empty."""
    frame = part.measures_frame(alpha)
    for name, title in (("erho2", "E rho^2"), ("phi", "Phi")):
        ends = zip(frame.pop(f"{name}_lower"), frame.pop(f"{name}_upper"), strict=True)
        frame.insert(list(frame.columns).index(name) + 1, f"{title} interval", [between(*pair, ".3f") for pair in ends])
        frame = frame.rename(columns={name: title})
    known = frame[["preference_distance", "satisfaction_distance"]].notna().any(axis=None)
    return frame if known else frame.drop(columns=["preference_distance", "satisfaction_distance"])


def _tests(study: MetaStudy) -> tuple[Part, ...]:
    parts: list[Part] = [Prose(TESTED.format(alpha=study.alpha))]
    for i, part in enumerate(study.campaigns):
        parts += [
            draw(
                plot_rates(part, rate),
                key=f"tests-{rate}-{i}",
                alt=f"{words} by alpha on {part.campaign}",
                caption=f"{part.campaign}: {caption}",
            )
            for rate, words, caption in (
                ("discrimination", "Discrimination", "pairs of systems that differ significantly, by alpha."),
                (
                    "conflict",
                    "Conflicts",
                    "significant results that the other half of the queries contradicts, by alpha.",
                ),
            )
        ]
        parts.append(Table(_titled(part.tests_frame(study.alpha)), f"{part.campaign}: tests."))
    return tuple(parts)


def _levels(study: MetaStudy) -> tuple[Part, ...]:
    found = []
    for part in study.campaigns:
        for rate, caption in LEVELS.items():
            frame = part.levels_frame(rate)
            shown = frame.assign(alpha=[f"{alpha:g}" for alpha in frame["alpha"]])
            found.append(Table(shown, f"{part.campaign}: {caption}"))
    return tuple(found)


def _stability(study: MetaStudy) -> tuple[Part, ...]:
    parts: list[Part] = [
        Prose(
            "A test agrees with itself if the same pair of systems has similar p-values on both halves of the queries. "
            "Root mean square difference between the two, by bins of the first; - in an empty bin."
        )
    ]
    for part in study.campaigns:
        frame = part.stability_frame()
        shown = frame.assign(**{name: [f"{x:g}" for x in frame[name]] for name in ("p above", "up to")})
        parts.append(Table(shown, f"{part.campaign}: differences between two p-values of a test."))
    return tuple(parts)


def _titled(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with column titles for people."""
    return frame.rename(columns={**SHORT, "metric": "measure"})


def _paragraph(study: MetaStudy, tests: Sequence[str]) -> str:
    sizes = "; ".join(f"{part.campaign}, {part.systems} systems and {part.queries} queries" for part in study.campaigns)
    found = " ".join(_findings(part, study.alpha) for part in study.campaigns)
    return (
        f"We compared measures and tests ({'; '.join(tests)}) on {sizes}. All pairs of systems were tested without "
        f"correction at alpha from {study.alphas[0]:g} to {study.alphas[-1]:g}, on all queries and on both halves of "
        f"{study.splits:,} random splits of the queries, with {study.samples:,} resamples for bootstrap and "
        f"permutation. {found}"
    )
