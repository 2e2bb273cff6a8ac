"""SeLa (Asano et al., ICLR 2020): labels of equal shares that fit the network best, and learning them, in turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.common.errors import InputError
from propos.config import Count, Positive
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Memory, Mlp, labels_of

OPTIMISATIONS = 80  # of the labels, over all epochs
CHECKED_EVERY, CLOSE, MOST = 10, 0.1, 2000  # iterations between two looks at the error, the error that ends them


class SeLa(Method):
    """Label all images by optimal transport to clusters of equal size, several times, and learn the labels in between.

    Deviations from the public code: labels come from unaugmented images; they are computed at equal distances in time,
    there more often at first, and before the first epoch (there random labels are learnt until then).
    """

    class Settings(MethodSettings):
        """The labels that are learnt, and λ, the sharpness of the transport."""

        overclustering: Count = 10  # labels, times the number of clusters, but at most one for two images
        heads: Count = 1  # each with labels of its own
        sharpness: Positive = 25.0

    title = "SeLa"
    year, reference = 2020, "Asano et al., ICLR (arXiv 1911.05371)"
    verified = "the labels against its public code"
    needs_clusters = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "sela.overclustering": 3,
        "sela.heads": 10,
        "train.schedule": "steps",
        "train.milestones": (150 / 400, 300 / 400, 350 / 400),
        "train.warmup": 0,
        "train.weight_decay": 1e-5,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        many = settings.overclustering * setup.clusters
        self.online = setup.encoder()
        self.heads = nn.ModuleList(Mlp(self.online.features, many) for _ in range(settings.heads))
        self.memory = Memory({"labels": many}, labels=torch.full((settings.heads, setup.images), -1))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(tables_every=max(1, round(setup.train.epochs / OPTIMISATIONS))),)

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more labels than different images."""
        many, key = cls._labels(settings, setup), "sela.overclustering"
        different = distinct(many)
        if different < many:
            raise InputError(
                f"{key} makes {many} labels: only {different} images differ; set it smaller (--set {key}=…)"
            )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of one view into each head's labels, averaged over the heads."""
        (features,) = ctx.encode(self.online, batch.view("random"))
        made = [ctx.encode(head, features)[0] for head in self.heads]
        features, *logits = ctx.gather(features, *made)
        ctx.report_embeddings(features)
        tables = self.memory["labels"].unbind()
        each = [label_loss(of_head, labels_of(batch.images, t)) for of_head, t in zip(logits, tables, strict=True)]
        return {"labels": torch.stack(each).mean()}

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Label all images for every head."""
        features = images.apply(self.online)
        known, many = features.any(dim=1), self._labels(self.settings, self.setup)
        for head, labels in zip(self.heads, self.memory["labels"].unbind(), strict=True):
            logits = torch.cat([head(part) for part in features[known].split(4096)])[:, :many]
            labels.fill_(-1)
            labels[known] = equal_labels(logits.log_softmax(dim=1), self.settings.sharpness)

    @staticmethod
    def _labels(settings: Settings, setup: Setup) -> int:
        assert setup.clusters is not None
        return min(settings.overclustering * setup.clusters, max(2, setup.images // 2))


def label_loss(logits: Float[Tensor, "B M"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return −mean_i log p_i at each image's label; images labelled -1 take no part, and without any it is 0."""
    total = F.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
    return total / (labels >= 0).sum().clamp(min=1)


@torch.no_grad()
def equal_labels(log_probs: Float[Tensor, "N M"], sharpness: float) -> Int[Tensor, " N"]:
    """Return each image's label in the transport of images to labels of equal shares (Sinkhorn and Knopp; Eqs. 6-8).

    Q = diag(α) P^λ diag(β), with α and β such that every label has N / M images and every image one; an image's label
    is its largest entry. Computed with logarithms, in double precision as in the public code.
    """
    logs = sharpness * log_probs.double()
    images, labels = logs.shape
    of_images = torch.full((images, 1), -math.log(images), dtype=logs.dtype, device=logs.device)
    for iteration in range(MOST):
        of_labels = -math.log(labels) - (logs + of_images).logsumexp(dim=0, keepdim=True)
        before, of_images = of_images, -math.log(images) - (logs + of_labels).logsumexp(dim=1, keepdim=True)
        if iteration % CHECKED_EVERY == 0 and float(((before - of_images).exp() - 1).abs().sum()) <= CLOSE:
            break
    return (logs + of_labels).argmax(dim=1)
