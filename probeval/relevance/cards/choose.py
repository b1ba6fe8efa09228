"""Choose a model by name, or the best for a campaign."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.data.collection import Collection
from probeval.data.scale import Gain, Scale
from probeval.display import Record
from probeval.errors import ModelError
from probeval.relevance.cards.added import ADDED_MODELS, as_predicting, find_added, model_name
from probeval.relevance.cards.card import Card, load_card
from probeval.relevance.models.base import FallbackModel, Predicts
from probeval.relevance.models.baseline import Empirical, Uniform
from probeval.relevance.models.hierarchical import Hierarchical, Inference
from probeval.relevance.models.labels import describe_labels, is_label_model, label_model, label_scale

__all__ = ["Choice", "choose_model"]

MUSIC_GROUPS = {"artist", "genre"}
MUSIC = {"independent": "mirex-jud-fine", "hierarchical": "music-hierarchical"}
TEXT = {"independent": "text-jud", "hierarchical": "text-hierarchical"}
BROAD = 3
BINARY, MOST_GRADES = 1, 9  # the highest grades of a binary scale and of a graded one
ASSUMED = "assumed, as nothing says otherwise"


@dataclass(frozen=True, repr=False)
class Choice(Record):
    """A chosen model: its name, the reason for the choice, and the scale of the grades.

    Parameters
    ----------
    name
        The name in results.
    model
        The model.
    why
        The reason, as a sentence.
    scale
        The scale of the grades; ``scale_from`` is its origin.
    card
        The card of the model, or None.
    """

    name: str
    model: Predicts
    why: str
    scale: Scale
    scale_from: str
    card: Card | None = None

    def __str__(self) -> str:
        return f"Model {self.name}: {self.why} Scale {self.scale} ({self.scale_from})."

    def with_gain(self, gain: Gain | None) -> Choice:
        """The same model on a scale whose grades have other gains; as it is without any."""
        return self if gain is None else replace(self, scale=self.scale.with_gain(gain))

    def warning(self, collection: Collection) -> str | None:
        """A warning where the model was fitted on the judgments that it is evaluated with."""
        seen = self.fitted_on(collection)
        if seen is None:
            return None
        return f"{self.name} was fitted on these judgments ({seen}): its confidence is too high here."

    def fitted_on(self, collection: Collection) -> str | None:
        """Return the training campaign of the card that has these judgments, if any."""
        return None if self.card is None else self.card.fitted_on(collection)


def choose_model(
    name: str | Card | Predicts | None,
    collection: Collection,
    *,
    scale: Scale | None = None,
    inference: Inference = "laplace",
) -> Choice:
    """Return the model of a name for this campaign; without a name, the best applicable one.

    Parameters
    ----------
    name
        ``uniform``, ``empirical``, ``independent`` (the best ordinal models with fallbacks, pairs independent),
        ``hierarchical`` (the best model with a posterior), ``labels`` or ``calibrated`` (machine labels taken as
        grades, or calibrated on the judged pairs; ``labels:COLUMN`` names a column), a registered model's name, a
        card's name or path, or None for the hierarchical one; or a card, or a model, itself.
    collection
        Runs, and optionally judgments, metadata and labels.
    scale
        The scale of the grades; by default that of the judgments, else that of the card or the labels, else binary.
    inference
        The inference method of a hierarchical model: ``"laplace"`` or ``"nuts"``.
    """
    card: Card | None = None
    model: Predicts
    why = "it was asked for."
    if isinstance(name, Card):
        card, model, name = name, name.model, name.name
    elif name is not None and not isinstance(name, str):
        model, name = as_predicting(name), model_name(name)
    elif name == "uniform":
        model = FallbackModel([Uniform()])
    elif name == "empirical":
        card, why = _past(collection, scale)
        model = FallbackModel([_past_shares(card)])
    elif name is not None and is_label_model(name):
        model = label_model(name, collection.labels, _past_shares(_past(collection, scale)[0]))
    elif name is not None and name.partition(":")[0] == "ppi":
        raise ModelError("ppi is a method of scores, not a relevance model: use --model labels --method ppi.")
    elif name is not None and (added := find_added(name)) is not None:
        model = added
    else:
        if name in (None, "hierarchical", "independent"):
            best, because = _best(collection, scale)
            card, why = load_card(best[name or "hierarchical"]), because
        else:
            card = load_card(name, others=ADDED_MODELS)
        model = card.model
    if isinstance(model, Hierarchical):
        model = replace(model, inference=inference)
    elif inference != "laplace":
        raise ModelError(f"Only a hierarchical model has a posterior to sample, and {name!r} is none.")
    known, source = _scale(collection, scale, card)
    if name is not None and is_label_model(name) and collection.labels is not None:
        if source.startswith(ASSUMED):
            known, source = label_scale(name, collection.labels), "that of the labels"
        why = describe_labels(name, collection.labels, known)
    label = name if name in ("uniform", "empirical") or card is None else card.name
    return Choice(str(label), model, why, known, source, card)


def _past(collection: Collection, scale: Scale | None) -> tuple[Card, str]:
    """Return the card with the shares of grades in past campaigns of this kind of material, and their origin."""
    fine = _scale(collection, scale, None)[0].bins is not None
    if fine or set(collection.has.get("metadata", ())) >= MUSIC_GROUPS:
        return load_card(MUSIC["independent"]), "the shares of grades in past music campaigns (MIREX)."
    return load_card(TEXT["independent"]), "the shares of grades in past text campaigns."


def _past_shares(card: Card) -> Empirical:
    """Return the last of a card's models: the shares of grades in past campaigns."""
    return next(model for model in card.models if isinstance(model, Empirical))


def _best(collection: Collection, scale: Scale | None) -> tuple[dict[str, str], str]:
    """Return the applicable cards by kind, and the reason."""
    groups = set(collection.has.get("metadata", ()))
    judged = collection.judgments is not None and len(collection.judgments) > 0
    if groups >= MUSIC_GROUPS:
        known = _scale(collection, scale, None)[0]
        if scale is None and not judged:
            return MUSIC, "there are artists and genres."
        if known.bins is not None:
            return MUSIC, "there are artists and genres, and grades are fine."
        if len(known) == BROAD:
            return {**TEXT, "independent": "mirex-out-broad"}, "there are artists and genres, and grades are 0 to 2."
    beside = [*(["labels"] * (collection.labels is not None)), *(["answers"] * collection.has_answers)]
    labelled = ", ".join(["the runs", *beside[:-1]]) + "".join(f" and {last}" for last in beside[-1:])
    alone = "" if beside else " alone"
    basis = (
        f"it uses {labelled} and the judgments so far" if judged else f"no judgments yet, so it uses {labelled}{alone}"
    )
    return TEXT, f"it suits any text campaign; {basis}."


def _scale(collection: Collection, scale: Scale | None, card: Card | None) -> tuple[Scale, str]:
    if scale is not None:
        return collection.scale(scale), "named"
    if collection.judgments is not None and len(collection.judgments):
        return collection.scale(), "inferred from the judgments"
    if card is not None and card.scale not in ("any", "real"):  # real values are those of judgments
        return Scale.parse(card.scale), f"that of {card.name}"
    top = 0 if collection.labels is None else int(np.nanmax(collection.labels.values, initial=0.0))
    hint = f"; labels go up to {top}: name graded:{top} if grades do" if BINARY < top <= MOST_GRADES else ""
    return Scale.binary(), ASSUMED + hint
