"""The contract of a method: its settings, its networks, its losses, and the stages that train them.

A method is one class in one file. The training loop calls the hooks below and knows nothing else of it; a method
reaches the outside only through `Setup`, `Batch`, `StepContext`, `AllImages` and `Clustered`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.config import Config, Section
from propos.methods.images import AllImages, Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Encoder, Float32, Neighbours

RECOMPILE_LIMIT = 128
ViewKind = Literal["random", "strong", "plain"]


class MethodSettings(Section):
    """A method's own settings: the section of the configuration that is named for the method."""


class Batch(Protocol):
    """The images of a step: positions and labels of the whole batch (B), views of this process's part of it (b)."""

    images: Int[Tensor, " B"]  # positions of the whole batch's images, on the device
    labels: Int[Tensor, " B"]  # their clusters from the last E-step; -1: unknown
    clustered: bool  # False for images that are trained on but not clustered

    def views(self, **changes: Any) -> tuple[Float[Tensor, "b ..."], Float[Tensor, "b ..."]]:
        """Return two random views of each image; `changes` override the `views` settings."""

    def view(self, kind: ViewKind, number: int = 0, **changes: Any) -> Float[Tensor, "b ..."]:
        """Return one view. Views with different numbers (0, 1 or 2) are drawn independently."""

    def partners(self, neighbours: Neighbours) -> Batch:
        """Return a batch with one random neighbour of each image."""

    def rows(self, table: Tensor) -> Tensor:
        """Return the rows of this process's images from a table with one row per image."""


class StepContext(Protocol):
    """Everything outside itself that a method may use during a step. Draws depend on seed, purpose and step alone."""

    stage: Stage
    epoch: int  # of the stage
    clusters: int | None
    labels: Int[Tensor, " N"]  # the clusters of all images from the last E-step; -1: unknown
    prototypes: Float[Tensor, "K D"]  # unit vectors from the last E-step; no rows before the first
    momentum: float  # of the moving average that makes targets

    def encode(self, module: Callable[[Tensor], Tensor], *views: Tensor, shuffled: bool = False) -> list[Tensor]:
        """Pass views through a module in the run's precision and batch-norm groups.

        With `shuffled`, batch norm groups the batch in a random order if `network.shuffle_bn` is set: for a network
        without a gradient, since none passes between processes then.
        """

    def predict(self, module: nn.Module, view: Tensor) -> Tensor:
        """Pass a view through a module in eval mode, without a gradient."""

    def gather(self, *tensors: Tensor) -> list[Tensor]:
        """Return all processes' rows in float32, with gradients. Gather everything in one call: each communicates."""

    def noise_like(self, *tensors: Tensor, sigma: float) -> list[Tensor]:
        """Return Gaussian noise of this standard deviation for each tensor."""

    def after_backward(self, action: Callable[..., object], *arguments: Any) -> None:
        """Call an action once the gradients of this batch are computed; it may overwrite what backward needed."""

    def report_embeddings(self, *views: Float[Tensor, "B D"]) -> None:
        """Report the batch's embeddings, for E-steps that reuse them (`estep.embeddings = streamed`)."""

    def reinitialise(self, linear: nn.Module) -> None:
        """Draw the weights of a module's linear layers again, N(0, 0.01), and clear the optimiser's state of them."""


