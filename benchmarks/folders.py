"""Measure the cost of reading folders of images: predicting, building the cache, and loading from it while training.

Everything compared is timed in turn, round by round, in one process; a ratio is the median over rounds of the two
times of a round. Photographs are imagenette-160 under PROPOS_DATA, else ../shared/data; without them, generated ones.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from propos.data import StreamedSource, cache_side, clean_caches, find_source
from propos.data.decoding.pool import DecodePool, cores
from propos.methods import build_method
from propos.runner.recipes import build_recipe
from propos.runs import write_parts
from propos.training import Model, prepare
from propos.training.embedding import BATCH, embed_batches
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from side_by_side import Comparison, compare, verdict

CPU = torch.device("cpu")
DATA = Path(os.environ.get("PROPOS_DATA", Path(__file__).parents[2] / "shared" / "data"))
JOB = 32


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """Keep decoded images in a folder of our own for a while."""
    before = os.environ.get("PROPOS_CACHE")
    os.environ["PROPOS_CACHE"] = str(folder / "cache")
    yield
    os.environ.pop("PROPOS_CACHE")
    if before is not None:
        os.environ["PROPOS_CACHE"] = before


def generated(folder: Path, count: int, width: int, height: int) -> Path:
    """Write JPEG files of smooth noise, which take as long to decode as photographs of their size."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for number in range(count):
        coarse = draw.integers(0, 256, size=(height // 16, width // 16, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        image.save(folder / f"{number:05d}.jpg", quality=90)
    return folder


def photographs(folder: Path) -> Path:
    """Return the real photographs, or some that stand for them."""
    real = DATA / "imagenette-160"
    return real if real.is_dir() else generated(folder / "photographs", 1_000, 224, 160)


def photos_model(photos: Path) -> Model:
    """Return an untrained model of the photos recipe: time does not depend on what it has learnt."""
    source = find_source(photos).open(cache_side(build_recipe("photos").views), 3, keep="stream")
    config = prepare(build_recipe("photos").with_settings({"clusters": 10}), source)
    prototypes = torch.nn.functional.normalize(torch.randn(10, config.network.dimension), dim=1)
    return Model(config, build_method(config, channels=3), prototypes, np.arange(10))


def predicting(photos: Path, folder: Path, rounds: int) -> list[Comparison]:
    """Compare predict, from a folder to a table, with bare forward passes while the next images are decoded.

    And compare predicting from files with building the cache for it first.
    """
    model = photos_model(photos)
    side = cache_side(model.config.views)
    entries = list(find_source(photos).open(side, 3, keep="stream").entries)  # type: ignore[attr-defined]

    def predict(keep: str) -> Callable[[], object]:
        def work() -> None:
            source = find_source(photos).open(side, 3, keep=keep)  # type: ignore[arg-type]
            write_parts(model.tabulate(source), folder / "table.csv")
            if isinstance(source, StreamedSource):
                source.close()
            clean_caches()

        return work

    def bare() -> None:
        jobs = [entries[start : start + JOB] for start in range(0, len(entries), JOB)]
        with DecodePool(side, 3) as pool:
            for decoded in pool.in_order(jobs):
                ready = find_source(np.stack(decoded.images)).open(side)
                for _ in embed_batches(model.encoder, ready, model.config):
                    pass

    words = f"{len(entries):,} photographs"
    against_bare = compare(f"predict on {words}", {"predict": predict("stream"), "bare": bare}, rounds)
    kinds = {"through a cache": predict("build"), "streamed": predict("stream")}
    return [against_bare, compare(f"predict once on {words}", kinds, rounds)]


def building(photos: Path, large: Path, rounds: int) -> list[Comparison]:
    """Compare decoding in one process with all cores, and full decoding with drafts."""

    def decode(folder: Path, side: int, workers: int, draft: bool = True) -> Callable[[], object]:
        found = find_source(folder).scan
        assert found is not None
        entries = found.images
        jobs = [entries[start : start + JOB] for start in range(0, len(entries), JOB)]

        def work() -> None:
            with DecodePool(side, 3, workers, draft) as pool:
                for _ in pool.in_order(jobs):
                    pass

        return work

    def build(workers: int) -> Callable[[], object]:
        from propos.data import open_folder

        def work() -> None:
            open_folder(photos, 144, workers=workers)
            clean_caches()

        return work

    return [
        compare("building a cache of photographs", {"1 process": build(1), f"{cores()}": build(cores())}, rounds),
        compare("decoding large JPEGs", {"full": decode(large, 144, 1, False), "draft": decode(large, 144, 1)}, rounds),
    ]


def loading(photos: Path, rounds: int) -> Comparison:
    """Compare loading a batch from the cache with a whole step of the photos recipe."""
    config = build_recipe("photos").with_settings({"clusters": 10})
    source = find_source(photos).open(cache_side(config.views), 3)
    learner = build_learner(prepare(config, source), source, CPU)
    positions = epoch_order(0, 0, learner.schedule)[0]
    state = late_state(learner)
    works: dict[str, Callable[[], object]] = {
        "loading": lambda: source.batch(positions.numpy()),
        "step": lambda: m_step(learner, source, positions, state),
    }
    return compare(f"loading a batch of {len(positions)}", works, rounds)


def main() -> None:
    """Measure, print the table, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 2 if parser.parse_args().quick else 5
    with tempfile.TemporaryDirectory() as name, own_cache(Path(name)):
        folder = Path(name)
        photos = photographs(folder)
        large = generated(folder / "large", 40, 4_000, 3_000)
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, batches of {BATCH}\n")
        print("| what | first | second | first / second | in processor time |\n|---|---|---|---|---|", flush=True)
        against_bare, once = predicting(photos, folder, rounds)
        processes, drafts = building(photos, large, rounds)
        share = loading(photos, 4 * rounds)
    print()
    verdict(against_bare, "at most 1.2", against_bare.ratio <= 1.2)
    verdict(once, "at least 1: a cache that is read once does not pay", once.ratio >= 1)
    verdict(processes, "above 1", processes.ratio > 1)
    verdict(drafts, "above 1", drafts.ratio > 1)
    verdict(share, "below 0.03", share.ratio < 0.03)


if __name__ == "__main__":
    main()
