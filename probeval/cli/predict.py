"""``probeval predict``: P(grade) of every pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probeval.api.predict import PredictionInputs
from probeval.cli.commands import Output, verb

if TYPE_CHECKING:
    from probeval.api.predict import Predictions

__all__ = ["predict"]


@verb("Predict the grade of every pair.")
def predict(given: PredictionInputs, output: Output) -> Predictions:
    """Predict the grade of every retrieved pair: the probability of each grade, 1 for the grade of a judged pair.

    Example: probeval predict runs/ --qrels qrels.txt --depth 10 --format csv
    """
    return given.run()
