"""Networks of the Hugging Face hub: their names, and where their files are.

`hub:OWNER/NAME` is downloaded by huggingface_hub, whose cache, hashes and offline switch are used as they are;
`hub:FOLDER` is a folder of the same layout. No code of a repository is run, and only safetensors are read.
"""

from __future__ import annotations

import importlib
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from propos.common.errors import InputError, shown
from propos.config import StartSettings
from propos.networks.hub_files import CONFIG, FILES, PROCESSOR, WEIGHTS, describe_folder, read_weights
from propos.networks.hub_models import EXTRA, KINDS, hub_network
from propos.networks.pretrained import Weights, build_with

PREFIX = "hub:"


class Known(NamedTuple):
    """A repository with a short name, its pinned revision, and the images of its weights."""

    repository: str
    revision: str
    trained_on: str


_LVD = "142 million photographs, without labels (LVD-142M)"
_CLIP = "400 million pictures with captions (CLIP)"
SHORT_NAMES = {
    "dinov2-s": Known("facebook/dinov2-small", "ed25f3a31f01632728cabb09d1542f84ab7b0056", _LVD),
    "dinov2-b": Known("facebook/dinov2-base", "f9e44c814b77203eaa57a6bdbbd535f21ede1415", _LVD),
    "dinov2-reg-s": Known("facebook/dinov2-with-registers-small", "0d9846e56b43a21fa46d7f3f5070f0506a5795a9", _LVD),
    # The revision that holds safetensors: the main one has pickled weights alone.
    "clip-b32": Known("openai/clip-vit-base-patch32", "c237dc49a33fc61debc9276459120b7eac67e7ef", _CLIP),
    "clip-l14": Known("openai/clip-vit-large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41", _CLIP),
    "siglip-b16": Known(
        "google/siglip-base-patch16-224",
        "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
        "pictures with captions in English (WebLI)",
    ),
}


def is_hub(name: str | None) -> bool:
    """Return whether a name is that of a network of the hub."""
    return name is not None and (name.startswith(PREFIX) or name in SHORT_NAMES)


def names_network(given: str, start: StartSettings) -> bool:
    """Return whether --start names the network that a run started with."""
    own, network = given.removeprefix(PREFIX), start.network or ""
    if given in SHORT_NAMES:
        return network == f"{PREFIX}{SHORT_NAMES[given].repository}@{SHORT_NAMES[given].revision}"
    if start.weights is not None:
        return Path(own).expanduser().resolve() == Path(start.weights)
    return network == f"{PREFIX}{own}" or network.startswith(f"{PREFIX}{own}@")


def read_hub(name: str, folder: str | Path | None = None) -> Weights:
    """Read a network of the hub: from a folder, else from the hub or its cache."""
    own = name.removeprefix(PREFIX)
    if folder is None and name not in SHORT_NAMES and _is_folder(own):
        folder = Path(own).expanduser()
    if folder is not None:
        folder = Path(folder).resolve()
        return _weights(f"{PREFIX}{folder.name}", folder, str(folder), None)
    known = SHORT_NAMES.get(name)
    repository, _, revision = (known.repository, "", known.revision) if known else own.partition("@")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", repository) is None:
        raise InputError(
            f"--start {shown(name, quoted=False)}: is neither a folder nor a repository: write hub:FOLDER, "
            f"hub:OWNER/NAME, or one of {', '.join(SHORT_NAMES)}"
        )
    snapshot = _download(name, repository, revision)
    seen = {each.repository: each.trained_on for each in SHORT_NAMES.values()}.get(repository)
    return _weights(f"{PREFIX}{repository}@{snapshot.name}", snapshot, None, seen)


def folder_of(start: StartSettings) -> Path:
    """Return the folder with the files of a run's network of the hub: the one it was given, or the hub's own."""
    if start.weights is not None:
        return Path(start.weights)
    assert start.network is not None
    repository, _, revision = start.network.removeprefix(PREFIX).partition("@")
    return _download(start.network, repository, revision)


def _is_folder(own: str) -> bool:
    return own.startswith((".", "/", "~")) or Path(own).is_dir()


def _weights(name: str, folder: Path, origin: str | None, trained_on: str | None) -> Weights:
    if not folder.is_dir():
        raise InputError(f"--start {name}: {folder}: no such folder")
    network = hub_network(name, describe_folder(folder, KINDS, trained_on).to_json())
    state, digest = read_weights(folder)
    weights = Weights(network, state, digest, origin)
    build_with(weights)  # so that weights that do not fit are refused now
    return weights


def _download(name: str, repository: str, revision: str) -> Path:
    """Return the folder of a repository's files in the hub's cache."""
    try:
        hub = importlib.import_module("huggingface_hub")
        absent = importlib.import_module("huggingface_hub.errors").RemoteEntryNotFoundError
    except ModuleNotFoundError as error:
        raise InputError(f"--start {name}: {error.name} is not installed: {EXTRA}") from None
    found = {}
    hub.logging.set_verbosity_error()  # it reports each of its attempts
    try:
        for file in FILES:
            with suppress(absent):  # what is missing is named when it is read
                found[file] = Path(hub.hf_hub_download(repository, file, revision=revision or None))
        return next(iter(found.values())).parent
    except Exception as error:  # any error of the hub, its cache or the network
        first = _first_cause(error)
        words = shown(" ".join(str(first).split()) or type(first).__name__, quoted=False)
        raise InputError(
            f"--start {name}: {repository} could not be downloaded ({words}): connect to huggingface.co, or copy a "
            f"folder with its {CONFIG}, {PROCESSOR} and {WEIGHTS} here and give --start hub:FOLDER"
        ) from None


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that others only pass on: that a host is unknown, or a file is missing."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
