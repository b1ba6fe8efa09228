"""The results of a study with users: their mapping, what they notice, and how they answered traps.

See docs/theory/satisfaction.md#study-with-users.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ints
from probeval.data.tables import cell_text
from probeval.display import Record, Table
from probeval.errors import ProbevalWarning, SatisfactionError
from probeval.metrics.mapping import MIDPOINTS, SHAPES, TENTHS, SatMapping, tenths
from probeval.metrics.users_file import AgreementCounts, MappingCurve, UsersFile, write_users_file
from probeval.preferences.quality import ShareInterval, wilson_interval
from probeval.results import Result, frame, key, rows
from probeval.satisfaction.answers import ListAnswers
from probeval.satisfaction.preferences import Agreement

__all__ = ["ListUser", "StudyTenth", "UserStudy"]

MIN_TRAPS = 3  # from which on a user can be named for wrong answers
HALF = 0.5
FEWEST_ANSWERS = 20  # from which on sentences tell something of users


@dataclass(frozen=True, repr=False)
class ListUser(Record):
    """A user of the study, and how they answered."""

    user: Annotated[str, "Their name."]
    answers: Annotated[int, "The number of answers, without traps."]
    left: Annotated[float, "The share of their preferences for the list on the left; null without any."]
    traps: Annotated[int, "The number of traps answered."]
    right: Annotated[int, "The number answered right."]
    seconds: Annotated[float, "The median time per answer; null if it was not measured."]
    is_bad: Annotated[bool, "Whether too few traps were answered right."]


@dataclass(frozen=True)
class StudyTenth:
    """One tenth of the difference between two lists, and of the score of one list."""

    lower: Annotated[float, "The lower end of the tenth."]
    upper: Annotated[float, "The upper end."]
    n: Annotated[int, "The number of answers with a difference in this tenth."]
    better: Annotated[float, "The share of users who prefer the better list."]
    neither: Annotated[float, "The share of users who prefer neither."]
    worse: Annotated[float, "The share of users who prefer the worse one."]
    lists: Annotated[int, "The number of lists with a score in this tenth, in answers without preference."]
    satisfied: Annotated[float, "The share of these lists that are good."]
    mapped: Annotated[float, "The mapping at the middle of the tenth; null without one."]


@dataclass(frozen=True, eq=False, repr=False)
class UserStudy(Result):
    """The results of a study with users, from their answers about pairs of lists.

    Answers to traps only serve to check users.

    Parameters
    ----------
    answers
        The answers of all users.
    least_right
        The share of traps that a user must answer right; those with less, of three traps or more, are named.
    leave_out
        Leave out the answers of these users.
    level
        The level of intervals, which are Wilson's: their ends are between 0 and 1.

    Examples
    --------
    >>> from probeval.satisfaction import Preferences
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.random((2, 2000))
    >>> sees = rng.random(2000) < np.abs(a - b)
    >>> fine = np.where(rng.random(2000) < (a + b) / 2, "good", "bad")
    >>> stated = Preferences(a, b, np.where(sees, np.where(a > b, "a", "b"), fine))
    >>> study = UserStudy(ListAnswers.of(stated))
    >>> study
    <UserStudy: 2,000 answers, 663 preferences>
    >>> study.noticeable
    0.5
    """

    answers: ListAnswers
    mapping_shape: Annotated[str, "The shape of the mapping, one of ``SHAPES``."] = "cubic"
    least_right: float = 0.7
    leave_out: bool = False
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.mapping_shape not in SHAPES:
            raise SatisfactionError(f"No shape {self.mapping_shape!r}: {', '.join(SHAPES)}.")
        if not 0 <= self.least_right <= 1:
            raise SatisfactionError(f"The share of traps answered right is from 0 to 1, got {self.least_right:g}.")
        if not len(self.counted):
            raise SatisfactionError("No answers are left: all are to traps, or of users who are left out.")

    @key
    def users(self) -> tuple[ListUser, ...]:
        """One entry per user, by name."""
        return tuple(sorted((self._user(name, own) for name, own in self.answers.by_user()), key=lambda u: u.user))

    def _user(self, name: str, own: ListAnswers) -> ListUser:
        asked = own.take(~own.is_trap).preferences
        traps, right = int(own.is_trap.sum()), int(own.is_right.sum())
        sided = asked.answer[~asked.undecided]
        timed = own.seconds[~np.isnan(own.seconds)]
        return ListUser(
            user=name,
            answers=len(asked),
            left=float(np.mean(sided == "a")) if len(sided) else math.nan,
            traps=traps,
            right=right,
            seconds=float(np.median(timed)) if len(timed) else math.nan,
            is_bad=traps >= MIN_TRAPS and right < self.least_right * traps,
        )

    @property
    def bad_users(self) -> tuple[str, ...]:
        """The names of users who answered too few traps right."""
        return tuple(user.user for user in self.users if user.is_bad)

    @cached_property
    def counted(self) -> ListAnswers:
        """The answers that count: those to no trap, and of no user who is left out."""
        kept = ~self.answers.is_trap
        if self.leave_out:
            kept &= ~np.isin(self.answers.user, self.bad_users)
        return self.answers.take(kept)

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        users = len(set(self.counted.user) - {""})
        return f"{len(self.counted):,} answers" + (f" of {users:,} users" if users else "")

    @cached_property
    def mapping(self) -> SatMapping | None:
        """The mapping from scores to satisfied users; None if too few tenths of the score have answers."""
        stated = self.counted.preferences
        seen = np.unique(tenths(np.concatenate([stated.a[stated.undecided], stated.b[stated.undecided]])))
        if len(seen) < 4:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)  # a cubic beyond [0, 1] has its sentence
            found = stated.mapping(shape=self.mapping_shape)
        return SatMapping(found.coefficients, found.name, found.residual, self.origin)

    @cached_property
    def agreement(self) -> Agreement:
        """The shares of users who prefer the better list, by tenths of the difference."""
        found = self.counted.preferences.agreement()
        return Agreement(found.better, found.neither, found.worse, found.name, self.origin)

    @key
    def noticeable(self) -> float | None:
        """The smallest difference that half of the users notice; null if they notice none."""
        try:
            return self.agreement.noticeable(HALF)
        except SatisfactionError:
            return None

    @key
    def side(self) -> ShareInterval | None:
        """The share of preferences for the list on the left, with Wilson's interval; null without preferences."""
        stated = self.counted.preferences
        return self._share(stated.answer[~stated.undecided] == "a")

    @key
    def chosen_good(self) -> ShareInterval | None:
        """The share of preferred lists that are good, with its interval; null if users were not asked."""
        asked = self.counted.chosen_good
        return self._share(asked[~np.isnan(asked)] == 1)

    @key
    def lowest(self) -> ShareInterval | None:
        """The share of good lists in the lowest tenth of the score, in answers without preference; null without any.

        An answer about two lists in the tenth counts twice, as for the mapping; intervals are therefore too narrow.
        """
        return self._good(0)

    @key
    def highest(self) -> ShareInterval | None:
        """The share of good lists in the highest tenth of the score, likewise."""
        return self._good(TENTHS - 1)

    def _good(self, tenth: int) -> ShareInterval | None:
        at, satisfied = self._rated
        return self._share(satisfied[at == tenth])

    @key
    def endpoint_bias(self) -> float | None:
        r"""The distance of satisfaction from 0 in the lowest tenth of the score and from 1 in the highest.

        .. math:: \sqrt{\tfrac12 \big(P(Sat \mid 0)^2 + (1 - P(Sat \mid 1))^2\big)}

        See Urbano (2013), Eq 3.11; None if no list is in one of the two tenths.
        """
        low, high = self.lowest, self.highest
        return None if low is None or high is None else math.sqrt((low.share**2 + (1 - high.share) ** 2) / 2)

    @cached_property
    def _rated(self) -> tuple[Ints, Floats]:
        """The tenth of the score of each list in answers without preference, and whether it is good."""
        stated = self.counted.preferences
        good = stated.answer[stated.undecided] == "good"
        scores = np.concatenate([stated.a[stated.undecided], stated.b[stated.undecided]])
        return tenths(scores), np.concatenate([good, good]).astype(float)

    def _share(self, found: Floats | Bools) -> ShareInterval | None:
        return wilson_interval(int(np.sum(found)), len(found), level=self.level) if len(found) else None

    @key
    def measure(self) -> str:
        """The measure and the scale."""
        return self.counted.preferences.name

    @key.named("answers")
    def n_answers(self) -> int:
        """The number of answers without traps."""
        return len(self.counted)

    @key
    def preferences(self) -> int:
        """The number of preferences among them."""
        return int((~self.counted.preferences.undecided).sum())

    @key
    def good(self) -> int:
        """The number of answers that both lists are good."""
        return self.counted.preferences.good

    @key
    def bad(self) -> int:
        """The number of answers that both lists are bad."""
        return self.n_answers - self.preferences - self.good

    @key
    def coefficients(self) -> tuple[float, ...] | None:
        """The mapping from a score to satisfied users; null without enough scores."""
        return None if self.mapping is None else tuple(self.mapping.coefficients)

    @key
    def residual(self) -> float | None:
        """The residual of the mapping."""
        return None if self.mapping is None else self.mapping.residual

    @key
    def distance_from_ideal(self) -> float:
        """How far users are from always preferring the better list."""
        return self.agreement.distance_from_ideal

    @key
    def disagreement(self) -> float:
        """How far users are from never preferring the worse list."""
        return self.agreement.disagreement

    @key
    def identical(self) -> int:
        """The number of answers about one list shown twice, traps aside."""
        return int(self.counted.is_identical.sum())

    @key
    def identical_preferred(self) -> int:
        """The number of preferences among these."""
        return int((self.counted.is_identical & ~self.counted.preferences.undecided).sum())

    @key
    def left_out(self) -> tuple[str, ...]:
        """The users whose answers do not count."""
        return self.bad_users if self.leave_out else ()

    @key
    def tenths(self) -> tuple[StudyTenth, ...]:
        """One entry per tenth of the difference, and of the score."""
        at, satisfied = self._rated
        lists = np.bincount(at, minlength=TENTHS)
        table = self.agreement.to_frame().rename(columns={"from": "lower", "to": "upper"})
        return rows(
            StudyTenth,
            **{str(name): table[name].to_numpy() for name in table.columns},
            lists=lists,
            satisfied=np.bincount(at, satisfied, minlength=TENTHS) / np.where(lists > 0, lists, np.nan),
            mapped=np.full(TENTHS, np.nan) if self.mapping is None else self.mapping(MIDPOINTS),
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per tenth: from, to, n, better, neither, worse by difference; lists, satisfied, mapped by score."""
        return frame(self.tenths, StudyTenth).rename(columns={"lower": "from", "upper": "to"})

    def users_frame(self) -> pd.DataFrame:
        """One row per user: user, answers, left, traps, right, seconds, is_bad."""
        return frame(self.users, ListUser)

    def _headline(self) -> str:
        return f"{self.n_answers:,} answers, {self.preferences:,} preferences"

    def tables(self) -> tuple[Table, ...]:
        """One row per tenth, and one per user where users have names."""
        title = f"{self.measure}: what users prefer by the difference, and like by the score"
        tables = [Table(self.to_frame(), title, {"from": 1, "to": 1})]
        if any(user.user for user in self.users):
            tables.append(Table(self.users_frame(), "Users", {"left": 2, "seconds": 1}))
        return tuple(tables)

    def sentences(self) -> tuple[str, ...]:
        """The figures in words."""
        mapping, noticed = self.mapping, self.noticeable
        found = [f"{self._headline()}, {self.good:,} both good, {self.bad:,} both bad."]
        if self.n_answers < FEWEST_ANSWERS:
            found.append(f"Too few answers to tell anything of users: it takes {FEWEST_ANSWERS}.")
            return (*found, *self._traps_in_words())
        if self.chosen_good is not None:
            found.append(f"Of the preferred lists {_in_words(self.chosen_good)} are good.")
        if noticed is None:
            found.append("Half of the users notice no difference, however large.")
        else:
            found.append(f"Half of the users notice a difference of {noticed:g}.")
        found.append(f"Distance from ideal {self.distance_from_ideal:.3f}, disagreement {self.disagreement:.3f}.")
        if mapping is None:
            found.append("No mapping: answers without preference cover fewer than 4 tenths of the score.")
        else:
            found.append(_mapping_in_words(mapping, self.mapping_shape))
        low, high = self.lowest, self.highest
        if low is not None and high is not None:
            ends = (
                f"{_in_words(low)} are good; in the highest {_in_words(high)}. Endpoint bias {self.endpoint_bias:.3f}"
            )
            found.append(f"Of lists in the lowest tenth of the score {ends}.")
        if self.side is not None:
            found.append(_side_in_words(self.side))
        if self.identical:
            found.append(
                f"{self.identical:,} answers are about one list shown twice; {self.identical_preferred:,} of them "
                "state a preference."
            )
        return (*found, *self._traps_in_words())

    def _traps_in_words(self) -> list[str]:
        traps, right = int(self.answers.is_trap.sum()), int(self.answers.is_right.sum())
        found = [f"{right:,} of {traps:,} traps were answered right."] if traps else []
        if self.bad_users:
            names = ", ".join(cell_text(name) or "(no name)" for name in self.bad_users)
            done = (
                "Their answers are left out."
                if self.leave_out
                else "Their answers count; leave them out with leave_out (--leave-out)."
            )
            found.append(f"Fewer than {self.least_right:.0%} of the traps right: {names}. {done}")
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mapping and the agreement as a file that :func:`load_mapping` and :func:`load_agreement` read."""
        mapping, agreement = self.mapping, self.agreement
        curve = None if mapping is None else MappingCurve(mapping.coefficients, mapping.residual)
        parts = (agreement.better, agreement.neither, agreement.worse)
        counts = AgreementCounts(*(tuple(part.tolist()) for part in parts))
        write_users_file(Path(path), UsersFile(self.measure, self.origin, curve, counts))


def _in_words(found: ShareInterval) -> str:
    return f"{found.share:.3f} [{found.lower:.3f}, {found.upper:.3f}]"


def _side_in_words(side: ShareInterval) -> str:
    share = f"The list on the left is preferred in {_in_words(side)} of {side.n:,} preferences"
    return f"{share}: {'no side bias shows' if side.lower <= HALF <= side.upper else 'a side bias'}."


def _mapping_in_words(mapping: SatMapping, shape: str) -> str:
    low, high = mapping.range
    falls = "" if mapping.is_monotone else " It falls somewhere."
    leaves = "" if low >= 0 and high <= 1 else f" It goes from {low:.3f} to {high:.3f}."
    advice = " Use shape monotone." if shape == "cubic" and (falls or leaves) else ""
    return f"Satisfied users: {shape} mapping with residual {mapping.residual:.3f}.{falls}{leaves}{advice}"
