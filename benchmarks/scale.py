"""How time, memory and disk space grow with the number of images, from 100,000 to ten million.

python benchmarks/scale.py [--images 100000 1000000] [--parts NAME …] [--folder FOLDER] [--threads N]

Up to a million images are small JPEGs in a folder; beyond, features and rows are made up and nothing is decoded. Each
part runs in a process of its own, whose peak memory is given, its data included. From 100,000 to a million images,
seconds may grow by 11 times at most. To add a part, write it in `scale_parts.py`.

With --folder, every result is added to `results.jsonl` there; started again, only what it lacks is measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import torch

from propos.runner.resource_usage import peak_memory, reset_peak_memory
from scale_parts import DECODING, PARTS, processor_seconds

SIZES = (100_000, 1_000_000, 10_000_000)
MOST_DECODED = 1_000_000
MOST_GROWTH = 11
MOST_MEMORY = {1_000_000: 8 * 2**30, 10_000_000: 20 * 2**30}  # bytes


def measure(part: str, images: int, folder: Path, threads: int) -> dict[str, float]:
    """Measure a part in this process: seconds on the clock and of the processor, peak memory, bytes written."""
    torch.set_num_threads(threads)
    work = PARTS[part](images, folder)
    held = _disk(folder)
    reset_peak_memory()
    began, processor = time.perf_counter(), processor_seconds()
    work()
    return {
        "seconds": time.perf_counter() - began,
        "processor": processor_seconds() - processor,
        "memory": peak_memory() or float("nan"),
        "disk": _disk(folder) - held,
    }


def _disk(folder: Path) -> int:
    """Return the bytes of all files apart from the photographs."""
    skipped = {folder / "photos"}
    total = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(place) / name not in skipped]
        total += sum((Path(place) / name).stat().st_size for name in files)
    return total


def in_own_process(part: str, images: int, folder: Path, threads: int) -> dict[str, Any]:
    """Measure a part in a process of its own, with the steps that it reports."""
    folder.mkdir(parents=True, exist_ok=True)
    own = ["--one", "--parts", part, "--images", str(images), "--folder", str(folder), "--threads", str(threads)]
    environment = {**os.environ, "PROPOS_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, __file__, *own], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    *steps, found = map(json.loads, done.stdout.splitlines())
    return {**found, "steps": steps}


class Results:
    """What was measured, by part and images; kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = {(row["part"], row["images"]): row for row in map(json.loads, lines)}

    def get(self, part: str, images: int) -> dict[str, Any] | None:
        """Return what was measured; None if nothing was."""
        return self.rows.get((part, images))

    def add(self, part: str, images: int, found: dict[str, Any]) -> None:
        """Keep a measurement."""
        self.rows[part, images] = {"part": part, "images": images, **found}
        with self.path.open("a") as file:
            print(json.dumps(self.rows[part, images]), file=file)


def line(part: str, images: int, found: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return a part's line of the table."""
    growth = None if before is None else found["processor"] / before["processor"]
    words = "" if growth is None else f"{growth:5.1f}×{'' if growth <= MOST_GROWTH else '  too much'}"
    words += "" if found["memory"] <= MOST_MEMORY.get(images, float("inf")) else "  too much memory"
    sizes = f"{found['memory'] / 2**20:8,.0f} MB{found['disk'] / 2**20:8,.0f} MB"
    return f"{part:18}{images:12,}{found['seconds']:10.2f}{found['processor']:11.2f}{sizes}  {words}"


def main() -> None:
    """Print a line for each part and number of images, and each part's growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=SIZES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", type=Path, help="keep sets, runs and results here, and use those that are there")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.parts[0], given.images[0], given.folder, given.threads)))
        return
    with tempfile.TemporaryDirectory(prefix="propos-scale-") as temporary:
        root = given.folder or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        results = Results(root / "results.jsonl")
        print(f"{'part':18}{'images':>12}{'seconds':>10}{'processor':>11}{'memory':>11}{'disk':>11}  growth")
        for part, images in product(given.parts, given.images):
            if images > MOST_DECODED and part in DECODING:
                continue
            if results.get(part, images) is None:
                results.add(part, images, in_own_process(part, images, root / str(images), given.threads))
            found = results.rows[part, images]
            print(line(part, images, found, results.get(part, images // 10)), flush=True)
            for step in found["steps"]:
                print(f"  {step['step']:28}{step['seconds']:10.2f}", flush=True)


if __name__ == "__main__":
    main()
