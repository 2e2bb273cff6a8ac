"""Measurements for figures of single images: maps of embeddings, sampled neighbours, outliers."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from PIL import Image

from propos.data import Source, evenly_spaced, upright
from propos.evaluation import numbered
from propos.methods import settings_of
from propos.methods.seeds import generator
from propos.review.report.layout import lay_out
from propos.runner import open_run_images
from propos.runs import Run
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.paths import ReproducePaths
from propos.training import Model, choose_device

MOST_DOTS = 2_000
INPUTS, SAMPLES = 6, 3
OUTLIERS = 8
THUMB = 64


def final_map(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Lay out the embeddings the run ended with."""
    return {"end": _map(run, run.embeddings)}


def snapshot_maps(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Lay out the embeddings at the kept epochs."""
    return {str(epoch): _map(run, run.snapshot(epoch)) for epoch in sorted(run.snapshots)}


def _map(run: Run, embeddings: Float[np.ndarray, "N D"]) -> dict[str, Any]:
    assert run.table.label is not None
    some = dots(len(embeddings))
    positions = lay_out(embeddings[some], run.table.cluster[some], run.config.seed)
    return {
        "x": positions[:, 0].round(4).tolist(),
        "y": positions[:, 1].round(4).tolist(),
        "class": numbered(run.table.label)[some].tolist(),
        "cluster": run.table.cluster[some].tolist(),
    }


def dots(count: int) -> Int[np.ndarray, " n"]:
    """Return the images, of `count`, that have a dot on a map."""
    return evenly_spaced(count, MOST_DOTS)


def neighbours(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Return some images, the nearest neighbour of each, and the nearest images to three sampled neighbours."""
    epoch = min(run.kept_weights, key=lambda each: abs(each - run.config.train.epochs / 10))
    model = Model.uncorrected(run, choose_device(device), epoch)
    sigma = settings_of(run.config).model_dump()["sigma"]
    draws = generator(run.config.seed, "sampled neighbours")
    with open_run_images(run, paths.root) as source:
        raw = model.online_projections(source).cpu()
        units = F.normalize(raw, dim=1)
        rows = []
        for number in np.linspace(0, len(raw) - 1, INPUTS).round().astype(int).tolist():
            sampled = raw[number] + sigma * torch.randn((SAMPLES, raw.shape[1]), generator=draws)
            wanted = torch.cat([units[number][None], F.normalize(sampled, dim=1)])
            likeness = wanted @ units.T
            likeness[:, number] = -2.0
            rows.append([_thumb(source, each) for each in (number, *likeness.argmax(dim=1).tolist())])
    return {"epoch": epoch, "sigma": sigma, "rows": rows}


def outliers(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Return the images on the map that are furthest from the prototype of their cluster."""
    assert run.table.label is not None
    some = dots(len(run.table.images))
    furthest = run.table.distance[some].argsort()[::-1][:OUTLIERS]
    with open_run_images(run, paths.root) as source:
        rows = [_outlier(run, source, int(some[each])) for each in furthest]
    return {"dots": furthest.tolist(), "rows": rows}


def _outlier(run: Run, source: Source, image: int) -> dict[str, Any]:
    assert run.table.label is not None
    cluster = run.table.cluster[image]
    names, counts = np.unique(run.table.label[run.table.cluster == cluster], return_counts=True)
    return {
        "class": str(run.table.label[image]),
        "among": str(names[counts.argmax()]),
        "distance": round(float(run.table.distance[image]), 3),
        "picture": _thumb(source, image),
    }


def _thumb(source: Source, position: int) -> str:
    """Return an image as a small PNG file in base64."""
    pixels = upright(source, source.batch(np.array([position]))[0], position).transpose(1, 2, 0)
    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0]).convert("RGB")
    image.thumbnail((THUMB, THUMB))
    file = io.BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
