"""What is known of a pair without asking an assessor about it."""

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
