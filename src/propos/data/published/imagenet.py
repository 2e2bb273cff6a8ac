"""ImageNet (ILSVRC 2012) in class folders, and the published subsets of its classes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.data.files.listing import Listing
from propos.data.published.layout import class_folders, missing, photographs

DEVKIT = "ILSVRC2012_devkit_t12"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
TYPICAL = (375, 500)  # height and width of most photographs


@cache
def subset(name: str) -> tuple[str, ...]:
    """Return the classes of a subset, by WordNet number."""
    lists = json.loads(files("propos.data.published").joinpath("imagenet_subsets.json").read_text())
    return tuple(lists[name])


def list_imagenet(name: str, folder: Path, splits: tuple[str, ...], classes: Sequence[str] | None) -> Listing:
    """List the photographs of some classes (None: of all there are) in these splits."""
    return Listing(folder, [row for split in splits for row in _split(name, folder, split, classes)])


def _split(name: str, folder: Path, split: str, classes: Sequence[str] | None) -> Iterable[tuple[str, str | None]]:
    there = class_folders(name, folder / split)
    if split == "val" and not there:
        return _flat(name, folder, classes)
    for label in classes or ():
        if label not in there:
            raise missing(name, folder / split / label)
    return [row for label in classes or there for row in photographs(folder, f"{split}/{label}", label)]


def _flat(name: str, folder: Path, classes: Sequence[str] | None) -> Iterable[tuple[str, str | None]]:
    """List the validation photographs of the official archive, with classes from the devkit."""
    rows = list(photographs(folder, "val", ""))
    truth = _ground_truth(name, folder)
    if len(rows) > len(truth):
        raise InputError(f"{folder / 'val'}: holds {len(rows):,} images, the devkit knows {len(truth):,}")
    labelled = [(path, truth[_number(folder / path, len(truth)) - 1]) for path, _ in rows]
    return [row for row in labelled if classes is None or row[1] in classes]


def _number(path: Path, most: int) -> int:
    """Return the number that ends a validation file's name; the ground truth is in this order."""
    digits = path.stem.rpartition("_")[2]
    if not (digits.isascii() and digits.isdecimal() and 1 <= int(digits) <= most):
        raise InputError(f"{path}: is not named as validation images are, as in ILSVRC2012_val_00000001.JPEG")
    return int(digits)


def _ground_truth(name: str, folder: Path) -> list[str]:
    """Return the class of each validation image, by WordNet number."""
    beside = [folder / DEVKIT / "data", folder.parent / DEVKIT / "data"]
    data = next((path for path in beside if path.is_dir()), beside[0])
    for path in (data / "meta.mat", data / GROUND_TRUTH):
        if not path.is_file():
            raise missing(name, path)
    wordnet = _synsets(data / "meta.mat")
    try:
        return [wordnet[int(line)] for line in (data / GROUND_TRUTH).read_text("ascii").split()]
    except (ValueError, KeyError):
        raise InputError(
            f"{data / GROUND_TRUTH}: contains classes that meta.mat does not have: get the devkit again"
        ) from None


def _synsets(path: Path) -> dict[int, str]:
    from scipy.io import loadmat

    try:
        synsets: Any = loadmat(path, squeeze_me=True, variable_names=["synsets"])["synsets"]
        return {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets}
    except Exception as error:  # a damaged file makes its reader raise anything
        raise InputError(f"{path}: cannot be read as the devkit's list of classes: {error}") from None
