"""The values of recipes, against those the paper and its authors' code have."""

import math

import numpy as np
import pytest

from propos.data import UnopenedSource
from propos.data.arrays import ArraySource
from propos.methods import build_method
from propos.recipes import PAPER, RECIPES, SYSTEMS, build_recipe, choose_recipe

SYNC = {"imagenet-1k-released"}
SMALL = [name for name in RECIPES if name not in PAPER and name not in SYSTEMS]


def test_the_papers_recipes_are_its_rows():
    """Backbone, side, epochs and warm-up as the paper's set-up lists them."""
    rows = {
        "cifar-10": ("resnet34", "small", 32, 1000, 50),
        "cifar-20-r18": ("resnet18", "small", 32, 1000, 50),
        "stl-10": ("resnet34", "imagenet", 96, 1000, 50),
        "imagenet-10": ("resnet34", "imagenet", 96, 1000, 50),
        "imagenet-dogs-224": ("resnet34", "imagenet", 224, 1000, 50),
        "tiny-imagenet": ("resnet18", "imagenet", 224, 1000, 50),
        "imagenet-1k": ("resnet50", "imagenet", 224, 200, 10),
        "tiny-imagenet-queue": ("resnet18", "imagenet", 224, 200, 50),
        "imagenet-50": ("resnet50", "imagenet", 224, 300, 50),
        "imagenet-200": ("resnet50", "imagenet", 224, 300, 50),
        "cifar-10-lt": ("resnet18", "small", 32, 1000, 50),
    }
    for name, row in rows.items():
        config = build_recipe(name)
        network, train = config.network, config.train
        assert (network.backbone, network.stem, config.views.size, train.epochs, train.warmup) == row, name
        assert (network.hidden, network.dimension, network.momentum) == (4096, 256, 0.996)
        assert (config.psl.weight, config.psl.temperature, config.psa.sigma) == (0.1, 0.5, 0.001)
        assert (train.lr, train.batch_size, train.predictor_rate, train.weight_decay) == (0.05, 256, 10.0, 5e-4)


def test_the_released_imagenet_recipe_steps_as_the_authors_did():
    config = build_recipe("imagenet-1k-released")
    assert config.train.batch_size * config.train.accumulate == 4096
    assert config.train.lr * 4096 / 256 == pytest.approx(4.8)
    assert (config.views.blur, config.views.solarise) == ((1.0, 0.1), (0.0, 0.2))
    assert (config.estep.every, config.queue.size, config.train.epochs) == (10, 10_240, 200)


def test_released_weights_of_scattering_are_shared_by_four_processes():
    for name in ("cifar-10-r18-released", "cifar-20-r34-released", "imagenet-dogs-released"):
        assert build_recipe(name).psl.weight == pytest.approx(0.025)


def test_the_recipe_suits_the_images():
    def unopened(side, channels, colours=256):
        # Pixels are looked at where grey images are large: photographs have many levels, drawings few.
        pixels = np.random.default_rng(0).integers(0, colours, (3, 40, 40, channels), dtype=np.uint8)
        return UnopenedSource(
            100, channels, side, side, open=lambda _: ArraySource(pixels, None, "pixels"), labelled=False
        )

    on_a_cpu = {
        (8, 1): "digits",
        (28, 1): "small-grey",
        (32, 3): "small-colour",
        (500, 3): "photos",
        (500, 1): "photos",
    }
    for (side, channels), recipe in on_a_cpu.items():
        assert choose_recipe(unopened(side, channels), "cpu")[0] == recipe
    assert choose_recipe(unopened(500, 1, colours=1), "cpu")[0] == "small-grey"
    assert choose_recipe(unopened(32, 3), "cuda")[0] == "paper-32"
    assert choose_recipe(unopened(500, 3), "cuda")[0] == "paper-96"


@pytest.mark.parametrize(
    ("name", "side", "table", "small"),
    [
        ("cifar-10", 32, "tables 2 and s1", "small-colour"),
        ("stl-10", 96, "table 2", "photos"),
        ("tiny-imagenet", 64, "table 3", "small-colour"),
        ("imagenet-50", 500, "table 8", "photos"),
        ("cifar-20-lt", 32, "table 9", "small-colour"),
    ],
)
def test_a_published_set_has_the_papers_recipe_on_a_gpu_and_a_small_one_on_a_cpu(name, side, table, small):
    unopened = UnopenedSource(100, 3, side, side, open=None, labelled=True, published=name)
    assert choose_recipe(unopened, "cuda") == (name, f"{name} on cuda: {table}")
    chosen, why = choose_recipe(unopened, "cpu")
    assert chosen == small
    assert why.endswith(f"on cpu; the paper's for {name} is a GPU's work (--recipe {name})")


