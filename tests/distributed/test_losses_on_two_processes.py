"""Given the same network outputs, no loss and no gradient depends on how many processes share the batch."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from helpers.processes import run_on
from propos.distributed import gather
from propos.objectives import (
    Alignment,
    AnsweredGraph,
    AnsweredLabels,
    Bank,
    CentreAgreement,
    CentreLearning,
    CentreSet,
    ClusterBalance,
    ClusterContrast,
    ClusterMatching,
    ConfidentPull,
    ConfidentPush,
    ContrastiveExperts,
    FeatureDecorrelation,
    GivenLabels,
    GraphContrast,
    Grouping,
    InfoNce,
    InstanceSoftmax,
    LabelledContrast,
    LocalAggregation,
    LocalInformation,
    MutualInformation,
    NearestInBatch,
    NearestOfAll,
    NegativeCosine,
    NeighbourAgreement,
    NeighbourAlignment,
    NtXent,
    Outputs,
    ProtoNce,
    PrototypeAlignment,
    PrototypeScattering,
    PrototypeUniformity,
    PseudoLabels,
    Queue,
    Reconstruction,
    SelfLabel,
    SeveralLabels,
    Sharpening,
    SwappedCodes,
)

BATCH, DIMENSION = 12, 6
# The first process alone would miss clusters 2 and 3, and sees the only images labelled -1.
LABELS = torch.tensor([0, 0, 1, -1, 1, 0, 2, 2, 3, 3, 1, 2])
NEAR = (torch.arange(BATCH)[:, None] + torch.tensor([0, 1, 7])) % BATCH  # every image's own number, and two others'
TABLE = torch.arange(20) % 3


def three_experts(outputs, labels):
    """Each has a third of the numbers that there are of an image."""
    few = replace(outputs, again=outputs.again[:, :3], prototypes=outputs.prototypes[:3])
    return ContrastiveExperts(0.5)(few, labels)


OBJECTIVES = {
    "alignment": Alignment(),
    "negative cosine": NegativeCosine(),
    "prototype scattering": PrototypeScattering(0.5),
    "prototype alignment": PrototypeAlignment(0.5),
    "prototype uniformity": PrototypeUniformity(0.5),
    "NT-Xent": NtXent(0.5),
    "InfoNCE": InfoNce(1.0),
    "ProtoNCE": ProtoNce(),
    "cluster contrast": ClusterContrast(1.0),
    "cluster balance": ClusterBalance(),
    "confident pull": ConfidentPull(2),
    "confident push": ConfidentPush(2),
    "agreement": NeighbourAgreement(),
    "labels": SelfLabel(0.2),
    "instance softmax": InstanceSoftmax(0.5),
    "feature decorrelation": FeatureDecorrelation(2.0),
    "pseudo-labels": PseudoLabels(),
    "information": MutualInformation(),
    "matching with the batch": NearestInBatch(ClusterMatching()),
    "neighbours in the batch": NeighbourAlignment(4, 2, 0.5, 4),
    "agreement by centres": CentreAgreement(0.5, 0.2),
    "centres": CentreLearning(0.5),
    "local aggregation": LocalAggregation(0.5, 6, 96),
    "agreement with all images": NearestOfAll(NeighbourAgreement()),
    "contrast of labelled images": LabelledContrast(0.5),
    "labels of the stage": GivenLabels(),
    "labels of the first view": GivenLabels(first=True),
    "several labels": SeveralLabels(),
    "sharpening": Sharpening(),
    "reconstruction": Reconstruction(),
    "swapped codes": SwappedCodes(0.5, 3),
    "contrast on a graph": GraphContrast(0.5),
    "experts": three_experts,
    "labels of answers": AnsweredLabels(0.25),
    "graph of answers": AnsweredGraph(0.7),
    "local information": LocalInformation(0.7),
}


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def losses_and_gradients(rank, world):
    """Return each loss, and its gradient for a weight that all processes share and for what this process made."""
    weight = torch.eye(DIMENSION, dtype=torch.float64, requires_grad=True)
    part = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    local = [[tensor[part] @ weight for tensor in pair] for pair in drawn(4, 2, BATCH, DIMENSION)]
    projections, predictions, targets, logits = local
    made = [*projections, *predictions, *logits]
    for tensor in made:
        tensor.retain_grad()
    centres = F.normalize(drawn(4, DIMENSION, seed=6), dim=1) @ weight
    table = F.softmax(drawn(BATCH, 1, DIMENSION, seed=4), dim=2)
    outputs = Outputs(
        projections=gathered(projections),
        predictions=gathered(predictions),
        targets=gathered([target.detach() for target in targets]),
        assignments=gathered([F.softmax(logit, dim=1) for logit in logits]),
        head_prototypes=F.normalize(drawn(DIMENSION, DIMENSION, seed=5), dim=1),
        features=gathered(projections),
        pixels=gathered([target.detach() for target in targets]),
        reconstructions=gathered(predictions),
        places=gathered([prediction.unflatten(1, (2, 3)) for prediction in predictions]),
        discriminator=lambda places, said, others: places.sum(dim=2)[others] * said.sum(dim=1)[:, None, None],
        again=gather(F.softmax(predictions[0], dim=1)),
        again_projections=gather(predictions[1]),
        partners=gather(NEAR[part, 1]),
        prepared={
            "nearest answers": gather(table[part]),
            "labels": gather(LABELS[part]),
            "prototype labels": gather((table > 0.2)[part]),
            "sharpened": gather(table[part]),
            "neighbours": gather(NEAR[part]),
            "neighbour weights": gather(torch.full((BATCH, 3), 0.5, dtype=torch.float64)[part]),
        },
        prototypes=F.normalize(drawn(5, DIMENSION, seed=5), dim=1),
        queue=Queue(F.normalize(drawn(5, DIMENSION, seed=1), dim=1), torch.tensor([0, 3, 2, -1, 4])),
        bank=Bank(F.normalize(drawn(20, DIMENSION, seed=3), dim=1), gather(torch.arange(7, 7 + BATCH)[part]), (TABLE,)),
        centres=(CentreSet(centres, centres.detach(), *(gather(LABELS[part].clamp(min=0)) for _ in range(2))),),
        groupings=(Grouping(gather(LABELS[part]), F.normalize(drawn(4, DIMENSION, seed=2), dim=1), torch.ones(4)),),
    )
    found = {}
    for name, objective in OBJECTIVES.items():
        weight.grad = None
        for tensor in made:
            tensor.grad = None
        loss = objective(outputs, gather(LABELS[part]))
        loss.backward(retain_graph=True)
        gradient = weight.grad.clone()
        if world > 1:
            # What is done after the backward pass.
            dist.all_reduce(gradient)
            gradient /= world
        own = [torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in made]
        found[name] = {"loss": loss.detach(), "gradient": gradient, "outputs": torch.stack(own)}
    return found


def gathered(pair):
    return gather(pair[0]), gather(pair[1])


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return run_on(2, losses_and_gradients, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def one():
    return losses_and_gradients(0, 1)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_process_has_the_one_process_loss_and_gradient(one, two, name):
    assert one[name]["gradient"].abs().sum() > 0
    for process in two:
        for what in ("loss", "gradient"):
            torch.testing.assert_close(process[name][what], one[name][what], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_process_holds_its_slice_of_the_output_gradient(one, two, name):
    # Two processes each computed the whole loss: their summed gradient is twice the one loss's, the mean halves it.
    both = torch.cat([process[name]["outputs"] for process in two], dim=1)
    torch.testing.assert_close(both / 2, one[name]["outputs"], rtol=0, atol=1e-12)
