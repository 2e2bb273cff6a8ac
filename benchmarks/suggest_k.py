"""Ways to choose K, on the embeddings of a run when PSL would start, compared with the true number of classes.

Each source is trained as `propos run` would train it without -k. Besides the two scores that are used, AutoProPos's
rule, prediction strength, the eigengap of a graph of neighbours and HDBSCAN say what they would have chosen. Labels
only score.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from sklearn.cluster import HDBSCAN
from torch import Tensor

from propos.cli.memory import keep_freed_memory
from propos.clustering import SUGGEST, Suggestion, assign, spherical_kmeans
from propos.data import Source, cache_side, find_source
from propos.data.arrays import ArraySource
from propos.evaluation import ami
from propos.methods import complete_sections
from propos.runner.recipes import build_recipe
from propos.training import Silent, clusters_needed, prepare
from propos.training.e_step import current_embeddings
from propos.training.features import prepare_inputs
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.pretrained_init import initialise_from_pretrained
from propos.training.state import first_state

RANGE = (2, 40)
NEIGHBOURS = 10
SPECTRAL_POINTS = 2000
CASES = {
    "digits": ("digits", 1797),
    "fashion-mnist": ("small-grey", 3000),
    "imagenette-160": ("photos", 1200),
    "imagenette-160, features": ("pretrained", 1200),
}


def open_case(name: str, root: Path, side: int) -> Source:
    """Open the first images of a source, with labels."""
    if name.startswith("imagenette-160"):
        return find_source(str(root / "imagenette-160" / "train"), labels="folders").open(side)
    source = find_source(name, data=root).open(side)
    assert source.labels is not None
    count = CASES[name][1]
    images = source.batch(np.arange(count)).transpose(0, 2, 3, 1)
    return ArraySource(images, source.labels[:count], name, source.black, source.white)


def embeddings_before_scattering(name: str, seed: int, root: Path) -> tuple[Tensor, Int[np.ndarray, " N"]]:
    """Train the part of a run that needs no clusters; return its embeddings and the labels."""
    config = build_recipe(CASES[name][0]).with_settings({"seed": seed, "suggest.range": RANGE})
    source = open_case(name, root, cache_side(config.views))
    config = prepare(complete_sections(config), source)
    source = prepare_inputs(config, source, torch.device("cpu"), Silent().show_task)
    learner = build_learner(config, source, torch.device("cpu"))
    state = first_state(learner)
    initialise_from_pretrained(learner, source)
    for _ in range(clusters_needed(config)):
        for batch in epoch_order(config.seed, state.epoch, learner.schedule, None):
            m_step(learner, source, batch, state)
            state.step += 1
        state.next_epoch()
    labels = np.unique(np.asarray(source.labels), return_inverse=True)[1]
    return F.normalize(current_embeddings(learner, source, state.epoch), dim=1), labels


def kept_embeddings(name: str, seed: int, root: Path, keep: Path | None) -> tuple[Tensor, Int[np.ndarray, " N"]]:
    """Return what an earlier call left, or train and leave it."""
    path = None if keep is None else keep / f"{name}-{seed}.npz"
    if path is not None and path.exists():
        with np.load(path) as found:
            return torch.from_numpy(found["points"]), found["labels"]
    points, labels = embeddings_before_scattering(name, seed, root)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, points=points.numpy(), labels=labels)
    return points, labels


def prediction_strength(points: Float[Tensor, "N D"], clusters: int, generator: torch.Generator) -> float:
    """Return the worst cluster's share of pairs, of one half, that the other half's clusters keep together."""
    here, there = torch.randperm(len(points), generator=generator).tensor_split(2)
    own = spherical_kmeans(points[here], clusters, 4, generator).labels.numpy()
    other = assign(points[here], spherical_kmeans(points[there], clusters, 4, generator).centres)[0].numpy()
    return min(_pairs_together(other[own == cluster]) for cluster in range(clusters))


def _pairs_together(labels: Int[np.ndarray, " n"]) -> float:
    counts = np.bincount(labels)
    return float((counts * (counts - 1)).sum() / max(len(labels) * (len(labels) - 1), 1))


def eigengap(points: Float[Tensor, "N D"]) -> int:
    """Return the number of clusters after which the graph's smallest eigenvalues make their largest jump."""
    cosines = (points @ points.T).fill_diagonal_(-2)
    near = cosines.topk(NEIGHBOURS, dim=1).indices.numpy()
    rows = np.repeat(np.arange(len(points)), NEIGHBOURS)
    graph = csr_matrix((np.ones(rows.size), (rows, near.ravel())), (len(points), len(points)))
    graph = graph + graph.T
    scale = diags(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    values = np.sort(1 - eigsh(scale @ graph @ scale, RANGE[1] + 1, which="LA", return_eigenvectors=False))
    return int(np.diff(values)[1:].argmax()) + 2


def timed_suggestion(rule: str, points: Tensor, seed: int) -> tuple[Suggestion, float]:
    """Return what a rule suggests, and the processor's seconds that it took."""
    begin = time.process_time()
    found = SUGGEST[rule](points, *RANGE, torch.Generator().manual_seed(seed))
    return found, time.process_time() - begin


def report(name: str, seed: int, root: Path, keep: Path | None) -> None:
    """Print what each way chooses for a source."""
    points, labels = kept_embeddings(name, seed, root, keep)
    found, seconds = timed_suggestion("stability", points, seed)
    autopropos, longer = timed_suggestion("autopropos", points, seed)
    generator = torch.Generator().manual_seed(seed)
    strengths = [np.mean([prediction_strength(points, k, generator) for _ in range(3)]) for k in found.tried]
    dense = HDBSCAN(min_cluster_size=max(5, len(points) // 100), copy=True).fit(points.numpy()).labels_
    clusters = spherical_kmeans(points, found.chosen, 10, generator).labels.numpy()
    truly = spherical_kmeans(points, len(np.unique(labels)), 10, generator).labels.numpy()
    rows = {
        "true classes": len(np.unique(labels)),
        "suggested": found.chosen,
        "largest product": found.tried[int(np.argmax(np.prod(list(found.scores.values()), axis=0)))],
        "silhouette alone": found.tried[int(np.argmax(found.scores["silhouette"]))],
        "stability alone": found.tried[int(np.argmax(found.scores["stability"]))],
        "AutoProPos": autopropos.chosen,
        "prediction strength": found.tried[int(np.argmax(strengths))],
        "eigengap": eigengap(points[:SPECTRAL_POINTS]),
        "HDBSCAN": int(dense.max()) + 1,
        "AMI of the suggested": round(ami(labels, clusters), 3),
        "AMI of the true": round(ami(labels, truly), 3),
        "seconds": round(seconds, 1),
        "AutoProPos's seconds": round(longer, 1),
    }
    print(f"{name} seed {seed}: " + ", ".join(f"{key} {value}" for key, value in rows.items()), flush=True)
    for each in (found, autopropos):
        print("  " + each.why.replace("\n", "\n  "), flush=True)


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("PROPOS_DATA", "../shared/data"))
    parser.add_argument("--keep", type=Path, help="keep trained embeddings in this folder and take them from there")
    arguments = parser.parse_args()
    keep_freed_memory()  # as every command does
    for name in arguments.names:
        for seed in range(arguments.seeds):
            report(name, seed, Path(arguments.data), arguments.keep)


if __name__ == "__main__":
    main()
