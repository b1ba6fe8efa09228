"""Settings of the tasks, declared once: how scores are computed, which pair is judged next, how the work is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from probeval.data import Scale
from probeval.data.scale import Gain
from probeval.display import Record
from probeval.metrics import AGGREGATES, AnyMetric
from probeval.records import About, parse_number, parse_shares
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Inference
from probeval.relevance.outside import OutsideModel
from probeval.reporting import SILENT, Reporter
from probeval.scores import METHODS
from probeval.scores.scores import FAMILIES, TARGETS
from probeval.selection import EXPLORE_SIDES, GOALS, POLICIES, RULES, Stopping, read_corrections
from probeval.selection.topics import TOPICS

__all__ = [
    "MEASURE",
    "Aggregate",
    "AnswersCost",
    "Checkpoints",
    "Checks",
    "Choosing",
    "ChoosingByErrors",
    "Clusters",
    "Depth",
    "Distribution",
    "Draws",
    "Errors",
    "Estimating",
    "Explore",
    "Family",
    "Gains",
    "GoalName",
    "GradeScale",
    "Grading",
    "InferenceName",
    "Jobs",
    "LabelsFrom",
    "Level",
    "Mapping",
    "MeasureOfRuns",
    "Method",
    "Model",
    "Outside",
    "Policy",
    "QueryTexts",
    "Rope",
    "Samples",
    "Scheduler",
    "Scoring",
    "Seed",
    "Sharing",
    "Stay",
    "Stop",
    "Systems",
    "Target",
    "Topics",
    "Work",
    "WorkOnParts",
]

INFERENCES = ("laplace", "nuts")
SYSTEMS = ("all", "judged")


def _listed(names: Iterable[str]) -> str:
    """Names in a sentence: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _explored() -> str:
    """The default share of exploration, by policy."""
    sides = f"{EXPLORE_SIDES:g}".lstrip("0")
    shares = [
        f"{p.explores:g}".lstrip("0") + f" for {name} ({sides}, from both sides, to compare two)"
        for name, p in POLICIES.items()
        if p.explores
    ]
    return f"{', '.join(shares)} and 0 for others" if shares else "0"


