"""Plots of results: each function takes a result and optional axes, and returns the axes."""

from probeval.plots.agreement import plot_p_values, plot_ties, plot_two_scores
from probeval.plots.calibration import plot_checkpoints, plot_reliability
from probeval.plots.canvas import BLUE, GREEN, GREY, ORANGE, save
from probeval.plots.curves import plot_forecast, plot_trajectories, plot_trajectory
from probeval.plots.evidence import plot_along, plot_by_campaign
from probeval.plots.meta import plot_measures, plot_meta, plot_rates
from probeval.plots.milestones import plot_milestones
from probeval.plots.persistence import plot_persistence, plot_persistence_queries
from probeval.plots.pools import plot_multiplicity, plot_pools, plot_trends
from probeval.plots.reliability import plot_components, plot_dstudy, plot_posterior
from probeval.plots.retrieval import plot_precision_recall, plot_roc
from probeval.plots.satisfaction import plot_agreement, plot_mappings, plot_satisfaction
from probeval.plots.scores import plot_difference, plot_pairs, plot_ranking
from probeval.plots.significance import plot_critical, plot_tests

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "plot_agreement",
    "plot_along",
    "plot_by_campaign",
    "plot_checkpoints",
    "plot_components",
    "plot_critical",
    "plot_difference",
    "plot_dstudy",
    "plot_forecast",
    "plot_mappings",
    "plot_measures",
    "plot_meta",
    "plot_milestones",
    "plot_multiplicity",
    "plot_p_values",
    "plot_pairs",
    "plot_persistence",
    "plot_persistence_queries",
    "plot_pools",
    "plot_posterior",
    "plot_precision_recall",
    "plot_ranking",
    "plot_rates",
    "plot_reliability",
    "plot_roc",
    "plot_satisfaction",
    "plot_tests",
    "plot_ties",
    "plot_trajectories",
    "plot_trajectory",
    "plot_trends",
    "plot_two_scores",
    "save",
]
