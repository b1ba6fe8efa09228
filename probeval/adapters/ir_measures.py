"""Expected scores in ir_measures: as a provider, and as measures that every function of ir_measures takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from probeval.api import Evaluation, as_collection, evaluate
from probeval.data import Judgments, Runs, as_judgments, as_runs
from probeval.errors import MetricError, ProbevalError
from probeval.metrics import Metric
from probeval.scores.evaluate import as_metric

try:
    import ir_measures
    from ir_measures.util import QrelsConverter, RunConverter
except ImportError:
    raise ProbevalError("This adapter needs ir_measures: pip install 'probeval[tools]'.") from None

__all__ = ["ExpectedEvaluator", "ExpectedMeasure", "ExpectedScores", "expected_metric"]

OF_JUDGMENTS = ("Bpref", "Judged", "infAP")  # functions of which documents are judged
PAIRS = ["query_id", "doc_id"]


def expected_metric(measure: ir_measures.Measure) -> Metric:
    """Return the measure of probeval that a measure of ir_measures stands for, if it has an expected value.

    >>> from ir_measures import Judged, P
    >>> expected_metric(P(rel=2) @ 5)
    P(rel=2)@5
    >>> expected_metric(Judged @ 5)
    Traceback (most recent call last):
    probeval.errors.MetricError: Judged@5 is a figure of the judgments, which are known: it has no expected value.
    """
    metric = as_metric(measure)
    if metric.name in OF_JUDGMENTS:
        raise MetricError(f"{metric} is a figure of the judgments, which are known: it has no expected value.")
    return metric


class ExpectedScores(ir_measures.Provider):
    """A provider of ir_measures that estimates the grades of unjudged documents instead of counting them as 0.

    The score of a query is its expected value given the judgments: :math:`E[M_q]` under the relevance model. If all
    retrieved documents are judged, it is the score by the judgments. As everywhere in ir_measures, queries are those of
    the qrels, and one without results scores 0; if there are no judgments at all, queries are those of the run.

    Parameters
    ----------
    pool
        All the runs that are compared, in any form that :func:`probeval.evaluate` takes: the model learns from their
        agreement, and the ideal list is taken from all of them. Without it, every run is evaluated alone.
    name
        The name of its measures: ``E(nDCG@10)``.
    options
        Options of :func:`probeval.evaluate`: ``labels``, ``docs``, ``model``, ``scale``, ``seed`` and others.

    Examples
    --------
    >>> import ir_measures
    >>> from ir_measures import P
    >>> run = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 1.0, "d4": 0.5}}
    >>> qrels = {"q1": {"d1": 1, "d9": 0}, "q2": {"d3": 0}}
    >>> expected = ExpectedScores(model="uniform", scale="binary")
    >>> expected.calc_aggregate([P @ 2], qrels, run)
    {P@2: 0.5}
    >>> scores = ir_measures.calc_aggregate([P @ 2, expected.measure(P @ 2)], qrels, run)
    >>> scores[P @ 2], scores[expected.measure(P @ 2)]
    (0.25, 0.5)
    """

    NAME = "probeval"

    def __init__(self, *, pool: Any = None, name: str = "E", **options: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pool: Runs | None = None if pool is None else as_collection(pool, order=_order(options)).runs
        self.name = name
        self.options = options
        self._judged: bytes = b""
        self._pooled: dict[Metric, Evaluation] = {}

    def measure(self, measure: ir_measures.Measure) -> ExpectedMeasure:
        """The expected value of a measure as a measure, for any function of ir_measures and for ``pt.Experiment``."""
        return ExpectedMeasure(self, measure)

    def supports(self, measure: ir_measures.Measure) -> bool:
        """Whether a measure has an expected value here."""
        try:
            expected_metric(measure)
        except MetricError:
            return False
        return True

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> ExpectedEvaluator:
        return ExpectedEvaluator(self, measures, qrels)

    def query_scores(self, run: Runs, judged: pd.DataFrame, metrics: Iterable[Metric]) -> Iterator[pd.DataFrame]:
        """Yield the scores of one run by each measure, one row per query.

        Parameters
        ----------
        run
            Runs of one system.
        judged
            The judgments: query_id, doc_id, relevance.
        metrics
            The measures; those of one depth share one prediction.
        """
        judgments = as_judgments(judged) if len(judged) else None
        name = None if self.pool is None else _same_run(run, self.pool)
        done: dict[Metric, Evaluation] = {}
        if name is not None:  # the whole pool is evaluated once for all of its runs
            key = pd.util.hash_pandas_object(judged, index=False).to_numpy().tobytes()
            if key != self._judged:
                self._judged, self._pooled = key, {}
            done = self._pooled
        for metric in metrics:
            if metric not in done:
                done[metric] = self._evaluation(run if name is None else None, judgments, metric, done)
            scores = done[metric].to_frame(per_query=True)
            yield scores[scores["system"] == (name or run.systems[0])]

    def _evaluation(
        self, run: Runs | None, judgments: Judgments | None, metric: Metric, done: dict[Metric, Evaluation]
    ) -> Evaluation:
        """A run evaluated by a measure, or the whole pool."""
        if done:
            return next(iter(done.values())).by(metric)
        if run is None:
            return evaluate(self.pool, metric, qrels=judgments, **self.options)
        return evaluate(run, metric, qrels=judgments, pool=self.pool, **self.options)


class ExpectedEvaluator(ir_measures.Evaluator):
    """Expected scores of runs, given judgments.

    Parameters
    ----------
    provider
        The model and what it learns from.
    measures, qrels
        The measures of ir_measures, and judgments in any form that it takes.
    """

    def __init__(self, provider: ExpectedScores, measures: Iterable[ir_measures.Measure], qrels: Any) -> None:
        self.provider = provider
        self.metrics = {measure: expected_metric(measure) for measure in measures}
        self.judged = QrelsConverter(qrels).as_pd_dataframe()[[*PAIRS, "relevance"]]  # type: ignore[no-untyped-call]
        super().__init__(list(self.metrics), set(self.judged["query_id"]))

    def _iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        rows = RunConverter(run).as_pd_dataframe()  # type: ignore[no-untyped-call]
        if rows.empty:
            return
        pool = self.provider.pool
        lists = as_runs(
            {_free_name(() if pool is None else pool.systems): rows[[*PAIRS, "score"]]},
            order=_order(self.provider.options),
        )
        found = self.provider.query_scores(lists, self.judged, self.metrics.values())
        for measure, scores in zip(self.metrics, found, strict=True):
            for query, mean in zip(scores["query"], scores["mean"], strict=True):
                if not self.qrel_qids or query in self.qrel_qids:
                    yield ir_measures.Metric(query, measure, float(mean))


class ExpectedMeasure(ir_measures.Measure):
    """The expected value of a measure, as a measure of ir_measures; made by :meth:`ExpectedScores.measure`.

    Parameters
    ----------
    provider
        The model and what it learns from.
    measure
        The measure that the expectation is of.
    """

    RUN_INPUTS = (*PAIRS, "score")
    QREL_INPUTS = (*PAIRS, "relevance")

    def __init__(self, provider: ExpectedScores, measure: ir_measures.Measure) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.provider, self.measure = provider, measure
        self.NAME = self.__name__ = f"{provider.name}({measure})"

    def __call__(self, **params: Any) -> ExpectedMeasure:
        """Return the expected value of the measure with other parameters."""
        return ExpectedMeasure(self.provider, self.measure(**params))

    def runtime_impl(self, qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[ir_measures.Metric]:
        """Yield the scores of a run: ir_measures calls it for measures that are defined outside of it."""
        for score in self.provider.iter_calc([self.measure], qrels, run):
            yield ir_measures.Metric(score.query_id, self, score.value)


def _order(options: dict[str, Any]) -> str:
    """The order rule of runs."""
    return str(options.get("order", "trec_eval"))


def _free_name(taken: Iterable[str]) -> str:
    """A name for a run that no other has."""
    name, others = "run", set(taken)
    while name in others:
        name += "_"
    return name


def _same_run(run: Runs, pool: Runs) -> str | None:
    """The run of the pool that has the same lists."""
    if (run.pool.within(pool.pool) < 0).any():
        return None
    mine = run.on(pool.pool).pairs[0]
    lists = np.full((len(pool.queries), max(run.depth, pool.depth)), -1)
    lists[:, : run.depth] = mine
    same = (pool.pairs == lists[:, : pool.depth]).all(axis=(1, 2)) & (lists[:, pool.depth :] < 0).all()
    return pool.systems[int(same.argmax())] if same.any() else None
