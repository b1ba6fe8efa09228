"""Runs, judgments, metadata and labels: ids are strings in files and integer positions in a pool from here on."""

from probeval.data.answers import CHOICES, RELEVANT, PairAnswers, as_answers, read_answers
from probeval.data.collection import (
    Collection,
    as_judgments,
    as_labels,
    as_runs,
    read_campaign,
    read_judgments,
    read_labels,
    read_runs,
    read_teams,
    write_campaign,
)
from probeval.data.evidence import LabelTable, Metadata, Vectors, read_graded_labels, read_metadata
from probeval.data.exchange import read_mteb, read_opensearch, read_ragelo, read_umbrela
from probeval.data.files import is_partitioned
from probeval.data.formats import FORMATS, FileFormat, ReadOptions, register_format, task_formats, write_tasks
from probeval.data.judgments import Judgments
from probeval.data.label_studio import read_annotations, read_label_studio
from probeval.data.magnitudes import NUMBER_KINDS, Magnitudes, as_magnitudes, read_magnitudes
from probeval.data.observers import ObserverSpec, describe_observer, read_observers
from probeval.data.partitioning import split, write_partitions
from probeval.data.partitions import Partition, Partitions, open_partitions
from probeval.data.pool import Pool
from probeval.data.quepid import read_quepid
from probeval.data.queries import as_clusters, as_query_weights, as_segments
from probeval.data.rank_eval import rank_eval_request, read_rank_eval_ratings, read_rank_eval_runs
from probeval.data.reference import with_reference
from probeval.data.runs import Runs
from probeval.data.scale import ABSENT, POOLED, UNJUDGED, Scale
from probeval.data.tasks import OpenPair, WriteOptions
from probeval.data.texts import document_vectors, read_texts, read_topics, text_vectors
from probeval.data.trec import write_qrels, write_run
from probeval.data.votes import Votes, as_votes, read_votes

__all__ = [
    "ABSENT",
    "CHOICES",
    "FORMATS",
    "NUMBER_KINDS",
    "POOLED",
    "RELEVANT",
    "UNJUDGED",
    "Collection",
    "FileFormat",
    "Judgments",
    "LabelTable",
    "Magnitudes",
    "Metadata",
    "ObserverSpec",
    "OpenPair",
    "PairAnswers",
    "Partition",
    "Partitions",
    "Pool",
    "ReadOptions",
    "Runs",
    "Scale",
    "Vectors",
    "Votes",
    "WriteOptions",
    "as_answers",
    "as_clusters",
    "as_judgments",
    "as_labels",
    "as_magnitudes",
    "as_query_weights",
    "as_runs",
    "as_segments",
    "as_votes",
    "describe_observer",
    "document_vectors",
    "is_partitioned",
    "open_partitions",
    "rank_eval_request",
    "read_annotations",
    "read_answers",
    "read_campaign",
    "read_graded_labels",
    "read_judgments",
    "read_label_studio",
    "read_labels",
    "read_magnitudes",
    "read_metadata",
    "read_mteb",
    "read_observers",
    "read_opensearch",
    "read_quepid",
    "read_ragelo",
    "read_rank_eval_ratings",
    "read_rank_eval_runs",
    "read_runs",
    "read_teams",
    "read_texts",
    "read_topics",
    "read_umbrela",
    "read_votes",
    "register_format",
    "split",
    "task_formats",
    "text_vectors",
    "with_reference",
    "write_campaign",
    "write_partitions",
    "write_qrels",
    "write_run",
    "write_tasks",
]
