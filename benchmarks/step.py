"""Measure the overhead of a training step over its bare passes, and the cost of views compared with kornia's.

Everything compared is timed in turn, round by round, in one process; a ratio is the median over rounds of the two
times of a round. Targets are for time on the clock. The same ratio in processor time is given next to it: on a quiet
machine the two agree; where they do not, something else held the processors and the first says little.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from plain_byol import byol_step
from propos.augment import RandomViews
from propos.clustering.products import dot_products
from propos.config import Config, NetworkSettings, TrainSettings, ViewSettings
from propos.data import Source, open_source
from propos.methods import Method, build_method
from propos.runner.recipes import build_recipe
from propos.training.estimate import late_state
from propos.training.learner import Learner, build_learner, freeze, trained_parameters
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.prepare import prepare
from side_by_side import Comparison, compare, verdict

warnings.filterwarnings("ignore", module="kornia")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kornia.augmentation as kornia

CPU = torch.device("cpu")
speeds: list[str] = []
Colours = Literal["at-once", "in-turn"]
MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


# A training step against its bare passes


def resnet18_config() -> Config:
    """The paper's network for 32-pixel images, at a batch that fits a small machine."""
    return Config(clusters=10, train=TrainSettings(batch_size=128))


def noise_source(images: int, size: int) -> Source:
    """Images of random pixels: time does not depend on what they show."""
    pixels = np.random.default_rng(0).integers(0, 256, size=(images, size, size, 3), dtype=np.uint8)
    return open_source(pixels)


def step_against_passes(what: str, config: Config, source: Source, rounds: int) -> Comparison:
    """Compare a complete step late in training, every term at work, with its passes on ready tensors."""
    learner = build_learner(prepare(config, source), source, CPU)
    positions = epoch_order(0, 0, learner.schedule)[0]
    images = torch.from_numpy(source.batch(positions.numpy()))
    pixels = learner.config.pixels
    assert pixels.mean is not None
    assert pixels.std is not None
    views = RandomViews(learner.config.views, pixels.mean, pixels.std)(images, torch.Generator().manual_seed(0))
    state = late_state(learner)

    def step() -> None:
        m_step(learner, source, positions, state)

    comparison = compare(what, {"step": step, "passes": lambda: bare_passes(learner, views)}, rounds)
    speeds.append(speed(what, lambda: bare_passes(learner, views), comparison.seconds[0]))
    return comparison


def step_against_plain_byol(config: Config, source: Source, rounds: int) -> Comparison:
    """Compare propos's step of BYOL with one in plain torch: the same network, batch, optimiser and images.

    Views of the plain one are kornia's, whose colours change in turn; propos's are those of the small recipes.
    """
    learner = build_learner(prepare(config.with_settings({"method": "byol"}), source), source, CPU)
    positions = epoch_order(0, 0, learner.schedule)[0]
    state, theirs, network = late_state(learner), kornia_views(config.views), config.network

    def views() -> tuple[Tensor, Tensor]:
        pixels = torch.from_numpy(source.batch(positions.numpy())).float() / 255
        return theirs(pixels), theirs(pixels)

    plain = byol_step(views, network.hidden, network.dimension)
    kinds = {"plain torch": plain, "propos": lambda: m_step(learner, source, positions, state)}
    comparison = compare(f"BYOL, ResNet-18, 32 px, batch {len(positions)}", kinds, rounds)
    # Torch counts the work of this thread alone: where modules have hooks, views pass on it.
    for module in learner.method.modules():
        module.register_forward_hook(lambda *_: None)
    for name, work, seconds in zip(kinds, kinds.values(), comparison.seconds, strict=True):
        speeds.append(speed(f"a step of BYOL, {name}", work, seconds))
    return comparison


def speed(name: str, passes: Callable[[], None], seconds: float) -> str:
    """Return the arithmetic of a step's passes a second, and its part of the measured peak."""
    with FlopCounterMode(display=False) as counter:
        passes()
    reached, peak = counter.get_total_flops() / seconds / 1e9, measured_peak()
    return f"{name}: {reached:.0f} GFLOP/s, {reached / peak:.0%} of the {peak:.0f} GFLOP/s of a matrix product"


@cache
def measured_peak(side: int = 2048) -> float:
    """Return the GFLOP/s of a large matrix product by oneDNN, which convolutions use too: the fastest of ten."""
    matrix = torch.randn(side, side)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        dot_products(matrix, matrix)
        times.append(time.perf_counter() - start)
    return 2 * side**3 / min(times) / 1e9


def bare_passes(learner: Learner, views: tuple[Tensor, Tensor]) -> None:
    """Pass two views through online network, predictor and target, and a trivial loss back."""
    method = learner.method
    assert method.target is not None
    assert method.predictor is not None
    first, second = (method.predictor(method.online(view)) for view in views)
    for view in views:
        method.target(view)
    (first.square().mean() + second.square().mean()).backward()
    method.zero_grad(set_to_none=True)


