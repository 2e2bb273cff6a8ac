"""DCCM's local information: what is said of an image goes with places of those like it, not with those of others."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.objectives.answered_graph import answered_alike
from propos.objectives.objective import log_chance
from propos.outputs import Outputs

OTHERS = 2  # images told apart from each


def local_information(
    near: Float[Tensor, "B n P"], others: Float[Tensor, "B m P"], there: Bool[Tensor, "B m"]
) -> Float[Tensor, ""]:
    """Return mean log(1 + e^−d) of scores d with images near each plus mean log(1 + e^d) of those with others there.

    It is least where the scores tell the two apart: a bound on their mutual information (Jensen and Shannon's).
    """
    apart = F.softplus(others).mean(dim=2) * there
    return F.softplus(-near).mean() + apart.sum() / there.sum().clamp(min=1)


def companions(alike: Bool[Tensor, "B B"]) -> tuple[Int[Tensor, "B 2"], Int[Tensor, "B m"], Bool[Tensor, "B m"]]:
    """Return each image and the next like it, the next two unlike it, and which of these there are.

    Next in the order of the batch, which is drawn anew in every epoch, and after its end from its beginning. Where no
    other is like an image, the image itself is.
    """
    batch = len(alike)
    own = torch.arange(batch, device=alike.device)
    along = (own[:, None] + own) % batch  # row i: i, i + 1, …
    met = alike.gather(1, along)
    like = torch.where(met[:, 1:], own[1:], batch).min(dim=1).values % batch
    unlike = torch.where(met, batch, own).topk(min(OTHERS, batch), dim=1, largest=False).values
    near = torch.stack([own, (own + like) % batch], dim=1)
    return near, (own[:, None] + unlike) % batch, unlike < batch


class LocalInformation:
    """What the discriminator makes of both views' places and assignments, averaged; plain images say who is alike."""

    def __init__(self, above: float) -> None:
        self.above = above

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        assert outputs.again is not None
        assert outputs.places is not None
        assert outputs.discriminator is not None
        near, others, there = companions(answered_alike(outputs.again, self.above))
        losses = []
        for places, said in zip(outputs.places, outputs.assignments, strict=True):
            scores = outputs.discriminator(places, log_chance(said), torch.cat([near, others], dim=1))
            losses.append(local_information(scores[:, :2], scores[:, 2:], there))
        return (losses[0] + losses[1]) / 2