def test_published_sets_that_the_paper_does_not_have_are_chosen_for_as_others():
    unopened = UnopenedSource(70_000, 1, 28, 28, open=None, labelled=True, published="fashion-mnist")
    assert choose_recipe(unopened, "cuda") == ("small-grey", "greyscale images of 28×28 on cuda")


@pytest.mark.parametrize("name", [name for name in PAPER if name not in SYNC])
def test_batch_norm_sees_the_four_shuffled_slices_of_the_papers_gpus(name):
    network = build_recipe(name).network
    assert (network.bn_groups, network.shuffle_bn) == (4, True)


def test_the_released_imagenet_recipe_has_one_group_as_syncbn():
    network = build_recipe("imagenet-1k-released").network
    assert (network.bn_groups, network.shuffle_bn) == (1, False)


@pytest.mark.parametrize("name", SMALL)
def test_small_recipes_keep_the_statistics_of_the_whole_batch(name):
    network = build_recipe(name).network
    assert (network.bn_groups, network.shuffle_bn) == (1, False)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("method", ["moco", "pcl"])
def test_keys_are_shuffled_in_every_recipe(name, method):
    network = build_recipe(name, method).network
    assert (network.bn_groups, network.shuffle_bn) == (4, True)


def test_methods_without_a_target_have_nothing_to_shuffle():
    groups = {"simsiam": 4, "simclr": 1, "cc": 1, "cc-psl": 1}
    for method, expected in groups.items():
        network = build_recipe("cifar-10", method).network
        assert (network.bn_groups, network.shuffle_bn) == (expected, False)


@pytest.mark.parametrize(("name", "start"), [("cifar-10", 50), ("imagenet-1k", 10), ("digits", 50), ("small-grey", 10)])
def test_cc_scatters_prototypes_only_after_as_long_as_a_warm_up(name, start):
    config = build_recipe(name, "cc-psl").with_settings({"clusters": 10})
    assert config.train.warmup == 0
    assert {term.name: term.starts for term in build_method(config).terms} == {"contrast": 0, "psl": start}


def test_released_recipes_are_the_released_settings():
    """Batch, momentum's schedule, balance and rate's schedule, as the authors' files of settings have them."""
    rows = {
        "cifar-10-r18-released": (512, "constant", False, "cosine-of-all"),
        "cifar-20-r18-released": (256, "cosine", True, "cosine-of-all"),
        "cifar-20-r34-released": (256, "cosine", True, "cosine-by-epoch"),
        "byol-released": (512, "cosine", False, "cosine-of-all"),
        "imagenet-dogs-released": (256, "cosine", True, "cosine-of-all"),
        "imagenet-1k-released": (256, "cosine", False, "cosine-of-all"),
    }
    for name, row in rows.items():
        config = build_recipe(name)
        train = config.train
        assert (train.batch_size, config.network.momentum_schedule, train.balanced, train.schedule) == row, name


def test_released_recipes_draw_from_every_cluster_as_often_from_the_first_epoch_on():
    config = build_recipe("cifar-20-r18-released").with_settings({"clusters": 20})
    assert [stage.balanced for stage in build_method(config).stages] == [True]
    assert build_method(config).clusters_needed(1000) == 0
    assert config.psl_start == 50


def test_photographs_keep_their_shape_and_are_tested_on_their_middle_at_full_size():
    small = {name: build_recipe(name) for name in SMALL}
    for name, config in ((name, build_recipe(name)) for name in PAPER):
        size = config.views.size
        assert (config.views.keep == "shapes") is (size > 32), name
        assert (config.views.plain == "centre") is (size == 224), name
    own = {(config.views.keep, config.views.plain) for name, config in small.items() if name != "pretrained"}
    assert own == {("squares", "whole")}
    views = small["pretrained"].views  # as the weights were tested: shorter side 256, the middle 224
    assert (views.keep, views.plain, views.size) == ("shapes", "centre", 224)


def test_the_papers_colours_change_in_turn_and_those_of_small_recipes_at_once():
    assert {build_recipe(name).views.colours for name in PAPER} == {"in-turn"}
    assert {build_recipe(name).views.colours for name in SMALL} == {"at-once"}


