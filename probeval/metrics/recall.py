"""Measures that depend on the number of relevant documents: AP, Rprec, R, F, Bpref, infAP, and set measures."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.data.scale import POOLED
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric, Parameter, define
from probeval.metrics.weights import REL, divide

__all__ = ["AP", "Bpref", "F", "Judged", "R", "Rprec", "SetF", "SetP", "SetR", "infAP"]

BETA = Parameter(1, "how much more recall counts than precision", low=0)
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval


def _found(metric: Metric, lists: Lists) -> Ints:
    """Return the number of relevant documents in every list, shape (.., system, query)."""
    return np.asarray(lists.relevant(metric.number("rel")).sum(axis=-1))


def _relevant(metric: Metric, lists: Lists) -> Ints:
    """Return the number of relevant documents of every query, shape (.., 1, query)."""
    return lists.n_relevant(metric.number("rel"))


def score_of_count(metric: Metric, lists: Lists, found: Ints | Floats) -> Floats:
    r"""Return recall or :math:`F_\beta` from the number of relevant documents found; both are linear in it.

    F is written in counts, :math:`(1+\beta^2)\,\text{found} / (\beta^2\,\text{relevant} + \text{retrieved})`, so that
    nothing divides by zero.
    """
    if "beta" not in metric.parameters:
        return divide(found, _relevant(metric, lists))
    beta = metric.number("beta")
    retrieved = lists.retrieved.sum(axis=-1) if metric.cutoff is None else metric.cutoff
    return divide((1 + beta**2) * found, beta**2 * _relevant(metric, lists) + retrieved)


def _by_count(metric: Metric, lists: Lists) -> Floats:
    return score_of_count(metric, lists, _found(metric, lists))


def ap_denominator(metric: Metric, relevant: Ints, depth: int) -> Ints:
    """Return the denominator of AP's sum of precisions, given the number of relevant documents."""
    k = metric.cutoff or depth
    if metric["norm"] == "perfect":
        return np.full_like(relevant, k)
    return np.minimum(k, relevant) if metric["norm"] == "min" else relevant


@define(
    "AP",
    "average precision: the mean, over the relevant documents, of the precision where each is found",
    r"\frac{1}{R}\sum_{i\le k} 1(r_i \ge \ell)\, P@i",
    parameters={
        "rel": REL,
        "norm": Parameter(None, "min: by min(k, R) in place of R; perfect: by k", ("min", "perfect")),
    },
    bounds=lambda metric: "monotone" if metric["norm"] == "perfect" else "precision",
)
def AP(metric: Metric, lists: Lists) -> Floats:
    relevant = lists.relevant(metric.number("rel"))
    precision = np.cumsum(relevant, axis=-1) / np.arange(1, lists.depth + 1)
    return divide((precision * relevant).sum(axis=-1), ap_denominator(metric, _relevant(metric, lists), lists.depth))


@define(
    "Rprec",
    "precision at R, the number of relevant documents",
    r"P@R",
    parameters={"rel": REL},
    cutoff="none",
    bounds=None,
)
def Rprec(metric: Metric, lists: Lists) -> Floats:
    n = _relevant(metric, lists)
    running: Ints = np.cumsum(lists.relevant(metric.number("rel")), axis=-1)
    at = np.broadcast_to(np.clip(n, 1, max(lists.depth, 1)) - 1, running.shape[:-1])
    return divide(np.take_along_axis(running, at[..., None], axis=-1)[..., 0], n)


R = define(
    "R",
    "recall: the share of the relevant documents that are among the first k",
    r"\frac{1}{R}\sum_{i\le k} 1(r_i \ge \ell)",
    parameters={"rel": REL},
    cutoff="required",
    bounds="found",
)(_by_count)


F = define(
    "F",
    "the weighted harmonic mean of precision and recall at k",
    r"\frac{(1+\beta^2)\, P@k\; R@k}{\beta^2\, P@k + R@k}",
    parameters={"beta": BETA, "rel": REL},
    cutoff="required",
    bounds="found",
)(_by_count)


@define(
    "SetP",
    "precision of the whole list as a set",
    r"\frac{|\text{retrieved} \cap \text{relevant}|}{|\text{retrieved}|}",
    parameters={"rel": REL},
    cutoff="none",
)
def SetP(metric: Metric, lists: Lists) -> Floats:
    return divide(_found(metric, lists), lists.retrieved.sum(axis=-1))


SetR = define(
    "SetR",
    "recall of the whole list as a set",
    r"\frac{|\text{retrieved} \cap \text{relevant}|}{|\text{relevant}|}",
    parameters={"rel": REL},
    cutoff="none",
    bounds="found",
)(_by_count)


SetF = define(
    "SetF",
    "the weighted harmonic mean of the precision and recall of the whole list",
    r"\frac{(1+\beta^2)\, P R}{\beta^2 P + R}",
    parameters={"beta": BETA, "rel": REL},
    cutoff="none",
    bounds="found",
)(_by_count)


@define(
    "Bpref",
    "of the judged non-relevant documents (the first R), the share below each relevant one; the unjudged are skipped",
    r"\frac{1}{R}\sum_{r} \Big(1 - \frac{\min(n_r, R)}{\min(N, R)}\Big)",
    parameters={"rel": REL},
    cutoff="none",
    bounds=None,
)
def Bpref(metric: Metric, lists: Lists) -> Floats:
    relevant = lists.relevant(metric.number("rel"))
    above = np.cumsum(lists.judged_docs & ~relevant, axis=-1)
    n = _relevant(metric, lists)
    other = lists.n_relevant(-np.inf) - n
    share = 1 - divide(np.minimum(above, n[..., None]), np.minimum(other, n)[..., None])
    return divide((share * relevant).sum(axis=-1), n)


@define(
    "infAP",
    "average precision inferred from a judged sample of the pool (grade -1: pooled, not judged)",
    r"\frac{1}{R}\sum_{r} \Big(\frac1i + \frac{i-1}{i}\,\frac{|\text{pooled above}|}{i-1}\,"
    r"\frac{|\text{relevant above}|+\epsilon}{|\text{judged above}|+2\epsilon}\Big)",
    parameters={"rel": REL},
    cutoff="none",
    bounds=None,
)
def infAP(metric: Metric, lists: Lists) -> Floats:
    relevant = lists.relevant(metric.number("rel"))
    rank = np.arange(1.0, lists.depth + 1)
    rel_above: Ints = np.cumsum(relevant, axis=-1) - relevant
    judged_above: Ints = np.cumsum(lists.judged_docs, axis=-1) - lists.judged_docs
    drawn = lists.codes == POOLED
    pooled_above = judged_above + np.cumsum(drawn, axis=-1) - drawn
    expected = 1 / rank + pooled_above / rank * (rel_above + EPSILON) / (judged_above + 2 * EPSILON)
    return divide((expected * relevant).sum(axis=-1), _relevant(metric, lists))


@define(
    "Judged",
    "the share of the retrieved documents (the first k) that are judged",
    r"\frac{|\text{judged}|}{|\text{retrieved}|}",
    bounds=None,
)
def Judged(metric: Metric, lists: Lists) -> Floats:
    return divide(lists.judged_docs.sum(axis=-1), lists.retrieved.sum(axis=-1))
