"""The corrections of an earlier run, as the run that continues it reads them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from propos.distributed import gather, share
from propos.runs import Confirm, CorrectedRun, Describe, Edit, Junk, Rename, rows_of

FREE, EXCLUDED = -1, -2  # in place of a cluster: training assigns the image; the image takes no part


@dataclass(frozen=True)
class Corrections:
    """Images that are fixed in a cluster or excluded, and names and descriptions of clusters."""

    fixed: Int[Tensor, " N"]  # the cluster that a person put an image into, FREE or EXCLUDED
    names: Mapping[int, str]  # by the clusters' numbers
    descriptions: Mapping[int, str]
    part: Int[Tensor, " N"] | None = None  # the part of a merged cluster that an image was in; −1: none
    whole: Int[Tensor, " P"] | None = None  # the merged cluster of each part

    @property
    def included(self) -> Bool[Tensor, " N"]:
        """Which images are trained on and clustered: all that are not excluded."""
        return self.fixed != EXCLUDED

    @property
    def left_out(self) -> int:
        """The number of excluded images."""
        return int((self.fixed == EXCLUDED).sum())

    @property
    def fixed_count(self) -> int:
        """The number of images that are fixed in a cluster."""
        return int((self.fixed >= 0).sum())

    @property
    def hash(self) -> str:
        """A hash of the corrections."""
        packed = self.packed()
        merged = b"".join(packed[name].numpy().tobytes() for name in ("part", "whole") if name in packed)
        return hashlib.blake2b(packed["fixed"].numpy().tobytes() + bytes(packed["texts"].tolist()) + merged).hexdigest()

    def edits(self, images: Sequence[str]) -> tuple[Edit, ...]:
        """Return the edits that make the same corrections in the run that learnt from them, given its images' names."""
        fixed = self.fixed.numpy()
        edits: list[Edit] = [
            *(Rename(v=1, id=f"from-name-{number}", op="rename", cluster=number, name=name)
              for number, name in self.names.items()),
            *(Describe(v=1, id=f"from-text-{number}", op="describe", cluster=number, text=text)
              for number, text in self.descriptions.items()),
        ]  # fmt: skip
        held, junk = (
            tuple(images[row] for row in np.flatnonzero(which).tolist()) for which in (fixed >= 0, fixed == EXCLUDED)
        )
        if held:
            edits.append(Confirm(v=1, id="from-confirmed", op="confirm", images=held))
        if junk:
            edits.append(Junk(v=1, id="from-junk", op="junk", images=junk))
        return tuple(edits)

    def packed(self) -> dict[str, Tensor]:
        """Return the corrections as tensors."""
        texts = json.dumps([list(self.names.items()), list(self.descriptions.items())]).encode()
        packed = {"fixed": self.fixed, "texts": torch.frombuffer(bytearray(texts), dtype=torch.uint8)}
        if self.part is not None and self.whole is not None:
            packed |= {"part": self.part, "whole": self.whole}
        return packed

    @classmethod
    def unpacked(cls, tensors: Mapping[str, Tensor]) -> Corrections | None:
        """Return the corrections that were packed; None where there are none. Raises ValueError for other tensors."""
        if "fixed" not in tensors:
            return None
        try:
            names, descriptions = (dict(pairs) for pairs in json.loads(bytes(tensors["texts"].tolist())))
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError("no names") from error
        if ("part" in tensors) != ("whole" in tensors):
            raise ValueError("parts of no cluster")
        return cls(tensors["fixed"], names, descriptions, tensors.get("part"), tensors.get("whole"))


