"""TEMI: heads on frozen features that maximise the weighted information of neighbours (Adaloglou et al., BMVC 2023)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.methods.method import Method, Pairing, Stage, Term
from propos.methods.preparations import Features, Neighbours
from propos.methods.pretext import frozen_features
from propos.networks import Head
from propos.objectives import WeightedInformation

WIDTHS = 512, 256
TEMPERATURE = 0.1
POWER = 0.6  # β
WARMUP = 0.2  # of the epochs


def temi(config: Config) -> Method:
    """Let several heads, each with a moving average of its own, put an image's frozen features with its neighbours'.

    As in its public code, but: the last layer learns from the first epoch on, and no image is its own neighbour however
    many there are. The features are a pretrained network's, centred and evened out as the settings say, or those of
    the method that learns the images first.
    """
    assert config.clusters is not None
    first, stages = frozen_features(config)
    epochs = max(1, round((1 - config.pretext.share if stages else 1) * config.train.epochs))
    heads = Stage(
        "heads",
        terms=(Term("information", WeightedInformation(POWER)),),
        share=1 - config.pretext.share,
        changes={
            "optimiser": "adamw",
            "lr": config.heads.lr,
            "schedule": "constant",
            "warmup": round(WARMUP * epochs),
            "weight_decay": 1e-4,
            "decay_norms": False,
        },
        trains=("cluster_head",),
        pairs=Pairing(partner="neighbour", of="features"),
        opens_with=(Features(), Neighbours(config.neighbours.count, of="features")),
        answer="head",
    )
    head = Head((*WIDTHS, config.clusters), norm=False, smooth=True, directions=True, temperature=TEMPERATURE)
    parts = replace(first.parts, cluster_head=head, heads=config.heads.count, head_target=True)
    return Method(parts, (*stages, heads), embeds=first.embeds)
