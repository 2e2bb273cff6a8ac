"""A network of the Hugging Face hub as files: its description, its model card, and its weights, read safely."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from propos.common.errors import InputError, shown
from propos.common.plain import parse_json, parse_yaml, read_text
from propos.config.description import Description, Preparation

WEIGHTS, CONFIG, PROCESSOR, CARD = "model.safetensors", "config.json", "preprocessor_config.json", "README.md"
TOKENIZER = "tokenizer.json"  # of networks that read
FILES = (CONFIG, PROCESSOR, CARD, TOKENIZER, WEIGHTS)
LARGEST = 1.5e9  # parameters of the part that sees: six gigabytes of memory
# Of networks that see and read, only the part that sees is used.
_READS = ("text_model.", "text_projection.", "logit_")
_INSIDE = {"clip": "clip_vision_model", "siglip": "siglip_vision_model"}
_FILTERS = {2: "bilinear", 3: "bicubic"}


def describe_folder(folder: Path, kinds: Mapping[str, object], trained_on: str | None) -> Description:
    """Return the description of a network in a folder of the hub's layout; its model card gives its origin."""
    config = read_json(folder / CONFIG)
    kind = str(config.get("model_type"))
    architecture = config
    if kind in _INSIDE:
        architecture = {**checked_mapping(config.get("vision_config", {}), str(folder / CONFIG))}
        if "projection_dim" in config:
            architecture["projection_dim"] = config["projection_dim"]
        kind = _INSIDE[kind]
    if kind not in kinds:
        raise InputError(
            f"{folder / CONFIG}: model_type {shown(kind)} is not one whose features are used: "
            f"choose a network of type {', '.join(sorted({*kinds, *_INSIDE}))}"
        )
    card = _front_matter(folder / CARD)
    sets = card.get("datasets")
    listed = ", ".join(map(str, sets)) if isinstance(sets, list) and sets else None
    licence = _line(card.get("license_name") or card.get("license"))
    plain = {key: value for key, value in architecture.items() if isinstance(value, str | int | float | bool)}
    return Description(kind, plain, _processor(folder), trained_on or _line(listed), licence)


def _processor(folder: Path) -> Preparation:
    """Read how the images are prepared: transformers 5 writes the processor of CLIP into a file of another name."""
    path, other = folder / PROCESSOR, folder / "processor_config.json"
    if not path.exists() and other.exists():
        path, given = other, checked_mapping(read_json(other).get("image_processor", {}), str(other))
    else:
        given = read_json(path)
    size, crop = given.get("size"), given.get("crop_size")
    crops = bool(given.get("do_center_crop", False))
    short, whole = _side(size, "shortest_edge"), _side(size, "height")
    side = _side(crop, "height") if crops else whole
    if given.get("do_resize") is False or side is None or (crops and short is None):
        raise InputError(
            f"{path}: images are not resized to a square (size {shown(size)}, crop_size {shown(crop)}): "
            "such a network cannot be used"
        )
    if abs(float(given.get("rescale_factor", 1 / 255)) - 1 / 255) > 1e-6 or given.get("do_rescale") is False:
        raise InputError(f"{path}: rescale_factor is not 1/255: such a network cannot be used")
    mean, std = tuple(given.get("image_mean") or (0.0,) * 3), tuple(given.get("image_std") or (1.0,) * 3)
    if given.get("do_normalize") is False:
        mean, std = (0.0,) * 3, (1.0,) * 3
    stated = {"side": side, "short": short if crops else None, "mean": mean, "std": std}
    return Preparation.checked({**stated, "resample": _FILTERS.get(given.get("resample", 3))}, str(path))


def _side(size: Any, key: str) -> int | None:
    """Return a side of a processor's size: older files give a number, newer ones name it."""
    if isinstance(size, Mapping):
        if key == "height" and size.get("height") != size.get("width"):
            return None
        size = size.get(key)
    return size if isinstance(size, int) else None


def read_weights(folder: Path, reads: bool = False) -> tuple[dict[str, Tensor], str]:
    """Read the tensors of the part that sees, or of the one that reads, and the hash of the file.

    They have their published names.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"{folder}: {_what_instead(folder)}")
    try:
        with safetensors.safe_open(path, "pt") as held:
            names = [name for name in held.keys() if name.startswith(_READS) == reads]  # noqa: SIM118 - no mapping
            total = sum(_elements(held.get_slice(name).get_shape()) for name in names)
            if total > LARGEST:
                raise InputError(
                    f"{path}: contains {total / 1e9:.1f} billion parameters; networks of up to {LARGEST / 1e9:.1f} "
                    "billion can be used: choose a smaller one"
                )
            state = {name: held.get_tensor(name) for name in names}
    except InputError:
        raise
    except Exception as error:  # any error of the reader
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(f"{path}: contains no weights that can be read ({words}): download it again") from None
    state = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}
    broken = [name for name, tensor in state.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        raise InputError(f"{path}: {shown(broken[0], quoted=False)} contains NaN or infinity: download the file again")
    with path.open("rb") as file:
        return state, hashlib.file_digest(file, "sha256").hexdigest()


def _what_instead(folder: Path) -> str:
    """Say what a folder without weights that can be read contains."""
    if not folder.is_dir():
        return "is not a folder: give one with config.json, preprocessor_config.json and model.safetensors"
    if (folder / f"{WEIGHTS}.index.json").exists():
        return "its weights are split over several files, which is not supported: choose a smaller network"
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt*")):
        return (
            "contains no model.safetensors, only pickled weights, which could run code and are not read: convert them "
            "with save_pretrained of transformers"
        )
    return "contains no model.safetensors: copy the whole folder of the network"


def _elements(shape: list[int]) -> int:
    total = 1
    for each in shape:
        total *= each
    return total


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a file of keys and values."""
    if not path.is_file():
        raise InputError(f"{path}: is missing: copy the whole folder of the network")
    return checked_mapping(parse_json(read_text(path), str(path)), str(path))


def checked_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Return keys and values, or refuse anything else."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: expected keys and values, found {type(value).__name__}")
    return value


def _front_matter(path: Path) -> Mapping[str, Any]:
    """Return the metadata of a model card; none where it cannot be read."""
    try:
        _, _, rest = read_text(path, 1_000_000).partition("---\n")
        found = parse_yaml(rest.partition("\n---")[0], str(path))
    except InputError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _line(value: Any) -> str:
    """Return a text of a model card on one line."""
    text = " ".join(str(value).split())[:200] if isinstance(value, str) else ""
    return text if text.isprintable() and text else "unknown"
