"""SwAV: codes of one view, in clusters of equal size, predicted from the other (Caron et al., NeurIPS 2020)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import prototype_queue
from propos.networks import Head, Parts
from propos.objectives import SwappedCodes

SHARPNESS, TURNS = 0.05, 3  # ε and the turns of Sinkhorn and Knopp


def swav(config: Config) -> Method:
    """Share a batch out evenly among many prototypes, and predict each view's share from the other view.

    As in its public code, but: two views of one size, without further small crops; one queue, if any, for both views,
    from when it is full. The prototypes, which learn from the second epoch on, are many more than the clusters; these
    are found by k-means on the embeddings, as with every method here that does not say otherwise.
    """
    assert config.clusters is not None
    train = Stage(
        terms=(Term("codes", SwappedCodes(SHARPNESS, TURNS)),),
        queue=prototype_queue(config),
        late=("cluster_head",),
    )
    many = Head(
        (config.overclustering.times * config.clusters,), prototypes=True, temperature=config.contrast.temperature
    )
    parts = Parts(
        projector=Head((config.network.hidden, config.network.dimension)),
        cluster_head=many,
        cluster_head_reads="projections",
    )
    return Method(parts, (train,), embeds="online")
