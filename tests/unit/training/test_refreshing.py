"""What a stage computes anew before every epoch, and one more view of each image."""

import hashlib

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from propos.training.pairs import further_view, paired_views

from helpers.small import CPU, digits, quick_config, quick_train, same_weights
from propos.common.errors import InputError, Interrupted
from propos.methods import AgreedLabels, NearestAnswers, PrototypeLabels, Seen, SureLabels
from propos.runs import RunFolder
from propos.training.e_step import unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.stage_setup import open_stage, refresh
from propos.training.state import first_state


def opened(method="nnm", **settings):
    """Return a learner in a method's second stage, NNM's own, a state in its second epoch and the images."""
    source = digits()
    config = quick_config(source, method=method, train__epochs=6, **settings)
    learner = at_stage(build_learner(config, source, CPU), 1)
    state = first_state(learner)
    state.epoch = learner.epochs.start
    open_stage(learner, source, state)
    state.epoch += 1
    state.partition = unassigned(learner.schedule.images, CPU)
    return learner, state, source


def test_the_answers_of_the_nearest_by_hand():
    features = torch.tensor([[1.0, 0.0], [9.0, 1.0], [0.0, 1.0], [1.0, 9.0]])
    answers = torch.arange(16.0).view(4, 2, 2)
    seen = Seen(features, features, answers, 0, slice(1, 4))
    assert torch.equal(NearestAnswers()(seen), answers[[0, 3, 2]])


def test_they_are_those_of_the_network_as_it_is_before_each_epoch():
    learner, state, source = opened()
    name = NearestAnswers().name
    before = {key: table.clone() for key, table in state.prepared.items()}
    assert before[name].shape == (200, 3, 10)
    refresh(learner, source, state)
    assert torch.equal(state.prepared[name], before[name])  # nothing has learnt yet
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    assert torch.equal(state.prepared[name], before[name])  # within an epoch they stay
    refresh(learner, source, state)
    assert not torch.equal(state.prepared[name], before[name])
    assert torch.equal(state.prepared["neighbours"], before["neighbours"])  # these are the stage's
    again = state.prepared[name].clone()
    state.epoch = learner.epochs.start
    refresh(learner, source, state)  # the first epoch has what the stage opened with
    assert torch.equal(state.prepared[name], again)


def test_one_more_view_is_of_the_image_and_drawn_by_itself():
    learner, state, source = opened(strong__operations=1, strong__cutout=0.0)
    batch = torch.arange(64)
    first, _ = paired_views(learner, source, batch, state, (0, 0))
    more = further_view(learner, source, batch, (0, 0))
    assert torch.equal(more, further_view(learner, source, batch, (0, 0)))
    assert not torch.equal(more, further_view(learner, source, batch, (1, 0)))
    alike = (more == first).flatten(1).all(dim=1).float().mean()
    assert 0 < float(alike) < 0.9  # one operation that may leave an image as it is
    apart = (first[:, None] - more).flatten(2).norm(dim=2)
    assert (apart.argmin(dim=0) == batch).float().mean() > 0.4  # of 64 the image's own, unless it was solarised


@pytest.mark.parametrize("settings", [{}, {"network__joint_views": True, "network__bn_groups": 2}])
def test_it_passes_by_itself_and_again_to_the_same_bits(settings):
    plain, recomputed = (opened(train__recompute=recompute, **settings) for recompute in (False, True))
    losses = [m_step(learner, source, torch.arange(64), state) for learner, state, source in (plain, recomputed)]
    assert torch.equal(*losses)
    assert same_weights(plain[0].network, recomputed[0].network)


def test_its_batch_norm_is_its_own():
    learner, state, source = opened()
    views = paired_views(learner, source, torch.arange(64), state, (0, 0))
    more = further_view(learner, source, torch.arange(64), (0, 0))
    learner.network.begin_step()
    passed = learner.network(views, None, again=more)
    expected = F.softmax(learner.network.cluster_head(learner.network.online.backbone(more)), dim=-1)
    torch.testing.assert_close(passed.again, expected)


def answers(*sureness):
    """Return what two heads say of images: the second puts each into 0 or, if the number is negative, 1, so surely."""
    of_one = torch.tensor([[s, 1 - s] if s > 0 else [1 + s, -s] for s in sureness])
    return torch.stack([of_one.flip(0), of_one], dim=1)


def seen_as(assignments, tables=None):
    return Seen(torch.zeros(8, 2), torch.zeros(8, 2), assignments, 1, slice(0, 8), tables or {})


def test_sure_labels_by_hand():
    # Of eight images in two clusters half are labelled: two of each cluster, as far as they are sure enough.
    said = answers(0.99, 0.9, 0.95, 0.97, 0.85, 0.6, -0.7, -0.8)
    assert SureLabels(0.5, 0.5)(seen_as(said)).tolist() == [0, -1, -1, 0, -1, -1, 1, 1]
    labels = SureLabels(0.5, 0.75)(seen_as(said))
    assert labels.tolist() == [0, -1, -1, 0, -1, -1, -1, 1]
    # Later image 0 is no longer sure; image 3 is, of another cluster, and stays; images 1 and 2 are labelled now.
    later = answers(0.7, 0.98, 0.99, -0.96, 0.85, 0.6, -0.7, -0.8)
    labels = SureLabels(0.5, 0.75)(seen_as(later, {"labels": labels}))
    assert labels.tolist() == [-1, 0, 0, 0, -1, -1, -1, 1]
    # And nothing changes where nothing was learnt.
    assert torch.equal(SureLabels(0.5, 0.75)(seen_as(later, {"labels": labels})), labels)
    part = Seen(torch.zeros(8, 2), torch.zeros(8, 2), later, 1, slice(1, 4), {"labels": labels})
    assert SureLabels(0.5, 0.75)(part).tolist() == [0, 0, 0]


