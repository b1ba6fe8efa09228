"""Labels of any number of queries as information: on the campaign's parameters, and on each query's relevance.

Labels of a query tell of no other query but through the campaign's parameters, so the information on these is a sum
over queries (:class:`LabelSums`), in any order and in any parts. See docs/theory/observers.md#measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import Family
from probeval.relevance.observers.levels import MISSING, Stacks
from probeval.relevance.observers.prior import PAIR, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC, Hypothesis, Worth, n_systems

__all__ = [
    "CampaignPrior",
    "LabelSums",
    "QueryLabels",
    "campaign_prior",
    "family_block",
    "measure_queries",
    "pair_scale",
]

LEVEL = Normal(0.0, 3.0)  # the level of a family's labels, in their sds: wide enough to say nothing
SUSPECTED = Normal(0.0, 0.5)  # a suspected bias, if there is one, in sds of the labels; stated
LIKING = 0.02  # the least sd of a family's own slope on a term, so that a weak family has a finite precision


def pair_scale(priors: ObserverPriors) -> float:
    """Return the factor of all logits once the pairs' own seen effects are no longer part of the noise."""
    # Logistic noise has the variance pi^2/3 by definition. If only the share 1 - rho of what is particular to a pair is
    # noise, logits are a smaller unit: all are larger by 1/sqrt(1 - rho) (docs/theory/observers.md#pair-scale).
    return float(1 / np.sqrt(1 - priors.share(PAIR)))


def family_block(family: Family, part: str) -> str:
    """Return the name of a block of a family's parameters: ``level``, ``terms``, or an effect of the campaign."""
    return f"{family.name}: {part}"


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Sums over queries of the information of each family's labels, in the basis of :class:`Basis`; one per family."""

    products: tuple[Floats, ...]  # sum_q [F T]'V^-1 [F T]
    right: tuple[Floats, ...]  # sum_q [F T]'V^-1 (y - lambda m)

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            tuple(a + b for a, b in zip(self.products, other.products, strict=True)),
            tuple(a + b for a, b in zip(self.right, other.right, strict=True)),
        )


