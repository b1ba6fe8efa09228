"""Mappings from scores to satisfied users, P(Sat | score): the published ones, and fits to new data."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from probeval.arrays import Bools, Floats, Ints
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ProbevalWarning, SatisfactionError, did_you_mean
from probeval.metrics.convert import AnyMetric, metric_of
from probeval.metrics.graded import GAP, Q
from probeval.metrics.linear import CG, DCG, RBP, P
from probeval.metrics.metric import Metric
from probeval.metrics.ratio import nDCG
from probeval.metrics.recall import AP
from probeval.metrics.users_file import is_users_file, read_users_file

__all__ = [
    "SHAPES",
    "SatMapping",
    "fit_mapping",
    "load_mapping",
    "mapping_for",
    "measure_mapped",
    "published_mappings",
    "published_names",
    "tenths",
]

TENTHS = 10
MIDPOINTS = (np.arange(TENTHS) + 0.5) / TENTHS
DEGREE = 6  # of the monotone shape: enough for a curve that is flat at both ends
WEIGHT = 1e5
MOST_USERS = 0.5
EDGE = 1e-9  # scores such as .30000000000000004 - .1 belong to the intended tenth

SHAPES = {
    "cubic": "the cubic nearest to the shares, as published; it may fall, or leave [0, 1]",
    "monotone": "the nearest polynomial of degree 6 that rises and stays in [0, 1]",
}

# The measures of Urbano (2013) are user-oriented: 1 only for a list of top grades. "l" and "e" are the gains. nDCG@5 is
# of Urbano and others (2012); each of their queries had five documents of the top grade.
GAINED = {"CG": CG, "DCG": DCG, "Q": Q(norm="perfect"), "RBP": RBP(norm="perfect")}
MEASURES: dict[Metric, str] = {
    P @ 5: "P@5",
    AP(norm="perfect") @ 5: "AP@5",
    GAP(norm="perfect") @ 5: "GAP@5",
    nDCG(gain="linear") @ 5: "nDCG@5",
    **{metric(gain="linear") @ 5: f"{name}l@5" for name, metric in GAINED.items()},
    **{metric(gain="exp") @ 5: f"{name}e@5" for name, metric in GAINED.items()},
}
# nl4 and nl5 cut Fine into 4 and 5 levels, lmin20 and lmin40 into relevant or not at a threshold.
SCALES = {
    "broad": ("graded:2",),
    "fine": ("fine",),
    "nl4": ("fine:4", "graded:3"),
    "nl5": ("fine:5", "graded:4"),
    "lmin20": ("binary:20", "binary"),
    "lmin40": ("binary:40", "binary"),
}


@dataclass(frozen=True, repr=False)
class SatMapping(Record):
    r"""The probability that a user is satisfied with a list of a given score.

    .. math:: sat(x) = a_0 + a_1 x + a_2 x^2 + a_3 x^3 + \dots

    Parameters
    ----------
    coefficients
        :math:`a_0`, :math:`a_1` and so on: four for a cubic, seven for the monotone shape.
    name
        Measure and scale, such as ``GAP@5/broad``.
    residual
        The root mean square difference from the fitted shares.
    origin
        The source of the users.

    Examples
    --------
    >>> gap = load_mapping("GAP@5/broad")
    >>> round(float(gap(0.32)), 4)
    0.5116
    >>> gap.is_monotone
    True
    """

    coefficients: tuple[float, ...]
    name: str = ""
    residual: float = float("nan")
    origin: str = ""

    def __call__(self, scores: ArrayLike) -> Floats:
        """Return P(Sat) at each score, shape of the scores."""
        x = _normalised(scores)
        return np.asarray(np.polynomial.polynomial.polyval(x, self.coefficients))

    @property
    def _turns(self) -> Floats:
        """The points in (0, 1) with slope 0, and the two ends."""
        slope = np.polynomial.polynomial.polyder(self.coefficients)
        roots = np.polynomial.polynomial.polyroots(np.trim_zeros(slope, "b")) if np.any(slope) else np.empty(0)
        real = np.real(roots[np.abs(np.imag(roots)) < EDGE])
        return np.concatenate([[0.0], np.sort(real[(real > 0) & (real < 1)]), [1.0]])

    @property
    def is_monotone(self) -> bool:
        """Whether a higher score never means fewer satisfied users."""
        return bool(np.all(np.diff(self(self._turns)) >= -EDGE))

    def succeeds(self, scores: ArrayLike) -> Bools:
        """Return whether more than half of the users are satisfied at each score, shape of the scores."""
        return np.asarray(self(scores) > MOST_USERS)

    @property
    def succeeds_from_a_score_on(self) -> bool:
        """Whether a higher score than that of a success is a success too."""
        return bool(np.all(np.diff(self.succeeds(self._turns).astype(int)) >= 0))

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest P(Sat) over all scores."""
        values = self(self._turns)
        return float(values.min()), float(values.max())

    @property
    def distance_from_score(self) -> float:
        """The distance of satisfaction from the score itself: the root mean of (P(Sat | x) - x)^2 over the tenths.

        0 if the score is the share of satisfied users.

        >>> round(load_mapping("CGl@5/broad").distance_from_score, 2)
        0.07
        """
        return float(np.sqrt(np.mean((self(MIDPOINTS) - MIDPOINTS) ** 2)))

    def monotone(self) -> SatMapping:
        """Return the nearest increasing mapping within [0, 1]; this one if it is one already."""
        low, high = self.range
        if self.is_monotone and low >= -EDGE and high <= 1 + EDGE:
            return self
        x = np.linspace(0, 1, 101)
        return SatMapping(_rising(x, self(x)), f"{self.name}/monotone", self.residual, self.origin)


