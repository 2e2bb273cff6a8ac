"""Measure the speed-up of two processes over one, with one thread each, and the bytes that a step sends.

One process, two that torchrun starts, and two that know nothing of each other and take half a batch each, wait for
their turns, so that what is compared is measured in turn; a ratio is the median over rounds of the times of a round.
The strangers' ratio is what this machine allows: its cores share their memory and their clock. Targets are for time on
the clock. Bytes are those that both processes write to their sockets in a step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from propos.cli.memory import keep_freed_memory
from propos.config import Config
from propos.data import Source, from_array, open_source
from propos.distributed import average_gradients, join_process_group, rank, sum_over_processes, world_size
from propos.runner.recipes import build_recipe
from propos.training.context import BatchContext
from propos.training.estimate import late_state
from propos.training.learner import Learner, build_learner, trained_parameters
from propos.training.m_step import m_step, running_statistics
from propos.training.order import epoch_order
from propos.training.prepare import prepare

CPU = torch.device("cpu")
TARGET = 1.7
BATCH = 128
LARGE = {"views.size": 32, "train.batch_size": BATCH}
RESNET = {**LARGE, "network.backbone": "resnet18"}
TWO = {"network.bn_groups": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "digits, 8 px, one group": ("digits", {}),
    "digits, 8 px, two groups": ("digits", TWO),
    "small-colour, 32 px, one group": ("small-colour", LARGE),
    "small-colour, 32 px, two groups": ("small-colour", {**LARGE, **TWO}),
    "small-colour, 32 px, two groups, shuffled": ("small-colour", {**LARGE, **TWO, "network.shuffle_bn": True}),
    "ResNet-18, 32 px, one group": ("small-colour", RESNET),
    "ResNet-18, 32 px, two groups": ("small-colour", {**RESNET, **TWO}),
}
STEPS = {"digits": 10, "small-colour": 2, "ResNet-18": 1}  # of a turn
HALF = " of half a batch"
# Of 8-pixel images half a batch costs hardly less than a whole one: such rows are shown, not aimed at.
AIMS = [case for case in CASES if "32 px" in case]
ENGINES = {
    "during": "ours, sent during the backward pass",
    "after": "ours, sent after it",
    "ddp": "DistributedDataParallel",
}
PATIENCE = 900.0


def learner_of(case: str) -> tuple[Learner, Source]:
    """Return a learner late in its run, and images for it."""
    recipe, settings = CASES[case.removesuffix(HALF)]
    if case.endswith(HALF):
        settings = {**settings, "train.batch_size": BATCH // 2}
    source: Source = open_source("digits")
    if recipe != "digits":
        pixels = np.random.default_rng(0).integers(256, size=(512, 32, 32, 3), dtype=np.uint8)
        source = from_array(pixels, np.arange(512) % 10)
    config: Config = prepare(build_recipe(recipe).with_settings({"propos.psl_start": 0, **settings}), source)
    return build_learner(config, source, CPU), source


def steps_of(case: str) -> Callable[[], None]:
    """Return a training step."""
    learner, source = learner_of(case)
    state = late_state(learner)
    positions = epoch_order(0, 0, learner.schedule)[0]

    def work() -> None:
        m_step(learner, source, positions, state)

    return work


class Passes(nn.Module):
    """The passes of a step of ProPos on ready tensors, and a trivial loss."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.method, self.learner = learner.method, learner

    def forward(self, images: Tensor) -> Tensor:
        """Return the loss of two views that are the same."""
        ctx, method = BatchContext.of(self.learner, late_state(self.learner), BATCH), self.method
        assert method.target is not None
        assert method.predictor is not None
        projections = ctx.encode(method.online, images, images)
        ctx.encode(method.target, images, images)
        predictions = ctx.encode(method.predictor, *projections)
        return projections[0].square().mean() + predictions[1].square().mean() + predictions[0].mean()


