r"""How labels agree with people, over all labelled pairs and not the judged ones alone.

Judged pairs are chosen, and those that are chosen for doubt are the hard ones. What a pair's chance to be chosen
depends on is known to the model: labels, lists, and judgments so far. Given these, whether it was judged tells nothing
of its grade. So the grades of the others are drawn from the posterior, and every figure is computed on all labelled
pairs.

The posterior may be wrong about one labeller, however, so it is recalibrated first: on the judged pairs, each with its
own judgment left out, a stretch of the logits, and a shift that depends on some columns :math:`x`, of which the label
is one,

.. math:: \text{logit}\,P^*(R_d \ge \ell) = e^s\,\text{logit}\,P(R_d \ge \ell) + x_d'(b + b_\ell),

is fitted, and its error, with judged pairs of one query counted as one, is part of the draws.
See docs/theory/observers.md#agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit, logit, ndtr

from probeval.arrays import Bools, Codes, Floats, Ints
from probeval.data.observers import ObserverSpec
from probeval.data.pool import Pool
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.surprise import LeftOut, level_logits
from probeval.results import rows
from probeval.streams import stream

__all__ = [
    "ConfusionCell",
    "GradeDraws",
    "GradePosterior",
    "LabelAgreement",
    "LabelDisagreement",
    "agreement",
    "disagreements",
]

DRAWS = 200  # of all grades: the error of a limit is about a tenth of a standard deviation
ENOUGH = 30  # judged pairs with a label, for a statement on their agreement
MOST_PAIRS = 20_000  # unjudged pairs whose grades are drawn; of more, a random sample stands for all
STRETCH = 0.5  # sd of the logarithm of the stretch of logits; stated, as are the next two
SHIFT = 2.0  # sd of the shift of logits of all pairs, and of those with one label
APART = 2.0  # sd of what the shifts of single levels differ from it
LEAST = 1e-4  # least probability of a level that was given, so that one pair cannot move everything
FEW = 11  # values of a column that are labels of their own
PROBIT = (16 * np.sqrt(3) / (15 * np.pi)) ** 2  # of the normal distribution that is closest to a logistic one
STEPS = 20  # of Newton's method; 4 are typical
SETTLED = 1e-8
UNKNOWN: tuple[float | None, float | None, float | None] = (None, None, None)
NORMAL = 1.96  # of an interval of 95%
NEAR = 1e-6  # least distance of a correlation from 1, or of a share from 0 and 1, on their unbounded scales


@dataclass(frozen=True, eq=False)
class GradePosterior:
    """The posterior of the grades of a pool's pairs, and what it expects of judged pairs without their judgments.

    Parameters
    ----------
    pairs
        Positions in the pool: the judged pairs, then unjudged ones, shape (n,).
    query
        The query of each, shape (n,).
    weight
        The number of pairs that each stands for, shape (n,).
    out
        The judged pairs.
    logits
        The logit of each level or more of the unjudged ones under each draw, shape (draw, unjudged, level - 1).
    values
        The grade of each level, shape (level,).
    """

    pairs: Ints
    query: Ints
    weight: Floats
    out: LeftOut
    logits: Floats
    values: Floats

    @classmethod
    def of(
        cls, relevance: RelevanceDistribution, rng: np.random.Generator, *, draws: int = DRAWS, most: int = MOST_PAIRS
    ) -> GradePosterior:
        """Return the posterior of a pool's pairs, or of a random sample of ``most`` of the unjudged ones."""
        out, pool = LeftOut.of(relevance), relevance.pool
        free = np.flatnonzero(~relevance.certain)
        kept = free if len(free) <= most else np.sort(rng.choice(free, most, replace=False))
        parts = []
        for block in relevance.blocks(relevance.n_draws * len(relevance.levels)):
            inside = slice(*np.searchsorted(kept, [block.pairs.start, block.pairs.stop]))
            if inside.start < inside.stop:
                given = relevance.source.probabilities(block)
                given = given if given.ndim == 3 else given[None]
                parts.append(level_logits(given[:draws, kept[inside] - block.pairs.start]))
        n = (min(relevance.n_draws, draws), 0, len(relevance.levels) - 1)
        pairs = np.concatenate([out.pairs, kept])
        stands = np.ones(len(pairs))
        stands[len(out.pairs) :] = len(free) / max(len(kept), 1)
        logits = np.concatenate(parts, axis=1) if parts else np.empty(n)
        return cls(pairs, pool.query[pairs], stands, out, logits, relevance.scale.values[relevance.levels])

    @property
    def judged(self) -> int:
        """The number of judged pairs."""
        return len(self.out.pairs)

    def draw(self, columns: Floats, rng: np.random.Generator, *, n: int = DRAWS) -> GradeDraws:
        """Return draws of the grades of the pairs that have all columns, the posterior recalibrated by these.

        ``columns`` have shape (pair, column), in the order of the pairs of this posterior, NaN where unknown.
        """
        has: Bools = ~np.isnan(columns).any(axis=1)  # type: ignore[assignment]
        n_judged = int(has[: self.judged].sum())
        judged, free = has[: self.judged], has[self.judged :]
        left, logits = level_logits(self.out.probability[judged]), self.logits[:, free]
        level, x = self.out.level[judged], shift_columns(columns[has])
        centre, covariance = recalibration(left, level, x[:n_judged], self.query[: self.judged][judged])
        root = np.linalg.cholesky(covariance)
        # A shift of logits under each draw moves their mean by less: probabilities average over draws.
        apart = np.sqrt(1 + PROBIT * logits.mean(axis=2).var(axis=0))
        under = np.arange(n) % len(self.logits)
        drawn = np.empty((n, len(x)), dtype=np.int16)
        drawn[:, :n_judged] = level
        for t in range(n):
            stretch, moved = moves(centre + root @ rng.standard_normal(len(centre)), x[n_judged:], logits.shape[2])
            at_least = expit(np.exp(stretch) * logits[under[t]] + moved * apart[:, None])
            at_least = np.minimum.accumulate(at_least, axis=1)
            drawn[t, n_judged:] = (rng.random((len(at_least), 1)) < at_least).sum(axis=1)
        return GradeDraws(has, drawn, self.weight[has], n_judged, self.values)


