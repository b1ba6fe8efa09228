"""Distributions of grades: a model's probabilities for unjudged pairs, certainty for judged ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple, Protocol, cast

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Codes, Floats, Ints, frozen
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool, QueryBlock
from probeval.data.problem import Grades
from probeval.data.scale import UNJUDGED, Scale, count_at_least
from probeval.display import Table
from probeval.errors import ModelError
from probeval.relevance.outside import Outside, OutsideStreams, exact_counts
from probeval.results import Result, key
from probeval.streams import query_streams
from probeval.threads import in_order

__all__ = ["GainSummary", "Probabilities", "ProbabilityTable", "RelevanceDistribution"]

KEPT = 24_000_000  # probabilities of a whole pool that are kept (192 MB); more are made by blocks, and dropped
BLOCK = 2_000_000  # numbers that one block may take in any one array: 16 MB, on each core
TINY = 1e-12  # added to probabilities within limits, so that their sum is never zero
FIRST = 20  # pairs in a summary and in a notebook


class Probabilities(Protocol):
    """A source of probabilities: a table, or draws computed on demand."""

    @property
    def n(self) -> int | None:
        """The number of draws of the model's parameters; None for a model without a posterior."""

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return P(level) of a block's pairs, shape (pair, level), or (draw, pair, level) with a posterior."""


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """Probabilities in memory, shape (pair, level) or (draw, pair, level)."""

    values: Floats

    @classmethod
    def of(cls, source: Probabilities, pool: Pool, n_levels: int) -> ProbabilityTable:
        """Return all probabilities of a source, computed block by block."""
        # In memory by level: all uses go through the levels one by one.
        values = np.moveaxis(np.empty((n_levels, *(() if source.n is None else (source.n,)), len(pool))), 0, -1)
        blocks = pool.blocks(max(BLOCK // ((source.n or 1) * n_levels), 1))
        for block, part in zip(blocks, in_order(source.probabilities, blocks), strict=True):
            values[..., block.pairs, :] = part
        return cls(frozen(values))

    @property
    def n(self) -> int | None:
        """The number of draws."""
        return len(self.values) if self.values.ndim == 3 else None

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return the probabilities of a block."""
        return self.values[..., block.pairs, :]


@dataclass(frozen=True, eq=False)
class Bounded:
    """Probabilities of pairs whose grade is known to lie between two grades: none outside them.

    Parameters
    ----------
    source
        The probabilities without these limits.
    allowed
        The levels that each pair may have, shape (pair, level).
    """

    source: Probabilities
    allowed: Bools

    @classmethod
    def of(cls, source: Probabilities, levels: Codes, low: Codes, high: Codes) -> Probabilities:
        """Return the probabilities given the limits, negative for pairs without any; the same source if none has."""
        free = source.source if isinstance(source, Bounded) else source
        if not np.any(high >= 0):
            return free
        allowed = (low[:, None] <= levels) & (levels <= high[:, None])
        none = np.flatnonzero((high >= 0) & ~allowed.any(axis=1))  # the limits lie between two bins of a fine scale
        allowed[none, np.abs(levels - high[none, None]).argmin(axis=1)] = True
        return cls(free, allowed | (high < 0)[:, None])

    @property
    def n(self) -> int | None:
        """The number of draws."""
        return self.source.n

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return the probabilities of a block."""
        found = np.where(self.allowed[block.pairs], self.source.probabilities(block) + TINY, 0.0)
        return np.asarray(found / found.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Told:
    """Probabilities of pairs whose grade was told with errors: in proportion to the likelihood of what was told.

    Parameters
    ----------
    source
        The probabilities without it.
    likelihood
        The likelihood of what was told of each pair under each level, 1 for nothing, shape (pair, level).
    """

    source: Probabilities
    likelihood: Floats

    @property
    def n(self) -> int | None:
        """The number of draws."""
        return self.source.n

    def probabilities(self, block: QueryBlock) -> Floats:
        """Return the probabilities of a block."""
        found = self.likelihood[block.pairs] * (self.source.probabilities(block) + TINY)
        return np.asarray(found / found.sum(axis=-1, keepdims=True))


class GainSummary(NamedTuple):
    r"""The expected gain of each pair, its variance, and its sensitivity to the model's parameters.

    ``mean`` and ``variance`` have shape (pair,); the variance is conditional on the parameters, averaged over them.
    ``steepness`` is :math:`(g_\ell - g_{\ell-1})\,E[F_\ell(1-F_\ell)]` with :math:`F_\ell = P(R_d \ge \ell)`: the
    mean slope of the expected gain in each cutpoint, shape (pair, cut). Judged pairs have neither variance nor slope.
    """

    mean: Floats
    variance: Floats
    steepness: Floats


@dataclass(frozen=True, eq=False, repr=False)
class RelevanceDistribution(Result):
    """The distribution of every pair's grade, with or without a posterior axis.

    Parameters
    ----------
    pool, scale
        The pairs and the scale of their grades.
    levels
        The representative grade of each level, as a position on the scale, shape (level,).
    source
        P(level) of each pair, under each draw if the model's parameters are uncertain: given one draw, pairs are
        independent; over draws they are dependent.
    judged
        The grade of each judged pair, which is certain, negative elsewhere, shape (pair,).
    beyond
        The number of judged pairs of each query that no system retrieved, with at least each grade, shape (query,
        grade): they count in the ideal list.
    outside
        The relevant documents that are neither retrieved nor judged, if their number is estimated: they count too.

    Examples
    --------
    >>> from probeval.data import Pool, Scale
    >>> pool, scale = Pool.of(["q"], ["d"]), Scale.graded(2)
    >>> uniform = RelevanceDistribution.of(pool, scale, np.full((1, 3), 1 / 3))
    >>> [float(m[0]) for m in uniform.moments(scale.gains)]
    [1.0, 0.6666...]
    """

    pool: Pool
    scale: Annotated[Scale, "The scale of the grades."]
    levels: Codes
    source: Probabilities
    judged: Codes
    beyond: Ints
    outside: Outside | None = None

    @classmethod
    def of(
        cls,
        pool: Pool,
        scale: Scale,
        probability: Floats | Probabilities,
        *,
        levels: Codes | None = None,
        judgments: Judgments | Grades | None = None,
    ) -> RelevanceDistribution:
        """Return the distribution of a model's probabilities, with judged pairs certain.

        Probabilities computed on demand are cached if the pool is small.
        """
        levels = scale.levels if levels is None else levels
        if isinstance(probability, np.ndarray):
            if probability.shape[-2:] != (len(pool), len(levels)):
                raise ModelError(
                    f"{len(pool)} pairs and {len(levels)} levels need as many probabilities, "
                    f"got shape {probability.shape}."
                )
            source: Probabilities = ProbabilityTable(frozen(probability))
        else:
            source = probability
            if (source.n or 1) * len(pool) * len(levels) <= KEPT:
                source = ProbabilityTable.of(source, pool, len(levels))
        unjudged = np.full(len(pool), UNJUDGED, dtype=np.int16)
        beyond = np.zeros((len(pool.queries), len(scale)), dtype=np.int64)
        blank = cls(pool, scale, levels, source, unjudged, beyond)
        return blank if judgments is None else blank.given(judgments)

    def __post_init__(self) -> None:
        for name in ("levels", "judged", "beyond"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def _headline(self) -> str:
        draws = f", {self.source.n} posterior draws" if self.has_posterior else ""
        judged = int(self.certain.sum())
        return f"{len(self.pool):,} pairs, {judged:,} judged, {self.scale}{draws}"

    @property
    def has_posterior(self) -> bool:
        """Whether there is a posterior axis."""
        return self.source.n is not None

    @property
    def independent(self) -> bool:
        """Whether open pairs are taken as independent, so that probabilities of scores are not calibrated."""
        return not self.has_posterior and not bool(self.certain.all())

    @property
    def n_draws(self) -> int:
        """The number of draws of the parameters; 1 without a posterior."""
        return self.source.n or 1

    @property
    def probability(self) -> Floats:
        """The model's P(level) of the whole pool, shape (pair, level), or (draw, pair, level) with a posterior.

        It has a value for judged pairs too, which is what the model expects of pairs like them.
        """
        return self.source.probabilities(self.pool.whole)

    @property
    def certain(self) -> Bools:
        """Mask of the judged pairs, shape (pair,)."""
        return self.judged >= 0

    def blocks(self, per_pair: int) -> list[QueryBlock]:
        """Return blocks of queries within the memory limit for work with ``per_pair`` numbers per pair."""
        return self.pool.blocks(max(BLOCK // max(per_pair, 1), 1))

    def part(self, block: QueryBlock) -> RelevanceDistribution:
        """Return the distribution of one block of queries, with its probabilities in memory."""
        return RelevanceDistribution(
            self.pool.part(block),
            self.scale,
            self.levels,
            ProbabilityTable(self.source.probabilities(block)),
            self.judged[block.pairs],
            self.beyond[block.queries],
            None if self.outside is None else self.outside.part(block.queries),
        )

    def given(self, judgments: Judgments | Grades) -> RelevanceDistribution:
        """Return the distribution with these pairs certain, or within limits where assessors differ."""
        grades = judgments if isinstance(judgments, Grades) else Grades.of(judgments, self.pool, self.scale)
        source = Bounded.of(self.source, self.levels, grades.low, grades.high)
        found = replace(self, source=source, judged=grades.judged, beyond=grades.beyond)
        return found if self.outside is None else found.with_outside(self.outside)

    def told(self, pairs: Ints, likelihood: Floats) -> RelevanceDistribution:
        """Return the distribution with these pairs uncertain: their grades were told with errors.

        Parameters
        ----------
        pairs
            The pairs, shape (n,). Of those that are certain now, the model's own probabilities count.
        likelihood
            The likelihood of what was told of each under each level, shape (n, level).

        Examples
        --------
        >>> from probeval.data import Judgments, Pool, Scale
        >>> pool = Pool.of(["q", "q"], ["d1", "d2"])
        >>> judged = Judgments.rows(["q", "q"], ["d1", "d2"], [1, 1])
        >>> known = RelevanceDistribution.of(pool, Scale.binary(), np.full((2, 2), 0.5), judgments=judged)
        >>> known.told(np.array([1]), np.array([[0.1, 0.9]])).moments(Scale.binary().gains)[0].tolist()
        [1.0, 0.9...]
        """
        free = self.source.source if isinstance(self.source, Bounded) else self.source
        every = np.ones((len(self.pool), len(self.levels)))
        every[pairs] = likelihood
        judged = self.judged.copy()
        judged[pairs] = UNJUDGED
        source: Probabilities = Told(free, every)
        if (source.n or 1) * every.size <= KEPT:
            source = ProbabilityTable.of(source, self.pool, len(self.levels))
        found = replace(self, source=source, judged=judged)
        return found if self.outside is None else found.with_outside(self.outside)

    def with_outside(self, outside: Outside) -> RelevanceDistribution:
        """Return the distribution with an estimate of the relevant documents outside the pool."""
        return replace(self, outside=replace(outside, mean=self.mean_counts()[:, 1:]))

    @property
    def without_outside(self) -> RelevanceDistribution:
        """The distribution without relevant documents outside the pool."""
        return replace(self, outside=None)

    def mean_counts(self) -> Floats:
        """Return the mean number of pairs per query with each grade under each draw of the parameters.

        Its shape is (draw, grade), with one draw for a model without a posterior.
        """
        total = np.zeros((self.n_draws, len(self.scale)))
        for block in self.blocks(self.n_draws * len(self.levels)):
            open_ = self.judged[block.pairs] < 0
            total[:, self.levels] += self.source.probabilities(block)[..., open_, :].sum(axis=-2)
        total += np.bincount(self.judged[self.certain], minlength=len(self.scale))
        return np.asarray(total / max(len(self.pool.queries), 1))

    def moments(self, gains: Floats) -> tuple[Floats, Floats]:
        """Return the mean and variance of every pair's gain, given the gain of each grade.

        See docs/theory/relevance-models.md#rel-moments.

        With a posterior, the mean under each draw of the parameters, shape (draw, pair), and the conditional variance
        averaged over draws, shape (pair,).
        """
        value, known = gains[self.levels], self.certain
        by_level = np.moveaxis(self.probability, -1, 0)
        mean, second = np.zeros(by_level.shape[1:]), np.zeros(len(self.pool))
        for each, probability in zip(value, by_level, strict=True):
            mean += each * probability
            second += each**2 * (probability.mean(axis=0) if self.has_posterior else probability)
        square = np.einsum("td,td->d", mean, mean) / len(mean) if self.has_posterior else mean**2
        variance = np.maximum(second - square, 0.0)
        variance[known] = 0.0
        mean[..., known] = gains[self.judged[known]]
        return mean, variance

    def gain_summary(self, gains: Floats) -> GainSummary:
        """Return each pair's expected gain, its variance and its steepness, computed by block and cached."""
        if gains.tobytes() not in self._summaries:
            blocks = self.blocks(self.n_draws * len(self.levels))
            self.keep_summary(gains, in_order(lambda block: self.part(block).summary_of(gains), blocks))
        return self._summaries[gains.tobytes()]

    def keep_summary(self, gains: Floats, parts: Iterable[GainSummary]) -> None:
        """Keep the summary that was computed with something else, from its parts by blocks of queries in order."""
        self._summaries[gains.tobytes()] = GainSummary(*map(np.concatenate, zip(*parts, strict=True)))

    @cached_property
    def _summaries(self) -> dict[bytes, GainSummary]:
        return {}

    def summary_of(self, gains: Floats) -> GainSummary:
        """Return the summary of pairs whose probabilities are in memory."""
        mean, variance = self.moments(gains)
        mean = mean.mean(axis=0) if self.has_posterior else mean
        slope = np.empty((len(self.pool), len(self.levels) - 1))
        probability = self.probability if self.has_posterior else self.probability[None]
        at_least = np.zeros(probability.shape[:-1])
        for level in range(len(self.levels) - 1, 0, -1):
            at_least += probability[..., level]
            slope[:, level - 1] = at_least.mean(axis=0) - np.einsum("td,td->d", at_least, at_least) / len(at_least)
        return GainSummary(mean, variance, np.where(self.certain[:, None], 0.0, np.diff(gains[self.levels]) * slope))

    def sample(self, n: int, rng: np.random.Generator, *, start: int = 0) -> Codes:
        """Return joint draws of all grades as positions on the scale, shape (n, pair).

        With a posterior, each draw of grades has its own draw of the parameters, taken in turn from ``start`` on.
        """
        queries = slice(0, len(self.pool.queries))
        return self.sample_from(query_streams(int(rng.integers(2**63)), queries), n, start=start)

    def sample_from(self, streams: Sequence[np.random.Generator], n: int, *, start: int = 0) -> Codes:
        """Return joint draws of all grades with one random stream per query."""
        out = np.empty((n, len(self.pool)), dtype=np.int16)
        for query, reached in enumerate(self.reached_by_query(streams, n, start=start)):
            level = sum((mask.view(np.int8) for mask in reached), np.zeros(1, dtype=np.int8))
            out[:, self.pool.pairs_of(query)] = self.levels[level]
        out[:, self.certain] = self.judged[self.certain]
        return out

    def reached_by_query(
        self, streams: Sequence[np.random.Generator], n: int, *, start: int = 0
    ) -> Iterator[list[Bools]]:
        """Yield draws query by query: whether each pair reaches each level above the lowest, shapes (draw, pair).

        Judged pairs are drawn too, as if they were not: so no other pair's draws depend on what is judged.
        """
        probability = self.probability
        turns = _turns(start, n, self.n_draws) if self.has_posterior else [(slice(n), slice(None))]
        for query, stream in enumerate(streams):
            mine = self.pool.pairs_of(query)
            uniform, below = stream.random((n, mine.stop - mine.start)), np.zeros(1)
            reached = []
            for column in np.moveaxis(probability[..., mine, :-1], -1, 0):
                below = below + column
                mask = np.empty(uniform.shape, dtype=bool)
                for now, under in turns:
                    np.greater(uniform[now], below[under], out=mask[now])
                reached.append(mask)
            yield reached

    def relevant_counts(self, codes: Codes, streams: OutsideStreams = (), *, start: int = 0) -> Ints:
        """Return the number of documents of each query with at least each grade, shape (draw, query, grade).

        Parameters
        ----------
        codes
            Draws of the grades of all pairs, shape (draw, pair).
        streams, start
            For documents outside the pool, if they are estimated: the streams of each query, and the number of draws
            made before.
        """
        inside = count_at_least(codes, self.pool.query, len(self.pool.queries), len(self.scale))
        return self.with_unretrieved(inside, streams, start=start)

    def with_unretrieved(self, inside: Ints, streams: OutsideStreams = (), *, start: int = 0) -> Ints:
        """Return counts of the pool's documents, shape (draw, query, grade), plus those of documents outside it."""
        if self.outside is None:
            return inside + self.beyond
        return inside + np.maximum(self.outside.sample(inside, streams, start=start), self.beyond)

    def typically_outside(self) -> float:
        """Return the typical number per query of relevant documents that are estimated, 0 if none are."""
        if self.outside is None:
            return 0.0
        mean = self.outside.mean.mean(axis=0)
        more = np.maximum(self.outside.typical(mean, mean) - exact_counts(self.beyond)[:, 1:], 0.0)
        return float(more.sum(axis=1).mean())

    def take(self, pairs: Ints) -> RelevanceDistribution:
        """Return the distribution of some pairs, in pool order, without documents outside the pool."""
        kept = np.zeros(len(self.pool), dtype=bool)
        kept[pairs] = True
        pool = self.pool.take(kept)
        beyond = np.zeros((len(pool.queries), len(self.scale)), dtype=np.int64)
        parts = [
            self.source.probabilities(block)[..., kept[block.pairs], :]
            for block in self.blocks(self.n_draws * len(self.levels))
            if kept[block.pairs].any()
        ]
        none = np.empty((*([self.n_draws] * self.has_posterior), 0, len(self.levels)))
        values = np.concatenate([none, *parts], axis=-2)
        table = ProbabilityTable(values)
        return replace(self, pool=pool, source=table, judged=self.judged[kept], beyond=beyond, outside=None)

    def to_frame(self) -> pd.DataFrame:
        """One row per pair: query, doc, judged, mean, sd, and P of each level (averaged over the posterior).

        A judged pair is certain: sd is 0, and the level of its grade has probability 1.
        """
        mean, variance = self.moments(self.scale.values)
        if self.has_posterior:
            mean, variance = mean.mean(axis=0), variance + mean.var(axis=0)
        probability = self.probability.mean(axis=0) if self.has_posterior else self.probability
        known = np.flatnonzero(self.certain)
        probability = np.array(probability)
        probability[known] = 0.0
        probability[known, self._level_of(self.judged[known])] = 1.0
        table = self.pool.to_frame().assign(judged=self.certain, mean=mean, sd=np.sqrt(variance))
        columns = {f"p{self.scale.values[c]:g}": probability[:, i] for i, c in enumerate(self.levels)}
        return table.assign(**columns)

    def _level_of(self, grades: Codes) -> Ints:
        """Return the level of each grade: its bin, if the model distinguishes bins of a fine scale."""
        if np.array_equal(self.levels, self.scale.levels):
            return self.scale.level_of(grades).astype(np.int64)
        return np.searchsorted(self.levels, grades)

    @key.named("pairs")
    def entries(self) -> list[dict[str, str | bool | float]]:
        """One entry per pair: query, doc, judged, mean, sd, and P of each level."""
        return cast("list[dict[str, str | bool | float]]", self.to_frame().to_dict("records"))

    def tables(self) -> tuple[Table, ...]:
        """The first pairs: a pool may have very many."""
        some = self if len(self.pool) <= FIRST else self.take(np.arange(FIRST))
        return (Table(some.to_frame(), self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """The number of pairs that are not shown."""
        left = len(self.pool) - FIRST
        return (f"{left:,} more pairs in to_frame().",) if left > 0 else ()


def _turns(start: int, n: int, n_draws: int) -> list[tuple[slice, slice]]:
    """Return runs of the next ``n`` draws of grades, and the draws of the parameters that they take in turn."""
    ends = [*range(n_draws - start % n_draws, n, n_draws), n]
    starts = [0, *ends[:-1]]
    first = [(start + at) % n_draws for at in starts]
    return [(slice(a, b), slice(f, f + b - a)) for a, b, f in zip(starts, ends, first, strict=True)]
