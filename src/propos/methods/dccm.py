"""DCCM: clusters that learn from their own labels, similarities and local information (Wu et al., ICCV 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from propos.losses import log_prob
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Mlp, ResNet

SIMILAR = 0.95  # the cosine of two images' assignments from which on they are similar
LABELS, GRAPH, LOCAL = 5.0, 1.0, 0.05  # weights of the terms
NEGATIVES = 2  # dissimilar images that each image is contrasted with
FINEST = 16  # places a side, at most


class Dccm(Method):
    """Train random views on the assignments of plain ones: confident labels, similar images, and which places match.

    Places are positions of the first stage's feature maps. A discriminator separates the places of an image and of a
    similar one from those of others. Losses, thresholds and weights are its public code's. Deviations: the recipe's
    network with average pooling; the plain views are assigned in every step (there a thousand at a time, for ten
    passes); the discriminator reads log-probabilities (there the logits); images are compared with the next ones of
    the batch, whose order is random. Not verified: data other than CIFAR-10 and CIFAR-20.
    """

    class Settings(MethodSettings):
        """The confidence of labels."""

        confidence: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9  # from which on an assignment becomes a label

    year, reference = 2019, "Wu et al., ICCV (arXiv 1904.06925)"
    verified = "losses and settings against its public code; see the docs"
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
    at_scale: ClassVar[Mapping[str, Any]] = {"network.dimension": 64, "train.batch_size": 32}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension, norm_last=True))
        self.head = Mlp(dimension, setup.clusters, relu_first=True, norm_last=True)
        self.discriminator = Discriminator(self._resnet.lower_features, setup.clusters, self.online.features)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(decides="head"),)

    @property
    def _resnet(self) -> ResNet:
        assert isinstance(self.online.backbone, ResNet)
        return self.online.backbone

    def compile_networks(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """Compile also both halves of the backbone: the discriminator reads the maps between them."""
        super().compile_networks(backend)
        for half in ("lower", "upper"):
            setattr(self._resnet, half, torch.compile(getattr(self._resnet, half), backend=backend))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the labels', the graph's and the local term of both views, averaged."""
        maps_a, maps_b = ctx.encode(self._resnet.lower, *batch.views())
        features = ctx.encode(self._resnet.upper, maps_a, maps_b)
        za, zb = ctx.encode(self.online.projector, *features)
        la, lb = ctx.encode(self.head, za, zb)
        with torch.no_grad():  # by the batch's statistics: the running ones are of no use in the first steps
            (plain,) = ctx.encode(self._logits, batch.view("plain", 2))
        outputs = ctx.gather(za, zb, la, lb, plain, places_of(maps_a), places_of(maps_b))
        za, zb, la, lb, plain, *places = outputs
        ctx.report_embeddings(za, zb)

        plain, views = plain.softmax(dim=1), [logits.softmax(dim=1) for logits in (la, lb)]
        similar = similar_images(plain, SIMILAR)
        labels = [label_loss(view, plain, self.settings.confidence) for view in views]
        graph = [graph_loss(view, similar) for view in views]
        local = [local_loss(self.discriminator, *each, similar) for each in zip(places, views, strict=True)]
        return {
            "labels": LABELS * ((labels[0] + labels[1]) / 2),
            "graph": GRAPH * ((graph[0] + graph[1]) / 2),
            "local": LOCAL * ((local[0] + local[1]) / 2),
        }

    def assign(self, features: Tensor) -> Tensor:
        """Return the head's logits."""
        logits: Tensor = self.head(self.online.projector(features))
        return logits

    def _logits(self, images: Tensor) -> Tensor:
        return self.assign(self.online.backbone(images))


class Discriminator(nn.Module):
    """Layers without biases that score how well a place of a feature map matches an image's log-probabilities.

    The first layer reads both, one after the other. It is computed as the sum of a layer for the place and one for the
    log-probabilities, so that each is computed once, in however many pairs it occurs.
    """

    def __init__(self, channels: int, clusters: int, hidden: int) -> None:
        super().__init__()
        self.channels = channels
        self.first = nn.Linear(channels + clusters, hidden, bias=False)
        self.second = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(
        self, places: Float[Tensor, "B P C"], log_probs: Float[Tensor, "B K"], others: Int[Tensor, "B n"]
    ) -> Float[Tensor, "B n P"]:
        """Return the scores of each image's log-probabilities with every place of some images of the batch."""
        of_places, of_images = self.first.weight.split([self.channels, log_probs.shape[1]], dim=1)
        from_places, from_images = F.linear(places, of_places), F.linear(log_probs, of_images)
        hidden = F.relu(from_places[others] + from_images[:, None, None])
        scores: Tensor = self.score(F.relu(self.second(hidden)))
        return scores[..., 0]


