"""The judging page: one process, one store, plain pages for keyboard use that load nothing from other sites."""

from probeval.web.board import Board
from probeval.web.documents import Document, PoolDocuments, read_documents
from probeval.web.entry import Assessor, Guesses, Roster, read_assessors
from probeval.web.guard import Guard, Limiter
from probeval.web.server import serve
from probeval.web.site import application

__all__ = [
    "Assessor",
    "Board",
    "Document",
    "Guard",
    "Guesses",
    "Limiter",
    "PoolDocuments",
    "Roster",
    "application",
    "read_assessors",
    "read_documents",
    "serve",
]
