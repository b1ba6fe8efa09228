"""Make docs/evidence-relevance.md again: `python examples/relevance_evidence.py DATA`, DATA with campaign folders."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from probeval.data import Collection, read_campaign
from probeval.errors import DataError, ProbevalWarning
from probeval.features import relevance_of
from probeval.relevance import (
    Diagnostics,
    Empirical,
    OrdinalModel,
    TrainingData,
    cross_validate,
    diagnose,
    load_card,
    training_data,
)
from probeval.relevance.learning.fit import TEXT_JUD

PAGE = Path(__file__).parents[1] / "docs" / "evidence-relevance.md"
TEXT = ("clef-ehealth2018-irtask1", "touche2022-task2", "trec-covid-round1", "trec-dl2019-passage", "trec8-adhoc")
FOLDS = 10
HEAD = (
    "| campaign | pairs | RMSE | R2 | stated variance | squared error | ratio | log score | past shares | RPS |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
INTRO = """# Evidence: relevance models

How good the probabilities of the models are on queries, and on campaigns, that they were not fitted on. The figures are
made by `python examples/relevance_evidence.py DATA` from the real campaigns, which are not part of the package.

- Relevance is the grade over the top grade. *RMSE* and *R2* are of its expected value.
- *ratio* is the mean variance that the model states over the mean squared error that it makes. A model that knows how
  sure it may be has 1; below 1 it is too sure, above 1 not sure enough.
- *log score* is the mean log probability of the judged level (higher is better); *past shares* is that of a model that
  gives every pair the shares of the levels in the same training data, and knows nothing else.
- *RPS* is the ranked probability score, averaged over cutpoints (lower is better).
- Features of judgments leave the pair itself out. All other judged pairs of the campaign count, so the figures are for
  the end of a campaign, not for its beginning.
- *Held out by query*: ten folds of whole queries, fitted on the rest of all campaigns. *Held out by campaign*: fitted
  on the other campaigns alone.

## Texts

Pools to depth 10 of the systems that are fully judged there (of all systems where none is). Every campaign counts alike
in a fit. Models without judgments cannot know a campaign's base rate, so by campaign their level is a guess; their
figures are reported without a target.
"""
MUSIC = """
## Music

MIREX 2011, Fine grades in ten bins, pools to depth 5. The models that are marked as published use the coefficients of
Urbano (2013), and may have been fitted on this campaign too. The second was published with a leak (a document's own
judgment counts in its own artist mean): left out, as it must be in use, it states a quarter of its squared error.
"""


def row(name: str, found: Diagnostics, shares: Diagnostics | None) -> str:
    past = "-" if shares is None else f"{shares.log_score:.3f}"
    return (
        f"| {name} | {found.n:,} | {found.rmse:.3f} | {found.r2:.3f} | {found.stated_variance:.4f} | "
        f"{found.squared_error:.4f} | {found.ratio:.2f} | {found.log_score:.3f} | {past} | "
        f"{found.ranked_probability_score:.3f} |"
    )


def past_shares(data: TrainingData, by: str) -> np.ndarray:
    """What past shares say of each pair, learned from the same training data as the model that is held out."""
    fold = data.campaign if by == "campaign" else np.unique(data.query, return_inverse=True)[1] % FOLDS
    out = np.zeros((len(data), int(data.n_levels.max())))
    for held_out in np.unique(fold):
        found: dict[int, list[np.ndarray]] = {}
        for campaign in np.unique(data.campaign):
            seen = (data.campaign == campaign) & (fold != held_out)
            if seen.any():
                n = int(data.n_levels[seen][0])
                count = np.bincount(data.level[seen], minlength=n) + 0.5
                found.setdefault(n, []).append(count / count.sum())
        model = Empirical({n: tuple(np.mean(shares, axis=0)) for n, shares in found.items()})
        for n in np.unique(data.n_levels):
            out[np.ix_((fold == held_out) & (data.n_levels == n), np.arange(n))] = model.share(int(n))
    return out


def table(terms: tuple[str, ...], data: TrainingData, by: str) -> Iterator[str]:
    said = cross_validate(OrdinalModel(terms, balanced=True), data, by=by, folds=FOLDS)
    shares = past_shares(data, by)
    yield f"\nHeld out by {by}:\n\n{HEAD}"
    parts = [(name, data.campaign == i) for i, name in enumerate(data.campaigns)]
    for name, rows in [*parts, ("all", data.campaign >= 0)] if len(parts) > 1 else parts:
        yield row(name, diagnose(said[rows], data.take(rows)), diagnose(shares[rows], data.take(rows)))


def texts(folder: Path) -> Iterator[str]:
    campaigns: list[Collection] = []
    for name in TEXT:
        campaign = read_campaign(folder / name)
        try:
            campaigns.append(campaign.judged_systems(10))
        except DataError:
            campaigns.append(campaign)
    for terms in TEXT_JUD:
        data = training_data(campaigns, terms, depth=10)
        kind = "Outputs and judgments" if "aDOC" in terms else "Outputs alone"
        yield f"\n### {kind}: {', '.join(f'`{t}`' for t in terms)}"
        for by in ("query", "campaign"):
            yield from table(terms, data, by)


def music(folder: Path) -> Iterator[str]:
    campaign = read_campaign(folder / "mirex2011")
    yield f"\n{HEAD.replace('campaign', 'model')}"
    for title, name in (
        ("outputs, as published", "mirex-out-fine"),
        ("judgments, as published", "mirex-jud-fine-published"),
    ):
        model = load_card(name).models[0]
        data = training_data([campaign], model.terms, depth=5)
        scale = campaign.judgments.scale()
        said = model.probabilities(campaign, depth=5, scale=scale)
        judged = ~np.isnan(relevance_of(campaign.judgments, campaign.runs.top(5).pool, scale))
        yield row(title, diagnose(said[judged & ~np.isnan(said).any(axis=1)], data), None)
    for model in load_card("mirex-jud-fine").models:
        if getattr(model, "covariance", ()):  # fitted here
            data = training_data([campaign], model.terms, depth=5)
            yield f"\n### Ours: {', '.join(f'`{t}`' for t in model.terms)}"
            yield from table(model.terms, data, "query")


def page(folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        return "\n".join([INTRO.rstrip(), *texts(folder), MUSIC.rstrip(), *music(folder)]) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/relevance_evidence.py DATA")
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    print(f"Written to docs/{PAGE.name}.")
