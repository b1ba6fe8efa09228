"""Write docs/evidence-cards.md, whose figures are on the cards: `python examples/card_evidence.py DATA`."""

import sys
from dataclasses import replace
from pathlib import Path

from evidence import CAMPAIGNS, DOCS, LEARNED, table

from probeval.data import read_campaign
from probeval.simulation import validate

MUSIC = ("mirex2011",)
STUDIES = {  # by card: its campaigns, the depth, the number of orders of judging
    "text-hierarchical": (tuple(CAMPAIGNS | LEARNED), 10, 1),
    "music-hierarchical": (MUSIC, 5, 5),
}
HEAD = """# Evidence: the cards' own confidence

Written by `examples/card_evidence.py`. A card is learned from all of its campaigns, so its confidence is examined on
fits like its own with one campaign left out: the text card by {texts} fits to the others, in one order of judging;
the music card, which has one campaign, by fits to half of its queries, tested on the other half, in five orders.
Pairs of systems at 0, 1, 2, 5, 10, 20 and 40% judged, by DCG and nDCG, are pooled. Pairs of one campaign share
systems and queries, so shares differ by chance more than their number suggests. [What calibrated
means](theory/calibration.md) explains the figures, and [Is confidence calibrated?](evidence-calibration.md) has a
study by campaign.

"""


def main(data: Path) -> None:
    page = HEAD.format(texts=len(CAMPAIGNS | LEARNED))
    for card, (names, depth, seeds) in STUDIES.items():
        past = [replace(read_campaign(data / name), labels=None) for name in names]
        found = validate(past, models=("hierarchical",), depth=depth, seeds=seeds)
        page += (
            f"## {card}\n\n" + table(found.reliability().assign(model=card).rename(columns={"model": "card"})) + "\n"
        )
    (DOCS / "evidence-cards.md").write_text(page.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/card_evidence.py DATA")
    main(Path(sys.argv[1]))
