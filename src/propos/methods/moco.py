"""MoCo v2: each image told from a queue of earlier ones."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import moco_parts, negative_queue
from propos.objectives import InfoNce


def moco(config: Config) -> Method:
    """Tell each image's other view from the keys of earlier batches; the key encoder embeds."""
    train = Stage(
        terms=(Term("contrast", InfoNce(config.contrast.temperature)),),
        queue=negative_queue(config),
    )
    return Method(moco_parts(config), (train,))
