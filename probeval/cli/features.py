"""``probeval features``: the features of every pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from probeval.api import as_collection
from probeval.api.evidence import Groups, Labels, Observers, Qrels, RunPaths
from probeval.cli.commands import Output, verb
from probeval.cli.options import Format, OutputFormat
from probeval.cli.output import write_result
from probeval.data import Scale
from probeval.errors import FeatureError
from probeval.features import DEFINITIONS, compute_features
from probeval.records import About
from probeval.studies import Multiplicity, multiplicity

__all__ = ["features"]

DEPTH = 10


@dataclass(frozen=True, kw_only=True)
class FeatureOutput(Output):
    """The form of the data on stdout, CSV by default, and the messages on stderr."""

    output_format: Format = OutputFormat.csv


@verb("Write the features of every pair.")
def features(
    runs: RunPaths,
    output: FeatureOutput,
    names: Annotated[
        list[str] | None, About("A feature such as fSYS.", metavar="NAME", option="--feature", kind=str, many=True)
    ] = None,
    by_multiplicity: Annotated[
        bool,
        About("The share of relevant documents by the number of systems that have them.", option="--multiplicity"),
    ] = False,
    qrels: Qrels = None,
    metadata: Groups = None,
    labels: Labels = None,
    observers: Observers = None,
    depth: Annotated[int, About("The number of ranks.", least=1)] = DEPTH,
) -> list[dict[str, str | float]] | Multiplicity | None:
    """Write the features of every pair in the top k of any system (--depth, by default 10).

    Without --feature, all features that the files allow. With --multiplicity: the share of relevant documents by the
    number of systems that have them in their top k.

    Example: probeval features runs/ --feature fSYS --feature fSYS@100
    """
    messages = output.messages
    collection = messages.warned(
        lambda: as_collection(
            runs, qrels=qrels, metadata=metadata, labels=labels, observers=observers, reporter=messages
        )
    )
    if by_multiplicity:
        return multiplicity(collection, depth=depth)
    # Features of outputs have no grades: any scale does.
    scale = None if collection.judgments is not None and len(collection.judgments) else Scale.binary()
    problem = collection.problem(depth=depth, scale=scale)
    table = messages.warned(lambda: compute_features(problem, names or _possible(collection.has)))
    write_result(table, output.output_format)  # its columns, and so its keys, are not known to a class
    return None


def _possible(has: dict[str, tuple[str, ...]]) -> list[str]:
    """The features that the inputs allow, one for each column of metadata and labels."""
    names: list[str] = []
    for definition in DEFINITIONS.values():
        if not set(definition.needs) <= set(has):
            continue
        if definition.takes_column:
            columns = has["labels" if "labels" in definition.needs else "metadata"]
            names += [definition.name.replace("column", column) for column in columns]
        else:
            names.append(definition.name)
    if not names:
        raise FeatureError("No feature can be computed from these files.")
    return names
