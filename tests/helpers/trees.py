"""Random trees of clusters."""

import numpy as np

from propos.runs import Tree


def random_tree(rng, cluster, ids):
    """Divide each cluster into up to three leaves, and merge all of them at random."""
    free, leaf, leaves, merges, nodes = max(ids) + 1, np.zeros(len(cluster), np.int64), [], [], []
    for each in ids:
        count = rng.randint(1, 3)
        own = [each] if count == 1 else list(range(free, free + count))
        free += 0 if count == 1 else count
        for image in np.flatnonzero(np.array(cluster) == each):
            leaf[image] = len(leaves) + rng.randrange(count)
        leaves += own
        while len(own) > 1:
            one, other = (own.pop(rng.randrange(len(own))) for _ in range(2))
            node = free if own else each
            free += bool(own)
            merges.append((node, one, other))
            own.append(node)
        nodes += own
    while len(nodes) > 1:
        one, other = (nodes.pop(rng.randrange(len(nodes))) for _ in range(2))
        merges.append((free, one, other))
        nodes.append(free)
        free += 1
    return Tree(tuple(leaves), tuple(merges), leaf)
