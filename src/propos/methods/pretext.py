"""Methods that build on what another method has learnt: in stages of the same run, or continuing a finished one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from jaxtyping import Int
from pydantic import Field
from torch import Tensor

from propos.errors import InputError
from propos.methods.base import AllImages, Batch, Clustered, Method, MethodSettings, Stage, StepContext
from propos.methods.registry import find_method, parse_settings
from propos.methods.setup import Setup
from propos.networks import Encoder


class PretextSettings(MethodSettings):
    """The method that learns from the images first, and for how long."""

    pretext: str = "simclr"
    pretext_share: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.5  # of all epochs; 0: a finished run is continued


class BuildsOn(Method):
    """A method whose first stages are another method's, the pretext's; its own stages train what it adds.

    During the pretext's stages every hook is the pretext's. Afterwards they are `own_losses` and the others below.
    """

    Settings: ClassVar[type[PretextSettings]] = PretextSettings
    continued: ClassVar[Mapping[str, Any]] = {"pretext_share": 0.0}

    def __init__(self, settings: PretextSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.pretext = build_pretext(settings.pretext, setup)

    @classmethod
    @abstractmethod
    def own_stages(cls, settings: Any, setup: Setup) -> tuple[Stage, ...]:
        """Return the stages after the pretext's; their shares are of what the pretext leaves."""

    @classmethod
    def stages(cls, settings: Any, setup: Setup) -> tuple[Stage, ...]:
        """Return the pretext's stages and its own."""
        first = pretext_stages(settings, setup)
        own = cls.own_stages(settings, setup)
        left = (1 - settings.pretext_share) / sum(stage.share for stage in own)
        return (*first, *(replace(stage, share=left * stage.share) for stage in own))

    @property
    def online(self) -> Encoder:  # type: ignore[override]
        """The pretext's encoder."""
        return self.pretext.online

    @property
    def embedder(self) -> Encoder:
        """The pretext's embedder."""
        return self.pretext.embedder

    def in_pretext(self, ctx: StepContext) -> bool:
        """Return whether a stage is one of the pretext's."""
        return ctx.stage.name.startswith(PREFIX)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the pretext's losses during its stages, then its own."""
        return self.pretext.losses(batch, ctx) if self.in_pretext(ctx) else self.own_losses(batch, ctx)

    @abstractmethod
    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the losses of its own stages."""

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Compute the tables of its own stages."""

    def own_after_step(self, ctx: StepContext) -> None:
        """Act after a step of its own stages."""

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Act after an epoch of its own stages."""

    def begin_epoch(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages."""
        if self.in_pretext(ctx):
            self.pretext.begin_epoch(ctx)

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        (self.pretext.make_tables if self.in_pretext(ctx) else self.own_tables)(images, ctx)

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages."""
        if self.in_pretext(ctx):
            self.pretext.after_clustering(clustered, ctx)

    def after_step(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        (self.pretext.after_step if self.in_pretext(ctx) else self.own_after_step)(ctx)

    def end_epoch(self, ctx: StepContext) -> None:
        """Call the pretext's hook during its stages, then its own."""
        (self.pretext.end_epoch if self.in_pretext(ctx) else self.own_end_epoch)(ctx)

    def sampling_labels(self) -> Int[Tensor, " N"] | None:
        """Return the pretext's, which it has only during its stages."""
        return self.pretext.sampling_labels()


PREFIX = "pretext: "


def pretext_stages(settings: PretextSettings, setup: Setup) -> tuple[Stage, ...]:
    """Return the stages of the pretext, as parts of the run that builds on it; none where a run is continued."""
    if not settings.pretext_share:
        return ()
    kind = find_method(settings.pretext, "pretext")
    stages = kind.stages(parse_settings(kind, setup.sections, settings.pretext), setup)
    whole = sum(stage.share for stage in stages)
    return tuple(
        replace(
            stage,
            name=f"{PREFIX}{settings.pretext}" if len(stages) == 1 else f"{PREFIX}{settings.pretext} {stage.name}",
            share=settings.pretext_share * stage.share / whole,
            trains=("pretext",) if stage.trains is None else tuple(f"pretext.{name}" for name in stage.trains),
            rates={f"pretext.{name}": rate for name, rate in stage.rates.items()},
        )
        for stage in stages
    )


def build_pretext(name: str, setup: Setup) -> Method:
    """Build the method that another builds on."""
    kind = find_method(name, "pretext")
    if not kind.trains and setup.start.network is None:
        raise InputError(f'pretext = "{name}": it trains nothing to build on; choose another method')
    return kind(parse_settings(kind, setup.sections, name), setup)
