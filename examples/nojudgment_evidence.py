"""Make docs/evidence-nojudgments.md again: `python examples/nojudgment_evidence.py DATA ORACLES`, two folders.

DATA holds the campaign folders, ORACLES the published table. Nothing is judged in any ranking here; the judgments are
only what the rankings are compared with.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import CAMPAIGNS, LEARNED, others
from evidence import table as markdown
from scipy.stats import rankdata

from probeval.data import Collection, Judgments, Runs, Scale, read_campaign
from probeval.errors import DataError, ProbevalWarning
from probeval.metrics import Metric, measure, parse
from probeval.relevance import FallbackModel, Hierarchical, load_card
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.learning.campaign import CampaignEstimate, estimate_campaign
from probeval.relevance.learning.fit import TEXT_SPEC, text_models
from probeval.relevance.learning.prior import pooled_prior
from probeval.scores import Scores, evaluate
from probeval.simulation import HeldOut, measure_point
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

# Campaigns that the hierarchical model predicts, each learned from those of `evidence.py` without it.
SUGGESTIONS = "query-suggestion-qac"  # lists of unequal length
PREDICTED = CAMPAIGNS | LEARNED | {SUGGESTIONS: 10}
# Unlike those learned from: later systems on the topics of one that is then left out, re-rankings of one first stage,
# grades by a language model. All of their systems count: an unjudged document has the lowest grade.
UNLIKE = {
    "trec-dl2019-passage-later": "trec-dl2019-passage",
    "trec-dl2020-passage-later": "trec-dl2020-passage",
    "trec-dl2019-passage-kin": "trec-dl2019-passage",
    "trec-dl2020-passage-kin": "trec-dl2020-passage",
    "syndl2022-gpt4": "syndl2022-gpt4",
}
MEASURES = ("DCG", "nDCG")  # to the depth of the campaign
LEAST = 1e-6  # probability of a direction, at least
NULL = 1000  # truths drawn from the model


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
    table = scores.at(LEVEL).to_frame().set_index("system").loc[list(scores.systems)]
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
        relevance = model.predict(replace(campaign, judgments=None).problem(depth=5, scale=scale))
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
            relevance = FallbackModel(models).predict(blind.problem(depth=DEPTH, scale=scale))
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


# ---- the hierarchical model, every campaign left out ----

Change = Callable[[ModelDesign, dict[str, np.ndarray], np.random.Generator], None]


@dataclass(frozen=True)
class Variant:
    """A form of the prior that was tried.

    With nothing judged the posterior is the prior, so that another form of it is a change of its draws: ``change``
    takes the design, the campaign's drawn parameters (shapes (parameter, draw)) and a generator.
    """

    change: Change | None = None
    selective: bool = True  # with the effect of selectivity
    reached: float = 0.0  # k: slopes of S systems are sqrt(S / (S + k)) of those of very many
    suggestions: bool = False  # learn from query suggestions too

    @contextmanager
    def drawn(self) -> Iterator[None]:
        own, change = LaplaceDraws.campaign, self.change

        def campaign(draws: LaplaceDraws) -> Mapping[str, np.ndarray]:
            out = dict(own(draws))
            if change is not None:
                change(draws.design, out, np.random.default_rng(5))
            return out

        LaplaceDraws.campaign = campaign
        try:
            yield
        finally:
            LaplaceDraws.campaign = own


def slopes_with_tails(freedom: float) -> Change:
    """Coefficients with t distributions."""

    def change(design: ModelDesign, drawn: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        mean = np.array([c.mean for c in design.coefficients])[:, None]
        far = np.sqrt(freedom / rng.chisquare(freedom, drawn["coefficients"].shape[1]))
        drawn["coefficients"] = mean + (drawn["coefficients"] - mean) * far

    return change


def consensus_tells_nothing(weight: float, sd: float = 0.5) -> Change:
    """A kind of campaign of this probability in which the slope of authority is around 0."""

    def change(design: ModelDesign, drawn: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        coefficients = drawn["coefficients"].copy()
        n = coefficients.shape[1]
        which = rng.permutation(n)[: round(weight * n)]
        z = rng.standard_normal(len(which))
        coefficients[0, which] = sd * (z - z.mean())
        drawn["coefficients"] = coefficients

    return change


def systems_with_tails(freedom: float) -> Change:
    """Effects of systems and teams with t distributions, of a common scale in each campaign."""

    def change(design: ModelDesign, drawn: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        far = np.sqrt(freedom / rng.chisquare(freedom, drawn["coefficients"].shape[1]))
        for name in {"system", "team"} & set(drawn):
            drawn[name] = drawn[name] * far

    return change


VARIANTS = {
    "as it is": Variant(),
    "without selectivity": Variant(selective=False),
    "slopes t, 11 degrees of freedom": Variant(slopes_with_tails(11)),
    "slopes t, 5": Variant(slopes_with_tails(5)),
    "consensus tells nothing, weight .1": Variant(consensus_tells_nothing(0.1)),
    "consensus tells nothing, weight .2": Variant(consensus_tells_nothing(0.2)),
    "systems and teams t, 5": Variant(systems_with_tails(5)),
    "slopes by the number of systems, k = 10": Variant(reached=10.0),
    "query suggestions among the past": Variant(suggestions=True),
}


class LeftOut:
    """Campaigns and their estimates, each made once."""

    def __init__(self, data: Path) -> None:
        self.data = data

    @cache  # noqa: B019 - one object per process
    def held(self, name: str) -> HeldOut:
        campaign, depth = replace(read_campaign(self.data / name), labels=None), PREDICTED.get(name, DEPTH)
        try:
            return HeldOut.of(campaign, depth=depth, systems="all" if name in UNLIKE else "judged")
        except DataError:  # no system is fully judged
            return HeldOut.of(campaign, depth=depth, systems="all")

    @cache  # noqa: B019
    def estimate(self, name: str) -> tuple[CampaignEstimate, int]:
        past = replace(read_campaign(self.data / name).judged_part(PREDICTED[name]), labels=None)
        return estimate_campaign(past, TEXT_SPEC, depth=DEPTH), len(past.runs.systems)

    def model(self, name: str, variant: Variant) -> Hierarchical:
        """Return the model for a campaign, learned from the others."""
        past = list(others(UNLIKE.get(name, name)))
        past += [SUGGESTIONS] if variant.suggestions and name != SUGGESTIONS else []
        found = [self.estimate(n) for n in past]
        prior = pooled_prior([scaled(e, 1 / reach(n, variant.reached)) for e, n in found], TEXT_SPEC)
        factor = reach(len(self.held(name).collection.runs.systems), variant.reached)
        kept = {k: v for k, v in prior.log_sds.items() if variant.selective or k != "selectivity"}
        return Hierarchical(
            replace(prior, coefficients=tuple(c.times(factor) for c in prior.coefficients), log_sds=kept)
        )

    def predict(self, name: str, gain: str, variant: Variant) -> dict[str, float]:
        """Return what the model states of a campaign with nothing judged, and what is right."""
        held = self.held(name)
        metric = parse(f"{gain}@{held.depth}")
        with variant.drawn():
            model = self.model(name, variant)
            relevance = model.predict(held.after(np.empty(0, dtype=int)).problem(depth=held.depth, scale=held.scale))
            scores = evaluate(held.collection.runs.top(held.depth), relevance, metric)
        true = held.truth(metric).mean(axis=1)
        drawn = scores.joint.draws
        drawn = scores.sample(NULL, np.random.default_rng(0)) if drawn is None else drawn
        point = measure_point(scores, true, draws=drawn)
        return {
            "systems": len(true),
            "stated": point.confidence,
            "right": point.accuracy,
            "log loss": log_loss(scores, true),
            "p": point.calibration_p,
            "tau": point.tau,
            "top 15": point.tau_top15,
            "coverage": point.coverage,
            "centred": point.centred_coverage,
            "level z": float(point.level_z),
        }

    def predictions(self, variant: Variant, campaigns: Iterable[str]) -> pd.DataFrame:
        """Return one row per measure and campaign."""
        names = list(campaigns)
        rows = [
            {"campaign": name, "measure": gain, **self.predict(name, gain, variant)}
            for gain in MEASURES
            for name in names
        ]
        return pd.DataFrame(rows)


def reach(systems: int, k: float) -> float:
    """Return the slope of so many systems over that of very many: the root of the reliability of their consensus."""
    return float(np.sqrt(systems / (systems + k)))


def scaled(estimate: CampaignEstimate, factor: float) -> CampaignEstimate:
    return replace(estimate, coefficients=tuple(c.times(factor) for c in estimate.coefficients))


def log_loss(scores: Scores, true: np.ndarray) -> float:
    """Return the mean of -log P(true direction) over pairs of systems, true ties left out."""
    a, b = np.triu_indices(len(true), k=1)
    gap, higher = true[a] - true[b], scores.ranking().p_higher
    p = np.where(gap > 0, higher[a, b], higher[b, a])[np.abs(gap) >= TIE]
    return float(-np.log(np.maximum(p, LEAST)).mean())


def compared(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per variant: means over the campaigns, and over those that are unlike them."""
    rows = []
    for title, frame in found.items():
        like, unlike = (frame[frame["campaign"].isin(names)] for names in (PREDICTED, UNLIKE))
        row: dict[str, str | float] = {"prior": title}
        for name in MEASURES:
            mine, odd = like[like["measure"] == name], unlike[unlike["measure"] == name]
            row |= {
                f"log loss, {name}": mine["log loss"].mean(),
                f"stated - right, {name}": (mine["stated"] - mine["right"]).mean(),
                f"least p, {name}": mine["p"].min(),
                f"log loss of the unlike, {name}": odd["log loss"].mean(),
            }
        rows.append(row)
    return pd.DataFrame(rows)


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


