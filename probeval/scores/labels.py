"""Labels as a campaign uses them: who gave them, how many there are, how they agree with people, their weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from probeval.arrays import Floats
from probeval.data.observers import ObserverSpec
from probeval.data.problem import Problem
from probeval.display import Table
from probeval.features import feature_names, needs
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.laplace import LaplacePosterior
from probeval.relevance.models.base import FallbackModel, Predicts
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.models.labels import CalibratedLabels, LabelsAsGrades
from probeval.relevance.observers.agreement import ENOUGH, GradePosterior, correlation_interval
from probeval.relevance.observers.worth import judgments_to_tell
from probeval.results import Result
from probeval.scores.estimate import ScoreEstimate
from probeval.streams import Purpose, stream

__all__ = [
    "LabelSource",
    "LabelsUsed",
    "labels_of",
    "labels_used",
    "uses_labels",
]

FEW = 3  # sources that get a sentence each
DOUBTFUL = 0.2  # P(reversed) above which it is said
MOST_POOL = 30_000  # pairs of a pool for the line on labels: a report on trust takes any number
DRAWS, SAMPLE = 100, 5_000  # of the grades of unjudged pairs, for one figure per source
KNOWN = {
    "yes": "known to the model",
    "family": "new to the model, of a family that it knows",
    "no": "new to the model",
}


@dataclass(frozen=True)
class LabelSource:
    """A source of labels as a collection uses it."""

    source: str
    kind: Annotated[str, "``machine``, ``similarity`` or ``person``."]
    family: str
    known: Annotated[
        str | None,
        "Whether the model has learned from its labels before (``yes``), from those of its family (``family``), or not "
        "(``no``); null where the model does not learn about observers.",
    ]
    labelled: Annotated[float, "The share of the pool with a label."]
    judged: Annotated[int, "The number of judged pairs among these."]
    correlation: Annotated[
        float | None,
        "The correlation of its labels and the grades, over all pairs with a label: those of unjudged pairs are "
        "expected ones. Null with fewer than 30 judged.",
    ]
    lower: Annotated[float | None, "The lower end of its 95% interval."]
    upper: float | None
    slope: Annotated[
        float | None,
        "The weight of its labels: their change, in standard deviations, per logit of relevance; null if unknown.",
    ]
    p_reversed: Annotated[float | None, "The probability that its scale is reversed; null if unknown."] = None
    needed: Annotated[
        int | None,
        "About how many judgments are missing to tell numbers by a judge of relevance from similarities; null for a "
        "source whose kind is known, or told.",
    ] = None

    @property
    def is_rated(self) -> bool:
        """Whether enough of its pairs are judged for a statement on its agreement with people."""
        return self.correlation is not None

    def __str__(self) -> str:
        known = "" if self.known is None else f" ({KNOWN[self.known]})"
        text = f"{self.source}{known} labels {self.labelled:.0%} of the pool"
        if self.correlation is not None:
            between = "" if self.lower == self.upper else f" ({self.lower:.2f} to {self.upper:.2f})"
            text += (
                f"; by {self.judged:,} judged pairs its correlation with the grades is {self.correlation:.2f}{between}"
            )
        elif self.judged >= ENOUGH:
            text += f"; {self.judged:,} of these pairs are judged"
        elif self.judged:
            text += f"; {self.judged:,} of these pairs are judged, too few to tell how it agrees with people"
        else:
            text += "; none of these pairs is judged, so its agreement with people is not known"
        text = text if self.slope is None else f"{text}; slope {self.slope:.2f}"
        return "; ".join([text, *self.doubts])

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why its labels may not be what they seem: their scale may be reversed, or their kind is not known."""
        turned = self.p_reversed is not None and self.p_reversed > DOUBTFUL
        return (
            *([f"its scale may be reversed (P(reversed) {self.p_reversed:.2f})"] if turned else []),
            *([f"a numeric labeller never seen: judge about {self.needed:,} pairs first"] if self.needed else []),
        )


