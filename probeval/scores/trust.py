"""The trust report: how reliable each source of labels is, whom it favours, and what the ranking owes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.display import Table
from probeval.errors import DataError, ModelError
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.trust import ObserverTrust, examine
from probeval.reporting import SILENT, Reporter
from probeval.results import Result, frame
from probeval.scores.estimate import ScoreEstimate
from probeval.streams import Purpose, stream

__all__ = ["Alternative", "TrustReport", "trust"]

MARGIN = 0.1  # the shift of labels that counts as none, as a share of their range
VERDICTS = {"biased": "biased", "unbiased": "unbiased within the margin", "undecided": "not enough judged to tell"}
SHOWN_BIASES = 12  # biases in a summary


@dataclass(frozen=True)
class Alternative:
    """The ranking, were labels worth something else."""

    case: Annotated[str, "``worth halved``, ``worth doubled``, or ``without NAME``, a family of observers."]
    tau: Annotated[float, "Kendall's tau with the present ranking."]
    confidence: Annotated[float, "The mean confidence of the comparisons."]
    best: Annotated[str, "The best system."]


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
    margin: Annotated[float, "The shift up to which labels count as unbiased, as a share of their range."]

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
                "correlation": o.correlation,
                "equal": o.equal,
                "missing": 1 - o.labelled,
            }
            for o in self.observers
        ]
        return pd.DataFrame(rows).astype(dict.fromkeys(("p_similarity", "correlation", "equal"), float))

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
        """The sources, their most probable biases, and the alternatives."""
        biases = self.biases().sort_values("p_biased", ascending=False, kind="stable").head(SHOWN_BIASES)
        return (
            Table(self.to_frame(), "Sources of labels", intervals=("slope", "lower", "upper")),
            Table(biases, "Biases towards teams, in units of the labels", intervals=("shift", "lower", "upper")),
            Table(self.rankings(), "The ranking, were labels worth something else"),
        )

    def sentences(self) -> tuple[str, ...]:
        """Who is favoured, what else is in doubt, whether that is known, and how labels were made."""
        made = (f"{o.observer.name}: {o.observer.provenance}." for o in self.observers if o.observer.provenance)
        return (*(f"{o.observer.name}: {o.finding}" for o in self.observers), *made)


def trust(estimate: ScoreEstimate, *, margin: float = MARGIN, reporter: Reporter = SILENT) -> TrustReport:
    """Examine the sources of labels of a campaign with its judgments so far.

    Parameters
    ----------
    estimate
        Scores by a hierarchical model with labels.
    margin
        The shift up to which labels count as unbiased, as a share of their range.
    reporter
        Receives progress and remarks.
    """
    model, labels = estimate.estimation.model, estimate.estimation.collection.labels
    if labels is None:
        raise DataError("A trust report examines labels, and there are none. Give --labels FILE.")
    if not isinstance(model, Hierarchical):
        raise ModelError("Only the hierarchical model examines labels. Use --model hierarchical.")
    if not 0 < margin < 1:
        raise DataError(f"The margin is a share of the labels' range between 0 and 1, got {margin:g}.")
    observers = examined(estimate, margin=margin)
    cases: list[tuple[str, float, tuple[str, ...]]] = [
        ("worth halved", 0.5, labels.sources),
        ("worth doubled", 2.0, labels.sources),
    ]
    families = list(dict.fromkeys(o.family for o in labels.observers))
    for family in families:
        kept = tuple(o.name for o in labels.observers if o.family != family)
        if kept or not estimate.collection.consensus:  # without labels there is no consensus
            cases.append((f"without {family}" if kept else "without labels", 1.0, kept))
    return TrustReport(
        observers, tuple(_alternative(estimate, *case) for case in reporter.track(cases, "Alternatives")), margin
    )


def examined(estimate: ScoreEstimate, *, margin: float = MARGIN) -> tuple[ObserverTrust, ...]:
    """Return the trust in each source of labels alone, the steepest slope first."""
    model, problem = estimate.estimation.model, estimate.problem
    assert isinstance(model, Hierarchical)
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
