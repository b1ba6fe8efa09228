"""Effectiveness measures as values, and their kernels over axes (draw, system, query, rank)."""

from probeval.metrics.aggregates import AGGREGATES, aggregate_queries
from probeval.metrics.bands import band_starts, banded, worst_case
from probeval.metrics.bounds import bounds
from probeval.metrics.cascade import EDCG, ERR, INST, RR, Success
from probeval.metrics.classical import Measured, measure
from probeval.metrics.convert import AnyMetric, metric_of
from probeval.metrics.graded import ADR, GAP, Q
from probeval.metrics.linear import CG, DCG, INSQ, RBP, SDCG, P
from probeval.metrics.lists import Lists
from probeval.metrics.metric import REGISTRY, Metric, Parameter, define, parse
from probeval.metrics.ratio import nDCG
from probeval.metrics.recall import AP, Bpref, F, Judged, R, Rprec, SetF, SetP, SetR, infAP
from probeval.metrics.users import PSat, PSucc

__all__ = [
    "ADR",
    "AGGREGATES",
    "AP",
    "CG",
    "DCG",
    "EDCG",
    "ERR",
    "GAP",
    "INSQ",
    "INST",
    "RBP",
    "REGISTRY",
    "RR",
    "SDCG",
    "AnyMetric",
    "Bpref",
    "F",
    "Judged",
    "Lists",
    "Measured",
    "Metric",
    "P",
    "PSat",
    "PSucc",
    "Parameter",
    "Q",
    "R",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "aggregate_queries",
    "band_starts",
    "banded",
    "bounds",
    "define",
    "infAP",
    "measure",
    "metric_of",
    "nDCG",
    "parse",
    "worst_case",
]
