"""Exports of corrected labels in other programs' formats; needs neither torch nor their packages."""

from propos.review.export.write import FORMATS, Exported, check_output_path, export_run, refuse_dry_run

__all__ = ["FORMATS", "Exported", "check_output_path", "export_run", "refuse_dry_run"]
