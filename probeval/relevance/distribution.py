"""P(grade) of every pair: what a model says, with the judged pairs certain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Codes, Floats, Ints, frozen
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.scale import UNJUDGED, Scale, count_at_least
from probeval.errors import ModelError

__all__ = ["RelevanceDistribution"]


@dataclass(frozen=True, eq=False)
class RelevanceDistribution:
    """The distribution of every pair's grade, with or without a posterior axis.

    Parameters
    ----------
    pool, scale
        The pairs, and what grades they can have.
    levels
        The grade, as a position on the scale, that each level stands for, shape (level,).
    probability
        P(level), shape (pair, level), or (draw, pair, level) where the model's parameters are uncertain: given one
        draw, pairs are independent; over draws they hang together.
    judged
        The grade of a judged pair, which is certain whatever the model says, negative elsewhere, shape (pair,).
    beyond
        The number of judged pairs of each query that no system retrieved, with at least each grade, shape (query,
        grade): they count in the ideal list.

    Examples
    --------
    >>> from probeval.data import Pool, Scale
    >>> pool, scale = Pool.of(["q"], ["d"]), Scale.graded(2)
    >>> uniform = RelevanceDistribution.of(pool, scale, np.full((1, 3), 1 / 3))
    >>> [float(m[0]) for m in uniform.moments(scale.gains)]
    [1.0, 0.6666...]
    """

    pool: Pool
    scale: Scale
    levels: Codes
    probability: Floats
    judged: Codes
    beyond: Ints

    @classmethod
    def of(
        cls,
        pool: Pool,
        scale: Scale,
        probability: Floats,
        *,
        levels: Codes | None = None,
        judgments: Judgments | None = None,
    ) -> RelevanceDistribution:
        """A model's probabilities, with the judged pairs certain."""
        unjudged = np.full(len(pool), UNJUDGED, dtype=np.int16)
        beyond = np.zeros((len(pool.queries), len(scale)), dtype=np.int64)
        blank = cls(pool, scale, scale.levels if levels is None else levels, probability, unjudged, beyond)
        return blank if judgments is None else blank.with_judgments(judgments)

    def __post_init__(self) -> None:
        if self.probability.shape[-2:] != (len(self.pool), len(self.levels)):
            raise ModelError(
                f"{len(self.pool)} pairs and {len(self.levels)} levels need as many probabilities, "
                f"got shape {self.probability.shape}."
            )
        for name in ("levels", "probability", "judged", "beyond"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __repr__(self) -> str:
        draws = f", {len(self.probability)} posterior draws" if self.has_posterior else ""
        judged = int(self.certain.sum())
        return f"<RelevanceDistribution: {len(self.pool):,} pairs, {judged:,} judged, {self.scale}{draws}>"

    @property
    def has_posterior(self) -> bool:
        """Whether there is a posterior axis."""
        return self.probability.ndim == 3

    @property
    def certain(self) -> Bools:
        """The judged pairs, shape (pair,)."""
        return self.judged >= 0

    def with_judgments(self, judgments: Judgments) -> RelevanceDistribution:
        """The same distribution with these pairs certain."""
        codes = judgments.on(self.pool).codes(self.scale)
        inside = judgments.pool.within(self.pool) >= 0
        query = self.pool.query_positions(judgments.pool.queries)[judgments.pool.query]
        outside = np.where(inside | (query < 0), UNJUDGED, judgments.codes(self.scale)).astype(np.int16)
        beyond = count_at_least(outside, np.maximum(query, 0), len(self.pool.queries), len(self.scale))
        return replace(self, judged=np.where(codes >= 0, codes, UNJUDGED).astype(np.int16), beyond=beyond)

    def moments(self, gains: Floats) -> tuple[Floats, Floats]:
        """The mean and variance of every pair's gain, given the gain of each grade. [rel-moments]

        With a posterior, the mean under each draw of the parameters, shape (draw, pair), and the variance given the
        parameters in the mean over them, shape (pair,).
        """
        value = gains[self.levels]
        mean, known = self.probability @ value, self.certain
        overall = self.probability.mean(axis=0) if self.has_posterior else self.probability
        square = np.einsum("td,td->d", mean, mean) / len(mean) if self.has_posterior else mean**2
        variance = np.maximum(overall @ value**2 - square, 0.0)
        variance[known] = 0.0
        mean[..., known] = gains[self.judged[known]]
        return mean, variance

    def sample(self, n: int, rng: np.random.Generator, *, start: int = 0) -> Codes:
        """Joint draws of all grades as positions on the scale, shape (n, pair).

        With a posterior, each draw of grades has its own draw of the parameters, taken in turn from ``start`` on.
        """
        out = np.empty((n, len(self.pool)), dtype=np.int16)
        running = np.cumsum(self.probability, axis=-1)[..., :-1]
        for i in range(n):
            below = running[(start + i) % len(running)] if self.has_posterior else running
            level = (rng.random(len(self.pool))[:, None] > below).sum(axis=-1)
            out[i] = self.levels[level]
        out[:, self.certain] = self.judged[self.certain]
        return out

    def take(self, pairs: Ints) -> RelevanceDistribution:
        """Some of the pairs, in the order of the pool, with what is judged beyond them left out."""
        kept = np.zeros(len(self.pool), dtype=bool)
        kept[pairs] = True
        pool = self.pool.take(kept)
        beyond = np.zeros((len(pool.queries), len(self.scale)), dtype=np.int64)
        return replace(
            self, pool=pool, probability=self.probability[..., kept, :], judged=self.judged[kept], beyond=beyond
        )

    def to_pandas(self) -> pd.DataFrame:
        """A table: query, doc, judged, mean, sd, and P of each level (averaged over the posterior)."""
        mean, variance = self.moments(self.scale.values)
        if self.has_posterior:
            mean, variance = mean.mean(axis=0), variance + mean.var(axis=0)
        probability = self.probability.mean(axis=0) if self.has_posterior else self.probability
        table = self.pool.to_pandas().assign(judged=self.certain, mean=mean, sd=np.sqrt(variance))
        columns = {f"p{self.scale.values[c]:g}": probability[:, i] for i, c in enumerate(self.levels)}
        return table.assign(**columns)
