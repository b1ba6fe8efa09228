"""Make the cards in models/, and probeval/relevance/outside.json, again: `python examples/make_cards.py DATA`.

DATA holds the campaign folders.
"""

import json
import re
import sys
from itertools import chain
from pathlib import Path

import numpy as np
from evidence import CAMPAIGNS, LEARNED, past_campaigns
from label_tables import labelled_tables
from scipy.optimize import root

from probeval.arrays import Floats
from probeval.data import read_campaign
from probeval.relevance import Card, Empirical, FittedOrdinal, fit_card, write_card
from probeval.relevance.learning.fit import TEXT_JUD, TEXT_OUT, hierarchical_card
from probeval.relevance.learning.outside import fit_outside

MODELS = Path(__file__).parents[1] / "models"
OUTSIDE = Path(__file__).parents[1] / "probeval" / "relevance" / "outside.json"
PAGE = Path(__file__).parents[1] / "docs" / "evidence-cards.md"
MADE = "`python examples/make_cards.py DATA`, with the campaigns named above as folders in DATA."

# Urbano, Evaluation in Audio Music Similarity (2013), Table A.1. There aSYS and aART are in grades; here relevance is
# grade over top grade, so their coefficients are 100 (Fine) or 2 (Broad) times the printed ones.
OUT_TERMS = ("fSYS", "OV", "fSYS:OV", "f[artist]", "s[genre]", "f[genre]", "s[genre]:f[genre]")
JUD_TERMS = ("fSYS", "aSYS", "a[artist]")
FINE, BROAD = 10, 3
OUT_CUTS = {
    FINE: (-0.5092, -1.2231, -1.7919, -2.2787, -2.7216, -3.1956, -3.8044, -4.6928, -5.9567),
    BROAD: (-1.4351, -3.5205),
}
JUD_CUTS = {
    FINE: (-2.7554, -4.9168, -7.0128, -9.0010, -10.8548, -12.7158, -14.6722, -16.8831, -19.2536),
    BROAD: (-5.2165, -11.9251),
}
OUT = {
    FINE: (-17.4721, 0.1336, 26.4550, 2.9111, 2.0443, 5.4544, -3.4851),
    BROAD: (-19.7968, -0.3227, 29.6378, 3.2530, 1.8975, 5.4055, -2.9606),
}
MOMENTS = {FINE: (43.41, 900.4), BROAD: (0.8959, 0.6338)}  # of the grades of past editions, section 7.2.1
JUD = {FINE: (0.7954, 1.28, 20.78), BROAD: (0.9789, 2.3928, 14.3626)}
PUBLISHED = (
    "Coefficients of Table A.1 in J. Urbano, Evaluation in Audio Music Similarity, PhD thesis, 2013. The shares have "
    "the means and variances of its section 7.2.1; on the Fine scale, their form is that of MIREX 2011."
)
MUSIC = "Fitted on MIREX Audio Music Similarity: short lists (top 5) of music clips with artist and genre known."
INDEPENDENT = "Pairs are taken as independent, so confidence built on it is too high."
LEAK = (
    "Published with a leak: in its fit a document's own judgment counts in its own artist mean. Applied with the pair "
    "left out, as here, it states a quarter of the variance that it should. For comparison only."
)


def published(
    terms: tuple[str, ...], coefficients: tuple[float, ...], levels: int, cuts: tuple[float, ...]
) -> FittedOrdinal:
    zeros, ones = (0.0,) * len(terms), (1.0,) * len(terms)
    return FittedOrdinal(terms, zeros, ones, coefficients, {levels: cuts})


def tilted(shares: Floats, grades: Floats, mean: float, variance: float) -> Floats:
    """Return shares of this mean and variance, as close to the given ones as can be: q times exp(a g + b g^2)."""
    centred = (grades - mean) / variance**0.5
    columns = np.stack([centred, centred**2 - 1])

    def moved(by: Floats) -> Floats:
        weights = shares * np.exp(by @ columns)
        return np.asarray(weights / weights.sum())

    return moved(root(lambda by: columns @ moved(by), np.zeros(2), tol=1e-12).x)


def music_shares(data: Path) -> Empirical:
    """Return the shares of grades in past editions of MIREX: those of 2011, with the moments of all editions."""
    past = Empirical.fit([read_campaign(data / "mirex2011")], depth=5).share(FINE)
    fine = tilted(past, np.arange(5.0, 100.0, 10.0), *MOMENTS[FINE])
    mean, variance = MOMENTS[BROAD]
    top = (variance + mean**2 - mean) / 2  # three shares follow from two moments
    return Empirical({BROAD: (1 - mean + top, mean - 2 * top, top), FINE: tuple(map(float, fine))})


