"""Exports of corrected labels in other programs' formats; needs neither torch nor their packages."""

from propos.review.export.write import FORMATS, Exported, check_place, export_run, refuse_dry_run

__all__ = ["FORMATS", "Exported", "check_place", "export_run", "refuse_dry_run"]
