"""The target of `propos evaluate`: a run at its end or after a kept epoch, with its own clusters or new ones."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from propos.cli.streams import say
from propos.clustering import Clustering
from propos.common.errors import InputError
from propos.data import Source, is_array, is_named, positions_not_in
from propos.evaluation.classes import Classes
from propos.evaluation.neighbours import NEIGHBOURS
from propos.runner import open_like, open_run_images
from propos.runner.sources import NoImages
from propos.runs import Run
from propos.training import Model, choose_device
from propos.training.probes import LabelledImages, recluster

UNLABELLED = "has no labels: give a list with columns image,label or an .npz file"


@dataclass(frozen=True)
class EvalTarget:
    """A run to measure: its labels and, loaded when needed, its model and images."""

    run: Run
    labels: Shaped[np.ndarray, " N"] | None
    test: str | None
    device: str
    opened: ExitStack  # closes the images at the end
    snapshot: int | None = None  # the kept epoch whose weights are evaluated
    clusters: int | None = None  # number of new clusters of its embeddings
    by_folder: bool = False  # whether folders label the test images

    @property
    def known(self) -> Shaped[np.ndarray, " N"]:
        """The labels, or an error if there are none."""
        assert self.labels is not None
        return self.labels

    @cached_property
    def model(self) -> Model:
        """The run's networks."""
        return Model.from_run(self.run, choose_device(self.device), self.snapshot)

    @cached_property
    def classes(self) -> Classes:
        """The classes of the run's labels."""
        return Classes.from_labels(self.known)

    @cached_property
    def own_classes(self) -> Int[Tensor, " N"]:
        """The class of each of the run's images."""
        return torch.from_numpy(self.classes.numbers(self.known)).to(self.model.prototypes.device)

    @cached_property
    def own_embeddings(self) -> Float[Tensor, "N D"]:
        """The embeddings the run ended with, or those of the snapshot's network."""
        device = self.model.prototypes.device  # of a model whose weights are there
        if self.snapshot is None:
            return torch.from_numpy(self.run.embeddings).to(device)
        if self.snapshot in self.run.snapshots:
            return torch.from_numpy(self.run.snapshot(self.snapshot)).to(device)
        return self.model.embeddings(self.own_images)  # no E-step followed that epoch

    @cached_property
    def clustering(self) -> Clustering | None:
        """A new clustering of its embeddings; None for the run's own clusters."""
        if self.snapshot is None and self.clusters is None:
            return None
        points = self.own_embeddings.cpu()
        clusters = self.clusters or len(self.run.prototypes.ids)
        if not 2 <= clusters <= len(points):
            raise InputError(f"-k {clusters}: the run has {len(points):,} images: choose 2 to {len(points):,}")
        return recluster(points, clusters, self.model.config)

    @cached_property
    def own_images(self) -> Source:
        """The run's images; they must be unchanged."""
        return self.opened.enter_context(open_run_images(self.run))

    def own(self, positions: Int[Tensor, " n"]) -> LabelledImages:
        """Return some of the run's images with their classes."""
        return LabelledImages(self.own_images, positions, self.own_classes[positions.to(self.own_classes.device)])

    @cached_property
    def test_images(self) -> Source:
        """The test images."""
        assert self.test is not None
        config = self.model.config
        labels = "folders" if self.by_folder and not (is_array(self.test) or is_named(self.test)) else None
        images = self.opened.enter_context(open_like(config, self.test, labels=labels))
        for skipped in images.skipped:
            say(f"skipped {skipped.path}: {skipped.reason}", err=True)
        return images

    @cached_property
    def test_classes(self) -> Int[Tensor, " M"]:
        """The class of each test image."""
        if self.test_images.labels is None:
            raise InputError(f"--test {self.test}: {UNLABELLED}")
        return torch.from_numpy(self.classes.numbers(self.test_images.labels)).to(self.model.prototypes.device)

    @cached_property
    def taught_by(self) -> Int[Tensor, " n"]:
        """The positions of the run's images that are not among the test images, for neighbours and training."""
        device = self.model.prototypes.device
        if self.test is None:
            return torch.arange(len(self.known), device=device)
        try:
            return self.apart
        except NoImages as gone:
            say(f"warning: {gone}: cannot check whether test images are among the run's", err=True)
            return torch.arange(len(self.known), device=device)

    def shared(self, taught: int) -> str:
        """Describe how many of the run's images are left out because they are test images."""
        left = len(self.known) - taught
        return f", {left:,} of them also among the run's, where they are left out" if left else ""

    @cached_property
    def apart(self) -> Int[Tensor, " n"]:
        """The positions of the run's images that are not test images."""
        apart = positions_not_in(self.own_images, self.test_images)
        if len(apart) < 2:
            raise InputError(
                f"--test {self.test}: contains only the run's own images: give others, or leave out --test"
            )
        return torch.tensor(apart, device=self.model.prototypes.device)

    def neighbours(self, asked: int | None, others: int) -> int:
        """Return the number of neighbours: the given one, else 20, but no more than there are images."""
        if others < 1:
            raise InputError(f"{self.run.path}: has one image, which has no neighbours")
        if asked is not None and not 1 <= asked <= others:
            raise InputError(f"--neighbours {asked}: choose 1 to {others}, the number of other images")
        return min(NEIGHBOURS, others) if asked is None else asked
