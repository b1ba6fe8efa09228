"""Reliability: variance components of scores, and the reliability of collections of other sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.api.classical import judged_scores, required_judgments
from probeval.api.evidence import Evidence, ScoresOrRuns, as_scale, select_model
from probeval.api.settings import Clusters, Depth, Level, MeasureOfRuns, Scoring, Work
from probeval.data import Collection, with_reference
from probeval.data.files import suffix
from probeval.data.tables import as_frame
from probeval.errors import ModelError, ProbevalWarning, ReliabilityError
from probeval.metrics import Metric
from probeval.records import About, parse_counts, task
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.reliability import Design, DStudy, GStudy, Observed

__all__ = ["DStudyInputs", "GStudyInputs", "StudyInputs", "StudyScores", "dstudy", "gstudy", "is_score_table"]

# Of probeval.reliability.METHODS and INTERVALS, slow to import.
METHODS = ("anova", "reml", "bayes")
INTERVALS = ("analytic", "bootstrap", "draws", "posterior", "none")


@dataclass(frozen=True, eq=False)
class StudyScores:
    """Scores for a study of reliability.

    Parameters
    ----------
    scores
        Over the facets of the design.
    pool
        The number of retrieved pairs per query; None for a table of scores.
    """

    scores: Observed
    pool: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class StudyInputs(Work, Scoring, Evidence):
    """A table of scores, or runs with judgments and a measure, for a study of reliability."""

    runs: ScoresOrRuns
    metric: MeasureOfRuns = None
    _: KW_ONLY
    model: Annotated[
        str | Card | Predicts | None,
        About(
            "The model for unjudged documents: none (not relevant), a name or the path of a card.",
            metavar="NAME",
            kind=str,
        ),
    ] = "none"
    design: Annotated[str, About("s x q, s x (h:q), s x q x h, or columns: stemmer x model x q.", metavar="DESIGN")] = (
        "s x q"
    )
    components: Annotated[
        str | None,
        About("The pattern that splits system names, such as stop_stemmer_model.", metavar="PATTERN"),
    ] = None
    method: Annotated[str, About("Analysis of variance, restricted maximum likelihood, or PyMC.", choices=METHODS)] = (
        "anova"
    )
    interval: Annotated[
        str | None, About("The source of intervals; default: the best applicable.", choices=INTERVALS)
    ] = None
    clusters: Clusters = None
    drop: Annotated[float, About("The share of systems to leave out, the worst first.", least=0, most=0.99)] = 0.0
    draws: Annotated[int, About("The number of joint draws of scores, or of bootstrap samples.", least=2)] = 1000
    depth: Depth = None
    level: Level = 0.95

    def scores(self) -> StudyScores:
        """The scores: from a table, by the judgments alone, or as joint draws by a model."""
        from probeval.reliability import Design, Observed, observe, read_scores

        facets = Design.parse(self.design)
        frame = as_frame(self.runs)
        if self.metric is not None:
            given = self._of_runs(as_metric(self.metric), facets)
        elif frame is not None:
            given = StudyScores(observe(frame) if self.design == "s x q" else Observed.long(frame, facets))
        elif is_score_table(self.runs):
            source = self.runs[0] if isinstance(self.runs, (list, tuple)) else self.runs
            given = StudyScores(read_scores(source, facets))
        else:
            raise ReliabilityError("Runs need a measure, such as nDCG@10; a single table (.csv) is read as scores.")
        scores, pool = given.scores.clustered(self.clusters), given.pool
        if pool is not None and self.clusters is not None:  # what a cluster takes
            pool *= given.scores.sizes["query"] / scores.sizes["query"]
        return StudyScores(scores if self.components is None else scores.split_systems(self.components), pool)

    def _of_runs(self, metric: Metric, facets: Design) -> StudyScores:
        if self.model == "none":
            self.refuse("judgments")
        collection = self.collection(self.runs, scale=as_scale(self.scale), reporter=self.reporter)
        collection = with_reference(collection, self.reference)
        return (
            _judged(collection, metric, facets, self)
            if self.model == "none"
            else _modelled(collection, metric, facets, self)
        )

    def study(self, scores: StudyScores) -> GStudy:
        """The variance components of scores."""
        from probeval.reliability import gstudy as decompose

        found = decompose(
            scores.scores, method=self.method, interval=self.interval, drop=self.drop, n=self.draws,
            rng=stream(self.seed), level=self.level,
        )  # fmt: skip
        return found if self.metric is None else replace(found, metric=str(as_metric(self.metric)))


@dataclass(frozen=True, eq=False, repr=False)
class GStudyInputs(StudyInputs):
    """Find the variance components of scores, and the reliability of mean scores (E rho^2 and Phi).

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=20, depth=5)
    >>> sorted(probeval.gstudy(campaign, "nDCG@5").components)
    ['query', 'residual', 'system']
    """

    _: KW_ONLY
    target: Annotated[float, About("The target reliability, for the number of queries.", least=0.01, most=0.9999)] = (
        0.95
    )

    def run(self) -> GStudy:
        """The study."""
        return replace(self.study(self.scores()), target=self.target)


@dataclass(frozen=True, eq=False, repr=False)
class DStudyInputs(StudyInputs):
    """Predict the reliability of other numbers of queries and assessors, and the queries that targets take.

    The source may be a G-study, without the rest. See :func:`probeval.reliability.dstudy`.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=20, depth=5)
    >>> probeval.dstudy(campaign, "nDCG@5", queries=[20, 40]).to_frame()["query"].tolist()
    [20, 40]
    """

    _: KW_ONLY
    queries: Annotated[
        Sequence[int] | None,
        About("Numbers of queries to consider.", metavar="N,N,..", kind=str, parse=parse_counts),
    ] = None
    assessors: Annotated[
        Sequence[int] | None,
        About("Numbers of assessors to consider.", metavar="N,N,..", kind=str, parse=parse_counts),
    ] = None
    targets: Annotated[
        Sequence[tuple[str, float]], About('Figures and their targets, such as ``("tau", 0.9)``.', option="")
    ] = (("erho2", 0.95), ("phi", 0.95))

    def run(self) -> DStudy:
        """The study."""
        from probeval.reliability import GStudy
        from probeval.reliability import dstudy as project
        from probeval.reliability.dstudy import QUERIES

        scores = None if isinstance(self.runs, GStudy) else self.scores()
        return project(
            self.runs if scores is None else self.study(scores),
            queries=QUERIES if self.queries is None else self.queries,
            assessors=self.assessors,
            targets=self.targets,
            pool=None if scores is None else scores.pool,
            level=self.level,
        )


def is_score_table(source: Any) -> bool:
    """Whether a source is one file with a table of scores, by its name, rather than runs."""
    if isinstance(source, (list, tuple)):
        return len(source) == 1 and is_score_table(source[0])
    return isinstance(source, (str, PathLike)) and bool(suffix(Path(source)))


def _judged(collection: Collection, metric: Metric, design: Design, given: StudyInputs) -> StudyScores:
    """Scores by the judgments alone; each assessor's own where the design has assessors."""
    from probeval.reliability import observe, observe_assessors

    depth = given.depth
    found = judged_scores(collection, metric, scale=as_scale(given.scale), gain=given.gain, depth=depth)
    if found.judged_pairs < found.pool:
        warnings.warn(
            f"{metric}: {found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged: they count as 0. "
            "A relevance model would estimate them.",
            ProbevalWarning,
            stacklevel=4,
        )
    pool = found.pool / len(found.queries)
    if "assessor" not in design.conditions:
        return StudyScores(observe(found), pool)
    runs = collection.runs if depth is None else collection.runs.top(depth)
    return StudyScores(observe_assessors(runs, required_judgments(collection), metric, design, scale=found.scale), pool)


def _modelled(collection: Collection, metric: Metric, design: Design, given: StudyInputs) -> StudyScores:
    """Joint draws of the scores, with a model for unjudged documents."""
    from probeval.reliability import observe

    if "assessor" in design.conditions:
        raise ModelError("A model predicts relevance, not assessors: use the design 's x q', or no model.")
    choice = select_model(collection, given.model, scale=given.scale, gain=given.gain, reporter=given.reporter)
    (scores,) = score_collection(
        choice.model, collection, [metric], depth=given.depth, scale=choice.scale, seed=given.seed, method="draws",
        per_query=True, n=given.draws,
    )  # fmt: skip
    given.reporter.say(f"{metric}: {scores.judged:,} of {scores.pool:,} pairs judged, {given.draws:,} joint draws.")
    return StudyScores(observe(scores), scores.pool / len(scores.queries))


gstudy = task(GStudyInputs, "gstudy")
dstudy = task(DStudyInputs, "dstudy")
