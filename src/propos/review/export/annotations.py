"""Labels in the formats of COCO and FiftyOne; images are not copied."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from propos.review.export.folders import title
from propos.review.export.originals import Original, originals_of
from propos.review.promise import promise_of
from propos.runs import Run, write_atomically


def write_coco(run: Run, out: Path) -> int:
    """Write COCO's instances: a box over each whole image, in the category of its cluster; ids are counted from 1.

    The file is written while it is made: for ten million images its content would take all memory.
    """
    originals, corrected = originals_of(run), run.corrected
    category = {cluster.id: number for number, cluster in enumerate(corrected.clusters, start=1)}
    names = class_names(run)
    described = f"Clusters of {run.info.source.name or run.path.name}, found by propos"
    content = {
        "info": {"description": f"{described}; labels: {promise_of(run)}"},
        "licenses": [],
        "categories": [
            {"id": category[cluster.id], "name": names[cluster.id], "supercategory": "cluster"}
            for cluster in corrected.clusters
        ],
    }
    kept = np.flatnonzero(~corrected.junk)
    annotations = (
        _annotation(number, row, category[int(corrected.table.cluster[row])], originals[row])
        for number, row in enumerate(kept.tolist(), start=1)
    )
    images = (_image(row, original) for row, original in enumerate(originals))
    lists = {"images": images, "annotations": annotations}
    write_atomically(out, lambda file: file.writelines(_with_lists(content, lists)))
    return len(kept)


def _image(row: int, original: Original) -> dict[str, Any]:
    size = {"width": original.width, "height": original.height}
    return {"id": row + 1, "file_name": str(original.path), **size}


def _annotation(number: int, row: int, category: int, original: Original) -> dict[str, Any]:
    width, height = original.width, original.height
    box = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0}
    return {"id": number, "image_id": row + 1, "category_id": category, **box}


def _with_lists(content: dict[str, Any], lists: Mapping[str, Iterator[dict[str, Any]]]) -> Iterator[bytes]:
    """Yield a JSON object that ends in long lists."""
    yield json.dumps(content).removesuffix("}").encode()
    for name, entries in lists.items():
        yield f", {json.dumps(name)}: [".encode()
        for place, entry in enumerate(entries):
            yield f"{', ' if place else ''}{json.dumps(entry)}".encode()
        yield b"]"
    yield b"}"


def write_fiftyone(run: Run, out: Path) -> int:
    """Write FiftyOne's image classification layout: labels.json, and data.json with the path of each image."""
    originals, corrected, names = originals_of(run), run.corrected, class_names(run)
    place = {cluster.id: number for number, cluster in enumerate(corrected.clusters)}
    kept = np.flatnonzero(~corrected.junk).tolist()
    _write_json(out / "data.json", {f"{row:08d}": str(originals[row].path) for row in kept})
    labels = {f"{row:08d}": place[int(corrected.table.cluster[row])] for row in kept}
    _write_json(out / "labels.json", {"classes": list(names.values()), "labels": labels})
    return len(kept)


def class_names(run: Run) -> dict[int, str]:
    """Return a unique name for each cluster, by its id."""
    clusters = run.corrected.clusters
    common = Counter(title(cluster) for cluster in clusters)
    return {
        cluster.id: title(cluster) if common[title(cluster)] == 1 else f"{title(cluster)} ({cluster.id})"
        for cluster in clusters
    }


def _write_json(path: Path, content: Any) -> None:
    write_atomically(path, json.dumps(content).encode())