class Method(nn.Module):
    """A clustering method. Subclasses define `__init__`, `losses` and, where they differ, the other hooks.

    State is parameters, moving averages (`EmaCopy`) and, for anything else, buffers of a `Memory` submodule: all are in
    checkpoints; the weights of a finished run leave memories out.
    """

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    title: ClassVar[str] = ""  # as its authors write it, unless that is the name in capitals
    year: ClassVar[int | None] = None
    reference: ClassVar[str] = ""
    verified: ClassVar[str] = (
        "only against its paper"  # completes "verified: …": what was compared with the paper or its code
    )
    trains: ClassVar[bool] = True
    has_head: ClassVar[bool] = False  # a cluster head
    has_predictor: ClassVar[bool] = False  # a network `predictor`, which maps projections to targets
    needs_clusters: ClassVar[bool] = False  # the number of clusters, from the start; `has_head` implies it
    tunes: ClassVar[bool] = False  # can train a pretrained network further
    inputs: ClassVar[tuple[str, ...]] = ("images",)  # "images", "features" of a pretrained network, or both
    defaults: ClassVar[Mapping[str, Any]] = {}  # changes to a recipe's settings, by dotted key
    at_scale: ClassVar[Mapping[str, Any]] = {}  # further changes to the paper's recipes
    when_continuing: ClassVar[Mapping[str, Any]] = {}  # changes to its own settings when it continues a finished run
    as_pretext: ClassVar[Mapping[str, Any]] = {}  # changes to its own settings when another method builds on it

    online: Encoder  # trained by gradients
    good_initial_embeddings: bool = False  # embeddings form good clusters before training: a pretrained network's

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__()
        self.settings: Any = settings
        self.setup = setup
        self.target: nn.Module | None = None  # a moving average of the encoder
        self.predictor: nn.Module | None = None

    @classmethod
    def display_name(cls, settings: Any) -> str:
        """Return the name that a run shows, with these settings."""
        return cls.title

    @classmethod
    def stages(cls, settings: Any, setup: Setup) -> tuple[Stage, ...]:
        """Return the stages of a run; called before any network is built."""
        return (Stage(),)

    @classmethod
    def adapt(cls, recipe: Config, at_scale: bool) -> dict[str, Any]:
        """Return the changes to a recipe's settings, by dotted key, that make it one for this method."""
        return {**cls.defaults, **(cls.at_scale if at_scale else {})}

    @classmethod
    def check(cls, settings: Any, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse settings that do not suit the images; `distinct(n)` counts different images up to n."""

    @property
    def embedder(self) -> Encoder:
        """The encoder whose normalised outputs are the embeddings."""
        return self.online

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Float[Tensor, ""]]:
        """Return the weighted loss terms of a batch; their sum is minimised."""
        raise NotImplementedError

    def assign(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"] | None:
        """Return the cluster head's logits for the online backbone's features; None without a cluster head."""
        return None

    def begin_epoch(self, ctx: StepContext) -> None:
        """Act before the first step of an epoch."""

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Compute tables with a row per image (neighbours, features), as often as `Stage.tables_every` says."""

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Act on the embeddings of an E-step within the stage."""

    def after_step(self, ctx: StepContext) -> None:
        """Act after the optimiser's step: move targets."""

    def end_epoch(self, ctx: StepContext) -> None:
        """Act after the last step of an epoch."""

    def sampling_labels(self) -> Int[Tensor, " N"] | None:
        """Return labels that are to be sampled equally often; None: sample images uniformly."""
        return None

    def compile_networks(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """Compile backbones and heads with torch.compile; torch does it when a kind of batch first passes."""
        # All heads share the limit of one function, which gives up after eight kinds of head, gradient and batch.
        dynamo: Any = import_module("torch._dynamo.config")
        dynamo.recompile_limit = max(dynamo.recompile_limit, RECOMPILE_LIMIT)
        for module in self.modules():
            if isinstance(module, Encoder):
                module.backbone.compile(backend=backend)
            elif isinstance(module, Float32):
                module.compile(backend=backend)

    def outputs(self, images: Float[Tensor, "B ..."]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the unit embeddings, the backbone's features and the cluster head's probabilities of plain views."""
        features = self.embedder.backbone(images)
        embeddings = nn.functional.normalize(self.embedder.projector(features), dim=1)
        if not self.has_head:
            return embeddings, features, None
        online = features if self.embedder is self.online else self.online.backbone(images)
        logits = self.assign(online)
        return embeddings, features, None if logits is None else torch.softmax(logits, dim=-1)
