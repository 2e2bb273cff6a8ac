"""The files of a page: those of the package, and those written for a run."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.review.report.payload import script
from propos.runs import Run

VERSION = 10  # of the data that the page reads
FOLDER, DATA, EDITS = "report", "data.js", "edits.js"
PAGE = Path(FOLDER) / "index.html"
PAGE_FILES = ("index.html", "app.js", "app.css", "licenses.txt")
WRITTEN = re.compile(r"data\.js|part(-[a-z]+)+\.js|sheet-[0-9]{4,9}\.(png|jpg)")


def page_file(name: str) -> bytes:
    """Read a file of the page as it was built into the package."""
    try:
        return (resources.files("propos.review.report") / "page" / name).read_bytes()
    except FileNotFoundError:
        raise InputError(f"the page's {name} is not built: reinstall propos with pip, which builds it") from None


def report_file(run: Run, name: str) -> Path | None:
    """Return a file of a run's page; None for any other file, and if a link leads out of the run."""
    if WRITTEN.fullmatch(name) is None:
        return None
    path = (run.path / FOLDER / name).resolve()
    return path if path.is_relative_to(run.path.resolve()) and path.is_file() else None


def identity(run: Run) -> dict[str, Any]:
    """Return what a page's data begin with: a page of another version or of other images is written again."""
    return {"version": VERSION, "fingerprint": run.info.source.fingerprint}


def is_current(run: Run) -> bool:
    """Return whether a run has a page of its images, written by a compatible version."""
    path = report_file(run, DATA)
    if path is None:
        return False
    start = script(identity(run)).removesuffix(b"};\n") + b","
    with path.open("rb") as file:
        return file.read(len(start)) == start
