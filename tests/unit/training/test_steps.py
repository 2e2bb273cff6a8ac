import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, esteps, quick_config, quick_train, two_views
from propos.augment import RandomViews
from propos.clustering import stable_numbers
from propos.common.errors import InputError
from propos.data import from_array, open_source
from propos.data.arrays import ArraySource
from propos.losses import alignment, nt_xent, prototype_scattering
from propos.methods.seeds import derive, generator
from propos.training.e_step import Partition, e_step
from propos.training.learner import build_learner, choose_device
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.prepare import prepare
from propos.training.progress import Silent
from propos.training.recorder import Recorder
from propos.training.state import first_state

LABELS = torch.arange(200) % 10


def step(learner, epoch=2, number=5, positions=None):
    positions = torch.arange(64) if positions is None else positions
    return m_step(learner, digits(), positions, at(learner, epoch, number))


def at(learner, epoch, number, streamed=None):
    """Return a state in an epoch whose steps are counted so that the run's step is `number`."""
    state = first_state(learner)
    state.epoch, state.step = epoch, number - epoch * learner.schedule.steps
    state.partition, state.streamed = Partition(LABELS, torch.zeros(10, 16)), streamed
    return state


def passed(learner, views, noise=(0.0, 0.0)):
    """Return what ProPos's networks make of two views: projections, targets, predictions."""
    method = learner.method.train()
    z1, z2 = (method.online(view) for view in views)
    t1, t2 = (method.target(view) for view in views)
    p1, p2 = (method.predictor(z + each) for z, each in zip((z1, z2), noise, strict=True))
    return z1, z2, t1, t2, p1, p2


def test_one_step_is_the_update_worked_out_by_autograd_and_hand():
    """Redo a step with plain operations: losses, gradients, momentum SGD with decay, two rates, EMA."""
    learner, twin = (build_learner(quick_config(), digits(), CPU) for _ in range(2))
    losses = step(learner)

    config, when = twin.config, (5, 0)
    first, second = two_views(twin, np.arange(64), when)
    noise = torch.randn((2, 64, 16), generator=generator(config.seed, "noise", *when)) * 0.001
    online, target, predictor = twin.method.online, twin.method.target, twin.method.predictor
    before = {name: p.detach().clone() for name, p in twin.method.named_parameters()}
    z1, z2 = online(first), online(second)
    with torch.no_grad():
        t1, t2 = target(first), target(second)
    psa = (alignment(predictor(z1 + noise[0]), t2) + alignment(predictor(z2 + noise[1]), t1)) / 2
    psl = prototype_scattering(z1, t2, LABELS[:64], 0.5) + prototype_scattering(z2, t1, LABELS[:64], 0.5)
    (psa + 0.1 * psl / 2).backward()
    torch.testing.assert_close(losses, {"psa": psa.detach(), "psl": 0.1 * psl.detach() / 2})

    rate = twin.schedule.learning_rate(5)
    for name, parameter in twin.method.named_parameters():
        after = dict(learner.method.named_parameters())[name].detach()
        if name.startswith("target."):
            moved = dict(learner.method.named_parameters())[name.replace("target.module.", "online.")].detach()
            expected = 0.99 * before[name] + 0.01 * moved
        else:
            own = rate * (10 if name.startswith("predictor.") else 1)
            expected = before[name] - own * (parameter.grad + 5e-4 * before[name])
        torch.testing.assert_close(after, expected, rtol=1e-4, atol=1e-6)


def test_before_scattering_starts_the_step_is_byols():
    propos = build_learner(quick_config(), digits(), CPU)
    byol = build_learner(quick_config(method="byol"), digits(), CPU)
    losses = step(propos, epoch=0)
    assert losses.keys() == {"psa"}
    assert losses["psa"] == step(byol, epoch=0)["alignment"]
    assert torch.equal(
        propos.method.target.module.backbone.conv1.weight, byol.method.target.module.backbone.conv1.weight
    )


def test_propos_without_noise_and_weight_is_byol_to_the_bit():
    propos = build_learner(quick_config(psl_weight=0.0, sigma=0.0), digits(), CPU)
    byol = build_learner(quick_config(method="byol"), digits(), CPU)
    for number in range(3):
        step(propos, number=number)
        step(byol, number=number)
    assert torch.equal(propos.method.online.backbone.conv1.weight, byol.method.online.backbone.conv1.weight)


def test_a_contrast_is_of_the_projections_and_moves_the_network_by_its_weight():
    """Before scattering and noise: BYOL's loss and half of the contrast, by autograd and hand."""
    learner, twin = (build_learner(quick_config(contrast_weight=0.5), digits(), CPU) for _ in range(2))
    losses = step(learner, epoch=0, number=1)
    z1, z2, t1, t2, p1, p2 = passed(twin, two_views(twin, np.arange(64), (1, 0)))
    psa, contrast = (alignment(p1, t2) + alignment(p2, t1)) / 2, nt_xent(z1, z2, 0.5)
    torch.testing.assert_close(losses, {"psa": psa.detach(), "contrast": 0.5 * contrast.detach()})
    (psa + 0.5 * contrast).backward()
    ours, theirs = learner.method.online.backbone.conv1.weight, twin.method.online.backbone.conv1.weight
    expected = theirs - twin.schedule.learning_rate(1) * (theirs.grad + 5e-4 * theirs)
    torch.testing.assert_close(ours.detach(), expected.detach(), rtol=1e-4, atol=1e-6)


