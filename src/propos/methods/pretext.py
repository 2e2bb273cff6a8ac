"""Methods that build on a network that another method trained: in stages of the same run, or from a finished run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from propos.common.errors import InputError
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages, Clustered
from propos.methods.registry import find_method, parse_settings
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import EmaCopy, Encoder, Memory

PretextShare = Annotated[float, Field(ge=0.0, lt=1.0)]  # of all epochs; 0: a finished run is continued


class PretextSettings(MethodSettings):
    """The method that learns from the images first, and for how long."""

    pretext: str = "simclr"
    pretext_share: PretextShare = 0.5


class BuildsOn(Method):
    """A method whose first stages are another method's, the pretext's; its own stages train what it adds.

    During the pretext's stages every hook is the pretext's. Afterwards they are `own_losses` and the others below.
    """

    Settings: ClassVar[type[PretextSettings]] = PretextSettings
    when_continuing: ClassVar[Mapping[str, Any]] = {"pretext_share": 0.0}

    def __init__(self, settings: PretextSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        name = self.pretext_name(settings, setup)
        kind = self._pretext_kind(settings, setup)
        self.pretext = kind(parse_settings(kind, setup.sections, name), setup)
        self.progress = Memory(pretext_done=torch.zeros((), dtype=torch.bool))
        self._pretext_stages = {stage.name: theirs for stage, theirs in self.pretext_stages(settings, setup)}

    @classmethod
    @abstractmethod
    def own_stages(cls, settings: Any, setup: Setup) -> tuple[Stage, ...]:
        """Return the stages after the pretext's; their shares are of the epochs that the pretext leaves."""

    @abstractmethod
    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Float[Tensor, ""]]:
        """Return the losses of its own stages."""

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Compute the tables of its own stages."""

    def own_after_step(self, ctx: StepContext) -> None:
        """Act after a step of its own stages: move the moving average of the encoder."""
        if self.moving_average is not None:
            self.moving_average.move(ctx.momentum)

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Act after an epoch of its own stages."""

    @classmethod
    def pretext_name(cls, settings: Any, setup: Setup) -> str:
        """Return the name of the pretext."""
        return str(settings.pretext)

    @classmethod
    def stages(cls, settings: Any, setup: Setup) -> tuple[Stage, ...]:
        """Return the pretext's stages and its own."""
        first = [stage for stage, _ in cls.pretext_stages(settings, setup)]
        own = cls.own_stages(settings, setup)
        left = (1 - settings.pretext_share) / sum(stage.share for stage in own)
        return (*first, *(replace(stage, share=left * stage.share) for stage in own))

    @classmethod
    def pretext_stages(cls, settings: Any, setup: Setup) -> list[tuple[Stage, Stage]]:
        """Return the pretext's stages as parts of this run, and as its own; none where a finished run is continued."""
        name, kind = cls.pretext_name(settings, setup), cls._pretext_kind(settings, setup)
        if not settings.pretext_share or not kind.trains:
            return []
        stages = kind.stages(parse_settings(kind, setup.sections, name), setup)
        whole = sum(stage.share for stage in stages)
        parts = [
            replace(
                stage,
                name=f"pretext: {name}" if len(stages) == 1 else f"pretext: {name} {stage.name}",
                share=settings.pretext_share * stage.share / whole,
                trains=("pretext",) if stage.trains is None else tuple(f"pretext.{part}" for part in stage.trains),
                rates={f"pretext.{part}": rate for part, rate in stage.rates.items()},
                starts={loss: replace(start, setting=start.key(name)) for loss, start in stage.starts.items()},
            )
            for stage in stages
        ]
        return list(zip(parts, stages, strict=True))

    @classmethod
    def _pretext_kind(cls, settings: Any, setup: Setup) -> type[Method]:
        """Return the class of the pretext, or refuse a method that cannot be built on."""
        name = cls.pretext_name(settings, setup)
        kind = find_method(name, "pretext")
        if issubclass(kind, BuildsOn):
            raise InputError(f'pretext = "{name}": builds on another method itself; choose one that does not')
        if not kind.trains and (setup.start.network is None or "features" not in kind.inputs):
            raise InputError(f'pretext = "{name}": trains nothing to build on; choose another method')
        if setup.start.network is not None and "features" not in kind.inputs:
            raise InputError(f'pretext = "{name}": cannot learn from a pretrained network\'s features; choose propos')
        if cls.has_head and kind.has_head and settings.pretext_share:
            raise InputError(f'pretext = "{name}": trains a cluster head of its own; choose a method without one')
        return kind

    @classmethod
    def check(cls, settings: Any, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse settings that the pretext refuses."""
        name, kind = cls.pretext_name(settings, setup), cls._pretext_kind(settings, setup)
        if setup.clusters is None and (kind.has_head or kind.needs_clusters):
            raise InputError(f'pretext = "{name}" needs the number of clusters from the start: give it, as in -k 10')
        kind.check(parse_settings(kind, setup.sections, name), setup, distinct)

    @property
    def online(self) -> Encoder:  # type: ignore[override]
        """The pretext's encoder."""
        return self.pretext.online

    @property
    def embedder(self) -> Encoder:
        """The moving average that was added, or the pretext's embedder."""
        return self.pretext.embedder if self.target is None else cast(EmaCopy[Encoder], self.target).module

    @property
    def moving_average(self) -> EmaCopy[Encoder] | None:
        """The moving average of the encoder: the one that was added, or the pretext's."""
        return cast("EmaCopy[Encoder] | None", self.target or self.pretext.target)

    def add_target(self) -> None:
        """Add a moving average of the encoder where the pretext has none; embeddings are then the moving average's.

        During the pretext's stages it is a copy of the encoder.
        """
        if self.pretext.target is None:
            self.target = EmaCopy(self.online)

    def update_target_statistics(self, ctx: StepContext, *views: Tensor) -> None:
        """Pass views through the backbone's moving average, whose batch norm keeps running statistics of its own.

        For stages that train the backbone and have no other use for the target than its embeddings.
        """
        if self.moving_average is not None:
            ctx.encode(self.moving_average.module.backbone, *views, shuffled=True)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Float[Tensor, ""]]:
        """Return the pretext's losses during its stages, then its own."""
        theirs = self._in_pretext(ctx)
        return self.own_losses(batch, ctx) if theirs is None else self.pretext.losses(batch, theirs)

    def begin_epoch(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages."""
        theirs = self._in_pretext(ctx)
        self.progress["pretext_done"].fill_(theirs is None)
        if theirs is not None:
            self.pretext.begin_epoch(theirs)

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        theirs = self._in_pretext(ctx)
        self.own_tables(images, ctx) if theirs is None else self.pretext.make_tables(images, theirs)

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages."""
        theirs = self._in_pretext(ctx)
        if theirs is not None:
            self.pretext.after_clustering(clustered, theirs)

    def after_step(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        theirs = self._in_pretext(ctx)
        self.own_after_step(ctx) if theirs is None else self.pretext.after_step(theirs)

    def end_epoch(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        theirs = self._in_pretext(ctx)
        if theirs is None:
            self.own_end_epoch(ctx)
            return
        self.pretext.end_epoch(theirs)
        if self.target is not None:
            cast(EmaCopy[Encoder], self.target).reset()

    def sampling_labels(self) -> Int[Tensor, " N"] | None:
        """Return the pretext's labels during its stages."""
        return None if self.progress["pretext_done"] else self.pretext.sampling_labels()

    def _in_pretext(self, ctx: StepContext) -> StepContext | None:
        """Return a stage's context as the pretext knows it; None in a stage that is not the pretext's."""
        theirs = self._pretext_stages.get(ctx.stage.name)
        return None if theirs is None else cast(StepContext, _PretextContext(ctx, theirs))


class _PretextContext:
    """A context in which the stage is the pretext's own, under its own name."""

    def __init__(self, ctx: StepContext, stage: Stage) -> None:
        self._ctx, self.stage = ctx, stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


def own_epochs(settings: PretextSettings, setup: Setup) -> int:
    """Return the number of epochs after the pretext's."""
    return max(1, setup.train.epochs - round(settings.pretext_share * setup.train.epochs))


def has_predictor(settings: PretextSettings) -> bool:
    """Return whether the pretext has a predictor."""
    return find_method(settings.pretext, "pretext").has_predictor
