"""The judging page: one process, one store, plain pages for keyboard use that load nothing from other sites."""

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