def test_more_clusters_than_images_have_a_label_each():
    assert SureLabels(0.5, 0.0)(seen_as(torch.eye(8, 40)[:, None].repeat(1, 2, 1))).tolist() == list(range(8))


def test_labels_stay_with_their_images_from_epoch_to_epoch():
    learner, state, source = opened("tcl", train__lr=0.03)
    before = state.prepared["labels"].clone()
    assert before.shape == (200,)
    counts = torch.bincount(before[before >= 0], minlength=10)
    assert 0 < int(counts.max()) <= 10  # of 200 images in ten clusters half are ten of each
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    refresh(learner, source, state)
    after = state.prepared["labels"]
    assert torch.equal(after[before >= 0], before[before >= 0])  # above a threshold of 0.1 all stay sure
    assert int((after >= 0).sum()) > int((before >= 0).sum())  # and others are labelled as heads learn


def test_labels_of_clusters_that_are_not_there_are_refused(tmp_path):
    settings = {"method": "tcl", "train__epochs": 3}
    run = RunFolder.create(tmp_path / "run", {}, quick_config(**settings))
    asked = iter(range(10))  # three questions each after the openings of two epochs, and two in the third
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked, None) is None, **settings)
    newest = max((run.path / "checkpoint").iterdir())
    with safetensors.safe_open(newest, "pt") as file:
        tensors, said = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    tensors["state.prepared.labels"] += 10
    content = safetensors.torch.save(tensors, said)
    newest.with_name(f"999999-{hashlib.sha256(content).hexdigest()[:32]}.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"labels: are not of 10 clusters"):
        quick_train(run=run, **settings)


# Six images: three along the first axis, two along the second, one between both.
AROUND = torch.tensor([[2.0, 0.0], [1.0, 0.1], [1.0, -0.2], [0.0, 1.0], [0.1, 3.0], [1.0, 1.0]])


def test_labels_of_prototypes_by_hand():
    # The first head is surest of image 0 in its first cluster and of 3 in its second: of three images each (half of
    # six) those nearest to them. The second is surest of image 5 in both, which the same three are nearest to.
    chances = torch.tensor([[0.9, 0.7, 0.6, 0.1, 0.2, 0.4], [0.5, 0.5, 0.5, 0.5, 0.5, 0.6]])
    assignments = torch.stack([chances, 1 - chances], dim=2).transpose(0, 1)
    assignments[5, 1, 1] = 0.7
    labels = PrototypeLabels(1 / 3)(Seen(AROUND, AROUND, assignments, 0, slice(0, 6)))
    assert labels[:, 0].T.int().tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert labels[:, 1].T.int().tolist() == [[0, 1, 0, 0, 1, 1]] * 2
    # Two of them: the mean of images 0 and 1, or of 3 and 4.
    assert torch.equal(PrototypeLabels(2 / 3)(Seen(AROUND, AROUND, assignments, 0, slice(2, 5)))[:, 0], labels[2:5, 0])


def test_prototypes_of_more_clusters_than_images_have_an_image_each():
    labels = PrototypeLabels(0.5)(Seen(AROUND, AROUND, torch.eye(6, 40)[:, None], 0, slice(0, 6)))
    assert torch.equal(labels[:, 0, :6], torch.eye(6).bool())
    assert labels.sum(dim=0).unique().tolist() == [1]


def test_labels_that_neighbours_agree_on_by_hand():
    # The head that answers, the second, puts images 0, 1, 2 and 5 into the first cluster, of image 2 not surely.
    # Nearest to 5 are 1 and 4, to 3 and 4 each other and 5, to 0, 1 and 2 each other.
    chances = torch.tensor([0.9, 0.9, 0.6, 0.1, 0.2, 0.9])
    assigned = torch.stack([chances, 1 - chances], dim=1)
    seen = Seen(AROUND, AROUND, torch.stack([assigned.flip(1), assigned], dim=1), 1, slice(0, 6))
    assert AgreedLabels(3, 1.0, 0.7)(seen).tolist() == [0, 0, -1, -1, -1, -1]
    assert AgreedLabels(3, 0.6, 0.7)(seen).tolist() == [0, 0, -1, 1, 1, 0]
    assert AgreedLabels(2, 1.0, 0.85)(seen).tolist() == [0, 0, -1, 1, -1, 0]
    assert AgreedLabels(100, 0.1, 0.0)(seen).tolist() == [0, 0, 0, 1, 1, 0]  # more than there are: all
    assert AgreedLabels(3, 1.0, 0.7)(Seen(AROUND, AROUND, seen.assignments, 1, slice(1, 4))).tolist() == [0, -1, -1]


def test_labels_of_prototypes_follow_the_heads_while_the_network_stands_still():
    learner, state, source = opened("spice", heads__count=3)
    before = state.prepared["prototype labels"].clone()
    assert before.shape == (200, 3, 10)
    assert before.sum(dim=0).unique().tolist() == [20]
    backbone = {name: tensor.clone() for name, tensor in learner.network.online.backbone.state_dict().items()}
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    assert torch.equal(state.prepared["prototype labels"], before)
    refresh(learner, source, state)
    assert not torch.equal(state.prepared["prototype labels"], before)
    assert all(
        torch.equal(tensor, backbone[name]) for name, tensor in learner.network.online.backbone.state_dict().items()
    )