@dataclass(frozen=True, eq=False, repr=False)
class LabelsUsed(Result):
    """The sources of labels of a collection."""

    sources: Annotated[tuple[LabelSource, ...], "One entry per source."]
    used: Annotated[bool, "Whether the model uses labels."] = True

    def _headline(self) -> str:
        return f"{len(self.sources)} sources of labels"

    def tables(self) -> tuple[Table]:
        """One row per source."""
        return (Table(self.to_frame(), "Sources of labels"),)

    def sentences(self) -> tuple[str, ...]:
        """One sentence per source, or one on all of them if there are many."""
        if not self.sources:
            return ()
        if not self.used:
            return ("The model does not use labels: they change nothing here.",)
        if len(self.sources) <= FEW:
            return tuple(f"Labels: {source}." for source in self.sources)
        doubts = (f"{source.source}: {'; '.join(source.doubts)}." for source in self.sources if source.doubts)
        return (f"Labels: {self._together()}.", *doubts)

    def for_paper(self) -> str:
        """A sentence on the labels for a paper; empty if the model uses none."""
        if not self.sources or not self.used:
            return ""
        names = ", ".join(source.source for source in self.sources[:FEW])
        more = len(self.sources) - FEW
        shares = sorted({f"{source.labelled:.0%}" for source in self.sources}, key=lambda share: int(share[:-1]))
        text = (
            f"Labels by {names}{f' and {more} more sources' if more > 0 else ''} "
            f"({' to '.join(shares[:: max(len(shares) - 1, 1)])} of the pairs) were used as noisy measurements of "
            "relevance"
        )
        rated = [s for s in self.sources if s.is_rated]
        if not rated:
            return f"{text}."
        best = max(rated, key=lambda source: source.correlation or 0.0)
        between = "" if best.lower == best.upper else f" (95% interval {best.lower:.2f} to {best.upper:.2f})"
        which = "their" if len(self.sources) == 1 else f"the highest ({best.source})"
        return (
            f"{text}; by the {best.judged:,} pairs judged by people, {which} correlation with the grades is "
            f"{best.correlation:.2f}{between}."
        )

    def _together(self) -> str:
        shares = [source.labelled for source in self.sources]
        text = f"{len(self.sources)} sources"
        if self.sources[0].known is not None:
            text += f", {sum(s.known == 'yes' for s in self.sources)} of them known to the model"
        text += f", label {min(shares):.0%} to {max(shares):.0%} of the pool"
        rated = sorted((s.correlation or 0.0, s.source) for s in self.sources if s.is_rated)
        if not rated and max(s.judged for s in self.sources) >= ENOUGH:
            return text
        if not rated:
            return f"{text}; too few pairs are judged to tell how they agree with people"
        (low, worst), (high, best) = rated[0], rated[-1]
        return f"{text}; their correlation with the grades is {low:.2f} ({worst}) to {high:.2f} ({best})"


def uses_labels(model: Predicts) -> bool:
    """Whether a model uses labels; models from outside the package are taken to."""
    if not isinstance(model, FallbackModel):
        return True
    by_label = any(isinstance(part, (LabelsAsGrades, CalibratedLabels)) for part in model.models)
    return by_label or "labels" in needs(feature_names(model.terms))


