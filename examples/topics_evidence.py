"""Write docs/evidence-topics.md: `python examples/topics_evidence.py DATA KEEP [SEEDS [FEW]]`.

Replays are kept in the folder KEEP, so that a broken run resumes where it stopped; the other scripts of evidence can
share its models. SEEDS seeds (10 by default) of the two ways that the targets are about, FEW (2) of the others.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Targets, do_all, table
from replays import Replays

from probeval.simulation.trajectory import Trajectory

ASSESSORS, STAY, SEEDS, FEW = 5, 4.0, 10, 2
COST, SWITCHES = 1.15, 15  # the targets
CAMPAIGNS = {
    "trec-dl2020-passage": {"batch": 10, "until": 0.125},
    "clef-ehealth2014": {"batch": 20, "until": 0.25},
}
FREE, OWNED = ("free", 0.0), ("owned", STAY)
OTHERS = (("owned", 2.0), ("owned", 3.0), ("in-turn", STAY), ("free", STAY))
LEAD = f"""# Evidence: judging by topic

Written by `examples/topics_evidence.py`. What does it cost in judgments if assessors
[stay within a topic](theory/judging.md#topics)? The judging of two campaigns is simulated by `gain` with their own
judgments, to a mean confidence of .95 in DCG@10; models are fitted to all other campaigns, as in
[the evidence of judging](evidence-judging.md). {ASSESSORS} assessors judge in parallel: each takes a pair in turn from
the queue of the last fit. Fits are made after every 10 judgments of the first campaign, every 20 of the second, and
every 1% of the pool once a tenth of it is judged. Replays end at an eighth of the pool of the first, a quarter of that
of the second.

*free* with price 0 is free choice: each assessor in turn gets the best pair of all. *stop* is the mean number of
judgments at the stop, over the seeds that got there, *ratio* that number to free choice with the same seeds, *switches*
the number of times per 100 judgments that an assessor changed topic. *topics* were judged before the stop; *accuracy*
is that of the ranking at the stop, *drawn* the share of judgments that were drawn at random, *alarms* the seeds in
which [the audit](theory/judging.md#audit) raised its alarm.

"""


class Work(Replays):
    def by_topic(self, name: str, way: tuple[str, float], seed: int) -> Trajectory:
        """Return a replay with topics given in this way."""
        topics, stay = way
        return self.replay(
            f"topics-{name}-{topics}-{stay:g}-{seed}", name, "gain", "DCG", seed=seed, checkpoints=(0.0,),
            assessors=ASSESSORS, topics=topics, stay=stay, **CAMPAIGNS[name],
        )  # fmt: skip


def row(name: str, way: tuple[str, float], runs: list[Trajectory], free: list[Trajectory]) -> dict:
    """Return the means over seeds of one way of giving topics."""
    ends = [run.stop or run.steps[-1] for run in runs]
    both = [
        (run.stop.judged, other.stop.judged) for run, other in zip(runs, free, strict=True) if run.stop and other.stop
    ]
    cost = [np.mean(each) for each in zip(*both, strict=True)] if both else [np.nan, np.nan]
    return {
        "campaign": name,
        "topics given": way[0],
        "price": f"{way[1]:g}",
        "seeds": len(runs),
        "reached": sum(run.stop is not None for run in runs),
        "stop": round(float(np.mean([run.stop.judged for run in runs if run.stop])), 1),
        "ratio": cost[0] / cost[1],
        "switches": round(float(np.mean([run.switches for run in runs])), 1),
        "topics": round(
            float(np.mean([len(set(run.queries[: e.judged])) for run, e in zip(runs, ends, strict=True)])), 1
        ),
        "accuracy": float(np.mean([e.accuracy for e in ends])),
        "drawn": float(
            np.mean(
                [
                    np.mean([p is not None for p in run.probabilities[: e.judged]])
                    for run, e in zip(runs, ends, strict=True)
                ]
            )
        ),
        "alarms": sum(run.alarm is not None for run in runs),
    }


def page(work: Work, seeds: int, few: int) -> str:
    plan = [(way, seeds) for way in (FREE, OWNED)] + [(way, few) for way in OTHERS if few]
    cells = [(name, way, seed) for seed in range(seeds) for name in CAMPAIGNS for way in (FREE, OWNED)]
    cells += [(name, way, seed) for seed in range(few) for name in CAMPAIGNS for way in OTHERS]
    do_all([partial(work.by_topic, *cell) for cell in cells])
    rows, targets = [], Targets()
    for name in CAMPAIGNS:
        for way, n in plan:
            runs, free = ([work.by_topic(name, w, seed) for seed in range(n)] for w in (way, FREE))
            rows.append(row(name, way, runs, free))
            if way == OWNED:
                targets.most(f"{name}: judgments to the stop, to those of free choice", rows[-1]["ratio"], COST)
                targets.most(f"{name}: switches per 100 judgments", rows[-1]["switches"], SWITCHES)
    return f"{LEAD}{targets}\n{table(pd.DataFrame(rows))}\n"


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4, 5):
        sys.exit("usage: python examples/topics_evidence.py DATA KEEP [SEEDS [FEW]]")
    counts = [int(argument) for argument in sys.argv[3:]]
    seeds, few = (*counts, *(SEEDS, FEW)[len(counts) :])
    found = page(Work(Path(sys.argv[1]), Path(sys.argv[2])), seeds, few)
    (DOCS / "evidence-topics.md").write_text(found)