def test_accumulated_batches_are_batches_of_their_own():
    """Two accumulated batches give the mean of the two batches' losses, each with its own views."""
    both = build_learner(quick_config(train__accumulate=2, train__batch_size=32), digits(), CPU)
    losses = step(both)
    parts = []
    for part, positions in enumerate(torch.arange(64).chunk(2)):
        learner = build_learner(quick_config(train__batch_size=32), digits(), CPU)
        z1, z2, t1, t2, _, _ = passed(learner, two_views(learner, positions, (5, part)))
        labels = LABELS[positions]
        parts.append((prototype_scattering(z1, t2, labels, 0.5) + prototype_scattering(z2, t1, labels, 0.5)) / 2)
    torch.testing.assert_close(losses["psl"], 0.1 * torch.stack(parts).mean().detach())


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_learns_nearly_the_same(precision):
    exact = build_learner(quick_config(), digits(), CPU)
    mixed = build_learner(quick_config(train__precision=precision), digits(), CPU)
    torch.testing.assert_close(step(mixed), step(exact), rtol=0.05, atol=0.05)
    assert all(torch.isfinite(parameter).all() for parameter in mixed.method.parameters())
    assert mixed.method.online.backbone.conv1.weight.dtype == torch.float32


def test_an_e_step_embeds_with_the_target_in_evaluation_mode():
    learner = build_learner(quick_config(), digits(), CPU)
    step(learner)
    found = e_step(learner, digits(), epoch=1, previous=None)
    target = learner.method.target.module.eval()
    pixels = torch.from_numpy(digits().batch(np.arange(200))).float() / 255
    mean, std = learner.config.pixels.mean[0], learner.config.pixels.std[0]
    with torch.no_grad():
        expected = F.normalize(target((pixels - mean) / std), dim=1)
    torch.testing.assert_close(found.embeddings, expected)
    for cluster in range(10):
        centre = F.normalize(expected[found.labels == cluster].sum(0), dim=0)
        torch.testing.assert_close(found.prototypes[cluster], centre, rtol=1e-4, atol=1e-5)


def test_an_e_step_keeps_cluster_numbers_and_counts_moved_images():
    learner = build_learner(quick_config(), digits(), CPU)
    first = e_step(learner, digits(), epoch=0, previous=None)
    renamed = (first.labels + 3) % 10
    again = e_step(learner, digits(), epoch=0, previous=Partition(renamed, first.prototypes))
    assert torch.equal(again.labels, renamed)
    assert again.churn == 0.0
    torch.testing.assert_close(again.prototypes[(torch.arange(10) + 3) % 10], first.prototypes)


def test_stable_numbers_by_hand():
    previous = np.array([0, 0, 0, 1, 1, 2])
    current = np.array([2, 2, 1, 1, 1, 0])
    assert stable_numbers(previous, current, 3) == [2, 1, 0]


def test_an_epochs_order_holds_each_image_once_and_depends_on_seed_and_epoch():
    schedule = build_learner(quick_config(), digits(), CPU).schedule
    order = epoch_order(0, 0, schedule)
    assert order.shape == (3, 64)
    assert len(order.unique()) == 192
    assert torch.equal(order, epoch_order(0, 0, schedule))
    assert not torch.equal(order, epoch_order(0, 1, schedule))
    assert not torch.equal(order, epoch_order(1, 0, schedule))


def test_esteps_come_every_r_epochs_counted_from_the_start_of_scattering():
    config = quick_config(estep__every=4, psl_start=6, train__epochs=20)
    assert esteps(config) == [0, 6, 10, 14, 18]


def test_esteps_that_serve_the_curves_alone_are_few():
    assert esteps(quick_config(psl_start=8, train__epochs=11)) == [0, 5, 8, 9, 10]


def test_seeds_differ_by_purpose():
    assert derive(0, "views", 1) != derive(0, "views", 2) != derive(0, "noise", 1)
    assert derive(0, "views", 1) == derive(0, "views", 1)
    assert derive(1, 1) != derive(11)


@pytest.mark.parametrize(("clusters", "sentence"), [(0, "at least 2"), (1, "at least 2"), (201, "only 200 images")])
def test_numbers_of_clusters_that_cannot_be_are_refused(clusters, sentence):
    with pytest.raises(InputError, match=sentence):
        quick_config(clusters=clusters)


