"""A run's model in one ONNX file: pixels in; cluster, confidence and embedding out."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from propos.augment import plain_view, shapes_of
from propos.common.errors import InputError, RunFailed, check_ending
from propos.data import Source
from propos.runner import NoImages, open_run_images
from propos.runs import CONFIDENCE_TEMPERATURE, Run
from propos.training import Model

INPUT, OUTPUTS = "images", ("cluster", "confidence", "embedding")
CHECKED = 64  # images on which the file is compared with torch
TOLERANCE = 1e-4
GREY = (19_595, 38_470, 7_471)  # of 65,536: how Pillow weighs red, green and blue
NEEDED = "pip install 'propos[onnx]'"


class OnnxModel(nn.Module):
    """The whole computation from an image's pixels at the run's size to its cluster."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        pixels = model.config.pixels
        assert pixels.mean is not None
        assert pixels.std is not None
        frozen_backbone = model.frozen_backbone
        mean, std = (pixels.mean, pixels.std) if frozen_backbone is None else frozen_backbone.weights.network.pixels
        self.size: int = model.config.views.size if frozen_backbone is None else frozen_backbone.weights.network.side
        self.grey = frozen_backbone is None and model.channels == 1
        self.frozen_backbone: nn.Module = nn.Identity() if frozen_backbone is None else frozen_backbone.network
        self.method, self.by_head = model.method, model.by_head
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))
        self.register_buffer("prototypes", model.prototypes.clone())
        self.register_buffer("ids", torch.from_numpy(model.ids.astype(np.int64)))

    def forward(
        self, images: UInt8[Tensor, "N S S 3"]
    ) -> tuple[Int[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, "N D"]]:
        """Return each image's cluster id, confidence and embedding."""
        pixels = images.permute(0, 3, 1, 2).float()
        if self.grey:
            red, green, blue = (pixels[:, each : each + 1] * weight for each, weight in enumerate(GREY))
            pixels = torch.floor((red + green + blue + 32_768) / 65_536)
        view = (pixels / 255 - self.get_buffer("mean")) / self.get_buffer("std")
        fed = self.frozen_backbone(view)
        if self.by_head:
            embedding, _, weights = self.method.outputs(fed)
            assert weights is not None
        else:
            embedding = F.normalize(self.method.embedder(fed), dim=1)
            weights = torch.softmax(embedding @ self.get_buffer("prototypes").T / CONFIDENCE_TEMPERATURE, dim=1)
        confidence, rows = weights.max(dim=1)
        return self.get_buffer("ids")[rows], confidence, embedding


@dataclass(frozen=True)
class Checked:
    """The comparison of the file with torch: number of images, whether they are the run's, largest difference."""

    images: int
    own: bool
    difference: float
    size: int


def write_onnx(run: Run, out: Path) -> Checked:
    """Write a run's model with corrections applied; nothing is written if onnxruntime's results differ from torch's."""
    check_ending(out, ".onnx")
    _need_packages()
    model = Model.from_run(run, torch.device("cpu"))
    portable = OnnxModel(model).eval()
    images, own = _images(run, model, portable.size)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        _export(portable, part)
        difference = _compare(portable, part, images, out)
        part.rename(out)
    finally:
        part.unlink(missing_ok=True)
    return Checked(len(images), own, difference, portable.size)


def _need_packages() -> None:
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError(f"--to onnx: needs {error.name}: {NEEDED}") from None


def _images(run: Run, model: Model, size: int) -> tuple[UInt8[np.ndarray, "N S S 3"], bool]:
    """Return some of the run's images at the size of the file's input; noise if they are not available."""
    try:
        with open_run_images(run) as source:
            return _sized(source, model, size), True
    except NoImages:
        noise = np.random.default_rng(0).integers(0, 256, (CHECKED, size, size, 3))
        return noise.astype(np.uint8), False


def _sized(source: Source, model: Model, size: int) -> UInt8[np.ndarray, "N S S 3"]:
    """Return images as the network's input, as bytes: whole, or their middle square."""
    places = np.unique(np.linspace(0, len(source) - 1, CHECKED).round().astype(np.int64))
    batch, channels = torch.from_numpy(source.batch(places)), source.channels
    shapes = shapes_of(source, places)
    if model.frozen_backbone is None:
        shown = plain_view(batch, size, (0.0,) * channels, (1.0,) * channels, model.config.views.plain, shapes)
    else:
        shown = model.frozen_backbone.weights.network.squares(batch, shapes)
    whole = (shown * 255).round().clamp(0, 255).to(torch.uint8).expand(-1, 3, -1, -1)
    return np.ascontiguousarray(whole.permute(0, 2, 3, 1).numpy())


def _export(portable: OnnxModel, path: Path) -> None:
    size = portable.size
    example = torch.zeros((2, size, size, 3), dtype=torch.uint8)
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            portable,
            (example,),
            dynamo=True,
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            dynamic_shapes={INPUT: {0: torch.export.Dim("N")}},
            verbose=False,
        )
        assert program is not None
        graph = program.model.graph
        for value in [*graph.initializers.values(), *(value for node in graph for value in node.outputs)]:
            if value.name in OUTPUTS and not value.is_graph_output():  # a network's own operators may be called so
                value.name = f"{value.name}_inside"
        program.save(str(path), external_data=False)


def _compare(portable: OnnxModel, path: Path, images: UInt8[np.ndarray, "N S S 3"], out: Path) -> float:
    """Return the largest difference between onnxruntime's results and torch's; raise RunFailed if it is too large."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(list(OUTPUTS), {INPUT: images})
    with torch.no_grad():
        expected = [each.numpy() for each in portable(torch.from_numpy(images))]
    difference = max(float(np.abs(a - b).max()) for a, b in zip(found[1:], expected[1:], strict=True))
    # If two clusters are equally near, rounding decides.
    other = found[0] != expected[0]
    if not difference <= TOLERANCE or other.sum() > 0.02 * len(images):
        raise RunFailed(f"{out}: onnxruntime's results differ from torch's (by {difference:.1e}): nothing was written")
    return difference


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the exporter's messages about packages and optimisations that are not needed."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
