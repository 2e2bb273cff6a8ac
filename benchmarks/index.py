"""Scans, memory and duplicates of many files: `python benchmarks/index.py 100000`.

The files are hard links to a hundred small JPEGs, in folders of a thousand. Seconds are of the processor; bytes are
those that Python, numpy (tracemalloc) and Arrow (its pool) hold, for each file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

KINDS = 100


def link(folder: Path, count: int) -> Path:
    rng = np.random.default_rng(0)
    originals, photos = folder / "originals", folder / "photos"
    originals.mkdir()
    for number in range(KINDS):
        pixels = rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(originals / f"{number}.jpg", quality=70)
    for number in range(count):
        month = photos / f"{2000 + number // 20_000:04d}-{number // 1_000 % 20:02d}"
        if number % 1_000 == 0:
            month.mkdir(parents=True)
        os.link(originals / f"{number % KINDS}.jpg", month / f"IMG_{number:08d}.jpg")
    return photos


def scan(photos: Path, traced: bool) -> None:
    from propos.data.cache import index
    from propos.data.files.survey import exact_duplicates

    least, index.FEWEST = index.FEWEST, 1
    for _ in range(2):  # imports are not counted
        index.indexed_scan(photos.parent / "originals")
    index.FEWEST = least
    arrow = pa.total_allocated_bytes()
    if traced:
        tracemalloc.start()
    begin = time.process_time()
    found = index.indexed_scan(photos)
    seconds, count = time.process_time() - begin, len(found.images)
    if traced:
        held, peak = tracemalloc.get_traced_memory()
        held += pa.total_allocated_bytes() - arrow
        peak += pa.default_memory_pool().max_memory()
        print(f"  {held / count:.0f} bytes a file held, at most {peak / count:.0f}")
        return
    begin = time.process_time()
    groups = exact_duplicates(found.images)
    print(f"  {seconds:.1f} s; {len(groups):,} groups of exact duplicates: {time.process_time() - begin:.2f} s")


def near(images: int, width: int) -> None:
    from propos.review.report.duplicates import likely_pairs, near_pairs

    rng = np.random.default_rng(0)
    vectors, copies = rng.standard_normal((images, width), np.float32), images // 100
    vectors[-copies:] = vectors[:copies] + 0.05 * rng.standard_normal((copies, width), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = {(number, images - copies + number) for number in range(copies)}
    for search in (near_pairs, likely_pairs):
        tracemalloc.start()
        begin = time.process_time()
        pairs = search(vectors, np.ones(images, dtype=bool), 0)
        seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        found = {(min(pair), max(pair)) for pair in pairs.T.tolist()}
        recall = len(found & expected) / len(expected)
        print(f"{search.__name__}: {seconds:.1f} s, {peak / images:.0f} bytes an image, {recall:.1%} of copies found")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=int)
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scan is not None:
        scan(options.scan, options.traced)
        return
    with tempfile.TemporaryDirectory() as name:
        photos = link(Path(name), options.files)
        environment = {**os.environ, "PROPOS_CACHE": str(Path(name) / "cache")}
        for words, more in (("first scan", []), ("second scan", []), ("its memory", ["--traced"])):
            print(words, flush=True)
            command = [sys.executable, __file__, str(options.files), "--scan", str(photos), *more]
            subprocess.run(command, check=True, env=environment)
    near(min(options.files, 100_000), 256)


if __name__ == "__main__":
    main()
