"""Goals of judging: the comparisons, scores or documents that matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import SatisfactionError, SelectionError, did_you_mean
from probeval.metrics import Metric, PSucc
from probeval.metrics.mapping import mapping_for
from probeval.scores import Ranking

__all__ = ["GOALS", "Goal"]

GOALS = {
    "ranking": "the order of all systems (the default)",
    "best": "which system is the best",
    "top:N": "which N systems are the best, in any order",
    "pair:A,B": "which of two systems is better",
    "scores": "the score of every system, to within a half-width",
    "success": "the order of all systems by P(success), the share of queries that satisfy most users",
    "relevant": "relevant documents found",
    "trust:LEAST": "whether labels agree with people by at least LEAST, .6 by default: whether they may be used",
}
TRUSTED = 0.6  # kappa from which agreement is called substantial (Landis and Koch 1977)


@dataclass(frozen=True, repr=False)
class Goal(Record):
    """A goal of judging, one of :data:`GOALS`.

    Examples
    --------
    >>> Goal.parse("top:3")
    Goal(kind='top', n=3)
    >>> str(Goal.parse("pair:bm25,dense")), str(Goal.parse("trust"))
    ('pair:bm25,dense', 'trust:0.6')
    """

    kind: str
    n: int = 0
    systems: tuple[str, ...] = ()
    least: float | None = None

    @classmethod
    def parse(cls, text: str | Goal) -> Goal:
        """Return the goal with this name."""
        if isinstance(text, Goal):
            return text
        kind, _, rest = text.partition(":")
        if kind in ("ranking", "best", "scores", "success", "relevant") and not rest:
            return cls(kind)
        if kind == "top" and rest.isdigit() and int(rest) > 0:
            return cls(kind, n=int(rest))
        if kind == "trust" and (least := _agreement(rest)) is not None:
            return cls(kind, least=least)
        names = tuple(rest.split(","))
        if kind == "pair" and len(names) == 2 and all(names) and names[0] != names[1]:
            return cls(kind, systems=names)
        raise SelectionError(f"No goal {text!r}: {', '.join(GOALS)}.{did_you_mean(text, GOALS)}")

    def __str__(self) -> str:
        rest = str(self.n) if self.kind == "top" else ",".join(self.systems)
        rest = rest if self.least is None else f"{self.least:g}"
        return f"{self.kind}:{rest}" if rest else self.kind

    @property
    def compares(self) -> bool:
        """Whether the goal compares systems."""
        return self.kind in ("ranking", "best", "top", "pair", "success")

    @property
    def orders_all(self) -> bool:
        """Whether the goal is the order of all systems."""
        return self.kind in ("ranking", "success")

    @property
    def about_scores(self) -> bool:
        """Whether the goal concerns scores or their differences, not documents or labels."""
        return self.kind not in ("relevant", "trust")

    @property
    def about_labels(self) -> bool:
        """Whether the goal concerns the agreement of labels with people."""
        return self.kind == "trust"

    def metric(self, metric: Metric, scale: Scale) -> Metric:
        """Return the measure that the goal is about: for success, PSucc by the published mapping of the measure.

        >>> from probeval.metrics import parse
        >>> Goal("success").metric(parse("DCG@5"), Scale.graded(2))
        PSucc(mapping="DCGl@5/broad")
        """
        if self.kind != "success" or metric.name == PSucc.name:
            return metric
        try:
            return PSucc(mapping=mapping_for(metric, scale).name)
        except SatisfactionError:
            raise SatisfactionError(
                f"goal success: no mapping to satisfaction is published for {metric} on the scale {scale}, or several "
                "are. Name one with --mapping (mapping=), such as DCGl@5/broad."
            ) from None

    def check(self, systems: tuple[str, ...]) -> None:
        """Raise an error if the goal names an unknown system."""
        for name in self.systems:
            if name not in systems:
                raise SelectionError(f"No system {name!r} to compare.{did_you_mean(name, systems)}")

    def has_sides(self, systems: int) -> bool:
        """Whether each comparison of the goal is between the same two sides, for this number of systems.

        >>> Goal.parse("best").has_sides(9), Goal.parse("ranking").has_sides(9), Goal.parse("ranking").has_sides(2)
        (True, False, True)
        """
        return self.kind in ("best", "top", "pair") or (self.orders_all and systems == 2)

    def sides(self, ranking: Ranking) -> Floats:
        """Return 1 for systems on one side of the goal's comparisons, -1 on the other, 0 elsewhere, shape (system,).

        For the best system, the current leader against all others; for the best N, the current N against the rest; for
        two systems, one against the other. The order of more systems has no two sides.
        """
        systems, order = ranking.scores.systems, ranking.scores.order
        side = np.zeros(len(systems))
        if self.kind == "pair":
            side[[systems.index(name) for name in self.systems]] = 1.0, -1.0
        elif self.has_sides(len(systems)):
            side -= 1.0
            side[order[: max(self.n, 1)]] = 1.0
        return side

    def closest(self, ranking: Ranking) -> tuple[int, int] | None:
        """Return the systems of the goal's closest comparison: the last of one side, the first of the rest.

        None for goals without two sides, or if there is nothing to compare.
        """
        if self.kind == "pair":
            a, b = (ranking.scores.systems.index(name) for name in self.systems)
            return a, b
        n, order = max(self.n, 1), ranking.scores.order
        return (int(order[n - 1]), int(order[n])) if self.has_sides(len(order)) and n < len(order) else None

    def comparisons(self, ranking: Ranking) -> Floats:
        """Return 1 for every comparison that matters now, else 0, symmetric, shape (system, system)."""
        side = self.sides(ranking)
        if side.any():
            return (np.multiply.outer(side, side) < 0).astype(float)
        return 1.0 - np.eye(len(side))

    def confidence(self, ranking: Ranking) -> float:
        """Return the mean confidence of the goal's comparisons; for the best system, that none is better."""
        if self.kind == "best":
            return float(ranking.p_near_best.max())
        matters = np.triu(self.comparisons(ranking), k=1) > 0
        return float(ranking.pair_confidence[matters].mean()) if matters.any() else 1.0


def _agreement(text: str) -> float | None:
    """Return the least agreement in the name of a goal; None if it is no number between -1 and 1."""
    try:
        least = float(text) if text else TRUSTED
    except ValueError:
        return None
    return least if -1 < least < 1 else None
