"""Studies of several collections: the work on all of them in parallel, and their results side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar

import pandas as pd

from probeval.errors import DataError, did_you_mean
from probeval.parallel import parallel
from probeval.reporting import SILENT, Reporter
from probeval.results import Result

__all__ = ["CollectionPart", "CollectionStudy", "over_collections"]

C = TypeVar("C")
T = TypeVar("T")


class CollectionPart(Protocol):
    """The results of a study on one collection, a record."""

    @property
    def campaign(self) -> str:
        """The name of the collection."""

    def to_frame(self) -> pd.DataFrame:
        """The rows, without a column for the collection."""


P = TypeVar("P", bound=CollectionPart)


@dataclass(frozen=True, eq=False, repr=False)
class CollectionStudy(Result, Generic[P]):
    """The results of a study on several collections, side by side.

    A study derives from it, and adds its tables (``tables``), its sentences and its title.
    """

    campaigns: Annotated[tuple[P, ...], "The results of each collection, in the order in which they were given."]

    def __post_init__(self) -> None:
        check_names([part.campaign for part in self.campaigns])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections."""
        return tuple(part.campaign for part in self.campaigns)

    def __getitem__(self, campaign: str) -> P:
        for part in self.campaigns:
            if part.campaign == campaign:
                return part
        raise DataError(f"no campaign {campaign!r} in the study.{did_you_mean(campaign, self.names)}")

    def side_by_side(self, rows: Callable[[P], pd.DataFrame]) -> pd.DataFrame:
        """The rows of every collection in one table, with its name in the first column."""
        tables = [rows(part) for part in self.campaigns]
        for table, name in zip(tables, self.names, strict=True):
            table.insert(0, "campaign", name)
        kept = [table for table in tables if len(table)] or tables[:1]
        return pd.concat(kept, ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """The rows of every collection, with its name in the first column."""
        return self.side_by_side(lambda part: part.to_frame())


def check_names(names: Sequence[str]) -> None:
    """Refuse a study without a collection, or with two of the same name."""
    if not names:
        raise DataError("a study needs at least one campaign.")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"two campaigns have the name {twice!r}. Results carry the name: rename one of the folders.")


def over_collections(
    collections: Sequence[C],
    pieces: Callable[[C], Sequence[Callable[[], T]]],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
    title: str = "Comparing",
) -> list[list[T]]:
    """Do the pieces of work of several collections in parallel, and return their results by collection, in order.

    Pieces of all collections share the processes, so that a large collection does not hold up the others.

    Parameters
    ----------
    collections
        The collections.
    pieces
        Gives the pieces of work of a collection, each a function without arguments.
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
    work = [list(pieces(collection)) for collection in collections]
    every = [piece for part in work for piece in part]
    with parallel(max(1, min(jobs, len(every))), scheduler) as run:
        found = [result for _, result in zip(reporter.track(every, title), run(every), strict=True)]
    results = iter(found)
    return [[next(results) for _ in part] for part in work]
