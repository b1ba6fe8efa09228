"""Reports: one self-contained HTML file for an evaluation, a campaign or a simulation."""

from probeval.reports.milestones import Milestone, milestone, milestone_table
from probeval.reports.page import Facts, Figure, Page, Prose, Quote, Section, Table, render, write_report
from probeval.reports.pages import paragraph, report_campaign, report_evaluation
from probeval.reports.results import EffectSize, ReportResults
from probeval.reports.simulations import read_simulation, report_simulation

__all__ = [
    "EffectSize",
    "Facts",
    "Figure",
    "Milestone",
    "Page",
    "Prose",
    "Quote",
    "ReportResults",
    "Section",
    "Table",
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
