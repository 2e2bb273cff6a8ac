"""SwAV: codes of one view, in clusters of equal size, predicted from the other (Caron et al., NeurIPS 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from propos.config import Count, Positive
from propos.losses import log_prob, symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import Mlp, PrototypeLayer, Queue

EPSILON, ITERATIONS = 0.05, 3  # of Sinkhorn and Knopp


class SwAV(Method):
    """Assign a batch evenly to many prototypes, and predict each view's assignment from the other view.

    Deviations from the public code: two views of one size, without further small crops; one queue, if any, for both
    views, which is used from when it is full. The prototypes, which are trained from the second epoch on, are many more
    than the clusters, which are found by k-means on the embeddings.
    """

    class Settings(MethodSettings):
        """The prototypes, their temperature, and a queue of embeddings."""

        temperature: Positive = 0.1
        overclustering: Count = 10  # prototypes, times the number of clusters
        queue_size: Annotated[int, Field(ge=0, le=10**9)] = 0  # embeddings of earlier batches that share the codes

    title = "SwAV"
    year, reference = 2020, "Caron et al., NeurIPS (arXiv 2006.09882)"
    verified = "the loss and settings against its public code"
    needs_clusters = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.hidden": 2048,
        "network.dimension": 128,
        "train.optimiser": "lars",
        "train.lr": 0.3,
        "train.warmup": 10,
        "train.weight_decay": 1e-6,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.prototypes = PrototypeLayer(dimension, settings.overclustering * setup.clusters)
        self.queue = Queue(settings.queue_size, dimension, setup.rows) if settings.queue_size else None

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(rates={"prototypes": Rate(first_epoch=1)}),)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the cross-entropy of each view's codes and the other view's assignment."""
        self.prototypes.normalise()
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        ctx.report_embeddings(za, zb)
        ca, cb = self.prototypes(za), self.prototypes(zb)
        earlier = None if self.queue is None else self.queue["vectors"]
        codes = [balanced_codes(cosines, self.prototypes.vectors(), earlier) for cosines in (ca, cb)]
        pa, pb = ((cosines / self.settings.temperature).softmax(dim=1) for cosines in (ca, cb))
        if self.queue is not None:
            ctx.after_backward(self.queue.push, torch.cat([za, zb]), batch.images.repeat(2))
        return {"codes": symmetric(code_prediction, (codes[0], pb), (codes[1], pa))}


def code_prediction(codes: Float[Tensor, "B M"], probabilities: Float[Tensor, "B M"]) -> Float[Tensor, ""]:
    """Return the cross-entropy of one view's codes q and the other's probabilities p: −mean_i Σ_m q_im log p_im."""
    return -(codes * log_prob(probabilities)).sum(dim=1).mean()


@torch.no_grad()
def balanced_codes(
    cosines: Float[Tensor, "B M"],
    prototypes: Float[Tensor, "M D"],
    earlier: Float[Tensor, "Q D"] | None = None,
    epsilon: float = EPSILON,
    iterations: int = ITERATIONS,
) -> Float[Tensor, "B M"]:
    """Return the assignment of each image to prototypes that have equal shares of the batch.

    A queue of earlier embeddings, unit vectors, makes the batch larger once it is full.
    """
    codes = sinkhorn(cosines, epsilon, iterations)
    if earlier is None:
        return codes
    full = (earlier[-1] != 0).any()  # a ring's last place is filled last
    larger = torch.cat([earlier @ prototypes.T, cosines])
    return torch.where(full, sinkhorn(larger, epsilon, iterations)[-len(codes) :], codes)


@torch.no_grad()
def sinkhorn(scores: Float[Tensor, "B K"], epsilon: float, iterations: int = 3) -> Float[Tensor, "B K"]:
    """Return assignments that sum to 1 for every row and, up to convergence, to B / K for every column.

    exp(scores / ε), with columns and rows scaled in alternation (Sinkhorn and Knopp): the entropic optimal transport of
    rows to columns of equal size. Computed with logarithms, so that no ε is too small for float32.
    """
    logs = scores.float() / epsilon
    rows, columns = logs.shape
    for _ in range(iterations):
        logs = logs - logs.logsumexp(dim=0, keepdim=True) - math.log(columns)
        logs = logs - logs.logsumexp(dim=1, keepdim=True) - math.log(rows)
    return (logs + math.log(rows)).exp()
