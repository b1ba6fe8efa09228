"""Ties: the same list scored in every order of its tied documents.

A system that gives three documents the same score has not said which comes first. The tie rule picks one order;
the score can be averaged over all of them instead, and the lowest and highest say how much the rule decided.
"""

import numpy as np

import probeval
from probeval.metrics import Lists, parse
from probeval.metrics.ties import expected, extremes, permuted

RUN = {"q1": {"d1": 9.0, "d2": 7.0, "d3": 7.0, "d4": 7.0, "d5": 2.0, "d6": 2.0}}
QRELS = {"q1": {"d1": 0, "d2": 1, "d3": 0, "d4": 0, "d5": 1, "d6": 0}}


def main() -> None:
    runs, judgments = probeval.as_runs({"tied": RUN}), probeval.as_judgments(QRELS)
    report = runs.ties()
    print(f"{report.docs:.0%} of the documents are tied; the first tie is at rank {report.first_rank:g}.\n")

    lists, _ = Lists.judged(runs, judgments, judgments.scale())
    drawn = permuted(lists, runs.tie_starts, 20_000, np.random.default_rng(0))
    print("metric       rule  expected    lowest   highest   by draws")
    for name in ("P@3", "RR", "AP", "nDCG", "RBP(p=0.8)"):
        metric = parse(name)
        rule = metric.scores(lists)[0, 0]
        mean = expected(metric, lists, runs.tie_starts)[0, 0]
        low, high = (end[0, 0] for end in extremes(metric, lists, runs.tie_starts))
        check = metric.scores(drawn).mean(axis=0)[0, 0]
        print(f"{name:10} {rule:6.4f}    {mean:6.4f}    {low:6.4f}    {high:6.4f}     {check:6.4f}")


if __name__ == "__main__":
    main()
