"""The work that `scale.py` measures: each function prepares its data and returns the work.

Sets and runs are kept in the folder and shared by the parts, so that a million files are written once.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from propos.clustering import nearest_neighbours, sample_positions, spherical_kmeans, suggest_clusters
from propos.common.progress import show_nothing
from propos.data import find_source
from propos.review.export import export_run
from propos.review.report import choose_images_to_check, show_edits, write_report
from propos.review.report.duplicates import likely_pairs
from propos.review.report.layout import lay_out
from propos.review.server.app import application
from propos.review.server.guard import Guard
from propos.runner.recipes.pretrained import pretrained
from propos.runner.sources import opened as opened_images
from propos.runs import ImageTable, Run, VectorFile, write_parts, write_table
from propos.training.features import features_of, frozen_backbone_of
from propos.training.model import predict_from_embeddings
from review import posted
from scale_sets import CLUSTERS, finished_run, name, names, photographs, unit_vectors

MANY_CLUSTERS = 1000
EDITS = 1000
SOME = 2000  # images whose features are computed
QUERIES = 200  # images whose neighbours are compared with the exact ones

Work = Callable[[], object]


def first_scan(images: int, folder: Path) -> Work:
    """Find the images and read their headers, without an index."""
    photos = photographs(folder, images)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return lambda: find_source(photos)


def second_scan(images: int, folder: Path) -> Work:
    """The scan of every later command."""
    photos = photographs(folder, images)
    return lambda: find_source(photos)


def some_features(images: int, folder: Path) -> Work:
    """Decode a few thousand of the images and compute their features; reports what all of them would take."""
    photos, cache = photographs(folder, images), folder / "cache-of-features"
    shutil.rmtree(cache, ignore_errors=True)
    os.environ["PROPOS_CACHE"] = str(cache)
    config = pretrained()
    network, few = frozen_backbone_of(config), np.linspace(0, images - 1, SOME).round().astype(int)
    assert network is not None

    def work() -> None:
        began = processor_seconds()
        with opened_images(find_source([photos / name(number) for number in few.tolist()]), config) as source:
            features_of(network, source, torch.device("cpu"), show_nothing)
        _say("processor, extrapolated", (processor_seconds() - began) * images / SOME)

    return work


def last_line(images: int, folder: Path) -> Work:
    """Cluster, confidence and distance of every image with many clusters, and the table of the run."""
    points, every = unit_vectors(images), names(0, images)
    prototypes = points[torch.linspace(0, images - 1, MANY_CLUSTERS).long()].clone()
    labels = torch.arange(images) % MANY_CLUSTERS

    def work() -> None:
        found = predict_from_embeddings(points, prototypes, labels)
        table = ImageTable(every, found.cluster, found.confidence, found.distance)
        write_table(table, folder / "clusters.parquet")

    return work


def k_means(images: int, folder: Path) -> Work:
    """K-means as an E-step runs it: one restart."""
    points = unit_vectors(images)
    return lambda: spherical_kmeans(points, CLUSTERS, 1, torch.Generator().manual_seed(0))


def predicted_table(images: int, folder: Path) -> Work:
    """The table of `propos predict`, written while images are predicted."""

    def parts() -> Iterator[ImageTable]:
        for start in range(0, images, 512):
            stop = min(start + 512, images)
            column = np.linspace(0, 1, stop - start, dtype=np.float32)
            yield ImageTable(names(start, stop), np.arange(start, stop) % CLUSTERS, column, column)

    return lambda: write_parts(parts(), folder / "predicted.csv")


def neighbours(images: int, folder: Path) -> Work:
    """Each image's ten nearest neighbours: exact up to 200,000 images, above by an inverted file, with its recall."""
    points = unit_vectors(images)

    def work() -> None:
        found = nearest_neighbours(points, 10)
        for_some = torch.linspace(0, images - 1, QUERIES).long()
        cosines = points[for_some] @ points.T
        cosines[torch.arange(QUERIES), for_some] = -1.0
        exact = cosines.topk(10, dim=1).indices
        recall = (found[for_some][:, :, None] == exact[:, None]).any(dim=1).float().mean()
        _say("recall, in percent", 100 * float(recall))

    return work


def near_duplicates(images: int, folder: Path) -> Work:
    """The pairs of images with similar embeddings, whose pictures the report then compares."""
    rows = VectorFile(run_of(images, folder) / "embeddings.npy")
    return lambda: likely_pairs(rows, np.ones(images, dtype=bool), 0)


