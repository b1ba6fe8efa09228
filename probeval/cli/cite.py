"""``probeval cite``: how to cite probeval, and the papers behind its methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pandas as pd

from probeval import __version__
from probeval.cli.commands import Output, verb
from probeval.cli.output import echo
from probeval.display import Table
from probeval.records import About
from probeval.results import Result

__all__ = ["YEAR", "Citation", "Citations", "citations", "cite"]

YEAR = 2026  # of the release

Kind = Literal["software", "article", "inproceedings", "phdthesis", "book"]
PLACE: dict[Kind, str] = {
    "software": "url",
    "article": "journal",
    "inproceedings": "booktitle",
    "phdthesis": "school",
    "book": "publisher",
}  # the field of BibTeX that has the venue


@dataclass(frozen=True)
class Citation:
    """A work to cite."""

    key: Annotated[str, "Its key in BibTeX."]
    used_for: Annotated[str, "The results that rest on it."]
    kind: Annotated[Kind, "The type of entry in BibTeX."]
    authors: Annotated[str, "Family name, given names; several are joined by and."]
    title: str
    venue: Annotated[str, "The journal, proceedings, university or publisher; the address of software."]
    year: int
    doi: Annotated[str, "Empty where there is none."] = ""
    version: Annotated[str, "Of software."] = ""

    def bibtex(self) -> str:
        """Return the entry in BibTeX."""
        fields = {
            "author": self.authors,
            "title": f"{{{self.title}}}",
            PLACE[self.kind]: self.venue,
            "year": str(self.year),
            "version": self.version,
            "doi": self.doi,
        }
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
        return f"@{self.kind}{{{self.key},\n" + ",\n".join(lines) + "\n}"


@dataclass(frozen=True, eq=False, repr=False)
class Citations(Result):
    """probeval, and the papers behind its methods."""

    works: Annotated[tuple[Citation, ...], "One entry per work; the first is probeval itself."]

    def _headline(self) -> str:
        return f"{len(self.works)} works"

    def bibtex(self) -> str:
        """Return all entries in BibTeX."""
        return "\n\n".join(work.bibtex() for work in self.works)

    def tables(self) -> tuple[Table, ...]:
        """One row per work."""
        rows = [(work.used_for, f"{_short(work.authors)} ({work.year})", work.title) for work in self.works]
        return (Table(pd.DataFrame(rows, columns=["for", "by", "title"]), "To cite"),)

    def sentences(self) -> tuple[str, ...]:
        """How to get BibTeX."""
        return ("--bibtex prints the entries for a bibliography.",)


def _short(authors: str) -> str:
    """The family names: all of up to two, else the first."""
    names = [author.split(",")[0].strip("{}") for author in authors.split(" and ")]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


def citations(version: str) -> Citations:
    """Return the works to cite, with probeval in this version."""
    itself = Citation(
        "probeval",
        "any result",
        "software",
        "{probeval contributors}",
        "probeval: probabilistic relevance and low-cost evaluation of retrieval systems",
        "https://probeval.readthedocs.io",
        YEAR,
        version=version,
    )
    return Citations((itself, *PAPERS))


PAPERS = (
    Citation(
        "carterette2006",
        "policy mtc, binary measures",
        "inproceedings",
        "Carterette, Ben and Allan, James and Sitaraman, Ramesh",
        "Minimal test collections for retrieval evaluation",
        "ACM SIGIR Conference on Research and Development in Information Retrieval",
        2006,
        "10.1145/1148170.1148219",
    ),
    Citation(
        "urbano2013mtc",
        "policy mtc, graded measures; models of independent pairs",
        "article",
        "Urbano, Julián and Schedl, Markus",
        "Minimal test collections for low-cost evaluation of Audio Music Similarity and Retrieval systems",
        "International Journal of Multimedia Information Retrieval",
        2013,
        "10.1007/s13735-012-0030-4",
    ),
    Citation(
        "urbano2012towards",
        "rules of significance with few judgments",
        "inproceedings",
        "Urbano, Julián and Schedl, Markus",
        "Towards Minimal Test Collections for Evaluation of Audio Music Similarity and Retrieval",
        "WWW 2012 Companion, AdMIRe Workshop",
        2012,
    ),
    Citation(
        "urbano2013thesis",
        "reliability, satisfaction of users, meta-evaluation",
        "phdthesis",
        "Urbano, Julián",
        "Evaluation in Audio Music Similarity",
        "University Carlos III of Madrid",
        2013,
    ),
    Citation(
        "urbano2012significant",
        "size of differences that users notice",
        "inproceedings",
        "Urbano, Julián and McFee, Brian and Downie, J. Stephen and Schedl, Markus",
        "How Significant is Statistically Significant? The Case of Audio Music Similarity and Retrieval",
        "International Society for Music Information Retrieval Conference (ISMIR)",
        2012,
    ),
    Citation(
        "yang2019",
        "bounds, ties, preferences, one condition against another",
        "phdthesis",
        "Yang, Ziying",
        "Improving the Reliability and Robustness of Information Retrieval Evaluation",
        "The University of Melbourne",
        2019,
    ),
    Citation(
        "yang2016",
        "rank bands",
        "inproceedings",
        "Yang, Ziying and Moffat, Alistair and Turpin, Andrew",
        "How Precise Does Document Scoring Need to Be?",
        "Asia Information Retrieval Societies Conference (AIRS)",
        2016,
        "10.1007/978-3-319-48051-0_21",
    ),
    Citation(
        "moffat2018",
        "uncertainty of unjudged documents by measure",
        "article",
        "Moffat, Alistair and Scholer, Falk and Yang, Ziying",
        "Estimating Measurement Uncertainty for Information Retrieval Effectiveness Metrics",
        "Journal of Data and Information Quality",
        2018,
        "10.1145/3239572",
    ),
    Citation(
        "yang2018",
        "preferences and magnitudes",
        "inproceedings",
        "Yang, Ziying and Moffat, Alistair and Turpin, Andrew",
        "Pairwise Crowd Judgments: Preference, Absolute, and Ratio",
        "Australasian Document Computing Symposium (ADCS)",
        2018,
        "10.1145/3291992.3291995",
    ),
    Citation(
        "brennan2001",
        "gstudy and dstudy",
        "book",
        "Brennan, Robert L.",
        "Generalizability Theory",
        "Springer",
        2001,
        "10.1007/978-1-4757-3456-0",
    ),
    Citation(
        "kubinec2023",
        "compare --bayes, scores from 0 to 1",
        "article",
        "Kubinec, Robert",
        "Ordered beta regression: a parsimonious, well-fitting model for continuous data with lower and upper bounds",
        "Political Analysis",
        2023,
        "10.1017/pan.2022.20",
    ),
    Citation(
        "hoffman2014",
        "inference by nuts",
        "article",
        "Hoffman, Matthew D. and Gelman, Andrew",
        "The No-U-Turn sampler: adaptively setting path lengths in Hamiltonian Monte Carlo",
        "Journal of Machine Learning Research",
        2014,
    ),
)


@verb("Show how to cite probeval, and its methods.")
def cite(
    output: Output,
    bibtex: Annotated[bool, About("Print BibTeX instead of a table.")] = False,
) -> Citations | None:
    """Show the works to cite: probeval itself, and the papers behind the methods that you use.

    Example: probeval cite --bibtex > probeval.bib
    """
    works = citations(__version__)
    if bibtex:
        echo(works.bibtex())
        return None
    return works
