"""Simulations: finished campaigns judged again in part and compared with their full judgments; forecasts and plans."""

from probeval.simulation.errors import learn_errors
from probeval.simulation.forecast import Forecast, forecast
from probeval.simulation.heldout import HeldOut, restrict
from probeval.simulation.plan import TARGETS, Plan, Planned, Prices, Variants, plan, resize
from probeval.simulation.points import BINS, Bins, Point, measure_point, tau_and_accuracy, top_tau
from probeval.simulation.protocol import Contender, SimulationProtocol, label_baselines
from probeval.simulation.questions import QuestionStep, QuestionTrajectory, SimulatedComparer, replay_questions
from probeval.simulation.replay import SimulatedAssessor, replay
from probeval.simulation.reuse import ReuseStudy, leave_teams_out
from probeval.simulation.significance_rules import RuleDecisions, RuleSettings, apply_rules
from probeval.simulation.simulate import simulate
from probeval.simulation.trajectory import Simulation, Trajectory, TrajectoryStep, lasting
from probeval.simulation.validate import CHECKPOINTS, MODELS, FitFunction, validate
from probeval.simulation.validation import MARKS, Validation, ValidationRun

__all__ = [
    "BINS",
    "CHECKPOINTS",
    "MARKS",
    "MODELS",
    "TARGETS",
    "Bins",
    "Contender",
    "FitFunction",
    "Forecast",
    "HeldOut",
    "Plan",
    "Planned",
    "Point",
    "Prices",
    "QuestionStep",
    "QuestionTrajectory",
    "ReuseStudy",
    "RuleDecisions",
    "RuleSettings",
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
    "forecast",
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
    "tau_and_accuracy",
    "top_tau",
    "validate",
]