def shift_columns(columns: Floats) -> Floats:
    """Return the columns on which the shift of logits depends, shape (pair, column).

    A constant, and of each column given its values, if they are few grades, or else the column itself.
    """
    parts = [np.ones(len(columns))]
    for column in columns.T:
        values = np.unique(column)
        if len(values) <= FEW and np.array_equal(values, np.round(values)):
            parts += [(column == value).astype(float) for value in values.tolist()]
        else:
            parts.append((column - column.mean()) / (column.std() or 1.0))
    return np.column_stack(parts)


def recalibration(logits: Floats, level: Ints, x: Floats, query: Ints) -> tuple[Floats, Floats]:
    """Return the logarithm of the stretch of logits and their shift per unit of each column, and their covariance.

    Parameters
    ----------
    logits
        The logit of each level or more of each judged pair, its own judgment left out, shape (n, level - 1).
    level
        The level that it was judged to have, shape (n,).
    x
        The columns, shape (n, column).
    query
        Its query, shape (n,): what is left out of the model is shared within a query.
    """
    k, cuts = x.shape[1], logits.shape[1]
    prior = np.diag([1 / STRETCH**2] + [1 / SHIFT**2] * k + [1 / APART**2] * (k * cuts))
    centre = np.zeros(len(prior))
    slope, information = np.zeros((len(x), len(prior))), prior
    for _ in range(STEPS):
        slope, information = _scores(logits, level, x, centre)
        information = information + prior
        step = np.linalg.solve(information, slope.sum(axis=0) - prior @ centre)
        centre = centre + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < SETTLED:
            break
    inverse = np.linalg.inv(information)
    # The sandwich with queries as clusters: what they share makes a sum of slopes vary more, or less, than its
    # curvature.
    queries, of = np.unique(query, return_inverse=True)
    sums = np.zeros((len(queries), len(prior)))
    np.add.at(sums, of, slope)
    sums -= sums.mean(axis=0) if len(queries) else 0.0
    spread = sums.T @ sums * (len(queries) / max(len(queries) - 1, 1))
    return centre, inverse @ (spread + prior) @ inverse


