"""Features of query-document pairs, from runs, judgments of other pairs, metadata, labels and vectors."""

from probeval.features.judged import JudgedFeatures, Neighbours
from probeval.features.multiplicity import Multiplicity, fit_multiplicity, multiplicity
from probeval.features.spec import DEFINITIONS, FeatureName, FeatureTable, feature_names, needs
from probeval.features.table import compute_features, judged_features, relevance_of

__all__ = [
    "DEFINITIONS",
    "FeatureName",
    "FeatureTable",
    "JudgedFeatures",
    "Multiplicity",
    "Neighbours",
    "compute_features",
    "feature_names",
    "fit_multiplicity",
    "judged_features",
    "multiplicity",
    "needs",
    "relevance_of",
]