def labels_used(
    problem: Problem,
    *,
    model: Predicts | None = None,
    posterior: LaplacePosterior | None = None,
    relevance: RelevanceDistribution | None = None,
    seed: int = 0,
) -> LabelsUsed:
    """The sources of labels of a campaign with its judgments.

    Parameters
    ----------
    problem
        Runs, labels and judgments; without labels the result is empty.
    model
        The model that uses the labels; None if there are several.
    posterior
        The posterior of the model, for the weight of each source.
    relevance, seed
        The posterior of the grades, for the agreement of each source with people, and the seed of its draws. Without
        it there is one only where all labelled pairs are judged: judged pairs are chosen, and not like the others.

    Examples
    --------
    >>> import probeval
    >>> from dataclasses import replace
    >>> from probeval.data import LabelTable
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=5, depth=5)
    >>> given = LabelTable(campaign.runs.pool, ("my_llm",), campaign.judgments.grades()[:, None])
    >>> found = labels_used(replace(campaign, labels=given).problem(depth=5))
    >>> print(*found.sentences())
    Labels: my_llm labels 100% of the pool; by 56 judged pairs its correlation with the grades is 1.00.
    """
    labels, judged = problem.labels, problem.grades.codes
    if labels is None:
        return LabelsUsed(())
    found, sources = _found(posterior), []
    agreed = _agreed(problem, labels.values, relevance, seed)
    for observer, given, (correlation, lower, upper) in zip(labels.observers, labels.values.T, agreed, strict=True):
        both = (judged >= 0) & ~np.isnan(given)
        slope, p_reversed, needed = found.get(observer.name, (None, None, None))
        sources.append(
            LabelSource(
                source=observer.name,
                kind=observer.kind,
                family=observer.family,
                known=_known(observer, model),
                labelled=float(np.mean(~np.isnan(given))) if len(given) else 0.0,
                judged=int(both.sum()),
                correlation=correlation,
                lower=lower,
                upper=upper,
                slope=slope,
                p_reversed=p_reversed,
                needed=None if needed is None else max(needed - int(both.sum()), 0) or None,
            )
        )
    return LabelsUsed(tuple(sources), model is None or uses_labels(model))


def _agreed(
    problem: Problem, labels: Floats, relevance: RelevanceDistribution | None, seed: int
) -> list[tuple[float | None, float | None, float | None]]:
    """Return of each source the correlation of labels and grades, with its interval; None where it is not known."""
    levels, judged = problem.scale.levels, problem.grades.codes >= 0
    missing = ~np.isnan(labels) & ~judged[:, None]
    if relevance is None or len(labels) > MOST_POOL:
        # Judged pairs are chosen. On these alone there is an answer only for a source that labelled no others.
        even = np.full((len(judged), len(levels)), 1 / len(levels))
        relevance = RelevanceDistribution.of(problem.pool, problem.scale, even, judgments=problem.grades)
        labels = np.where(missing.any(axis=0), np.nan, labels)
    rng = stream(seed, Purpose.AGREEMENT)
    posterior = GradePosterior.of(relevance, rng, draws=DRAWS, most=SAMPLE)
    out: list[tuple[float | None, float | None, float | None]] = []
    for given in labels.T:
        found = correlation_interval(posterior, given, rng)
        out.append((None, None, None) if found is None else found)
    return out


def _known(observer: ObserverSpec, model: Predicts | None) -> str | None:
    if not isinstance(model, Hierarchical):
        return None
    priors = model.prior.observers
    if priors.knows(observer):
        return "yes"
    return "family" if observer.family in {ObserverSpec(name).family for name in priors.by_name} else "no"


def _found(posterior: LaplacePosterior | None) -> Mapping[str, tuple[float, float, int | None]]:
    """Return of each source, as of its family, the expected slope, P(reversed) and the judgments that tell its kind."""
    evidence = None if posterior is None else posterior.design.evidence
    if posterior is None or evidence is None:
        return {}
    out: dict[str, tuple[float, float, int | None]] = {}
    for i, family in enumerate(evidence.families):
        slopes = np.array([setting.slopes[i] for setting in evidence.worth.settings])
        needed = judgments_to_tell(evidence.design, evidence.priors, evidence.worth, i)
        about = float(posterior.weights @ slopes), float(posterior.weights @ (slopes < 0)), needed
        out |= {member.name: about for member in family.members}
    return out


def labels_of(estimate: ScoreEstimate) -> LabelsUsed:
    """The sources of the labels that an estimate uses; where not all pairs are in memory, without their agreement."""
    prediction, shares = estimate.prediction, estimate.labelled_shares
    used = labels_used(
        estimate.problem,
        model=estimate.estimation.model,
        posterior=prediction.posterior,
        relevance=prediction.relevance,
        seed=estimate.estimation.seed,
    )
    if shares is None:
        return used
    unknown: dict[str, Any] = dict.fromkeys(("correlation", "lower", "upper"))
    sources = (replace(s, labelled=share, **unknown) for s, share in zip(used.sources, shares.tolist(), strict=True))
    return replace(used, sources=tuple(sources))
