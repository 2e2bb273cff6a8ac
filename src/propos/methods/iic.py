"""IIC: clusters that say as much as they can of an image's other view (Ji et al., ICCV 2019)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import OF_ITS_VIEW, head_parts
from propos.objectives import EachHead, MutualInformation, OverHeads


def iic(config: Config) -> Method:
    """Maximise the information between an image's clusters and its random view's, in K and in many more clusters.

    As in its public code, but: both kinds of heads learn in every step (there, epoch by epoch in turn); colours, not
    edges; one random view of an image a step, beside the plain one; no epoch or head is chosen by labels.
    """
    each = 1 / config.heads.count  # heads are averaged
    train = Stage(
        terms=(
            Term("information", EachHead(MutualInformation()), each),
            Term("over_information", OverHeads(MutualInformation()), each),
        ),
        pairs=OF_ITS_VIEW,
        answer="head",
    )
    return Method(head_parts(config), (train,), embeds="online")
