"""The report: a page of a run that opens by double-click; reads a run folder and its source, never torch."""

from propos.review.report.edits import edits_script, show_edits
from propos.review.report.files import PAGE, is_current, page_file, report_file
from propos.review.report.questions import QUESTIONS, ask_about, questions
from propos.review.report.write import write_report, write_report_or_warn

__all__ = [
    "PAGE",
    "QUESTIONS",
    "ask_about",
    "edits_script",
    "is_current",
    "page_file",
    "questions",
    "report_file",
    "show_edits",
    "write_report",
    "write_report_or_warn",
]