def passes_of(engine: str) -> Callable[[], None]:
    """Return forward and backward passes whose gradients are averaged during them, after them, or as DDP does."""
    learner, _ = learner_of("ResNet-18, 32 px, two groups")
    passes: nn.Module = Passes(learner)
    trained = trained_parameters(learner.method)
    images = torch.randn(BATCH // world_size(), 3, 32, 32)
    if engine == "ddp":
        # With find_unused_parameters buckets stay as they are, so that a resumed run adds up in the same order.
        passes = nn.parallel.DistributedDataParallel(passes, broadcast_buffers=False, find_unused_parameters=True)

    def work() -> None:
        loss = passes(images)
        with average_gradients(trained) if engine == "during" else nullcontext():
            loss.backward()
        if engine == "after":
            with average_gradients(trained):
                pass
        learner.method.zero_grad(set_to_none=True)

    return work


def bytes_written() -> int:
    """Return how many bytes this process has written so far, to sockets too; a step writes nothing else."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["wchar"])


def formula(case: str, processes: int) -> float:
    """Return the bytes that all processes together send in a step (docs/distributed.md)."""
    learner, source = learner_of(case)
    trained = sum(parameter.numel() for parameter in trained_parameters(learner.method))
    buffers = sum(each.numel() for each in running_statistics(learner))
    network, images = learner.config.network, learner.schedule.batch
    once = processes - 1  # of an all-gather; an all-reduce sends everything twice
    gathered = 4.0 * once * (2 * (trained + buffers) + 6 * images * network.dimension)
    if not network.shuffle_bn:
        return gathered
    # Of both views and the outputs, the rows that another process passes; on a CPU in float32.
    numbers = source.channels * learner.config.views.size**2 + network.dimension
    return gathered + 4.0 * 2 * images * numbers * once / processes


# A process that waits for its turns


def serve(folder: Path) -> None:
    """Do the work that each turn's file names, until one says to stop."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as every command does
    with join_process_group():
        works: dict[str, Callable[[], None]] = {}
        for number in range(10**6):
            path = folder / f"{number}.turn"
            while not path.exists():
                time.sleep(0.002)
            turn = json.loads(path.read_text())
            if turn["work"] == "stop":
                return
            done = _turn(turn, works)
            if rank() == 0:
                part = path.with_suffix(".part")
                part.write_text(json.dumps(done))
                part.rename(path.with_suffix(".done"))


def _turn(turn: dict[str, Any], works: dict[str, Callable[[], None]]) -> dict[str, float]:
    name = turn["work"]
    if name not in works:
        works[name] = passes_of(name) if name in ENGINES else steps_of(name)
        works[name]()
    sum_over_processes(torch.zeros(1))
    begin, before = time.perf_counter(), bytes_written()
    for _ in range(turn["steps"]):
        works[name]()
    sent = float(sum_over_processes(torch.tensor(bytes_written() - before, dtype=torch.float64)))
    return {"seconds": time.perf_counter() - begin, "bytes": sent / turn["steps"]}


class Worker:
    """One process, or several under torchrun, that do a turn when asked to."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder, self.number = folder, 0
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *(launcher if processes > 1 else []), __file__, "--serve", str(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.process = subprocess.Popen(command, env=environment)

    def turn(self, work: str, steps: int = 1) -> dict[str, float]:
        """Have a turn done and return what it measured."""
        self.ask(work, steps)
        return self.answer()

    def ask(self, work: str, steps: int = 1) -> None:
        """Have a turn begun."""
        self.work, self.path = work, self.folder / f"{self.number}.turn"
        self.number += 1
        part = self.path.with_suffix(".asked")
        part.write_text(json.dumps({"work": work, "steps": steps}))
        part.rename(self.path)

    def answer(self) -> dict[str, float]:
        """Wait for the turn to end and return what it measured."""
        path, end = self.path.with_suffix(".done"), time.monotonic() + PATIENCE
        while not path.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.work}: the processes that were to do it are gone")
            time.sleep(0.002)
        found: dict[str, float] = json.loads(path.read_text())
        return found


@contextmanager
def worker(processes: int) -> Iterator[Worker]:
    """Start a worker, and end it whatever happens."""
    with tempfile.TemporaryDirectory() as folder:
        started = Worker(Path(folder), processes)
        try:
            yield started
            started.ask("stop")
            started.process.wait(timeout=60)
        finally:
            if started.process.poll() is None:
                started.process.terminate()
                started.process.wait()


def main() -> None:
    """Measure, print the tables, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES), help="none: gradients alone")
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    print(f"torch {torch.__version__}, one thread a process\n")
    columns = "one process | two processes | times as fast | two strangers | sent a step | by the formula"
    print(f"| batch {BATCH} | {columns} |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with worker(1) as one, worker(1) as other, worker(2) as two:
        found = {case: _compare(case, one, other, two, given.rounds) for case in given.cases}
        engines = [[two.turn(engine)["seconds"] for engine in ENGINES] for _ in range(given.rounds)]
    seconds, ratios = np.median(engines, axis=0), np.median([each / each[0] for each in np.array(engines)], axis=0)
    print("\npasses of the network, and their gradients averaged")
    for words, taken, ratio in zip(ENGINES.values(), seconds, ratios, strict=True):
        print(f"{words}: {taken:.3f} s ({ratio:.2f})")
    print()
    for case, ratio in ((case, found[case]) for case in AIMS if case in found):
        print(f"{'ok    ' if ratio >= TARGET else 'missed'} {case}: {ratio:.2f} times, target at least {TARGET}")


def _compare(case: str, one: Worker, other: Worker, two: Worker, rounds: int) -> float:
    steps = STEPS[case.split(",")[0]]
    times = np.empty((rounds, 3))
    for each in times:
        alone, both = one.turn(case, steps), two.turn(case, steps)
        one.ask(case + HALF, steps)
        other.ask(case + HALF, steps)
        strangers = one.answer(), other.answer()
        each[:] = alone["seconds"], both["seconds"], max(each["seconds"] for each in strangers)
    ratio, ceiling = (float(np.median(times[:, 0] / times[:, place])) for place in (1, 2))
    first, second, _ = 1000 * np.median(times, axis=0) / steps
    print(
        f"| {case} | {first:.0f} ms | {second:.0f} ms | {ratio:.2f} | {ceiling:.2f} "
        f"| {both['bytes'] / 1e6:.2f} MB | {formula(case, 2) / 1e6:.2f} MB |",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