def suggested_k(images: int, folder: Path) -> Work:
    """`propos suggest-k` of a finished run: a sample of its embeddings is read."""
    run = run_of(images, folder)

    def work() -> None:
        rows, draw = VectorFile(run / "embeddings.npy"), torch.Generator().manual_seed(0)
        sample = rows[sample_positions(len(rows), 10, draw).numpy()]
        suggest_clusters(torch.from_numpy(sample), 9, 10, draw)

    return work


def report(images: int, folder: Path) -> Work:
    """`propos report` without the layout, which is kept; with the seconds of its longer steps."""
    run = run_of(images, folder)
    shutil.rmtree(run / "report", ignore_errors=True)

    @contextmanager
    def show_task(task: str) -> Iterator[Callable[[int, int], None]]:
        began = time.perf_counter()
        yield lambda done, total: None
        _say(task, time.perf_counter() - began)

    return lambda: write_report(Run.open(run), show_task=show_task)


def processor_seconds() -> float:
    """Return the processor time that this process and its children, such as decoders, have used so far."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _say(step: str, seconds: float) -> None:
    """Report the seconds of a step."""
    print(json.dumps({"step": step, "seconds": seconds}), flush=True)


def layout(images: int, folder: Path) -> Work:
    """The map: 50,000 images laid out, and the others put among them."""
    run = Run.open(run_of(images, folder))
    return lambda: lay_out(run.embedding_rows, run.table.cluster, 0)


def opened(images: int, folder: Path) -> Work:
    """`propos open` until it serves: the run read, and its page checked."""
    run = written(images, folder)

    def work() -> None:
        found = Run.open(run)
        found.notes_on_edits()
        show_edits(found)
        application(found, set())

    return work


def edits(images: int, folder: Path) -> Work:
    """A thousand edits of one image each, saved one by one by the server, and then the corrected run."""
    run = Run.open(written(images, folder))
    run.edits.path.unlink(missing_ok=True)
    run, draw = Run.open(run.path), np.random.default_rng(0)
    app, rows = Guard(application(run, set()), "token", 1), draw.integers(images, size=EDITS)
    every = run.table.images

    async def save() -> None:
        for number, row in enumerate(rows.tolist()):
            last = run.edits.edits[-1].id if number else ""
            edit = {"v": 1, "id": f"e{number}", "op": "move", "images": [every[row]], "into": number % CLUSTERS}
            status = await posted(app, (json.dumps(edit) + "\n").encode(), f"since={number}&last={last}")
            assert status == 200, status

    def work() -> object:
        asyncio.run(save())
        return run.corrected

    return work


def questions(images: int, folder: Path) -> Work:
    """The images to check next, as the page asks for them."""
    run = run_of(images, folder)
    return lambda: choose_images_to_check(Run.open(run))


def exported(form: str, ending: str) -> Callable[[int, Path], Work]:
    """Return the part that exports in a format."""

    def part(images: int, folder: Path) -> Work:
        run, out = run_of(images, folder), folder / f"exported{ending}"
        out.unlink(missing_ok=True)
        return lambda: export_run(Run.open(run), form, out)

    return part


def run_of(images: int, folder: Path) -> Path:
    """Return a finished run; of more than a million images, nothing is decoded."""
    return finished_run(folder, images, images <= 1_000_000).path


def written(images: int, folder: Path) -> Path:
    """Return a finished run that has its page."""
    run = run_of(images, folder)
    if not (run / "report").exists():
        write_report(Run.open(run))
    return run


PARTS: dict[str, Callable[[int, Path], Work]] = {
    "first scan": first_scan,
    "second scan": second_scan,
    "features of 2,000": some_features,
    "last line": last_line,
    "k-means": k_means,
    "predicted table": predicted_table,
    "neighbours": neighbours,
    "near duplicates": near_duplicates,
    "suggest-k": suggested_k,
    "report": report,
    "layout": layout,
    "open": opened,
    "1,000 edits": edits,
    "questions": questions,
    "export csv": exported("csv", ".csv"),
    "export parquet": exported("parquet", ".parquet"),
    "export coco": exported("coco", ".json"),
}
DECODING = ("first scan", "second scan", "features of 2,000", "export coco")  # these need the files
