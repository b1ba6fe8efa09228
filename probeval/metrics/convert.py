"""Measures in any accepted form: a name, a measure of this package, or one of ir_measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from probeval.errors import MetricError
from probeval.metrics.metric import Metric, Value, parse

__all__ = ["AnyMetric", "IrMeasure", "metric_of"]


@runtime_checkable
class IrMeasure(Protocol):
    """A measure of ir_measures, such as its ``nDCG@10``: a name, and the parameters that were given."""

    NAME: Any
    params: Any
    SUPPORTED_PARAMS: Any


AnyMetric = Metric | str | IrMeasure

# The measures that both packages have, with the parameters that mean the same in both.
SHARED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AP": ("rel",),
        "Bpref": ("rel",),
        "ERR": (),
        "Judged": (),
        "P": ("rel",),
        "R": ("rel",),
        "RBP": ("p", "rel"),
        "RR": ("rel",),
        "Rprec": ("rel",),
        "SetF": ("rel",),
        "SetP": ("rel",),
        "SetR": ("rel",),
        "Success": ("rel",),
        "infAP": ("rel",),
        "nDCG": (),
    }
)
GDEVAL = 4  # the top grade in ERR of ir_measures, which is gdeval's
DCG: Mapping[str, Mapping[str, Value]] = MappingProxyType({"log2": {}, "exp-log2": {"gain": "exp"}})


def metric_of(given: AnyMetric) -> Metric:
    """Return the measure of this package that a name, a measure or a measure of ir_measures stands for.

    A measure of ir_measures that differs from every measure here is an error: its score would not be the same.

    Examples
    --------
    >>> from ir_measures import AP, ERR, nDCG
    >>> metric_of(nDCG(dcg="exp-log2") @ 10), metric_of(AP(rel=2) @ 100), metric_of(ERR @ 20), metric_of("P@5")
    (nDCG(gain="exp")@10, AP(rel=2)@100, ERR(max=4)@20, P@5)
    >>> metric_of(nDCG(judged_only=True) @ 10)
    Traceback (most recent call last):
    probeval.errors.MetricError: ir_measures' nDCG(judged_only=True)@10: probeval's nDCG has no judged_only=True.
    """
    if isinstance(given, Metric):
        return given
    if isinstance(given, str):
        return parse(given)
    if not isinstance(given, IrMeasure):
        raise MetricError(
            f"A metric is a name such as 'nDCG@10', or a measure of probeval or ir_measures; got {given!r}."
        )
    return _from_ir_measures(given)


def _from_ir_measures(measure: IrMeasure) -> Metric:
    """Return the counterpart of a measure of ir_measures."""
    name = str(measure.NAME)
    if name not in SHARED:
        raise MetricError(
            f"ir_measures' {measure} is not a measure of probeval. In both are {', '.join(sorted(SHARED))}."
        )
    given = {key: value for key, value in measure.params.items() if value != measure.SUPPORTED_PARAMS[key].default}
    cutoff = given.pop("cutoff", None)
    translated: dict[str, Value] = {"max": GDEVAL} if name == "ERR" else {}
    for key, value in given.items():
        if key in SHARED[name]:
            translated[key] = value
        elif key == "dcg" and value in DCG:
            translated |= DCG[value]
        elif name == "SetF" and key == "beta":
            translated[key] = math.sqrt(value)  # trec_eval's beta is the square of the usual one
        else:
            raise MetricError(f"ir_measures' {measure}: probeval's {name} has no {key}={value!r}.")
    return Metric(name, cutoff, translated)
