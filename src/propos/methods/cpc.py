"""CPC (van den Oord et al., 2018): from the upper rows of an image's patches, predict the rows below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.common.errors import InputError
from propos.config import Count
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.patches import uniform
from propos.methods.setup import Setup
from propos.networks import Encoder, backbone, smallest_side

INSIDE = 60 / 64  # the side of what is kept of a patch, of the patch
LAYERS, WIDTH = 5, 256  # of the network that reads the rows above
SCALE = 0.1  # of predictions


class Cpc(Method):
    """Predict the features of patches from those of the rows above them, and tell them from all others'.

    The mean of the patches' features is the embedding. Deviations from the paper: the recipe's network with batch norm
    over all patches (there ResNet-v2-101 without); greyscale is the mean of the normalised channels. The network that
    reads the rows, and the scale of predictions, are those of the second version's published pseudo-code.
    """

    class Settings(MethodSettings):
        """The grid of patches, the rows that are predicted, and among how many images' patches."""

        grid: Count = 5  # patches a side, each overlapping its neighbours by half
        ahead: Count = 3  # rows below that are predicted
        together: Count = 16  # images whose patches are distinguished; in the paper, those of one GPU

    year, reference = 2018, "van den Oord et al. (arXiv 1807.03748)"
    verified = "only against the papers of both versions"
    # Batch norm of one place of the grid alone would tell the place: all patches are normalised together.
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "network.joint_views": True,
        "views.jitter": 0.0,
        "views.grey": 0.0,
        "train.optimiser": "adam",
        "train.lr": 1e-3,
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 0.0,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "cpc.grid": 7,
        "cpc.ahead": 5,
        "network.dimension": 64,
        "views.size": 256,
        "views.crop_scale": (0.728, 1.0),  # 256 of 300 pixels a side
        "views.crop_ratio": (1.0, 1.0),
        "train.batch_size": 512,
        "train.lr": 2e-4 * 256 / 512,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        network, dimension = setup.network, setup.network.dimension
        least = smallest_side(network.backbone, network.stem)
        built = backbone(network.backbone, network.stem, 1, network.width)
        self.online = Encoder(Patchwise(built, settings.grid, setup.views.size, least), built.features)
        self.context = RowsAbove(built.features, settings.ahead * dimension)
        self.key = nn.Conv2d(built.features, dimension, kernel_size=1)

    @classmethod
    def check(cls, settings: Any, setup: Setup, distinct: Any) -> None:
        """Refuse to predict rows that the grid does not have."""
        if settings.ahead >= settings.grid:
            raise InputError(f"cpc.ahead = {settings.ahead}: a grid of {settings.grid} has fewer rows below the first")

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast of the predicted patches with the others."""
        grid = self.settings.grid
        network = self.online.backbone
        assert isinstance(network, Patchwise)
        patches = network.cut(batch.view("random"))
        (draws,) = ctx.noise_like(patches.new_empty(patches.shape[0], 2 * grid * grid), sigma=1.0)
        features = ctx.encode(network.backbone, *partly_hidden(patches, draws).unbind(1))
        latents = torch.stack(features, dim=2).unflatten(2, (grid, grid))
        (predictions,), (keys,) = ctx.encode(self.context, latents), ctx.encode(self.key, latents)
        predictions, keys, pooled = ctx.gather(predictions, keys, latents.mean(dim=(2, 3)))
        ctx.report_embeddings(pooled)
        by_row = predictions.unflatten(1, (self.settings.ahead, -1))
        return {"rows": predictive_contrast(SCALE * by_row, keys, self.settings.together)}


class Patchwise(nn.Module):
    """A network for greyscale patches that overlap by half; an image's features are the mean of its patches'."""

    def __init__(self, network: nn.Module, grid: int, size: int, least: int) -> None:
        super().__init__()
        self.backbone, self.grid = network, grid
        self.step = max(round(size / (grid + 1)), (least + 1) // 2)  # patches have two steps a side

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the mean features of the images' patches."""
        patches = self.cut(images)
        features: Tensor = self.backbone(patches.flatten(0, 1)).unflatten(0, patches.shape[:2]).mean(dim=1)
        return features

    def cut(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P 1 p p"]:
        """Return the patches row by row; images are resized where the grid does not fit them."""
        grey, side = images.mean(dim=1, keepdim=True), self.step * (self.grid + 1)
        if images.shape[-1] != side:
            grey = F.interpolate(grey, (side, side), mode="bilinear")
        corners = [self.step * number for number in range(self.grid)]
        patch = 2 * self.step
        rows = [grey[:, :, top : top + patch, left : left + patch] for top in corners for left in corners]
        return torch.stack(rows, dim=1)


class RowsAbove(nn.Module):
    """Residual convolutions, each of which reads its own row and the one above, and a linear layer to predictions."""

    def __init__(self, features: int, predictions: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(features, WIDTH, kernel_size=1),
                nn.ReLU(),
                nn.Conv2d(WIDTH, WIDTH, kernel_size=(1, 3), padding=(0, 1)),
                nn.ZeroPad2d((0, 0, 1, 0)),
                nn.Conv2d(WIDTH, WIDTH, kernel_size=(2, 1)),
                nn.ReLU(),
                nn.Conv2d(WIDTH, features, kernel_size=1),
            )
            for _ in range(LAYERS)
        )
        self.predict = nn.Conv2d(features, predictions, kernel_size=1)

    def forward(self, latents: Float[Tensor, "B F G G"]) -> Float[Tensor, "B P G G"]:
        """Return the predictions from each place, of which none depends on the rows below it."""
        for layer in self.layers:
            latents = latents + layer(latents)
        predictions: Tensor = self.predict(latents.relu())
        return predictions


def partly_hidden(patches: Float[Tensor, "B P c p p"], draws: Float[Tensor, "B 2P"]) -> Float[Tensor, "B P c p p"]:
    """Return patches of which a square is kept, at a place drawn from N(0, 1), and the rest is 0."""
    side = patches.shape[-1]
    kept = round(INSIDE * side)
    corners = uniform(draws, side - kept + 1).unflatten(1, (-1, 2))
    pixel = torch.arange(side, device=patches.device)
    down, across = ((pixel >= first) & (pixel < first + kept) for first in corners[..., None].unbind(2))
    kept_pixels: Tensor = down[..., :, None] & across[..., None, :]
    return patches * kept_pixels[:, :, None]


def predictive_contrast(
    predictions: Float[Tensor, "B A D G G"], keys: Float[Tensor, "B D G G"], together: int
) -> Float[Tensor, ""]:
    """Classify the patch k rows below among all patches of `together` images: Σ_k −mean log softmax_j(p·z_j)_k.

    Predictions that leave the grid do not count. Gradients reach predictions and keys.
    """
    losses = []
    for below, each in enumerate(predictions.unbind(1), start=1):
        sums = [_cross_entropy(p, z, below) for p, z in zip(each.split(together), keys.split(together), strict=True)]
        losses.append(torch.stack(sums).sum() / each[:, 0, below:].numel())
    return torch.stack(losses).sum()


def _cross_entropy(
    predictions: Float[Tensor, "M D G G"], keys: Float[Tensor, "M D G G"], below: int
) -> Float[Tensor, ""]:
    """Return the summed cross-entropy of one group of images."""
    places = keys.permute(0, 2, 3, 1)
    number = torch.arange(places[..., 0].numel(), device=keys.device).view(places.shape[:3])
    logits = predictions.permute(0, 2, 3, 1)[:, :-below].flatten(0, 2) @ places.flatten(0, 2).T
    return F.cross_entropy(logits, number[:, below:].flatten(), reduction="sum")
