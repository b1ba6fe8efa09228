"""Cards: written, read back, shipped, and refused where they are damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Collection, write_campaign
from probeval.errors import ModelError
from probeval.features import FeatureName, feature_names
from probeval.relevance import (
    Card,
    Empirical,
    FittedOrdinal,
    Hierarchical,
    Uniform,
    card_names,
    fit_card,
    load_card,
    synthetic_campaign,
)
from probeval.relevance.cards.card import read_card, write_card

SHIPPED = [
    "mirex-jud-broad-published",
    "mirex-jud-fine",
    "mirex-jud-fine-published",
    "mirex-out-broad",
    "mirex-out-fine",
    "music-hierarchical",
    "text-hierarchical",
    "text-jud",
    "text-out",
]
MODELS = Path(__file__).parents[2] / "models"
FRESH = """
import sys
import numpy as np
from probeval.data import read_campaign
from probeval.relevance import read_card
from pathlib import Path
campaign = read_campaign(sys.argv[1])
card = read_card(Path(sys.argv[2]))
np.save(sys.argv[3], card.model.probabilities(campaign.problem(depth=card.depth))[0])
print(sorted({"statsmodels", "pymc", "arviz", "matplotlib"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def campaign() -> Collection:
    return synthetic_campaign(seed=21, systems=6, queries=12, depth=8, docs=25)


@pytest.fixture(scope="module")
def card(campaign) -> Card:
    terms = [("log(fSYS)", "fTEAM", "a[source]", "aDOC:fSYS"), ("log(fSYS)", "zSCORE")]
    return fit_card([campaign], name="mine", title="Mine.", terms=terms, depth=8, limits=("None.",), made="Here.")


def test_written_and_read_back(card, tmp_path):
    write_card(card, tmp_path / "mine")
    again = read_card(tmp_path / "mine")
    assert again.to_dict() == card.to_dict()
    assert read_card(tmp_path / "mine" / "card.json").to_dict() == card.to_dict()
    assert load_card(str(tmp_path / "mine")).name == "mine"
    assert again.models == card.models
    assert (tmp_path / "mine" / "README.md").read_text(encoding="utf-8") == card.readme()


@pytest.mark.slow
def test_a_fresh_process_predicts_the_same(card, campaign, tmp_path):
    write_campaign(campaign, tmp_path / "campaign")
    write_card(card, tmp_path / "mine")
    here = card.model.probabilities(campaign.problem(depth=8, scale=campaign.judgments.scale()))[0]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, tmp_path / "campaign", tmp_path / "mine", tmp_path / "there.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"  # neither statsmodels nor the samplers were loaded
    there = np.load(tmp_path / "there.npy")
    assert there.shape == here.shape
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)


def test_a_card_holds_numbers_and_nothing_to_run(card, tmp_path):
    write_card(card, tmp_path)
    data = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert data["schema"] == 4
    assert {"name", "title", "kind", "scale", "depth", "features", "models"} <= data.keys()
    assert {"training", "evaluation", "limits", "made"} <= data.keys()
    assert set(data["features"]) == {"fSYS", "fTEAM", "a[source]", "aDOC", "zSCORE"}
    first = data["models"][0]
    assert np.shape(first["covariance"]) == (2 + 4, 2 + 4)
    assert data["training"]["fingerprints"] == {"synthetic": card.fingerprints["synthetic"]}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "card.json"]


# ---- damage ----


def damaged(card: Card, change) -> bytes:
    data = json.loads(json.dumps(card.to_dict()))
    change(data)
    return json.dumps(data).encode()


CHANGES = {
    "unknown schema": (lambda d: d.update(schema=5), "schema 5 is not known here"),
    "no schema": (lambda d: d.pop("schema"), "names no schema"),
    "no name": (lambda d: d.pop("name"), "it lacks 'name'"),
    "no cutpoints": (lambda d: d["models"][0].pop("cutpoints"), "it lacks 'cutpoints'"),
    "no model": (lambda d: d.update(models=[]), "it has no model"),
    "models of another type": (lambda d: d.update(models=3), "damaged"),
    "model of another type": (lambda d: d.update(models=["ordinal"]), "damaged"),
    "unknown kind": (lambda d: d["models"][0].update(kind="oracle"), "no kind of model 'oracle'"),
    "no kind": (lambda d: d["models"][1].pop("kind"), "it lacks 'kind'"),
    "a coefficient too few": (lambda d: d["models"][0]["coefficients"].pop(), "as many numbers as terms"),
    "a spread too many": (lambda d: d["models"][0]["spread"].append(1), "as many numbers as terms"),
    "a spread of 0": (lambda d: d["models"][0]["spread"].__setitem__(0, 0), "a spread is at least 1e-06"),
    "a word for a number": (lambda d: d["models"][0]["centre"].__setitem__(0, "x"), "could not convert"),
    "not a number": (lambda d: d["models"][0]["centre"].__setitem__(0, float("nan")), "not finite"),
    "a cutpoint too few": (lambda d: d["models"][0]["cutpoints"]["3"].pop(), "falling cutpoints"),
    "rising cutpoints": (lambda d: d["models"][0]["cutpoints"]["3"].sort(), "falling cutpoints"),
    "no scale of cutpoints": (lambda d: d["models"][0].update(cutpoints={}), "falling cutpoints"),
    "a row of the covariance lost": (lambda d: d["models"][0]["covariance"].pop(), "covariance of that size"),
    "an unknown feature": (lambda d: d["models"][0]["terms"].__setitem__(0, "fSIS"), "Did you mean 'fSYS'"),
    "a share too few": (lambda d: d["models"][2]["shares"]["3"].pop(), "a share for each"),
    "a depth that is none": (lambda d: d.update(depth="deep"), "damaged"),
    "facts of another type": (lambda d: d["models"][2].update(shares=[1, 2]), "damaged"),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_damaged_card_is_refused(card, put, name):
    change, said = CHANGES[name]
    path = put("bad/card.json", damaged(card, change))
    with pytest.raises(ModelError) as error:
        read_card(path.parent)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_damaged_data_is_refused_without_a_file_too(card, name):
    change, said = CHANGES[name]
    with pytest.raises(ModelError) as error:
        Card.from_dict(json.loads(damaged(card, change)))
    assert said in str(error.value)


def test_a_card_is_its_data(card):
    assert Card.from_dict(json.loads(json.dumps(card.to_dict()))).to_dict() == card.to_dict()
    for data in ([1], None, "card", {}):
        with pytest.raises(ModelError, match=r"^not a model card: it names no schema\.$"):
            Card.from_dict(data)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"null", b'"card"', b"\x80\x04\x95pickle"])
