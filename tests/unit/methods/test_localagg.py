"""LocalAgg: the loss by hand and compared with plain loops; its clusterings and when they are found."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import of_system
from helpers.small import CPU, digits, quick_config, some_digits
from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.methods import settings_of, stages_of
from propos.methods.localagg import background, local_aggregation, shares_a_cluster
from propos.training.context import BatchContext
from propos.training.e_step import e_step, embedded_images
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

RNG = np.random.default_rng(0)
FIRST = RNG.normal(size=(4, 3))
ROWS = np.array([oracle.unit(row) for row in RNG.normal(size=(12, 3))])
IMAGES = np.array([2, 7, 0, 11])  # the last is one that is only trained on
CLUSTERINGS = RNG.integers(0, 4, size=(2, 10))  # of ten of the twelve
CLUSTERINGS[:, 7] = -1


@pytest.mark.parametrize("near", [1, 5, 12, 40])
def test_it_equals_the_oracle_in_value_and_gradient(near):
    given = torch.tensor(ROWS), torch.tensor(IMAGES), torch.tensor(CLUSTERINGS)
    oracle.check(
        lambda x: local_aggregation(x, *given, 0.2, near),
        lambda x: oracle.local_aggregation(x, ROWS, IMAGES, CLUSTERINGS, 0.2, near),
        FIRST,
    )


def test_as_many_are_near_as_some_clusters_hold():
    assert background(1_281_167, 30_000) == 4096  # ImageNet: 4,100 in as many clusters
    assert background(1797, 300) == 575


def test_it_by_hand():
    # Three rows at cosines 1, 0 and -1, temperature 1; the first two are near, and the second shares a cluster.
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    given = torch.tensor([[3.0, 0.0]]), rows, torch.tensor([2]), torch.tensor([[0, 1, 1], [0, 1, 2]])
    assert float(local_aggregation(*given, 1.0, 2)) == pytest.approx(math.log(1 + math.e), rel=1e-5)
    assert float(local_aggregation(*given, 1.0, 1)) == pytest.approx(-math.log(1e-7), rel=1e-5)  # none is near


def test_a_cluster_shared_in_any_clustering_counts_and_an_image_shares_its_own_row():
    clusterings = torch.tensor([[0, 0, 1, -1], [0, 1, 0, -1]])
    rows, images = torch.tensor([[0, 1, 2, 3, 4]]).repeat(3, 1), torch.tensor([0, 3, 4])
    assert shares_a_cluster(rows, images, clusterings).int().tolist() == [
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],  # in no cluster, as the fourth is
        [0, 0, 0, 0, 1],  # after those that are clustered
    ]


def started(epoch=0, **settings):
    source = digits()
    learner = build_learner(quick_config(source, method="localagg", **settings), source, CPU)
    state = first_state(learner)
    found = e_step(learner, source, epoch, None)
    state.epoch, state.partition = epoch, found.partition()
    learner.method.after_clustering(embedded_images(learner, found, epoch, None), BatchContext.of(learner, state))
    return learner, source, state, found


def test_instance_discrimination_comes_first_and_clusterings_when_needed():
    learner, source, state, _ = started(train__epochs=40)
    assert learner.stage.first_clusters == 2  # a twentieth of the epochs
    assert (learner.method.clusterings["labels"] == -1).all()
    assert list(m_step(learner, source, torch.arange(64), state)) == ["instances"]
    learner, source, state, _ = started(epoch=2, train__epochs=40)
    assert (learner.method.clusterings["labels"] >= 0).all()
    assert list(m_step(learner, source, torch.arange(64), state)) == ["aggregation"]


def test_the_loss_of_a_step_is_the_mean_over_both_views():
    learner, source, state, _ = started(epoch=1, overclustering=7)
    method, views = learner.method, []
    bank, labels = method.bank["vectors"].double().numpy(), method.clusterings["labels"].numpy()
    method.online.register_forward_hook(lambda *passed: views.append(passed[2].detach().double().numpy()))
    loss = m_step(learner, source, torch.arange(64), state)["aggregation"]
    # 96 of 70 clusters hold more than there are: all 200 are near.
    values = [oracle.local_aggregation(view, bank, range(64), labels, 0.07, 200) for view in views]
    assert float(loss) == pytest.approx(np.mean(values), rel=1e-4)


def test_a_step_moves_the_bank():
    learner, source, state, _ = started()
    before = learner.method.bank["vectors"].clone()
    m_step(learner, source, torch.arange(64), state)
    moved = (learner.method.bank["vectors"] != before).any(dim=1)
    assert moved.nonzero()[:, 0].tolist() == list(range(64))


def test_ten_clusterings_are_found_each_from_its_centres_before():
    learner, _, state, found = started(epoch=1, overclustering=3)
    memory = learner.method.clusterings
    assert memory["labels"].shape == (10, 200)
    assert len({tuple(labels.tolist()) for labels in memory["labels"]}) == 10
    assert [len(labels.unique()) for labels in memory["labels"]] == [30] * 10

    def similarities():
        return torch.stack([(found.embeddings @ centres.T).amax(dim=1).mean() for centres in memory["centres"]])

    before, centres = similarities(), memory["centres"].clone()
    learner.method.after_clustering(embedded_images(learner, found, 2, None), BatchContext.of(learner, state))
    assert (similarities() >= before - 1e-6).all()  # another start is taken only where it ends better
    assert (memory["centres"] - centres).abs().amax(dim=(1, 2)).min() < 1e-5


def test_there_are_never_more_clusters_than_one_for_two_images():
    learner, *_ = started(epoch=1, overclustering=50)
    assert learner.method.clusterings["centres"].shape == (10, 100, 16)
    assert [len(labels.unique()) for labels in learner.method.clusterings["labels"]] == [100] * 10


def test_more_clusters_than_different_images_are_refused():
    with pytest.raises(InputError, match=r"localagg\.overclustering makes 100 clusters: only 50 images differ"):
        quick_config(some_digits(np.arange(200) % 50), method="localagg")


def test_the_number_of_clusters_has_to_be_known():
    unlabelled = ArraySource(digits().images, None, "digits", 0.0, 16.0)
    with pytest.raises(InputError, match="localagg needs the number of clusters from the start"):
        quick_config(unlabelled, method="localagg")


def test_localagg_has_its_own_settings():
    local = of_system("localagg-imagenet-1k", 1000)
    own = settings_of(local)
    assert own.overclustering * 1000 == 30_000
    assert [stage.first_clusters for stage in stages_of(local)] == [10]
    assert local.train.lr * local.train.batch_size / 256 == pytest.approx(0.03)
    assert [share * local.train.epochs for share in local.train.milestones] == pytest.approx([160, 190])
    assert (own.bank_momentum, own.temperature, local.train.weight_decay) == (0.5, 0.07, 1e-4)
    assert (local.network.backbone, local.views.crop_scale, local.views.hue) == ("resnet18", (0.2, 1.0), 0.4)