def tenths(scores: ArrayLike) -> Ints:
    """Return the tenth of each score, left-closed and the last one closed: 0 for [0, .1), 9 for [.9, 1]."""
    x = _normalised(scores)
    return np.clip(np.floor(x * TENTHS + EDGE), 0, TENTHS - 1).astype(np.int64)


def _normalised(scores: ArrayLike) -> Floats:
    """Return the scores, which must be from 0 to 1."""
    x = np.asarray(scores, dtype=float)
    outside = x[~((x >= -EDGE) & (x <= 1 + EDGE))]
    if outside.size:
        raise SatisfactionError(
            f"Satisfaction is a function of scores from 0 to 1, got {outside[0]:g}. "
            'Use a measure that is normalised, such as CG@5 or Q(norm="perfect")@5.'
        )
    return x


def fit_mapping(scores: ArrayLike, satisfied: ArrayLike, *, shape: str = "cubic", name: str = "") -> SatMapping:
    """Fit a mapping to the scores of lists and whether a user was satisfied with each.

    The share of satisfied users in each tenth of the score is placed at the middle of the tenth; the mapping is the
    least squares curve through these points: a cubic (Urbano 2013, Eq 4.3), or the monotone shape.

    Parameters
    ----------
    scores, satisfied
        One entry per list shown to a user, shape (list,).
    shape
        One of :data:`SHAPES`.
    name
        The name of the mapping.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(4000)
    >>> mapping = fit_mapping(scores, rng.random(4000) < 0.2 + 0.6 * scores, shape="monotone")
    >>> np.abs(mapping([0, 0.5, 1]) - [0.2, 0.5, 0.8]).max() < 0.05
    np.True_
    """
    if shape not in SHAPES:
        raise SatisfactionError(f"No shape {shape!r}: {', '.join(SHAPES)}.{did_you_mean(shape, SHAPES)}")
    bins, answers = tenths(scores), np.asarray(satisfied, dtype=float)
    n = np.bincount(bins, minlength=TENTHS)
    seen = n > 0
    if seen.sum() < 4:
        raise SatisfactionError(
            f"A mapping needs lists in at least 4 tenths of the score, got {seen.sum()}. Ask about more diverse lists."
        )
    share = np.bincount(bins, answers, minlength=TENTHS)[seen] / n[seen]
    x = MIDPOINTS[seen]
    coefficients = _rising(x, share) if shape == "monotone" else _cubic(x, share)
    residual = float(np.sqrt(np.mean((np.polynomial.polynomial.polyval(x, coefficients) - share) ** 2)))
    mapping = SatMapping(coefficients, name, residual, f"{len(bins):,} lists")
    low, high = mapping.range
    if low < -EDGE or high > 1 + EDGE:
        warnings.warn(
            f"The cubic goes from {low:.3f} to {high:.3f} and is no probability everywhere. Use shape='monotone'.",
            ProbevalWarning,
            stacklevel=2,
        )
    return mapping


def _cubic(x: Floats, y: Floats) -> tuple[float, ...]:
    return tuple(np.linalg.lstsq(np.vander(x, 4, increasing=True), y, rcond=None)[0].tolist())


