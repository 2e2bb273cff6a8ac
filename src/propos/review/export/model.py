"""Export of a run as a model: weights, settings, prototypes, corrections and a card; ProPos.load reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from propos.common.plurals import counted
from propos.review.promise import promise_of
from propos.review.report.settings_text import describe_settings
from propos.runs import Run, write_atomically

NEEDED = (
    "config.yaml",
    "model.safetensors",
    "backbone.safetensors",
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
    """Copy the files that loading needs, and write the card and the settings as the Hugging Face Hub expects them."""
    for name in NEEDED:
        if (run.path / name).exists():
            shutil.copyfile(run.path / name, out / name)
    settings = json.dumps({"library_name": "propos", **run.config.flat()}, indent=2, default=str)
    write_atomically(out / "config.json", f"{settings}\n".encode())
    write_atomically(out / "README.md", card(run).encode())
    return len(run.corrected.clusters)


def card(run: Run) -> str:
    """Return the model card: settings, data, scores and origin of the weights."""
    corrected = run.corrected
    edited = f", corrected by hand with {counted(len(run.edits.edits), 'edit')}" if corrected.edited else ""
    facts = describe_settings(run.config, run.info, len(run.table.images), corrected)
    facts.append(("Labels", str(promise_of(run))))
    weights = "continued from another run" if run.info.earlier else "trained from scratch"
    if run.info.start is None:
        facts.append(("Weights", weights))
    return "\n".join(
        [
            *("---", "library_name: propos", "pipeline_tag: image-feature-extraction", "tags:", "- image-clustering"),
            *("---", "", "# Image clusters", ""),
            f"{counted(len(corrected.clusters), 'cluster')} of {counted(len(run.table.images), 'image')}{edited}.",
            "The images are not part of it.",
            "",
            *_listed("Training", [f"{name}: {_plain(words)}" for name, words in facts]),
            *_listed("Agreement with labels at the end of training, before corrections", _scores(run)),
            *_listed(
                "Clusters with names",
                [
                    f"{_plain(each.name)} ({counted(len(each.members), 'image')})"
                    for each in corrected.clusters
                    if each.name
                ],
            ),
            *("```python", "from propos import ProPos", "", 'model = ProPos.load("this-folder")'),
            *('model.predict("new-images/")', "```", ""),
        ]
    )


def _scores(run: Run) -> list[str]:
    measures = (run.history[-1].get("measures") or {}) if run.history else {}
    return [f"{name}: {measures[name]:.4f}" for name in SCORES if isinstance(measures.get(name), float)]


def _listed(heading: str, lines: list[str]) -> list[str]:
    return [f"{heading}:", "", *(f"- {line}" for line in lines), ""] if lines else []


def _plain(name: str) -> str:
    """Return a name escaped for Markdown."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+-.!|&~" else letter for letter in name)
