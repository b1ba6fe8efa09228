"""Write docs/evidence-sources.md: `python examples/source_evidence.py DATA`.

Every item is declared once: what can be computed, where a source prints it, by which verb or function, the printed
figure, how near ours must be, and how ours is computed. `tests/reference/test_sources.py` computes each again, and
checks that the page has it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import probeval
from probeval.data import Collection, read_campaign, read_judgments
from probeval.metrics import measure
from probeval.reliability import (
    TwoWay,
    band_study,
    gstudy,
    krippendorff_alpha,
    minimum_difference,
    observe,
    pair_labels,
    t_test,
    tie_study,
)
from probeval.satisfaction import load_agreement, load_mapping, satisfied_users

PAGE = Path(__file__).parents[1] / "docs" / "evidence-sources.md"
THESIS, TIES, MTC = "Urbano (2013)", "Yang (2019)", "Urbano and Schedl (2012)"
LEAD = """# Evidence: the sources, item by item

Written by `examples/source_evidence.py`: what the works behind probeval print, and the same figure computed here.
`tests/reference/test_sources.py` computes each again, and checks this page. *within* is how near ours must be: half of
the last printed digit where the data are the same, more where they are not, as the last column says.
[Errata](theory/errata.md) has the figures that do not reproduce; other tests in `tests/reference` have whole tables.
"""


@dataclass(frozen=True)
class Item:
    """A printed figure and how ours is computed: from the folder of campaigns, if it needs one."""

    source: str
    place: str
    capability: str
    by: str
    printed: float
    within: float
    note: str
    compute: Callable[..., float]
    needs: str

    @property
    def name(self) -> str:
        return f"{self.source} {self.place}: {self.capability}"

    def ours(self, data: Path) -> float:
        """Our figure."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(self.compute(data) if self.needs else self.compute())

    def row(self, ours: float) -> str:
        """The row of the page."""
        cells = (
            self.place,
            self.capability,
            self.by,
            f"{self.printed:g}",
            f"{ours:.5g}",
            f"{self.within:g}",
            self.note,
        )
        return f"| {' | '.join(cells)} |"


ITEMS: list[Item] = []


