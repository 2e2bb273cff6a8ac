"""Several cluster heads; the one with the lowest loss decides."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.memory import Memory


class ClusterHeads(nn.Module):
    """Several heads of one kind, initialised independently."""

    def __init__(self, build: Callable[[], nn.Module], count: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(build() for _ in range(count))
        self.register_buffer("chosen", torch.zeros((), dtype=torch.long))
        self.memory = Memory(losses=torch.zeros(count))  # sums over this epoch

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B H K"]:
        """Return every head's logits."""
        return torch.stack([head(features) for head in self.each], dim=1)

    def pick(self, of_heads: Float[Tensor, "B H K"]) -> Float[Tensor, "B K"]:
        """Return the output of the chosen head."""
        return of_heads.index_select(1, self.get_buffer("chosen")[None])[:, 0]

    @torch.no_grad()
    def record(self, losses: Float[Tensor, " H"]) -> None:
        """Add the losses of a batch, one for each head."""
        self.memory["losses"].add_(losses.detach())

    @torch.no_grad()
    def choose(self) -> None:
        """Choose the head with the lowest sum of losses since the last call."""
        self.get_buffer("chosen").copy_(self.memory["losses"].argmin())
        self.memory["losses"].zero_()
