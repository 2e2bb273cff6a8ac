"""What people corrected in an earlier run, in the terms of the run that learns from it."""

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
from propos.runs import Confirm, Corrected, Describe, Edit, Junk, Rename, rows_of

FREE, LEFT_OUT = -1, -2  # in the place of a cluster: training finds it; the image takes no part


@dataclass(frozen=True)
class Corrections:
    """Where images have to stay, which take no part, and what clusters are called."""

    fixed: Int[Tensor, " N"]  # the number of the cluster a person put an image into, or one of the two above
    names: Mapping[int, str]  # by the clusters' numbers
    descriptions: Mapping[int, str]
    part: Int[Tensor, " N"] | None = None  # where clusters were made one: which of the parts an image was in, or −1
    whole: Int[Tensor, " P"] | None = None  # the number of the cluster that each part is of

    @property
    def taking_part(self) -> Bool[Tensor, " N"]:
        """Which images are trained on and clustered."""
        return self.fixed != LEFT_OUT

    @property
    def left_out(self) -> int:
        """How many images take no part."""
        return int((self.fixed == LEFT_OUT).sum())

    @property
    def held(self) -> int:
        """How many images have to stay where they are."""
        return int((self.fixed >= 0).sum())

    @property
    def hash(self) -> str:
        """What it is known by."""
        packed = self.packed()
        merged = b"".join(packed[name].numpy().tobytes() for name in ("part", "whole") if name in packed)
        return hashlib.blake2b(packed["fixed"].numpy().tobytes() + bytes(packed["said"].tolist()) + merged).hexdigest()

    def edits(self, images: Sequence[str]) -> tuple[Edit, ...]:
        """Return what makes it hold in the run that learnt from it, whose images are called so."""
        fixed = self.fixed.numpy()
        edits: list[Edit] = [
            *(Rename(v=1, id=f"from-name-{number}", op="rename", cluster=number, name=name)
              for number, name in self.names.items()),
            *(Describe(v=1, id=f"from-text-{number}", op="describe", cluster=number, text=text)
              for number, text in self.descriptions.items()),
        ]  # fmt: skip
        held, junk = (
            tuple(images[row] for row in np.flatnonzero(which).tolist()) for which in (fixed >= 0, fixed == LEFT_OUT)
        )
        if held:
            edits.append(Confirm(v=1, id="from-confirmed", op="confirm", images=held))
        if junk:
            edits.append(Junk(v=1, id="from-junk", op="junk", images=junk))
        return tuple(edits)

    def packed(self) -> dict[str, Tensor]:
        """Return it as tensors."""
        said = json.dumps([list(self.names.items()), list(self.descriptions.items())]).encode()
        packed = {"fixed": self.fixed, "said": torch.frombuffer(bytearray(said), dtype=torch.uint8)}
        if self.part is not None and self.whole is not None:
            packed |= {"part": self.part, "whole": self.whole}
        return packed

    @classmethod
    def unpacked(cls, tensors: Mapping[str, Tensor]) -> Corrections | None:
        """Return what was packed; nothing where nobody corrected anything. Raises ValueError for what is no such."""
        if "fixed" not in tensors:
            return None
        try:
            names, descriptions = (dict(pairs) for pairs in json.loads(bytes(tensors["said"].tolist())))
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError("no names") from error
        if ("part" in tensors) != ("whole" in tensors):
            raise ValueError("parts of no cluster")
        return cls(tensors["fixed"], names, descriptions, tensors.get("part"), tensors.get("whole"))


