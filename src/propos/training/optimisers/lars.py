"""LARS: SGD whose step is, layer by layer, in proportion to the layer's weights (You et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor

from propos.common.errors import InputError


class Lars(torch.optim.Optimizer):
    """Layer-wise adaptive rates with momentum.

    Of every parameter p with gradient g:  u = g + decay·p,  u ← η·‖p‖/‖u‖·u where neither norm is 0,
    v ← momentum·v + u,  p ← p − lr·v.  Groups with `adapt: False` are plain SGD: no η·‖p‖/‖u‖.
    The parameters of a group share a device and a dtype.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
    ) -> None:
        for name, value in (("lr", lr), ("weight_decay", weight_decay), ("trust", trust)):
            if not value >= 0:
                raise InputError(f"LARS: {name} is {value}: choose 0 or more")
        if not 0 <= momentum < 1:
            raise InputError(f"LARS: momentum is {momentum}: choose 0 or more and less than 1")
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust, "adapt": True}
        super().__init__(params, defaults)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step and return the closure's result, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self._step_of(group)
        return loss

    def _step_of(self, group: dict[str, Any]) -> None:
        parameters = [p for p in group["params"] if p.grad is not None]
        if not parameters:
            return
        updates = list(torch._foreach_add([p.grad for p in parameters], parameters, alpha=group["weight_decay"]))
        if group["adapt"]:
            torch._foreach_mul_(updates, _trusted(parameters, updates, group["trust"]))
        if group["momentum"]:
            updates = self._with_momentum(parameters, updates, group["momentum"])
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _with_momentum(self, parameters: list[Tensor], updates: list[Tensor], momentum: float) -> list[Tensor]:
        for parameter in parameters:
            if "momentum_buffer" not in self.state[parameter]:
                self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        buffers = [self.state[parameter]["momentum_buffer"] for parameter in parameters]
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_add_(buffers, updates)
        return buffers


def _trusted(parameters: list[Tensor], updates: list[Tensor], trust: float) -> tuple[Float[Tensor, ""], ...]:
    """Return η·‖p‖/‖u‖ of every parameter, 1 where a norm is 0; the host does not wait for the device."""
    lengths = torch.stack(torch._foreach_norm(parameters))
    steps = torch.stack(torch._foreach_norm(updates))
    ratios = torch.where((lengths > 0) & (steps > 0), trust * lengths / steps, 1.0)
    return ratios.unbind()