def independent_pairs(music: list[Row], text: dict[str, list[Row]]) -> str:
    """The part of the page on models with independent pairs, from its rows."""
    errors = {r.way: number(r.mean_error, sign=True) for r in music if r.measure == "nDCG@5"}
    parts = ["accuracy", "tau", "rmse_delta", "rho", "rmse_score", "mean_error", "coverage"]
    found = "\n".join(table(music, ["confidence", *parts]))
    lines = [HEAD.format(seeds=SEEDS, music=found, taylor=errors["Taylor"], draws=errors["draws"])]
    parts = ["accuracy", "tau", "rho", "rmse_score", "mean_error", "coverage", "centred_coverage"]
    for name, rows in text.items():
        lines += [f"### {name}", "", *table(rows, ["confidence", *parts]), ""]
    return "\n".join([*lines, TAIL])


def hierarchical(found: dict[str, pd.DataFrame]) -> str:
    """The part of the page on the hierarchical model, from the predictions of each variant."""
    return "\n".join([LEFT_OUT, markdown(found["as it is"]), TRIED, markdown(compared(found)), FOUND, AGAIN])


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

"""

LEFT_OUT = """\
## The hierarchical model, every campaign left out

The [hierarchical model](theory/hierarchical.md) is learned from all other campaigns, the two rounds of TREC-COVID left
out together, and predicts a campaign with nothing judged. The last five campaigns are unlike those learned from:
systems of later years and re-rankings of one first stage on topics of DL 2019 and 2020 (that campaign is left out too),
and grades by a language model; nearly all of their top ten is judged.

