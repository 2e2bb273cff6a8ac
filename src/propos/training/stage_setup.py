"""The start of an epoch or a stage: tables of all images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.data import Source
from propos.distributed import gather, share
from propos.training.context import BatchContext
from propos.training.corrections import Corrections
from propos.training.e_step import Partition, cluster_current_embeddings
from propos.training.embedding import output_batches
from propos.training.learner import Learner
from propos.training.stages import tables_due
from propos.training.state import State


def begin_epoch(learner: Learner, source: Source, state: State, corrections: Corrections | None = None) -> None:
    """Start an epoch: reset the state if a stage starts, and let the method compute its tables."""
    since, opens = learner.stage_epoch(state.epoch), state.stage != learner.number
    if opens:
        state.stage, state.streamed = learner.number, None
    if tables_due(learner.stage, since):
        images = RunImages(learner, source, state, corrections, share(len(source)))
        learner.method.make_tables(images, BatchContext.of(learner, state))
    if opens and state.partition is not None and learner.stage.decides == "head":
        # A head's clusters are unrelated to the earlier clusters of k-means.
        state.partition = Partition(state.partition.labels, state.partition.prototypes[:0])
    learner.method.begin_epoch(BatchContext.of(learner, state))


@dataclass
class RunImages:
    """All images of a run (`methods.AllImages`)."""

    learner: Learner
    source: Source
    state: State
    corrections: Corrections | None
    local: slice

    def apply(self, function: Callable[[Tensor], Tensor]) -> Float[Tensor, "N ..."]:
        """Return a function's outputs for the plain views of all images, in eval mode, on every process."""
        learner = self.learner
        passing = _Passing(learner.method, function)
        batches = output_batches(passing, learner.device, self.source, learner.config, self.local)
        rows = torch.cat(list(batches))
        if self.corrections is not None:
            part = self.corrections.included[self.local].to(rows)
            rows = rows * part.view(-1, *[1] * (rows.ndim - 1))
        return self.gather(rows)

    def gather(self, rows: Tensor) -> Tensor:
        """Return all processes' rows of a table."""
        return gather(rows.contiguous(), len(self.source))

    def prototypes(self) -> Float[Tensor, "K D"]:
        """Cluster the present embeddings by k-means and return the prototypes."""
        state = self.state
        found = cluster_current_embeddings(self.learner, self.source, state.epoch, state.partition, self.corrections)
        return found.prototypes


class _Passing(nn.Module):
    """A function of a method's modules, which are in eval mode when it is."""

    def __init__(self, method: nn.Module, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.method, self.function = method, function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(images)
