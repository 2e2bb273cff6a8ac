"""The context of a step: passes through networks, communication between processes, seeded draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.distributed import Shuffle, gather_together, share
from propos.distributed.transfer import send
from propos.methods import Stage
from propos.methods.seeds import derive, generator
from propos.networks import BatchGroups, autocast, in_groups, pass_views, reinitialise
from propos.training.e_step import unassigned
from propos.training.learner import Learner
from propos.training.state import State


@dataclass
class BatchContext:
    """The context of one batch of a step (`methods.StepContext`)."""

    learner: Learner
    size: int  # of the batch, over all processes
    when: tuple[int, int]  # the step of the stage, and which of the batches that accumulate
    stage: Stage
    epoch: int
    clusters: int | None
    labels: Int[Tensor, " N"]
    prototypes: Float[Tensor, "K D"]
    momentum: float
    later: list[Callable[[], object]] = field(default_factory=list)
    embedded: tuple[Float[Tensor, "B D"], ...] = ()

    @classmethod
    def of(cls, learner: Learner, state: State, size: int = 0, when: tuple[int, int] = (0, 0)) -> BatchContext:
        """Return the context of a batch, or of a hook between steps."""
        known = state.partition or unassigned(learner.schedule.images, learner.device)
        epoch, momentum = learner.stage_epoch(state.epoch), learner.schedule.momentum(when[0])
        clusters = learner.config.clusters
        return cls(learner, size, when, learner.stage, epoch, clusters, known.labels, known.prototypes, momentum)

    def encode(self, module: Callable[[Tensor], Tensor], *views: Tensor, shuffled: bool = False) -> list[Tensor]:
        """Pass views through a module in the run's precision and batch-norm groups."""
        precision = self.learner.schedule.settings.precision
        with autocast(self.learner.device, precision):
            if not (shuffled and self.learner.config.network.shuffle_bn):
                return self._pass(module, views)
            shuffle = Shuffle(torch.randperm(self.size, generator=self._generator("shuffle")), self.learner.device)
            # Images are sent in the precision that a network's first convolution rounds them to.
            sent = [view.to(getattr(torch, precision)) if view.ndim == 4 else view for view in views]
            return [shuffle.undo(output) for output in self._pass(module, [shuffle.apply(view) for view in sent])]

    def predict(self, module: nn.Module, view: Tensor) -> Tensor:
        """Pass a view through a module in eval mode, without a gradient."""
        training = [each for each in module.modules() if each.training]
        module.eval()
        with torch.no_grad(), autocast(self.learner.device, self.learner.schedule.settings.precision):
            output: Tensor = module(view)
        for each in training:
            each.training = True
        return output

    def gather(self, *tensors: Tensor) -> list[Tensor]:
        """Return the rows of all processes in float32."""
        whole = gather_together([tensor.float().flatten(1) for tensor in tensors], self.size)
        return [rows.view(-1, *tensor.shape[1:]) for rows, tensor in zip(whole, tensors, strict=True)]

    def noise_like(self, *tensors: Tensor, sigma: float) -> list[Tensor]:
        """Return Gaussian noise for each tensor, drawn for the whole batch."""
        if not sigma:
            return [torch.zeros((), device=tensor.device) for tensor in tensors]
        shape = len(tensors), self.size, *tensors[0].shape[1:]
        drawn = torch.randn(shape, generator=self._generator("noise"))
        return list(send(sigma * drawn[:, share(self.size)], self.learner.device))

    def after_backward(self, action: Callable[..., object], *arguments: Any) -> None:
        """Call an action once the gradients of this batch are computed."""
        detached = [each.detach() if isinstance(each, Tensor) else each for each in arguments]
        self.later.append(lambda: action(*detached))

    def report_embeddings(self, *views: Float[Tensor, "B D"]) -> None:
        """Report the batch's embeddings."""
        self.embedded = tuple(view.detach() for view in views)

    def reinitialise(self, linear: nn.Module) -> None:
        """Draw the weights of a module's linear layers again and clear the optimiser's state of them."""
        reinitialise(linear, derive(self.learner.seed, "reset", self.learner.epochs.start + self.epoch))
        for parameter in linear.parameters():
            for value in self.learner.optimiser_state(parameter).values():
                if isinstance(value, Tensor):
                    value.zero_()

    def mean_embeddings(self) -> Float[Tensor, "B D"]:
        """Return the normalised mean of the reported views."""
        views = [F.normalize(view, dim=1) for view in self.embedded]
        return F.normalize(sum(views[1:], start=views[0]), dim=1)

    def _generator(self, purpose: str) -> torch.Generator:
        return generator(self.learner.seed, purpose, *self.when)

    def _pass(self, module: Callable[[Tensor], Tensor], views: Any) -> list[Tensor]:
        """Pass views separately, or together if batch norm is joint, its messages can be shared or a device computes.

        Batch norm has the same statistics either way. A CPU gains nothing from fewer, larger operations. A pretrained
        network may have other batch norms than ours.
        """
        network, count = self.learner.config.network, len(views)
        groups = BatchGroups.of(self.size, network.bn_groups)
        joint = network.joint_views and count > 1
        on_device = self.learner.device.type != "cpu" and self.learner.config.start.network is None
        behind = (groups.shared or on_device) and not joint and count > 1
        arranged = groups.joined(count) if joint else groups.concatenated(count) if behind else groups
        if not joint and not behind:
            return self._separately(module, views, arranged)
        if behind or len(groups.rows) == 1:
            return list(self._through(module, torch.cat(list(views)), arranged).chunk(count))
        # A group holds all views of its images.
        rows = groups.rows
        mixed = [piece for pieces in zip(*(view.split(rows) for view in views), strict=True) for piece in pieces]
        made = self._through(module, torch.cat(mixed), arranged).split([each for each in rows for _ in range(count)])
        return [torch.cat(made[place::count]) for place in range(count)]

    def _separately(self, module: Callable[[Tensor], Tensor], views: Any, groups: BatchGroups) -> list[Tensor]:
        """Pass views one by one; on a CPU at the same time if batch norm has one group."""
        learner = self.learner
        if learner.device.type != "cpu" or len(views) == 1 or len(groups.here) > 1:
            return [self._through(module, view, groups) for view in views]

        def passed(view: Tensor) -> Tensor:
            with autocast(learner.device, learner.schedule.settings.precision):
                return module(view)

        with in_groups(learner.method, groups):
            return pass_views(module, views, passed)

    def _through(self, module: Callable[[Tensor], Tensor], batch: Tensor, groups: BatchGroups) -> Tensor:
        with in_groups(self.learner.method, groups):
            return module(batch)