*Log loss* is the mean of -log P(true direction) over pairs of systems; *p* is the probability that a perfectly
calibrated model has as large a calibration error ([null](theory/calibration.md#null)); *top 15* is tau among the 15
truly best systems.
"""

TRIED = """\
### Other forms of the prior

Twelve campaigns are few. Would heavier tails, or a kind of campaign in which consensus tells nothing, predict campaigns
left out better? Means over the 13 campaigns, and over the five that are unlike them:
"""

FOUND = """\
- No tail lowers the log loss: a campaign that contradicts consensus (Touche) is predicted a little better, the others
  worse. Stated confidence is already a little below accuracy in the mean. So the prior stays as it is.
- The campaign on which confidence was far too high, query suggestions with lists of 4 to 10 items, was so because long
  lists had a high [authority](theory/relevance-models.md#authority). With authority by cosines, and the
  [effect of selectivity](theory/hierarchical.md#selectivity), it is like the others.
- With few systems the slope of authority is smaller (.74 with 3 systems of a campaign, .95 with 10, 1.19 with 20, in
  the mean over random subsets), but so are the effects of systems, and the confidence in the ranking is about right
  (stated .695 and right .705 with 5 systems, .703 and .718 with 10, .720 and .783 with 20): a slope that depends on
  the number of systems predicts no better.
- Learning from query suggestions too does not help to predict the others.
- Not in the table: mean authority of the systems that retrieved a document, as a third term. Its coefficient is .05 in
  the mean over campaigns with a spread of .3; the log loss is .514 (DCG).
"""

AGAIN = """\
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
    work = LeftOut(folder)
    found = {title: work.predictions(variant, (*PREDICTED, *UNLIKE)) for title, variant in VARIANTS.items()}
    first = independent_pairs(music_rows(folder, tables), text_rows(folder, print))
    PAGE.write_text(f"{first}\n{hierarchical(found)}", encoding="utf-8")
    print(PAGE.name)
