"""Model cards that are wrong in every way: refused in one line, or used like any other."""

from __future__ import annotations

import json

import pytest

from probeval.errors import ModelError
from probeval.relevance.cards.card import read_card
from tests.attack.cases import check_apart, check_some
from tests.relevance.hostile_cards import CARDS, cards


def test_hostile_cards_are_refused_in_one_line_or_used():
    """The first of the 10,000 cards of make validate."""
    check_some(CARDS, 100)


@pytest.mark.validation
def test_ten_thousand_hostile_cards():
    """No traceback, no line that is not one line, no probabilities that are none, never more memory than stated."""
    check_apart("cards", CARDS.full)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"depth": 0}, "a depth is a whole number from 1, got 0"),
        ({"scale": "graded:0"}, "A scale is 'binary'"),
        ({"name": 7}, "name must be text, got 7"),
        ({"training": {"fingerprints": 3}}, "training must be objects"),
    ],
)
def test_each_part_of_a_card_is_checked(put, change, said):
    card = json.loads(cards()[0]) | change
    with pytest.raises(ModelError, match="a damaged model card") as error:
        read_card(put("card.json", json.dumps(card)))
    assert said in str(error.value)


def test_a_prior_beyond_all_logits_is_refused(put):
    card = next(card for card in map(json.loads, cards()) if card["kind"] == "hierarchical")
    name = next(iter(card["models"][0]["prior"]["log_sds"]))
    card["models"][0]["prior"]["log_sds"][name] = [710, 1]  # exp(710) is beyond all floats
    with pytest.raises(ModelError, match="its mean must be from -10 to 3"):
        read_card(put("card.json", json.dumps(card)))


@pytest.mark.parametrize("centre", [-745, 745])
def test_a_centre_that_overflows_is_refused(put, centre):
    card = next(card for card in map(json.loads, cards()) if "centre" in card["models"][0].get("prior", ()))
    read_card(put("card.json", json.dumps(card)))
    card["models"][0]["prior"]["centre"][0] = centre
    with pytest.raises(ModelError, match=f"the centre of .*, {centre}, moves documents by more than 100 logits"):
        read_card(put("card.json", json.dumps(card)))


def test_json_that_is_nested_deep_is_no_card(put):
    with pytest.raises(ModelError, match="not a model card: maximum recursion depth exceeded"):
        read_card(put("card.json", '{"a":' * 100_000))
