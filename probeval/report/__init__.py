"""Reports: one self-contained HTML file for an evaluation, a campaign or a simulation."""

from probeval.report.evaluation import Effect, Evaluation, begin, follow
from probeval.report.milestones import Milestone, milestone, milestone_table
from probeval.report.page import Facts, Figure, Page, Prose, Quote, Section, Table, render, write_report
from probeval.report.pages import paragraph, report_campaign, report_evaluation
from probeval.report.simulations import read_simulation, report_simulation

__all__ = [
    "Effect",
    "Evaluation",
    "Facts",
    "Figure",
    "Milestone",
    "Page",
    "Prose",
    "Quote",
    "Section",
    "Table",
    "begin",
    "follow",
    "milestone",
    "milestone_table",
    "paragraph",
    "read_simulation",
    "render",
    "report_campaign",
    "report_evaluation",
    "report_simulation",
    "write_report",
]
