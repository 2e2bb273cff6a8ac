"""`propos evaluate`: score a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    labels: Annotated[Path | None, typer.Option(help="A CSV with columns image,label.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score a run: against labels where there are some, and by the shape of its clusters."""
    from propos.evaluation import imbalance_ratio, scores, uniformity_std
    from propos.runs import RunFolder, read_label_file

    folder = RunFolder.open(run)
    clusters = folder.clusters()
    embeddings, n_clusters = folder.array("embeddings.npy"), len(folder.array("prototypes.npy"))
    known = clusters.label if labels is None else read_label_file(labels, clusters.images)
    result: dict[str, float | int | None] = dict.fromkeys(("nmi", "ami", "ari", "accuracy"))
    if known is not None:
        result |= scores(known, clusters.cluster)
    result |= {
        "uniformity_std": uniformity_std(embeddings),
        "imbalance_ratio": imbalance_ratio(clusters.cluster, n_clusters),
        "n_clusters": n_clusters,
        "n_images": len(clusters.images),
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    notes = {"uniformity_std": f"  (spread evenly: {1 / math.sqrt(embeddings.shape[1]):.4f}; collapsed: 0)"}
    for key, value in result.items():
        if value is None:
            text = "–  (no labels: give --labels FILE)"
        else:
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        typer.echo(f"{key:16} {text}{notes.get(key, '')}")
