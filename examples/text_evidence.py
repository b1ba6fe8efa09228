"""Write docs/evidence-texts.md: `python examples/text_evidence.py DATA KEEP`.

Every finished cell is kept in the folder KEEP, so that a broken run resumes where it stopped. An empty folder makes
everything again.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, past_campaigns, short, table

from probeval import as_collection
from probeval.data import read_campaign
from probeval.relevance import fit_hierarchical
from probeval.relevance.effects import similar
from probeval.relevance.normal import Normal
from probeval.simulation import HeldOut, SimulationProtocol, replay

PAGE = DOCS / "evidence-texts.md"
CAMPAIGNS = {"trec-dl2019-passage": "DL 2019", "trec-dl2020-passage": "DL 2020"}
TEXTS = "docs-{}.jsonl.gz"
METRIC, DEPTH, SEEDS = "DCG@10", 10, 2
SHARES, UNTIL, FARTHEST = (0.05, 0.1, 0.2, 0.4), 0.4, 0.7
BATCH = {"gain": 10, "random": 50}
NAMES = {False: "without", True: "with"}
HEAD = """# Evidence: texts of documents

Written by `examples/text_evidence.py`. TREC Deep Learning 2019 (37 systems, 43 queries, 2,495 pairs to depth 10) and
2020 (51 systems, 54 queries, {pairs} pairs) are judged again, each with a model that was fitted to other campaigns,
with and without the texts of its passages ([similar documents](theory/hierarchical.md#similar)). The measure is DCG@10;
figures are means over {seeds} seeds. The log score and the explained variance are those of the grades of unjudged
pairs: the mean log probability of the true grade, and the share of the variance of grades that expected grades explain.

The form of the effect was chosen on DL 2019, when it was the only campaign at hand with texts. DL 2020 tests the
choice, and confirms it. The centre of the prior was then 1 logit. Both campaigns estimate more, so it was raised.

"""


class Work:
    """A campaign, its model and its cells, each made once."""

    def __init__(self, data: Path, keep: Path, campaign: str) -> None:
        self.data, self.campaign, self.kept = data, campaign, Keep(keep / campaign)
        self.model = self.kept("model", self._fit)
        self.labelled = self.kept("campaign", lambda: self._held(texts=False))
        self.vectors = self.kept("vectors", lambda: self._held(texts=True).collection.vectors)

    def _fit(self):
        return fit_hierarchical(past_campaigns(self.data, self.campaign), depth=DEPTH)

    def _held(self, *, texts):
        docs = self.data / TEXTS.format(self.campaign) if texts else None
        collection = as_collection(read_campaign(self.data / self.campaign), docs=docs)
        return HeldOut.of(collection, depth=DEPTH)

    def held(self, *, texts, labels=False):
        collection = self.labelled.collection
        return replace(
            self.labelled,
            collection=replace(
                collection,
                vectors=self.vectors if texts else None,
                labels=collection.labels if labels else None,
            ),
        )

    def trajectory(self, policy, *, texts, seed):
        """Judge by a policy."""
        protocol = SimulationProtocol.of(METRIC, batch=BATCH[policy], checkpoints=(0.0, *SHARES), until=UNTIL)
        return self.kept(
            f"trajectory-{policy}-{NAMES[texts]}-{seed}",
            lambda: replay(self.held(texts=texts), self.model, protocol, policy=policy, name="", seed=seed),
        )

    def to_width(self, *, texts, seed):
        """Judge for scores until every half-width is at most .05."""
        protocol = SimulationProtocol.of(
            METRIC, goal="scores", stop="halfwidth=.05", batch=50, checkpoints=(), until=FARTHEST
        )
        return self.kept(
            f"width-{NAMES[texts]}-{seed}",
            lambda: replay(self.held(texts=texts), self.model, protocol, policy="gain", name="", seed=seed),
        )

    def order(self, policy, *, texts, seed):
        """The pairs in the order of their judging."""
        return np.array(self.trajectory(policy, texts=texts, seed=seed).order)

    def predicted(self, policy, *, texts, seed, labels=False):
        """The log score and the explained variance of unjudged pairs at each share."""
        held = self.held(texts=texts, labels=labels)
        order = self.order(policy, texts=texts, seed=seed)
        name = f"predicted-{policy}-{NAMES[texts]}-{seed}{'-labels' if labels else ''}"
        return self.kept(name, lambda: [unjudged_fit(self.model, held, order[: count(held, s)]) for s in SHARES])

    def tried(self, name, directions, width):
        """The same in random order, by another form of the effect."""

        def fit():
            own = similar.directions, similar.DIRECTIONS
            try:
                similar.directions, similar.DIRECTIONS = directions, width
                return self._in_random_order(texts=directions is not None)
            finally:
                similar.directions, similar.DIRECTIONS = own

        return self.kept(f"tried-{name}", fit)

    def by_prior(self, stated):
        """The same in random order, by another prior of the effect's log standard deviation."""

        def fit():
            own = similar.Similar.stated
            try:
                similar.Similar.stated = stated
                return self._in_random_order(texts=True)
            finally:
                similar.Similar.stated = own

        return self.kept(f"prior-{stated.mean:g}-{stated.sd:g}", fit)

    def _in_random_order(self, *, texts):
        held = self.held(texts=texts)
        orders = [self.order("random", texts=False, seed=s) for s in range(SEEDS)]
        return [[unjudged_fit(self.model, held, o[: count(held, s)]) for s in SHARES] for o in orders]

    def estimate(self):
        """The log standard deviation of the effect, and its error, with all pairs judged."""

        def fit():
            held = self.held(texts=True)
            posterior = self.model.infer(held.after(held.known).problem(depth=DEPTH, scale=held.scale))
            return posterior.log_sds["similar"]

        return self.kept("estimate", fit)


def count(held, share):
    return int(np.ceil(share * len(held.pool) - 1e-9))


def unjudged_fit(model, held, judged):
    """The log score of the grades of unjudged pairs, and the share of their variance that expected grades explain."""
    left = np.setdiff1d(held.known, judged)
    predicted = model.predict(held.after(judged).problem(depth=held.depth, scale=held.scale))
    probability = predicted.probability.mean(axis=0)[left]
    code = held.codes[left]
    grade, expected = held.scale.values[code], probability @ held.scale.values
    log_score = np.log(probability[np.arange(len(left)), code]).mean()
    return float(log_score), float(1 - ((grade - expected) ** 2).mean() / grade.var())


def power(exponent, *, centred=False, n=10):
    """Directions by a power of the similarity matrix."""

    def directions(similarity):
        size = len(similarity)
        shift = np.eye(size) - 1 / size if centred else np.eye(size)
        value, vector = np.linalg.eigh(shift @ similarity @ shift)
        return (vector * np.maximum(value, 0.0) ** (exponent / 2))[:, ::-1][:, :n]

    return directions


def root(similarity):
    """Directions by the square roots of the cosines."""
    return power(1)(np.sqrt(np.maximum(similarity, 0.0)))


PRIORS = (Normal(0.0, 1.0), Normal(0.7, 0.7), Normal(1.0, 0.5), Normal(1.2, 0.5), similar.Similar.stated)
ALL = 200  # more than the documents of any query
TRIED = {
    "no texts": (None, 1),
    "S, all directions": (power(1, n=ALL), ALL),
    "S, 20": (power(1, n=20), 20),
    "S, 10": (power(1), 10),
    "S, 5": (power(1, n=5), 5),
    "square roots of the cosines, 10": (root, 10),
    "S, centred, 10": (power(1, centred=True), 10),
    "S squared, all directions": (power(2, n=ALL), ALL),
    "S squared, 20": (power(2, n=20), 20),
    "S squared, 10 (taken)": (power(2), 10),
    "S squared, centred, 10": (power(2, centred=True), 10),
    "S cubed, 10": (power(3), 10),
    "S to the fourth, 10": (power(4), 10),
}


def predictions(works: list[Work]) -> str:
    page = "## Unjudged pairs\n\n"
    for labels in (False, True):
        rows = []
        for work, policy in product(works, ("random",) if labels else ("random", "gain")):
            cells = {
                texts: np.mean(
                    [work.predicted(policy, texts=texts, seed=s, labels=labels) for s in range(SEEDS)], axis=0
                )
                for texts in NAMES
            }
            for i, share in enumerate(SHARES):
                row = {"campaign": CAMPAIGNS[work.campaign], "order": policy, "judged": f"{share:.0%}"}
                for j, figure in enumerate(("log score", "explained")):
                    row |= {f"{figure}, {NAMES[texts]}": float(cells[texts][i, j]) for texts in NAMES}
                rows.append(row)
        if labels:
            page += "\nGiven the labels of the campaign (columns by language models), to which texts add:\n\n"
        page += table(pd.DataFrame(rows))
    return page


def scores(works: list[Work]) -> str:
    rows = []
    for work, policy in product(works, ("random", "gain")):
        for i, share in enumerate((0.0, *SHARES)):
            for texts, name in NAMES.items():
                points = [work.trajectory(policy, texts=texts, seed=s).points[i] for s in range(SEEDS)]
                rows.append(
                    {
                        "campaign": CAMPAIGNS[work.campaign],
                        "order": policy,
                        "judged": f"{share:.0%}",
                        "texts": name,
                        "mean error": float(np.mean([p.mae for p in points])),
                        "tau": float(np.mean([p.tau for p in points])),
                        "confidence": float(np.mean([p.confidence for p in points])),
                        "accuracy": float(np.mean([p.accuracy for p in points])),
                        "excess": float(np.mean([p.calibration_excess for p in points])),
                        "least p": min(p.calibration_p for p in points),
                        "coverage": float(np.mean([p.coverage for p in points])),
                        "centred": float(np.mean([p.centred_coverage for p in points])),
                        "largest level z": max(abs(p.level_z) for p in points),
                    }
                )
    note = (
        "Scores of systems against those with all judgments. The columns are explained in "
        "[calibration](evidence-calibration.md).\n\n"
    )
    return "\n## Scores of systems\n\n" + note + table(pd.DataFrame(rows))


def effort(works: list[Work]) -> str:
    rows = []
    for work, (texts, name) in product(works, NAMES.items()):
        for seed in range(SEEDS):
            ranked, wide = work.trajectory("gain", texts=texts, seed=seed), work.to_width(texts=texts, seed=seed)
            rows.append(
                {
                    "campaign": CAMPAIGNS[work.campaign],
                    "texts": name,
                    "seed": seed,
                    "to tau .9": ranked.judgments_to_tau90 or f"> {ranked.steps[-1].judged}",
                    "to a half-width of .05": wide.stop.judged if wide.stop else f"> {wide.steps[-1].judged}",
                }
            )
    note = (
        "By `gain`: to tau .9 for the goal `ranking`, in batches of ten; to a half-width of .05 of every score for the "
        "goal `scores`, in batches of fifty.\n\n"
    )
    return "\n## Judgments\n\n" + note + table(pd.DataFrame(rows))


def log_scores(works: list[Work], found: Callable[[Work], list]) -> dict[str, float]:
    """The log scores of unjudged pairs of each campaign, at each share, means over seeds."""
    return {
        f"{CAMPAIGNS[work.campaign]}, {share:.0%}": float(cell[0])
        for work in works
        for share, cell in zip(SHARES, np.mean(found(work), axis=0), strict=True)
    }


def priors(works: list[Work]) -> str:
    rows = []
    for prior in PRIORS:
        taken = " (taken)" if prior == similar.Similar.stated else ""
        rows.append(
            {"prior": f"N({short(prior.mean)}, {short(prior.sd)}){taken}"}
            | log_scores(works, lambda work, prior=prior: work.by_prior(prior))
        )
    found = [(CAMPAIGNS[work.campaign], work.estimate()) for work in works]
    estimates = ", ".join(f"{title} {e.mean:.2f} (error {e.sd:.2f})" for title, e in found)
    note = (
        f"The log standard deviation of the effect with all pairs judged: {estimates}. The log score of unjudged pairs "
        "in random order, by its prior:\n\n"
    )
    return "\n## The prior\n\n" + note + table(pd.DataFrame(rows))


def forms(works: list[Work]) -> str:
    rows = [
        {"covariance": name} | log_scores(works, lambda work, form=(name, *form): work.tried(*form))
        for name, form in TRIED.items()
    ]
    note = (
        "The log score of unjudged pairs in random order, by the covariance of the effect: powers of the cosines S, "
        "with the number of directions of each query that are kept.\n\n"
    )
    return "\n## Forms of the effect\n\n" + note + table(pd.DataFrame(rows))


def main(data: Path, keep: Path) -> None:
    works = [Work(data, keep, campaign) for campaign in CAMPAIGNS]
    parts = [part(works) for part in (predictions, scores, effort, priors, forms)]
    head = HEAD.format(seeds=SEEDS, pairs=f"{len(works[1].labelled.pool):,}")
    PAGE.write_text(head + "".join(parts), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/text_evidence.py DATA KEEP")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
