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

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ints
from probeval.data.tables import cell_text
from probeval.display import Record, Table
from probeval.errors import ProbevalWarning, SatisfactionError
from probeval.metrics.mapping import MIDPOINTS, SHAPES, TENTHS, SatMapping, tenths
from probeval.metrics.users_file import AgreementCounts, MappingCurve, UsersFile, write_users_file
from probeval.preferences.quality import ShareInterval, wilson_interval
from probeval.results import Result
from probeval.satisfaction.answers import ListAnswers
from probeval.satisfaction.preferences import Agreement
from probeval.schema import records
from probeval.studies.satisfaction_documents import (
    ListUserDocument,
    ShareIntervalDocument,
    StudyTenth,
    UserStudyDocument,
)

__all__ = ["ListUser", "UserStudy"]

FEWEST_TRAPS = 3  # from which on a user can be named for wrong answers
HALF = 0.5


@dataclass(frozen=True, repr=False)
class ListUser(Record):
    """A user of the study, and how they answered.

    Parameters
    ----------
    user
        Their name.
    answers
        The number of answers, without traps.
    left
        The share of their preferences for the list on the left; NaN without any.
    traps, right
        The number of traps answered, and the number answered right.
    seconds
        The median time per answer; NaN if it was not measured.
    is_bad
        Whether too few traps were answered right.
    """

    user: str
    answers: int
    left: float
    traps: int
    right: int
    seconds: float
    is_bad: bool


