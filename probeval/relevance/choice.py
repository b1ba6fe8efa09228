"""Models by name: which one, and why."""

from __future__ import annotations

from dataclasses import dataclass

from probeval.data.collection import Collection
from probeval.data.scale import Scale
from probeval.relevance.baseline import Empirical, Uniform
from probeval.relevance.cards import Card, load_card
from probeval.relevance.model import Chain

__all__ = ["Choice", "choose_model"]

BY_NAME = ("none", "uniform", "empirical", "independent")
MUSIC_GROUPS = {"artist", "genre"}
BROAD = 3


@dataclass(frozen=True)
class Choice:
    """A model, what it is called, why it was taken, and the scale it speaks of.

    Parameters
    ----------
    name
        As results name it.
    chain
        The model.
    why
        In a sentence.
    scale
        The scale of the grades, and in ``scale_from`` where it comes from.
    card
        Where the model comes from, or None.
    """

    name: str
    chain: Chain
    why: str
    scale: Scale
    scale_from: str
    card: Card | None = None

    def fitted_on(self, collection: Collection) -> str | None:
        """The campaign of the card's training whose judgments these are, if any."""
        if self.card is None or collection.judgments is None:
            return None
        mine = collection.judgments.fingerprint()
        return next((name for name, print_ in self.card.fingerprints.items() if print_ == mine), None)


def choose_model(name: str | None, collection: Collection, *, scale: Scale | None = None) -> Choice:
    """The model that a name means for this campaign; the best that fits it without a name.

    Parameters
    ----------
    name
        ``uniform``, ``empirical``, ``independent`` (the best chain of ordinal models, pairs independent), a card's name
        or path, or None.
    collection
        Runs, and whatever judgments and metadata there are.
    scale
        The scale of the grades, where it is named; else that of the judgments, else the card's, else binary.
    """
    why = "it was asked for."
    card: Card | None = None
    if name in (None, "independent"):
        card, why = _best(collection, scale)
        chain = card.chain
    elif name == "uniform":
        chain = Chain([Uniform()])
    elif name == "empirical":
        card = load_card("text-jud")
        chain = Chain([model for model in card.models if isinstance(model, Empirical)])
    else:
        assert name is not None
        card = load_card(name)
        chain = card.chain
    known, source = _scale(collection, scale, card)
    label = name if name in ("uniform", "empirical") or card is None else card.name
    return Choice(str(label), chain, why, known, source, card)


def _best(collection: Collection, scale: Scale | None) -> tuple[Card, str]:
    groups = set(collection.has.get("metadata", ()))
    judged = collection.judgments is not None and len(collection.judgments) > 0
    if groups >= MUSIC_GROUPS:
        if scale is None and not judged:
            return load_card("mirex-jud-fine"), "there are artists and genres."
        known = _scale(collection, scale, None)[0]
        if known.bins is not None:
            return load_card("mirex-jud-fine"), "there are artists and genres, and grades are fine."
        if len(known) == BROAD:
            return load_card("mirex-out-broad"), "there are artists and genres, and grades are 0 to 2."
    said = "outputs and the judgments so far" if judged else "outputs alone, as nothing is judged"
    return load_card("text-jud"), f"it serves any campaign of texts; it goes by {said}."


def _scale(collection: Collection, scale: Scale | None, card: Card | None) -> tuple[Scale, str]:
    if scale is not None:
        return scale, "named"
    if collection.judgments is not None and len(collection.judgments):
        return collection.judgments.scale(), "inferred from the judgments"
    if card is not None and card.scale != "any":
        return Scale.parse(card.scale), f"that of {card.name}"
    return Scale.binary(), "assumed, as nothing says otherwise"
