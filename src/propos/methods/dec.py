"""DEC: an autoencoder's embeddings, then clusters that learn from their confident images (Xie et al., ICML 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.config import NotNegative, Positive
from propos.losses import log_prob, symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Memory, Mlp, PrototypeLayer
from propos.networks.precision import full_precision

SIDE = 32  # of a reconstruction, at most: the decoder of larger images would outgrow the rest of the network
SMALLEST = 1e-30  # a divisor that is not 0


class Dec(Method):
    """Train an autoencoder; then make the assignments to centres, which start at k-means's prototypes, more confident.

    Deviations from the public code: embeddings and centres are unit vectors, and `spread` scales their distances; the
    recipe's network replaces fully connected layers and is trained at once, not layer by layer with dropout; a random
    view of each image takes part as well; the targets are computed before every epoch. Not verified: how often the
    paper's runs computed them.
    """

    class Settings(MethodSettings):
        """The kernel of the assignments, and the weights of the second stage's losses."""

        spread: Positive = 0.1  # the squared distance at which Student's t is a half
        sharpening_weight: Positive = 1.0
        reconstruction_weight: NotNegative = 0.0  # 0: the decoder is trained in the first stage only

    year, reference = 2016, "Xie et al., ICML (arXiv 1511.06335)"
    verified = "targets and loss against its public code; see the docs"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "train.optimiser": "adam",
        "train.lr": 1e-3,
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 0.0,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.head = StudentT(dimension, setup.clusters, settings.spread)
        self.decoder = Decoder(dimension, hidden, min(SIDE, setup.views.size), setup.channels)
        self.memory = Memory(targets=torch.zeros(setup.images, setup.clusters))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the autoencoder's stage and the clusters'."""
        trains = ("online", "head", "decoder") if settings.reconstruction_weight else ("online", "head")
        return (
            Stage("autoencoder", 0.5, trains=("online", "decoder")),
            Stage("clusters", 0.5, trains=trains, tables_every=1, decides="head"),
        )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the squared error of the reconstructions and, in the second stage, KL(targets ‖ assignments)."""
        settings, clusters = self.settings, ctx.stage.decides == "head"
        self.head.centres.normalise()
        a, b = batch.view("plain", 0), batch.view("random", 1)
        za, zb = ctx.encode(self.online, a, b)
        outputs = [za, zb]
        reconstruction_weight = settings.reconstruction_weight if clusters else 1.0
        if reconstruction_weight:
            outputs += [*ctx.encode(self.decoder, za, zb), self.decoder.pixels(a), self.decoder.pixels(b)]
        if clusters:
            outputs += ctx.encode(self.head, za, zb)
        za, zb, *outputs = ctx.gather(*outputs)
        ctx.report_embeddings(za, zb)

        losses = {}
        if reconstruction_weight:
            ra, rb, xa, xb = outputs[:4]
            losses["reconstruction"] = reconstruction_weight * symmetric(reconstruction, (ra, xa), (rb, xb))
        if clusters:
            qa, qb = (logits.softmax(dim=1) for logits in outputs[-2:])
            targets = self.memory["targets"][batch.images]
            losses["sharpening"] = settings.sharpening_weight * symmetric(sharpening, (qa, targets), (qb, targets))
        return losses

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Start the centres at k-means's prototypes when the stage opens; compute the targets of all images."""
        if ctx.epoch == 0:
            self.head.start_at(images.prototypes())
        self.memory["targets"] = sharpened(images.apply(self._probabilities))

    def assign(self, features: Tensor) -> Tensor:
        """Return the log of Student's t for each centre."""
        logits: Tensor = self.head(self.online.projector(features))
        return logits

    def _probabilities(self, images: Tensor) -> Tensor:
        return self.assign(self.online.backbone(images)).softmax(dim=1)


class StudentT(nn.Module):
    """Log-densities by distance from learnt centres: −log(1 + d² / spread), Student's t with one degree of freedom.

    Inputs and centres are compared as unit vectors. A softmax of the output gives DEC's assignments.
    """

    def __init__(self, inner: int, clusters: int, spread: float) -> None:
        super().__init__()
        self.centres, self.spread = PrototypeLayer(inner, clusters), spread

    @torch.no_grad()
    def start_at(self, centres: Float[Tensor, "K D"]) -> None:
        """Set the centres."""
        self.centres.weight.copy_(centres)

    def forward(self, projections: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Return the log-densities, up to a constant."""
        with full_precision(projections.device):
            cosines: Tensor = self.centres(projections.to(self.centres.weight.dtype))
            return -torch.log1p((2 - 2 * cosines) / self.spread)


class Decoder(nn.Module):
    """Two fully connected layers that reconstruct an image from the direction of its projection."""

    def __init__(self, inner: int, hidden: int, side: int, channels: int) -> None:
        super().__init__()
        self.side = side
        self.layers = Mlp(inner, hidden, channels * side**2, norm=False)

    def forward(self, projections: Float[Tensor, "B D"]) -> Float[Tensor, "B P"]:
        """Return the pixels of the reconstructions."""
        pixels: Tensor = self.layers(F.normalize(projections, dim=1))
        return pixels

    def pixels(self, view: Float[Tensor, "B C S S"]) -> Float[Tensor, "B P"]:
        """Return the pixels that it should reconstruct: the view's, averaged down to its side."""
        return F.adaptive_avg_pool2d(view, self.side).flatten(1)


def reconstruction(reconstructed: Float[Tensor, "B P"], pixels: Float[Tensor, "B P"]) -> Float[Tensor, ""]:
    """Return the squared error, averaged over pixels and images: mean_i mean_p (x̂_ip − x_ip)²."""
    return (reconstructed - pixels).square().mean()


def sharpening(assignments: Float[Tensor, "B K"], targets: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return the divergence of assignments q from their targets p: mean_i Σ_k p_ik log(p_ik / q_ik)."""
    divergence = torch.xlogy(targets, targets) - targets * log_prob(assignments)
    return divergence.sum(dim=1).mean()


def sharpened(assignments: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
    """Return more confident assignments, in which large clusters have no advantage.

    p_ik = (q_ik² / f_k) / Σ_j (q_ij² / f_j), with f_k = Σ_i q_ik over all images. Rows of zeros stay zero.
    """
    weighted = assignments.square() / assignments.sum(dim=0).clamp(min=SMALLEST)
    return weighted / weighted.sum(dim=1, keepdim=True).clamp(min=SMALLEST)