def test_what_is_no_card_is_refused(put, content):
    path = put("bad/card.json", content)
    with pytest.raises(ModelError, match=r"not a model card|the file is empty") as error:
        read_card(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_folder_without_a_card(tmp_path):
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        load_card(str(tmp_path))


def test_no_such_model():
    with pytest.raises(ModelError, match=r"No model 'text-jd'\. Did you mean 'text-jud'"):
        load_card("text-jd")


# ---- what ships ----


def test_every_promised_card_ships():
    assert set(SHIPPED) <= set(card_names())


@pytest.mark.parametrize("name", card_names())
def test_a_shipped_card_is_whole(name):
    shipped = load_card(name)
    assert shipped.name == name
    folder = MODELS / name
    assert json.loads((folder / "card.json").read_text(encoding="utf-8")) == shipped.to_dict()
    assert (folder / "README.md").read_text(encoding="utf-8") == shipped.readme()
    assert shipped.limits
    assert shipped.made
    assert isinstance(shipped.models[-1], (Uniform, Empirical, Hierarchical))  # no pair is ever met with silence
    for feature in feature_names(shipped.model.terms):
        assert FeatureName.parse(feature).definition.summary in shipped.readme()


@pytest.mark.parametrize("name", ["mirex-jud-fine", "text-jud", "text-out"])
def test_our_cards_keep_covariance_and_fingerprints(name, data):
    from probeval.data import read_judgments

    shipped = load_card(name)
    fitted = [m for m in shipped.models if isinstance(m, FittedOrdinal) and m.covariance]
    assert fitted
    for model in fitted:
        eigenvalues = np.linalg.eigvalsh(np.array(model.covariance))
        assert eigenvalues.min() > -1e-12
        assert eigenvalues.max() > 0
    for campaign, print_ in shipped.fingerprints.items():
        assert read_judgments(data / campaign / "qrels.txt.gz").fingerprint() == print_


def test_the_leak_is_marked():
    for name in ("mirex-jud-fine-published", "mirex-jud-broad-published"):
        assert any("leak" in limit for limit in load_card(name).limits)


def test_published_numbers_are_those_of_the_oracle(oracles):
    import pandas as pd

    table = pd.read_csv(oracles / "relevance_model_parameters.csv")
    own = {"fART": "f[artist]", "sGEN": "s[genre]", "fGEN": "f[genre]", "sGEN:fGEN": "s[genre]:f[genre]"}
    own |= {"aART": "a[artist]"}
    for (kind, scale), rows in table.groupby(["model", "scale"]):
        name = f"mirex-out-{scale}" if kind == "out" else f"mirex-jud-{scale}-published"
        model = load_card(name).models[0]
        value = dict(zip(rows["parameter"], rows["value"], strict=True))
        cuts = [value.pop(f"alpha{i + 1}") for i in range(len(model.cutpoints[10 if scale == "fine" else 3]))]
        np.testing.assert_allclose(model.cutpoints[len(cuts) + 1], cuts)
        # aSYS and aART are printed for grades; here relevance is grade over top grade.
        top = 100 if scale == "fine" else 2
        for parameter, printed in value.items():
            at = model.terms.index(own.get(parameter, parameter))
            scaled = printed * top if parameter in ("aSYS", "aART") else printed
            assert model.coefficients[at] == pytest.approx(scaled, abs=1e-9)
        assert len(value) == len(model.terms)