@dataclass(frozen=True)
class TakingPart:
    """Which of this process's images take part in an E-step, and where people put some of them."""

    images: int  # of all processes
    fixed: Int[Tensor, " n"]  # as in `Corrections`, of this process's images
    everyone: bool

    @classmethod
    def of(cls, corrections: Corrections | None, images: int, device: torch.device) -> TakingPart:
        """Return who takes part as people said; where nobody said anything, everyone."""
        mine = share(images)
        if corrections is None:
            return cls(images, torch.full((mine.stop - mine.start,), FREE, device=device), everyone=True)
        return cls(images, corrections.fixed[mine].to(device), everyone=False)

    @property
    def mask(self) -> Bool[Tensor, " n"]:
        """Which images take part."""
        return self.fixed != LEFT_OUT

    def rows(self, mine: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "p ..."]:
        """Return the rows of the images that take part."""
        return mine if self.everyone else mine[self.mask.nonzero()[:, 0]]

    def put(self, clusters: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Return the clusters with images where people put them."""
        return torch.where(self.fixed >= 0, self.fixed, clusters)

    def labels_of_all(self, found: Int[Tensor, " p"]) -> Int[Tensor, " N"]:
        """Return the labels of all processes' images from those of the images that take part, −1 for the others."""
        if not self.everyone:
            found = found.new_full((len(self.fixed),), -1).index_copy(0, self.mask.nonzero()[:, 0], found)
        return gather(found, self.images)


def numbers_of(corrected: Corrected) -> Int[np.ndarray, " K"]:
    """Return the number that each of a corrected run's clusters has from now on: its id, where that is below K."""
    ids = corrected.prototypes.ids
    kept = ids < len(ids)
    free = np.setdiff1d(np.arange(len(ids)), ids[kept])
    numbers = ids.copy()
    numbers[~kept] = free
    return numbers


def renumbered(corrected: Corrected) -> dict[int, int]:
    """Return the number from now on of each cluster of a corrected run whose id it cannot keep."""
    pairs = zip(corrected.prototypes.ids.tolist(), numbers_of(corrected).tolist(), strict=True)
    return {id_: number for id_, number in pairs if id_ != number}


def corrections_of(
    corrected: Corrected, trained: Int[np.ndarray, " N"], rows: Int[np.ndarray, " M"]
) -> tuple[Int[np.ndarray, " M"], Corrections | None]:
    """Return the cluster's number of each image, −1 where it has none, and what people said.

    `trained` are the clusters before anybody corrected them; `rows` are the images' places in the corrected run's
    table, −1 for new ones.
    """
    numbers, table = numbers_of(corrected), corrected.table
    sorted_out = ~corrected.junk
    number = np.full(len(table.cluster) + 1, FREE)  # the last stands for images that are new
    number[:-1][sorted_out] = numbers[rows_of(table.cluster[sorted_out], corrected.prototypes.ids)]
    if not corrected.edited:
        return number[rows], None
    fixed = np.append(np.where(corrected.junk, LEFT_OUT, np.where(corrected.confirmed, number[:-1], FREE)), FREE)
    by_id = dict(zip(corrected.prototypes.ids.tolist(), numbers.tolist(), strict=True))
    names = {by_id[cluster.id]: cluster.name for cluster in corrected.clusters if cluster.name is not None}
    texts = {by_id[each.id]: each.description for each in corrected.clusters if each.description is not None}
    part, whole = (
        None if each is None else torch.from_numpy(each.astype(np.int64)) for each in _parts(corrected, trained, number)
    )
    part = None if part is None else part[rows]  # the last stands for images that are new
    return number[rows], Corrections(torch.from_numpy(fixed[rows].astype(np.int64)), names, texts, part, whole)


def _parts(
    corrected: Corrected, trained: Int[np.ndarray, " N"], number: Int[np.ndarray, " N1"]
) -> tuple[Int[np.ndarray, " N1"], Int[np.ndarray, " P"]] | tuple[None, None]:
    """Return of which part of a cluster each image is, −1 of the others, and each part's cluster, as its number.

    An image that nobody put anywhere, and is in another cluster than before, is where its cluster was made part of
    that one.
    """
    cluster = corrected.table.cluster
    free = ~corrected.confirmed & ~corrected.junk
    merged = np.isin(cluster, np.unique(cluster[free & (cluster != trained)]))
    if not merged.any():
        return None, None
    names = np.unique(trained[merged & free])
    part = np.full(len(cluster) + 1, FREE)
    whole = np.zeros(len(names), dtype=np.int64)
    for place, name in enumerate(names):
        own = merged & (trained == name)
        (home,) = np.unique(number[:-1][own & free])
        whole[place] = home
        part[:-1][own & (number[:-1] == home)] = place
    return part, whole
