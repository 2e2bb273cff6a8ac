"""Moving averages of modules."""

from __future__ import annotations

import copy
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


class EmaCopy(nn.Module, Generic[Module]):
    """An exponential moving average of a module's parameters: a target or key network.

    Its batch norm uses the batch's statistics in training and keeps running statistics of its own for eval mode.
    """

    module: Module

    def __init__(self, source: Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(source).requires_grad_(False)
        self._source = (source,)  # in a tuple, so that it is not a submodule

    @torch.no_grad()
    def forward(self, *inputs: Any) -> Tensor:
        """Return the copy's output, without a gradient."""
        output: Tensor = self.module(*inputs)
        return output

    @torch.no_grad()
    def move(self, momentum: float) -> None:
        """Move the parameters of trained parts by 1 - momentum towards the source's."""
        pairs = zip(self.module.parameters(), self._source[0].parameters(), strict=True)
        moving = [(ours, theirs) for ours, theirs in pairs if theirs.requires_grad]
        if moving:
            torch._foreach_lerp_([ours for ours, _ in moving], [theirs for _, theirs in moving], 1 - momentum)

    def match_modes(self) -> None:
        """Copy the training or eval mode of each part of the source: parts that are frozen there are frozen here."""
        for ours, theirs in zip(self.module.modules(), self._source[0].modules(), strict=True):
            ours.training = theirs.training

    def reset(self) -> None:
        """Copy the source again."""
        self.module.load_state_dict(self._source[0].state_dict())
