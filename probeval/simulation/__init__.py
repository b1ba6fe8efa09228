"""Simulations: collections judged again in part and compared with their full judgments; forecasts and plans."""

from probeval.simulation.budgets import BudgetComparison, BudgetSummary, compare_at_budgets, summarise_budgets
from probeval.simulation.errors import learn_errors
from probeval.simulation.forecast import Forecast, ForecastStep, forecast
from probeval.simulation.heldout import HeldOut, restrict
from probeval.simulation.machines import ALLOCATIONS
from probeval.simulation.mix import Mix, forecast_mix
from probeval.simulation.plan import TARGETS, Plan, Planned, Prices, Variants, plan, resize
from probeval.simulation.points import BINS, Bins, Point, measure_point, tau_and_accuracy, top_tau
from probeval.simulation.protocol import Contender, SimulationProtocol, label_baselines
from probeval.simulation.questions import QuestionStep, QuestionTrajectory, SimulatedComparer, replay_questions
from probeval.simulation.replay import SimulatedAssessor, replay
from probeval.simulation.reuse import ReuseStudy, leave_teams_out
from probeval.simulation.seeds import PolicyComparison, SeedSummary
from probeval.simulation.significance_rules import RuleDecisions, RuleSettings, apply_rules
from probeval.simulation.simulate import Simulation, simulate
from probeval.simulation.trajectory import ReplaySetup, Trajectory, TrajectoryStep, lasting
from probeval.simulation.validate import CHECKPOINTS, MARKS, MODELS, FitFunction, Validation, ValidationRun, validate

__all__ = [
    "ALLOCATIONS",
    "BINS",
    "CHECKPOINTS",
    "MARKS",
    "MODELS",
    "TARGETS",
    "Bins",
    "BudgetComparison",
    "BudgetSummary",
    "Contender",
    "FitFunction",
    "Forecast",
    "ForecastStep",
    "HeldOut",
    "Mix",
    "Plan",
    "Planned",
    "Point",
    "PolicyComparison",
    "Prices",
    "QuestionStep",
    "QuestionTrajectory",
    "ReplaySetup",
    "ReuseStudy",
    "RuleDecisions",
    "RuleSettings",
    "SeedSummary",
    "SimulatedAssessor",
    "SimulatedComparer",
    "Simulation",
    "SimulationProtocol",
    "Trajectory",
    "TrajectoryStep",
    "Validation",
    "ValidationRun",
    "Variants",
    "apply_rules",
    "compare_at_budgets",
    "forecast",
    "forecast_mix",
    "label_baselines",
    "lasting",
    "learn_errors",
    "leave_teams_out",
    "measure_point",
    "plan",
    "replay",
    "replay_questions",
    "resize",
    "restrict",
    "simulate",
    "summarise_budgets",
    "tau_and_accuracy",
    "top_tau",
    "validate",
]