# Views against kornia's


def views_against_kornia(colours: Colours, source_size: int, size: int, batch: int, rounds: int) -> Comparison:
    """Compare two normalised views of a batch of bytes: throughput, ours over kornia's.

    kornia changes colours in turn, as the paper's recipes do; at once is the small recipes' cheaper way.
    """
    images = torch.randint(0, 256, (batch, 3, source_size, source_size), dtype=torch.uint8)
    settings = ViewSettings(preset="natural", size=size, colours=colours)
    ours, generator = RandomViews(settings, MEAN, STD), torch.Generator().manual_seed(0)
    theirs = kornia_views(settings)

    def both() -> tuple[Tensor, Tensor]:
        pixels = images.float() / 255
        return theirs(pixels), theirs(pixels)

    what = f"two views at {size} px of {batch} images of {source_size} px, colours {colours}, one thread"
    return compare(what, {"kornia": both, "propos": lambda: ours(images, generator)}, rounds)


def kornia_views(settings: ViewSettings) -> nn.Module:
    """Return kornia's own modules for the same operations, strengths and probabilities."""
    jitter = settings.brightness, settings.contrast, settings.saturation, settings.hue
    size = settings.size, settings.size
    return nn.Sequential(
        kornia.RandomResizedCrop(size, scale=settings.crop_scale, ratio=settings.crop_ratio),
        kornia.RandomHorizontalFlip(p=settings.flip),
        kornia.ColorJitter(*jitter, p=settings.jitter),
        kornia.RandomGrayscale(p=settings.grey),
        kornia.Normalize(mean=torch.tensor(MEAN), std=torch.tensor(STD)),
    )


# Choices that the networks and the optimiser leave open


def propos(settings: NetworkSettings, channels: int = 3) -> Method:
    """Return ProPos's networks."""
    return build_method(Config(network=settings), channels)


def layouts(what: str, settings: NetworkSettings, shape: tuple[int, int, int, int], rounds: int) -> Comparison:
    """Compare a forward and backward pass in both memory layouts."""

    def passes(layout: torch.memory_format) -> Callable[[], None]:
        network = propos(settings, shape[1]).online.to(memory_format=layout)  # type: ignore[call-overload]
        images = torch.randn(shape)

        def work() -> None:
            network(images).square().mean().backward()
            network.zero_grad(set_to_none=True)

        return work

    kinds = {"contiguous": passes(torch.contiguous_format), "channels-last": passes(torch.channels_last)}
    return compare(what, kinds, rounds)


def optimisers(what: str, settings: NetworkSettings, rounds: int) -> Comparison:
    """Compare the two implementations of the SGD step."""

    def stepping(**kind: bool) -> Callable[[], None]:
        method = propos(settings)
        freeze(method, None)
        parameters = trained_parameters(method)
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimiser = torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=5e-4, **kind)
        return lambda: optimiser.step()

    return compare(what, {"foreach": stepping(foreach=True), "fused": stepping(fused=True)}, rounds)


def main() -> None:
    """Measure, print the table, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: about two minutes")
    quick = parser.parse_args().quick
    few, some, many = (2, 5, 20) if quick else (5, 25, 100)
    digits = build_recipe("digits")
    small, resnet18 = digits.network, NetworkSettings()

    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    print("| what | first | second | first / second | in processor time |\n|---|---|---|---|---|", flush=True)
    steps = [
        (step_against_passes("digits recipe, batch 128", digits, open_source("digits"), many), 1.25),
        (step_against_passes("ResNet-18, 32 px, batch 128", resnet18_config(), noise_source(512, 32), few), 1.05),
    ]
    plain = step_against_plain_byol(resnet18_config(), noise_source(512, 32), few)
    # After the steps, so that memory is as warm as views find it in training.
    sizes = ((32, 32, 128), (128, 96, 32), (256, 96, 32), (256, 224, 16))
    with threads(1):
        views = [(views_against_kornia("at-once", *size, some), 3.0) for size in sizes]
        views += [(views_against_kornia("in-turn", *size, some), 1.0) for size in sizes]
    layouts("digits network, 8 px, batch 128, forward and backward", small, (128, 1, 8, 8), many)
    layouts("ResNet-18, 32 px, batch 128, forward and backward", resnet18, (128, 3, 32, 32), few)
    optimisers("SGD step, digits network", small, many)
    optimisers("SGD step, ResNet-18 with heads", resnet18, some)

    print("", *speeds, "", sep="\n")
    for comparison, target in steps:
        verdict(comparison, f"at most {target}", comparison.ratio <= target)
    verdict(plain, "at least 1", plain.ratio >= 1)
    for comparison, target in views:
        verdict(comparison, f"at least {target}", comparison.ratio >= target)


if __name__ == "__main__":
    main()
