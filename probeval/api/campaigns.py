"""Finished campaigns, as folders or as collections, for the studies that go through several."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated

from probeval.data import Collection, read_campaign
from probeval.errors import DataError
from probeval.records import About
from probeval.reporting import SILENT, Reporter
from probeval.studies.collections import check_names

__all__ = ["CampaignFolders", "Campaigns", "as_campaigns"]

Campaigns = Collection | str | PathLike[str] | Sequence[Collection | str | PathLike[str]]
CampaignFolders = Annotated[
    Campaigns,
    About("Folders with runs/ and qrels.txt.", metavar="CAMPAIGN...", argument=True, kind=Path, many=True),
]


def as_campaigns(campaigns: Campaigns, *, reporter: Reporter = SILENT) -> list[Collection]:
    """Return campaigns with judgments, each with a name of its own.

    Parameters
    ----------
    campaigns
        Folders with ``runs/`` and ``qrels.txt``, or collections; or a single one.
    reporter
        Receives progress and remarks.
    """
    given = [campaigns] if isinstance(campaigns, (Collection, str, PathLike)) else list(campaigns)
    work = reporter.track(given, "Reading campaigns")
    found = [c if isinstance(c, Collection) else read_campaign(c, reporter=reporter) for c in work]
    check_names([c.name for c in found])
    for collection in found:
        if collection.judgments is None:
            raise DataError(f"{collection.name}: has no judgments. A study of campaigns needs qrels.txt in the folder.")
    return found
