"""CMC (Tian et al., ECCV 2020): an image's brightness and its colours are two views of it, of one representation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.config import Fraction, Positive
from propos.losses import instance_softmax
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Bank, Encoder, Mlp, backbone

# Y, Db and Dr of red, green and blue.
YDBDR = ((0.299, 0.587, 0.114), (-0.450, -0.883, 1.333), (-1.333, 1.116, 0.217))
HALF = 0.5  # each of the two networks has half the width


class Cmc(Method):
    """Tell each image from all others by its brightness among remembered colours, and by its colours the other way.

    Two networks of half the width embed; their embeddings side by side are the image's. Deviations from the paper: a
    softmax over all images (there noise-contrastive estimation with 16,384 of them, in its code 4,096); channels Y and
    DbDr of the normalised image (there L and ab, or Y and DbDr). A grey image has no colours: both networks see it.
    """

    class Settings(MethodSettings):
        """The temperature and the banks."""

        temperature: Positive = 0.07
        bank_momentum: Fraction = 0.5

    year, reference = 2020, "Tian et al., ECCV (arXiv 1906.05849)"
    verified = "both directions, banks, temperature and views against its public code"
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "views.jitter": 0.0,
        "views.grey": 0.0,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "views.crop_scale": (0.2, 1.0),
        "train.batch_size": 256,
        "train.lr": 0.03,
        "train.schedule": "steps",
        "train.milestones": (0.5, 2 / 3, 5 / 6),
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        network = setup.network
        channels = (1, 2) if setup.channels == len(YDBDR) else (setup.channels, setup.channels)
        halves = [backbone(network.backbone, network.stem, each, HALF * network.width) for each in channels]
        width = halves[0].features
        networks, dimension = TwoNetworks(*halves), network.dimension
        self.online = Encoder(networks, 2 * width, lambda _: TwoProjectors(width, dimension), 2 * dimension)
        sizes = setup.rows, dimension, settings.bank_momentum
        self.of_brightness = Bank(*sizes, setup.generator("brightness"))
        self.of_colours = Bank(*sizes, setup.generator("colours"))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return instance discrimination across the two views of one crop, in both directions."""
        (z,) = ctx.gather(*ctx.encode(self.online, batch.view("random")))
        ctx.report_embeddings(z)
        brightness, colours = z.chunk(2, dim=1)
        shared = batch.images, self.settings.temperature
        losses = {
            "brightness": instance_softmax(brightness, self.of_colours["vectors"], *shared),
            "colours": instance_softmax(colours, self.of_brightness["vectors"], *shared),
        }
        for bank, own in ((self.of_brightness, brightness), (self.of_colours, colours)):
            ctx.after_backward(bank.move, batch.images, F.normalize(own.detach(), dim=1))
        return losses


class TwoNetworks(nn.Module):
    """A network for the brightness of an image and one for its colours; their features side by side."""

    def __init__(self, brightness: nn.Module, colours: nn.Module) -> None:
        super().__init__()
        self.brightness, self.colours = brightness, colours
        self.register_buffer("channels", torch.tensor(YDBDR), persistent=False)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the features."""
        first, second = self.split(images)
        return torch.cat([self.brightness(first), self.colours(second)], dim=1)

    def split(self, images: Float[Tensor, "B C H W"]) -> tuple[Float[Tensor, "B c H W"], Float[Tensor, "B d H W"]]:
        """Return brightness and colours; of images that are not red, green and blue, all channels twice."""
        if images.shape[1] != len(YDBDR):
            return images, images
        made = torch.einsum("dc,bchw->bdhw", self.get_buffer("channels").to(images.dtype), images)
        return made[:, :1], made[:, 1:]


class TwoProjectors(nn.Module):
    """A linear layer for each half of the features; unit outputs side by side, so that both count alike."""

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.brightness, self.colours = Mlp(width, dimension), Mlp(width, dimension)

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Return the projections."""
        first, second = features.chunk(2, dim=1)
        each = self.brightness(first), self.colours(second)
        return torch.cat([F.normalize(part, dim=1) for part in each], dim=1)
