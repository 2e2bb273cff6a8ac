"""A split into train, val and test: stratified by cluster, with duplicates and bursts on one side of the border."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Int

from propos.common.errors import InputError, shown
from propos.common.plurals import counted
from propos.common.progress import ShowTask, show_nothing
from propos.review.report.duplicates import groups
from propos.review.report.originals import ImagesUnavailable, open_images
from propos.review.report.similar import draw_and_compare
from propos.runs import JUNK, Run

PARTS = ("train", "val", "test")  # as Hugging Face, torchvision's ImageFolder and YOLO call them
LONG = {"val": "validation"}  # in a dataset of Hugging Face
_SHARES = re.compile(r"[0-9]{1,2}(/[0-9]{1,2}){1,2}")


@dataclass(frozen=True)
class Split:
    """The part of each image: its place in PARTS, -1 for junk; and the groups that were kept together."""

    part: Int[np.ndarray, " N"]
    kept_together: list[list[int]]
    parts: int

    def names(self) -> list[str | None]:
        """Return the name of each image's part."""
        return [None if part < 0 else PARTS[part] for part in self.part.tolist()]

    def card(self) -> str:
        """Return a card that names the parts' folders for Hugging Face.

        Without one, it takes an image of a class called `train` or `test tube` for one of those parts, too.
        """
        files = [f"  - split: {LONG.get(name, name)}\n    path: {name}/**\n" for name in PARTS[: self.parts]]
        return f"---\nconfigs:\n- config_name: default\n  data_files:\n{''.join(files)}---\n\n{self.summary()}.\n"

    def summary(self) -> str:
        """Return the size of each part and what was kept together, as a line."""
        sizes = [f"{name} {int((self.part == place).sum()):,}" for place, name in enumerate(PARTS[: self.parts])]
        together = counted(len(self.kept_together), "group")
        return f"{', '.join(sizes)}; {together} of duplicates or bursts, each in one part"


def parse_shares(text: str) -> list[int]:
    """Return the percentages of `80/10/10` (train, val, test) or `80/20` (train, val)."""
    shares = [int(share) for share in text.split("/")] if _SHARES.fullmatch(text) else []
    if sum(shares) != 100 or 0 in shares:
        raise InputError(f"--split {shown(text)}: give percentages that add up to 100, as 80/10/10 or 80/20")
    return shares


def split_run(run: Run, shares: Sequence[int], show_task: ShowTask = show_nothing) -> Split:
    """Split a run's images; the same run and corrections give the same split."""
    cluster = run.corrected.table.cluster.astype(np.int64)
    together = similar_groups(run, show_task)
    keys = [hashlib.blake2b(f"{run.config.seed}/{name}".encode()).digest() for name in run.table.images]
    order = sorted(np.flatnonzero(cluster != JUNK).tolist(), key=keys.__getitem__)
    return Split(assign_parts(cluster, order, together, shares), together, len(shares))


def similar_groups(run: Run, show_task: ShowTask) -> list[list[int]]:
    """Return the images that must not be separated: joined groups of duplicates, near-duplicates and bursts."""
    kept = run.corrected.table.cluster != JUNK
    try:
        with open_images(run, show_task) as images, TemporaryDirectory() as folder:
            _, similar = draw_and_compare(run, images, [], Path(folder), show_task)
    except ImagesUnavailable as reason:
        raise InputError(f"{run.path}: --split: duplicates cannot be searched. {reason}") from None
    found = ([row for row in group if kept[row]] for group in (*similar.exact, *similar.near, *similar.bursts))
    return groups(np.array(list(chain.from_iterable(map(pairwise, found))), np.int64).reshape(-1, 2).T)


def assign_parts(
    cluster: Int[np.ndarray, " N"], order: Sequence[int], together: Sequence[Sequence[int]], shares: Sequence[int]
) -> Int[np.ndarray, " N"]:
    """Give each image in `order` a part: groups first, the largest first, then single images.

    Each goes where it exceeds the clusters' quotas least, then where most images are lacking. Images that are not in
    the order get -1.
    """
    own = cluster.tolist()
    grouped = set(chain.from_iterable(together))
    single = [[row] for row in order if row not in grouped]
    units: dict[int, int] = defaultdict(int)
    for unit in (*together, *single):
        for each in {own[row] for row in unit}:
            units[each] += 1
    sizes = np.bincount(cluster[list(order)])
    lacking = {each: quotas(int(sizes[each]), shares, units[each]) for each in units}
    part = np.full(len(cluster), -1, np.int64)
    for unit in (*sorted(together, key=len, reverse=True), *single):
        counts = Counter(own[row] for row in unit)
        chosen = min(range(len(shares)), key=lambda place: _cost(counts, lacking, place))
        part[unit] = chosen
        for each, count in counts.items():
            lacking[each][chosen] -= count
    return part


def _cost(counts: Mapping[int, int], lacking: Mapping[int, Sequence[int]], place: int) -> tuple[int, int]:
    """Return by how many images a group exceeds its clusters' quotas in a part, and minus what is lacking there."""
    exceeding = sum(max(0, count - lacking[each][place]) for each, count in counts.items())
    return exceeding, -sum(count * lacking[each][place] for each, count in counts.items())


def quotas(size: int, shares: Sequence[int], units: int) -> list[int]:
    """Divide a cluster's images by the shares; each part gets at least one if the cluster can be divided so far."""
    exact = [size * share / 100 for share in shares]
    counts = [int(each) for each in exact]
    for place in sorted(range(len(shares)), key=lambda place: counts[place] - exact[place])[: size - sum(counts)]:
        counts[place] += 1
    if units >= len(shares):
        for place in range(len(shares)):
            if counts[place] == 0:
                counts[counts.index(max(counts))] -= 1
                counts[place] = 1
    return counts
