"""The report: a page of a run that opens by double-click; reads a run folder and its source, never torch."""

from propos.report.after import write_after
from propos.report.edits import edits_script, show_edits
from propos.report.files import PAGE, is_current, page_file, report_file
from propos.report.questions import QUESTIONS, ask_about, questions
from propos.report.write import write_report

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
    "write_after",
    "write_report",
]
