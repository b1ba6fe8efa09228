"""Scores as random variables, jointly distributed over systems."""

from probeval.scores.compare import Comparison, Ranking
from probeval.scores.estimate import ScoreEstimate, ScoreEstimation
from probeval.scores.evaluate import METHODS, evaluate
from probeval.scores.labels import LabelsUsed, labels_of, labels_used
from probeval.scores.predicted import score_collection
from probeval.scores.scores import Joint, Score, Scores
from probeval.scores.trust import TrustReport, trust
from probeval.scores.two_systems import TwoSystems, decide, without_labels
from probeval.scores.verdict import Verdict

__all__ = [
    "METHODS",
    "Comparison",
    "Joint",
    "LabelsUsed",
    "Ranking",
    "Score",
    "ScoreEstimate",
    "ScoreEstimation",
    "Scores",
    "TrustReport",
    "TwoSystems",
    "Verdict",
    "decide",
    "evaluate",
    "labels_of",
    "labels_used",
    "score_collection",
    "trust",
    "without_labels",
]
