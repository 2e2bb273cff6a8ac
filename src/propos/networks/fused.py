"""EfficientNet-Lite on a CPU by oneDNN: each convolution with its batch norm and ReLU6 in one pass, in oneDNN's layout.

torch carries oneDNN and calls it for every convolution, but in torch's layouts and with ReLU6 in a pass of its own. The
operator is the one that torch's compiler writes into its graphs; it is not documented, so that a torch without it, or
without oneDNN, computes features in the usual way. `propos doctor` tells, and the two have caches of their own.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.efficientnet import ConvNorm

FUSED = "onednn"
_Then = tuple[str, list[float], str]  # the operator's arguments for what follows the convolution
_RELU6: _Then = ("hardtanh", [0.0, 6.0], "")
_LINEAR: _Then = ("none", [], "")


class _Form(NamedTuple):
    """A convolution without its kernel."""

    bias: Tensor | None
    around: int  # zeros at each end
    stride: tuple[int, ...]
    groups: int
    then: _Then


class FusedConv(nn.Module):
    """A convolution with its folded batch norm and ReLU6, from oneDNN's layout to oneDNN's layout."""

    def __init__(self, part: ConvNorm) -> None:
        super().__init__()
        assert isinstance(part.conv, nn.Conv2d)
        assert part.conv.bias is not None, "its batch norm is not folded yet"
        # Not parameters: on another device the plain network is used, and these stay here.
        self._weight, bias = part.conv.weight.detach().contiguous(), part.conv.bias.detach()
        around, then = part.conv.kernel_size[0] // 2, _LINEAR if part.linear else _RELU6
        self._form = _Form(bias, around, part.conv.stride, part.conv.groups, then)
        self._kernels: dict[tuple[int, int], Tensor] = {}

    def forward(self, x: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C H W"]:
        """Return the convolution of images in torch's layout, or of maps in oneDNN's."""
        x = x if x.is_mkldnn else x.to_mkldnn()
        down, across = (self._zeros_before(side) for side in x.shape[2:])
        return _convolution(x, self._kernel(down, across), self._form)

    def _zeros_before(self, side: int) -> int:
        """Return the zeros by which a kernel is lengthened at its start.

        oneDNN is given the same padding at both ends. TensorFlow's of an even side by a stride of 2 is one less at the
        start; there a zero meets the pixel too many.
        """
        return int(self._form.stride[0] == 2 and side % 2 == 0)

    def _kernel(self, down: int, across: int) -> Tensor:
        if (down, across) not in self._kernels:
            self._kernels[down, across] = F.pad(self._weight, (across, 0, down, 0))
        return self._kernels[down, across]


def fuse(network: nn.Module) -> nn.Module | None:
    """Return a copy of a network whose batch norms are folded with fused convolutions; None where that cannot be."""
    parts = {name: part for name, part in network.named_modules() if isinstance(part, ConvNorm)}
    if not parts or why_not_fused() is not None:
        return None
    fused = copy.deepcopy(network)
    for name, part in parts.items():
        fused.set_submodule(name, FusedConv(part))
    return fused


def why_not_fused() -> str | None:
    """Return why convolutions cannot be fused here; None if they can."""
    pixel, weight = torch.ones(1, 1, 1, 1, device="cpu"), torch.ones(1, 1, 1, 1, device="cpu")
    try:
        _convolution(pixel.to_mkldnn(), weight, _Form(None, 0, (1, 1), 1, _RELU6))
    except (AttributeError, RuntimeError):  # the operator is missing, or there is no oneDNN behind it
        return "plain convolutions, slower: this torch cannot fuse them"
    return None


def _convolution(x: Tensor, kernel: Tensor, form: _Form) -> Tensor:
    padding, dilation = [form.around] * 2, [1, 1]
    out: Tensor = torch.ops.mkldnn._convolution_pointwise(
        x, kernel, form.bias, padding, form.stride, dilation, form.groups, *form.then
    )
    return out
