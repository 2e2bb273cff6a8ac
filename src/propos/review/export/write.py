"""All export formats; existing files are never overwritten."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, refuse_to_overwrite
from propos.review.export.annotations import write_coco, write_fiftyone
from propos.review.export.folders import How, plan_folders, write_folders
from propos.review.export.model import write_model
from propos.review.export.tables import write_atlas, write_labels
from propos.runs import JUNK, Run

FILES: dict[str, Callable[[Run, Path], int]] = {
    "csv": lambda run, out: write_labels(run, out, ".csv"),
    "parquet": lambda run, out: write_labels(run, out, ".parquet"),
    "json": lambda run, out: write_labels(run, out, ".json"),
    "coco": write_coco,
    "embedding-atlas": write_atlas,
}
FOLDERS: dict[str, Callable[[Run, Path, How], int]] = {
    "folders": write_folders,
    "fiftyone": lambda run, out, how: write_fiftyone(run, out),
    "model": lambda run, out, how: write_model(run, out),
}
FORMATS = (*FILES, *FOLDERS)


@dataclass(frozen=True)
class Exported:
    """The result of an export or a dry run: the number of images (of a model: clusters), and files with targets."""

    count: int
    planned: tuple[tuple[Path, Path], ...] = ()
    left_out: int = 0  # junk images that the format leaves out


def export_run(run: Run, form: str, out: Path, how: How = "symlink", dry_run: bool = False) -> Exported:
    """Export a run's corrected labels in a format; existing files are never overwritten."""
    if form not in FORMATS:
        raise InputError(f"--to {form}: unknown format: choose one of {', '.join(FORMATS)}")
    refuse_dry_run(dry_run, form)
    check_output_path(run, out)
    junk = int((run.corrected.table.cluster == JUNK).sum()) if form == "folders" else 0
    if dry_run:
        planned = plan_folders(run)
        return Exported(len(planned), tuple((original, out / place) for original, place in planned), junk)
    if form in FILES:
        return Exported(FILES[form](run, out))
    with _whole(out) as folder:
        return Exported(FOLDERS[form](run, folder, how), left_out=junk)


def refuse_dry_run(dry_run: bool, form: str) -> None:
    """Raise InputError if a format has no dry run."""
    if dry_run and form != "folders":
        raise InputError("--dry-run: only available with --to folders")


def check_output_path(run: Run, out: Path) -> None:
    """Raise InputError if the path exists, or is inside the run or its images."""
    refuse_to_overwrite(out)
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist")
    place = out.parent.resolve() / out.name
    for kept, what in ((run.path, "the run"), (run.config.source, "the run's images")):
        if kept is not None and Path(kept).is_dir() and place.is_relative_to(Path(kept).resolve()):
            raise InputError(f"{out}: is inside {kept}, the folder of {what}: choose another -o")


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Yield a new folder that gets its name once it is complete."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
