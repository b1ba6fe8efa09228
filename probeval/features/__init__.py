"""Features of query-document pairs, from runs, judgments of other pairs, metadata, labels and vectors."""

from probeval.features.judged import JudgedFeatures, Neighbours
from probeval.features.spec import DEFINITIONS, FeatureName, FeatureTable, feature_names, needs
from probeval.features.table import compute_features, judged_features, relevance_of

__all__ = [
    "DEFINITIONS",
    "FeatureName",
    "FeatureTable",
    "JudgedFeatures",
    "Neighbours",
    "compute_features",
    "feature_names",
    "judged_features",
    "needs",
    "relevance_of",
]
