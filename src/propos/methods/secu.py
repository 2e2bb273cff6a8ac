"""SeCu: centres are learnt with the network, each from the images of its own cluster alone (Qian, ICCV 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.config import Count, NotNegative, Positive
from propos.losses import symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import Memory, Mlp
from propos.networks.precision import full_precision

CENTRE_RATE = 6.0  # of the network's peak learning rate, and constant: 1.2 and 0.2
LEAST_SHARE = 0.9  # of N / K images, which a cluster is to have
LABEL_SHARE = 0.2  # of an image's target that is its label; the rest is the other view's distribution


class SeCu(Method):
    """Learn the network and the centres of K, 2K, … clusters together, with a lower bound on the clusters' sizes.

    Deviation from the public code with the constraint of sizes: the network's learning rate rises from the first epoch
    on, in which theirs is 0. Unverified: which head the authors' clusters are of (here that of K), and their
    self-labelling afterwards, of which no code was found and which is left out.
    """

    class Settings(MethodSettings):
        """Temperatures, sizes of clusters and numbers of centres."""

        temperature: Positive = 0.05  # of the images' assignments
        centre_temperature: Positive = 0.05  # of the loss that moves the centres
        dual_step: NotNegative = 1.0  # of the dual variables; a small run has too few steps for the authors' 0.1
        overclustering: Count = 10  # the number of sets of centres: of K, 2K, … of them

    title = "SeCu"
    year, reference = 2023, "Qian, ICCV"
    verified = "terms and settings against its public code, which has no evaluation; see the docs"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.batch_size": 128,
        "secu.dual_step": 0.1,
        "train.lr": 0.4,
        "train.warmup": 11,
        "train.weight_decay": 1e-4,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        sizes = tuple(times * setup.clusters for times in range(1, settings.overclustering + 1))
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension))
        self.centres = Centres(setup.network.dimension, sizes, setup.rows)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(rates={"centres": Rate(CENTRE_RATE, constant=True)}, decides="head"),)

    def begin_epoch(self, ctx: StepContext) -> None:
        """Store the centres that images are compared with during the epoch."""
        self.centres.begin_epoch()

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the agreement of images with their earlier labels, and the pull of centres to their present images."""
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        labels = self.centres.nearest(za, zb)
        last = self.centres.last_labels(batch.images)
        earlier = torch.where(last < 0, labels, last)
        temperature, sets = self.settings.centre_temperature, zip(self.centres.current(), labels.unbind(1), strict=True)
        pulls = [centre_learning(z, each, own, temperature) for each, own in sets for z in (za, zb)]
        ctx.report_embeddings(za, zb)
        ctx.after_backward(self.centres.record, batch.images, labels, self.settings.dual_step)
        return {
            "agreement": symmetric(self._agreement, (za, zb), (zb, za), earlier),
            "centres": torch.stack(pulls).mean(),
        }

    def assign(self, features: Tensor) -> Tensor:
        """Return the cosines with the first set's centres over the temperature."""
        logits: Tensor = self.centres(self.online.projector(features)) / self.settings.temperature
        return logits

    def _agreement(self, view: Tensor, other: Tensor, labels: Int[Tensor, "B S"]) -> Float[Tensor, ""]:
        """Return the agreement with each set of centres of the epoch's start, averaged."""
        sets = zip(self.centres.at_epoch_start(), labels.unbind(1), strict=True)
        temperature = self.settings.temperature
        losses = [centre_agreement(view, other, each, own, temperature, LABEL_SHARE) for each, own in sets]
        return torch.stack(losses).mean()


