"""What methods share that learn an autoencoder first, then clusters around centres: DEC and IDEC."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import OF_ITS_VIEW
from propos.methods.preparations import Sharpened
from propos.networks import Decoding, Head, PartName, Parts
from propos.objectives import Reconstruction

SIDE = 32  # of what is made again, at most: the decoder of a larger image would be larger than all else
LEARNING, CLUSTERING = 0.5, 0.5  # of the epochs


def autoencoding(config: Config, terms: tuple[Term, ...], trains: tuple[PartName, ...]) -> Method:
    """Return a method that learns to make images again, then by these terms clusters around what k-means finds."""
    return Method(_parts(config), (_learning(), _clustering(terms, trains)), embeds="online")


def _learning() -> Stage:
    return Stage(
        "autoencoder",
        terms=(Term("reconstruction", Reconstruction()),),
        share=LEARNING,
        trains=("backbone", "projector", "decoder"),
        pairs=OF_ITS_VIEW,
    )


def _clustering(terms: tuple[Term, ...], trains: tuple[PartName, ...]) -> Stage:
    return Stage(
        "clusters",
        terms=terms,
        share=CLUSTERING,
        trains=trains,
        pairs=OF_ITS_VIEW,
        refreshes=(Sharpened(),),
        begins_at_clusters=True,
        answer="head",
    )


def _parts(config: Config) -> Parts:
    assert config.clusters is not None
    network = config.network
    return Parts(
        projector=Head((network.hidden, network.dimension)),
        cluster_head=Head((config.clusters,), prototypes=True, spread=config.contrast.cluster_temperature),
        cluster_head_reads="projections",
        decoder=Decoding((network.hidden,), min(SIDE, config.views.size)),
    )
