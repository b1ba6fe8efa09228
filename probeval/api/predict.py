"""P(grade) of every pair, without a measure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import pandas as pd

from probeval.api.evidence import Evidence, Remarks, as_scale, note_texts, select_model
from probeval.api.settings import Depth, InferenceName, Scoring, Work
from probeval.bayes import NutsDiagnostics
from probeval.data import with_reference
from probeval.display import Table
from probeval.errors import ModelError
from probeval.records import task
from probeval.relevance import Hierarchical, RelevanceDistribution
from probeval.relevance.online import follow
from probeval.results import FLAT, UNSET, Result, UnsetType
from probeval.streams import Purpose, stream

__all__ = ["PredictionInputs", "Predictions", "predict"]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Result):
    """P(grade) of every pair; judged pairs are certain."""

    relevance: Annotated[RelevanceDistribution, FLAT]
    model: Annotated[str, "The name of the model."]
    depth: Annotated[int, "The number of ranks whose pairs are predicted."]
    diagnostics: Annotated[
        NutsDiagnostics | UnsetType, "R-hat, bulk ESS and the share of divergences, where the model was sampled."
    ] = UNSET
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        return f"{self.relevance._headline()}, model {self.model}"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair: query, doc, judged, mean, sd, and the probability of each grade."""
        return self.relevance.to_frame()

    def tables(self) -> tuple[Table, ...]:
        """The first pairs: a pool may have very many."""
        return self.relevance.tables()

    def sentences(self) -> tuple[str, ...]:
        """The number of pairs that are not shown, the sampler, then notes."""
        sampled = () if self.diagnostics is UNSET else (f"The posterior is sampled by NUTS: {self.diagnostics}.",)
        return (*self.relevance.sentences(), *sampled, *self.notes)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionInputs(Work, Scoring, Evidence):
    """Predict the grade of every retrieved pair: P(grade), which is certain where a pair is judged.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=5, depth=5)
    >>> table = probeval.predict(campaign.runs, qrels=campaign.judgments.take(np.arange(20))).to_frame()
    >>> table.columns.tolist()
    ['query', 'doc', 'judged', 'mean', 'sd', 'p0', 'p1', 'p2']
    >>> bool(np.allclose(table[["p0", "p1", "p2"]] @ [0, 1, 2], table["mean"]))
    True
    """

    _: KW_ONLY
    inference: InferenceName = "laplace"
    depth: Depth = None

    def run(self) -> Predictions:
        """The predictions."""
        remarks, grades = Remarks(self.reporter), as_scale(self.scale)
        collection = self.collection(self.runs, scale=grades, reporter=self.reporter)
        depth = self.depth or collection.runs.depth
        choice = select_model(
            collection, self.model, scale=grades, gain=self.gain, inference=self.inference, reporter=remarks
        )
        note_texts(collection, self.docs, depth=depth, model=choice.model, reporter=remarks)
        collection = with_reference(collection, self.reference)
        if collection.consensus and not isinstance(choice.model, Hierarchical):
            raise ModelError("Only the hierarchical model has a consensus. Use --model hierarchical.")
        problem = collection.problem(depth=depth, scale=choice.scale)
        judgments = collection.judgments if collection.judgments is not None and len(collection.judgments) else None
        found = follow(choice.model, problem).after(judgments, stream(self.seed, Purpose.PREDICTION))
        checked = UNSET if found.diagnostics is None else found.diagnostics
        return Predictions(found.relevance, choice.name, depth, checked, tuple(remarks.notes))


predict = task(PredictionInputs, "predict")
