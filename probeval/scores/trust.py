"""The trust report: how reliable each source of labels is, whom it favours, and what the ranking owes to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.data.evidence import LabelTable
from probeval.data.problem import Problem
from probeval.display import Table
from probeval.errors import DataError, ModelError
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.agreement import (
    ENOUGH,
    ConfusionCell,
    GradePosterior,
    LabelAgreement,
    LabelDisagreement,
    agreement,
    disagreements,
)
from probeval.relevance.observers.drift import Drift, drift
from probeval.relevance.observers.liking import TextBias, text_biases, text_properties
from probeval.relevance.observers.panel import ColumnPair, JudgeRepeats, Panel, panel
from probeval.relevance.observers.trust import KinBias, ObserverTrust, examine
from probeval.reporting import SILENT, Reporter
from probeval.results import UNSET, Result, UnsetType, frame
from probeval.scores.estimate import ScoreEstimate
from probeval.streams import Purpose, stream

__all__ = ["Alternative", "TrustReport", "Trustworthy", "agreements", "trust", "trustworthy"]

MARGIN = 0.1  # the shift of labels that counts as none, as a share of their range
VERDICTS = {"biased": "biased", "unbiased": "unbiased within the margin", "undecided": "not enough judged to tell"}
SHOWN = 12  # biases, disagreements and pairs of columns in a summary
WORST = 10  # disagreements of each source
FEW = 4  # sources whose confusion is in a summary
LEVEL = 0.95  # the probability from which labels may be used


@dataclass(frozen=True)
class Alternative:
    """The ranking, were labels worth something else."""

    case: Annotated[str, "``worth halved``, ``worth doubled``, or ``without NAME``, a family of observers."]
    tau: Annotated[float, "Kendall's tau with the present ranking."]
    confidence: Annotated[float, "The mean confidence of the comparisons."]
    best: Annotated[str, "The best system."]


@dataclass(frozen=True)
class Trustworthy:
    """Whether a source of labels may be used: its agreement with people is high enough, and it favours no system."""

    source: str
    least: Annotated[float, "The agreement that is asked for: kappa, or the correlation for numbers."]
    probability: Annotated[
        float | None, "The probability that it is at least that; null with fewer than 30 judged pairs."
    ]
    trusted: Annotated[bool, "Whether that probability reaches the level, and no bias towards a team or kin is found."]
    reason: Annotated[str, "Why, or why not."]

    @classmethod
    def of(
        cls, found: LabelAgreement | None, observer: ObserverTrust, least: float, *, level: float = LEVEL
    ) -> Trustworthy:
        """Return whether a source may be used, from its agreement and its biases."""
        name = observer.observer.name
        if found is None:
            few = f"{name}: {observer.judged} of its pairs are judged, and {ENOUGH} are needed to tell how it agrees"
            return cls(name, least, None, False, few)
        p, text = found.probability_of(least), found.against(least)
        favours = [bias.name for bias in observer.biases if bias.verdict == "biased"]
        if observer.kin is not None and observer.kin.verdict == "favours":
            favours.append("its kin")
        if favours:
            text += f"; its labels are biased for or against {', '.join(favours)}"
        return cls(name, least, p, p >= level and not favours, text)


@dataclass(frozen=True, eq=False, repr=False)
class TrustReport(Result):
    """How reliable each source of labels is, whom it favours, and what the ranking owes to it."""

    observers: Annotated[
        tuple[ObserverTrust, ...], "One entry per source of labels, the steepest slope first, with suspected biases."
    ]
    alternatives: Annotated[
        tuple[Alternative, ...],
        "The ranking with the worth of labels halved and doubled, and without each family of observers.",
    ]
    agreements: Annotated[
        tuple[LabelAgreement, ...],
        "One entry per source with enough judged pairs: its agreement with the grades, over all labelled pairs.",
    ]
    disagreements: Annotated[
        tuple[LabelDisagreement, ...], "The judged pairs on which labels and grades are the furthest apart, by source."
    ]
    panel: Annotated[Panel | None, "What several columns are worth together; null without two."]
    margin: Annotated[float, "The shift up to which labels count as unbiased, as a share of their range."]
    drift: Annotated[
        tuple[Drift, ...] | UnsetType, "Each source against its earlier version, if earlier labels are given."
    ] = UNSET
    texts: Annotated[
        tuple[TextBias, ...] | UnsetType, "What labels follow of the texts beyond relevance, if texts are given."
    ] = UNSET

    def _headline(self) -> str:
        return f"{len(self.observers)} sources of labels, {sum(self._count('biased').values())} suspected biases"

    def _count(self, verdict: str) -> dict[str, int]:
        return {o.observer.name: sum(b.verdict == verdict for b in o.biases) for o in self.observers}

    def to_frame(self) -> pd.DataFrame:
        """One row per source: its slope with its interval, noise, doubts, agreement with grades, and missing share."""
        rows = [
            {
                "source": o.observer.name,
                "kind": o.observer.kind,
                "known": "yes" if o.known else "no",
                "mean": o.mean_label,
                "slope": o.slope,
                "lower": o.slope_lower,
                "upper": o.slope_upper,
                "noise": o.noise,
                "p_reversed": o.p_reversed,
                "p_noise": o.p_noise,
                "p_similarity": o.p_similarity,
                "p_favours": o.p_favours,
                "judged": o.judged,
                "missing": 1 - o.labelled,
            }
            for o in self.observers
        ]
        return pd.DataFrame(rows).astype({"p_similarity": float})

    def agreement(self) -> pd.DataFrame:
        """One row per source: kappa with its interval, the share of equal labels, the correlation."""
        found = frame(self.agreements, LabelAgreement)
        return found.drop(columns="confusion").rename(columns={"kappa_lower": "lower", "kappa_upper": "upper"})

    def confusion(self) -> pd.DataFrame:
        """One row per source, label and grade: the expected number of pairs with its interval, and of judged ones."""
        tables = [frame(one.confusion, ConfusionCell).assign(source=one.source) for one in self.agreements]
        made = pd.concat(tables) if tables else frame((), ConfusionCell).assign(source=[])
        return made[["source", *(name for name in made.columns if name != "source")]].reset_index(drop=True)

    def confusion_table(self) -> pd.DataFrame:
        """One row per source and label, one column per grade: the expected number of pairs and its interval."""
        found: dict[tuple[str, float], dict[str, str]] = {}
        for one in self.agreements:
            for cell in one.confusion:
                shown = f"{cell.pairs:.0f} [{cell.lower:.0f}, {cell.upper:.0f}]"
                found.setdefault((one.source, cell.label), {})[f"grade {cell.grade:g}"] = shown
        return pd.DataFrame([{"source": source, "label": label, **cells} for (source, label), cells in found.items()])

    def kin(self) -> pd.DataFrame:
        """One row per source with kin among the systems: the shift of its labels on the documents of these."""
        found = [(o.observer.name, o.kin) for o in self.observers if o.kin is not None]
        made = frame([kin for _, kin in found], KinBias).rename(columns={"mean": "shift"})
        made.insert(0, "source", [name for name, _ in found])
        return made

    def biases(self) -> pd.DataFrame:
        """One row per source and team: the shift of its labels in their units, P(biased), the verdict."""
        return pd.DataFrame(
            [
                {
                    "source": o.observer.name,
                    "team": bias.name,
                    "systems": len(bias.systems),
                    "shift": bias.mean,
                    "lower": bias.lower,
                    "upper": bias.upper,
                    "p_biased": bias.p_biased,
                    "verdict": VERDICTS[bias.verdict],
                    "needed": "-" if bias.needed is None else str(bias.needed or ""),
                }
                for o in self.observers
                for bias in o.biases
            ]
        )

    def rankings(self) -> pd.DataFrame:
        """One row per alternative: tau with the present ranking, confidence, best system."""
        return frame(self.alternatives, Alternative)

    def tables(self) -> tuple[Table, ...]:
        """The sources, their agreement with the grades, their biases, the panel, and the alternatives."""
        biases = self.biases().sort_values("p_biased", ascending=False, kind="stable").head(SHOWN)
        found = [Table(self.to_frame(), "Sources of labels", intervals=("slope", "lower", "upper"))]
        if self.agreements:
            title = "Agreement with the grades, over all labelled pairs"
            found.append(Table(self.agreement(), title, intervals=("kappa", "lower", "upper")))
        if 0 < sum(bool(one.confusion) for one in self.agreements) <= FEW:
            found.append(Table(self.confusion_table(), "Labels and grades: expected pairs, and 95% intervals"))
        if self.disagreements:
            worst = sorted(self.disagreements, key=lambda one: -abs(one.apart))[:SHOWN]
            found.append(Table(frame(worst, LabelDisagreement), "The judged pairs that are the furthest apart"))
        found.append(
            Table(biases, "Biases towards teams, in units of the labels", intervals=("shift", "lower", "upper"))
        )
        if any(o.kin is not None for o in self.observers):
            found.append(
                Table(self.kin(), "Biases towards kin, in units of the labels", intervals=("shift", "lower", "upper"))
            )
        if self.panel is not None:
            pairs = frame(self.panel.pairs[:SHOWN], ColumnPair)
            found.append(
                Table(pairs, "Columns with the most alike errors", intervals=("error_correlation", "lower", "upper"))
            )
        if self.panel is not None and self.panel.families:
            families = frame(self.panel.families, JudgeRepeats)
            found.append(Table(families, "Repeats and prompts of one judge", intervals=("effective", "lower", "upper")))
        if self.drift is not UNSET:
            found.append(
                Table(frame(self.drift, Drift), "Against earlier labels", intervals=("shift", "lower", "upper"))
            )
        if self.texts is not UNSET:
            title = "What labels follow of the texts, and what grades do"
            found.append(Table(frame(self.texts, TextBias), title, intervals=("difference", "lower", "upper")))
        found.append(Table(self.rankings(), "The ranking, were labels worth something else"))
        return tuple(found)

    def sentences(self) -> tuple[str, ...]:
        """Who is favoured, what else is in doubt, how labels were made; the panel, drift and texts."""
        found = [f"{o.observer.name}: {o.finding}" for o in self.observers]
        found += [f"{o.observer.name}: {o.observer.provenance}." for o in self.observers if o.observer.provenance]
        if self.panel is not None:
            found.append(self.panel.sentence)
        if self.drift is not UNSET:
            found += [one.sentence for one in self.drift]
        if self.texts is not UNSET:
            found += [one.sentence for one in self.texts if one.verdict != "undecided"]
        return tuple(found)


def trust(
    estimate: ScoreEstimate,
    *,
    margin: float = MARGIN,
    earlier: LabelTable | None = None,
    docs: Mapping[str, str] | None = None,
    queries: Mapping[str, str] | None = None,
    reporter: Reporter = SILENT,
) -> TrustReport:
    """Examine the sources of labels of a campaign with its judgments so far.

    Parameters
    ----------
    estimate
        Scores by a hierarchical model with labels.
    margin
        The shift up to which labels count as unbiased, as a share of their range.
    earlier
        Labels of earlier versions of the sources, under the same names; or one column, if there is one source.
    docs, queries
        Texts by id, to see whether labels follow the length of a document, and the words that it shares with the query.
    reporter
        Receives progress and remarks.
    """
    observers, labels = examined(estimate, margin=margin), labels_given(estimate.problem)
    cases: list[tuple[str, float, tuple[str, ...]]] = [
        ("worth halved", 0.5, labels.sources),
        ("worth doubled", 2.0, labels.sources),
    ]
    families = list(dict.fromkeys(o.family for o in labels.observers))
    for family in families:
        kept = tuple(o.name for o in labels.observers if o.family != family)
        if kept or not estimate.collection.consensus:  # without labels there is no consensus
            cases.append((f"without {family}" if kept else "without labels", 1.0, kept))
    compared = LabelsBesideGrades(estimate)
    return TrustReport(
        observers,
        tuple(_alternative(estimate, *case) for case in reporter.track(cases, "Alternatives")),
        compared.agreements,
        compared.disagreements,
        compared.panel,
        margin,
        UNSET if earlier is None else compared.drift(earlier, reporter),
        UNSET if docs is None else compared.texts(docs, queries),
    )


@dataclass(frozen=True, eq=False)
class LabelsBesideGrades:
    """The labels of a campaign beside the grades that its judgments and its model give."""

    estimate: ScoreEstimate

    @property
    def seed(self) -> tuple[int, int]:
        """The seed of all draws: figures of several sources move together."""
        return self.estimate.estimation.seed, int(Purpose.AGREEMENT)

    @cached_property
    def posterior(self) -> GradePosterior:
        """The posterior of the grades."""
        return GradePosterior.of(self.estimate.prediction.relevance, stream(*self.seed))

    @property
    def labels(self) -> LabelTable:
        """The labels of the pairs of the pool."""
        return labels_given(self.estimate.problem)

    @property
    def top(self) -> float:
        """The highest grade."""
        return float(self.estimate.problem.scale.values[-1])

    @property
    def agreements(self) -> tuple[LabelAgreement, ...]:
        """The agreement of each source with people, where enough is judged."""
        sources = zip(self.labels.observers, self.labels.values.T, strict=True)
        found = (agreement(self.posterior, given, of, self.top, seed=self.seed) for of, given in sources)
        return tuple(one for one in found if one is not None)

    @property
    def disagreements(self) -> tuple[LabelDisagreement, ...]:
        """The judged pairs on which labels and grades are the furthest apart."""
        pool, sources = self.estimate.problem.pool, zip(self.labels.observers, self.labels.values.T, strict=True)
        return tuple(one for of, y in sources for one in disagreements(self.posterior, pool, y, of, self.top, n=WORST))

    @property
    def panel(self) -> Panel | None:
        """What several columns are worth together."""
        return panel(self.posterior, self.labels.values, self.labels.observers, seed=self.seed)

    def drift(self, earlier: LabelTable, reporter: Reporter) -> tuple[Drift, ...]:
        """Return each source against its earlier version."""
        labels, before = self.labels, earlier.on(self.estimate.problem.pool)
        pairs = [(i, before.sources.index(s)) for i, s in enumerate(labels.sources) if s in before.sources]
        if not pairs and len(labels.sources) == len(before.sources) == 1:
            pairs = [(0, 0)]
        if not pairs:
            raise DataError(
                f"no column of the earlier labels is of a source of labels: {', '.join(before.sources)} against "
                f"{', '.join(labels.sources)}. Give both the same name."
            )
        alone = [s for i, s in enumerate(labels.sources) if i not in dict(pairs)]
        if alone:
            reporter.say(f"Without earlier labels: {', '.join(alone)}.")
        found = (
            drift(
                self.posterior,
                self.estimate.lists,
                labels.values[:, i],
                before.values[:, j],
                (labels.observers[i], before.observers[j]),
                self.top,
                self.seed,
            )
            for i, j in pairs
        )
        return tuple(one for one in found if one is not None)

    def texts(self, docs: Mapping[str, str], queries: Mapping[str, str] | None) -> tuple[TextBias, ...]:
        """Return what labels follow of the texts beyond relevance."""
        properties = text_properties(self.estimate.problem.pool, docs, queries)
        return text_biases(self.posterior, self.labels.values, self.labels.sources, properties, self.seed)


def trustworthy(estimate: ScoreEstimate, least: float, *, level: float = LEVEL) -> tuple[Trustworthy, ...]:
    """Return whether each source of labels may be used.

    Parameters
    ----------
    estimate
        Scores by a hierarchical model with labels.
    least
        The agreement with people that is asked for: kappa, or the correlation for numbers.
    level
        The probability that it needs.
    """
    observers, found = examined(estimate), {one.source: one for one in agreements(estimate)}
    return tuple(Trustworthy.of(found.get(o.observer.name), o, least, level=level) for o in observers)


def labels_given(problem: Problem) -> LabelTable:
    """Return the labels of a problem.

    Raises
    ------
    DataError
        If there are none.
    """
    if problem.labels is None:
        raise DataError("Labels are examined, and there are none. Give --labels FILE.")
    return problem.labels


def agreements(estimate: ScoreEstimate) -> tuple[LabelAgreement, ...]:
    """Return the agreement of each source of labels with people, over all labelled pairs, where enough is judged."""
    return LabelsBesideGrades(estimate).agreements


def examined(estimate: ScoreEstimate, *, margin: float = MARGIN) -> tuple[ObserverTrust, ...]:
    """Return the trust in each source of labels alone, the steepest slope first."""
    model, problem = estimate.estimation.model, estimate.problem
    labels_given(problem)
    if not isinstance(model, Hierarchical):
        raise ModelError("Only the hierarchical model examines labels. Use --model hierarchical.")
    if not 0 < margin < 1:
        raise DataError(f"The margin is a share of the labels' range between 0 and 1, got {margin:g}.")
    return examine(
        model.unlabelled(problem),
        model.prior.observers,
        problem,
        margin=margin,
        rng=stream(estimate.estimation.seed, Purpose.TRUST),
    )


def _alternative(estimate: ScoreEstimate, case: str, factor: float, sources: tuple[str, ...]) -> Alternative:
    ranking = estimate.relabelled(sources, worth_factor=factor).ranking
    return Alternative(case, _tau(ranking.scores.mean, estimate.scores.mean), ranking.confidence, ranking.order[0])


def _tau(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-a of two vectors of scores; 1 for a single system."""
    n = len(x)
    agree = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    return float(agree.sum() / (n * (n - 1))) if n > 1 else 1.0
