"""What scripts made from real campaigns is what they make today: the shipped cards and the page of evidence."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from probeval.relevance import Card, load_card
from probeval.relevance.learning.fit import TEXT_JUD, TEXT_OUT

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "chain"), [("text-out", TEXT_OUT), ("text-jud", TEXT_JUD)])
def test_text_cards_have_the_terms_that_the_package_fits(name, chain):
    assert [model.terms for model in load_card(name).models if model.kind == "ordinal"] == list(chain)


def expect_same(made: Card, shipped: Card) -> None:
    """The same but for the last digits, which another machine may round otherwise."""
    assert [m.kind for m in made.models] == [m.kind for m in shipped.models]
    for ours, theirs in zip(made.models, shipped.models, strict=True):
        if ours.kind == "ordinal":
            assert (ours.terms, ours.notes) == (theirs.terms, theirs.notes)
            np.testing.assert_allclose(ours.coefficients, theirs.coefficients, atol=1e-6)
            assert ours.cutpoints.keys() == theirs.cutpoints.keys()
            for n, cuts in ours.cutpoints.items():
                np.testing.assert_allclose(cuts, theirs.cutpoints[n], atol=1e-6)
    assert (made.training, made.limits, made.title) == (shipped.training, shipped.limits, shipped.title)


def test_published_cards_are_as_the_script_makes_them():
    for made in script("make_cards").published_cards(load_card("mirex-jud-fine").models[-1]):
        expect_same(made, load_card(made.name))


def test_music_shares_are_as_the_script_makes_them(data):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    made, shipped = script("make_cards").music_shares(data), load_card("mirex-jud-fine").models[-1]
    for levels in (3, 10):
        np.testing.assert_allclose(made.share(levels), shipped.share(levels), atol=1e-8)


@pytest.mark.validation
def test_fitted_cards_are_as_the_script_makes_them(data):
    make = script("make_cards")
    for made in [make.music_card(data, make.music_shares(data)), *make.text_cards(data)]:
        expect_same(made, load_card(made.name))


@pytest.mark.validation
def test_the_page_of_evidence_is_as_the_script_makes_it(data):
    page = (ROOT / "docs" / "evidence-relevance.md").read_text(encoding="utf-8")
    assert script("relevance_evidence").page(data) == page
