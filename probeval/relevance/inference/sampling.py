r"""Draws around the centres of Laplace's method.

Campaign first, then each query given the campaign, by Matheron's rule: with :math:`x_0` a draw of the query's local
parameters from their prior, and :math:`\epsilon` noise whose precision is the information :math:`H` of the judgments,

.. math:: x = \hat x - L C\,\delta g + x_0 - K (K + H^{-1})^{-1} (x_0 + \epsilon)

is one from their posterior. It is computed in effects, which move by :math:`\sigma^2 F' w`, so that pairs without
judgment follow. Draws are centred: with :math:`z_i` standard normal, :math:`\sqrt{n/(n-1)}\,(z_i - \bar z)` has mean 0
whatever the seed. Effects are linear in them, so that means over draws are exact to first order, and two seeds agree.
See Wilson et al. (2021) and docs/theory/hierarchical.md#matheron.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.data.pool import QueryBlock
from probeval.relevance.inference.blocks import Arrow, JudgedPairs, LocalPosterior
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.newton import Mode
from probeval.relevance.inference.posterior import Draws
from probeval.streams import query_streams

__all__ = ["LaplaceDraws"]


@dataclass(frozen=True, eq=False)
class LaplaceDraws(Draws):
    """Draws around several centres, stored by centre and returned in random order.

    Parameters
    ----------
    problems, modes
        The judged pairs with their prior, and the centres.
    parts
        The draws of each centre.
    moved
        The campaign's parameters less their centre, shape (parameter, draw).
    order
        The order in which draws are returned, shape (draw,).
    seed
        The seed of the queries' random streams.
    """

    problems: Sequence[JudgedPairs]
    modes: Sequence[Mode]
    parts: Sequence[slice]
    moved: Floats
    order: Ints
    seed: int

    @classmethod
    def of(
        cls, problems: Sequence[JudgedPairs], modes: Sequence[Mode], weights: Floats, n: int, rng: np.random.Generator
    ) -> LaplaceDraws:
        """Return ``n`` draws, in proportion to the weights of the centres."""
        ends = np.round(np.cumsum(weights) * n).astype(int)
        ends[-1] = n
        parts = [slice(int(a), int(b)) for a, b in zip([0, *ends], ends, strict=False)]
        seed = int(rng.integers(2**63))
        moved = _centred(rng.standard_normal((problems[0].layout.size, n)), parts)
        for mode, mine in zip(modes, parts, strict=True):
            moved[:, mine] = solve_triangular(mode.schur.T, moved[:, mine], lower=False)
        return cls(problems, modes, parts, moved, rng.permutation(n), seed)

    def of_campaign(self) -> LaplaceDraws:
        """Return the draws of the campaign's parameters alone, for problems of queries without judgments."""
        return replace(self, problems=(), modes=tuple(mode.of_campaign() for mode in self.modes))

    @property
    def n(self) -> int:
        """The number of draws."""
        return len(self.order)

    @property
    def problem(self) -> JudgedPairs:
        """The judged pairs; all problems have the same."""
        return self.problems[0]

    @property
    def design(self) -> ModelDesign:
        """The campaign."""
        return self.problem.design

    @property
    def log_sd(self) -> Floats:
        """The log standard deviation of each effect at the centre of each draw, shape (n, effect)."""
        return np.array([mode.log_sd for mode in self.modes])[self.centre]

    @property
    def centre(self) -> Ints:
        """The position of the centre of each draw, shape (n,)."""
        return np.repeat(np.arange(len(self.parts)), [part.stop - part.start for part in self.parts])[self.order]

    def campaign(self) -> Mapping[str, Floats]:
        """The campaign's parameters by name, shapes (parameter, n)."""
        out = self.moved.copy()
        for mode, mine in zip(self.modes, self.parts, strict=True):
            out[:, mine] += mode.campaign[:, None]
        out[self.problem.layout["gaps"]] = np.abs(out[self.problem.layout["gaps"]])  # a normal draw can be negative
        return {name: out[where][:, self.order] for name, where in self.problem.layout.blocks.items()}

    def drawn(self, block: QueryBlock) -> tuple[Mapping[str, Floats], Floats | None]:
        """Return the coefficients of a block's queries by effect, and the relevance of its pairs that labels measure.

        Shapes (query, column, draw) and (pair, draw); None without labels.
        """
        effects = [e for e in self.design.effects if e.effect.scope == "query"]
        sizes = [e.columns.n_columns for e in effects]
        # Per query: normals for its effects, for the noise of its judged pairs and of its cutpoint scale, and given
        # labels for its pairs.
        n_judged = self.problem.n_coordinates[block.queries]
        streams = query_streams(self.seed, self.design.positions[block.queries])
        normals = [
            rng.standard_normal((sum(sizes) + judged, self.n))
            for rng, judged in zip(streams, n_judged.tolist(), strict=True)
        ]
        prior = _centred(np.array([z[: sum(sizes)] for z in normals]), self.parts)
        ends = np.cumsum([0, *sizes]).tolist()
        out = {effect.name: prior[:, a:b] for effect, a, b in zip(effects, ends, ends[1:], strict=False)}
        for mode, mine in zip(self.modes, self.parts, strict=True):
            for effect, log_sd in zip(self.design.effects, mode.log_sd, strict=True):
                if effect.name in out:
                    out[effect.name][..., mine] *= np.exp(log_sd)
        fields = self._seen_prior(block, streams)
        for number, stack in enumerate(self.problem.blocks):
            first, after = np.searchsorted(stack.queries, [block.queries.start, block.queries.stop]).tolist()
            if first < after:
                some = slice(first, after)
                at = stack.queries[some] - block.queries.start
                noise = np.zeros((len(at), stack.width, self.n))
                for padded, q in zip(noise, at.tolist(), strict=True):
                    pairs, scales = np.split(normals[q], [sum(sizes), len(normals[q]) - self.problem.scaled])[1:]
                    padded[: len(pairs)], padded[stack.width - len(scales) :] = pairs, scales
                noise = _centred(noise, self.parts)
                for i, mine in enumerate(self.parts):
                    if mine.start < mine.stop:
                        prior_draws = {name: values[at][..., mine] for name, values in out.items()}
                        seen = [fields[q][:, mine] for q in at.tolist()] if fields else []
                        moved = self._given_judgments(i, number, some, prior_draws, seen, noise[..., mine])
                        for name, values in moved.items():
                            out[name][at, :, mine] = values
                        for q, field in zip(at.tolist(), seen, strict=False):
                            fields[q][:, mine] = field
        whole = self._measured(block, np.concatenate(fields)) if fields else None
        return {name: values[..., self.order] for name, values in out.items()}, whole

    def _seen_prior(self, block: QueryBlock, streams: Sequence[np.random.Generator]) -> list[Floats]:
        """Return draws of each query's :math:`x'` from its prior, shapes (pair, draw); empty without labels."""
        if self.problem.measured is None:
            return []
        sizes = self.design.pool.sizes[block.queries]
        normals = [rng.standard_normal((size, self.n)) for size, rng in zip(sizes.tolist(), streams, strict=True)]
        z = _centred(np.concatenate(normals), self.parts)
        for problem, mine in zip(self.problems, self.parts, strict=True):
            if problem.measured is not None and mine.start < mine.stop:
                z[:, mine] = problem.measured.root_times(block, z[:, mine])
        return np.split(z, np.cumsum(sizes)[:-1])

    def _measured(self, block: QueryBlock, field: Floats) -> Floats:
        """Return :math:`m + Bg + x'` of a block's pairs from :math:`x'`, shape (pair, draw)."""
        columns = self.problem.layout.columns
        for problem, mode, mine in zip(self.problems, self.modes, self.parts, strict=True):
            if problem.measured is not None:
                g = mode.campaign[columns, None] + self.moved[columns, mine]
                field[:, mine] += (
                    problem.measured.offset[block.pairs, None] + problem.measured.response(block.pairs) @ g
                )
        return field[:, self.order]

    def _given_judgments(
        self, point: int, number: int, some: slice, prior: Mapping[str, Floats], seen: list[Floats], noise: Floats
    ) -> dict[str, Floats]:
        """Return draws of the effects of some queries, from draws of their prior, shapes (query, column, draw).

        Draws of the relevance ``seen`` by labels, shapes (pair, draw), follow in place.
        """
        problem, mode, mine = self.problems[point], self.modes[point], self.parts[point]
        stack = problem.blocks[number]
        variances = self.design.variances(mode.log_sd)
        known = JudgedInformation.of(problem, mode, number, some, variances)
        factors = {name: factor[some] for name, factor in stack.factors.items()}
        spread = {name: np.full(len(noise), variances[name]) for name in factors}
        drawn = dict(prior)
        if self.design.cutpoint_scale is not None:
            name = self.design.cutpoint_scale.name
            drawn[name] = prior[name] * np.sqrt(known.scale_variance / variances[name])[:, None, None]
            spread[name] = known.scale_variance
        at_judged = np.zeros(noise.shape)
        for name, values in drawn.items():
            at_judged += factors[name] @ values
        queries = stack.queries[some].tolist() if seen else []
        rows = [problem.judged_of(q) - self.design.pool.pairs_of(q).start for q in queries]
        for i, (field, row) in enumerate(zip(seen, rows, strict=True)):
            at_judged[i, : len(row)] += field[row]
        residual = known.arrow.times(at_judged) + known.noise(noise)
        weight = known.weight[..., None] - known.pushed @ self.moved[:, mine]
        weight += known.arrow.times(known.covariance.times(residual)) - residual
        for i, (query, row) in enumerate(zip(queries, rows, strict=True)):
            assert problem.measured is not None
            seen[i] = seen[i] + problem.measured.covariance(query, None, row) @ weight[i, : len(row)]
        return {
            name: values + spread[name][:, None, None] * (factors[name].transpose(0, 2, 1) @ weight)
            for name, values in drawn.items()
        }


