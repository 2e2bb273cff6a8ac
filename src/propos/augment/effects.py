"""Blur and solarisation, of the views they were drawn for and no others."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from propos.augment.resample import weighted_row_sums
from propos.distributed.transfer import send


def blur_(views: Float[Tensor, "V B C S S"], sigma: Float[Tensor, "V B"]) -> None:
    """Blur each view with a Gaussian of its own σ, known to the host, in place; σ = 0 leaves a view unchanged.

    As in SimCLR and BYOL the kernel is about a tenth of the side. Beyond the border the view is mirrored. The kernel
    is separable: every row becomes a weighted sum of rows, then every column one of columns, laid out as rows.
    """
    flat, sigma = views.view(-1, *views.shape[2:]), sigma.flatten()
    chosen = sigma.nonzero()[:, 0]
    if len(chosen) == 0:
        return
    sigma, chosen = send(sigma[chosen], views.device), send(chosen, views.device)
    pixels, weight = flat[chosen], _kernels(sigma, _reach(views.shape[-1]))
    for _ in range(2):
        pixels = _along_rows(pixels, weight).transpose(2, 3)
    flat[chosen] = pixels


def solarise_(views: Float[Tensor, "V B C S S"], chosen: Bool[Tensor, "V B"]) -> None:
    """Invert what is 0.5 or brighter in the chosen views, which the host knows, in place; pixels are in [0, 1]."""
    places = chosen.flatten().nonzero()[:, 0]
    if len(places) == 0:
        return
    places = send(places, views.device)
    flat = views.view(-1, *views.shape[2:])
    pixels = flat[places]
    flat[places] = torch.where(pixels < 0.5, pixels, 1 - pixels)


def _reach(side: int) -> int:
    """Return how far the kernel reaches to each side: together a tenth of the view, but at least three pixels."""
    return min(max(1, side // 20), side - 1)


def _kernels(sigma: Float[Tensor, " n"], reach: int) -> Float[Tensor, "n K"]:
    offsets = torch.arange(-reach, reach + 1, device=sigma.device)
    return torch.softmax(-0.5 * (offsets / sigma[:, None]) ** 2, dim=1)


def _along_rows(pixels: Float[Tensor, "n C S S"], weight: Float[Tensor, "n K"]) -> Float[Tensor, "n C S S"]:
    """Replace every row by the weighted sum of the rows around it."""
    count, channels, side, _ = pixels.shape
    offsets = torch.arange(weight.shape[1], device=pixels.device) - weight.shape[1] // 2
    rows = (torch.arange(side, device=pixels.device)[:, None] + offsets).abs()
    rows = torch.where(rows < side, rows, 2 * (side - 1) - rows)
    starts = side * torch.arange(count * channels, device=pixels.device).view(count, channels, 1, 1)
    weight = weight[:, None, None].expand(count, channels, *rows.shape)
    return weighted_row_sums(pixels.reshape(-1, side), starts + rows, weight).view(pixels.shape)
