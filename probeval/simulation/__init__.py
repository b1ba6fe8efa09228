"""What would have happened: campaigns judged again, in part, and held against their full judgments."""

from probeval.simulation.curves import Course, Simulation, Step, lasting
from probeval.simulation.forecast import Forecast, forecast
from probeval.simulation.heldout import HeldOut, restrict
from probeval.simulation.plan import TARGETS, Plan, Planned, Prices, plan, resize
from probeval.simulation.points import BINS, Bins, Point, measure_point, tau_and_accuracy
from probeval.simulation.replay import Assessor, replay
from probeval.simulation.rules import Ruled, apply_rules
from probeval.simulation.simulate import DEFAULTS, Contender, simulate
from probeval.simulation.trials import MARKS, Trial, Validation
from probeval.simulation.validate import CHECKPOINTS, MODELS, Fit, validate

__all__ = [
    "BINS",
    "CHECKPOINTS",
    "DEFAULTS",
    "MARKS",
    "MODELS",
    "TARGETS",
    "Assessor",
    "Bins",
    "Contender",
    "Course",
    "Fit",
    "Forecast",
    "HeldOut",
    "Plan",
    "Planned",
    "Point",
    "Prices",
    "Ruled",
    "Simulation",
    "Step",
    "Trial",
    "Validation",
    "apply_rules",
    "forecast",
    "lasting",
    "measure_point",
    "plan",
    "replay",
    "resize",
    "restrict",
    "simulate",
    "tau_and_accuracy",
    "validate",
]
