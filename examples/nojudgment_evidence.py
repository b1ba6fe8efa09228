"""Make docs/evidence-nojudgments.md again: `python examples/nojudgment_evidence.py DATA ORACLES`, two folders.

DATA holds the campaign folders, ORACLES the published table. Nothing is judged in any ranking here; the judgments are
only what the rankings are compared with.
"""

import csv
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from probeval.data import Collection, Judgments, Runs, Scale, read_campaign
from probeval.errors import DataError, ProbevalWarning
from probeval.metrics import Metric, measure, parse
from probeval.relevance import FallbackModel, load_card
from probeval.relevance.learning.fit import text_models
from probeval.scores import Scores, evaluate
from probeval.ties import TIE, signs

PAGE = Path(__file__).parents[1] / "docs" / "evidence-nojudgments.md"
DRAWS, SEEDS, LEVEL = 2000, 50, 0.95
NOT_SAID = float("nan")

# As Table 8.1 of Urbano (2013) names them, and as they are named here.
MUSIC = {
    "CGl@5": "CG@5",
    "DCGl@5": "DCG@5",
    "nDCGl@5": "nDCG@5",
    "RBPl@5": 'RBP(norm="ideal")@5',
}
TEXT = ("clef-ehealth2018-irtask1", "touche2022-task2", "trec-covid-round1", "trec-dl2019-passage", "trec8-adhoc")
HELD_OUT = ("trec8-adhoc", "trec-dl2019-passage", "clef-ehealth2018-irtask1")
DEPTH = 10


@dataclass(frozen=True)
class Row:
    """An order of systems against the true one. What a way of ranking does not state is NaN."""

    measure: str
    way: str
    confidence: float
    accuracy: float
    tau: float
    rmse_delta: float
    rho: float
    rmse_score: float
    mean_error: float = NOT_SAID
    coverage: float = NOT_SAID
    centred_coverage: float = NOT_SAID


