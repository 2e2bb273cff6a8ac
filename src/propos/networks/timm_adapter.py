"""Networks of timm, an optional dependency that is imported only when one of them is named."""

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
# The training data of weights by the words of timm's tag; a tag may have several.
TRAINING_DATA = {
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
    """Return a timm network with the preprocessing that timm states for its weights."""
    timm, own = _timm(name), name.removeprefix(PREFIX)
    _refuse_unknown(timm, name, own)
    model = _built(own).eval()
    data: Mapping[str, Any] = timm.data.resolve_model_data_config(model)
    channels, height, width = data["input_size"]
    if channels != 3 or height != width:
        raise InputError(
            f"--start pretrained:{name}: its inputs are {width}×{height} with {channels} channels, not RGB squares: "
            "choose another network"
        )
    about: Mapping[str, Any] = getattr(model, "pretrained_cfg", {})
    return Pretrained(
        name,
        partial(_built, own),
        _pooled_width(name, model, height),
        height,
        (tuple(map(float, data["mean"])), tuple(map(float, data["std"]))),
        same_name,
        crop=float(data["crop_pct"]),
        trained_on=_training_data(str(about.get("tag") or "")),
        licence=str(about.get("license") or "unknown"),
    )


def hub_weights(network: Pretrained) -> tuple[dict[str, Tensor], str]:
    """Return a network's weights, from timm's hub or its cache, and their hash."""
    own = network.name.removeprefix(PREFIX)
    try:
        state = _timm(network.name).create_model(own, pretrained=True, num_classes=0).state_dict()
    except Exception as error:  # any error of the hub, the network or the readers
        words = shown(" ".join(str(error).split()) or type(error).__name__, quoted=False)
        raise InputError(
            f"--start pretrained:{network.name}: its weights could not be downloaded ({words}): connect to "
            f"huggingface.co, or download model.safetensors of {PREFIX}{own} elsewhere and add --weights FILE"
        ) from None
    digest = hashlib.sha256()
    for key, tensor in sorted(state.items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return dict(state), digest.hexdigest()


def _timm(name: str) -> Any:
    """Import timm, which imports torchvision."""
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
    raise InputError(f"--start pretrained:{shown(name, quoted=False)}: unknown timm network: {hint}")


def _built(own: str) -> nn.Module:
    """Build a network without a classifier, on the CPU: timm computes some values while it builds."""
    with torch.device("cpu"):
        model: nn.Module = _timm(PREFIX + own).create_model(own, pretrained=False, num_classes=0)
    return model


def _pooled_width(name: str, model: nn.Module, side: int) -> int:
    """Return the number of features of a network, measured on an empty image."""
    with torch.inference_mode(), torch.device("cpu"):
        made = model(torch.zeros(1, 3, side, side))
    if not isinstance(made, Tensor) or made.ndim != 2:
        found = f"{tuple(made.shape[1:])} of an image" if isinstance(made, Tensor) else f"a {type(made).__name__}"
        raise InputError(
            f"--start pretrained:{name}: has no pooled output: it returns {found}, not a vector of features: "
            "choose a network that classifies whole images"
        )
    return made.shape[1]


def _training_data(tag: str) -> str:
    """Describe the training data of weights by timm's tag."""
    parts = tag.lower().split("_")
    known = [text for key, text in TRAINING_DATA.items() if key in parts]
    if known:
        return "; ".join(known)
    return f"timm's tag {tag}" if tag else "unknown"
