"""The run of the images that a finished run took in: their table and embeddings, with the clusters of that run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import numpy as np
from jaxtyping import Float

from propos.data import Source, fingerprint, select_names
from propos.evaluation.rejection import find_kinds, least_cosine
from propos.runs import ImageTable, Proposal, Rename, Run, RunFolder, as_line, write_atomically, write_proposals
from propos.runs.arrivals import Arrival, Arrivals
from propos.runs.edits import Describe, Edit, Merge, Split
from propos.training.model import BACKBONE

KIND = "new-kind"
WEIGHTS = ("model.safetensors", BACKBONE)


def write_run(run: Run, source: Source, images: Path, log: Arrivals, rows: Mapping[str, int]) -> None:
    """Write the tables of the images that are there, in the order of their source, and propose new kinds."""
    folder, lines = RunFolder(log.folder), [log.lines[row] for row in rows.values()]
    embeddings = log.embeddings()[list(rows.values())]
    new = not (log.folder / "run.json").exists()
    if new:
        _begin(run, folder, images)
    folder.write_skipped([(name, "not processed yet") for name in source.image_names() if name not in rows])
    folder.write_array("embeddings.npy", embeddings)
    folder.write_images(_table(lines))
    taken = select_names(source, list(rows))
    info = {"name": images.name, "root": str(images), "images": len(rows), "fingerprint": fingerprint(taken)}
    # run.json is what makes the folder a run, so it comes last.
    known = {**run.info.plain(), "plan": None} if new else folder.info().plain()
    folder.write_text("run.json", json.dumps({**known, "source": info}, indent=2) + "\n")
    write_proposals(log.folder, KIND, _kinds(run, lines, embeddings))


def _begin(run: Run, folder: RunFolder, images: Path) -> None:
    """Write what does not change: settings, weights, prototypes, and the corrections of the clusters as edits."""
    corrected = run.corrected
    ids = corrected.prototypes.ids
    prototypes = np.zeros((int(ids.max()) + 1, corrected.prototypes.vectors.shape[1]), np.float32)
    prototypes[ids] = corrected.prototypes.vectors
    folder.write_array("prototypes.npy", prototypes)
    for name in WEIGHTS:
        if (run.path / name).exists() and not (folder.path / name).exists():
            _link(run.path / name, folder.path / name)
    folder.write_history(run.history[-1:])
    edits = _edits(run, [number for number in range(len(prototypes)) if number not in ids])
    write_atomically(folder.path / "edits.jsonl", b"".join(as_line(edit) for edit in edits))
    changes = {"source": str(images.absolute()), "clusters": len(prototypes), "labels": None}
    settings = run.config.model_copy(update=changes)
    folder.write_text("config.yaml", settings.to_yaml())


def _edits(run: Run, absent: Sequence[int]) -> Iterable[Edit]:
    """Return the edits that give clusters their names, and remove ids that the corrected run does not have."""
    present = run.corrected.clusters
    if absent:
        yield Merge(v=1, id="from-absent", op="merge", clusters=tuple(absent), into=present[0].id)
    for each in present:
        if each.name is not None:
            yield Rename(v=1, id=f"from-name-{each.id}", op="rename", cluster=each.id, name=each.name)
        if each.description is not None:
            yield Describe(v=1, id=f"from-text-{each.id}", op="describe", cluster=each.id, text=each.description)


def _link(original: Path, copy: Path) -> None:
    """Link a file, or copy it where links are not possible."""
    try:
        os.link(original, copy)
    except OSError:
        shutil.copyfile(original, copy)


def _table(lines: Sequence[Arrival]) -> ImageTable:
    return ImageTable(
        images=[line.image for line in lines],
        cluster=np.array([line.cluster for line in lines], np.int32),
        confidence=np.array([line.confidence for line in lines], np.float32),
        distance=np.array([line.distance for line in lines], np.float32),
    )


def _kinds(run: Run, lines: Sequence[Arrival], embeddings: Float[np.ndarray, "N D"]) -> list[Proposal]:
    """Return groups of rejected images as proposals of new clusters."""
    rejected = np.flatnonzero([line.rejected for line in lines])
    table = run.corrected.table
    groups = find_kinds(embeddings[rejected], least_cosine(table.distance, table.cluster))
    free = count(int(run.corrected.prototypes.ids.max()) + 1)
    return [_proposal([lines[row].image for row in rejected[group]], next(free), len(rejected)) for group in groups]


def _proposal(images: list[str], into: int, rejected: int) -> Proposal:
    edit = Split(v=1, id=f"{KIND}-{into}", op="split", images=tuple(images), into=into)
    evidence = f"{len(images):,} of {rejected:,} images that are far from all clusters are alike, such as {images[0]}"
    return Proposal(id=edit.id, kind=KIND, source="watch", evidence=evidence[:500], edit=edit)
