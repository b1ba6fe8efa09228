"""The reference: the assessor whose grades measures count, or the consensus of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import NOT_JUDGED, Judgments
from probeval.data.observers import ObserverSpec
from probeval.errors import DataError, did_you_mean

__all__ = ["CONSENSUS", "with_reference"]

CONSENSUS = "consensus"
ASSESSORS = "assessors"  # the family of the assessors of a campaign


def with_reference(collection: Collection, reference: str | None) -> Collection:
    """Return a collection in which only the reference's grades are certain; those of other assessors are labels.

    Parameters
    ----------
    collection
        A campaign with judgments by named assessors.
    reference
        The name of an assessor; ``consensus``, if no single grade is certain; None, if grades on which all assessors of
        a pair agree are certain, and a disagreement has a posterior until it is adjudicated.

    Examples
    --------
    >>> from probeval.data import as_runs
    >>> runs = as_runs({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}})
    >>> judged = Judgments.rows(["q1", "q1", "q1"], ["d1", "d1", "d2"], [1, 0, 1], assessors=["ann", "bob", "bob"])
    >>> ann = with_reference(Collection("mine", runs, judged), "ann")
    >>> len(ann.judgments), ann.labels.sources
    (1, ('bob',))
    """
    if reference is None:
        return collection
    judgments = collection.judgments
    named = [] if judgments is None else [name for name in judgments.assessors if name]
    if judgments is None or not named:
        raise DataError(
            f"The reference {reference!r} is an assessor, and the judgments name none. Give judgments with a column "
            "'assessor'."
        )
    if reference != CONSENSUS and reference not in named:
        known = [*named, CONSENSUS]
        raise DataError(f"No assessor {reference!r}: {', '.join(known)}.{did_you_mean(reference, known)}")
    others = [name for name in named if name != reference]
    labels = _as_labels(judgments, others) if others else None
    if labels is not None and collection.labels is not None:
        labels = collection.labels.joined([labels])
    kept = None if reference == CONSENSUS else judgments.by(reference)
    return replace(
        collection,
        judgments=kept,
        labels=collection.labels if labels is None else labels,
        consensus=reference == CONSENSUS,
    )


def _as_labels(judgments: Judgments, assessors: list[str]) -> LabelTable:
    """Return the latest grades of assessors as columns of labels, of one family of people."""
    values = np.stack([judgments.by(name).grades("latest") for name in assessors], axis=1)
    values = np.where(values == NOT_JUDGED, np.nan, np.maximum(values, 0.0))
    top = max(float(np.nanmax(values)), 1.0)
    scale = "binary" if top <= 1 else f"graded:{int(top)}" if top <= 10 and np.nanmax(values % 1) == 0 else "number"
    described = {name: ObserverSpec(name, kind="person", family=ASSESSORS, scale=scale) for name in assessors}
    return LabelTable(judgments.pool, tuple(assessors), values, descriptions=described)