@dataclass(frozen=True)
class LocalCorrections:
    """The corrections of this process's share of the images, as an E-step applies them."""

    images: int  # of all processes
    fixed: Int[Tensor, " n"]  # as in `Corrections`, of this process's images
    none: bool  # whether there are no corrections: every image is included and free

    @classmethod
    def of(cls, corrections: Corrections | None, images: int, device: torch.device) -> LocalCorrections:
        """Return this process's share of the corrections, if there are any."""
        local = share(images)
        if corrections is None:
            return cls(images, torch.full((local.stop - local.start,), FREE, device=device), none=True)
        return cls(images, corrections.fixed[local].to(device), none=False)

    @property
    def included(self) -> Bool[Tensor, " n"]:
        """Which images are not excluded."""
        return self.fixed != EXCLUDED

    def select(self, rows: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "p ..."]:
        """Return the rows of the included images."""
        return rows if self.none else rows[self.included.nonzero()[:, 0]]

    def apply(self, clusters: Int[Tensor, " b"], rows: slice) -> Int[Tensor, " b"]:
        """Return the clusters of some of the images, with fixed images in the clusters that they are fixed in."""
        fixed = self.fixed[rows]
        return torch.where(fixed >= 0, fixed, clusters)

    def gather_labels(self, labels: Int[Tensor, " p"]) -> Int[Tensor, " N"]:
        """Return the labels of all processes' images from those of this process's included ones; −1 if excluded."""
        if not self.none:
            labels = labels.new_full((len(self.fixed),), -1).index_copy(0, self.included.nonzero()[:, 0], labels)
        return gather(labels, self.images)


def numbers_of(corrected: CorrectedRun) -> Int[np.ndarray, " K"]:
    """Return the new number of each cluster of a corrected run: its id where that is below K, else a free number."""
    ids = corrected.prototypes.ids
    kept = ids < len(ids)
    free = np.setdiff1d(np.arange(len(ids)), ids[kept])
    numbers = ids.copy()
    numbers[~kept] = free
    return numbers


def renumbered(corrected: CorrectedRun) -> dict[int, int]:
    """Return the new numbers, by id, of the clusters of a corrected run that cannot keep their ids."""
    pairs = zip(corrected.prototypes.ids.tolist(), numbers_of(corrected).tolist(), strict=True)
    return {id_: number for id_, number in pairs if id_ != number}


def corrections_of(
    corrected: CorrectedRun, trained: Int[np.ndarray, " N"], rows: Int[np.ndarray, " M"]
) -> tuple[Int[np.ndarray, " M"], Corrections | None]:
    """Return the cluster's number of each image, −1 where it has none, and the corrections.

    `trained` are the clusters before corrections; `rows` are the images' rows in the corrected run's table, −1 for new
    images.
    """
    numbers, table = numbers_of(corrected), corrected.table
    sorted_in = ~corrected.junk
    number = np.full(len(table.cluster) + 1, FREE)  # the last entry is for new images
    number[:-1][sorted_in] = numbers[rows_of(table.cluster[sorted_in], corrected.prototypes.ids)]
    if not corrected.edited:
        return number[rows], None
    fixed = np.append(np.where(corrected.junk, EXCLUDED, np.where(corrected.confirmed, number[:-1], FREE)), FREE)
    by_id = dict(zip(corrected.prototypes.ids.tolist(), numbers.tolist(), strict=True))
    names = {by_id[cluster.id]: cluster.name for cluster in corrected.clusters if cluster.name is not None}
    texts = {by_id[each.id]: each.description for each in corrected.clusters if each.description is not None}
    part, whole = (
        None if each is None else torch.from_numpy(each.astype(np.int64)) for each in _parts(corrected, trained, number)
    )
    part = None if part is None else part[rows]  # the last entry is for new images
    return number[rows], Corrections(torch.from_numpy(fixed[rows].astype(np.int64)), names, texts, part, whole)


def _parts(
    corrected: CorrectedRun, trained: Int[np.ndarray, " N"], number: Int[np.ndarray, " N1"]
) -> tuple[Int[np.ndarray, " N1"], Int[np.ndarray, " P"]] | tuple[None, None]:
    """Return the part of a merged cluster that each image is in, −1 for others, and the number of each part's cluster.

    An image that is not fixed and has another cluster than before has it because its cluster was merged into that one,
    or divided by a cut of the tree: then it has a part in each of its clusters.
    """
    cluster = corrected.table.cluster
    free = ~corrected.confirmed & ~corrected.junk
    merged = np.isin(cluster, np.unique(cluster[free & (cluster != trained)]))
    if not merged.any():
        return None, None
    homes = np.unique(np.stack([trained, number[:-1]], axis=1)[merged & free], axis=0)
    part = np.full(len(cluster) + 1, FREE)
    for place, (name, home) in enumerate(homes):
        part[:-1][merged & (trained == name) & (number[:-1] == home)] = place
    whole: Int[np.ndarray, " P"] = homes[:, 1].astype(np.int64)
    return part, whole
