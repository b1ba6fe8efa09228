"""Write docs/evidence-judging.md and its pictures: `python examples/judging_evidence.py DATA KEEP [PART...]`.

Trajectories are kept in the folder KEEP as they are made, so that a broken run resumes where it stopped. Parts:
`ranking`, `explore`, `labels`, `scores`, `seeds`, `plan`; all of them when none is named.
"""

import pickle
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from probeval.data import read_campaign
from probeval.data.evidence import read_graded_labels
from probeval.plots import plot_trajectories, save
from probeval.relevance import choose_model, fit_hierarchical
from probeval.selection import Judging
from probeval.simulation import MODELS, HeldOut, SimulatedAssessor, Simulation, SimulationProtocol, forecast, replay
from probeval.simulation.trajectory import lasting

DOCS = Path(__file__).parents[1] / "docs"
TEXT = ("trec8-adhoc", "trec-dl2019-passage", "clef-ehealth2018-irtask1", "trec-covid-round1", "touche2022-task2")
TRIED = TEXT[:3]
PICTURES = ("judging-trec8-adhoc.png", "judging-trec-dl2019-passage.png", "judging-clef-ehealth2018-irtask1.png")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
UNTIL = 0.6
PILOT, SEEDS = 0.03, 10
HEAD = """# Evidence: which pair next, and when to stop

Written by `examples/judging_evidence.py`, which does the same as `probeval simulate` and `probeval plan`. The judging
of each campaign is simulated with its own judgments, with models fitted to the other campaigns, in batches of ten. The
measure is DCG@10 unless another is named; the pool is the top ten of the systems that are fully judged. *to tau .9* is
the number of judgments from which Kendall's tau with the true order stays at .9 or more for another hundred; *stop* is
where mean confidence first reaches .95. Random order is the median of five seeds, measured every fifty judgments.

"""


