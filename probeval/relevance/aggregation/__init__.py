"""Aggregation of votes: many labels per pair, by workers who differ, to P(grade) of every pair."""

from probeval.relevance.aggregation.aggregate import METHODS, aggregate_votes
from probeval.relevance.aggregation.result import Aggregation

__all__ = ["METHODS", "Aggregation", "aggregate_votes"]
