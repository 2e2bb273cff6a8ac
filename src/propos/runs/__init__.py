"""The run folder: the seam between training, which writes it (RunFolder), and everything else, which reads it (Run)."""

from propos.runs.applying import apply_file, refuse_other_images
from propos.runs.arrays import VectorFile, Vectors
from propos.runs.atomic import write_atomically
from propos.runs.clusters import CONFIDENCE_TEMPERATURE, Cluster, Prototypes, rows_of
from propos.runs.corrections import JUNK, CorrectedRun, correct
from propos.runs.edit_log import EditLog, LogChanged
from propos.runs.edits import Confirm, Describe, Edit, Junk, Rename, as_line, parse_edits
from propos.runs.folder import RunFolder, newest_folder, next_free_folder
from propos.runs.lock import FolderLocked, lock_folder, refuse_if_locked, wait_for_lock
from propos.runs.reader import Run
from propos.runs.schema import Measures, Record, RunInfo, SourceInfo, StartInfo, Suggestion, read_history
from propos.runs.tables import ImageTable, check_table_path, read_label_file, write_parts, write_table

__all__ = [
    "CONFIDENCE_TEMPERATURE",
    "JUNK",
    "Cluster",
    "Confirm",
    "CorrectedRun",
    "Describe",
    "Edit",
    "EditLog",
    "FolderLocked",
    "ImageTable",
    "Junk",
    "LogChanged",
    "Measures",
    "Prototypes",
    "Record",
    "Rename",
    "Run",
    "RunFolder",
    "RunInfo",
    "SourceInfo",
    "StartInfo",
    "Suggestion",
    "VectorFile",
    "Vectors",
    "apply_file",
    "as_line",
    "check_table_path",
    "correct",
    "lock_folder",
    "newest_folder",
    "next_free_folder",
    "parse_edits",
    "read_history",
    "read_label_file",
    "refuse_if_locked",
    "refuse_other_images",
    "rows_of",
    "wait_for_lock",
    "write_atomically",
    "write_parts",
    "write_table",
]
