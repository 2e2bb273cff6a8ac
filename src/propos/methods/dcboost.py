"""DCBoost: a stage on top of a trained clusterer (NeurIPS 2025, arXiv 2511.21193)."""

from __future__ import annotations

from dataclasses import replace

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import ASKED, feeding
from propos.methods.pretext import clusterer, epochs_after
from propos.networks import Head
from propos.objectives import Alignment, ConfidentPull, ConfidentPush

HIDDEN = 512  # of a predictor that the trained network had not
PREDICTOR_RATE = 10.0
LATE = 0.1  # of the rate: about what a cosine over 1,000 epochs has left at epoch 800, where the authors begin
ALONE = 0.05  # of the epochs (10 of their 200): a new predictor learns before clusters are pulled


def dcboost(config: Config) -> Method:
    """Pull together the images whose neighbours agree with them, cluster by cluster, on a network another trained.

    No code was found: the terms are third parties' notes that fit the paper's prose. Unverified: the normaliser of the
    push (here the mean over pairs), projections before the predictor, neighbours other than the image itself, by the
    target's embeddings alone, both directions averaged, and the rate.
    """
    first, stages = clusterer(config)
    new, epochs = first.parts.predictor is None, epochs_after(config)
    wait = min(max(1, round(ALONE * epochs)), epochs - 1) if new else 0
    assert first.parts.projector is not None
    predictor = Head((HIDDEN, first.parts.projector.widths[-1])) if new else first.parts.predictor
    boost = Stage(
        "boost",
        terms=(
            Term("instances", Alignment()),
            Term("pull", ConfidentPull(ASKED), starts=wait),
            Term("push", ConfidentPush(ASKED), starts=wait),
        ),
        share=1 - config.pretext.share,
        changes={"lr": LATE * config.train.lr, "warmup": 0, "schedule": "cosine"},
        noise=config.psa.sigma,
        predictor_rate=PREDICTOR_RATE,
        **{"trains": ("backbone", "projector", "predictor"), **feeding(config)},
    )
    parts = replace(first.parts, predictor=predictor, target="moving average")
    return Method(parts, (*stages, boost))