def test_other_systems_have_the_settings_they_were_published_with():
    names = ("scan-cifar-10", "nnm-cifar-10", "temi-dino", "dcboost-cifar-10", "conr-cifar-10", "idfd-cifar-10")
    scan, nnm, temi, boost, conr, idfd = (build_recipe(name) for name in names)
    assert [len(span) for span in build_method(scan.with_settings({"clusters": 10})).spans(800)] == [500, 200, 100]
    assert scan.heads.lr * scan.train.batch_size / 256 == pytest.approx(1e-4)
    assert scan.train.lr * scan.train.batch_size / 256 == pytest.approx(0.4)
    assert (scan.neighbours.count, scan.balance.weight, scan.confident.above) == (20, 5.0, 0.99)
    # 100 epochs in batches of 200 are 25,000 steps, as 257 of 97.
    assert [len(span) for span in build_method(nnm.with_settings({"clusters": 10})).spans(757)] == [500, 257]
    assert nnm.heads.lr * nnm.train.batch_size / 256 == pytest.approx(1e-4)
    assert (nnm.heads.count, nnm.neighbours.count, nnm.balance.weight) == (3, 20, 5.0)
    assert nnm.train == scan.train.model_copy(update={"epochs": 757})
    assert (temi.heads.count, temi.neighbours.count, temi.network.momentum) == (16, 50, 0.996)
    assert temi.heads.lr * temi.train.batch_size / 256 == pytest.approx(4e-4)
    assert [len(span) for span in build_method(boost).spans(1000)] == [800, 200]
    assert build_method(boost).stages[1].changes["lr"] == pytest.approx(0.005)
    assert (conr.pretext.method, conr.network.backbone, conr.neighbours.count) == ("byol", "resnet18", 10)
    assert conr.train.lr * conr.train.batch_size / 256 == pytest.approx(0.1)
    refining = build_method(conr.with_settings({"clusters": 10})).stages[1]
    assert (refining.views["crop_scale"], refining.predictor_rate) == ((0.45, 1.0), 1.0)
    assert refining.changes["lr"] == pytest.approx(0.05 * 0.1 * (1 + math.cos(0.75 * math.pi)) / 2, rel=0.03)
    assert idfd.train.lr * idfd.train.batch_size / 256 == pytest.approx(0.03)
    assert [share * idfd.train.epochs for share in idfd.train.milestones] == pytest.approx([600, 950, 1300, 1650])
    assert (idfd.train.weight_decay, idfd.train.warmup, idfd.train.schedule) == (5e-4, 0, "steps")
    assert (idfd.bank.momentum, idfd.contrast.temperature, idfd.decorrelation.temperature) == (0.5, 1.0, 2.0)
    assert (idfd.views.crop_scale, idfd.views.flip, idfd.views.hue) == ((0.2, 1.0), 0.0, 0.0)


def test_systems_that_learn_clusters_from_the_start_have_theirs():
    names = ("iic-cifar-10", "pica-cifar-10", "idfd-cifar-10")
    iic, pica, idfd = (build_recipe(name).with_settings({"clusters": 10}) for name in names)
    for config, heads in ((iic, 5), (pica, 1)):
        parts = build_method(config).parts
        assert (parts.heads, parts.cluster_head.widths, parts.over_head.widths) == (heads, (10,), (70,))
        train = config.train
        assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 0.0, 0)
        assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert [term.weight for term in build_method(iic).terms] == [0.2, 0.2]
    views = {
        name: (config.views.crop_scale, config.views.jitter, config.views.hue, config.views.grey)
        for name, config in (("iic", iic), ("pica", pica), ("idfd", idfd))
    }
    assert views == {
        "iic": ((0.39, 0.39), 1.0, 0.125, 0.0),
        "pica": ((0.2, 1.0), 1.0, 0.4, 0.2),
        "idfd": ((0.2, 1.0), 1.0, 0.0, 0.2),
    }
    assert [term.weight for term in build_method(pica).terms] == [1.0, 2.0, 1.0, 2.0]


def test_localagg_has_its_own_settings():
    local = build_recipe("localagg-imagenet-1k").with_settings({"clusters": 1000})
    assert build_method(local).stages[0].further.numbers(1_281_167) == (30_000,) * 10
    assert [(term.name, term.starts, term.ends) for term in build_method(local).terms] == [
        ("instances", 0, 10),
        ("aggregation", 10, None),
    ]
    assert local.train.lr * local.train.batch_size / 256 == pytest.approx(0.03)
    assert [share * local.train.epochs for share in local.train.milestones] == pytest.approx([160, 190])
    assert (local.bank.momentum, local.contrast.temperature, local.train.weight_decay) == (0.5, 0.07, 1e-4)
    assert (local.network.backbone, local.views.crop_scale, local.views.hue) == ("resnet18", (0.2, 1.0), 0.4)


