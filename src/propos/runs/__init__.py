"""The run folder: the seam between training, which writes it, and everything else, which reads it."""

from propos.runs.atomic import write_atomically
from propos.runs.folder import RunFolder, newest_folder, next_free_folder
from propos.runs.tables import Clusters, check_table_path, read_label_file, write_parts, write_table

__all__ = [
    "Clusters",
    "RunFolder",
    "check_table_path",
    "newest_folder",
    "next_free_folder",
    "read_label_file",
    "write_atomically",
    "write_parts",
    "write_table",
]
