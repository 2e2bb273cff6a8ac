"""The report: a page of a run that opens by double-click; reads a run folder and its source, never torch."""

from propos.review.report.edits import edits_scripts, proposal_lines, show_edits
from propos.review.report.files import PAGE, is_current, page_file, report_file
from propos.review.report.questions import QUESTIONS, choose_images_to_check, questions
from propos.review.report.write import write_report, write_report_or_warn

__all__ = [
    "PAGE",
    "QUESTIONS",
    "choose_images_to_check",
    "edits_scripts",
    "is_current",
    "page_file",
    "proposal_lines",
    "questions",
    "report_file",
    "show_edits",
    "write_report",
    "write_report_or_warn",
]
