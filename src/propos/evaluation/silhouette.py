"""The silhouette of a run's clusters; no labels."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int

from propos.clustering.silhouette import cosine_silhouette
from propos.common.errors import InputError


def silhouette(embeddings: Float[np.ndarray, "N D"], clusters: Int[np.ndarray, " N"]) -> float:
    """Return the mean silhouette by cosine distance, in double precision; clusters may have any numbers."""
    present, own = np.unique(clusters, return_inverse=True)
    if len(present) < 2:
        raise InputError("silhouette: the images are all in one cluster; it takes two")
    points = F.normalize(torch.from_numpy(np.asarray(embeddings, dtype=np.float64)), dim=1)
    return cosine_silhouette(points, torch.from_numpy(own), len(present))
