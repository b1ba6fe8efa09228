"""Studies: what one person runs once per paper. Nothing in the core depends on them."""

from probeval.studies.collections import CollectionPart, CollectionStudy, over_collections
from probeval.studies.curves import (
    Confusion,
    Curves,
    SystemCurves,
    confusion,
    interpolated_precision,
    measure_curves,
    precision_recall,
    roc,
)
from probeval.studies.meta import (
    ALPHAS,
    LevelRates,
    MetaCollection,
    MetaStudy,
    PairTests,
    PStability,
    StudiedMeasure,
    study_measure,
)
from probeval.studies.multiplicity import Multiplicity, MultiplicityBand, fit_multiplicity, multiplicity
from probeval.studies.satisfaction import ListUser, StudyTenth, UserStudy

__all__ = [
    "ALPHAS",
    "CollectionPart",
    "CollectionStudy",
    "Confusion",
    "Curves",
    "LevelRates",
    "ListUser",
    "MetaCollection",
    "MetaStudy",
    "Multiplicity",
    "MultiplicityBand",
    "PStability",
    "PairTests",
    "StudiedMeasure",
    "StudyTenth",
    "SystemCurves",
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