@dataclass(frozen=True, eq=False, repr=False)
class UserStudy(Result):
    """The results of a study with users, from their answers about pairs of lists.

    Answers to traps only serve to check users.

    Parameters
    ----------
    answers
        The answers of all users.
    mapping_shape
        The shape of the mapping, one of :data:`SHAPES`.
    least_right
        The share of traps that a user must answer right; those with less, of three traps or more, are named.
    leave_out
        Leave out the answers of these users.
    level
        The level of intervals.

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
    mapping_shape: str = "cubic"
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

    @cached_property
    def users(self) -> tuple[ListUser, ...]:
        """The users, by name."""
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
            is_bad=traps >= FEWEST_TRAPS and right < self.least_right * traps,
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

    @property
    def noticeable(self) -> float | None:
        """The smallest difference that half of the users notice, or None."""
        try:
            return self.agreement.noticeable(HALF)
        except SatisfactionError:
            return None

    @property
    def side(self) -> ShareInterval | None:
        """The share of preferences for the list on the left, with Wilson's interval; None without preferences."""
        stated = self.counted.preferences
        return self._share(stated.answer[~stated.undecided] == "a")

    @property
    def chosen_good(self) -> ShareInterval | None:
        """The share of preferred lists that are good, with its interval; None if users were not asked."""
        asked = self.counted.chosen_good
        return self._share(asked[~np.isnan(asked)] == 1)

    @property
    def endpoints(self) -> tuple[ShareInterval | None, ShareInterval | None]:
        """The shares of good lists in the lowest and in the highest tenth of the score, in answers without preference.

        An answer about two lists in the tenth counts twice, as for the mapping; intervals are therefore too narrow.
        """
        at, satisfied = self._rated()
        return self._share(satisfied[at == 0]), self._share(satisfied[at == TENTHS - 1])

    @property
    def endpoint_bias(self) -> float | None:
        r"""The distance of satisfaction from 0 in the lowest tenth of the score and from 1 in the highest.

        .. math:: \sqrt{\tfrac12 \big(P(Sat \mid 0)^2 + (1 - P(Sat \mid 1))^2\big)}

        See Urbano (2013), Eq 3.11; None if no list is in one of the two tenths.
        """
        low, high = self.endpoints
        return None if low is None or high is None else math.sqrt((low.share**2 + (1 - high.share) ** 2) / 2)

    def _rated(self) -> tuple[Ints, Floats]:
        """The tenth of the score of each list in answers without preference, and whether it is good."""
        stated = self.counted.preferences
        good = stated.answer[stated.undecided] == "good"
        scores = np.concatenate([stated.a[stated.undecided], stated.b[stated.undecided]])
        return tenths(scores), np.concatenate([good, good]).astype(float)

    def _share(self, found: Floats | Bools) -> ShareInterval | None:
        return wilson_interval(int(np.sum(found)), len(found), level=self.level) if len(found) else None

    @property
    def identical(self) -> tuple[int, int]:
        """The number of answers about one list shown twice, traps aside, and of preferences among them."""
        twice = self.counted.is_identical
        return int(twice.sum()), int((twice & ~self.counted.preferences.undecided).sum())

    def to_frame(self) -> pd.DataFrame:
        """One row per tenth: from, to, n, better, neither, worse by difference; lists, satisfied, mapped by score."""
        at, satisfied = self._rated()
        lists = np.bincount(at, minlength=TENTHS)
        rated = np.bincount(at, satisfied, minlength=TENTHS) / np.where(lists > 0, lists, np.nan)
        mapped = np.full(TENTHS, np.nan) if self.mapping is None else self.mapping(MIDPOINTS)
        return self.agreement.to_frame().assign(lists=lists, satisfied=rated, mapped=mapped)

    def users_frame(self) -> pd.DataFrame:
        """One row per user: user, answers, left, traps, right, seconds, is_bad."""
        return pd.DataFrame([vars(user) for user in self.users], columns=list(ListUser.__dataclass_fields__))

    def to_dict(self) -> UserStudyDocument:
        """The results as plain data for JSON."""
        stated, mapping = self.counted.preferences, self.mapping
        low, high = self.endpoints
        frame = self.to_frame().rename(columns={"from": "lower", "to": "upper"})
        twice, preferred = self.identical
        return {
            "measure": stated.name,
            "answers": len(stated),
            "preferences": int((~stated.undecided).sum()),
            "good": stated.good,
            "bad": int(stated.undecided.sum()) - stated.good,
            "chosen_good": _document(self.chosen_good),
            "mapping_shape": self.mapping_shape,
            "coefficients": None if mapping is None else list(mapping.coefficients),
            "residual": None if mapping is None else mapping.residual,
            "noticeable": self.noticeable,
            "distance_from_ideal": self.agreement.distance_from_ideal,
            "disagreement": self.agreement.disagreement,
            "side": _document(self.side),
            "lowest": _document(low),
            "highest": _document(high),
            "endpoint_bias": self.endpoint_bias,
            "identical": twice,
            "identical_preferred": preferred,
            "left_out": list(self.bad_users) if self.leave_out else [],
            "tenths": records(frame, StudyTenth),
            "users": records(self.users_frame(), ListUserDocument),
        }

    def _headline(self) -> str:
        stated = self.counted.preferences
        return f"{len(stated):,} answers, {int((~stated.undecided).sum()):,} preferences"

    def tables(self) -> tuple[Table, ...]:
        """One row per tenth, and one per user where users have names."""
        title = f"{self.counted.preferences.name}: what users prefer by the difference, and like by the score"
        tables = [Table(self.to_frame(), title, {"from": 1, "to": 1})]
        if any(user.user for user in self.users):
            tables.append(Table(self.users_frame(), "Users", {"left": 2, "seconds": 1}))
        return tuple(tables)

    def sentences(self) -> tuple[str, ...]:
        """The figures in words."""
        stated, mapping, noticed = self.counted.preferences, self.mapping, self.noticeable
        bad = int(stated.undecided.sum()) - stated.good
        found = [f"{self._headline()}, {stated.good:,} both good, {bad:,} both bad."]
        if self.chosen_good is not None:
            found.append(f"Of the preferred lists {_in_words(self.chosen_good)} are good.")
        if noticed is None:
            found.append("Half of the users notice no difference, however large.")
        else:
            found.append(f"Half of the users notice a difference of {noticed:g}.")
        found.append(
            f"Distance from ideal {self.agreement.distance_from_ideal:.3f}, disagreement "
            f"{self.agreement.disagreement:.3f}."
        )
        if mapping is None:
            found.append("No mapping: answers without preference cover fewer than 4 tenths of the score.")
        else:
            found.append(_mapping_in_words(mapping, self.mapping_shape))
        low, high = self.endpoints
        if low is not None and high is not None:
            ends = (
                f"{_in_words(low)} are good; in the highest {_in_words(high)}. Endpoint bias {self.endpoint_bias:.3f}"
            )
            found.append(f"Of lists in the lowest tenth of the score {ends}.")
        if self.side is not None:
            found.append(_side_in_words(self.side))
        twice, preferred = self.identical
        if twice:
            found.append(f"{twice:,} answers are about one list shown twice; {preferred:,} of them state a preference.")
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
        write_users_file(Path(path), UsersFile(self.counted.preferences.name, self.origin, curve, counts))


def _document(found: ShareInterval | None) -> ShareIntervalDocument | None:
    if found is None:
        return None
    return {"share": found.share, "lower": found.lower, "upper": found.upper, "n": found.n}


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
