"""The shares of grades in past campaigns, by kind of material (Urbano 2013, section 7.2.1)."""

from dataclasses import replace

import pytest

from probeval.data import Scale
from probeval.relevance import Empirical, choose_model, load_card, synthetic_campaign

MUSIC_CARDS = [
    "mirex-jud-fine", "mirex-out-fine", "mirex-jud-fine-published", "mirex-out-broad", "mirex-jud-broad-published",
]  # fmt: skip


@pytest.fixture(scope="module")
def bare():
    """Runs alone: no metadata, no judgments."""
    made = synthetic_campaign(seed=1, systems=3, queries=4, depth=5)
    return replace(made, judgments=None, metadata=None)


def moments(model, collection, scale):
    return [x[0] for x in model.predict(collection.problem(depth=5, scale=scale)).moments(scale.values)]


@pytest.mark.parametrize(
    ("scale", "mean", "variance"), [(Scale.fine(), 43.41, 900.4), (Scale.graded(2), 0.8959, 0.6338)]
)
@pytest.mark.parametrize("name", MUSIC_CARDS)
def test_without_features_music_cards_have_the_published_moments(bare, name, scale, mean, variance):
    card = load_card(name)
    assert isinstance(card.models[-1], Empirical)
    if card.scale == str(scale):
        assert moments(card.model, bare, scale) == pytest.approx([mean, variance], rel=1e-4)


def test_empirical_takes_the_shares_of_the_material(bare):
    music = choose_model("empirical", bare, scale=Scale.fine())
    assert moments(music.model, bare, music.scale)[0] == pytest.approx(43.41, abs=0.01)
    assert "Model empirical: the shares of grades in past music campaigns (MIREX)." in str(music)
    text = choose_model("empirical", bare, scale=Scale.graded(2))
    assert "Model empirical: the shares of grades in past text campaigns." in str(text)
    assert moments(text.model, bare, text.scale)[0] == pytest.approx(0.6005, abs=1e-3)  # 0.2131 + 2 * 0.1937


def test_empirical_on_mirex(data):
    from probeval.data import read_campaign

    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    campaign = replace(read_campaign(data / "mirex2011"), judgments=None)
    choice = choose_model("empirical", campaign)
    assert (str(choice.scale), choice.scale_from) == ("fine", "that of mirex-jud-fine")
    assert moments(choice.model, campaign, choice.scale)[0] == pytest.approx(43.41, abs=0.01)
