"""The run folder: the seam between training, which writes it (RunFolder), and everything else, which reads it (Run)."""

from propos.runs.arrays import VectorFile, Vectors
from propos.runs.atomic import write_atomically
from propos.runs.blocks import Block, StoredBlocks
from propos.runs.clusters import CONFIDENCE_TEMPERATURE, Cluster, Prototypes, rows_of
from propos.runs.corrections import JUNK, CorrectedRun, correct
from propos.runs.edit_file import apply_file, refuse_other_images
from propos.runs.edit_log import EditLog, LogChanged
from propos.runs.edits import Confirm, Cut, Describe, Edit, Junk, Rename, as_line, parse_edit, parse_edits
from propos.runs.folder import RunFolder, newest_folder, next_free_folder
from propos.runs.lock import FolderLocked, lock_folder, refuse_if_locked, wait_for_lock
from propos.runs.progress_lines import PROGRESS, ProgressLines, read_progress
from propos.runs.proposals import Proposal, accept, as_lines, choose, dismiss, read_proposals, write_proposals
from propos.runs.reader import Run
from propos.runs.schema import Measures, Record, RunInfo, SourceInfo, StartInfo, Suggestion, read_history
from propos.runs.tables import ImageTable, check_table_path, read_label_file, write_parts, write_table
from propos.runs.tree import MOST_LEAVES, Tree

__all__ = [
    "CONFIDENCE_TEMPERATURE",
    "JUNK",
    "MOST_LEAVES",
    "PROGRESS",
    "Block",
    "Cluster",
    "Confirm",
    "CorrectedRun",
    "Cut",
    "Describe",
    "Edit",
    "EditLog",
    "FolderLocked",
    "ImageTable",
    "Junk",
    "LogChanged",
    "Measures",
    "ProgressLines",
    "Proposal",
    "Prototypes",
    "Record",
    "Rename",
    "Run",
    "RunFolder",
    "RunInfo",
    "SourceInfo",
    "StartInfo",
    "StoredBlocks",
    "Suggestion",
    "Tree",
    "VectorFile",
    "Vectors",
    "accept",
    "apply_file",
    "as_line",
    "as_lines",
    "check_table_path",
    "choose",
    "correct",
    "dismiss",
    "lock_folder",
    "newest_folder",
    "next_free_folder",
    "parse_edit",
    "parse_edits",
    "read_history",
    "read_label_file",
    "read_progress",
    "read_proposals",
    "refuse_if_locked",
    "refuse_other_images",
    "rows_of",
    "wait_for_lock",
    "write_atomically",
    "write_parts",
    "write_proposals",
    "write_table",
]
