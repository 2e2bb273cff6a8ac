"""Writing the report page of a run."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from propos.common.progress import ShowTask, show_nothing
from propos.data import Source
from propos.evaluation.hierarchy import grow_tree
from propos.review.promise import promise_of
from propos.review.report.agreement import compare_with_labels
from propos.review.report.curves import charts, warnings_of
from propos.review.report.edits import edits_scripts, proposal_lines, show_edits
from propos.review.report.files import DATA, PAGE, PAGE_FILES, identity, page_file
from propos.review.report.groups import Group, describe_groups, junk_group
from propos.review.report.layout import lay_out
from propos.review.report.moments import moments
from propos.review.report.name_list import pack_names
from propos.review.report.originals import ImagesUnavailable, address_of_originals, open_images
from propos.review.report.payload import move_out, packed, script
from propos.review.report.pictures import COLUMNS, PER_SHEET, Pictures
from propos.review.report.problems import find_problems
from propos.review.report.review import packed_clusters, review
from propos.review.report.run_diff import compare_runs
from propos.review.report.settings_text import describe_settings
from propos.review.report.similar import Similar, draw_and_compare
from propos.runs import Run, RunFolder
from propos.runs.arrivals import TAKEN
from propos.runs.audit import read_drawn


def write_report(
    run: Run,
    source: Source | None = None,
    show_task: ShowTask = show_nothing,
    warn: Callable[[str], None] = lambda words: None,
    other: Run | None = None,
) -> Path:
    """Write the page of a finished run and return its path; an open source is not opened again.

    Another run of the same images is shown side by side with it.
    """
    comparison = None if other is None else compare_runs(run, other)
    _grow_tree(run, show_task)
    corrected = run.corrected
    groups = describe_groups(corrected.clusters, corrected.table, corrected.prototypes)
    junk = junk_group(corrected)
    groups += [] if junk is None else [junk]
    with _replaced(run.path / PAGE.parent) as folder:
        _copy_page(folder)
        pictures, similar, originals, note = _pictures(run, source, groups, folder, show_task)
        if pictures is None and note is not None:
            warn(note)
        data = {
            **_facts(run, groups),
            "images": _images(run, pictures, show_task),
            "review": review(run),
            "labels": _labels(run),
            "comparison": comparison,
            "problems": find_problems(corrected.table, similar, run.skipped, similar.faults),
            "pictures": _sheets(pictures, originals, note),
            "moments": moments(run, show_task),
        }
        kept, scripts = move_out(data)
        for name, content in {**scripts, DATA: script(kept)}.items():
            (folder / name).write_bytes(content)
        for name, parts in edits_scripts(run.edits.text(), proposal_lines(run), read_drawn(run)).items():
            (folder / name).write_bytes(b"".join(parts))
    show_edits(run)  # edits that were saved meanwhile
    return run.path / PAGE


class ProgressReporter(Protocol):
    """The methods of a terminal that writing a report after a run needs."""

    @property
    def show_task(self) -> ShowTask:
        """A context manager that shows the progress of a long step."""
        ...

    def line(self, text: str) -> None:
        """Print a line that a person may copy."""
        ...

    def warn(self, text: str) -> None:
        """Print a warning."""
        ...


def write_report_or_warn(run: Run, source: Source, reporter: ProgressReporter) -> None:
    """Write the page of a run that has just finished; a failure is only a warning, because the run is complete."""
    command = f"propos report {shlex.quote(str(run.path))}"
    try:
        page = write_report(run, source, reporter.show_task)
    except KeyboardInterrupt:
        reporter.warn(f"no report was written, but the run is complete: write it with: {command}")
    except Exception as error:  # the finished run matters more than its page
        reporter.warn(f"cannot write the report ({error}), but the run is complete: try again with: {command}")
    else:
        reporter.line(f"Correct clusters in the browser: propos open {shlex.quote(str(run.path))}")
        reporter.line(f"View the report: open {shlex.quote(str(page.absolute()))}")


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Yield a new folder that replaces the old one once it is complete."""
    new = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    new.mkdir()
    try:
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _copy_page(folder: Path) -> None:
    for name in PAGE_FILES:
        (folder / name).write_bytes(page_file(name))


