"""Estimated training time of cells, from counted floating-point operations and the speed of a machine."""

from __future__ import annotations

import time
from functools import cache

import torch

from propos.config import Config, NetworkSettings
from propos.data import benchmark
from propos.methods import build_method
from propos.networks import EmaCopy
from propos.networks.resnet import Bottleneck, shape_of
from propos.study.reproduce.budgets import Task
from propos.training import choose_device

A100 = 312e12  # operations a second that it can do at most, in bfloat16
UTILISATION = 0.2  # the share of them that training residual networks is taken to reach
BACKWARD = 2  # a backward pass costs two forward passes
MEASURED_BATCH, MEASURED_SIDE = 64, 16
SMALL = {"network.width": 0.25, "network.hidden": 512, "network.dimension": 128, "clusters": 2}


def operations(task: Task) -> float:
    """Return the floating-point operations of a cell's training: all passes of the networks, k-means aside.

    A step passes both views through the online network and back, and through the target where there is one; each
    E-step passes every image once.
    """
    config = task.config
    forward = forward_operations(config.network, config.views.size)
    views = 2 * (1 + BACKWARD) + (2 if _has_target(config.method) else 0)
    clustered, others = _images(task)
    esteps = 1 + -(-config.train.epochs // config.estep.every)
    return float(forward * (views * config.train.epochs * (clustered + others) + esteps * clustered))


@cache
def _has_target(method: str) -> bool:
    """Return whether a method passes views through a moving average of its network too."""
    built = build_method(Config(method=method).with_settings(SMALL), channels=3)
    return any(isinstance(module, EmaCopy) for module in built.modules())


def _images(task: Task) -> tuple[int, int]:
    """Return how many images a cell clusters, and how many more it only trains on, if the set is complete."""
    setup, published = task.cell.setup, benchmark(task.cell.setup.set)
    images = published.images * 5 // 6 if setup.data.endswith(":train") else published.images
    if task.images.count is not None:
        return min(images, task.images.count), 0
    return images, 100_000 if setup.set == "stl-10" else 0


def forward_operations(network: NetworkSettings, size: int) -> int:
    """Count the multiplications and additions of an image's pass through a backbone and its projector."""
    shape, side = shape_of(network.backbone, network.width), size
    inner, total = shape.widths[0], 0
    if network.stem == "imagenet":
        side = -(-side // 2)
        total += side**2 * 49 * 3 * inner
        side = -(-side // 2)
    else:
        total += side**2 * 9 * 3 * inner
    for number, (depth, width) in enumerate(zip(shape.depths, shape.widths, strict=True)):
        outer = width * shape.block.expansion
        for block in range(depth):
            before, side = side, -(-side // 2) if number and not block else side
            if shape.block is Bottleneck:
                total += before**2 * inner * width + side**2 * (9 * width**2 + width * outer)
            else:
                total += side**2 * 9 * (inner * width + width**2)
            if inner != outer or before != side:
                total += side**2 * inner * outer
            inner = outer
    return 2 * (total + inner * network.hidden + network.hidden * network.dimension)


def measure_speed(device: str) -> float:
    """Return the operations a second of this machine in training, from some steps of a small network."""
    chosen = choose_device(device)
    config = Config().with_settings(SMALL)
    method = build_method(config, channels=3).to(chosen)
    images = torch.rand(MEASURED_BATCH, 3, MEASURED_SIDE, MEASURED_SIDE, device=chosen)
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        method.online(images).square().mean().backward()
        if chosen.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    counted = forward_operations(config.network, MEASURED_SIDE) * MEASURED_BATCH * (1 + BACKWARD)
    return counted / min(times[1:])


def a100_speed() -> float:
    """Return the operations a second that one A100 is taken to reach."""
    return UTILISATION * A100
