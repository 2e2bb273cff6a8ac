"""One place that knows every form, whether it is a file or a folder, and that nothing is overwritten."""

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
    """What was written, or would be: how many images (of a model: clusters), and files with where they go."""

    count: int
    planned: tuple[tuple[Path, Path], ...] = ()
    left_out: int = 0  # images that are junk, where the form has no place for them


def export_run(run: Run, form: str, out: Path, how: How = "symlink", dry_run: bool = False) -> Exported:
    """Write a run's corrected labels in a form; nothing that is there is written over."""
    if form not in FORMATS:
        raise InputError(f"--to {form}: there are {', '.join(FORMATS)}")
    refuse_dry_run(dry_run, form)
    check_place(run, out)
    junk = int((run.corrected.table.cluster == JUNK).sum()) if form == "folders" else 0
    if dry_run:
        planned = plan_folders(run)
        return Exported(len(planned), tuple((original, out / place) for original, place in planned), junk)
    if form in FILES:
        return Exported(FILES[form](run, out))
    with _whole(out) as folder:
        return Exported(FOLDERS[form](run, folder, how), left_out=junk)


def refuse_dry_run(dry_run: bool, form: str) -> None:
    """Refuse to only tell of forms that have nothing to tell: they would be written."""
    if dry_run and form != "folders":
        raise InputError("--dry-run: is for --to folders")


def check_place(run: Run, out: Path) -> None:
    """Refuse what is there already, and places in the run or among its images."""
    refuse_to_overwrite(out)
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist")
    place = out.parent.resolve() / out.name
    for kept, what in ((run.path, "the run"), (run.config.source, "the run's images")):
        if kept is not None and Path(kept).is_dir() and place.is_relative_to(Path(kept).resolve()):
            raise InputError(f"{out}: is inside {kept}, which holds {what}; choose another -o")


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Give a new folder that takes its name only when it is complete."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