def moves(parameters: Floats, x: Floats, cuts: int) -> tuple[float, Floats]:
    """Return the logarithm of the stretch, and the shift of each logit of each pair, shape (pair, level - 1)."""
    k = x.shape[1]
    common, apart = parameters[1 : 1 + k], parameters[1 + k :].reshape(k, cuts)
    return float(parameters[0]), np.asarray(x @ (common[:, None] + apart))


def _scores(logits: Floats, level: Ints, x: Floats, parameters: Floats) -> tuple[Floats, Floats]:
    """Return the slope of each pair's log probability in the parameters, and their Fisher information."""
    n, cuts = logits.shape
    stretch, moved = moves(parameters, x, cuts)
    stretched = np.exp(stretch) * logits
    at_least = np.minimum.accumulate(expit(stretched + moved), axis=1)
    steep = at_least * (1 - at_least)
    # The change of P(level or more) in each parameter, shape (pair, level - 1, parameter): stretch, common shift, by
    # level.
    by_level = (x[:, None, :, None] * np.eye(cuts)[None, :, None, :]).reshape(n, cuts, -1)
    of = np.concatenate([stretched[..., None], np.repeat(x[:, None, :], cuts, axis=1), by_level], axis=2)
    change = np.pad(steep[..., None] * of, ((0, 0), (1, 1), (0, 0)))
    change = change[:, :-1] - change[:, 1:]  # of P(level), shape (pair, level, parameter)
    full = np.concatenate([np.ones((n, 1)), at_least, np.zeros((n, 1))], axis=1)
    p = np.maximum(full[:, :-1] - full[:, 1:], LEAST)
    pair = np.arange(n)
    slope = change[pair, level] / p[pair, level][:, None]
    return slope, np.einsum("dlj,dlk->jk", change / p[..., None], change)


@dataclass(frozen=True, eq=False)
class GradeDraws:
    """Draws of the grades of some pairs, judged ones as they were judged.

    Parameters
    ----------
    among
        Which pairs of the posterior these are, shape (all,).
    level
        The level of each under each draw, shape (draw, pair).
    weight
        The number of pairs that each stands for, shape (pair,).
    judged
        How many of them, the first ones, are judged.
    values
        The grade of each level, shape (level,).
    """

    among: Bools
    level: Codes
    weight: Floats
    judged: int
    values: Floats

    def moments(self, labels: Floats) -> Floats:
        """Return the sums of 1, labels and squared labels over the pairs of each level, shape (draw, level, 3)."""
        mine = labels[self.among]
        return self.sums(np.column_stack([np.ones(len(mine)), mine, mine**2]))

    def sums(self, columns: Floats) -> Floats:
        """Return the weighted sums of columns over the pairs of each level, shape (draw, level, column)."""
        weighted = (columns * self.weight[:, None]).astype(np.float32)
        out = np.empty((len(self.level), len(self.values), columns.shape[1]))
        for code in range(len(self.values)):
            out[:, code] = (self.level == code).astype(np.float32) @ weighted
        return out


