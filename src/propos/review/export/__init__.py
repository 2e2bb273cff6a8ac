"""Exports of corrected labels in other programs' formats; needs neither torch nor their packages."""

from propos.review.export.folders import absent_clusters
from propos.review.export.split import Split, split_run
from propos.review.export.write import (
    FORMATS,
    Exported,
    check_output_path,
    check_split,
    export_run,
    refuse_dry_run,
)

__all__ = [
    "FORMATS",
    "Exported",
    "Split",
    "absent_clusters",
    "check_output_path",
    "check_split",
    "export_run",
    "refuse_dry_run",
    "split_run",
]
