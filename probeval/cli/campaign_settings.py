"""The settings of a campaign that may change under way: options of ``campaign create`` and of ``campaign change``."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Annotated, Any

from probeval.api.settings import Checks, Choosing, Depth, Mapping, Policy, Rope, Sharing
from probeval.api.users import as_goal_metric, as_rope
from probeval.cli.assessor_texts import grade_words_of
from probeval.cli.options import Metric
from probeval.data import Scale
from probeval.records import About
from probeval.reporting import Reporter

__all__ = ["CampaignSettings", "setup_of"]

GradeWords = Annotated[
    str | None,
    About("What each grade means, lowest first, separated by commas; or a file, one line per grade.", metavar="WORDS"),
]
Ask = Annotated[
    str,
    About(
        "What assessors are asked: grades of documents, preferences between two, magnitudes of two, or mixed; or a "
        "kind of your own.",
        metavar="KIND",
    ),
]
FollowUp = Annotated[
    bool,
    About(
        "Ask on the judging page, after a preference, which of the two documents are relevant.",
        option="--follow-up/--no-follow-up",
    ),
]
Forced = Annotated[bool, About("One of two documents has to be better: no equal.", option="--forced/--no-forced")]
Rule = Annotated[
    str,
    About("The grade of a pair that has several: unanimous, median, majority, min, max, latest.", metavar="RULE"),
]
Lease = Annotated[float, About("Minutes that an assessor may hold a pair.", least=0.1)]


AnswersAs = Annotated[
    str,
    About(
        "How answers count: certain, or by consensus, with the errors of assessors that checks tell of.", metavar="HOW"
    ),
]
Quiz = Annotated[
    int, About("The number of questions with a known answer that an assessor gets before all others.", least=0)
]
LeastRight = Annotated[
    float,
    About(
        "Set the answers of an assessor aside if fewer of those to questions with a known answer are right.",
        least=0,
        most=1,
    ),
]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CampaignSettings(Checks, Sharing, Choosing):
    """How a campaign is judged and scored."""

    metric: Metric
    depth: Depth = None
    policy: Policy = "gain"
    rope: Rope = 0.0
    mapping: Mapping = None
    ask: Ask = "grades"
    follow_up: FollowUp = False
    forced: Forced = False
    answers_as: AnswersAs = "certain"
    quiz: Quiz = 0
    least_right: LeastRight = 0.0
    rule: Rule = "unanimous"
    lease: Lease = 15.0
    grade_words: GradeWords = None


def setup_of(given: Dict[str, Any], *, metric: str, goal: str, scale: Scale, reporter: Reporter) -> dict[str, Any]:
    """Return settings by their names and in their units in a :class:`probeval.campaign.Setup`; None is left out.

    Parameters
    ----------
    given
        Fields of :class:`CampaignSettings`, by name.
    metric, goal, scale
        Those of the campaign, where they are not given.
    reporter
        Receives remarks.
    """
    setup = {name: value for name, value in given.items() if value is not None}
    mapping = setup.pop("mapping", None)
    measure = as_goal_metric(
        setup.get("metric", metric), setup.get("goal", goal), mapping=mapping, rope=setup.get("rope", 0.0)
    )
    if "metric" in setup or mapping is not None:
        setup["metric"] = str(measure)
    if "stop" in setup:
        setup["stopping"] = setup.pop("stop")
    if "rope" in setup:
        setup["rope"] = as_rope(setup["rope"], measure, scale, mapping=mapping, reporter=reporter)
    if "lease" in setup:
        setup["lease"] *= 60  # minutes to seconds
    if "grade_words" in setup:
        setup["grade_words"] = grade_words_of(setup["grade_words"])
    return setup
