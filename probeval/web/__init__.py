"""The judging page: one process, one store, plain pages that work with a keyboard and without a network."""

from probeval.web.assessors import Assessor, Roster, read_roster
from probeval.web.board import Board
from probeval.web.documents import Document, read_documents
from probeval.web.guard import Guard, Limiter
from probeval.web.server import serve
from probeval.web.site import application

__all__ = [
    "Assessor",
    "Board",
    "Document",
    "Guard",
    "Limiter",
    "Roster",
    "application",
    "read_documents",
    "read_roster",
    "serve",
]
