"""Methods in several stages: what learns in each, what a head predicts, and borders that stopping does not show."""

from itertools import combinations

import numpy as np
import pytest
import safetensors.numpy
import torch
import torch.nn.functional as F

from helpers import two_stages
from helpers.quick import quick_cases
from helpers.small import CPU, digits, quick_config, quick_train, same_weights, two_views, without_times
from propos.augment import RandomViews, plain_view
from propos.clustering import nearest_neighbours
from propos.common.errors import InputError, Interrupted
from propos.config import REGISTERED
from propos.losses import nt_xent
from propos.methods import Method, Stage, find_method, method_names, register_method, stages_of
from propos.methods.seeds import generator
from propos.networks import Mlp, Neighbours
from propos.runs import Run, RunFolder
from propos.training import Model, late_losses, stage_epochs
from propos.training.batch import StepBatch
from propos.training.corrections import EXCLUDED, Corrections
from propos.training.e_step import Partition
from propos.training.learner import at_stage, build_learner, trained_parameters
from propos.training.m_step import m_step, running_statistics, set_modes
from propos.training.stage_setup import begin_epoch
from propos.training.stages import tables_due
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


@pytest.mark.parametrize(
    ("settings", "late"),
    [
        ({"psl_start": 2}, []),
        ({"psl_start": 3}, ["psl would start at epoch 3 of 3 (the first is 0): lower propos.psl_start"]),
        ({"psl_start": 3, "psl_weight": 0.0}, []),
        (
            {"psl_start": None, "train__warmup": 3},
            ["psl would start at epoch 3 of 3 (the first is 0): lower train.warmup"],
        ),
        ({"pull_weight": 0.1, "pull_share": 0.2}, []),  # 0.6 of an epoch, rounded
        (
            {"pull_weight": 0.1, "pull_share": 0.1},
            ["pull would start at epoch 3 of 3 (the first is 0): raise propos.pull_share"],
        ),
        (
            {"method": "dcboost", "propos__psl_start": 2, "train__epochs": 2},
            ["psl would start at epoch 2 of 1 (the first is 0): lower propos.psl_start"],
        ),
        (
            {"method": "pcl", "train__warmup": 3},
            ["prototypes would start at epoch 3 of 3 (the first is 0): lower train.warmup"],
        ),
        (
            {"method": "cc-psl", "psl_start": 3},
            ["psl would start at epoch 3 of 3 (the first is 0): lower cc-psl.psl_start"],
        ),
        ({"method": "kmeans-pixels"}, []),
    ],
)
def test_losses_that_start_too_late_are_named_with_the_setting_that_starts_them(settings, late):
    assert late_losses(quick_config(**settings)) == [f"{each}, or train longer (--epochs)" for each in late]


def test_epochs_are_divided_by_shares_with_at_least_one_each():
    def spans(epochs, *shares):
        stages = tuple(Stage(str(share), share=share) for share in shares)
        return [(span.start, span.stop) for span in stage_epochs(stages, epochs)]

    assert spans(10, 1.0) == [(0, 10)]
    assert spans(10, 3, 1) == [(0, 8), (8, 10)]
    assert spans(10, 0.5, 0.3, 0.2) == [(0, 5), (5, 8), (8, 10)]
    assert spans(3, 1000, 1, 1) == [(0, 1), (1, 2), (2, 3)]
    assert spans(3, 1, 1, 1000) == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(InputError, match=r"train\.epochs = 2: the method has 3 stages"):
        spans(2, 1, 1, 1)


def test_tables_are_made_when_a_stage_opens_and_every_so_many_epochs():
    def epochs(every):
        return [epoch for epoch in range(7) if tables_due(Stage(tables_every=every), epoch)]

    assert [epochs(every) for every in (None, 0, 1, 3)] == [[], [0], list(range(7)), [0, 3, 6]]


def test_a_stage_moves_what_it_trains_and_nothing_else(whole):
    fitted, run = whole
    border = safetensors.numpy.load_file(run.path / "snapshots" / "epoch-0001.safetensors")
    first = build_learner(quick_config(**two_stages.QUICK), digits(), CPU).method.state_dict()
    weights = {name: each for name, each in fitted.model.method.state_dict().items() if "neighbours" not in name}
    assert weights.keys() == border.keys()
    for name, tensor in weights.items():
        of_head = name.startswith("head")
        assert np.array_equal(tensor.numpy(), border[name]) is not of_head, name
        if name.endswith("weight"):
            assert np.array_equal(first[name].numpy(), border[name]) is of_head, name


