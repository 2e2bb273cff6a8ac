"""A run as a model to hand on: weights, settings, prototypes, corrections and a card, loadable with ProPos.load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from propos.runs import Run, write_atomically

NEEDED = (
    "config.yaml",
    "model.safetensors",
    "prototypes.npy",
    "embeddings.npy",
    "clusters.parquet",
    "history.jsonl",
    "edits.jsonl",
    "suggestion.json",
    "run.json",
)
SCORES = ("accuracy", "nmi", "ari", "ami")


def write_model(run: Run, out: Path) -> int:
    """Copy what loading needs, and write the card and the settings as the Hugging Face Hub expects them."""
    for name in NEEDED:
        if (run.path / name).exists():
            shutil.copyfile(run.path / name, out / name)
    settings = json.dumps({"library_name": "propos", **run.config.flat()}, indent=2, default=str)
    write_atomically(out / "config.json", f"{settings}\n".encode())
    write_atomically(out / "README.md", card(run).encode())
    return len(run.corrected.clusters)


def card(run: Run) -> str:
    """Return the model card: what was trained, on what, with which scores and whose weights."""
    config, corrected = run.config, run.corrected
    measures = (run.history[-1].get("measures") or {}) if run.history else {}
    scores = [f"| {name} | {measures[name]:.4f} |" for name in SCORES if isinstance(measures.get(name), float)]
    edited = f", corrected by hand with {len(run.edits.edits):,} edits" if corrected.edited else ""
    named = [
        f"- {_plain(cluster.name)} ({len(cluster.members):,} images)" for cluster in corrected.clusters if cluster.name
    ]
    return "\n".join(
        [
            "---",
            "library_name: propos",
            "pipeline_tag: image-feature-extraction",
            "tags:",
            "- image-clustering",
            "- propos",
            "---",
            "",
            "# Image clusters",
            "",
            f"{len(corrected.clusters):,} clusters of {len(run.table.images):,} images{edited}.",
            "",
            f"- Method: {config.method}, recipe {config.recipe or 'none'}",
            f"- Training: {config.train.epochs:,} epochs, seed {config.seed}",
            f"- Network: {config.network.backbone}, embeddings of {run.embeddings.shape[1]:,} numbers",
            f"- Weights: {'gone on from those of another run' if run.info.earlier else 'trained from scratch'}",
            f"- Images: known by {run.info.source.fingerprint or 'nothing'}; they are not part of this",
            "",
            *(
                ["Agreement with labels when training ended, before any correction:", "", "| score | |", "|---|---|"]
                if scores
                else []
            ),
            *scores,
            *(["", "Clusters with names:", "", *named] if named else []),
            "",
            "```python",
            "from propos import ProPos",
            "",
            'model = ProPos.load("this-folder")',
            'model.predict("new-images/")',
            "```",
            "",
        ]
    )


def _plain(name: str) -> str:
    """Return a name that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+-.!|&~" else letter for letter in name)
