"""Exact and near duplicates.

Two images of one cluster are near duplicates if their small greyscale versions, normalised for brightness and contrast,
correlate above 0.995: a copy that was saved again, resized, or made a little lighter. Images without contrast are
compared exactly only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

ALIKE = 0.995
BLOCK = 1_024


def exact_groups(digests: list[bytes | None]) -> list[list[int]]:
    """Group the images with the same digest."""
    alike: dict[bytes, list[int]] = defaultdict(list)
    for image, digest in enumerate(digests):
        if digest is not None:
            alike[digest].append(image)
    return [group for group in alike.values() if len(group) > 1]


def near_groups(
    sketches: Float[np.ndarray, "N S"], cluster: Int[np.ndarray, " N"], exact: list[list[int]]
) -> list[list[int]]:
    """Group images with nearly the same sketch (unit vectors, or 0 for none); one of each exact group is compared."""
    use = np.linalg.norm(sketches, axis=1) > 0
    for group in exact:
        use[group[1:]] = False
    links = [
        link for number in np.unique(cluster) for link in _links(sketches, np.flatnonzero(use & (cluster == number)))
    ]
    if not links:
        return []
    rows, columns = np.concatenate(links, axis=1)
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(cluster), len(cluster)))
    _, component = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = defaultdict(list)
    for image in np.union1d(rows, columns).tolist():
        groups[int(component[image])].append(image)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _links(sketches: Float[np.ndarray, "N S"], members: Int[np.ndarray, " M"]) -> Iterator[Int[np.ndarray, "2 L"]]:
    """Link the near duplicates of one cluster, each to the first of its group.

    Members are sorted along their main direction, and overlapping windows of them compared: two near duplicates differ
    by at most √(2 − 2·0.995) = 0.1 in any direction. So a large cluster takes linear time, and thousands of duplicates
    no more memory than a window.
    """
    if len(members) < 2:
        return
    chosen = sketches[members]
    order = np.argsort(chosen @ _main_direction(chosen), kind="stable")
    members, chosen = members[order], chosen[order]
    for start in range(0, len(members), BLOCK):
        window = slice(start, start + 2 * BLOCK)
        _, kind = connected_components(csr_array(chosen[window] @ chosen[window].T > ALIKE), directed=False)
        first = np.unique(kind, return_index=True)[1][kind]
        later = np.flatnonzero(first != np.arange(len(first)))
        yield np.stack([members[window][first[later]], members[window][later]])


def _main_direction(vectors: Float[np.ndarray, "M S"]) -> Float[np.ndarray, " S"]:
    direction: Float[np.ndarray, " S"] = np.linalg.eigh(np.cov(vectors.T))[1][:, -1].astype(vectors.dtype)
    return direction
