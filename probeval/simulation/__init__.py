"""What would have happened: campaigns judged again, in part, and held against their full judgments."""

from probeval.simulation.heldout import HeldOut, restrict
from probeval.simulation.points import BINS, Bins, Point, measure_point
from probeval.simulation.trials import MARKS, Trial, Validation
from probeval.simulation.validate import CHECKPOINTS, MODELS, Fit, validate

__all__ = [
    "BINS",
    "CHECKPOINTS",
    "MARKS",
    "MODELS",
    "Bins",
    "Fit",
    "HeldOut",
    "Point",
    "Trial",
    "Validation",
    "measure_point",
    "restrict",
    "validate",
]
