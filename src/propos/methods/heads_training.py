"""What methods share that train cluster heads on a trained network."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import nearest_neighbours
from propos.methods.base import AllImages


def heads_training(lr: float) -> dict[str, Any]:
    """Return the `train` settings of such a stage: Adam at a constant rate."""
    return {"optimiser": "adam", "lr": lr, "schedule": "constant", "warmup": 0, "weight_decay": 1e-4}


def neighbours_and_itself(points: Float[Tensor, "N D"], count: int, images: AllImages) -> Int[Tensor, "n count+1"]:
    """Return the nearest neighbours of this process's images by the cosine of unit vectors, the image itself first."""
    others = nearest_neighbours(points, min(count, len(points) - 1), images.mine)
    own = torch.arange(images.mine.start, images.mine.stop, device=others.device)
    return torch.cat([own[:, None], others], dim=1)
