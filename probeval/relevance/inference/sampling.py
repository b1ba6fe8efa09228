r"""Draws around a mode of the hierarchical model: its effects, and what they make of every pair.

The draws are centred: with :math:`z_i` standard normal, :math:`\sqrt{n/(n-1)}\,(z_i - \bar z)` has mean 0 whatever
the seed. Effects are linear in them, so that averages over draws are exact to first order, and two seeds agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.relevance.inference.design import STRETCH, stretched

if TYPE_CHECKING:
    from probeval.relevance.inference.laplace import Mode, Problem

__all__ = ["Effects", "Normals", "draw_effects", "predictors"]


@dataclass(frozen=True, eq=False)
class Effects:
    """Draws of effects, the draw last.

    Parameters
    ----------
    shared
        Of the campaign, shape (effect, draw).
    stretch
        Of every query, shape (query, draw).
    local
        Of every query, by kind, shapes (query, column, draw).
    """

    shared: Floats
    stretch: Floats
    local: Mapping[str, Floats]

    def __getitem__(self, draws: Ints) -> Effects:
        """Some of the draws."""
        local = {kind: values[..., draws] for kind, values in self.local.items()}
        return Effects(self.shared[..., draws], self.stretch[..., draws], local)

    @classmethod
    def joined(cls, parts: Sequence[Effects]) -> Effects:
        """The draws of all parts, one after the other."""
        return cls(
            np.concatenate([p.shared for p in parts], axis=-1),
            np.concatenate([p.stretch for p in parts], axis=-1),
            {kind: np.concatenate([p.local[kind] for p in parts], axis=-1) for kind in parts[0].local},
        )


@dataclass(frozen=True, eq=False)
class Normals:
    """Standard normal draws of all that is uncertain, centred: of each effect, and of each judged pair's noise."""

    effects: Effects
    noise: Floats

    @classmethod
    def of(cls, problem: Problem, n: int, rng: np.random.Generator) -> Normals:
        """So many draws."""

        def draws(*shape: int) -> Floats:
            z = rng.standard_normal((*shape, n))
            return np.asarray((z - z.mean(axis=-1, keepdims=True)) * np.sqrt(n / (n - 1))) if n > 1 else z

        n_queries = len(problem.design.pool.queries)
        shared, stretch = draws(problem.n_effects), draws(n_queries)
        local = {kind: draws(n_queries, f.shape[1]) for kind, f in problem.design.local.items()}
        return cls(Effects(shared, stretch, local), draws(len(problem.pairs)))

    def __getitem__(self, draws: slice) -> Normals:
        """Some of the draws."""
        at = np.arange(self.noise.shape[-1])[draws]
        return Normals(self.effects[at], self.noise[:, draws])


def draw_effects(problem: Problem, mode: Mode, normals: Normals) -> Effects:
    """Draws of the effects around a mode, those of pairs not judged from the prior."""
    z = normals.effects
    moved = solve_triangular(mode.schur.T, z.shared, lower=False)
    effects = mode.effects[:, None] + moved
    sds = dict(zip(problem.kinds, np.exp(mode.log_sd), strict=True))
    stretch = z.stretch * sds.get(STRETCH, 0.0)
    stretch[problem.queries[: problem.stretch.stop - problem.stretch.start]] = effects[problem.stretch]
    local = {kind: values * sds[kind] for kind, values in z.local.items()}
    # Local effects from the prior, set right by what the judged pairs were seen to be: the process with noise of
    # precision D.
    noise = normals.noise * np.sqrt(mode.curve)[:, None]
    shift = mode.weight[:, None] - mode.pushed @ moved
    for block, covariance in zip(problem.blocks, mode.local, strict=True):
        curve = block.stack(mode.curve)[..., None]
        at = np.asarray(sum(f @ local[kind][block.queries] for kind, f in block.factors.items()))
        seen = curve * at + block.stack(noise)
        weight = block.stack(shift) - seen + curve * (covariance @ seen)
        for kind, f in block.factors.items():
            local[kind][block.queries] += sds[kind] ** 2 * (f.transpose(0, 2, 1) @ weight)
    return Effects(np.delete(effects, problem.stretch, axis=0), stretch, local)


def predictors(problem: Problem, effects: Effects) -> tuple[Floats, Floats]:
    """Every pair's linear predictor and every query's cutpoints, shapes (draw, pair) and (draw, query, cut)."""
    design, cut = problem.design, problem.cut
    eta = effects.shared[cut.stop :].T @ design.global_columns.T
    edges = np.searchsorted(design.pool.query, np.arange(len(effects.stretch) + 1))
    for q, (a, b) in enumerate(pairwise(edges)):
        for kind, columns in design.local.items():
            eta[:, a:b] += effects.local[kind][q].T @ columns[a:b].T
    return eta, stretched(effects.shared[0], effects.shared[1 : cut.stop].T, effects.stretch.T)