def agreement(said: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Accuracy (a tie on one side counts half), tau-a, rho and errors of one order of scores against another."""
    upper = np.triu_indices(len(said), k=1)
    gap_said, gap_true = ((x[:, None] - x)[upper] for x in (said, true))
    a, b = (signs(g) for g in (gap_said, gap_true))
    return {
        "accuracy": float(np.where(a == b, 1.0, np.where(a * b == 0, 0.5, 0.0)).mean()),
        "tau": float((a * b).mean()),
        "rmse_delta": float(np.sqrt(np.mean((gap_said - gap_true) ** 2))),
        "rho": float(np.corrcoef(rankdata(said), rankdata(true))[0, 1]),
        "rmse_score": float(np.sqrt(np.mean((said - true) ** 2))),
        "mean_error": float(np.mean(said - true)),
    }


def row(name: str, way: str, scores: Scores, true: np.ndarray) -> Row:
    """A distribution of scores against the truth."""
    table = scores.to_frame(level=LEVEL).set_index("system").loc[list(scores.systems)]
    inside = (table["lower"].to_numpy() <= true + TIE) & (true - TIE <= table["upper"].to_numpy())
    # The same of each score less the mean over systems: the common level apart.
    contrast = np.eye(len(true)) - 1 / len(true)
    sd = np.sqrt(np.maximum(np.diag(contrast @ scores.covariance @ contrast), 0.0))
    off = np.abs(contrast @ (scores.mean - true))
    return Row(
        name,
        way,
        confidence=scores.ranking().confidence,
        coverage=float(inside.mean()),
        centred_coverage=float((off <= 1.959964 * sd + TIE).mean()),
        **agreement(scores.mean, true),
    )


def truth(runs: Runs, judgments: Judgments, metric: Metric, scale: Scale) -> np.ndarray:
    """The mean score of every system by the pool's judgments; a pair of the pool without one counts as the lowest."""
    return measure(runs, judgments.on(runs.pool), metric, scale=scale).values.mean(axis=1)


def random_judgments(runs: Runs, judgments: Judgments, metric: Metric, scale: Scale) -> np.ndarray:
    """Soboroff, Nicholas and Cahan (2001): call documents relevant at random, score, average over seeds.

    Documents are drawn from all lists of a query together, so that one that many systems retrieved is drawn more often,
    as many as the true judgments have relevance to give (the mean grade over the top grade).
    """
    grades = np.nan_to_num(judgments.on(runs.pool).grades()).clip(0)
    rate = grades.mean() / scale.grades[-1]
    total = np.zeros(len(runs.systems))
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        drawn = np.zeros(len(runs.pool))
        for query in range(len(runs.queries)):
            lists = runs.pairs[:, query].ravel()
            lists = lists[lists >= 0]
            n = round(rate * len(np.unique(lists)))
            drawn[rng.permutation(lists)[:n]] = scale.grades[-1]
        pretended = Judgments.coded(runs.pool, np.arange(len(runs.pool)), drawn)
        total += truth(runs, pretended, metric, scale)
    return total / SEEDS


def counting(runs: Runs, metric: Metric, power: float) -> np.ndarray:
    """Every document worth a power of the number of systems that retrieved it, and nothing else."""
    count = np.bincount(runs.pairs[runs.retrieved], minlength=len(runs.pool)) ** power
    return (np.append(count, 0.0)[runs.pairs] @ metric.rank_weights(runs.depth)).mean(axis=1)


def music_rows(data: Path, oracles: Path) -> list[Row]:
    """MIREX 2011 with the published model of outputs, beside the published table."""
    campaign = read_campaign(data / "mirex2011")
    scale, runs = Scale.fine(), campaign.runs.top(5)
    with (oracles / "nojudgment_ranking.csv").open() as file:
        published = {r["measure"]: r for r in csv.DictReader(file) if (r["year"], r["scale"]) == ("2011", "fine")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # some clips have no artist
        model = FallbackModel(load_card("mirex-out-fine").models)
        relevance = model.predict(replace(campaign, judgments=None), depth=5, scale=scale)
    rows = []
    for theirs, name in MUSIC.items():
        metric = parse(name)
        true = truth(runs, campaign.judgments, metric, scale)
        ways: dict[str, str] = {"moments": "moments"} if metric.is_linear else {"draws": "draws", "Taylor": "taylor"}
        for way, method in ways.items():
            rng = np.random.default_rng(0)
            rows.append(row(name, way, evaluate(runs, relevance, metric, method=method, n=DRAWS, rng=rng), true))
        figures = {k: float(v) for k, v in published[theirs].items() if k not in ("measure", "year", "scale")}
        rows.append(Row(name, "published", **figures))
        guess = random_judgments(runs, campaign.judgments, metric, scale)
        rows.append(Row(name, "random judgments", confidence=NOT_SAID, **agreement(guess, true)))
    return rows


def judged(campaign: Collection) -> Collection:
    """The systems whose true score is known; all of them where there is none."""
    try:
        return campaign.judged_systems(DEPTH)
    except DataError:
        return campaign


def text_rows(data: Path, progress: Callable[[str], None] = lambda _: None) -> dict[str, list[Row]]:
    """Each campaign by a model fitted on the other four, beside what simpler ways make of the same lists."""
    campaigns = {name: judged(read_campaign(data / name)) for name in TEXT}
    found = {}
    for held_out in HELD_OUT:
        progress(held_out)
        campaign = campaigns[held_out]
        models = text_models([c for name, c in campaigns.items() if name != held_out], depth=DEPTH)
        scale, runs = campaign.judgments.scale(), campaign.runs.top(DEPTH)
        blind = replace(campaign, judgments=None)
        rows = []
        for name in ("DCG@10", "nDCG@10"):
            metric = parse(name)
            true = truth(runs, campaign.judgments, metric, scale)
            relevance = FallbackModel(models).predict(blind, depth=DEPTH, scale=scale)
            scores = evaluate(runs, relevance, metric, n=DRAWS, rng=np.random.default_rng(0))
            rows.append(row(name, "model", scores, true))
            for way, power in (("counting systems", 1), ("square root of that", 0.5)):
                said = agreement(counting(runs, metric, power), true)
                said |= dict.fromkeys(("rmse_delta", "rmse_score", "mean_error"), NOT_SAID)  # a count is no score
                rows.append(Row(name, way, confidence=NOT_SAID, **said))
            guess = random_judgments(runs, campaign.judgments, metric, scale)
            rows.append(Row(name, "random judgments", confidence=NOT_SAID, **agreement(guess, true)))
        found[held_out] = rows
    return found


def number(value: float, *, sign: bool = False) -> str:
    """Three digits, none for what is not stated."""
    if np.isnan(value):
        return ""
    text = f"{value:+.3f}" if sign else f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def table(rows: list[Row], columns: list[str]) -> list[str]:
    heads = ["measure", "way", *(c.replace("_", " ") for c in columns)]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for r in rows:
        cells = [number(getattr(r, c), sign=c == "mean_error") for c in columns]
        lines.append("| " + " | ".join([f"`{r.measure}`", r.way, *cells]) + " |")
    return lines


def page(music: list[Row], text: dict[str, list[Row]]) -> str:
    """The page, from its rows."""
    errors = {r.way: number(r.mean_error, sign=True) for r in music if r.measure == "nDCG@5"}
    parts = ["accuracy", "tau", "rmse_delta", "rho", "rmse_score", "mean_error", "coverage"]
    found = "\n".join(table(music, ["confidence", *parts]))
    lines = [HEAD.format(seeds=SEEDS, music=found, taylor=errors["Taylor"], draws=errors["draws"])]
    parts = ["accuracy", "tau", "rho", "rmse_score", "mean_error", "coverage", "centred_coverage"]
    for name, rows in text.items():
        lines += [f"### {name}", "", *table(rows, ["confidence", *parts]), ""]
    return "\n".join([*lines, TAIL])


HEAD = """\
# Evidence: ranking without judgments

How good is a ranking without judgments? Here the systems of real campaigns are ranked without judgments, and the
ranking is then compared with the one by the judgments. The page is generated by `examples/nojudgment_evidence.py`
from campaigns that cannot be distributed with the package.

- *confidence*: the stated confidence of the ranking, the mean over pairs of systems.
- *accuracy*: the share of pairs in the true order; a tie on one side counts half. It should be close to the confidence.
- *tau*, *rho*: Kendall's (tau-a) and Spearman's correlation with the true order.
- *rmse delta*, *rmse score*: error of the differences of systems, and of their scores; *mean error* is signed.
- *coverage*: the share of systems whose 95% interval contains the true score; *centred coverage* is for scores minus
  their mean over systems.

## Music: MIREX 2011

18 systems, 100 queries, top 5, 6,322 pairs on the Fine scale (0-100), model `mirex-out-fine`: the published
coefficients, applied to runs and metadata only. *Published* is Table 8.1 of Urbano's thesis (2013), 2011 Fine,
where the model had been fitted without 2011. *Random judgments* is the method of Soboroff, Nicholas and Cahan (2001):
random documents are taken as relevant, with a higher probability if many systems retrieved them, at the true rate,
averaged over {seeds} seeds.

{music}

- The confidence in the order is only slightly too high, and the order is much better than that of random judgments.
- The thesis computes the ideal list of nDCG and RBP by sorting expected gains (*Taylor*). That underestimates it, so
  scores are too high: for nDCG@5 by {taylor} on average, against {draws} by draws. The order hardly changes.
- The intervals of single scores are too narrow by every method, and with Taylor none contains the true score.

## Texts: held-out campaigns

The fallback model of `probeval.relevance.learning.fit.text_models` is fitted to the other four of five campaigns and
applied to the systems whose top 10 is judged. *Counting systems* scores every document by the number of systems that
retrieved it, or the square root of that number. *Random judgments* use the true rate of relevance, which would not be
known in practice. Unjudged pairs of the pool count as grade 0.
"""

TAIL = """\
Conclusions:

- Without judgments, all of these methods depend on how many systems retrieved a document. The model's order is only
  a little better than that of counting or of random judgments. Popular documents are assumed to be good, and a good
  system with unique documents is underestimated.
- Stated confidence is above accuracy, far above it in the ad hoc and health campaigns. The model treats pairs as
  independent, but they are not: the difficulty of a query and the quality of a system affect many pairs at once. Do
  not stop judging because of this confidence.
- The coverage of intervals is too low. The rate of relevance differs between campaigns and cannot be inferred from
  runs, so all scores can be off together. Centred coverage ignores the common level, and is still low, because of
  the dependence between pairs.

To generate the page again, with the folders of campaigns and of published tables:

<!-- skip: needs your own files -->
```bash
python examples/nojudgment_evidence.py DATA ORACLES
```
"""


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/nojudgment_evidence.py DATA ORACLES")
    folder, tables = map(Path, sys.argv[1:])
    PAGE.write_text(page(music_rows(folder, tables), text_rows(folder, print)), encoding="utf-8")
    print(PAGE.name)