@dataclass(frozen=True, eq=False)
class CampaignPrior:
    """The prior of the campaign's parameters given labels: mean and precision, shapes (parameter,) and square."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True, eq=False)
class QueryLabels:
    """What labels tell of the relevance of some queries at one setting of their worth; names as in MeasuredPrior."""

    sums: LabelSums
    offset: Floats
    basis: Floats
    directions: Floats
    stacks: tuple[SeenStack, ...]
    queries: tuple[Ints, ...]

    def prior(self, campaign: CampaignPrior, weight: float) -> MeasuredPrior:
        """Return the prior of the campaign's parameters and of these queries' relevance."""
        return MeasuredPrior(
            weight,
            campaign.mean,
            campaign.precision,
            self.offset,
            self.basis,
            self.directions,
            self.stacks,
            self.queries,
        )


def measure_queries(
    stacks: Stacks,
    reference: ModelDesign,
    priors: ObserverPriors,
    found: Sequence[Family],
    worth: Worth,
    *,
    sums_only: bool = False,
) -> QueryLabels:
    """Return what the labels of all families tell of some queries, at one setting of their worth.

    With ``sums_only``, only the sums are computed: the relevance of queries is left out.
    """
    layout, scale = Layout.of(reference), pair_scale(priors)
    slopes = [slope / scale for slope in worth.slopes]  # per logit in the smaller unit
    every = np.concatenate([stacks.with_level, *(f.suspects for f in found if f.suspects is not None)], axis=1)
    basis = _basis(stacks, layout, found, slopes, every.shape[1])
    n_pairs = 0 if sums_only else len(reference.pool)
    offset, response = np.zeros(n_pairs), np.zeros((n_pairs, basis.width))
    seen, queries = [], []
    last = len(found) - 1
    for stack in stacks.stacks:
        # K before labels: the share rho_k of the variance of each effect within the query, and of the pairs' own.
        own_variance = np.full(stack.pairs.shape, priors.share(PAIR) * LOGISTIC * scale**2)
        k = stack.covariances(own_variance, {n: np.sqrt(priors.share(n)) * worth.sds[n] * scale for n in stack.factors})
        rows = every[stack.pairs]
        # x = m + T C g + x', at first with m = 0 and no columns of T.
        m, t = np.zeros(stack.pairs.shape), rows[:, :, :0]
        for i, (family, slope, own) in enumerate(zip(found, slopes, worth.own, strict=True)):
            extra = family.extra[stack.pairs]
            noise = own[PAIR] ** 2 + np.where(np.isfinite(extra), extra, MISSING)
            labels = k.observed(slope, noise, stack.factor(own))  # V = lambda^2 K + E
            # y - lambda m = Ag + lambda x' + epsilon, with A = [F T] [M; lambda C]: the information on g is A'V^-1 A.
            a = np.concatenate([rows, t], axis=2)
            residual = family.scores[stack.pairs] - slope * m
            basis.add(i, a, labels.covariances.inverse.times(a), residual)
            if sums_only and i == last:
                break
            # With the gain lambda K V^-1: m <- m + gain (y - lambda m), T <- [T - lambda gain T, -gain F], and
            # K <- K - lambda^2 K V^-1 K, which is the prior for the next family (docs/theory/observers.md#measured).
            m = m + labels.gain_times(residual[..., None])[..., 0]
            moved = labels.gain_times(a)
            width = rows.shape[2]
            t = np.concatenate([t - slope * moved[:, :, width:], -moved[:, :, :width]], axis=2)
            k = labels.posterior(last=i == last)
        if not sums_only:
            offset[stack.pairs], response[stack.pairs] = m, t
            seen.append(SeenStack(stack.pairs, k))
            queries.append(reference.pool.query[stack.pairs[:, 0]])
    return QueryLabels(basis.sums, offset, response, basis.response, tuple(seen), tuple(queries))


def campaign_prior(
    stacks: Stacks,
    reference: ModelDesign,
    priors: ObserverPriors,
    found: Sequence[Family],
    worth: Worth,
    sums: LabelSums,
    direction: Floats,
) -> CampaignPrior:
    """Return the prior of the campaign's parameters given the labels of all queries, by their sums.

    The queries of ``stacks`` and ``reference`` may be any: only the layout and the priors are taken from them.
    ``direction`` is the joint slope on the terms (:func:`probeval.relevance.observers.worth.joint_slope`).
    """
    layout, scale = Layout.of(reference), pair_scale(priors)
    mean, precision = np.zeros(layout.size), np.zeros(layout.size)
    for where, known in ((layout.cuts, reference.cuts), (layout["coefficients"], reference.coefficients)):
        mean[where] = [p.mean for p in known]
        precision[where] = [p.sd**-2.0 for p in known]
    for effect in stacks.design.of_campaign:
        precision[layout[effect.name]] = (worth.sds[effect.name] * scale) ** -2.0
    slopes = [slope / scale for slope in worth.slopes]
    information = np.diag(precision)
    right = precision * mean
    together = priors.constants.together * priors.constants.widening(n_systems(stacks.design))
    # Coefficients of correlated terms trade off, but their joint slope is about 1: one more observation of them.
    for row in direction / scale:  # coefficients are larger by the scale, the slope is not
        where = layout["coefficients"]
        information[where, where] += np.outer(row, row) / together**2
        right[where] += row / together**2
    each = zip(found, worth.hypotheses, slopes, worth.own, worth.popularity, strict=True)
    for family, hypothesis, slope, own, liking in each:
        information += _family_prior(stacks, reference, layout, family, hypothesis, slope, own, liking)
    columns = layout.columns
    width = stacks.with_level.shape[1] + sum(0 if f.suspects is None else f.suspects.shape[1] for f in found)
    of_labels, to_labels = _basis(stacks, layout, found, slopes, width).information(sums)
    information[columns, columns] += of_labels
    right[columns] += to_labels
    # Families have the prior mean 0, so they add nothing to the right side but by their labels.
    return CampaignPrior(np.asarray(np.linalg.solve(information, right)), information)


def _basis(stacks: Stacks, layout: Layout, found: Sequence[Family], slopes: Sequence[float], width: int) -> Basis:
    # Columns: level, terms and campaign effects, common to all families, then the suspects of each family in turn.
    sizes = [0 if f.suspects is None else f.suspects.shape[1] for f in found]
    ends = np.cumsum([stacks.with_level.shape[1], *sizes])
    maps = [
        _family_map(stacks, layout, family, slope, slice(int(a), int(b)), width)
        for family, slope, a, b in zip(found, slopes, ends, ends[1:], strict=False)
    ]
    return Basis(maps, slopes)


class Basis:
    r"""The information of labels on the campaign's parameters, in a basis with few columns.

    With :math:`F` the columns of the level, the terms and the campaign's effects, those of a family's labels are
    :math:`F M_i`; relevance given the labels of the families before has the columns :math:`B = T C`, in which :math:`T`
    has one part per family and :math:`C` stacks their :math:`M`. So :math:`A_i = [F\ T]\,[M_i;\ \lambda_i C]`, and
    sums over queries need the products of :math:`[F\ T]` only.
    """

    def __init__(self, maps: Sequence[Floats], slopes: Sequence[float]) -> None:
        self.response = np.concatenate(maps)
        sizes = [len(m) for m in maps]
        self.width = sum(sizes)
        # C for each family: the maps of those before it, whose columns T has.
        befores = [self.response[: sum(sizes[:i])] for i in range(len(maps))]
        self.maps = [np.concatenate([m, s * c]) for m, s, c in zip(maps, slopes, befores, strict=True)]
        self.products = [np.zeros((len(m), len(m))) for m in self.maps]
        self.right = [np.zeros(len(m)) for m in self.maps]

    def add(self, family: int, a: Floats, weighed: Floats, residual: Floats) -> None:
        """Add some queries: their columns, the same weighed by the labels' precision, and the labels."""
        self.products[family] += np.tensordot(a, weighed, axes=([0, 1], [0, 1]))
        self.right[family] += np.tensordot(weighed, residual, axes=([0, 1], [0, 1]))

    @property
    def sums(self) -> LabelSums:
        """The sums over the queries added so far."""
        return LabelSums(tuple(self.products), tuple(self.right))

    def information(self, sums: LabelSums) -> tuple[Floats, Floats]:
        """Return sums over queries in the campaign's parameters, added over families."""
        information = sum(m.T @ products @ m for m, products in zip(self.maps, sums.products, strict=True))
        right = sum(m.T @ r for m, r in zip(self.maps, sums.right, strict=True))
        return np.asarray(information), np.asarray(right)


