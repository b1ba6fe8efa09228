"""Weighted sums of gains: P, CG, DCG, SDCG, RBP, INSQ.

A linear measure has rank weights and gains of grades; ``norm`` sets the denominator of their weighted sum.
See docs/theory/measures.md#lin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.arrays import Floats
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric, Parameter, define
from probeval.metrics.ratio import bounded_by_norm, weighted_sum
from probeval.metrics.weights import (
    BASE,
    BINARY,
    DISCOUNT,
    GAIN,
    NORM,
    REL,
    WANTED,
    discount,
    even,
    graded_gains,
    inverse_square,
    persistence,
)

__all__ = ["CG", "DCG", "INSQ", "RBP", "SDCG", "P"]


def endless(metric: Metric, lists: Lists) -> Floats:
    """Return the score if every unjudged document, also past the end, had the top grade: score plus residual."""
    full = np.where(lists.codes < 0, np.int16(len(lists.scale) - 1), lists.codes)
    tail = 1 - float(metric.rank_weights(lists.depth).sum()) if metric.gains(lists.scale)[-1] > 0 else 0.0
    return weighted_sum(metric, replace(lists, codes=full)) + tail


P = define(
    "P",
    "precision: the share of the first k documents that are relevant",
    r"\frac{1}{k}\sum_{i\le k} 1(r_i \ge \ell)",
    parameters={"rel": REL},
    cutoff="required",
    rank_weights=lambda metric, depth: np.full(depth, 1 / (metric.cutoff or 1)),
    gains=graded_gains,
)(weighted_sum)

CG = define(
    "CG",
    "cumulative gain",
    r"\sum_{i\le k} g(r_i) \,\big/\, k\, g_{\max}",
    parameters={"gain": GAIN, "norm": NORM},
    rank_weights=even,
    gains=graded_gains,
    bounds=bounded_by_norm,
)(weighted_sum)

DCG = define(
    "DCG",
    'discounted cumulative gain, over that of a list of top grades (norm="none" for the raw sum)',
    r"\sum_{i\le k} \frac{g(r_i)}{\log_2(i+1)} \,\Big/\, \sum_{i\le k} \frac{g_{\max}}{\log_2(i+1)}",
    parameters={"gain": GAIN, "discount": DISCOUNT, "base": BASE, "norm": NORM},
    rank_weights=discount,
    gains=graded_gains,
    bounds=bounded_by_norm,
)(weighted_sum)

SDCG = define(
    "SDCG",
    "scaled DCG: DCG@k of gains in [0, 1] over the sum of the discounts",
    r"\sum_{i\le k} \frac{g(r_i)}{g_{\max}\log_2(i+1)} \,\Big/\, \sum_{i\le k} \frac{1}{\log_2(i+1)}",
    parameters={
        "gain": GAIN,
        "discount": DISCOUNT,
        "base": BASE,
        "norm": Parameter("perfect", "by a list of top grades", ("perfect",)),
    },
    cutoff="required",
    rank_weights=discount,
    gains=graded_gains,
)(weighted_sum)

RBP = define(
    "RBP",
    "rank-biased precision of a user who goes on with probability p; its upper bound is score plus residual",
    r"(1-p)\sum_i \frac{g(r_i)}{g_{\max}}\, p^{i-1}",
    parameters={
        "p": Parameter(0.8, "the probability of looking at the next document", low=0, high=1, always=True),
        "rel": BINARY,
        "gain": GAIN,
        "norm": Parameter(
            None, "perfect: by a list of top grades; ideal: by the query's best list", ("perfect", "ideal")
        ),
    },
    rank_weights=persistence,
    gains=graded_gains,
    ceiling=endless,
    bounds=bounded_by_norm,
)(weighted_sum)

INSQ = define(
    "INSQ",
    "inverse squares: a user who wants T relevant documents and grows more patient with depth",
    r"\sum_i \frac{g(r_i)}{g_{\max}} \frac{1}{\psi_1(2T)\,(i+2T-1)^2}",
    parameters={"T": WANTED, "rel": BINARY, "gain": GAIN},
    rank_weights=inverse_square,
    gains=graded_gains,
    ceiling=endless,
)(weighted_sum)
