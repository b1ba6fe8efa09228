"""The settings of a campaign."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from probeval.campaign.parsing import as_words
from probeval.data.judgments import GRADE_RULES
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import CampaignError, did_you_mean
from probeval.selection.pairs import ASK
from probeval.selection.topics import check_stay, check_topics

__all__ = ["ASKS", "LEASE", "Setup"]

ASKS = tuple(ASK)
LEASE = 900.0  # seconds


@dataclass(frozen=True, kw_only=True, repr=False)
class Setup(Record):
    """The settings of a campaign.

    Parameters
    ----------
    name
        The name of the campaign.
    metric, model, policy, goal, stopping
        Their names, such as ``"nDCG@10"`` or ``"confidence=.95"``.
    rope
        Differences between systems up to this size do not matter.
    scale
        The scale that assessors judge on.
    depth
        The depth of the pool.
    ask
        What assessors are asked: ``"grades"`` of single documents; ``"preferences"``, which of two documents is better;
        ``"magnitudes"``, a number for each of two documents; or ``"mixed"``, grades and preferences.
    follow_up
        Whether the judging page asks, after a preference, which of the two documents are relevant.
    explore
        The share of judgments spent on exploration; None for the policy's own.
    topics, stay
        How topics (queries) are given to assessors: ``"free"``, ``"in-turn"`` (one after another, each to one assessor
        at a time) or ``"owned"`` (to those whom the owner of the campaign assigns); and the price of switching: an
        assessor stays in a topic while no other pair is worth more than (1 + ``stay``) times the best one there.
    overlap, opinions
        The share of pairs that several assessors judge, and the number of these assessors. Other pairs get one.
    gold_share, repeat_share
        The shares of an assessor's tasks that check their work: pairs whose grade is known, and pairs that they judged
        before.
    lease
        The length of a lease in seconds.
    grade_words
        What each grade means to assessors, lowest first; empty for none.
    rule
        The rule that combines several grades of a pair: one of :data:`probeval.data.judgments.RULES` but the mean.
    seed
        For the choice of overlapping, gold and repeated pairs and all other randomness.

    Examples
    --------
    >>> setup = Setup(name="mine", metric="nDCG@10", scale=Scale.graded(3), model="text-jud", depth=10, overlap=0.5)
    >>> [setup.wanted("q1", doc) for doc in ("d1", "d2", "d3", "d4")]
    [2, 1, 2, 2]
    >>> Setup.from_dict(setup.to_dict()) == setup
    True
    """

    name: str
    metric: str
    scale: Scale
    model: str
    depth: int
    policy: str = "gain"
    goal: str = "ranking"
    stopping: str = "confidence=0.95"
    rope: float = 0.0
    explore: float | None = None
    topics: str = "free"
    stay: float = 0.0
    overlap: float = 0.0
    opinions: int = 2
    lease: float = LEASE
    rule: str = "unanimous"
    seed: int = 0
    grade_words: tuple[str, ...] = ()
    gold_share: float = 0.0
    repeat_share: float = 0.0
    ask: str = "grades"
    follow_up: bool = False

    def __post_init__(self) -> None:
        if self.ask not in ASKS:
            raise CampaignError(
                f"Assessors are asked for {', '.join(ASKS)}; got {self.ask!r}.{did_you_mean(str(self.ask), ASKS)}"
            )
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
        if self.scale.cuts or self.scale.real:
            raise CampaignError(
                f"Assessors judge on a scale of grades such as graded:{max(len(self.scale) - 1, 2)} or fine, "
                f"got {self.scale}."
            )

    def wanted(self, *question: str) -> int:
        """The number of assessors that a question needs: a query with one document, or with two.

        It comes from a hash of the seed and the question, so it does not depend on the order of judging or on others.
        """
        return self.opinions if self.draw(*question) < self.overlap else 1

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
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Setup:
        """From plain data."""
        scale: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in data["scale"].items()}
        words = tuple(data.get("grade_words", ()))
        return cls(**{**data, "scale": Scale(**scale), "grade_words": words})
