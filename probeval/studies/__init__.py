"""Studies: what one person runs once per paper. Nothing in the core depends on them."""

from probeval.studies.collections import CollectionPart, CollectionStudy, over_collections
from probeval.studies.curves import (
    Confusion,
    Curves,
    confusion,
    interpolated_precision,
    measure_curves,
    precision_recall,
    roc,
)
from probeval.studies.measures import ALPHAS, PairTests, StudiedMeasure, study_measure
from probeval.studies.meta import MetaCampaign, MetaStudy
from probeval.studies.multiplicity import Multiplicity, fit_multiplicity, multiplicity
from probeval.studies.satisfaction import ListUser, UserStudy

__all__ = [
    "ALPHAS",
    "CollectionPart",
    "CollectionStudy",
    "Confusion",
    "Curves",
    "ListUser",
    "MetaCampaign",
    "MetaStudy",
    "Multiplicity",
    "PairTests",
    "StudiedMeasure",
    "UserStudy",
    "confusion",
    "fit_multiplicity",
    "interpolated_precision",
    "measure_curves",
    "multiplicity",
    "over_collections",
    "precision_recall",
    "roc",
    "study_measure",
]