def _pictures(
    run: Run, source: Source | None, groups: list[Group], folder: Path, show_task: ShowTask
) -> tuple[Pictures | None, Similar, str | None, str | None]:
    """Draw thumbnails and look for duplicates; return also the originals' address, and what is to be said of them."""
    featured = [image for group in groups for image in group.typical]
    try:
        with open_images(run, show_task, source) as images:
            pictures, similar = draw_and_compare(run, images, featured, folder, show_task)
            drawn = f"{len(pictures.order):,} of {len(images):,} images have pictures."
            some = drawn if len(pictures.order) < len(images) else None
            return pictures, similar, address_of_originals(images), some
    except ImagesUnavailable as reason:
        return None, Similar(), None, str(reason)


def _grow_tree(run: Run, show_task: ShowTask) -> None:
    """Grow the tree of clusters, once: the corrections refer to it. There is none while images still arrive."""
    if run.tree() is None and not (run.path / TAKEN).exists():
        with show_task("Growing the tree of clusters"):
            tree = grow_tree(
                run.embedding_rows, run.table.cluster, run.prototypes.ids, run.edits.free_id(), run.config.seed
            )
        run.add_tree(tree)


def _facts(run: Run, groups: list[Group]) -> dict[str, Any]:
    epochs, drawn = charts(run.history)
    return {
        **identity(run),
        "title": run.info.source.name or run.path.name,
        "settings": [
            *describe_settings(run.config, run.info, len(run.table.images), run.corrected),
            ("Labels", str(promise_of(run))),
        ],
        "warnings": warnings_of(run.history),
        "clusters": groups,
        "training": {"epochs": epochs, "charts": drawn},
        "suggestion": None if run.suggestion is None else run.suggestion.model_dump(),
    }


def _images(run: Run, pictures: Pictures | None, show_task: ShowTask) -> dict[str, Any]:
    place, table = _places(run, show_task), run.corrected.table
    return {
        "count": len(table.images),
        "names": pack_names(table.images),
        "cluster": packed_clusters(table.cluster),
        "confidence": packed(table.confidence, "unit"),
        "distance": packed(table.distance / 2, "unit"),
        "x": packed(place[:, 0], "unit"),
        "y": packed(place[:, 1], "unit"),
        "slot": None if pictures is None else packed(pictures.slot, "i32"),
    }


def _places(run: Run, show_task: ShowTask) -> Float[np.ndarray, "N 2"]:
    """Return each image's position on the map; kept in the run folder, because it is slow to compute."""
    kept = run.map()
    if kept is not None:
        return kept
    with show_task("Laying out the map") as progress:
        place = lay_out(run.embedding_rows, run.table.cluster, run.config.seed, progress)
    RunFolder(run.path).write_array("map.npy", place.astype(np.float32))
    return place


def _labels(run: Run) -> dict[str, Any] | None:
    agreement = compare_with_labels(run.corrected.table)
    if agreement is None:
        return None
    return {
        "names": agreement.names,
        "label": packed(agreement.label, "u16" if len(agreement.names) < 65_536 else "i32"),
        "scores": agreement.scores,
        "rows": agreement.rows,
        "columns": agreement.columns,
        "counts": agreement.counts,
    }


def _sheets(pictures: Pictures | None, originals: str | None, note: str | None) -> dict[str, Any]:
    if pictures is None:
        return {"sheets": None, "originals": None, "note": note}
    size = {
        "side": pictures.side,
        "whole": pictures.whole,
        "pitch": pictures.pitch,
        "columns": COLUMNS,
        "perSheet": PER_SHEET,
        "tiles": pictures.tiles,
    }
    sheets = {**size, "files": pictures.files}
    return {"sheets": sheets, "originals": originals, "note": note}
