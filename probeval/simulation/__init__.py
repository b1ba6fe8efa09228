"""What would have happened: campaigns judged again, in part, and held against their full judgments."""

from probeval.simulation.curves import Course, Simulation, Step, lasting
from probeval.simulation.heldout import HeldOut, restrict
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
    "Assessor",
    "Bins",
    "Contender",
    "Course",
    "Fit",
    "HeldOut",
    "Point",
    "Ruled",
    "Simulation",
    "Step",
    "Trial",
    "Validation",
    "apply_rules",
    "lasting",
    "measure_point",
    "replay",
    "restrict",
    "simulate",
    "tau_and_accuracy",
    "validate",
]
