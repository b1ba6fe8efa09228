"""Models of relevance: P(grade) for every pair, judged or not."""

from probeval.relevance.aggregation import Aggregation, aggregate_votes
from probeval.relevance.cards.added import ADDED_MODELS, register_model
from probeval.relevance.cards.card import Card, card_names, load_card, read_card, write_card
from probeval.relevance.cards.choose import Choice, choose_model
from probeval.relevance.dependence import Dependence
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.effects import CampaignView, Columns, Effect, register_effect
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.learning.diagnostics import (
    Diagnostics,
    assessor_rmse,
    cross_validate,
    diagnose,
    likelihood_ratios,
    predict_data,
    proportional_odds,
)
from probeval.relevance.learning.elimination import Elimination, eliminate_terms
from probeval.relevance.learning.fit import fit_card, fit_hierarchical
from probeval.relevance.models.base import FallbackModel, Finding, FittedModel, Predicts
from probeval.relevance.models.baseline import Empirical, Uniform
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.models.labels import CalibratedLabels, LabelsAsGrades
from probeval.relevance.models.ordinal import FittedOrdinal, OrdinalModel, TrainingData, training_data
from probeval.relevance.online import OnlineModel, Prediction, follow
from probeval.relevance.surprise import SurprisingGrades, surprising_grades
from probeval.relevance.synthetic import SyntheticCampaign, SyntheticObserver, synthetic_campaign

__all__ = [
    "ADDED_MODELS",
    "Aggregation",
    "CalibratedLabels",
    "CampaignView",
    "Card",
    "Choice",
    "Columns",
    "Dependence",
    "Diagnostics",
    "Effect",
    "Elimination",
    "Empirical",
    "FallbackModel",
    "Finding",
    "FittedModel",
    "FittedOrdinal",
    "Hierarchical",
    "HierarchicalPrior",
    "LabelsAsGrades",
    "OnlineModel",
    "OrdinalModel",
    "Prediction",
    "Predicts",
    "RelevanceDistribution",
    "SurprisingGrades",
    "SyntheticCampaign",
    "SyntheticObserver",
    "TrainingData",
    "Uniform",
    "aggregate_votes",
    "assessor_rmse",
    "card_names",
    "choose_model",
    "cross_validate",
    "diagnose",
    "eliminate_terms",
    "fit_card",
    "fit_hierarchical",
    "follow",
    "likelihood_ratios",
    "load_card",
    "predict_data",
    "proportional_odds",
    "read_card",
    "register_effect",
    "register_model",
    "surprising_grades",
    "synthetic_campaign",
    "training_data",
    "write_card",
]
