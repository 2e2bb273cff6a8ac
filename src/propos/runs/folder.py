"""Writing a run folder (docs/run-folder.md describes every file); propos.runs.reader reads it."""

from __future__ import annotations

import csv
import glob
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from jaxtyping import Float

from propos import config as configuration
from propos.common.errors import InputError
from propos.common.spreadsheets import guarded
from propos.runs.atomic import write_array, write_atomically
from propos.runs.lock import LOCK, make_folder, remove_if_empty
from propos.runs.progress_lines import PROGRESS
from propos.runs.schema import SCHEMA, RunInfo, read_info
from propos.runs.tables import ImageTable, write_table

PARTS = re.compile(r"\.(config\.yaml|run\.json)\.\d+\.part")


class RunFolder:
    """A folder into which one run is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, info: Mapping[str, Any], config: configuration.Config) -> RunFolder:
        """Start a run in a new or empty folder."""
        cls.check_free(path)
        made = make_folder(path)
        run = cls(path)
        try:
            run.write_text("config.yaml", config.to_yaml())
            # run.json is what makes the folder a run, so it comes last.
            run._write_info({"schema": SCHEMA, **info})
        except BaseException:
            (path / "config.yaml").unlink(missing_ok=True)
            if made:
                remove_if_empty(path)
            raise
        return run

    @staticmethod
    def check_free(path: Path) -> None:
        """Raise InputError if the folder exists and is not empty."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file: choose another --out")
        if (path / "run.json").exists():
            raise InputError(f"{path}: already contains a run: add --resume to continue it, or choose another --out")
        if path.is_dir() and not all(_is_remains(each) for each in path.iterdir()):
            raise InputError(f"{path}: the folder is not empty: choose another --out")

    def info(self) -> RunInfo:
        """Read run.json."""
        return read_info(self.path / "run.json")

    def update_info(self, **changes: Any) -> None:
        """Change some keys of run.json."""
        self._write_info({**self.info().plain(), **changes})

    def _write_info(self, info: Mapping[str, Any]) -> None:
        self.write_text("run.json", json.dumps(info, indent=2) + "\n")

    def write_history(self, history: Iterable[Mapping[str, Any]]) -> None:
        """Write the whole history."""
        self.write_text("history.jsonl", "".join(json.dumps(record) + "\n" for record in history))

    def write_skipped(self, skipped: Iterable[tuple[str, str]]) -> None:
        """Write the skipped files of the source, with reasons."""
        text = io.StringIO(newline="")
        rows = [(guarded(image), guarded(reason)) for image, reason in skipped]
        csv.writer(text).writerows([("image", "reason"), *rows])
        self.write_text("skipped.csv", text.getvalue())

    def write_suggestion(self, suggestion: Mapping[str, Any], config: configuration.Config) -> None:
        """Write the suggested number of clusters with its reasons, then the settings with that number."""
        self.write_text("suggestion.json", json.dumps(suggestion, indent=2) + "\n")
        self.write_text("config.yaml", config.to_yaml())

    def write_images(self, table: ImageTable) -> None:
        """Write the table of images."""
        write_table(table, self.path / "clusters.parquet")

    def write_array(self, name: str, array: Float[np.ndarray, ...]) -> None:
        """Write one array as .npy."""
        write_array(self.path / name, array)

    def write_weights(self, weights: Mapping[str, np.ndarray], name: str = "model.safetensors") -> None:
        """Write the networks' weights."""
        (self.path / name).parent.mkdir(exist_ok=True)
        write_atomically(self.path / name, safetensors.numpy.save(dict(weights)))

    def write_text(self, name: str, text: str) -> None:
        """Write a small file of text."""
        write_atomically(self.path / name, text.encode())


@contextmanager
def next_free_folder(parent: Path, name: str) -> Iterator[Path]:
    """Create parent/name-N with the next free number, safely next to other processes that do the same.

    The folder is removed again if it stays empty.
    """
    while True:
        folder = parent / f"{name}-{max(_numbers(parent, name), default=0) + 1}"
        if make_folder(folder):
            break
    try:
        yield folder
    finally:
        remove_if_empty(folder)


def _is_remains(path: Path) -> bool:
    """Return whether a file is a remnant of a run that was killed before it started."""
    if path.name == "config.yaml":
        try:
            text = path.read_text(encoding="utf-8")
            return configuration.from_yaml(text, str(path)).to_yaml() == text
        except (OSError, ValueError):
            return False
    return path.name in (LOCK, PROGRESS) or bool(PARTS.fullmatch(path.name))


def newest_folder(parent: Path, name: str) -> Path:
    """Return the folder parent/name-N with the highest number; raise InputError if there is none."""
    numbers = _numbers(parent, name)
    if not numbers:
        raise InputError(f"--resume: no run of {name} in {parent}; name its folder with --out")
    return parent / f"{name}-{max(numbers)}"


def _numbers(parent: Path, name: str) -> list[int]:
    endings = (path.name.removeprefix(f"{name}-") for path in parent.glob(f"{glob.escape(name)}-*"))
    return [int(ending) for ending in endings if ending.isdecimal()]
