"""Designs of reliability studies: the facets of scores, their nesting, and the resulting effects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from math import prod

from probeval.display import Record
from probeval.errors import ReliabilityError

__all__ = ["Design", "FacetSet"]

SHORT = {"s": "system", "q": "query", "t": "query", "topic": "query", "h": "assessor"}
CONDITIONS = ("query", "assessor")  # facets that scores are averaged over; every other facet is part of a system
RESIDUAL = "residual"

FacetSet = frozenset[str]


@dataclass(frozen=True, repr=False)
class Design(Record):
    """The facets of a study and their nesting.

    Queries and assessors are conditions, over which scores are averaged. Every other facet belongs to the systems: the
    systems themselves, or their components.

    Parameters
    ----------
    facets
        The names of the facets, in the order of the axes of the scores.
    within
        For each nested facet, the facets in which it is nested.

    Examples
    --------
    >>> Design.parse("s x (h:q)").names
    ('system', 'query', 'system x query', 'assessor:query', 'residual')
    >>> Design.parse("stemmer x model x q").names[:3]
    ('stemmer', 'model', 'query')
    """

    facets: tuple[str, ...]
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.facets)) != len(self.facets):
            raise ReliabilityError(f"A design names each facet once, got {' x '.join(self.facets)}.")
        if "query" not in self.facets:
            raise ReliabilityError(f"A design needs queries: 's x q', for example. Got {' x '.join(self.facets)}.")
        if not self.objects:
            raise ReliabilityError(f"A design needs systems: 's x q', for example. Got {' x '.join(self.facets)}.")
        for facet, above in self.within.items():
            if {f in CONDITIONS for f in above} != {facet in CONDITIONS}:
                raise ReliabilityError(
                    f"{facet} cannot be nested in {' and '.join(above)}: assessors nest in queries, and parts of "
                    "systems in one another."
                )

    @classmethod
    def parse(cls, text: str) -> Design:
        """Parse a design such as ``s x q``, ``s x (h:q)`` or ``stemmer x model x q``."""
        facets: list[str] = []
        within: dict[str, tuple[str, ...]] = {}
        for term in re.split(r"\s+[xX]\s+|\s*\*\s*", text.strip()):
            if not re.fullmatch(r"[\w-]+|\(?\s*[\w-]+(\s*:\s*[\w-]+)+\s*\)?", term):
                raise ReliabilityError(
                    f"No design {text!r}: 's x q', 's x (h:q)' or 'stemmer x model x q', for example."
                )
            names = [SHORT.get(n.lower(), n) for n in re.findall(r"[\w-]+", term)]
            for i, name in enumerate(names[:-1]):
                within[name] = tuple(names[i + 1 :])
            facets += reversed(names)
        return cls(tuple(sorted(facets, key=CONDITIONS.__contains__)), within)

    def __str__(self) -> str:
        outer = [f for f in self.facets if not any(f in above for above in self.within.values())]
        terms = [":".join((f, *self.within.get(f, ()))) for f in outer]
        short = {"system": "s", "query": "q", "assessor": "h"}
        texts = [":".join(short.get(name, name) for name in term.split(":")) for term in terms]
        return " x ".join(f"({t})" if ":" in t and len(texts) > 1 else t for t in texts)

    @property
    def objects(self) -> tuple[str, ...]:
        """The facets of the systems."""
        return tuple(f for f in self.facets if f not in CONDITIONS)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The facets that scores are averaged over."""
        return tuple(f for f in self.facets if f in CONDITIONS)

    @cached_property
    def effects(self) -> tuple[FacetSet, ...]:
        """Main effects, then interactions; a nested facet only together with the facets above it.

        The last one has all facets: the interaction of the highest order, confounded with all other error.
        """
        n = len(self.facets)
        sets = chain.from_iterable(combinations(self.facets, k) for k in range(1, n + 1))
        return tuple(frozenset(s) for s in sets if all(a in s for f in s for a in self.within.get(f, ())))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each effect."""
        return (*(self._name(effect) for effect in self.effects[:-1]), RESIDUAL)

    def _name(self, effect: FacetSet) -> str:
        outer = [f for f in self.facets if f in effect and not any(f in self.within.get(g, ()) for g in effect)]
        texts = [":".join((f, *self.within.get(f, ()))) for f in outer]
        return " x ".join(f"({t})" if ":" in t and len(texts) > 1 else t for t in texts)

    def is_universe(self, effect: FacetSet) -> bool:
        """Whether the effect is variance of the systems only: the object of a study."""
        return not effect & set(CONDITIONS)

    def is_relative(self, effect: FacetSet) -> bool:
        """Whether the effect adds error to differences between systems."""
        return bool(effect & set(CONDITIONS)) and bool(effect - set(CONDITIONS))

    def divisor(self, effect: FacetSet, sizes: Mapping[str, int]) -> int:
        """Return the number of independent draws of an effect in a mean score over these numbers of conditions."""
        return prod(sizes[f] for f in self.conditions if f in effect)
