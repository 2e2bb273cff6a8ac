"""Compare the cost of computing pretrained features of a folder with a bare loop that decodes and passes.

Both kinds run in turn, each time in a process of its own, so that seconds, processor time (with that of decoding
processes) and peak memory are its own, and each imports what it needs and no more. The photographs are crops of a
folder's, or of scikit-learn's two, as JPEG files. The bare loop reads each with Pillow, resizes it, cuts out the middle
and passes 32 at a time: the same work, and nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

TARGET = 1.15
KINDS = ("propos", "bare")
PART = 32  # images that the bare loop passes at a time, as propos does


def photographs(folder: Path, count: int, crops_of: Path | None) -> Path:
    """Write crops of real photographs: of a folder's, at least three quarters of each side, or 160 to 420 pixels."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    files = [] if crops_of is None else sorted(path for path in crops_of.rglob("*") if path.is_file())
    originals = [] if files else _samples()
    for number in range(count):
        whole = Image.open(files[number % len(files)]).convert("RGB") if files else originals[number % len(originals)]
        least = (3 * whole.width // 4, 3 * whole.height // 4) if files else (160, 160)
        most = whole.size if files else (420, 420)
        width, height = (int(rng.integers(low, high)) for low, high in zip(least, most, strict=True))
        left, top = int(rng.integers(0, whole.width - width)), int(rng.integers(0, whole.height - height))
        whole.crop((left, top, left + width, top + height)).save(folder / f"{number:05d}.jpg", quality=90)
    return folder


def _samples() -> list[Image.Image]:
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(image) for image in load_sample_images().images]


def by_propos(folder: Path) -> int:
    """Decode, keep, look at and whiten all images, as a run does before its k-means."""
    from propos.runner import Origin, Request, plan
    from propos.training.features import prepare_inputs
    from propos.training.learner import build_learner
    from propos.training.pretrained_init import initialise_from_pretrained

    @contextmanager
    def silent(what: str) -> Iterator[Any]:
        yield lambda done, total: None

    with plan(Request(source=folder, clusters=2, origin=Origin(start="pretrained"))) as planned:
        fed = prepare_inputs(planned.config, planned.source, planned.device, silent)
        initialise_from_pretrained(build_learner(planned.config, fed, planned.device), fed)
        return len(fed)


@torch.inference_mode()
def by_bare_loop(folder: Path) -> int:
    """Decode and pass all images, and keep their features."""
    from propos.networks.pretrained import build_frozen, read_pretrained

    weights = read_pretrained("efficientnet-lite0")
    network, side = build_frozen(weights), weights.network.side
    mean, std = (torch.tensor(values)[:, None, None] for values in weights.network.pixels)
    files, features = sorted(folder.iterdir()), []
    for start in range(0, len(files), PART):
        batch = torch.stack([_tensor(file, side) for file in files[start : start + PART]])
        features.append(network(((batch - mean) / std).contiguous(memory_format=torch.channels_last)))
    return len(torch.cat(features))


def _tensor(file: Path, side: int) -> torch.Tensor:
    """Resize an image by its shorter side and cut out the middle square, as the usual test transform does."""
    with Image.open(file) as image:
        scale = round(side / 0.875) / min(image.size)
        small = image.convert("RGB").resize([round(edge * scale) for edge in image.size], Image.Resampling.BILINEAR)
    left, top = ((edge - side) // 2 for edge in small.size)
    pixels = np.asarray(small.crop((left, top, left + side, top + side)), np.float32) / 255
    return torch.from_numpy(pixels).permute(2, 0, 1)


def measured(kind: str, folder: Path) -> dict[str, float]:
    """Run one kind in a process of its own and return what it took."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PROPOS_CACHE": cache}
        command = [sys.executable, __file__, "--only", kind, "--folder", str(folder)]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    values: dict[str, float] = json.loads(said)
    return values


def only(kind: str, folder: Path) -> None:
    """Do one kind of the work here, and print what it took."""
    begin = time.perf_counter()
    images = by_propos(folder) if kind == "propos" else by_bare_loop(folder)
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    spent = sum(usage.ru_utime + usage.ru_stime for usage in (own, children))
    print(
        json.dumps(
            {
                "images": images,
                "seconds": time.perf_counter() - begin,
                "processor": spent,
                "memory": own.ru_maxrss / 1024,
            }
        )
    )


def _round(folder: Path) -> dict[str, dict[str, float]]:
    """Measure both kinds in turn, and print what they took as it comes."""
    found = {}
    for kind in KINDS:
        found[kind] = measured(kind, folder)
        print(kind, json.dumps(found[kind]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--crops-of", type=Path, help="photographs to make them of; else scikit-learn's two")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        only(given.only, given.folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = photographs(Path(scratch) / "photographs", given.images, given.crops_of)
        rounds = [_round(folder) for _ in range(given.rounds)]
    print(f"{given.images:,} photographs, {given.rounds} rounds, {torch.get_num_threads()} threads\n")
    print("| | propos | bare loop | ratio |\n|---|---|---|---|")
    for what, unit in (("seconds", "s"), ("processor", "s of processor time"), ("memory", "MB at most")):
        ours, bare = (float(np.median([each[kind][what] for each in rounds])) for kind in KINDS)
        ratio = float(np.median([each["propos"][what] / each["bare"][what] for each in rounds]))
        judged = "ok" if ratio <= TARGET else "missed"
        print(f"| {unit} | {ours:,.1f} | {bare:,.1f} | {ratio:.2f} ({judged}, target {TARGET}) |")


if __name__ == "__main__":
    main()