def item(
    source: str, place: str, capability: str, by: str, printed: float, within: float, *, note: str = "", needs: str = ""
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Declare an item; ``needs`` is the folder or file of the data that it reads."""

    def declare(compute: Callable[..., float]) -> Callable[..., float]:
        ITEMS.append(Item(source, place, capability, by, printed, within, note, compute, needs))
        return compute

    return declare


@cache
def campaign(folder: Path) -> Collection:
    return read_campaign(folder)


@cache
def mirex(data: Path, metric: str) -> Any:
    found = campaign(data / "mirex2011")
    return measure(found.runs, found.judgments, metric)


# ---- agreement ----

M0, M1, M2 = [9, 8, 7, 6, 5], [8.5, 9.3, 8, 7.5, 7], [9.7, 8.1, 5.5, 6, 6.9]
M3, M4 = [8.3, 7.8, 6.5, 6.5, 5], [9.1, 8.2, 7.4, 6.5, 6.5]


def agreed(x: list[float], y: list[float], figure: str, **given: Any) -> float:
    named = [{f"s{i}": float(value) for i, value in enumerate(v)} for v in (x, y)]
    return next(one.value for one in probeval.agree(*named, **given).figures if one.figure == figure)


for figure, x, y, names, printed in (
    ("tau", M0, M1, "M0 and M1", 0.8),
    ("rho", M0, M1, "M0 and M1", 0.9),
    ("rho", M0, M2, "M0 and M2", 0.6),
    ("tau_b", M1, M4, "M1 and M4", 0.738),
    ("tau_b", M3, M4, "M3 and M4", 0.889),
):

    @item(TIES, "Table 2.4", f"{figure} of the rankings {names}", "`agree`", printed, 5e-4)
    def _(x: list[float] = x, y: list[float] = y, figure: str = figure) -> float:
        return agreed(x, y, figure)


@item(TIES, "Table 2.4", "rank-biased overlap of M0 and M1", "`agree --persistence .8`", 0.8, 5e-4)
def _() -> float:
    return agreed(M0, M1, "rbo", persistence=0.8)


@item(TIES, "section 2.4.4", "alpha of graded judgments", "`krippendorff_alpha`", 0.298, 5e-4)
def _() -> float:
    return krippendorff_alpha(np.transpose([[1, 1, 2], [0, 0, 0], [2, 1, 2], [1, 2, 1]]))


@item(TIES, "section 2.4.4", "alpha of preferences", "`pair_labels`", 0.353, 5e-4)
def _() -> float:
    return krippendorff_alpha(pair_labels([[0.5, 0.1, 0.7, 0.5], [0.4, 0.2, 0.5, 0.7], [0.9, 0.5, 0.9, 0.7]]))


@item(TIES, "Table 5.13", "share of pairs with the same decision by two qrels", "`agree`: tp, tn", 0.869, 5e-4)
def _() -> float:
    return TwoWay(2734, 490, 492, 3787).concordance


@item(TIES, "Table 5.10", "p of a paired t-test", "`compare --method t`", 0.0959, 5e-5)
def _() -> float:
    q1 = [33.87, 40.55, 41.82, 38.76, 46.88, 44.96, 39.44, 37.15, 32.28]
    q2 = [38.00, 52.87, 40.33, 37.83, 47.77, 46.36, 44.42, 35.66, 37.89]
    return t_test(np.subtract(q1, q2)[None])[1][0]


# ---- ties and bands ----


@item(
    TIES, "Table 3.2", "share of systems with ties, TREC-8", "`evaluate --ties`", 0.938, 5e-4, needs="trec8-adhoc",
    note="from the first 100 documents; printed over 1,000",
)  # fmt: skip
def _(data: Path) -> float:
    found = campaign(data / "trec8-adhoc")
    systems = tie_study(found.runs, found.judgments, "AP").by_system
    return np.mean([one.tied_docs > 0 for one in systems])


@item(
    TIES, "section 3.3.4", "share of pairs with the same decision in bands of ratio 2", "`evaluate --bands 2`",
    0.96, 0.04, note="printed: over .96, TREC-7; here AP on TREC-8", needs="trec8-adhoc",
)  # fmt: skip
def _(data: Path) -> float:
    found = campaign(data / "trec8-adhoc")
    return band_study(found.runs, found.judgments, "AP", 2).decisions.concordance


# ---- persistence ----

for metric, printed, within in (("AP", 0.98, 5e-3), ("nDCG", 0.99, 5e-3), ("P@10", 0.9, 0.03), ("RR", 0.5, 5e-3)):

    @item(
        TIES, "Figure 4.2", f"persistence of the RBP nearest to {metric}, TREC-8", "`persistence`", printed, within,
        note="from the first 100 documents; printed on a grid of six", needs="trec8-adhoc",
    )  # fmt: skip
    def _(data: Path, metric: str = metric) -> float:
        found = campaign(data / "trec8-adhoc")
        study = probeval.persistence(found.runs, [metric], qrels=found.judgments)
        return study.closest[0].persistence


@item(
    TIES, "Table 4.2", "tau of the persistence nearest to AP and the relevant documents", "`persistence`", 0.659, 0.1,
    note="printed for TREC-13; here TREC-8", needs="trec8-adhoc",
)  # fmt: skip
def _(data: Path) -> float:
    found = campaign(data / "trec8-adhoc")
    return probeval.persistence(found.runs, ["AP"], qrels=found.judgments).closest[0].with_relevant


# ---- collections ----


@item(TIES, "Table 4.1", "judged documents per topic, TREC-8", "`doctor`", 1736.6, 0.05, needs="trec8-adhoc")
def _(data: Path) -> float:
    return len(read_judgments(data / "trec8-adhoc" / "qrels.txt.gz")) / 50


for topic, printed in ((402, 0.204), (403, 0.708), (405, 0.182), (407, 0.279), (440, 0.154)):

    @item(TIES, "Table 5.9", f"mean AP of topic {topic}", "`evaluate --per-query`", printed, 5.01e-4, needs="scores")
    def _(data: Path, topic: int = topic) -> float:
        return pd.read_csv(data / "scores" / "adhoc8_ap.csv.gz").set_axis(range(401, 451)).mean(axis=1)[topic]


# ---- users ----


@item(THESIS, "section 4.1", "P(Sat) of a score of .32, GAP", "`evaluate --mapping`", 0.5116, 5e-5)
def _() -> float:
    return load_mapping("GAP@5/broad")(0.32)


@item(THESIS, "section 4.1", "ten of fifteen users are satisfied at P(Sat) .7", "`satisfied_users`", 0.2061, 5e-5)
def _() -> float:
    return satisfied_users(0.7, 15)[10]


@item(THESIS, "Table 3.3", "distance of users from preferring the better list", "`users report`", 0.5688, 6e-5)
def _() -> float:
    return load_agreement("CGl@5/broad").distance_from_ideal


@item(THESIS, "section 3.4", "difference that half of the users notice, Fine", "`compare`: noticeable", 0.3, 1e-9)
def _() -> float:
    return load_agreement("CGl@5/fine").noticeable()


@item(
    THESIS, "Table 3.5", "share of differences on queries that half of the users notice, Fine",
    "`compare`: noticed_share", 0.1718, 0.03, needs="mirex2011",
    note="printed over five editions; here 15,300 differences of 2011",
)  # fmt: skip
def _(data: Path) -> float:
    scores = mirex(data, "CG@5").values
    first, second = np.triu_indices(len(scores), 1)
    return load_agreement("CGl@5/fine").noticed_share(scores[first] - scores[second])


# ---- reliability ----

for metric, share, erho2 in (("CG@5", 0.184, 0.9838), ("DCG@5", 0.186, 0.9834), ("nDCG@5", 0.219, 0.9834)):

    @item(
        THESIS,
        "Table 6.1",
        f"share of variance of systems, {metric}, 2011, Fine",
        "`gstudy`",
        share,
        6e-4,
        needs="mirex2011",
    )
    def _(data: Path, metric: str = metric) -> float:
        found = gstudy(observe(mirex(data, metric)), interval="none")
        return found.components["system"] / sum(found.components.values())

    @item(
        THESIS,
        "Table 6.2",
        f"E rho^2 with 100 queries, {metric}, 2011, Fine",
        "`gstudy`",
        erho2,
        6e-5,
        needs="mirex2011",
    )
    def _(data: Path, metric: str = metric) -> float:
        return gstudy(observe(mirex(data, metric)), interval="none").erho2.value


@item(MTC, "section 4", "least difference of rule 4", "`minimum_difference`", 0.067, 5e-4)
def _() -> float:
    return minimum_difference(sd=0.248, n=100, tails=1)


@item(THESIS, "section 5.6", "mean CG@5 of system 4954a8", "`compare`", 0.422, 5e-4, needs="mirex2011")
def _(data: Path) -> float:
    found = mirex(data, "CG@5")
    return found.values[found.systems.index("4954a8")].mean()


def page(data: Path) -> Iterator[str]:
    """The lines of the page."""
    yield LEAD.rstrip("\n")
    for source in dict.fromkeys(one.source for one in ITEMS):
        yield f"\n## {source}\n"
        yield "| where | what | by | printed | ours | within | note |"
        yield "|---|---|---|---|---|---|---|"
        yield from (one.row(one.ours(data)) for one in ITEMS if one.source == source)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/source_evidence.py DATA")
    PAGE.write_text("\n".join(page(Path(sys.argv[1]))) + "\n", encoding="utf-8")
