"""Pretrained features of labelled sets, computed once and kept in a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float, Int


def kept_features(name: str, folder: Path) -> tuple[Float[np.ndarray, "N F"], Int[np.ndarray, " N"]]:
    """Return the features of a set's images and their labels' numbers, as uneven.py computes them."""
    path = folder / f"{name}.npz"
    if not path.exists():
        from uneven import PHOTOGRAPHS, looked_at

        folder.mkdir(parents=True, exist_ok=True)
        features, labels = looked_at(name, folder / PHOTOGRAPHS)
        np.savez(path, features=features, labels=labels)
    kept = np.load(path)
    return kept["features"], kept["labels"]


def evened(features: Float[np.ndarray, "N F"], components: int = 64, power: float = 0.5) -> Float[np.ndarray, "N C"]:
    """Return unit vectors along the main directions, as the recipe for photographs evens them out."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    centred = (unit - unit.mean(axis=0)).astype(np.float64)
    spreads, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    order = np.argsort(-spreads)[: min(components, len(features) - 1)]
    points = centred @ vectors[:, order] / np.sqrt(spreads[order]) ** power
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32)
