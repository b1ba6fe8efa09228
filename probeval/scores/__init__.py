"""Scores as random variables, jointly distributed over systems."""

from probeval.scores.compare import Comparison, Ranking
from probeval.scores.evaluate import METHODS, evaluate
from probeval.scores.joint import Joint
from probeval.scores.predicted import score_collection
from probeval.scores.score import Score
from probeval.scores.scores import Scores

__all__ = ["METHODS", "Comparison", "Joint", "Ranking", "Score", "Scores", "evaluate", "score_collection"]
