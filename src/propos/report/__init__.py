"""The report: a page of a run that opens by double-click; reads a run folder and its source, never torch."""

from propos.report.after import write_after
from propos.report.write import PAGE, write_report

__all__ = ["PAGE", "write_after", "write_report"]
