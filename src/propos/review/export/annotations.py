"""Labels in the formats of COCO and FiftyOne; images are not copied."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from propos.review.export.folders import title
from propos.review.export.originals import originals_of
from propos.runs import JUNK, Run, write_atomically


def write_coco(run: Run, out: Path) -> int:
    """Write COCO's instances: a box over each whole image, in the category of its cluster; ids are counted from 1."""
    originals, corrected = originals_of(run), run.corrected
    category = {cluster.id: number for number, cluster in enumerate(corrected.clusters, start=1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for row, (original, cluster) in enumerate(zip(originals, corrected.table.cluster.tolist(), strict=True), start=1):
        width, height = original.width, original.height
        images.append({"id": row, "file_name": str(original.path), "width": width, "height": height})
        if cluster != JUNK:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": row,
                    "category_id": category[cluster],
                    "bbox": [0, 0, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    names = class_names(run)
    content = {
        "info": {"description": f"Clusters of {run.info.source.name or run.path.name}, found by propos"},
        "licenses": [],
        "categories": [
            {"id": category[cluster.id], "name": names[cluster.id], "supercategory": "cluster"}
            for cluster in corrected.clusters
        ],
        "images": images,
        "annotations": annotations,
    }
    _write_json(out, content)
    return len(annotations)


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
