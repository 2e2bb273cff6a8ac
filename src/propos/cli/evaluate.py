"""`propos evaluate`: score a run."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Shaped

    from propos.cli.measures import Measure
    from propos.runs import Run

Result = dict[str, float | int | None]


def evaluate(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    labels: Annotated[Path | None, typer.Option(help="A CSV with columns image,label.")] = None,
    knn: Annotated[bool, typer.Option("--knn", help="Classify embeddings by their nearest neighbours.")] = False,
    linear: Annotated[bool, typer.Option("--linear", help="Train a linear classifier on backbone features.")] = False,
    psa: Annotated[
        bool, typer.Option("--psa-preservation", help="How often sampled neighbours keep the class of their image.")
    ] = False,
    test: Annotated[
        str | None, typer.Option(help="Other images, put into the run's clusters and scored; also for the rest.")
    ] = None,
    neighbours: Annotated[int | None, typer.Option(help="How many vote; 20 unless told.")] = None,
    sigma: Annotated[float | None, typer.Option(help="σ of the sampled neighbours; the run's unless told.")] = None,
    optimiser: Annotated[Literal["sgd", "lars"], typer.Option(help="What trains the linear classifier.")] = "sgd",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score a run: against labels where there are some, by the shape of its clusters, and what its network learnt."""
    from propos.errors import InputError
    from propos.runs import Run, read_label_file

    folder = Run.open(run)
    known = folder.table.label if labels is None else read_label_file(labels, folder.table.images, _warn)
    measures: dict[str, Measure] = {}
    if sigma is not None and not 0 <= sigma < math.inf:
        raise InputError(f"--sigma {sigma}: choose 0 or more")
    if test is not None or knn or linear or psa:
        if known is None and (knn or linear or psa):
            raise InputError(f"{run}: has no labels, which this needs: give --labels FILE")
        from propos.cli import measures as measuring

        with ExitStack() as opened:
            subject = measuring.Subject(folder, known, test, device, opened)
            if test is not None and (subject.test_images.labels is not None or not (knn or linear or psa)):
                measures["test clusters"] = measuring.prototypes(subject)
            if knn:
                measures["knn_accuracy"] = measuring.knn(subject, neighbours)
            if linear:
                measures["linear_accuracy"] = measuring.linear(subject, optimiser)
            if psa:
                measures["psa_preservation"] = measuring.preservation(subject, neighbours, sigma)
    result = _scores(folder, known)
    if as_json:
        typer.echo(json.dumps({**result, **{k: v for m in measures.values() for k, v in m.numbers.items()}}))
        return
    _print(result, folder.embeddings.shape[1])
    for name, measure in measures.items():
        typer.echo(f"{name:16} {measure.line}")


def _warn(text: str) -> None:
    say(f"warning: {text}", err=True)


def _scores(run: Run, known: Shaped[np.ndarray, " N"] | None) -> Result:
    from propos.evaluation import scores, uniformity_std
    from propos.evaluation.silhouette import silhouette

    cluster, sizes = run.table.cluster, [len(cluster.members) for cluster in run.clusters]
    result: Result = dict.fromkeys(("nmi", "ami", "ari", "accuracy"))
    if known is not None:
        result |= scores(known, cluster)
    several = sum(size > 0 for size in sizes) > 1
    return result | {
        "silhouette": silhouette(run.embeddings, cluster) if several else None,
        "uniformity_std": uniformity_std(run.embeddings),
        "imbalance_ratio": min(sizes) / max(sizes),
        "n_clusters": len(sizes),
        "n_images": len(cluster),
    }


def _print(result: Result, dimension: int) -> None:
    notes = {
        "silhouette": "  (1: clusters far apart; 0: they touch)",
        "uniformity_std": f"  (spread evenly: {1 / math.sqrt(dimension):.4f}; collapsed: 0)",
    }
    for key, value in result.items():
        if value is None:
            text = "–  (one cluster has none)" if key == "silhouette" else "–  (no labels: give --labels FILE)"
        else:
            text = (f"{value:,}" if isinstance(value, int) else f"{value:.4f}") + notes.get(key, "")
        typer.echo(f"{key:16} {text}")
