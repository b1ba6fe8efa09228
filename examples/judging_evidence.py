"""Write docs/evidence-judging.md: `python examples/judging_evidence.py DATA KEEP [PART...]`.

Models and trajectories are kept in the folder KEEP as they are made, so that a broken run resumes where it stopped. The
folder is for one version of the model: take a new one when the model changes. Two processes can share a folder. Parts:
`explore`, `scores`, `seeds`, `plan`; all of them when none is named.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, do_all, table
from replays import Replays

from probeval.relevance import choose_model
from probeval.selection import POLICIES, Judging
from probeval.simulation import HeldOut, SimulatedAssessor, SimulationProtocol, forecast, replay
from probeval.simulation.trajectory import Trajectory, lasting

TRIED = ("clef-ehealth2018-irtask1", "trec-dl2019-passage", "trec8-adhoc")  # by `scores` and `plan`
FAR = 0.3  # of the pool: the effort of an order that never arrives at tau .9
PILOT, PLANS = 0.03, 5
HEAD = """# Evidence: exploration, scores, MIREX 2011, and plans

Written by `examples/judging_evidence.py`. Which pair next and when to stop is on the pages
[to the stop](evidence/to-the-stop.md) and [cost](evidence/cost.md). The judging of each campaign is simulated with its
own judgments. The models are fitted to all other campaigns of texts; DCG@10 unless another measure is named.