def published_cards(shares: Empirical) -> list[Card]:
    cards = []
    for levels, scale in ((FINE, "fine"), (BROAD, "broad")):
        out = published(OUT_TERMS, OUT[levels], levels, OUT_CUTS[levels])
        jud = published(JUD_TERMS, JUD[levels], levels, JUD_CUTS[levels])
        facts = {"scale": "fine" if levels == FINE else "graded:2", "depth": 5, "made": PUBLISHED}
        title = f"Relevance of music clips from outputs and metadata, {scale} grades, as published."
        cards.append(Card(f"mirex-out-{scale}", title, [out, shares], limits=(MUSIC,), **facts))
        title = f"Relevance of music clips from judgments so far, {scale} grades, as published (with its leak)."
        cards.append(Card(f"mirex-jud-{scale}-published", title, [jud, out, shares], limits=(LEAK, MUSIC), **facts))
    return cards


def music_card(data: Path, shares: Empirical) -> Card:
    fitted = fit_card(
        [read_campaign(data / "mirex2011")],
        name="mirex-jud-fine",
        title="Relevance of music clips from judgments so far, fine grades, every pair left out of its own features.",
        terms=[(*OUT_TERMS, "dSYS", "aDOC", "a[genre]")],
        base=published(OUT_TERMS, OUT[FINE], FINE, OUT_CUTS[FINE]),
        depth=5,
        limits=(MUSIC, INDEPENDENT),
        made=MADE,
    )
    models = [*(m for m in fitted.models if not isinstance(m, Empirical)), shares]
    return Card(**{**{f: getattr(fitted, f) for f in fitted.__dataclass_fields__}, "models": models})


def stated_confidence(card: str) -> dict[str, dict[str, dict[str, float]]]:
    """Stated confidence and accuracy of fits like the card's, from the page that card_evidence.py writes."""
    rows = re.findall(rf"^\| {card} \| (\S+) \| (\S+) \| (\d+) \| (\S+) \| (\S+) \|$", PAGE.read_text("utf-8"), re.M)
    return {
        "stated confidence": {
            f"{float(low):g} to {float(high):g}": {
                "pairs": int(pairs),
                "confidence": float(stated),
                "accuracy": float(right),
            }
            for low, high, pairs, stated, right in rows
        }
    }


def hierarchical_cards(data: Path) -> list[Card]:
    return [
        hierarchical_card(
            past_campaigns(data),
            name="text-hierarchical",
            title="Relevance of texts, with effects of queries, teams and systems, with calibrated confidence.",
            depth=10,
            labelled=labelled_tables(data),
            evaluation=stated_confidence("text-hierarchical"),
            limits=(
                "Learned from twelve campaigns of ranked lists, judged to depth 10 or 5; other depths were not tried.",
                "What labels are worth was learned on web passages; biases towards systems on two campaigns.",
            ),
            made=MADE,
        ),
        hierarchical_card(
            [read_campaign(data / "mirex2011")],
            name="music-hierarchical",
            title="Relevance of music clips, with effects of queries, systems, artists and genres.",
            depth=5,
            evaluation=stated_confidence("music-hierarchical"),
            limits=(MUSIC, "Learned from one campaign: how much campaigns differ is a stated prior, not a finding."),
            made=MADE,
        ),
    ]


def text_cards(data: Path) -> list[Card]:
    campaigns = past_campaigns(data)
    limits = (
        INDEPENDENT,
        "Base rates differ between campaigns, and nothing in the outputs tells them: absolute scores can be far off.",
    )
    shared = {"depth": 10, "limits": limits, "made": MADE}
    return [
        fit_card(campaigns, name="text-out", title="Relevance of texts from outputs alone.", terms=TEXT_OUT, **shared),
        fit_card(
            campaigns,
            name="text-jud",
            title="Relevance of texts from outputs and the judgments so far.",
            terms=TEXT_JUD,
            **shared,
        ),
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/make_cards.py DATA")
    folder = Path(sys.argv[1])
    shares = music_shares(folder)
    music = [*published_cards(shares), music_card(folder, shares)]
    for card in chain(music, text_cards(folder), hierarchical_cards(folder)):
        write_card(card, MODELS / card.name)
        print(card.name)
    campaigns = [read_campaign(folder / name) for name in CAMPAIGNS | LEARNED]
    OUTSIDE.write_text(json.dumps(fit_outside(campaigns).to_dict(), indent=2) + "\n", "utf-8")
    print(OUTSIDE.name)
