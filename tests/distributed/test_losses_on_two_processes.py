"""Given the same network outputs, no loss and no gradient depends on how many processes share the batch."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from helpers.processes import run_on
from propos.distributed import gather
from propos.losses import (
    alignment,
    balanced_cross_entropy,
    cluster_balance,
    cluster_contrast,
    cluster_matching,
    confident_pull,
    info_nce,
    instance_softmax,
    neighbour_agreement,
    nt_xent,
    proto_nce,
    prototype_scattering,
    self_labelling,
    symmetric,
)
from propos.methods import find_method, method_names

BATCH, DIMENSION = 12, 6
# The first process alone would miss clusters 2 and 3, and has the only images labelled -1.
LABELS = torch.tensor([0, 0, 1, -1, 1, 0, 2, 2, 3, 3, 1, 2])
NEAR = (torch.arange(BATCH)[:, None] + torch.tensor([0, 1, 7])) % BATCH  # every image's own number, and two others'
IMAGES = torch.arange(7, 7 + BATCH)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(*shape, seed):
    return F.normalize(drawn(*shape, seed=seed), dim=-1)


def discriminator(places, log_probs, others):
    return places.sum(dim=2)[others] * log_probs.sum(dim=1)[:, None, None]


def heads(*probabilities):
    return tuple(each[:, None] for each in probabilities)


BANK, QUEUE, CENTRES = unit(20, DIMENSION, seed=3), unit(5, DIMENSION, seed=1), unit(4, DIMENSION, seed=2)
EXPERTS = unit(3, 2, seed=5)

# z: projections, p: predictions, t: targets, y: probabilities; a and b: the two views.
SHARED = {
    "alignment": lambda o: symmetric(alignment, (o.pa, o.tb), (o.pb, o.ta)),
    "prototype scattering": lambda o: symmetric(prototype_scattering, (o.za, o.tb), (o.zb, o.ta), o.labels, 0.5, 4),
    "confident pull": lambda o: symmetric(confident_pull, (o.za, o.tb), (o.zb, o.ta), o.labels, 4),
    "NT-Xent": lambda o: nt_xent(o.za, o.zb, 0.5),
    "InfoNCE": lambda o: info_nce(o.za, o.tb, QUEUE, 1.0),
    "ProtoNCE": lambda o: proto_nce(o.za, CENTRES, torch.ones(4), o.labels),
    "cluster contrast": lambda o: cluster_contrast(o.ya, o.yb, 1.0),
    "cluster balance": lambda o: cluster_balance(o.ya),
    "cluster matching": lambda o: cluster_matching(o.ya, o.yb),
    "neighbour agreement": lambda o: neighbour_agreement(o.ya, o.yb),
    "self-labelling": lambda o: self_labelling(o.ya, o.yb, 0.2),
    "balanced cross-entropy": lambda o: balanced_cross_entropy(o.ya, o.labels),
    "instance softmax": lambda o: instance_softmax(o.za, BANK, o.images, 0.5),
}
# Losses of one method, by its name and given its module `m`; a method that is deleted takes them along.
OF_METHODS = {
    "propos": {
        "prototype alignment": lambda m, o: symmetric(
            m.prototype_alignment, (o.pa, o.tb), (o.pb, o.ta), o.labels, 0.5, 4
        ),
        "prototype uniformity": lambda m, o: m.prototype_uniformity(o.za, o.labels, 0.5, 4),
    },
    "simsiam": {"negative cosine": lambda m, o: symmetric(m.negative_cosine, (o.pa, o.zb), (o.pb, o.za))},
    "dcboost": {"push": lambda m, o: symmetric(m.confident_push, (o.za, o.tb), (o.zb, o.ta), o.labels, 4)},
    "conr": {
        "neighbours in the batch": lambda m, o: symmetric(
            m.neighbour_alignment, (o.pa, o.tb), (o.pb, o.ta), o.labels, CENTRES, 0.7, 4
        ),
    },
    "lfss": {
        "epoch before": lambda m, o: symmetric(m.contrast_with_before, (o.za, o.ta), (o.zb, o.tb), 0.5),
        "prototypes": lambda m, o: symmetric(m.prototype_contrast, (o.za, o.tb), (o.zb, o.ta), o.labels, 0.5, 4),
    },
    "cpc": {
        "rows": lambda m, o: m.predictive_contrast(
            o.pa[:, None, :4].view(-1, 1, 1, 2, 2), o.za[:, :4].view(-1, 1, 2, 2), 5
        ),
    },
    "tcl": {"contrast of labelled images": lambda m, o: m.labelled_contrast(o.za, o.zb, o.labels, 0.5)},
    "nnm": {
        "nearest in the batch": lambda m, o: sum(
            m.losses_of_pairs(*m.pairs_to_match(*heads(o.ya, o.yb, o.ya.flip(1)), m.nearest_in_batch(o.za))).values()
        ).sum(),
    },
    "temi": {
        "weighted information": lambda m, o: m.weighted_information(
            heads(o.ya, o.yb), heads(o.yb, o.ya), torch.full((1, DIMENSION), 1 / DIMENSION, dtype=torch.float64), 0.6
        ).sum(),
    },
    "turtle": {"error of a learner": lambda m, o: m.learner_error(o.ta, o.ya, 10, 0.05)},
    "spice": {"several labels": lambda m, o: m.several_labels(o.ya[:, None], (o.sharpened > 0.2)[:, None]).sum()},
    "idfd": {"feature decorrelation": lambda m, o: m.feature_decorrelation(o.za, 2.0)},
    "instdisc": {"proximal": lambda m, o: m.proximal(o.za, BANK, o.images)},
    "rotnet": {"turns": lambda m, o: m.turn_classification(o.za[:, :4], o.zb[:, :4], o.pa[:, :4], o.pb[:, :4])},
    "cdc": {
        "labels": lambda m, o: m.labels_of_confident(o.pa, o.known, o.labels >= 0),
        "agreement": lambda m, o: -(m.averaged(o.yb, m.cluster_of(o.tb, 4)) * o.ya.log()).sum(dim=1).mean(),
    },
    "tcc": {
        "contrast of clusters": lambda m, o: m.contrast_of_clusters(
            m.cluster_vectors(o.za, o.ya), m.cluster_vectors(o.tb, o.yb.detach()), QUEUE, torch.arange(5), 0.5
        ),
        "divergence": lambda m, o: m.divergence_from_uniform(o.ya),
    },
    "ifnd": {
        "contrast without exclusions": lambda m, o: m.contrast_without(
            o.za, o.tb, QUEUE, m.share_a_label(o.images, torch.arange(11, 16), torch.arange(20)[None] % 3), 0.2
        ),
    },
    "pirl": {"noise contrast": lambda m, o: m.noise_contrast(o.za, BANK, o.images, 0.5)},
    "sela": {"labels": lambda m, o: m.label_loss(o.pa, o.labels)},
    "deepcluster": {"pseudo-labels": lambda m, o: m.pseudo_label_loss(o.ya, o.labels)},
    "iic": {"mutual information": lambda m, o: m.mutual_information(o.ya, o.yb)},
    "localagg": {
        "local aggregation": lambda m, o: m.local_aggregation(o.za, BANK, o.images, torch.arange(20)[None] % 3, 0.5, 6),
    },
    "gcc": {
        "contrast on a graph": lambda m, o: m.graph_contrast(
            (o.za, o.pa, o.zb),
            m.near_images(o.near, o.near[:, 1]),
            m.drawn_weights(o.near, o.weights, o.near[:, 1]),
            0.5,
        ),
    },
    "secu": {
        "agreement": lambda m, o: m.centre_agreement(o.za, o.zb, CENTRES, o.known, 0.5, 0.2),
        "centres": lambda m, o: m.centre_learning(o.za, o.centres, o.known, 0.5),
    },
    "swav": {
        "codes": lambda m, o: m.code_prediction(
            m.balanced_codes(o.ya, unit(DIMENSION, DIMENSION, seed=4), QUEUE), o.yb
        ),
    },
    "mice": {
        "experts": lambda m, o: m.contrastive_experts(
            m.by_expert(o.za, 3), m.by_expert(o.tb, 3), m.by_expert(QUEUE, 3), EXPERTS, o.ya[:, :3], 0.5
        ),
    },
    "dccm": {
        "labels": lambda m, o: m.label_loss(o.ya, o.yb, 0.25),
        "graph": lambda m, o: m.graph_loss(o.ya, m.similar_images(o.yb, 0.7)),
        "local information": lambda m, o: m.local_loss(discriminator, o.places, o.ya, m.similar_images(o.yb, 0.7)),
    },
    "dec": {
        "sharpening": lambda m, o: m.sharpening(o.ya, o.sharpened),
        "reconstruction": lambda m, o: m.reconstruction(o.pa, o.ta),
    },
}
LOSSES = SHARED | {
    f"{method}: {name}": partial(loss, sys.modules[find_method(method).__module__])
    for method, losses in OF_METHODS.items()
    if method in method_names()
    for name, loss in losses.items()
}


def losses_and_gradients(rank, world):
    """Return each loss, and its gradient for a weight that all processes share and for this process's outputs."""
    weight = torch.eye(DIMENSION, dtype=torch.float64, requires_grad=True)
    part = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    names = ("za", "zb", "pa", "pb", "ta", "tb", "ya", "yb")
    local = {name: rows[part] @ weight for name, rows in zip(names, drawn(8, BATCH, DIMENSION), strict=True)}
    made = [rows for name, rows in local.items() if name not in ("ta", "tb")]
    for rows in made:
        rows.retain_grad()
    targets = {name: gather(local[name].detach()) for name in ("ta", "tb")}
    probabilities = {name: gather(local[name].softmax(dim=1)) for name in ("ya", "yb")}
    labels = gather(LABELS[part])
    batch = SimpleNamespace(
        **{name: gather(local[name]) for name in ("za", "zb", "pa", "pb")},
        **targets,
        **probabilities,
        labels=labels,
        known=labels.clamp(min=0),
        images=gather(IMAGES[part]),
        near=gather(NEAR[part]),
        weights=gather(torch.full((BATCH, 3), 0.5, dtype=torch.float64)[part]),
        places=gather(local["pb"].unflatten(1, (2, 3))),
        sharpened=gather(drawn(BATCH, DIMENSION, seed=4).softmax(dim=1)[part]),
        centres=CENTRES @ weight,
    )
    found = {}
    for name, loss_of in LOSSES.items():
        weight.grad = None
        for rows in made:
            rows.grad = None
        loss = loss_of(batch)
        loss.backward(retain_graph=True)
        gradient = weight.grad.clone()
        if world > 1:
            # As after the backward pass of a step.
            dist.all_reduce(gradient)
            gradient /= world
        own = [torch.zeros_like(rows) if rows.grad is None else rows.grad for rows in made]
        found[name] = {"loss": loss.detach(), "gradient": gradient, "outputs": torch.stack(own)}
    return found


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return run_on(2, losses_and_gradients, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def one():
    return losses_and_gradients(0, 1)


@pytest.mark.parametrize("name", LOSSES)
def test_every_process_has_the_one_process_loss_and_gradient(one, two, name):
    assert one[name]["gradient"].abs().sum() > 0
    for process in two:
        for what in ("loss", "gradient"):
            torch.testing.assert_close(process[name][what], one[name][what], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_each_process_holds_its_slice_of_the_output_gradient(one, two, name):
    # Two processes each computed the whole loss: their summed gradient is twice the one loss's, the mean halves it.
    both = torch.cat([process[name]["outputs"] for process in two], dim=1)
    torch.testing.assert_close(both / 2, one[name]["outputs"], rtol=0, atol=1e-12)
