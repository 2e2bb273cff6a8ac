"""Measure what `--reject` rejects, and how pure proposed new kinds are, on runs that saw seven of ten kinds.

    python benchmarks/rejects.py RUN NEW [RUN NEW …]

NEW are labelled images, of kinds that the run has seen (its labels name them) and of others: a folder with class
folders, or a .npz with labels. Limits are set from the run's own images alone; nothing is tuned on the new ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from propos.evaluation.rejection import distance_limits, find_kinds, least_cosine
from propos.runner import open_like
from propos.runs import Run, rows_of
from propos.training import Model

SHARES = (0.01, 0.05)


def measure(path: Path, new: str) -> None:
    """Print what is rejected of the new images, and the groups among them."""
    run = Run.open(path)
    model, table = Model.from_run(run, torch.device("cpu")), run.corrected.table
    assert table.label is not None
    with open_like(model.config, new, labels="folders" if Path(new).is_dir() else None, keep="use") as images:
        embeddings = model.embeddings(images).numpy()
        assert images.labels is not None
        labels = np.asarray(images.labels).astype(str)
    seen = np.isin(labels, np.unique(table.label.astype(str)))
    cosines = embeddings @ run.corrected.prototypes.vectors.T
    cluster, distance = model.ids[cosines.argmax(axis=1)], 1 - cosines.max(axis=1)
    print(f"{path.name}: {seen.sum():,} new images of seen kinds, {(~seen).sum():,} of others", flush=True)
    for share in SHARES:
        limits = distance_limits(table.cluster, table.distance, model.ids, share)
        far = distance > limits[rows_of(cluster, model.ids)]
        rejected = np.flatnonzero(far)
        groups = [rejected[group] for group in find_kinds(embeddings[far], least_cosine(table.distance, table.cluster))]
        pure = [np.unique(labels[group], return_counts=True)[1].max() for group in groups]
        grouped = sum(map(len, groups))
        purity = f"{sum(pure) / grouped:.3f}" if groups else "none"
        print(
            f"   {share:.0%}: rejected {far[seen].mean():.3f} of seen, {far[~seen].mean():.3f} of unseen; "
            f"{len(groups)} new kinds of {grouped} images, purity {purity}, sizes {[len(group) for group in groups]}",
            flush=True,
        )


def main() -> None:
    """Measure each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="RUN NEW")
    given = parser.parse_args().pairs
    for run, new in zip(given[::2], given[1::2], strict=True):
        measure(Path(run), new)


if __name__ == "__main__":
    main()
