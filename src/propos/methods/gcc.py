"""GCC: neighbours as positives, of embeddings and of assignments (Zhong et al., ICCV 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.config import Count, NotNegative, Positive
from propos.losses import cluster_balance, cluster_matching, nt_xent
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.heads_training import neighbours_and_itself
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Mlp, Neighbours

CONTRAST_EPOCHS, GRAPH_EPOCHS = 50, 950  # of the stages
GRAPH_EVERY = 5  # epochs between two graphs
CONTRAST_WEIGHT = 2.0
FULL_DEGREE = 3  # the degree of an image in the graph at which it has a weight of 1


class Gcc(Method):
    """Contrast images; then pull them to their neighbours in a graph, in embeddings and in assignments.

    Deviations from the public code: the graph is that of plain images by the present network (there, of the means of
    four epochs' views); an image has one neighbour a step, for both losses (there three and another one); a
    neighbour's weight counts once (there twice); near images are no negatives of each other, nor an image of itself.
    Unverified: that the paper leaves near images out as well.
    """

    class Settings(MethodSettings):
        """The contrast's temperature, the balance of clusters and the graph."""

        temperature: Positive = 0.1
        balance_weight: NotNegative = 2.0
        neighbours: Count = 5

    year, reference = 2021, "Zhong et al., ICCV (arXiv 2104.01429)"
    verified = "settings against its public code, not which images it leaves out of the contrast"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.lr": 0.4,
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))
        self.head = Mlp(self.online.features, setup.clusters)
        self.neighbours = Neighbours(setup.images)
        shape = setup.images, 1 + min(settings.neighbours, setup.images - 1)
        self.neighbours["table"], self.neighbours["weights"] = torch.full(shape, -1), torch.zeros(shape)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the contrast alone, then with the graph."""
        first = max(1, round(CONTRAST_EPOCHS / (CONTRAST_EPOCHS + GRAPH_EPOCHS) * setup.train.epochs))
        constant = {"schedule": "constant", "warmup": min(setup.train.warmup, first)}
        return (
            Stage("contrast", CONTRAST_EPOCHS, ("online",), constant),
            Stage("graph", GRAPH_EPOCHS, train={"warmup": 0}, tables_every=GRAPH_EVERY, decides="head"),
        )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the losses of the stage."""
        return self._graph(batch, ctx) if ctx.stage.name == "graph" else self._contrast(batch, ctx)

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find each image's neighbours, itself the first, and their weights."""
        points = F.normalize(images.apply(self.embedder), dim=1)
        table = images.gather(neighbours_and_itself(points, self.settings.neighbours, images))
        self.neighbours["table"] = table
        self.neighbours["weights"] = (FULL_DEGREE / degrees(table)).sqrt()[table]

    def assign(self, features: Tensor) -> Tensor:
        """Return the head's logits."""
        logits: Tensor = self.head(features)
        return logits

    def _contrast(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return NT-Xent between the projections of two views."""
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        ctx.report_embeddings(za, zb)
        return {"contrast": CONTRAST_WEIGHT * nt_xent(za, zb, self.settings.temperature)}

    def _graph(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast on the graph, the matching of clusters between neighbours, and their balance."""
        partners = batch.partners(self.neighbours)
        features = ctx.encode(self.online.backbone, batch.view("random", 0), partners.view("random", 1))
        of_image, of_neighbour = ctx.encode(self.online.projector, *features)
        p, q = ctx.encode(self.head, *features)
        (third,) = ctx.encode(self.online, batch.view("random", 2))
        of_image, of_neighbour, third, p, q = ctx.gather(of_image, of_neighbour, third, p, q)
        p, q = p.softmax(dim=1), q.softmax(dim=1)

        table, weights = (self.neighbours[name][batch.images] for name in ("table", "weights"))
        near, drawn = near_images(table, partners.images), drawn_weights(table, weights, partners.images)
        contrast = graph_contrast((of_image, third, of_neighbour), near, drawn, self.settings.temperature)
        losses = {"contrast": CONTRAST_WEIGHT * contrast, "clusters": cluster_matching(p, q)}
        if self.settings.balance_weight:
            losses["balance"] = self.settings.balance_weight * cluster_balance(p)
        ctx.report_embeddings(of_image)
        return losses


def degrees(table: Int[Tensor, "N count"]) -> Int[Tensor, " N"]:
    """Return the number of images that each shares an edge with, itself included.

    `table` are each image's neighbours, itself first; an edge joins an image and its neighbour in both directions.
    """
    own, others = table[:, 0], table[:, 1:]
    named = torch.bincount(others.flatten(), minlength=len(table))
    mutual = (others[others] == own[:, None, None]).any(dim=2).sum(dim=1)
    return 1 + others.shape[1] + named - mutual


def near_images(table: Int[Tensor, "B count"], partners: Int[Tensor, " B"]) -> Bool[Tensor, "B 3*B"]:
    """Return which rows of both views and of the partners are of an image itself or of one of its neighbours."""
    images = torch.cat([table[:, 0], table[:, 0], partners])
    near = images == table[:, :1]
    for column in table[:, 1:].unbind(dim=1):
        near = near | (images == column[:, None])
    return near


def drawn_weights(
    table: Int[Tensor, "B count"], weights: Float[Tensor, "B count"], partners: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Return the weight of the neighbour that was drawn for each image."""
    return torch.where(table == partners[:, None], weights, 0).sum(dim=1)


def graph_contrast(
    views: tuple[Float[Tensor, "B D"], Float[Tensor, "B D"], Float[Tensor, "B D"]],
    near: Bool[Tensor, "B 3*B"],
    weights: Float[Tensor, " B"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Contrast an image's other view and its neighbour with the rows of images that are not near it.

    −mean_i log (exp(cos(z_i, z_i⁺)/τ) + w_i exp(cos(z_i, z_n(i))/τ)) / Σ_j exp(cos(z_i, z_j)/τ), j over the rows of all
    three views that are not `near` i. `views` are of the images, a second view of the same images, and a view of
    one neighbour of each. An image to which all are near takes no part.
    """
    anchor, other, neighbour = (F.normalize(view, dim=1) for view in views)
    logits = anchor @ torch.cat([anchor, other, neighbour]).T / temperature
    alone = near.all(dim=1)
    rest = logits.masked_fill(near & ~alone[:, None], -torch.inf).logsumexp(dim=1)
    own, theirs = ((anchor * view).sum(dim=1) / temperature for view in (other, neighbour))
    losses = rest - torch.logaddexp(own, theirs + weights.log())
    return torch.where(alone, 0.0, losses).mean()
