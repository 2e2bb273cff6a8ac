"""The tree of a run's clusters: coarser ones above them, finer ones below; a cut through it is a correction.

The tree is grown once from the results of training and never changes. Its leaves divide the run's clusters, and merges
join them from fine to coarse up to one root; the run's clusters are nodes of it. Every node is a cluster with an id of
its own, which is the same whenever a cut shows it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propos.common.errors import InputError
from propos.runs.atomic import write_atomically
from propos.runs.edits import ClusterId

TREE = "tree.json"
MOST_LEAVES = 4_096

Merge = tuple[ClusterId, ClusterId, ClusterId]


class _File(BaseModel):
    """The content of tree.json."""

    model_config = ConfigDict(extra="forbid", strict=False, frozen=True)

    v: Literal[1] = 1
    leaves: Annotated[tuple[ClusterId, ...], Field(min_length=1, max_length=MOST_LEAVES)]
    merges: tuple[Merge, ...]
    leaf: str  # base64 of each image's place in leaves, 16 bits, little-endian


@dataclass(frozen=True)
class Tree:
    """A binary tree of clusters; a merge is a node's id and its children's, the child with more images first."""

    leaves: tuple[int, ...]
    merges: tuple[tuple[int, int, int], ...]  # from fine to coarse
    leaf: Int[np.ndarray, " N"]  # each image's place in leaves

    @property
    def ids(self) -> list[int]:
        """The ids of all nodes."""
        return [*self.leaves, *(node for node, _, _ in self.merges)]

    @property
    def root(self) -> int:
        """The node of all images."""
        return self.merges[-1][0] if self.merges else self.leaves[0]

    @cached_property
    def children(self) -> dict[int, tuple[int, int]]:
        """The children of each node that is no leaf."""
        return {node: (main, other) for node, main, other in self.merges}

    @cached_property
    def parent(self) -> dict[int, int]:
        """The parent of each node except the root."""
        return {child: node for node, *pair in self.merges for child in pair}

    def ancestors(self, node: int) -> list[int]:
        """Return the ancestors of a node, its parent first; a cluster that is in no branch has none."""
        found, up = list[int](), self.parent.get(node)
        while up is not None:
            found.append(up)
            up = self.parent.get(up)
        return found

    def above(self, nodes: Iterable[int]) -> set[int]:
        """Return all ancestors of some nodes."""
        return {up for node in nodes for up in self.ancestors(node)}

    def under(self, node: int) -> list[int]:
        """Return a node and all its descendants."""
        found = [node]
        for each in found:
            found += self.children.get(each, ())
        return found

    def coarsest(self, clusters: int) -> tuple[int, ...]:
        """Return the open nodes of the coarsest cut with this number of clusters."""
        return tuple(node for node, _, _ in self.merges[len(self.leaves) - clusters :])

    def cut(self, node: int, opened: Iterable[int]) -> tuple[dict[int, int], list[int]]:
        """Return the cluster of each node in a branch whose given nodes are open, and the nodes that are open then.

        A node below a cluster belongs to it. An open node leads to its larger child, and so do images moved to it.
        """
        wanted, cluster, there = set(opened), dict[int, int](), list[int]()
        pending = [node]
        while pending:
            each = pending.pop()
            if each in wanted and each in self.children:
                there.append(each)
                pending += self.children[each]
            else:
                cluster |= dict.fromkeys(self.under(each), each)
        for each in reversed(there):
            cluster[each] = cluster[self.children[each][0]]
        return cluster, there

    def write(self, folder: Path) -> None:
        """Write the tree into a run's folder."""
        packed = base64.b64encode(self.leaf.astype("<u2").tobytes()).decode()
        content = _File(leaves=self.leaves, merges=self.merges, leaf=packed)
        write_atomically(folder / TREE, content.model_dump_json().encode())


def read_tree(folder: Path, cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"]) -> Tree | None:
    """Read the tree of a run, given its images' clusters and their ids; None if none was grown."""
    path = folder / TREE
    if not path.exists():
        return None
    try:
        content = _File.model_validate_json(path.read_bytes())
        leaf = np.frombuffer(base64.b64decode(content.leaf, validate=True), "<u2").astype(np.int64)
    except (ValidationError, binascii.Error, ValueError):
        raise InputError(f"{path}: cannot be read: not a tree of clusters: restore it") from None
    tree = Tree(content.leaves, content.merges, leaf)
    problem = _problem(tree, cluster, ids)
    if problem is not None:
        raise InputError(f"{path}: {problem}: restore it")
    return tree


def _problem(tree: Tree, cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"]) -> str | None:
    """Return why a tree is none of this run, if it is not."""
    whole, seen = set(tree.leaves), set(tree.ids)
    if len(seen) != len(tree.ids) or len(tree.merges) != len(tree.leaves) - 1:
        return "its nodes do not form a tree"
    for node, *pair in tree.merges:
        if pair[0] == pair[1] or not whole.issuperset(pair):
            return "its nodes do not form a tree"
        whole = (whole - set(pair)) | {node}
    if len(tree.leaf) != len(cluster) or (len(tree.leaf) > 0 and int(tree.leaf.max()) >= len(tree.leaves)):
        return f"its images are not the run's {len(cluster):,}"
    trained = set(ids.tolist())
    if not trained <= seen or tree.above(trained) & trained:
        return "the run's clusters are not in it"
    found, _ = tree.cut(tree.root, tree.above(trained))
    if not np.array_equal(np.array([found[each] for each in tree.leaves])[tree.leaf], cluster):
        return "its clusters are not the run's"
    return None
