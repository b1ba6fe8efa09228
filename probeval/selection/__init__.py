"""Which pair to judge next, and when to stop."""

from probeval.selection.batch import choose
from probeval.selection.context import SelectionContext
from probeval.selection.goals import GOALS, Goal
from probeval.selection.judging import EXPLORE, Judging, JudgingState
from probeval.selection.policies import POLICIES, Policy
from probeval.selection.stopping import RULES, Stopping, StoppingCheck
from probeval.selection.verdict import Verdict, fairness

__all__ = [
    "EXPLORE",
    "GOALS",
    "POLICIES",
    "RULES",
    "Goal",
    "Judging",
    "JudgingState",
    "Policy",
    "SelectionContext",
    "Stopping",
    "StoppingCheck",
    "Verdict",
    "choose",
    "fairness",
]
