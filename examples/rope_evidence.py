"""Write docs/evidence-rope.md: `python examples/rope_evidence.py DATA KEEP [PART...]`.

Replays are kept in the folder KEEP, so that a broken run resumes where it stopped; `examples/judging_evidence.py` can
share it. Two processes can share it too. Parts: `stops`, `tried`, `pairs`; all of them when none is named.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from evidence import DOCS, Targets, do_all, table
from replays import Replays
from scipy.special import ndtr

from probeval.data import Collection
from probeval.metrics import parse
from probeval.selection import Judging, JudgingState
from probeval.simulation import HeldOut, SimulatedAssessor
from probeval.simulation.trajectory import Trajectory

CAMPAIGNS = (
    "trec-dl2019-passage",
    "clef-ehealth2018-irtask1",
    "trec-dl2020-passage",
    "clef-ehealth2014",
    "trec8-adhoc",
)
ROPE, LEVEL, SEEDS, METRIC = 0.02, 0.95, 3, "DCG@10"
NEAR = 0.001  # the true difference of the pairs of systems in `pairs`
STEPS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4)
LEAD = f"""# Evidence: judge until it matters

Written by `examples/rope_evidence.py`. Differences up to a [rope](theory/scores.md#conf) of {ROPE} do not matter.
The judging of each campaign is simulated by `gain` with its own judgments; {METRIC}; models are fitted to all other
campaigns, as in [the evidence of judging](evidence-judging.md).

"""


class AtStop(NamedTuple):
    """The verdicts on all pairs of systems where judging stopped."""

    ties: float
    ties_stated: float
    ties_right: float
    directions_stated: float
    directions_right: float
    classes_right: float


class Work(Replays):
    def state(self, name: str, judged, *, rope: float = 0.0, last: JudgingState | None = None) -> JudgingState:
        """Return the state with these pairs judged."""
        held = self.held(name)
        judging = last.judging if last is not None else self.judging(held, name, rope)
        judgments = SimulatedAssessor.of(held).judge(held, judged)
        return judging.state(judgments, last=None if last is None else last.prediction)

    def judging(self, held: HeldOut, name: str, rope: float) -> Judging:
        return Judging.of(
            replace(held.collection, judgments=None), self.model(name), METRIC, scale=held.scale, depth=held.depth,
            rope=rope,
        )  # fmt: skip

    def truth(self, name: str) -> np.ndarray:
        return self.held(name).truth(parse(METRIC)).mean(axis=1)

    def with_rope(self, name: str, seed: int) -> Trajectory:
        return self.replay(f"rope-{name}-{seed}", name, "gain", "DCG", seed=seed, rope=ROPE, checkpoints=(0.0,))

    def said(self, name: str, run: Trajectory, rope: float, a: int, b: int) -> str:
        """Return the verdict on two systems at the stop, and whether it is right."""
        ranking = self.state(name, run.order[: run.stop.judged], rope=rope).ranking
        gap = self.truth(name)[a] - self.truth(name)[b]
        if ranking.p_equal[a, b] >= LEVEL:
            return f"a tie, {'right' if abs(gap) <= rope else 'wrong'}"
        right = (ranking.scores.mean[a] - ranking.scores.mean[b]) * gap > 0
        return f"a direction, {'right' if right else 'wrong'}"

    def at_stop(self, name: str, seed: int) -> AtStop | None:
        def measure():
            run = self.with_rope(name, seed)
            if run.stop is None:
                return None
            ranking = self.state(name, run.order[: run.stop.judged], rope=ROPE).ranking
            gap, a, b = gaps(self.truth(name))
            tied, sign = ranking.tied[a, b], np.sign(ranking.scores.mean[a] - ranking.scores.mean[b])
            within = np.abs(gap) <= ROPE
            likely = np.stack([ranking.p_better[b, a], ranking.p_equal[a, b], ranking.p_better[a, b]]).argmax(axis=0)
            return AtStop(
                tied.mean(),
                ranking.p_equal[a, b][tied].mean(),
                within[tied].mean(),
                ranking.direction_confidence[a, b][~tied].mean(),
                (sign == np.sign(gap))[~tied].mean(),
                (likely - 1 == np.where(within, 0, np.sign(gap))).mean(),
            )

        return self.kept(f"rope-{name}-{seed}-verdicts", measure)


def gaps(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the difference of every pair of systems, and the pairs."""
    a, b = np.triu_indices(len(scores), k=1)
    return scores[a] - scores[b], a, b


def stops(work: Work) -> str:
    cells = [(name, seed) for seed in range(SEEDS) for name in CAMPAIGNS]
    do_all([partial(work.at_stop, *cell) for cell in cells])
    rows = []
    for name, seed in cells:
        run, plain, found = (
            work.with_rope(name, seed),
            work.judged_by("gain", name, "DCG", seed),
            work.at_stop(name, seed),
        )
        row = {"campaign": name, "pool": run.setup.pool, "without": judged(plain), "with": judged(run)}
        row |= {"ratio": judged(run) / judged(plain), "accuracy without": at_end(plain).accuracy}
        row |= {"reached": float(run.stop is not None), "accuracy": at_end(run).accuracy}
        if found is not None:
            row |= {"ties": found.ties, "ties stated": found.ties_stated, "ties right": found.ties_right}
            row |= {"directions stated": found.directions_stated, "directions right": found.directions_right}
            row |= {"of three": found.classes_right}
        rows.append(row)
    shown = pd.DataFrame(rows).groupby("campaign", sort=False).mean().reset_index()
    targets = Targets()
    low = float(shown["accuracy"].min())
    targets.least(
        f"accuracy of verdicts at the stop, mean over campaigns (lowest {low:.3f})", shown["accuracy"].mean(), 0.93
    )
    targets.most("judgments with a rope to those without, median over campaigns", float(shown["ratio"].median()), 1.0)
    return (
        f"## The stop\n\nMean confidence {LEVEL}, {SEEDS} seeds, within 40% of the pool. A verdict is that one system "
        f"is better, or that the two are tied: their scores differ by at most {ROPE}. *without* and *with* are "
        "judgments at the stop without and with the rope, *accuracy* the share of right verdicts; then the share of "
        "verdicts that are ties, and the stated confidence and the accuracy of ties and of directions: the rule is "
        "on the mean confidence, so single ties are less sure. *of three* is "
        "the accuracy of the likeliest of three exclusive classes: better by more than the rope, within it, worse by "
        "more.\n\n"
        f"{targets}\n{table(shown)}"
    )


def at_end(run: Trajectory):
    return run.stop or run.steps[-1]


def judged(run: Trajectory) -> int:
    return at_end(run).judged


def definitions(mean, sd, gap) -> dict[str, tuple[float, float]]:
    """Return the mean confidence and the accuracy of each definition of a settled pair."""
    sd = np.maximum(sd, 1e-12)
    better, worse = ndtr((mean - ROPE) / sd), ndtr((-mean - ROPE) / sd)
    equal, higher = 1 - better - worse, ndtr(mean / sd)
    within, sign = np.abs(gap) <= ROPE, np.sign(gap)

    def settled(likelihoods, right):
        best = np.stack(likelihoods).argmax(axis=0)
        return float(np.max(likelihoods, axis=0).mean()), float(np.stack(right)[best, np.arange(len(gap))].mean())

    up, down = sign >= 0, sign <= 0
    return {
        "no rope": settled([higher, 1 - higher], [up, down]),
        "direction or tie": settled([higher, 1 - higher, equal], [up, down, within]),
        "three classes": settled([better, worse, equal], [gap > ROPE, gap < -ROPE, within]),
        "not worse": settled([better + equal, worse + equal], [gap > -ROPE, gap < ROPE]),
    }


def tried(work: Work) -> str:
    def along(name):
        def fit():
            run, found, state = work.judged_by("gain", name, "DCG", 0), [], None
            gap, a, b = gaps(work.truth(name))
            for share in STEPS:
                n = int(share * run.setup.pool)
                state = work.state(name, run.order[:n], last=state)
                mean, sd = state.scores.difference_moments()
                found.append((n, definitions(mean[a, b], sd[a, b], gap)))
            return found

        return work.kept(f"rope-tried-{name}", fit)

    rows = []
    for name, found in zip(CAMPAIGNS, do_all([partial(along, name) for name in CAMPAIGNS]), strict=True):
        for definition in found[0][1]:
            n, (sure, right) = next(
                ((n, d[definition]) for n, d in found if d[definition][0] >= LEVEL), (None, (np.nan, np.nan))
            )
            rows.append(
                {"definition": definition, "campaign": name, "judged": n, "confidence": sure, "accuracy": right}
            )
    frame = pd.DataFrame(rows)
    counts = frame.pivot_table(index="definition", columns="campaign", values="judged", aggfunc="first", sort=False)
    right = frame.groupby("definition", sort=False)["accuracy"]
    shown = counts.astype(object).where(counts.notna(), "> 40%").assign(
        accuracy=right.mean(), least=right.min()
    )  # fmt: skip
    return (
        "## Definitions that were tried\n\nWhen is a pair of systems settled? Judgments at a mean confidence of "
        f"{LEVEL}, along one replay of each campaign by `gain` without a rope (at {len(STEPS)} checkpoints), and the "
        "accuracy of the verdicts there, mean and least over campaigns that reach it.\n\n"
        "- *direction or tie*: $\\max\\{P(D \\ge 0), P(D \\le 0), P(|D| \\le \\delta)\\}$. Taken: for the same "
        "judgments a wider rope never makes a pair less sure, and all pairs can be settled.\n"
        "- *three classes*: $\\max\\{P(D > \\delta), P(D < -\\delta), P(|D| \\le \\delta)\\}$. Pairs that differ by "
        "nearly $\\delta$ stay in doubt until nearly all is judged, as those near 0 do without a rope, and there "
        "are two such edges.\n"
        "- *not worse*: $\\max\\{P(D > -\\delta), P(D < \\delta)\\}$. The quickest: an error within the rope counts as "
        "right. But it never says that two systems are tied.\n\n" + table(shown.reset_index())
    )


def pairs(work: Work) -> str:
    rows = []
    for name in CAMPAIGNS[:-1]:
        held = work.held(name)
        systems, truth = held.collection.runs.systems, work.truth(name)
        gap, a, b = gaps(truth)
        at = int(np.abs(np.abs(gap) - NEAR).argmin())
        near = f"pair:{systems[a[at]]},{systems[b[at]]}"
        best = systems[int(truth.argmax())]

        cases = {
            ("two systems", "every=.95", near): None,
            ("the best and its copy", "best=.95", "best"): partial(with_copy, held, best),
            ("the best and its copy", "every=.95", "best"): partial(with_copy, held, best),
        }
        for (which, stop, goal), variant in cases.items():
            for rope in (0.0, ROPE):
                kept = f"rope-pairs-{name}-{which.replace(' ', '-')}-{stop.partition('=')[0]}-{rope}"
                run = work.replay(
                    kept, name, "gain", "DCG", held=variant, goal=goal, stop=stop, rope=rope, checkpoints=(0.0,)
                )
                difference = abs(gap[at]) if variant is None else 0.0
                n = f"{run.stop.judged:,}" if run.stop else f"> {run.steps[-1].judged:,}"
                if variant is None and run.stop:
                    n = f"{n}, {work.said(name, run, rope, int(a[at]), int(b[at]))}"
                rows.append(
                    {
                        "campaign": name,
                        "systems": which,
                        "difference": difference,
                        "stop": stop,
                        "rope": rope,
                        "judged": n,
                    }
                )
    frame = pd.DataFrame(rows)
    shown = frame.pivot_table(
        index=["campaign", "systems", "difference", "stop"],
        columns="rope",
        values="judged",
        aggfunc="first",
        sort=False,
    )
    shown.columns = ["without a rope" if rope == 0 else f"rope {rope:g}" for rope in shown.columns]
    return (
        f"## Systems that hardly differ\n\nJudgments until the rule holds, within 40% of the pool. *two systems*: the "
        f"pair whose true difference is nearest to {NEAR}, with the goal of that pair, and the verdict on it. *the "
        "best and its copy*: all systems and a second run with the list of the best, with the goal of the best "
        "system.\n\n" + table(shown.reset_index())
    )


def with_copy(held: HeldOut, system: str) -> HeldOut:
    """Return the campaign with a second system of the same lists."""
    collection: Collection = held.collection
    runs, at = collection.runs, collection.runs.systems.index(system)
    twice = replace(
        runs,
        systems=(*runs.systems, f"{system}-copy"),
        pairs=np.concatenate([runs.pairs, runs.pairs[[at]]]),
        scores=np.concatenate([runs.scores, runs.scores[[at]]]),
        teams=None if runs.teams is None else (*runs.teams, runs.teams[at]),
    )
    return replace(held, collection=replace(collection, runs=twice))


PARTS = {"stops": stops, "tried": tried, "pairs": pairs}


def main(data: Path, keep: Path, parts: list[str]) -> None:
    work = Work(data, keep)
    for part in parts or PARTS:
        (keep / f"rope-{part}.md").write_text(PARTS[part](work), encoding="utf-8")
    made = [path.read_text(encoding="utf-8") for part in PARTS if (path := keep / f"rope-{part}.md").exists()]
    (DOCS / "evidence-rope.md").write_text(LEAD + "\n".join(made), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3 or set(sys.argv[3:]) - set(PARTS):
        sys.exit(f"usage: python examples/rope_evidence.py DATA KEEP [{' '.join(PARTS)}]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
