"""Studies of several campaigns: the work on all of them in parallel, and their results side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd

from probeval.errors import DataError, did_you_mean
from probeval.parallel import parallel
from probeval.reporting import SILENT, Reporter
from probeval.results import Result

__all__ = ["CollectionPart", "CollectionStudy", "over_collections"]

C = TypeVar("C")
T = TypeVar("T")


class CollectionPart(Protocol):
    """The results of a study on one campaign."""

    @property
    def campaign(self) -> str:
        """The name of the campaign."""

    def to_frame(self) -> pd.DataFrame:
        """The rows, without a column for the campaign."""

    def to_dict(self) -> Any:
        """The plain data that JSON prints, the name of the campaign included."""


P = TypeVar("P", bound=CollectionPart)


@dataclass(frozen=True, eq=False, repr=False)
class CollectionStudy(Result, Generic[P]):
    """The results of a study on several campaigns, side by side.

    A study derives from it, and adds its tables (``tables``), its sentences and its title.

    Parameters
    ----------
    campaigns
        The results of each campaign, in the order in which they were given.
    """

    campaigns: tuple[P, ...]

    def __post_init__(self) -> None:
        check_names([part.campaign for part in self.campaigns])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the campaigns."""
        return tuple(part.campaign for part in self.campaigns)

    def __getitem__(self, campaign: str) -> P:
        for part in self.campaigns:
            if part.campaign == campaign:
                return part
        raise DataError(f"no campaign {campaign!r} in the study.{did_you_mean(campaign, self.names)}")

    def side_by_side(self, rows: Callable[[P], pd.DataFrame]) -> pd.DataFrame:
        """The rows of every campaign in one table, with its name in the first column."""
        tables = [rows(part) for part in self.campaigns]
        for table, name in zip(tables, self.names, strict=True):
            table.insert(0, "campaign", name)
        kept = [table for table in tables if len(table)] or tables[:1]
        return pd.concat(kept, ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """The rows of every campaign, with its name in the first column."""
        return self.side_by_side(lambda part: part.to_frame())

    def to_dict(self) -> Any:
        """The study as plain data for JSON: one entry per campaign."""
        return {"campaigns": [part.to_dict() for part in self.campaigns]}


def check_names(names: Sequence[str]) -> None:
    """Refuse a study without a campaign, or with two of the same name."""
    if not names:
        raise DataError("a study needs at least one campaign.")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"two campaigns have the name {twice!r}. Results carry the name: rename one of the folders.")


def over_collections(
    campaigns: Sequence[C],
    pieces: Callable[[C], Sequence[Callable[[], T]]],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
    title: str = "Comparing",
) -> list[list[T]]:
    """Do the pieces of work of several campaigns in parallel, and return their results by campaign, in order.

    Pieces of all campaigns share the processes, so that a large campaign does not hold up the others.

    Parameters
    ----------
    campaigns
        The campaigns.
    pieces
        Gives the pieces of work of a campaign, each a function without arguments.
    jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter, title
        Receives the progress of the pieces, under this title.

    Examples
    --------
    >>> from functools import partial
    >>> over_collections([2, 3], lambda n: [partial(pow, n, k) for k in range(n)])
    [[1, 2], [1, 3, 9]]
    """
    work = [list(pieces(campaign)) for campaign in campaigns]
    every = [piece for part in work for piece in part]
    with parallel(max(1, min(jobs, len(every))), scheduler) as run:
        found = [result for _, result in zip(reporter.track(every, title), run(every), strict=True)]
    results = iter(found)
    return [[next(results) for _ in part] for part in work]
