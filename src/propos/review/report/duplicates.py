"""Exact and near duplicates among all images, and bursts.

Two images are near duplicates if their small greyscale versions, normalised for brightness and contrast, correlate
above 0.995: a copy that was saved again, resized, or made a little lighter. Images without contrast are compared
exactly only. Two images that one camera took at different times are no copies, however similar: they are a burst.

Not all pairs are compared. Trees split the images in halves along random directions until a leaf has few, and only
images of one leaf are compared. Similar images are rarely parted, and hardly ever by all trees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from propos.runs import Vectors

ALIKE = 0.995  # correlation of two sketches
LIKELY = 0.9  # cosine of two embeddings below which sketches are not compared
MOST_LIKELY = 50_000  # pairs whose sketches are compared, the most similar ones
BURST = 3_000  # milliseconds between two images of a burst
SAME_SCENE = 0.8  # cosine of two embeddings in a burst
LEAF = 512  # images that are compared with each other
TREES = 6
DIRECTIONS = 32  # to which vectors are reduced before they are split
BLOCK = 8_192  # rows that are copied at once

Pairs = Int[np.ndarray, "2 L"]


def exact_groups(
    images: Int[np.ndarray, " M"], digests: Sequence[bytes | None], files: Sequence[Sequence[int]] = ()
) -> list[list[int]]:
    """Group the images with the same digest of pixels, and files with the same bytes."""
    alike: dict[bytes, list[int]] = defaultdict(list)
    for image, digest in zip(images.tolist(), digests, strict=True):
        if digest is not None:
            alike[digest].append(image)
    several = [group for group in alike.values() if len(group) > 1]
    links = [(group[0], image) for group in (*several, *files) for image in group[1:]]
    return sorted(groups(np.array(links, np.int64).reshape(-1, 2).T))


def near_pairs(sketches: Float[np.ndarray, "N S"], use: Bool[np.ndarray, " N"], seed: int) -> Pairs:
    """Return pairs of images with nearly the same sketch (unit vectors, or 0 for none).

    Of a group of near duplicates each image is paired with the first one, so that thousands take no more memory.
    """
    from scipy.sparse import csr_array  # imported only when needed: a server starts without it
    from scipy.sparse.csgraph import connected_components

    found = [np.empty((2, 0), np.int64)]
    for leaf in leaves(sketches, np.flatnonzero(use & sketches.any(axis=1)), seed):
        chosen = sketches[leaf]
        _, kind = connected_components(csr_array(chosen @ chosen.T > ALIKE), directed=False)
        first = np.unique(kind, return_index=True)[1][kind]
        later = np.flatnonzero(first != np.arange(len(first)))
        found.append(np.stack([leaf[first[later]], leaf[later]]))
    return _distinct(np.concatenate(found, axis=1))


def likely_pairs(embeddings: Vectors, use: Bool[np.ndarray, " N"], seed: int) -> Pairs:
    """Return each image and its nearest by embedding, if it is near enough; the 50,000 most similar pairs."""
    found, cosines = [np.empty((2, 0), np.int64)], [np.empty(0, np.float32)]
    for leaf in leaves(embeddings, np.flatnonzero(use), seed):
        chosen = embeddings[leaf]
        cosine = chosen @ chosen.T
        np.fill_diagonal(cosine, -1.0)
        nearest = cosine.argmax(axis=1)
        highest = cosine[np.arange(len(leaf)), nearest]
        near = highest > LIKELY
        found.append(np.stack([leaf[near], leaf[nearest[near]]]))
        cosines.append(highest[near])
        if sum(map(len, cosines)) > 4 * MOST_LIKELY:
            found, cosines = _most_similar(found, cosines)
    (pairs,), _ = _most_similar(found, cosines)
    return pairs


def burst_pairs(facts: Shaped[np.ndarray, " N"], embeddings: Vectors, use: Bool[np.ndarray, " N"]) -> Pairs:
    """Return pairs of similar images that one camera took one after the other, within three seconds.

    Images of the very same millisecond are one photograph, edited; without milliseconds they count as two.
    """
    known = np.flatnonzero(use & (facts["taken"] > 0) & (facts["camera"] > 0))
    order = known[np.lexsort((facts["taken"][known], facts["camera"][known]))]
    one, other = order[:-1], order[1:]
    apart = facts["taken"][other] - facts["taken"][one]
    burst = (facts["camera"][one] == facts["camera"][other]) & (apart <= BURST)
    burst &= (apart > 0) | (facts["taken"][one] % 1_000 == 0)
    one, other = one[burst], other[burst]
    parts = range(0, len(one), BLOCK)
    cosine = [
        np.einsum("nd,nd->n", embeddings[one[at : at + BLOCK]], embeddings[other[at : at + BLOCK]]) for at in parts
    ]
    similar = np.concatenate([np.empty(0), *cosine]) > SAME_SCENE
    return np.stack([one[similar], other[similar]])


def taken_apart(pairs: Pairs, facts: Shaped[np.ndarray, " N"]) -> Bool[np.ndarray, " L"]:
    """Return which pairs one camera took at different times."""
    one, other = facts[pairs[0]], facts[pairs[1]]
    known = (one["taken"] > 0) & (other["taken"] > 0) & (one["camera"] > 0)
    apart: Bool[np.ndarray, " L"] = known & (one["camera"] == other["camera"]) & (one["taken"] != other["taken"])
    return apart


def groups(pairs: Pairs) -> list[list[int]]:
    """Join pairs to groups, the largest first."""
    if pairs.size == 0:
        return []
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    named, place = np.unique(pairs, return_inverse=True)
    rows, columns = place.reshape(pairs.shape)
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(len(named), len(named)))
    _, component = connected_components(graph, directed=False)
    joined: dict[int, list[int]] = defaultdict(list)
    for image, number in zip(named.tolist(), component.tolist(), strict=True):
        joined[number].append(image)
    return sorted(joined.values(), key=lambda group: (-len(group), group))


def leaves(vectors: Vectors, rows: Int[np.ndarray, " M"], seed: int) -> Iterator[Int[np.ndarray, " L"]]:
    """Yield the leaves of several trees over some of the vectors: rows that are probably near each other."""
    if len(rows) < 2:
        return
    generator = np.random.default_rng(seed)
    if len(rows) <= LEAF:
        yield rows
        return
    width = vectors.shape[1]
    reducing = generator.standard_normal((width, min(width, DIRECTIONS))).astype(np.float32)
    parts = [vectors[rows[start : start + BLOCK]] @ reducing for start in range(0, len(rows), BLOCK)]
    reduced = np.concatenate(parts)
    for _ in range(TREES):
        pending = [np.arange(len(rows))]
        while pending:
            node = pending.pop()
            if len(node) <= LEAF:
                yield rows[node]
                continue
            one, other = generator.choice(node, 2, replace=False)
            along = reduced[node] @ (reduced[one] - reduced[other])
            along += 1e-6 * generator.random(len(node), np.float32)  # divides equal values differently in each tree
            order = np.argpartition(along, len(node) // 2)
            pending += [node[order[: len(node) // 2]], node[order[len(node) // 2 :]]]


def _most_similar(
    found: list[Pairs], cosines: list[Float[np.ndarray, " L"]]
) -> tuple[list[Pairs], list[Float[np.ndarray, " L"]]]:
    pairs, cosine = np.concatenate(found, axis=1), np.concatenate(cosines)
    _, first = np.unique(np.sort(pairs, axis=0), axis=1, return_index=True)
    order = first[np.argsort(-cosine[first], kind="stable")][:MOST_LIKELY]
    return [pairs[:, order]], [cosine[order]]


def _distinct(pairs: Pairs) -> Pairs:
    distinct: Pairs = np.unique(np.sort(pairs, axis=0), axis=1)
    return distinct