def places_of(maps: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P C"]:
    """Return the places of feature maps as rows: averages, half as many a side as there are pixels, and at most 16.

    Rows and columns of pixels that are left over, where the side does not divide, belong to no place.
    """
    side = min(maps.shape[2:])
    across = min(side, max(2, math.ceil(side / FINEST)))
    return F.avg_pool2d(maps, across).flatten(2).transpose(1, 2)


def label_loss(
    probabilities: Float[Tensor, "B K"], plain: Float[Tensor, "B K"], confidence: float
) -> Float[Tensor, ""]:
    """Return mean_i w_i mean_k −log(p_ik where k = y_i, else 1 − p_ik), with y_i the cluster of the plain view.

    w_i is 1 where the plain view's assignment is at least as confident as `confidence`, else 0; the mean is over all
    images. No gradient reaches the plain views.
    """
    confidences, label = plain.detach().max(dim=1)
    own = torch.arange(plain.shape[1], device=label.device) == label[:, None]
    return (binary_cross_entropy(probabilities, own).mean(dim=1) * (confidences >= confidence)).mean()


def similar_images(probabilities: Float[Tensor, "B K"], threshold: float) -> Bool[Tensor, "B B"]:
    """Return which images' assignments have a cosine of at least the threshold; each image is similar to itself."""
    unit = F.normalize(probabilities.detach(), dim=1)
    return (unit @ unit.T >= threshold) | torch.eye(len(unit), dtype=torch.bool, device=unit.device)


def graph_loss(probabilities: Float[Tensor, "B K"], similar: Bool[Tensor, "B B"]) -> Float[Tensor, ""]:
    """Return mean_ij −log(s_ij where i and j are similar, else 1 − s_ij), with s_ij the cosine of their assignments."""
    unit = F.normalize(probabilities, dim=1)
    return binary_cross_entropy(unit @ unit.T, similar).mean()


def local_loss(
    discriminator: nn.Module,
    places: Float[Tensor, "B P C"],
    probabilities: Float[Tensor, "B K"],
    similar: Bool[Tensor, "B B"],
) -> Float[Tensor, ""]:
    """Return the local information of assignments and the places of similar and of dissimilar images."""
    positives, negatives, exist = companions(similar)
    scores = discriminator(places, log_prob(probabilities), torch.cat([positives, negatives], dim=1))
    return local_information(scores[:, :2], scores[:, 2:], exist)


def local_information(
    positives: Float[Tensor, "B n P"], negatives: Float[Tensor, "B m P"], exist: Bool[Tensor, "B m"]
) -> Float[Tensor, ""]:
    """Return mean log(1 + e^−d) of the positives' scores d plus mean log(1 + e^d) of the negatives' that exist.

    It is lowest where the scores separate the two: a bound on their mutual information (Jensen and Shannon's).
    """
    apart = F.softplus(negatives).mean(dim=2) * exist
    return F.softplus(-positives).mean() + apart.sum() / exist.sum().clamp(min=1)


def companions(similar: Bool[Tensor, "B B"]) -> tuple[Int[Tensor, "B 2"], Int[Tensor, "B m"], Bool[Tensor, "B m"]]:
    """Return each image and the next similar one, the next two dissimilar ones, and which of the latter exist.

    The next ones are in the order of the batch, which is random, and wrap around at its end. Where no other image is
    similar, the image itself is used.
    """
    batch = len(similar)
    own = torch.arange(batch, device=similar.device)
    along = (own[:, None] + own) % batch  # row i: i, i + 1, …
    met = similar.gather(1, along)
    next_similar = torch.where(met[:, 1:], own[1:], batch).min(dim=1).values % batch
    dissimilar = torch.where(met, batch, own).topk(min(NEGATIVES, batch), dim=1, largest=False).values
    positives = torch.stack([own, (own + next_similar) % batch], dim=1)
    return positives, (own[:, None] + dissimilar) % batch, dissimilar < batch


def binary_cross_entropy(probabilities: Float[Tensor, "*N"], true: Bool[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Return −log p where `true` holds and −log(1 − p) elsewhere."""
    return -torch.where(true, log_prob(probabilities), log_prob(1 - probabilities))
