"""The online network, where its targets come from, and the heads around it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.config import NetworkSettings
from propos.distributed import gather, share
from propos.networks.centres import Centres
from propos.networks.decoder import Decoder
from propos.networks.discriminator import Discriminator, places_of
from propos.networks.heads import Head, Heads, Mlp, Prototypes, initialise_predictor
from propos.networks.norm import ALONE, BatchGroups, set_groups
from propos.networks.parts import EVERY_PART, PartName, Parts
from propos.networks.resnet import ResNet, backbone
from propos.networks.tuned import Tuned
from propos.networks.whitening import Whitening
from propos.outputs import Outputs, Pair

Views = tuple[Float[Tensor, "B ..."], Float[Tensor, "B ..."]]  # images, or the backbone's features of them


AnyHead = Mlp | Heads | Centres


class Encoder(nn.Module):
    """A backbone and its projector; without a projector, the pixels or the whitened features themselves.

    Where the settings want whitened features it is fed those of a pretrained network, `channels` of them.
    """

    def __init__(self, settings: NetworkSettings, parts: Parts, channels: int) -> None:
        super().__init__()
        self.backbone: nn.Module
        self.projector: nn.Module
        if parts.tuning is not None:
            self.backbone, self.features = Tuned(parts.tuning, settings.components), settings.components
        elif settings.backbone == "whitened":
            self.backbone, self.features = Whitening(channels, settings.components), settings.components
        elif parts.projector is None:
            self.backbone, self.features = nn.Flatten(), 0
        else:
            network = backbone(settings.backbone, settings.stem, channels, settings.width)
            self.backbone, self.features = network, network.features
        self.projector = nn.Identity() if parts.projector is None else Mlp(self.features, parts.projector)
        self.register_buffer("_anchor", torch.empty(0), persistent=False)  # pixels alone have no parameter

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.get_buffer("_anchor").device

    def forward(self, images: Float[Tensor, "B C S S"]) -> Float[Tensor, "B D"]:
        """Return the raw projections."""
        projections: Tensor = self.projector(self.backbone(images))
        return projections


class TwinNetwork(nn.Module):
    """An online encoder and its heads; where the method wants one, a target encoder that is its moving average.

    Batch norm sees the statistics of one view, unless the settings ask for those of both. The target's batch norm runs
    on batch statistics in training too, and keeps running buffers of its own for the E-step. Each process passes its
    share of a batch; batch norm sees the whole batch in `bn_groups` groups.
    """

    def __init__(self, settings: NetworkSettings, parts: Parts, channels: int) -> None:
        super().__init__()
        self.parts, self.joint, self.bn_groups = parts, settings.joint_views, settings.bn_groups
        self.groups, self.learning, self.settled = ALONE, EVERY_PART, False
        self.online = Encoder(settings, parts, channels)
        self.target: Encoder | None = None
        if parts.target == "moving average":
            self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor: nn.Module = nn.Identity()
        if parts.predictor is not None:
            assert parts.projector is not None
            self.predictor = Mlp(parts.projector.widths[-1], parts.predictor)
            if parts.predictor_starts_small:
                initialise_predictor(self.predictor)
        self.cluster_head: AnyHead | None = None
        self.over_head: AnyHead | None = None
        if parts.cluster_head is not None:
            kind, inner = parts.cluster_head, self.online.features
            if parts.cluster_head_reads == "projections":
                assert parts.projector is not None
                inner = parts.projector.widths[-1]
            self.cluster_head = _heads(inner, kind, parts.heads)
            self.over_head = None if parts.over_head is None else _heads(inner, parts.over_head, parts.heads)
        self.target_head: AnyHead | None = None
        if parts.head_target:
            assert parts.cluster_head is not None
            self.target_head = copy.deepcopy(self.cluster_head)
            assert self.target_head is not None
            self.target_head.requires_grad_(False)
            # How much of the images, lately, the target heads put into each cluster.
            clusters = parts.cluster_head.widths[-1]
            self.register_buffer("shares", torch.full((parts.heads, clusters), 1 / clusters))
        self.decoder: Decoder | None = None
        if parts.decoder is not None:
            assert parts.projector is not None
            self.decoder = Decoder(parts.projector.widths[-1], parts.decoder, channels)
        self.discriminator: Discriminator | None = None
        if parts.discriminator is not None:
            assert parts.cluster_head is not None
            seen, said = self._residual.lower_features, parts.cluster_head.widths[-1]
            self.discriminator = Discriminator(seen, said, parts.discriminator)
        # Channels last measured faster, on CPUs too (docs/speed.md); torch leaves the keyword out of its types.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def recompute(self) -> None:
        """Remember less of a pass: the online backbone's blocks pass again in the backward pass."""
        if isinstance(self.online.backbone, ResNet):
            self.online.backbone.recompute = True

    def compile_backbones(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """Have torch compile the backbones, when they first see a kind of batch; weights keep their names."""
        for encoder in (self.online, self.target):
            if encoder is not None:
                encoder.backbone.compile(backend=backend)
        if self.discriminator is not None:  # reads what is between them
            for part in ("lower", "upper"):
                setattr(self._residual, part, torch.compile(getattr(self._residual, part), backend=backend))

    @property
    def centres(self) -> Centres | None:
        """The cluster centres that are learnt, where there are any."""
        return self.cluster_head if isinstance(self.cluster_head, Centres) else None

    def learn_only(self, parts: tuple[PartName, ...]) -> None:
        """Freeze all parts but these: nothing of the others moves, nor of the target's copies, nor their statistics."""
        self.learning = parts
        for name, part in self._own_parts().items():
            part.requires_grad_(name in parts)

    def begin_step(self) -> None:
        """Have the parts that learn normalise by their batch, and the frozen ones by what they have learnt."""
        self.train()
        for layer in self._prototypes():
            layer.shorten()
        frozen = [part for part in EVERY_PART if part not in self.learning]
        for owner in (self, self.online, self.target):
            for name in frozen:
                part = getattr(owner, name, None)
                if isinstance(part, nn.Module):
                    part.eval()

    def forward(
        self,
        views: Views,
        noise: Pair | None,
        batch: int | None = None,
        shuffle: Int[Tensor, " batch"] | None = None,
        features_given: bool = False,
        settled: bool = False,
        again: Float[Tensor, "B ..."] | None = None,
        again_for: str = "cluster heads",
    ) -> Outputs:
        """Pass both views of this process's share of a batch through every part; given features, all but the backbone.

        With `shuffle`, an order of the batch, the target's batch norm groups the batch in that order. With `settled`
        the first view passes as for a prediction: by what batch norm has learnt so far, and without a gradient. One
        more view, `again`, passes by itself, for the cluster heads or the projector alone.
        """
        batch = batch or len(views[0])
        self.settled = settled
        self.groups = BatchGroups.of(batch, self.bn_groups)
        seen = self.groups.doubled() if self.joint and not settled else self.groups
        set_groups(self, seen.twice() if self._behind else seen)
        features, places = (views, None) if features_given else self._features(views)
        projections = self._both(self.online.projector, features)
        noisy = projections if noise is None else (projections[0] + noise[0], projections[1] + noise[1])
        predictions = self._both(self.predictor, noisy)
        target = None if self.target is None else self.target.projector if features_given else self.target
        targets = self._targets(target, views, projections, batch, shuffle)
        outputs = Outputs(projections, predictions, targets, features=features)
        if places is not None:
            outputs = replace(outputs, places=places, discriminator=self.discriminator)
        if self.decoder is not None and "decoder" in self.learning:
            pixels = self.decoder.wanted(views[0]), self.decoder.wanted(views[1])
            outputs = replace(outputs, pixels=pixels, reconstructions=self._both(self.decoder, projections))
        if self.cluster_head is None:
            return outputs
        read = projections if self.parts.cluster_head_reads == "projections" else features
        outputs = self._assigned(outputs, self.cluster_head, read)
        if again is None:
            return outputs
        set_groups(self, self.groups)
        seen_again = self.online.backbone(again)
        if again_for == "projector":
            return replace(outputs, again_projections=self.online.projector(seen_again))
        said = self.cluster_head(self._read(seen_again))
        return replace(outputs, again=F.softmax(said, dim=-1))

    def _features(self, views: Views) -> tuple[Pair, Pair | None]:
        """Return the online backbone's features of both views and, for a discriminator that learns, their places."""
        if self.discriminator is None or "discriminator" not in self.learning:
            return self._both(self.online.backbone, views), None
        assert not self.settled, "a view that passes as for a prediction has no places"
        first, second = self._both(self._residual.lower, views)
        return self._both(self._residual.upper, (first, second)), (places_of(first), places_of(second))

    def _assigned(self, outputs: Outputs, head: AnyHead, features: Pair) -> Outputs:
        """Return outputs with what the cluster heads, and their targets, say of what they read."""
        first, second = self._both(head, features)
        outputs = replace(outputs, assignments=(F.softmax(first, dim=-1), F.softmax(second, dim=-1)))
        if isinstance(head, Heads):
            outputs = replace(outputs, chosen=head.get_buffer("chosen"))
        if isinstance(head, Mlp) and isinstance(head[-1], Prototypes):
            outputs = replace(outputs, head_prototypes=head[-1].unit().detach())
        if self.over_head is not None:
            first, second = self._both(self.over_head, features)
            outputs = replace(outputs, over_assignments=(F.softmax(first, dim=-1), F.softmax(second, dim=-1)))
        if self.target_head is None:
            return outputs
        with torch.no_grad():
            first, second = self._both(self.target_head, features)
        return replace(outputs, target_assignments=(F.softmax(first, dim=-1), F.softmax(second, dim=-1)))

    def begin_at(self, prototypes: Float[Tensor, "K D"]) -> None:
        """Have the prototypes of the cluster head begin where these are."""
        (layer,) = self._prototypes()
        layer.begin_at(prototypes)

    def _prototypes(self) -> list[Prototypes]:
        """Return the layers of unit vectors that the cluster heads end in, if they do."""
        layers = () if self.cluster_head is None else self.cluster_head.modules()
        return [layer for layer in layers if isinstance(layer, Prototypes)]

    @property
    def answering_head(self) -> AnyHead | None:
        """The cluster head that answers: its moving average, where there is one."""
        return self.cluster_head if self.target_head is None else self.target_head

    @property
    def chosen_head(self) -> int:
        """Which of the cluster heads answers."""
        return int(self.answering_head.get_buffer("chosen")) if isinstance(self.answering_head, Heads) else 0

    @torch.no_grad()
    def choose_head(self, losses: Float[Tensor, " H"]) -> None:
        """Have the head with the lowest loss answer."""
        for heads in (self.cluster_head, self.target_head):
            if isinstance(heads, Heads):
                heads.get_buffer("chosen").copy_(losses.argmin())

    @torch.no_grad()
    def move_shares(self, assigned: Pair, step: float = 0.1) -> Float[Tensor, "H K"]:
        """Move what is remembered of clusters' shares towards those of both views of a batch, and return it."""
        shares = self.get_buffer("shares")
        now = (assigned[0].mean(dim=0) + assigned[1].mean(dim=0)) / 2
        shares.lerp_(now.view(shares.shape), step)
        return shares.clone()

    def answered(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return what the cluster head that answers makes of the online backbone's features, before its softmax."""
        assert self.answering_head is not None
        return self.answering_head.answer(self._read(features))

    def answers(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B H K"]:
        """Return the same of every cluster head."""
        assert self.answering_head is not None
        said: Tensor = self.answering_head(self._read(features))
        return said if said.ndim == 3 else said[:, None]

    def _read(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B _"]:
        """Return what cluster heads read of the online backbone's features."""
        made: Tensor = self.online.projector(features) if self.parts.cluster_head_reads == "projections" else features
        return made

    def part(self, name: PartName) -> nn.Module:
        """Return a part of the online network."""
        return self._own_parts()[name]

    def encoder(self, which: str) -> Encoder:
        """Return the online or the target encoder."""
        chosen = self.target if which == "target" else self.online
        assert chosen is not None
        return chosen

    @torch.no_grad()
    def move_target(self, momentum: float) -> None:
        """Move what learns of the target, if there is one, a step of 1 - momentum towards the online network."""
        twins = ((self.target, self.online), (self.target_head, self.cluster_head))
        pairs = (
            pair
            for target, online in twins
            if target is not None and online is not None
            for pair in zip(target.parameters(), online.parameters(), strict=True)
        )
        moving = [(ours, theirs) for ours, theirs in pairs if theirs.requires_grad]
        if moving:
            torch._foreach_lerp_([ours for ours, _ in moving], [theirs for _, theirs in moving], 1 - momentum)

    def without_predictor(self) -> list[nn.Parameter]:
        """Return what learns of the online encoder, the cluster heads and what is around them, less the predictor."""
        around = (self.cluster_head, self.over_head, self.decoder, self.discriminator)
        heads = [head.parameters() for head in around if head is not None]
        return [parameter for parameter in chain(self.online.parameters(), *heads) if parameter.requires_grad]

    def of_cluster_head(self) -> list[nn.Parameter]:
        """Return what learns of the cluster heads that answer, or may."""
        learnt = [] if self.cluster_head is None else list(self.cluster_head.parameters())
        return [parameter for parameter in learnt if parameter.requires_grad]

    def of_predictor(self) -> list[nn.Parameter]:
        """Return what learns of the predictor."""
        return [parameter for parameter in self.predictor.parameters() if parameter.requires_grad]

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that gradients reach."""
        return [*self.without_predictor(), *self.of_predictor()]

    def moving_buffers(self) -> list[Tensor]:
        """Return the running buffers of batch norm that a step moves: those of the parts that learn."""
        frozen = [f".{part}." for part in EVERY_PART if part not in self.learning]
        return [
            buffer
            for name, buffer in self.named_buffers()
            if buffer.is_floating_point() and not any(part in f".{name}" for part in frozen)
        ]

    def _own_parts(self) -> dict[str, nn.Module]:
        heads: dict[str, nn.Module | None] = {"cluster_head": self.cluster_head, "over_head": self.over_head}
        heads |= {"decoder": self.decoder, "discriminator": self.discriminator}
        encoder = {"backbone": self.online.backbone, "projector": self.online.projector}
        present = {name: head for name, head in heads.items() if head is not None}
        return {**encoder, "predictor": self.predictor, **present}

    @property
    def _residual(self) -> ResNet:
        """The online backbone, where it is one that can be asked for what it sees half-way."""
        assert isinstance(self.online.backbone, ResNet)
        return self.online.backbone

    def _targets(
        self, target: nn.Module | None, views: Views, projections: Pair, batch: int, shuffle: Tensor | None
    ) -> Pair:
        if target is not None:
            with torch.no_grad():
                if shuffle is None:
                    return self._both(target, views)
                here = shuffle[share(batch)]
                mixed = self._both(target, (gather(views[0], batch)[here], gather(views[1], batch)[here]))
                home = shuffle.argsort()[share(batch)]
                return gather(mixed[0], batch)[home], gather(mixed[1], batch)[home]
        if self.parts.target == "stop-gradient":
            return projections[0].detach(), projections[1].detach()
        return projections

    @property
    def _behind(self) -> bool:
        """Whether the views pass one behind the other in one go, to share the messages of batch norm."""
        return self.groups.shared and not self.joint and not self.settled

    def _settled(self, part: nn.Module, view: Tensor) -> Tensor:
        """Return what a part, as it predicts, makes of a view."""
        learning = [module for module in part.modules() if module.training]
        part.eval()
        with torch.no_grad():
            made: Tensor = part(view)
        for module in learning:
            module.training = True
        return made

    def _both(self, part: Callable[[Tensor], Tensor], pair: tuple[Tensor, Tensor]) -> Pair:
        if self.settled:
            assert isinstance(part, nn.Module)
            return self._settled(part, pair[0]), part(pair[1])
        if not self.joint and not self._behind:
            return part(pair[0]), part(pair[1])
        rows = [count for count in self.groups.here if count]
        if self._behind or len(rows) == 1:
            first, second = part(torch.cat(pair)).chunk(2)
            return first, second
        # A group holds both views of its images.
        mixed = [piece for both in zip(pair[0].split(rows), pair[1].split(rows), strict=True) for piece in both]
        made = part(torch.cat(mixed)).split([count for count in rows for _ in range(2)])
        return torch.cat(made[::2]), torch.cat(made[1::2])


def _heads(inner: int, kind: Head, count: int) -> AnyHead:
    if kind.centres is not None:
        return Centres(inner, kind.centres, kind.temperature)
    return Mlp(inner, kind) if count == 1 else Heads(inner, kind, count)


def build_network(settings: NetworkSettings, parts: Parts, channels: int, seed: int) -> TwinNetwork:
    """Build a network whose first weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TwinNetwork(settings, parts, channels)
