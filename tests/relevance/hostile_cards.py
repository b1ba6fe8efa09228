"""Hostile model cards: each is refused in one line when it is read, or shown and used like any other."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np

from probeval.arrays import objects
from probeval.data import Metadata
from probeval.relevance import choose_model, synthetic_campaign
from probeval.relevance.cards.card import SHELVES, read_card
from tests.attack.cases import Attack, Attempt, Tally
from tests.data.hostile_files import VALUES, WORDS, json_places, spoiled_bytes

OLD = Path(__file__).parents[1] / "compatibility"
NUMBERS = (
    0,
    -1,
    1,
    1e9,
    1e300,
    -1e300,
    1e-300,
    1e12,
    float("nan"),
    float("inf"),
    10**400,
    "1",
    True,
    None,
    710,
    -750,
    50,
)


def cards() -> list[bytes]:
    """The cards of the package, and those of earlier versions."""
    files = sorted(file for folder in (*SHELVES, OLD) for file in folder.glob("*/card.json"))
    return [file.read_bytes() for file in files]


def spoiled(card: bytes, rng: random.Random) -> bytes:
    """A card that is wrong in one or more ways."""
    if rng.random() < 0.15:
        return spoiled_bytes(card, rng)
    tree = json.loads(card)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        places = list(json_places(tree if rng.random() < 0.3 else tree.get("models")))
        if not places:
            continue
        holder, key = rng.choice(places)
        way = rng.random()
        if way < 0.4 and isinstance(holder[key], (int, float)):
            holder[key] = rng.choice(NUMBERS)
        elif way < 0.6:
            holder[key] = deepcopy(rng.choice(VALUES))
        elif way < 0.7:
            holder[key] = rng.choice(WORDS)
        elif way < 0.8 and isinstance(holder[key], list):
            old = holder[key]
            holder[key] = rng.choice((deepcopy(old) + old, old[1:], [old], old[::-1]))
        elif way < 0.9 or isinstance(holder, list):
            del holder[key]
        else:
            holder[rng.choice((*WORDS, "2", "99999999", "-3", "1e3"))] = holder.pop(key)
    text = json.dumps(tree).encode()
    return text if rng.random() < 0.98 else b'{"a":' * 100_000 + text


@contextmanager
def hostile_cards(number: int) -> Iterator[Attempt]:
    """Attempts to read a spoiled card each, to show it, and to predict with it."""
    made = synthetic_campaign(seed=7, systems=3, queries=2, depth=5, docs=8, groups=2)
    docs = made.runs.pool.docs
    groups = {name: objects([f"{name}{i % 3}" for i in range(len(docs))]) for name in ("artist", "genre")}
    known, campaign = cards(), replace(made, metadata=Metadata(docs, groups))

    def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
        path = folder / "card.json"
        path.write_bytes(spoiled(rng.choice(known), rng))
        card = read_card(path)
        tally[f"{card.kind} models used"] += 1
        shown = card.readme(), card.summary(), repr(card), card._repr_html_()
        assert all(shown)
        json.dumps(card.to_dict(), allow_nan=False)
        for given in (campaign, replace(campaign, judgments=None)):
            choice = choose_model(card, given)
            relevance = choice.model.predict(given.problem(depth=5, scale=choice.scale), rng=np.random.default_rng(0))
            p = relevance.probability
            if not (np.isfinite(p).all() and np.allclose(p.sum(axis=-1), 1)):
                raise AssertionError("probabilities that are none")

    yield attempt


CARDS = Attack(
    "model cards",
    10_000,
    hostile_cards,
    "model cards are mutated, shown and used",
    "each is refused in one line, or gives probabilities",
)
