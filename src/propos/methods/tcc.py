"""TCC (Shen et al., NeurIPS 2021): twin contrasts, of images given their cluster and of whole clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.config import Count, NotNegative, Positive
from propos.losses import info_nce, log_prob
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import EmaCopy, Encoder, Float32, Mlp, Queue

SMALLEST = 1e-6  # a uniform number, so that its logarithms are finite


class Tcc(Method):
    """Contrast each image, given a draw of its cluster, with keys; and each cluster with the same in the other view.

    A cluster is the sum of its images, weighted by their assignments. No code of the paper was released. From its first
    author's earlier prototype: the Gumbel assignments, the clusters' representations, both queues, the temperatures,
    the optimiser. From the paper: learnt centres, the lower bound, cluster + α · instance terms. Our reading: α = 1;
    the query alone is conditioned on its cluster, by a linear layer; the prior is uniform; the same cluster in earlier
    batches is no negative.
    """

    class Settings(MethodSettings):
        """The temperatures, the queues, and α."""

        temperature: Positive = 1.0
        gumbel_temperature: Positive = 0.3
        queue_size: Count = 4096  # keys of earlier batches
        cluster_batches: Count = 20  # earlier batches whose clusters are negatives
        instance_weight: NotNegative = 1.0  # α

    year, reference = 2021, "Shen et al., NeurIPS (arXiv 2106.01908)"
    verified = "only against its paper: no code was released; see the docs"
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
    at_scale: ClassVar[Mapping[str, Any]] = {
        "tcc.queue_size": 16384,
        "network.dimension": 128,
        "network.momentum": 0.999,
        "train.batch_size": 384,
        "train.lr": 1e-3 * 256 / 384,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, dimension = setup.clusters, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.centres = Float32(nn.Linear(dimension, clusters, bias=False))
        self.condition = Mlp(clusters, dimension)
        self.keys = Queue(settings.queue_size, dimension, setup.rows, setup.generator("keys"))
        self.clusters = Queue(settings.cluster_batches * clusters, dimension, clusters)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(decides="head"),)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast of clusters, and the weighted bound: the contrast of images and the divergence."""
        settings, (a, b) = self.settings, batch.views()
        (za,), (tb,) = ctx.encode(self.online, a), ctx.encode(self.target, b, shuffled=True)
        v, key = F.normalize(za.float(), dim=1), F.normalize(tb.float(), dim=1).detach()
        logits, of_keys = ctx.encode(self.centres, v, key)
        noise = ctx.noise_like(logits, of_keys, sigma=1.0)
        pairs = zip((logits, of_keys), noise, strict=True)
        drawn, of_keys = (gumbel_softmax(*each, settings.gumbel_temperature) for each in pairs)
        (given,) = ctx.encode(self.condition, drawn)
        v, key, given, drawn, of_keys, logits = ctx.gather(v, key, v + given, drawn, of_keys.detach(), logits)
        ctx.report_embeddings(v)
        ours, theirs = (cluster_vectors(*each) for each in ((v, drawn), (key, of_keys)))
        earlier = self.clusters["vectors"], self.clusters["images"]
        ctx.after_backward(self.keys.push, key, batch.images)
        ctx.after_backward(self.clusters.push, theirs, torch.arange(len(theirs), device=theirs.device))
        return {
            "clusters": contrast_of_clusters(ours, theirs, *earlier, settings.temperature),
            "instances": settings.instance_weight * info_nce(given, key, self.keys["vectors"], settings.temperature),
            "divergence": settings.instance_weight * divergence_from_uniform(logits.softmax(dim=1)),
        }

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)

    def assign(self, features: Tensor) -> Tensor:
        """Return the products with the centres."""
        logits: Tensor = self.centres(F.normalize(self.online.projector(features), dim=1))
        return logits


def gumbel_softmax(
    logits: Float[Tensor, "B K"], noise: Float[Tensor, "B K"], temperature: float
) -> Float[Tensor, "B K"]:
    """Return a relaxed draw of each image's cluster: softmax((s + g) / τ), g from the Gumbel distribution.

    The noise is from N(0, 1); g = −log(−log u) with u its rank, which is uniform.
    """
    ranks = torch.special.ndtr(noise).clamp(SMALLEST, 1 - SMALLEST)
    drawn: Tensor = ((logits.float() - (-ranks.log()).log()) / temperature).softmax(dim=1)
    return drawn


def cluster_vectors(embeddings: Float[Tensor, "B D"], assignments: Float[Tensor, "B K"]) -> Float[Tensor, "K D"]:
    """Return the clusters: r_k = Σ_i a_ik v_i, normalised."""
    return F.normalize(assignments.T @ embeddings, dim=1)


def contrast_of_clusters(
    ours: Float[Tensor, "K D"],
    theirs: Float[Tensor, "K D"],
    earlier: Float[Tensor, "Q D"],
    labels: Int[Tensor, " Q"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Contrast each cluster with itself in the other view: −mean_k log(e^{r_k·r'_k/τ} / Σ e^{r_k·n/τ}).

    The sum is over all r', the other r, and the earlier r' that are labelled as another cluster; -1: no cluster yet.
    """
    number = torch.arange(len(ours), device=ours.device)
    itself = number[:, None] == number
    none = (labels == number[:, None]) | (labels < 0)
    others = (ours @ ours.T).masked_fill(itself, -torch.inf), (ours @ earlier.T).masked_fill(none, -torch.inf)
    return F.cross_entropy(torch.cat([ours @ theirs.T, *others], dim=1) / temperature, number)


def divergence_from_uniform(probabilities: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return the mean Kullback-Leibler divergence of the assignments from equal shares: log K + mean_i Σ_k p log p."""
    return math.log(probabilities.shape[1]) + (probabilities * log_prob(probabilities)).sum(dim=1).mean()