class Work:
    """Campaigns, models and trajectories, each made once."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.data, self.keep = data, keep
        keep.mkdir(parents=True, exist_ok=True)

    def kept(self, name, make):
        path = self.keep / f"{name}.pkl"
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = make()
            path.with_suffix(".part").write_bytes(pickle.dumps(made))
            path.with_suffix(".part").rename(path)
            print(name, file=sys.stderr, flush=True)
        return pickle.loads(path.read_bytes())

    def campaigns(self):
        return self.kept("campaigns", lambda: {n: read_campaign(self.data / n) for n in TEXT})

    def held(self, name):
        return HeldOut.of(self.campaigns()[name], depth=10)

    def mirex(self):
        return HeldOut.of(self.kept("mirex", lambda: read_campaign(self.data / "mirex2011")), depth=5)

    def model(self, name, kind):
        def fit():
            others = [c for n, c in self.campaigns().items() if n != name]
            past = [HeldOut.of(c, depth=10).collection if c.name in TRIED else c for c in others]
            return MODELS[kind](past, depth=10)

        return self.kept(f"model-{name}-{kind}", fit)

    def trajectory(self, name, policy, kind, *, metric="DCG@10", label="", **settings):
        seed = settings.pop("seed", 0)
        protocol = SimulationProtocol.of(metric, **{"batch": 10, "checkpoints": SHARES, "until": UNTIL, **settings})
        model = self.model(name, kind)
        return self.kept(
            f"trajectory-{name}-{policy}-{kind}-{metric}-{label}-{seed}",
            lambda: replay(self.held(name), model, protocol, policy=policy, name=kind, seed=seed),
        )


def table(frame: pd.DataFrame) -> str:
    rows = [[_cell(v) for v in row] for row in frame.itertuples(index=False)]
    head = list(map(str, frame.columns))
    return "\n".join("| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.0f}"
    return "-" if value is None else str(value)


def summary(trajectory, pool):
    stop = trajectory.to_dict()["stop"]
    return {
        "to tau .9": trajectory.judgments_to_tau90 or f"> {int(UNTIL * pool)}",
        "stop": stop["judged"],
        "accuracy there": stop["accuracy"],
        "tau there": stop["tau"],
    }


def ranking(work: Work) -> str:
    page = "## The ranking of all systems\n\n"
    rows, points = [], []
    for name in TRIED:
        pool = len(work.held(name).pool)
        far = 0.25 if pool > 10_000 else 0.4
        gain = work.trajectory(name, "gain", "hierarchical")
        mtc = work.trajectory(name, "mtc", "independent", explore=0.0)
        chance = [work.trajectory(name, "random", "hierarchical", batch=50, until=far, seed=s) for s in range(5)]
        for label, trajectory in (("gain, hierarchical", gain), ("mtc, independent", mtc)):
            rows.append({"campaign": name, "policy": label, **summary(trajectory, pool)})
        arrived = [c.judgments_to_tau90 or np.inf for c in chance]
        stops = [c.to_dict()["stop"] for c in chance]
        middle = float(np.median(arrived))
        rows.append(
            {
                "campaign": name,
                "policy": "random, hierarchical",
                "to tau .9": middle if np.isfinite(middle) else f"> {int(far * pool)}",
                "stop": float(np.median([s["judged"] for s in stops])),
                "accuracy there": float(np.median([s["accuracy"] for s in stops])),
                "tau there": float(np.median([s["tau"] for s in stops])),
            }
        )
        for i, share in enumerate(SHARES):
            point = gain.points[i]
            points.append(
                {
                    "campaign": name,
                    "judged": share,
                    "tau": point.tau,
                    "tau, random": float(np.median([c.points[i].tau for c in chance])),
                    "confidence": point.confidence,
                    "accuracy": point.accuracy,
                    "excess": point.calibration_excess,
                    "p": point.calibration_p,
                    "centred": point.centred_coverage,
                    "level z": point.level_z,
                    "rules' F": gain.rules[i].f,
                }
            )
        save(
            plot_trajectories(Simulation((gain, mtc, *chance))), DOCS / "_static" / PICTURES[TRIED.index(name)], dpi=60
        )
    page += table(pd.DataFrame(rows)) + "\nAlong the trajectory of `gain`:\n\n" + table(pd.DataFrame(points))
    return page + "".join(f"\n![{name}](_static/{picture})\n" for name, picture in zip(TRIED, PICTURES, strict=True))


def explore(work: Work) -> str:
    rows = []
    for name in TRIED[1:2]:
        pool = len(work.held(name).pool)
        for kind in ("hierarchical", "independent"):
            for share in (0.0, 0.1, 0.2):
                for seed in range(2):
                    trajectory = work.trajectory(
                        name, "gain", kind, explore=share, seed=seed, label=f"explore{share}", checkpoints=SHARES[:5]
                    )
                    arrived = trajectory.judgments_to_tau90 or int(UNTIL * pool)
                    rows.append({"campaign": name, "model": kind, "explore": share, "to tau .9": float(arrived),
                                 "stop": float(trajectory.to_dict()["stop"]["judged"]),
                                 "accuracy there": trajectory.to_dict()["stop"]["accuracy"]})  # fmt: skip
    shown = pd.DataFrame(rows).groupby(["campaign", "model", "explore"], sort=False).mean().reset_index()
    return (
        "## Does exploration help?\n\nMeans over two seeds; single trajectories vary by a hundred judgments or "
        "more.\n\n" + table(shown)
    )


def labels(work: Work) -> str:
    name = "trec-dl2019-passage"
    held = work.held(name)
    past = [c for n, c in work.campaigns().items() if n != name]
    graded = read_graded_labels(work.data / "labels-dl2020.tsv.gz")
    model = work.kept("model-labels", lambda: fit_hierarchical(past, depth=10, labelled=[graded]))
    rows = []
    for metric in ("DCG@10", "nDCG@10"):
        protocol = SimulationProtocol.of(metric, batch=10, checkpoints=SHARES, until=0.2, draws=500)
        trajectory = work.kept(
            f"labels-{metric}", lambda protocol=protocol: replay(held, model, protocol, policy="gain", name="labels")
        )
        stop = trajectory.to_dict()["stop"]
        rows.append({"measure": metric, "stop": stop["judged"], "share": stop["fraction"],
                     "accuracy there": stop["accuracy"], "tau there": stop["tau"],
                     "tau at none": trajectory.points[0].tau})  # fmt: skip
    return "## With labels by language models (DL 2019)\n\n" + table(pd.DataFrame(rows))


def scores(work: Work) -> str:
    rows = []
    for name in reversed(TRIED):
        pool = len(work.held(name).pool)
        for metric in ("DCG@10", "nDCG@10") if pool < 10_000 else ("DCG@10",):
            for policy, kind in (("variance", "independent"), ("variance", "hierarchical"), ("gain", "hierarchical")):
                trajectory = work.trajectory(
                    name, policy, kind, metric=metric, goal="scores", stop="halfwidth=.05", label="scores",
                    checkpoints=(), draws=300, batch=20,
                )  # fmt: skip
                rows.append(
                    {"campaign": name, "measure": metric, "policy": f"{policy}, {kind}", **_absolute(trajectory)}
                )
    held = work.mirex()
    for metric in ("CG@5", "nDCG@5"):
        for model in ("mirex-jud-fine-published",):
            chosen = choose_model(model, replace(held.collection, judgments=None), scale=held.scale).model
            protocol = SimulationProtocol.of(
                metric, goal="scores", stop="halfwidth=.05", batch=20, checkpoints=(), draws=300, until=UNTIL
            )
            trajectory = work.kept(
                f"mirex-scores-{metric}-{model}",
                lambda protocol=protocol, model=model, chosen=chosen: replay(
                    held, chosen, protocol, policy="variance", name=model
                ),
            )
            rows.append(
                {"campaign": "mirex2011", "measure": metric, "policy": f"variance, {model}", **_absolute(trajectory)}
            )
    note = (
        "Every 95% half-width at most .05, in batches of twenty. Published for MIREX 2011 Fine, with corrected "
        "thresholds: CG@5 after 539 judgments with a mean error of .017."
    )
    return f"## Absolute scores to a half-width of .05\n\n{note}\n\n" + table(pd.DataFrame(rows))


def _absolute(trajectory):
    stop = trajectory.to_dict()["stop"]
    if trajectory.at_stop is None:
        return {"stop": f"> {stop['judged']}", "share": None, "mean error": None, "coverage": None}
    point = trajectory.at_stop
    return {"stop": stop["judged"], "share": stop["fraction"], "mean error": point.mae, "coverage": point.coverage}


def seeds(work: Work) -> str:
    held = work.mirex()
    plain = replace(held.collection, judgments=None)
    rows = []
    for policy, model, refresh in (
        ("mtc", "uniform", 1),
        ("mtc-thesis", "uniform", 20),
        ("mtc-thesis", "mirex-jud-fine-published", 20),
        ("mtc-thesis", "mirex-jud-fine", 20),
    ):
        chosen = choose_model(model, plain, scale=held.scale).model
        protocol = SimulationProtocol.of("CG@5", refresh=refresh, explore=0.0, checkpoints=SHARES)
        trajectory = work.kept(
            f"mirex-{policy}-{model}",
            lambda chosen=chosen, policy=policy, model=model, protocol=protocol: replay(
                held, chosen, protocol, policy=policy, name=model
            ),
        )
        stop = trajectory.to_dict()["stop"]
        rows.append({"policy": policy, "model": model,
                     "at .90": trajectory.reaches(0.9), "at .95": trajectory.reaches(0.95),
                     "accuracy there": stop["accuracy"], "tau there": stop["tau"],
                     "all significant right": trajectory.significant})  # fmt: skip
    published = (
        "Published: .90 and .95 at 1,304 and 2,234 judgments for the uniform prior, all significant comparisons right "
        "at 1,611; .95 at 123 judgments, accuracy .935, tau .869 for fitted models."
    )
    return f"## MIREX 2011, as published\n\nCG@5, Fine, one judgment at a time. {published}\n\n" + table(
        pd.DataFrame(rows)
    )


def plans(work: Work) -> str:
    rows = []
    for name in reversed(TRIED):
        held, model = work.held(name), work.model(name, "hierarchical")
        for seed in range(SEEDS):
            # Past the target, so that it can be seen to hold.
            trajectory = work.trajectory(name, "gain", "hierarchical", pilot=PILOT, seed=seed, label="pilot",
                                         checkpoints=(),
                                 stop="confidence=.96")  # fmt: skip
            first = lasting([replace(s, tau=s.confidence) for s in trajectory.steps], 0.95, 100)
            n = int(np.ceil(PILOT * len(held.pool)))

            def ahead(held=held, model=model, trajectory=trajectory, n=n, seed=seed):
                pilot = SimulatedAssessor.of(held).judge(held, trajectory.order[:n])
                offered = np.isin(np.arange(len(held.pool)), held.known)
                judging = Judging.of(replace(held.collection, judgments=pilot), model, "DCG@10", scale=held.scale,
                                  depth=10, offered=offered, explore=0.0, seed=seed)  # fmt: skip
                return forecast(judging.begin(), n_jobs=2).needed(0.95)

            said = work.kept(f"plan-{name}-{seed}", ahead)
            right = next((s.accuracy for s in trajectory.steps if s.judged == first), float("nan"))
            rows.append({"campaign": name, "seed": seed, "true": float(first or np.nan), **said, "accuracy": right})
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
        f".95 and stays there for a hundred judgments; medians over {SEEDS} pilots.\n\n"
        + table(means.reset_index())
        + f"\n{text}\n"
    )


PARTS = {"ranking": ranking, "explore": explore, "labels": labels, "scores": scores, "seeds": seeds, "plan": plans}


def main(data: Path, keep: Path, parts: list[str]) -> None:
    work = Work(data, keep)
    for name in parts or PARTS:
        (keep / f"{name}.md").write_text(PARTS[name](work), encoding="utf-8")
    made = [keep / f"{name}.md" for name in PARTS if (keep / f"{name}.md").exists()]
    page = HEAD + "\n".join(path.read_text(encoding="utf-8") for path in made)
    (DOCS / "evidence-judging.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3 or set(sys.argv[3:]) - set(PARTS):
        sys.exit(f"usage: python examples/judging_evidence.py DATA KEEP [{'|'.join(PARTS)} ...]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