@dataclass(frozen=True, eq=False)
class JudgedInformation:
    """The information of judgments on some queries' local parameters, positive definite so that noise can have it.

    The bend of a cutpoint scale is not part of it: it widens the prior instead, which leaves the posterior unchanged.
    """

    arrow: Arrow  # H without the bend
    covariance: LocalPosterior  # L
    pushed: Floats  # K^-1 L C
    weight: Floats  # K^-1 times the centre
    scale_variance: Floats  # of each cutpoint scale's prior, with the bend, shape (query,)

    @classmethod
    def of(
        cls, problem: JudgedPairs, mode: Mode, number: int, some: slice, variances: Mapping[str, float]
    ) -> JudgedInformation:
        """Return the information of some queries of a block."""
        stack, arrow = problem.blocks[number], mode.arrows[number]
        diagonal = arrow.diagonal[some].copy()
        weight = stack.stack(mode.weight)[some].copy()
        scale_variance = np.empty(0)
        if problem.design.cutpoint_scale is not None:
            bend = mode.bend[problem.places[number]][some]
            scale_variance = 1 / (1 / variances[problem.design.cutpoint_scale.name] - bend)
            diagonal[:, -1] += bend
            weight[:, -1] = stack.stack(mode.local)[some, -1] / scale_variance
        whole = Arrow(diagonal, None if arrow.arm is None else arrow.arm[some])
        pushed = stack.stack(mode.cross)[some] - whole.times(stack.stack(mode.followed)[some])
        return cls(whole, mode.covariances[number].take(some), pushed, weight, scale_variance)

    def noise(self, z: Floats) -> Floats:
        r"""Return noise with covariance :math:`H` from standard normals, shape (query, coordinate, draw).

        With :math:`d` the diagonal and :math:`a` the arm, the pairs have :math:`\sqrt{d}\,z`, and the cutpoint scale
        :math:`\sum_i (a_i/\sqrt{d_i})\, z_i` and its own remaining noise.
        """
        root = np.sqrt(self.arrow.diagonal)
        out = root[..., None] * z
        if self.arrow.arm is not None:
            tied = np.divide(self.arrow.arm, root, out=np.zeros_like(root), where=root > 0)
            left = np.sqrt(np.maximum(self.arrow.diagonal[:, -1] - (tied**2).sum(axis=1), 0.0))
            out[:, -1] = np.einsum("qi,qin->qn", tied, z) + left[:, None] * z[:, -1]
        return np.asarray(out)


def _centred(z: Floats, parts: Sequence[slice]) -> Floats:
    """Return normals, shape (.., draw), centred so that those of each part have mean 0."""
    out = z.copy()
    for part in parts:
        n = part.stop - part.start
        if n > 1:
            mine = z[..., part]
            out[..., part] = (mine - mine.mean(axis=-1, keepdims=True)) * np.sqrt(n / (n - 1))
    return out
