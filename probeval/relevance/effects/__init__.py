"""The effects of the hierarchical model on the latent relevance of pairs, and their priors."""

from __future__ import annotations

from collections.abc import Iterable

from probeval.errors import ModelError
from probeval.relevance.effects.cutpoints import CutpointScale
from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.effects.group import PREFIX, Group
from probeval.relevance.effects.query import PopularitySlope, QueryDifficulty
from probeval.relevance.effects.similar import Similar
from probeval.relevance.effects.system import Selectivity, System, SystemOnQuery, Team

__all__ = [
    "EFFECTS",
    "CampaignView",
    "Columns",
    "Effect",
    "added_effects",
    "effects_named",
    "model_effects",
    "receive_effects",
    "register_effect",
    "stated_effects",
]

# The order of the model's parameters; those with a stated prior come after the others. A class stands for one effect
# per column of document groups.
EFFECTS: list[Effect | type[Group]] = [
    QueryDifficulty(),
    PopularitySlope(),
    SystemOnQuery(),
    Group,
    Team(),
    System(),
    CutpointScale(),
    Selectivity(),
    Similar(),
]
OWN = tuple(EFFECTS)
RECEIVED: set[str] = set()  # names of effects that came with a pickled prior, from the process that has them


def model_effects(groups: Iterable[str] = ()) -> tuple[Effect, ...]:
    """The effects whose priors are learned, with one for each column of document groups, then those from outside.

    >>> [effect.name for effect in model_effects(["genre"])][:4]
    ['query', 'slope', 'interaction', 'group:genre']
    """
    columns = tuple(groups)
    effects: list[Effect] = []
    for entry in EFFECTS:
        effects += [entry(column) for column in columns] if isinstance(entry, type) else [entry]
    return tuple(effect for effect in effects if effect.stated is None)


def stated_effects() -> tuple[Effect, ...]:
    """The effects with a stated prior, which no card has.

    >>> [effect.name for effect in stated_effects()]
    ['similar']
    """
    return tuple(effect for effect in EFFECTS if isinstance(effect, Effect) and effect.stated is not None)


def register_effect(effect: Effect) -> Effect:
    """Add an effect from outside the package: models fitted from then on have it, and so do synthetic campaigns.

    A model has the effects that its card names, so cards that do not name this one go on without it. An effect from
    outside that has this name is replaced; the name of an effect of the package is refused. ``EFFECTS.remove(effect)``
    takes it out again.
    """
    if not isinstance(effect, Effect):
        raise ModelError(f"An effect is an object of a class derived from Effect, got {effect!r}.")
    missing = [name for name in ("name", "scope", "typical") if not hasattr(effect, name)]
    if missing:
        raise ModelError(
            f"The effect {type(effect).__name__} has no {missing[0]}: {type(effect).__name__}.{missing[0]}."
        )
    if effect.acts_on != "predictor":
        raise ModelError(
            f"The effect {effect.name!r} must act on the predictor: one effect moves the cutpoints already."
        )
    if effect.name.startswith(PREFIX) or any(effect.name == own.name for own in OWN if isinstance(own, Effect)):
        raise ModelError(f"{effect.name!r} is an effect of probeval. Give yours another name.")
    for known in added_effects():
        if known.name == effect.name:
            EFFECTS.remove(known)
    EFFECTS.append(effect)
    return effect


def added_effects() -> tuple[Effect, ...]:
    """The effects from outside the package."""
    return tuple(effect for effect in EFFECTS if effect not in OWN and isinstance(effect, Effect))


def receive_effects(effects: Iterable[Effect]) -> None:
    """Register effects that came with a pickled prior; those that this process registered itself stay."""
    registered = {effect.name for effect in added_effects()} - RECEIVED
    for effect in effects:
        if effect.name not in registered:
            register_effect(effect)
            RECEIVED.add(effect.name)


def effects_named(names: Iterable[str]) -> tuple[Effect, ...]:
    """Return the effects with these names, in the order of the model."""
    wanted = list(names)
    columns = [name.removeprefix(PREFIX) for name in wanted if name.startswith(PREFIX)]
    known = (*model_effects(columns), *stated_effects())
    strange = sorted(set(wanted) - {effect.name for effect in known})
    if strange:
        raise ModelError(
            f"No effect {', '.join(strange)} in this version of the model. Update probeval, or, if the effect is from "
            "outside, register it first: import the module that calls probeval.relevance.register_effect."
        )
    return tuple(effect for effect in known if effect.name in wanted)
