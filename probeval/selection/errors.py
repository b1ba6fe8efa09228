r"""The true error of absolute scores, given the stated one: corrections learned from replays of past collections.

A model may state scores as surer than they are. Replays of judged collections show the true error at each stated
standard deviation; a stopping rule on this error needs no trust in the stated one. See docs/theory/judging.md#errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from probeval.arrays import Floats
from probeval.data.files import write_bytes
from probeval.display import Record
from probeval.errors import SelectionError
from probeval.relevance.models.base import FallbackModel, Predicts
from probeval.results import Named, plain
from probeval.scores import Scores

__all__ = [
    "ErrorCorrection",
    "add_corrections",
    "learn_curve",
    "model_kind",
    "published_corrections",
    "read_corrections",
    "stated_sd",
    "write_corrections",
]

FILE = Path(__file__).with_name("errors.json")


def stated_sd(scores: Scores) -> float:
    r"""Return the root of the mean variance of the systems' scores, :math:`\sqrt{\frac1S \sum_a \text{Var}[score_a]}`.

    It is that of Urbano (2013, section 8.4): judging for absolute scores stops when it is small enough.
    """
    return float(np.sqrt(np.maximum(np.diag(scores.covariance), 0.0).mean()))


def model_kind(model: Predicts) -> str:
    """Return the kind of a model: the name of its class, and for a fallback model those of its parts.

    >>> from probeval.relevance import FallbackModel, Uniform
    >>> model_kind(FallbackModel([Uniform()]))
    'Uniform'
    """
    parts = model.models if isinstance(model, FallbackModel) else (model,)
    return "+".join(type(part).__name__ for part in parts)


@dataclass(frozen=True, repr=False)
class ErrorCorrection(Record):
    """The true mean absolute error of scores as a function of the stated standard deviation.

    Examples
    --------
    >>> correction = ErrorCorrection("nDCG@10", "Hierarchical", ("a",), (0.01, 0.02), (0.02, 0.05))
    >>> round(correction.error(0.015), 3), round(correction.sd_for(0.05), 3), correction.error(0.04)
    (0.035, 0.02, 0.1)
    """

    metric: Annotated[str, "The measure."]
    model: Annotated[str, "The kind of model (:func:`model_kind`)."]
    collections: Annotated[tuple[str, ...], "The collections that it was learned from.", Named("campaigns")]
    sd: Annotated[tuple[float, ...], "Stated standard deviations, rising from above 0."]
    errors: Annotated[tuple[float, ...], "The true mean absolute error at each, not falling.", Named("error")]

    def __post_init__(self) -> None:
        x, y = np.array(self.sd), np.array(self.errors)
        rising = x.shape == y.shape and (np.diff(x, prepend=0.0) > 0).all() and (np.diff(y, prepend=0.0) >= 0).all()
        if not len(x) or not rising:
            raise SelectionError(
                f"A correction for {self.metric} needs rising standard deviations from above 0, and as many errors "
                "that do not fall."
            )

    def error(self, sd: float) -> float:
        """Return the true error at a stated standard deviation; in proportion beyond the highest one."""
        if sd >= self.sd[-1]:
            return self.errors[-1] * sd / self.sd[-1]
        return float(np.interp(sd, (0.0, *self.sd), (0.0, *self.errors)))

    def sd_for(self, error: float) -> float:
        """Return the highest stated standard deviation at which the true error is no larger than this."""
        if error >= self.errors[-1]:
            return self.sd[-1] * error / self.errors[-1] if self.errors[-1] else float("inf")
        x, y = np.array([0.0, *self.sd]), np.array([0.0, *self.errors])
        above = int(np.argmax(y > error))
        share = (error - y[above - 1]) / (y[above] - y[above - 1])
        return float(x[above - 1] + share * (x[above] - x[above - 1]))

    def merged(self, other: ErrorCorrection) -> ErrorCorrection:
        """Return the correction from the collections of both, each counting once; those must differ."""
        twice = sorted(set(self.collections) & set(other.collections))
        if twice or (self.metric, self.model) != (other.metric, other.model):
            raise SelectionError(
                f"Corrections are merged for one measure and model, from different campaigns; got {self.metric} by "
                f"{self.model} and {other.metric} by {other.model}{', ' if twice else ''}{', '.join(twice)} in both."
            )
        both = [(np.array(c.sd), np.array(c.errors)) for c in (self, other) for _ in c.collections]
        return ErrorCorrection(self.metric, self.model, (*self.collections, *other.collections), *learn_curve(both))

    @classmethod
    def from_dict(cls, data: Any) -> ErrorCorrection:
        """Build from plain data."""
        try:
            sd, errors = (tuple(float(v) for v in data[name]) for name in ("sd", "error"))
            return cls(data["metric"], data["model"], tuple(data["campaigns"]), sd, errors)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise SelectionError(f"A correction has metric, model, campaigns, sd and error; got {error!r}.") from None


def read_corrections(path: Path) -> tuple[ErrorCorrection, ...]:
    """Read the corrections of a file."""
    try:
        rows = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SelectionError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise SelectionError(f"{path}: not a file of corrections: {error}.") from None
    if not isinstance(rows, list):
        raise SelectionError(f"{path}: a file of corrections is a list, as probeval simulate --learn-errors writes it.")
    return tuple(ErrorCorrection.from_dict(row) for row in rows)


def add_corrections(corrections: Iterable[ErrorCorrection], path: Path) -> tuple[ErrorCorrection, ...]:
    """Add corrections to a file, merged with those that it has; return all."""
    known = {(c.metric, c.model): c for c in (read_corrections(path) if Path(path).exists() else ())}
    for one in corrections:
        at = (one.metric, one.model)
        known[at] = known[at].merged(one) if at in known else one
    write_corrections(known.values(), path)
    return tuple(known.values())


def write_corrections(corrections: Iterable[ErrorCorrection], path: Path) -> None:
    """Write corrections to a file, one per measure and kind of model."""
    text = json.dumps(plain(list(corrections)), indent=1)
    write_bytes(Path(path), (text + "\n").encode())


@cache
def published_corrections() -> tuple[ErrorCorrection, ...]:
    """Return the corrections shipped with probeval, learned from public collections."""
    return read_corrections(FILE)


def learn_curve(
    traces: Iterable[tuple[Floats, Floats]], points: int = 20
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return rising standard deviations and errors from the traces of several replays.

    Each trace is the stated standard deviation and the true mean absolute error after each batch. Errors are
    interpolated at common standard deviations, averaged over the replays that reach them, and made not to fall: where a
    smaller standard deviation had a larger error, the larger one counts.
    """
    known = []
    for sd, error in traces:
        x, y = np.asarray(sd, dtype=float), np.asarray(error, dtype=float)
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        keep = x > 0
        if keep.any():
            known.append((x[keep], y[keep]))
    if not known:
        raise SelectionError("No replay has an uncertain score: there is nothing to learn errors from.")
    low, high = max(min(x.min() for x, _ in known), 1e-6), max(x.max() for x, _ in known)
    grid = np.geomspace(low, high, points) if high > low else np.array([high])
    at = np.array([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in known])
    reached = ~np.isnan(at).all(axis=0)
    errors = np.maximum.accumulate(np.nanmean(at[:, reached], axis=0))
    return tuple(grid[reached].tolist()), tuple(errors.tolist())