@pytest.mark.parametrize(("method", "weights"), [("dec", [1.0, 1.0]), ("idec", [1.0, 1.0, 0.1])])
def test_autoencoders_have_their_own_settings(method, weights):
    config = build_recipe("cifar-10-r18", method).with_settings({"clusters": 7})
    built, train = build_method(config), config.train
    assert [term.weight for term in built.terms] == weights
    assert [len(span) for span in built.spans(config.train.epochs)] == [500, 500]
    assert (train.optimiser, train.lr, train.schedule, train.weight_decay) == ("adam", 1e-3, "constant", 0.0)
    assert (built.parts.cluster_head.widths, built.parts.cluster_head.spread) == ((7,), 0.1)
    assert (built.parts.decoder.hidden, built.parts.decoder.side) == ((4096,), 32)
    larger = build_method(config.with_settings({"views.size": 224}))
    smaller = build_method(config.with_settings({"views.size": 8}))
    assert (larger.parts.decoder.side, smaller.parts.decoder.side) == (32, 8)


def test_dccm_has_its_own_settings():
    config = build_recipe("dccm-cifar-10").with_settings({"clusters": 10})
    method, train, views = build_method(config), config.train, config.views
    assert {term.name: term.weight for term in method.terms} == {"labels": 5.0, "graph": 1.0, "local": 0.05}
    labels, graph, local = (term.objective.above for term in method.terms)
    assert (labels, graph, local) == (0.9, 0.95, 0.95)
    parts = method.parts
    assert (parts.projector.widths, parts.cluster_head.widths, parts.discriminator.hidden) == ((64,), (10,), 512)
    assert (parts.projector.norm_last, parts.cluster_head.norm_last, parts.cluster_head.relu_first) == (True,) * 3
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (train.batch_size, train.epochs, train.schedule, train.weight_decay) == (32, 2000, "constant", 0.0)
    assert (train.optimiser, method.stages[0].pairs.again) == ("adam", "plain")
    assert (views.rotation, views.flip, views.crop_scale, views.crop_ratio) == (20.0, 0.5, (0.72, 1.0), (1.0, 1.0))
    assert (views.jitter, views.brightness, views.contrast) == (1.0, 0.1, 0.0)
    assert (views.saturation, views.hue, views.grey) == (0.0, 0.0, 0.0)


def test_secu_has_its_own_settings():
    secu = build_recipe("secu-cifar-10").with_settings({"clusters": 10})
    assert build_method(secu).parts.cluster_head.centres.sizes == tuple(range(10, 101, 10))
    rate = secu.train.lr * secu.train.batch_size / 256
    assert (rate, rate * build_method(secu).stages[0].cluster_head_rate) == pytest.approx((0.2, 1.2))
    assert (secu.train.warmup, secu.train.epochs, secu.train.weight_decay) == (11, 401, 1e-4)
    assert build_method(secu).parts.cluster_head.centres.step == 0.1
    assert (secu.contrast.temperature, secu.contrast.cluster_temperature) == (0.05, 0.05)
    assert (secu.views.crop_scale, secu.views.saturation, secu.views.hue) == ((0.3, 1.0), 0.2, 0.1)


def test_mice_has_its_own_settings():
    config = build_recipe("mice-cifar-10").with_settings({"clusters": 10})
    parts, train, views = build_method(config).parts, config.train, config.views
    assert (parts.projector.widths, parts.projector.unit_vectors) == ((10 * 128,), 10)
    gate = parts.cluster_head
    assert (gate.widths, gate.simplex, gate.norm, gate.temperature) == ((128, 10), True, True, 1.0)
    assert (config.contrast.temperature, config.network.momentum, config.queue.size) == (1.0, 0.999, 16384)
    assert train.lr * train.batch_size / 256 == pytest.approx(1.0)
    assert (train.batch_size, train.epochs, train.warmup, train.weight_decay) == (256, 1000, 10, 1e-4)
    assert [share * train.epochs for share in train.milestones] == pytest.approx([480, 640, 800])
    assert (train.schedule, config.network.backbone, config.network.bn_groups) == ("steps", "resnet34", 1)
    assert (views.crop_scale, views.flip, views.jitter, views.hue, views.grey) == ((0.2, 1.0), 0.5, 1.0, 0.4, 0.2)
    assert (views.brightness, views.contrast, views.saturation) == (0.4, 0.4, 0.4)


