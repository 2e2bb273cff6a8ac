"""Tables of corrected labels, one row per image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from propos.common.errors import check_ending
from propos.review.export.folders import title
from propos.review.export.split import Split
from propos.review.promise import probabilities
from propos.runs import ImageTable, Run, write_atomically, write_table


def write_labels(run: Run, out: Path, ending: str, split: Split | None = None) -> int:
    """Write the run's table as CSV, Parquet or JSON; junk is in cluster -1, and in no part of a split."""
    check_ending(out, ending)
    write_table(replace(labels_of(run), split=None if split is None else split.names()), out, ending)
    return len(run.table.images)


def labels_of(run: Run) -> ImageTable:
    """Return the corrected table with names, confirmed images and, if calibrated, the probability of each label."""
    corrected = run.corrected
    names = corrected.names()
    name = [names.get(cluster) for cluster in corrected.table.cluster.tolist()]
    sure, probability = corrected.confirmed, probabilities(run)
    return replace(corrected.table, name=name, path=_paths(run), confirmed=sure, probability=probability)


def _paths(run: Run) -> list[str | None] | None:
    """Return the path of each image's cluster, as animals/dogs; None if no node above a cluster has a name."""
    corrected = run.corrected
    if not any(each.above for each in corrected.clusters):
        return None
    parts = {each.id: [*(name for _, name in each.above), title(each)] for each in corrected.clusters}
    path = {cluster: "/".join(part.replace("/", "_") for part in names) for cluster, names in parts.items()}
    return [path.get(cluster) for cluster in corrected.table.cluster.tolist()]


def write_atlas(run: Run, out: Path) -> int:
    """Write a Parquet file as embedding-atlas reads it: embeddings, and positions on the map if there is one."""
    check_ending(out, ".parquet")
    corrected, place = run.corrected, run.map()
    names = {cluster.id: title(cluster) for cluster in corrected.clusters}
    table = labels_of(run).to_arrow()
    titles = [names.get(cluster, "junk") for cluster in corrected.table.cluster.tolist()]
    at = table.schema.get_field_index("name")
    table = table.set_column(at, "name", pa.array(titles, pa.string()))
    if place is not None:
        table = table.append_column("projection_x", pa.array(place[:, 0]))
        table = table.append_column("projection_y", pa.array(place[:, 1]))
    flat = pa.array(np.ascontiguousarray(run.embeddings).ravel())
    table = table.append_column("vector", pa.FixedSizeListArray.from_arrays(flat, run.embeddings.shape[1]))
    write_atomically(out, lambda file: pa.parquet.write_table(table, file))
    return len(table)
