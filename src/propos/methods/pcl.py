"""PCL (Li et al., ICLR 2021): MoCo, and each image contrasted with the prototypes of several clusterings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from propos.clustering import concentrations
from propos.common.errors import InputError
from propos.config import Count, NotNegative, Positive
from propos.losses import counts_in_batch, info_nce, proto_nce
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage, Start
from propos.networks import EmaCopy, Encoder, Memory, Mlp, Queue, labels_of

Numbers = Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)]


class Pcl(Method):
    """Contrast each image with the keys of earlier batches and, after the warm-up, with prototypes; the keys embed.

    Prototypes are the centres of several clusterings, of different numbers of clusters. Each has a temperature of its
    own, its concentration: low for tight clusters.

    Deviations from the public code: losses of both directions; the prototypes of a batch are those of all processes.
    """

    class Settings(MethodSettings):
        """MoCo's temperature and queue, and the clusterings."""

        temperature: Positive = 1.0
        queue_size: Count = 4096
        # Prototypes drawn from those that no image of the batch belongs to, as in the public code; 0: all, each once.
        negatives: Annotated[int, Field(ge=0, le=10**9)] = 0
        prototypes_weight: NotNegative = 0.01
        clusters: Numbers = (250, 500, 1000)  # of each clustering
        concentration: Positive = 1.0  # the mean of the prototypes' temperatures

    year, reference = 2021, "Li et al., ICLR (arXiv 2005.04966)"
    verified = "settings as ProPos's paper has them; the contrast with prototypes against its public code"
    # As MoCo: keys are always shuffled.
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.momentum": 0.99,
        "network.bn_groups": 4,
        "network.shuffle_bn": True,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"train.batch_size": 512, "pcl.negatives": 4096}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.queue = Queue(settings.queue_size, setup.network.dimension, setup.rows, setup.generator("queue"))
        self.clusterings = Clusterings(settings.clusters, setup.images, setup.network.dimension)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (
            Stage(first_clusters=setup.train.warmup, starts=starts_after_warmup(settings.prototypes_weight, setup)),
        )

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than there are different images."""
        check_clusters(settings.clusters, "pcl.clusters", distinct)

    @property
    def embedder(self) -> Encoder:
        """The key encoder."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return InfoNCE of both directions, summed, and ProtoNCE once there are clusterings."""
        settings = self.settings
        a, b = batch.views()
        qa, qb = ctx.encode(self.online, a, b)
        ka, kb = ctx.encode(self.target, a, b, shuffled=True)
        drawing = self._starts(ctx) and batch.clustered and bool(settings.negatives)
        draws = self.clusterings.draws(ctx, qa) if drawing else []
        qa, qb, ka, kb, *draws = ctx.gather(qa, qb, ka, kb, *draws)
        ctx.report_embeddings(ka, kb)
        ctx.after_backward(self.queue.push, torch.cat([ka, kb]), batch.images.repeat(2))
        shared = self.queue["vectors"], settings.temperature
        losses = {"contrast": info_nce(qa, kb, *shared) + info_nce(qb, ka, *shared)}
        if self._starts(ctx) and batch.clustered:
            negatives = Negatives(settings.negatives, draws[0]) if draws else None
            contrast = self.clusterings.contrast(batch.images, qa, qb, negatives=negatives)
            losses["prototypes"] = settings.prototypes_weight * contrast
        return losses

    def _starts(self, ctx: StepContext) -> bool:
        """Return whether prototypes take part."""
        return bool(self.settings.prototypes_weight) and ctx.epoch >= self.setup.train.warmup

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the clusterings, from the end of the warm-up on."""
        if ctx.epoch >= self.setup.train.warmup:
            self.clusterings.find(clustered, self.settings.concentration)

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)


class Negatives(NamedTuple):
    """The number of prototypes to draw of those that the batch has no image of, and the random numbers to draw by."""

    number: int
    draws: Float[Tensor, "B C"]


class Clusterings(Memory):
    """Clusterings of all images into different numbers of clusters: labels, centres and concentrations of each."""

    def __init__(self, numbers: tuple[int, ...], images: int, dimension: int) -> None:
        super().__init__({f"labels_{place}": number for place, number in enumerate(numbers)})
        self.numbers = numbers
        for place, number in enumerate(numbers):
            self[f"labels_{place}"] = torch.full((images,), -1)
            self[f"centres_{place}"] = torch.zeros(number, dimension)
            self[f"concentrations_{place}"] = torch.ones(number)

    def find(self, clustered: Clustered, temperature: float) -> None:
        """Cluster the present embeddings, starting from the last centres where there are any."""
        points, known = clustered.points, bool((self["labels_0"] >= 0).any())
        for place, number in enumerate(self.numbers):
            labels, centres = clustered.kmeans(number, place, points, self[f"centres_{place}"] if known else None)
            found = concentrations(points, labels, centres, temperature, sharded=clustered.sharded)
            whole = clustered.gather_labels(labels)
            self[f"labels_{place}"] = whole
            self[f"centres_{place}"] = centres.to(whole.device)
            self[f"concentrations_{place}"] = found.to(whole.device)

    def draws(self, ctx: StepContext, rows: Float[Tensor, "b D"]) -> list[Float[Tensor, "b C"]]:
        """Return this process's part of random numbers, at least one for each prototype of the largest clustering."""
        each = -(-max(self.numbers) // len(rows))
        return ctx.noise_like(rows.detach()[:, :1].expand(-1, each), sigma=1.0)

    def contrast(
        self, images: Int[Tensor, " B"], *views: Float[Tensor, "B D"], negatives: Negatives | None = None
    ) -> Float[Tensor, ""]:
        """Return ProtoNCE summed over the views and averaged over the clusterings; by default with all prototypes."""
        losses = []
        for place in range(len(self.numbers)):
            labels = labels_of(images, self[f"labels_{place}"])
            prototypes = self[f"centres_{place}"], self[f"concentrations_{place}"]
            counts = None
            if negatives is not None:
                counts = counts_in_batch(labels, negatives.draws.flatten()[: self.numbers[place]], negatives.number)
            losses += [proto_nce(view, *prototypes, labels, counts) for view in views]
        return sum(losses[1:], start=losses[0]) / len(self.numbers)


def starts_after_warmup(weight: float, setup: Setup) -> dict[str, Start]:
    """Return the start of ProtoNCE, unless its weight is 0."""
    return {"prototypes": Start(setup.train.warmup, "lower", "train.warmup")} if weight else {}


def check_clusters(numbers: tuple[int, ...], key: str, distinct: Callable[[int], int]) -> None:
    """Refuse clusterings of more clusters than there are different images; `key` is the setting."""
    finest = max(numbers)
    different = distinct(finest)
    if different < finest:
        raise InputError(
            f"{key} makes {finest} clusters: only {different} images differ; set it smaller (--set {key}=…)"
        )
