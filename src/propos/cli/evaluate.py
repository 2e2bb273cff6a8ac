"""`propos evaluate`: score a run."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int, Shaped

    from propos.cli.measures import Measure
    from propos.data import FolderLabels
    from propos.runs import Run

FOLDERS = "folders"
Result = dict[str, float | int | None]


@dataclass(frozen=True)
class Found:
    """Embeddings and their clusters: the run's own, or new ones."""

    embeddings: Float[np.ndarray, "N D"]
    cluster: Int[np.ndarray, " N"]
    sizes: list[int]
    labels: Shaped[np.ndarray, " N"] | None
    junk: int = 0  # number of images marked as junk, which are left out


def evaluate(
    run: Annotated[Path, FINISHED_RUN],
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE | folders", help="A CSV with columns image,label, or folders, as for `propos run`."),
    ] = None,
    knn: Annotated[bool, typer.Option("--knn", help="Classify embeddings by their nearest neighbours.")] = False,
    linear: Annotated[
        Literal["paper", "fast"] | None,
        typer.Option(help="Train a linear classifier on backbone features: of random crops (paper), or fixed (fast)."),
    ] = None,
    psa: Annotated[
        bool,
        typer.Option("--psa-preservation", help="Measure how often sampled neighbours keep the class of their image."),
    ] = False,
    test: Annotated[
        str | None, typer.Option(help="Other images to test on: assigned to the run's clusters and scored.")
    ] = None,
    neighbours: Annotated[int | None, typer.Option(help="Number of neighbours (default: 20).")] = None,
    clusters: Annotated[
        int | None, typer.Option("-k", help="Cluster the run's embeddings into this many clusters, and score those.")
    ] = None,
    snapshot: Annotated[
        int | None, typer.Option(metavar="EPOCH", help="Evaluate the weights kept after this epoch (keep_epochs).")
    ] = None,
    sigma: Annotated[float | None, typer.Option(help="σ of the sampled neighbours (default: the run's).")] = None,
    optimiser: Annotated[Literal["sgd", "lars"], typer.Option(help="Optimiser of the linear classifier.")] = "sgd",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score a run: against labels if there are any, by the shape of its clusters, and by its network's features."""
    from propos.common.errors import InputError
    from propos.runs import Run

    folder = Run.open(run)
    folder.refuse_all_junk()
    by_network = knn or linear is not None or psa
    some = test is None and not by_network  # enough for the scores
    known, taken = _labels(folder, labels, some)
    measures: dict[str, Measure] = {}
    if sigma is not None and not 0 <= sigma < math.inf:
        raise InputError(f"--sigma {sigma}: choose 0 or more")
    if known is None and by_network:
        raise InputError(f"{run}: has no labels, which this measure needs: give --labels FILE")
    for note in folder.notes_on_edits():
        _warn(note)
    found = _found(folder, known)
    if test is not None or by_network or clusters is not None or snapshot is not None:
        from propos.cli import measures as network_measures
        from propos.cli.eval_target import EvalTarget

        with ExitStack() as opened:
            by_folder = labels == FOLDERS or folder.config.labels == FOLDERS
            subject = EvalTarget(folder, known, test, device, opened, snapshot, clusters, by_folder)
            if (new := subject.clustering) is not None:
                sizes = new.labels.bincount().tolist()
                found = Found(subject.own_embeddings.cpu().numpy(), new.labels.numpy(), sizes, known)
            if test is not None and (subject.test_images.labels is not None or not by_network):
                measures["test clusters"] = network_measures.prototypes(subject)
            if knn:
                measures["knn_accuracy"] = network_measures.knn(subject, neighbours)
            if linear is not None:
                measures["linear_accuracy"] = network_measures.linear(subject, linear, optimiser)
            if psa:
                measures["psa_preservation"] = network_measures.preservation(subject, neighbours, sigma)
    result = _scores(found)
    if as_json:
        typer.echo(json.dumps({**result, **{k: v for m in measures.values() for k, v in m.numbers.items()}}))
        return
    if taken is not None:
        say(f"Labels: {taken}.")
    _print(result, found.embeddings.shape[1])
    for name, measure in measures.items():
        typer.echo(f"{name:16} {measure.line}")


def _labels(run: Run, given: str | None, some: bool) -> tuple[Shaped[np.ndarray, " N"] | None, FolderLabels | None]:
    """Return the labels of a run's images, and a description of the class folders if they are used."""
    import numpy as np

    from propos.common.errors import InputError
    from propos.data import folder_labels
    from propos.runs import read_label_file

    images = run.table.images
    if given is None:
        return run.table.label, None
    if given != FOLDERS:
        return read_label_file(Path(given), images, _warn, some), None
    taken = folder_labels(images)
    if not any(taken.classes):
        raise InputError(f"--labels {FOLDERS}: the images of {run.path} are not in class folders: give a CSV")
    return np.array(taken.classes), taken


def _warn(text: str) -> None:
    say(f"warning: {text}", err=True)


def _found(run: Run, known: Shaped[np.ndarray, " N"] | None) -> Found:
    """Return a run's corrected clusters, without junk."""
    corrected = run.corrected
    sizes = [len(cluster.members) for cluster in corrected.clusters]
    if not corrected.junk.any():
        return Found(run.embeddings, corrected.table.cluster, sizes, known)
    kept = ~corrected.junk
    labels = None if known is None else known[kept]
    return Found(run.embeddings[kept], corrected.table.cluster[kept], sizes, labels, int(corrected.junk.sum()))


def _scores(found: Found) -> Result:
    import numpy as np

    from propos.evaluation import scores, uniformity_std
    from propos.evaluation.silhouette import silhouette

    cluster, sizes = found.cluster, found.sizes
    result: Result = dict.fromkeys(("nmi", "ami", "ari", "accuracy"))
    if found.labels is not None:
        labelled = np.array([label is not None for label in found.labels], dtype=bool)
        result |= scores(found.labels[labelled], cluster[labelled])
        if len(np.unique(cluster[labelled])) == 1:  # agreement of two partitions; one cluster is none
            result |= dict.fromkeys(("nmi", "ami", "ari"))
    several = sum(size > 0 for size in sizes) > 1
    return result | {
        "silhouette": silhouette(found.embeddings, cluster) if several else None,
        "uniformity_std": uniformity_std(found.embeddings),
        "imbalance_ratio": min(sizes) / max(sizes),
        "n_clusters": len(sizes),
        "n_images": len(cluster),
        **({"n_junk": found.junk} if found.junk else {}),
    }


def _print(result: Result, dimension: int) -> None:
    notes = {
        "silhouette": "  (1: clusters far apart; 0: they touch)",
        "uniformity_std": f"  (spread evenly: {1 / math.sqrt(dimension):.4f}; collapsed: 0)",
    }
    for key, value in result.items():
        if value is None:
            unlabelled = key != "silhouette" and result["accuracy"] is None
            text = "–  (no labels: give --labels FILE)" if unlabelled else "–  (one cluster has none)"
        else:
            text = (f"{value:,}" if isinstance(value, int) else f"{value:.4f}") + notes.get(key, "")
        typer.echo(f"{key:16} {text}")
