"""Selection of the next pairs to judge, and stopping rules."""

from probeval.selection.audit import AuditedDifference, AuditedSystem, AuditReport, Pick, audit, foresee
from probeval.selection.batch import Batch, choose
from probeval.selection.comparisons import PairQuestion, Preference, Ratio
from probeval.selection.context import SelectionContext
from probeval.selection.errors import (
    ErrorCorrection,
    model_kind,
    published_corrections,
    read_corrections,
    stated_sd,
    write_corrections,
)
from probeval.selection.fairness import Fairness, fairness
from probeval.selection.fusion import FUSIONS, Fusion, find_fusion, fused_places
from probeval.selection.goals import GOALS, Goal
from probeval.selection.judging import Judging, JudgingState
from probeval.selection.labellers import choose_for_labeller, label_correlation, label_noise
from probeval.selection.pairs import ASK, Questions, next_questions
from probeval.selection.policies import EXPLORE, EXPLORE_SIDES, POLICIES, Policy, PolicyFunction, register_policy
from probeval.selection.prices import PERSON, AnswerPrices, Request, next_request
from probeval.selection.reuse import (
    ClassicalScore,
    LaterSystem,
    ModelScore,
    Narrowing,
    judge_later,
    measure_later,
    narrowing,
)
from probeval.selection.rules import RULES, Rate, StoppingRule, register_rule
from probeval.selection.stopping import Stopping, StoppingCheck, StoppingFigure, StoppingTarget

__all__ = [
    "ASK",
    "EXPLORE",
    "EXPLORE_SIDES",
    "FUSIONS",
    "GOALS",
    "PERSON",
    "POLICIES",
    "RULES",
    "AnswerPrices",
    "AuditReport",
    "AuditedDifference",
    "AuditedSystem",
    "Batch",
    "ClassicalScore",
    "ErrorCorrection",
    "Fairness",
    "Fusion",
    "Goal",
    "Judging",
    "JudgingState",
    "LaterSystem",
    "ModelScore",
    "Narrowing",
    "PairQuestion",
    "Pick",
    "Policy",
    "PolicyFunction",
    "Preference",
    "Questions",
    "Rate",
    "Ratio",
    "Request",
    "SelectionContext",
    "Stopping",
    "StoppingCheck",
    "StoppingFigure",
    "StoppingRule",
    "StoppingTarget",
    "audit",
    "choose",
    "choose_for_labeller",
    "fairness",
    "find_fusion",
    "foresee",
    "fused_places",
    "judge_later",
    "label_correlation",
    "label_noise",
    "measure_later",
    "model_kind",
    "narrowing",
    "next_questions",
    "next_request",
    "published_corrections",
    "read_corrections",
    "register_policy",
    "register_rule",
    "stated_sd",
    "write_corrections",
]
