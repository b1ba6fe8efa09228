"""The kinds of questions that come with probeval: grades, comparisons of two documents, and of two lists."""

from probeval.campaign.kinds.comparison import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.kinds.grade import Adjudicated, GoldGradesChanged, Judged
from probeval.campaign.kinds.lists import ListsCompared

__all__ = [
    "Adjudicated",
    "Compared",
    "ComparisonAdjudicated",
    "GoldGradesChanged",
    "GoldOrdersChanged",
    "Judged",
    "ListsCompared",
]
