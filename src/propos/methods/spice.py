"""SPICE: heads learn labels of prototypes, then the network those that neighbours agree on (Niu et al., TIP 2022)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.parts import by_heads, plain_head
from propos.methods.preparations import AgreedLabels, PrototypeLabels
from propos.methods.pretext import without_head
from propos.objectives import ChosenHead, EachHead, GivenLabels, SelfLabel, SeveralLabels

SUREST = 0.5  # of a cluster's even part of the images, whose mean is its prototype
AGREE = 0.99  # of the images around one, for its label to be relied on
SURE = 0.95  # from which assignment on all images label themselves, at the latest
RATE = 0.03  # of the network, whatever the batch
HEADS, NETWORK = 1 / 3, 2 / 3  # of the epochs after the pretext
WEAK = 0.77  # of an image: what is left of 32 pixels a side moved by up to 4


def spice(config: Config) -> Method:
    """Have heads learn which images lie nearest to those they are surest of; then the network what neighbours agree on.

    While heads learn the network stands still; then it also learns its own labels where it is sure. As in its public
    code, but: labels are found among all images, of plain views, before each epoch; images that are relied on are not
    cut to as many of each cluster as the smallest has, but count as if they were, and lie in batches as they come; the
    network goes on from the one that the heads were trained on, and answers itself, not its average.
    """
    assert config.clusters is not None
    first, stages = without_head(config)
    rest, confident = 1 - config.pretext.share, config.confident
    heads = Stage(
        "heads",
        terms=(Term("labels", EachHead(SeveralLabels())),),
        share=HEADS * rest,
        changes={**by_heads(config), "weight_decay": 0.0},
        trains=("cluster_head",),
        pairs=Pairing(first="strong", second="strong"),
        refreshes=(PrototypeLabels(SUREST),),
        answer="head",
    )
    smallest, largest = config.views.crop_scale
    network = Stage(
        "network",
        terms=(
            Term("labels", ChosenHead(GivenLabels(first=True))),
            Term("own_labels", ChosenHead(SelfLabel(min(SURE, confident.above), confident.by_cluster))),
        ),
        share=NETWORK * rest,
        changes={
            "optimiser": "sgd",
            "lr": RATE * 256 / config.train.batch_size,
            "schedule": "cosine",
            "warmup": 0,
            "weight_decay": 5e-4,
            "decay_norms": False,
        },
        views={
            "crop_scale": (min(max(smallest, WEAK), largest), largest),
            "jitter": 0.0,
            "grey": 0.0,
            "blur": (0.0, 0.0),
        },
        trains=("backbone", "cluster_head"),
        pairs=Pairing(first="random", second="strong"),
        opens_with=(AgreedLabels(config.neighbours.count, AGREE, confident.above),),
        answer="head",
    )
    head = plain_head(config, config.clusters)
    parts = replace(first.parts, cluster_head=head, heads=config.heads.count)
    return Method(parts, (*stages, heads, network), embeds=first.embeds)
