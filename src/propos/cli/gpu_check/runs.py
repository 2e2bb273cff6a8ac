"""Whole commands of the self-test: run, from all starts; resume; suggest-k; compare."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from safetensors.torch import save_file

from propos.augment import Shapes
from propos.cli.gpu_check.finding import Row, Values
from propos.clustering import Suggestion
from propos.common.errors import Interrupted
from propos.networks.efficientnet import LITE_SHAPES, EfficientNetLite
from propos.networks.norm import BatchNorm
from propos.runner import Length, Origin, Request, SilentReporter, execute_plan, plan
from propos.runner.batch import TrainingOptions
from propos.runner.progress import Stopping
from propos.study.compare.comparison import compare
from propos.study.compare.request import CompareRequest
from propos.study.compare.results import SCORES
from propos.training import Fitted
from propos.training.model import weights_of

CACHE = "PROPOS_CACHE"
EXACT = {"train.precision": "float32", "train.deterministic": True}
ASKED_BEFORE_STOP = 5  # a run asks before every step whether to stop
RANGE = (2, 6)  # of numbers to suggest from
COMPARED = ("byol", "kmeans-random")
COLOURS = ((40, 160, 60), (190, 50, 40), (40, 70, 200))
PICTURES, HEIGHT, WIDTH = 12, 256, 256
# Bounds: of runs from the start; of scores, which jump when an image changes its cluster.
TRAINED, SCORED, EQUAL = 0.1, 0.05, 0.0


@dataclass(frozen=True)
class WholeRuns:
    """The request that is run, and a folder for what is written."""

    request: Request
    folder: Path

    def rows(self, card: torch.device) -> Iterator[Row]:
        """Yield the rows of the table."""
        yield Row("run", self._scratch, TRAINED)
        yield Row("run --start pretrained", self._pretrained, TRAINED)
        for learns in ("last", "all"):
            yield Row(f"run --start pretrained, tuned: {learns}", partial(self._tuned, learns), TRAINED)
        yield Row("run --resume", self._resumed, EQUAL, partial(self._uninterrupted, card))
        yield Row("suggest-k", self._suggested, SCORED)
        yield Row("compare", self._compared, SCORED)

    def _scratch(self, device: torch.device) -> Values:
        return _results(_finished(self._exact(self.request), device))

    def _pretrained(self, device: torch.device) -> Values:
        """Return the features of a frozen network, and the clusters' mean distance from their images."""
        fitted = self._photographs(device, {})
        assert fitted.model.frozen_backbone is not None
        pixels = torch.from_numpy(_pictures()).permute(0, 3, 1, 2).to(device)
        features = fitted.model.frozen_backbone.to(device)(pixels, Shapes())
        return [features, torch.tensor(fitted.table.distance.mean())]

    def _tuned(self, learns: str, device: torch.device) -> Values:
        return _results(self._photographs(device, {"start.learns": learns, "train.epochs": 1}))

    def _photographs(self, device: torch.device, settings: Mapping[str, Any]) -> Fitted:
        """Return a run on coloured pictures that starts from a network with random weights."""
        request = Request(
            source=_pictures(),
            clusters=len(COLOURS),
            settings={"train.batch_size": PICTURES // 2, **settings},
            origin=Origin(weights=self._weights),
        )
        with _cache_in(self.folder / "cache"):
            return _finished(self._exact(request), device)

    @cached_property
    def _weights(self) -> Path:
        """The file of the random weights; batch norm has the statistics of the pictures."""
        path = self.folder / "weights.safetensors"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = EfficientNetLite(LITE_SHAPES["efficientnet-lite0"])
        for module in network.modules():
            if isinstance(module, BatchNorm):
                module.momentum = 1.0
        with torch.no_grad():
            network((torch.from_numpy(_pictures()[:, :224, :224]).permute(0, 3, 1, 2).float() - 127) / 128)
        save_file(network.state_dict(), path)
        return path

    def _resumed(self, device: torch.device) -> Values:
        """Return the weights of a run that was stopped and resumed."""
        out = self.folder / "run"
        with plan(self._exact(self.request), device.type) as planned:
            _stop_early(lambda stopping: execute_plan(planned, out, stopping=stopping))
            return _weights(execute_plan(planned, out))

    def _uninterrupted(self, card: torch.device, _: torch.device) -> Values:
        """Return the weights of the same run on the card without a stop."""
        return _weights(_finished(self._exact(self.request), card))

    def _suggested(self, device: torch.device) -> Values:
        """Return the scores of the numbers of clusters that are tried."""
        request = replace(self.request, method="kmeans-random", clusters=RANGE, length=Length(), settings=EXACT)
        chosen = _Chosen()
        with plan(request, device.type, chosen) as planned, suppress(Interrupted):
            execute_plan(planned, None, chosen, lambda: nullcontext(lambda: chosen.suggested is not None))
        assert chosen.suggested is not None
        return [torch.tensor(scores) for scores in chosen.suggested.scores.values()]

    def _compared(self, device: torch.device) -> Values:
        """Return the scores of the methods in a comparison."""
        source, recipe = str(self.request.source), self.request.recipe
        request = CompareRequest(source, COMPARED, seeds=1, epochs=1, recipe=recipe, settings=EXACT)
        out = self.folder / f"compare-{device.type}"
        found = compare(request, out, TrainingOptions(device.type))
        return [torch.tensor([row.numbers[name] for name in (*SCORES, "spread")]) for row in found.rows]

    @staticmethod
    def _exact(request: Request) -> Request:
        """Return a request in single precision, with algorithms that repeat."""
        return replace(request, settings={**request.settings, **EXACT})


class _Chosen(SilentReporter):
    """A reporter that keeps the suggestion."""

    suggested: Suggestion | None = None

    def suggestion(self, suggestion: Suggestion) -> None:
        self.suggested = suggestion


def _finished(request: Request, device: torch.device) -> Fitted:
    with plan(request, device.type) as planned:
        return execute_plan(planned)


def _results(fitted: Fitted) -> Values:
    """Return the mean of each loss term in each epoch, and the final embeddings."""
    losses = [torch.tensor(list(record["losses"].values())) for record in fitted.history if record["losses"]]
    return [*losses, torch.from_numpy(fitted.embeddings)]


def _weights(fitted: Fitted) -> Values:
    return [torch.from_numpy(each) for each in weights_of(fitted.model.method).values()]


def _pictures() -> UInt8[np.ndarray, "N H W 3"]:
    """Return noisy pictures in three colours."""
    draw = np.random.default_rng(0)
    colours = np.array(COLOURS)[np.arange(PICTURES) % len(COLOURS), None, None]
    noise = draw.normal(0, 25, (PICTURES, HEIGHT, WIDTH, 1)) + draw.normal(0, 8, (PICTURES, HEIGHT, WIDTH, 3))
    return (colours + noise).clip(0, 255).astype(np.uint8)


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Cache features in a folder of our own: those of an earlier self-test would hide a fault."""
    before = os.environ.get(CACHE)
    os.environ[CACHE] = str(folder)
    try:
        yield
    finally:
        del os.environ[CACHE]
        if before is not None:
            os.environ[CACHE] = before


def _stop_early(run: Callable[[Stopping], object]) -> None:
    """Stop a run after a few steps."""
    asked = iter(range(ASKED_BEFORE_STOP))
    with suppress(Interrupted):
        run(lambda: nullcontext(lambda: next(asked, None) is None))
        raise AssertionError("the run ended before it was stopped")
