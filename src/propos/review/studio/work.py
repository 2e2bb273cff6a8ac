"""Work that Studio does with `propos` commands: what it is, its command, and how it ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from propos.data import unescape_name
from propos.review.report import is_current
from propos.runs import Run

Identity = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
Clusters = Annotated[str, Field(pattern=r"^[0-9]{1,6}(\.\.[0-9]{1,6})?$")]
Split = Annotated[str, Field(pattern=r"^[0-9/]{1,20}$")]
Text = Annotated[str, Field(max_length=4096)]
Form = Literal["csv", "parquet", "json", "coco", "embedding-atlas", "folders", "fiftyone", "xmp", "model", "onnx"]
How = Literal["symlink", "hardlink", "copy"]
State = Literal["waiting", "working", "stopping", "paused", "failed", "done"]


class Work(BaseModel):
    """A piece of work. It is kept in a file, so its commands are made of its parts and are never read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Identity
    kind: Literal["run", "export", "predict"]
    run: Text  # the name of its folder
    source: Text | None = None  # a path, escaped
    clusters: Clusters | None = None
    earlier: Text | None = None  # the run that it continues
    form: Form = "csv"
    how: How = "symlink"
    split: Split | None = None
    output: Text | None = None  # a path, escaped
    state: State = "waiting"
    step: Annotated[int, Field(ge=0, le=2)] = 0
    message: str = ""
    added: float = Field(default_factory=time.time)

    @property
    def heavy(self) -> bool:
        """Whether it computes long, so that one waits for another."""
        return self.kind != "export"

    def command(self, runs: Path) -> list[str] | None:
        """Return the arguments of its next command; None if nothing is left to do."""
        folder = runs / unescape_name(self.run)
        if self.kind == "export":
            return self._export(folder) if self.step == 0 else None
        if self.kind == "predict":
            source = unescape_name(self.source or "")
            return ["predict", str(folder), source, "-o", self._out()] if self.step == 0 else None
        if self.step == 0:
            return self._run(runs, folder)
        return self._page(runs, folder) if self.step == 1 else None

    def _run(self, runs: Path, folder: Path) -> list[str]:
        if (folder / "run.json").is_file():
            return ["run", "--resume", "--out", str(folder)]
        parts = ["run", unescape_name(self.source or ""), "--out", str(folder)]
        parts += [] if self.clusters is None else ["-k", self.clusters]
        if self.earlier is not None:  # its page is written with the comparison
            parts += ["--from", str(runs / unescape_name(self.earlier)), "--no-report"]
        return parts

    def _page(self, runs: Path, folder: Path) -> list[str] | None:
        """Return the command that writes the page, unless there is a current one."""
        if self.earlier is not None:
            earlier = runs / unescape_name(self.earlier)
            known = (earlier / "run.json").is_file()  # it may be in the trash by now
            return ["report", str(folder), *(["--against", str(earlier)] if known else [])]
        return None if is_current(Run.open(folder)) else ["report", str(folder)]

    def _export(self, folder: Path) -> list[str]:
        parts = ["export", str(folder), "--to", self.form, "-o", self._out(), "--how", self.how]
        return parts + ([] if self.split is None else ["--split", self.split])

    def _out(self) -> str:
        return unescape_name(self.output or "")
