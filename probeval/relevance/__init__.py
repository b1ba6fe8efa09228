"""P(grade) for every pair, judged or not."""

from probeval.relevance.baseline import Empirical, Uniform
from probeval.relevance.cards import Card, card_names, load_card, read_card, write_card
from probeval.relevance.choice import Choice, choose_model
from probeval.relevance.dependence import Dependence
from probeval.relevance.diagnostics import (
    Diagnostics,
    cross_validate,
    diagnose,
    likelihood_ratios,
    predict_data,
    proportional_odds,
)
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.fitting import fit_card, fit_hierarchical
from probeval.relevance.following import Belief, Follower, follow
from probeval.relevance.hierarchical import HierarchicalPrior
from probeval.relevance.model import Chain, Finding, FittedModel, Predicts
from probeval.relevance.ordinal import FittedOrdinal, OrdinalModel, TrainingData, training_data
from probeval.relevance.posterior import Hierarchical

__all__ = [
    "Belief",
    "Card",
    "Chain",
    "Choice",
    "Dependence",
    "Diagnostics",
    "Empirical",
    "Finding",
    "FittedModel",
    "FittedOrdinal",
    "Follower",
    "Hierarchical",
    "HierarchicalPrior",
    "OrdinalModel",
    "Predicts",
    "RelevanceDistribution",
    "TrainingData",
    "Uniform",
    "card_names",
    "choose_model",
    "cross_validate",
    "diagnose",
    "fit_card",
    "fit_hierarchical",
    "follow",
    "likelihood_ratios",
    "load_card",
    "predict_data",
    "proportional_odds",
    "read_card",
    "training_data",
    "write_card",
]
