"""A pretrained network that nobody trained: weights drawn at random, and pictures it can tell apart all the same."""

import numpy as np
import torch
from PIL import Image

from propos.networks.efficientnet import LITE_SHAPES, EfficientNetLite
from propos.networks.norm import BatchNorm

COLOURS = {"green": (40, 160, 60), "red": (190, 50, 40), "blue": (40, 70, 200)}


def random_weights(path, seed=0, photos=None):
    """Write a state dict of EfficientNet-Lite0 to a file; its batch norms may have seen square pictures of a folder.

    Otherwise its outputs for different pictures hardly differ: enough to distinguish them, too little to learn from.
    """
    torch.manual_seed(seed)
    network = EfficientNetLite(LITE_SHAPES["efficientnet-lite0"])
    if photos is not None:
        pixels = np.stack([np.asarray(Image.open(file))[16:240, 16:240] for file in sorted(photos.rglob("*.png"))])
        for module in network.modules():
            if isinstance(module, BatchNorm):
                module.momentum = 1.0
        with torch.no_grad():
            network((torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2) - 127) / 128)
    torch.save(network.state_dict(), path)
    return path


def pictures(folder, each=8, width=96, height=72):
    """Write colour pictures as noisy as photographs into a folder for each of three colours."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for number in range(each):
            pixels = np.array(colour) + rng.normal(0, 25, (height, width, 1)) + rng.normal(0, 8, (height, width, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name / f"{number}.png")
    return folder
