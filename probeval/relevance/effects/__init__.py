"""The effects of the hierarchical model on the latent relevance of pairs, and their priors."""

from __future__ import annotations

from collections.abc import Iterable

from probeval.errors import ModelError
from probeval.relevance.effects.cutpoints import CutpointScale
from probeval.relevance.effects.effect import Effect
from probeval.relevance.effects.group import PREFIX, Group
from probeval.relevance.effects.query import PopularitySlope, QueryDifficulty
from probeval.relevance.effects.system import System, SystemOnQuery
from probeval.relevance.effects.team import Team

__all__ = ["effects_named", "model_effects"]


def model_effects(groups: Iterable[str] = ()) -> tuple[Effect, ...]:
    """Return the effects of the model, with one per column of document groups.

    >>> [effect.name for effect in model_effects(["genre"])]
    ['query', 'slope', 'interaction', 'group:genre', 'team', 'system', 'cutpoint_scale']
    """
    return (
        QueryDifficulty(),
        PopularitySlope(),
        SystemOnQuery(),
        *(Group(column) for column in groups),
        Team(),
        System(),
        CutpointScale(),
    )


def effects_named(names: Iterable[str]) -> tuple[Effect, ...]:
    """Return the effects with these names, in the order of the model."""
    wanted = list(names)
    known = model_effects(name.removeprefix(PREFIX) for name in wanted if name.startswith(PREFIX))
    strange = set(wanted) - {effect.name for effect in known}
    if strange:
        raise ModelError(f"No effect {', '.join(sorted(strange))} in this version of the model. Update probeval.")
    return tuple(effect for effect in known if effect.name in wanted)
