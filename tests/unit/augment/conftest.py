from collections.abc import Callable

import numpy as np
import pytest
import torch

from propos.augment import ViewDraw


@pytest.fixture(scope="session")
def photos() -> Callable[..., torch.Tensor]:
    """Make images with both smooth shading and hard edges, different in every channel."""

    def make(batch: int, channels: int, height: int, width: int) -> torch.Tensor:
        rng = np.random.default_rng(batch + 10 * channels + 100 * height + width)
        down, across = np.mgrid[0:height, 0:width]
        waves = rng.uniform(0.05, 0.9, size=(2, batch, channels, 1, 1))
        smooth = 90 + 80 * np.sin(waves[0] * down + waves[1] * across)
        return torch.from_numpy((smooth + rng.integers(0, 80, smooth.shape)).clip(0, 255).astype(np.uint8))

    return make


@pytest.fixture(scope="session")
def chosen() -> Callable[..., ViewDraw]:
    """Make the choices behind one view of each image: none, but for those given."""

    def make(batch: int = 1, **given: object) -> ViewDraw:
        choices = {
            "box": torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(batch, 4),
            "flip": torch.zeros(batch, dtype=torch.bool),
            "turns": torch.zeros(batch, dtype=torch.long),
            "angle": torch.zeros(batch),
            "brightness": torch.ones(batch),
            "contrast": torch.ones(batch),
            "saturation": torch.ones(batch),
            "hue": torch.zeros(batch),
            "order": torch.zeros((batch, 4), dtype=torch.long),
            "grey": torch.zeros(batch, dtype=torch.bool),
            "blur": torch.zeros(batch),
            "solarise": torch.zeros(batch, dtype=torch.bool),
        }
        for name, value in given.items():
            choices[name] = torch.as_tensor(value, dtype=choices[name].dtype).expand(choices[name].shape)
        return ViewDraw(**{name: value[None] for name, value in choices.items()})

    return make