def test_spice_has_its_own_settings():
    config = build_recipe("spice-cifar-10").with_settings({"clusters": 10})
    method, train = build_method(config), config.train
    assert [len(span) for span in method.spans(1720)] == [1000, 240, 480]
    assert (config.pretext.method, config.network.backbone, config.heads.count) == ("moco", "resnet18", 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(0.015)
    assert (train.batch_size, train.warmup, train.weight_decay, train.schedule) == (128, 0, 1e-4, "cosine")
    assert (config.contrast.temperature, config.network.momentum, config.queue.size) == (0.2, 0.999, 12800)
    heads, network = method.stages[1:]
    assert (heads.changes["optimiser"], heads.changes["weight_decay"]) == ("adam", 0.0)
    assert heads.changes["lr"] * train.batch_size / 256 == pytest.approx(0.005)
    assert method.parts.cluster_head.widths == (512, 10)
    assert network.changes["lr"] * train.batch_size / 256 == pytest.approx(0.03)
    assert (network.changes["weight_decay"], network.changes["decay_norms"]) == (5e-4, False)
    (reliable,) = network.opens_with
    assert (reliable.count, reliable.share, reliable.above) == (100, 0.99, 0.99)


def test_tcl_has_its_own_settings():
    config = build_recipe("tcl-cifar-10").with_settings({"clusters": 10})
    method = build_method(config)
    assert [len(span) for span in method.spans(config.train.epochs)] == [1000, 200]
    for head, width in ((method.parts.projector, 128), (method.parts.cluster_head, 10)):
        assert (head.widths, head.norm, head.norm_last) == ((512, 512, width), True, False)
    train, views = config.train, config.views
    assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 1e-4, 0)
    # Four devices of 256 images, each normalising its own, at 1e-4.
    assert (train.batch_size, config.network.bn_groups) == (1024, 4)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (config.contrast.temperature, config.contrast.cluster_temperature, config.confident.above) == (0.5, 1, 0.99)
    assert (views.size, views.plain, views.blur, views.crop_scale) == (224, "centre", (1.0, 0.0), (0.2, 1.0))
    assert (views.brightness, views.contrast, views.saturation, views.hue) == (0.4, 0.4, 0.2, 0.1)
    assert (config.strong.operations, config.strong.cutout * 224) == (4, 75)
    assert [term.weight for term in method.terms] == [1.0] * 5


def test_swav_has_its_own_settings():
    config = build_recipe("swav-imagenet-1k").with_settings({"clusters": 1000})
    parts, train, views = build_method(config).parts, config.train, config.views
    assert (parts.projector.widths, parts.cluster_head.widths) == ((2048, 128), (3000,))
    assert parts.cluster_head.temperature == 0.1
    assert (train.optimiser, train.batch_size, train.epochs, train.warmup) == ("lars", 4096, 400, 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(4.8)
    assert (train.weight_decay, train.decay_norms, train.schedule) == (1e-6, True, "cosine")
    assert (config.queue.size, config.network.bn_groups, config.network.backbone) == (0, 1, "resnet50")
    assert (views.size, views.crop_scale, views.blur, views.grey) == (224, (0.08, 1.0), (0.5, 0.5), 0.2)
    assert (views.brightness, views.contrast, views.saturation, views.hue, views.jitter) == (0.8, 0.8, 0.8, 0.2, 0.8)


def test_gcc_has_its_own_settings():
    config = build_recipe("gcc-cifar-10").with_settings({"clusters": 10})
    method, train, views = build_method(config), config.train, config.views
    assert [len(span) for span in method.spans(train.epochs)] == [50, 950]
    assert (method.parts.projector.widths, method.parts.cluster_head.widths) == ((512, 128), (10,))
    assert (train.optimiser, train.lr, train.batch_size, train.weight_decay) == ("sgd", 0.4, 256, 1e-4)
    assert [stage.changes for stage in method.stages] == [{"schedule": "constant", "warmup": 0}, {"warmup": 0}]
    assert (config.contrast.temperature, config.neighbours.count, config.network.backbone) == (0.1, 5, "resnet18")
    assert [term.weight for term in method.terms] == [2.0, 2.0, 1.0, 2.0]
    assert (views.crop_scale, views.jitter, views.hue, views.grey, views.blur) == (
        (0.2, 1.0), 0.8, 0.1, 0.2, (0.0, 0.0),
    )  # fmt: skip
