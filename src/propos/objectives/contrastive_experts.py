"""Each image told from a queue by a mixture of experts, one for each cluster (MiCE)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.outputs import Outputs


def contrastive_experts(
    queries: Float[Tensor, "B K D"],
    keys: Float[Tensor, "B K D"],
    negatives: Float[Tensor, "Q K D"],
    prototypes: Float[Tensor, "K D"],
    gate: Float[Tensor, "B K"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Have the experts that the gate trusts tell each image's own key from the queue: −mean_i log Σ_k π_ik φ_ik.

    With f_ik, v_ik and u_nk what expert k makes of image i, of its key and of the queue, and μ_k its prototype:
    φ_ik = exp(v_ik·(f_ik + μ_k)/τ) / (exp(v_ik·(f_ik + μ_k)/τ) + Σ_n exp(u_nk·(f_ik + μ_k)/τ)). It is what EM's bound
    −mean_i Σ_k q_ik log(π_ik φ_ik / q_ik) is at the posterior, q_ik ∝ π_ik φ_ik. All are unit vectors; no gradient
    reaches keys or prototypes.
    """
    near = queries + prototypes.detach()
    own = (near * keys.detach()).sum(dim=2, keepdim=True)
    others = torch.einsum("bkd,qkd->bkq", near, negatives)
    told = F.log_softmax(torch.cat([own, others], dim=2) / temperature, dim=2)[:, :, 0]
    return -(_log(gate) + told).logsumexp(dim=1).mean()


class ContrastiveExperts:
    """The mixture of both directions, averaged, with the gate of one more view.

    A row of projections holds what each expert makes of an image, one behind the other.
    """

    reads_prototypes = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.queue is not None
        assert outputs.prototypes is not None
        assert outputs.again is not None
        gate, experts = outputs.again, outputs.again.shape[1]
        negatives, centres = _by_expert(outputs.queue.embeddings, experts), _by_expert(outputs.prototypes, experts)
        own = centres.diagonal(dim1=0, dim2=1).T  # of each cluster's mean, what its own expert makes of it

        def of_direction(query: Tensor, key: Tensor) -> Tensor:
            both = _by_expert(query, experts), _by_expert(key, experts)
            return contrastive_experts(*both, negatives, own, gate, self.temperature)

        return mean_of_directions(of_direction, outputs.projections, outputs.targets)


def _by_expert(rows: Float[Tensor, "N KD"], experts: int) -> Float[Tensor, "N K D"]:
    """Return the unit vector of each expert."""
    return F.normalize(rows.unflatten(1, (experts, -1)), dim=2)


def _log(shares: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    return shares.clamp(min=torch.finfo(shares.dtype).tiny).log()
