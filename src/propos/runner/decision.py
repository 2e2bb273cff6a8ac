"""The decision that planning comes to: complete settings, opened images, and the reasons for what was chosen."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import torch

from propos.config import Config
from propos.data import Source, UnopenedSource, fingerprint
from propos.methods import describe_method
from propos.runner.provenance import provenance
from propos.runs import Run
from propos.training import WarmStart

ELSEWHERE = {"source", "data", "log"}  # settings that change no result: where images are, and what is logged


@dataclass(frozen=True)
class Reason:
    """One thing that planning chose, and why: a line of what `run` and `inspect` print."""

    about: str  # method, recipe, length, …
    text: str

    def __str__(self) -> str:
        """Return the line that `run` prints."""
        return f"{self.about.capitalize()}: {self.text}."

    @classmethod
    def of_method(cls, config: Config) -> Reason:
        """Name the method that runs: the first line of every run."""
        return cls("method", describe_method(config))


@dataclass(frozen=True)
class Decision:
    """The settings, images and start of a run. Its images are open until the end of the `with` block."""

    config: Config
    source: Source
    device: torch.device
    command: str
    name: str  # of the source, for the run's folder
    reasons: tuple[Reason, ...] = ()
    unopened: UnopenedSource | None = None  # the source before it was opened
    earlier: Run | None = None  # the finished run that it continues
    start: WarmStart | None = None  # the state taken from the earlier run
    seconds: float | None = None  # expected duration, if it was measured
    resumed_hash: str | None = None  # the hash of a run in progress
    closing: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.close()

    def reason(self, about: str) -> str | None:
        """Return the reason given for one choice."""
        return next((reason.text for reason in self.reasons if reason.about == about), None)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the images."""
        return fingerprint(self.source)

    @cached_property
    def hash(self) -> str:
        """The hash that identifies the run: settings, images (wherever they are), labels and the earlier run."""
        if self.resumed_hash is not None:
            return self.resumed_hash
        settings = {key: value for key, value in self.config.tree(mode="json").items() if key not in ELSEWHERE}
        labels = None if self.source.labels is None else [str(label) for label in self.source.labels]
        earlier: Any = None if self.earlier is None else self.earlier.info.plan
        if self.start is not None and self.start.corrections is not None:
            earlier = [earlier, self.start.corrections.hash]
        parts = [settings, self.fingerprint, labels, earlier]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def info(self) -> dict[str, Any]:
        """Return the contents of run.json for a run that starts now."""
        origin = {} if self.earlier is None else {"from": str(self.earlier.path.resolve())}
        about = provenance(self.command, self.config, self.source, self.fingerprint, self.device)
        return about | {"plan": self.hash} | origin
