"""User satisfaction: the users satisfied by a score, successful queries, noticeable differences, and studies."""

from probeval.metrics.mapping import (
    SHAPES,
    SatMapping,
    fit_mapping,
    load_mapping,
    mapping_for,
    published_mappings,
    tenths,
)
from probeval.satisfaction.answers import ListAnswers, read_list_answers
from probeval.satisfaction.distributions import FAMILIES, Fit, fit_scores, goodness_of_fit, omega_squared
from probeval.satisfaction.new_query import NewQuery, default_family, predict_query
from probeval.satisfaction.preferences import (
    ANSWERS,
    Agreement,
    Preferences,
    agreement_for,
    load_agreement,
    published_agreements,
    read_preferences,
)
from probeval.satisfaction.questions import ListQuestion, ListQuestions, choose_lists
from probeval.satisfaction.users import Noticed, Satisfaction, UserEstimate, satisfied_users

__all__ = [
    "ANSWERS",
    "FAMILIES",
    "SHAPES",
    "Agreement",
    "Fit",
    "ListAnswers",
    "ListQuestion",
    "ListQuestions",
    "NewQuery",
    "Noticed",
    "Preferences",
    "SatMapping",
    "Satisfaction",
    "UserEstimate",
    "agreement_for",
    "choose_lists",
    "default_family",
    "fit_mapping",
    "fit_scores",
    "goodness_of_fit",
    "load_agreement",
    "load_mapping",
    "mapping_for",
    "omega_squared",
    "predict_query",
    "published_agreements",
    "published_mappings",
    "read_list_answers",
    "read_preferences",
    "satisfied_users",
    "tenths",
]
