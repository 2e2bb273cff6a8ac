"""Methods in several stages: what learns in each, what a head answers, and borders that stopping does not show."""

import numpy as np
import pytest
import safetensors.numpy
import torch
import torch.nn.functional as F

from helpers import two_stages
from helpers.small import CPU, digits, quick_config, quick_train, same_weights, without_times
from propos.augment import plain_view
from propos.clustering import nearest_neighbours
from propos.errors import InputError, Interrupted
from propos.methods import (
    METHODS,
    Confident,
    Features,
    Method,
    Neighbours,
    Pairing,
    Seen,
    Stage,
    Term,
    build_method,
)
from propos.methods.parts import plain_head
from propos.networks import Parts
from propos.objectives import Alignment, NtXent
from propos.runs import Run, RunFolder
from propos.training import Model
from propos.training.e_step import Partition
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.stage_setup import open_stage
from propos.training.pairs import further_view, paired_views, partners_of
from propos.methods.seeds import generator
from propos.training.state import first_state


@pytest.fixture(scope="module", autouse=True)
def _method():
    two_stages.register()
    yield
    two_stages.unregister()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two epochs of learning images, two of a head on neighbours; the weights at the border are kept."""
    settings = {**two_stages.QUICK, "keep_epochs": (1,)}
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "whole", {"status": "finished"}, quick_config(**settings))
    fitted = quick_train(run=run, **settings)
    fitted.write(run)
    return fitted, run


def test_epochs_are_dealt_out_by_shares_with_at_least_one_each():
    def spans(epochs, *shares):
        stages = tuple(Stage(str(share), share=share) for share in shares)
        return [(span.start, span.stop) for span in Method(Parts(projector=None), stages).spans(epochs)]

    assert spans(10, 1.0) == [(0, 10)]
    assert spans(10, 3, 1) == [(0, 8), (8, 10)]
    assert spans(10, 0.5, 0.3, 0.2) == [(0, 5), (5, 8), (8, 10)]
    assert spans(3, 1000, 1, 1) == [(0, 1), (1, 2), (2, 3)]
    assert spans(3, 1, 1, 1000) == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(InputError, match=r"train\.epochs = 2: the method has 3 stages"):
        spans(2, 1, 1, 1)


def test_a_term_counts_from_its_start_to_its_end():
    term = Term("some", Alignment(), starts=2, ends=4)
    assert [epoch for epoch in range(6) if term.counts_at(epoch)] == [2, 3]
    assert not Term("none", Alignment(), weight=0.0).counts_at(0)


def test_a_stage_moves_what_it_trains_and_nothing_else(whole):
    fitted, run = whole
    border = safetensors.numpy.load_file(run.path / "snapshots" / "epoch-0001.safetensors")
    first = build_learner(quick_config(**two_stages.QUICK), digits(), CPU).network.state_dict()
    for name, tensor in fitted.model.network.state_dict().items():
        of_head = name.startswith("cluster_head")
        assert np.array_equal(tensor.numpy(), border[name]) is not of_head, name
        if name.endswith("weight"):
            assert np.array_equal(first[name].numpy(), border[name]) is of_head, name


def test_a_head_is_not_compared_with_the_clusters_of_k_means_before_it(whole):
    moved = [record["measures"]["churn"] for record in whole[0].history]
    assert [share is None for share in moved] == [True, False, True, False, False]


def test_fewer_epochs_than_stages_are_refused_before_anything_is_written():
    with pytest.raises(InputError, match=r"train\.epochs = 1: the method has 2 stages: give each an epoch"):
        quick_config(**{**two_stages.QUICK, "train__epochs": 1})


def test_a_stage_that_contradicts_itself_is_a_fault():
    with pytest.raises(AssertionError, match="opens without them"):
        Stage(pairs=Pairing(partner="neighbour"))
    with pytest.raises(AssertionError, match="opens without features"):
        Stage(pairs=Pairing(of="features"))


def test_each_stage_has_its_own_terms_optimiser_and_rates(whole):
    history = whole[0].history
    assert [record["stage"] for record in history] == ["pretext", "pretext", "heads", "heads", "heads"]
    assert [list(record["losses"]) for record in history] == [
        *[["total", "contrast"]] * 2, *[["total", "agreement", "balance"]] * 2, [],
    ]  # fmt: skip
    learner = build_learner(quick_config(**two_stages.QUICK), digits(), CPU)
    assert isinstance(learner.optimiser, torch.optim.SGD)
    later = at_stage(learner, 1)
    assert isinstance(later.optimiser, torch.optim.Adam)
    assert later.network is learner.network
    assert (later.epochs, later.seed != learner.seed) == (range(2, 4), True)
    # 0.004 for 256 images, 64 in a batch, and a cosine that ends with the stage.
    assert later.schedule.peak == 0.001
    assert later.schedule.learning_rate(2 * later.schedule.steps - 1) == pytest.approx(0.0)


# Of 200 images there are three steps an epoch and its opening: 8 questions up to the border, 8 after it.
@pytest.mark.parametrize("question", [2, 6, 8, 9, 11, 14])
def test_a_run_stopped_anywhere_ends_with_the_same_bits(tmp_path, whole, question):
    settings = {**two_stages.QUICK, "keep_epochs": (1,)}
    run = RunFolder.create(tmp_path / "run", {}, quick_config(**settings))
    asked = iter(range(1, 100))
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked) >= question, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.network, whole[0].model.network)
    assert without_times(resumed.history) == without_times(whole[0].history)
    assert (resumed.table.cluster == whole[0].table.cluster).all()


def test_the_heads_answer_is_the_runs(whole):
    fitted, run = whole
    network, config = fitted.model.network.eval(), fitted.model.config
    images = torch.from_numpy(digits().batch(np.arange(200)))
    with torch.no_grad():
        view = plain_view(images, config.views.size, config.pixels.mean, config.pixels.std)
        scores = network.cluster_head(network.online.backbone(view)).softmax(dim=1).numpy()
        embeddings = F.normalize(network.online(view), dim=1).numpy()
    clusters = fitted.table.cluster
    assert (clusters == scores.argmax(axis=1)).all()
    np.testing.assert_allclose(fitted.table.confidence, scores.max(axis=1), rtol=1e-5)
    prototypes = fitted.model.prototypes.numpy()
    for number in np.unique(clusters):
        mean = embeddings[clusters == number].mean(axis=0)
        np.testing.assert_allclose(prototypes[number], mean / np.linalg.norm(mean), atol=1e-5)
    distance = 1 - (embeddings * prototypes[clusters]).sum(axis=1)
    np.testing.assert_allclose(fitted.table.distance, distance, atol=1e-5)
    predicted = Model.from_run(Run.open(run.path), CPU).predict(digits())
    assert (predicted.cluster == clusters).all()
    np.testing.assert_allclose(predicted.confidence, fitted.table.confidence, rtol=1e-5)


def test_a_head_that_answers_needs_the_number_of_clusters():
    source = digits()
    source.labels = None
    with pytest.raises(InputError, match="needs the number of clusters from the start"):
        quick_config(source, **two_stages.QUICK)


def test_neighbours_are_the_nearest_others():
    points = F.normalize(torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    cosines = points.numpy() @ points.numpy().T
    np.fill_diagonal(cosines, -2)
    expected = np.argsort(-cosines, axis=1)[:, :4]
    assert np.array_equal(nearest_neighbours(points, 4).numpy(), expected)
    assert np.array_equal(nearest_neighbours(points, 4, slice(20, 33)).numpy(), expected[20:33])
    assert nearest_neighbours(points[:3], 10).shape == (3, 2)


@pytest.mark.parametrize("rows", [None, slice(20, 33)])
def test_a_bank_in_parts_has_the_neighbours_of_the_whole(monkeypatch, rows):
    points = F.normalize(torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    whole = nearest_neighbours(points, 9, rows)
    monkeypatch.setattr("propos.clustering.neighbours.BANK_AT_A_TIME", 7)  # the last part has one vector
    monkeypatch.setattr("propos.clustering.neighbours.COSINES_AT_A_TIME", 40)
    assert torch.equal(nearest_neighbours(points, 9, rows), whole)


def test_the_confident_are_the_surest_of_each_cluster():
    assignments = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]])
    heads = torch.stack([assignments.flip(0), assignments], dim=1)
    seen = Seen(torch.zeros(6, 2), torch.zeros(6, 2), heads, 1, slice(0, 6))
    assert Confident(0.5)(seen).tolist() == [True, False, True, False, True, False]


def staged(stage, **settings):
    """Return a learner of a method with one stage, and its open state."""

    def method(config):
        width = plain_head(config, config.network.dimension)
        return Method(Parts(projector=width, cluster_head=plain_head(config, 10)), (stage,), embeds="online")

    METHODS["staged"] = method
    try:
        source = digits()
        learner = build_learner(quick_config(source, method="staged", **settings), source, CPU)
    finally:
        del METHODS["staged"]
    state = first_state(learner)
    open_stage(learner, source, state)
    return learner, state, source


CONTRAST = (Term("contrast", NtXent(0.5)),)


def test_an_epoch_in_which_no_term_counts_changes_no_weight():
    learner, state, source = staged(Stage(terms=(Term("contrast", NtXent(0.5), starts=1),)))
    state.partition = Partition(torch.zeros(200, dtype=torch.long), torch.zeros(0))
    before = {name: value.clone() for name, value in learner.network.named_parameters()}
    assert m_step(learner, source, torch.arange(64), state).tolist() == [0.0]
    assert all(torch.equal(value, before[name]) for name, value in learner.network.named_parameters())


def test_running_buffers_of_frozen_parts_do_not_move():
    learner, _, _ = staged(Stage(terms=CONTRAST, trains=("projector", "cluster_head")))
    names = {buffer.data_ptr() for buffer in learner.network.moving_buffers()}
    backbone = [b for b in learner.network.online.backbone.buffers() if b.is_floating_point()]
    assert backbone
    assert not names & {buffer.data_ptr() for buffer in backbone}


def test_the_second_view_is_of_a_neighbour():
    learner, state, source = staged(
        Stage(terms=CONTRAST, pairs=Pairing(partner="neighbour"), opens_with=(Neighbours(3),))
    )
    batch = torch.arange(40)
    first, second = paired_views(learner, source, batch, state, (7, 0))
    drawn = torch.randint(3, (40,), generator=generator(learner.seed, "neighbours", 7, 0))
    partners = state.prepared["neighbours"][batch, drawn].numpy()
    for view, place, images in ((first, 0, np.arange(40)), (second, 1, partners)):
        expected = learner.views(torch.from_numpy(source.batch(images)), generator(learner.seed, "views", 7, 0))[place]
        assert torch.equal(view, expected)


class Noting:
    """An objective that asks for nothing and remembers what it was shown."""

    def __init__(self):
        self.shown = []

    def __call__(self, outputs, labels):
        self.shown.append(outputs)
        return outputs.projections[0].sum() * 0.0


def test_a_loss_knows_whom_the_second_views_are_of_and_may_have_one_more_view():
    noting = Noting()
    pairs = Pairing(partner="neighbour", again="random", again_for="projector")
    learner, state, source = staged(Stage(terms=(Term("noted", noting),), pairs=pairs, refreshes=(Neighbours(3),)))
    state.partition, batch = Partition(torch.zeros(200, dtype=torch.long), torch.zeros(0)), torch.arange(64)
    partners = partners_of(learner, batch, state, (0, 0))
    learner.network.begin_step()
    with torch.no_grad():
        expected = learner.network.online(further_view(learner, source, batch, (0, 0)))
    m_step(learner, source, batch, state)
    (outputs,) = noting.shown
    assert torch.equal(outputs.partners, partners)
    assert bool((state.prepared["neighbours"][batch] == partners[:, None]).any(dim=1).all())
    assert len(partners.unique()) > 10
    torch.testing.assert_close(outputs.again_projections, expected)
    assert outputs.again is None


def test_a_plain_view_is_the_whole_image():
    learner, state, source = staged(Stage(terms=CONTRAST, pairs=Pairing(first="plain")))
    first, second = paired_views(learner, source, torch.arange(40), state, (7, 0))
    images, pixels = torch.from_numpy(source.batch(np.arange(40))), learner.config.pixels
    assert torch.equal(first, plain_view(images, 8, pixels.mean, pixels.std))
    assert torch.equal(second, learner.views(images, generator(learner.seed, "views", 7, 0))[1])


def test_a_stage_that_is_fed_features_leaves_the_backbone_out():
    stage = Stage(terms=CONTRAST, trains=("projector",), pairs=Pairing(of="features"), opens_with=(Features(),))
    learner, state, source = staged(stage)
    features = state.prepared["features"]
    pixels = learner.config.pixels
    images = plain_view(torch.from_numpy(source.batch(np.arange(200))), 8, pixels.mean, pixels.std)
    with torch.no_grad():
        expected = learner.network.online.backbone.eval()(images)
    torch.testing.assert_close(features, expected)
    pair = paired_views(learner, source, torch.arange(9), state, (0, 0))
    assert torch.equal(pair[0], features[:9])
    outputs = learner.network(pair, None, features_given=True)
    torch.testing.assert_close(outputs.projections[0], learner.network.online.projector(features[:9]))
    assert [parameter.shape for parameter in learner.network.trained()] == [
        parameter.shape for parameter in learner.network.online.projector.parameters()
    ]


def test_a_stage_may_change_its_views_alone():
    source = digits()
    config = quick_config(source, method="conr", views__crop_scale=(0.1, 0.9), views__rotation=0.0)
    learner = build_learner(config, source, CPU)
    assert learner.views.settings.crop_scale == (0.1, 0.9)
    later = at_stage(learner, 1)
    assert later.views.settings == learner.views.settings.model_copy(update={"crop_scale": (0.45, 0.9)})
    gentle = at_stage(build_learner(quick_config(source, method="conr"), source, CPU), 1)
    assert gentle.views.settings.crop_scale == (0.6, 1.0)  # the recipe's show more than the stage asks for
    with pytest.raises(AssertionError, match="one size"):
        Stage(views={"size": 16})


def test_methods_that_build_on_no_other_have_one_stage():
    """But those whose authors train them in several, from one beginning to the end."""
    several = {"tcl": ["train", "boost"], "gcc": ["contrast", "graph"]}
    several |= {name: ["autoencoder", "clusters"] for name in ("dec", "idec")}
    for name in set(METHODS) - {two_stages.NAME, "kmeans-features"}:
        config = quick_config(method=name)
        stages = build_method(config).stages
        if name in several:
            assert [stage.name for stage in stages] == several[name]
            assert config.pretext.method is None
        else:
            assert (len(stages) == 1) is (config.pretext.method is None)