"""


class Work(Replays):
    """Campaigns, models and trajectories, each made once."""

    def trajectory(self, part, name, policy, kind, *, seed=0, **settings):
        """Return a replay of a part of the page, DCG."""
        kept = "-".join([part, name, policy, kind, str(seed)])
        return self.replay(kept, name, policy, "DCG", kind=kind, seed=seed, **settings)


def end_of(run: Trajectory) -> dict:
    """Return where a trajectory would stop, and the judgments to tau .9, at most 30% of the pool."""
    stop, most = run.stop, FAR * run.setup.pool
    to_tau = run.judgments_to_tau90
    arrived = to_tau is not None and to_tau <= most
    return {
        "pool": run.setup.pool,
        "reached": float(stop is not None),
        "judgments": np.nan if stop is None else float(stop.judged),
        "accuracy": np.nan if stop is None else stop.accuracy,
        "arrived": float(arrived),
        "to tau .9": float(to_tau) if arrived else most,
    }


def explore(work: Work) -> str:
    name, rows = "trec-dl2019-passage", []
    for explored in (0.0, 0.1, 0.2):
        for seed in range(2):
            if explored == POLICIES["gain"].explores:
                run = work.judged_by("gain", name, "DCG", seed)
            else:
                run = work.trajectory(f"explore{explored}", name, "gain", "hierarchical", seed=seed, explore=explored)
            rows.append({"explore": str(explored), **end_of(run)})
    shown = pd.DataFrame(rows).groupby("explore")[["to tau .9", "judgments", "accuracy"]].mean().reset_index()
    return (
        "## Does exploration help?\n\nDL 2019, DCG, means over two seeds: judgments to tau .9, and judgments and "
        "accuracy at the stop. Single trajectories vary by a hundred judgments or more.\n\n" + table(shown)
    )


def scores(work: Work) -> str:
    settings = {"goal": "scores", "stop": "halfwidth=.05", "batch": 20, "checkpoints": (), "draws": 300, "until": 0.6}
    rows = []
    for name in TRIED:
        for policy, kind in (("variance", "independent"), ("variance", "hierarchical"), ("gain", "hierarchical")):
            run = work.trajectory("scores", name, policy, kind, **settings)
            rows.append({"campaign": name, "measure": run.setup.metric, "policy": f"{policy}, {kind}", **absolute(run)})
    held, model = mirex(work), "mirex-jud-fine-published"
    chosen = choose_model(model, replace(held.collection, judgments=None), scale=held.scale).model
    for metric in ("CG@5", "nDCG@5"):
        protocol = SimulationProtocol.of(metric, **settings)
        run = work.kept(
            f"scores-mirex2011-{metric}", partial(replay, held, chosen, protocol, policy="variance", name=model)
        )
        rows.append({"campaign": "mirex2011", "measure": metric, "policy": f"variance, {model}", **absolute(run)})
    note = (
        "Every 95% half-width at most .05, in batches of twenty. Published for MIREX 2011 Fine, with corrected "
        "thresholds: CG@5 after 539 judgments with a mean error of .017."
    )
    return f"## Absolute scores to a half-width of .05\n\n{note}\n\n" + table(pd.DataFrame(rows))


def mirex(work: Work) -> HeldOut:
    return work.held("mirex2011", depth=5)


def absolute(run: Trajectory) -> dict:
    """Return the figures of absolute scores at the stop."""
    stop, point = run.end, run.at_stop
    if point is None:
        return {"stop": f"> {stop.judged}", "share": None, "mean error": None, "coverage": None}
    return {"stop": stop.judged, "share": stop.fraction, "mean error": point.mae, "coverage": point.coverage}


def seeds(work: Work) -> str:
    held, rows = mirex(work), []
    unjudged = replace(held.collection, judgments=None)
    for policy, model, refresh in (
        ("mtc", "uniform", 1),
        ("mtc-thesis", "uniform", 20),
        ("mtc-thesis", "mirex-jud-fine-published", 20),
        ("mtc-thesis", "mirex-jud-fine", 20),
    ):
        chosen = choose_model(model, unjudged, scale=held.scale).model
        protocol = SimulationProtocol.of("CG@5", refresh=refresh, explore=0.0)
        run = work.kept(f"seeds-{policy}-{model}", partial(replay, held, chosen, protocol, policy=policy, name=model))
        rows.append(
            {
                "policy": policy,
                "model": model,
                "at .90": run.reaches(0.9),
                "at .95": run.reaches(0.95),
                "accuracy there": run.end.accuracy,
                "tau there": run.end.tau,
                "all significant right": run.significant,
            }
        )
    published = (
        "Published: .90 and .95 at 1,304 and 2,234 judgments for the uniform prior, all significant comparisons right "
        "at 1,611; .95 at 123 judgments, accuracy .935, tau .869 for fitted models."
    )
    shown = pd.DataFrame(rows, dtype=object)
    return f"## MIREX 2011, as published\n\nCG@5, Fine, one judgment at a time. {published}\n\n" + table(shown)


def plans(work: Work) -> str:
    rows = []
    for name in TRIED:
        held, model = work.held(name), work.model(name, "hierarchical")
        n = int(np.ceil(PILOT * len(held.pool)))
        for seed in range(PLANS):
            # Past the target, so that it can be seen to hold.
            run = work.trajectory(
                "pilot", name, "gain", "hierarchical", seed=seed, pilot=PILOT, checkpoints=(), stop="confidence=.96",
                until=0.6,
            )  # fmt: skip
            first = lasting([replace(s, tau=s.confidence) for s in run.steps], 0.95, 100)

            def ahead(held=held, model=model, judged=run.order[:n], seed=seed):
                pilot = SimulatedAssessor.of(held).judge(held, judged)
                offered = np.isin(np.arange(len(held.pool)), held.known)
                judging = Judging.of(
                    replace(held.collection, judgments=pilot), model, "DCG@10", scale=held.scale, depth=10,
                    offered=offered, explore=0.0, seed=seed,
                )  # fmt: skip
                return forecast(judging.begin()).needed(0.95)

            said = work.kept(f"plan-{name}-{seed}", ahead)
            right = next((s.accuracy for s in run.steps if s.judged == first), float("nan"))
            true = np.nan if first is None else float(first)
            rows.append({"campaign": name, "seed": seed, "true": true, **said, "accuracy": right})
    frame = pd.DataFrame(rows)
    error = (frame["judgments"] - frame["true"]).abs() / frame["true"]
    inside = (frame["lower"] <= frame["true"]) & (frame["true"] <= frame["upper"])
    shown = frame.assign(error=error, inside=inside.astype(float)).groupby("campaign", sort=False)
    means = shown[["true", "judgments", "lower", "upper", "error", "inside", "accuracy"]].median()
    means["inside"] = shown["inside"].mean()
    text = (
        f"Median relative error {error.median():.3f}; the 90% interval contains the truth in {int(inside.sum())} of "
        f"{len(frame)} runs."
    )
    return (
        "## Plans from a pilot of 3% of the pool\n\nNumber of judgments, pilot included, until mean confidence reaches "
        f".95 and stays there for a hundred judgments; medians over {PLANS} pilots.\n\n"
        + table(means.reset_index())
        + f"\n{text}\n"
    )


PARTS = {"explore": explore, "scores": scores, "seeds": seeds, "plan": plans}


def main(asked: argparse.Namespace) -> None:
    work = Work(asked.data, asked.keep)

    def write(part):
        (asked.keep / f"{part}.md").write_text(PARTS[part](work), encoding="utf-8")

    do_all([partial(write, part) for part in asked.parts or PARTS])
    paths = [asked.keep / f"{part}.md" for part in PARTS]
    page = HEAD + "\n".join(path.read_text(encoding="utf-8") for path in paths if path.exists())
    (DOCS / "evidence-judging.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/evidence-judging.md.")
    parser.add_argument("data", type=Path, help="the folder of real campaigns")
    parser.add_argument("keep", type=Path, help="the folder of finished work")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    main(given)