def correlation_interval(
    posterior: GradePosterior, labels: Floats, rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """Return the correlation of labels and grades over all pairs with a label, and its interval.

    None with too few judged pairs, or without variation. ``labels`` are those of the pool's pairs, NaN where missing.
    """
    given = labels[posterior.pairs]
    if (~np.isnan(given[: posterior.judged])).sum() < ENOUGH:
        return None
    drawn = posterior.draw(given[:, None], rng, n=len(posterior.logits))
    found = interval(correlation(drawn.moments(given), posterior.values), bounded="correlation")
    return None if np.isnan(found[0]) else found


@dataclass(frozen=True)
class ConfusionCell:
    """The pairs of one label and one grade."""

    label: float
    grade: float
    pairs: Annotated[float, "The expected number of labelled pairs, those that are judged included."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float
    judged: Annotated[int, "The number of those that are judged."]


@dataclass(frozen=True)
class LabelAgreement:
    """The agreement of a source of labels with people, over all labelled pairs."""

    source: str
    pairs: Annotated[int, "The number of labelled pairs."]
    judged: Annotated[int, "The number of judged pairs among them."]
    kappa: Annotated[
        float | None,
        "Kappa with quadratic weights, labels and grades as shares of their highest one; null for numbers.",
    ]
    kappa_lower: Annotated[float | None, "The lower end of its 95% interval."]
    kappa_upper: float | None
    equal: Annotated[float | None, "The share of labels that equal the grade; null if their scales differ."]
    equal_lower: Annotated[float | None, "The lower end of its 95% interval."]
    equal_upper: float | None
    correlation: Annotated[float, "The correlation of labels and grades."]
    correlation_lower: Annotated[float, "The lower end of its 95% interval."]
    correlation_upper: float
    confusion: Annotated[tuple[ConfusionCell, ...], "One entry per label and grade; empty for numbers."]

    @property
    def name(self) -> str:
        """Which figure is its agreement: kappa, or the correlation for numbers."""
        return "correlation" if self.kappa is None else "kappa"

    @property
    def value(self) -> tuple[float, float, float]:
        """Its agreement, and the interval."""
        if self.kappa is None or self.kappa_lower is None or self.kappa_upper is None:
            return self.correlation, self.correlation_lower, self.correlation_upper
        return self.kappa, self.kappa_lower, self.kappa_upper

    def against(self, least: float) -> str:
        """Return its agreement in words, and the probability that it is at least this."""
        value, lower, upper = self.value
        return (
            f"{self.source}: {self.name} with the grades {value:.2f} ({lower:.2f} to {upper:.2f}), "
            f"P(at least {least:g}) {self.probability_of(least):.3f}"
        )

    def probability_of(self, least: float) -> float:
        """Return the probability that its agreement is at least this."""
        z, low, high = (float(_fisher_z(np.array(each))) for each in self.value)
        sd = (high - low) / (2 * NORMAL)
        wanted = float(_fisher_z(np.array(least)))
        return float(ndtr((z - wanted) / sd)) if sd else float(z >= wanted)


@dataclass(frozen=True)
class LabelDisagreement:
    """A judged pair on which a label and the grade are far apart."""

    source: str
    query: str
    doc: str
    label: float
    grade: float
    apart: Annotated[
        float,
        "How much higher the label is than the grade, as shares of their highest one; for numbers, in standard "
        "deviations of both.",
    ]
    expected: Annotated[float, "The grade that the model expects without this judgment."]


def agreement(
    posterior: GradePosterior, labels: Floats, observer: ObserverSpec, top: float, *, seed: Sequence[int]
) -> LabelAgreement | None:
    """Return the agreement of a source of labels with people; None with fewer than 30 judged pairs, or equal labels.

    Parameters
    ----------
    posterior
        The posterior of the grades.
    labels, observer
        The labels of the pool's pairs, NaN where missing, and who gave them.
    top
        The highest grade of the scale of the grades.
    seed
        The seed of the draws.
    """
    given = labels[posterior.pairs]
    known = ~np.isnan(given)
    judged = int(known[: posterior.judged].sum())
    if judged < ENOUGH or not np.ptp(given[known]):
        return None
    drawn = posterior.draw(given[:, None], stream(*seed))
    correlated = interval(correlation(drawn.moments(given), posterior.values), bounded="correlation")
    if np.isnan(correlated[0]):
        return None
    kappa, equal = UNKNOWN, UNKNOWN
    if observer.scale != "number":
        kappa = interval(agreement_draws(drawn, given, observer, top), bounded="correlation")
    if observer.levels == len(posterior.values) and top == observer.levels - 1:
        mine = given[drawn.among]
        same = (posterior.values[drawn.level] == mine) @ drawn.weight / drawn.weight.sum()
        equal = interval(np.asarray(same), bounded="share")
    return LabelAgreement(
        source=observer.name,
        pairs=int((~np.isnan(labels)).sum()),
        judged=judged,
        kappa=kappa[0],
        kappa_lower=kappa[1],
        kappa_upper=kappa[2],
        equal=equal[0],
        equal_lower=equal[1],
        equal_upper=equal[2],
        correlation=correlated[0],
        correlation_lower=correlated[1],
        correlation_upper=correlated[2],
        confusion=_confusion(drawn, given, observer),
    )


def _confusion(drawn: GradeDraws, given: Floats, observer: ObserverSpec) -> tuple[ConfusionCell, ...]:
    if observer.levels is None:
        return ()
    mine = given[drawn.among]
    values = np.arange(observer.levels, dtype=float)
    counts = drawn.sums((mine[:, None] == values).astype(float))  # (draw, level, label)
    level, label = drawn.level[0, : drawn.judged].astype(int), mine[: drawn.judged]
    out = []
    for j, value in enumerate(values.tolist()):
        for code, grade in enumerate(drawn.values.tolist()):
            known = int(((level == code) & (label == value)).sum())
            column = counts[:, code, j]
            low, high = np.quantile(column, [0.025, 0.975]).tolist()
            out.append(ConfusionCell(value, grade, float(column.mean()), low, high, known))
    return tuple(out)


def agreement_draws(drawn: GradeDraws, given: Floats, observer: ObserverSpec, top: float) -> Floats:
    """Return draws of the agreement of labels and grades: of kappa, or of the correlation for numbers.

    ``given`` are the labels of the pairs of the posterior. For kappa, grades and labels are shares of their highest
    one.
    """
    if observer.scale == "number":
        return correlation(drawn.moments(given), drawn.values)
    highest = top if observer.levels is None else observer.levels - 1
    return weighted_kappa_draws(drawn.moments(given / highest), drawn.values / top)


def disagreements(
    posterior: GradePosterior, pool: Pool, labels: Floats, observer: ObserverSpec, top: float, *, n: int
) -> tuple[LabelDisagreement, ...]:
    """Return the judged pairs on which the labels of a source and the grades are the furthest apart.

    Parameters
    ----------
    posterior
        The posterior of the grades.
    pool
        The pairs.
    labels, observer
        The labels of the pool's pairs, NaN where missing, and who gave them.
    top
        The highest grade of the scale of the grades.
    n
        The number of pairs to return.
    """
    out = posterior.out
    given, grades = labels[out.pairs], posterior.values[out.level]
    known = np.flatnonzero(~np.isnan(given))
    if len(known) < 2 or not np.ptp(given[known]) or not np.ptp(grades[known]):
        return ()
    if observer.scale == "number":
        x, y = (each[known] - each[known].mean() for each in (given, grades))
        apart = x / x.std() - y / y.std()
    else:
        apart = given[known] / (top if observer.levels is None else observer.levels - 1) - grades[known] / top
    worst = np.lexsort((known, -np.abs(apart)))[:n]
    worst = worst[np.abs(apart[worst]) > 0]
    pairs = [pool.label(int(out.pairs[known[i]])) for i in worst]
    at = known[worst]
    return rows(
        LabelDisagreement,
        source=[observer.name] * len(at),
        query=[query for query, _ in pairs],
        doc=[doc for _, doc in pairs],
        label=given[at],
        grade=grades[at],
        apart=apart[worst],
        expected=out.probability[at] @ posterior.values,
    )


def weighted_kappa_draws(sums: Floats, grades: Floats) -> Floats:
    r"""Return kappa with quadratic weights of each draw, shape (draw,); NaN where neither grades nor labels vary.

    With quadratic weights it is a function of moments,

    .. math:: \kappa = \frac{2\,\text{Cov}(r, y)}{\text{Var}(r) + \text{Var}(y) + (\bar r - \bar y)^2}.

    Parameters
    ----------
    sums
        The sums of 1, :math:`y` and :math:`y^2` over the pairs of each level, shape (draw, level, 3).
    grades
        The grade of each level, on the scale of the labels, shape (level,).
    """
    mean, mean_y, var, var_y, cov = _moments(sums, grades)
    spread = var + var_y + (mean - mean_y) ** 2
    return np.asarray(np.divide(2 * cov, spread, out=np.full(len(cov), np.nan), where=spread > 0))


def correlation(sums: Floats, grades: Floats) -> Floats:
    """Return the correlation of labels and grades of each draw, shape (draw,); NaN where one of them does not vary."""
    _, _, var, var_y, cov = _moments(sums, grades)
    spread = np.sqrt(np.maximum(var * var_y, 0.0))
    return np.asarray(np.divide(cov, spread, out=np.full(len(cov), np.nan), where=spread > 1e-12))


def label_kappa(a: Floats, b: Floats, of_a: ObserverSpec, of_b: ObserverSpec) -> tuple[float | None, float | None]:
    """Return the share of equal labels of two columns, and their kappa; None if their scales differ or nothing varies.

    ``a`` and ``b`` are labels of the same pairs, NaN where missing.
    """
    both = ~np.isnan(a) & ~np.isnan(b)
    if of_a.levels is None or of_a.scale != of_b.scale or not both.any():
        return None, None
    x, y = a[both], b[both]
    spread = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    kappa = None if not spread else float(2 * np.mean((x - x.mean()) * (y - y.mean())) / spread)
    return float(np.mean(x == y)), kappa


def _moments(sums: Floats, grades: Floats) -> tuple[Floats, ...]:
    n = sums[..., 0].sum(axis=1)
    mean, mean_y = sums[..., 0] @ grades / n, sums[..., 1].sum(axis=1) / n
    var = sums[..., 0] @ grades**2 / n - mean**2
    var_y = sums[..., 2].sum(axis=1) / n - mean_y**2
    cov = sums[..., 1] @ grades / n - mean * mean_y
    return mean, mean_y, var, var_y, cov


def interval(draws: Floats, *, bounded: str = "") -> tuple[float, float, float]:
    """Return the mean of draws of a figure and its 95% interval, normal on an unbounded scale.

    ``bounded`` is ``correlation`` for figures between -1 and 1 (Fisher's z), ``share`` for those between 0 and 1 (the
    logit), ``positive`` for those above 0 (the logarithm), or empty.
    """
    if not len(draws) or np.isnan(draws).any():
        return (float("nan"),) * 3
    if not np.ptp(draws):
        return (float(draws[0]),) * 3
    to, back = _SCALES[bounded]
    moved = to(draws)
    middle, half = float(moved.mean()), NORMAL * float(moved.std())
    value, lower, upper = (float(back(np.array(each))) for each in (middle, middle - half, middle + half))
    return value, lower, upper


def _same(x: Floats) -> Floats:
    return x


def _fisher_z(x: Floats) -> Floats:
    return np.asarray(np.arctanh(np.clip(x, NEAR - 1, 1 - NEAR)))


_SCALES: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "": (_same, _same),
    "correlation": (_fisher_z, np.tanh),
    "positive": (np.log, np.exp),
    "share": (lambda x: logit(np.clip(x, NEAR, 1 - NEAR)), expit),
}