def test_a_head_is_not_compared_with_the_clusters_of_k_means_before_it(whole):
    moved = [record["measures"]["churn"] for record in whole[0].history]
    assert [share is None for share in moved] == [True, False, True, False, False]


def test_fewer_epochs_than_stages_are_refused_before_anything_is_written():
    with pytest.raises(InputError, match=r"train\.epochs = 1: the method has 2 stages, which need an epoch each"):
        quick_config(**{**two_stages.QUICK, "train__epochs": 1})


def test_each_stage_has_its_own_terms_optimiser_and_rates(whole):
    history = whole[0].history
    assert [record["stage"] for record in history] == ["contrast", "contrast", "clustering", "clustering", "clustering"]
    assert [list(record["losses"]) for record in history] == [
        *[["total", "contrast"]] * 2, *[["total", "agreement", "balance"]] * 2, [],
    ]  # fmt: skip
    learner = build_learner(quick_config(**two_stages.QUICK), digits(), CPU)
    assert isinstance(learner.optimiser, torch.optim.SGD)
    later = at_stage(learner, 1)
    assert isinstance(later.optimiser, torch.optim.Adam)
    assert later.method is learner.method
    assert (later.epochs, later.seed != learner.seed) == (range(2, 4), True)
    # 0.004 for 256 images, 64 in a batch, and a cosine that ends with the stage.
    assert later.schedule.peak == 0.001
    assert later.schedule.learning_rate(2 * later.schedule.steps - 1) == pytest.approx(0.0)


# Of 200 images there are three steps an epoch and its opening: 8 questions up to the border, 8 after it.
@pytest.mark.parametrize("question", quick_cases(2, 9, 14, rest=[6, 8, 11]))
def test_a_run_stopped_anywhere_ends_with_the_same_bits(tmp_path, whole, question):
    settings = {**two_stages.QUICK, "keep_epochs": (1,)}
    run = RunFolder.create(tmp_path / "run", {}, quick_config(**settings))
    asked = iter(range(1, 100))
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked) >= question, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.method, whole[0].model.method)
    assert without_times(resumed.history) == without_times(whole[0].history)
    assert (resumed.table.cluster == whole[0].table.cluster).all()


def test_the_heads_answer_is_the_runs(whole):
    fitted, run = whole
    method, config = fitted.model.method.eval(), fitted.model.config
    images = torch.from_numpy(digits().batch(np.arange(200)))
    with torch.no_grad():
        view = plain_view(images, config.views.size, config.pixels.mean, config.pixels.std)
        scores = method.head(method.online.backbone(view)).softmax(dim=1).numpy()
        embeddings = F.normalize(method.online(view), dim=1).numpy()
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


class Staged(Method):
    """Contrast two views, from an epoch on; neighbours stand in for second views."""

    def __init__(self, settings, setup):
        super().__init__(settings, setup)
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension))
        self.neighbours = Neighbours(setup.images)
        self.starts = 0

    def losses(self, batch, ctx):
        if ctx.epoch < self.starts:
            return {}
        return {"contrast": nt_xent(*ctx.gather(*ctx.encode(self.online, *batch.views())), 0.5)}


@pytest.fixture
def staged(request):
    """Return a learner of a method with one stage, which tests change."""
    kind = type("Staged", (Staged,), {"stages": classmethod(lambda cls, settings, setup: (request.param,))})
    register_method("staged", kind)
    source = digits()
    learner = build_learner(quick_config(source, method="staged"), source, CPU)
    state = first_state(learner)
    state.partition = Partition(torch.zeros(200, dtype=torch.long), torch.zeros(0))
    yield learner, state, source
    REGISTERED.pop("staged")


def of_stage(*stages):
    return pytest.mark.parametrize("staged", stages, indirect=True)


@of_stage(Stage())
def test_an_epoch_without_a_loss_changes_no_weight(staged):
    learner, state, source = staged
    learner.method.starts = 1
    before = {name: value.clone() for name, value in learner.method.named_parameters()}
    assert m_step(learner, source, torch.arange(64), state) == {}
    assert all(torch.equal(value, before[name]) for name, value in learner.method.named_parameters())


