"""Tiny-ImageNet: photographs of 64 × 64 pixels in class folders, validation by an annotations file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from propos.common.errors import InputError
from propos.data.files.listing import Listing
from propos.data.published.layout import class_folders, missing, photographs

SIDE = 64


def list_tiny(name: str, folder: Path, splits: tuple[str, ...]) -> Listing:
    """List the photographs of these splits with their classes."""
    readers = {"train": _train, "val": _val}
    return Listing(folder, [row for split in splits for row in readers[split](name, folder)])


def _train(name: str, folder: Path) -> Iterable[tuple[str, str | None]]:
    for label in class_folders(name, folder / "train"):
        if not (folder / "train" / label / "images").is_dir():
            raise missing(name, folder / "train" / label / "images")
        yield from photographs(folder, f"train/{label}/images", label)


def _val(name: str, folder: Path) -> Iterable[tuple[str, str | None]]:
    path = folder / "val" / "val_annotations.txt"
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise missing(name, path) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text: fetch it again") from None
    for number, line in enumerate(lines, 1):
        file, _, rest = line.partition("\t")
        label = rest.partition("\t")[0]
        if not file or "/" in file or not label:
            raise InputError(f"{path}: line {number} is not a file name and a class separated by a tab: fetch it again")
        yield f"val/images/{file}", label