def _family_map(
    stacks: Stacks, layout: Layout, family: Family, slope: float, suspects: slice, n_columns: int
) -> Floats:
    """Return the map from the campaign's parameters to the coefficients of a family's labels.

    Shape (coefficient, parameter): the coefficients are those of the level, the terms, the campaign's effects and the
    suspects of all families, of which this one has those at ``suspects``; the parameters are those of the layout
    without cutpoints. Relevance counts times the slope.
    """
    first = layout.columns.start
    out = np.zeros((n_columns, layout.size - first))

    def place(rows: slice, block: str, factor: float) -> None:
        where = layout[block]
        out[rows, where.start - first : where.stop - first] += factor * np.eye(where.stop - where.start)

    place(slice(0, 1), family_block(family, "level"), 1.0)
    # A coefficient of the labels is lambda times that of relevance plus the family's own: lambda beta + pi, and
    # lambda a_s + b_s, of which labels alone show the sum.
    for name, where in stacks.columns.items():
        rows = slice(1 + where.start, 1 + where.stop)
        place(rows, "coefficients" if name == "terms" else name, slope)
        place(rows, family_block(family, name), 1.0)
    if family.suspects is not None:
        place(suspects, family_block(family, "suspects"), 1.0)
    return out


def _family_prior(
    stacks: Stacks,
    reference: ModelDesign,
    layout: Layout,
    family: Family,
    hypothesis: Hypothesis,
    slope: float,
    own: Mapping[str, float],
    liking: float,
) -> Floats:
    out = np.zeros((layout.size, layout.size))
    level = layout[family_block(family, "level")].start
    out[level, level] = LEVEL.sd**-2.0
    terms = layout[family_block(family, "terms")]
    # pi = p lambda beta for each term, with the p of the setting. A single term may differ from the common p by as much
    # as p does between observers: pi - p lambda beta ~ N(0, (sd[p] lambda E[beta])^2). The tie is to the unknown beta,
    # so it is a precision of both, not a prior of pi alone.
    for i, coefficient in enumerate(reference.coefficients):
        tie = np.zeros(layout.size)
        tie[terms.start + i], tie[layout["coefficients"].start + i] = 1.0, -liking * slope
        spread = hypothesis.prior.popularity.sd * abs(slope * coefficient.mean)
        out += np.outer(tie, tie) / (spread**2 + LIKING**2)
    for effect in stacks.design.of_campaign:
        where = np.arange(*layout[family_block(family, effect.name)].indices(layout.size))
        out[where, where] = own[effect.name] ** -2.0
    if family.suspects is not None:
        where = np.arange(*layout[family_block(family, "suspects")].indices(layout.size))
        out[where, where] = SUSPECTED.sd**-2.0
    return out
