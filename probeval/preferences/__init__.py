"""Documents judged side by side or by numbers: answers, scores from them after Yang (2019), designs and quality."""

from probeval.preferences.design import GroupDesign, design_groups, pair_list, pair_list_faults
from probeval.preferences.magnitudes import mean_numbers, normalised_magnitudes
from probeval.preferences.quality import (
    Contradictions,
    ShareInterval,
    answer_quality,
    contradictions,
    side_share,
    wilson_interval,
)
from probeval.preferences.ratios import RatioScores, ratio_scores
from probeval.preferences.scoring import SCORING, DocumentScores, score_documents
from probeval.preferences.shares import combine_questions, grades_by_shares, relevance_shares, win_shares

__all__ = [
    "SCORING",
    "Contradictions",
    "DocumentScores",
    "GroupDesign",
    "RatioScores",
    "ShareInterval",
    "answer_quality",
    "combine_questions",
    "contradictions",
    "design_groups",
    "grades_by_shares",
    "mean_numbers",
    "normalised_magnitudes",
    "pair_list",
    "pair_list_faults",
    "ratio_scores",
    "relevance_shares",
    "score_documents",
    "side_share",
    "wilson_interval",
    "win_shares",
]
