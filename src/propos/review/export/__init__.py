"""A run's corrected labels in the forms that other programs read; no torch, and no package of theirs."""

from propos.review.export.write import FORMATS, Exported, check_place, export_run, refuse_dry_run

__all__ = ["FORMATS", "Exported", "check_place", "export_run", "refuse_dry_run"]