def _rising(x: Floats, y: Floats) -> tuple[float, ...]:
    r"""Return the least squares polynomial with increasing Bernstein coefficients in [0, 1], which is increasing too.

    .. math:: sat(x) = \sum_k \beta_k \binom{N}{k} x^k (1-x)^{N-k}, \qquad 0 \le \beta_0 \le \dots \le \beta_N \le 1

    The steps from 0 over the coefficients to 1 are not negative and sum to 1, enforced by one row of large weight.
    """
    from scipy.optimize import nnls
    from scipy.special import binom

    k = np.arange(DEGREE + 1)
    # Bernstein's polynomials in powers of x: row k has (-1)^(j-k) C(N, j) C(j, k) for x^j.
    powers = np.where(k >= k[:, None], (-1.0) ** (k - k[:, None]) * binom(DEGREE, k) * binom(k, k[:, None]), 0.0)
    after = np.cumsum(powers[::-1], axis=0)[::-1]  # a step raises all later coefficients
    design = np.vander(x, DEGREE + 1, increasing=True) @ after.T
    rows = np.vstack([np.column_stack([design, np.zeros(len(x))]), np.full(DEGREE + 2, WEIGHT)])
    steps = nnls(rows, np.append(y, WEIGHT))[0]
    return tuple((steps[:-1] / steps.sum() @ after).tolist())


@cache
def published_mappings() -> Mapping[str, SatMapping]:
    """Return the published mappings, by measure and scale: ``GAP@5/broad``.

    Forty are those of Urbano (2013, Tables 4.2 and 4.3), from 2,025 answers about pairs of lists of five music clips.
    That of nDCG@5 is fitted to the 884 answers without preference of Urbano and others (2012).
    """
    text = files("probeval.metrics").joinpath("cubic.csv").read_text(encoding="utf-8")
    return {
        f"{row['measure']}/{row['scale']}": SatMapping(
            (float(row["a0"]), float(row["a1"]), float(row["a2"]), float(row["a3"])),
            f"{row['measure']}/{row['scale']}",
            float(row["residual"]),
            row["origin"],
        )
        for row in csv.DictReader(text.splitlines())
    }


def load_mapping(name: str) -> SatMapping:
    """Return a mapping by its published name, or from a file, for its own measure or as an approximation for another.

    Files are those of :meth:`probeval.studies.UserStudy.save`; their names end in ``.json``.
    """
    if is_users_file(name):
        users = read_users_file(Path(name))
        if users.mapping is None:
            raise SatisfactionError(f"{name}: has no mapping to satisfaction: its answers cover too few scores.")
        return SatMapping(users.mapping.coefficients, users.name, users.mapping.residual, users.origin)
    known = published_mappings()
    if name not in known:
        raise SatisfactionError(f"No published mapping {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def published_names(metric: AnyMetric, scale: Scale) -> list[str]:
    """Return the possible names of a measure on a scale in Urbano (2013), usually none or one."""
    metric = metric_of(metric)
    scales = [name for name, ours in SCALES.items() if str(scale) in ours]
    if "gain" in metric.parameters:
        gain = metric["gain"] or scale.gain
        if not isinstance(gain, str):  # a table of gains
            return []
        metric = metric(gain="linear" if len(scale) == 2 else gain)
    threshold = metric.parameters.get("rel")
    if str(scale) == "fine" and threshold in (20, 40):
        metric, scales = metric(rel=1), [f"lmin{threshold}"]
    return [f"{MEASURES[metric]}/{name}" for name in scales] if metric in MEASURES else []


def measure_mapped(name: str, scale: Scale) -> Metric:
    """Return the measure of a published mapping on a scale, its own or another.

    >>> measure_mapped("DCGe@5/broad", Scale.graded(2)), measure_mapped("P@5/lmin40", Scale.parse("fine"))
    (DCG(gain="exp")@5, P(rel=40)@5)
    """
    measure, _, scaled = name.partition("/")
    metric = next(metric for metric, published in MEASURES.items() if published == measure)
    if str(scale) == "fine" and scaled.startswith("lmin") and "rel" in metric.parameters:
        return metric(rel=int(scaled.removeprefix("lmin")))
    return metric


def mapping_for(metric: AnyMetric, scale: Scale) -> SatMapping:
    """Return the published mapping for a measure on a scale.

    >>> from probeval import Scale
    >>> mapping_for('CG(gain="exp")@5', Scale.graded(2)).name
    'CGe@5/broad'
    """
    found = [name for name in published_names(metric, scale) if name in published_mappings()]
    if len(found) > 1:
        raise SatisfactionError(f"Several mappings fit {metric} on {scale}: {', '.join(found)}. Load one by its name.")
    if not found:
        raise SatisfactionError(
            f"No mapping to satisfaction is published for {metric} on the scale {scale}. "
            "Fit your own to answers of your users, or borrow one by its name, such as DCGl@5/broad."
        )
    return load_mapping(found[0])
