"""Networks of timm, by the names it gives them: an extra, of which nothing is loaded before one of them is named."""

from __future__ import annotations

import difflib
import hashlib
import importlib
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from propos.common.errors import InputError, shown
from propos.networks.pretrained import Pretrained, same_name

PREFIX = "timm/"
EXTRA = "pip install 'propos[timm]'"
# What the tags that timm gives weights say of what these had seen: of several words in a tag all count.
SEEN = {
    "in1k": "1.28 million photographs with the labels of ImageNet's 1,000 classes",
    "in12k": "12 million photographs with the labels of about 12,000 classes of ImageNet",
    "in21k": "14 million photographs with the labels of ImageNet's 21,000 classes",
    "in22k": "14 million photographs with the labels of ImageNet's 22,000 classes",
    "dino": "1.28 million photographs of ImageNet, without labels",
    "lvd142m": "142 million photographs, without labels (LVD-142M)",
    "lvd1689m": "1.7 billion photographs, without labels (LVD-1689M)",
    "openai": "400 million pictures with captions (CLIP)",
    "laion400m": "400 million pictures with captions (LAION)",
    "laion2b": "2 billion pictures with captions (LAION)",
    "webli": "pictures with captions (WebLI)",
}


@cache
def timm_network(name: str) -> Pretrained:
    """Return a network that timm knows, and what it says its weights expect of images."""
    timm, own = _timm(name), name.removeprefix(PREFIX)
    _refuse_unknown(timm, name, own)
    model = _built(own).eval()
    told: Mapping[str, Any] = timm.data.resolve_model_data_config(model)
    channels, height, width = told["input_size"]
    if channels != 3 or height != width:
        raise InputError(
            f"--start pretrained:{name}: sees {width}×{height} with {channels} channels, and not squares in colour: "
            "choose another network"
        )
    about: Mapping[str, Any] = getattr(model, "pretrained_cfg", {})
    return Pretrained(
        name,
        partial(_built, own),
        _pooled_width(name, model, height),
        height,
        (tuple(map(float, told["mean"])), tuple(map(float, told["std"]))),
        same_name,
        crop=float(told["crop_pct"]),
        seen=_seen(str(about.get("tag") or "")),
        licence=str(about.get("license") or "unknown"),
    )


def hub_weights(network: Pretrained) -> tuple[dict[str, Tensor], str]:
    """Return a network's weights as timm gets them from its hub, or kept from before, and their hash."""
    own = network.name.removeprefix(PREFIX)
    try:
        state = _timm(network.name).create_model(own, pretrained=True, num_classes=0).state_dict()
    except Exception as error:  # whatever the hub, the network and the readers of files make of it
        words = shown(" ".join(str(error).split()) or type(error).__name__, quoted=False)
        raise InputError(
            f"--start pretrained:{network.name}: its weights could not be had from the hub ({words}): connect to "
            f"huggingface.co, or get model.safetensors of {PREFIX}{own} there by other means and add --weights FILE"
        ) from None
    digest = hashlib.sha256()
    for key, tensor in sorted(state.items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return dict(state), digest.hexdigest()


def _timm(name: str) -> Any:
    """Load timm, which brings torchvision along."""
    try:
        importlib.import_module("timm.data")
        return importlib.import_module("timm")
    except ModuleNotFoundError as error:
        missing = "timm" if (error.name or "").partition(".")[0] == "timm" else f"{error.name}, which timm needs,"
        raise InputError(f"--start pretrained:{name}: {missing} is not installed: {EXTRA}") from None
    except Exception as error:  # as torchvision raises when it was built for another torch
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(
            f"--start pretrained:{name}: timm cannot be loaded ({words}): install the torchvision that was built for "
            f"torch {torch.__version__}"
        ) from None


def _refuse_unknown(timm: Any, name: str, own: str) -> None:
    architecture, _, tag = own.partition(".")
    known = [str(each) for each in timm.list_pretrained(f"{architecture}.*")]
    if timm.is_model(architecture) and (not tag or own in known):
        return
    near = known[:3] or difflib.get_close_matches(architecture, timm.list_models(), n=3)
    hint = f"did you mean {' or '.join(PREFIX + each for each in near)}?" if near else "see timm.list_pretrained()"
    raise InputError(f"--start pretrained:{shown(name, quoted=False)}: timm has none of this name: {hint}")


def _built(own: str) -> nn.Module:
    """Build a network without a classifier; with values, since timm works some of them out while it builds."""
    with torch.device("cpu"):
        model: nn.Module = _timm(PREFIX + own).create_model(own, pretrained=False, num_classes=0)
    return model


def _pooled_width(name: str, model: nn.Module, side: int) -> int:
    """Return how many numbers a network makes of an image, by showing it one."""
    with torch.inference_mode(), torch.device("cpu"):
        made = model(torch.zeros(1, 3, side, side))
    if not isinstance(made, Tensor) or made.ndim != 2:
        found = f"{tuple(made.shape[1:])} of an image" if isinstance(made, Tensor) else f"a {type(made).__name__}"
        raise InputError(
            f"--start pretrained:{name}: has no pooled output: it makes {found}, and not a row of features: "
            "choose a network that classifies whole images"
        )
    return made.shape[1]


def _seen(tag: str) -> str:
    """Say what weights had seen, as far as timm's tag of them tells."""
    words = tag.lower().split("_")
    known = [text for key, text in SEEN.items() if key in words]
    if known:
        return "; ".join(known)
    return f"what timm calls {tag}" if tag else "unknown"
