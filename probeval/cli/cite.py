"""``probeval cite``: how to cite probeval and the papers behind its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from probeval import __version__
from probeval.cli.commands import Output, verb
from probeval.cli.output import echo
from probeval.records import About

if TYPE_CHECKING:
    from probeval.citation import Citations

__all__ = ["cite"]


@verb("Show how to cite probeval, and its methods.")
def cite(
    output: Output,
    bibtex: Annotated[bool, About("Print BibTeX instead of a table.")] = False,
) -> Citations | None:
    """Show the works to cite: probeval itself, and the papers behind the methods that you use.

    Example: probeval cite --bibtex > probeval.bib
    """
    from probeval.citation import citations

    works = citations(__version__)
    if bibtex:
        echo(works.bibtex())
        return None
    return works