MEASURE = About("A measure such as nDCG@10.", metavar="METRIC", kind=str)
MeasureOfRuns = Annotated[AnyMetric | None, About("A measure such as nDCG@10, for runs.", metavar="METRIC", kind=str)]
Depth = Annotated[int | None, About("The number of ranks; default: the metric's cutoff, or the whole run.", least=1)]
Level = Annotated[float, About("The probability level of intervals.", least=0.01, most=0.9999)]
Draws = Annotated[int, About("The number of joint draws, if the method uses draws.", least=2)]
Model = Annotated[
    str | Card | Predicts | None,
    About(
        "none, uniform, empirical, independent, labels[:COLUMN], calibrated[:COLUMN], a built-in model, one of your "
        "own or a card's path; default: the best applicable.",
        metavar="NAME",
        kind=str,
    ),
]
Rope = Annotated[
    float | str,
    About(
        "Differences up to this size count as ties: a number, or the difference that a share of users notice.",
        metavar="D|users=SHARE",
        kind=str,
        parse=parse_number,
    ),
]
Mapping = Annotated[
    str | None,
    About(
        "A mapping to user satisfaction: DCGl@5/broad, or a file of your users; default: that of the measure.",
        metavar="NAME|FILE",
    ),
]
Method = Annotated[
    str | None,
    About("The computation of scores; default: moments for linear measures, draws for others.", choices=tuple(METHODS)),
]
Family = Annotated[
    str | None,
    About(
        "The family of distributions; default: empirical for draws on these queries, otherwise normal.",
        choices=FAMILIES,
    ),
]
Stop = Annotated[
    Stopping | str,
    About(f"{' '.join(f'{name}=' for name in RULES)}; comma means or, plus means and.", metavar="RULES", kind=str),
]
Jobs = Annotated[int, About("The number of processes.", least=1, default=2)]
Systems = Annotated[
    str,
    About("judged: only systems with more than .99 of their retrieved documents judged.", choices=SYSTEMS),
]
Policy = Annotated[str, About(f"The selection policy: {', '.join(POLICIES)}.", metavar="NAME")]
GradeScale = Annotated[
    Scale | str | None,
    About(
        "binary, binary:G (relevant from G on), graded:M (grades 0..M), fine (0..100), fine:N (cut into N levels) "
        "or real (any numbers from 0); inferred by default.",
        metavar="SCALE",
        kind=str,
    ),
]
Gains = Annotated[
    Gain | None,
    About(
        "The gains of grades: linear (the grade), exp (2^grade - 1), or one per grade, as in 0,.25,.5,1.",
        metavar="linear|exp|G,G,..",
        option="--gains",
        kind=str,
    ),
]
Seed = Annotated[int, About("The random seed; the same seed gives the same output.")]
InferenceName = Annotated[
    Inference,
    About(
        "The inference of the hierarchical model: laplace (seconds) or nuts (sampling, minutes).",
        choices=INFERENCES,
    ),
]
Outside = Annotated[
    bool | OutsideModel | None,
    About(
        "Estimate also the relevant documents outside the pool; default: for AP, recall and their like, while pairs "
        "are open.",
        option="--outside/--no-outside",
        kind=bool,
    ),
]
Target = Annotated[str, About("Scores on these queries, or on their population.", choices=TARGETS)]
Aggregate = Annotated[str, About("The mean over queries: arithmetic or geometric.", choices=tuple(AGGREGATES))]
GoalName = Annotated[str, About(f"The goal of judging: {_listed(GOALS)}.", metavar="GOAL")]
AnswersCost = Annotated[
    Any,
    About(
        "What an answer costs: of people, and of machines by their columns of labels. Pairs then go to whoever is "
        "expected to tell more for the price.",
        metavar="person=1,NAME=.01",
        kind=str,
    ),
]
Errors = Annotated[
    Any,
    About("Corrections for --stop error=, written by simulate --learn-errors.", metavar="FILE", kind=Path),
]
Explore = Annotated[float | None, About(f"The share of random judgments; default: {_explored()}.")]
Topics = Annotated[
    str,
    About(
        "How topics are given to assessors: free (all to all), in-turn (each to one assessor at a time) or owned.",
        choices=TOPICS,
    ),
]
Stay = Annotated[float, About("The price of switching to another topic, in judgments; 0 for none.", least=0)]
LabelsFrom = Annotated[
    Any, About("Labels with a column of grades, to fit the model of labels.", metavar="FILE", kind=Path, many=True)
]
Checkpoints = Annotated[
    Sequence[float],
    About("Shares of the pool to judge, in ascending order.", metavar="F,F,..", kind=str, parse=parse_shares),
]
QueryTexts = Annotated[
    Any, About("Query texts: topics of TREC, a table of query and text, or irds:ID.", metavar="FILE", kind=Path)
]
Clusters = Annotated[
    Any,
    About(
        "A table of queries and clusters, such as users or templates: queries of one cluster are not independent.",
        metavar="FILE",
        kind=Path,
    ),
]
Samples = Annotated[int, About("The number of resamples of bootstrap and permutation tests.", least=1)]
Scheduler = Annotated[str | None, About("A Dask scheduler that distributes the work.", metavar="ADDRESS")]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Grading(Record):
    """The grades, and what they are worth."""

    scale: GradeScale = None
    gain: Gains = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scoring(Grading):
    """The model of relevance, and the grades."""

    model: Model = None
    seed: Seed = 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimating(Scoring):
    """How the joint distribution of scores is computed."""

    inference: InferenceName = "laplace"
    depth: Depth = None
    rope: Rope = 0.0
    mapping: Mapping = None
    outside: Outside = None
    draws: Draws = 1000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Distribution(Estimating):
    """Which distribution of scores is computed."""

    target: Target = "collection"
    method: Method = None
    family: Family = None
    aggregate: Aggregate = "mean"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Choosing(Record):
    """Which pair is judged next, and when judging stops."""

    goal: GoalName = "ranking"
    stop: Stop = "confidence=.95"
    explore: Explore = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChoosingByErrors(Choosing):
    """Stopping rules that may rest on the errors of past campaigns."""

    errors: Errors = None
    prices: AnswersCost = None

    @property
    def stopping(self) -> Stopping:
        """The stopping rules, with the corrections of ``errors``."""
        rules = Stopping.parse(self.stop)
        return rules if self.errors is None else rules.with_corrections(read_corrections(self.errors))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sharing(Record):
    """How the topics are shared among assessors."""

    topics: Topics = "free"
    stay: Stay = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Checks(Record):
    """How the work of assessors is checked."""

    overlap: Annotated[float, About("The share of pairs that several assessors judge.", least=0, most=1)] = 0.0
    opinions: Annotated[int, About("The number of assessors for these pairs.", least=2)] = 2
    gold_share: Annotated[float, About("The share of tasks with a known grade.", least=0, most=1)] = 0.0
    repeat_share: Annotated[float, About("The share of tasks that come a second time.", least=0, most=1)] = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Work(Record):
    """Who hears of the work."""

    reporter: Annotated[Reporter, About("Receives progress, remarks and estimates of time.", option="")] = SILENT


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WorkOnParts(Work):
    """Where the work is done: here, in several processes, or by a scheduler."""

    jobs: Annotated[
        int | None,
        About("The number of processes; default: one, or one per core for a campaign in partitions.", least=1),
    ] = None
    scheduler: Scheduler = None
