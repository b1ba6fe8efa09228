"""The front door: one function per task, from files or objects of other packages to a result that prints well.

``import probeval`` gives all of these; the command line calls the same functions.
"""

from probeval.api.aggregate import aggregate
from probeval.api.agree import agree
from probeval.api.compare import SystemComparisons, compare
from probeval.api.convert import convert
from probeval.api.evaluate import evaluate, next_pairs
from probeval.api.evaluation import Evaluation, NextPairs
from probeval.api.evidence import Evidence, as_collection, select_model
from probeval.api.examine import examine
from probeval.api.fit import fit
from probeval.api.gate import Gate, gate
from probeval.api.label import label
from probeval.api.meta import meta_study
from probeval.api.partition import partition
from probeval.api.persistence import persistence
from probeval.api.plan import plan
from probeval.api.pools import pool_study
from probeval.api.predict import predict
from probeval.api.report import report
from probeval.api.reuse import Reuse, reuse, reuse_study
from probeval.api.simulate import simulate
from probeval.api.studies import dstudy, gstudy

__all__ = [
    "Evaluation",
    "Evidence",
    "Gate",
    "NextPairs",
    "Reuse",
    "SystemComparisons",
    "aggregate",
    "agree",
    "as_collection",
    "compare",
    "convert",
    "dstudy",
    "evaluate",
    "examine",
    "fit",
    "gate",
    "gstudy",
    "label",
    "meta_study",
    "next_pairs",
    "partition",
    "persistence",
    "plan",
    "pool_study",
    "predict",
    "report",
    "reuse",
    "reuse_study",
    "select_model",
    "simulate",
]
