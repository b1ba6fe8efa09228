r"""The directions of effects that judged pairs identify, in which NUTS samples them.

The coefficients of an effect within one query enter its pairs as :math:`F b` with :math:`b \sim N(0, \sigma^2 I)`; with
:math:`F = U S V'` that is :math:`\sigma U S z`, as many standard normal :math:`z` as :math:`F` has rank. Effects of the
campaign go the same way, with all pairs as one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.relevance.inference.design import DesignedEffect, ModelDesign

__all__ = ["CAMPAIGN", "Directions", "SampledPairs", "completed"]

FLAT = 1e-9  # a singular value below this share of the largest is none
CAMPAIGN = -1  # the key of the campaign among blocks of queries


class Directions(NamedTuple):
    """The directions of an effect's coefficients that are identified by some judged pairs.

    ``basis`` has orthonormal columns, shape (column, direction); its coordinates begin at ``start`` among all.
    """

    basis: Floats
    start: int

    @property
    def where(self) -> slice:
        """The coordinates."""
        return slice(self.start, self.start + self.basis.shape[1])


@dataclass(frozen=True, eq=False)
class SampledPairs:
    """The judged pairs in their identified directions.

    Parameters
    ----------
    design
        The campaign with the priors of all parts of the model.
    pairs, level
        The judged pairs, and their levels, shape (judged,).
    queries
        The queries with judged pairs. The level of queries, if it is apart, has the last coordinates.
    directions
        For each effect on predictors, the directions of each block: a query's position, or CAMPAIGN.
    coordinate_effect
        The position of each sampled coordinate's effect, shape (coordinate,).
    weight, place
        The contributions of coordinates to each judged pair's logit, and their positions, shape (judged, slot).
    """

    design: ModelDesign
    pairs: Ints
    level: Ints
    queries: Ints
    directions: Mapping[str, Mapping[int, Directions]]
    coordinate_effect: Ints
    weight: Floats
    place: Ints

    @classmethod
    def of(cls, design: ModelDesign, judged: Codes) -> SampledPairs:
        """Return the layout of judged pairs (grades as positions on the scale, negative where unjudged)."""
        pairs = np.flatnonzero(judged >= 0)
        query = design.pool.query[pairs]
        queries = np.unique(query)
        directions: dict[str, dict[int, Directions]] = {}
        coordinate_effect: list[int] = []
        weights, places = [], []
        of_queries = {int(q): np.flatnonzero(query == q) for q in queries}
        for effect in (*design.of_query, *design.of_campaign):
            if effect is level_apart(design):
                continue
            columns = effect.columns.rows(pairs)
            blocks = of_queries if effect.effect.scope == "query" else {CAMPAIGN: np.arange(len(pairs))}
            mine = directions.setdefault(effect.name, {})
            parts = []
            for block, rows in blocks.items():
                basis = _basis(columns[rows])
                mine[block] = Directions(basis, len(coordinate_effect))
                parts.append((rows, columns[rows] @ basis, mine[block].where))
                coordinate_effect += [design.position(effect.name)] * basis.shape[1]
            width = max((scores.shape[1] for _, scores, _ in parts), default=0)
            weight, place = np.zeros((len(pairs), width)), np.full((len(pairs), width), -1)
            for rows, scores, where in parts:
                weight[rows, : scores.shape[1]] = scores
                place[rows, : scores.shape[1]] = np.arange(where.start, where.stop)
            weights.append(weight)
            places.append(place)
        weights.append(np.full((len(pairs), 1), float(level_apart(design) is not None)))
        places.append(len(coordinate_effect) + np.searchsorted(queries, query)[:, None])
        place = np.concatenate(places, axis=1)
        return cls(
            design=design,
            pairs=pairs,
            level=design.scale.level_of(judged)[pairs].astype(np.int64),
            queries=queries,
            directions=directions,
            coordinate_effect=np.array(coordinate_effect, dtype=np.int64),
            weight=np.concatenate(weights, axis=1),
            place=np.where(place < 0, len(coordinate_effect) + len(queries), place),  # the coordinate that is always 0
        )

    @property
    def level_effect(self) -> DesignedEffect | None:
        """The effect that is sampled as its mean and differences from it; see :func:`level_apart`."""
        return level_apart(self.design)

    @property
    def query(self) -> Ints:
        """The position of each judged pair's query among the judged queries, shape (judged,)."""
        return np.searchsorted(self.queries, self.design.pool.query[self.pairs])

    @property
    def sizes(self) -> dict[str, int]:
        """The number of each parameter that may be absent."""
        sizes = {
            "gaps": len(self.design.cuts) - 1,
            "z": len(self.coordinate_effect),
            "cutpoint_scale": len(self.queries),
        }
        if self.design.measured:
            return {**sizes, "relevance": len(self.pairs)}
        return {**sizes, "coefficients": len(self.design.coefficients), "difference": len(self.queries)}


def level_apart(design: ModelDesign) -> DesignedEffect | None:
    """Return the effect that is constant within queries, if its mean is sampled as part of the first cutpoint.

    Given labels it is an effect as any other: the level of grades that labels suggest is of the first cutpoint alone.
    """
    return None if design.measured else design.constant_effect


def completed(normals: Floats, seen: Directions, z: Floats) -> Floats:
    """Return coefficients from the prior, shape (column, n), with sampled coordinates in the identified directions."""
    return np.asarray(normals + seen.basis @ (z[:, seen.where].T - seen.basis.T @ normals))


def _basis(columns: Floats) -> Floats:
    """Return the directions of coefficients that affect some rows, as orthonormal columns, shape (column, direction).

    >>> abs(_basis(np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))).T
    array([[1., 0., 0.]])
    """
    if not columns.size:
        return np.zeros((columns.shape[1], 0))
    _, size, turned = np.linalg.svd(columns, full_matrices=False)
    basis = turned[size > FLAT * max(float(size[0]), FLAT)].T
    return np.asarray(basis * np.where(basis.sum(axis=0) < 0, -1.0, 1.0))
