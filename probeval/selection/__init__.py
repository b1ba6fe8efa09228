"""Which pair to judge next, and when to stop."""

from probeval.selection.batch import choose
from probeval.selection.goals import GOALS, Goal
from probeval.selection.judging import EXPLORE, Judging, Stage
from probeval.selection.knowledge import Knowledge
from probeval.selection.policies import POLICIES, Policy
from probeval.selection.stopping import RULES, Check, Stopping
from probeval.selection.verdict import Verdict, fairness

__all__ = [
    "EXPLORE",
    "GOALS",
    "POLICIES",
    "RULES",
    "Check",
    "Goal",
    "Judging",
    "Knowledge",
    "Policy",
    "Stage",
    "Stopping",
    "Verdict",
    "choose",
    "fairness",
]
