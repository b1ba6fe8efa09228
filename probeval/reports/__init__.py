"""Reports: one self-contained HTML file for an evaluation, a campaign, a simulation or a study of campaigns."""

from probeval.reports.meta import report_meta
from probeval.reports.milestones import Milestone, milestone, milestone_table
from probeval.reports.page import Facts, Figure, Page, Prose, Quote, Section, render, write_report
from probeval.reports.pages import paragraph, report_campaign, report_evaluation
from probeval.reports.pools import report_pools
from probeval.reports.results import EffectSize, ReportResults
from probeval.reports.simulations import read_simulation, report_simulation
from probeval.reports.statement import statement_page
from probeval.reports.studies import report_study, study_page

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
    "milestone",
    "milestone_table",
    "paragraph",
    "read_simulation",
    "render",
    "report_campaign",
    "report_evaluation",
    "report_meta",
    "report_pools",
    "report_simulation",
    "report_study",
    "statement_page",
    "study_page",
    "write_report",
]
