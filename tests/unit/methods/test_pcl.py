"""PCL and BYOL with PCL's prototypes: what is contrasted, and the clusterings behind it."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.small import digits
from helpers.steps import arrays, learner_of, losses_of, step_of
from propos.common.errors import InputError
from propos.losses import counts_in_batch, proto_nce
from propos.methods import find_method, settings_of
from propos.runner.recipes import build_recipe
from propos.training.e_step import e_step, embedded_images

NAMES = ("pcl", "byol-pcl")
LABELS = torch.arange(200) % 10
RNG = np.random.default_rng(0)


def with_clusterings(method, **settings):
    """Return a learner that has clusterings into 5 and 8 clusters, as arrays too."""
    learner = learner_of(method, **{f"{method}__clusters": (5, 8), **settings})
    found = []
    for place, number in enumerate((5, 8)):
        labels = RNG.integers(number, size=200)
        labels[3] = -1
        centres = np.stack([oracle.unit(row) for row in RNG.normal(size=(number, 16))])
        found.append((labels, centres, RNG.uniform(0.5, 1.5, size=number)))
        memory = learner.method.clusterings
        memory[f"labels_{place}"] = torch.tensor(labels)
        memory[f"centres_{place}"] = torch.tensor(centres, dtype=torch.float32)
        memory[f"concentrations_{place}"] = torch.tensor(found[-1][2], dtype=torch.float32)
    return learner, found


@pytest.mark.parametrize("method", NAMES)
def test_proto_nce_is_summed_over_views_and_averaged_over_clusterings(method):
    learner, found = with_clusterings(method, **{f"{method}__prototypes_weight": 0.5})
    batch, ctx = step_of(learner, LABELS, epoch=1)
    losses = losses_of(learner, batch, ctx)
    views = arrays(*(learner.method.online(view) for view in batch.views()))
    sums = [
        sum(oracle.proto_nce(view, labels[:24], centres, temperatures) for view in views)
        for labels, centres, temperatures in found
    ]
    assert losses["prototypes"] == pytest.approx(0.5 * np.mean(sums), rel=1e-4)


def test_the_released_contrast_is_with_the_batchs_prototypes_and_some_that_are_absent():
    labels, centres = np.array([4, 1, 1, 7]), np.stack([oracle.unit(row) for row in RNG.normal(size=(9, 6))])
    query, concentrations = RNG.normal(size=(4, 6)), RNG.uniform(0.5, 1.5, size=9)
    draws = torch.tensor([0.1, 9.0, 0.8, 0.2, 9.0, 0.9, 0.3, 9.0, 0.7])  # of 0, 2, 3, 5, 6 and 8 three: 5, 2, 8
    counts = counts_in_batch(torch.tensor(labels), draws, 3)
    assert counts.tolist() == [0, 2, 1, 0, 1, 1, 0, 1, 1]
    tensors = (torch.tensor(each, dtype=torch.float32) for each in (query, centres, concentrations))
    expected = oracle.proto_nce_as_released(query, labels, centres, concentrations, [5, 2, 8])
    assert float(proto_nce(*tensors, torch.tensor(labels), counts)) == pytest.approx(expected, rel=1e-5)


def test_where_fewer_are_absent_than_are_drawn_all_of_them_are_negatives():
    counts = counts_in_batch(torch.tensor([2, -1, 2]), torch.zeros(4), 4096)
    assert counts.tolist() == [1, 1, 2, 1]


def test_pcl_contrasts_with_as_many_absent_prototypes_as_are_asked_for():
    found = {}
    for negatives in (2, 10**6):
        learner, clusterings = with_clusterings("pcl", pcl__negatives=negatives, pcl__prototypes_weight=1.0)
        for place in (0, 1):  # the batch's 24 images are in two clusters of each
            clusterings[place][0][:24] = np.arange(24) % 2
            learner.method.clusterings[f"labels_{place}"] = torch.tensor(clusterings[place][0])
        batch, ctx = step_of(learner, LABELS, epoch=1)
        found[negatives] = losses_of(learner, batch, ctx)["prototypes"]
    views = arrays(*(learner.method.online(view) for view in batch.views()))
    expected = [
        sum(oracle.proto_nce_as_released(view, labels[:24], *rest, range(2, len(rest[0]))) for view in views)
        for labels, *rest in clusterings
    ]
    assert found[10**6] == pytest.approx(np.mean(expected), rel=1e-4)
    assert found[2] < found[10**6] - 0.01


@pytest.mark.parametrize("method", NAMES)
def test_prototypes_take_part_after_the_warm_up(method):
    learner, _ = with_clusterings(method)
    names = [set(losses_of(learner, *step_of(learner, LABELS, epoch))) for epoch in (0, 1)]
    assert names[1] - names[0] == {"prototypes"}
    assert learner.stage.first_clusters == 1
    assert set(losses_of(learner, *step_of(learner, LABELS, epoch=1, clustered=False))) == names[0]


@pytest.mark.parametrize("method", NAMES)
def test_clusterings_are_found_after_the_warm_up_each_from_its_last_centres(method):
    learner = learner_of(method, **{f"{method}__clusters": (5, 40), f"{method}__concentration": 0.7})
    memory, found = learner.method.clusterings, e_step(learner, digits(), 0, None)

    def find(epoch):
        _, ctx = step_of(learner, found.labels, epoch)
        learner.method.after_clustering(embedded_images(learner, found, epoch, None), ctx)
        return [memory[f"centres_{place}"] for place in (0, 1)]

    find(0)
    assert (memory["labels_0"] == -1).all()
    before = find(1)
    for place, number in enumerate((5, 40)):
        labels, centres = memory[f"labels_{place}"], before[place]
        assert sorted(labels.unique().tolist()) == list(range(number))
        assert torch.equal((found.embeddings @ centres.T).argmax(dim=1), labels)
        assert float(memory[f"concentrations_{place}"].mean()) == pytest.approx(0.7)
    after = find(2)
    for ours, theirs in zip(before, after, strict=True):  # another start is taken only where it ends better
        similarity = [(found.embeddings @ centres.T).amax(dim=1).mean() for centres in (ours, theirs)]
        assert similarity[1] >= similarity[0] - 1e-6


def test_pcls_directions_are_summed_and_its_keys_enter_the_queue_after_the_backward_pass():
    learner, _ = with_clusterings("pcl", pcl__queue_size=96)
    method = learner.method
    batch, ctx = step_of(learner, LABELS)
    found = losses_of(learner, batch, ctx)["contrast"]
    a, b = batch.views()
    qa, qb, ka, kb, negatives = arrays(
        method.online(a), method.online(b), method.target(a), method.target(b), method.queue["vectors"]
    )
    expected = oracle.info_nce(qa, kb, negatives, 1.0) + oracle.info_nce(qb, ka, negatives, 1.0)
    assert found == pytest.approx(expected, rel=1e-4)
    assert method.queue["images"].max() == -1
    for action in ctx.later:
        action()
    assert method.queue["images"][:48].tolist() == [*range(24), *range(24)]
    np.testing.assert_allclose(method.queue["vectors"][24], oracle.unit(kb[0]), atol=1e-5)


@pytest.mark.parametrize("method", NAMES)
def test_clusterings_must_fit_the_images(method):
    with pytest.raises(InputError, match=rf"{method}\.clusters makes 400 clusters: only 200 images differ"):
        learner_of(method, **{f"{method}__clusters": (8, 400)})


def test_a_queue_without_places_is_refused():
    with pytest.raises(InputError, match=r"pcl\.queue_size = 0: .* greater than or equal to 1"):
        learner_of("pcl", pcl__queue_size=0)


@pytest.mark.parametrize("name", ["moco", "pcl"])
def test_moco_and_pcl_at_the_papers_scale(name):
    config = build_recipe("paper-32", name)
    settings = settings_of(config)
    assert (config.train.batch_size, config.train.weight_decay, config.network.momentum) == (512, 1e-4, 0.99)
    assert config.train.lr * config.train.batch_size / 256 == pytest.approx(0.1)
    assert (settings.queue_size, settings.temperature) == (4096, 1.0)
    if name == "pcl":
        assert (settings.clusters, settings.prototypes_weight) == ((250, 500, 1000), 0.01)
        assert settings.negatives == 4096


@pytest.mark.parametrize("name", ["moco", "pcl"])
def test_the_key_encoder_embeds_and_the_queue_starts_full_of_random_directions(name):
    method = learner_of(name, **({"pcl__clusters": (8,)} if name == "pcl" else {})).method
    assert method.embedder is method.target.module
    lengths = method.queue["vectors"].norm(dim=1)
    assert torch.allclose(lengths, torch.ones_like(lengths))
    linear = [layer for layer in method.online.projector if isinstance(layer, torch.nn.Linear)]
    width = method.online.features
    assert [layer.out_features for layer in linear] == [width, 16]
    assert len(method.online.projector) == 3  # no batch norm


def test_byol_pcl_has_byols_networks():
    assert not find_method("byol-pcl").has_head
    method = learner_of("byol-pcl", **{"byol-pcl__clusters": (8,)}).method
    assert method.embedder is method.target.module
    assert method.predictor[0].weight.std() < 0.02  # starts small