def test_identical_images_and_too_few_different_ones_are_refused():
    same = from_array(np.zeros((20, 8, 8), np.uint8))
    with pytest.raises(InputError, match="identical"):
        quick_config(same, clusters=2)
    images = np.zeros((20, 8, 8), np.uint8)
    images[:10] = 9
    with pytest.raises(InputError, match="only 2 of the 20 images differ"):
        quick_config(from_array(images), clusters=3)


def test_one_image_is_refused():
    with pytest.raises(InputError, match="one image"):
        quick_config(digits(1), clusters=2)


def test_without_labels_a_method_with_a_cluster_head_asks_for_k():
    with pytest.raises(InputError, match="cc needs the number of clusters from the start: give it, as in -k 10"):
        quick_config(from_array(digits().images), method="cc")


def test_pixel_statistics_must_fit_the_channels():
    with pytest.raises(InputError, match="one for each channel"):
        quick_config(pixels__mean=(0.5, 0.5, 0.5), pixels__std=(1.0, 1.0, 1.0))


def test_prepared_settings_stay_what_they_are():
    config = quick_config()
    assert prepare(config, digits()) == config


def test_views_too_small_for_the_network_are_refused():
    with pytest.raises(InputError, match=r"views\.size = 16: too small for resnet18"):
        quick_config(views__size=16, network__backbone="resnet18", network__stem="imagenet")


def test_snapshots_after_the_last_epoch_are_refused():
    with pytest.raises(InputError, match="keep_epochs names epoch 3: the last of 3 is 2"):
        quick_config(keep_epochs=(1, 3))


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="choose auto"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="not available on this machine"):
            choose_device("cuda")


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, value in (("WORLD_SIZE", "4"), ("RANK", "2"), ("LOCAL_RANK", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="this machine has GPUs"):
        choose_device("cuda")


def test_a_step_leaves_the_embeddings_of_its_images_and_no_others():
    learner = build_learner(quick_config(), digits(), CPU)
    streamed = torch.zeros(200, 16)
    views = two_views(learner, np.arange(64), (5, 0))
    with torch.no_grad():
        first, second = (F.normalize(learner.method.target(view), dim=1) for view in views)
    m_step(learner, digits(), torch.arange(64), at(learner, 2, 5, streamed))
    torch.testing.assert_close(streamed[:64], F.normalize(first + second, dim=1))
    assert torch.equal(streamed[64:], torch.zeros(136, 16))


def with_unlabelled(count=200, more=300):
    source = digits(count)
    source.unlabelled = ArraySource(open_source("digits").images[count : count + more], None, "more")
    return source


def test_images_that_are_not_clustered_are_aligned_but_not_scattered():
    source = with_unlabelled()
    learner = build_learner(quick_config(), source, CPU)
    assert learner.schedule.steps == 200 // 64 + 300 // 64
    losses = m_step(learner, source, 200 + torch.arange(64), at(learner, 2, 16))
    assert losses.keys() == {"psa"}
    twin = build_learner(quick_config(), source, CPU)
    pixels, images = twin.config.pixels, torch.from_numpy(source.unlabelled.batch(np.arange(64)))
    views = RandomViews(twin.config.views, pixels.mean, pixels.std)(images, generator(0, "views", 16, 0))
    noise = 0.001 * torch.randn((2, 64, 16), generator=generator(0, "noise", 16, 0))
    _, _, t1, t2, p1, p2 = passed(twin, views, noise)
    torch.testing.assert_close(losses["psa"], ((alignment(p1, t2) + alignment(p2, t1)) / 2).detach())


def test_a_mean_is_over_the_steps_in_which_a_term_took_part():
    source = with_unlabelled()
    learner = build_learner(quick_config(), source, CPU)
    state = at(learner, 2, 2 * learner.schedule.steps)
    state.measures = {}
    # Four steps on images without clusters, then three on the others.
    for losses in [{"psa": 1.0}] * 4 + [{"psa": 3.0, "psl": psl} for psl in (0.5, 1.0, 1.5)]:
        state.record({name: torch.tensor(loss) for name, loss in losses.items()}, 7)
        state.step += 1
    Recorder(learner, state, None, Silent(), lambda: False).close_epoch()
    assert state.history[0]["losses"] == {
        "total": pytest.approx(13 / 7 + 1.0),
        "psa": pytest.approx(13 / 7),
        "psl": 1.0,
    }


def test_a_run_with_unlabelled_images_clusters_the_others_alone():
    fitted = quick_train(with_unlabelled(more=130), estep__embeddings="streamed")
    assert len(fitted.table.cluster) == len(fitted.embeddings) == 200


def test_an_e_step_clusters_the_embeddings_it_is_given():
    learner = build_learner(quick_config(), digits(), CPU)
    given = F.normalize(torch.eye(10).repeat(20, 1).repeat(1, 2)[:, :16], dim=1)
    found = e_step(learner, digits(), epoch=1, previous=None, embeddings=given)
    assert len(found.labels[:10].unique()) == 10
    assert torch.equal(found.labels[:10].repeat(20), found.labels)