@of_stage(Stage(trains=("online.projector",)))
def test_frozen_parts_have_no_gradient_and_their_statistics_do_not_move(staged):
    learner, state, source = staged
    before = {name: value.clone() for name, value in learner.method.online.backbone.named_buffers()}
    m_step(learner, source, torch.arange(64), state)
    assert all(torch.equal(value, before[name]) for name, value in learner.method.online.backbone.named_buffers())
    set_modes(learner)
    moving = {buffer.data_ptr() for buffer in running_statistics(learner)}
    assert moving == {
        learner.method.online.projector[1].get_buffer(name).data_ptr() for name in ("running_mean", "running_var")
    }
    expected = [parameter.shape for parameter in learner.method.online.projector.parameters()]
    assert [parameter.shape for parameter in trained_parameters(learner.method)] == expected


def embedding_batch_size(learner, state, source, count=40, when=(7, 0)):
    positions = torch.arange(count)
    return StepBatch(learner.config, source, CPU, positions, learner.seed, when, state.partition.labels)


@of_stage(Stage())
def test_a_partner_is_a_random_neighbour_and_its_view_the_second(staged):
    learner, state, source = staged
    points = F.normalize(torch.randn(200, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    learner.method.neighbours["table"] = nearest_neighbours(points, 3)
    batch = embedding_batch_size(learner, state, source)
    partners = batch.partners(learner.method.neighbours)
    drawn = torch.randint(3, (40,), generator=generator(learner.seed, "neighbours", 7, 0))
    assert torch.equal(partners.images, learner.method.neighbours["table"][torch.arange(40), drawn])
    assert torch.equal(partners.view("random", 1), two_views(learner, partners.images, (7, 0))[1])
    assert torch.equal(batch.view("random", 0), two_views(learner, range(40), (7, 0))[0])


@of_stage(Stage())
def test_a_plain_view_is_the_whole_image_and_a_third_view_is_another_draw(staged):
    learner, state, source = staged
    batch = embedding_batch_size(learner, state, source)
    images, pixels = torch.from_numpy(source.batch(np.arange(40))), learner.config.pixels
    assert torch.equal(batch.view("plain"), plain_view(images, 8, pixels.mean, pixels.std))
    views = [*batch.views(), batch.view("random", 2), batch.view("strong", 0), batch.view("strong", 1)]
    for first, second in combinations(views, 2):
        assert not torch.equal(first, second)


@of_stage(Stage())
def test_a_method_may_change_the_views_it_asks_for(staged):
    learner, state, source = staged
    batch = embedding_batch_size(learner, state, source)
    gentle = RandomViews(learner.config.views.model_copy(update={"crop_scale": (0.9, 1.0)}), *_pixels(learner))
    expected = gentle(torch.from_numpy(source.batch(np.arange(40))), generator(learner.seed, "views", 7, 0))
    for found, view in zip(batch.views(crop_scale=(0.9, 1.0)), expected, strict=True):
        assert torch.equal(found, view)


def _pixels(learner):
    return learner.config.pixels.mean, learner.config.pixels.std


@of_stage(Stage(tables_every=0))
def test_tables_are_of_plain_views_in_eval_mode_and_left_out_images_have_no_row(staged):
    learner, state, source = staged
    seen = []
    fixed = torch.full((200,), -1)
    fixed[3] = EXCLUDED
    learner.method.make_tables = lambda images, ctx: seen.append(images.apply(learner.method.online.backbone))
    begin_epoch(learner, source, state, Corrections(fixed, {}, {}))
    images = plain_view(torch.from_numpy(source.batch(np.arange(200))), 8, *_pixels(learner))
    with torch.no_grad():
        expected = learner.method.online.backbone.eval()(images)
    expected[3] = 0
    torch.testing.assert_close(seen[0], expected)


def test_methods_that_build_on_no_other_have_one_stage():
    """But those whose authors train them in several."""
    several = {"tcl": ["train", "boost"], "gcc": ["contrast", "graph"]}
    several |= {name: ["autoencoder", "clusters"] for name in ("dec", "idec")}
    for name in set(method_names()) - {two_stages.NAME}:
        if "images" not in find_method(name).inputs or not find_method(name).trains:
            continue
        stages, builds = stages_of(quick_config(method=name)), "pretext" in find_method(name).Settings.model_fields
        if name in several:
            assert [stage.name for stage in stages] == several[name]
        else:
            assert (len(stages) == 1) is not builds
