"""Measures of users who stop when they have found enough: RR, Success, ERR, EDCG, INST."""

from __future__ import annotations

from functools import partial

import numpy as np

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.errors import MetricError
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric, Parameter, define
from probeval.metrics.weights import BINARY, GAIN, REL, WANTED, graded_gains, trigamma

__all__ = ["EDCG", "ERR", "INST", "RR", "Success", "stopping"]


def _ranks(lists: Lists) -> Floats:
    return np.arange(1.0, lists.depth + 1)


@define(
    "RR",
    "reciprocal rank: one over the rank of the first relevant document, 0 without one",
    r"1 / \min\{i : r_i \ge \ell\}",
    parameters={"rel": REL},
)
def RR(metric: Metric, lists: Lists) -> Floats:
    relevant = lists.relevant(metric.number("rel"))
    return np.where(relevant.any(axis=-1), 1 / (relevant.argmax(axis=-1) + 1), 0.0)


@define(
    "Success",
    "whether a relevant document is among the first k",
    r"1(\exists\, i \le k : r_i \ge \ell)",
    parameters={"rel": REL},
    cutoff="required",
)
def Success(metric: Metric, lists: Lists) -> Floats:
    return lists.relevant(metric.number("rel")).any(axis=-1).astype(float)


def stopping(metric: Metric, scale: Scale) -> Floats:
    r"""The probability that a document of each grade satisfies, :math:`g / (g_{\max} + 1)`, shape (grade,)."""
    gains = graded_gains(metric, scale)
    top = metric.parameters.get("max")
    highest = float(gains[-1])
    if top is not None:
        highest = metric.number("max") if metric["gain"] == "linear" else 2 ** metric.number("max") - 1
    if gains[-1] > highest:  # a probability above 1
        raise MetricError(f"{metric}: max must be at least the top grade, {scale.grades[-1]:g}, got {top}.")
    return gains / (highest + 1)


def _cascade(stop: Floats, worth: Floats) -> Floats:
    """Return the expected gain of a user who reads down the list and stops at each rank with probability ``stop``."""
    reach = np.cumprod(1 - stop, axis=-1)
    gained = stop * worth
    return np.asarray(gained[..., 0] + (gained[..., 1:] * reach[..., :-1]).sum(axis=-1))


@define(
    "ERR",
    "expected reciprocal rank at which a user is satisfied (max=4 is gdeval's)",
    r"\sum_{i\le k} \frac{1}{i}\, p_i \prod_{j<i} (1-p_j), \quad p = \frac{g}{g_{\max}+1}",
    parameters={
        "gain": Parameter("exp", "exp (2^grade - 1) or linear (the grade)", ("exp", "linear")),
        "max": Parameter(None, "the top grade; the scale's by default", low=1),
        "norm": Parameter(None, "perfect: by a list of top grades", ("perfect",)),
    },
    gains=graded_gains,
)
def ERR(metric: Metric, lists: Lists) -> Floats:
    stop = stopping(metric, lists.scale)
    score = _cascade(lists.values(stop), 1 / _ranks(lists))
    if metric["norm"] is None:
        return score
    n = metric.cutoff or lists.depth
    return score / _cascade(np.full(n, stop[-1]), 1 / np.arange(1.0, n + 1))


@define(
    "EDCG",
    "expected gain of the document that satisfies, over that of a list of top grades",
    r"\frac{\sum_{i\le k} g(r_i)\, p_i \prod_{j<i} (1-p_j)}{\sum_{i\le k} g_{\max}\, p' (1-p')^{i-1}}",
    parameters={"gain": GAIN},
    gains=graded_gains,
    bounds=None,
)
def EDCG(metric: Metric, lists: Lists) -> Floats:
    stop, gains = stopping(metric, lists.scale), graded_gains(metric, lists.scale)
    n = metric.cutoff or lists.depth
    return _cascade(lists.values(stop), lists.values(gains)) / _cascade(np.full(n, stop[-1]), np.full(n, gains[-1]))


def _inst(metric: Metric, lists: Lists, *, tail_gain: int) -> Floats:
    r"""INST with all gains past the end 0 or 1.

    :math:`C(i) = \left(\frac{i+2T-c_i-1}{i+2T-c_i}\right)^2` with :math:`c_i` the gains up to i,
    :math:`V(i)=\prod_{j<i}C(j)`, score :math:`\sum V g / \sum V`. The tail of V is a sum of inverse
    squares (gains 0) or geometric (gains 1).
    """
    gains = graded_gains(metric, lists.scale)
    gain = lists.values(gains / (gains.max() or 1))
    if tail_gain:
        gain = np.where(lists.codes < 0, 1.0, gain)
    base = _ranks(lists) + 2 * metric.number("T") - np.cumsum(gain, axis=-1)
    go_on = ((base - 1) / base) ** 2
    view = np.concatenate([np.ones_like(go_on[..., :1]), np.cumprod(go_on, axis=-1)[..., :-1]], axis=-1)
    last, end = view[..., -1], base[..., -1]
    geometric = last * go_on[..., -1] / (1 - go_on[..., -1])
    tail = geometric if tail_gain else last * (end - 1) ** 2 * trigamma(end)
    return np.asarray(((view * gain).sum(axis=-1) + tail_gain * tail) / (view.sum(axis=-1) + tail))


INST = define(
    "INST",
    "like INSQ, for a user who grows less patient as the T wanted documents are found",
    r"\frac{\sum_i V_i\, g_i}{\sum_i V_i}, \quad V_i = \prod_{j<i} \Big(\frac{j+T+T_j-1}{j+T+T_j}\Big)^2, "
    r"\quad T_j = T - \sum_{m\le j} g_m",
    parameters={"T": WANTED, "rel": BINARY, "gain": GAIN},
    cutoff="none",
    gains=graded_gains,
    ceiling=partial(_inst, tail_gain=1),
)(partial(_inst, tail_gain=0))
