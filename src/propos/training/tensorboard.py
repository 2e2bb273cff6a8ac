"""A run's curves and its most typical images for TensorBoard, written next to the run's own files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from propos.common.errors import InputError
from propos.config import Config
from propos.data import Source
from propos.runs import Record, RunFolder
from propos.training.e_step import Assignment
from propos.training.sheet import closeness, sheet

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter

FOLDER = "tensorboard"
SHEETS = 10  # in a run, approximately
SIZES = {"smallest_cluster": "smallest", "largest_cluster": "largest", "imbalance_ratio": "balance", "churn": "moved"}
SCORES = ("nmi", "ami", "ari", "accuracy")


def check_tensorboard(config: Config) -> None:
    """Refuse settings that need TensorBoard if it is not installed."""
    if config.log.tensorboard and find_spec("tensorboard") is None:
        raise InputError("log.tensorboard: TensorBoard is not installed: pip install 'propos[tensorboard]'")


class TensorBoardWriter:
    """A writer of a run's measures and sheets; all processes call it, and the first one writes."""

    def __init__(self, config: Config, run: RunFolder | None, forgotten: int) -> None:
        """Open the log; entries of epochs from `forgotten` on, written after the last checkpoint, are discarded."""
        self._every = max(1, config.train.epochs // SHEETS)
        self._writer = None if run is None else _writer(run.path / FOLDER, forgotten)

    def record(self, record: Record) -> None:
        """Write an epoch's line."""
        if self._writer is None:
            return
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record["epoch"])
        self._writer.flush()

    def show(self, assignment: Assignment, source: Source, epoch: int, last: bool = False) -> None:
        """Write the sizes of the clusters and a sheet of their most typical images, every few epochs and at the end."""
        if not last and epoch % self._every:
            return
        near = closeness(assignment, len(source))
        if self._writer is None or near is None:
            return
        labels = assignment.labels.cpu().numpy()
        sizes = np.bincount(labels[labels >= 0], minlength=len(assignment.prototypes))
        self._writer.add_histogram("clusters/sizes", sizes, epoch)
        self._writer.add_image("clusters/typical", sheet(source, assignment, near), epoch, dataformats="HWC")
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.close()


def scalars(record: Record) -> dict[str, float]:
    """Return an epoch's numbers by their names in TensorBoard; missing measures are left out."""
    measures = record["measures"]
    named = {f"losses/{name}": value for name, value in record["losses"].items()}
    named |= {f"rates/{name}": value for name, value in record["rates"].items()}
    named |= {f"clusters/{shown}": measures.get(name) for name, shown in SIZES.items()}
    named |= {f"scores/{part}{name}": measures.get(part + name) for part in ("", "head_") for name in SCORES}
    if "uniformity_std" in measures:
        named["spread"] = measures["uniformity_std"] / measures["uniformity_reference"]
    return {name: float(value) for name, value in named.items() if value is not None}


def _writer(folder: Path, forgotten: int) -> SummaryWriter:
    from torch.utils.tensorboard.writer import SummaryWriter

    return SummaryWriter(str(folder), purge_step=forgotten)
