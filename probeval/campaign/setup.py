"""The settings of a campaign."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from probeval.campaign.parsing import as_words
from probeval.campaign.questions import Kind, Question, kind_of, kinds_asked, known_asks
from probeval.data.judgments import GRADE_RULES
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import CampaignError, did_you_mean
from probeval.results import HIDDEN, key
from probeval.selection.stopping import Stopping
from probeval.selection.topics import check_stay, check_topics

__all__ = ["ABOUT_RULE", "COMPARED", "LEASE", "Setup"]

LEASE = 900.0  # seconds
ANSWERS_AS = ("certain", "consensus")
COMPARED = ("goal", "metric", "rope", "depth")  # the settings that decide what the confidence is of
ABOUT_RULE = ("stopping", *COMPARED)  # those that decide when judging stops


@dataclass(frozen=True, kw_only=True, repr=False)
class Setup(Record):
    """The settings of a campaign.

    Its fields are keys of the status; :meth:`to_dict` has all settings, as the log keeps them.

    Examples
    --------
    >>> setup = Setup(name="mine", metric="nDCG@10", scale=Scale.graded(3), model="text-jud", depth=10, overlap=0.5)
    >>> [setup.wanted(Question("q1", (doc,))) for doc in ("d1", "d2", "d3", "d4")]
    [2, 1, 2, 2]
    >>> Setup.from_dict(setup.to_dict()) == setup
    True
    """

    name: Annotated[str, "The name of the campaign."]
    metric: Annotated[str, "The measure, such as ``nDCG@10``."]
    scale: Annotated[Scale, HIDDEN]  # that assessors judge on
    model: Annotated[str, "The name of the model."]
    depth: Annotated[int, "The depth of the pool."]
    policy: Annotated[str, "The policy that chooses pairs."] = "gain"
    goal: Annotated[str, "What judging is for."] = "ranking"
    stopping: Annotated[str, "The stopping rule, such as ``confidence=.95``."] = "confidence=0.95"
    rope: Annotated[float, "Differences between systems up to this size do not matter."] = 0.0
    explore: Annotated[float | None, "The share of judgments spent on exploration; null for the policy's own."] = None
    topics: Annotated[
        str,
        "How topics (queries) are given to assessors: ``free``, ``in-turn`` (one after another, each to one assessor "
        "at a time) or ``owned`` (to those whom the owner of the campaign assigns).",
    ] = "free"
    stay: Annotated[
        float,
        "The price of switching: an assessor stays in a topic while no other pair is worth more than (1 + ``stay``) "
        "times the best one there.",
    ] = 0.0
    overlap: Annotated[float, HIDDEN] = 0.0  # the share of pairs that several assessors judge
    opinions: Annotated[int, "The number of assessors of a pair that several judge; other pairs get one."] = 2
    lease: Annotated[float, "The length of a lease in seconds."] = LEASE
    rule: Annotated[str, "The rule that combines several grades of a pair."] = "unanimous"  # RULES but the mean
    seed: Annotated[int, "For the choice of overlapping, gold and repeated pairs and all other randomness."] = 0
    grade_words: Annotated[tuple[str, ...], "What each grade means to assessors, lowest first; empty for none."] = ()
    gold_share: Annotated[float, "The share of an assessor's tasks that are pairs whose grade is known."] = 0.0
    repeat_share: Annotated[float, "The share of an assessor's tasks that are pairs that they judged before."] = 0.0
    answers_as: Annotated[
        str,
        "How answers count: ``certain``, or by ``consensus``: with the errors of assessors that gold and repeated "
        "questions and overlap tell of.",
    ] = "certain"
    quiz: Annotated[int, "The number of questions with a known answer that an assessor gets before all others."] = 0
    least_right: Annotated[
        float,
        "The least share of right answers to questions with a known answer: below it, the answers of an assessor are "
        "set aside.",
    ] = 0.0
    ask: Annotated[
        str,
        "What assessors are asked: ``grades`` of single documents; ``preferences``, which of two documents is better; "
        "``magnitudes``, a number for each of two documents; ``mixed``, grades and preferences; ``lists``, which of "
        "two lists is better; or a kind of one's own.",
    ] = "grades"
    follow_up: Annotated[bool, HIDDEN] = False  # after a preference, ask which of the two documents are relevant
    forced: Annotated[bool, HIDDEN] = False  # one of two documents has to be better
    most: Annotated[int | None, HIDDEN] = None  # questions that one user of a study answers; None for all

    @key.named("scale")
    def scale_name(self) -> str:
        """The scale that assessors judge on."""
        return str(self.scale)

    def __post_init__(self) -> None:
        if not self.kinds:
            asks = known_asks()
            raise CampaignError(
                f"Assessors are asked for {', '.join(asks)}; got {self.ask!r}.{did_you_mean(str(self.ask), asks)}"
            )
        if self.most is not None and self.most < 1:
            raise CampaignError(f"The most questions of a user must be 1 or more, got {self.most}.")
        check_topics(self.topics)
        check_stay(self.stay)
        if not 0 <= self.overlap <= 1:
            raise CampaignError(f"The overlap must be a share of pairs, from 0 to 1, got {self.overlap:g}.")
        for name, share in (("gold", self.gold_share), ("repeated", self.repeat_share)):
            if not 0 <= share < 1:
                raise CampaignError(f"The share of {name} pairs must be from 0 to below 1, got {share:g}.")
        if self.gold_share + self.repeat_share >= 1:
            both = self.gold_share + self.repeat_share
            raise CampaignError(f"Gold and repeated pairs together must be fewer than all tasks, got {both:g} of them.")
        if self.answers_as not in ANSWERS_AS:
            raise CampaignError(
                f"Answers count as {' or by '.join(ANSWERS_AS)}; got {self.answers_as!r}."
                f"{did_you_mean(self.answers_as, ANSWERS_AS)}"
            )
        if self.quiz < 0:
            raise CampaignError(f"The questions of a quiz must be 0 or more, got {self.quiz}.")
        if not 0 <= self.least_right <= 1:
            raise CampaignError(f"The least share of right answers must be from 0 to 1, got {self.least_right:g}.")
        if self.opinions < 2:
            raise CampaignError(f"The number of opinions must be 2 or more, got {self.opinions}.")
        if not self.lease > 0:
            raise CampaignError(f"The lease must be a positive number of seconds, got {self.lease:g}.")
        if self.depth < 1:
            raise CampaignError(f"The depth of the pool must be 1 or more, got {self.depth}.")
        if self.grade_words and len(self.grade_words) != len(self.scale):
            n = len(self.scale)
            raise CampaignError(
                f"The scale {self.scale} has {n} grades: give words for {n}, got {len(self.grade_words)}."
            )
        for words in self.grade_words:
            as_words(words)
        if self.rule not in GRADE_RULES:
            raise CampaignError(
                f"Unknown rule {self.rule!r}: expected {', '.join(GRADE_RULES)}.{did_you_mean(self.rule, GRADE_RULES)}"
            )
        if (self.scale.cuts or self.scale.real) and not all(kind.by_everyone for kind in self.kinds):
            raise CampaignError(
                f"Assessors judge on a scale of grades such as graded:{max(len(self.scale) - 1, 2)} or fine, "
                f"got {self.scale}."
            )

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of questions that are asked."""
        return kinds_asked(self.ask)

    @cached_property
    def rule_to_stop(self) -> Stopping:
        """The stopping rule."""
        return Stopping.parse(self.stopping)

    @property
    def mixes_checks(self) -> bool:
        """Whether some tasks check the work of assessors."""
        return self.gold_share > 0 or self.repeat_share > 0 or self.quiz > 0

    @property
    def answers_per_judgment(self) -> float:
        """The answers for each question that is judged: further opinions, and those that check the work, included.

        >>> setup = Setup(name="a", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, overlap=0.2)
        >>> [round(each.answers_per_judgment, 2) for each in (setup, setup.changed(gold_share=0.2, repeat_share=0.2))]
        [1.2, 2.0]
        """
        opinions = 1 + self.overlap * (self.opinions - 1)
        return opinions / (1 - self.gold_share - self.repeat_share)

    def wanted(self, question: Question) -> int:
        """The number of assessors that a question needs."""
        return kind_of(question.kind).wanted(question, self)

    def draw(self, *names: str) -> float:
        """A number from 0 to below 1 that depends on the seed and these names alone: a hash."""
        digest = hashlib.sha256("\t".join([str(self.seed), *names]).encode()).digest()
        return (int.from_bytes(digest[:8], "big") >> 11) / 2**53

    def changed(self, **settings: Any) -> Setup:
        """A copy with other settings; the name and the scale cannot change."""
        fixed = {"name", "scale"} & settings.keys()
        if fixed:
            raise CampaignError(f"The {min(fixed)} of a campaign cannot change. Create another campaign.")
        return replace(self, **settings)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the log: all settings."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Setup:
        """From plain data."""
        scale: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in data["scale"].items()}
        words = tuple(data.get("grade_words", ()))
        return cls(**{**data, "scale": Scale(**scale), "grade_words": words})
