"""Class folders: the label of each image by the folder it is in, where train, val and test are splits of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing"})
SHOWN = 3  # classes that are named


@dataclass(frozen=True)
class FolderLabels:
    """The class of each image, and the folders that are splits and therefore part of no class."""

    classes: Sequence[str]
    splits: Sequence[str]

    def __str__(self) -> str:
        """Return in words how folders were read as classes."""
        names = sorted({name or "none" for name in self.classes})
        number = "1 class" if len(names) == 1 else f"{len(names):,} classes"
        words = f"{number} by folder ({', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''})"
        return words + (f"; taken for splits, not for classes: {', '.join(self.splits)}" if self.splits else "")


def folder_labels(images: Iterable[str]) -> FolderLabels:
    """Return the labels of images by their paths: the folder, or the part of it below a split.

    A split is a folder with the usual name of one, where neither it nor a folder above it holds images itself: a class
    may be called "test" too.
    """
    known: dict[str, str] = {}  # one string for each folder
    folders = [known.setdefault(folder, folder) for folder in (image.rpartition("/")[0] for image in images)]
    filled = set(known)
    splits = {folder: _split_above(folder, filled) for folder in filled}
    classes = {folder: folder[len(split) + 1 :] if split else folder for folder, split in splits.items()}
    return FolderLabels([classes[folder] for folder in folders], sorted({*splits.values()} - {""}))


def _split_above(folder: str, filled: set[str]) -> str:
    """Return the innermost split that a folder of images lies in, or nothing."""
    found, parts = "", folder.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if above and above in filled:
            break
        if parts[depth - 1].lower() in SPLITS:
            found = above
    return found