class Centres(nn.Module):
    """Sets of unit vectors in the space of projections; the first set decides.

    It also keeps the centres of the epoch's start, the last label of every image in each set, and a dual variable for
    each centre. These are added to cosines, so that clusters below the least size win images.
    """

    def __init__(self, inner: int, sizes: tuple[int, ...], images: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.weight = nn.Parameter(F.normalize(torch.randn(sum(sizes), inner), dim=1))
        tables = {f"labels{size}": torch.full((images,), -1) for size in sizes}
        below = {f"labels{size}": size for size in sizes}
        self.memory = Memory(below, before=self.weight.detach().clone(), duals=torch.zeros(sum(sizes)), **tables)

    def forward(self, projections: Float[Tensor, "B D"]) -> Float[Tensor, "B K"]:
        """Return the cosines with the first set's centres."""
        with full_precision(projections.device):
            first = self.weight[: self.sizes[0]]
            return F.linear(F.normalize(projections.to(first.dtype), dim=1), F.normalize(first, dim=1))

    def current(self) -> tuple[Float[Tensor, "K D"], ...]:
        """Return each set's present centres, unit vectors."""
        return self._sets(F.normalize(self.weight, dim=1))

    def at_epoch_start(self) -> tuple[Float[Tensor, "K D"], ...]:
        """Return each set's centres at the start of the epoch."""
        return self._sets(self.memory["before"])

    def last_labels(self, images: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
        """Return the labels that images had in their last batch; -1 before the first."""
        return torch.stack([self.memory[f"labels{size}"][images] for size in self.sizes], dim=1)

    @torch.no_grad()
    def begin_epoch(self) -> None:
        """Store the present centres as the centres of the epoch's start."""
        self.memory["before"].copy_(F.normalize(self.weight, dim=1))

    @torch.no_grad()
    def nearest(self, first: Float[Tensor, "B D"], second: Float[Tensor, "B D"]) -> Int[Tensor, "B S"]:
        """Return each image's centre in each set: the largest sum of the mean cosine of both views and the dual."""
        mean = (F.normalize(first, dim=1) + F.normalize(second, dim=1)) / 2
        scores = mean @ F.normalize(self.weight, dim=1).T + self.memory["duals"]
        return torch.stack([each.argmax(dim=1) for each in self._sets(scores, dim=1)], dim=1)

    @torch.no_grad()
    def record(self, images: Int[Tensor, " B"], labels: Int[Tensor, "B S"], step: float) -> None:
        """Keep a batch's labels, and raise the duals of clusters that it has too few images of; lower the others'.

        A dual moves by step · (0.9 / K − the cluster's share of the batch) and stays at 0 or above.
        """
        for size, duals, own in zip(self.sizes, self._sets(self.memory["duals"]), labels.unbind(1), strict=True):
            self.memory[f"labels{size}"].index_copy_(0, images, own)
            shares = (own[:, None] == torch.arange(size, device=own.device)).to(duals.dtype).mean(dim=0)
            duals.add_(step * (LEAST_SHARE / size - shares)).clamp_(min=0)

    def _sets(self, rows: Float[Tensor, "S ..."], dim: int = 0) -> tuple[Tensor, ...]:
        """Split what belongs to all centres by their sets."""
        parts: tuple[Tensor, ...] = torch.split(rows, list(self.sizes), dim=dim)
        return parts


def centre_agreement(
    embeddings: Float[Tensor, "B D"],
    others: Float[Tensor, "B D"],
    centres: Float[Tensor, "K D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    share: float,
) -> Float[Tensor, ""]:
    """Hold each image's assignment to its label, for a share, and to its other view's assignment for the rest.

    −mean_i Σ_k [share · 1(y_i = k) + (1 − share) · q_ik] log p_ik, with p and q the softmax over centres of
    z·c_k / τ for the view and for the other one. No gradient reaches the other view or the centres, which are unit
    vectors.
    """
    centres = centres.detach()
    log_p = F.log_softmax(F.normalize(embeddings, dim=1) @ centres.T / temperature, dim=1)
    q = F.softmax(F.normalize(others.detach(), dim=1) @ centres.T / temperature, dim=1)
    of_label = log_p.gather(1, labels[:, None])[:, 0]
    return -(share * of_label + (1 - share) * (q * log_p).sum(dim=1)).mean()


def centre_learning(
    embeddings: Float[Tensor, "B D"], centres: Float[Tensor, "K D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Pull each centre to the images of its cluster: −mean_i log softmax_k(z_i·c_k / τ) at the image's own centre.

    Only the own centre's cosine has a gradient, to the centre alone: images of other clusters do not move a centre, and
    a centre without images in the batch stays where it is. Centres are unit vectors; embeddings are normalised here.
    """
    cosines = F.normalize(embeddings.detach(), dim=1) @ centres.T
    place = labels[:, None]
    own = cosines.detach().scatter(1, place, cosines.gather(1, place))
    return F.cross_entropy(own / temperature, labels)
