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
from propos.review.export.sidecars import write_sidecars
from propos.review.export.split import Split, parse_shares
from propos.review.export.tables import write_atlas, write_labels
from propos.runs import JUNK, Run

TABLES = ("csv", "parquet", "json")
FILES: dict[str, Callable[[Run, Path], int]] = {"coco": write_coco, "embedding-atlas": write_atlas}
FOLDERS: dict[str, Callable[[Run, Path], int]] = {
    "fiftyone": write_fiftyone,
    "model": write_model,
    "xmp": write_sidecars,
}
FORMATS = (*TABLES, "folders", *FILES, *FOLDERS)


@dataclass(frozen=True)
class Exported:
    """The result of an export or a dry run: the number of images (of a model: clusters), and files with targets."""

    count: int
    planned: tuple[tuple[Path, Path], ...] = ()
    left_out: int = 0  # junk images that the format leaves out


def export_run(
    run: Run, form: str, out: Path, how: How = "symlink", dry_run: bool = False, split: Split | None = None
) -> Exported:
    """Export a run's corrected labels in a format; existing files are never overwritten."""
    if form not in FORMATS:
        raise InputError(f"--to {form}: unknown format: choose one of {', '.join(FORMATS)}")
    refuse_dry_run(dry_run, form)
    check_output_path(run, out)
    if form in TABLES:
        return Exported(write_labels(run, out, f".{form}", split))
    if form in FILES:
        return Exported(FILES[form](run, out))
    if form in FOLDERS:
        with _whole(out) as folder:
            return Exported(FOLDERS[form](run, folder))
    junk = int((run.corrected.table.cluster == JUNK).sum())
    if dry_run:
        planned = plan_folders(run, split)
        return Exported(len(planned), tuple((original, out / place) for original, place in planned), junk)
    with _whole(out) as folder:
        return Exported(write_folders(run, folder, how, split), left_out=junk)


def check_split(text: str | None, form: str) -> list[int] | None:
    """Return the shares of a split, if one is wanted; raise InputError if the format has none."""
    if text is not None and form not in (*TABLES, "folders"):
        raise InputError(f"--split: only available with --to {', '.join(TABLES)} and folders")
    return None if text is None else parse_shares(text)


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
